"""Beam search: the likeliest replies instead of drawn ones, on any engine.

At every step the best continuations of all beams are kept. In groups (diverse beam search, Vijayakumar et al.
2018, Algorithm 1), the beams of a group pay for the tokens that the groups before it take at the same place
(Hamming diversity), so that the groups say different things.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, zip_longest

import numpy as np

from listenwell.errors import InputError
from listenwell.generators.base import Prefix
from listenwell.generators.decoding import Decoding, Row, allowed, barred
from listenwell.runtime.base import Runtime, TopTokens

Ends = Callable[[Sequence[int], bool], Hashable | None]
"""What a reply of these tokens says if it ends with them, None where it goes on; True: it has to end."""


def by_marks(tokens: Sequence[int], has_to: bool) -> Hashable | None:
    """The `Ends` of replies that only an end mark or the limit ends."""
    return tuple(tokens) if has_to else None


@dataclass(frozen=True)
class Beam:
    """A partial or whole reply."""

    row: int
    """Where the engine's state holds it."""
    tokens: tuple[int, ...] = ()
    """Without the end mark."""
    marked: bool = False
    """Whether an end mark ended it."""
    log_likelihood: float = 0.0
    """Of its tokens and its end mark, as the model itself sees them."""
    score: float = 0.0
    """The same with what repetition costs."""
    toll: float = 0.0
    """What it paid for saying what other groups say."""

    def value(self, decoding: Decoding) -> float:
        """The score for its length, the end mark counted."""
        return self.score / self._length(decoding)

    def worth(self, decoding: Decoding) -> float:
        """Its value to its group: less what it paid."""
        return (self.score - self.toll) / self._length(decoding)

    def _length(self, decoding: Decoding) -> float:
        return float(max(1, len(self.tokens) + self.marked) ** decoding.length_penalty)


@dataclass
class _Group:
    """Beams that are compared with each other."""

    beams: list[Beam]
    """Those that go on, the best first."""
    whole: dict[Hashable, Beam] = field(default_factory=dict)
    """Replies by their text, the best first; two tokenizations of one text are one reply."""

    def keep(self, text: Hashable, beam: Beam, rules: "_Rules") -> None:
        """Put a reply among the whole ones, of which the best are kept."""
        known = self.whole.get(text)
        if known is None or rules.worth(known) < rules.worth(beam):
            self.whole[text] = beam
        order = sorted(self.whole.items(), key=lambda item: -rules.worth(item[1]))
        self.whole = dict(order[: rules.size])

    def is_done(self, rules: "_Rules") -> bool:
        """Whether no beam is ahead of the worst reply that is kept, at the length that it has now."""
        if not self.beams or len(self.whole) < rules.size:
            return not self.beams
        worst = list(self.whole.values())[-1]
        return rules.worth(self.beams[0]) <= rules.worth(worst)


@dataclass(frozen=True)
class _Rules:
    """The rules of one step."""

    decoding: Decoding
    stop: frozenset[int]
    forbidden: frozenset[int]
    is_last: bool
    ends: Ends

    def worth(self, beam: Beam) -> float:
        """What a beam is worth to its group."""
        return beam.worth(self.decoding)

    @property
    def size(self) -> int:
        """How many beams a group has."""
        return self.decoding.beams // self.decoding.beam_groups

    @property
    def considered(self) -> int:
        """How many continuations of a beam are considered: enough for a group where half of them end."""
        return 2 * self.size + len(self.stop)

    def width(self, length: int) -> int:
        """How many of the likeliest tokens are needed, whatever is excluded after `length` tokens."""
        if self.decoding.repetition_penalty < 1:  # it raises tokens, which can stand anywhere
            return 10**9
        return self.considered + len(self.forbidden) + length + self.decoding.beams


def search(
    runtime: Runtime, prefix: Prefix, starts: int, decoding: Decoding, ends: Ends = by_marks
) -> list[list[Beam]]:
    """The best replies after each of several prefixes, all in one batch; `ends` ends some without a mark.

    For each prefix `beams` replies at most: the best of every group, then the second best, and so on.
    """
    state, limit = prefix.state, min(decoding.max_tokens, prefix.room)
    at_first, later = barred(runtime, prefix.stop)
    searches = [[_Group([Beam(row)]) for _ in range(decoding.beam_groups)] for row in range(starts)]
    rows = starts
    for count in range(limit):
        rules = _Rules(decoding, prefix.stop, later if count else at_first, count + 1 == limit, ends)
        likely = runtime.likeliest(state, rules.width(count))
        for groups in searches:
            _advance(groups, likely, rules)
        going_on = [beam for groups in searches for group in groups for beam in group.beams]
        if not going_on:
            break
        going_on.sort(key=lambda beam: beam.row)  # where every row goes on once, nothing is copied
        parents = [beam.row for beam in going_on]
        if parents != list(range(rows)):
            state = runtime.pick(state, parents)
        state = runtime.step(state, [[beam.tokens[-1]] for beam in going_on])
        row_of = {id(beam): row for row, beam in enumerate(going_on)}
        for group in chain.from_iterable(searches):
            group.beams = [replace(beam, row=row_of[id(beam)]) for beam in group.beams]
        rows = len(going_on)
    return [_ranked(groups) or [Beam(row)] for row, groups in enumerate(searches)]


