import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from listenwell import checkpoint
from listenwell.annotators.config import ClassifierConfig, probabilities
from listenwell.annotators.inference import classify
from listenwell.annotators.model import MultiTaskClassifier, load_classifier, load_encoder, with_temperatures
from listenwell.annotators.views import encode_views
from listenwell.errors import CheckpointError, InputError, RecipeError, UnknownNameError, WeightsError
from listenwell.runtime.text import Vocabulary, like_lengths
from listenwell.training.classifier_batch import ClassifierExample, collate
from tests.tiny import ENCODER, keep_ear, tiny_bert_tokenizer, tiny_ear

HEADS = ("emotion", "act", "goemotions", "exploration")
TEXTS = [
    (("I am so sad", False),),
    (("My dog died.", False), ("So sorry to hear that!", True)),
    (
        ("What happened?", True),
        ("my dog died", False),
        ("I am sorry", True),
        ("thank you for asking me", False),
    ),
    (("!", True),),
]


def inputs(encoder=None, texts=TEXTS, limit=64):
    vocabulary = Vocabulary.from_folder(encoder) if encoder else Vocabulary(tiny_bert_tokenizer())
    return encode_views(vocabulary, texts, limit)


def logits(classifier, given):
    heard = classify(classifier, given)
    return np.concatenate([heard.logits(head) for head in classifier.config.heads], axis=1)


def packed(classifier, given, rows, width, height=0):
    """The logits of texts laid out in rows, in the order of the texts."""
    batch = collate(
        [ClassifierExample(one.tokens, one.types, one.last) for one in given], rows, width, height
    )
    tensors = [torch.from_numpy(a) for a in (batch.tokens, batch.types, batch.positions, batch.segments)]
    with torch.inference_mode():
        pooled = classifier.pooled(
            classifier.states(*tensors), *map(torch.from_numpy, (batch.owners, batch.starts))
        )
        found = torch.cat(
            [classifier.logits(pooled, head) for head in classifier.config.heads], dim=1
        ).numpy()
    back = np.zeros_like(found)
    back[[number for row in rows for number in row]] = found
    return back


@pytest.fixture(scope="module")
def llama_ear(tiny_llama):
    encoder, _ = load_encoder("smollm2-135m-instruct", tiny_llama)
    torch.manual_seed(2)
    return MultiTaskClassifier(
        encoder, ClassifierConfig("smollm2-135m-instruct", ("act",), "last", 64)
    ).eval()


@pytest.mark.parametrize("pooling", ["mean", "first", "last"])
def test_no_neighbour_and_no_padding_changes_a_text(tiny_encoder, pooling):
    classifier, given = tiny_ear(tiny_encoder, HEADS, pooling=pooling), inputs()
    alone = np.concatenate([logits(classifier, [one]) for one in given])
    assert np.abs(alone[0] - alone[1]).max() > 0.1  # texts are not all alike
    close = {"rtol": 0, "atol": 2e-5}
    np.testing.assert_allclose(logits(classifier, given), alone, **close)
    np.testing.assert_allclose(logits(classifier, given[::-1])[::-1], alone, **close)
    np.testing.assert_allclose(packed(classifier, given, [[0], [1], [2], [3]], 60), alone, **close)
    np.testing.assert_allclose(packed(classifier, given, [[2, 0, 1, 3]], 60), alone, **close)
    np.testing.assert_allclose(packed(classifier, given, [[3, 1], [0, 2]], 50, height=4), alone, **close)


def test_a_causal_model_hears_nothing_of_its_neighbours_either(llama_ear, tiny_llama):
    given = inputs(tiny_llama, TEXTS[:3])
    alone = np.concatenate([logits(llama_ear, [one]) for one in given])
    close = {"rtol": 0, "atol": 2e-5}
    width = sum(map(len, given))
    np.testing.assert_allclose(logits(llama_ear, given), alone, **close)
    np.testing.assert_allclose(packed(llama_ear, given, [[1, 2, 0]], width + 3, 2), alone, **close)


