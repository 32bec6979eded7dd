import numpy as np
import pytest

from listenwell import checkpoint
from listenwell.dialogue import Candidate, Factors
from listenwell.errors import CheckpointError
from listenwell.rankers import ranker as module
from listenwell.rankers.config import CobertSettings
from listenwell.rankers.ensemble import Ensemble, EnsembleConfig
from listenwell.rankers.ranker import Ranker
from listenwell.rankers.scorer import RankerScorer
from tests.rankers.tiny_rankers import REPLIES, TALKS, keep_ranker, tiny_ranker

pytestmark = pytest.mark.usefixtures("installed_encoder")


class Counts:
    """Scores a reply by its words, the more the better."""

    name, key = "counts", "key of counts"

    def score(self, contexts, replies):
        return np.array([[len(reply.split()) for reply in replies]] * len(contexts), np.float32)


def test_candidates_are_put_in_order_with_their_scores():
    given = [
        Candidate("one", Factors(act="questioning"), (("other", 0.5),)),
        Candidate("one two three"),
        Candidate("a b", scores=(("counts", 9.0),)),
        Candidate("four"),
    ]
    found = Ranker(Counts()).rerank(TALKS[0], given)
    # Equal ones keep their order; an older score of the same name is replaced.
    assert [one.text for one in found] == ["one two three", "a b", "one", "four"]
    assert [dict(one.scores) for one in found] == [
        {"counts": 3.0},
        {"counts": 2.0},
        {"counts": 1.0, "other": 0.5},
        {"counts": 1.0},
    ]
    assert found[2].plan == Factors(act="questioning")
    assert Ranker(Counts()).rerank(TALKS[0], []) == ()


def test_scores_are_the_witnesss(tiny_encoder, tmp_path):
    folder = keep_ranker(tiny_ranker(tiny_encoder, "poly")[0], tmp_path / "kept")
    chosen, scorer = Ranker.load(folder), RankerScorer.load(folder)
    assert (chosen.name, chosen.key) == (scorer.name, scorer.key)
    found = chosen.scores(TALKS[1], REPLIES)
    assert found.shape == (5,) and found.dtype == np.float32
    np.testing.assert_array_equal(found, scorer.score([TALKS[1]], REPLIES)[0])
    assert chosen.scores(TALKS[1], []).shape == (0,)
    best = chosen.rerank(TALKS[1], [Candidate(text) for text in REPLIES])
    assert [one.text for one in best] == [REPLIES[n] for n in np.argsort(-found, kind="stable")]


def test_a_run_is_loaded_by_its_best(tiny_encoder, tmp_path):
    keep_ranker(tiny_ranker(tiny_encoder, "bi")[0], tmp_path / "run" / "best")
    assert Ranker.load(tmp_path / "run").key == Ranker.load(tmp_path / "run" / "best").key


def test_without_a_folder_the_shipped_one_is_loaded(tiny_encoder, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SHIPPED", keep_ranker(tiny_ranker(tiny_encoder)[0], tmp_path / "shipped"))
    assert Ranker.load().key == Ranker.load(tmp_path / "shipped").key
    with pytest.raises(CheckpointError, match="no such folder"):
        Ranker.load(tmp_path / "none")


def test_weights_say_where_the_encoder_is(tiny_encoder, tmp_path, monkeypatch):
    folder = keep_ranker(tiny_ranker(tiny_encoder, "bi")[0], tmp_path / "kept")
    asked = []

    def find(base, place=None):
        asked.append((base, place))
        return tiny_encoder

    # For the weights, of torch and of onnxruntime, and for the key.
    for module_name in ("runtime.encoder", "runtime.onnx.checkpoint_encoder", "rankers.scorer"):
        monkeypatch.setattr(f"listenwell.{module_name}.find_weights", find)
    for engine in ("torch", "onnx"):
        asked.clear()
        Ranker.load(folder, tmp_path / "own", engine)
        assert len(asked) > 1 and set(asked) == {("all-minilm-l6-v2", tmp_path / "own")}


@pytest.mark.parametrize("engine", ["torch", "auto"])
def test_vectors_of_an_ensemble_are_its_first_members_that_gives_some(tiny_encoder, tmp_path, engine):
    members = {
        "cross": tiny_ranker(tiny_encoder, "cross")[0],
        "cobert": tiny_ranker(tiny_encoder, "cobert", cobert=CobertSettings(vectors=0.5))[0],
        "words": tiny_ranker(tiny_encoder, "bi", backbone="words")[0],
    }
    with checkpoint.writing(tmp_path / "all", "ensemble") as place:
        for name, ranker in members.items():
            keep_ranker(ranker, place / name)
        (place / "config.json").write_text(EnsembleConfig(tuple((name, 1.0) for name in members)).to_json())
    chosen = Ranker.load(tmp_path / "all", engine=engine)
    searcher = RankerScorer.load(tmp_path / "all" / "cobert", engine=engine)
    assert isinstance(chosen.scorer, Ensemble) and chosen.name == "ensemble"
    told = []
    vectors = chosen.reply_vectors(REPLIES, told.append)
    np.testing.assert_array_equal(vectors, searcher.reply_vectors(REPLIES))
    assert chosen.width == vectors.shape[1] == 16 and sum(told) == 5 and vectors.dtype == np.float32
    asked = chosen.context_vector(TALKS[1])
    assert asked.shape == (16,) and asked.dtype == np.float32
    np.testing.assert_array_equal(asked, searcher.context_vectors([TALKS[1]])[0])


@pytest.mark.parametrize("scorer", [Counts(), Ensemble([Counts()], [1.0])])
def test_without_vectors_a_pool_cannot_be_searched(scorer):
    chosen = Ranker(scorer)
    asks = (
        lambda: chosen.width,
        lambda: chosen.reply_vectors(REPLIES),
        lambda: chosen.context_vector(TALKS[0]),
    )
    for ask in asks:
        with pytest.raises(CheckpointError, match=r"gives no vectors for large pools.*bi-encoder"):
            ask()


def test_rank_gives_the_best_first(tiny_encoder, tmp_path):
    folder = keep_ranker(tiny_ranker(tiny_encoder, "cross")[0], tmp_path / "kept")
    ranker = Ranker.from_pretrained(str(folder))
    ranked = ranker.rank(TALKS[0], REPLIES)
    scores = ranker.scores(TALKS[0], REPLIES)
    assert [reply.index for reply in ranked] == np.argsort(-scores, kind="stable").tolist()
    assert [reply.text for reply in ranked] == [REPLIES[reply.index] for reply in ranked]
    assert ranker.rank(TALKS[0], REPLIES, top=2) == ranked[:2]
    assert ranker.rank("My dog died.", []) == []
