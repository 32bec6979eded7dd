import torch

from listenwell.papers.rankers.dim import Enhancement
from tests.rankers import checks


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
    ranker = checks.make("dim")
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
    ranker = checks.make("dim")
    assert checks.change_counts(ranker, {"contexts": [row[::-1] for row in checks.CONTEXTS]})
    checks.near(checks.scores(ranker, personas=[row[::-1] for row in checks.PERSONAS]), checks.scores(ranker))
