"""Small rankers, texts to match, and what must hold for every ranker, whatever it is made of."""

import math

import torch

from listenwell.rankers import RANKERS
from listenwell.rankers.base import States, Words
from listenwell.rankers.config import DamSettings, PolySettings, RankerConfig, RecurrentSettings
from listenwell.rankers.model import EncoderBackbone, WordBackbone

VOCABULARY, WIDTH = 30, 8
CONTEXTS = [
    [[3, 4, 5], [6, 7]],
    [[8, 9]],
    [[10, 11, 12, 13], [14], [15, 16, 17, 18, 19, 3, 4]],
    [[5, 6, 7, 8, 9, 10], [11, 12]],
]
PERSONAS = [[[20, 21], [22, 23, 24]], [], [[25]], [[26, 27], [28], [29, 3, 4, 5]]]
REPLIES = [[[4, 5, 9, 20]], [[8]], [[17, 3, 12, 22, 22, 6, 7]], [[9, 10]]]
SMALL = {
    "poly": {"poly": PolySettings(codes=3)},
    "hlstm": {"recurrent": RecurrentSettings(5)},
    "dim": {"recurrent": RecurrentSettings(5)},
    "dam": {"dam": DamSettings(2, (4, 3))},
}
"""Settings of those that are large or slow by their defaults."""


def texts(rows, length=None, padding=0, before=0, between=0):
    """Words of rows of parts; padding ends rows and, where asked, stands before words and after parts."""
    tokens, parts = [], []
    for row in rows:
        tokens.append([padding] * before)
        parts.append([0] * before)
        for number, part in enumerate(row, 1):
            tokens[-1] += [*part, *[padding] * between]
            parts[-1] += [*[number] * len(part), *[0] * between]
    length = length or max(1, *map(len, tokens))
    fill = [(row + [padding] * length)[:length] for row in tokens]
    numbers = torch.tensor([(row + [0] * length)[:length] for row in parts])
    types = torch.where(numbers > 0, (numbers % 2), padding % 2)
    return Words(torch.tensor(fill), types, numbers)


def word_backbone(width=WIDTH, seed=0):
    return WordBackbone(torch.randn(VOCABULARY, width, generator=torch.Generator().manual_seed(seed)))


def bert_backbone(seed=0):
    from transformers import BertConfig, BertModel

    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=WIDTH,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=12,
        max_position_embeddings=64,
        initializer_range=0.5,  # an untrained encoder that still tells texts apart
    )
    return EncoderBackbone(BertModel(config, add_pooling_layer=False))


BACKBONES = {"words": word_backbone, "bert": bert_backbone}


def make(model, backbone=None, **settings):
    """A small ranker by its name."""
    backbone = backbone or word_backbone()
    torch.manual_seed(1)
    ranker = RANKERS.load(model)(RankerConfig(model=model, **(SMALL.get(model, {}) | settings)), backbone)
    if model == "dim":
        torch.nn.init.normal_(ranker.head.weight)  # as it begins, its scores differ by a thousandth
    return ranker.eval()


def scores(ranker, contexts=CONTEXTS, personas=PERSONAS, replies=REPLIES, **layout):
    """(contexts, replies); `personas` may be None."""
    with torch.inference_mode():
        given = [
            None if rows is None else ranker.states(texts(rows, **layout))
            for rows in (contexts, personas, replies)
        ]
        return ranker.match(*given)


def near(found, expected):
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


def padding_moves_nothing(ranker):
    plain = scores(ranker)
    assert plain.shape == (4, 4) and plain.std() > 1e-3  # a ranker that says one thing would pass all below
    near(scores(ranker, length=31), plain)
    near(scores(ranker, length=23, padding=17), plain)
    near(scores(ranker, padding=5, before=2, between=3), plain)


def neighbours_move_nothing(ranker):
    joint = scores(ranker)
    for row in range(len(CONTEXTS)):
        for column in range(len(REPLIES)):
            alone = scores(ranker, [CONTEXTS[row]], [PERSONAS[row]], [REPLIES[column]])
            near(alone[0, 0], joint[row, column])


def an_empty_persona_is_none(ranker):
    none = scores(ranker, personas=None)
    near(scores(ranker, personas=[[]] * 4), none)
    near(scores(ranker, personas=[[]] * 4, length=25, padding=9), none)
    some = scores(ranker)
    near(some[1], none[1])  # the second row of PERSONAS is empty
    for row in (0, 2, 3):  # and the others count
        assert (some[row] - none[row]).abs().max() > 1e-4


def change_counts(ranker, changed):
    """Whether other texts, by the names of `scores`, give other scores."""
    return (scores(ranker, **changed) - scores(ranker)).abs().max() > 1e-4


def every_weight_learns(ranker, but=()):
    """`but` are ends of the names of those that a softmax over replies cannot move."""
    ranker.train()
    given = [ranker.states(texts(rows)) for rows in (CONTEXTS, PERSONAS, REPLIES)]
    ranker.losses(*given, torch.ones(4, 4, dtype=torch.bool)).sum().backward()
    for name, parameter in ranker.named_parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all(), name
        assert name.endswith(tuple(but)) or parameter.grad.abs().sum() > 1e-6, name


def it_can_learn(ranker, steps=40, rate=0.02):
    """Eight pairs whose words have nothing to do with each other."""
    random = torch.Generator().manual_seed(5)

    def drawn(parts):
        return [torch.randint(3, VOCABULARY, (8, 3), generator=random).tolist() for _ in range(parts)]

    contexts, personas, replies = (list(zip(*drawn(parts), strict=True)) for parts in (2, 2, 1))
    given = [texts(rows) for rows in (contexts, personas, replies)]
    allowed = torch.ones(8, 8, dtype=torch.bool)
    optimizer = torch.optim.Adam(ranker.parameters(), lr=rate)

    def top():
        return (ranker.match(*map(ranker.states, given)).argmax(dim=1) == torch.arange(8)).sum()

    assert top() < 6
    for _ in range(steps):
        optimizer.zero_grad()
        losses = ranker.losses(*map(ranker.states, given), allowed)
        if losses.sum() < math.log(2):  # then each own reply is likelier than all others together
            break
        losses.mean().backward()
        optimizer.step()
    assert top() == 8


def pair(ranker, context, persona, reply):
    """One example's states, each (words, width), in lists of parts: for sums written out by hand."""

    def states(text):
        found: States = ranker.states(texts([text]))
        return list(found.values[0].split([len(part) for part in text]))

    return states(context), states(persona) if persona else [], states(reply)[0]
