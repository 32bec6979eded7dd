import math
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from listenwell import checkpoint
from listenwell.errors import CheckpointError, InputError
from listenwell.evaluation.ranking import evaluate_rankers, fit_ensemble
from listenwell.files import hash_files
from listenwell.rankers.ensemble import Ensemble, fit_weights, load_scorer
from listenwell.rankers.scorer import checkpoint_key
from listenwell.rankers.scoring import Pools, pool_scores, truth_first
from tests.rankers.many_talks import Knows, write_talks
from tests.rankers.tiny_rankers import REPLIES, TALKS, keep_ranker, tiny_ranker
from tests.tiny import keep_ear, tiny_ear

CORPUS = "empathetic_dialogues"
VALID = Pools(CORPUS, "valid")
NAMES = ("R@1", "R@10", "R@50", "MRR")


@pytest.fixture(autouse=True)
def talks(tmp_path):
    """Two hundred talks: every one is in a pool, so figures can be worked by hand."""
    return write_talks(tmp_path / "data", valid=120, test=200)


@pytest.fixture
def scores(tmp_path):
    return tmp_path / "scores"


def test_one_ranker_is_one_result(talks, scores):
    scorer = Knows(2, key="its key")
    result = evaluate_rankers([scorer], "Half", Pools(CORPUS), scores)
    # Half of the true replies are first, half are last of a hundred.
    figures = {"R@1": 50, "R@10": 50, "R@50": 50, "MRR": (1 + 1 / 100) / 2 * 100}
    neighbours = {f"{name} unshuffled": value for name, value in figures.items()}
    assert dict(result.metrics) == pytest.approx(figures | neighbours)
    assert (result.task, result.system) == ("ranking", "EmpatheticDialogues: Half")
    assert (result.corpus, result.split, result.count) == (CORPUS, "test", 200)
    assert result.data == hash_files([talks / "test.csv"])
    assert result.spreads == ()
    assert set(dict(result.units).values()) == {"percent"} and len(result.units) == 8
    assert dict(result.conditions) == {
        "pool": "100 replies of the split, seed 0; unshuffled: neighbours",
        "models": "1",
    }
    assert result.checkpoint == sha256(b"its key").hexdigest()
    assert result.time and result.machine and dict(result.versions)["numpy"]
    assert type(result).from_json(result.to_json()) == result
    assert scorer.asked == 4


def test_a_sample_has_no_neighbours_and_says_so(scores):
    scorer = Knows(1)
    result = evaluate_rankers([scorer], "All", Pools(CORPUS, most=1), scores)
    assert dict(result.metrics) == dict.fromkeys(NAMES, 100)
    assert (result.count, scorer.asked) == (100, 1)
    assert dict(result.conditions)["sample"] == "the first pool"
    result = evaluate_rankers([scorer], "All", Pools(CORPUS, most=9), scores)
    assert dict(result.conditions)["sample"] == "the first 2 pools"  # there are no more


def test_seeds_are_averaged_with_their_spread(scores):
    seeds = [Knows(step, f"seed {step}") for step in (1, 2, 4)]
    result = evaluate_rankers(seeds, "Thrice", Pools(CORPUS), scores)
    # R@1 100, 50 and 25: the mean is 175/3; deviations 125/3, −25/3, −100/3.
    spread = math.sqrt((125**2 + 25**2 + 100**2) / 9 / 2)
    assert result.metric("R@1") == result.metric("R@10") == pytest.approx(175 / 3)
    assert dict(result.spreads)["R@1"] == pytest.approx(spread)
    # MRR is R@1 and a hundredth of the rest: 99 percent of the spread.
    assert dict(result.spreads)["MRR unshuffled"] == pytest.approx(0.99 * spread)
    assert set(dict(result.spreads)) == set(dict(result.metrics))
    assert dict(result.conditions)["models"] == "3, of different seeds"
    assert result.checkpoint == sha256(b"seed 1\nseed 2\nseed 4").hexdigest()


def test_an_ensembles_members_and_weights_are_conditions(scores):
    one, two, other = Knows(2, "one", "bi"), Knows(3, "two", "cobert"), Knows(4, "three", "bi")
    result = evaluate_rankers([Ensemble([one, two], [1.0, 0.5])], "Both", Pools(CORPUS, most=1), scores)
    assert dict(result.conditions)["members"] == "bi, cobert"
    assert dict(result.conditions)["weights, mean"] == "1, 0.5"
    seeds = [Ensemble([one, two], [1.0, 0.5]), Ensemble([other, two], [3.0, 0.25])]
    result = evaluate_rankers(seeds, "Both", Pools(CORPUS, most=1), scores)
    assert dict(result.conditions)["weights, mean"] == "2, 0.375"
    assert one.asked == two.asked == other.asked == 1


@pytest.mark.parametrize(
    ("scorers", "message"),
    [
        ([], "none is given"),
        ([Knows(2, "a", "bi"), Knows(2, "b", "cobert")], "not of one recipe: bi; cobert"),
        (
            [Knows(2, "a", "bi"), Ensemble([Knows(2, "a", "bi")], [1])],
            "not of one recipe: bi; ensemble of bi",
        ),
        (
            [Ensemble([Knows(name="bi")], [1]), Ensemble([Knows(name="bi"), Knows(name="poly")], [1, 1])],
            "ensemble of bi; ensemble of bi, poly",
        ),
        ([Knows(2, "a"), Knows(2, "a")], "The same ranker is given twice"),
    ],
)
def test_only_seeds_of_one_recipe_have_a_mean(scores, scorers, message):
    with pytest.raises(InputError, match=message):
        evaluate_rankers(scorers, "x", Pools(CORPUS), scores)
    assert not scores.exists()


