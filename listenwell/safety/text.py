"""Decoding and cleaning of messages.

Nothing here logs, and no error repeats the text.
"""

import re

from listenwell.errors import InputError

MAX_MESSAGE = 20_000
"""Characters of one message at most, as much as the listener reads (`listener.MAX_CHARACTERS`)."""
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_BREAKS = re.compile("\r\n|[\r\v\f\x85\u2028\u2029]")
_REMOVED = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f"  # control characters; tab and the breaks are no harm
    "\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c"  # turn the direction of what stands around them
    "\u200b\u2060-\u2064\ufeff\ufff9-\ufffb"  # not to be seen; joiners stay, emoji and scripts need them
    "\ufdd0-\ufdef\ufffe\uffff\U000e0000-\U000e007f]"  # no characters at all, and letters nobody can see
)
_SURROGATE = re.compile("[\ud800-\udfff]")


def decoded(data: bytes) -> str:
    """Decode UTF-8; anything else is an error."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"The message is not UTF-8: byte {error.start} does not belong there.",
            "Send text encoded as UTF-8.",
        ) from None


def cleaned(text: str) -> str:
    """Remove control characters, invisible characters and direction overrides.

    Line breaks of every kind become "\\n", lone surrogates the replacement character. The result can be
    stored, sent and shown; cleaning it again changes nothing.
    """
    if text.isascii() and text.isprintable():  # most messages
        return text
    text = _SURROGATE.sub(REPLACEMENT, text)
    return _REMOVED.sub("", _BREAKS.sub("\n", text))


def message(text: str, limit: int = MAX_MESSAGE) -> str:
    """Clean a message; an empty or overlong one is an error.

    Args:
        text: as it came.
        limit: characters at most, counted before cleaning, so that a huge message costs nothing.
    """
    if len(text) > limit:
        raise InputError(
            f"The message has {len(text):,} characters; {limit:,} are read at most.", "Send a shorter one."
        )
    clean = cleaned(text).strip()
    if not clean:
        raise InputError("The message is empty.", "Write a message.")
    return clean
