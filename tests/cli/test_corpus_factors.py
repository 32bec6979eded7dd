import json
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner

from listenwell.cli import app
from listenwell.corpora import CORPORA
from listenwell.dialogue import Factors
from listenwell.errors import ListenwellError, MissingExtraError
from listenwell.papers.corpus_analysis import factor_report
from listenwell.papers.corpus_analysis.factors import is_reply

SAMPLES = Path(__file__).parents[1] / "data"


class FakeAnnotator:
    """Questions explore and surprise, all else is an emotional reaction; counts what it is given."""

    key = "k" * 64
    heads = ("act", "expressed_emotion")
    seen: list[str]

    @classmethod
    def load(cls, folder=None, heads=None, weights=None):
        cls.seen = []
        return cls()

    def annotate_all(self, dialogues, top=5):
        for dialogue in dialogues:
            self.seen.append(dialogue.id)
            yield replace(dialogue, turns=tuple(map(self.turn, dialogue.turns)))

    @staticmethod
    def turn(turn):
        asks = "?" in turn.text
        levels = (0, 0, 2) if asks else (1, 0, 0)
        if turn.factors is not None and turn.factors.levels is not None:
            levels = turn.factors.levels
        act, expressed_emotion = ("questioning", "surprise") if asks else ("wishing", "caring")
        return replace(
            turn, factors=Factors(levels=levels, act=act, expressed_emotion=expressed_emotion, intent=act)
        )


@pytest.fixture
def call(monkeypatch, tmp_path):
    monkeypatch.setenv("LISTENWELL_DATA", str(SAMPLES))
    monkeypatch.chdir(tmp_path)
    module = ModuleType("listenwell.annotators.annotator")
    module.Annotator = FakeAnnotator
    monkeypatch.setitem(sys.modules, module.__name__, module)
    FakeAnnotator.seen = []
    runner = CliRunner()
    return lambda *arguments: runner.invoke(app, ["corpus", "factors", *map(str, arguments)])


@pytest.fixture
def undrawn(monkeypatch):
    """Figures have their own tests."""
    monkeypatch.setattr(factor_report, "draw", lambda analysis, heading, folder: [])


def replies(dialogue):
    return [(index, turn) for index, turn in enumerate(dialogue.turns) if is_reply(dialogue, index)]


def dialogues(name, split):
    return list(CORPORA.load(name)(SAMPLES / name).read(split))


def test_a_corpus_is_annotated_counted_and_drawn(call, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["listenwell", "corpus", "factors", "empathetic_dialogues"])
    result = call("empathetic_dialogues", "--split", "train")
    assert result.exit_code == 0, result.exception
    folder = tmp_path / "runs" / "factors" / "empathetic_dialogues-train"
    data = json.loads((folder / "factors.json").read_text())
    talks = dialogues("empathetic_dialogues", "train")
    assert FakeAnnotator.seen == [dialogue.id for dialogue in talks]
    assert data["annotator"] == FakeAnnotator.key
    assert (data["corpus"], data["split"], data["dialogues"]) == ("empathetic_dialogues", "train", len(talks))
    assert data["count"] == data["replies"] == sum(len(list(replies(dialogue))) for dialogue in talks)
    assert data["command"] == "listenwell corpus factors empathetic_dialogues" and data["versions"]["numpy"]
    asked = [turn for one in talks for _, turn in replies(one) if "?" in turn.text]
    acts = {one["name"]: one["counts"] for one in data["distributions"]}["act"]
    assert acts["questioning"] == len(asked) and sum(acts.values()) == data["count"]
    page = (folder / "factors.md").read_text()
    assert "P(DA | CM)" in page and "![heat-maps](heat-maps.svg)" in page
    assert {file.stem for file in folder.glob("*.svg")} == {file.stem for file in folder.glob("*.png")}
    assert "heat-maps" in {file.stem for file in folder.glob("*.svg")}
    assert "P(DA | CM)" in result.stdout and "Mutual information" in result.stdout
    assert "Written to" in result.stderr


