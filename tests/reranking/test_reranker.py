from dataclasses import fields

import pytest

from listenwell.dialogue import Candidate, Dialogue, Factors, Persona, Turn
from listenwell.errors import InputError, UnknownNameError
from listenwell.listener import Listener
from listenwell.reranking import reranker as module
from listenwell.reranking.config import FAULTS, FEATURES, MERITS, OLD_NAMES, RerankerConfig
from listenwell.reranking.features import brevity
from listenwell.reranking.reranker import Reranker, standardized
from listenwell.serialization import build
from tests.test_listener import Echo

TALK = Dialogue((Turn("speaker", "My dog ran away."),), personas=(Persona("listener", ("i am a nurse.",)),))


def only(*features, **weights):
    return RerankerConfig(
        **weights, without=tuple(feature for feature in FEATURES if feature not in features)
    )


def test_every_feature_has_a_weight():
    others = {"steered", "steered_reward", "steered_faults", "done", "without"}
    assert {field.name for field in fields(RerankerConfig)} == {*FEATURES, *others}
    assert RerankerConfig().active() == tuple(name for name in FEATURES if name not in MERITS)


def test_names_of_earlier_releases_are_understood():
    assert build(RerankerConfig, {"liked": 2.0, "interprets": 1.0}).reward == 2.0
    old = RerankerConfig(without=("liked", "reader", "ranker", "prior", "stock"))
    assert old.without == ("reward", "generic_response")
    assert {name for name in OLD_NAMES.values() if name != "total"} < set(FEATURES)


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
        assert dict(best.scores) == {"likelihood": -1.0 * scale, "total": 0.7}


def test_standardized_features_and_faults_together():
    candidates = [
        Candidate("My wife lost her dog.", scores=(("likelihood", -1.0), ("reward", -1.0))),
        Candidate("How long is it gone?", scores=(("likelihood", -2.0), ("reward", -1.0))),
    ]
    config = only(
        "likelihood", "reward", "unsupported_disclosure", likelihood=1.0, unsupported_disclosure=1.5
    )
    found = Reranker(config).rerank(TALK, candidates)
    assert [dict(one.scores) for one in found] == [
        {"likelihood": -2.0, "reward": -1.0, "unsupported_disclosure": 0.0, "total": -1.0},
        {"likelihood": -1.0, "reward": -1.0, "unsupported_disclosure": 1.0, "total": -0.5},
    ][::-1]
    harder = Reranker(
        only("likelihood", "unsupported_disclosure", likelihood=1.0, unsupported_disclosure=2.5)
    )
    assert harder.rerank(TALK, candidates)[0].text == "How long is it gone?"


