"""Which replies a model learns from, is chosen by and is measured on, corpus by corpus."""

from collections.abc import Iterator
from pathlib import Path

from listenwell.corpora import CORPORA, CorpusLoader
from listenwell.corpora.base import hash_bucket
from listenwell.corpora.own import OwnJsonl
from listenwell.dialogue import Dialogue, Example
from listenwell.errors import CorpusError, InputError

TITLES = {
    "empathetic_dialogues": "EmpatheticDialogues",
    "synthetic_persona_chat": "Synthetic-Persona-Chat",
    "pec": "PEC",
    "pec_happy": "PEC happy",
    "pec_offmychest": "PEC offmychest",
}
"""How tables call a corpus; others go by their names."""
HELD_OUT = (
    "Synthetic-Persona-Chat without its train file: valid is learned from, but for a tenth of its talks (the "
    "first 8 hexadecimal digits of sha256(id), modulo 10, are 0), which stand for valid; a file of one's own "
    "talks likewise (by the first turn where a talk has no id)"
)


class Source:
    """One corpus's replies.

    Args:
        name: a corpus of conversations.
        path: its folder, where it is not in the data folder.
        everyone: every turn but the first is a reply, instead of the listener's only.
        annotated: a folder with what `listenwell annotate` wrote, as NAME/SPLIT.jsonl: the same replies with
            their factors.
    """

    def __init__(
        self, name: str, path: Path | None = None, everyone: bool = False, annotated: Path | None = None
    ) -> None:
        loader: type[CorpusLoader] = CORPORA.load(name)
        self.name = name
        self.loader = OwnJsonl(annotated / name) if annotated else loader(path)
        self.everyone, self._annotated = everyone, annotated
        # One file of a user's own dialogues is all there is: a tenth of it stands for valid.
        self._is_one_file = isinstance(self.loader, OwnJsonl) and self.loader.path.is_file()
        self.divides = self._is_one_file or (
            name == "synthetic_persona_chat" and "train" not in self.loader.available()
        )

    @property
    def title(self) -> str:
        """How tables call it."""
        return TITLES.get(self.name, self.name)

    def files(self, split: str) -> tuple[Path, ...]:
        """The files behind a split, or an error that says how to get them."""
        split = self._file_split(split)
        try:
            return self.loader.check(split)
        except CorpusError:
            if self._annotated is None:
                raise
            file = self._annotated / self.name / f"{split}.jsonl"
            raise CorpusError(
                f"There is no {file}.",
                f"Annotate the corpus: listenwell annotate {self.name} --split {split} --out {file}",
            ) from None

    def examples(self, split: str) -> Iterator[Example]:
        """Every reply with the dialogue before it."""
        source = self._file_split(split)
        examples = self.loader.examples(source)
        if self.everyone and split == "train":  # what is measured never changes
            dialogues = (item for item in self.loader.read(source) if isinstance(item, Dialogue))
            examples = (example for dialogue in dialogues for example in dialogue.examples(everyone=True))
        is_empty = True
        for example in examples:
            is_empty = False
            name = example.context.id or example.context.turns[0].text
            is_held_out = hash_bucket(name, 10) == 0
            if not self.divides or split == "test" or is_held_out == (split == "valid"):
                yield example
        if is_empty:
            raise InputError(f"{self.name} {split} holds no replies.", "Name a corpus of conversations.")

    def _file_split(self, split: str) -> str:
        if self._is_one_file and split in ("train", "valid"):
            return "all"
        return "valid" if self.divides and split == "train" else split
