"""The one tokenization of every word-level metric, so that no number moves with the spelling of a corpus.

Some releases print "did n't" and "i 'm" (Penn Treebank style), some "don ' t" (BERT style), people write
"didn't" and "I'm". All of them give the same words here.
"""

import re
import unicodedata
from functools import cache

_APOSTROPHES = str.maketrans(dict.fromkeys("’‘ʼ＇´`", "'"))
# Where a word begins and ends; \b would take an underscore for a letter.
_BEFORE, _AFTER = r"(?<![^\W_])", r"(?![^\W_])"
_CLITIC = re.compile(rf"(?<=[^\W_])\s*'\s*(?=(?:m|s|re|ve|ll|d|t){_AFTER})")  # it 's, it ' s -> it's
_NOT = re.compile(rf"(?<=[^\W_])\s+(?=n't{_AFTER})")  # did n't -> didn't
_PARTED = re.compile(rf"{_BEFORE}(?:(?:gon|wan)\s+na|got\s+ta|(?:gim|lem)\s+me|can\s+not){_AFTER}")
"""Words that the Treebank takes apart: gonna, wanna, gotta, gimme, lemme, cannot."""

_ENDINGS = {"n't": "not", "'m": "am", "'re": "are", "'ve": "have", "'ll": "will"}
_WHOLE = {
    "won't": "will not",
    "can't": "can not",
    "cannot": "can not",
    "im": "i am",
    "ive": "i have",
    "youre": "you are",
    "thats": "that is",
    **{f"{word}'s": f"{word} is" for word in ("that", "it", "what", "there", "he", "she", "how", "here")},
}


def words(text: str) -> list[str]:
    """Words and single punctuation marks, in lower case.

    A word is letters and digits of any script with apostrophes inside; accents and vowel signs stay with
    the letter before them. Contractions that a tokenizer took apart are put together first.
    """
    plain = unicodedata.normalize("NFC", text.lower()).translate(_APOSTROPHES)
    if "'" in plain:
        plain = _NOT.sub("", _CLITIC.sub("'", plain))
    plain = _PARTED.sub(lambda parted: "".join(parted[0].split()), plain)
    return _token().findall(plain)


def normalized(text: str) -> str:
    """The words with one blank between them: two texts that differ in spacing or case only become equal."""
    return " ".join(words(text))


def expanded(word: str) -> str:
    """A word of `words` with its contraction written out: "didn't" is "did not"."""
    if word in _WHOLE:
        return _WHOLE[word]
    for ending, meaning in _ENDINGS.items():
        if word.endswith(ending) and word != ending:
            return f"{word.removesuffix(ending)} {meaning}"
    return word


@cache
def _token() -> re.Pattern[str]:
    """What one token looks like; `re` does not count combining marks as letters, so they are listed."""
    marks = "".join(
        re.escape(chr(code))
        for low, high in ((0x300, 0x20000), (0xE0100, 0xE01F0))  # every mark Unicode has lies here
        for code in range(low, high)
        if unicodedata.category(chr(code)).startswith("M")
    )
    letters = rf"[^\W_]+(?:[{marks}]+[^\W_]*)*"
    return re.compile(rf"{letters}(?:'{letters})*|\S[{marks}]*")


def word_set(text: str) -> frozenset[str]:
    """The words of a text separated by blanks, for lexicons in source code."""
    return frozenset(text.split())