def test_json_is_what_the_file_holds(call, undrawn, tmp_path):
    result = call("empathetic_dialogues", "--split", "valid", "--out", tmp_path / "here", "--json")
    assert json.loads(result.stdout) == json.loads((tmp_path / "here" / "factors.json").read_text())


def test_all_splits_without_one_named_and_a_sample_by_the_seed(call, undrawn, tmp_path):
    first = json.loads(call("empathetic_dialogues", "--limit", 2, "--json").stdout)
    drawn = list(FakeAnnotator.seen)
    assert first["split"] == "train+valid+test" and first["dialogues"] == len(drawn) == 2
    assert first["conditions"]["dialogues"].startswith("2 of ")
    assert (tmp_path / "runs" / "factors" / "empathetic_dialogues-all" / "factors.json").is_file()
    call("empathetic_dialogues", "--limit", 2)
    assert FakeAnnotator.seen == drawn
    samples = set()
    for seed in range(1, 6):
        call("empathetic_dialogues", "--limit", 2, "--seed", seed)
        samples.add(tuple(FakeAnnotator.seen))
    assert len(samples) > 1


def test_an_annotated_file_is_not_annotated_again(call, undrawn, tmp_path):
    talks = FakeAnnotator().annotate_all(dialogues("empathetic_dialogues", "train"))
    FakeAnnotator.seen = []
    made = tmp_path / "made.jsonl"
    made.write_text("".join(f"{dialogue.to_json()}\n" for dialogue in talks) + "broken\n")
    FakeAnnotator.seen = []
    result = call("empathetic_dialogues", "--annotated", made, "--json")
    data = json.loads(result.stdout)
    assert FakeAnnotator.seen == [] and data["annotator"] is None
    assert data["conditions"]["factors"] == "as they stand in made.jsonl"
    assert "skipped 1: not JSON" in result.stderr
    fresh = json.loads(call("empathetic_dialogues", "--split", "train", "--json").stdout)
    for part in ("tables", "distributions", "words"):
        assert data[part] == fresh[part]
    assert (tmp_path / "runs" / "factors" / "empathetic_dialogues-made").is_dir()


@pytest.fixture
def made(tmp_path):
    """All splits as `annotate` writes them, each dialogue with its split."""
    file = tmp_path / "made.jsonl"
    noted = [
        replace(one, notes=(("split", split),))
        for split in ("train", "valid", "test")
        for one in dialogues("empathetic_dialogues", split)
    ]
    annotated = FakeAnnotator().annotate_all(noted)
    file.write_text("".join(f"{dialogue.to_json()}\n" for dialogue in annotated))
    return file


def test_one_split_of_an_annotated_file(call, undrawn, made):
    for split in ("train", "valid"):
        data = json.loads(
            call("empathetic_dialogues", "--split", split, "--annotated", made, "--json").stdout
        )
        fresh = json.loads(call("empathetic_dialogues", "--split", split, "--json").stdout)
        assert data["split"] == split
        for part in ("dialogues", "count", "tables", "distributions", "words"):
            assert data[part] == fresh[part]
    several = json.loads(call("empathetic_dialogues", "--annotated", made, "--json").stdout)
    assert several["split"] == "train+valid+test"
    assert several["dialogues"] == sum(
        len(dialogues("empathetic_dialogues", split)) for split in ("train", "valid", "test")
    )


def test_dialogues_that_do_not_note_their_split(call, undrawn, made):
    noted = made.read_text()
    generic_question = FakeAnnotator().annotate_all(dialogues("empathetic_dialogues", "train")[:1])
    (line,) = (f"{one.to_json()}\n" for one in generic_question)
    made.write_text(noted + line)
    assert json.loads(call("empathetic_dialogues", "--annotated", made, "--json").stdout)["split"] == (
        "train+valid+test+no split"
    )
    valid = ("empathetic_dialogues", "--split", "valid", "--annotated", made)
    result = call(*valid, "--json")
    assert json.loads(result.stdout)["dialogues"] == len(dialogues("empathetic_dialogues", "valid"))
    assert "skipped 1: has no note of its split" in result.stderr
    made.write_text("".join(one for one in noted.splitlines(keepends=True) if '"valid"' not in one))
    assert "of the split valid; there are: train, test." in str(call(*valid).exception)
    made.write_text(line)
    error = call(*valid).exception
    assert isinstance(error, ListenwellError)
    assert "notes that it is of the split valid, or of any." in str(error)
    assert "annotate empathetic_dialogues --split valid --out FILE" in str(error)


