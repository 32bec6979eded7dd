import json
import random
import re
import subprocess
import sys

import numpy as np
import pytest

from listenwell.checkpoint import open_checkpoint, writing
from listenwell.errors import CheckpointError, InputError
from listenwell.safety.head import KIND, LABELS, SHIPPED, Features, Head, HeadConfig
from listenwell.safety.measure import table
from listenwell.safety.normalizer import normalize
from listenwell.safety.train import SENTENCES, TrainConfig, train, training_examples, variants
from tests.conftest import ROOT

SMALL = HeadConfig(buckets=256, words=2, letters=(3, 3))
EXAMPLES = [
    ("none", "the weather is nice today"),
    ("none", "we went to the beach"),
    ("suicide", "i want to die"),
    ("suicide", "i want to end my life"),
    ("abuse", "he hits me every day"),
]


def read(head, text):
    (row,) = head.probabilities([normalize(text).text])
    return dict(zip(head.config.labels, row.tolist(), strict=True))


def test_features_are_runs_of_words_and_letters():
    features = Features(SMALL)
    # <go>: 2 runs of three letters, <on>: 2; words go, on; pair "go on"
    assert len(features.of("go on")) == 7
    assert features.of("go on go on").tolist() == sorted({*features.of("go on"), *features.of("on go")})
    assert not len(features.of(" "))


def test_it_learns_what_it_is_taught_and_saves_it(tmp_path):
    head = train(TrainConfig(steps=60), EXAMPLES, SMALL)
    for label, text in EXAMPLES:
        assert read(head, text)[label] > 0.9, text
    with writing(tmp_path / "head", KIND) as folder:
        head.save(folder)
    loaded = Head.load(tmp_path / "head")
    assert loaded.config == SMALL
    for _, text in EXAMPLES:
        assert read(loaded, text) == read(head, text)  # the last bit, too
    again = train(TrainConfig(steps=60), EXAMPLES, SMALL)
    assert np.array_equal(again.stored, head.stored)


def test_a_damaged_or_foreign_head_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match=r"\(2, 8\) instead of \(257, 8\)"):
        Head(SMALL, np.zeros((2, 8)))
    with writing(tmp_path / "head", KIND) as folder:
        (folder / "config.json").write_text("{}")
        (folder / "model.safetensors").write_bytes(b"no tensors")
    with pytest.raises(CheckpointError, match="no readable crisis classifier"):
        Head.load(tmp_path / "head")
    with pytest.raises(CheckpointError, match="not a listenwell checkpoint"):
        Head.load(tmp_path)


def test_the_shipped_one_is_small_whole_and_has_its_card():
    saved = open_checkpoint(SHIPPED, KIND)
    assert sum(saved.path(name).stat().st_size for name in saved.sums) < 300_000
    card = saved.path("README.md").read_text(encoding="utf-8")
    assert "{{" not in card
    for word in ("licence", "Apache-2.0", "Limitations", "English only", "held out"):
        assert word in card, word


def test_the_shipped_one_was_made_from_the_sentences_that_are_here():
    recipe = json.loads(open_checkpoint(SHIPPED, KIND).path("recipe.json").read_text(encoding="utf-8"))
    lesson = TrainConfig()
    counts = recipe.pop("sentences")
    assert recipe == {name: getattr(lesson, name) for name in recipe}
    from listenwell.files import sha256

    assert counts.pop("sha256") == sha256(SENTENCES), "train it again: listenwell/safety/train.py"
    labels = [label for label, _ in training_examples(lesson.each, lesson.seed)]
    assert counts == {label: labels.count(label) for label in LABELS}


def test_wordings_of_a_line():
    draw = random.Random(1)
    assert variants("I [am|was] here.", 9, draw) == ["I am here.", "I was here."]
    assert variants("no choice", 9, draw) == ["no choice"]
    some = variants("[a|b|c|d] [e|f|g|h]", 5, draw)
    assert len(set(some)) == 5 and all(re.fullmatch("[a-d] [e-h]", text) for text in some)
    assert variants("I [really |]want", 9, draw) == ["I really want", "I want"]


def test_a_sentence_without_a_label_is_an_error(tmp_path):
    file = tmp_path / "sentences.txt"
    file.write_text("= joy\nHurray!\n")
    with pytest.raises(InputError, match=r"sentences.txt:2 is under the label 'joy'"):
        list(training_examples(3, 1, file))


def test_listening_for_a_crisis_loads_no_torch():
    code = (
        "import sys; from listenwell.safety.guard import Guard; Guard.load(); "
        "assert not {'torch', 'transformers', 'onnxruntime'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_the_page_shows_the_figures_that_were_measured():
    metrics = json.loads(open_checkpoint(SHIPPED, KIND).path("metrics.json").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "safety.md").read_text(encoding="utf-8")
    assert table(metrics) in page
