from dataclasses import replace

import numpy as np
import pytest

from listenwell import checkpoint
from listenwell.dialogue import Dialogue, Factors, Turn
from listenwell.errors import InputError, WeightsError
from listenwell.generators import GENERATORS
from listenwell.generators.decoding import Decoding
from listenwell.labels import ACTS, EXPRESSED_EMOTIONS
from listenwell.papers.comae.checkpoint import KIND, save_model
from listenwell.papers.comae.generator import Comae, ComaeSettings
from listenwell.papers.comae.runtime import ComaeRuntime
from listenwell.papers.comae.scoring import score
from tests.papers.comae.talks import first_turns, tiny_comae, told_examples, told_talks

TALK = first_turns(told_talks(2)[1], 3)
SHORT = Decoding(repetition_penalty=1.0, max_tokens=12)
ONE = ComaeSettings(decoding=SHORT)


def generator(weights, settings=ONE, **config):
    model, inputs = tiny_comae(weights, loud=True, **config)
    return Comae(settings, ComaeRuntime(model, inputs.vocabulary))


def test_it_speaks_by_seed(tiny_llama):
    comae = generator(tiny_llama, ComaeSettings(candidates=4, decoding=SHORT))
    first, again, other = (comae.generate(TALK, (), seed) for seed in (1, 1, 2))
    assert first == again and first != other
    assert len(first.candidates) > 1
    for candidate in first.candidates:
        assert candidate.text.strip() and candidate.plan.emotion is None
        assert None not in (candidate.plan.mechanisms, candidate.plan.act, candidate.plan.expressed_emotion)
    assert len({candidate.plan for candidate in first.candidates}) > 1


def test_what_the_plan_gives_is_kept_and_the_rest_is_decided(tiny_llama):
    comae = generator(tiny_llama, ComaeSettings(candidates=6, decoding=SHORT))
    given = Factors(emotion="sad", mechanisms=("exploration",), expressed_emotion="caring")
    found = [candidate.plan for candidate in comae.generate(TALK, [given], 3).candidates]
    assert {(plan.emotion, plan.mechanisms, plan.expressed_emotion) for plan in found} == {
        ("sad", ("exploration",), "caring")
    }
    assert len({plan.act for plan in found}) > 1
    whole = replace(given, act="wishing")
    assert {candidate.plan for candidate in comae.generate(TALK, [whole], 3).candidates} == {whole}


def test_the_plan_moves_the_words(tiny_llama):
    comae = generator(tiny_llama)
    texts = {comae.generate(TALK, [Factors(None, (), act, "joy")], 1).candidates[0].text for act in ACTS}
    assert len(texts) > 3


def test_several_plans_have_their_own_replies(tiny_llama):
    plans = [
        Factors(mechanisms=(), act=act, expressed_emotion="joy") for act in ("wishing", "agreeing", "others")
    ]
    found = generator(tiny_llama).generate(TALK, plans, 1).candidates
    assert {candidate.plan.act for candidate in found} == {"wishing", "agreeing", "others"}


def test_plans_are_different_ones_that_keep_what_is_wanted(tiny_llama):
    comae = generator(tiny_llama, ComaeSettings(plans=5, candidates=5, decoding=SHORT))
    want = Factors(emotion="proud", act="wishing")
    plans = comae.plan(TALK, None, want, 1)
    assert len(set(plans)) == len(plans) == 5 and plans == comae.plan(TALK, None, want, 1)
    assert {(plan.emotion, plan.act) for plan in plans} == {("proud", "wishing")}
    spoken = comae.generate(TALK, plans, 1).candidates
    assert [candidate.plan for candidate in spoken] == list(plans)
    probabilities = [dict(candidate.scores)["plan"] for candidate in spoken]
    assert probabilities == sorted(probabilities, reverse=True)
    (forced,) = set(comae.plan(TALK, None, Factors(None, (), "others", "joy"), 1))
    assert forced == Factors(None, (), "others", "joy")


def test_a_batch_of_dialogues_is_each_of_them_alone(tiny_llama):
    comae = generator(tiny_llama)
    asked = [
        (example.context, [Factors(act="agreeing")], seed) for seed, example in enumerate(told_examples(5))
    ]
    for (dialogue, plans, seed), speech in zip(asked, comae.generate_batch(asked), strict=True):
        alone = comae.generate(dialogue, plans[:1], seed).candidates[0]
        assert (alone.text, alone.plan) == (speech.candidates[0].text, speech.candidates[0].plan)


