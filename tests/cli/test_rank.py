import json
import sys
from types import ModuleType

import pytest
from typer.testing import CliRunner

from listenwell.cli import app
from listenwell.errors import InputError, ListenwellError
from tests.rankers.pool_fake import FakeSelector

REPLIES = "I am sorry about your dog.\n\nOh [red]no[/red]!\nThat is great news!\nThat is great news!\n"


@pytest.fixture
def call(tmp_path, monkeypatch):
    fake = ModuleType("listenwell.rankers.ranker")
    fake.Ranker = FakeSelector
    monkeypatch.setitem(sys.modules, "listenwell.rankers.ranker", fake)
    (tmp_path / "pool.txt").write_text(REPLIES + "\x1b[2J\n")
    runner = CliRunner()

    def run(*arguments, text=None, pool=tmp_path / "pool.txt"):
        return runner.invoke(app, ["rank", "--pool", str(pool), *arguments], input=text)

    return run


def test_the_best_replies_are_shown_with_what_was_left_out(call):
    result = call("--context", "my dog died", "--top", "3")
    assert result.exit_code == 0, result.exception
    lines = result.stdout.splitlines()
    assert len(lines) == 4 and "I am sorry about your dog." in lines[1]
    assert "4 replies in" in result.stderr and "2 left out" in result.stderr
    assert "skipped 1: empty (line 2)" in result.stderr
    assert "skipped 1: said before in the pool (line 5)" in result.stderr


def test_what_replies_hold_is_neither_markup_nor_obeyed(call):
    shown = call("--context", "hi", "--top", "9").stdout
    assert "[red]no[/red]" in shown
    assert "\x1b[2J" not in shown and "\\x1b[2J" in shown


def test_a_files_name_is_shown_and_not_obeyed(call, tmp_path):
    file = tmp_path / "\x1b[2J.txt"
    file.write_text("Hi.")
    result = call("--context", "hi", pool=file)
    assert "\x1b" not in result.stderr and "\\x1b[2J.txt" in result.stderr


def test_json_for_programs(call):
    result = call("--context", "My dog died", "--top", "2", "--json", "--persona", "I am a vet.")
    given = json.loads(result.stdout)
    assert list(given) == ["replies", "context", "ranker", "pool", "seconds", "notices"]
    assert len(given["replies"]) == 2
    best = given["replies"][0]
    assert list(best) == ["text", "score", "first_score", "index", "place"]
    assert (best["text"], best["index"], best["place"]) == ("I am sorry about your dog.", 0, 0)
    assert given["context"]["personas"] == [{"speaker": "listener", "lines": ["I am a vet."]}]
    assert given["pool"]["replies"] == 4
    assert given["pool"]["left_out"] == {"empty": 1, "said before in the pool": 1}
    assert (given["ranker"], given["notices"]) == ("fake", [])


@pytest.mark.parametrize("count", [1, 2, 3])
def test_turns_alternate_and_the_last_is_the_other_persons(call, count):
    options = [part for number in range(count) for part in ("--context", f"turn {number}")]
    turns = json.loads(call(*options, "--json").stdout)["context"]["turns"]
    assert [turn["text"] for turn in turns] == [f"turn {number}" for number in range(count)]
    assert [turn["speaker"] for turn in turns] == ["speaker", "listener", "speaker"][3 - count :]


def test_a_context_comes_from_standard_input(call):
    turns = json.loads(call("--context", "Hi", "--context", "-", "--json", text="my dog died\n").stdout)
    assert turns["context"]["turns"][1]["text"] == "my dog died\n"
    assert isinstance(call("--context", "-", "--context", "-", text="a").exception, InputError)


def test_the_rankers_folder_is_part_of_the_key(call, tmp_path):
    call("--context", "hi")
    call("--context", "hi", "--ranker", str(tmp_path / "mine"))
    call("--context", "hi", "--ranker", str(tmp_path / "mine"))
    pools = [path for path in (tmp_path / "cache" / "pools").iterdir() if path.is_dir()]
    assert len(pools) == 2


def test_the_longest_reply_can_be_set(call):
    given = json.loads(call("--context", "hi", "--longest", "20", "--json").stdout)
    assert given["pool"]["left_out"]["longer than 20 characters"] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--context", " "), "A --context is empty"),
        (("--context", "hi", "--pool", "empathetic_dialog"), "Did you mean the corpus"),
        (("--context", "hi", "--persona", " "), "persona lines"),
    ],
)
def test_what_cannot_be_used_is_named(call, arguments, message):
    result = call(*arguments)
    assert isinstance(result.exception, ListenwellError)
    assert message in str(result.exception)


def test_context_and_pool_must_be_given(call):
    assert call().exit_code == 2
    assert CliRunner().invoke(app, ["rank", "--context", "hi"]).exit_code == 2


def test_a_stop_while_encoding_says_how_to_go_on(call, monkeypatch):
    monkeypatch.setattr(FakeSelector, "load", classmethod(lambda cls, *_: cls(stop_after=0)))
    result = call("--context", "hi")
    assert result.exit_code == 130
    assert "the same command goes on" in result.stderr
