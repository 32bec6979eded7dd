import pytest
import torch

from listenwell.rankers import RANKERS
from listenwell.rankers.cross import CrossEncoder, joined
from tests.rankers import checks

BODIES = {"words": checks.word_body, "bert": checks.bert_body}


@pytest.fixture(params=BODIES)
def ranker(request):
    return checks.make(CrossEncoder, BODIES[request.param](), model="cross")


def test_padding_moves_nothing(ranker):
    checks.padding_moves_nothing(ranker)


def test_neighbours_move_nothing(ranker):
    checks.neighbours_move_nothing(ranker)


def test_an_empty_persona_is_none(ranker):
    checks.an_empty_persona_is_none(ranker)


def test_every_weight_learns_but_what_is_added_to_all():
    ranker = checks.make(CrossEncoder, checks.bert_body(), model="cross").train()
    given = [ranker.states(checks.texts(rows)) for rows in (checks.CONTEXTS, checks.PERSONAS, checks.REPLIES)]
    ranker.losses(*given, torch.ones(4, 4, dtype=torch.bool)).sum().backward()
    for name, parameter in ranker.named_parameters():
        if not name.endswith("bias"):  # added to all scores, or to all keys, it moves no softmax
            assert parameter.grad.isfinite().all() and parameter.grad.abs().sum() > 1e-6, name


def test_it_can_learn():
    checks.it_can_learn(checks.make(CrossEncoder, checks.bert_body(), model="cross"), steps=80, rate=0.01)


def test_parts_are_numbered_on():
    first = checks.texts([[[3, 4], [5]], [], [[6]]], length=4)
    second = checks.texts([[[7]], [[8, 9], [10]], [[11], [12]]], before=1, between=1)
    found = joined(first, second)
    assert found.tokens.tolist() == [
        [3, 4, 5, 0, 0, 7, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 8, 9, 0, 10, 0],
        [6, 0, 0, 0, 0, 11, 0, 12, 0, 0],
    ]
    assert found.parts.tolist() == [
        [1, 1, 2, 0, 0, 3, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 1, 1, 0, 2, 0],
        [1, 0, 0, 0, 0, 2, 0, 3, 0, 0],
    ]
    assert found.types.tolist() == torch.cat((first.types, second.types), 1).tolist()
    assert found.mask.tolist() == torch.cat((first.mask, second.mask), 1).tolist()


@torch.no_grad()
def test_every_pair_is_one_text_of_persona_context_and_reply():
    ranker = checks.make(CrossEncoder, checks.bert_body(), model="cross")
    found = checks.scores(ranker)
    for row, (context, persona) in enumerate(zip(checks.CONTEXTS, checks.PERSONAS, strict=True)):
        for column, reply in enumerate(checks.REPLIES):
            text = checks.texts([[*persona, *context, *reply]])
            # Whose words they are is told before they are joined.
            types = [checks.texts([part]).types[0] for part in (persona, context, reply) if part]
            text.types.copy_(torch.cat(types)[None])
            states = ranker.body(text)[0]
            expected = states.mean(dim=0) @ ranker.head.weight[0] + ranker.head.bias[0]
            checks.near(found[row, column], expected)


def test_nothing_is_known_before_a_pair_is_read():
    ranker = checks.make(CrossEncoder, checks.bert_body(), model="cross")
    states = ranker.states(checks.texts(checks.REPLIES))
    assert ranker.reads_pairs and not ranker.gives_vectors
    assert states.values.shape == (*states.words.tokens.shape, 0)


def test_the_registry_knows_it():
    assert RANKERS.load("cross") is CrossEncoder
