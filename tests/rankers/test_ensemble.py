import json
import math
import shutil

import numpy as np
import pytest

from listenwell import checkpoint
from listenwell.errors import CheckpointError, InputError
from listenwell.rankers.ensemble import KIND, Ensemble, EnsembleConfig, fit_weights, load_scorer
from listenwell.rankers.model import KIND as RANKER
from listenwell.rankers.scorer import RankerScorer
from tests.rankers.tiny_rankers import REPLIES, TALKS, keep_ranker, tiny_ranker


class Says:
    """A witness with fixed scores."""

    def __init__(self, scores, key="k"):
        self.scores, self.name, self.key = np.array(scores, np.float32), "says", key

    def score(self, contexts, replies):
        return self.scores[: len(contexts), : len(replies)]


def drawn(signal, contexts=300, candidates=10, seed=0, noise=1.0):
    """Scores of a witness who is right by `signal`, plus noise."""
    scores = np.random.default_rng(seed).normal(scale=noise, size=(contexts, candidates))
    scores[:, 0] += signal
    return scores


def log_likelihood(weights, scores):
    logits = np.einsum("k,knc->nc", np.asarray(weights), np.stack(scores))
    highest = logits.max(axis=1)
    sums = highest + np.log(np.exp(logits - highest[:, None]).sum(axis=1))
    return float((logits[:, 0] - sums).mean())


def test_the_sum_is_weighted():
    one, two = Says([[1, 2], [3, 4]]), Says([[10, 0], [0, 10]])
    found = Ensemble([one, two], [2, -0.5]).score(TALKS[:2], ["a", "b"])
    assert found.tolist() == [[-3, 4], [6, 3]] and found.dtype == np.float32


def test_its_key_names_members_and_weights():
    one, two = Says([[1]], "one"), Says([[1]], "two")
    keys = [
        Ensemble([one, two], [1, 2]).key,
        Ensemble([one, two], [1, 2.5]).key,
        Ensemble([two, one], [1, 2]).key,
        Ensemble([one], [1]).key,
    ]
    assert len(set(keys)) == 4 and Ensemble([one, two], [1, 2]).key == keys[0]


@pytest.mark.parametrize(("scorers", "weights"), [([], []), ([Says([[1]])], [1, 2])])
def test_every_witness_needs_a_weight(scorers, weights):
    with pytest.raises(InputError, match=rf"{len(scorers)} scorers and {len(weights)} weights"):
        Ensemble(scorers, weights)


def test_a_weight_by_hand():
    # Two candidates a context, one apart: right in three of four, so e^w / (1 + e^w) = 3/4, w = ln 3.
    scores = np.array([[1.0, 0.0]] * 3 + [[0.0, 1.0]])
    assert fit_weights([scores], ridge=0)[0] == pytest.approx(math.log(3), rel=1e-6)
    # What is added to all candidates of a context is not seen.
    moved = scores + np.array([[5], [-7], [0], [100]])
    assert fit_weights([moved], ridge=0)[0] == pytest.approx(math.log(3), rel=1e-6)
    # Always wrong by as much: the sign turns.
    assert fit_weights([-scores], ridge=0)[0] == pytest.approx(-math.log(3), rel=1e-6)


def test_two_witnesses_by_hand():
    # Their contexts have nothing to do with each other: each gets what it had alone.
    nothing = np.zeros((4, 2))
    first = np.array([[1.0, 0.0]] * 3 + [[0.0, 1.0]])
    second = np.array([[4.0, 0.0]] * 2 + [[0.0, 4.0]])
    found = fit_weights([np.concatenate((first, nothing[:3])), np.concatenate((nothing, second))], ridge=0)
    assert found == pytest.approx([math.log(3), math.log(2) / 4], rel=1e-6)


def test_who_is_always_right_counts_and_who_guesses_does_not():
    right, guess = drawn(30.0, candidates=100), drawn(0.0, candidates=100, seed=1)
    weights = fit_weights([right, guess])
    assert log_likelihood(weights, [right, guess]) > -0.01
    assert weights[0] * right.std() > 20 * abs(weights[1]) * guess.std()


@pytest.mark.parametrize("signal", [0.5, 2.0, 4.0, 8.0, 20.0, 100.0])
@pytest.mark.parametrize("candidates", [2, 10, 100])
def test_no_near_weights_are_better_however_sure_a_witness_is(signal, candidates):
    scores = [drawn(signal, 60, candidates), drawn(0.3, 60, candidates, seed=3, noise=4.0)]
    weights = fit_weights(scores)
    spread = [np.std(one - one.mean(axis=1, keepdims=True)) for one in scores]

    def climbed(given):  # what is promised: the likelihood, less a small pull on standardized weights
        return log_likelihood(given, scores) - 1e-3 / 2 * float(((given * spread) ** 2).sum())

    best = climbed(weights)
    assert best > climbed(np.zeros(2))
    for number in range(2):
        for factor in (0.9, 0.99, 1.01, 1.1):
            near = weights.copy()
            near[number] *= factor
            assert climbed(near) < best


