import json

import pytest

from listenwell.dialogue import Dialogue, Example, Factors, Turn
from listenwell.errors import InputError
from listenwell.evaluation.factor_prediction import (
    FactorPrediction,
    after_right,
    against,
    before,
    measure_planning,
    planning_conditions,
    predict_factors,
    read_predictions,
    write_predictions,
)
from tests.evaluation.fake_generator import PLAN, FakeGenerator

YES, NO = True, False


def told(name, mechanisms, act, expressed_emotion=None):
    """What was predicted: pairs (true, said) of the three mechanisms, ranks of act and expressed emotion."""
    ranks = {"act": act} | ({"expressed_emotion": expressed_emotion} if expressed_emotion else {})
    return FactorPrediction(name, tuple(ranks.items()), mechanisms)


RIGHT, WRONG = ((YES, YES), (NO, NO), (NO, NO)), ((YES, YES), (NO, YES), (NO, NO))
FOUR = [
    told("a", RIGHT, 1, 1),
    told("b", RIGHT, 2, 1),
    told("c", RIGHT, 5, 2),
    told("d", WRONG, 1, 4),
]


def test_the_next_factor_where_the_one_before_it_was_predicted():
    measured = measure_planning(FOUR)
    # Mechanisms are right in three of four; among those the act is first once, among three twice.
    assert measured["cm_exact"] == measured["da_share"] == 75
    assert measured["da_hits_1_after"] == pytest.approx(100 / 3)
    assert measured["da_hits_3_after"] == pytest.approx(200 / 3)
    # The act is right of a and d: the expressed emotion is first in one, in neither beyond three but d.
    assert measured["em_share"] == 50
    assert measured["em_hits_1_after"] == measured["em_hits_3_after"] == 50


def test_the_next_factor_over_all_replies():
    measured = measure_planning(FOUR)
    assert (measured["da_hits_1"], measured["da_hits_3"]) == (50, 75)
    assert (measured["em_hits_1"], measured["em_hits_3"]) == (50, 75)
    assert "da_first" not in measured


def test_each_mechanism_has_accuracy_and_macro_f1():
    measured = measure_planning(FOUR)
    assert (measured["er_accuracy"], measured["ip_accuracy"], measured["ex_accuracy"]) == (100, 75, 100)
    # IP: "no" is true four times and said three times, all right: F1 6/7; "yes" is said once, wrongly: 0.
    assert measured["ip_f1"] == pytest.approx(100 * (6 / 7) / 2)
    assert measured["er_f1"] == 50  # "no" never occurs: it pulls the mean down, as scikit-learn has it


def test_with_the_other_model_of_the_pair_both_must_be_right():
    other = [told("a", RIGHT, 1), told("b", WRONG, 1), told("c", RIGHT, 1), told("d", RIGHT, 1)]
    measured = measure_planning(FOUR, other)
    assert measured["cm_exact"] == 75 and measured["da_share"] == 50  # a and c
    assert (measured["da_hits_1_after"], measured["da_hits_3_after"]) == (50, 50)
    tests = against(FOUR, other, "CM ‖ DA")
    assert tests == {"DA against CM ‖ DA": "0 won, 1 lost, sign test p 1"}
    assert "by this model and by CM ‖ DA" in planning_conditions(FOUR, "CM ‖ DA")["given"]


def test_models_on_other_replies_cannot_be_paired():
    with pytest.raises(InputError, match="different replies"):
        measure_planning(FOUR, FOUR[:3])


def test_what_stands_before_a_factor_depends_on_what_the_generator_has():
    assert (before(FOUR[0], "act"), before(FOUR[0], "expressed_emotion")) == ("mechanisms", "act")
    only = FactorPrediction("a", (("expressed_emotion", 1),), RIGHT)
    assert before(only, "expressed_emotion") == "mechanisms"
    alone = FactorPrediction("a", (("act", 1),))
    assert before(alone, "act") is None and after_right([alone], "act") is None
    assert measure_planning([alone]) == {"da_first": 100, "da_hits_1": 100, "da_hits_3": 100}


def test_nothing_right_gives_a_share_and_no_hits():
    measured = measure_planning([told("a", WRONG, 1)])
    assert measured["da_share"] == 0 and "da_hits_1_after" not in measured


def test_a_generator_is_asked_for_each_factor_given_the_true_ones_before():
    class Noted(FakeGenerator):
        def factor_probabilities(self, dialogue, given):
            self.given = [*getattr(self, "given", []), given]
            return super().factor_probabilities(dialogue, given)

    generator = Noted()
    context = Dialogue((Turn("generator", "I lost my dog."),))
    (measured,) = predict_factors(generator, [("x", Example(context, Turn("listener", "How?")), PLAN)])
    assert generator.given == [
        Factors(),
        Factors(emotion="sad"),
        Factors(emotion="sad", mechanisms=("exploration",)),
        Factors(emotion="sad", mechanisms=("exploration",), act="questioning"),
        PLAN,
    ]
    assert dict(measured.ranks) == {"emotion": 2, "act": 2, "expressed_emotion": 1}
    assert measured.mechanisms == ((NO, NO), (NO, NO), (YES, YES))
    assert measure_planning([measured])["emotion_hits_1"] == 0
    assert measure_planning([measured])["emotion_hits_5"] == 100


def test_a_generator_without_some_factors_is_not_measured_by_them():
    class Acts(FakeGenerator):
        def factor_probabilities(self, dialogue, given):
            measured = super().factor_probabilities(dialogue, given)
            return {level: row for level, row in measured.items() if level == "act"}

    example = Example(Dialogue((Turn("generator", "Hi."),)), Turn("listener", "Yes?"))
    assert predict_factors(Acts(), [("x", example, PLAN)]) == [FactorPrediction("x", (("act", 2),))]


def test_a_generator_may_answer_for_the_next_factor_alone():
    class Next(FakeGenerator):
        def factor_probabilities(self, dialogue, given):
            return dict(list(super().factor_probabilities(dialogue, given).items())[:1])

    example = Example(Dialogue((Turn("generator", "Hi."),)), Turn("listener", "Yes?"))
    examples = [("x", example, PLAN)]
    assert predict_factors(Next(), examples) == predict_factors(FakeGenerator(), examples)


def test_predictions_goes_to_a_file_and_back(tmp_path):
    file = tmp_path / "planning.jsonl"
    write_predictions(FOUR, file)
    assert read_predictions(file) == FOUR
    assert json.loads(file.read_text().splitlines()[0])["ranks"] == {"act": 1, "expressed_emotion": 1}
    file.write_text("{}\n")
    with pytest.raises(InputError, match="holds no plans"):
        read_predictions(file)
    with pytest.raises(InputError, match="There is no file"):
        read_predictions(tmp_path / "none")


def test_no_plans_is_an_error():
    with pytest.raises(InputError, match="no plans to measure"):
        measure_planning([])
