"""Ratings of replies by people who did not know whose they were: one reader of both file formats.

Raters fill in CSV files beside blind sheets (`rating_sheets`). `compact_ratings` turns such a folder into one
JSON line a rating, which can be committed: texts of a corpus are left out, and a context is known by its
conversation's id and the number of turns before the reply. data/ratings/README.md has the format.
"""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from listenwell.corpora.sampling import example_id
from listenwell.corpora.sources import Source
from listenwell.dialogue import Dialogue, Factors
from listenwell.errors import InputError, ListenwellError
from listenwell.files import written_whole
from listenwell.preference.rating_sheets import KEY, PERSON, SCALES, Key, sheet_name
from listenwell.serialization import Record
from listenwell.training.preference_pairs import read_lines

LOWEST, HIGHEST = 1.0, 5.0
HEADER = ("context", "letter", *SCALES)


@dataclass(frozen=True, slots=True)
class Rating(Record):
    """A line of a compact file: what one rater gave one reply."""

    corpus: str
    """The corpus that `id` is from; empty where `context` holds the text."""
    split: str
    id: str
    """The conversation's id and the number of turns before the reply, as in replies.jsonl: hit:0_conv:1#3."""
    rater: str
    empathy: float
    relevance: float
    fluency: float | None = None
    """None where it was not asked for."""
    overall: float | None = None
    """Where it was not asked for, the mean of empathy and relevance stands for it."""
    systems: tuple[str, ...] = ()
    """Whose reply it is; several where their words are the same."""
    reply: str | None = None
    """None for the corpus's own reply, whose text is the corpus's."""
    plan: Factors | None = None
    context: Dialogue | None = None
    """Only where the text is ours."""

    def __post_init__(self) -> None:
        if not all(LOWEST <= score <= HIGHEST for score in self.scores if not np.isnan(score)):
            raise InputError("A rating is outside the scale.", "Give 1 to 5.")
        if self.reply is None and PERSON not in self.systems:
            raise InputError("A rating has no reply.", f"Only a reply of {PERSON} can do without its text.")

    @property
    def scores(self) -> tuple[float, ...]:
        """In the order of SCALES; fluency is NaN where it was not asked for."""
        overall = (self.empathy + self.relevance) / 2 if self.overall is None else self.overall
        return self.empathy, self.relevance, np.nan if self.fluency is None else self.fluency, overall


@dataclass(frozen=True)
class RatedReply:
    """A reply and all ratings of it."""

    text: str | None
    systems: tuple[str, ...]
    plan: Factors | None
    ratings: dict[str, tuple[float, ...]]
    """By rater, in the order of SCALES."""

    @property
    def mean(self) -> np.ndarray:
        """Over raters: (SCALES,)."""
        return np.asarray(np.mean(list(self.ratings.values()), axis=0))

    @property
    def overall(self) -> float:
        """The mean of the last scale."""
        return float(self.mean[-1])


@dataclass(frozen=True)
class RatedContext:
    """A context and its rated replies."""

    corpus: str
    split: str
    id: str
    replies: tuple[RatedReply, ...]
    context: Dialogue | None = None

    def of(self, system: str) -> np.ndarray | None:
        """The mean rating of a system's reply; None where it was not rated."""
        return next((reply.mean for reply in self.replies if system in reply.systems), None)


def read_ratings(path: Path) -> list[RatedContext]:
    """All rated contexts of a folder of sheets, or of a compact file."""
    grouped: dict[tuple[str, str, str], list[Rating]] = {}
    for rating in read_compact(path) if path.is_file() else _sheet_ratings(path):
        grouped.setdefault((rating.corpus, rating.split, rating.id), []).append(rating)
    if not grouped:
        raise InputError(f"{path} holds no ratings.", f"Write {sheet_name(1)}.csv there, or name another.")
    return [_context(key, ratings) for key, ratings in grouped.items()]


def rated_contexts(paths: Sequence[Path], split: str) -> list[tuple[Dialogue, RatedContext]]:
    """Every rated context of some folders or files of one split, with its text."""
    rated = [context for path in paths for context in read_ratings(path)]
    if wrong := next((context.split for context in rated if context.split != split), None):
        raise InputError(f"There are ratings of the split {wrong}.", f"Name ratings of {split} alone.")
    known = {
        corpus: contexts_of(corpus, split)
        for corpus in {context.corpus for context in rated if context.context is None}
    }
    pairs = []
    for context in rated:
        text = context.context or known[context.corpus].get(context.id)
        if text is None:
            advice = "Use the corpus of these ratings."
            raise InputError(f"{context.corpus} has no context {context.id}.", advice)
        pairs.append((text, context))
    return pairs