def test_two_who_say_the_same_share():
    said = drawn(1.0)
    (alone,), both = fit_weights([said]), fit_weights([said, said])
    assert both[0] == pytest.approx(both[1], rel=1e-6)
    assert both.sum() == pytest.approx(alone, rel=1e-2)


def test_a_scale_is_undone():
    one, two = drawn(1.0), drawn(0.5, seed=2)
    plain, scaled = fit_weights([one, two]), fit_weights([10 * one, two])
    assert scaled == pytest.approx([plain[0] / 10, plain[1]], rel=1e-5)


def test_two_rankers_together_are_no_worse_than_one():
    one, two = drawn(1.5, 2000), drawn(1.5, 2000, seed=2)
    weights = fit_weights([one, two])
    # Both are as good and independent: the best sum has equal parts, each as large as its own (1.5 here).
    assert weights == pytest.approx([1.5, 1.5], rel=0.15)
    right = [
        (scores.argmax(axis=1) == 0).mean() for scores in (one, two, weights[0] * one + weights[1] * two)
    ]
    assert right[2] > max(right[:2]) + 0.05


@pytest.mark.parametrize("value", [0.0, 3.0, np.nan, np.inf])
def test_a_witness_who_says_nothing_is_a_clear_error(value):
    with pytest.raises(InputError, match="the same score, or none"), np.errstate(invalid="ignore"):
        fit_weights([drawn(1.0, 4, 3), np.full((4, 3), value)])


def keep_ensemble(folder, members):
    """An ensemble's checkpoint: rankers and weights by name."""
    with checkpoint.writing(folder, KIND) as place:
        for name, (ranker, _) in members.items():
            keep_ranker(ranker, place / name)
        config = EnsembleConfig(tuple((name, weight) for name, (_, weight) in members.items()))
        (place / "config.json").write_text(config.to_json())
    return folder


@pytest.fixture
def kept(tmp_path, tiny_encoder, installed_encoder):
    one, two = tiny_ranker(tiny_encoder, "bi")[0], tiny_ranker(tiny_encoder, "poly", lora=True)[0]
    return keep_ensemble(tmp_path / "both", {"second": (two, 0.25), "first": (one, -1.5)})


def test_saved_and_loaded_it_scores_alike(kept):
    found = load_scorer(kept)
    assert isinstance(found, Ensemble) and found.weights == (0.25, -1.5)
    assert [scorer.name for scorer in found.scorers] == ["poly", "bi"]
    members = [RankerScorer.load(kept / name) for name in ("second", "first")]
    expected = sum(
        np.float32(weight) * member.score(TALKS, REPLIES)
        for member, weight in zip(members, (0.25, -1.5), strict=True)
    )
    np.testing.assert_allclose(found.score(TALKS, REPLIES), expected, rtol=1e-5, atol=1e-5)
    assert found.key == Ensemble(members, found.weights).key == load_scorer(kept).key


def test_a_ranker_alone_is_loaded_as_one(kept):
    found = load_scorer(kept / "first")
    assert isinstance(found, RankerScorer) and found.name == "bi"


def test_ensembles_can_hold_ensembles(tmp_path, kept):
    with checkpoint.writing(tmp_path / "outer", KIND) as place:
        shutil.copytree(kept, place / "inner")
        (place / "config.json").write_text(EnsembleConfig((("inner", 2.0),)).to_json())
    inner, outer = load_scorer(kept), load_scorer(tmp_path / "outer")
    np.testing.assert_allclose(
        outer.score(TALKS, REPLIES), 2 * inner.score(TALKS, REPLIES), rtol=1e-5, atol=1e-5
    )


def test_a_member_that_is_damaged_is_a_clear_error(kept):
    file = kept / "first" / "model.safetensors"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.raises(CheckpointError, match=r"first/model.safetensors is damaged"):
        load_scorer(kept)


@pytest.mark.parametrize("name", ["../outside", "third", "..", "."])
def test_a_member_is_never_outside(tmp_path, tiny_encoder, installed_encoder, name):
    keep_ranker(tiny_ranker(tiny_encoder, "bi")[0], tmp_path / "outside")
    with checkpoint.writing(tmp_path / "foreign", KIND) as place:
        (place / "config.json").write_text(json.dumps({"members": {name: 1.0}}))
    with pytest.raises(CheckpointError, match=r"foreign holds no .*checkpoint\.json"):
        load_scorer(tmp_path / "foreign")


def test_a_checkpoint_of_another_kind_is_a_clear_error(tmp_path):
    with checkpoint.writing(tmp_path / "classifier", "classifier") as place:
        (place / "config.json").write_text("{}")
    with pytest.raises(CheckpointError, match=rf"'classifier' checkpoint, not '{RANKER}'"):
        load_scorer(tmp_path / "classifier")
