"""The annotators and the light classifier that come with the package."""

import re

import pytest

from listenwell import Annotator, Dialogue, Turn
from listenwell.annotators import fasttext as bag
from listenwell.annotators.annotator import SHIPPED, find_classifiers
from listenwell.annotators.config import KIND, ClassifierConfig
from listenwell.annotators.fasttext import FastTextClassifier
from listenwell.annotators.heads import HEADS, RISK_HEADS
from listenwell.annotators.inference import OnnxClassifier
from listenwell.checkpoint import open_checkpoint
from listenwell.labels import EMOTIONS, MECHANISMS

GLAD = {"joyful", "excited", "proud", "confident", "impressed", "surprised", "grateful", "content"}
SAD = {"sad", "devastated", "lonely", "sentimental", "disappointed"}
LIMIT_BYTES = 40 * 10**6
FIGURE = re.compile(r"\| \d+\.\d+ ± \d+\.\d+ \|")
"""A cell with a measured figure and its spread; "32 emotions" is none."""


@pytest.fixture(scope="module", params=["torch", "onnx"])
def annotator(request, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:  # the user's own cache is left alone
        patch.setenv("LISTENWELL_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield Annotator.load(engine=request.param)


def heard(annotator, text, head="emotion"):
    return annotator.annotate(Dialogue((Turn("speaker", text),))).turns[0].reading(head).scores


def test_every_head_is_there_once():
    configs = [
        ClassifierConfig.from_dict(open_checkpoint(folder, KIND).config())
        for folder in find_classifiers(SHIPPED)
    ]
    heads = [head for config in configs for head in config.heads]
    assert sorted(heads) == sorted(set(HEADS) - set(RISK_HEADS))
    for config in configs:
        assert dict(config.temperatures).keys() == set(config.heads)  # every probability is calibrated
        assert all(0.05 < value < 20 for _, value in config.temperatures)
    assert {name for config in configs for name in config.marked} == set(MECHANISMS)


def test_the_files_are_small():
    assert bag.SHIPPED.parent == SHIPPED.parent
    files = [file for file in SHIPPED.parent.rglob("*") if file.is_file()]
    assert {folder / "checkpoint.json" for folder in (*find_classifiers(SHIPPED), bag.SHIPPED)} <= set(files)
    assert 0 < sum(file.stat().st_size for file in files) < LIMIT_BYTES


def test_each_has_a_model_card_that_tells_what_a_user_must_know():
    for folder in find_classifiers(SHIPPED):
        saved = open_checkpoint(folder, KIND)
        card = saved.path("README.md").read_text(encoding="utf-8").casefold()
        for corpus in ("empatheticdialogues", "empatheticintents", "goemotions", "epitome"):
            assert corpus in card, corpus
        for word in ("licence", "cc by-nc", "limitations", "accuracy", "macro f1", "all-minilm-l6-v2"):
            assert word in card, word
        assert "{{" not in card  # the figures were put in
        assert any(line.startswith("|") and FIGURE.search(line) for line in card.splitlines())
        assert "recipe.yaml" in saved.sums


def test_the_light_classifier_is_whole_and_has_a_card():
    saved = open_checkpoint(bag.SHIPPED, bag.KIND)
    assert {"config.json", "model.safetensors", "recipe.yaml", "README.md"} <= set(saved.sums)
    card = saved.path("README.md").read_text(encoding="utf-8").casefold()
    for word in ("empatheticdialogues", "licence", "cc by-nc", "limitations", "accuracy"):
        assert word in card, word
    assert "{{" not in card
    assert any(line.startswith("|") and FIGURE.search(line) for line in card.splitlines())


def test_the_light_classifier_hears_sadness_and_joy():
    light = FastTextClassifier.load()
    assert light.config.reads == "situation emotion"
    assert sorted(light.config.labels) == sorted(EMOTIONS)
    assert light.label("My dog died last night.") in SAD
    assert light.label("I finally got promoted today!") in GLAD


@pytest.mark.weights
def test_joy_is_heard(annotator):
    found = heard(annotator, "I finally got promoted today!")
    assert len(found) == 5
    assert {score.label for score in found} & {"joyful", "excited", "proud"}
    assert found[0].label in GLAD
    assert heard(annotator, "I finally got promoted today!", "expressed_emotion")[0].label == "joy"


@pytest.mark.weights
def test_sadness_is_heard(annotator):
    found = heard(annotator, "My dog died last night.")
    assert found[0].label in SAD
    assert "sad" in {score.label for score in found} or "devastated" in {score.label for score in found}
    assert heard(annotator, "My dog died last night.", "expressed_emotion")[0].label == "sadness"


@pytest.mark.weights
def test_what_a_reply_does_is_heard(annotator):
    talk = Dialogue(
        (
            Turn("speaker", "My dog died last night."),
            Turn("listener", "I am so sorry to hear that. How long did you have him?"),
        )
    )
    reply = annotator.annotate(talk).turns[1]
    assert reply.factors.emotion in SAD
    assert {"emotional_reaction", "exploration"} <= set(reply.factors.mechanisms)
    assert "interpretation" not in reply.factors.mechanisms
    assert "sorry" in " ".join(reply.reading("emotional_reaction").words)
    assert heard(annotator, "How long did you have him?", "act")[0].label == "questioning"


@pytest.mark.weights
def test_probabilities_add_up_and_heads_can_be_chosen(annotator):
    turn = annotator.annotate(Dialogue((Turn("speaker", "Thank you so much!"),)), top=99).turns[0]
    single = [r for r in turn.readings if r.head not in HEADS or not HEADS[r.head].several]
    assert {"emotion", "emotion_group", "intent", "act", "expressed_emotion"} <= {
        reading.head for reading in single
    }
    for reading in single:
        assert sum(score.probability for score in reading.scores) == pytest.approx(1, abs=0.01)
    assert turn.reading("goemotions").scores[0].label == "gratitude"
    engine = "onnx" if isinstance(annotator._classifiers[0][0], OnnxClassifier) else "torch"
    only = Annotator.load(heads=["emotion"], engine=engine)
    assert only.heads == ("emotion",) and only.key != annotator.key
    assert heard(only, "I miss him.") == heard(annotator, "I miss him.")
