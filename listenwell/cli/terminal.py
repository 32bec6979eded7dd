"""Text from people and models on its way to a terminal: shown, never obeyed."""

import unicodedata


def visible(text: str) -> str:
    """The text with control characters and direction overrides as escapes; new lines and tabs stay.

    An escape sequence inside a corpus or a reply could otherwise move the cursor, recolour the screen or
    turn the reading direction of what follows.
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
    """The text on a single line, for output that a program reads line by line."""
    return " ".join(visible(text).split())
