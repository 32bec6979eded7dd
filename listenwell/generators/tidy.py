"""A reply as one would print it: people who were paid by the dialogue left out capitals and apostrophes.

Only what cannot change the meaning: the words stay, in their order.
"""

import re

_WHOLE = """
    don't doesn't didn't isn't wasn't aren't weren't haven't hasn't hadn't couldn't wouldn't shouldn't
    that's what's there's it'll you're they're you've they've you'll they'll i'm i've he's
    """
_APOSTROPHES = {whole.replace("'", ""): whole for whole in _WHOLE.split()}
"""Words that are nothing else without their apostrophe; "its", "were", "wont", "cant" and "ill" can be."""
_WORD = re.compile(r"[A-Za-z]+(?:['’][A-Za-z]+)*")
_START = re.compile(r"(?:^|[.!?…]+[\"'”’)\]]*\s+)[\"'“‘(\[]*([a-z])")
_SPACED = re.compile(r"(?<=\w) +([,.!?])(?=\s|$)")
"""A mark that stands off from its word."""
_JOINED = re.compile(r"(?<=[a-z])(?:(,)(?=[A-Za-z])|([.!?])(?=I\b))")
"""A mark with no space after it: a comma before any word, others only before "I", which starts no address."""
_GOING_ON = re.compile(r"(?<=[a-z], )(That|This|What|How|You|Your|There|They|We|It)\b")
"""A capital after a comma, of words that are nobody's name."""
SMILES = (":)", ":(", ";)")
_END = re.compile(r"\w[)\]\"'”’]*$")
"""Words that end without a mark, also inside quotes or brackets."""


def tidy(text: str) -> str:
    """The text with "I" and sentence beginnings in capitals, apostrophes and spaces in place, and a mark at
    its end.

    A reply with words like "iPhone" or an address keeps them; one that ends with an emoji stays open.
    """
    text = _WORD.sub(lambda match: _word(match[0]), text.strip())
    text = _JOINED.sub(r"\1\2 ", _SPACED.sub(r"\1", text))
    text = _GOING_ON.sub(lambda match: match[0].lower(), text)
    text = _START.sub(lambda match: match[0][:-1] + match[1].upper(), text)
    return f"{text}." if _END.search(text) and not text.endswith(SMILES) else text


def _word(word: str) -> str:
    small = word.lower()
    if word != small and word != small.capitalize():
        return word  # capitals of its own: iPhone, NASA
    whole = _APOSTROPHES.get(small, word)
    if whole in ("i", "i'm", "i've", "i'd", "i'll", "i’m", "i’ve", "i’d", "i’ll"):
        return whole[0].upper() + whole[1:]
    return whole if word in (small, whole) else whole[0].upper() + whole[1:]
