import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from listenwell.cli import app
from listenwell.corpora import CORPORA
from listenwell.dialogue import Dialogue, Factors, Turn
from listenwell.errors import CorpusError, ListenwellError, MissingExtraError
from listenwell.labels import EMOTIONS

SAMPLES = Path(__file__).parents[1] / "data"
HEADER = "conv_id,utterance_idx,context,prompt,speaker_idx,utterance,selfeval,tags\n"
HABITS = {0: "Bless you_comma_ dear {}!", 1: "Dude that {} rocks.", 7: "How did the {} make you feel?"}


def conversations(listeners, speaker):
    """The publisher's format: each listener answers about twelve things, sad and proud in turn."""
    rows = [HEADER]
    for listener, habit in listeners.items():
        for number in range(12):
            thing, emotion = f"thing{number % 4}", ("sad", "proud")[number % 2]
            talk, about = f"hit:{number}_conv:{listener}{number}", f"{emotion},It was {thing}."
            rows.append(f"{talk},1,{about},{speaker},My {thing}!,5|5|5_5|5|5,\n")
            rows.append(f"{talk},2,{about},{listener},{habit.format(thing)},5|5|5_5|5|5,\n")
    return "".join(rows)


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "ed"
    place.mkdir()
    (place / "train.csv").write_text(conversations(HABITS, speaker=50))
    return place


@pytest.fixture
def call(monkeypatch, tmp_path):
    monkeypatch.setenv("LISTENWELL_DATA", str(SAMPLES))
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()
    return lambda *arguments: runner.invoke(app, ["corpus", "listeners", *map(str, arguments)])


def own(file, *dialogues):
    file.write_text("".join(f"{dialogue.to_json()}\n" for dialogue in dialogues))
    return file


def talk(listener, text, factors=None, **fields):
    turns = (Turn("speaker", "My cat is ill."), Turn(listener, text, factors))
    return Dialogue(turns, listener=listener, **fields)


def test_the_publishers_files_are_compared_and_drawn(call, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["listenwell", "corpus", "listeners", "empathetic_dialogues"])
    result = call("empathetic_dialogues", "--path", folder)
    assert result.exit_code == 0, result.exception
    place = tmp_path / "runs" / "listeners" / "empathetic_dialogues-train"
    assert sorted(file.name for file in place.iterdir()) == [
        "listeners.json",
        "listeners.png",
        "listeners.svg",
    ]
    data = json.loads((place / "listeners.json").read_text())
    assert (data["task"], data["corpus"], data["split"]) == ("listeners", "empathetic_dialogues", "train")
    assert data["count"] == data["replies"] == 36 and data["listeners"] == 3
    assert data["by"] == "emotion" and data["lower"] == data["of"] == 2
    assert [pair["emotion"] for pair in data["pairs"]] == sorted(("sad", "proud"), key=EMOTIONS.index)
    for pair in data["pairs"]:
        assert (pair["listeners"], pair["replies"], pair["pool"]) == (["0", "1"], [6, 6], 18)
        assert len(pair["random"]) == 5 and pair["similarity"] < pair["mean"]
    assert data["command"] == "listenwell corpus listeners empathetic_dialogues" and data["versions"]["numpy"]
    assert "proud" in result.stdout and "6 + 6" in result.stdout and "for 2 of 2 emotions" in result.stdout
    assert "Written to" in result.stderr


def test_json_is_what_the_file_holds_and_a_second_run_writes_anew(call, folder, tmp_path):
    here = tmp_path / "here"
    first = json.loads(call("empathetic_dialogues", "--path", folder, "--out", here, "--json").stdout)
    arguments = ("--runs", 7, "--seed", 2, "--least", 6, "--out", here, "--json")
    second = json.loads(call("empathetic_dialogues", "--path", folder, *arguments).stdout)
    assert second == json.loads((here / "listeners.json").read_text())
    assert second["seed"] == 2 and len(second["pairs"][0]["random"]) == 7
    assert "7 draws by numpy default_rng(2)" in second["conditions"]["random sets"]
    assert second["pairs"][0]["similarity"] == first["pairs"][0]["similarity"]
    assert "6 or more each" in second["conditions"]["listeners"]


