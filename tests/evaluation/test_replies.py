import json
from pathlib import Path

import pytest

from listenwell.corpora import CORPORA
from listenwell.corpora.sampling import Sampling
from listenwell.dialogue import Dialogue, Example, Turn
from listenwell.errors import InputError, ListenwellError
from listenwell.evaluation.embedder import Embedder
from listenwell.evaluation.outputs import read_given
from listenwell.evaluation.protocol import Run, evaluate_listener, model_files
from listenwell.evaluation.replies import claim, example_id, generate_replies, measure_replies, reply_seed
from listenwell.generators.base import GeneratorOutput
from listenwell.listener import Listener
from listenwell.metrics import Perplexity
from listenwell.results.metric_registry import METRICS, REPLY_GROUPS
from listenwell.retrieval.generator import Retrieval, RetrievalConfig
from listenwell.retrieval.pool import find_pool
from listenwell.retrieval.search import PoolSearch
from tests.rankers.pool_fake import FakeSelector

SAMPLES = Path(__file__).parents[1] / "data"
HUMAN = ["I am so sorry to hear that.", "That is great!", "How sad, what happened?"]


class Echo:
    """Says its seed and how many turns it heard; counts how often it was asked."""

    name = "echo"

    def __init__(self):
        self.asked = 0

    def generate(self, dialogue, plan, seed, on_text=None):
        from listenwell.dialogue import Candidate

        self.asked += 1
        return GeneratorOutput((Candidate(f"{seed} after {len(dialogue.turns)} turns"),))


@pytest.fixture(scope="module")
def embedder(tiny_encoder):
    return Embedder.load(tiny_encoder)


@pytest.fixture
def corpus():
    return CORPORA.load("empathetic_dialogues")(SAMPLES / "empathetic_dialogues")


@pytest.fixture
def examples(corpus):
    return list(enumerate(corpus.examples("train")))


class Chooser:
    name, key = "cobert", "0f" * 32

    def rerank(self, dialogue, candidates, want=None):
        return tuple(candidates)


def test_who_chooses_and_from_what_is_named(embedder, corpus, tmp_path):
    def conditions(listener, folder):
        run = Run(corpus, "train", Sampling(2), tmp_path / folder)
        return dict(evaluate_listener(listener, run, embedder).conditions)

    plain = conditions(Listener(Echo()), "plain")
    assert plain["pool"] == "none: replies were generated" and "chooser" not in plain
    chosen = conditions(Listener(Echo(), rerank=Chooser()), "chosen")
    assert chosen == plain | {"chooser": f"cobert, key {'0f' * 32}", "places filled": "speak, choose"}
    file = tmp_path / "mine.txt"
    file.write_text("Oh.\nHow sad!\n")
    search = PoolSearch.open(FakeSelector(), find_pool(str(file)))
    # The ranker's folder is no part of the result, what it holds is.
    config = RetrievalConfig(pool=str(file), ranker=tmp_path / "ranker", top=1)
    found = conditions(Listener(Retrieval(config, search)), "pool")
    assert found["pool"] == f"mine.txt, 2 replies, sha256 {find_pool(str(file)).hash}"
    assert found["ranker"] == "fake, key fake key" and found["decoding"] == "none: replies are chosen"
    assert json.loads(found["settings"]) == {"top": 1, "candidates": 100, "longest": 1000}
    assert str(tmp_path) not in str(found)


def test_every_reply_metric_is_measured_and_has_a_unit(embedder):
    found = measure_replies(HUMAN * 200, HUMAN * 200, embedder)
    assert set(found) == {name for name, known in METRICS.items() if known.group in REPLY_GROUPS}
    assert found["bleu_4"] == found["rouge_l"] == pytest.approx(100)
    assert found["sentence_similarity"] == pytest.approx(1)
    assert found["distinct_replies"] == pytest.approx(0.5)
    assert found["distinct_replies_of_500"] == pytest.approx(0.6)
    assert found["sorry_to_hear"] == pytest.approx(100 / 3)
    assert found["length"] == pytest.approx((8 + 4 + 6) / 3)


