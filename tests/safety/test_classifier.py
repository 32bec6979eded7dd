"""The crisis classifier's windows, thresholds and metrics, on a tiny encoder."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from listenwell.annotators.heads import RISK_HEADS
from listenwell.checkpoint import open_checkpoint
from listenwell.cli import app
from listenwell.corpora.risk import KIND, LEVEL
from listenwell.dialogue import Dialogue, Turn
from listenwell.errors import CheckpointError
from listenwell.results.store import read_results
from listenwell.safety.classifier import SHIPPED, THRESHOLDS, CrisisClassifier, Thresholds
from listenwell.safety.crisis import Detector, Finding, Sign
from listenwell.safety.measure import Case, cases, risk_metrics
from listenwell.safety.thresholds import Rates, fit_thresholds, with_thresholds
from tests.tiny import keep_ear, tiny_ear

SIX_MEGABYTES = 6_000_000


@pytest.fixture
def random_classifier(tiny_encoder, installed_encoder, tmp_path):
    return keep_ear(tiny_ear(tiny_encoder, RISK_HEADS), tmp_path / "random")


def view(*texts):
    return tuple((text, bool(number % 2)) for number, text in enumerate(texts))


def test_probabilities_are_those_of_each_view_alone(random_classifier):
    classifier = CrisisClassifier.load(random_classifier)
    views = [view("I lost my job."), view("Hi.", "Hello!", "I am sad."), view(""), view("word " * 300)]
    levels, kinds = classifier.probabilities(views)
    assert levels.shape == (4, 3) and kinds.shape == (4, 7)
    assert np.allclose(levels.sum(axis=1), 1, atol=1e-5) and np.allclose(kinds.sum(axis=1), 1, atol=1e-5)
    for number, each in enumerate(views):
        alone, _ = classifier.probabilities([each])
        assert alone[0] == pytest.approx(levels[number], abs=1e-2)  # int8 rounds by batch


def test_every_part_of_a_long_message_is_read(random_classifier, monkeypatch):
    classifier = CrisisClassifier.load(random_classifier)
    calm = " ".join(f"word{number}" for number in range(150))
    whole, _ = classifier.probabilities([view(calm)])
    parts = classifier._parts(view(calm))
    assert len(parts) > 3 and max(map(len, parts)) <= 64
    read = {int(token) for part in parts for token in part.tokens}
    assert set(classifier.vocabulary.encode_many([calm])[0]) <= read
    assert 0 <= whole[0, 2] <= 1


def test_thresholds_make_levels(random_classifier):
    def level(crisis, concern):
        own = CrisisClassifier(classifier.backend, classifier.vocabulary, Thresholds(crisis, concern))
        return own.predict(view("I lost my job.")).level

    classifier = CrisisClassifier.load(random_classifier)
    assert classifier.thresholds == Thresholds()
    risk = classifier.predict(view("I lost my job."))
    assert level(risk.crisis - 0.01, 0.0) == "crisis"
    assert level(risk.crisis + 0.01, risk.crisis + risk.concern - 0.01) == "concern"
    assert level(risk.crisis + 0.01, risk.crisis + risk.concern + 0.01) == "none"


def test_broken_checkpoints_are_named(tiny_encoder, installed_encoder, random_classifier, tmp_path):
    (random_classifier / THRESHOLDS).write_text("[")
    with pytest.raises(CheckpointError, match="listenwell safety thresholds"):
        CrisisClassifier.load(random_classifier)
    other = keep_ear(tiny_ear(tiny_encoder, ["emotion"]), tmp_path / "emotion")
    with pytest.raises(CheckpointError, match="no head"):
        CrisisClassifier.load(other)


def labelled(text, level, kind, form=""):
    notes = ((KIND, kind), (LEVEL, level), ("form", form))
    return Dialogue((Turn("speaker", text, notes=notes),))


def test_thresholds_keep_to_the_rates(random_classifier):
    detector = Detector.load(random_classifier)
    texts = [f"{word} {number}" for number in range(20) for word in ("tea", "rain", "hello", "work")]
    risk = cases(detector, [labelled(text, "none", "none", "lookalike tea") for text in texts])
    everyday = cases(detector, [labelled(f"my {text}", "none", "none") for text in texts])
    rates = Rates(10, 10, 20, 20)
    fitted = with_thresholds(detector, fit_thresholds(detector, risk, everyday, rates))
    for own in (risk, everyday):
        levels = [fitted.assess(case.dialogue).level for case in own]
        assert 100 * levels.count("crisis") / len(levels) <= 10
        assert 100 * (len(levels) - levels.count("none")) / len(levels) <= 20
    assert "10 % of look-alikes" in fitted.classifier.thresholds.fitted


def test_metrics_by_hand():
    def case(level, found, kind="suicide", found_kind="suicide", form=""):
        signs = (Sign("suicide", found, 0, 1, "classifier"),)
        return Case(labelled("x", level, kind), level, kind, form, Finding(found, found_kind, 0.5, signs))

    figures = risk_metrics(
        [
            case("crisis", "crisis"),
            case("crisis", "crisis", "abuse"),
            case("crisis", "concern"),
            case("crisis", "none"),
            case("concern", "none"),
            case("none", "crisis", form="lookalike plan"),
            case("none", "none", form="lookalike plan"),
            case("none", "concern", form="everyday"),
        ]
    )
    assert figures["crisis recall"] == 50 and figures["crisis or concern recall"] == 75
    assert figures["concern recall"] == 0
    assert figures["false alarms among look-alikes"] == 50
    assert figures["false alarms"] == pytest.approx(100 / 3)
    assert figures["right kind"] == 50 and figures["right level"] == pytest.approx(37.5)
    # Wilson's interval of 2 of 4, by hand: (0.5 + 0.4802) / 1.9604 ± 1.96 · √(0.0625 + 0.060025) / 1.9604.
    assert figures["crisis recall, low"] == pytest.approx(15.0, abs=0.05)
    assert figures["crisis recall, high"] == pytest.approx(85.0, abs=0.05)


def test_the_commands_fit_and_measure(random_classifier, samples, tmp_path):
    call = CliRunner().invoke
    data = tmp_path / "data"
    data.mkdir()
    for corpus in ("risk_messages", "everyday_messages"):
        for file in (samples / corpus).glob("*.jsonl"):
            (data / file.name).write_bytes(file.read_bytes())
    fitted = call(
        app, ["safety", "thresholds", str(random_classifier), str(tmp_path / "fitted"), "--data", str(data)]
    )
    assert fitted.exit_code == 0, fitted.exception
    assert "fitted" in json.loads((tmp_path / "fitted" / THRESHOLDS).read_text())
    arguments = ["--classifier", str(tmp_path / "fitted"), "--keep", str(tmp_path / "results")]
    measured = call(app, ["safety", "measure", "messages", str(data / "test.jsonl"), *arguments])
    assert measured.exit_code == 0, measured.exception
    (result,) = read_results(tmp_path / "results")
    assert result.count == 4 and result.system == "test: fitted"
    assert "look-alikes" in dict(result.conditions)["thresholds"]
    empty = call(app, ["safety", "measure", "messages", str(tmp_path / "fitted")])
    assert "no JSONL file" in str(empty.exception)


def test_the_shipped_classifier_is_small_and_its_thresholds_are_stated():
    saved = open_checkpoint(SHIPPED)
    assert sum((SHIPPED / name).stat().st_size for name in saved.sums) < SIX_MEGABYTES
    thresholds = Thresholds.from_json((SHIPPED / THRESHOLDS).read_text())
    assert thresholds.fitted and 0 < thresholds.concern < 1 and 0 < thresholds.crisis < 1
