import torch

from tests.rankers import checks


@torch.no_grad()
def test_scores_are_the_papers():
    ranker = checks.make("hlstm")

    def last(lstm, values):
        return lstm(values)[1][0].flatten()

    for row, (context, persona) in enumerate(zip(checks.CONTEXTS, checks.PERSONAS, strict=True)):
        turns, sentences, reply = checks.pair(ranker, context, persona, checks.REPLIES[2])
        asked = last(ranker.turns, torch.stack([last(ranker.utterances, turn) for turn in turns]))
        if sentences:
            known = torch.stack([last(ranker.utterances, sentence) for sentence in sentences]).mean(dim=0)
            asked = (asked + known) / 2
        checks.near(checks.scores(ranker)[row, 2], asked @ last(ranker.utterances, reply))


def test_turns_have_an_order_and_sentences_have_none():
    ranker = checks.make("hlstm")
    assert checks.change_counts(ranker, {"contexts": [row[::-1] for row in checks.CONTEXTS]})
    checks.near(checks.scores(ranker, personas=[row[::-1] for row in checks.PERSONAS]), checks.scores(ranker))
