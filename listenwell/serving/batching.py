"""Several requests answered at once; one that cannot be answered does not spoil the others."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from listenwell.dialogue import Dialogue, Reply
from listenwell.listener import Asked

A = TypeVar("A")
B = TypeVar("B")


class Answers(Protocol):
    """Whoever replies, such as a `Listener`; with `reply_many`, several at once."""

    @property
    def plan(self) -> Any:  # noqa: ANN401
        """None where no wish can be fulfilled."""
        ...

    def reply(self, said: Dialogue, *, want: Any, seed: int) -> Reply:  # noqa: ANN401
        """Answer one dialogue."""
        ...


def answer_all(listener: Answers, asked: Sequence[Asked]) -> list[Reply | Exception]:
    """A reply or an error for each."""
    many = getattr(listener, "reply_many", None)
    return each(asked, many, lambda one: listener.reply(one.dialogue, want=one.want, seed=one.seed))


def each(
    asked: Sequence[A], many: Callable[[Sequence[A]], Sequence[B]] | None, one: Callable[[A], B]
) -> list[B | Exception]:
    """What `many` makes of all of them; if it fails, what `one` makes of each."""
    if many is not None and len(asked) > 1:
        try:
            found = many(asked)
        except Exception:
            found = ()  # which of them it was shows when each is asked alone
        if len(found) == len(asked):
            return list(found)
    return [_tried(one, item) for item in asked]


def _tried(one: Callable[[A], B], item: A) -> B | Exception:
    try:
        return one(item)
    except Exception as error:
        return error
