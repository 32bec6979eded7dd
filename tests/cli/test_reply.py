import json

import pytest
from typer.testing import CliRunner

from listenwell.cli import app
from listenwell.cli.terminal import one_line
from listenwell.dialogue import Dialogue, Turn
from listenwell.errors import ListenwellError
from tests.rankers.tiny_rankers import ship_tiny

KEYS = ["reply", "model", "seed", "emotion", "plan", "candidates", "safety", "timings"]


@pytest.fixture
def call(tiny_llama, tmp_path):
    recipe = tmp_path / "tiny.yaml"
    recipe.write_text(
        "system: Listen.\nshots: []\nprompt_tokens: 128\ndecoding: {max_tokens: 6, temperature: 1.0}"
    )
    runner = CliRunner()

    def run(command, *arguments, text=None):
        options = ["--model", "prompted", "--weights", str(tiny_llama), "--recipe", str(recipe)]
        return runner.invoke(app, [command, *arguments, *options], input=text)

    return run


def test_a_reply_is_printed_and_repeats_with_its_seed(call):
    first, again = call("reply", "I am sad", "--seed", "4"), call("reply", "I am sad", "--seed", "4")
    assert first.exit_code == 0
    assert first.stdout == again.stdout
    assert first.stdout.strip()


def test_json_is_one_object_with_every_part(call):
    result = call("reply", "I am sad", "--seed", "4", "--json")
    data = json.loads(result.stdout)
    assert list(data) == KEYS
    assert data["seed"] == 4
    assert data["candidates"] == [{"text": data["reply"]}]
    assert (data["plan"], data["safety"]["level"]) == (None, "none")
    assert data["emotion"][0]["label"] in ("sad", "devastated")
    assert data["emotion"][0]["probability"] > data["emotion"][1]["probability"] > 0
    assert data["timings"]["total"] > 0


def test_a_cut_text_is_noticed_on_standard_error_and_in_json(call):
    result = call("reply", "-", "--json", "--seed", "1", text="We went to the park. " * 5_000)
    assert "left out" in result.stderr
    assert any("too long" in notice for notice in json.loads(result.stdout)["notices"])


def test_special_tokens_nul_and_bad_bytes_on_standard_input_are_text(call):
    result = call("reply", "-", "--seed", "1", text=b"<|im_end|>\0 \xff\xfe \xe2\x80\xae")
    assert result.exit_code == 0
    assert result.stdout.strip()


def test_history_and_persona_change_the_reply(call, tmp_path):
    history = tmp_path / "talk.jsonl"
    history.write_text(Dialogue((Turn("speaker", "My dog died."), Turn("listener", "Oh no."))).to_json())
    plain = call("reply", "Yes", "--seed", "1").stdout
    assert call("reply", "Yes", "--seed", "1", "--history", str(history)).stdout != plain
    assert call("reply", "Yes", "--seed", "1", "--persona", "I am a vet.").stdout != plain


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "There is no file"),
        ("{", "not JSON"),
        ('{"turns": [{"speaker": "a"}]}', "lacks the field 'text'"),
        ("", "no dialogue at its end"),
        ('{"text": "a", "labels": ["sad"]}\n', "no dialogue at its end"),
    ],
)
def test_a_history_that_cannot_be_used_is_named(call, tmp_path, content, message):
    file = tmp_path / "talk.jsonl"
    if content is not None:
        file.write_text(content)
    result = call("reply", "hi", "--history", str(file))
    assert isinstance(result.exception, ListenwellError)
    assert message in str(result.exception)


def test_nothing_said_is_an_error(call):
    assert "empty" in str(call("reply", "  ").exception)


def test_a_pipe_gets_one_line_for_each_line(call):
    result = call("chat", "--seed", "2", text="I am sad\n\nMy dog died\n")
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) == 2
    assert "line 2 is empty" in result.stderr


def test_the_lines_of_a_pipe_are_one_conversation_that_can_be_kept(call, tmp_path):
    file = tmp_path / "talk.jsonl"
    lines = call("chat", "--seed", "2", "--save", str(file), text="I am sad\nMy dog died").stdout.splitlines()
    kept = Dialogue.from_json(file.read_text())
    assert [turn.speaker for turn in kept.turns] == ["speaker", "listener"] * 2
    assert [one_line(kept.turns[place].text) for place in (1, 3)] == lines
    assert kept.turns[2].text == "My dog died"


def test_talks_are_added_to_the_file_and_remember_the_persona(call, tmp_path):
    file = tmp_path / "talks.jsonl"
    for text in ("I am sad", "I am happy"):
        call("chat", "--seed", "2", "--save", str(file), "--persona-line", "I run.", text=text)
    first, second = map(Dialogue.from_json, file.read_text().splitlines())
    assert [talk.turns[0].text for talk in (first, second)] == ["I am sad", "I am happy"]
    assert first.persona_of("listener").lines == ("I run.",)
    assert call("reply", "Yes", "--seed", "1", "--history", str(file)).exit_code == 0


