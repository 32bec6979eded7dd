from dataclasses import fields, replace

import numpy as np
import pytest

from listenwell.dialogue import Candidate, Dialogue, Factors, Persona, Turn
from listenwell.errors import InputError, UnknownNameError
from listenwell.listener import Listener
from listenwell.reranking import reranker as module
from listenwell.reranking.brevity import brevity
from listenwell.reranking.config import FAULTS, FEATURES, RerankerConfig
from listenwell.reranking.reranker import Reranker, standardized
from tests.test_listener import Echo

RANDOM = np.random.default_rng(0)
TALK = Dialogue((Turn("speaker", "My dog ran away."),), personas=(Persona("listener", ("i am a nurse.",)),))


class Lengths:
    """The longer the better."""

    name, key = "lengths", "k"

    def __init__(self):
        self.asked = 0

    def scores(self, dialogue, replies):
        self.asked += 1
        return np.array([len(reply) for reply in replies], np.float32)


def only(*features, **weights):
    return RerankerConfig(
        **weights, without=tuple(feature for feature in FEATURES if feature not in features)
    )


def test_every_judge_has_a_weight():
    others = {"steered", "steered_reward", "steered_faults", "done", "without", "every"}
    assert {field.name for field in fields(RerankerConfig)} == {*FEATURES, *others}
    # The ranker adds nothing to the others; whoever wants it gives it a weight.
    assert RerankerConfig().asked() == tuple(feature for feature in FEATURES if feature != "ranker")


def test_scores_are_standardized_over_the_candidates():
    assert standardized([1.0, 3.0]).tolist() == [-1, 1]
    assert standardized([5.0, 5.0]).tolist() == [0, 0]
    assert standardized([1.0, None, 3.0, float("nan"), float("-inf")]).tolist() == [-1, 0, 1, 0, 0]
    assert standardized([None]).tolist() == [0]
    assert standardized([1.0, 1.0 + 1e-9]).tolist() == [0, 0]


def test_scales_make_no_difference():
    for scale in (1, 1000):
        candidates = [
            Candidate(text, scores=(("likelihood", value * scale),))
            for text, value in (("a", -2.0), ("b", -1.0))
        ]
        best, worst = Reranker(only("likelihood", likelihood=0.7)).rerank(TALK, candidates)
        assert (best.text, worst.text) == ("b", "a")
        assert dict(best.scores) == {"likelihood": -1.0 * scale, "choice": 0.7}


def test_the_prior_is_taken_off():
    candidates = [Candidate("a", scores=(("prior", -3.0),)), Candidate("b", scores=(("prior", -1.0),))]
    assert [one.text for one in Reranker(only("prior")).rerank(TALK, candidates)] == ["a", "b"]


def test_the_prior_is_asked_only_where_it_can_change_the_first():
    """Of two standardized scores, two apart: with a weight of 1 the prior moves two replies by 2 at most."""
    asked = list[list[str]]()

    def priors(replies):
        asked.append(list(replies))
        return [-3.0 if reply == "a" else -1.0 for reply in replies]

    def chosen(likelihood, **given):
        candidates = [
            Candidate(text, scores=(("likelihood", value),)) for text, value in (("a", -2.0), ("b", -1.0))
        ]
        config = only("likelihood", "prior", likelihood=likelihood, prior=1.0)
        return Reranker(config, priors=priors, **given).rerank(TALK, candidates)

    first, second = chosen(0.9)  # 1.8 apart: less than 2
    assert asked == [["a", "b"]] and (first.text, second.text) == ("a", "b")
    assert dict(first.scores) == {"likelihood": -2.0, "prior": -3.0, "choice": 0.1}
    first, second = chosen(1.1)
    assert len(asked) == 1 and (first.text, second.text) == ("b", "a")
    assert dict(first.scores) == {"likelihood": -1.0, "choice": 1.1}
    every = only("likelihood", "prior", likelihood=1.1, prior=1.0, every=True)
    assert dict(Reranker(every, priors=priors).rerank(TALK, [first, second])[0].scores)["prior"] == -1.0
    asked.pop()
    Reranker(only("likelihood"), priors=priors).rerank(TALK, [first, second])
    Reranker(only("prior"), priors=priors).rerank(TALK, [first])
    given = [Candidate("a", scores=(("prior", -1.0),)), Candidate("b", scores=(("prior", -3.0),))]
    assert Reranker(only("prior"), priors=priors).rerank(TALK, given)[0].text == "b"
    assert len(asked) == 1  # it has no weight, nothing to choose from, or was given


