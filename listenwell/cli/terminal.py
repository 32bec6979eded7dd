"""Escapes text of users and models for the terminal."""

import unicodedata


def visible(text: str) -> str:
    """Escape control characters and direction overrides, but not new lines and tabs.

    An escape sequence in a corpus or a reply could otherwise move the cursor, recolour the screen or reverse
    the direction of the following text.
    """
    return "".join(
        letter.encode("unicode_escape").decode("ascii") if _is_unseen(letter) else letter for letter in text
    )


def _is_unseen(letter: str) -> bool:
    if letter in "\n\t":
        return False
    return unicodedata.category(letter) in ("Cc", "Cs") or unicodedata.bidirectional(letter) in _OVERRIDES


_OVERRIDES = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})


def one_line(text: str) -> str:
    """The text on a single line, for programs that read line by line."""
    return " ".join(visible(text).split())
