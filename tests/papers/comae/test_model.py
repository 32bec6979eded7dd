import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from listenwell.papers.comae.config import ComaeConfig
from listenwell.papers.comae.inputs import NOTHING, collate
from listenwell.papers.comae.model import ComaeModel, Words, token_losses
from tests.papers.comae.talks import CPU, FAMILY, tiny_comae, told_examples


class TwoWide(torch.nn.Module):
    """A decoder two numbers wide that hands on what it gets."""

    config = SimpleNamespace(hidden_size=2)

    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding.from_pretrained(torch.tensor([[0.0, 0.0], [1.0, 2.0]]))

    def get_input_embeddings(self):
        return self.words


def by_hand(**settings):
    """A model of two numbers' width: tables and layers are set below, all else is zero."""
    model = ComaeModel(ComaeConfig(**settings), TwoWide())
    for name, parameter in model.named_parameters():
        if not name.startswith("decoder."):
            parameter.requires_grad_(False).zero_()
    return model


def test_a_context_token_is_the_sum_of_its_embeddings():
    model = by_hand()  # Eq. 2
    model.speakers[1] = torch.tensor([10.0, 0.0])
    model.factors["act"].table[0, 3] = torch.tensor([0.0, 20.0])
    model.factors["expressed_emotion"].table[0, 0] = torch.tensor([0.5, 0.5])
    columns = torch.tensor([[[1, 1, 3, 0], [1, 0, NOTHING, 0], [1, NOTHING, NOTHING, NOTHING]]])
    assert model.embed(columns).tolist() == [[[11.5, 22.5], [1.5, 2.5], [1.0, 2.0]]]


def test_the_fused_embedding_is_the_sum_of_the_factors():
    model = by_hand()  # Eq. 4 and the sum before Eq. 9
    tables = {name: model.factors[name].table for name in model.config.factors}
    tables["mechanisms"][0, 1] = torch.tensor([1.0, 0.0])  # ER: yes
    tables["mechanisms"][1, 0] = torch.tensor([0.0, 2.0])  # IP: no
    tables["mechanisms"][2, 1] = torch.tensor([4.0, 0.0])  # EX: yes
    tables["act"][0, 8] = torch.tensor([0.0, 8.0])
    tables["expressed_emotion"][0, 9] = torch.tensor([16.0, 16.0])
    plans = torch.tensor([[1, 0, 1, 8, 9], [0, 1, 0, 0, 0], [1, NOTHING, NOTHING, NOTHING, 9]])
    assert model.fuse(plans).tolist() == [[21.0, 26.0], [0.0, 0.0], [17.0, 16.0]]


def test_a_factors_scores_are_its_table_times_a_tanh_layer():
    model = by_hand(factors=("act",))  # Eqs. 5, 6
    act = model.factors["act"]
    act.layer.weight[0] = torch.tensor([0.5, 0.25])
    act.layer.bias[1] = 1.0
    act.table[0, 2] = torch.tensor([2.0, 4.0])
    scores = model.predict("act", torch.tensor([[1.0, 2.0]]), torch.full((1, 5), NOTHING))
    assert scores.shape == (1, 1, 9)
    assert scores[0, 0, 2].item() == pytest.approx(2 * math.tanh(1.0) + 4 * math.tanh(1.0))
    assert scores[0, 0, [0, 1, 3, 4, 5, 6, 7, 8]].tolist() == [0.0] * 8


def test_each_mechanism_has_its_own_layer():
    model = by_hand(factors=("mechanisms",))  # Eq. 3
    part = model.factors["mechanisms"]
    part.layer.weight[:] = torch.tensor([[1.0, 0], [0, 0], [0, 1.0], [0, 0], [0, 0], [0, 0]])
    part.table[:, 1, 0] = torch.tensor([1.0, 10.0, 100.0])
    scores = model.predict("mechanisms", torch.tensor([[0.5, 0.25]]), torch.full((1, 5), NOTHING))
    assert scores[0, :, 1].tolist() == pytest.approx([math.tanh(0.5), 10 * math.tanh(0.25), 0.0])