def test_no_two_scores_are_farther_apart_than_the_bound():
    for count in range(2, 9):
        extreme = standardized([1.0, -1.0, *[0.0] * (count - 2)])
        assert extreme[0] - extreme[1] == pytest.approx(np.sqrt(2 * count))
        for _ in range(200):
            assert np.ptp(standardized(RANDOM.exponential(size=count) ** 3)) <= np.sqrt(2 * count) + 1e-9


def test_soft_judges_and_faults_together():
    candidates = [
        Candidate("My wife lost her dog.", scores=(("likelihood", -1.0), ("plan", -1.0))),
        Candidate("How long is it gone?", scores=(("likelihood", -2.0), ("plan", -1.0))),
    ]
    config = only("likelihood", "plan", "unsupported_disclosure", likelihood=1.0, unsupported_disclosure=1.5)
    found = Reranker(config).rerank(TALK, candidates)
    assert [dict(one.scores) for one in found] == [
        {"likelihood": -2.0, "plan": -1.0, "unsupported_disclosure": 0.0, "choice": -1.0},
        {"likelihood": -1.0, "plan": -1.0, "unsupported_disclosure": 1.0, "choice": -0.5},
    ][::-1]
    harder = Reranker(
        only("likelihood", "unsupported_disclosure", likelihood=1.0, unsupported_disclosure=2.5)
    )
    assert harder.rerank(TALK, candidates)[0].text == "How long is it gone?"


def test_every_fault_is_found_under_its_name():
    talk = Dialogue((Turn("listener", "Where did you see it last?"), *TALK.turns), personas=TALK.personas)
    replies = {
        "generic_response": "I am so sorry.",
        "repeated": "Where did you see it last?",
        "copied": "I like to walk my dogs at night.",
        "unsupported_disclosure": "I moved here last year.",
        "unfinished": "It may come back and",
        "generic_question": "What happened?",
    }
    talk = Dialogue(talk.turns, personas=(Persona("listener", ("i like to walk my dogs at night",)),))
    config = only(*FAULTS)
    for fault, reply in replies.items():
        scores = dict(Reranker(config).rerank(talk, [Candidate(reply)])[0].scores)
        assert scores[fault] > 0, fault
        # A short reply is short whatever else it is.
        assert [name for name in FAULTS if scores[name] and name != "brevity"] == [fault]
        assert scores["brevity"] == round(brevity(reply), 4)
        taken = config.weight(fault) * scores[fault] + config.weight("brevity") * scores["brevity"]
        assert scores["choice"] == pytest.approx(-taken, abs=1e-3)


def test_the_others_persona_supports_nothing():
    talk = Dialogue(TALK.turns, personas=(Persona("speaker", ("my wife is a nurse.",)),))
    found = Reranker(only("unsupported_disclosure")).rerank(talk, [Candidate("My wife is here.")])
    assert dict(found[0].scores)["unsupported_disclosure"] == 1


def test_the_ranker_is_asked_once_and_passed_over_where_it_is_not():
    ranker = Lengths()
    candidates = [Candidate("a"), Candidate("bbb"), Candidate("cc")]
    found = Reranker(only("ranker", ranker=1.0), ranker).rerank(TALK, candidates)
    assert [one.text for one in found] == ["bbb", "cc", "a"]
    assert [dict(one.scores)["ranker"] for one in found] == [3, 2, 1]
    assert ranker.asked == 1
    assert [one.text for one in Reranker(only("ranker")).rerank(TALK, candidates)] == ["a", "bbb", "cc"]
    silent = Reranker(RerankerConfig(ranker=0), ranker)
    assert "ranker" not in dict(silent.rerank(TALK, candidates)[0].scores)
    assert ranker.asked == 1


