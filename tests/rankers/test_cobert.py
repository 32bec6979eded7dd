import itertools
import math

import pytest
import torch

from listenwell.errors import ListenwellError
from listenwell.rankers.base import choice_losses
from listenwell.rankers.bi import FIRST_SCALE
from listenwell.rankers.cobert import FIRST_WEIGHTS, PARTS, _alike_together, _rows
from listenwell.rankers.config import BiSettings, CobertSettings
from tests.rankers import checks

HOPS = [hops for count in (1, 2, 3, 4) for hops in itertools.combinations((0, 1, 2, 3), count)]


def make(backbone=None, **settings):
    return checks.make("cobert", backbone, cobert=CobertSettings(**settings))


def softmax(values):
    powers = [math.exp(value - max(values)) for value in values]
    return [power / sum(powers) for power in powers]


def product(rows, columns):
    """Of matrices as lists of rows."""
    turned = list(zip(*columns, strict=True))
    return [[math.fsum(a * b for a, b in zip(row, column, strict=True)) for column in turned] for row in rows]


def mean(rows):
    return [math.fsum(column) / len(column) for column in zip(*rows, strict=True)]


def direction(vector):
    return [value / math.hypot(*vector) for value in vector]


def matched(x, y, hops, pooling, sharpness=1.0):
    """dot(X_f, Y_f) of one text and one reply, word by word as PEC §4.3 to §4.5 write it."""
    affinity = product(x, list(zip(*y, strict=True)))  # eq. 1
    affinity = [[sharpness * value for value in row] for row in affinity]
    to_reply = [softmax(row) for row in affinity]  # eq. 2
    to_text = [softmax(column) for column in zip(*affinity, strict=True)]  # eq. 3
    x_parts, y_parts = [], []
    if 0 in hops:
        x_parts += direction(mean(x))
        y_parts += direction(mean(y))
    if 1 in hops:
        seen_x, seen_y = product(to_reply, y), product(to_text, x)
        if pooling in ("max", "both"):
            x_parts += [max(column) for column in zip(*seen_x, strict=True)]
            y_parts += [max(column) for column in zip(*seen_y, strict=True)]
        if pooling in ("mean", "both"):
            x_parts += mean(seen_x)
            y_parts += mean(seen_y)
    over_text = product([mean(to_reply)], to_text)  # eq. 4
    over_reply = product([mean(to_text)], to_reply)  # eq. 5
    if 2 in hops:
        x_parts += product(over_text, x)[0]
        y_parts += product(over_reply, y)[0]
    if 3 in hops:  # the same once more: what hop 2 found of the one side is sent to the other
        x_parts += product(product(over_reply, to_text), x)[0]
        y_parts += product(product(over_text, to_reply), y)[0]
    return math.fsum(a * b for a, b in zip(x_parts, y_parts, strict=True))  # eq. 6


@pytest.mark.parametrize("pooling", ["max", "mean", "both"])
@pytest.mark.parametrize("hops", HOPS, ids=str)
def test_scores_are_the_papers(hops, pooling):
    ranker = make(hops=hops, pooling=pooling)
    found = checks.scores(ranker)
    without = checks.scores(ranker, personas=None)
    for row, (context, persona) in enumerate(zip(checks.CONTEXTS, checks.PERSONAS, strict=True)):
        for column, reply in enumerate(checks.REPLIES):
            with torch.no_grad():
                turns, sentences, spoken = checks.pair(ranker, context, persona, reply)
            y = spoken.tolist()
            expected = matched(torch.cat(turns).tolist(), y, hops, pooling)
            assert float(without[row, column]) == pytest.approx(expected, rel=1e-4, abs=1e-4)
            if sentences:
                expected += matched(torch.cat(sentences).tolist(), y, hops, pooling)
            assert float(found[row, column]) == pytest.approx(expected, rel=1e-4, abs=1e-4)


def test_settings_differ():
    """Each of the ablations is a ranker of its own."""
    every = {
        (hops, pooling): checks.scores(make(hops=hops, pooling=pooling))
        for hops in HOPS
        for pooling in ("max", "mean", "both")
        if pooling == "max" or 1 in hops  # only hop 1 pools
    }
    for (one, first), (two, second) in itertools.combinations(every.items(), 2):
        assert (first - second).abs().max() > 1e-3, (one, two)


