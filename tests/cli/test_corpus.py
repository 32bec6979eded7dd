import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from listenwell.cli import app
from listenwell.corpora import CORPORA
from listenwell.corpora.own import OwnJsonl
from listenwell.dialogue import Dialogue, Turn
from listenwell.errors import ListenwellError

SAMPLES = Path(__file__).parents[1] / "data"


@pytest.fixture
def call(monkeypatch):
    monkeypatch.setenv("LISTENWELL_DATA", str(SAMPLES))
    runner = CliRunner()
    return lambda *arguments: runner.invoke(app, ["corpus", *map(str, arguments)])


def test_list_shows_every_corpus_and_what_is_here(call):
    rows = json.loads(call("list", "--json").stdout)
    assert [row["name"] for row in rows] == list(CORPORA)
    here = {row["name"]: row["here"] for row in rows}
    assert here["empathetic_dialogues"] == ["train", "valid", "test"]
    text = call("list").stdout
    assert all(name in text for name in CORPORA)


def test_show_prints_one_item(call):
    data = json.loads(call("show", "empathetic_dialogues", "--split", "train", "--index", 1, "--json").stdout)
    dialogue = Dialogue.from_dict(data)
    text = call("show", "empathetic_dialogues", "--split", "train", "--index", 1).stdout
    assert dialogue.turns[0].text.split()[0] in text
    assert dialogue.emotion in text


def test_show_prints_labelled_texts_and_personas(call):
    assert "[" not in call("show", "goemotions").stdout.replace("[/", "")
    assert "User 1" in call("show", "synthetic_persona_chat", "--split", "valid").stdout


def test_show_past_the_end_is_an_error(call):
    assert "smaller --index" in str(call("show", "goemotions", "--index", 10_000).exception)


def test_text_of_a_corpus_is_shown_and_not_obeyed(call, tmp_path):
    file = tmp_path / "own.jsonl"
    file.write_text(Dialogue((Turn("speaker", "[bold]x[/bold] \x1b[31mred\x07 \u202eturned"),)).to_json())
    text = call("show", "jsonl", "--path", file).stdout
    assert "[bold]x[/bold]" in text
    assert "\\x1b[31mred\\x07" in text
    assert "\\u202eturned" in text


def test_stats_of_every_split_for_people_and_for_programs(call):
    data = json.loads(call("stats", "empathetic_dialogues", "--json").stdout)
    reader = CORPORA.load("empathetic_dialogues")()
    assert list(data["splits"]) == ["train", "valid", "test"]
    for split, figures in data["splits"].items():
        assert figures["conversations"] == len(list(reader.read(split)))
        assert figures["replies"] == len(list(reader.examples(split)))
        assert sum(figures["labels"]["emotion"].values()) == figures["conversations"]
    text = call("stats", "empathetic_dialogues").stdout
    assert "conversations" in text and "█" in text and "skipped" in text


@pytest.mark.parametrize("name", [name for name in CORPORA if not name.startswith(("pec_", "jsonl"))])
def test_convert_writes_what_the_reader_reads(call, tmp_path, name):
    out = tmp_path / "out.jsonl"
    result = call("convert", name, "--to", out)
    assert result.exit_code == 0, result.exception
    reader = CORPORA.load(name)()
    expected = [item for split in reader.available() for item in reader.read(split)]
    assert list(OwnJsonl(out).read("all")) == expected
    assert f"{len(expected)} items" in result.stderr


def test_convert_to_standard_output(call):
    lines = call("convert", "goemotions", "--split", "valid", "--to", "-").stdout.splitlines()
    assert all(json.loads(line)["labels"] for line in lines)


def test_a_failing_convert_leaves_the_old_file(call, tmp_path):
    out = tmp_path / "out.jsonl"
    out.write_text("old")
    assert call("convert", "goemotions", "--path", tmp_path, "--to", out).exit_code != 0
    assert out.read_text() == "old"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("show", "goemotion"), "Did you mean 'goemotions'"),
        (("stats", "goemotions", "--split", "dev"), "no split of goemotions named 'dev'"),
        (("stats", "goemotions", "--path", "nowhere"), "listenwell corpus download goemotions"),
        (("download", "jsonl"), "cannot be downloaded"),
        (("download", "goemotions", "--path", "x"), "licence is not accepted"),
    ],
)
def test_errors_say_what_to_do(call, arguments, message):
    result = call(*arguments)
    assert isinstance(result.exception, ListenwellError)
    assert message in str(result.exception)


def test_the_licence_is_shown_before_anything_is_fetched(call, tmp_path):
    result = call("download", "goemotions", "--path", tmp_path / "new")
    assert "CC BY 4.0" in result.stdout
    assert not (tmp_path / "new").exists()
