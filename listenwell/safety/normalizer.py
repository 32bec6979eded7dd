"""Text as the patterns read it: lower case, contractions written out, slips and disguises undone.

Every word keeps its place in what was written, so that what is found can be shown there.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from listenwell.safety.spelling import DOUBLE, HIDDEN, LOOKALIKES, MEANT, NEAR, NOT_NEAR, SIGNS, SPELT_OUT
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
LONGEST = 40
"""A longer word is none that the patterns know; hashing and comparing it would only cost time."""


@dataclass(frozen=True)
class Normalized:
    """Words with one blank before and after each, and where they come from."""

    text: str
    """Such as " i want to go home . "; sentences end with " . ", clauses may with " , "."""
    begins: tuple[int, ...]
    """Where each word begins in `text`."""
    places: tuple[tuple[int, int], ...]
    """Where each word stands in what was written."""

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Where a part of `text` stands in what was written."""
        first = max(0, bisect_right(self.begins, start) - 1)
        if self.begins[first] + 1 <= start and self.text[start] == " ":
            first = min(first + 1, len(self.begins) - 1)  # it begins with the blank before a word
        last = max(first, bisect_left(self.begins, end) - 1)
        return self.places[first][0], self.places[last][1]


def normalize(text: str) -> Normalized:
    """What was written as the patterns read it."""
    words = _joined([(word, *place) for word, place in _words(text)])
    parts, begins, places, length = [""], list[int](), list[tuple[int, int]](), 1
    for word, start, end in words:
        parts.append(word)
        begins.append(length)
        places.append((start, end))
        length += len(word) + 1
    return Normalized(" ".join([*parts, ""]), tuple(begins), tuple(places))


def _words(text: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """Words and marks with their places; a contraction gives several words at one place."""
    folded, origin = _folded(text)
    for found in _TOKEN.finditer(folded):
        start, end = found.span()
        place = (start, end) if origin is None else (origin[start], origin[end - 1] + 1)
        if found["word"]:
            for word, inner in _read(found["word"]):
                own = place
                if inner is not None:
                    first, last = start + inner[0], start + inner[1]
                    own = (first, last) if origin is None else (origin[first], origin[last - 1] + 1)
                yield word, own
        elif found["spaced"]:
            for word in _spelt_out("".join(filter(str.isalpha, found["spaced"]))):
                yield word, place
        elif found["end"]:
            yield ("?" if "?" in found["end"] else "."), place
        else:
            yield ("," if found["pause"] else '"' if found["quote"] else "lol"), place


def _folded(text: str) -> tuple[str, list[int] | None]:
    """In lower case without accents, and for each letter where it came from; None where nothing moved."""
    if text.isascii():
        return text.lower(), None
    letters, origin = list[str](), list[int]()
    for place, letter in enumerate(text):
        for part in unicodedata.normalize("NFKD", letter.translate(_QUOTES)).casefold():
            if unicodedata.category(part) not in ("Mn", "Cf", "Me"):  # accents, and what nobody sees
                letters.append(part)
                origin.append(place)
    return "".join(letters).translate(LOOKALIKES), origin


def _read(word: str) -> Iterator[tuple[str, tuple[int, int] | None]]:
    """The words of a token; with places inside of it where it has to be taken apart."""
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
    """What single letters in a row spell: a word, or known words that stand among them."""
    inside = [written for written in (*SPELT_OUT, *HIDDEN) if written in letters and len(written) > 3]
    if letters in MEANT or not inside:
        return _meant(letters)
    return _meant(max(inside, key=len))


@lru_cache(maxsize=8192)
def _meant(word: str) -> tuple[str, ...]:
    """What a single word means, as one word or several."""
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
    """The word behind figures and signs; None where there is none that people hide."""
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
    """A key word that differs by one slip of the finger."""
    if len(word) < 5 or word[0] not in "smho" or word in NOT_NEAR:
        return None
    return next((key for key in NEAR if word[0] == key[0] and word != key and one_slip(word, key)), None)


def one_slip(word: str, other: str) -> bool:
    """Whether one letter is wrong, missing, too many, or changed places with its neighbour."""
    if abs(len(word) - len(other)) > 1:
        return False
    same = 0
    while same < min(len(word), len(other)) and word[same] == other[same]:
        same += 1
    rest, wanted = word[same:], other[same:]
    if len(word) == len(other):
        return rest[1:] == wanted[1:] or (rest[:2] == wanted[1::-1] and rest[2:] == wanted[2:])
    return rest[1:] == wanted or rest == wanted[1:]


def _joined(words: list[tuple[str, int, int]]) -> Iterator[tuple[str, int, int]]:
    """Words that were written apart put together, and the figure 2 for "to"."""
    place = 0
    while place < len(words):
        word, start, end = words[place]
        following = words[place + 1] if place + 1 < len(words) else ("", 0, 0)
        if (joined := _JOINED.get((word, following[0]))) is not None:
            for part in joined.split():
                yield part, start, following[2]
            place += 2
            continue
        if word == "2" and place and words[place - 1][0] in _TO and following[0].isalpha():
            word = "to"
        elif word == "ill" and (not place or words[place - 1][0] in _BEFORE_WILL) and following[0].isalpha():
            yield "i", start, end
            word = "will"
        elif word == "'s" and place and words[place - 1][0] in _PRONOUNS:
            word = "is"
        yield word, start, end
        place += 1