def test_variety_of_500_needs_500_and_is_the_plain_figure_for_500(embedder):
    few = measure_replies(HUMAN, HUMAN, embedder)
    assert not any("500" in name for name in few)
    texts = [f"reply number {number % 100}" for number in range(500)]
    exact = measure_replies(texts, texts, embedder)
    assert exact["distinct_2_of_500"] == pytest.approx(exact["distinct_2"])
    assert exact["distinct_replies_of_500"] == pytest.approx(20)


def test_a_sample_is_drawn_once_and_for_all():
    items = [f"item {number}" for number in range(20)]
    drawn = Sampling(5, seed=3).draw(items)
    assert drawn == Sampling(5, seed=3).draw(items) != Sampling(5, seed=4).draw(items)
    places = [place for place, _ in drawn]
    assert places == sorted(set(places)) and len(places) == 5
    assert all(item == items[place] for place, item in drawn)
    assert Sampling(5, seed=3).wording(20, 5) == (
        "5 of 20, drawn by numpy default_rng(3) without replacement, in corpus order"
    )
    assert Sampling(None).draw(items) == Sampling(99).draw(items) == list(enumerate(items))
    assert Sampling(99).wording(20, 20) == "all 20"


@pytest.mark.parametrize("wrong", [{"limit": 0}, {"seed": -1}])
def test_a_sample_that_cannot_be_drawn_is_refused(wrong):
    with pytest.raises(InputError):
        Sampling(**wrong)
    with pytest.raises(InputError, match="nothing to measure"):
        Sampling().draw([])


def test_a_reply_depends_on_the_seed_and_the_place_alone(examples, tmp_path):
    everything = generate_replies(Listener(Echo()), examples, 7, tmp_path / "all.jsonl")
    some = generate_replies(Listener(Echo()), examples[1::2], 7, tmp_path / "some.jsonl")
    assert some == everything[1::2]
    assert len(set(everything)) == len(everything)
    assert reply_seed(7, 1) != reply_seed(1, 7) != reply_seed(7, 0)


def test_an_interrupted_run_goes_on_and_equals_an_unbroken_one(examples, tmp_path):
    whole, file = tmp_path / "whole.jsonl", tmp_path / "broken.jsonl"
    unbroken = generate_replies(Listener(Echo()), examples, 0, whole)
    lines = whole.read_bytes().splitlines(keepends=True)
    file.write_bytes(lines[0] + lines[1][: len(lines[1]) // 2])
    generator = Echo()
    assert generate_replies(Listener(generator), examples, 0, file) == unbroken
    assert generator.asked == len(examples) - 1
    assert file.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"id": "other#1", "reply": "x"}\n', "other contexts"),
        ("[]\n", "damaged"),
        ("nonsense\n", "damaged"),
    ],
)
def test_foreign_replies_are_never_mixed_in(examples, tmp_path, content, message):
    file = tmp_path / "replies.jsonl"
    file.write_text(content)
    with pytest.raises(InputError, match=message):
        generate_replies(Listener(Echo()), examples, 0, file)
    assert file.read_text() == content


def test_a_folder_belongs_to_one_run(tmp_path):
    claim(tmp_path / "run", {"seed": 1})
    claim(tmp_path / "run", {"seed": 1})
    with pytest.raises(InputError, match="other settings"):
        claim(tmp_path / "run", {"seed": 2})
    (tmp_path / "replies.jsonl").touch()
    with pytest.raises(InputError, match="unknown run"):
        claim(tmp_path, {"seed": 1})