def test_a_hierarchy_reads_the_factors_before_in_their_order():
    model = by_hand()  # Eq. 7: [h_x; e_C; M_A[A]]
    mechanisms, act, expressed_emotion = (model.factors[name] for name in model.config.factors)
    assert [part.layer.in_features for part in (mechanisms, act, expressed_emotion)] == [2, 4, 6]
    mechanisms.table[0, 1] = torch.tensor([0.25, 0.0])
    act.table[0, 4] = torch.tensor([0.0, 0.5])
    expressed_emotion.layer.weight[0] = torch.tensor([1.0, 0.0, 1.0, 0.0, 0.0, 1.0])
    expressed_emotion.table[0, 7, 0] = 1.0
    context = torch.tensor([[0.125, 9.0]] * 3)
    plans = torch.tensor([[1, 0, 0, 4, NOTHING], [0, 0, 0, 4, NOTHING], [1, 0, 0, 0, NOTHING]])
    found = model.predict("expressed_emotion", context, plans)[:, 0, 7].tolist()
    assert found == pytest.approx([math.tanh(0.875), math.tanh(0.625), math.tanh(0.375)])


@pytest.mark.parametrize("hierarchical", [True, False])
def test_a_hierarchy_uses_the_earlier_factor_and_a_parallel_model_does_not(tiny_llama, hierarchical):
    model, _ = tiny_comae(tiny_llama, loud=True, hierarchical=hierarchical)
    context = torch.randn(1, 64)
    plan = torch.tensor([[1, 0, 0, 3, 5]])
    for changed, later in (
        (torch.tensor([[0, 0, 0, 3, 5]]), ("act", "expressed_emotion")),
        (torch.tensor([[1, 0, 0, 4, 5]]), ("expressed_emotion",)),
        (torch.tensor([[1, 0, 0, 3, 6]]), ()),
    ):
        for name in model.config.factors:
            is_same = torch.equal(model.predict(name, context, plan), model.predict(name, context, changed))
            assert is_same != (hierarchical and name in later)


def test_the_factors_losses_by_hand():
    model = by_hand()  # Eqs. 11 to 13: all scores are 0, so every choice is equally likely
    losses = model.factor_losses(torch.zeros(2, 2), torch.tensor([[0, 1, 0, 3, 5], [1, 1, 1, 8, 9]]))
    assert losses.tolist() == pytest.approx([3 * math.log(2) + math.log(9) + math.log(10)] * 2)
    model.factors["act"].layer.bias[0] = 100.0
    model.factors["act"].table[0, 3, 0] = 2.0  # tanh(100) = 1: a score of 2 against eight of 0
    sure = 3 * math.log(2) + math.log(10) + math.log(math.e**2 + 8)
    losses = model.factor_losses(torch.zeros(2, 2), torch.tensor([[0, 1, 0, 3, 5], [1, 1, 1, 8, 9]]))
    assert losses.tolist() == pytest.approx([sure - 2, sure])


def test_what_is_undecided_gets_its_likeliest_choice_in_turn():
    model = by_hand()
    mechanisms, act, expressed_emotion = (model.factors[name] for name in model.config.factors)
    mechanisms.layer.bias[0] = 1.0
    mechanisms.table[0, 1, 0] = 1.0  # ER: yes
    act.layer.weight[0, 2] = 1.0  # from e_C
    act.table[0, 6, 0] = 1.0
    expressed_emotion.layer.weight[0, 4] = 1.0  # from the act
    expressed_emotion.table[0, 2, 0] = 1.0
    plans = torch.tensor([[NOTHING] * 5, [0, NOTHING, 1, NOTHING, NOTHING], [1, 1, 1, 0, NOTHING]])
    given = plans.clone()
    found = model.decide(torch.zeros(3, 2), plans)
    assert found[0].tolist() == [1, 0, 0, 6, 2]
    assert found[1].tolist() == [0, 0, 1, 0, 0]  # without ER nothing speaks for any act
    assert found[2].tolist() == [1, 1, 1, 0, 0]
    assert torch.equal(plans, given)


