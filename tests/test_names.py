"""Names use the field's words (docs/glossary.md): retired ones and empty ones stay out of the package."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "listenwell"
FILES = sorted(PACKAGE.rglob("*.py"))

RETIRED = {
    "bag": "fasttext",
    "begun": "prefix",
    "chance": "probability",
    "choosing": "reranking",
    "ear": "classifier",
    "foretold": "predicted",
    "foretell": "predict",
    "laid": "encoded",
    "ledger": "results store",
    "liked": "reward",
    "liking": "reward model",
    "peer": "baseline",
    "refusal": "API error",
    "sparing": "load shedding",
    "tone": "expressed emotion",
    "voice": "soft prompt",
    "voiced": "soft prompt",
    "witness": "scorer",
    "worded": "generation",
    "wording": "generation",
}
"""Word to what the field calls it."""
EMPTY = {"found", "given", "one", "place", "places"}
"""Names that do not say what they hold."""
ALLOWED = {("safety/answers.py", "wording")}
"""What an answer's text is called where it is text for people."""


def names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Every name that a file introduces, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield (node.id if isinstance(node, ast.Name) else node.attr), node.lineno
        elif isinstance(node, ast.alias) and node.asname:
            yield node.asname, node.lineno


def parts(name: str) -> list[str]:
    """The words of a name in lower case, plurals without their s."""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)
    return [word.lower().removesuffix("s") if len(word) > 3 else word.lower() for word in words]


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_no_retired_word_is_part_of_a_name(file):
    relative = file.relative_to(PACKAGE)
    introduced = [
        *names(ast.parse(file.read_text(encoding="utf-8"))),
        *((part, 0) for part in relative.parts),
    ]
    problems = [
        f"{relative}:{line}: {name}: say {RETIRED[part]}"
        for name, line in introduced
        for part in parts(name)
        if part in RETIRED and (str(relative), part) not in ALLOWED
    ]
    assert problems == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_every_name_says_what_it_holds(file):
    introduced = names(ast.parse(file.read_text(encoding="utf-8")))
    assert [f"{name}, line {line}" for name, line in introduced if name.strip("_") in EMPTY] == []
