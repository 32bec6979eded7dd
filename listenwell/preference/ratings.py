"""What raters said of replies that they read blind: a row for each system, and ratings to learn from.

`python -m listenwell.preference.ratings sheets OUT NAME=FILE…` writes sheets (`rating_sheets`); raters write
a CSV beside each; `… figures OUT` makes a result of every system. With `--candidates`, a listener's own
candidates are shown instead; `preference.fit_reward` and `rated_pairs` learn from what is said of them.
"""

import argparse
import csv
import json
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from listenwell.corpora import CORPORA
from listenwell.corpora.sampling import Sampling
from listenwell.corpora.sources import Source
from listenwell.dialogue import Dialogue
from listenwell.errors import InputError, ListenwellError
from listenwell.evaluation.report.side_by_side import read_column
from listenwell.files import hash_files, sha256
from listenwell.preference.rating_sheets import (
    KEY,
    PERSON,
    SCALES,
    Entry,
    Key,
    Offers,
    Shown,
    candidate_offers,
    candidates_of,
    examples_by_id,
    sheet_name,
    systems_offers,
    write_sheets,
)
from listenwell.results.metric_registry import units
from listenwell.results.store import Result, environment, file_name, write_result

RATINGS = "ratings"
LOWEST, HIGHEST = 1.0, 5.0
HEADER = ("context", "letter", *SCALES)


@dataclass(frozen=True)
class Rated:
    """A context whose replies somebody rated."""

    entry: Entry
    ratings: dict[str, np.ndarray]
    """Of each letter: (raters, SCALES)."""

    def mean(self, shown: Shown) -> np.ndarray:
        """All raters' mean of a reply: (SCALES,)."""
        found: np.ndarray = self.ratings[shown.letter].mean(axis=0)
        return found

    def of(self, who: str) -> np.ndarray | None:
        """The mean of what somebody said; None where it was not shown."""
        return next((self.mean(shown) for shown in self.entry.replies if who in shown.who), None)


def read_ratings(folder: Path) -> tuple[Key, list[Rated]]:
    """A folder's key, and every context of the sheets that were rated.

    A sheet can have several raters: sheet-01.csv, sheet-01-second.csv and so on.
    """
    if not (folder / KEY).is_file():
        raise InputError(f"{folder} holds no {KEY}.", "Name a folder with sheets.")
    key = Key.from_json((folder / KEY).read_bytes())
    found: dict[tuple[int, str], list[list[float]]] = {}
    known = {(entry.number, shown.letter) for entry in key.entries for shown in entry.replies}
    files = rating_files(folder)
    for file in files:
        for place, scores in _lines(file):
            if place not in known:
                raise InputError(f"{file.name}: no reply is {place[1]} of context {place[0]}.", "Correct it.")
            found.setdefault(place, []).append(scores)
    rated = []
    for entry in key.entries:
        ratings = {s.letter: found.get((entry.number, s.letter)) for s in entry.replies}
        if not any(ratings.values()):
            continue
        if missing := [letter for letter, scores in ratings.items() if not scores]:
            raise InputError(
                f"Context {entry.number} of {sheet_name(entry.sheet)} has no ratings of {missing[0]}.",
                "Rate every reply of a sheet.",
            )
        rated.append(Rated(entry, {letter: np.array(scores) for letter, scores in ratings.items()}))
    if not rated:
        raise InputError(f"Nobody has rated a sheet of {folder}.", f"Write {sheet_name(1)}.csv there.")
    return key, rated


