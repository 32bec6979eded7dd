import math

import pytest
import torch

from listenwell.rankers.base import (
    RankingModel,
    States,
    Words,
    choice_losses,
    masked_max,
    masked_mean,
    masked_softmax,
)
from listenwell.rankers.config import RankerConfig
from tests.rankers import checks

VALUES = torch.tensor([[[1.0, -4.0], [3.0, -2.0], [50.0, 60.0]], [[7.0, 8.0], [9.0, 9.0], [5.0, 5.0]]])
MASK = torch.tensor([[True, True, False], [False, False, False]])


def test_a_softmax_sees_true_places_only():
    scores = torch.tensor([[0.0, math.log(3), 99.0], [1.0, 2.0, 3.0], [-1e9, 5.0, 5.0]])
    mask = torch.tensor([[True, True, False], [False, False, False], [True, False, False]])
    expected = torch.tensor([[0.25, 0.75, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    checks.near(masked_softmax(scores, mask), expected)
    # A mask of fewer dimensions is spread over the others.
    checks.near(masked_softmax(torch.stack([scores[0], scores[0]]), mask[0]), expected[[0, 0]])


def test_a_mean_is_over_true_places_only():
    checks.near(masked_mean(VALUES, MASK), torch.tensor([[2.0, -3.0], [0.0, 0.0]]))
    # Two texts, one mask for each of two readings of them.
    checks.near(masked_mean(VALUES[:1], MASK), torch.tensor([[2.0, -3.0], [0.0, 0.0]]))


def test_a_maximum_is_over_true_places_only_even_where_all_are_negative():
    checks.near(masked_max(VALUES, MASK), torch.tensor([[3.0, -2.0], [0.0, 0.0]]))
    checks.near(masked_max(VALUES[:1], MASK), torch.tensor([[3.0, -2.0], [0.0, 0.0]]))


@pytest.mark.parametrize("operation", [masked_mean, masked_max])
def test_rows_without_words_are_zeros_with_zero_gradients(operation):
    values = VALUES.clone().requires_grad_()
    found = operation(values, MASK)
    found.sum().backward()
    assert found[1].tolist() == [0, 0]
    assert values.grad[1].tolist() == [[0, 0]] * 3 and values.grad[0, 2].tolist() == [0, 0]
    # The two columns' maxima are both at the second word; a mean shares its slope.
    expected = [[0.5, 0.5], [0.5, 0.5]] if operation is masked_mean else [[0, 0], [1, 1]]
    assert values.grad[0, :2].tolist() == expected


def test_a_softmax_without_places_has_zero_gradients():
    scores = torch.tensor([[1.0, 2.0], [1.0, 2.0]], requires_grad=True)
    mask = torch.tensor([[False, False], [True, True]])
    (masked_softmax(scores, mask) * torch.tensor([1.0, 3.0])).sum().backward()
    assert scores.grad[0].tolist() == [0, 0]
    share = 1 / (1 + math.e)
    # d(p + 3 (1 − p)) / d score: −2 p (1 − p) for the first, the opposite for the second.
    slope = 2 * share * (1 - share)
    assert scores.grad[1].tolist() == pytest.approx([-slope, slope])


def test_losses_worked_by_hand():
    scores = torch.tensor([[math.log(2), 0.0, math.log(5)], [0.0, 0.0, 0.0], [30.0, 0.0, 30.0]])
    allowed = torch.ones(3, 3, dtype=torch.bool)
    # 2 of 2 + 1 + 5; 1 of 3; the third shares with the first.
    expected = torch.tensor([math.log(4), math.log(3), math.log(2)])
    checks.near(choice_losses(scores, allowed), expected)
    allowed[0, 2] = allowed[2, 0] = allowed[1, 0] = allowed[1, 2] = False
    expected = torch.tensor([math.log(1.5), 0.0, 0.0])
    checks.near(choice_losses(scores, allowed), expected)


def test_replies_that_are_not_allowed_are_not_pushed_away():
    scores = torch.zeros(3, 3, requires_grad=True)
    allowed = torch.tensor([[True, True, False], [True, True, True], [False, False, True]])
    choice_losses(scores, allowed).sum().backward()
    expected = torch.tensor([[-1 / 2, 1 / 2, 0], [1 / 3, -2 / 3, 1 / 3], [0, 0, 0]])
    checks.near(scores.grad, expected)


def test_words_and_states_are_cut_by_rows():
    words = Words(torch.arange(6).view(3, 2), torch.ones(3, 2), torch.tensor([[1, 0], [1, 2], [0, 0]]))
    states = States(words, torch.arange(12.0).view(3, 2, 2).half())
    assert len(words) == len(states) == 3
    assert words.mask.tolist() == [[True, False], [True, True], [False, False]]
    some = states[1:]
    assert some.words.tokens.tolist() == [[2, 3], [4, 5]] and some.mask.tolist() == words.mask[1:].tolist()
    assert some.values.tolist() == states.values[1:].tolist() and len(some) == 2
    assert states.exactly().values.dtype == torch.float32 and states.exactly().words is words


def test_a_ranker_without_a_way_of_its_own_compares_vectors():
    ranker = RankingModel(RankerConfig(), checks.word_backbone())
    states = ranker.states(checks.texts(checks.REPLIES))
    expected = ranker.queries(states, None) @ ranker.vectors(states).T
    torch.testing.assert_close(ranker.match(states, None, states), expected)