def test_pieces_heard_on_the_way_add_up_to_the_first_reply(tiny_llama):
    pieces = []
    speech = generator(tiny_llama).generate(TALK, (), 5, pieces.append)
    assert "".join(pieces) == speech.candidates[0].text


def test_scores_are_the_models_own(tiny_llama):
    comae = generator(tiny_llama)
    (candidate,) = comae.generate(TALK, (), 1).candidates
    scores, plan = dict(candidate.scores), candidate.plan
    probabilities = comae.factor_probabilities(TALK, Factors())["mechanisms"]
    yes = np.array(
        [name in plan.mechanisms for name in ("emotional_reaction", "interpretation", "exploration")]
    )
    expected = np.log(np.where(yes, probabilities, 1 - probabilities)).sum()
    given = Factors(mechanisms=plan.mechanisms)
    expected += np.log(comae.factor_probabilities(TALK, given)["act"][ACTS.index(plan.act)])
    expressed_emotions = comae.factor_probabilities(TALK, replace(given, act=plan.act))["expressed_emotion"]
    expected += np.log(expressed_emotions[EXPRESSED_EMOTIONS.index(plan.expressed_emotion)])
    assert scores["plan"] == pytest.approx(expected, abs=1e-3)
    assert scores["likelihood"] < 0


def test_the_likeliest_factors_need_no_seed(tiny_llama):
    comae = generator(tiny_llama, ComaeSettings(sampled=False, decoding=SHORT))
    plans = {comae.generate(TALK, (), seed).candidates[0].plan for seed in range(5)}
    (plan,) = plans
    act = comae.factor_probabilities(TALK, Factors(mechanisms=plan.mechanisms))["act"]
    assert plan.act == ACTS[int(act.argmax())]


def test_drawn_factors_come_as_often_as_they_are_likely(tiny_llama):
    comae = generator(tiny_llama, ComaeSettings(factor_top_p=1.0, decoding=SHORT), factors=("act",))
    state = comae.runtime.pick(comae._read([TALK])[1], [0] * 800)
    plans, _ = comae._decide(state, np.full((800, 5), -1), range(800))
    probabilities = comae.factor_probabilities(TALK, Factors())["act"]
    assert np.bincount(plans[:, 3], minlength=9) / 800 == pytest.approx(probabilities, abs=0.05)
    narrow = generator(tiny_llama, ComaeSettings(factor_top_p=0.01, decoding=SHORT), factors=("act",))
    assert set(narrow._decide(state, np.full((800, 5), -1), range(800))[0][:, 3]) == {
        int(probabilities.argmax())
    }


@pytest.mark.parametrize("hierarchical", [True, False])
def test_chances_follow_the_factors_before(tiny_llama, hierarchical):
    comae = generator(tiny_llama, hierarchical=hierarchical)
    found = comae.factor_probabilities(TALK, Factors())
    assert {name: value.shape for name, value in found.items()} == {
        "mechanisms": (3,),
        "act": (9,),
        "expressed_emotion": (10,),
    }
    assert (
        found["act"].sum() == pytest.approx(1)
        and ((found["mechanisms"] > 0) & (found["mechanisms"] < 1)).all()
    )
    one, other = (
        comae.factor_probabilities(TALK, Factors(mechanisms=given)) for given in ((), ("exploration",))
    )
    assert set(one) == {"act", "expressed_emotion"}
    assert (one["act"] == pytest.approx(other["act"])) != hierarchical
    assert (
        comae.factor_probabilities(TALK, Factors(mechanisms=(), act="others", expressed_emotion="joy")) == {}
    )


def test_a_factor_that_the_model_lacks_is_said_and_not_pretended(tiny_llama):
    comae = generator(tiny_llama, factors=("expressed_emotion",))
    speech = comae.generate(TALK, [Factors(mechanisms=(), act="wishing", expressed_emotion="joy")], 1)
    assert speech.candidates[0].plan == Factors(expressed_emotion="joy")
    assert speech.notices == ("The model +EM is not told: mechanisms, act.",)
    vanilla = generator(tiny_llama, factors=())
    assert vanilla.generate(TALK, (), 1).candidates[0].plan is None
    assert vanilla.plan(TALK, None, Factors(), 1) == ()
    assert dict(vanilla.generate(TALK, (), 1).candidates[0].scores).keys() == {"likelihood"}


