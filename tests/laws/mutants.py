"""Plant faults in a copy of the core, one at a time, and see that the laws notice each (`make mutants`).

A law suite that passes says something only if it would have failed. Every mutant below is one small wrong line in a
copy of `src/core`; it is built into a package of its own, and the mask and matcher laws, on their fixed examples, must
fail against it. The unchanged copy must pass. Source text that a mutant no longer finds is an error: adapt the mutant.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LAWS = ("tests/laws/test_masks.py", "tests/laws/test_matcher_laws.py")
LARK_TESTS = ("unit/grammar/test_lark", "laws/test_lark_limits", "laws/test_lark_laws")
LARK = (*(f"tests/{name}.py" for name in LARK_TESTS), "-m", "not slow")
# The editable install has an import hook of its own; the package below must win.
BOOT = """
import sys
sys.meta_path = [f for f in sys.meta_path if not type(f).__module__.startswith("_editable")]
sys.path.insert(0, {package!r})
import maskwright._core, pytest
assert maskwright._core.__file__.startswith({package!r}), maskwright._core.__file__
sys.exit(pytest.main({arguments!r}))
"""


@dataclass(frozen=True)
class Mutant:
    """`old` must occur exactly once in `file` (below src/core) and becomes `new`; `laws` are to notice."""

    name: str
    file: str
    old: str
    new: str
    laws: tuple[str, ...] = LAWS


MUTANTS = (
    Mutant(
        "strings may be one character too long",
        "machines/string.cc",
        "const uint64_t room = max_ == kNoMax ? kNoMax : max_ - n;",
        "const uint64_t room = max_ == kNoMax ? kNoMax : max_ - n + 1;",
    ),
    Mutant(
        "tokens do not leave a string by its closing quote",
        "machines/string.cc",
        "  w.pop_exits(base.exits, range, item.rest);\n",
        "",
    ),
    Mutant(
        "a key that the schema does not name may be typed twice",
        "machines/object.cc",
        "return !k.any_other(rec.others, [&](TextId other) { return other == text; });",
        "return text == text;",
    ),
    Mutant(
        "an object closes without its required members",
        "machines/object.cc",
        "if (b == '}' && can_close(k, rec))",
        "if (b == '}')",
    ),
    Mutant(
        "any byte from 0x80 on continues a character",
        "char_decoder.cc",
        "if ((b & 0xc0u) != 0x80u) return kDeadEnd;",
        "if ((b & 0x80u) != 0x80u) return kDeadEnd;",
    ),
    Mutant(
        "one blank too many after a newline",
        "white_space.h",
        "inline constexpr uint32_t kMaxBlanks = 20;",
        "inline constexpr uint32_t kMaxBlanks = 21;",
    ),
    Mutant(
        "rollback goes back one token too few",
        "matcher.cc",
        "for (; n > 0; --n) at_ = step().parent;",
        "for (; n > 1; --n) at_ = step().parent;",
    ),
    Mutant(
        "digits behind the point that no multiple has are let through",
        "regex_multiple.cc",
        "std::max<int64_t>(form.scale - form.read, 0));",
        "std::max<int64_t>(form.scale - form.read, 0) + 1);",
    ),
    Mutant(
        "a digit before the point counts for too little",
        "regex_multiple.cc",
        "mul(digit, known.places->back().unit, m)",
        "mul(digit, known.places->front().unit, m)",
    ),
    Mutant(
        "^ holds at the start of every token",
        "machines/lark.cc",
        "before_token(m, to, handle(s) == 0);",
        "before_token(m, to, true);",
        LARK,
    ),
    Mutant(
        "of two guards the one that implies the other is left out",
        "lark/lexer.cc",
        "m != members[i] && implies(m, members[i])",
        "m != members[i] && implies(members[i], m)",
        LARK,
    ),
    Mutant(
        "rules are reduced by one node too many where it is looked for dead ends",
        "lark/live.cc",
        "tables_.rules[r].length - 1, kBoundary",
        "tables_.rules[r].length, kBoundary",
        LARK,
    ),
    Mutant(
        "line ends take one byte, whatever the column",
        "lark/costs.cc",
        "lines * (column + blocks);",
        "lines + (column + blocks) / 1'000;",
        ("tests/unit/grammar/test_lark_budgets.py",),
    ),
)


class Workshop:
    """A copy of the core, its build, and a package that uses it."""

    def __init__(self, folder: Path) -> None:
        self.core = folder / "core"
        self.build_folder = folder / "build"
        self.package = folder / "package"
        shutil.copytree(ROOT / "src" / "core", self.core)
        ignored = shutil.ignore_patterns("__pycache__", "_core*.so", "_core*.pyd")
        shutil.copytree(ROOT / "src" / "maskwright", self.package / "maskwright", ignore=ignored)
        self._run(
            "cmake", "-S", str(self.core), "-B", str(self.build_folder), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
            "-DCMAKE_CXX_FLAGS_RELEASE=-O1", f"-DPython_EXECUTABLE={sys.executable}", "-Wno-dev",
        )  # fmt: skip

    @staticmethod
    def _run(*command: str) -> None:
        folder = Path(sys.executable).parent  # cmake and ninja of the virtual environment
        env = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
        done = subprocess.run(command, env=env, text=True, capture_output=True, check=False)
        if done.returncode:
            sys.exit(f"{' '.join(command)} failed:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")

    def build(self) -> None:
        """Compile what changed and put the module into the package."""
        self._run("cmake", "--build", str(self.build_folder))
        for old in (self.package / "maskwright").glob("_core.*.so"):
            old.unlink()
        for module in self.build_folder.glob("_core*.so"):
            shutil.copy(module, self.package / "maskwright")

    def plant(self, mutant: Mutant) -> str:
        """Change the source; returns what it was."""
        path = self.core / mutant.file
        text = path.read_text(encoding="utf-8")
        if text.count(mutant.old) != 1:
            sys.exit(f"mutant {mutant.name!r}: {mutant.file} has {text.count(mutant.old)} places to change, not one")
        path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
        return text

    def laws(self, laws: tuple[str, ...] = LAWS) -> subprocess.CompletedProcess[str]:
        """Run the laws against the package; a crash is a failure like any other."""
        arguments = [*laws, "-x", "-q", "--no-header", "-p", "no:cacheprovider", "--rootdir", str(ROOT)]
        code = BOOT.format(package=str(self.package), arguments=arguments)
        env = {**os.environ, "MASKWRIGHT_LAWS": "1", "MASKWRIGHT_LAWS_QUICK": "1"}
        return subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, env=env, text=True, capture_output=True, check=False
        )


def verdict(done: subprocess.CompletedProcess[str]) -> str:
    """`passed`, or by which law a fault was noticed; anything else ends the program."""
    if done.returncode == 0:
        return "passed"
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED ")]
    if done.returncode == 1 and failed:
        return failed[0].split(" - ")[0].removeprefix("FAILED tests/laws/")
    if done.returncode < 0:
        return f"signal {-done.returncode}"
    sys.exit(f"the laws did not run:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")


def main() -> int:
    """Try the unchanged copy and every mutant; 1 where one survives."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", type=int, nargs="*", help="numbers of mutants, from 1")
    parser.add_argument("--skip-unchanged", action="store_true", help="do not try the unchanged copy first")
    options = parser.parse_args()
    survivors = 0
    with tempfile.TemporaryDirectory(prefix="mutants") as folder:
        shop = Workshop(Path(folder))
        shop.build()
        if not options.skip_unchanged:
            found = verdict(shop.laws())
            print(f"unchanged: {found}", flush=True)
            if found != "passed":
                return 1
        for number, mutant in enumerate(MUTANTS, 1):
            if options.only and number not in options.only:
                continue
            start = time.monotonic()
            before = shop.plant(mutant)
            shop.build()
            found = verdict(shop.laws(mutant.laws))
            (shop.core / mutant.file).write_text(before, encoding="utf-8")
            survivors += found == "passed"
            result = "SURVIVED" if found == "passed" else f"noticed by {found}"
            print(f"{number}. {mutant.name}: {result} ({time.monotonic() - start:.0f} s)", flush=True)
    print(f"{survivors} survived" if survivors else "all were noticed")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