def search_rows(
    runtime: Runtime, prefix: Prefix, rows: Sequence[Row], decoding: Decoding, ends: Ends = by_marks
) -> Iterator[Row]:
    """Fill empty rows as `decode` does, but each with a reply that was searched for; their seeds have no say.

    If a search that rows share finds fewer replies than requested, its last one is repeated.
    """
    members_of: dict[Hashable, list[int]] = {}
    for index, start in enumerate(prefix.starts or range(len(rows))):
        members_of.setdefault(start, []).append(index)
    most = max(map(len, members_of.values()), default=0)
    if most > decoding.beams:
        raise InputError(
            f"{most} replies need more than {decoding.beams} beams.",
            "Give at least as many beams as candidates.",
        )
    if len(members_of) < len(rows):
        first = [members[0] for members in members_of.values()]
        prefix = Prefix(runtime.pick(prefix.state, first), prefix.stop, prefix.room)
    results = search(runtime, prefix, len(members_of), decoding, ends)
    for members, beams in zip(members_of.values(), results, strict=True):
        chosen = sorted(beams[: len(members)], key=lambda beam: -beam.value(decoding))
        chosen += chosen[-1:] * (len(members) - len(chosen))
        for index, beam in zip(members, chosen, strict=True):
            row = rows[index]
            row.log_likelihood = beam.log_likelihood
            for token in beam.tokens:
                row.tokens.append(token)
                yield row
                if row.finished:
                    break
            row.finished = row.finished or beam.marked


def _advance(groups: Sequence[_Group], likely: TopTokens, rules: _Rules) -> None:
    """Extend the groups of one prefix by a token, one group after the other."""
    taken: Counter[int] = Counter()
    for group in groups:
        if not group.beams:
            continue
        offers = [offer for beam in group.beams for offer in _offers(beam, likely, taken, rules)]
        _rerank(group, sorted(offers, key=lambda beam: beam.toll - beam.score), rules)
        if group.is_done(rules):
            group.beams = []
        taken.update(beam.tokens[-1] for beam in group.beams)  # no end mark: every group ends where it likes


def _offers(beam: Beam, likely: TopTokens, taken: Counter[int], rules: _Rules) -> Iterator[Beam]:
    """A beam with each token that can follow."""
    decoding, tokens, scores = rules.decoding, likely.tokens[beam.row], likely.scores[beam.row]
    total = float(likely.totals[beam.row])
    left = allowed(tokens, scores, beam.tokens, rules.forbidden, decoding)
    tolls = [decoding.diversity * taken[token] for token in tokens.tolist()]
    best = np.argsort(-(left - tolls), kind="stable")[: rules.considered]
    for index in best[np.isfinite(left[best])]:
        marked = (token := int(tokens[index])) in rules.stop
        yield Beam(
            beam.row,
            beam.tokens if marked else (*beam.tokens, token),
            marked,
            beam.log_likelihood + float(scores[index]) - total,
            beam.score + float(left[index]) - total,
            beam.toll + tolls[index],
        )


def _rerank(group: _Group, offers: Sequence[Beam], rules: _Rules) -> None:
    """Keep the best offers: those that end, if they are among the best, as replies, the others as beams."""
    if not offers:  # nothing may follow: the beams are all there is
        for beam in group.beams:
            group.keep(rules.ends(beam.tokens, True), beam, rules)
    group.beams, rank = [], 0
    for beam in offers:
        text = rules.ends(beam.tokens, beam.marked or rules.is_last)
        if text is None:
            group.beams.append(beam)
            rank += 1
        elif rank < rules.size:
            rank += text not in group.whole  # another tokenization of a known text takes no rank
            group.keep(text, beam, rules)
        if len(group.beams) == rules.size:
            break


def _ranked(groups: Sequence[_Group]) -> list[Beam]:
    """The best of every group, then the second best, and so on; what several groups say comes once."""
    unique: dict[Hashable, Beam] = {}
    for item in chain.from_iterable(zip_longest(*(group.whole.items() for group in groups))):
        if item is not None:
            unique.setdefault(*item)
    return list(unique.values())
