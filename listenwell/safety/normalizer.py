"""Normalizes text for the patterns: lower case, contractions expanded, typos and disguises undone.

Every word keeps its span in the original text, so that matches can be located there.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from string import ascii_lowercase

from listenwell.words import expanded, word_set

_QUOTES = str.maketrans(dict.fromkeys("’‘ʼ＇´`", "'") | dict.fromkeys("“”„«»", '"'))
_TOKEN = re.compile(
    r"(?P<spaced>(?<![^\W_])[^\W\d_]([ .\-*·])(?:[^\W\d_]\2){2,}[^\W\d_](?![^\W_]))"  # k i l l, d.e.a.d
    r"|(?P<word>'(?=(?:m|s|re|ve|ll|d|t)(?![^\W_]))[^\W_]+"  # it 's, as some corpora part it
    r"|[^\W_@$]*(?:[@$]?[^\W_]+(?:['!*#|+@$](?=[^\W_]))?)+)"
    r"|(?P<end>[.!?;…\n]+)|(?P<pause>[,:()\[\]–—]+|-(?=\s))|(?P<quote>\")|"
    r"(?P<laugh>[\U0001F602\U0001F923\U0001F480])"
)
_PLAIN = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_MANY = re.compile(r"(.)\1{2,}")
_TO = word_set("want wants wanted going need have ready try trying wish like about")
_PRONOUNS = word_set("it he she that there what who here how where")
_BEFORE_WILL = word_set(". ? , guess think so then and but maybe hope know tonight because")
"""After these, "ill" is "I'll"."""
_JOINED = {
    ("my", "self"): "myself",
    ("him", "self"): "himself",
    ("her", "self"): "herself",
    ("any", "more"): "anymore",
    ("no", "one"): "nobody",
    ("every", "one"): "everyone",
    ("step", "father"): "stepfather",
    ("step", "mother"): "stepmother",
    ("sewer", "slide"): "suicide",
    ("un", "alive"): "kill",
    ("over", "dose"): "overdose",
    ("over", "dosed"): "overdosed",
    ("ca", "not"): "can not",
    ("wo", "not"): "will not",
}
MEANT = {
    written: meant
    for line in Path(__file__).with_name("spelling.txt").read_text("utf-8").splitlines()
    for meant, _, variants in (line.partition(": "),)
    for written in variants.split()
    if not line.startswith("#")
}
"""Abbreviations, typos and disguised words, and what they mean."""
_HIDDEN = (
    "kill killing killed die dying dead death suicide suicidal myself yourself himself herself cut cutting "
    "hurt hurting harm harming self rape raped rapes rapist gun shoot murder murdered overdose overdosed "
    "abuse abused abuses molested sex hang hanging pills wrists bleach unalive life end"
)
HIDDEN = tuple(_HIDDEN.split())
"""Words that people hide with digits and signs, as in su1cide, k!ll, s*icidal."""
SPELT_OUT = ("killmyself", "killingmyself", "wanttodie", "wannadie", "endmylife", "enditall", "killyourself")
"""What people write letter by letter."""
_SIGNS = "0o 1il 3e 4a 5s 7t 8b @a $s !il |il +t"
SIGNS = {entry[0]: entry[1:] for entry in _SIGNS.split()} | dict.fromkeys("*#", ascii_lowercase)
"""Which letters a sign may stand for: above, each sign is followed by them; the last two are any letter."""
NEAR = ("suicide", "suicidal", "myself", "himself", "herself", "overdose", "overdosed")
"""Words that are recognized with one letter wrong, missing, doubled or swapped."""
NOT_NEAR = word_set("overdone overdoes suicided suicides overdoses")
"""Words of their own that lie as near."""
DOUBLE = word_set(
    "kill killing killed will pill pills feel feeling need bleed bleeding off all tell still soon good hell "
    "sleep keep too see been hitting cutting well call school goodbye"
)
"""Words with a double letter: "killll" is "kill", "dieee" is "die"."""
LOOKALIKES = str.maketrans("аеорсухіѕԁӏո", "aeopcyxisdln")
"""Cyrillic and Armenian letters that look like Latin ones."""
LONGEST = 40
"""Longer words are truncated: no pattern has one."""


@dataclass(frozen=True)
class Normalized:
    """Words with one blank before and after each, and their spans in the original text."""

    text: str
    """Such as " i want to go home . "; sentences end with " . ", clauses may with " , "."""
    begins: tuple[int, ...]
    """The start of each word in `text`."""
    spans: tuple[tuple[int, int], ...]
    """The span of each word in the original text."""

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The span in the original text of a part of `text`."""
        first = max(0, bisect_right(self.begins, start) - 1)
        if self.begins[first] + 1 <= start and self.text[start] == " ":
            first = min(first + 1, len(self.begins) - 1)  # it starts with the blank before a word
        last = max(first, bisect_left(self.begins, end) - 1)
        return self.spans[first][0], self.spans[last][1]


def normalize(text: str) -> Normalized:
    """Normalize a text."""
    words = _joined([(word, *span) for word, span in _words(text)])
    parts, begins, spans, length = [""], list[int](), list[tuple[int, int]](), 1
    for word, start, end in words:
        parts.append(word)
        begins.append(length)
        spans.append((start, end))
        length += len(word) + 1
    return Normalized(" ".join([*parts, ""]), tuple(begins), tuple(spans))


