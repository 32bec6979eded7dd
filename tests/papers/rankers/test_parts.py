import pytest
import torch

from listenwell.papers.rankers.parts import Parts, aligned, bilstm
from listenwell.rankers.base import States, Words

# Rows with padding before, between and after parts; a number that is missing; a row without words.
NUMBERS = torch.tensor([[0, 1, 1, 0, 2, 0], [1, 3, 3, 3, 3, 3], [0, 0, 0, 0, 0, 0], [2, 2, 0, 2, 0, 0]])
PIECES = {  # (row, part): the columns of its words
    (0, 0): [1, 2],
    (0, 1): [4],
    (1, 0): [0],
    (1, 2): [1, 2, 3, 4, 5],
    (3, 1): [0, 1, 3],
}
VALUES = torch.randn(4, 6, 3, generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def lstm():
    torch.manual_seed(0)
    return bilstm(3, 2)


def test_mask_and_means_by_hand():
    parts = Parts(torch.tensor([[1, 1, 0, 2], [0, 0, 0, 0]]))
    values = torch.tensor([[[1.0, 2], [3, 6], [100, 100], [7, 8]], [[9.0, 9]] * 4])
    assert parts.mask.tolist() == [[True, True], [False, False]]
    assert parts.means(values).tolist() == [[[2, 4], [7, 8]], [[0, 0], [0, 0]]]


def test_each_part_is_read_as_if_alone(lstm):
    parts = Parts(NUMBERS)
    reading = parts.read(lstm, VALUES)
    words, last, pooled = torch.zeros(4, 6, 4), torch.zeros(4, 3, 4), torch.zeros(4, 3, 8)
    for (row, part), columns in PIECES.items():
        found, (ends, _) = lstm(VALUES[row, columns])
        words[row, columns] = found
        last[row, part] = torch.cat((ends[0], ends[1]))
        pooled[row, part] = torch.cat((found.amax(dim=0), last[row, part]))
    torch.testing.assert_close(reading.words(), words)
    torch.testing.assert_close(reading.last(), last)
    torch.testing.assert_close(reading.pooled(), pooled)
    assert {tuple(place) for place in parts.mask.nonzero().tolist()} == PIECES.keys()


def test_what_stands_in_padding_is_not_read(lstm):
    garbage = torch.where(NUMBERS[:, :, None] > 0, VALUES, 1e6)
    first, second = (Parts(NUMBERS).read(lstm, values) for values in (VALUES, garbage))
    assert torch.equal(first.words(), second.words()) and torch.equal(first.pooled(), second.pooled())
    assert torch.allclose(Parts(NUMBERS).means(VALUES), Parts(NUMBERS).means(garbage))


def test_nothing_to_read_is_zeros(lstm):
    parts = Parts(torch.zeros(2, 5, dtype=torch.int64))
    reading = parts.read(lstm, torch.ones(2, 5, 3))
    assert parts.mask.tolist() == [[False], [False]]
    assert torch.equal(reading.words(), torch.zeros(2, 5, 4))
    assert torch.equal(reading.pooled(), torch.zeros(2, 1, 8))
    assert torch.equal(parts.means(torch.ones(2, 5, 3)), torch.zeros(2, 1, 3))


def test_gradients_reach_words_and_no_padding(lstm):
    values = VALUES.clone().requires_grad_()
    reading = Parts(NUMBERS).read(lstm, values)
    (reading.pooled().sum() + reading.words().sum()).backward()
    assert torch.equal(values.grad.abs().sum(dim=2) > 0, NUMBERS > 0)


def test_aligned_rows_have_no_gaps():
    states = States(Words(NUMBERS, NUMBERS, NUMBERS), VALUES)
    values, mask = aligned(states)
    assert mask.sum(dim=1).tolist() == [3, 6, 0, 3] and values.shape == (4, 6, 3)
    assert torch.equal(values[0, :3], VALUES[0, [1, 2, 4]])
    assert torch.equal(values[3, :3], VALUES[3, [0, 1, 3]])
    assert mask[0].tolist() == [True] * 3 + [False] * 3
    values, mask = aligned(states[2:])
    assert values.shape == (2, 3, 3) and mask.tolist() == [[False] * 3, [True] * 3]
    values, mask = aligned(states[2:3])
    assert values.shape == (1, 1, 3) and mask.tolist() == [[False]]