def test_perplexity_with_gold_predicted_and_no_factors(tiny_llama):
    comae, examples = generator(tiny_llama), told_examples(4)
    found = {given: comae.perplexity(examples, given) for given in ("gold", "predicted", "none")}
    pieces = [comae.runtime.inputs.encode(example, 256) for example in examples]
    expected = score(comae.runtime.model, pieces).nll
    for given, perplexity in found.items():
        assert perplexity.nll == pytest.approx(expected[given].sum(), rel=1e-6)
        assert perplexity.tokens == sum(piece.weight for piece in pieces)
        assert perplexity.words == sum(len(example.reply.text.split()) for example in examples)
    assert len({round(perplexity.nll, 3) for perplexity in found.values()}) == 3
    with pytest.raises(InputError, match="golden"):
        comae.perplexity(examples, "golden")
    unlabelled = replace(examples[0], reply=replace(examples[0].reply, factors=None))
    with pytest.raises(InputError, match="Annotate the corpus"):
        comae.perplexity([unlabelled])
    assert comae.perplexity([unlabelled], "none").nll == pytest.approx(
        comae.perplexity(examples[:1], "none").nll
    )


class FakeAnnotator:
    def __init__(self):
        self.asked = []

    def annotate_all(self, dialogues, top):
        for dialogue in dialogues:
            self.asked.append(dialogue)
            factors = Factors(act="agreeing", expressed_emotion="fear")
            yield replace(dialogue, turns=tuple(replace(turn, factors=factors) for turn in dialogue.turns))


def test_unknown_acts_and_expressed_emotions_are_read_once_and_known_ones_stay(tiny_llama):
    comae = generator(tiny_llama)
    comae.__dict__["_annotator"] = fake = FakeAnnotator()
    comae.generate(TALK, (), 1)
    assert fake.asked == []
    unlabelled = Dialogue((Turn("speaker", "My dog died."),))
    before = comae.factor_probabilities(unlabelled, Factors())
    comae.generate(unlabelled, (), 1)
    assert fake.asked == [unlabelled]
    labelled = Dialogue(
        (replace(unlabelled.turns[0], factors=Factors(act="agreeing", expressed_emotion="fear")),)
    )
    assert comae.factor_probabilities(labelled, Factors())["act"] == pytest.approx(before["act"])
    plain = generator(tiny_llama, ComaeSettings(annotate=False, decoding=SHORT))
    assert plain.factor_probabilities(unlabelled, Factors())["act"] != pytest.approx(before["act"])
    vanilla = generator(tiny_llama, factors=("mechanisms",))
    vanilla.__dict__["_annotator"] = None  # never asked: this model is told neither
    vanilla.generate(unlabelled, (), 1)


def test_it_loads_by_name_from_a_run(tiny_llama, tmp_path):
    model, inputs = tiny_comae(tiny_llama, loud=True)
    with checkpoint.writing(tmp_path / "run" / "best", KIND) as folder:
        save_model(model, inputs.vocabulary, folder)
    generator = GENERATORS.load("comae")
    comae = generator.load(generator.Config(decoding=SHORT), tmp_path / "run")
    assert comae.name == "comae CM → DA → EM (run)"
    assert comae.generate(TALK, (), 1).candidates[0].text
    assert {path.name for path in comae.files()} >= {"config.json", "model.safetensors"}
    assert comae.conditions()["model of the family"] == "CM → DA → EM"
    with pytest.raises(WeightsError, match=r"recipes/comae/comae\.yaml"):
        generator.load(generator.Config())


@pytest.mark.parametrize(
    "settings", [{"candidates": 0}, {"plans": 65}, {"prompt_tokens": 8}, {"factor_top_p": 0.0}]
)
def test_wrong_settings_are_refused(settings):
    with pytest.raises(InputError, match=next(iter(settings))):
        ComaeSettings(**settings)


def test_a_long_talk_leaves_room_for_the_reply(tiny_llama):
    comae = generator(tiny_llama, ComaeSettings(prompt_tokens=10_000, annotate=False))
    speech = comae.generate(Dialogue((Turn("speaker", "so happy " * 600),)), (), 1)
    assert speech.notices and speech.candidates[0].text