def rated_contexts(folders: Sequence[Path], split: str) -> list[tuple[Dialogue, Rated]]:
    """Every rated context of some folders, with what was said in it.

    Args:
        folders: with sheets, key and ratings, all of one split.
        split: which.
    """
    known = [read_ratings(folder) for folder in folders]
    if wrong := next((key.split for key, _ in known if key.split != split), None):
        raise InputError(f"There are ratings of the split {wrong}.", f"Name folders of {split} alone.")
    contexts = {
        (corpus, name): example.context
        for corpus in {key.corpus for key, _ in known}
        for name, example in examples_by_id(list(Source(corpus).examples(split)))
    }
    found = []
    for key, rated in known:
        for one in rated:
            if (key.corpus, one.entry.id) not in contexts:
                raise InputError(
                    f"{key.corpus} has no context {one.entry.id}.", "Use the corpus that the sheets show."
                )
            found.append((contexts[key.corpus, one.entry.id], one))
    return found


def rating_files(folder: Path) -> list[Path]:
    """What raters wrote, in order."""
    return sorted(folder.glob("sheet-*.csv"))


def _lines(file: Path) -> Iterator[tuple[tuple[int, str], list[float]]]:
    """The lines of one rater's file: where, and what was said."""
    with file.open(encoding="utf-8-sig", newline="") as lines:
        rows = csv.DictReader(lines)
        if tuple(rows.fieldnames or ()) != HEADER:
            raise InputError(f"{file.name} has another header.", f"Write: {','.join(HEADER)}")
        for number, row in enumerate(rows, start=2):
            try:
                place, scores = (int(row["context"]), row["letter"]), [float(row[name]) for name in SCALES]
            except (TypeError, ValueError):
                raise InputError(f"{file.name}:{number} is no line of ratings.", "Correct it.") from None
            if not all(LOWEST <= score <= HIGHEST for score in scores):
                raise InputError(f"{file.name}:{number} has a score outside the scale.", "Give 1 to 5.")
            yield place, scores


def figures_of(who: str, rated: Sequence[Rated]) -> dict[str, float]:
    """What raters said of a system, on average, and how often they liked it better than the person's."""
    own, beside = list[np.ndarray](), list[float]()
    for one in rated:
        mine, theirs = one.of(who), one.of(PERSON)
        if mine is None:
            continue
        own.append(mine)
        if who != PERSON and theirs is not None:
            beside.append(float(np.sign(mine[-1] - theirs[-1])))
    if not own:
        raise InputError(f"No rated reply is of {who!r}.", "Name a system that is on the sheets.")
    figures = {f"rated_{scale}": float(value) for scale, value in zip(SCALES, np.mean(own, 0), strict=True)}
    if beside:
        figures["preferred"] = 100 * float(np.mean(np.array(beside) > 0))
        figures["level"] = 100 * float(np.mean(np.array(beside) == 0))
    return figures


def results_of(
    folder: Path, raters: str, ours: Mapping[str, str] | None = None, people: str = PERSON
) -> list[Result]:
    """A row for each system on the sheets.

    Args:
        folder: with sheets, key and ratings.
        raters: who they were, for whoever reads the row.
        ours: the checkpoint's hash of each system that is one of ours.
        people: what their row is called.
    """
    key, rated = read_ratings(folder)
    systems = dict.fromkeys(who for one in rated for shown in one.entry.replies for who in shown.who)
    often = max(len(scores) for one in rated for scores in one.ratings.values())
    conditions = (
        ("raters", raters),
        ("ratings of a reply", f"up to {often}, their mean"),
        ("sheets", f"{len(rating_files(folder))} files of ratings; order of replies drawn by seed"),
        ("sample", key.sample),
        ("replies", "; ".join(key.files)),
        ("preferred", "overall above that of the person's reply to the same context; level: the same"),
    )
    found = []
    for who in systems:
        figures = figures_of(who, rated)
        found.append(
            Result(
                task=RATINGS,
                system=people if who == PERSON else who,
                metrics=tuple(figures.items()),
                corpus=key.corpus,
                split=key.split,
                count=sum(one.of(who) is not None for one in rated),
                data=hash_files([folder / KEY, *rating_files(folder)]),
                units=units(tuple(figures)),
                conditions=conditions,
                checkpoint=(ours or {}).get(who, ""),
                **environment(),  # type: ignore[arg-type]
            )
        )
    return found


