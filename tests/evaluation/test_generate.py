import json
from pathlib import Path

import pytest

from listenwell.corpora import CORPORA
from listenwell.corpora.sampling import Sampling, example_id
from listenwell.dialogue import Dialogue, Example, Turn
from listenwell.errors import InputError
from listenwell.evaluation.embedder import Embedder
from listenwell.evaluation.generate import claim, generate, listener_answer, write_replies
from listenwell.evaluation.outputs import load_run
from listenwell.evaluation.request import EvaluationRequest, EvaluationSplit, reply_seed
from listenwell.evaluation.score import reply_metrics, score_replies
from listenwell.evaluation.systems import System, model_files
from listenwell.generators.base import Generator
from listenwell.listener import Listener
from listenwell.metrics import Perplexity
from listenwell.pipeline import GeneratorOutput, Rerank
from listenwell.results.metric_registry import METRICS
from listenwell.retrieval.generator import Retrieval, RetrievalConfig
from listenwell.retrieval.pool import find_pool
from listenwell.retrieval.search import PoolSearch
from tests.rankers.pool_fake import FakeSelector

SAMPLES = Path(__file__).parents[1] / "data"
HUMAN = ["I am so sorry to hear that.", "That is great!", "How sad, what happened?"]


class Echo(Generator):
    """Replies with its seed and the number of turns; counts its calls."""

    name = "echo"

    def __init__(self):
        self.calls = 0

    def generate(self, dialogue, plan, seed, on_text=None):
        from listenwell.dialogue import Candidate

        self.calls += 1
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


class Fixed(System):
    """A whole listener that is there already."""

    def __init__(self, listener):
        super().__init__("fixed", whole=True)
        object.__setattr__(self, "built", listener)

    def listener(self):
        return self.built


def evaluate(listener, folder, embedder, corpus="empathetic_dialogues"):
    split = EvaluationSplit(corpus, "train", SAMPLES / corpus, sampling=Sampling(2))
    request = EvaluationRequest(Fixed(listener), split, folder)
    return score_replies(load_run(generate(request), split.source), embedder)


def replies_of(listener, examples, seed, file):
    return write_replies(listener_answer(listener), examples, seed, file)


class FirstComes(Rerank):
    def rerank(self, dialogue, candidates, want=None):
        return tuple(candidates)


class Weighted(FirstComes):
    def conditions(self):
        return {"reranking features": "reward 3, likelihood 0.5", "annotator": "key 12"}


def test_the_reranker_and_the_pool_are_described_in_words(embedder, tmp_path):
    def conditions(listener, folder):
        described = dict(evaluate(listener, tmp_path / folder, embedder).conditions)
        return {name: value for name, value in described.items() if name != "made by"}

    plain = conditions(Listener(Echo()), "plain")
    assert plain["pool"] == "none: replies were generated" and "reranker" not in str(plain)
    reranked = conditions(Listener(Echo(), rerank=FirstComes()), "reranked")
    stages = {"stages": "generate, rerank"}
    assert reranked == plain | stages | {"reranker": "FirstComes"}
    weighted = conditions(Listener(Echo(), rerank=Weighted()), "weighted")
    spelled_out = {"reranking features": "reward 3, likelihood 0.5", "reranker: annotator": "key 12"}
    assert weighted == plain | stages | spelled_out
    file = tmp_path / "mine.txt"
    file.write_text("Oh.\nHow sad!\n")
    search = PoolSearch.open(FakeSelector(), find_pool(str(file)))
    # The ranker's folder is no part of the result, what it holds is.
    config = RetrievalConfig(pool=str(file), ranker=tmp_path / "ranker", candidates=1)
    measured = conditions(Listener(Retrieval(config, search)), "pool")
    assert measured["pool"] == f"mine.txt, 2 replies, sha256 {find_pool(str(file)).hash}"
    assert measured["ranker"] == "fake, key fake key"
    assert measured["decoding"] == "none: replies are retrieved"
    assert json.loads(measured["settings"]) == {"candidates": 1, "searched": 100, "longest": 1000}
    assert str(tmp_path) not in str(measured)


def test_every_reply_metric_is_measured_and_has_a_unit(embedder):
    measured = reply_metrics(HUMAN * 200, HUMAN * 200, embedder)
    assert set(measured) == {
        name for name, known in METRICS.items() if known.group in ("overlap", "diversity", "sentiment")
    }
    assert measured["bleu_4"] == measured["rouge_l"] == pytest.approx(100)
    assert measured["sentence_similarity"] == pytest.approx(1)
    assert measured["distinct_replies"] == pytest.approx(0.5)
    assert measured["distinct_replies_of_500"] == pytest.approx(0.6)
    assert measured["sorry_to_hear"] == pytest.approx(100 / 3)
    assert measured["length"] == pytest.approx((8 + 4 + 6) / 3)


