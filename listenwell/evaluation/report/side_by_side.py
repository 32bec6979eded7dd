"""Replies of several systems to the same contexts, drawn by seed: a page to read, not a number.

The systems' files spell one corpus in different ways (MoEL's and MIME's are lower-cased, tokenized and
without contractions), so contexts are matched by their letters alone.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from listenwell.corpora.base import Report
from listenwell.corpora.sampling import Sampling, example_id
from listenwell.dialogue import Dialogue, Example, Factors
from listenwell.errors import InputError
from listenwell.evaluation.baselines import check_system, read_baselines, recognize
from listenwell.files import sha256
from listenwell.results.markdown import escaped
from listenwell.words import expanded, words


@dataclass(frozen=True)
class Said:
    """One system's reply, and its plan where the file has it."""

    text: str
    plan: Factors | None = None


@dataclass(frozen=True)
class Column:
    """One system's replies, by the letters of their contexts or by the example's id."""

    name: str
    file: str
    """The file's name and the beginning of its sha256."""
    by_id: Mapping[str, Said]
    by_letters: Mapping[tuple[str, ...], Said]

    def reply(self, name: str, example: Example) -> Said | None:
        """Its reply to an example, if it has one."""
        return self.by_id.get(name) or self.by_letters.get(letters(example.context))


def letters(context: Dialogue | Sequence[str]) -> tuple[str, ...]:
    """A context's turns without punctuation, case and spaces; contractions are written out."""
    turns = [turn.text for turn in context.turns] if isinstance(context, Dialogue) else context
    return tuple(_letters(text) for text in turns)


def _letters(text: str) -> str:
    spelled = (expanded(word.replace("'d", " would")) for word in words(text))
    return "".join(letter for word in spelled for letter in word if letter.isalnum())


def read_column(name: str, file: Path) -> Column:
    """One system's replies.

    Args:
        name: how the page calls it; of MoEL's or MIME's released file, the system in it.
        file: a released file, or JSONL with id and reply in each line.
    """
    if not file.is_file():
        raise InputError(f"There is no file {file}.", "Give NAME=FILE, such as ours=replies.jsonl.")
    about = f"{file.name}, sha256 {sha256(file)[:12]}"
    if form := recognize(file):
        system = check_system(form, name)
        records = [(letters(record.context), record) for record in read_baselines(file, form, Report())]
        often = Counter(
            key for key, _ in records
        )  # "5", "hello": contexts that occur more than once are ambiguous
        by_letters = {key: Said(record.reply(system)) for key, record in records if often[key] == 1}
        return Column(system, about, {}, by_letters)
    by_id: dict[str, Said] = {}
    for number, line in enumerate(file.read_text(encoding="utf-8").split("\n"), start=1):
        if not line.strip():
            continue
        try:
            data = json.loads(line)
            plan = Factors.from_dict(data["plan"]) if data.get("plan") else None
            by_id[str(data["id"])] = Said(str(data["reply"]), plan)
        except (ValueError, TypeError, KeyError, AttributeError):
            raise InputError(f"{file.name}:{number} has no id and reply.", "Name a replies.jsonl.") from None
    return Column(name, about, by_id, {})


def side_by_side(
    columns: Sequence[Column], examples: Sequence[Example], sampling: Sampling, corpus: str
) -> str:
    """The page, as Markdown: contexts that every system answered, drawn by seed.

    Args:
        columns: the systems, in the order of the page; the human reply stands last.
        examples: of the corpus, in its order.
        sampling: how many contexts, and the seed of the draw.
        corpus: its name and split.
    """
    if len({column.name for column in columns}) != len(columns):
        raise InputError("Two systems have one name.", "Give each a name of its own: NAME=FILE.")
    answered = []
    for index, example in enumerate(examples):
        name = example_id(example, index)
        own = [reply for column in columns if (reply := column.reply(name, example))]
        if len(own) == len(columns):
            answered.append((name, example, own))
    if not answered:
        raise InputError("No context was answered by all of these systems.", "Name files of one corpus.")
    drawn = sampling.draw(answered)
    parts = [_head(columns, sampling.describe(len(answered), len(drawn)), corpus)]
    names = [column.name for column in columns]
    for number, (_, (name, example, replies)) in enumerate(drawn, start=1):
        parts.append(_entry(number, name, example, dict(zip(names, replies, strict=True))))
    return "\n".join(parts)


def _head(columns: Sequence[Column], rule: str, corpus: str) -> str:
    files = "\n".join(f"- **{escaped(column.name)}**: {escaped(column.file)}" for column in columns)
    return (
        "# Side by side\n\nReplies of several systems to the same contexts, and the human one. The "
        f"contexts are drawn by seed, not picked: {rule}, of those of {corpus} that all of them answered.\n\n"
        f"Generated by `listenwell compare` from:\n\n{files}\n"
    )


def _entry(number: int, name: str, example: Example, replies: Mapping[str, Said]) -> str:
    emotion = f", {example.context.emotion}" if example.context.emotion else ""
    lines = [f"## {number}. {escaped(name)}{emotion}", ""]
    lines += [f"> **{escaped(turn.speaker)}**: {escaped(turn.text)}  " for turn in example.context.turns]
    lines.append("")
    for system, reply in replies.items():
        plan = f" *({escaped(plan_words(reply.plan))})*" if reply.plan else ""
        lines.append(f"- **{escaped(system)}**: {escaped(reply.text)}{plan}")
    lines += [f"- **human**: {escaped(example.reply.text)}", ""]
    return "\n".join(lines)


def plan_words(plan: Factors) -> str:
    """A plan in words: the user's emotion, mechanisms, act and expressed emotion."""
    mechanisms = None if plan.mechanisms is None else " and ".join(plan.mechanisms) or "no mechanism"
    parts = [
        plan.emotion and f"user: {plan.emotion}",
        mechanisms and mechanisms.replace("_", " "),
        plan.act,
        plan.tone and f"expresses {plan.tone}",
    ]
    return "; ".join(part for part in parts if part)
