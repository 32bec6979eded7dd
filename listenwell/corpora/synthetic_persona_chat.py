"""Synthetic-Persona-Chat (Jandaghi et al. 2023): two personas and a conversation a row.

The conversations were written by a model, and it shows: template holes such as "[User 1's name]", stage
directions, lines that nobody says. Those lines are dropped and counted.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from listenwell.corpora.base import CorpusLoader, csv_rows
from listenwell.corpora.download import Download
from listenwell.dialogue import Dialogue, Example, Persona, Turn

USERS = ("User 1", "User 2")
_COLUMNS = ("user 1 personas", "user 2 personas", "Best Generated Conversation")
_LINE = re.compile(r"[*\s]*(User [12])\s*:[*\s]*(.*)", re.DOTALL)  # a few are set in asterisks
_HOLE = re.compile(r"\[[^\[\]\n]+\]")
_BASE = (
    "https://raw.githubusercontent.com/google-research-datasets/Synthetic-Persona-Chat/"
    "065fc5eb10b3e99715356844081c5057a4062a2b/data/"
)


class SyntheticPersonaChat(CorpusLoader):
    """Conversations of two made-up people who each have a persona."""

    name = "synthetic_persona_chat"
    title = "Synthetic-Persona-Chat: talks between two personas"
    licence = "CC BY 4.0"
    citation = "Jandaghi et al. 2023"
    splits = ("train", "valid", "test")
    not_downloaded = ("train",)
    downloads = tuple(
        Download(f"{_BASE}Synthetic-Persona-Chat_{split}.csv", digest, f"{split}.csv")
        for split, digest in (
            ("valid", "e8128d2b7b0eed8064715cb1d71cdd241a3fa28ddf6fb80ece5c8156c1fd819d"),
            ("test", "531356d642b426ef8fc4d65446330cb34c7b473a4cf482ad12a8cf7838fe52a8"),
        )
    )

    def files(self, split: str) -> tuple[Path, ...]:
        """One CSV a split, under its short or its publisher's name."""
        published = self.path / f"Synthetic-Persona-Chat_{split}.csv"
        return (published if published.exists() else self.path / f"{split}.csv",)

    def read(self, split: str) -> Iterator[Dialogue]:
        """Conversations with both personas."""
        (file,) = self.check(split)
        for number, (where, row) in enumerate(csv_rows(file, _COLUMNS, self.report), start=1):
            turns = tuple(self._turns(row[_COLUMNS[2]], where))
            if not turns:
                self.report.skip("conversation without a usable line", where)
                continue
            personas = []
            for user, column in zip(USERS, _COLUMNS, strict=False):
                lines = tuple(line.strip() for line in row[column].split("\n") if line.strip())
                personas.append(Persona(user, lines))
            yield Dialogue(turns, f"{split}-{number}", tuple(personas), USERS[1])

    def examples(self, split: str) -> Iterator[Example]:
        """Both people reply, each with their own persona."""
        for dialogue in self.read(split):
            yield from dialogue.examples(everyone=True)

    def _turns(self, conversation: str, where: str) -> Iterator[Turn]:
        for line in conversation.strip().split("\n"):
            self.report.counts["lines"] += 1
            if not line.strip():
                self.report.counts["blank lines"] += 1
            elif (match := _LINE.fullmatch(line)) is None:
                self.report.skip("line that nobody says", where)
            elif _HOLE.search(line):
                self.report.skip("template hole", where)
            elif not match[2].strip():
                self.report.skip("empty utterance", where)
            else:
                yield Turn(match[1], match[2].strip())