def test_perplexity_is_measured_where_the_generator_can(corpus, embedder, tmp_path):
    generator = Echo()
    run = Run(corpus, "train", Sampling(2), tmp_path / "one")
    assert evaluate_listener(Listener(generator), run, embedder).metric("perplexity_by_token") is None
    generator.perplexity = lambda examples: Perplexity(
        nll=10.0 * len(examples), tokens=20, words=10, bytes=40, tokenizer="letters"
    )
    result = evaluate_listener(Listener(generator), run, embedder)
    assert result.metric("perplexity_by_token") == pytest.approx(2.718282)
    assert result.metric("perplexity_by_word") == pytest.approx(7.389056)
    assert dict(result.conditions)["tokenizer"] == "letters"


def test_the_files_behind_a_generator(tmp_path):
    assert model_files(Echo(), None) == ()
    generator = Echo()
    generator.files = lambda: [tmp_path / "a"]
    assert model_files(generator, None) == (tmp_path / "a",)


def test_a_corpus_without_conversations_is_refused(embedder, tmp_path):
    texts = CORPORA.load("goemotions")(SAMPLES / "goemotions")
    with pytest.raises(InputError, match="no replies to make"):
        evaluate_listener(Listener(Echo()), Run(texts, "test", Sampling(), tmp_path), embedder)


def test_ids_name_the_conversation_and_the_turn():
    context = Dialogue((Turn("speaker", "a"), Turn("listener", "b"), Turn("speaker", "c")), id="hit:1")
    example = Example(context, Turn("listener", "d"))
    assert example_id(example, 9) == "hit:1#3"
    assert example_id(Example(Dialogue(context.turns), example.reply), 9) == "9"


def lines(*entries):
    return "".join(json.dumps(entry) + "\n" for entry in entries)


def given(tmp_path, corpus, content, system=None, sampling=None):
    file = tmp_path / "theirs.jsonl"
    file.write_text(content)
    return read_given(file, system, corpus, "train", sampling or Sampling())


def test_replies_with_references_need_no_corpus(tmp_path, corpus):
    found = given(tmp_path, corpus, lines({"reply": "a", "reference": "b"}, {"reply": "c", "reference": "d"}))
    assert (found.system, found.replies, found.references) == ("theirs", ["a", "c"], ["b", "d"])
    assert found.conditions["sample"] == "all 2"


def test_replies_in_the_order_of_the_corpus(tmp_path, corpus, examples):
    content = lines(*({"reply": f"reply {place}"} for place, _ in examples))
    found = given(tmp_path, corpus, content, "Mine")
    assert found.system == "Mine"
    assert found.replies == [f"reply {place}" for place, _ in examples]
    assert found.references == [example.reply.text for _, example in examples]
    sampled = given(tmp_path, corpus, content, sampling=Sampling(2, seed=1))
    assert sampled.replies == [f"reply {place}" for place, _ in Sampling(2, seed=1).draw(examples)]


def test_replies_by_id_in_any_order(tmp_path, corpus, examples):
    chosen = [examples[-1], examples[0]]
    content = lines(*({"id": example_id(e, p), "reply": f"reply {p}"} for p, e in chosen))
    found = given(tmp_path, corpus, content)
    assert found.replies == [f"reply {examples[0][0]}", f"reply {examples[-1][0]}"]
    assert found.references == [examples[0][1].reply.text, examples[-1][1].reply.text]
    assert found.conditions["sample"] == f"the 2 of {len(examples)} that the file answers"
    with pytest.raises(InputError, match="no reply to"):
        given(tmp_path, corpus, content, sampling=Sampling(len(examples) - 1))


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
        given(tmp_path, corpus, content)


def test_a_second_reply_to_one_context_is_refused(tmp_path, corpus, examples):
    name = example_id(examples[0][1], 0)
    with pytest.raises(InputError, match="a second reply"):
        given(tmp_path, corpus, lines({"reply": "a", "id": name}, {"reply": "b", "id": name}))


def test_bytes_that_are_no_text_are_refused(tmp_path, corpus):
    file = tmp_path / "theirs.jsonl"
    file.write_bytes(b'{"reply": "\xff"}\n')
    with pytest.raises(InputError, match="UTF-8"):
        read_given(file, None, corpus, "test", Sampling())