def test_every_fault_is_found_under_its_name():
    talk = Dialogue((Turn("listener", "Where did you see it last?"), *TALK.turns), personas=TALK.personas)
    replies = {
        "generic_response": "I am so sorry.",
        "repetition": "Where did you see it last?",
        "copied_persona": "I like to walk my dogs at night.",
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
        assert scores["total"] == pytest.approx(-taken, abs=1e-3)


def test_the_others_persona_supports_nothing():
    talk = Dialogue(TALK.turns, personas=(Persona("speaker", ("my wife is a nurse.",)),))
    found = Reranker(only("unsupported_disclosure")).rerank(talk, [Candidate("My wife is here.")])
    assert dict(found[0].scores)["unsupported_disclosure"] == 1


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
    found = Reranker(RerankerConfig()).rerank(TALK, [Candidate("Where did it go when you saw it last?")])
    assert dict(found[0].scores)["total"] == 0
    assert Reranker().rerank(TALK, []) == ()


def test_unknown_features_and_wrong_weights_are_errors():
    with pytest.raises(UnknownNameError, match="'reward'"):
        RerankerConfig(without=("rewrd",))
    with pytest.raises(UnknownNameError, match=r"Known: reward, likelihood"):
        RerankerConfig(without=("xyz",))
    for weight in (-1.0, float("nan"), float("inf")):
        with pytest.raises(InputError, match="The weight of generic_response"):
            RerankerConfig(generic_response=weight)


def test_conditions_name_what_changes_an_order():
    reranker = Reranker(only("reward", "generic_response"))
    assert reranker.conditions()["reranking features"] == "reward 3, generic_response 0.7"
    assert reranker.key == Reranker(only("reward", "generic_response")).key
    assert reranker.key not in (Reranker(only("reward")).key, Reranker().key)


def test_no_annotator_is_loaded_that_is_not_needed():
    assert Reranker.load(only("generic_response")).annotator is None


def test_it_fills_the_stage():
    reply = Listener(generate=Echo(), rerank=Reranker()).reply("My dog ran away.", seed=1)
    assert "total" in dict(reply.candidates[0].scores)


@pytest.mark.parametrize(
    "target", [Factors(act="questioning"), Factors(mechanisms=()), Factors(expressed_emotion="joy")]
)
def test_who_steers_gets_the_reply_that_does_it(monkeypatch, target):
    asked = list[Factors | None]()

    def plan_adherence(readings, candidates, targeted):
        asked.append(targeted)
        return [0.2, 0.9]

    monkeypatch.setattr(module, "plan_adherence", plan_adherence)
    monkeypatch.setattr(module, "predict_candidates", lambda *given: [])
    candidates = [
        Candidate("a", scores=(("likelihood", -1.0),)),
        Candidate("b", scores=(("likelihood", -2.0),)),
    ]
    reranker = Reranker(
        only("likelihood", "plan_adherence", likelihood=1.0, plan_adherence=0.5, steered=1.5),
        annotator=object(),
    )
    assert reranker.rerank(TALK, candidates)[0].text == "a"
    best = reranker.rerank(TALK, candidates, target)[0]
    assert best.text == "b" and dict(best.scores)["total"] == 0.5
    assert asked == [None, target]
    # What the other feels is no part of what a reply does.
    assert reranker.rerank(TALK, candidates, Factors(emotion="sad"))[0].text == "a"
    off = only("likelihood", likelihood=1.0, steered=1.5)
    assert Reranker(off, annotator=object()).rerank(TALK, candidates, target)[0].text == "a"


def test_no_plan_excuses_a_fault(monkeypatch):
    monkeypatch.setattr(module, "plan_adherence", lambda readings, candidates, target: [0.2, 0.9])
    monkeypatch.setattr(module, "predict_candidates", lambda *given: [])
    candidates = [Candidate("That is hard."), Candidate("My wife lost hers.")]
    config = only(
        "unsupported_disclosure",
        "plan_adherence",
        unsupported_disclosure=1.0,
        plan_adherence=0.0,
        steered=1.5,
        steered_faults=4.0,
    )
    reranker = Reranker(config, annotator=object())
    scores = {
        one.text: dict(one.scores)["total"]
        for one in reranker.rerank(TALK, candidates, Factors(expressed_emotion="joy"))
    }
    assert scores == {"That is hard.": -1.5, "My wife lost hers.": 1.5 - 4.0}
    assert dict(reranker.rerank(TALK, candidates)[1].scores)["total"] == -1.0


def test_what_a_reply_shows_counts_unless_somebody_steers(monkeypatch):
    levels = {"interpretation": [0.0, 2.0], "exploration": [1.0, None]}
    monkeypatch.setattr(module, "predict_candidates", lambda *given: [])
    monkeypatch.setattr(module, "mechanism_levels", lambda readings, mechanism: levels[mechanism])
    monkeypatch.setattr(module, "plan_adherence", lambda readings, candidates, target: [0.9, 0.1])
    candidates = [Candidate("That is hard."), Candidate("You must miss him.")]
    config = only(
        "interpretation",
        "exploration",
        "plan_adherence",
        interpretation=1.5,
        exploration=0.5,
        plan_adherence=0.0,
    )
    reranker = Reranker(config, annotator=object())
    best, other = (dict(one.scores) for one in reranker.rerank(TALK, candidates))
    assert (best["total"], other["total"]) == (3.0, 0.5) and "exploration" not in best
    assert reranker.rerank(TALK, candidates, Factors(expressed_emotion="joy"))[0].text == "That is hard."
    assert "interpretation" not in dict(Reranker(config).rerank(TALK, candidates)[0].scores)  # nobody reads


def test_a_target_limits_the_reward():
    steered = RerankerConfig(reward=3.0, steered_reward=1.0, steered=4.5).for_steering()
    assert (steered.reward, steered.plan_adherence, steered.interpretation) == (1.0, 4.5, 0.0)
    assert RerankerConfig(reward=0.5).for_steering().reward == 0.5


@pytest.mark.parametrize(("likely", "amiss"), [(0.2, True), (0.5, False), (0.9, False)])
def test_what_was_asked_for_and_hardly_done_is_amiss(likely, amiss):
    reranker = Reranker(RerankerConfig(done=0.5))
    chosen = [
        Candidate("a", scores=(("plan_adherence", likely),)),
        Candidate("b", scores=(("plan_adherence", 0.0),)),
    ]
    assert reranker.misses_target(chosen, Factors(expressed_emotion="joy")) is amiss
    for nothing in (None, Factors(), Factors(emotion="sad")):
        assert not reranker.misses_target(chosen, nothing)
    assert not reranker.misses_target([Candidate("a")], Factors(expressed_emotion="joy"))  # nobody looked
