import pytest
import torch

from listenwell.errors import InputError
from listenwell.rankers import RANKERS
from listenwell.rankers.config import PolySettings
from listenwell.rankers.poly import PolyEncoder
from tests.rankers import checks

SMALL = {"model": "poly", "poly": PolySettings(codes=3)}
BODIES = {"words": checks.word_body, "bert": checks.bert_body}


@pytest.fixture(params=BODIES)
def ranker(request):
    return checks.make(PolyEncoder, BODIES[request.param](), **SMALL)


def test_padding_moves_nothing(ranker):
    checks.padding_moves_nothing(ranker)


def test_neighbours_move_nothing(ranker):
    checks.neighbours_move_nothing(ranker)


def test_an_empty_persona_is_none(ranker):
    checks.an_empty_persona_is_none(ranker)


def test_it_learns():
    checks.every_weight_learns(checks.make(PolyEncoder, **SMALL))
    checks.it_can_learn(checks.make(PolyEncoder, **SMALL))


@torch.no_grad()
def test_scores_are_the_papers(ranker):
    found = checks.scores(ranker)
    for row, (context, persona) in enumerate(zip(checks.CONTEXTS, checks.PERSONAS, strict=True)):
        for column, reply in enumerate(checks.REPLIES):
            turns, sentences, spoken = checks.pair(ranker, context, persona, reply)
            words = torch.cat([*turns, *sentences])
            answer = spoken.mean(dim=0)
            products = []
            for code in ranker.codes:
                seen = sum(
                    share * word for share, word in zip((words @ code).softmax(dim=0), words, strict=True)
                )
                products.append(seen @ answer)
            shares = torch.stack(products).softmax(dim=0)
            checks.near(found[row, column], sum(s * p for s, p in zip(shares, products, strict=True)).float())


def test_codes_are_as_many_as_asked_and_told_apart():
    ranker = checks.make(PolyEncoder, model="poly", poly=PolySettings(codes=5))
    assert ranker.codes.shape == (5, checks.WIDTH)
    assert not ranker.gives_vectors and not ranker.reads_pairs
    assert len({tuple(code.tolist()) for code in ranker.codes}) == 5
    with pytest.raises(InputError, match=r"poly.codes is 0"):
        PolySettings(codes=0)


def test_the_registry_knows_it():
    assert RANKERS.load("poly") is PolyEncoder
