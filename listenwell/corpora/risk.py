"""Our own messages of people at risk, their harmless look-alikes, and everyday messages of other corpora.

A line of a split's file is a message, `{"text", "level", "kind"}`, or a conversation that begins with the
person, `{"turns": [...], "levels": [...], "kinds": [...]}` with a level for each of the person's turns, or
`level` and `kind` of the last one. data/risk/README.md says how they were written and labelled.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from listenwell.corpora.base import CorpusLoader, text_lines
from listenwell.dialogue import LISTENER, SPEAKER, Dialogue, Turn
from listenwell.errors import ListenwellError
from listenwell.labels import RISK_KINDS, RISK_LEVELS

LEVEL, KIND = "risk_level", "risk_kind"
"""The notes of a turn with its labels."""


class RiskMessages(CorpusLoader):
    """Messages and conversations with a level and a kind of risk, split by writer."""

    name = "risk_messages"
    title = "listenwell's messages of people at risk, with look-alikes"
    licence = "CC BY 4.0"
    citation = "listenwell"
    splits = ("train", "valid", "test", "test_forms", "adversarial", "adversarial_test", "conversations")
    obtain = "It lies in data/risk of listenwell's repository."

    def files(self, split: str) -> tuple[Path, ...]:
        """A folder's files, one a writer, or one file of the split's name.

        The rounds in adversarial are part of the training split: each was measured before it was trained on.
        """
        folders = ("train", "adversarial") if split == "train" else (split,)
        files = [file for name in folders for file in sorted((self.path / name).glob("*.jsonl"))]
        return tuple(files) or (self.path / f"{split}.jsonl",)

    def read(self, split: str) -> Iterator[Dialogue]:
        """Each line as a dialogue whose labelled turns have the notes LEVEL and KIND."""
        for file in self.check(split):
            yield from self.dialogues(file)

    def dialogues(self, file: Path) -> Iterator[Dialogue]:
        """The dialogues of any file in this format."""
        for number, line in text_lines(file, self.report):
            try:
                yield _dialogue(json.loads(line), f"{file.stem}-{number}")
            except (ValueError, LookupError, TypeError, AttributeError, ListenwellError) as error:
                self.report.skip(f"no labelled message: {type(error).__name__}", f"{file.name}:{number}")


class EverydayMessages(CorpusLoader):
    """Messages of other corpora with a level of risk; our files hold ids and labels, never their texts.

    A line of everyday_SPLIT.jsonl is `{"corpus", "split", "id", "turn", "level", "kind"}`; `turn` is the
    number of the labelled turn, from 0. Without level and kind, they are none. The other corpora lie in the
    data folder.
    """

    name = "everyday_messages"
    title = "Messages of other corpora with a level of risk"
    licence = "ids and labels CC BY 4.0; the texts as in their corpora"
    citation = "listenwell"
    splits = ("train", "valid", "test")
    obtain = "It lies in data/risk of listenwell's repository."

    def files(self, split: str) -> tuple[Path, ...]:
        """One JSONL file a split."""
        return (self.path / f"everyday_{split}.jsonl",)

    def read(self, split: str) -> Iterator[Dialogue]:
        """The messages in the order of their own corpora; ids that a corpus lacks are counted."""
        (file,) = self.check(split)
        wanted: dict[tuple[str, str], dict[str, dict[int, Mapping[str, Any]]]] = {}
        for number, line in text_lines(file, self.report):
            try:
                row = json.loads(line)
                by_id = wanted.setdefault((row["corpus"], row["split"]), {})
                by_id.setdefault(row["id"], {})[int(row["turn"])] = row
            except (ValueError, KeyError, TypeError, AttributeError):
                self.report.skip("no labelled id", f"{file.name}:{number}")
        for (corpus, part), by_id in wanted.items():
            yield from self._of_corpus(corpus, part, by_id)

    def _of_corpus(
        self, corpus: str, split: str, by_id: dict[str, dict[int, Mapping[str, Any]]]
    ) -> Iterator[Dialogue]:
        from listenwell.corpora import CORPORA  # the registry names this module

        remaining = set(by_id)
        for item in CORPORA.load(corpus)().read(split):
            if item.id not in remaining:
                continue
            remaining.discard(item.id)
            dialogue = item if isinstance(item, Dialogue) else Dialogue((Turn(SPEAKER, item.text),), item.id)
            for turn, row in by_id[item.id].items():
                if turn < len(dialogue.turns):
                    turns = dialogue.turns[: turn + 1]
                    labelled = replace(turns[-1], notes=_notes(row))
                    yield replace(dialogue, turns=(*turns[:-1], labelled), id=f"{corpus}-{item.id}")
        if remaining:
            self.report.counts[f"messages that {corpus} {split} lacks"] += len(remaining)


def _notes(row: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    level, kind = RISK_LEVELS.check(row.get("level", "none")), RISK_KINDS.check(row.get("kind", "none"))
    return ((KIND, kind), (LEVEL, level), ("form", str(row.get("form", ""))))


def _dialogue(row: Mapping[str, Any], name: str) -> Dialogue:
    texts = row["turns"] if "turns" in row else [row["text"]]
    if len(texts) % 2 == 0:
        raise ValueError("a conversation begins and ends with the person")
    turns = [Turn(LISTENER if number % 2 else SPEAKER, text) for number, text in enumerate(texts)]
    if "levels" in row:
        labels = list(zip(row["levels"], row["kinds"], strict=True))
        for number, (level, kind) in enumerate(labels):
            own = {"level": level, "kind": kind, "form": row.get("form", "")}
            turns[2 * number] = replace(turns[2 * number], notes=_notes(own))
    else:
        own = {"level": row["level"], "kind": row["kind"], "form": row.get("form", "")}
        turns[-1] = replace(turns[-1], notes=_notes(own))
    return Dialogue(tuple(turns), name, notes=(("writer", str(row.get("writer", ""))),))
