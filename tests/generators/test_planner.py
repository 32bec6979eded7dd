from itertools import product

import numpy as np
import pytest

from listenwell.dialogue import Factors, Scored
from listenwell.generators.planner import CARELESS_ACTS, Draw, Planner, mechanism_probabilities
from listenwell.generators.plans import CHOICES, SETS, PlanTokens
from listenwell.labels import ACTS, EMOTIONS, EXPRESSED_EMOTIONS, GLAD_EMOTIONS, contradicts
from listenwell.runtime.torch_engine import TorchRuntime


@pytest.fixture(scope="module")
def planner(tiny_generator):
    runtime = TorchRuntime.from_folder(tiny_generator)
    return Planner(runtime, PlanTokens.of(runtime.vocabulary))


@pytest.fixture(scope="module")
def prompt(planner):
    return planner.runtime.encode("I am so sad. My dog")


def by_hand(planner, prompt, plan):
    """log P of mechanisms, act and expressed emotion: each level's softmax over its own tokens."""
    tokens, found = planner.tokens.encode(plan), 0.0
    for place in (1, 2, 3):
        logits = planner.runtime.logits(planner.runtime.prefill([*prompt, *tokens[:place]]))[0]
        scores = logits[list(planner.tokens.numbers[place])].astype(np.float64)
        chosen = planner.tokens.numbers[place].index(tokens[place])
        found += scores[chosen] - np.log(np.exp(scores).sum())
    return found


def draw(planner, state, want, count, seed, *, mechanism_bias=0.0):
    (found,) = planner.draft(state, [want], [seed], Draw(count, mechanism_bias=mechanism_bias)).plans
    return found


def test_the_chances_of_plans_are_those_of_the_chain(planner, prompt):
    state = planner.runtime.prefill(prompt)
    drawn = draw(planner, state, Factors(emotion="sad"), 720, 1)
    assert len(drawn) == len({one.plan for one in drawn}) <= 720
    for one in drawn[:5]:
        assert one.log_probability == pytest.approx(by_hand(planner, prompt, one.plan), abs=1e-3)
    best = max(drawn, key=lambda one: one.log_probability)
    assert drawn[0] == best
    assert sum(np.exp(one.log_probability) for one in drawn) == pytest.approx(
        1, abs=0.15
    )  # rare ones are left out


def test_what_is_wanted_is_in_every_plan_and_nothing_else_is_lost(planner, prompt):
    state = planner.runtime.prefill(prompt)
    want = Factors(emotion="joyful", act="wishing", expressed_emotion="joy")
    drawn = draw(planner, state, want, 100, 1)
    assert {one.plan.mechanisms for one in drawn} == set(SETS)
    assert {(one.plan.emotion, one.plan.act, one.plan.expressed_emotion) for one in drawn} == {
        ("joyful", "wishing", "joy")
    }
    for one in drawn:
        assert one.log_probability == pytest.approx(by_hand(planner, prompt, one.plan), abs=1e-3)


def test_a_plan_that_is_all_but_impossible_can_still_be_wanted(planner, prompt):
    state = planner.runtime.prefill(prompt)
    for mechanisms, act in product(SETS[:2], ACTS.labels[:3]):
        (one,) = draw(planner, state, Factors("sad", mechanisms, act, "fear"), 5, 0)
        assert (one.plan.mechanisms, one.plan.act, one.plan.expressed_emotion) == (mechanisms, act, "fear")


def test_draws_repeat_with_their_seed_and_follow_the_chances(planner, prompt):
    state, want = planner.runtime.prefill(prompt), Factors(emotion="sad", act="wishing", mechanisms=())
    again = [[one.plan.expressed_emotion for one in draw(planner, state, want, 3, 5)] for _ in range(2)]
    assert again[0] == again[1]
    # The first is always the likeliest; the second is drawn: over many seeds, as often as it is likely.
    table = {
        one.plan.expressed_emotion: np.exp(one.log_probability) for one in draw(planner, state, want, 10, 0)
    }
    first = max(table, key=table.get)
    seconds = [draw(planner, state, want, 2, seed)[1].plan.expressed_emotion for seed in range(300)]
    assert first not in seconds
    weights = {
        expressed_emotion: probability
        for expressed_emotion, probability in table.items()
        if expressed_emotion != first
    }
    most = max(weights, key=weights.get)
    share = weights[most] / sum(weights.values())
    assert abs(seconds.count(most) / 300 - share) < 4 * np.sqrt(share * (1 - share) / 300)


def test_whole_plans_are_sampled_token_by_token(planner, prompt):
    state = planner.runtime.prefill(prompt)
    (drawn,) = planner.sample(state, 6, [2])
    assert [drawn] == planner.sample(state, 6, [2]) != planner.sample(state, 6, [3])
    for tokens in drawn:
        assert planner.tokens.encode(planner.tokens.decode(tokens)) == tokens
    # Several dialogues at once draw what each draws alone.
    prompts = [prompt, [*prompt, *prompt[-2:]]]
    batch_size = planner.sample(planner.runtime.prefill_many(prompts), 5, [2, 7])
    assert batch_size == [
        planner.sample(planner.runtime.prefill(one), 5, [seed])[0]
        for one, seed in zip(prompts, (2, 7), strict=True)
    ]


