"""EmpatheticDialogues (Rashkin et al. 2019) in its publisher's CSV, which is not quite CSV.

Fields are never quoted: commas inside texts are written `_comma_`, and a quotation mark is a quotation
mark, so a CSV library with its usual rules joins rows. valid.csv and test.csv have a ninth column that
the header does not name (candidate replies). Some rows have a bare comma in a text and are shifted.
speaker_idx is the number of the crowd worker who wrote the turn; conversations note who spoke and listened.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import ClassVar

from listenwell.corpora.base import CorpusLoader, Report, csv_rows, is_number, text_lines
from listenwell.corpora.download import Download
from listenwell.dialogue import LISTENER, SPEAKER, Dialogue, Factors, Notes, Turn
from listenwell.labels import EMOTIONS, EMOTIONS_AND_INTENTS

_RATINGS = re.compile(r"(\d\|\d\|\d_\d\|\d\|\d)?")  # the selfeval column: two people's three ratings

LISTENER_WORKER = "listener_worker"
"""The note with the number of who listens, the same in all of a worker's conversations."""
SPEAKER_WORKER = "speaker_worker"
"""The note with the number of who is listened to."""
_NOTES = (LISTENER_WORKER, SPEAKER_WORKER)  # of even and of odd turns
_LOOK = 1000  # rows; a file that names workers has a third one long before
_TURNS = {str(number): number for number in range(1, 100)}  # one look is quicker than a test and int
_EMOTIONS = frozenset(EMOTIONS)

_Row = tuple[int, str, str, str, str]
"""Number of the turn, emotion, situation, worker, text; `_comma_` not yet undone in the texts."""


class EmpatheticDialogues(CorpusLoader):
    """24,850 conversations about situations that crowd workers lived through, with 32 emotions."""

    name = "empathetic_dialogues"
    title = "EmpatheticDialogues: one-to-one talks about emotional situations"
    licence = "CC BY-NC 4.0"
    citation = "Rashkin et al. 2019"
    splits = ("train", "valid", "test")
    downloads: ClassVar[tuple[Download, ...]] = (
        Download(
            "https://dl.fbaipublicfiles.com/parlai/empatheticdialogues/empatheticdialogues.tar.gz",
            "56f234d77b7dd1f005fd365bb17769cfe346c3c84295b69bc069c8ccb83be03d",
            members=tuple((f"empatheticdialogues/{split}.csv", f"{split}.csv") for split in splits),
        ),
    )

    def files(self, split: str) -> tuple[Path, ...]:
        """One CSV a split."""
        return (self.path / f"{split}.csv",)

    def read(self, split: str) -> Iterator[Dialogue]:
        """Whole conversations, the speaker's and the listener's turns in order; notes name the two workers.

        A copy whose speaker_idx holds 0 and 1 for the roles, in place of workers, gives no such notes.
        """
        return (dialogue for dialogue, _ in self._numbered(split))

    def _numbered(self, split: str) -> Iterator[tuple[Dialogue, list[int]]]:
        """Each conversation and the publisher's numbers of its turns; a skipped row leaves a gap."""
        named = _names_workers(self.check(split)[0])
        for conversation, rows in self._conversations(split):
            _, emotion, situation, *_ = rows[0]
            # Odd turns are the speaker's; the publisher's speaker_idx is a worker's number.
            turns = [
                Turn(SPEAKER if number % 2 else LISTENER, text.replace("_comma_", ","))
                for number, _, _, _, text in rows
            ]
            situation = situation.replace("_comma_", ",")
            notes = _workers(rows) if named else ()
            dialogue = Dialogue(tuple(turns), conversation, (), LISTENER, situation or None, emotion, notes)
            yield dialogue, [number for number, *_ in rows]

    def _conversations(self, split: str) -> Iterator[tuple[str, list[_Row]]]:
        """Neighbouring rows with the same id; rows of one that ended before are skipped."""
        (file,) = self.check(split)
        current, rows, ended = "", list[_Row](), set[str]()
        for number, line in text_lines(file, self.report):
            fields = line.split(",")
            if number == 1 and fields[:2] == ["conv_id", "utterance_idx"]:
                continue
            # The usual row passes these tests at once; every other goes through _repaired.
            if len(fields) != 8 or not is_number(fields[4]) or (fields[7] and _RATINGS.fullmatch(fields[7])):
                fields = _repaired(fields, f"{file.name}:{number}", self.report)
                if not fields:
                    continue
            turn, text = _TURNS.get(fields[1]), fields[5].strip()
            if turn is None or not text or fields[2] not in _EMOTIONS:  # again a quick test of the usual row
                if fault := _fault(fields):
                    self.report.skip(fault, f"{file.name}:{number}")
                    continue
                turn = int(fields[1])
            if fields[0] != current:
                if rows:
                    yield current, rows
                    ended.add(current)
                current, rows = fields[0], []
            if current in ended:
                self.report.skip("row of a conversation that ended before", f"{file.name}:{number}")
                continue
            rows.append((turn, fields[2], fields[3].strip(), fields[4], text))
        if rows:
            yield current, rows


def _names_workers(file: Path) -> bool:
    """Whether speaker_idx tells people apart: anything but 0 and 1, which are also two workers' numbers."""
    with file.open("rb") as lines:
        for line in islice(lines, _LOOK):
            fields = line.split(b",")
            # Only whole rows: in a shifted one a number of the text could stand here.
            if len(fields) in (8, 9) and fields[4].isdigit() and fields[4] not in (b"0", b"1"):
                return True
    return False


