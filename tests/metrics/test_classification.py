import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from listenwell.errors import InputError, UnknownNameError
from listenwell.metrics import (
    accuracy,
    classification_metrics,
    realization,
    top_k_accuracy,
)

TRUTH = ["sad", "sad", "sad", "joyful"]
PREDICTED = ["sad", "sad", "joyful", "joyful"]
LABELS = ["joyful", "sad"]
rows = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1, max_size=30)


def test_metrics_worked_by_hand():
    # joyful: precision 1/2, recall 1, F1 2/3; sad: precision 1, recall 2/3, F1 4/5; sad weighs 3 of 4.
    assert classification_metrics(TRUTH, PREDICTED, LABELS) == pytest.approx(
        {
            "accuracy": 75,
            "macro_precision": 75,
            "macro_recall": 250 / 3,
            "macro_f1": 100 * (2 / 3 + 4 / 5) / 2,
            "weighted_precision": 87.5,
            "weighted_recall": 75,
            "weighted_f1": 100 * (2 / 3 + 3 * 4 / 5) / 4,
        }
    )


def test_a_label_that_never_occurs_counts_as_zero_in_the_macro_mean():
    assert classification_metrics(TRUTH, PREDICTED, [*LABELS, "proud"])["macro_recall"] == pytest.approx(
        500 / 9
    )


def test_top_k_worked_by_hand():
    # The true classes stand second, first, and third of three; a tie for the second place makes it third.
    probabilities = np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.4, 0.3, 0.3]])
    truth = np.array([1, 2, 2])
    shares = [top_k_accuracy(truth, probabilities, k) for k in (1, 2, 3)]
    assert shares == pytest.approx([100 / 3, 200 / 3, 100])


@given(rows)
@settings(deadline=None)  # the first example loads scikit-learn
def test_figures_agree_with_each_other(pairs):
    truth, predicted = map(list, zip(*pairs, strict=True))
    metrics = classification_metrics(truth, predicted, "abc")
    assert metrics["accuracy"] == pytest.approx(accuracy(truth, predicted))
    assert metrics["accuracy"] == pytest.approx(metrics["weighted_recall"])
    assert all(0 <= value <= 100 + 1e-9 for value in metrics.values())


def test_realization_worked_by_hand():
    assert realization(
        ["wishing", "agreeing", "wishing"], ["wishing", "wishing", "wishing"]
    ) == pytest.approx(200 / 3)
    assert realization(["no"], ["on"]) == 0  # a name is one factor, not a set of letters
    # As sets: the same in another order, one too many, one too few, and none for none: 2 of 4.
    planned = [("exploration", "interpretation"), ("exploration",), ("exploration",), ()]
    found = [["interpretation", "exploration"], ["interpretation", "exploration"], [], []]
    assert realization(planned, found) == 50


@given(st.lists(st.frozensets(st.sampled_from(["er", "ip", "ex"])), min_size=1))
def test_a_plan_realizes_itself_in_any_order(plans):
    assert realization(plans, [sorted(plan, reverse=True) for plan in plans]) == 100


def test_unknown_labels_are_not_dropped_in_silence():
    with pytest.raises(UnknownNameError, match="joyfull"):
        classification_metrics(["joyfull"], ["sad"], LABELS)
    with pytest.raises(UnknownNameError, match="Did you mean 'sad'"):
        classification_metrics(["sad"], ["sadd"], LABELS)


def test_lists_that_do_not_pair_up_and_labels_that_repeat():
    with pytest.raises(InputError, match="do not pair up"):
        accuracy(["sad"], [])
    with pytest.raises(InputError, match="do not pair up"):
        realization(["wishing"], [])
    with pytest.raises(InputError, match="twice"):
        classification_metrics(["sad"], ["sad"], ["sad", "sad"])