def test_the_next_undecided_level_is_told(planner, prompt):
    state = planner.runtime.prefill(prompt)
    (level, probabilities) = next(iter(planner.factor_probabilities(state, Factors()).items()))
    assert level == "emotion" and probabilities.shape == (32,) and probabilities.sum() == pytest.approx(1)
    (level, probabilities) = next(iter(planner.factor_probabilities(state, Factors(emotion="sad")).items()))
    assert level == "mechanisms" and probabilities.shape == (3,)
    given = Factors(emotion="sad", mechanisms=("exploration",))
    (level, probabilities) = next(iter(planner.factor_probabilities(state, given).items()))
    assert level == "act" and probabilities.shape == (len(ACTS),)
    whole = Factors("sad", ("exploration",), "questioning", "joy")
    assert planner.factor_probabilities(state, whole) == {}
    (level, probabilities) = next(
        iter(planner.factor_probabilities(state, Factors("sad", (), "wishing")).items())
    )
    assert level == "expressed_emotion" and probabilities.shape == (len(EXPRESSED_EMOTIONS),)


def test_chances_of_mechanisms_worked_by_hand():
    sets = np.zeros(8)
    sets[CHOICES["mechanisms"].index(("emotional_reaction",))] = 0.5
    sets[CHOICES["mechanisms"].index(("emotional_reaction", "exploration"))] = 0.3
    sets[0] = 0.2
    np.testing.assert_allclose(mechanism_probabilities(sets), [0.8, 0, 0.3])


def test_what_was_heard_moves_the_emotion(planner, prompt):
    state = planner.runtime.prefill(prompt)
    own = planner.emotions(state)[0]
    heard = (Scored("joyful", 0.98), Scored("sad", 0.01))
    assert planner.emotions(state, [heard], share=0.0)[0] == pytest.approx(own)
    moved = planner.emotions(state, [heard], share=1.0)[0]
    assert moved.argmax() == EMOTIONS.index("joyful") and moved.sum() == pytest.approx(1)
    half = planner.emotions(state, [heard], share=0.5)[0]
    assert own[EMOTIONS.index("joyful")] < half[EMOTIONS.index("joyful")] < moved[EMOTIONS.index("joyful")]


def test_many_dialogues_at_once_are_each_as_alone(planner):
    prompts = [planner.runtime.encode(text) for text in ("I am so sad. My dog", "What happened to", "Oh no")]
    wants = [
        Factors(emotion="sad"),
        Factors("joyful", act="wishing"),
        Factors("proud", (), expressed_emotion="joy"),
    ]
    batch_size = planner.draft(planner.runtime.prefill_many(prompts), wants, [1, 2, 3], Draw(4)).plans
    for prompt, want, seed, found in zip(prompts, wants, (1, 2, 3), batch_size, strict=True):
        alone = draw(planner, planner.runtime.prefill(prompt), want, 4, seed)
        assert [one.plan for one in found] == [one.plan for one in alone]
        assert [one.log_probability for one in found] == pytest.approx(
            [o.log_probability for o in alone], abs=1e-4
        )


def test_leaning_prefers_plans_that_use_mechanisms(planner, prompt):
    state, want = (
        planner.runtime.prefill(prompt),
        Factors(emotion="sad", act="wishing", expressed_emotion="joy"),
    )
    plain = {one.plan: one.log_probability for one in draw(planner, state, want, 8, 1)}
    leaning = draw(planner, state, want, 8, 1, mechanism_bias=50.0)
    assert len(leaning[0].plan.mechanisms) == 3
    assert {one.plan: one.log_probability for one in leaning} == pytest.approx(
        plain
    )  # its chance stays what it is


def test_a_draw_can_lean_to_interpretation(planner, prompt):
    state, want = (
        planner.runtime.prefill(prompt),
        Factors(emotion="sad", act="wishing", expressed_emotion="joy"),
    )
    plain, leaning = (
        planner.draft(state, [want], [3], Draw(8, interpretation_bias=nats)).plans[0] for nats in (0.0, 40.0)
    )
    assert {one.plan for one in plain} == {one.plan for one in leaning}
    assert ["interpretation" in one.plan.mechanisms for one in leaning] == [True] * 4 + [False] * 4
    assert "interpretation" in leaning[0].plan.mechanisms


def test_a_draw_keeps_to_the_side_of_what_is_felt(planner, prompt):
    state, want = planner.runtime.prefill(prompt), Factors("devastated", (), "acknowledging")
    plain, kept = (
        planner.draft(state, [want], [3], Draw(10, opposite_penalty=nats)).plans[0] for nats in (0.0, 40.0)
    )
    assert {one.plan for one in plain} == {one.plan for one in kept}
    glad = [contradicts(one.plan.expressed_emotion, "devastated") for one in kept]
    assert glad == [False] * 6 + [True] * 4  # they are drawn last, if at all
    assert [contradicts(one.plan.expressed_emotion, "devastated") for one in plain] != glad


def test_careful_plans_neither_cheer_nor_advise(planner, prompt):
    state = planner.runtime.prefill([*prompt])
    target, how = Factors(emotion="sad"), Draw(40)

    def careless(plans):
        return [
            one
            for one in plans
            if one.plan.act in CARELESS_ACTS or one.plan.expressed_emotion in GLAD_EMOTIONS
        ]

    (careful,) = planner.draft(state, [target], [1], how, ["risk"]).plans
    (usual,) = planner.draft(state, [target], [1], how).plans
    assert careless(usual) and not careless(careful) and len(careful) == 40
    asked = Factors(emotion="sad", act="suggesting")  # what the caller asked for is still done
    (plans,) = planner.draft(state, [asked], [1], how, ["risk"]).plans
    assert {one.plan.act for one in plans} == {"suggesting"}
