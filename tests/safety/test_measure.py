import json

import pytest
from typer.testing import CliRunner

from listenwell.cli import app
from listenwell.errors import InputError
from listenwell.results.store import read_result
from listenwell.safety.crisis import Detector
from listenwell.safety.measure import Labelled, filtered, label_agreement, measured, report, table

DETECTOR = Detector.load()
SENTENCES = [
    Labelled("I want to kill myself.", True, "direct", "suicide"),
    Labelled("My dad beats me.", True, "abuse", "suicide"),  # the wrong kind, so that it is counted
    Labelled("Grey clouds gather, as they say.", True, "veiled", "suicide", held_out=True),
    Labelled("I would never kill myself.", False, "past", held_out=True),
    Labelled("Nice weather.", False, "everyday"),
]


def run(*arguments):
    return CliRunner().invoke(app, ["safety", "measure", *map(str, arguments)])


def test_figures_by_hand():
    figures = measured(DETECTOR, SENTENCES)
    assert figures["recall"] == pytest.approx(200 / 3)
    assert figures["false alarms"] == 0
    assert figures["concerns among the others"] == 50
    assert figures["right kind"] == 50
    with pytest.raises(InputError):
        measured(DETECTOR, SENTENCES[:2])


def test_a_report_has_every_part():
    found = report(DETECTOR, SENTENCES)
    assert list(found["figures"]) == ["all", "held out", "tuned on"]
    assert found["figures"]["held out"]["recall"] == 0
    assert found["categories"]["past"] == {"sentences": 1, "concern": 1}
    assert "| all | 5 | 3 | 66.7 | 0.0 | 50.0 |" in table(found)


def test_the_command_writes_json(tmp_path):
    file = tmp_path / "list.jsonl"
    file.write_text("\n".join(one.to_json() for one in SENTENCES), encoding="utf-8")
    figures = json.loads(run("sentences", file, "--keep", tmp_path / "results").stdout)["figures"]
    assert figures["all"]["recall"] == 66.67
    kept = {result.split: result for result in map(read_result, (tmp_path / "results").rglob("*.json"))}
    assert set(kept) == set(figures)
    assert kept["all"].count == 5 and kept["held out"].metric("recall") == 0
    assert kept["all"].metric("recall") == pytest.approx(200 / 3)
    assert str(tmp_path) not in kept["all"].to_json()
    missing = run("sentences", tmp_path / "none.jsonl")
    assert missing.exit_code == 2


def test_what_is_filtered_is_counted_and_shown():
    replies = ["Well done!", "You should sue them.", "You should sue them.", "I am a doctor. Shut up."]
    found = filtered({"a": replies, "b": ["Fine."]}, 1)
    rates = found["faults"]
    assert (rates["a"]["legal"], rates["a"]["insult"], rates["a"]["any"]) == (50, 25, 75)
    assert rates["b"]["any"] == 0
    shown = [{"reply": "You should sue them.", "legal": "You should sue"}]
    assert found["filtered"] == {"a": shown, "b": []}
    assert set(filtered({"a": replies})) == {"faults"}


def test_corpora_and_released_replies(samples, tmp_path):
    figures = json.loads(run("corpus", "epitome", "train", "--keep", tmp_path, "--show", 2).stdout)
    assert figures["replies"] >= figures["alarms"]["texts"] > 0
    assert set(figures["faults"]) > {"insult", "any"}
    assert set(figures["filtered"]) == {"human"}
    kept = read_result(tmp_path / "reply_filter" / "human.json")
    assert (kept.task, kept.corpus, kept.split, kept.count) == (
        "reply_filter",
        "epitome",
        "train",
        figures["replies"],
    )
    assert round(kept.metric("any"), 2) == figures["faults"]["any"]
    (baselines,) = samples.glob("peers/*mime*")
    assert "MIME greedy" in json.loads(run("baselines", baselines, "--keep", tmp_path).stdout)["faults"]
    assert {result.system for result in map(read_result, tmp_path.rglob("*mime*.json"))} == {
        "MIME greedy",
        "MIME beam",
        "MIME top-k",
    }
    assert read_result(tmp_path / "reply_filter" / "human.json") == kept  # people's own are the corpus's
    comments = json.loads(run("corpus", "goemotions", "train").stdout)
    assert comments["alarms"]["texts"] == 4 and comments["replies"] == 0 and "faults" not in comments


def test_what_a_listener_said_and_proposed(tmp_path):
    run_of = {"system": "ours", "corpus": "empathetic_dialogues", "split": "test"}
    (tmp_path / "run.json").write_text(json.dumps(run_of))
    lines = [
        {"reply": "How sad.", "candidates": [{"text": "How sad."}, {"text": "I am a doctor."}]},
        {"reply": "Where did it go?"},
    ]
    file = tmp_path / "replies.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = run("replies", file, "--keep", tmp_path / "kept")
    assert done.exit_code == 0, done.exception
    assert json.loads(done.stdout)["faults"]["ours"]["any"] == 0
    result = read_result(tmp_path / "kept" / "reply_filter/ours-all-candidates.json")
    assert (result.count, dict(result.metrics)["any"], result.split) == (2, 50, "test")
    assert str(tmp_path) not in result.command
    file.write_text("nothing\n")
    broken = run("replies", file)
    assert "holds no replies of a run" in str(broken.exception)


def test_agreement_of_two_annotators(tmp_path):
    pairs = [("crisis", "crisis", "abuse"), ("crisis", "concern", "suicide"), ("none", "none", "none")]
    rows = [
        {"text": "x", "level": first, "kind": "abuse", "second_level": second, "second_kind": kind}
        for first, second, kind in [*pairs, ("crisis", "crisis", "suicide")]
    ]
    (tmp_path / "train").mkdir()
    lines = [json.dumps(row) for row in [*rows, {"text": "y", "level": "none", "kind": "none"}]]
    (tmp_path / "train" / "writer.jsonl").write_text("\n".join(lines))
    figures = json.loads(run("agreement", tmp_path, "--keep", tmp_path / "results").stdout)
    assert figures["messages"] == 4 and figures["level_agreement"] == 75 and figures["kind_agreement"] == 50
    # Fleiss by hand: levels are used 2, 1 and 5 times of 8: P_e = (4 + 1 + 25) / 64; (.75 - P_e) / (1 - P_e).
    assert figures["level_kappa"] == pytest.approx(52.94, abs=0.01)
    (result,) = map(read_result, (tmp_path / "results").rglob("*.json"))
    assert result.count == 4
    with pytest.raises(InputError, match="second label"):
        label_agreement([])
