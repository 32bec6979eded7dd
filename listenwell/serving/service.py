"""What the endpoints share: the models, the request queue in front of them, and the store."""

import asyncio
import math
import secrets
from collections.abc import Callable, Coroutine, Hashable, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from listenwell.dialogue import Dialogue, Factors, Reply
from listenwell.errors import InputError
from listenwell.listener import Listener, Request
from listenwell.serving.api_errors import ApiError
from listenwell.serving.load_shedding import candidate_count, shed_count, with_fewer_candidates
from listenwell.serving.models import Models
from listenwell.serving.request_queue import RequestQueue, Ticket
from listenwell.serving.schemas import SEEDS
from listenwell.serving.settings import Settings
from listenwell.serving.store import Store

if TYPE_CHECKING:
    from listenwell.annotators.annotator import Annotator
    from listenwell.rankers.ranker import Ranker

REPLY, ANNOTATE, RANK = "reply", "annotate", "rank"


def shipped_annotator() -> "Annotator":
    """The shipped annotator with all heads."""
    from listenwell.annotators.annotator import Annotator

    return Annotator.load()


def shipped_ranker() -> "Ranker":
    """The shipped ranker."""
    from listenwell.rankers.ranker import Ranker

    return Ranker.load()


class Service:
    """One running service.

    Args:
        settings: of the service.
        listener: loads a listener by its name; called in a background thread.
        annotator: loads the annotator; called on first use.
        ranker: loads the ranker; called on first use.
    """

    def __init__(
        self,
        settings: Settings,
        listener: Callable[[str], Listener],
        annotator: "Callable[[], Annotator]",
        ranker: "Callable[[], Ranker]",
    ) -> None:
        self.settings = settings
        self.models = Models(settings.models, listener, settings.planning)
        self._annotator, self._ranker = cache(annotator), cache(ranker)
        self.queue: RequestQueue
        self._store: Store | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self.under_way: dict[tuple[str, int | str | None], tuple[Ticket, asyncio.Task[Any]]] = {}
        """Replies in progress, by conversation and either the number of the exchange (its first reply) or the
        client's key (a further reply)."""

    async def open(self) -> None:
        """Open the store and the queue, and start loading the first model."""
        limits = self.settings.limits
        if self.settings.store is not None:
            self._store = await asyncio.to_thread(Store.open, self.settings.store, limits)
        self.queue = RequestQueue(self._work, limits.queue, limits.batch, self.settings.batch_window)
        self.queue.open()
        self.models.start()

    async def close(self) -> None:
        """Finish the requests in progress, then close the store."""
        await self.queue.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._store is not None:
            self._store.close()

    @property
    def store(self) -> Store:
        """The store; 404 if conversations are not stored."""
        if self._store is None:
            raise ApiError(
                404,
                "not_stored",
                "This service stores no conversations. Send the whole conversation to /api/reply.",
            )
        return self._store

    def ask(  # noqa: PLR0913, PLR0917 - the fields of a request
        self,
        model: str | None,
        dialogue: Dialogue,
        target: Factors | None = None,
        seed: int | None = None,
        candidates: int | None = None,
        choices: int = 1,
    ) -> Ticket:
        """Queue a request for a reply.

        Args:
            model: the name of a model; the first by default.
            dialogue: ends with the message to reply to.
            target: factors that the reply must have.
            seed: random by default.
            candidates: generate at most this many candidates, whatever the load; by default
                `Settings.min_candidates` applies.
            choices: load shedding leaves at least this many candidates.
        """
        name, listener = self.models.get(model)
        if target is not None and listener.plan is None:
            raise InputError(
                f"The model {name} does not plan, so it cannot be steered.",
                "Use another model, or leave the target out.",
            )
        seed = secrets.randbelow(SEEDS) if seed is None else seed
        return self.queue.enter((REPLY, name, candidates, choices), Request(dialogue, target, seed))

    def ask_readings(self, dialogue: Dialogue, top: int) -> Ticket:
        """Queue a dialogue for annotation."""
        return self.queue.enter((ANNOTATE, top), dialogue)

    def ask_ranks(self, dialogue: Dialogue, replies: Sequence[str]) -> Ticket:
        """Queue replies for ranking; the result is the ranker's name and a score for each."""
        return self.queue.enter((RANK,), (dialogue, tuple(replies)))

    def in_background(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        """Run something even if its client disconnects; `close` waits for it."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # retrieved, so that asyncio does not log it

    def _work(self, kind: Hashable, requests: Sequence[Any], load: int) -> Sequence[Any]:
        """Process requests of one kind, in the queue's thread."""
        assert isinstance(kind, tuple)
        if kind[0] == REPLY:
            _, name, candidates, choices = kind
            listener = self.models.get(name)[1]
            count = candidates or max(self._shed_count(listener, load), choices)
            return each(requests, with_fewer_candidates(listener, count).reply_batch)
        if kind[0] == ANNOTATE:
            return each(requests, lambda dialogues: list(self._annotator().annotate_all(dialogues, kind[1])))
        ranker = self._ranker()
        return each(requests, lambda pairs: [(ranker.name, ranker.scores(*pair).tolist()) for pair in pairs])

    def _shed_count(self, listener: Listener, load: int) -> int:
        own, minimum = candidate_count(listener), self.settings.min_candidates
        return own if minimum is None else shed_count(own, load, minimum)

    def follows_instructions(self, model: str | None) -> bool:
        """Whether a model's generator follows free-text instructions."""
        from listenwell.generators.instructed import Instructed
        from listenwell.generators.prompted import Prompted
        from listenwell.generators.remote import Remote

        return type(self.models.get(model)[1].generate) in (Instructed, Prompted, Remote)


def each(
    requests: Sequence[Any], process: Callable[[Sequence[Any]], Sequence[Any]]
) -> Sequence[Any | Exception]:
    """Process requests as a batch; if that fails, one by one, so that only the faulty one gets the error."""
    try:
        return process(requests)
    except Exception as error:
        if len(requests) == 1:
            return [error]
        return [result for request in requests for result in each([request], process)]


def finished(ticket: Ticket) -> Reply:
    """The reply of a ticket, with its time in the queue; without scores that JSON cannot represent."""
    reply: Reply = ticket.result.result()
    candidates = tuple(
        replace(
            candidate,
            scores={name: score for name, score in candidate.scores.items() if math.isfinite(score)},
        )
        for candidate in reply.candidates
    )
    timings = {**reply.timings, "queue": round(ticket.waited, 4)}
    return replace(reply, candidates=candidates, timings=timings)
