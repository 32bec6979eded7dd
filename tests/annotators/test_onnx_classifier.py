import json
import shutil

import numpy as np
import pytest

from listenwell import Annotator, Dialogue, Turn, checkpoint
from listenwell.annotators.config import ClassifierConfig
from listenwell.annotators.heads import HEADS
from listenwell.annotators.inference import OnnxClassifier, classify, load_onnx_classifier
from listenwell.annotators.model import MultiTaskClassifier, load_classifier
from listenwell.annotators.views import encode_views
from listenwell.errors import CheckpointError, InputError
from listenwell.runtime import engines
from tests.annotators.no_torch import run_without_torch
from tests.annotators.test_model import without_a_head
from tests.tiny import keep_ear, save_tiny_encoder, tiny_ear

pytestmark = pytest.mark.usefixtures("installed_encoder")
TALK = Dialogue(
    (
        Turn("speaker", "My dog died."),
        Turn("listener", "I am so sorry to hear that! What happened?"),
        Turn("speaker", "thank you for asking"),
    )
)
VIEWS = [
    (("I am so sad", False),),
    (("My dog died.", False), ("So sorry to hear that!", True)),
    (("!", True),),
    (("what happened to the new job ? " * 9, False),),
]


def both(tiny_encoder, folder, lora=True, **settings):
    """The same ear on both engines, exact."""
    kept = keep_ear(tiny_ear(tiny_encoder, HEADS, lora, marks_words=True, **settings), folder)
    return load_classifier(kept), load_onnx_classifier(kept, precision="fp32")


@pytest.mark.parametrize("lora", [True, False])
@pytest.mark.parametrize("pooling", ["mean", "first", "last"])
def test_it_hears_what_the_ear_on_torch_hears(tiny_encoder, tmp_path, lora, pooling):
    (classifier, vocabulary), (onnx, its_own) = both(
        tiny_encoder, tmp_path / "classifier", lora, pooling=pooling
    )
    assert onnx.config == classifier.config and onnx.width == classifier.width
    given = encode_views(vocabulary, VIEWS, classifier.config.limit)
    assert [one.tokens.tolist() for one in encode_views(its_own, VIEWS, classifier.config.limit)] == [
        one.tokens.tolist() for one in given
    ]
    wanted, found = classify(classifier, given, {1, 3}), classify(onnx, given, {1, 3})
    assert found.pooled.dtype == np.float32
    np.testing.assert_allclose(found.pooled, wanted.pooled, atol=1e-5)
    for head in HEADS:
        assert np.ptp(wanted.logits(head), axis=0).max() > 0.1  # texts are not all alike
        np.testing.assert_allclose(found.logits(head), wanted.logits(head), atol=1e-4)
        np.testing.assert_allclose(found.logits(head, [3, 1]), wanted.logits(head, [3, 1]), atol=1e-4)
    for place in (1, 3):
        np.testing.assert_allclose(found.words[place], wanted.words[place], atol=1e-5)


def test_annotations_are_the_same_in_full_precision_and_near_in_eight_bits(tiny_encoder, tmp_path):
    folder = keep_ear(tiny_ear(tiny_encoder, HEADS, lora=True, marks_words=True), tmp_path / "classifier")
    wanted = Annotator.load(folder, engine="torch").annotate(TALK, top=99)
    for precision, near in (("fp32", 1.5e-4), ("int8", 0.2)):
        found = Annotator.load(folder, engine="onnx", precision=precision).annotate(TALK, top=99)
        for turn, right in zip(found.turns, wanted.turns, strict=True):
            assert [reading.head for reading in turn.readings] == [reading.head for reading in right.readings]
            for reading in turn.readings:
                probabilities, truth = (
                    {score.label: score.probability for score in one.reading(reading.head).scores}
                    for one in (turn, right)
                )
                assert probabilities == pytest.approx(truth, abs=near)
        if precision == "fp32":
            assert [[read.words for read in turn.readings] for turn in found.turns] == [
                [read.words for read in turn.readings] for turn in wanted.turns
            ]


def test_auto_takes_onnxruntime_where_it_can(tiny_encoder, tmp_path, monkeypatch):
    folder = keep_ear(tiny_ear(tiny_encoder, ["act"]), tmp_path / "classifier")

    def kind(**settings):
        return type(Annotator.load(folder, **settings)._classifiers[0][0])

    assert (
        kind() is OnnxClassifier
        and kind(engine="onnx") is OnnxClassifier
        and kind(engine="torch") is MultiTaskClassifier
    )
    monkeypatch.setattr(engines, "is_installed", lambda package: package != "onnxruntime")
    assert kind() is MultiTaskClassifier
    with pytest.raises(InputError, match=r"needs the packages onnx and onnxruntime.*pip install"):
        kind(engine="onnx")


def test_an_ear_on_a_causal_model_stays_with_torch(tiny_llama, tmp_path, monkeypatch):
    from listenwell.runtime.encoder import load_encoder

    for module in ("runtime.encoder", "runtime.onnx.checkpoint_encoder"):
        monkeypatch.setattr(f"listenwell.{module}.find_weights", lambda base, folder=None: tiny_llama)
    model, _ = load_encoder("smollm2-135m-instruct", tiny_llama)
    folder = keep_ear(
        MultiTaskClassifier(model, ClassifierConfig("smollm2-135m-instruct", ("act",), "last", 64)),
        tmp_path / "classifier",
    )
    annotator = Annotator.load(folder)
    assert type(annotator._classifiers[0][0]) is MultiTaskClassifier
    assert annotator.key == Annotator.load(folder, engine="torch").key
    with pytest.raises(InputError, match=r"does not run on onnxruntime.*listenwell\[train\]"):
        Annotator.load(folder, engine="onnx")


