import numpy as np
import pytest
import torch

from listenwell.rankers import RANKERS, inference
from listenwell.rankers.inference import match, score, score_pools, states_of
from listenwell.rankers.inputs import NOTHING
from tests.rankers.tiny_rankers import REPLIES, TALKS, texts, tiny_ranker

MODELS = [(name, "pretrained") for name in RANKERS] + [
    ("bi", "words"),
    ("cobert", "words"),
    ("hlstm", "words"),
]


@pytest.fixture(params=MODELS, ids="-".join)
def ranker(request, tiny_encoder):
    model, backbone = request.param
    return tiny_ranker(tiny_encoder, model, backbone=backbone)


def one_by_one(ranker, contexts, personas, replies):
    found = [
        [score(ranker, [context], [persona], [reply])[0, 0] for reply in replies]
        for context, persona in zip(contexts, personas, strict=True)
    ]
    return np.array(found)


def test_batches_and_parts_give_the_same_as_one_at_a_time(ranker, monkeypatch):
    model, inputs = ranker
    given = texts(inputs)
    joint = score(model, *given)
    assert joint.shape == (3, 5) and joint.dtype == np.float32 and joint.std() > 1e-3
    np.testing.assert_allclose(joint, one_by_one(model, *given), atol=2e-4, rtol=1e-4)
    for tokens, places in ((1, 1), (20, 900), (60, 2500)):
        monkeypatch.setattr(inference, "CPU_TOKENS", tokens)
        monkeypatch.setattr(inference, "CPU_PLACES", places)
        np.testing.assert_allclose(score(model, *given), joint, atol=2e-4, rtol=1e-4)


def test_pools_read_together_give_the_same_as_each_by_itself(ranker):
    model, inputs = ranker
    contexts, personas, replies = texts(inputs)
    pools = [
        (contexts[:2], personas[:2], replies[:3]),
        (contexts[2:], [NOTHING], replies[3:]),
        (contexts, personas, replies),
        ([], [], replies),
    ]
    for joint, pool in zip(score_pools(model, pools), pools, strict=True):
        np.testing.assert_allclose(joint, score(model, *pool), atol=2e-4, rtol=1e-4)


def test_parts_are_no_larger_than_memory_allows(tiny_encoder, monkeypatch):
    model, inputs = tiny_ranker(tiny_encoder)
    context, persona, replies = (states_of(model, given) for given in texts(inputs))
    longest = max(context.words.tokens.shape[1], persona.words.tokens.shape[1])
    places = longest * replies.words.tokens.shape[1]
    asked, real = [], model.match

    def counted(context, persona, replies):
        asked.append((len(context), len(replies)))
        return real(context, persona, replies)

    monkeypatch.setattr(model, "match", counted)
    for pairs, parts in (
        (15, [(3, 5)]),
        (14, [(2, 5), (1, 5)]),
        (5, [(1, 5)] * 3),
        (3, [(1, 3), (1, 2)] * 3),
    ):
        asked.clear()
        monkeypatch.setattr(inference, "CPU_PLACES", pairs * places)
        match(model, context, persona, replies)
        assert asked == parts


def test_equal_texts_are_read_once_and_all_are_counted(tiny_encoder, monkeypatch):
    model, inputs = tiny_ranker(tiny_encoder)
    read, real = [], model.states

    def counted(words):
        read.append(len(words))
        return real(words)

    monkeypatch.setattr(model, "states", counted)
    told = []
    found = states_of(model, inputs.replies(REPLIES * 3), told.append)
    assert sum(read) == len(set(REPLIES)) == 4 and sum(told) == len(found) == 15
    assert torch.equal(found.values[0], found.values[4]) and torch.equal(found.values[:5], found.values[5:10])
    # The same words said by somebody else are another text.
    read.clear()
    spoken, heard = inputs.replies(["great"])[0], inputs.contexts([TALKS[2]])[0]
    other = type(spoken)(spoken.tokens, 1 - spoken.types, spoken.parts)
    states_of(model, [spoken, other, heard, spoken])
    assert sum(read) == 3


def test_states_keep_the_order_of_texts(tiny_encoder):
    model, inputs = tiny_ranker(tiny_encoder)
    given = inputs.replies(REPLIES)
    found = states_of(model, given)
    for row, text in enumerate(given):
        alone = states_of(model, [text]).values[0]
        torch.testing.assert_close(found.values[row, : len(text)], alone, atol=1e-5, rtol=1e-5)
    assert found.values.dtype == torch.float32 and not found.values.requires_grad


def test_without_personas_none_is_given(tiny_encoder, monkeypatch):
    model, inputs = tiny_ranker(tiny_encoder)
    contexts, personas, replies = texts(inputs)
    monkeypatch.setattr(
        model,
        "match",
        lambda context, persona, replies: torch.full((len(context), len(replies)), persona is None),
    )
    assert score(model, contexts, [NOTHING] * 3, replies).all()
    assert not score(model, contexts, personas, replies).any()


def test_nothing_asked_nothing_found(ranker):
    model, inputs = ranker
    contexts, personas, replies = texts(inputs)
    assert score(model, contexts, personas, []).shape == (3, 0)
    assert score(model, [], [], replies).shape == (0, 5)
