"""Lowered grammars in files: shipped beside the packaged grammars, and in the cache folder for others.

A file holds a line of JSON (key, names, digest of the rest) and the words. One that is missing, damaged or of another
key counts as none: the grammar is loaded by lark again. A cache that cannot be written costs time, nothing else.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from array import array
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from maskwright._files import cache_directory, write_atomically
from maskwright.grammar.lark.lowered import FORM, VERSION, Lowered

# Files that come with lark itself, the same for everyone who has its version.
_OWN_IMPORT = re.compile(r"%import\s+(common|python|unicode|lark)\b")
_IMPORT = re.compile(r"%import\b")


def cache_file(text: str, options: dict[str, Any], version: str) -> tuple[Path, str] | None:
    """Where the lowered form of a grammar may lie, and its key; None where its text does not say all.

    Args:
        text: of the grammar.
        options: those that matter, as they are given to lark.
        version: of lark and Python.
    """
    if not all(isinstance(options.get(name), str | None) for name in ("edit_terminals", "postlex")):
        return None
    imports = len(_IMPORT.findall(text))
    if imports and (options["import_paths"] or options["source_path"] or imports != len(_OWN_IMPORT.findall(text))):
        return None
    told = {k: v for k, v in options.items() if k not in ("source_path", "import_paths")}
    data = json.dumps([text, told, version, VERSION, FORM], sort_keys=True, default=repr)
    key = hashlib.sha256(data.encode("utf-8", "surrogatepass")).hexdigest()
    try:
        return cache_directory() / f"lark-{key[:32]}.bin", key
    except RuntimeError:  # there is no home
        return None


def shipped_key(text: str) -> str:
    """The key of a shipped form: they use nothing that differs between versions of Python or lark."""
    return f"{VERSION}.{FORM}:" + hashlib.sha256(text.encode()).hexdigest()


def read_lowered(path: Path, key: str) -> Lowered | None:
    """What a file holds, if it has this key and is whole."""
    try:
        head, _, body = path.read_bytes().partition(b"\n")
        told = json.loads(head)
        if told["key"] != key or told["digest"] != hashlib.sha256(body).hexdigest() or len(body) % 4:
            return None
        words = array("i")
        words.frombytes(body)
        if told["order"] != sys.byteorder:
            words.byteswap()
        names = told["names"]
        rules = tuple(names[i] for i in told["rules"])
        survey = tuple(words[len(words) - told["survey"] :])
        return Lowered(words[: len(words) - len(survey)], tuple(told["terminals"]), rules, survey)
    except (OSError, ValueError, LookupError, TypeError):
        return None


def write_lowered(path: Path, key: str, lowered: Lowered) -> None:
    """Writes a file whole or not at all. Raises OSError."""
    body = lowered.form.tobytes()
    names = {name: at for at, name in enumerate(dict.fromkeys(lowered.rules))}
    told: dict[str, Any] = {"key": key, "order": sys.byteorder, "terminals": lowered.terminals}
    told |= {"names": list(names), "rules": [names[rule] for rule in lowered.rules], "survey": len(lowered.survey)}
    told["digest"] = hashlib.sha256(body).hexdigest()
    write_atomically(path, [json.dumps(told).encode() + b"\n", body])


@lru_cache(maxsize=1)
def lark_version() -> str:
    """Of the lark package and of Python, part of every key under which something is kept. Imports nothing."""
    spec = find_spec("lark")
    assert spec is not None and spec.origin is not None
    found = re.search(r"^__version__[^=]*=\s*[\"']([^\"']+)", Path(spec.origin).read_text(encoding="utf-8"), re.M)
    return f"{found[1] if found else '?'}-{sys.version_info[0]}.{sys.version_info[1]}"
