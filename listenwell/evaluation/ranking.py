"""Measure rankers, and fit the weights of an ensemble of rankers."""

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from shutil import copytree

import numpy as np

from listenwell import checkpoint
from listenwell.corpora.sources import Source
from listenwell.errors import CheckpointError, InputError
from listenwell.files import hash_files
from listenwell.metrics import over_seeds, ranking_metrics
from listenwell.rankers.ensemble import KIND, Ensemble, EnsembleConfig, fit_weights, load_scorer
from listenwell.rankers.scorer import Scorer
from listenwell.rankers.scoring import POOL, POOL_SEED, Pools, pool_scores, ranks, truth_first
from listenwell.results.metric_registry import units
from listenwell.results.store import Result, environment
from listenwell.serialization import dumps

RANKING = "ranking"


def evaluate_rankers(scorers: Sequence[Scorer], system: str, pools: Pools, folder: Path) -> Result:
    """One result, `system`: the mean over rankers that differ by their seed alone.

    Unshuffled pools are measured too, unless only a number of pools is used. Scores are kept in the folder.
    """
    _check_recipe(scorers)
    rows = []
    for scorer in scorers:
        metrics = ranking_metrics(ranks(pool_scores(scorer, pools, folder)))
        if pools.most is None:
            neighbours = ranking_metrics(ranks(pool_scores(scorer, replace(pools, shuffled=False), folder)))
            metrics |= {f"{name} unshuffled": value for name, value in neighbours.items()}
        rows.append(metrics)
    spreads = {name: over_seeds([row[name] for row in rows]) for name in rows[0]}
    source, count = Source(pools.source, pools.path), len(list(pools.blocks()))
    return Result(
        task=RANKING,
        system=f"{source.title}: {system}",
        metrics=tuple((name, spread.mean) for name, spread in spreads.items()),
        spreads=tuple((name, spread.spread) for name, spread in spreads.items()) if len(rows) > 1 else (),
        corpus=pools.source,
        split=pools.split,
        count=count * POOL,
        data=hash_files(pools.files()),
        units=units(tuple(spreads)),
        conditions=tuple(_conditions(scorers, pools, count).items()),
        checkpoint=sha256("\n".join(scorer.key for scorer in scorers).encode()).hexdigest(),
        **environment(),  # type: ignore[arg-type]
    )


def fit_ensemble(members: Sequence[Path], pools: Pools, folder: Path, out: Path) -> Ensemble:
    """Fit the members' weights on validation pools and write the ensemble as a checkpoint of its own.

    Args:
        members: their checkpoints, or runs that hold one as `best`; the folder's name (or its run's, for
            `best`) is the member's.
        pools: the pools to fit on; never those of the test split.
        folder: where scores are kept.
        out: the ensemble's folder, in which the members are copied; an ensemble that is there is replaced.
    """
    if pools.split == "test":
        raise InputError("An ensemble is not fitted on the test split.", "Fit it on valid.")
    out = out.expanduser()
    # Resolved: `.` and `..` are no names.
    paths = [checkpoint.find_checkpoint(member.expanduser()).resolve() for member in members]
    _check_target(out, paths)
    names = [path.parent.name if path.name == checkpoint.BEST else path.name for path in paths]
    if len(set(names)) != len(names):
        raise InputError(
            f"Two members are called alike: {', '.join(names)}.", "Give folders of different names."
        )
    scorers = [load_scorer(path) for path in paths]
    weights = fit_weights([truth_first(pool_scores(scorer, pools, folder)) for scorer in scorers])
    config = EnsembleConfig(tuple((name, float(weight)) for name, weight in zip(names, weights, strict=True)))
    with checkpoint.writing(out, KIND) as target:
        for name, member in zip(names, paths, strict=True):
            copytree(member, target / name)
        (target / "config.json").write_text(dumps(config.to_dict()) + "\n", encoding="utf-8")
    return Ensemble(scorers, [float(weight) for weight in weights])


def _check_recipe(scorers: Sequence[Scorer]) -> None:
    """Only models that differ by their seed have a mean; one model twice has no spread."""
    kinds = [_kind(scorer) for scorer in scorers]
    if len(set(kinds)) != 1:
        raise InputError(
            f"These rankers are not of one recipe: {'; '.join(kinds) or 'none is given'}.",
            "Measure them one by one.",
        )
    if len({scorer.key for scorer in scorers}) != len(scorers):
        raise InputError("The same ranker is given twice.", "Give each seed's own folder.")


def _kind(scorer: Scorer) -> str:
    if not isinstance(scorer, Ensemble):
        return scorer.name
    return f"{scorer.name} of {', '.join(map(_kind, scorer.scorers))}"


def _check_target(out: Path, members: Sequence[Path]) -> None:
    """Refuse a folder that is or lies in a member, or that holds anything but an older ensemble."""
    if any(out.resolve().is_relative_to(member) for member in members):
        raise InputError(f"{out} is a member, or inside of one.", "Name another folder.")
    if not out.exists():
        return
    try:
        is_ensemble = checkpoint.open_checkpoint(out).kind == KIND
    except CheckpointError:
        is_ensemble = False
    if not is_ensemble:
        raise InputError(f"{out} holds something else than an ensemble.", "Name another folder.")


def _conditions(scorers: Sequence[Scorer], pools: Pools, count: int) -> dict[str, str]:
    conditions = {
        "pool": f"{POOL} replies of the split, seed {POOL_SEED}; unshuffled: neighbours",
        "models": f"{len(scorers)}, of different seeds" if len(scorers) > 1 else "1",
    }
    if pools.most is not None:
        conditions["sample"] = f"the first {count} pools" if count > 1 else "the first pool"
    if ensembles := [scorer for scorer in scorers if isinstance(scorer, Ensemble)]:
        conditions["members"] = ", ".join(member.name for member in ensembles[0].scorers)
        weights = np.mean([ensemble.weights for ensemble in ensembles], axis=0)
        conditions["weights, mean"] = ", ".join(f"{value:.4g}" for value in weights)
    return conditions
