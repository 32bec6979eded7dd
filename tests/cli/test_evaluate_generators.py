"""`listenwell evaluate` of generators that plan, and `listenwell compare`."""

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
def call(monkeypatch, tmp_path, tiny_encoder):
    monkeypatch.setenv("LISTENWELL_DATA", str(SAMPLES))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("listenwell.evaluation.systems.System", FakeSystem)
    monkeypatch.setattr("listenwell.evaluation.empathy.load_readers", lambda *heads: FakeAnnotator())
    annotate(CORPORA.load(ED)(SAMPLES / ED), "train", tmp_path / "annotated" / ED)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["listenwell", *map(str, arguments)])
        return CliRunner().invoke(app, [*map(str, arguments)])

    return run


@pytest.fixture
def ask(call, tiny_encoder):
    def run(*arguments):
        where = ("--split", "train", "--encoder", tiny_encoder)
        done = call("evaluate", *arguments, *where)
        assert done.exit_code == 0, done.exception
        return done

    return run


def test_perplexity_under_gold_factors(ask):
    ask("fake", "--task", "perplexity", "--factors", "gold", "--annotated", "annotated", "--keep", "results")
    result = read_result(Path("results/perplexity/fake-gold-factors.json"))
    assert result.metric("perplexity_by_token") == pytest.approx(2.718282)
    assert result.command.startswith("listenwell evaluate fake --task perplexity")


def test_planning_and_the_other_of_a_pair(ask):
    common = ("fake", "--task", "planning", "--annotated", "annotated")
    ask(*common, "--system", "CM → DA", "--out", "one")
    done = ask(*common, "--system", "CM ‖ DA", "--out", "two")
    assert "DA Hits@1" in done.stdout
    pair = ("--task", "planning", "--replies", "one/planning.jsonl", "--beside", "two/planning.jsonl")
    ask(*pair, "--keep", "results")
    result = read_result(Path("results/factor_prediction/cm-to-da.json"))
    assert "CM ‖ DA" in dict(result.conditions)["given"]


def test_replies_under_gold_factors_are_made_and_measured_then_their_realization(ask):
    ask("fake", "--factors", "gold", "--annotated", "annotated", "--out", "gold", "--table", "family")
    result = read_result(Path("gold/result.json"))
    assert (result.task, result.system) == ("family", "fake, gold factors")
    assert result.metric("er_level") == 0 and result.metric("bleu_2") is not None
    lines = Path("gold/replies.jsonl").read_text().splitlines()
    assert json.loads(lines[0])["plan"]["act"] == "questioning"
    ask("--replies", "gold/replies.jsonl", "--task", "realization", "--keep", "results")
    plan_adherence = read_result(Path("results/plan_adherence/fake-gold-factors.json"))
    assert plan_adherence.metric("da_realized") == 0 and plan_adherence.count == len(lines)


def test_a_listener_with_parts_switched_off_is_a_row_of_ablations(ask, monkeypatch):
    monkeypatch.setattr(FakeSystem, "listener", lambda self: Listener(FakeGenerator(), plan=FakeGenerator()))
    ask("fake", "--without", "ranker", "--without", "generic_response", "--keep", "results")
    result = read_result(Path("results/ablations/fake-without-ranker-stock.json"))
    assert (result.task, result.system) == ("ablations", "fake without ranker, stock")
    assert dict(result.conditions)["switched off"] == "ranker, stock"
    folder = Path("runs/evaluate/fake-without-ranker-stock-empathetic_dialogues-train")
    assert "plan" in json.loads((folder / "replies.jsonl").read_text().splitlines()[0])
    ask("fake", "--keep", "results")
    whole = read_result(Path("results/replies/fake.json"))
    assert whole.task == "replies" and whole.metric("perplexity_by_token") is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fake", "--task", "plannning"), "Did you mean 'planning'"),
        (("fake", "--factors", "golden", "--task", "perplexity"), "gold"),
        (("fake", "--without", "ranker", "--factors", "gold"), "of a whole listener"),
        (("--replies", "x", "--without", "ranker"), "of a whole listener"),
        (("--replies", "x", "--factors", "gold"), "a model that speaks now"),
        (("fake", "--beside", "x"), "two files of plans"),
        (("annotators", "--factors", "gold"), "their own corpora"),
        (("rankers", "--task", "planning"), "pools of replies"),
        (
            ("--replies", SAMPLES / "peers" / "moel.txt", "--system", "MoEL", "--task", "planning"),
            "has no plan",
        ),
        (
            ("--replies", SAMPLES / "peers" / "moel.txt", "--system", "MoEL", "--task", "realization"),
            "no plans",
        ),
    ],
)
def test_errors_say_what_to_do(call, arguments, message):
    done = call("evaluate", *arguments)
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
