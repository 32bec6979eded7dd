"""Blind sheets for raters: replies of several systems to the same contexts, in an order that tells nothing.

A folder holds sheet-01.md and so on, which raters read, and key.json, which they do not: whose each reply is.
Who rates writes sheet-01.csv beside the sheet; `ratings` reads both.
"""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from listenwell.corpora.sampling import Sampling
from listenwell.dialogue import Candidate, Example, Factors
from listenwell.errors import InputError, ListenwellError
from listenwell.evaluation.replies import example_id
from listenwell.evaluation.report.side_by_side import Column, Said, escaped
from listenwell.files import written_whole
from listenwell.serialization import Record, indented

PERSON = "human"
"""Whose the corpus's own reply is."""
KEY = "key.json"
SCALES = ("empathy", "relevance", "fluency", "overall")
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
ASKED = """\
Every reply gets four scores from 1 to 5, halves allowed:
- empathy: does it show that the listener understands and cares? 1: none, or hurtful; 3: some warmth or
  interest; 5: it understands what is felt in this situation, and is warm.
- relevance: does it fit what was said in the whole talk? 1: beside the point, against what was said, or
  asking what was told; 3: nothing wrong, but it would fit many talks; 5: it fits this one, and goes on.
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
    """All who said exactly this."""
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


Offers = Mapping[str, Said]
"""What each system said."""


def systems_offers(columns: Sequence[Column], name: str, example: Example) -> Offers | None:
    """Every system's reply to an example and the person's; None where one has none."""
    said = {column.name: column.reply(name, example) for column in columns}
    known = {system: one for system, one in said.items() if one}
    return {PERSON: Said(example.reply.text), **known} if len(known) == len(said) else None


def candidates_of(file: Path) -> dict[str, list[Candidate]]:
    """All candidates of a whole listener's replies.jsonl, by the example's id."""
    found: dict[str, list[Candidate]] = {}
    for number, line in enumerate(file.read_bytes().split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            data = json.loads(line)
            found[str(data["id"])] = [Candidate.from_dict(one) for one in data["candidates"]]
        except (ValueError, TypeError, KeyError, ListenwellError):
            raise InputError(
                f"{file.name}:{number} has no id and candidates.",
                "Name the replies.jsonl of a listener that speaks several replies.",
            ) from None
    return found


def candidate_offers(
    candidates: Sequence[Candidate], example: Example, count: int, draw: random.Random
) -> Offers:
    """Some of a reply's candidates, drawn at random, and the person's reply."""
    some = draw.sample(range(len(candidates)), min(count, len(candidates)))
    return {PERSON: Said(example.reply.text)} | {
        f"candidate {place + 1}": Said(candidates[place].text, candidates[place].plan) for place in some
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
        pages.setdefault(entry.sheet, [ASKED]).append(_page(entry, example))
    key = Key(
        about.corpus,
        about.split,
        sampling.wording(len(offered), len(chosen)),
        about.files,
        tuple(entries),
    )
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


def examples_by_id(examples: Sequence[Example]) -> Iterator[tuple[str, Example]]:
    """Each with the name it has in replies.jsonl."""
    return ((example_id(example, place), example) for place, example in enumerate(examples))


def _shuffled(offers: Offers, draw: random.Random) -> Iterator[Shown]:
    """Replies in random order; the same words stand once."""
    by_text: dict[str, list[str]] = {}
    for who, one in offers.items():
        by_text.setdefault(one.text.strip(), []).append(who)
    texts = list(by_text)
    draw.shuffle(texts)
    if len(texts) > len(LETTERS):
        raise InputError(f"{len(texts)} replies are too many for a sheet.", f"Show {len(LETTERS)} at most.")
    for letter, text in zip(LETTERS, texts, strict=False):
        plan = next((offers[who].plan for who in by_text[text] if offers[who].plan), None)
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