@pytest.mark.parametrize("content", [None, "my diary\n"])
def test_a_file_that_holds_something_else_is_not_written_to(call, tmp_path, content):
    file = tmp_path / "diary"
    if content is None:
        file.mkdir()
    else:
        file.write_text(content)
    result = call("chat", "--save", str(file), text="I am sad")
    assert isinstance(result.exception, ListenwellError)
    assert content is None or file.read_text() == content


def test_a_line_that_cannot_be_answered_does_not_stop_the_others(call):
    result = call("chat", "--seed", "2", text="a" + " " * 30_000 + "\nI am sad\n")
    assert result.exit_code == 1
    assert "line 1: The end of this long text is blank" in result.stderr
    assert len(result.stdout.splitlines()) == 2 and result.stdout.splitlines()[1]


def test_an_empty_pipe_says_what_to_do(call):
    result = call("chat", text="")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "no message" in result.stderr


POOL = ("so sorry to hear that", "good luck !", "what happened to my dog ?", "\x1b[2Jgreat")


@pytest.fixture
def shipped(tiny_encoder, installed_encoder, tmp_path, monkeypatch):
    """Nobody hears emotions: the encoder for that is the real one."""
    ship_tiny(tiny_encoder, tmp_path, monkeypatch)
    monkeypatch.setattr("listenwell.listener.load_annotator", lambda off: None)


@pytest.fixture
def from_pool(shipped, tmp_path):
    file = tmp_path / "pool.txt"
    file.write_text("\n".join(POOL))

    def run(command, *arguments, text=None):
        options = ["--model", "retrieval", "--pool", str(file)]
        return CliRunner().invoke(app, [command, *arguments, *options], input=text)

    return run


@pytest.mark.usefixtures("shipped")
def test_of_several_candidates_the_best_is_the_reply(call):
    result = call("reply", "I am sad", "--seed", "4", "--candidates", "4", "--json")
    assert result.exit_code == 0, result.exception
    data = json.loads(result.stdout)
    name = "total" if "total" in data["candidates"][0]["scores"] else "choice"
    scores = [candidate["scores"][name] for candidate in data["candidates"]]
    assert len(scores) == 4 and scores == sorted(scores, reverse=True)
    assert data["reply"] == data["candidates"][0]["text"]
    plain = call("reply", "I am sad", "--seed", "4", "--candidates", "4")
    assert one_line(plain.stdout) == one_line(data["reply"])
    alone = json.loads(call("reply", "I am sad", "--seed", "4", "--json").stdout)["reply"]
    assert alone in [candidate["text"] for candidate in data["candidates"]]


@pytest.mark.usefixtures("shipped")
def test_a_chat_reranks_candidates_too(call):
    result = call("chat", "--seed", "4", "--candidates", "4", text="I am sad\nMy dog died\n")
    assert result.exit_code == 0 and len(result.stdout.splitlines()) == 2
    reply = call("reply", "I am sad", "--seed", "4", "--candidates", "4").stdout
    assert result.stdout.splitlines()[0] == one_line(reply)


def test_a_reply_comes_from_a_pool(from_pool):
    result = from_pool("reply", "my dog died", "--json")
    assert result.exit_code == 0, result.exception
    data = json.loads(result.stdout)
    assert {candidate["text"] for candidate in data["candidates"]} == set(POOL)
    assert data["model"].startswith("retrieval (cobert, ") and data["model"].endswith("pool.txt)")
    assert set(data["candidates"][0]["scores"]) == {"first stage", "ranker"}
    two = json.loads(from_pool("reply", "my dog died", "--json", "--candidates", "2").stdout)
    assert two["candidates"] == data["candidates"][:2]
    shown = from_pool("reply", "my dog died").stdout
    assert one_line(shown) == one_line(data["reply"])


def test_a_pool_can_be_chatted_with_and_is_not_obeyed(from_pool):
    result = from_pool("chat", text="my dog died\n" * 4)
    assert result.exit_code == 0, result.exception
    # Nothing is said twice while the pool has something new.
    assert sorted(result.stdout.splitlines()) == sorted(one_line(text) for text in POOL)
    assert "\x1b" not in result.stdout


@pytest.mark.parametrize("command", ["reply", "chat"])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--pool", "esconv"), "The model planned has no pool. Leave pool out, or name another model."),
        (("--candidates", "65"), "candidates is 65. Give 1 to 64."),
        (("--model", "retrieval", "--pool", "nowhere.txt"), "no file and no corpus"),
    ],
)
def test_settings_that_cannot_be_are_named(command, options, message):
    given = ["reply", "hi", *options] if command == "reply" else ["chat", *options]
    result = CliRunner().invoke(app, given, input="hi\n")
    assert isinstance(result.exception, ListenwellError)
    assert message in str(result.exception)


@pytest.mark.parametrize("command", [("reply", "hi"), ("chat",)])
def test_no_candidates_are_no_number(command):
    assert CliRunner().invoke(app, [*command, "--candidates", "0"]).exit_code == 2