def test_a_causal_model_reads_from_left_to_right(llama_ear, tiny_llama):
    one, two = inputs(tiny_llama, [(("I am so sad", False),), (("I am so happy", False),)])
    tensors = [
        [
            torch.from_numpy(np.asarray(a, np.int64))[None]
            for a in (x.tokens, x.types, range(len(x)), [1] * len(x))
        ]
        for x in (one, two)
    ]
    first, second = (llama_ear.states(*given)[0] for given in tensors)
    shared = next(n for n, (a, b) in enumerate(zip(one.tokens, two.tokens, strict=False)) if a != b)
    assert torch.allclose(first[:shared], second[:shared], atol=1e-5)
    assert not torch.allclose(first[shared], second[shared], atol=1e-2)


def test_who_said_it_is_heard(tiny_encoder):
    classifier = tiny_ear(tiny_encoder, ["act"])
    own, others = inputs(texts=[(("I am sorry", True),), (("I am sorry", False),)])
    assert own.tokens.tolist() == others.tokens.tolist()
    assert np.abs(logits(classifier, [own]) - logits(classifier, [others])).max() > 1e-3


@pytest.mark.parametrize(
    ("pooling", "wanted"),
    [
        ("mean", [[2.0, 20.0], [4.5, 45.0], [6.0, 60.0]]),
        ("first", [[1.0, 10.0], [4.0, 40.0], [6.0, 60.0]]),
        ("last", [[3.0, 30.0], [5.0, 50.0], [6.0, 60.0]]),
    ],
)
def test_pooling_worked_by_hand(tiny_encoder, pooling, wanted):
    classifier = tiny_ear(tiny_encoder, ["act"], pooling=pooling)
    # Two rows of five places: 1 2 3 | 4 5 and 6, padding of 9.
    numbers = torch.tensor([[1.0, 2, 3, 4, 5], [6, 9, 9, 9, 9]])
    states = torch.stack([numbers, 10 * numbers], dim=2)
    owners = torch.tensor([0, 0, 0, 1, 1, 2, 3, 3, 3, 3])
    assert classifier.pooled(states, owners, torch.tensor([0, 3, 5])).tolist() == wanted


@pytest.mark.parametrize("lora", [True, False])
def test_saved_and_loaded_it_hears_the_same(tiny_encoder, tmp_path, lora):
    classifier, given = tiny_ear(tiny_encoder, HEADS, lora, marks_words=True, pooling="first"), inputs()
    with_temperatures(classifier, {"act": 1.25, "emotion": 0.5})
    back, vocabulary = load_classifier(keep_ear(classifier, tmp_path / "classifier"), tiny_encoder)
    assert back.config == classifier.config
    assert (back.config.temperature("act"), back.config.temperature("exploration")) == (1.25, 1.0)
    assert not back.training
    assert vocabulary.special("[CLS]") == 2
    np.testing.assert_allclose(logits(back, given), logits(classifier, given), rtol=0, atol=0.02)
    first, second = (classify(one, given, [1]).words[1] for one in (classifier, back))
    np.testing.assert_allclose(first, second, rtol=0, atol=0.01)
    # fp16 is near, another ear is far.
    other = tiny_ear(tiny_encoder, HEADS, lora, seed=2, pooling="first")
    assert np.abs(logits(other, given) - logits(classifier, given)).max() > 1
    if lora:
        plain = tiny_ear(tiny_encoder, HEADS, pooling="first")
        plain.heads.load_state_dict(classifier.heads.state_dict())
        assert np.abs(logits(plain, given) - logits(classifier, given)).max() > 0.1  # the adapter matters


def test_a_checkpoint_holds_half_precision_and_no_form(tiny_encoder, tmp_path):
    folder = keep_ear(tiny_ear(tiny_encoder, HEADS, lora=True), tmp_path / "classifier")
    assert {file.name for file in folder.iterdir()} == {
        "adapter_config.json",
        "adapter_model.safetensors",
        "checkpoint.json",
        "config.json",
        "heads.safetensors",
        "recipe.yaml",
    }
    for name in ("adapter_model.safetensors", "heads.safetensors"):
        assert {value.dtype for value in load_file(folder / name).values()} == {torch.float16}
    assert not any(name.startswith("encoder.") for name in load_file(folder / "heads.safetensors"))
    # A name, no place on this machine.
    assert str(tiny_encoder) not in (folder / "adapter_config.json").read_text()
    assert json.loads((folder / "adapter_config.json").read_text())["base_model_name_or_path"] == ENCODER