def test_the_reader_is_a_judge_of_its_own_beside_the_ranker():
    candidates = [Candidate("a"), Candidate("bbb"), Candidate("cc")]

    class Backwards(Lengths):
        name, key = "backwards", "b"

        def scores(self, dialogue, replies):
            return -super().scores(dialogue, replies)

    choice = Reranker(only("reader", "ranker", ranker=0.4, every=True), Lengths(), reader=Backwards())
    found = choice.rerank(TALK, candidates)
    assert [one.text for one in found] == ["a", "cc", "bbb"]  # it weighs more
    assert dict(found[0].scores)["reader"] == -1 and dict(found[0].scores)["ranker"] == 1
    assert choice.conditions()["reader"] == "backwards, key b"
    without = Reranker(replace(only("reader", "ranker"), without=("reader",)), Lengths(), reader=Backwards())
    assert [one.text for one in without.rerank(TALK, candidates)] == ["bbb", "cc", "a"]
    assert "reader" not in dict(without.rerank(TALK, candidates)[0].scores)


def test_equal_words_are_merged_and_equal_scores_keep_their_order():
    candidates = [
        Candidate("Oh no!", scores=(("likelihood", -1.0),)),
        Candidate("oh  NO !", scores=(("likelihood", -9.0),)),
        Candidate("Yes."),
        Candidate("No."),
    ]
    found = Reranker(only("generic_response")).rerank(TALK, candidates)
    assert [one.text for one in found] == ["Oh no!", "Yes.", "No."]
    assert dict(found[0].scores)["likelihood"] == -1


def test_one_candidate_or_none():
    found = Reranker(RerankerConfig(), Lengths()).rerank(
        TALK, [Candidate("Where did it go when you saw it last?")]
    )
    assert dict(found[0].scores)["choice"] == 0
    assert Reranker().rerank(TALK, []) == ()


def test_unknown_judges_and_wrong_weights_are_errors():
    with pytest.raises(UnknownNameError, match="'ranker'"):
        RerankerConfig(without=("rankr",))
    with pytest.raises(UnknownNameError, match=r"Known: liked, reader, ranker, likelihood"):
        RerankerConfig(without=("xyz",))
    for weight in (-1.0, float("nan"), float("inf")):
        with pytest.raises(InputError, match="The weight of stock"):
            RerankerConfig(generic_response=weight)


def test_results_name_what_moves_a_choice():
    choice = Reranker(only("ranker", "generic_response", ranker=1.0), Lengths())
    assert choice.conditions()["judges"] == "ranker 1, stock 0.7"
    assert choice.conditions()["ranker"] == "lengths, key k"
    assert choice.key == Reranker(only("ranker", "generic_response", ranker=1.0), Lengths()).key
    others = [
        Reranker(only("ranker", ranker=1.0), Lengths()),
        Reranker(only("ranker", "generic_response", ranker=1.0)),
    ]
    assert choice.key not in [other.key for other in others]


def test_nothing_is_loaded_that_is_not_asked():
    choice = Reranker.load(only("generic_response"))
    assert choice.ranker is None
    assert choice.annotator is None


def test_it_fills_the_listeners_place():
    reply = Listener(generate=Echo(), rerank=Reranker()).reply("My dog ran away.", seed=1)
    assert "choice" in dict(reply.candidates[0].scores)