def contexts_of(corpus: str, split: str) -> dict[str, Dialogue]:
    """The context of every example of a corpus, by the example's id."""
    examples = enumerate(Source(corpus).examples(split))
    return {example_id(example, index): example.context for index, example in examples}


def compact_ratings(folder: Path, out: Path) -> int:
    """Write a folder's ratings as JSON lines without any text of the corpus; returns how many."""
    ratings = list(_sheet_ratings(folder))
    with written_whole(out) as file:
        file.writelines(rating.to_json().encode() + b"\n" for rating in ratings)
    return len(ratings)


def read_compact(file: Path) -> Iterator[Rating]:
    """The lines of a compact file; one that is no rating is an error that names it."""
    for number, line in read_lines(file):
        try:
            yield Rating.from_json(line)
        except ListenwellError as error:
            raise InputError(
                f"{file}:{number} is no rating: {error.problem}", "See data/ratings/README.md."
            ) from None


def read_key(folder: Path) -> Key:
    """What the raters of a folder of sheets did not see."""
    if not (folder / KEY).is_file():
        raise InputError(f"{folder} holds no {KEY}.", "Name a folder with sheets, or a file of ratings.")
    return Key.from_json((folder / KEY).read_bytes())


def rating_files(path: Path) -> list[Path]:
    """The files that ratings are read from: a compact file, or a folder's key and CSV files."""
    return [path] if path.is_file() else [path / KEY, *sorted(path.glob("sheet-*.csv"))]


def _sheet_ratings(folder: Path) -> Iterator[Rating]:
    """The ratings of all sheets; several raters of one write sheet-01.csv, sheet-01-second.csv and so on."""
    key = read_key(folder)
    replies = {
        (entry.number, shown.letter): (entry, shown) for entry in key.entries for shown in entry.replies
    }
    rated: dict[int, set[str]] = {}
    for file in rating_files(folder)[1:]:
        rater = file.stem.removeprefix("sheet-").partition("-")[2] or "first"
        for index, scores in _csv_rows(file):
            if index not in replies:
                raise InputError(f"{file.name}: no reply is {index[1]} of context {index[0]}.", "Correct it.")
            entry, shown = replies[index]
            rated.setdefault(entry.number, set()).add(shown.letter)
            text = None if PERSON in shown.who else shown.text  # the corpus's own
            named = dict(zip(SCALES, scores, strict=True))
            about = {"systems": shown.who, "reply": text, "plan": shown.plan}
            yield Rating(key.corpus, key.split, entry.id, rater, **named, **about)  # type: ignore[arg-type]
    for entry in key.entries:
        missing = [shown.letter for shown in entry.replies if shown.letter not in rated.get(entry.number, ())]
        if missing and entry.number in rated:
            raise InputError(
                f"Context {entry.number} of {sheet_name(entry.sheet)} has no ratings of {missing[0]}.",
                "Rate every reply of a sheet.",
            )


def _context(key: tuple[str, str, str], ratings: Sequence[Rating]) -> RatedContext:
    by_reply: dict[tuple[str | None, tuple[str, ...]], list[Rating]] = {}
    for rating in ratings:
        by_reply.setdefault((rating.reply, rating.systems), []).append(rating)
    replies = [
        RatedReply(text, systems, some[0].plan, {rating.rater: rating.scores for rating in some})
        for (text, systems), some in by_reply.items()
    ]
    return RatedContext(*key, tuple(replies), ratings[0].context)


def _csv_rows(file: Path) -> Iterator[tuple[tuple[int, str], list[float]]]:
    """The rows of one rater's file: context and letter, and the scores."""
    with file.open(encoding="utf-8-sig", newline="") as lines:
        rows = csv.DictReader(lines)
        if tuple(rows.fieldnames or ()) != HEADER:
            raise InputError(f"{file.name} has another header.", f"Write: {','.join(HEADER)}")
        for number, row in enumerate(rows, start=2):
            try:
                index, scores = (int(row["context"]), row["letter"]), [float(row[name]) for name in SCALES]
            except (TypeError, ValueError):
                raise InputError(f"{file.name}:{number} is no line of ratings.", "Correct it.") from None
            if not all(LOWEST <= score <= HIGHEST for score in scores):
                raise InputError(f"{file.name}:{number} has a score outside the scale.", "Give 1 to 5.")
            yield index, scores
