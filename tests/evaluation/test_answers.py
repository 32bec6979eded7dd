import numpy as np
import pytest

from listenwell.annotators.heads import GIVEN_FROM, HEADS
from listenwell.evaluation.understanding import Answers, measure, most_confused
from listenwell.results.metric_registry import METRICS


def answers(head, shares, truth, temperature=1.0):
    """Answers with given probabilities (at temperature 1) and true labels."""
    labels = HEADS[head].labels
    targets = np.zeros((len(truth), len(labels)), np.float32)
    for row, names in enumerate(truth):
        targets[row, [labels.index(name) for name in ([names] if isinstance(names, str) else names)]] = 1
    probabilities = np.full(targets.shape, 1e-6)
    for row, by_label in enumerate(shares):
        for name, probability in by_label.items():
            probabilities[row, labels.index(name)] = probability
    logits = np.log(probabilities / (1 - probabilities)) if HEADS[head].several else np.log(probabilities)
    return Answers(head, logits, targets, temperature)


def test_emotions_are_right_alone_among_five_and_in_their_group():
    scores = measure(
        answers(
            "emotion",
            [
                {"sad": 0.6, "proud": 0.4},
                # Terrified is afraid's neighbour: as a group the two are likelier than sad.
                {"sad": 0.4, "afraid": 0.35, "terrified": 0.25},
                {"joyful": 0.3, "excited": 0.25, "content": 0.2, "hopeful": 0.15, "proud": 0.06, "sad": 0.04},
            ],
            ["sad", "terrified", "sad"],
        )
    )
    assert scores["accuracy"] == pytest.approx(100 / 3)
    assert scores["top_5_accuracy"] == pytest.approx(200 / 3)  # sad is the sixth of the last
    assert scores["group_accuracy"] == pytest.approx(200 / 3)
    # Confidences 0.6, 0.4 and 0.3, right, wrong and wrong.
    assert scores["ece"] == pytest.approx(100 * (0.4 + 0.4 + 0.3) / 3, abs=0.01)
    assert scores["ece"] == scores["ece_uncalibrated"]


def test_levels_are_yes_or_no_first():
    scores = measure(
        answers(
            "exploration",
            [
                {"no": 0.45, "weak": 0.35, "strong": 0.2},  # yes, though no is the likeliest
                {"no": 0.2, "weak": 0.7, "strong": 0.1},
                {"no": 0.6, "weak": 0.3, "strong": 0.1},
                {"no": 0.9, "weak": 0.05, "strong": 0.05},
            ],
            ["weak", "strong", "strong", "no"],
        )
    )
    assert scores["accuracy"] == 75
    # no: 1 of 2 given, 1 of 1 scores (F1 2/3); yes: 2 of 2, 2 of 3 (F1 4/5).
    assert scores["macro_f1"] == pytest.approx(100 * (2 / 3 + 4 / 5) / 2)
    assert scores["level_accuracy"] == 25  # the likeliest of three levels: no, weak, no, no
    # no: 1 of 3 given is right, and all of 1 scores: F1 1/2; weak and strong: none.
    assert scores["level_macro_f1"] == pytest.approx(100 * (1 / 2) / 3)
    assert set(scores) == {
        "accuracy",
        "macro_f1",
        "level_accuracy",
        "level_macro_f1",
        "ece",
        "ece_uncalibrated",
    }


def test_sets_of_labels_count_from_their_threshold():
    scores = measure(
        answers(
            "goemotions",
            [{"joy": 0.31, "love": 0.29}, {"joy": 0.9, "anger": 0.8}, {}],
            [["joy"], ["joy", "grief"], ["neutral"]],
        )
    )
    assert GIVEN_FROM == 0.3
    assert scores["exact_match"] == pytest.approx(100 / 3)  # love is not given, anger is
    # joy is right; anger, grief and neutral are not: 1 of 28 labels; 2 right of 3 given and 4 true.
    assert scores["macro_f1"] == pytest.approx(100 / 28)
    assert scores["micro_f1"] == pytest.approx(400 / 7)


def test_a_temperature_moves_the_trust_and_no_answer():
    given = [{"wishing": 0.8, "others": 0.2}] * 4
    raw, calm = (
        measure(answers("act", given, ["wishing", "wishing", "others", "others"], t)) for t in (1.0, 50.0)
    )
    assert raw["accuracy"] == calm["accuracy"] == 50
    assert raw["ece_uncalibrated"] == calm["ece_uncalibrated"] == pytest.approx(30, abs=0.01)
    assert calm["ece"] != calm["ece_uncalibrated"]
    assert raw["ece"] == raw["ece_uncalibrated"]


def test_few_labels_have_no_top_five_and_only_emotions_have_groups():
    for head, more in (("act", set()), ("intent", {"top_5_accuracy"})):
        label = HEADS[head].labels[0]
        scores = set(measure(answers(head, [{label: 1 - 1e-6}], [label])))
        assert scores & {"top_5_accuracy", "group_accuracy"} == more


def test_every_figure_has_a_unit():
    for head in HEADS:
        label = HEADS[head].labels[0]
        assert set(measure(answers(head, [{label: 0.9}], [label]))) <= set(METRICS)


def test_the_commonest_mistakes_in_words():
    given = answers(
        "act",
        [{"wishing": 0.9}, {"wishing": 0.9}, {"others": 0.9}, {"agreeing": 0.9}],
        ["others", "others", "agreeing", "agreeing"],
    )
    assert most_confused(given) == "others as wishing 2, agreeing as others 1"
    assert most_confused(given, 1) == "others as wishing 2"
    assert most_confused(answers("exploration", [{"no": 0.9}], ["weak"])) == ""
    assert most_confused(answers("goemotions", [{"joy": 0.9}], ["love"])) == ""
