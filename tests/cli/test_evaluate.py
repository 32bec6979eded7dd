import json
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.testing import CliRunner

from listenwell.cli import app
from listenwell.corpora.sampling import Sampling
from listenwell.errors import ListenwellError
from listenwell.results.store import environment, read_result

SAMPLES = Path(__file__).parents[1] / "data"


@pytest.fixture
def call(monkeypatch, tmp_path, tiny_encoder):
    monkeypatch.setenv("LISTENWELL_DATA", str(SAMPLES))
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()

    def run(*arguments):
        command = ["evaluate", "replies", *map(str, arguments)]
        monkeypatch.setattr(sys, "argv", ["listenwell", *command])
        return runner.invoke(app, [*command, "--encoder", str(tiny_encoder)])

    return run


@pytest.fixture
def tiny(tiny_llama, tmp_path):
    recipe = tmp_path / "tiny.yaml"
    recipe.write_text("system: Listen.\nshots: []\nprompt_tokens: 128\ndecoding: {max_tokens: 4}")
    return ["--weights", tiny_llama, "--recipe", recipe, "--split", "train"]


def test_a_model_is_measured_end_to_end(call, tiny, tmp_path):
    done = call("prompted", *tiny, "--limit", 3, "--seed", 5)
    assert done.exit_code == 0, done.exception
    assert "ROUGE-L" in done.stdout and "percent" in done.stdout
    folder = Path("runs/evaluate/prompted-empathetic_dialogues-train")
    result = read_result(folder / "result.json")
    conditions = dict(result.conditions)
    assert (result.task, result.corpus, result.split, result.count, result.seed) == (
        "replies",
        "empathetic_dialogues",
        "train",
        3,
        5,
    )
    assert conditions["sample"].endswith("drawn by numpy default_rng(5) without replacement, in corpus order")
    assert "max_tokens 4" in conditions["decoding"] and "top_p 0.9" in conditions["decoding"]
    assert conditions["factors"] == "none"
    assert conditions["model"] == result.system
    assert json.loads(conditions["settings"])["system"] == "Listen."
    assert len(result.data) == len(result.checkpoint or "") == 64
    assert dict(result.units)["rouge_l"] == "percent"
    assert set(dict(result.units)) == set(dict(result.metrics))
    assert result.commit and result.machine and result.time and dict(result.versions)["sacrebleu"]
    replies = [json.loads(line) for line in (folder / "replies.jsonl").read_text().splitlines()]
    assert len(replies) == 3 and all(line["reply"].strip() for line in replies)
    assert str(tmp_path) not in (folder / "result.json").read_text()