@torch.no_grad()
@pytest.mark.parametrize("hops", [(0,), (0, 1, 2)], ids=str)
def test_hop_0_of_both_together_is_a_bi_encoders_score(hops):
    both, apart = make(hops=hops, joint=True), make(hops=hops)
    bi = checks.make("bi", bi=BiSettings(cosine=True))
    bi.scale.zero_()  # e⁰: cosines as they are
    found, others = checks.scores(both), 0.0
    if rest := tuple(hop for hop in hops if hop):
        others = checks.scores(make(hops=rest))
    checks.near(found, checks.scores(bi) + others)
    assert (found - checks.scores(apart)).abs().max() > 1e-2
    # Without a persona there is nothing to put together.
    checks.near(checks.scores(both, personas=None), checks.scores(apart, personas=None))


def test_a_weight_of_both_together_is_the_contexts():
    ranker = make(hops=(0, 1), joint=True, weighted=True)
    with torch.no_grad():
        ranker.weights.zero_()
        ranker.weights[0, PARTS.index("hop 0")] = 3.0
    checks.near(checks.scores(ranker), 3 * checks.scores(make(hops=(0,), joint=True)))
    checks.every_weight_learns(make(hops=(0, 1), joint=True))


@torch.no_grad()
def test_learned_weights_count_each_part_and_sharpness_the_attention():
    hops, pooling = (0, 1, 2, 3), "both"
    ranker = make(hops=hops, pooling=pooling, weighted=True)
    assert ranker.weights.tolist() == [pytest.approx([FIRST_WEIGHTS[part] for part in PARTS])] * 2
    assert float(ranker.sharpness) == pytest.approx(checks.WIDTH**-0.5)
    # Which settings have one of the parts alone.
    alone = {"hop 0": (0,), "max": (1,), "mean": (1,), "hop 2": (2,), "hop 3": (3,)}
    turns, sentences, spoken = checks.pair(ranker, checks.CONTEXTS[0], checks.PERSONAS[0], checks.REPLIES[0])
    x, p, y = torch.cat(turns).tolist(), torch.cat(sentences).tolist(), spoken.tolist()
    for column, part in enumerate(PARTS):
        for row, text in enumerate((x, p)):  # the context's weights, then the persona's
            ranker.weights.zero_()
            ranker.weights[row, column] = 0.5
            ranker.sharpness.fill_(0.2 + column / 10)
            wanted = 0.5 * matched(text, y, alone[part], part, 0.2 + column / 10)
            assert float(checks.scores(ranker)[0, 0]) == pytest.approx(wanted, rel=1e-4, abs=1e-4)
    # With all of them 1 it is the papers'.
    ranker.weights.fill_(1)
    ranker.sharpness.fill_(1)
    checks.near(checks.scores(ranker), checks.scores(make(hops=hops, pooling=pooling)))


@torch.no_grad()
def test_the_loss_for_vectors_is_a_bi_encoders_on_the_same_states():
    plain, mixed = make(), make(vectors=0.25)
    assert not plain.gives_vectors and mixed.gives_vectors
    given = [plain.states(checks.texts(rows)) for rows in (checks.CONTEXTS, checks.PERSONAS, checks.REPLIES)]
    allowed = ~torch.eye(4, dtype=torch.bool).roll(1, 1)
    own = choice_losses(checks.scores(plain) * 0.1, allowed)
    checks.near(plain.losses(*given, allowed, 0.1), own)
    context, persona, replies = given
    first = mixed.queries(context, persona) @ mixed.vectors(replies).T
    # PEC §5.1's Tri-encoder, by direction: means, and the mean of context and persona where there is one.
    by_hand = torch.zeros(4, 4)
    for row, (said, known) in enumerate(zip(checks.CONTEXTS, checks.PERSONAS, strict=True)):
        for column, reply in enumerate(checks.REPLIES):
            turns, sentences, spoken = checks.pair(plain, said, known, reply)
            asked = torch.cat(turns).mean(dim=0)
            if sentences:
                asked = (asked + torch.cat(sentences).mean(dim=0)) / 2
            by_hand[row, column] = torch.cosine_similarity(asked, spoken.mean(dim=0), dim=0)
    checks.near(first, by_hand)
    assert mixed.vectors(replies).shape == (4, mixed.vector_width)
    theirs = choice_losses(FIRST_SCALE * by_hand, allowed)
    checks.near(mixed.losses(*given, allowed, 0.1), 0.75 * own + 0.25 * theirs)
    checks.near(checks.scores(mixed), checks.scores(plain))  # scores are CoBERT's all the same


