"""What a text must hold for an expression to match, told without compiling it.

Compiling all patterns takes a tenth of a second at every start. Of an ordinary message most can be ruled out
by their words, so that few are compiled. Where this reader is not sure, it asks for nothing.
"""

import re
from collections.abc import Mapping

Needs = frozenset[str]
"""One of these stands in every text that matches; empty: any text may."""
NOTHING: Needs = frozenset()
_TOKEN = re.compile(
    r"(?P<literal>[a-z0-9 ,]+)|(?P<open>\(\?:)|(?P<around>\(\?<?[!=])|(?P<close>\))|(?P<or>\|)"
    r"|(?P<name><\w+>)|(?P<often>[*+?]\??|\{[\d,]*\}\??)|(?P<one>\\.|\[\^?[^\]]+\]|[.^$'])"
)


class _Unknown(Exception):
    """The expression holds something that this reader does not know."""


class _Reader:
    """Reads one expression from its beginning to its end."""

    def __init__(self, expression: str, parts: Mapping[str, Needs]) -> None:
        self._tokens = list[tuple[str, str]]()
        self._parts, self._next, place = parts, 0, 0
        while place < len(expression):
            found = _TOKEN.match(expression, place)
            if found is None:
                raise _Unknown
            self._tokens.append((str(found.lastgroup), found[0]))
            place = found.end()

    def whole(self) -> Needs:
        """What the expression needs."""
        found = self._choice()
        if self._next < len(self._tokens):
            raise _Unknown
        return found

    def _choice(self) -> Needs:
        """Alternatives up to a closing bracket: what they need together, nothing if one needs nothing."""
        found = [self._sequence()]
        while self._peek() == "or":
            self._next += 1
            found.append(self._sequence())
        return NOTHING if NOTHING in found else frozenset().union(*found)

    def _sequence(self) -> Needs:
        """Things that all must match: the need of the one that rules out most."""
        best = NOTHING
        while self._peek() not in ("or", "close", ""):
            kind, text = self._tokens[self._next]
            self._next += 1
            found = NOTHING
            if kind in ("open", "around"):
                found = self._choice()
                if self._peek() != "close":
                    raise _Unknown
                self._next += 1
                found = NOTHING if kind == "around" else found
            elif kind == "name":
                found = self._parts[text[1:-1]]
            elif kind == "literal":
                found = frozenset((text,))
            if self._peek() == "often":  # what may be missing, or the last letter of a word
                self._next += 1
                kept = text[:-1] if kind == "literal" else ""
                found = frozenset((kept,)) if kept else NOTHING
            best = max(best, found, key=_strictness)
        return best

    def _peek(self) -> str:
        return self._tokens[self._next][0] if self._next < len(self._tokens) else ""


def _strictness(needs: Needs) -> tuple[int, int]:
    """The longer its shortest text, the less it finds; of equal ones that with fewer."""
    return min(map(len, needs), default=0), -len(needs)


def needs(expression: str, parts: Mapping[str, Needs]) -> Needs:
    """What every text holds that an expression matches.

    Args:
        expression: in lower case; names in <> are parts.
        parts: what those need.
    """
    try:
        return _Reader(expression, parts).whole()
    except (_Unknown, KeyError):  # what is wrong with it, compiling will tell
        return NOTHING
