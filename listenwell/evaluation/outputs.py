"""Replies that someone else made: the two released files of peers, or anyone's JSONL."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from listenwell.corpora.base import CorpusLoader, Report, text_lines
from listenwell.corpora.sampling import Sampling
from listenwell.dialogue import LISTENER, SPEAKER, Dialogue, Example, Factors, Turn
from listenwell.errors import InputError
from listenwell.evaluation.baselines import (
    FORMATS,
    HUMAN,
    BaselineFormat,
    check_system,
    read_baselines,
    recognize,
)
from listenwell.evaluation.replies import example_id
from listenwell.files import hash_files, sha256

BASELINES_CORPUS, BASELINES_SPLIT = "empathetic_dialogues", "test"
OWN = "the file's own"


@dataclass(frozen=True)
class Given:
    """Replies and references in one order, and what must be said about them."""

    system: str
    replies: list[str]
    references: list[str]
    data: str
    """sha256 over the files that the items came from."""
    corpus: str
    """Whose references these are; OWN where they came with the file."""
    split: str
    conditions: dict[str, str] = field(default_factory=dict)
    contexts: list[Dialogue] = field(default_factory=list)
    """What was said before each reply; empty where it is not known."""
    plans: list[Factors | None] = field(default_factory=list)
    """What each reply was meant to do; empty where nobody says."""
    figures: dict[str, float] = field(default_factory=dict)
    """What was measured when they were made, such as the perplexity of the references."""
    seed: int | None = None
    """Of the run that made them."""
    checkpoint: str | None = None
    """sha256 over the files of the model that made them, where it is ours."""


@dataclass(frozen=True)
class _Line:
    place: str
    reply: str
    reference: str | None
    id: str | None


@dataclass(frozen=True)
class _Source:
    """A split of a corpus that replies answer."""

    corpus: str
    split: str
    examples: tuple[Example, ...]
    data: str

    def ids(self) -> list[str]:
        return [example_id(example, place) for place, example in enumerate(self.examples)]


def read_given(file: Path, system: str | None, reader: CorpusLoader, split: str, sampling: Sampling) -> Given:
    """The replies in a file, with their references.

    Args:
        file: MoEL's or MIME's released file, known by its contents, or JSONL with `reply` and perhaps
            `reference` and `id` in each line.
        system: which system of a released file; the name of the row for a JSONL file.
        reader: the corpus, for replies that come without references.
        split: its split.
        sampling: how many of them to measure.
    """
    if not file.is_file():
        raise InputError(f"There is no file {file}.", "Name a file with replies.")
    if form := recognize(file):
        if (reader.name, split) != (BASELINES_CORPUS, BASELINES_SPLIT):
            raise InputError(
                f"{file.name} answers {BASELINES_CORPUS} {BASELINES_SPLIT}, not {reader.name} {split}.",
                "Leave out --corpus and --split.",
            )
        return _from_baselines(file, form, system, sampling)
    lines = list(_lines(file))
    name = system or file.stem
    if any(name in known.names() for known in FORMATS):
        raise InputError(
            f"{name!r} is the name of a released system, and {file.name} is not its file.",
            "Give these replies another name with --system.",
        )
    if _all_have(lines, "reference", file):
        return _with_references(file, name, lines, sampling)
    source = _Source(reader.name, split, tuple(reader.examples(split)), hash_files(reader.check(split)))
    return _with_corpus(file, name, lines, source, sampling)


def _from_baselines(file: Path, form: BaselineFormat, system: str | None, sampling: Sampling) -> Given:
    if system is None:
        raise InputError(
            f"{file.name} holds several systems.", f"Choose one with --system: {', '.join(form.names())}."
        )
    name, report = check_system(form, system), Report()
    records = list(read_baselines(file, form, report))
    chosen = [record for _, record in sampling.draw(records)]
    conditions = form.conditions_of(name) | {
        "pool": "none: replies were generated" if name != HUMAN else "none",
        "contexts": f"those of {file.name}; texts in lower case, taken apart into tokens",
        "sample": sampling.describe(len(records), len(chosen)),
    }
    if report.skipped:
        conditions["broken blocks"] = "; ".join(report.lines())
    return Given(
        name,
        [record.reply(name) for record in chosen],
        [record.reference for record in chosen],
        hash_files([file]),
        BASELINES_CORPUS,
        BASELINES_SPLIT,
        conditions,
        [baseline_context(record.context) for record in chosen],
    )


def baseline_context(turns: Sequence[str]) -> Dialogue:
    """The turns of a released record as a dialogue: the generator begins, then they alternate."""
    return Dialogue(tuple(Turn(LISTENER if place % 2 else SPEAKER, text) for place, text in enumerate(turns)))


def _with_references(file: Path, system: str, lines: Sequence[_Line], sampling: Sampling) -> Given:
    chosen = [line for _, line in sampling.draw(lines)]
    return Given(
        system,
        [line.reply for line in chosen],
        [line.reference or "" for line in chosen],
        hash_files([file]),
        OWN,
        "–",
        {
            "replies": "a file with its own references",
            "sample": sampling.describe(len(lines), len(chosen)),
        },
    )


def _with_corpus(
    file: Path, system: str, lines: Sequence[_Line], source: _Source, sampling: Sampling
) -> Given:
    ids, replies = source.ids(), _answers(file, lines, source)
    places = [place for place, _ in sampling.draw(ids)]
    rule = sampling.describe(len(ids), len(places))
    missing = [ids[place] for place in places if ids[place] not in replies]
    if missing and sampling.limit is not None:
        raise InputError(
            f"{file.name} has no reply to {missing[0]} and {len(missing) - 1} others of the sample.",
            "Answer all of them, or leave out --limit to measure what is there.",
        )
    if missing:
        places = [place for place in places if ids[place] in replies]
        rule = f"the {len(places):,} of {len(ids):,} that the file answers"
    return Given(
        system,
        [replies[ids[place]] for place in places],
        [source.examples[place].reply.text for place in places],
        source.data,
        source.corpus,
        source.split,
        {"replies": f"a file, sha256 {sha256(file)}", "sample": rule},
        [source.examples[place].context for place in places],
    )


def _answers(file: Path, lines: Sequence[_Line], source: _Source) -> dict[str, str]:
    """The reply to each example that has one, by the example's id."""
    ids = source.ids()
    if _all_have(lines, "id", file):
        return _by_id(lines, set(ids))
    if len(lines) != len(ids):
        raise InputError(
            f"{file.name} has {len(lines)} replies; {source.corpus} {source.split} asks for {len(ids)}.",
            "Give one line for each, in the corpus's order, or an id in each line.",
        )
    return {name: line.reply for name, line in zip(ids, lines, strict=True)}


