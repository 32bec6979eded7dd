"""Where a reply ends: after a few whole sentences, not at a token count in the middle of a word."""

import re
from dataclasses import dataclass

from listenwell.errors import InputError

_SENTENCE_END = re.compile(r"[.!?…。！？]+[\"'”’)\]]*(?=\s)")


@dataclass(frozen=True)
class Ending:
    """When to stop speaking."""

    max_sentences: int = 3
    soft_share: float = 0.6
    """Past this share of the token limit, the next sentence end is the last."""

    def __post_init__(self) -> None:
        if self.max_sentences < 1 or not 0 < self.soft_share <= 1:
            raise InputError(
                f"An ending after {self.max_sentences} sentences at a share of {self.soft_share} is none.",
                "Give max_sentences from 1 up and soft_share from above 0 to 1.",
            )

    def cut(self, text: str, shown: int, spent: float) -> int | None:
        """Where the reply ends in a text that starts without white space; None while it may go on.

        A sentence has ended when white space follows its mark, so "3.5" or "e.g.," do not end one.

        Args:
            text: the reply so far.
            shown: how much of it was shown already and cannot be taken back.
            spent: the share of the token limit that is used.
        """
        ends = [match.end() for match in _SENTENCE_END.finditer(text)]
        if (paragraph := text.find("\n\n")) >= 0:
            ends = [end for end in ends if end <= paragraph]
            return ends[self.max_sentences - 1] if len(ends) >= self.max_sentences else paragraph
        if len(ends) >= self.max_sentences:
            return ends[self.max_sentences - 1]
        return ends[-1] if ends and ends[-1] >= shown and spent > self.soft_share else None