def test_pace_scales_steps_and_not_the_start(tiny_llama):
    slow, fast = (tiny_comae(tiny_llama, lr_multiplier=lr_multiplier)[0] for lr_multiplier in (1.0, 10.0))
    plans = torch.tensor([[1, 0, 1, 2, 3]])
    assert torch.allclose(slow.fuse(plans), fast.fuse(plans))
    for model in (slow, fast):
        for name in model.config.factors:
            model.factors[name].table.data += 0.01  # what a step of the optimizer does
    added = (fast.fuse(plans) - slow.fuse(plans)).mean().item()
    assert added == pytest.approx(5 * 0.01 * (10 - 1), rel=1e-4)


def words_of(inputs, count=6, rows=None, width=None):
    pieces = [inputs.encode(example, 256) for example in told_examples(count)]
    rows = rows or [[number] for number in range(len(pieces))]
    return pieces, Words.of(collate(pieces, rows, width or max(map(len, pieces))), CPU)


@pytest.mark.parametrize("config", FAMILY, ids=lambda config: config.title)
def test_neighbours_and_padding_change_nothing(tiny_llama, config):
    model, inputs = tiny_comae(
        tiny_llama, loud=True, factors=config.factors, hierarchical=config.hierarchical
    )
    pieces, alone = words_of(inputs)
    rows = [[2, 0], [1], [4, 3, 5], [8, 7, 6]]
    order = [number for row in rows for number in row]
    packed = Words.of(collate(pieces, rows, 256, 5), CPU)
    with torch.no_grad():
        one, other = (model.states(words, words.factors) for words in (alone, packed))
        assert torch.allclose(one[0][order], other[0], atol=1e-4)
        first, second = (
            token_losses(states, model.output_weights(), words.labels).sum()
            for (_, states), words in ((one, alone), (other, packed))
        )
    assert float(first) == pytest.approx(float(second), rel=1e-5)


def test_a_reply_is_told_its_factors_and_the_context_is_not(tiny_llama):
    model, inputs = tiny_comae(tiny_llama, loud=True)
    _, words = words_of(inputs, 3)
    changed = words.factors.clone()
    changed[1, 4] = (changed[1, 4] + 1) % 10
    owners = words.owners.flatten()[words.sources] - 1
    with torch.no_grad():
        before, after = (model.states(words, plans) for plans in (words.factors, changed))
    assert torch.equal(before[0], after[0])
    differs = (before[1] != after[1]).any(1).numpy()
    assert np.array_equal(differs, (owners == 1).numpy())  # START and every word of that reply, no other


def test_who_speaks_and_how_reaches_the_context(tiny_llama):
    model, inputs = tiny_comae(tiny_llama, loud=True)
    _, words = words_of(inputs, 2)
    with torch.no_grad():
        before = model.states(words, words.factors)[0]
        for column, value in ((1, 1), (2, 8), (3, NOTHING)):
            columns = words.columns.clone()
            columns[0, 0, column] = value
            assert columns[0, 0, column] != words.columns[0, 0, column]
            after = model.states(Words(**vars(words) | {"columns": columns}), words.factors)[0]
            assert not torch.allclose(before[0], after[0], atol=1e-4)
            assert torch.equal(before[1:], after[1:])


def test_new_parts_hardly_disturb_the_pretrained_model(tiny_llama):
    from transformers import AutoModelForCausalLM

    model, inputs = tiny_comae(tiny_llama, factors=())
    model.speakers.data.zero_()
    (piece, *_), _ = words_of(inputs, 1)
    plain = AutoModelForCausalLM.from_pretrained(tiny_llama, dtype=torch.float32).eval()
    words = Words.of(collate([piece], [[0]], len(piece)), CPU)
    with torch.no_grad():
        logits = plain(input_ids=torch.tensor(piece.tokens[None].astype(np.int64))).logits[0, piece.context :]
        expected = torch.nn.functional.cross_entropy(logits, words.labels, reduction="none")
        states = model.states(words, words.factors)[1]
        found = token_losses(states, model.output_weights(), words.labels)
    assert torch.allclose(found, expected, atol=1e-4)
    table = tiny_comae(tiny_llama)[0].factors["act"].table
    assert float(table.detach().std()) == pytest.approx(0.02, rel=0.1)
