import pytest
import torch

from listenwell.rankers import RANKERS
from listenwell.rankers.inference import CPU_ROWS, match_in_blocks, states_in_groups
from tests.rankers import checks


def drawn(rows, longest, seed, least=1):
    """Texts of one part each, of all lengths."""
    random = torch.Generator().manual_seed(seed)
    lengths = torch.randint(least, longest + 1, (rows,), generator=random).tolist()
    return [
        [torch.randint(3, checks.VOCABULARY, (length,), generator=random).tolist()] if length else []
        for length in lengths
    ]


CONTEXTS, PERSONAS, REPLIES = drawn(13, 12, 1), drawn(13, 9, 2, least=0), drawn(17, 7, 3)


@pytest.fixture(
    params=[(model, backbone) for model in RANKERS for backbone in checks.BACKBONES], ids="-".join
)
def ranker(request):
    model, backbone = request.param
    return checks.make(model, checks.BACKBONES[backbone]())


def given_states(ranker, **layout):
    return [ranker.states(checks.texts(rows, **layout)) for rows in (CONTEXTS, PERSONAS, REPLIES)]


@torch.no_grad()
def test_blocks_give_the_same_as_all_at_once(ranker):
    context, persona, replies = given_states(ranker)
    whole = ranker.match(context, persona, replies)
    assert whole.shape == (13, 17) and whole.std() > 1e-3
    for groups in (1, 2, 3, 4):
        checks.near(match_in_blocks(ranker, context, persona, replies, groups), whole)
    checks.near(ranker.scores(context, persona, replies), whole)
    checks.near(ranker.scores(context, None, replies), ranker.match(context, None, replies))
    # Padding may stand before and between words too.
    checks.near(ranker.scores(*given_states(ranker, before=2, between=2, padding=5)), whole)


def test_blocks_are_cut_to_their_own_longest_text(monkeypatch):
    ranker = checks.make("bi")
    context, persona, replies = given_states(ranker)
    asked, real = [], ranker.match

    def seen(context, persona, replies):
        asked.append([(len(part), part.values.shape[1]) for part in (context, persona, replies)])
        return real(context, persona, replies)

    monkeypatch.setattr(ranker, "match", seen)
    ranker.scores(context, persona, replies)
    assert len(asked) == 9
    lengths = sorted(len(row[0]) for row in CONTEXTS)
    # 13 in three groups of like length: 5, 4 and 4.
    assert [asked[place][0] for place in (0, 3, 6)] == [(5, lengths[4]), (4, lengths[8]), (4, lengths[12])]
    assert sum(rows for (rows, _), _, _ in asked[::3]) == 13
    assert sum(rows for *_, (rows, _) in asked[:3]) == 17
    asked.clear()
    ranker.scores(context[:7], persona[:7], replies[:7])
    assert [[rows for rows, _ in call] for call in asked] == [[7, 7, 7]]  # small ones stay whole


def test_gradients_are_those_of_all_at_once():
    ranker = checks.make("cobert")
    allowed = torch.ones(13, 13, dtype=torch.bool)
    slopes = []
    for way in (ranker.scores, ranker.match):
        context, persona, replies = given_states(ranker)
        ranker.zero_grad()
        chosen = replies[:13]
        torch.nn.functional.cross_entropy(way(context, persona, chosen), torch.arange(13)).backward()
        slopes.append(ranker.backbone.vectors.weight.grad.clone())
    torch.testing.assert_close(*slopes, atol=1e-4, rtol=1e-3)
    context, persona, replies = given_states(ranker)
    losses = ranker.losses(context, persona, replies[:13], allowed)
    wanted = torch.nn.functional.cross_entropy(
        ranker.match(context, persona, replies[:13]), torch.arange(13), reduction="none"
    )
    torch.testing.assert_close(losses, wanted, atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_what_is_kept_of_replies_is_enough(ranker):
    context, persona, replies = given_states(ranker)
    kept = ranker.kept(replies)
    checks.near(ranker.match(context, persona, kept), ranker.match(context, persona, replies))
    if ranker.config.model in ("bi", "poly", "memnet"):  # one vector is all they look at
        assert kept.values.shape == (17, 1, ranker.width)
    empty = ranker.states(checks.texts([[], [[5]]]))
    assert empty.pooled().mask.tolist() == [[False], [True]]


@torch.no_grad()
@pytest.mark.parametrize("layout", [{}, {"before": 2, "between": 1, "padding": 5}, {"length": 40}], ids=str)
def test_states_in_groups_are_those_of_all_at_once(ranker, layout):
    found = []
    for rows in (CONTEXTS, PERSONAS, REPLIES):
        words = checks.texts(rows, **layout)
        assert len(words) > CPU_ROWS  # so that there is more than one group
        states, whole = states_in_groups(ranker, words), ranker.states(words)
        assert states.words is words and states.values.shape == whole.values.shape
        checks.near(states.values[words.mask], whole.values[words.mask])
        found.append(states)
    checks.near(ranker.match(*found), ranker.match(*given_states(ranker)))


@torch.no_grad()
def test_texts_without_words_are_read_in_groups_too(ranker):
    # A whole group of nothing, then one with and without.
    rows = [[[7, 8, 9]], *[[]] * (CPU_ROWS + 1), [[3, 4]], []]
    words = checks.texts(rows)
    states = states_in_groups(ranker, words)
    assert states.values.isfinite().all()
    checks.near(states.values[words.mask], ranker.states(words).values[words.mask])
    assert states.mask.any(dim=1).tolist() == [bool(row) for row in rows]
    nothing = states_in_groups(ranker, checks.texts([[]] * 10))
    assert nothing.values.shape[:2] == (10, 1) and nothing.values.isfinite().all()


def test_groups_are_cut_to_their_own_longest_text(monkeypatch):
    ranker = checks.make("bi")
    asked, real = [], ranker.states

    def seen(words):
        asked.append(tuple(words.tokens.shape))
        return real(words)

    monkeypatch.setattr(ranker, "states", seen)
    states_in_groups(ranker, checks.texts(CONTEXTS))
    lengths = sorted(len(row[0]) for row in CONTEXTS)
    assert asked == [(8, lengths[7]), (5, lengths[12])] and lengths[7] < lengths[12]
    asked.clear()
    states_in_groups(ranker, checks.texts(CONTEXTS[:8]))
    assert [rows for rows, _ in asked] == [8]  # few stay whole


def test_gradients_through_groups_are_those_of_all_at_once():
    slopes = []
    for way in (states_in_groups, lambda ranker, words: ranker.states(words)):
        ranker = checks.make("cobert", checks.bert_backbone())
        parts = [way(ranker, checks.texts(rows)) for rows in (CONTEXTS, PERSONAS, REPLIES[:13])]
        ranker.losses(*parts, torch.ones(13, 13, dtype=torch.bool)).sum().backward()
        slopes.append(ranker.backbone.encoder.get_input_embeddings().weight.grad)
    assert slopes[0].abs().sum() > 1e-3
    torch.testing.assert_close(*slopes, atol=1e-4, rtol=1e-3)
