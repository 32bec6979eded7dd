"""Measuring rankers and fitting ensembles: from checkpoints to rows of the ledger."""

from collections.abc import Sequence
from dataclasses import replace
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


def evaluate_rankers(scorers: Sequence[Scorer], system: str, given: Pools, folder: Path) -> Result:
    """One row of the ledger: the mean over witnesses that differ by their seed alone.

    Args:
        witnesses: of one recipe.
        system: the row's name, such as "CoBERT".
        given: the shuffled pools; neighbours are measured too where no number of pools is given.
        folder: where scores are kept.
    """
    _check_recipe(scorers)
    rows = []
    for scorer in scorers:
        figures = ranking_metrics(ranks(pool_scores(scorer, given, folder)))
        if given.most is None:
            hard = ranking_metrics(ranks(pool_scores(scorer, replace(given, shuffled=False), folder)))
            figures |= {f"{name} unshuffled": value for name, value in hard.items()}
        rows.append(figures)
    spreads = {name: over_seeds([row[name] for row in rows]) for name in rows[0]}
    source, count = Source(given.source, given.path), len(list(given.blocks()))
    return Result(
        task=RANKING,
        system=f"{source.title}: {system}",
        metrics=tuple((name, found.mean) for name, found in spreads.items()),
        spreads=tuple((name, found.spread) for name, found in spreads.items()) if len(rows) > 1 else (),
        corpus=given.source,
        split=given.split,
        count=count * POOL,
        data=hash_files(given.files()),
        units=units(tuple(spreads)),
        conditions=tuple(_conditions(scorers, given, count).items()),
        checkpoint=checkpoint_keys([scorer.key for scorer in scorers]),
        **environment(),  # type: ignore[arg-type]
    )


def fit_ensemble(members: Sequence[Path], given: Pools, folder: Path, out: Path) -> Ensemble:
    """Fit the members' weights on validation pools and write the ensemble as a checkpoint of its own.

    Args:
        members: their checkpoints, or runs that hold one as `best`; the folder's name (or its run's, for
            `best`) is the member's.
        given: the pools to fit on; never the test split's.
        folder: where scores are kept.
        out: the ensemble's folder, in which the members are copied; an ensemble that is there is replaced.
    """
    if given.split == "test":
        raise InputError("An ensemble is not fitted on the test split.", "Fit it on valid.")
    out = out.expanduser()
    # `.` and `..` are no names.
    places = [checkpoint.find_checkpoint(place.expanduser()).resolve() for place in members]
    _check_place(out, places)
    names = [place.parent.name if place.name == checkpoint.BEST else place.name for place in places]
    if len(set(names)) != len(names):
        raise InputError(
            f"Two members are called alike: {', '.join(names)}.", "Give folders of different names."
        )
    scorers = [load_scorer(place) for place in places]
    weights = fit_weights([truth_first(pool_scores(scorer, given, folder)) for scorer in scorers])
    config = EnsembleConfig(tuple((name, float(weight)) for name, weight in zip(names, weights, strict=True)))
    with checkpoint.writing(out, KIND) as place:
        for name, member in zip(names, places, strict=True):
            copytree(member, place / name)
        (place / "config.json").write_text(dumps(config.to_dict()) + "\n", encoding="utf-8")
    return Ensemble(scorers, [float(weight) for weight in weights])


def checkpoint_keys(keys: Sequence[str]) -> str:
    """One name for several checkpoints."""
    from hashlib import sha256

    return sha256("\n".join(keys).encode()).hexdigest()


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


def _check_place(out: Path, members: Sequence[Path]) -> None:
    """What is written replaces what is there: nothing but an older ensemble may be, and no member around.

    Args:
        out: the place.
        members: resolved.
    """
    if any(out.resolve().is_relative_to(member) for member in members):
        raise InputError(f"{out} is a member, or inside of one.", "Name another folder.")
    if not out.exists():
        return
    try:
        free = checkpoint.open_checkpoint(out).kind == KIND
    except CheckpointError:
        free = False
    if not free:
        raise InputError(f"{out} holds something else than an ensemble.", "Name another folder.")


def _conditions(scorers: Sequence[Scorer], given: Pools, count: int) -> dict[str, str]:
    found = {
        "pool": f"{POOL} replies of the split, seed {POOL_SEED}; unshuffled: neighbours",
        "models": f"{len(scorers)}, of different seeds" if len(scorers) > 1 else "1",
    }
    if given.most is not None:
        found["sample"] = f"the first {count} pools" if count > 1 else "the first pool"
    for scorer in scorers[:1]:
        if isinstance(scorer, Ensemble):
            found["members"] = ", ".join(member.name for member in scorer.scorers)
            weights = np.array([member.weights for member in scorers if isinstance(member, Ensemble)])
            found["weights, mean"] = ", ".join(f"{value:.4g}" for value in weights.mean(axis=0))
    return found
