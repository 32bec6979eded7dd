"""`listenwell evaluate` of generators with factors, and `listenwell compare`."""

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from listenwell.cli import app
from listenwell.corpora import CORPORA
from listenwell.errors import ListenwellError
from listenwell.listener import Listener
from listenwell.results.store import read_result
from tests.evaluation.fake_generator import FakeAnnotator, FakeGenerator, FakeSystem, annotate

SAMPLES = Path(__file__).parents[1] / "data"
ED = "empathetic_dialogues"


@pytest.fixture
def call(monkeypatch, tmp_path):
    monkeypatch.setenv("LISTENWELL_DATA", str(SAMPLES))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("listenwell.evaluation.systems.System", FakeSystem)
    monkeypatch.setattr("listenwell.evaluation.score.load_annotator", lambda *heads: FakeAnnotator())
    annotate(CORPORA.load(ED)(SAMPLES / ED), "train", tmp_path / "annotated" / ED)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["listenwell", *map(str, arguments)])
        return CliRunner().invoke(app, [*map(str, arguments)])

    return run


@pytest.fixture
def evaluate(call):
    def run(*arguments):
        done = call("evaluate", *arguments, "--split", "train")
        assert done.exit_code == 0, done.exception
        return done

    return run


def test_perplexity_has_a_row_for_each_kind_of_factors(evaluate):
    common = ("--annotated", "annotated", "--limit", "3", "--seed", "2", "--out", "out")
    evaluate("perplexity", "fake", "--factors", "gold", "--factors", "marginal", *common, "--keep", "results")
    result = read_result(Path("results/perplexity/fake-gold-factors.json"))
    assert result.metric("perplexity_by_token") == pytest.approx(2.718282)
    assert (result.count, result.seed) == (3, 2)
    assert result.command.startswith("listenwell evaluate perplexity fake --factors gold")
    assert Path("out/perplexity/fake-factors-summed-over.json").is_file()
    evaluate("perplexity", "fake", "--factors", "none")
    assert Path("runs/evaluate/fake-none-perplexity-empathetic_dialogues-train/result.json").is_file()


def test_factor_prediction_and_the_other_of_a_pair(evaluate):
    common = ("plans", "fake", "--annotated", "annotated")
    evaluate(*common, "--system", "CM → DA", "--out", "one")
    done = evaluate(*common, "--system", "CM ‖ DA", "--out", "two")
    assert "DA Hits@1" in done.stdout
    pair = ("plans", "one/planning.jsonl", "--against", "two/planning.jsonl")
    evaluate(*pair, "--keep", "results")
    result = read_result(Path("results/factor_prediction/cm-to-da.json"))
    assert "CM ‖ DA" in dict(result.conditions)["given"]


def test_replies_under_gold_factors_and_then_their_plan_adherence(evaluate, tiny_encoder):
    gold = ("fake", "--factors", "gold", "--annotated", "annotated", "--out", "gold")
    evaluate("generate", *gold, "--perplexity")
    evaluate("replies", *gold, "--table", "family", "--encoder", tiny_encoder)
    result = read_result(Path("gold/result.json"))
    assert (result.task, result.system) == ("family", "fake, gold factors")
    assert result.metric("er_level") == 0 and result.metric("bleu_2") is not None
    assert result.metric("perplexity_by_token") == pytest.approx(2.718282)
    lines = Path("gold/replies.jsonl").read_text().splitlines()
    assert json.loads(lines[0])["plan"]["act"] == "questioning"
    evaluate("plans", "gold/replies.jsonl", "--keep", "results")
    plan_adherence = read_result(Path("results/plan_adherence/fake-gold-factors.json"))
    assert plan_adherence.metric("da_realized") == 0 and plan_adherence.count == len(lines)


def test_a_listener_with_parts_switched_off_is_a_row_of_ablations(evaluate, monkeypatch, tiny_encoder):
    monkeypatch.setattr(FakeSystem, "listener", lambda self: Listener(FakeGenerator(), plan=FakeGenerator()))
    off = ("--without", "reward", "--without", "brevity")
    evaluate("replies", "fake", *off, "--keep", "results", "--encoder", tiny_encoder)
    result = read_result(Path("results/ablations/fake-without-reward-brevity.json"))
    assert (result.task, result.system) == ("ablations", "fake without reward, brevity")
    assert dict(result.conditions)["switched off"] == "reward, brevity"
    folder = Path("runs/evaluate/fake-without-reward-brevity-empathetic_dialogues-train")
    assert "plan" in json.loads((folder / "replies.jsonl").read_text().splitlines()[0])
    evaluate("replies", "fake", "--keep", "results", "--encoder", tiny_encoder)
    whole = read_result(Path("results/replies/fake.json"))
    assert whole.task == "replies" and whole.metric("perplexity_by_token") is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("perplexity", "fake", "--factors", "golden"), "gold"),
        (("replies", "fake", "--factors", "marginal"), "gold, predicted or none"),
        (("replies", "fake", "--factors", "gold"), "--annotated"),
        (("replies", "fake", "--without", "reward", "--factors", "gold"), "of a whole listener"),
        (("generate", "fake", "--out", "x", "--perplexity"), "the generator alone"),
        (("plans", "one/planning.jsonl", "--against", "two/planning.jsonl"), "There is no file"),
        (("plans", SAMPLES / "peers" / "moel.txt", "--system", "MoEL"), "no plans"),
    ],
)
def test_errors_say_what_to_do(call, arguments, message):
    split = () if "MoEL" in arguments else ("--split", "train")
    done = call("evaluate", *arguments, *split)
    assert isinstance(done.exception, ListenwellError), done.exception
    assert message in str(done.exception)


def test_systems_stand_side_by_side(call, tmp_path):
    moel = SAMPLES / "peers" / "moel.txt"
    examples = list(CORPORA.load(ED)(SAMPLES / ED).examples("train"))
    name = f"{examples[0].context.id}#{len(examples[0].context.turns)}"
    Path("mine.jsonl").write_text(json.dumps({"id": name, "reply": "<b>Oh</b>"}) + "\n")
    done = call("compare", "ours=mine.jsonl", "--split", "train", "--out", "page.md")
    assert done.exit_code == 0, done.exception
    page = Path("page.md").read_text()
    assert "- **ours**: \\<b\\>Oh\\</b\\>\n" in page and "<b>" not in page
    for arguments, message in (
        (("compare", "mine.jsonl"), "is no NAME=FILE"),
        (("compare", f"MoELL={moel}"), "Did you mean 'MoEL'"),
        (("compare", f"MoEL={moel}", "--split", "train"), "No context was answered"),
    ):
        failed = call(*arguments)
        assert isinstance(failed.exception, ListenwellError) and message in str(failed.exception)
