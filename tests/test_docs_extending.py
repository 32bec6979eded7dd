"""The code of docs/extending.md, extracted and run."""

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "extending.md").read_text(encoding="utf-8")
SECTIONS = {
    title: re.findall(r"```python\n(.*?)```", body, re.DOTALL)
    for title, body in re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
}


def run(title, **names):
    """The names that a section's blocks define, run one after the other."""
    names["__name__"] = "extending"  # dataclasses look their module up
    for block in SECTIONS[title]:
        exec(compile(block, f"docs/extending.md, {title}", "exec"), names)
    return names


@pytest.fixture(autouse=True)
def in_module(monkeypatch):
    """A module that the blocks' classes can call theirs."""
    import sys
    import types

    monkeypatch.setitem(sys.modules, "extending", types.ModuleType("extending"))


def test_the_page_shows_three_extensions():
    assert [title for title, blocks in SECTIONS.items() if blocks] == [
        "A new corpus",
        "A new ranker",
        "A new generator",
    ]


def test_a_new_corpus(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "coffee_chats"
    folder.mkdir()
    (folder / "train.tsv").write_text("My dog died.\tI'm so sorry.\nno second column\n", encoding="utf-8")
    names = run("A new corpus")
    assert names["loader"].available() == ("train",)


def test_a_new_ranker():
    from listenwell.rankers.config import RankerConfig
    from tests.rankers import checks

    ranker_class = run("A new ranker")["LateInteraction"]
    for backbone in checks.BACKBONES.values():
        ranker = ranker_class(RankerConfig(), backbone()).eval()
        checks.padding_moves_nothing(ranker)
        checks.neighbours_move_nothing(ranker)
        checks.an_empty_persona_is_none(ranker)
    checks.it_can_learn(ranker_class(RankerConfig(), checks.BACKBONES["words"]()))


def test_a_new_generator(tiny_llama):
    candidates = run("A new generator", weights=tiny_llama)["reply"].candidates
    assert 1 <= len(candidates) <= 4


@pytest.mark.parametrize(
    ("name", "registry"),
    [
        ("coffee_chats", "listenwell.corpora:CORPORA"),
        ("late_interaction", "listenwell.rankers:RANKERS"),
        ("reflective", "listenwell.generators:GENERATORS"),
    ],
)
def test_the_registry_is_where_the_page_says(name, registry):
    from importlib import import_module

    (line,) = re.findall(rf'^"{name}": "(.+)",$', PAGE, re.MULTILINE)
    module, attribute = registry.split(":")
    assert line.startswith(f"{module}.") and name not in getattr(import_module(module), attribute)
