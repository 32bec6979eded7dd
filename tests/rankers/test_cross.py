import torch

from listenwell.rankers.cross import joined
from tests.rankers import checks


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
    ranker = checks.make("cross", checks.bert_backbone())
    found = checks.scores(ranker)
    for row, (context, persona) in enumerate(zip(checks.CONTEXTS, checks.PERSONAS, strict=True)):
        for column, reply in enumerate(checks.REPLIES):
            text = checks.texts([[*persona, *context, *reply]])
            # Whose words they are is told before they are joined.
            types = [checks.texts([part]).types[0] for part in (persona, context, reply) if part]
            text.types.copy_(torch.cat(types)[None])
            states = ranker.backbone(text)[0]
            expected = states.mean(dim=0) @ ranker.head.weight[0] + ranker.head.bias[0]
            checks.near(found[row, column], expected)


def test_nothing_is_known_before_a_pair_is_read():
    ranker = checks.make("cross", checks.bert_backbone())
    states = ranker.states(checks.texts(checks.REPLIES))
    assert ranker.reads_pairs and not ranker.gives_vectors
    assert states.values.shape == (*states.words.tokens.shape, 0)
