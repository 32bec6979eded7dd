import pytest
import torch

from listenwell.rankers import RANKERS
from listenwell.rankers.config import RecurrentSettings
from listenwell.rankers.hlstm import HLSTM
from tests.rankers import checks

SMALL = {"model": "hlstm", "recurrent": RecurrentSettings(5)}
BODIES = {"words": checks.word_body, "bert": checks.bert_body}


@pytest.fixture(params=BODIES)
def ranker(request):
    return checks.make(HLSTM, BODIES[request.param](), **SMALL)


def test_padding_moves_nothing(ranker):
    checks.padding_moves_nothing(ranker)


def test_neighbours_move_nothing(ranker):
    checks.neighbours_move_nothing(ranker)


def test_an_empty_persona_is_none(ranker):
    checks.an_empty_persona_is_none(ranker)


def test_every_weight_learns():
    checks.every_weight_learns(checks.make(HLSTM, **SMALL))


def test_it_can_learn():
    checks.it_can_learn(checks.make(HLSTM, **SMALL))


@torch.no_grad()
def test_scores_are_the_papers():
    ranker = checks.make(HLSTM, **SMALL)

    def last(lstm, values):
        return lstm(values)[1][0].flatten()

    for row, (context, persona) in enumerate(zip(checks.CONTEXTS, checks.PERSONAS, strict=True)):
        turns, sentences, reply = checks.pair(ranker, context, persona, checks.REPLIES[2])
        asked = last(ranker.turns, torch.stack([last(ranker.utterances, turn) for turn in turns]))
        if sentences:
            known = torch.stack([last(ranker.utterances, sentence) for sentence in sentences]).mean(dim=0)
            asked = (asked + known) / 2
        checks.near(checks.scores(ranker)[row, 2], asked @ last(ranker.utterances, reply))


@torch.no_grad()
def test_scores_are_products_of_its_vectors():
    ranker = checks.make(HLSTM, **SMALL)
    context, persona, replies = (
        ranker.states(checks.texts(rows)) for rows in (checks.CONTEXTS, checks.PERSONAS, checks.REPLIES)
    )
    assert ranker.gives_vectors and ranker.vectors(replies).shape == (4, 10)
    checks.near(ranker.asked(context, persona) @ ranker.vectors(replies).T, checks.scores(ranker))


def test_turns_have_an_order_and_sentences_have_none():
    ranker = checks.make(HLSTM, **SMALL)
    assert checks.change_counts(ranker, {"contexts": [row[::-1] for row in checks.CONTEXTS]})
    checks.near(checks.scores(ranker, personas=[row[::-1] for row in checks.PERSONAS]), checks.scores(ranker))


def test_the_registry_knows_it():
    assert RANKERS.load("hlstm") is HLSTM
