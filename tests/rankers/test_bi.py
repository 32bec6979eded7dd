import math

import pytest
import torch

from listenwell.rankers import RANKERS
from listenwell.rankers.bi import FIRST_SCALE, BiEncoder
from listenwell.rankers.bodies import WordBody
from listenwell.rankers.config import BiSettings
from tests.rankers import checks

BODIES = {"words": checks.word_body, "bert": checks.bert_body}
PLAIN, COSINE = {"model": "bi"}, {"model": "bi", "bi": BiSettings(cosine=True)}
# Words 1 to 4 are (1, 0), (0, 1), (2, 0), (0, 4).
BY_HAND = torch.tensor([[9, 9], [1, 0], [0, 1], [2, 0], [0, 4.0]])


@pytest.fixture(params=BODIES)
def body(request):
    return BODIES[request.param]()


@pytest.fixture(params=[PLAIN, COSINE], ids=["product", "cosine"])
def ranker(request, body):
    return checks.make(BiEncoder, body, **request.param)


def test_padding_moves_nothing(ranker):
    checks.padding_moves_nothing(ranker)


def test_neighbours_move_nothing(ranker):
    checks.neighbours_move_nothing(ranker)


def test_an_empty_persona_is_none(ranker):
    checks.an_empty_persona_is_none(ranker)


@pytest.mark.parametrize("settings", [PLAIN, COSINE], ids=["product", "cosine"])
def test_every_weight_learns(settings):
    checks.every_weight_learns(checks.make(BiEncoder, **settings))
    checks.it_can_learn(checks.make(BiEncoder, **settings), steps=120)


def test_products_of_means_by_hand():
    ranker = checks.make(BiEncoder, WordBody(BY_HAND), **PLAIN)
    # Context mean((1, 0), (0, 1), (0, 1)) = (1/3, 2/3), persona mean((2, 0), (0, 4)) = (1, 2).
    contexts, personas = [[[1], [2, 2]], [[3]]], [[[3, 4]], []]
    found = checks.scores(ranker, contexts, personas, [[[1]], [[2, 4]]])
    # Asked: the mean of both (2/3, 4/3); without a persona (2, 0). Replies (1, 0) and (0, 2.5).
    checks.near(found, torch.tensor([[2 / 3, 10 / 3], [2.0, 0.0]]))


def test_cosines_by_hand():
    ranker = checks.make(BiEncoder, WordBody(BY_HAND), **COSINE)
    found = checks.scores(ranker, [[[1, 1, 2]], [[3]]], [[], [[4]]], [[[1]], [[2, 4]]])
    # (2, 1) / √5; mean of (2, 0) and (0, 4) is (1, 2), its direction (1, 2) / √5.
    expected = FIRST_SCALE / math.sqrt(5) * torch.tensor([[2.0, 1.0], [1.0, 2.0]])
    checks.near(found, expected)
    with torch.no_grad():
        ranker.scale.fill_(math.log(3))
    checks.near(
        checks.scores(ranker, [[[1, 1, 2]], [[3]]], [[], [[4]]], [[[1]], [[2, 4]]]), expected * 3 / 20
    )


@torch.no_grad()
def test_scores_are_products_of_its_vectors(ranker):
    context, persona, replies = (
        ranker.states(checks.texts(rows)) for rows in (checks.CONTEXTS, checks.PERSONAS, checks.REPLIES)
    )
    vectors = ranker.vectors(replies)
    assert ranker.gives_vectors and vectors.shape == (4, ranker.vector_width)
    checks.near(ranker.asked(context, persona) @ vectors.T, checks.scores(ranker))
    if ranker.scale is not None:
        checks.near(vectors.norm(dim=1), torch.ones(4))


def test_the_registry_knows_it():
    assert RANKERS.load("bi") is BiEncoder