def test_splits_that_a_file_makes_up_are_only_words(call, undrawn, made, tmp_path):
    lines = made.read_text().splitlines()
    odd = [line.replace('"train"', f'"../../{place}"') for place, line in enumerate(lines)]
    made.write_text("\n".join(odd))
    data = json.loads(call("empathetic_dialogues", "--annotated", made, "--json").stdout)
    assert data["split"].startswith("../../0+")
    assert [path.name for path in (tmp_path / "runs" / "factors").iterdir()] == ["empathetic_dialogues-made"]


def test_the_page_says_what_adds_up_to_1(call, undrawn, made, tmp_path):
    call("empathetic_dialogues", "--annotated", made, "--out", tmp_path / "here")
    page = " ".join((tmp_path / "here" / "factors.md").read_text().split())
    assert "in the tables each X is a row, in the figure each X is a column; either adds up to 1" in page


def test_a_corpus_with_factors_of_its_own_needs_no_annotator(call, undrawn, tmp_path):
    talks = list(FakeAnnotator().annotate_all(dialogues("empathetic_dialogues", "valid")))
    file = tmp_path / "own.jsonl"
    file.write_text("".join(f"{dialogue.to_json()}\n" for dialogue in talks))
    FakeAnnotator.seen = []
    data = json.loads(call("jsonl", "--path", file, "--json").stdout)
    assert FakeAnnotator.seen == [] and data["conditions"]["factors"] == "the corpus's"


def test_half_annotated_corpora_are_annotated(call, undrawn):
    data = json.loads(call("epitome", "--json").stdout)  # has levels, but neither acts nor expressed emotions
    assert FakeAnnotator.seen and data["annotator"]
    gold = [turn.factors for split in ("train", "valid", "test") for one in dialogues("epitome", split)
            for _, turn in replies(one)]  # fmt: skip
    strong = {one["name"]: one["counts"] for one in data["distributions"]}["level_exploration"]["strong"]
    assert strong == sum(factors.levels[2] == 2 for factors in gold)


def test_errors_say_what_to_do(call, tmp_path):
    generic_question = tmp_path / "bare.jsonl"
    generic_question.write_text(
        "".join(f"{one.to_json()}\n" for one in dialogues("empathetic_dialogues", "train"))
    )
    for arguments, message in (
        (("goemotions",), "has no replies"),
        (("goemotion",), "Did you mean 'goemotions'"),
        (("empathetic_dialogues", "--split", "dev"), "no split of empathetic_dialogues named 'dev'"),
        (
            ("empathetic_dialogues", "--annotated", generic_question),
            "listenwell annotate empathetic_dialogues --out FILE",
        ),
        (("empathetic_dialogues", "--annotated", tmp_path / "no"), "There is no file"),
        (("empathetic_dialogues", "--annotated", generic_question, "--split", "dev"), "named 'dev'"),
        (
            ("empathetic_dialogues", "--annotated", generic_question, "--path", generic_question),
            "Give one of the two",
        ),
    ):
        result = call(*arguments)
        assert isinstance(result.exception, ListenwellError), (arguments, result.exception)
        assert message in str(result.exception)
    assert FakeAnnotator.seen == []
    assert not (tmp_path / "runs").exists()


def test_matplotlib_is_asked_for_before_the_long_work(call, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert isinstance(call("empathetic_dialogues").exception, MissingExtraError)
    assert FakeAnnotator.seen == []
