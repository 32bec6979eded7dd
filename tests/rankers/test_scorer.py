import json
import re
from shutil import copytree

import numpy as np
import pytest

from listenwell.errors import CheckpointError
from listenwell.rankers.config import BiSettings, CobertSettings
from listenwell.rankers.inference import score
from listenwell.rankers.scorer import RankerScorer, checkpoint_key
from tests.rankers.tiny_rankers import REPLIES, TALKS, keep_ranker, texts, tiny_ranker

pytestmark = pytest.mark.usefixtures("installed_encoder")
WITH_VECTORS = {
    "bi": {},
    "cosine": {"model": "bi", "bi": BiSettings(cosine=True)},
    "memnet": {"model": "memnet"},
    "cobert": {"model": "cobert", "cobert": CobertSettings(vectors=0.5)},
    "words": {"model": "bi", "backbone": "words"},
}


def witness_of(encoder, folder, **config):
    return RankerScorer.load(keep_ranker(tiny_ranker(encoder, **config)[0], folder))


def test_text_in_scores_out(tmp_path, tiny_encoder):
    ranker, inputs = tiny_ranker(tiny_encoder)
    scorer = RankerScorer(ranker, inputs, "mine", "key")
    found = scorer.score(TALKS, REPLIES)
    assert (scorer.name, scorer.key) == ("mine", "key")
    assert found.shape == (3, 5) and found.dtype == np.float32
    # Batches of other shapes are summed in another order.
    np.testing.assert_allclose(found, score(ranker, *texts(inputs)), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found[:, 0], found[:, 4], rtol=1e-5, atol=1e-5)  # the same words
    assert scorer.score(TALKS, []).shape == (3, 0)


def test_a_loaded_one_is_called_by_its_model_and_named_by_its_contents(tmp_path, tiny_encoder):
    one = witness_of(tiny_encoder, tmp_path / "one", model="poly")
    again = witness_of(tiny_encoder, tmp_path / "again", model="poly")
    other = witness_of(tiny_encoder, tmp_path / "other", model="poly", seed=2)
    settings = witness_of(tiny_encoder, tmp_path / "settings", model="poly", turns=2)
    assert one.name == "poly" and re.fullmatch("[0-9a-f]{64}", one.key)
    assert one.key == again.key == checkpoint_key(tmp_path / "one")
    assert len({one.key, other.key, settings.key}) == 3


def test_an_encoder_that_is_given_is_part_of_the_key(tmp_path, tiny_encoder):
    folder = keep_ranker(tiny_ranker(tiny_encoder, "poly")[0], tmp_path / "kept")
    given = [copytree(tiny_encoder, tmp_path / name) for name in ("one", "two", "other")]
    vocabulary = json.loads((given[2] / "tokenizer.json").read_text())
    (given[2] / "tokenizer.json").write_text(json.dumps(vocabulary, indent=1))  # other bytes
    one, two, other = (RankerScorer.load(folder, place).key for place in given)
    assert one == two and re.fullmatch("[0-9a-f]{64}", one)
    assert len({one, other, RankerScorer.load(folder).key}) == 3


@pytest.mark.parametrize("given", WITH_VECTORS)
def test_products_of_vectors_are_first_scores(tmp_path, tiny_encoder, given):
    scorer = witness_of(tiny_encoder, tmp_path / "kept", **({"model": "bi"} | WITH_VECTORS[given]))
    told = []
    replies = scorer.reply_vectors(REPLIES, told.append)
    asked = scorer.context_vectors(TALKS)
    assert scorer.gives_vectors and scorer.width == replies.shape[1] == asked.shape[1]
    assert replies.shape[0] == 5 == sum(told) and asked.shape[0] == 3
    assert replies.dtype == asked.dtype == np.float32
    first = asked @ replies.T
    assert first.std() > 1e-4
    if given != "cobert":  # its full score is another
        np.testing.assert_allclose(first, scorer.score(TALKS, REPLIES), atol=1e-4, rtol=1e-4)
    # Neither the pool nor other talks nor who else has a persona change a vector.
    for number, talk in enumerate(TALKS):
        np.testing.assert_allclose(scorer.context_vectors([talk])[0], asked[number], atol=1e-5)
    np.testing.assert_allclose(scorer.reply_vectors(REPLIES[1:2])[0], replies[1], atol=1e-5)


@pytest.mark.parametrize("model", ["cobert", "poly", "cross", "dam"])
def test_without_trained_vectors_none_are_given(tmp_path, tiny_encoder, model):
    scorer = witness_of(tiny_encoder, tmp_path / "kept", model=model)
    assert not scorer.gives_vectors
    for ask in (lambda: scorer.reply_vectors(REPLIES), lambda: scorer.context_vectors(TALKS)):
        with pytest.raises(CheckpointError, match=rf"{model} gives no vectors.*cobert\.vectors"):
            ask()


def test_a_damaged_checkpoint_has_no_key(tmp_path, tiny_encoder):
    folder = keep_ranker(tiny_ranker(tiny_encoder)[0], tmp_path / "kept")
    (folder / "config.json").write_text("{}")
    with pytest.raises(CheckpointError, match="damaged"):
        checkpoint_key(folder)
