"""Our own corpus of listening: whole conversations, and rewritten listener turns of EmpatheticDialogues.

Two manners of replying: *plain* is short and usual, so that a small model learns it; *rich* is varied. A line
of talks_MANNER.jsonl is `{"id", "emotion", "persona", "turns"}`, which begins with the speaker; a line of
rewrites_MANNER.jsonl is `{"id", "listener"}` with the listener's turns of one of EmpatheticDialogues'
training conversations, which ends there. data/listening/README.md says how they were written.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from listenwell.corpora.base import CorpusLoader, hash_bucket, text_lines
from listenwell.corpora.empathetic_dialogues import EmpatheticDialogues
from listenwell.dialogue import LISTENER, MANNER, SPEAKER, Dialogue, Persona, Turn
from listenwell.errors import ListenwellError

_SPLITS = {0: "valid", 1: "test"}
"""By `hash_bucket(id, 20)`; the rest is train."""


class _Listening(CorpusLoader):
    """What both kinds of file have in common."""

    kind: ClassVar[str]
    manner: ClassVar[str]
    splits = ("train", "valid", "test")
    citation = "listenwell"
    folder = "listening"
    obtain = "It lies in data/listening of listenwell's repository."

    def files(self, split: str) -> tuple[Path, ...]:
        """One file holds all splits."""
        return (self.path / f"{self.kind}_{self.manner}.jsonl",)

    def read(self, split: str) -> Iterator[Dialogue]:
        """The conversations of a split, with their manner as a note; broken lines are skipped and counted."""
        (file,) = self.check(split)
        rows = []
        for number, line in text_lines(file, self.report):
            try:
                row = json.loads(line)
                if _SPLITS.get(hash_bucket(row["id"], 20), "train") == split:
                    rows.append((row, f"{file.name}:{number}"))
            except (ValueError, LookupError, TypeError, AttributeError) as error:
                self.report.skip(f"no conversation: {type(error).__name__}", f"{file.name}:{number}")
        for dialogue in self._dialogues(rows):
            yield replace(dialogue, notes=((MANNER, self.manner),))

    def _dialogues(self, rows: list[tuple[dict[str, Any], str]]) -> Iterator[Dialogue]:
        raise NotImplementedError


class PlainTalks(_Listening):
    """Whole conversations of our own, with everyday acts, personas and things to remember."""

    name = "plain_talks"
    title = "listenwell's conversations in a plain manner"
    licence = "CC BY 4.0"
    kind, manner = "talks", "plain"

    def _dialogues(self, rows: list[tuple[dict[str, Any], str]]) -> Iterator[Dialogue]:
        for row, where in rows:
            try:
                turns = tuple(
                    Turn(LISTENER if number % 2 else SPEAKER, text)
                    for number, text in enumerate(row["turns"])
                )
                personas = (Persona(LISTENER, tuple(row["persona"])),) if row["persona"] else ()
                yield Dialogue(turns, row["id"], personas, emotion=row["emotion"])
            except (LookupError, TypeError, ListenwellError) as error:
                self.report.skip(f"no conversation: {type(error).__name__}", where)


class RichTalks(PlainTalks):
    """The same in a richer manner."""

    name = "rich_talks"
    title = "listenwell's conversations in a rich manner"
    manner = "rich"


class PlainRewrites(_Listening):
    """EmpatheticDialogues' training conversations with the listener's turns rewritten in a plain manner."""

    name = "plain_rewrites"
    title = "EmpatheticDialogues with listener turns rewritten in a plain manner"
    licence = "listener turns CC BY 4.0; the speaker's turns are EmpatheticDialogues', CC BY-NC 4.0"
    kind, manner = "rewrites", "plain"

    def _dialogues(self, rows: list[tuple[dict[str, Any], str]]) -> Iterator[Dialogue]:
        rewritten: dict[str, tuple[Any, str]] = {
            row["id"]: (row.get("listener"), where) for row, where in rows
        }
        for dialogue in EmpatheticDialogues().read("train"):
            listener, where = rewritten.pop(dialogue.id, ([], ""))
            if not where:
                continue
            try:
                yield _rewritten(dialogue, listener)
            except (TypeError, ValueError, ListenwellError) as error:
                self.report.skip(f"does not fit its conversation: {type(error).__name__}", where)
        if rewritten:
            self.report.counts["conversations that EmpatheticDialogues lacks"] += len(rewritten)


class RichRewrites(PlainRewrites):
    """The same in a richer manner."""

    name = "rich_rewrites"
    title = "EmpatheticDialogues with listener turns rewritten in a rich manner"
    manner = "rich"


def _rewritten(dialogue: Dialogue, listener: list[str]) -> Dialogue:
    """The conversation up to its last rewritten turn."""
    turns, texts = list[Turn](), iter(listener)
    last = 0
    for turn in dialogue.turns:
        if turn.speaker == dialogue.listener:
            text = next(texts, None)
            if text is None:
                break
            turns.append(replace(turn, text=text, factors=None, readings=()))
            last = len(turns)
        else:
            turns.append(turn)
    if not last or next(texts, None) is not None:
        raise ValueError("more rewritten turns than turns")
    return replace(dialogue, turns=tuple(turns[:last]))