def _workers(rows: list[_Row]) -> Notes:
    """Who listened and who spoke, where they have a turn."""
    if len(rows) > 1 and rows[0][0] % 2 and not rows[1][0] % 2:  # the usual order: a quick test
        return ((LISTENER_WORKER, rows[1][3]), (SPEAKER_WORKER, rows[0][3]))
    numbers = {number % 2: worker for number, _, _, worker, _ in reversed(rows)}  # of each role's first turn
    return tuple((note, numbers[odd]) for odd, note in enumerate(_NOTES) if odd in numbers)


def _fault(fields: list[str]) -> str:
    """What a row lacks: a turn number, a known emotion or a text; empty where it is sound."""
    if not is_number(fields[1]):
        return "no turn number"
    if fields[2] not in EMOTIONS:
        return "unknown emotion"
    return "" if fields[5] and not fields[5].isspace() else "empty utterance"


def _repaired(fields: list[str], where: str, report: Report) -> list[str]:
    """The eight columns of an unusual row; empty (and counted) where they cannot be told.

    The turn number, the emotion and speaker_idx are anchors: what stands between them is text, whatever
    commas it holds.
    """
    # speaker_idx is the first whole number after the situation's first piece.
    speaker = next((i for i in range(4, len(fields)) if is_number(fields[i])), None)
    if speaker is None or speaker + 1 >= len(fields):
        if fields != [""]:
            report.skip("wrong number of columns", where)
        return []
    text = fields[speaker + 1 :]
    # The text ends before the ratings column; rows without one are short of their last columns.
    end = next((i for i in range(1, len(text)) if _RATINGS.fullmatch(text[i])), len(text))
    if speaker > 4 or end > 1:
        report.counts["shifted rows repaired"] += 1
    return [*fields[:3], ",".join(fields[3:speaker]), fields[speaker], ",".join(text[:end]), "", ""]


class LabelledEmpatheticDialogues(EmpatheticDialogues):
    """EmpatheticDialogues with one of 41 labels on every turn, predicted by a BERT: not gold.

    Read from `utterance_labels.csv` (conv_id, utterance_idx, label; turn 0 is the situation) or from the
    publisher's folder `empatheticdialogues_annotated` with one file an emotion.
    """

    name = "empathetic_dialogues_labels"
    title = "EmpatheticDialogues with the machine labels of EmpatheticIntents on each turn"
    citation = "Rashkin et al. 2019; Welivita & Pu 2020"
    folder = "empathetic_dialogues"
    downloads = ()
    obtain = (
        "Download empathetic_dialogues, and put the folder datasets/empatheticdialogues_annotated of the "
        "repository anuradha1992/EmpatheticIntents beside its files."
    )

    def files(self, split: str) -> tuple[Path, ...]:
        """The split's CSV; the labels are looked for when reading."""
        table, annotated = self.path / "utterance_labels.csv", self.path / "empatheticdialogues_annotated"
        return (*super().files(split), annotated if annotated.is_dir() else table)

    def check(self, split: str) -> tuple[Path, ...]:
        """The conversations' file alone; `files` also holds the labels, which are checked on the way."""
        return super().check(split)[:1]

    def read(self, split: str) -> Iterator[Dialogue]:
        """Whole conversations with `Factors.intent` on each turn and the note `situation_label`."""
        self.check(split)
        labels = self._labels(self.files(split)[1])
        for dialogue, numbers in self._numbered(split):
            known = labels.get(dialogue.id, {})
            turns = []
            for number, turn in zip(numbers, dialogue.turns, strict=True):
                if number in known:
                    turns.append(replace(turn, factors=Factors(intent=known[number])))
                else:
                    self.report.counts["turns without a label"] += 1
                    turns.append(turn)
            notes = (("situation_label", known[0]),) if 0 in known else ()
            yield replace(dialogue, turns=tuple(turns), notes=(*dialogue.notes, *notes))

    def _labels(self, source: Path) -> dict[str, dict[int, str]]:
        """Labels by conversation and turn number."""
        labels: dict[str, dict[int, str]] = defaultdict(dict)
        rows = (_annotated_rows if source.is_dir() else _table_rows)(source, self.report)
        for where, conversation, number, label in rows:
            if label.casefold() in EMOTIONS_AND_INTENTS:
                labels[conversation][number] = label.casefold()
            else:
                self.report.skip("unknown label", where)
        return labels


def _table_rows(file: Path, report: Report) -> Iterator[tuple[str, str, int, str]]:
    for where, row in csv_rows(file, ("conv_id", "utterance_idx", "label"), report):
        if is_number(row["utterance_idx"]):
            yield where, row["conv_id"], int(row["utterance_idx"]), row["label"]
        else:
            report.skip("no turn number", where)


def _annotated_rows(folder: Path, report: Report) -> Iterator[tuple[str, str, int, str]]:
    """The publisher's files: the situation and the turns of each dialogue, in order."""
    for file in sorted(folder.glob("*.csv")):
        current, number = "", 0
        for where, row in csv_rows(file, ("Dialog_ID", "Type", "Label"), report):
            if row["Dialog_ID"] != current:
                current, number = row["Dialog_ID"], 0
            is_situation = row["Type"] == "situation"
            number += not is_situation
            yield where, current, 0 if is_situation else number, row["Label"]
