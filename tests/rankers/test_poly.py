import pytest
import torch

from listenwell.errors import InputError
from listenwell.rankers.config import PolySettings
from tests.rankers import checks


@torch.no_grad()
@pytest.mark.parametrize("backbone", checks.BACKBONES)
def test_scores_are_the_papers(backbone):
    ranker = checks.make("poly", checks.BACKBONES[backbone]())
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
    ranker = checks.make("poly", poly=PolySettings(codes=5))
    assert ranker.codes.shape == (5, checks.WIDTH)
    assert not ranker.gives_vectors and not ranker.reads_pairs
    assert len({tuple(code.tolist()) for code in ranker.codes}) == 5
    with pytest.raises(InputError, match=r"poly.codes is 0"):
        PolySettings(codes=0)
