import numpy as np
import pytest

from listenwell.papers.comae.inputs import NOTHING
from listenwell.papers.comae.runtime import ComaeRuntime
from listenwell.papers.comae.scoring import score
from tests.papers.comae.talks import tiny_comae, told_examples


@pytest.fixture
def runtime(tiny_llama):
    model, inputs = tiny_comae(tiny_llama, loud=True)
    return ComaeRuntime(model, inputs.vocabulary)


def nll_by_steps(runtime, states, labels):
    """The negative log-likelihood of each row's labels, token by token through the engine."""
    total = np.zeros(len(labels))
    for place in range(len(labels[0])):
        logits = runtime.logits(states).astype(np.float64)
        logits -= logits.max(axis=1, keepdims=True)
        logits -= np.log(np.exp(logits).sum(axis=1, keepdims=True))
        total -= [row[label[place]] for row, label in zip(logits, labels, strict=True)]
        if place + 1 < len(labels[0]):
            states = runtime.step(states, [[label[place]] for label in labels])
    return total


def test_token_by_token_it_is_the_model_that_was_trained(runtime):
    pieces = [runtime.inputs.encode(example, 256) for example in told_examples(4)]
    expected = score(runtime.model, pieces, ("gold",)).nll["gold"]
    for piece, nll in zip(pieces, expected, strict=True):
        state = runtime.begin(runtime.read([piece.columns[: piece.context]]), piece.factors[None])
        assert nll_by_steps(runtime, state, [piece.labels]) == pytest.approx([nll], rel=1e-4)


def test_rows_with_plans_of_their_own_share_one_context(runtime):
    piece = runtime.inputs.encode(told_examples(1)[0], 256)
    plans = np.array([[1, 0, 0, 2, 3], [0, 1, 1, 7, 8], [1, 0, 0, 2, 3]])
    state = runtime.read([piece.columns[: piece.context]])
    batch_size = runtime.begin(runtime.pick(state, [0, 0, 0]), plans)
    nlls = nll_by_steps(runtime, batch_size, [piece.labels] * 3)
    assert nlls[0] == pytest.approx(nlls[2]) and nlls[0] != pytest.approx(nlls[1], rel=1e-3)
    for plan, nll in zip(plans, nlls, strict=True):
        alone = runtime.begin(runtime.pick(state, [0]), plan[None])
        assert nll_by_steps(runtime, alone, [piece.labels]) == pytest.approx([nll], rel=1e-4)


def test_contexts_of_any_length_are_read_side_by_side(runtime):
    examples = told_examples(4)
    contexts = [runtime.inputs.context(example.context, 256).columns for example in examples]
    assert len({len(context) for context in contexts}) > 1
    batch_size, apart = runtime.read(contexts), [runtime.read([context]) for context in contexts]
    joined = runtime.join(apart)
    plans = np.array([runtime.inputs.numbers(example.reply.factors) for example in examples])
    for name in runtime.model.config.factors:
        found = [runtime.factor_probabilities(state, name, plans) for state in (batch_size, joined)]
        assert found[0] == pytest.approx(found[1], abs=1e-4)
        assert found[0].sum(-1) == pytest.approx(np.ones(found[0].shape[:2]))
    for contexts_read in (batch_size, joined):
        state = runtime.step(runtime.begin(contexts_read, plans), [[5, 6]] * len(plans))
        for row, (context, plan) in enumerate(zip(contexts, plans, strict=True)):
            alone = runtime.step(runtime.begin(runtime.read([context]), plan[None]), [[5, 6]])
            assert runtime.logits(state)[row] == pytest.approx(runtime.logits(alone)[0], abs=1e-3)


def test_picked_rows_leave_the_state_as_it_is(runtime):
    piece = runtime.inputs.encode(told_examples(1)[0], 256)
    state = runtime.read([piece.columns[: piece.context]])
    before = runtime.logits(state).copy()
    runtime.begin(runtime.pick(state, [0, 0]), np.full((2, 5), NOTHING))
    again = runtime.begin(runtime.pick(state, [0]), np.full((1, 5), NOTHING))
    assert np.array_equal(runtime.logits(state), before)
    assert again.known.shape[1] == piece.context + 1
