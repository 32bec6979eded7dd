"""EmpatheticIntents (Welivita & Pu 2020): texts with one of 41 labels, and its intents' own sources.

Splits train, valid and test are the classifier's data. The lexical splits hold listener utterances that
were found by n-grams of each intent (easy by construction), the split manual those labelled by hand.
"""

from collections.abc import Iterator
from pathlib import Path

from listenwell.corpora.base import CorpusLoader, is_number, text_lines
from listenwell.corpora.download import Download
from listenwell.dialogue import LabelledText
from listenwell.errors import CorpusError
from listenwell.labels import EMOTIONS_AND_INTENTS, INTENTS, MANUAL_INTENTS

_SEPARATOR = " <SEP> "
_LEXICAL = {"lexical_train": "train", "lexical_valid": "validation", "lexical_test": "test"}
_REPOSITORY = "https://raw.githubusercontent.com/anuradha1992/EmpatheticIntents/"


def _downloads() -> Iterator[Download]:
    """What empathetic_intents.sha256 lists."""
    source = ""
    for line in Path(__file__).with_suffix(".sha256").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            source = line.strip("[]")
        elif line and not line.startswith("#"):
            digest, target = line.split()
            name = target.removeprefix("lexical/").removeprefix("manual/")
            if target.startswith("lexical/"):  # misspelt by the publisher
                name = name.replace("acknowledging", "acknowleding")
            yield Download(f"{_REPOSITORY}{source}{name}", digest, target)


class EmpatheticIntents(CorpusLoader):
    """Situations with emotions and listener utterances with intents."""

    name = "empathetic_intents"
    title = "EmpatheticIntents: emotions and intents of utterances, 41 labels"
    licence = "none stated (texts: CC BY-NC 4.0)"
    citation = "Welivita & Pu 2020"
    splits = ("train", "valid", "test", *_LEXICAL, "manual")
    downloads = tuple(_downloads())

    def files(self, split: str) -> tuple[Path, ...]:
        """One file a split, or one an intent."""
        if split in _LEXICAL:
            names = (*INTENTS, "neutral")
            return tuple(self.path / "lexical" / _LEXICAL[split] / f"{name}.txt" for name in sorted(names))
        if split == "manual":
            return tuple(self.path / "manual" / f"{name}.txt" for name in MANUAL_INTENTS)
        return (self.path / f"{split}.txt",)

    def read(self, split: str) -> Iterator[LabelledText]:
        """Texts with their one label."""
        files = self.check(split)
        self._check_numbers()
        for file in files:
            for number, line in text_lines(file, self.report):
                where = f"{file.name}:{number}"
                if not line.strip():
                    self.report.skip("empty line", where)
                elif split == "manual":
                    yield LabelledText(line.strip(), (file.stem,), f"{split}-{file.stem}-{number}")
                elif (item := self._numbered(line, where, f"{split}-{file.stem}-{number}")) is not None:
                    yield item

    def _numbered(self, line: str, where: str, identity: str) -> LabelledText | None:
        label, separator, text = line.partition(_SEPARATOR)
        if not separator or not is_number(label) or int(label) >= len(EMOTIONS_AND_INTENTS):
            self.report.skip("no label in front", where)
        elif not text.strip():
            self.report.skip("empty text", where)
        else:
            return LabelledText(text.strip(), (EMOTIONS_AND_INTENTS[int(label)],), identity)
        return None

    def _check_numbers(self) -> None:
        """Hold labels.txt against our own list.

        Its last line reads `neutral,38`, where the data has 40 for neutral and 38 for questioning; any
        other difference means that the numbers are not those we know.
        """
        file = self.path / "labels.txt"
        if not file.exists():
            return
        for number, line in text_lines(file, self.report):
            name, _, listed = line.strip().partition(",")
            if not name:
                continue
            if name.casefold() == "neutral" and listed == "38":
                self.report.counts["label numbers corrected (neutral is 40, not 38)"] = 1
            elif name.casefold() not in EMOTIONS_AND_INTENTS or listed != str(
                EMOTIONS_AND_INTENTS.index(name.casefold())
            ):
                raise CorpusError(
                    f"{file}:{number} says {line!r}, which is not the published numbering.",
                    "Use the publisher's own files.",
                )
