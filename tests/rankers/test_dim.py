import pytest
import torch

from listenwell.rankers import RANKERS
from listenwell.rankers.config import RecurrentSettings
from listenwell.rankers.dim import DIM, Enhancement
from tests.rankers import checks

SMALL = {"model": "dim", "recurrent": RecurrentSettings(5)}
BODIES = {"words": checks.word_body, "bert": checks.bert_body}


def made(body=None):
    ranker = checks.make(DIM, body, **SMALL)
    torch.nn.init.normal_(ranker.head.weight)  # as it begins, its scores differ by a thousandth
    return ranker


@pytest.fixture(params=BODIES)
def ranker(request):
    return made(BODIES[request.param]())


def test_padding_moves_nothing(ranker):
    checks.padding_moves_nothing(ranker)


def test_neighbours_move_nothing(ranker):
    checks.neighbours_move_nothing(ranker)


def test_an_empty_persona_is_none(ranker):
    checks.an_empty_persona_is_none(ranker)


def test_every_weight_learns():
    checks.every_weight_learns(made())


def test_it_can_learn():
    checks.it_can_learn(made())


def pooled(lstm, values):
    """The maximum and the last states of one text, (words, width)."""
    found, (ends, _) = lstm(values)
    return torch.cat((found.amax(dim=0), ends.flatten()))


def enhanced(ranker, own, other):
    """[a; a'; a − a'; a ∘ a'], written out."""
    seen = (own @ other.T).softmax(dim=1) @ other
    return ranker.enhancement.projection(torch.cat((own, seen, own - seen, own * seen), dim=1)).relu()


def matched(ranker, parts, reply):
    """Vectors of a text's parts and of the reply."""
    lengths = [len(part) for part in parts]
    words = torch.cat([ranker.encoder(part)[0] for part in parts])
    spoken = ranker.encoder(reply)[0]
    each = enhanced(ranker, words, spoken).split(lengths)
    vectors = torch.stack([pooled(ranker.words, part) for part in each])
    return vectors, pooled(ranker.words, enhanced(ranker, spoken, words))


@torch.no_grad()
def test_scores_are_the_papers():
    ranker = made()
    found = checks.scores(ranker)
    for row, (context, persona) in enumerate(zip(checks.CONTEXTS, checks.PERSONAS, strict=True)):
        for column, reply in enumerate(checks.REPLIES):
            turns, sentences, spoken = checks.pair(ranker, context, persona, reply)
            vectors, to_context = matched(ranker, turns, spoken)
            known, to_persona = torch.zeros(20), torch.zeros(20)
            if sentences:
                facts, to_persona = matched(ranker, sentences, spoken)
                known = ranker.sentences(facts).softmax(dim=0).T[0] @ facts
            joined = torch.cat((pooled(ranker.turns, vectors), to_context, known, to_persona))
            checks.near(found[row, column], ranker.head(ranker.hidden(joined).relu())[0])


@torch.no_grad()
def test_the_enhancement_needs_no_concatenation():
    torch.manual_seed(0)
    enhancement = Enhancement(3, 7)
    own, seen = torch.randn(2, 1, 4, 3), torch.randn(2, 5, 4, 3)
    wide = own.expand_as(seen)
    whole = torch.cat((wide, seen, wide - seen, wide * seen), dim=3)
    checks.near(enhancement(own, seen), enhancement.projection(whole).relu())


def test_turns_have_an_order_and_sentences_have_none():
    ranker = made()
    assert checks.change_counts(ranker, {"contexts": [row[::-1] for row in checks.CONTEXTS]})
    checks.near(checks.scores(ranker, personas=[row[::-1] for row in checks.PERSONAS]), checks.scores(ranker))


def test_the_registry_knows_it():
    assert RANKERS.load("dim") is DIM
