"""Batched processing in which one request that fails does not affect the others."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from listenwell.dialogue import Dialogue, Reply
from listenwell.listener import Asked

Request = TypeVar("Request")
Result = TypeVar("Result")


class Answers(Protocol):
    """What a served model needs, such as a `Listener`."""

    @property
    def plan(self) -> Any:  # noqa: ANN401
        """The planner; None if replies cannot be steered."""
        ...

    def reply(self, said: Dialogue, *, want: Any, seed: int) -> Reply:  # noqa: ANN401
        """Reply to one dialogue."""
        ...

    def reply_many(self, asked: Sequence[Asked]) -> Sequence[Reply]:
        """Reply to a batch of dialogues."""
        ...


def reply_to_all(listener: Answers, requests: Sequence[Asked]) -> list[Reply | Exception]:
    """A reply or an error for each request."""
    return each(
        requests,
        listener.reply_many,
        lambda request: listener.reply(request.dialogue, want=request.want, seed=request.seed),
    )


def each(
    requests: Sequence[Request],
    batched: Callable[[Sequence[Request]], Sequence[Result]] | None,
    single: Callable[[Request], Result],
) -> list[Result | Exception]:
    """Process requests as a batch; if that fails, one by one, so that only the faulty one gets the error."""
    if batched is not None and len(requests) > 1:
        try:
            results = batched(requests)
        except Exception:
            results = ()
        if len(results) == len(requests):
            return list(results)
    return [_result_or_error(single, request) for request in requests]


def _result_or_error(single: Callable[[Request], Result], request: Request) -> Result | Exception:
    try:
        return single(request)
    except Exception as error:
        return error