def test_variety_of_500_needs_500_and_is_the_plain_figure_for_500(embedder):
    few = reply_metrics(HUMAN, HUMAN, embedder)
    assert not any("500" in name for name in few)
    texts = [f"reply number {number % 100}" for number in range(500)]
    exact = reply_metrics(texts, texts, embedder)
    assert exact["distinct_2_of_500"] == pytest.approx(exact["distinct_2"])
    assert exact["distinct_replies_of_500"] == pytest.approx(20)


def test_a_sample_is_drawn_once_and_for_all():
    items = [f"item {number}" for number in range(20)]
    drawn = Sampling(5, seed=3).draw(items)
    assert drawn == Sampling(5, seed=3).draw(items) != Sampling(5, seed=4).draw(items)
    indices = [index for index, _ in drawn]
    assert indices == sorted(set(indices)) and len(indices) == 5
    assert all(item == items[index] for index, item in drawn)
    assert Sampling(5, seed=3).describe(20, 5) == (
        "5 of 20, drawn by numpy default_rng(3) without replacement, in corpus order"
    )
    assert Sampling(None).draw(items) == Sampling(99).draw(items) == list(enumerate(items))
    assert Sampling(99).describe(20, 20) == "all 20"


@pytest.mark.parametrize("wrong", [{"limit": 0}, {"seed": -1}])
def test_a_sample_that_cannot_be_drawn_is_refused(wrong):
    with pytest.raises(InputError):
        Sampling(**wrong)
    with pytest.raises(InputError, match="nothing to measure"):
        Sampling().draw([])


def test_a_reply_depends_on_the_seed_and_the_place_alone(examples, tmp_path):
    everything = replies_of(Listener(Echo()), examples, 7, tmp_path / "all.jsonl")
    some = replies_of(Listener(Echo()), examples[1::2], 7, tmp_path / "some.jsonl")
    assert some == everything[1::2]
    assert len(set(everything)) == len(everything)
    assert reply_seed(7, 1) != reply_seed(1, 7) != reply_seed(7, 0)


def test_an_interrupted_run_goes_on_and_equals_an_unbroken_one(examples, tmp_path):
    whole, file = tmp_path / "whole.jsonl", tmp_path / "broken.jsonl"
    unbroken = replies_of(Listener(Echo()), examples, 0, whole)
    lines = whole.read_bytes().splitlines(keepends=True)
    file.write_bytes(lines[0] + lines[1][: len(lines[1]) // 2])
    generator = Echo()
    assert replies_of(Listener(generator), examples, 0, file) == unbroken
    assert generator.calls == len(examples) - 1
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
        replies_of(Listener(Echo()), examples, 0, file)
    assert file.read_text() == content


def test_a_folder_belongs_to_one_run(tmp_path):
    claim(tmp_path / "run", {"seed": 1})
    claim(tmp_path / "run", {"seed": 1})
    with pytest.raises(InputError, match="other settings"):
        claim(tmp_path / "run", {"seed": 2})
    (tmp_path / "replies.jsonl").touch()
    with pytest.raises(InputError, match="unknown run"):
        claim(tmp_path, {"seed": 1})


def test_perplexity_is_measured_where_the_generator_can(embedder, tmp_path):
    generator = Echo()
    plain = evaluate(Listener(generator), tmp_path / "one", embedder)
    assert plain.metric("perplexity_by_token") is None
    generator.perplexity = lambda examples: Perplexity(
        nll=10.0 * len(examples), tokens=20, words=10, bytes=40, tokenizer="letters"
    )
    result = evaluate(Listener(generator), tmp_path / "one", embedder)
    assert result.metric("perplexity_by_token") == pytest.approx(2.718282)
    assert result.metric("perplexity_by_word") == pytest.approx(7.389056)
    assert dict(result.conditions)["tokenizer"] == "letters"


def test_the_files_behind_a_generator(tmp_path):
    assert model_files(Echo(), None) == ()
    generator = Echo()
    generator.files = lambda: [tmp_path / "a"]
    assert model_files(generator, None) == (tmp_path / "a",)


def test_a_corpus_without_conversations_is_refused(embedder, tmp_path):
    with pytest.raises(InputError, match="holds no replies"):
        evaluate(Listener(Echo()), tmp_path, embedder, "goemotions")


def test_ids_name_the_conversation_and_the_turn():
    context = Dialogue((Turn("speaker", "a"), Turn("listener", "b"), Turn("speaker", "c")), id="hit:1")
    example = Example(context, Turn("listener", "d"))
    assert example_id(example, 9) == "hit:1#3"
    assert example_id(Example(Dialogue(context.turns), example.reply), 9) == "9"