def _checkpoint(given: str) -> tuple[str, str]:
    """A system's name and the hash of its checkpoint, from NAME=FOLDER."""
    name, _, folder = given.partition("=")
    try:
        return name, str(json.loads((Path(folder) / "run.json").read_bytes())["checkpoint"])
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(
            f"{given!r} names no folder with a run.json.", "Give NAME=FOLDER, such as ours=runs/ours."
        ) from None


def make_sheets(asked: argparse.Namespace) -> Key:
    """Sheets as the command line asks for them."""
    reader = CORPORA.load(asked.corpus)(asked.path)
    reader.check(asked.split)
    examples = examples_by_id(list(reader.examples(asked.split)))
    named = [given.partition("=") for given in asked.systems]
    if not all(name and equals and file for name, equals, file in named):
        raise InputError("A system is given as NAME=FILE.", "Such as: ours=runs/ours/replies.jsonl")
    files = tuple(f"{name}: {Path(file).name}, sha256 {sha256(Path(file))[:12]}" for name, _, file in named)
    offered: list[tuple[str, object, Offers]] = []
    if asked.candidates:
        known, draw = candidates_of(Path(named[0][2])), random.Random(asked.seed)
        for name, example in examples:
            if name in known:
                offered.append(
                    (name, example, candidate_offers(known[name], example, asked.candidates, draw))
                )
    else:
        columns = [read_column(name, Path(file)) for name, _, file in named]
        for name, example in examples:
            if offers := systems_offers(columns, name, example):
                offered.append((name, example, offers))
    about = Key(asked.corpus, asked.split, "", files, ())
    return write_sheets(asked.folder, offered, Sampling(asked.count, asked.seed), asked.per, about)  # type: ignore[arg-type]


def main(arguments: Sequence[str] | None = None) -> int:
    """Do as the command line says; gives the exit status."""
    parser = argparse.ArgumentParser(prog="python -m listenwell.preference.ratings", description=__doc__)
    ways = parser.add_subparsers(dest="way", required=True)
    sheets = ways.add_parser("sheets", help="write sheets for raters")
    sheets.add_argument("folder", type=Path)
    sheets.add_argument(
        "systems", nargs="+", help="NAME=FILE, a replies.jsonl or a file MoEL or MIME released"
    )
    sheets.add_argument("--candidates", type=int, default=0, help="show so many candidates of the first file")
    sheets.add_argument("--count", type=int, default=80, help="contexts")
    sheets.add_argument("--per", type=int, default=20, help="contexts on a sheet")
    sheets.add_argument("--seed", type=int, default=0)
    sheets.add_argument("--corpus", default="empathetic_dialogues")
    sheets.add_argument("--split", default="test")
    sheets.add_argument("--path", type=Path, help="the corpus's folder")
    figures = ways.add_parser("figures", help="a result of every system")
    figures.add_argument("folder", type=Path)
    figures.add_argument("--raters", required=True, help="who they were")
    figures.add_argument("--ours", nargs="*", default=[], help="NAME=FOLDER with the run.json of its replies")
    figures.add_argument(
        "--people", default=PERSON, help="the name of their row, where other sheets have one already"
    )
    figures.add_argument("--keep", type=Path, required=True, help="the folder for the results")
    asked = parser.parse_args(arguments)
    try:
        if asked.way == "sheets":
            key = make_sheets(asked)
            print(f"{asked.folder}: {len(key.entries)} contexts on {key.entries[-1].sheet} sheets")
        else:
            ours = dict(map(_checkpoint, asked.ours))
            for result in results_of(asked.folder, asked.raters, ours, asked.people):
                write_result(result, asked.keep / file_name(result))
                print(f"{result.system}: {dict(result.metrics)}")
    except ListenwellError as error:
        print(f"listenwell: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
