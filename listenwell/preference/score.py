"""A result of every system that raters compared, with the raters' agreement."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from listenwell.errors import InputError
from listenwell.files import hash_files
from listenwell.metrics.agreement import fleiss_kappa, krippendorff_alpha
from listenwell.preference.rating_sheets import KEY, PERSON, SCALES
from listenwell.preference.ratings import RatedContext, rating_files, read_key, read_ratings
from listenwell.results.metric_registry import units
from listenwell.results.store import RATINGS, Result, environment


def system_scores(system: str, rated: Sequence[RatedContext]) -> dict[str, float]:
    """A system's mean ratings, and how often it was rated above the person's reply to the same context."""
    means, differences = list[np.ndarray](), list[float]()
    for context in rated:
        own, person = context.of(system), context.of(PERSON)
        if own is None:
            continue
        means.append(own)
        if system != PERSON and person is not None:
            differences.append(float(np.sign(own[-1] - person[-1])))
    if not means:
        raise InputError(f"No rated reply is of {system!r}.", "Name a system that was rated.")
    scores = {f"rated_{scale}": float(mean) for scale, mean in zip(SCALES, np.mean(means, 0), strict=True)}
    if differences:
        scores["preferred"] = 100 * float(np.mean(np.array(differences) > 0))
        scores["level"] = 100 * float(np.mean(np.array(differences) == 0))
    return scores


def rater_agreement(rated: Sequence[RatedContext]) -> str:
    """Krippendorff's alpha of each scale (interval), and Fleiss' kappa of preferences, in words.

    A preference is whether a rater gave a reply more than, less than or as much as the person's reply to the
    same context; kappa counts the replies that have the most common number of raters.
    """
    replies = [reply for context in rated for reply in context.replies]
    raters = sorted({rater for reply in replies for rater in reply.ratings})
    if not any(len(reply.ratings) > 1 for reply in replies):
        return "one rater a reply"
    missing = (np.nan,) * len(SCALES)
    table = np.array([[reply.ratings.get(rater, missing) for reply in replies] for rater in raters])
    alphas = [
        f"{scale} {krippendorff_alpha(table[:, :, n], 'interval'):.2f}" for n, scale in enumerate(SCALES)
    ]
    counts = []
    for context in rated:
        person = next((reply for reply in context.replies if PERSON in reply.systems), None)
        if person is None:
            continue
        for reply in context.replies:
            both = [rater for rater in reply.ratings if reply is not person and rater in person.ratings]
            signs = [np.sign(reply.ratings[rater][-1] - person.ratings[rater][-1]) for rater in both]
            counts.append([signs.count(sign) for sign in (-1, 0, 1)])
    often = np.array([sum(row) for row in counts if sum(row) > 1], dtype=int)
    text = f"Krippendorff's alpha (interval): {', '.join(alphas)}"
    if len(often):
        usual = int(np.bincount(often).argmax())
        kappa = fleiss_kappa(np.array([row for row in counts if sum(row) == usual]))
        text += f"; Fleiss' kappa of preferences over the person's reply, {usual} raters: {kappa:.2f}"
    return text


def results_of(
    path: Path, raters: str, ours: Mapping[str, str] | None = None, people: str = PERSON
) -> list[Result]:
    """A result for each rated system.

    Args:
        path: a folder of sheets with ratings, or a compact file.
        raters: who they were, for the conditions.
        ours: the checkpoint's hash of each system that is one of ours.
        people: what the person's row is called.
    """
    rated, files = read_ratings(path), rating_files(path)
    systems = dict.fromkeys(
        system for context in rated for reply in context.replies for system in reply.systems
    )
    most = max(len(reply.ratings) for context in rated for reply in context.replies)
    key = read_key(path) if (path / KEY).is_file() else None
    conditions = (
        ("raters", raters),
        ("ratings of a reply", f"up to {most}, their mean"),
        ("rater agreement", rater_agreement(rated)),
        ("sheets", f"{len(files) - bool(key)} files of ratings; order of replies drawn by seed"),
        *((("sample", key.sample), ("replies", "; ".join(key.files))) if key else ()),
        ("preferred", "overall above that of the person's reply to the same context; level: the same"),
    )
    results = []
    for system in systems:
        scores = system_scores(system, rated)
        results.append(
            Result(
                task=RATINGS,
                system=people if system == PERSON else system,
                metrics=tuple(scores.items()),
                corpus=rated[0].corpus,
                split=rated[0].split,
                count=sum(context.of(system) is not None for context in rated),
                data=hash_files(files),
                units=units(tuple(scores)),
                conditions=conditions,
                checkpoint=(ours or {}).get(system, ""),
                **environment(),  # type: ignore[arg-type]
            )
        )
    return results


def checkpoint_of(option: str) -> tuple[str, str]:
    """A system's name and the hash of its checkpoint, from NAME=FOLDER with a run.json."""
    name, _, folder = option.partition("=")
    try:
        return name, str(json.loads((Path(folder) / "run.json").read_bytes())["checkpoint"])
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(
            f"{option!r} names no folder with a run.json.", "Give NAME=FOLDER, such as ours=runs/ours."
        ) from None