@pytest.mark.parametrize("want", [Factors(act="questioning"), Factors(mechanisms=()), Factors(tone="joy")])
def test_who_steers_gets_the_reply_that_does_it(monkeypatch, want):
    asked = list[Factors | None]()

    def plan_adherence(readings, candidates, wanted):
        asked.append(wanted)
        return [0.2, 0.9]

    monkeypatch.setattr(module, "plan_adherence", plan_adherence)
    monkeypatch.setattr(module, "read_candidates", lambda *given: [])
    candidates = [
        Candidate("a", scores=(("likelihood", -1.0),)),
        Candidate("b", scores=(("likelihood", -2.0),)),
    ]
    choice = Reranker(
        only("likelihood", "plan_adherence", likelihood=1.0, plan_adherence=0.5, steered=1.5),
        annotator=object(),
    )
    assert choice.rerank(TALK, candidates)[0].text == "a"
    best = choice.rerank(TALK, candidates, want)[0]
    assert best.text == "b" and dict(best.scores)["choice"] == 0.5
    assert asked == [None, want]
    # What the other feels is no part of what a reply does.
    assert choice.rerank(TALK, candidates, Factors(emotion="sad"))[0].text == "a"
    off = only("likelihood", likelihood=1.0, steered=1.5)
    assert Reranker(off, annotator=object()).rerank(TALK, candidates, want)[0].text == "a"


def test_no_plan_excuses_a_fault(monkeypatch):
    monkeypatch.setattr(module, "plan_adherence", lambda readings, candidates, want: [0.2, 0.9])
    monkeypatch.setattr(module, "read_candidates", lambda *given: [])
    candidates = [Candidate("That is hard."), Candidate("My wife lost hers.")]
    config = only(
        "unsupported_disclosure",
        "plan_adherence",
        unsupported_disclosure=1.0,
        plan_adherence=0.0,
        steered=1.5,
        steered_faults=4.0,
    )
    choice = Reranker(replace(config, every=True), annotator=object())
    scores = {
        one.text: dict(one.scores)["choice"] for one in choice.rerank(TALK, candidates, Factors(tone="joy"))
    }
    assert scores == {"That is hard.": -1.5, "My wife lost hers.": 1.5 - 4.0}
    assert dict(choice.rerank(TALK, candidates)[1].scores)["choice"] == -1.0


def test_what_a_reply_shows_counts_unless_somebody_steers(monkeypatch):
    levels = {"interpretation": [0.0, 2.0], "exploration": [1.0, None]}
    monkeypatch.setattr(module, "read_candidates", lambda *given: [])
    monkeypatch.setattr(module, "shown", lambda readings, mechanism: levels[mechanism])
    monkeypatch.setattr(module, "plan_adherence", lambda readings, candidates, want: [0.9, 0.1])
    candidates = [Candidate("That is hard."), Candidate("You must miss him.")]
    config = only(
        "interprets", "explores", "plan_adherence", interprets=1.5, explores=0.5, plan_adherence=0.0
    )
    choice = Reranker(config, annotator=object())
    best, other = (dict(one.scores) for one in choice.rerank(TALK, candidates))
    assert (best["choice"], other["choice"]) == (3.0, 0.5) and "explores" not in best
    assert choice.rerank(TALK, candidates, Factors(tone="joy"))[0].text == "That is hard."
    assert "interprets" not in dict(Reranker(config).rerank(TALK, candidates)[0].scores)  # nobody reads


def test_who_steers_is_asked_before_raters():
    steered = RerankerConfig(reward=3.0, steered_reward=1.0, steered=4.5).for_steering()
    assert (steered.reward, steered.plan_adherence, steered.interprets) == (1.0, 4.5, 0.0)
    assert RerankerConfig(reward=0.5).for_steering().reward == 0.5


@pytest.mark.parametrize(("likely", "amiss"), [(0.2, True), (0.5, False), (0.9, False)])
def test_what_was_asked_for_and_hardly_done_is_amiss(likely, amiss):
    choice = Reranker(RerankerConfig(done=0.5))
    chosen = [
        Candidate("a", scores=(("plan_adherence", likely),)),
        Candidate("b", scores=(("plan_adherence", 0.0),)),
    ]
    assert choice.misses_target(chosen, Factors(tone="joy")) is amiss
    for nothing in (None, Factors(), Factors(emotion="sad")):
        assert not choice.misses_target(chosen, nothing)
    assert not choice.misses_target([Candidate("a")], Factors(tone="joy"))  # nobody looked