def _by_id(lines: Sequence[_Line], known: set[str]) -> dict[str, str]:
    replies: dict[str, str] = {}
    for line in lines:
        name = line.id or ""
        if name not in known:
            raise InputError(
                f"{line.place}: the corpus has no example {name!r}.",
                "An id is the conversation's, # and the number of turns before the reply: hit:1_conv:2#3.",
            )
        if name in replies:
            raise InputError(f"{line.place}: a second reply to {name!r}.", "Give one for each id.")
        replies[name] = line.reply
    return replies


def _lines(file: Path) -> Iterator[_Line]:
    report = Report()
    for number, text in text_lines(file, report):
        if not text.strip():
            continue
        place = f"{file.name}:{number}"
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            raise InputError(
                f"{place} is not JSON.", "Give MoEL's or MIME's released file, or one JSON object a line."
            ) from None
        values = {name: data.get(name) for name in ("reply", "reference", "id")} if _is_object(data) else {}
        reply = values.get("reply")
        if not isinstance(reply, str) or not reply.strip():
            raise InputError(f"{place} has no reply.", 'Give each line as {"reply": "…"}, and not empty.')
        if any(value is not None and not isinstance(value, str) for value in values.values()):
            raise InputError(f"{place}: reference and id must be texts.", "Put them in quotation marks.")
        yield _Line(place, reply, values["reference"], values["id"])
    if report.skipped:
        raise InputError(f"{file.name}: {report.lines()[0]}.", "Save the file as UTF-8.")


def _is_object(data: object) -> bool:
    return isinstance(data, dict)


def _all_have(lines: Sequence[_Line], what: str, file: Path) -> bool:
    """Whether every line has a reference or an id; some with and some without is an error."""
    if not lines:
        raise InputError(f"{file.name} is empty.", 'Give each line as {"reply": "…"}.')
    without = [line.place for line in lines if not getattr(line, what)]
    if without and len(without) < len(lines):
        raise InputError(f"{without[0]} has no {what}, other lines have.", "Give it in all lines or in none.")
    return not without
