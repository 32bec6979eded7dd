"""Check conversations of data/listening for form: `python scripts/check_talks.py FILE.jsonl...`.

A new conversation is accepted if it has 3 exchanges or more, listener turns of a plain length with one
question at most, no life of the listener's own without a persona, and no near-duplicate; prints what was
refused and why.
"""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from listenwell.labels import EMOTIONS

LEAST_TURNS, MOST_TURNS = 6, 24
MOST_WORDS = 40
"""Of a listener's turn."""
SHARED = 0.5
"""From which share of common 4-grams on two conversations are near-duplicates."""
_OWN = "wife|husband|mom|mum|dad|dog|cat|kids?|sister|brother|boss"
_OWN_LIFE = re.compile(rf"\b(?:my (?:{_OWN})|i've been there|same here|me too)\b")
Row = dict[str, Any]


def faults(row: Row) -> list[str]:
    """What is wrong with one conversation, in words; empty if nothing is."""
    turns = row.get("turns")
    if not isinstance(turns, list) or not all(isinstance(turn, str) and turn.strip() for turn in turns):
        return ["no list of texts"]
    problems = list[str]()
    if row.get("emotion") not in EMOTIONS:
        problems.append("unknown emotion")
    if len(turns) % 2 or not LEAST_TURNS <= len(turns) <= MOST_TURNS:
        problems.append(f"{len(turns)} turns")
    listener = turns[1::2]
    if any(turn.count("?") > 1 for turn in listener):
        problems.append("two questions in a turn")
    if any(len(turn.split()) > MOST_WORDS for turn in listener):
        problems.append(f"a turn of more than {MOST_WORDS} words")
    if not row.get("persona") and any(_OWN_LIFE.search(turn.casefold()) for turn in listener):
        problems.append("a life of the listener's own")
    return problems


def grams(row: Row) -> set[tuple[str, ...]]:
    """The 4-grams of what the person says."""
    words = " ".join(row["turns"][::2]).casefold().split()
    return {tuple(words[start : start + 4]) for start in range(len(words) - 3)}


def checked(rows: Iterable[Row]) -> tuple[list[Row], list[tuple[str, str]]]:
    """The accepted conversations, and the ids of the others with the reason."""
    accepted, refused = list[Row](), list[tuple[str, str]]()
    known, by_gram = list[set[tuple[str, ...]]](), dict[tuple[str, ...], int]()
    ids = set[str]()
    for row in rows:
        own = faults(row)
        if row.get("id") in ids:
            own.append("an id that is taken")
        if not own:
            mine = grams(row)
            near = Counter(by_gram[gram] for gram in mine if gram in by_gram)
            if any(count >= SHARED * min(len(mine), len(known[index])) for index, count in near.items()):
                own.append("a near-duplicate")
            else:
                by_gram.update(dict.fromkeys(mine, len(known)))
                known.append(mine)
        if own:
            refused.append((str(row.get("id")), ", ".join(own)))
        else:
            ids.add(row["id"])
            accepted.append(row)
    return accepted, refused


def read(files: Sequence[Path]) -> Iterable[Row]:
    """The rows of several files."""
    return (json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines())


def main(files: Sequence[Path]) -> int:
    """Print what is refused; the exit status says whether anything is."""
    accepted, refused = checked(read(files))
    for name, reason in refused:
        print(f"{name}: {reason}")
    openings = Counter(" ".join(turn.split()[:2]) for row in accepted for turn in row["turns"][1::2])
    print(f"{len(accepted)} conversations, {openings.total()} listener turns, {len(refused)} refused")
    print(
        "most frequent openings:", ", ".join(f"{words} {count}" for words, count in openings.most_common(8))
    )
    return bool(refused)


if __name__ == "__main__":
    sys.exit(main([Path(name) for name in sys.argv[1:]]))