def test_words_are_marked_in_the_last_turn_alone(tiny_encoder):
    classifier, given = (
        tiny_ear(tiny_encoder, ("act", "exploration", "interpretation"), marks_words=True),
        inputs(),
    )
    assert classifier.config.marked == ("exploration", "interpretation")
    found = classify(classifier, given, {1, 3})
    assert found.words[1].shape == (6, 2)  # so sorry to hear that !
    assert found.words[3].shape == (1, 2)
    with pytest.raises(KeyError):
        found.words[0]
    np.testing.assert_allclose(found.words[1], classify(classifier, [given[1]], [0]).words[0], atol=2e-5)
    states = classifier.states(
        *(torch.from_numpy(np.asarray(a, np.int64))[None] for a in (given[1].tokens, given[1].types)),
        torch.arange(len(given[1]))[None],
        torch.ones(1, len(given[1]), dtype=torch.long),
    )
    first, end = given[1].last
    by_hand = classifier.words(states[0, first:end]).sigmoid().detach().numpy()
    np.testing.assert_allclose(found.words[1], by_hand, atol=2e-5)


def test_an_ear_that_marks_no_words_says_so(tiny_encoder):
    classifier = tiny_ear(tiny_encoder, ["exploration"])
    assert classifier.config.marked == () and classifier.words is None
    with pytest.raises(InputError, match=r"marks no words.*marks_words"):
        classify(classifier, inputs(), [0])


def test_batches_are_of_like_length_and_hold_every_text_once():
    lengths = [3, 9, 2, 9, 1, 4]
    # 9 + 9, then 4 with 3 and 2 beside it: 12 of 18 with padding, then 1 makes 16.
    assert list(like_lengths(lengths, 18)) == [[1, 3], [5, 0, 2, 4]]
    assert list(like_lengths(lengths, 1)) == [[1], [3], [5], [0], [2], [4]]  # one too long is alone
    assert list(like_lengths([], 18)) == []


def test_nothing_heard_is_nothing_answered(tiny_encoder):
    assert classify(tiny_ear(tiny_encoder, ["act"]), []).logits("act").shape == (0, 9)


def test_progress_is_told_batch_by_batch(tiny_encoder):
    told = []
    classify(tiny_ear(tiny_encoder, ["act"]), inputs() * 20, advance=told.append)
    assert sum(told) == 80 and len(told) > 1


def test_probabilities_worked_by_hand():
    scores = np.log(np.array([[1.0, 4.0, 9.0]]))
    assert probabilities(scores, "exploration", 1.0)[0] == pytest.approx([1 / 14, 4 / 14, 9 / 14])
    assert probabilities(scores, "exploration", 2.0)[0] == pytest.approx([1 / 6, 2 / 6, 3 / 6])
    several = np.zeros((1, 28))
    several[0, :2] = np.log([3.0, 1 / 9])
    assert probabilities(several, "goemotions", 1.0)[0, :3] == pytest.approx([3 / 4, 1 / 10, 1 / 2])
    assert probabilities(several, "goemotions", 2.0)[0, 1] == pytest.approx(1 / 4)


@pytest.mark.parametrize("head", ["act", "goemotions"])
def test_very_sure_logits_overflow_nothing(head):
    labels = {"act": 9, "goemotions": 28}[head]
    scores = np.full((1, labels), -5000, np.float32)
    scores[0, 0] = 5000
    with np.errstate(over="raise", invalid="raise"):
        found = probabilities(scores, head, 0.05)[0]
    assert found[0] == 1 and not found[1:].any()


