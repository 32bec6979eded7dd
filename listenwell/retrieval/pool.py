"""Large pools of replies: read from a file or a corpus and cleaned; all that is left out is counted."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

from listenwell.annotators.inputs import LineReport, LineSource, existing_file, unreadable
from listenwell.corpora import CORPORA, CorpusLoader, Item, Report
from listenwell.dialogue import Dialogue, LabelledText
from listenwell.errors import InputError
from listenwell.files import hash_files, sha256
from listenwell.version import __version__

LONGEST = 1000
"""Characters of a reply; a longer text is nothing to say in a talk."""
EMPTY, DOUBLED, NO_REPLY = "empty", "said before in the pool", "no reply of a listener in it"


class Pool(ABC):
    """Replies to choose from, one by one, each once; `longest` limits their characters."""

    report: Report
    """What was left out by the last reading."""

    def __init__(self, name: str, longest: int = LONGEST) -> None:
        if longest < 1:
            raise InputError(f"The longest reply may have {longest} characters.", "Give 1 or more.")
        self.name, self.longest = name, longest

    @property
    def hash(self) -> str:
        """sha256 over the files as they are now, and all that shapes the reading of them."""
        settings = {"longest": self.longest, "version": __version__, **self._identity()}
        return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()

    def __iter__(self) -> Iterator[str]:
        """Replies on one line each, in the pool's own order; what is left out is counted in the report."""
        seen: set[bytes] = set()
        for text, where in self._texts():
            # Half of a surrogate pair has no UTF-8, and no tokenizer takes it.
            clean = " ".join(text.encode("utf-8", "replace").decode().split())
            # 16 bytes a reply instead of the reply itself: a large pool is never held in memory.
            digest = hashlib.blake2b(clean.encode(), digest_size=16).digest()
            if not clean:
                self.report.skip(EMPTY, where)
            elif len(clean) > self.longest:
                self.report.skip(f"longer than {self.longest:,} characters", where)
            elif digest in seen:
                self.report.skip(DOUBLED, where)
            else:
                seen.add(digest)
                yield clean

    @abstractmethod
    def _identity(self) -> dict[str, str]:
        """What tells it from other pools: sums of its files, not their names."""

    @abstractmethod
    def _texts(self) -> Iterator[tuple[str, str]]:
        """Texts as they stand in the files, each with where it stands; begins a new report."""


class FilePool(Pool):
    """A file: one reply a line, or JSONL with dialogues (their listeners' replies) or texts.

    It is JSONL if it is named .json or .jsonl, or if its first character is `{`.
    """

    def __init__(self, file: Path, longest: int = LONGEST) -> None:
        super().__init__(file.name, longest)
        self.file = file
        self.report = LineReport()

    def _identity(self) -> dict[str, str]:
        is_named_so = self.file.suffix.lower() in (".json", ".jsonl")
        try:
            return {"file": sha256(self.file), "named": "jsonl" if is_named_so else "text"}
        except OSError as error:
            raise unreadable(str(self.file), error) from error

    def _texts(self) -> Iterator[tuple[str, str]]:
        lines = LineSource(self.file)
        self.report = lines.report
        return lines.parsed(_line_texts, if_nothing=NO_REPLY)


class CorpusPool(Pool):
    """The listeners' replies of a corpus, or its texts if it has no dialogues.

    Without a split it takes train, or the first split that is there.
    """

    def __init__(self, reader: CorpusLoader, split: str | None = None, longest: int = LONGEST) -> None:
        here = reader.available() or reader.splits
        self.split = split or ("train" if "train" in here else here[0])
        super().__init__(f"{reader.name}:{self.split}", longest)
        self.reader, self.report = reader, reader.report
        reader.check(self.split)

    def _identity(self) -> dict[str, str]:
        named = self.reader.files(self.split)
        files = [file for path in named for file in (path.rglob("*") if path.is_dir() else [path])]
        return {
            "corpus": self.reader.name,
            "split": self.split,
            "files": hash_files(filter(Path.is_file, files)),
        }

    def _texts(self) -> Iterator[tuple[str, str]]:
        self.reader.report = self.report = Report()
        for number, item in enumerate(self.reader.read(self.split), start=1):
            where = f"{self.name} {item.id or number}"
            texts = replies_of(item)
            if not texts:
                self.report.skip(NO_REPLY, where)
            yield from ((text, where) for text in texts)


def find_pool(name: str, longest: int = LONGEST) -> Pool:
    """What a user means by a pool's name: a corpus, `CORPUS:SPLIT`, or a file.

    A corpus's name means the corpus, even where a file is called so: `./NAME` means that.
    """
    corpus, _, split = name.partition(":")
    if corpus in CORPORA:
        return CorpusPool(CORPORA.load(corpus)(), split or None, longest)
    file = existing_file(
        name,
        corpus,
        folder_advice="Name a file with one reply a line, or JSONL.",
        otherwise="Or name a file with one reply a line.",
    )
    if not file.is_file():
        # It is read twice: for its sum, and for its replies.
        raise InputError(f"{file} is no ordinary file.", "Write the pool to a file first.")
    return FilePool(file, longest)


def replies_of(item: Item) -> list[str]:
    """The listener's replies of a dialogue; a text is one itself."""
    if isinstance(item, LabelledText):
        return [item.text]
    return [example.reply.text for example in item.examples()]


def _line_texts(line: str, is_json: bool) -> list[str]:
    """The line itself; in JSON the replies of a `Dialogue`, or a text with or without labels."""
    if not is_json or not line.strip():
        return [line]
    data = json.loads(line)
    if isinstance(data, str):
        return [data]
    if not isinstance(data, dict) or "text" not in data or "turns" in data:
        return replies_of(Dialogue.from_dict(data))
    text = data["text"]
    if isinstance(text, str) and not text.strip():
        return [text]  # no LabelledText, but an empty line like others
    return replies_of(LabelledText.from_dict({"labels": [], **data}))