@pytest.fixture
def members(tmp_path, tiny_encoder, installed_encoder):
    """A ranker's checkpoint, and a run that holds one as `best`."""
    one = keep_ranker(tiny_ranker(tiny_encoder, "bi")[0], tmp_path / "first")
    two = keep_ranker(tiny_ranker(tiny_encoder, "poly", lora=True)[0], tmp_path / "second" / "best")
    return [one, two]


def test_an_ensemble_is_fitted_and_loads_and_scores_alike(members, scores, tmp_path):
    ensemble = fit_ensemble(members, VALID, scores, tmp_path / "both")
    pool_rows = [truth_first(pool_scores(load_scorer(path), VALID, scores)) for path in members]
    assert ensemble.weights == pytest.approx(fit_weights(pool_rows))
    loaded = load_scorer(tmp_path / "both")
    assert isinstance(loaded, Ensemble) and loaded.weights == ensemble.weights
    assert [member.name for member in loaded.scorers] == ["bi", "poly"]
    assert [member.key for member in loaded.scorers] == [checkpoint_key(path) for path in members]
    assert loaded.key == ensemble.key
    np.testing.assert_array_equal(loaded.score(TALKS, REPLIES), ensemble.score(TALKS, REPLIES))
    saved = checkpoint.open_checkpoint(tmp_path / "both", "ensemble")
    assert list(saved.config()["members"]) == ["first", "second"]  # a best goes by its run's name
    # Its pools are those of its members: nothing is scored again.
    files = sorted(scores.rglob("*.npy"))
    pool_scores(loaded, VALID, scores)
    assert sorted(scores.rglob("*.npy")) == files and len(files) == 2


def test_its_weights_make_true_replies_likelier_than_one_member_does(members, scores, tmp_path):
    ensemble = fit_ensemble(members, VALID, scores, tmp_path / "both")

    def likelihood(scorer):
        rows = truth_first(pool_scores(scorer, VALID, scores)).astype(np.float64)
        return float((rows[:, 0] - np.log(np.exp(rows).sum(axis=1))).mean())

    alone = [fit_ensemble([path], VALID, scores, tmp_path / f"alone {path.name}") for path in members]
    assert likelihood(ensemble) >= max(map(likelihood, alone)) - 1e-6
    assert likelihood(ensemble) > math.log(1 / 100)


def test_a_member_is_called_by_its_folder_wherever_one_stands(members, scores, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path / "second")
    fit_ensemble([Path("best"), Path("../first/.")], VALID, scores, tmp_path / "both")
    saved = checkpoint.open_checkpoint(tmp_path / "both")
    assert list(saved.config()["members"]) == ["second", "first"]
    monkeypatch.chdir(tmp_path / "second" / "best")
    fit_ensemble([Path()], VALID, scores, tmp_path / "alone")
    assert list(checkpoint.open_checkpoint(tmp_path / "alone").config()["members"]) == ["second"]


def test_a_run_is_a_member_by_its_best(members, scores, tmp_path):
    ensemble = fit_ensemble([tmp_path / "first", tmp_path / "second"], VALID, scores, tmp_path / "both")
    assert [member.key for member in ensemble.scorers] == [checkpoint_key(path) for path in members]
    saved = checkpoint.open_checkpoint(tmp_path / "both")
    assert list(saved.config()["members"]) == ["first", "second"]
    assert {"second/config.json", "second/adapter_model.safetensors"} <= set(saved.sums)
    assert load_scorer(tmp_path / "both").key == ensemble.key
    assert load_scorer(tmp_path / "second").key == ensemble.scorers[1].key


def test_the_test_split_is_never_fitted_on(members, scores, tmp_path):
    with pytest.raises(InputError, match=r"not fitted on the test split\. Fit it on valid"):
        fit_ensemble(members, Pools(CORPUS), scores, tmp_path / "both")
    assert not (tmp_path / "both").exists() and not scores.exists()


def test_two_members_of_one_name_are_refused(members, scores, tmp_path):
    (tmp_path / "first" / "best").mkdir()
    twin = [tmp_path / "first", tmp_path / "first" / "best"]
    with pytest.raises(InputError, match="Two members are called alike: first, first"):
        fit_ensemble(twin, VALID, scores, tmp_path / "both")
    assert not (tmp_path / "both").exists()


def test_only_an_older_ensemble_is_replaced(members, scores, tmp_path):
    fit_ensemble(members, VALID, scores, tmp_path / "both")
    fit_ensemble(members[:1], VALID, scores, tmp_path / "both")
    assert len(load_scorer(tmp_path / "both").scorers) == 1
    own = tmp_path / "diary"
    own.mkdir()
    (own / "page.txt").write_text("mine")
    for out, message in (
        (own, "holds something else than an ensemble"),
        (tmp_path / "second", "holds something else"),
        (tmp_path / "first", "is a member, or inside of one"),
        (tmp_path / "first" / "deeper" / "both", "is a member, or inside of one"),
    ):
        with pytest.raises(InputError, match=message):
            fit_ensemble(members, VALID, scores, out)
    assert (own / "page.txt").read_text() == "mine"
    assert {load_scorer(path).name for path in members} == {"bi", "poly"}  # both are whole


def test_a_member_of_another_kind_is_named(members, scores, tmp_path, tiny_encoder):
    classifier = keep_ear(tiny_ear(tiny_encoder, ["emotion"]), tmp_path / "classifier")
    with pytest.raises(CheckpointError, match=r"classifier holds a 'classifier' checkpoint, not 'ranker'"):
        fit_ensemble([*members, classifier], VALID, scores, tmp_path / "both")
    with pytest.raises(CheckpointError, match="no such folder"):
        fit_ensemble([*members, tmp_path / "none"], VALID, scores, tmp_path / "both")
    assert not (tmp_path / "both").exists()