def test_the_key_names_engine_and_precision(tiny_encoder, tmp_path):
    folder = keep_ear(tiny_ear(tiny_encoder, ["act"], lora=True), tmp_path / "classifier")
    same = shutil.copytree(folder, tmp_path / "same")
    keys = [
        Annotator.load(place, engine=engine, precision=precision).key
        for place in (folder, same)
        for engine, precision in (("torch", "int8"), ("onnx", "int8"), ("onnx", "fp32"))
    ]
    assert keys[:3] == keys[3:] and len(set(keys)) == 3
    assert Annotator.load(folder, engine="torch", precision="fp32").key == keys[0]  # it is always exact


def test_whole_weights_are_written_out_once_and_again_where_they_are_damaged(tiny_encoder, tmp_path):
    folder = keep_ear(tiny_ear(tiny_encoder, ["act"]), tmp_path / "classifier")

    def answer():
        classifier, vocabulary = load_onnx_classifier(folder, precision="fp32")
        return classify(classifier, encode_views(vocabulary, VIEWS, 64)).logits("act")

    first = answer()
    (made,) = (tmp_path / "cache" / "weights").glob("encoder-*")
    assert {file.name for file in made.iterdir()} == {
        "checkpoint.json",
        "config.json",
        "model.safetensors",
        "tokenizer.json",
    }
    weights = made / "model.safetensors"
    written = weights.stat().st_mtime_ns
    np.testing.assert_array_equal(answer(), first)
    assert weights.stat().st_mtime_ns == written
    weights.write_bytes(weights.read_bytes()[:-8])
    np.testing.assert_array_equal(answer(), first)
    assert weights.stat().st_mtime_ns != written
    # Another ear's weights are others.
    keep_ear(tiny_ear(tiny_encoder, ["act"], seed=2), tmp_path / "classifier")
    assert np.abs(answer() - first).max() > 0.1
    assert len(list((tmp_path / "cache" / "weights").glob("encoder-*"))) == 2


def test_an_encoder_of_ones_own_is_read(tiny_encoder, tmp_path):
    folder = keep_ear(tiny_ear(tiny_encoder, ["act"], lora=True), tmp_path / "classifier")
    (tmp_path / "other").mkdir()
    other = save_tiny_encoder(tmp_path / "other", seed=9)
    plain, own = (load_onnx_classifier(folder, place, "fp32") for place in (None, other))
    wanted, _ = load_classifier(folder, other)
    given = encode_views(own[1], VIEWS, 64)
    found = classify(own[0], given).logits("act")
    np.testing.assert_allclose(found, classify(wanted, given).logits("act"), atol=1e-4)
    assert np.abs(found - classify(plain[0], given).logits("act")).max() > 0.1


def test_what_cannot_be_used_is_named(tiny_encoder, tmp_path):
    half, whole = without_a_head(tiny_encoder, tmp_path), tmp_path / "whole"
    with pytest.raises(
        CheckpointError,
        match=r"lacks or adds the weights heads\.expressed_emotion\.bias, heads\.expressed_emotion",
    ):
        load_onnx_classifier(half)
    classifier, vocabulary = load_onnx_classifier(whole)
    with pytest.raises(InputError, match=r"marks no words.*marks_words"):
        classify(classifier, encode_views(vocabulary, VIEWS, 64), [0])
    with checkpoint.writing(tmp_path / "long", "classifier") as place:
        for name in ("adapter_config.json", "adapter_model.safetensors", "heads.safetensors"):
            shutil.copyfile(whole / name, place / name)
        config = json.loads((whole / "config.json").read_text()) | {"limit": 65}
        (place / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=r"limit is 65.*64"):
        load_onnx_classifier(tmp_path / "long")
    with pytest.raises(InputError, match=r"precision is 'int4'.*int8, fp32"):
        Annotator.load(whole, precision="int4")


def test_nothing_heard_is_nothing_answered(tiny_encoder, tmp_path):
    classifier, _ = load_onnx_classifier(keep_ear(tiny_ear(tiny_encoder, ["act"]), tmp_path / "classifier"))
    assert classify(classifier, []).logits("act").shape == (0, 9)


ANNOTATES = """
from pathlib import Path
from listenwell.annotators.annotator import Annotator
from listenwell.dialogue import Dialogue
annotator = Annotator.load(Path(sys.argv[1]), weights=Path(sys.argv[2]))
print(annotator.annotate(Dialogue.from_json(sys.argv[3])).to_json())
assert not {"torch", "transformers", "peft"} & set(sys.modules)
"""


@pytest.mark.parametrize("lora", [True, False])
def test_annotating_needs_no_torch(tiny_encoder, tmp_path, lora):
    folder = keep_ear(tiny_ear(tiny_encoder, HEADS, lora, marks_words=True), tmp_path / "classifier")
    printed = run_without_torch(ANNOTATES, folder, tiny_encoder, TALK.to_json())
    found = Dialogue.from_json(printed)
    assert found == Annotator.load(folder, weights=tiny_encoder).annotate(TALK)
    assert found.turns[1].factors.levels is not None


def test_without_torch_an_ear_for_it_says_what_to_install(tiny_encoder, tmp_path):
    folder = keep_ear(tiny_ear(tiny_encoder, ["act"]), tmp_path / "classifier")
    program = """
from pathlib import Path
from listenwell.annotators.annotator import Annotator
from listenwell.errors import MissingExtraError
try:
    Annotator.load(Path(sys.argv[1]), weights=Path(sys.argv[2]), engine="torch")
except MissingExtraError as error:
    print(error)
"""
    printed = run_without_torch(program, folder, tiny_encoder)
    assert "The annotator on all-minilm-l6-v2 needs the package 'torch'" in printed
    assert "pip install 'listenwell[train]'" in printed