def test_a_copy_with_roles_in_place_of_workers_is_an_error_that_says_what_to_do(call, tmp_path):
    (tmp_path / "train.csv").write_text(conversations({1: HABITS[1]}, speaker=0))
    error = call("empathetic_dialogues", "--path", tmp_path).exception
    assert isinstance(error, CorpusError)
    assert "does not say who listens" in error.problem
    assert "speaker_idx has 0 and 1" in error.advice
    assert "listenwell corpus download empathetic_dialogues --path FOLDER" in error.advice
    assert not (tmp_path / "runs").exists()


def test_a_corpus_of_names_without_emotions_is_one_group(call):
    result = call("pec", "--least", 1, "--json")
    data = json.loads(result.stdout)
    examples = [
        one
        for split in data["split"].split("+")
        for one in CORPORA.load("pec")(SAMPLES / "pec").examples(split)
    ]
    assert data["count"] == len(examples)
    assert data["by"] == "together" and [pair["emotion"] for pair in data["pairs"]] == ["all replies"]
    assert data["pairs"][0]["pool"] == len(examples)
    assert "groups: all replies in one" in result.stderr


def test_own_dialogues_by_given_or_heard_emotions(call, tmp_path):
    said = (("ann", "Poor cat."), ("ben", "Call the vet!"), ("ann", "Poor thing."), ("cleo", "Oh no!"))
    file = own(tmp_path / "own.jsonl", *(talk(*one, emotion="sad") for one in said), talk("listener", "Hm."))
    result = call("jsonl", "--path", file, "--least", 1, "--json")
    data = json.loads(result.stdout)
    assert data["by"] == "emotion" and data["pairs"][0]["listeners"] == ["ann", "ben"]
    assert "left out 1: replies of nobody known" in result.stderr
    own(file, *(talk(*one, Factors(emotion="anxious")) for one in said))
    result = call("jsonl", "--path", file, "--least", 1)
    assert "anxious" in result.stdout and "annotators heard" in result.stderr


def test_names_are_shown_and_not_obeyed(call, tmp_path):
    names = ("[red]ann\x1b[31m", "../../ben $x$")
    file = own(tmp_path / "own.jsonl", *(talk(name, "Poor [bold]cat.", emotion="sad") for name in names))
    result = call("jsonl", "--path", file, "--least", 1)
    assert result.exit_code == 0 and "\x1b[31m" not in result.output
    data = json.loads((tmp_path / "runs" / "listeners" / "jsonl-all" / "listeners.json").read_text())
    assert data["pairs"][0]["listeners"] == list(names)


def test_emotions_that_cannot_be_compared_are_named(call, tmp_path):
    file = own(
        tmp_path / "own.jsonl",
        talk("ann", "Poor cat.", emotion="sad"),
        talk("ben", "Call the vet!", emotion="sad"),
        talk("ben", "Hurray!", emotion="joyful"),
    )
    assert "left out joyful: one listener" in call("jsonl", "--path", file, "--least", 1).stderr


def test_errors_say_what_to_do(call, tmp_path):
    lone = own(
        tmp_path / "lone.jsonl", talk("ann", "Poor cat.", emotion="sad"), talk("ann", "No!", emotion="sad")
    )
    two = own(tmp_path / "two.jsonl", talk("ann", "Poor cat."), talk("ben", "No!"))
    silent = own(tmp_path / "silent.jsonl", talk("ann", "..."), talk("ben", "?!"))
    for arguments, message in (
        (("goemotions",), "has no replies"),
        (("esconv",), "of the known corpora, empathetic_dialogues and pec name them"),
        (("synthetic_persona_chat", "--split", "valid"), "does not say who listens"),
        (("jsonl", "--path", lone), "Only one person listens"),
        (("jsonl", "--path", two), "two listeners with 5 replies or more each. Give a smaller --least"),
        (("jsonl", "--path", silent, "--least", 1), "no words"),
        (("pecs",), "Did you mean 'pec'"),
        (("empathetic_dialogues", "--split", "dev"), "no split of empathetic_dialogues named 'dev'"),
    ):
        result = call(*arguments)
        assert isinstance(result.exception, ListenwellError), (arguments, result.exception)
        assert message in str(result.exception)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("module", ["matplotlib", "sklearn.feature_extraction.text"])
def test_missing_packages_are_asked_for_before_the_long_work(call, monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr(CORPORA, "load", lambda name: pytest.fail("too late"))
    assert isinstance(call("pec").exception, MissingExtraError)
