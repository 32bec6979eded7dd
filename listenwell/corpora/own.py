"""listenwell's own JSONL: one `Dialogue` (or `LabelledText`) a line, as `corpus convert` writes them."""

from collections.abc import Iterator
from pathlib import Path

from listenwell.corpora.base import CorpusLoader, Item, json_lines
from listenwell.dialogue import Dialogue, LabelledText
from listenwell.errors import ListenwellError


class OwnJsonl(CorpusLoader):
    """Your own data: a file (split `all`), or a folder with train.jsonl, valid.jsonl, test.jsonl."""

    name = "jsonl"
    title = "Your own dialogues in listenwell's JSONL"
    licence = "yours"
    citation = ""
    splits = ("all", "train", "valid", "test")
    obtain = 'Write one JSON object a line: {"turns": [{"speaker": "speaker", "text": "…"}, …]}.'

    def files(self, split: str) -> tuple[Path, ...]:
        """The file itself, or one a split."""
        return (self.path if self.path.is_file() and split == "all" else self.path / f"{split}.jsonl",)

    def read(self, split: str) -> Iterator[Item]:
        """Each line that holds one; broken lines are skipped and counted."""
        (file,) = self.check(split)
        for where, data in json_lines(file, self.report):
            is_text = isinstance(data, dict) and "labels" in data
            try:
                yield (LabelledText if is_text else Dialogue).from_dict(data)
            except ListenwellError as error:
                self.report.skip(str(error), where)