def test_the_encoders_dropout_acts_in_training_only(tiny_encoder):
    (given,) = inputs(texts=TEXTS[:1])
    for dropout in (0.0, 0.5):
        encoder, _ = load_encoder(ENCODER, tiny_encoder, dropout)
        classifier = MultiTaskClassifier(encoder, ClassifierConfig(ENCODER, ("act",), limit=64))
        assert np.array_equal(logits(classifier.eval(), [given]), logits(classifier, [given]))
        classifier.train()
        assert np.array_equal(logits(classifier, [given]), logits(classifier, [given])) == (dropout == 0)


def test_the_heads_dropout_acts_in_training_only(tiny_encoder):
    encoder, _ = load_encoder(ENCODER, tiny_encoder)
    classifier, given = (
        MultiTaskClassifier(encoder, ClassifierConfig(ENCODER, ("act",), limit=64), dropout=0.5),
        inputs(),
    )
    assert np.array_equal(logits(classifier.eval(), given), logits(classifier, given))
    assert not np.array_equal(logits(classifier.train(), given), logits(classifier, given))


def test_a_config_is_checked_and_goes_to_json_and_back():
    config = ClassifierConfig(ENCODER, ("act", "expressed_emotion"), "last", 100, True, (("act", 1.5),))
    assert ClassifierConfig.from_json(config.to_json()) == config
    with pytest.raises(UnknownNameError, match=r"no head named 'mood'.*emotion"):
        ClassifierConfig(ENCODER, ("mood",))
    with pytest.raises(RecipeError, match=r"pooling is 'max'.*mean, first, last"):
        ClassifierConfig(ENCODER, ("act",), "max")


def test_checkpoints_that_cannot_be_used(tiny_encoder, tmp_path):
    folder = keep_ear(tiny_ear(tiny_encoder, ["act"], lora=True), tmp_path / "classifier")
    weights = folder / "heads.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4] + b"oops")
    with pytest.raises(CheckpointError, match=r"heads\.safetensors is damaged"):
        load_classifier(folder, tiny_encoder)
    weights.unlink()
    with pytest.raises(CheckpointError, match=r"lacks heads\.safetensors"):
        load_classifier(folder, tiny_encoder)
    with checkpoint.writing(tmp_path / "other", "bag") as place:
        (place / "config.json").write_text("{}")
    with pytest.raises(CheckpointError, match="a 'fasttext' checkpoint, not 'classifier'"):
        load_classifier(tmp_path / "other", tiny_encoder)
    with pytest.raises(CheckpointError, match="no such folder"):
        load_classifier(tmp_path / "nowhere", tiny_encoder)


def without_a_head(tiny_encoder, folder):
    """A checkpoint whose config names a head that it has no weights for: expressed emotion."""
    whole = keep_ear(tiny_ear(tiny_encoder, ["act", "expressed_emotion"], lora=True), folder / "whole")
    kept = {
        name: value
        for name, value in load_file(whole / "heads.safetensors").items()
        if "expressed_emotion" not in name
    }
    with checkpoint.writing(folder / "half", "classifier") as place:
        for name in ("adapter_config.json", "adapter_model.safetensors", "config.json"):
            (place / name).write_bytes((whole / name).read_bytes())
        save_file(kept, place / "heads.safetensors")
    return folder / "half"


def test_a_head_without_weights_is_not_made_up(tiny_encoder, tmp_path):
    with pytest.raises(CheckpointError, match=r"heads\.expressed_emotion"):
        load_classifier(without_a_head(tiny_encoder, tmp_path), tiny_encoder)


def test_a_folder_that_is_no_encoder_is_named(tmp_path, tiny_encoder):
    for file in tiny_encoder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes()[:20])
    with pytest.raises(WeightsError, match=r"no encoder that can be read.*all-MiniLM-L6-v2"):
        load_encoder(ENCODER, tmp_path)


def test_more_tokens_than_the_encoder_has_places_are_refused(tiny_encoder):
    with pytest.raises(InputError, match=r"limit is 65.*64"):
        tiny_ear(tiny_encoder, ["act"], limit=65)
