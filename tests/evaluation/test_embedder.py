import numpy as np
import pytest

from listenwell.errors import WeightsError
from listenwell.evaluation.embedder import Embedder

TEXTS = ["I am sad.", "that is great! great!", "Hearing that, I am so sorry", "I am sad.", ""]


@pytest.fixture(scope="module")
def embedder(tiny_encoder):
    return Embedder.load(tiny_encoder)


def test_shapes_and_lengths(embedder):
    vectors = embedder.embed(TEXTS)
    assert vectors.sentences.shape == (5, 16)
    assert np.allclose(np.linalg.norm(vectors.sentences, axis=1), 1)
    assert [len(words) for words in vectors.words] == [4, 6, 7, 4, 0]
    assert np.array_equal(vectors.sentences[0], vectors.sentences[3])


def test_vectors_are_those_of_the_model_and_pooled_by_hand(embedder, tiny_encoder):
    import torch
    from transformers import BertModel

    model = BertModel.from_pretrained(tiny_encoder).eval()
    # [CLS] i am hear ##ing [SEP]
    ids = torch.tensor([[2, 4, 5, 10, 18, 3]])
    with torch.inference_mode():
        states = model(ids).last_hidden_state[0].numpy()
    found = embedder.embed(["I am hearing"])
    mean = states.mean(axis=0)
    assert np.allclose(found.sentences[0], mean / np.linalg.norm(mean), atol=1e-5)
    assert np.allclose(found.words[0][0], states[1], atol=1e-5)
    assert np.allclose(found.words[0][2], states[3:5].mean(axis=0), atol=1e-5)


def test_batches_change_nothing(embedder, monkeypatch):
    batch_size = embedder.embed(TEXTS)
    monkeypatch.setattr("listenwell.runtime.onnx.encoder.CPU_TOKENS", 1)
    alone = embedder.embed(TEXTS)
    assert np.allclose(batch_size.sentences, alone.sentences, atol=1e-5)
    for first, second in zip(batch_size.words, alone.words, strict=True):
        assert np.allclose(first, second, atol=1e-5)


def test_spelling_of_the_peers_changes_nothing(embedder):
    vectors = embedder.embed(["I didn't hear that!", "i did n't hear that !"])
    assert np.allclose(vectors.sentences[0], vectors.sentences[1], atol=1e-6)


def test_a_long_text_is_cut(embedder):
    (words,) = embedder.embed(["sad " * 1000]).words
    assert len(words) == 62  # 64 positions without the two marks


def test_the_name_holds_the_encoder_and_its_sum(embedder, tiny_encoder):
    assert embedder.name.startswith(f"{tiny_encoder.name} (sha256 ")


def test_a_folder_that_is_no_encoder_is_named(tmp_path, tiny_encoder):
    for file in tiny_encoder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes()[:20])
    with pytest.raises(WeightsError, match="no encoder that can be read"):
        Embedder.load(tmp_path)


@pytest.mark.weights
def test_the_real_encoder_knows_what_is_alike():
    first, near, far = (
        Embedder.load()
        .embed(["My dog died yesterday.", "I lost my puppy.", "The train leaves at nine."])
        .sentences
    )
    assert first @ near > 0.5 > first @ far