def _words(text: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """Words and punctuation with their spans; a contraction gives several words with one span."""
    folded, origin = _folded(text)
    for token in _TOKEN.finditer(folded):
        start, end = token.span()
        span = (start, end) if origin is None else (origin[start], origin[end - 1] + 1)
        if token["word"]:
            for word, inner in _read(token["word"]):
                own = span
                if inner is not None:
                    first, last = start + inner[0], start + inner[1]
                    own = (first, last) if origin is None else (origin[first], origin[last - 1] + 1)
                yield word, own
        elif token["spaced"]:
            for word in _spelt_out("".join(filter(str.isalpha, token["spaced"]))):
                yield word, span
        elif token["end"]:
            yield ("?" if "?" in token["end"] else "."), span
        else:
            yield ("," if token["pause"] else '"' if token["quote"] else "lol"), span


def _folded(text: str) -> tuple[str, list[int] | None]:
    """Lower case without accents, and the origin of each letter; None if nothing moved."""
    if text.isascii():
        return text.lower(), None
    letters, origin = list[str](), list[int]()
    for index, letter in enumerate(text):
        for part in unicodedata.normalize("NFKD", letter.translate(_QUOTES)).casefold():
            if unicodedata.category(part) not in ("Mn", "Cf", "Me"):  # accents and invisible characters
                letters.append(part)
                origin.append(index)
    return "".join(letters).translate(LOOKALIKES), origin


def _read(word: str) -> Iterator[tuple[str, tuple[int, int] | None]]:
    """The words of a token; with spans inside it if it is split."""
    if word.isalpha():
        yield from ((part, None) for part in _meant(word))
    elif word.startswith("'"):
        yield {"'m": "am", "'re": "are", "'ve": "have", "'ll": "will", "'d": "would"}.get(word, "'s"), None
    elif hidden := _unhidden(word):
        yield hidden, None
    else:
        for part in _PLAIN.finditer(word):
            yield from ((meant, part.span()) for meant in _meant(part[0]))


def _spelt_out(letters: str) -> tuple[str, ...]:
    """The word that spaced letters spell, or the longest known word among them."""
    inside = [written for written in (*SPELT_OUT, *HIDDEN) if written in letters and len(written) > 3]
    if letters in MEANT or not inside:
        return _meant(letters)
    return _meant(max(inside, key=len))


@lru_cache(maxsize=8192)
def _meant(word: str) -> tuple[str, ...]:
    """The intended word or words of a single word."""
    if len(word) > LONGEST:
        return (word[:LONGEST],)
    if _MANY.search(word):
        twice = _MANY.sub(r"\1\1", word)
        word = twice if twice in DOUBLE or twice in MEANT else _MANY.sub(r"\1", word)
    if word in MEANT:
        return tuple(MEANT[word].split())
    if (near := _near(word)) is not None:
        return (near,)
    if word in ("n't", "nt"):
        word = "not"
    elif word.endswith("'s") and expanded(word) == word:  # a possessive
        word = f"{MEANT.get(word[:-2], word[:-2])} 's"
    elif word.endswith("'d"):
        word = f"{word[:-2]} would"
    else:
        word = expanded(word)
    return tuple(word.split())


def _unhidden(word: str) -> str | None:
    """The word behind digits and symbols; None if it is none of `HIDDEN`."""
    if len(word) > LONGEST or not any(letter in SIGNS for letter in word) or word.isdigit():
        return None
    for hidden in HIDDEN if any(map(str.isalpha, word)) else ():
        pairs = zip(word, hidden, strict=False)
        if len(hidden) == len(word) and all(
            own == meant or meant in SIGNS.get(own, "") for own, meant in pairs
        ):
            return MEANT.get(hidden, hidden)
    return None


def _near(word: str) -> str | None:
    """The key word that differs by one typo."""
    if len(word) < 5 or word[0] not in "smho" or word in NOT_NEAR:
        return None
    return next((key for key in NEAR if word[0] == key[0] and word != key and one_typo(word, key)), None)


def one_typo(word: str, other: str) -> bool:
    """Whether one letter is wrong, missing, extra, or swapped with its neighbour."""
    if abs(len(word) - len(other)) > 1:
        return False
    same = 0
    while same < min(len(word), len(other)) and word[same] == other[same]:
        same += 1
    rest, target = word[same:], other[same:]
    if len(word) == len(other):
        return rest[1:] == target[1:] or (rest[:2] == target[1::-1] and rest[2:] == target[2:])
    return rest[1:] == target or rest == target[1:]


def _joined(words: list[tuple[str, int, int]]) -> Iterator[tuple[str, int, int]]:
    """Join words written apart, and resolve "2", "ill" and "'s"."""
    index = 0
    while index < len(words):
        word, start, end = words[index]
        following = words[index + 1] if index + 1 < len(words) else ("", 0, 0)
        if (joined := _JOINED.get((word, following[0]))) is not None:
            for part in joined.split():
                yield part, start, following[2]
            index += 2
            continue
        if word == "2" and index and words[index - 1][0] in _TO and following[0].isalpha():
            word = "to"
        elif word == "ill" and (not index or words[index - 1][0] in _BEFORE_WILL) and following[0].isalpha():
            yield "i", start, end
            word = "will"
        elif word == "'s" and index and words[index - 1][0] in _PRONOUNS:
            word = "is"
        yield word, start, end
        index += 1
