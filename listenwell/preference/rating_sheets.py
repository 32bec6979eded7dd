"""Blind sheets for raters: replies of several systems to the same contexts, in an order that tells nothing.

A folder holds sheet-01.md and so on, which raters see, and key.json, which they do not: whose each reply is.
Each rater writes sheet-01.csv beside the sheet; `ratings` reads both.
"""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from listenwell.corpora.sampling import Sampling
from listenwell.dialogue import Candidate, Example, Factors
from listenwell.errors import InputError, ListenwellError
from listenwell.files import written_whole
from listenwell.results.markdown import escaped
from listenwell.serialization import Record, indented
from listenwell.training.preference_pairs import read_lines

PERSON = "human"
"""The system of the corpus's own reply."""
KEY = "key.json"
SCALES = ("empathy", "relevance", "fluency", "overall")
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
INSTRUCTIONS = """\
Every reply gets four scores from 1 to 5, halves allowed:
- empathy: does it show that the listener understands and cares? 1: none, or hurtful; 3: some warmth or
  interest; 5: it understands what is felt in this situation, and is warm.
- relevance: does it fit the whole conversation? 1: beside the point, against what was said, or
  asking what was told; 3: nothing wrong, but it would fit many others; 5: it fits this one, and goes on.
- fluency: is it good English? Capitals and apostrophes do not count.
- overall: how good would it be to hear this from somebody who listens well?
Write a line for each into a file of the same name that ends in .csv, after this first line:
context,letter,empathy,relevance,fluency,overall
"""


@dataclass(frozen=True, slots=True)
class Shown(Record):
    """A reply on a sheet."""

    letter: str
    text: str
    who: tuple[str, ...]
    """All systems with exactly this reply."""
    plan: Factors | None = None


@dataclass(frozen=True, slots=True)
class Entry(Record):
    """A context on a sheet."""

    number: int
    sheet: int
    id: str
    """The example's."""
    replies: tuple[Shown, ...]


@dataclass(frozen=True, slots=True)
class Key(Record):
    """What raters do not see."""

    corpus: str
    split: str
    sample: str
    """How the contexts were drawn."""
    files: tuple[str, ...]
    """Where the replies come from, with the beginning of each file's sha256."""
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Offer:
    """A system's reply to a context, and its plan where it has one."""

    text: str
    plan: Factors | None = None


Offers = Mapping[str, Offer]
"""By system."""


def candidates_of(file: Path) -> dict[str, list[Candidate]]:
    """All candidates in a listener's replies.jsonl, by the example's id."""
    candidates: dict[str, list[Candidate]] = {}
    for number, line in read_lines(file):
        try:
            data = json.loads(line)
            candidates[str(data["id"])] = [Candidate.from_dict(row) for row in data["candidates"]]
        except (ValueError, TypeError, KeyError, ListenwellError):
            raise InputError(
                f"{file.name}:{number} has no id and candidates.",
                "Name the replies.jsonl of a listener with several candidates.",
            ) from None
    return candidates


def candidate_offers(
    candidates: Sequence[Candidate], example: Example, count: int, draw: random.Random
) -> Offers:
    """Some of a reply's candidates, drawn at random, and the person's reply."""
    drawn = draw.sample(range(len(candidates)), min(count, len(candidates)))
    return {PERSON: Offer(example.reply.text)} | {
        f"candidate {index + 1}": Offer(candidates[index].text, candidates[index].plan) for index in drawn
    }


def write_sheets(
    folder: Path, offered: Sequence[tuple[str, Example, Offers]], sampling: Sampling, per: int, about: Key
) -> Key:
    """Draw contexts, put their replies in random order, write sheets and key; gives the key.

    Args:
        folder: new, or without a key.
        offered: every context that can be shown, with its replies.
        sampling: how many contexts are shown, and the seed of all that is drawn.
        per: contexts on a sheet.
        about: the key, without entries.
    """
    if (folder / KEY).exists():
        raise InputError(f"{folder} holds sheets already.", "Name another folder: ratings belong to a key.")
    if not offered:
        raise InputError("No context was answered by all of these systems.", "Name files of one corpus.")
    draw = random.Random(sampling.seed)
    chosen, entries, pages = sampling.draw(offered), list[Entry](), dict[int, list[str]]()
    for number, (_, (name, example, offers)) in enumerate(chosen, start=1):
        entry = Entry(number, 1 + (number - 1) // per, name, tuple(_shuffled(offers, draw)))
        entries.append(entry)
        pages.setdefault(entry.sheet, [INSTRUCTIONS]).append(_page(entry, example))
    key = replace(about, sample=sampling.describe(len(offered), len(chosen)), entries=tuple(entries))
    folder.mkdir(parents=True, exist_ok=True)
    for sheet, parts in pages.items():
        with written_whole(folder / f"{sheet_name(sheet)}.md") as out:
            out.write("\n".join(parts).encode("utf-8", "replace"))
    with written_whole(folder / KEY) as out:
        out.write(indented(key.to_dict()).encode())
    return key


def sheet_name(sheet: int) -> str:
    """A sheet's file, without its ending."""
    return f"sheet-{sheet:02d}"


def _shuffled(offers: Offers, draw: random.Random) -> Iterator[Shown]:
    """Replies in random order; equal texts stand once."""
    by_text: dict[str, list[str]] = {}
    for system, offer in offers.items():
        by_text.setdefault(offer.text.strip(), []).append(system)
    texts = list(by_text)
    draw.shuffle(texts)
    if len(texts) > len(LETTERS):
        raise InputError(f"{len(texts)} replies are too many for a sheet.", f"Show {len(LETTERS)} at most.")
    for letter, text in zip(LETTERS, texts, strict=False):
        plan = next((offers[system].plan for system in by_text[text] if offers[system].plan), None)
        yield Shown(letter, text, tuple(by_text[text]), plan)


def _page(entry: Entry, example: Example) -> str:
    """A context and its replies, as raters see them."""
    listener = example.context.listener
    turns = [
        f"{'Listener' if turn.speaker == listener else 'Person'}: {escaped(turn.text)}  "
        for turn in example.context.turns
    ]
    replies = [f"{shown.letter}. {escaped(shown.text)}  " for shown in entry.replies]
    return "\n".join(
        [f"## Context {entry.number}", "", *turns, "", "The listener's reply:", "", *replies, ""]
    )
