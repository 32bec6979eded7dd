"""listenwell's own JSONL: one `Dialogue` (or `LabelledText`) a line, as `corpus convert` writes them."""

import json
from collections.abc import Iterator
from pathlib import Path

from listenwell.corpora.base import CorpusLoader, Item, text_lines
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
        for number, line in text_lines(file, self.report):
            if not line.strip():
                continue
            try:
                data = json.loads(line)
                is_text = isinstance(data, dict) and "labels" in data
                yield (LabelledText if is_text else Dialogue).from_dict(data)
            except (ValueError, RecursionError):
                self.report.skip("not JSON", f"{file.name}:{number}")
            except ListenwellError as error:
                self.report.skip(str(error), f"{file.name}:{number}")
