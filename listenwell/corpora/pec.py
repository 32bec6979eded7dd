"""PEC (Zhong et al. 2020): persona-based empathetic conversations from two Reddit communities.

Read in either form: the records of the Hugging Face data set, as JSONL or Parquet, and the released text
files with persona.txt beside them.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from listenwell.corpora.base import CorpusLoader, Report, json_lines, text_lines
from listenwell.corpora.download import Download
from listenwell.dialogue import Dialogue, Example, Persona, Turn
from listenwell.errors import CorpusError, ListenwellError, MissingExtraError
from listenwell.serialization import Json

_END = "*" * 20  # a line that holds these ends a block
_SPEAKER_MARK = "---+---"
_STEMS = {"train": ("train",), "valid": ("valid", "validation"), "test": ("test",)}

Record = dict[str, Json]
"""personas, context, context_speakers (lists of texts), response, response_speaker (texts)."""


class PEC(CorpusLoader):
    """Both communities, happy first: threads from their root, and the persona of who replied."""

    name = "pec"
    title = "PEC: persona-based empathetic conversations (happy and offmychest)"
    licence = "GPL-3.0 by its tag; status of the Reddit texts unclear"
    citation = "Zhong et al. 2020"
    splits = ("train", "valid", "test")
    folder = "pec"
    domains: ClassVar[tuple[str, ...]] = ("happy", "offmychest")
    downloads = (
        Download(
            "https://dl.dropboxusercontent.com/s/u04fzuhsnxd0uvw/hf_pec.zip",
            "5daa1e0a1569a8927f045191ed1939fe25769860fd7d78dc414bf5583dab0bf1",
            members=tuple(
                (f"hf_pec/{domain}/{stem}.txt", f"{domain}/{stem}.txt")
                for domain in ("happy", "offmychest")
                for stem in ("train", "valid", "test", "persona")
            ),
        ),
    )

    def files(self, split: str) -> tuple[Path, ...]:
        """For each community its file or files, in whichever form is there."""
        return tuple(file for domain in self.domains for file in self._domain_files(domain, split))

    def read(self, split: str) -> Iterator[Dialogue]:
        """One conversation a record: the context and, last, the reply; the listener is who replied."""
        for file in self.check(split):
            for number, (where, record) in enumerate(_records(file, self.report), start=1):
                try:
                    yield _dialogue(record, f"{file.parent.name}-{file.stem}-{number}")
                except (KeyError, TypeError) as error:
                    self.report.skip(f"record without {error}", where)
                except ListenwellError as error:
                    self.report.skip(error.problem, where)

    def examples(self, split: str) -> Iterator[Example]:
        """The last turn of each record: earlier replies are the last turns of other records."""
        for dialogue in self.read(split):
            *_, last = dialogue.examples()
            yield last

    def _domain_files(self, domain: str, split: str) -> list[Path]:
        folder = self.path / domain
        for stem in _STEMS[split]:
            for pattern in (f"{stem}.jsonl", f"{stem}*.parquet", f"*-{stem}*.parquet", f"{stem}.txt"):
                if files := sorted(folder.glob(pattern)):
                    return files
        return [folder / f"{split}.jsonl"]  # so that the error can name a file


class HappyPEC(PEC):
    """The community r/happy alone."""

    name = "pec_happy"
    title = "PEC: r/happy alone"
    domains = ("happy",)


class OffMyChestPEC(PEC):
    """The community r/offmychest alone."""

    name = "pec_offmychest"
    title = "PEC: r/offmychest alone"
    domains = ("offmychest",)


def _dialogue(record: Record, identity: str) -> Dialogue:
    context, speakers, author = record["context"], record["context_speakers"], record["response_speaker"]
    if not all(isinstance(value, list) for value in (context, speakers, record["personas"])):
        raise CorpusError("a record's personas, context or speakers are no lists", "Check the file.")
    if len(context) != len(speakers) or not context:
        raise CorpusError("a record's context and its speakers differ in number", "Check the file.")
    turns = [Turn(speaker, text) for speaker, text in zip(speakers, context, strict=True)]
    personas = (Persona(author, tuple(record["personas"])),) if record["personas"] else ()
    return Dialogue((*turns, Turn(author, record["response"])), identity, personas, author)


def _records(file: Path, report: Report) -> Iterator[tuple[str, Record]]:
    if file.suffix == ".parquet":
        return _parquet_records(file)
    return json_lines(file, report) if file.suffix == ".jsonl" else _released_records(file, report)


def _parquet_records(file: Path) -> Iterator[tuple[str, Record]]:
    try:
        from pyarrow import ArrowInvalid, parquet
    except ModuleNotFoundError:
        raise MissingExtraError("pyarrow", "parquet", f"Reading {file.name}") from None
    try:
        with parquet.ParquetFile(file) as table:
            batches = table.iter_batches(batch_size=1024)  # a batch at a time: it may exceed memory
            records = (record for batch in batches for record in batch.to_pylist())
            for number, record in enumerate(records, start=1):
                yield f"{file.name} row {number}", record
    except (ArrowInvalid, OSError) as error:
        raise CorpusError(f"{file} is not a whole Parquet file: {error}.", "Download it again.") from None


def _released_records(file: Path, report: Report) -> Iterator[tuple[str, Record]]:
    """Blocks of `SPEAKER---+---TEXT` lines that end with a line of asterisks; the last is the reply."""
    personas = _personas(file.with_name("persona.txt"), report)
    turns: list[list[str]] = []
    for number, line in text_lines(file, report):
        where = f"{file.name}:{number}"
        if _END in line:
            if len(turns) > 1:
                speakers, texts = zip(*turns, strict=True)
                record = {"personas": personas.get(speakers[-1], []), "response_speaker": speakers[-1]}
                record |= {"context_speakers": list(speakers[:-1]), "context": list(texts[:-1])}
                yield where, record | {"response": texts[-1]}
            else:
                report.skip("block without a reply", where)
            turns = []
        elif _SPEAKER_MARK in line:
            speaker, _, text = line.partition(_SPEAKER_MARK)
            turns.append([speaker.strip(), text.strip()])
        elif line.strip() and turns:  # an utterance that goes on
            turns[-1][1] = f"{turns[-1][1]} {line.strip()}".strip()
        elif line.strip():
            report.skip("line outside of a block", where)
    if turns:
        report.skip("block without its end", file.name)


def _personas(file: Path, report: Report) -> dict[str, list[str]]:
    """Blocks of a speaker's name and their sentences, each ended by a line of asterisks."""
    if not file.exists():
        raise CorpusError(f"There is no {file}.", "Put PEC's persona.txt beside its text files.")
    personas: dict[str, list[str]] = {}
    block: list[str] = []
    for _, line in text_lines(file, report):
        if _END in line:
            if block:
                personas[block[0]] = [sentence for sentence in block[1:] if sentence]
            block = []
        else:
            block.append(line.strip())
    if len(block) > 1:
        report.skip("persona without its end", file.name)
    return personas
