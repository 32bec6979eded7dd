"""What every ranker must pass: one that is registered is checked here at once."""

import itertools

import pytest
import torch

from listenwell.rankers import RANKERS
from listenwell.rankers.base import RankingModel
from listenwell.rankers.config import HOPS, POOLINGS, BiSettings, CobertSettings
from tests.rankers import checks

COSINE = "bi by cosine"
FORMS = {name: (name, {}) for name in RANKERS} | {
    COSINE: ("bi", {"bi": BiSettings(cosine=True)}),
    "cobert of means": ("cobert", {"cobert": CobertSettings(pooling="mean")}),
    "cobert of both": ("cobert", {"cobert": CobertSettings(pooling="both")}),
    "cobert weighted": ("cobert", {"cobert": CobertSettings(weighted=True)}),
    "cobert with all": ("cobert", {"cobert": CobertSettings(HOPS, "both", weighted=True)}),
}
"""A ranker's name and settings; its defaults, and what changes how it matches."""
EVERY = list(itertools.product(FORMS, checks.BACKBONES))
COBERTS = [
    (hops, pooling)
    for count in range(1, len(HOPS) + 1)
    for hops in itertools.combinations(HOPS, count)
    for pooling in POOLINGS
]
VECTORS = {"bi": checks.WIDTH, COSINE: checks.WIDTH, "memnet": checks.WIDTH, "hlstm": 10}
"""Who can be searched by inner product, and how wide the vectors are."""
LESSONS = {"bi": {"steps": 120}, COSINE: {"steps": 120}, "cross": {"steps": 80, "rate": 0.01}}
"""Who takes longer to learn."""


def made(form, backbone):
    model, settings = FORMS[form]
    return checks.make(model, checks.BACKBONES[backbone](), **settings)


@pytest.fixture(params=EVERY, ids="-".join)
def ranker(request):
    return made(*request.param)


@pytest.fixture(params=FORMS)
def learner(request):
    """A form's name, and a ranker with a backbone that it can learn from."""
    # Who reads pairs matches by the backbone's attention: of word vectors alone it hears the reply's only.
    backbone = "bert" if RANKERS.load(FORMS[request.param][0]).reads_pairs else "words"
    return request.param, made(request.param, backbone)


def test_padding_moves_nothing(ranker):
    checks.padding_moves_nothing(ranker)


def test_neighbours_move_nothing(ranker):
    checks.neighbours_move_nothing(ranker)


def test_an_empty_persona_is_none(ranker):
    checks.an_empty_persona_is_none(ranker)


def test_every_weight_learns(learner):
    _, ranker = learner
    # A bias of a pair's backbone or head is added to all scores, or to all keys: it moves no softmax.
    checks.every_weight_learns(ranker, but=["bias"] if ranker.reads_pairs else [])


def test_it_can_learn(learner):
    form, ranker = learner
    checks.it_can_learn(ranker, **LESSONS.get(form, {}))


@pytest.mark.parametrize(("hops", "pooling"), COBERTS, ids=str)
def test_every_ablation_of_cobert_keeps_the_rules(hops, pooling):
    ranker = checks.make("cobert", cobert=CobertSettings(hops, pooling))
    checks.padding_moves_nothing(ranker)
    checks.an_empty_persona_is_none(ranker)
    checks.every_weight_learns(ranker)


@torch.no_grad()
@pytest.mark.parametrize(("form", "backbone"), EVERY)
def test_scores_are_products_of_vectors_where_there_are_some(form, backbone):
    ranker = made(form, backbone)
    assert ranker.gives_vectors == (form in VECTORS)
    if form in VECTORS:
        context, persona, replies = (
            ranker.states(checks.texts(rows)) for rows in (checks.CONTEXTS, checks.PERSONAS, checks.REPLIES)
        )
        vectors = ranker.vectors(replies)
        assert vectors.shape == (4, ranker.vector_width) == (4, VECTORS[form])
        checks.near(ranker.queries(context, persona) @ vectors.T, checks.scores(ranker))


def test_names_are_of_different_rankers():
    """Which name is whose, the sums worked by hand in the rankers' own tests say."""
    classes = [RANKERS.load(name) for name in RANKERS]
    assert all(issubclass(one, RankingModel) for one in classes) and len(set(classes)) == len(classes)