@torch.no_grad()
@pytest.mark.parametrize(
    ("among", "parts"),
    [
        (2, [slice(0, 2), slice(2, 4)]),
        (3, [slice(0, 4)]),  # the last one alone would have nothing to choose
        (4, [slice(0, 4)]),
        (9, [slice(0, 4)]),
        (0, [slice(0, 4)]),
    ],
)
@pytest.mark.parametrize("personas", [checks.PERSONAS, None], ids=["personas", "no personas"])
def test_co_attention_can_choose_among_a_part_of_the_batch(among, parts, personas):
    ranker = make(vectors=0.25, among=among)
    rows = (checks.CONTEXTS, personas, checks.REPLIES)
    given = [None if part is None else ranker.states(checks.texts(part)) for part in rows]
    allowed = torch.ones(4, 4, dtype=torch.bool)
    allowed[3, 0] = allowed[0, 1] = False  # one pair inside of the first part alone
    scores = checks.scores(ranker, personas=personas) * 0.1
    own = []
    for part in parts:
        for row in range(part.start, part.stop):
            others = [scores[row, column] for column in range(part.start, part.stop) if allowed[row, column]]
            own.append(torch.stack(others).exp().sum().log() - scores[row, row])
    context, persona, replies = given
    # Vectors choose among all, whatever the parts.
    theirs = choice_losses(
        FIRST_SCALE * ranker.queries(context, persona) @ ranker.vectors(replies).T, allowed
    )
    found = ranker.losses(*given, allowed, 0.1)
    checks.near(found, 0.75 * torch.stack(own) + 0.25 * theirs)
    blocks = [torch.stack(own[part]).mean() * (part.stop - part.start) / 4 for part in parts]
    checks.near(found.mean(), 0.75 * sum(blocks) + 0.25 * theirs.mean())
    if len(parts) > 1:  # fewer to choose among: less to lose
        assert found.sum() < make(vectors=0.25).losses(*given, allowed, 0.1).sum() - 1e-3


@pytest.mark.parametrize(
    ("count", "most", "ends"),
    [
        (1, 1, [1]),
        (2, 2, [2]),
        (3, 2, [3]),
        (5, 2, [2, 5]),
        (6, 2, [2, 4, 6]),
        (8, 3, [3, 6, 8]),
        (10, 3, [3, 6, 10]),
    ],
)
def test_no_row_of_a_batch_is_alone(count, most, ends):
    found = list(_rows(count, most))
    assert [part.stop for part in found] == ends and [part.start for part in found] == [0, *ends[:-1]]


def test_like_replies_can_stand_together():
    vectors = torch.tensor([[5.0, 0.1], [-5.0, 0.0], [4.0, 0.0], [-4.0, 0.1], [4.5, 0.0]])
    order = _alike_together(vectors, torch.arange(5), 3)
    groups = [set(order[part].tolist()) for part in _rows(5, 3)]
    assert groups in ([{0, 2, 4}, {1, 3}], [{1, 3, 2}, {0, 4}])  # the sign of a direction is chance
    assert _alike_together(vectors, torch.arange(3), 3).tolist() == [0, 1, 2]


@torch.no_grad()
def test_losses_of_like_replies_stay_with_their_rows():
    ranker, plain = make(vectors=0.25, among=2, alike=True), make(vectors=0.25, among=2)
    rows = (checks.CONTEXTS, checks.PERSONAS, checks.REPLIES)
    given = [ranker.states(checks.texts(part)) for part in rows]
    allowed = torch.ones(4, 4, dtype=torch.bool)
    order = _alike_together(ranker.vectors(given[2]), torch.arange(4), 2)
    found = ranker.losses(*given, allowed, 0.1)
    by_hand = plain.losses(*(part[order] for part in given), allowed, 0.1)
    checks.near(found[order], by_hand)


def test_parts_of_a_batch_learn():
    checks.every_weight_learns(make(weighted=True, hops=(0, 1, 2, 3), pooling="both", vectors=0.3, among=2))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"hops": ()}, r"cobert.hops is \[\]"),
        ({"hops": (1, 4)}, r"cobert.hops is \[1, 4\]"),
        ({"pooling": "min"}, "cobert.pooling is 'min'.*max, mean, both"),
        ({"vectors": 1.0}, "cobert.vectors is 1.0"),
        ({"vectors": -0.1}, "cobert.vectors is -0.1"),
        ({"among": 8}, "cobert.among is 8.*together with cobert.vectors"),
        ({"among": 1, "vectors": 0.5}, "cobert.among is 1.*Give 2 or more"),
        ({"among": -2, "vectors": 0.5}, "cobert.among is -2"),
        ({"hops": (1, 2), "joint": True}, "cobert.joint is of hop 0.*Add 0"),
        ({"alike": True, "vectors": 0.5}, "cobert.alike needs cobert.among"),
    ],
)
def test_wrong_settings_are_named(wrong, message):
    with pytest.raises(ListenwellError, match=message):
        CobertSettings(**wrong)
