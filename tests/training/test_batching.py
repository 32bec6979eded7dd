import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from listenwell.training.batching import Epoch, bucket, pack
from listenwell.training.recipe import BatchRecipe
from listenwell.training.tokens import Encoded, collate


def sequence(number, length):
    """Tokens that tell which sequence and which place they are."""
    targets = np.zeros(length, bool)
    targets[length // 2 :] = True
    targets[0] = False
    return Encoded((number * 1000 + np.arange(length)).astype(np.int32), targets)


lengths = st.lists(st.integers(2, 64), min_size=1, max_size=40)
recipes = st.builds(
    BatchRecipe,
    st.sampled_from(["packed", "bucketed"]),
    tokens=st.sampled_from([128, 256, 512]),
    row_tokens=st.just(64),
    accumulate=st.sampled_from([1, 2]),
)


@given(lengths, recipes, st.integers(0, 3), st.sampled_from([1, 2, 3]))
def test_every_target_is_seen_once_whatever_the_batches_and_processes(sizes, recipe, number, processes):
    sequences = [sequence(i, size) for i, size in enumerate(sizes)]
    epoch = Epoch(sequences, collate, recipe, seed=5, number=number)
    seen, told = [], 0
    for process in range(processes):
        steps = list(epoch.steps(process=process, processes=processes))
        assert len(steps) == len(epoch)
        told = sum(step.targets for step in steps)
        seen += [int(label) for step in steps for batch in step.batches for label in batch.labels]
    wanted = [int(token) for s in sequences for token in s.tokens[s.targets]]
    assert sorted(seen) == sorted(wanted)
    assert told == len(wanted)


@given(lengths, recipes)
def test_each_target_is_predicted_from_the_place_before_it_in_its_own_sequence(sizes, recipe):
    sequences = [sequence(i, size) for i, size in enumerate(sizes)]
    for step in Epoch(sequences, collate, recipe, 1, 0).steps():
        for batch in step.batches:
            assert (batch.tokens.reshape(-1)[batch.sources] == batch.labels - 1).all()
            assert (batch.positions[batch.segments > 0] == batch.tokens[batch.segments > 0] % 1000).all()
            assert batch.tokens.size <= recipe.tokens or recipe.batching == "bucketed"


def test_the_order_depends_on_seed_and_epoch_alone():
    sequences = [sequence(i, 20) for i in range(30)]
    recipe = BatchRecipe("packed", 128, 64)

    def labels(seed, number):
        return [
            list(b.labels) for s in Epoch(sequences, collate, recipe, seed, number).steps() for b in s.batches
        ]

    assert labels(1, 0) == labels(1, 0)
    assert labels(1, 0) != labels(2, 0)
    assert labels(1, 0) != labels(1, 1)


def test_an_epoch_goes_on_from_any_step():
    sequences = [sequence(i, 20) for i in range(30)]
    epoch = Epoch(sequences, collate, BatchRecipe("packed", 128, 64), 1, 0)
    whole = [step.batches[0].labels.tolist() for step in epoch.steps()]
    assert [step.batches[0].labels.tolist() for step in epoch.steps(first=3)] == whole[3:]


def test_packed_batches_have_one_shape_even_the_last():
    sequences = [sequence(i, 30) for i in range(31)]
    epoch = Epoch(sequences, collate, BatchRecipe("packed", 256, 64), 1, 0)
    assert {batch.tokens.shape for step in epoch.steps() for batch in step.batches} == {(4, 64)}


def test_parts_keep_memory_small_and_lose_nothing():
    sequences = [sequence(i, 30) for i in range(31)]
    epoch = Epoch(sequences, collate, BatchRecipe("packed", 512, 64), 1, 0)
    small = [batch for step in epoch.steps(part_tokens=128) for batch in step.batches]
    assert {batch.tokens.shape for batch in small} == {(2, 64)}
    whole = [batch for step in epoch.steps() for batch in step.batches]
    assert sorted(t for b in small for t in b.labels) == sorted(t for b in whole for t in b.labels)


def test_packing_worked_by_hand():
    assert pack(np.array([5, 4, 3, 2, 6]), 8) == [[0, 2], [1, 3], [4]]


def test_buckets_worked_by_hand():
    # By length: 1, 4 (2 each), 3 (3), 2 (9), 0, 5 (10 each). Four rows of width 9 are 36 tokens, over 20;
    # two of width 10 are 20, which fits; a third would be 30.
    groups = bucket(np.arange(6), np.array([10, 2, 9, 3, 2, 10]), 20, np.random.default_rng(0))
    assert sorted(sorted(row[0] for row in group) for group in groups) == [[0, 2], [1, 3, 4], [5]]


def numbers_of(step):
    """Which sequences stand in which of a step's batches."""
    return [sorted({int(token) // 1000 for token in batch.labels}) for batch in step.batches]


@given(lengths, st.integers(2, 9), st.integers(0, 3), st.sampled_from([1, 2, 3]))
def test_of_batches_of_examples_every_one_is_seen_once(sizes, examples, number, processes):
    sequences = [sequence(i, size) for i, size in enumerate(sizes)]
    epoch = Epoch(sequences, collate, BatchRecipe("examples", examples=examples), 5, number)
    seen = []
    for process in range(processes):
        steps = list(epoch.steps(process=process, processes=processes))
        assert len(steps) == len(epoch)
        seen += [one for step in steps for batch in numbers_of(step) for one in batch]
    lonely = len(sizes) % examples == 1
    assert len(epoch) == len(sizes) // examples + (len(sizes) % examples > 1)
    assert len(seen) == len(set(seen)) == len(sizes) - lonely
    whole = list(epoch.steps())
    counts = sorted(len(numbers_of(step)[0]) for step in whole)
    short = [len(sizes) % examples] if len(sizes) % examples > 1 else []
    assert counts == sorted([examples] * (len(sizes) // examples) + short)
    # Targets are told of the whole step, whoever shares it.
    assert [step.targets for step in whole] == [
        sum(sequences[i].weight for i in numbers_of(step)[0]) for step in whole
    ]


def test_a_lonely_last_example_is_another_one_in_another_epoch():
    sequences = [sequence(i, 10) for i in range(9)]
    recipe, left_out = BatchRecipe("examples", examples=4), set()
    for number in range(20):
        steps = Epoch(sequences, collate, recipe, 1, number).steps()
        seen = {one for step in steps for batch in numbers_of(step) for one in batch}
        assert len(seen) == 8
        left_out |= set(range(9)) - seen
    assert len(left_out) > 4


def test_examples_of_a_batch_are_never_parted_on_one_machine():
    # On a CPU other batches are computed in parts; here each would lose its wrong answers.
    sequences = [sequence(i, 60) for i in range(12)]
    epoch = Epoch(sequences, collate, BatchRecipe("examples", examples=6), 1, 0)
    assert [len(step.batches) for step in epoch.steps(part_tokens=64)] == [1, 1]
    assert [numbers_of(step) for step in epoch.steps(part_tokens=64)] == [
        numbers_of(s) for s in epoch.steps()
    ]
    assert [numbers_of(step) for step in epoch.steps(first=1)] == [numbers_of(s) for s in epoch.steps()][1:]


def test_processes_share_a_batch_of_examples_and_may_have_none():
    sequences = [sequence(i, 10) for i in range(5)]
    epoch = Epoch(sequences, collate, BatchRecipe("examples", examples=3), 1, 0)
    shares = [[numbers_of(step) for step in epoch.steps(process=p, processes=3)] for p in range(3)]
    sizes = [sorted(sum(map(len, share[step])) for share in shares) for step in range(2)]
    assert sorted(sizes) == [[0, 1, 1], [1, 1, 1]]


def test_examples_are_drawn_whatever_their_length():
    # By length, the wrong answers would be as long as the right one: nothing could be learned from that.
    sequences = [sequence(i, 4 + i) for i in range(60)]
    order = np.random.default_rng([1, 0]).permutation(60)
    epoch = Epoch(sequences, collate, BatchRecipe("examples", examples=6), 1, 0)
    wanted = [[sorted(map(int, order[first : first + 6]))] for first in range(0, 60, 6)]
    assert [numbers_of(step) for step in epoch.steps()] == wanted
    assert all(max(numbers) - min(numbers) > 20 for (numbers,) in wanted)


@pytest.mark.parametrize("height", [0, 5])
def test_rows_of_padding_fill_up(height):
    batch = collate([sequence(0, 6), sequence(1, 4)], [[0, 1]], 12, height)
    assert batch.tokens.shape == (max(1, height), 12)
    assert batch.segments[0].tolist() == [1] * 6 + [2] * 4 + [0] * 2
    assert batch.size == 10
