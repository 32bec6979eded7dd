import math
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from listenwell import checkpoint
from listenwell.annotators.fasttext import KIND, FastTextClassifier, FastTextConfig, Features, common_words
from listenwell.dialogue import Scored
from listenwell.errors import CheckpointError

ROOT = Path(__file__).parents[2]
CONFIG = FastTextConfig("mood", ("happy", "sad"), 2, 0, ("good", "bad", "don't"))
VECTORS = np.array([[0, 0], [2, 0], [0, 2], [0, 4]], np.float32)  # of the end, and of each word
PAIRS = FastTextConfig("mood", ("happy", "sad"), 2, 5, ("good", "bad"))


def classifier(config=CONFIG, vectors=VECTORS, bias=(0.0, 0.0)):
    return FastTextClassifier(config, vectors, np.eye(2, dtype=np.float32), np.array(bias))


@pytest.fixture
def saved(tmp_path):
    with checkpoint.writing(tmp_path / "bag", KIND) as folder:
        classifier().save(folder)
    return tmp_path / "bag"


def test_a_text_is_the_mean_of_its_features_worked_by_hand():
    # The end and "good" twice: the mean is (4/3, 0), and so are the logits.
    (found,) = classifier().scores(["Good, GOOD"])
    share = 1 / (1 + math.exp(-4 / 3))
    assert [score.label for score in found] == ["happy", "sad"]
    assert [score.probability for score in found] == pytest.approx([share, 1 - share])


def test_matrix_and_bias_are_applied_worked_by_hand():
    # The end and "bad": the mean is (0, 1), the logits (0.5, 1).
    (found,) = classifier(bias=(0.5, 0.0)).scores(["bad"])
    share = 1 / (1 + math.exp(-0.5))
    assert [(score.label, score.probability) for score in found] == [
        ("sad", pytest.approx(share)),
        ("happy", pytest.approx(1 - share)),
    ]


def test_texts_without_a_known_word_get_the_bias_and_equals_keep_the_labels_order():
    assert classifier().scores(["", "unheard of"]) == [(Scored("happy", 0.5), Scored("sad", 0.5))] * 2
    assert classifier(bias=(0.0, 1.0)).label("") == "sad"
    assert classifier().scores([]) == []


def test_contractions_are_one_word():
    assert list(Features(CONFIG).of("I don't, do n't, don ’ t")) == [0, 3, 3, 3]


def test_pairs_of_known_words_follow_the_second_word():
    pair = 3 + zlib.crc32(b"good bad") % 5
    assert list(Features(PAIRS).of("good, so bad")) == [0, 1, 2, pair]
    assert list(Features(PAIRS).of("Bad")) == [0, 2]
    assert PAIRS.features == 8


def test_the_words_are_those_seen_often_enough_the_most_frequent_first():
    assert common_words(["b a c", "C b", "b d"], 2) == ("b", "c")
    assert common_words(["b a", "a b c"], 1) == ("a", "b", "c")


@given(st.lists(st.text(), max_size=5))
def test_any_texts_get_every_label_the_most_likely_first(texts):
    found = classifier(PAIRS, np.arange(16, dtype=np.float32).reshape(8, 2)).scores([*texts, "good bad"])
    for scores in found:
        assert {score.label for score in scores} == {"happy", "sad"}
        assert scores[0].probability >= scores[1].probability
        assert sum(score.probability for score in scores) == pytest.approx(1)


def test_many_texts_are_read_as_each_alone():
    texts = ["good " * (number % 7) + "bad " * (number % 3) for number in range(600)]
    alone = [classifier().scores([text])[0] for text in texts]
    batch_size = classifier().scores(texts)
    assert [[s.label for s in one] for one in batch_size] == [[s.label for s in one] for one in alone]
    assert [one[0].probability for one in batch_size] == pytest.approx([one[0].probability for one in alone])


def test_large_numbers_do_not_overflow():
    (found,) = classifier(vectors=VECTORS * 10_000).scores(["bad"])
    assert [score.probability for score in found] == [1.0, 0.0]


def test_saving_and_loading_changes_no_bit(saved, tmp_path):
    odd = FastTextConfig("mood", ("happy", "sad"), 2, 0, ("café", "\ud800", "\u2028"))
    vectors = np.random.default_rng(1).normal(size=(4, 2)).astype(np.float32)
    for number, one in enumerate((classifier(), classifier(odd, vectors))):
        with checkpoint.writing(tmp_path / str(number), KIND) as folder:
            one.save(folder)
        again = FastTextClassifier.load(tmp_path / str(number))
        assert again.config == one.config
        assert again.scores(["café", "good \ud800"]) == one.scores(["café", "good \ud800"])


def test_a_damaged_foreign_or_missing_folder_is_a_clear_error(saved, tmp_path):
    shutil.copytree(saved, tmp_path / "damaged")
    (tmp_path / "damaged" / "model.safetensors").write_bytes(b"x")
    with pytest.raises(CheckpointError, match="damaged"):
        FastTextClassifier.load(tmp_path / "damaged")
    with checkpoint.writing(tmp_path / "other", "causal"):
        pass
    with pytest.raises(CheckpointError, match="not 'fasttext'"):
        FastTextClassifier.load(tmp_path / "other")
    with pytest.raises(CheckpointError, match="no such folder"):
        FastTextClassifier.load(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("config.json", b"{}"),
        ("config.json", b"\xff"),
        ("model.safetensors", b"x"),
        ("model.safetensors", None),
    ],
)
def test_files_that_are_no_classifier_are_a_clear_error(saved, file, content):
    (saved / file).unlink()
    if content is not None:
        (saved / file).write_bytes(content)
    with pytest.raises(CheckpointError, match="holds no fastText classifier"):
        FastTextClassifier.read(saved)


def test_weights_of_another_shape_are_refused():
    with pytest.raises(CheckpointError, match="4 features and 2 labels"):
        classifier(vectors=VECTORS[:3])


def test_reading_needs_no_torch(saved):
    program = f"""
import sys
from pathlib import Path
from listenwell.annotators.fasttext import FastTextClassifier
print(FastTextClassifier.load(Path({str(saved)!r})).label("bad"), "torch" in sys.modules)
"""
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert run.stdout.split() == ["sad", "False"]
