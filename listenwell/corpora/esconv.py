"""ESConv (Liu et al. 2021): emotional support conversations with the supporter's strategies.

Two forms. The TSV has a line for each of the supporter's turns, with up to four turns before it; the lines
of a conversation overlap, and the conversation is put together again from them. The JSON form holds whole
conversations: ESConv.json the accepted ones, FailedESConv.json those that helped nobody.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from listenwell.corpora.base import CorpusLoader, text_lines
from listenwell.corpora.download import pinned
from listenwell.dialogue import LISTENER, SPEAKER, Dialogue, Factors, Turn
from listenwell.errors import CorpusError, ListenwellError
from listenwell.labels import strategy
from listenwell.serialization import Json

_TSV = {
    "train": "trainWithStrategy_short.tsv",
    "valid": "devWithStrategy_short.tsv",
    "test": "testWithStrategy_short.tsv",
}
_JSON = {"accepted": "ESConv.json", "failed": "FailedESConv.json"}
# flag, speaker (1 is the supporter), number of the turn, [strategy] and text
_TURN = re.compile(r"\d\.\d (?:0|(1)) (\d{1,9}) (?(1)(?:\[([^\]]+)\])?)(.*)", re.DOTALL)
_ROLES = dict.fromkeys(("seeker", "speaker", "usr"), SPEAKER)
_ROLES |= dict.fromkeys(("supporter", "listener", "sys"), LISTENER)
_REPOSITORY = "https://raw.githubusercontent.com/thu-coai/Emotional-Support-Conversation/"
_COMMIT = "4a5ef3a58a4d7d2fae140d47ab76479bb1d05956/codes/dataset/"
_LATER = "bff7f6bb9667514bdeb4ccde236808940235491e/"


class ESConv(CorpusLoader):
    """Conversations in which a trained supporter helps a seeker."""

    name = "esconv"
    title = "ESConv: emotional support conversations with strategies"
    licence = "CC BY-NC 4.0, academic use"
    citation = "Liu et al. 2021"
    splits = (*_TSV, *_JSON)
    not_downloaded = ("train", "accepted")
    downloads = pinned(
        _REPOSITORY,
        {
            f"{_COMMIT}{_TSV['valid']}": "625b511f40cf9a9285582e808e6bbb4c2f35d0b0cd063f3709db430b8d0c3bdc",
            f"{_COMMIT}{_TSV['test']}": "b85ae888bf747cefa54bba2a6c3e2f6ccb4c1005d4e0b6d1d3be3823cf040aef",
            f"{_LATER}{_JSON['failed']}": "d21bad5409d88ecbca18abfee26a8c188d09c34b03962cb53a4c30d8de95b279",
        },
    )

    def files(self, split: str) -> tuple[Path, ...]:
        """One file a split."""
        return (self.path / (_TSV | _JSON)[split],)

    def read(self, split: str) -> Iterator[Dialogue]:
        """Whole conversations; the supporter's turns have their strategy as a factor."""
        (file,) = self.check(split)
        return self._from_tsv(file, split) if split in _TSV else self._from_json(file, split)

    def _from_tsv(self, file: Path, split: str) -> Iterator[Dialogue]:
        turns: dict[int, Turn] = {}
        newest, count = -1, 0
        for number, line in text_lines(file, self.report):
            if not line.strip():
                continue
            self.report.counts["lines"] += 1
            window = self._window(line, f"{file.name}:{number}")
            if not window:
                continue
            # Within a conversation numbers grow and shared turns agree; otherwise the next one begins.
            if max(window) <= newest or any(turns.get(n, turn) != turn for n, turn in window.items()):
                count += 1
                yield _joined(turns, f"{split}-{count}")
                turns = {}
            newest = max(window)
            turns.update(window)
        if turns:
            yield _joined(turns, f"{split}-{count + 1}")

    def _window(self, line: str, where: str) -> dict[int, Turn]:
        """The turns of one line by number; empty (and counted) where a part cannot be read."""
        window: dict[int, Turn] = {}
        for part in line.split(" EOS "):
            match = _TURN.fullmatch(part)
            if match is None:
                self.report.skip("turn without flag, speaker and number", where)
                return {}
            supporter, number, name, text = match.groups()
            if not text.strip():
                self.report.skip("empty utterance", where)
                continue
            factors = self._factors(name, where) if name else None
            window[int(number)] = Turn(LISTENER if supporter else SPEAKER, text.strip(), factors)
        return window

    def _from_json(self, file: Path, split: str) -> Iterator[Dialogue]:
        try:
            conversations = json.loads(file.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise CorpusError(f"{file} is not whole JSON: {error}.", "Download it again.") from None
        if not isinstance(conversations, list):
            raise CorpusError(f"{file} is not a list of conversations.", "Use the publisher's own file.")
        for number, conversation in enumerate(conversations, start=1):
            where = f"{file.name} #{number}"
            try:
                turns = tuple(self._json_turns(conversation["dialog"], where))
                if not turns:
                    self.report.skip("conversation without a usable turn", where)
                    continue
                situation, notes = conversation.get("situation") or None, _notes(conversation)
                yield Dialogue(turns, f"{split}-{number}", situation=situation, notes=notes)
            except (KeyError, TypeError, AttributeError, ListenwellError) as error:
                self.report.skip(f"broken conversation ({type(error).__name__})", where)

    def _json_turns(self, dialog: list[dict[str, Json]], where: str) -> Iterator[Turn]:
        for entry in dialog:
            text, annotation = entry["content"].strip(), entry.get("annotation") or {}
            if not text:
                self.report.skip("empty utterance", where)
                continue
            name, feedback = annotation.get("strategy"), annotation.get("feedback")
            factors = self._factors(name, where) if name else None
            notes = (("feedback", str(feedback)),) if feedback else ()
            yield Turn(_ROLES[entry["speaker"]], text, factors, notes)

    def _factors(self, name: str, where: str) -> Factors | None:
        try:
            return Factors(strategy=strategy(name))
        except ListenwellError:
            self.report.skip(f"unknown strategy {name!r} (turn kept)", where)
            return None


def _joined(turns: dict[int, Turn], identity: str) -> Dialogue:
    return Dialogue(tuple(turns[number] for number in sorted(turns)), identity)


def _notes(conversation: dict[str, Json]) -> tuple[tuple[str, str], ...]:
    notes = {key: conversation.get(key) for key in ("emotion_type", "problem_type", "experience_type")}
    for person, scores in (conversation.get("survey_score") or {}).items():
        notes |= {f"survey.{person}.{key}": value for key, value in scores.items()}
    return tuple((key, str(value)) for key, value in notes.items() if value)
