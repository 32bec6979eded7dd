"""GoEmotions (Demszky et al. 2020): Reddit comments with one or more of 27 emotions, or neutral."""

from collections.abc import Iterator
from pathlib import Path

from listenwell.corpora.base import CorpusLoader, is_number, text_lines
from listenwell.corpora.download import pinned
from listenwell.dialogue import LabelledText
from listenwell.labels import GOEMOTIONS

_BASE = "https://raw.githubusercontent.com/google-research/google-research/"
_COMMIT = "2adf640a14f11025ae5a9d0ec493b78530d276d3/goemotions/data/"
_LATER = "b91598b43297db06cca27a29fe2d0442dffea029/goemotions/data/"
_FILES = {"train": "train.tsv", "valid": "dev.tsv", "test": "test.tsv"}


class GoEmotions(CorpusLoader):
    """54,263 comments that at least two raters agree on."""

    name = "goemotions"
    title = "GoEmotions: fine-grained emotions of Reddit comments"
    licence = "CC BY 4.0"
    citation = "Demszky et al. 2020"
    splits = ("train", "valid", "test")
    downloads = pinned(
        _BASE,
        {
            f"{_COMMIT}train.tsv": "1c254a142be5c00e80d819b9ae1bbd36d94b2eeb8f4b1271846508d57e57d9c5",
            f"{_COMMIT}dev.tsv": "575489c079c9de1097062a01738f998590d6b7ead66dd1c9fd1d2ba01fd8bc62",
            f"{_LATER}test.tsv": "0587b2dd8b27b97352adbfc3fb083d46005c8946657fdc2b1ca8b1cc7f1f8be4",
        },
    )

    def files(self, split: str) -> tuple[Path, ...]:
        """One TSV a split; the publisher calls validation dev."""
        return (self.path / _FILES[split],)

    def read(self, split: str) -> Iterator[LabelledText]:
        """Comments with their labels, several where the raters gave several."""
        (file,) = self.check(split)
        for number, line in text_lines(file, self.report):
            where, fields = f"{file.name}:{number}", line.split("\t")
            if len(fields) != 3:
                self.report.skip("wrong number of columns", where)
                continue
            text, labels = _unquoted(fields[0]), fields[1].split(",")
            if not text.strip():
                self.report.skip("empty text", where)
            elif not all(is_number(label) and int(label) < len(GOEMOTIONS) for label in labels):
                self.report.skip("unknown label", where)
            else:
                yield LabelledText(text, tuple(GOEMOTIONS[int(label)] for label in labels), fields[2])


def _unquoted(text: str) -> str:
    """A text that holds quotation marks is written as CSV would: inside marks, its own marks doubled."""
    inner = text[1:-1]
    is_quoted = len(text) > 1 and text[0] == text[-1] == '"' and '"' not in inner.replace('""', "")
    return inner.replace('""', '"') if is_quoted else text