def test_a_stopped_run_goes_on_to_the_same_result(call, tiny):
    assert call("prompted", *tiny, "--out", "whole").exit_code == 0
    whole = Path("whole/replies.jsonl").read_bytes()
    Path("half").mkdir()
    Path("half/run.json").write_bytes(Path("whole/run.json").read_bytes())
    Path("half/replies.jsonl").write_bytes(whole[: len(whole) * 2 // 3])
    assert call("prompted", *tiny, "--out", "half").exit_code == 0
    assert Path("half/replies.jsonl").read_bytes() == whole
    assert read_result(Path("half/result.json")).metrics == read_result(Path("whole/result.json")).metrics


def test_a_folder_of_another_run_is_left_alone(call, tiny):
    assert call("prompted", *tiny, "--limit", 1, "--out", "x").exit_code == 0
    kept = Path("x/replies.jsonl").read_bytes()
    assert "other settings" in str(call("prompted", *tiny, "--limit", 2, "--out", "x").exception)
    assert Path("x/replies.jsonl").read_bytes() == kept


def test_our_own_replies_can_be_measured_again(call, tiny):
    assert call("prompted", *tiny, "--out", "x").exit_code == 0
    assert call("x/replies.jsonl", "--system", "again", "--out", "y").exit_code == 0
    again = read_result(Path("y/result.json"))
    assert again.system == "again"
    assert again.metrics == read_result(Path("x/result.json")).metrics


def test_replies_can_be_generated_first_and_scored_later(call, tiny):
    generated = CliRunner().invoke(app, ["evaluate", "generate", "prompted", *map(str, tiny), "--out", "x"])
    assert generated.exit_code == 0, generated.exception
    assert "x/replies.jsonl" in generated.stdout
    assert call("prompted", *tiny, "--out", "y").exit_code == 0
    assert Path("x/replies.jsonl").read_bytes() == Path("y/replies.jsonl").read_bytes()
    assert call("x/replies.jsonl", "--out", "z").exit_code == 0
    later, at_once = (read_result(Path(folder) / "result.json") for folder in "zy")
    assert later.metrics == at_once.metrics
    later_conditions, conditions = dict(later.conditions), dict(at_once.conditions)
    assert later_conditions.pop("made by") != conditions.pop("made by")
    assert later_conditions == conditions


@pytest.mark.parametrize(
    ("arguments", "example"),
    [
        (("prompted", "--limit", "3"), "evaluate replies prompted"),
        (("--replies", "x"), "evaluate replies FILE"),
    ],
)
def test_the_old_flat_form_names_the_new_verb(arguments, example):
    failed = CliRunner().invoke(app, ["evaluate", *arguments])
    assert isinstance(failed.exception, ListenwellError)
    assert example in str(failed.exception)


@pytest.mark.parametrize(
    ("file", "system", "count", "first"),
    [("moel.txt", "MoEL", 3, "moel"), ("mime.txt", "mime beam", 2, "mime-beam")],
)
def test_baselines_are_measured_and_kept(call, file, system, count, first):
    done = call(SAMPLES / "peers" / file, "--system", system, "--keep", "kept", "--json")
    assert done.exit_code == 0, done.exception
    result = read_result(Path(f"kept/replies/{first}.json"))
    assert json.loads(done.stdout)["metrics"] == dict(result.metrics)
    assert (result.count, result.seed, result.checkpoint) == (count, None, None)
    assert "block without" in dict(result.conditions)["broken blocks"]
    assert result.metric("rouge_l") > 0
    # An absolute path is kept as a name only: results stand in the docs.
    assert f"evaluate replies {file} --system" in result.command


def test_people_are_their_own_ceiling_and_that_is_said(call):
    done = call(SAMPLES / "peers" / "moel.txt", "--system", "human", "--limit", 2, "--seed", 1)
    result = read_result(Path("runs/evaluate/human-empathetic_dialogues-test/result.json"))
    assert done.exit_code == 0
    assert result.metric("bleu_1") == pytest.approx(100)
    assert "ceiling" in dict(result.conditions)["reference"]
    assert dict(result.conditions)["sample"] == Sampling(2, 1).describe(3, 2)
    assert result.seed == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("x.jsonl", "--factors", "gold"), "exist already"),
        (("prompted", "--without", "rerank", "--factors", "none"), "parts of a whole listener"),
        (("prompted", "--corpus", "empathetic_dialogs"), "Did you mean 'empathetic_dialogues'"),
        (("promted",), "Did you mean 'prompted'"),
        (("prompted", "--split", "tset"), "Did you mean 'test'"),
        (("nowhere.jsonl",), "There is no file nowhere.jsonl"),
        ((SAMPLES / "peers" / "moel.txt",), "Choose one with --system: Transformer"),
        ((SAMPLES / "peers" / "moel.txt", "--system", "Moell"), "Did you mean 'MoEL'"),
        ((SAMPLES / "peers" / "moel.txt", "--system", "MoEL", "--split", "valid"), "Leave out"),
    ],
)
def test_errors_say_what_to_do(call, arguments, message):
    done = call(*arguments)
    assert isinstance(done.exception, ListenwellError)
    assert message in str(done.exception)


def test_the_command_is_kept_without_places_on_this_machine(monkeypatch):
    arguments = ["/usr/bin/listenwell", "evaluate", "--weights=/home/me/w", "../data/a b.txt", "/x/y.txt"]
    monkeypatch.setattr(sys, "argv", arguments)
    assert environment()["command"] == "listenwell evaluate --weights=w '../data/a b.txt' y.txt"


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("training.__main__", "python -m listenwell.training"),
    ],
)
def test_a_module_that_was_run_is_named(monkeypatch, module, said):
    file = find_spec(f"listenwell.{module}").origin
    monkeypatch.setattr(sys, "argv", [file, "x", "--out", "/a/b"])
    assert environment()["command"] == f"{said} x --out b"
