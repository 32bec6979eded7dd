import json
from pathlib import Path

import pytest

from listenwell.corpora import CORPORA
from listenwell.corpora.sampling import Sampling, example_id
from listenwell.errors import InputError, ListenwellError
from listenwell.evaluation.embedder import Embedder
from listenwell.evaluation.outputs import load_outputs
from listenwell.evaluation.score import score_replies

SAMPLES = Path(__file__).parents[1] / "data"


@pytest.fixture
def corpus():
    return CORPORA.load("empathetic_dialogues")(SAMPLES / "empathetic_dialogues")


@pytest.fixture
def examples(corpus):
    return list(enumerate(corpus.examples("train")))


@pytest.fixture
def own_file(tmp_path):
    file = tmp_path / "mine.jsonl"
    file.write_text('{"reply": "Oh no!", "reference": "I am sorry."}\n')
    return file


def named(file, system):
    return load_outputs(file, CORPORA.load("empathetic_dialogues")(), "test", system)


def test_a_released_systems_name_is_for_its_own_file(own_file):
    with pytest.raises(InputError, match="name of a released system"):
        named(own_file, "MoEL")
    assert named(own_file, "mine").system == "mine"


def test_a_file_with_its_own_references_claims_no_corpus(own_file, tiny_encoder):
    result = score_replies(named(own_file, None), Embedder.load(tiny_encoder))
    assert (result.corpus, result.split, result.count) == ("the file's own", "–", 1)


def lines(*entries):
    return "".join(json.dumps(entry) + "\n" for entry in entries)


def load(tmp_path, corpus, content, system=None, sampling=None):
    file = tmp_path / "theirs.jsonl"
    file.write_text(content)
    return load_outputs(file, corpus, "train", system, sampling)


def test_replies_with_references_need_no_corpus(tmp_path, corpus):
    outputs = load(
        tmp_path, corpus, lines({"reply": "a", "reference": "b"}, {"reply": "c", "reference": "d"})
    )
    assert (outputs.system, outputs.replies, outputs.references) == ("theirs", ["a", "c"], ["b", "d"])
    assert outputs.conditions["sample"] == "all 2"


def test_replies_in_the_order_of_the_corpus(tmp_path, corpus, examples):
    content = lines(*({"reply": f"reply {index}"} for index, _ in examples))
    outputs = load(tmp_path, corpus, content, "Mine")
    assert outputs.system == "Mine"
    assert outputs.replies == [f"reply {index}" for index, _ in examples]
    assert outputs.references == [example.reply.text for _, example in examples]
    sampled = load(tmp_path, corpus, content, sampling=Sampling(2, seed=1))
    assert sampled.replies == [f"reply {index}" for index, _ in Sampling(2, seed=1).draw(examples)]


def test_replies_by_id_in_any_order(tmp_path, corpus, examples):
    chosen = [examples[-1], examples[0]]
    content = lines(*({"id": example_id(e, p), "reply": f"reply {p}"} for p, e in chosen))
    outputs = load(tmp_path, corpus, content)
    assert outputs.replies == [f"reply {examples[0][0]}", f"reply {examples[-1][0]}"]
    assert outputs.references == [examples[0][1].reply.text, examples[-1][1].reply.text]
    assert outputs.conditions["sample"] == f"the 2 of {len(examples)} that the file answers"
    with pytest.raises(InputError, match="no reply to"):
        load(tmp_path, corpus, content, sampling=Sampling(len(examples) - 1))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("nonsense\n", "theirs.jsonl:1 is not JSON"),
        ('{"reply": "a"}\n\n[1]\n', "theirs.jsonl:3 has no reply"),
        ('{"reply": " "}\n', "has no reply"),
        ('{"reply": "a", "id": 3}\n', "must be texts"),
        (lines({"reply": "a", "reference": "b"}, {"reply": "c"}), "theirs.jsonl:2 has no reference"),
        (lines({"reply": "a", "id": "b"}, {"reply": "c"}), "theirs.jsonl:2 has no id"),
        (lines({"reply": "a"}), "has 1 replies; empathetic_dialogues train asks for"),
        (lines({"reply": "a", "id": "b"}), "no example 'b'"),
    ],
)
def test_replies_that_cannot_be_used_are_named(tmp_path, corpus, content, message):
    with pytest.raises(ListenwellError, match=message):
        load(tmp_path, corpus, content)


def test_a_second_reply_to_one_context_is_refused(tmp_path, corpus, examples):
    name = example_id(examples[0][1], 0)
    with pytest.raises(InputError, match="a second reply"):
        load(tmp_path, corpus, lines({"reply": "a", "id": name}, {"reply": "b", "id": name}))


def test_bytes_that_are_no_text_are_refused(tmp_path, corpus):
    file = tmp_path / "theirs.jsonl"
    file.write_bytes(b'{"reply": "\xff"}\n')
    with pytest.raises(InputError, match="UTF-8"):
        load_outputs(file, corpus, "test")
