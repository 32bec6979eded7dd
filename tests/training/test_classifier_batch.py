from dataclasses import replace

import numpy as np

from listenwell.training.classifier_batch import ClassifierExample, collate


def piece(tokens, types, last, targets=None, marks=None):
    given = {head: np.array(wanted, np.float32) for head, wanted in (targets or {}).items()}
    return ClassifierExample(np.array(tokens, np.int32), np.array(types, np.int8), last, given, marks)


FIRST = piece([2, 7, 3], [0, 0, 0], (1, 2), {"exploration": [1, 0, 0]})
SECOND = piece(
    [2, 8, 3, 9, 3],
    [0, 0, 0, 1, 1],
    (3, 4),
    {"exploration": [0, 0.5, 0.5], "interpretation": [0, 1, 0]},
    np.array([[-1, -1], [-1, -1], [-1, -1], [1, 0], [-1, -1]], np.int8),
)
THIRD = piece([2, 3], [1, 1], (1, 1))


def test_a_batch_worked_by_hand():
    batch = collate([FIRST, SECOND, THIRD], [[1, 2], [0]], 8, 3)
    assert batch.tokens.tolist() == [[2, 8, 3, 9, 3, 2, 3, 0], [2, 7, 3, 0, 0, 0, 0, 0], [0] * 8]
    assert batch.types.tolist() == [[0, 0, 0, 1, 1, 1, 1, 0], [0] * 8, [0] * 8]
    assert batch.segments.tolist() == [[1, 1, 1, 1, 1, 2, 2, 0], [1, 1, 1, 0, 0, 0, 0, 0], [0] * 8]
    assert batch.positions.tolist()[0] == [0, 1, 2, 3, 4, 0, 1, 0]
    # Texts are numbered as they stand: the second, the third, the first; padding is number 3.
    assert batch.owners.tolist() == [0, 0, 0, 0, 0, 1, 1, 3, 2, 2, 2, 3, 3, 3, 3, 3, *[3] * 8]
    assert batch.starts.tolist() == [0, 5, 8]
    assert (batch.weight, batch.size) == (3, 10)
    assert batch.types.dtype == batch.owners.dtype == np.int64


def test_each_head_has_the_texts_whose_label_it_knows():
    batch = collate([FIRST, SECOND, THIRD], [[1, 2], [0]], 8)
    found = {head: (numbers.tolist(), wanted.tolist()) for head, (numbers, wanted) in batch.targets.items()}
    assert found == {
        "exploration": ([0, 2], [[0, 0.5, 0.5], [1, 0, 0]]),
        "interpretation": ([0], [[0, 1, 0]]),
    }


def test_words_are_marked_where_they_stand_in_the_batch():
    batch = collate([FIRST, SECOND, THIRD], [[0, 1]], 8)
    places, marks = batch.marks
    assert (places.tolist(), marks.tolist()) == ([3 + 3], [[1, 0]])
    two = collate([FIRST, SECOND, THIRD], [[0, 1], [1]], 8)
    assert two.marks[0].tolist() == [6, 8 + 3]
    assert collate([FIRST, THIRD], [[0, 1]], 8).marks is None


def test_texts_count_once_whatever_is_known_of_them():
    assert [one.weight for one in (FIRST, SECOND, THIRD)] == [1, 1, 1]
    assert [len(one) for one in (FIRST, SECOND, THIRD)] == [3, 5, 2]
    alone = collate([THIRD], [[0]], 4)
    assert (alone.weight, dict(alone.targets)) == (1, {})


def test_known_vectors_are_used_where_all_texts_have_one():
    known = [replace(one, pooled=np.full(2, n, np.float32)) for n, one in enumerate((FIRST, SECOND, THIRD))]
    assert collate(known, [[2, 0], [1]], 8).pooled.tolist() == [[2, 2], [0, 0], [1, 1]]
    assert collate([*known[:2], THIRD], [[2, 0], [1]], 8).pooled is None
    assert collate([FIRST], [[0]], 8).pooled is None
