"""What the endpoints share: the models, the line before them, and the store."""

import asyncio
import math
import secrets
from collections.abc import Callable, Coroutine, Hashable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from listenwell.dialogue import Dialogue, Factors, Reply
from listenwell.errors import InputError
from listenwell.listener import Asked
from listenwell.serving.api_errors import ApiError
from listenwell.serving.batching import Answers, answer_all, each
from listenwell.serving.load_shedding import load_shedding, proposed, share
from listenwell.serving.models import Models
from listenwell.serving.request_queue import Line, Place
from listenwell.serving.schemas import SEEDS
from listenwell.serving.settings import Settings
from listenwell.serving.store import Store

if TYPE_CHECKING:
    from listenwell.annotators.annotator import Annotator
    from listenwell.rankers.ranker import Ranker

REPLY, ANNOTATE, RANK = "reply", "annotate", "rank"


def shipped_annotator() -> "Annotator":
    """All heads."""
    from listenwell.annotators.annotator import Annotator

    return Annotator.load()


def shipped_ranker() -> "Ranker":
    """The ranker that comes with listenwell."""
    from listenwell.rankers.ranker import Ranker

    return Ranker.load()


class Service:
    """One running service.

    Args:
        settings: of the service.
        listener: a listener by its name; called in the background.
        annotator: reads dialogues; called when it is first needed.
        ranker: ranks replies; called when it is first needed.
    """

    def __init__(
        self,
        settings: Settings,
        listener: Callable[[str], Answers],
        annotator: "Callable[[], Annotator]" = shipped_annotator,
        ranker: "Callable[[], Ranker]" = shipped_ranker,
    ) -> None:
        self.settings = settings
        self.models = Models(settings.models, listener, settings.planning)
        self._make_annotator, self._make_ranker = annotator, ranker
        self.line: Line
        self._store: Store | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self.under_way: dict[tuple[str, int | str | None], tuple[Place, asyncio.Task[Any]]] = {}
        """Replies that are being made, by conversation and what they answer: the number of an exchange that
        is answered for the first time, or the client's name for a reply that is spoken again."""

    async def open(self) -> None:
        """Open the store and the line, and begin to load the first model."""
        limits = self.settings.limits
        if self.settings.store is not None:
            self._store = await asyncio.to_thread(Store.open, self.settings.store, limits)
        self.line = Line(self._work, limits.queue, limits.batch, self.settings.gather)
        self.line.open()
        self.models.start()

    async def close(self) -> None:
        """Finish what is under way, then let go."""
        await self.line.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._store is not None:
            self._store.close()

    @property
    def store(self) -> Store:
        """Where conversations are kept; 404 where they are not."""
        if self._store is None:
            raise ApiError(
                404, "not_stored", "This service keeps no conversations. Send the whole talk to /api/reply."
            )
        return self._store

    def ask(
        self,
        model: str | None,
        dialogue: Dialogue,
        want: Factors | None = None,
        seed: int | None = None,
        candidates: int | None = None,
    ) -> Place:
        """Take a place for a reply.

        Args:
            model: one of the models, the first without.
            dialogue: ends with what is to be answered.
            want: what the reply must do.
            seed: a new one without.
            candidates: choose from so many replies at most, however many wait; without, as `Settings.fewest`
                says.
        """
        name, listener = self.models.get(model)
        if want is not None and listener.plan is None:
            raise InputError(
                f"The model {name} makes no plans, so none can be asked for.",
                "Use another model, or leave the wish out.",
            )
        seed = secrets.randbelow(SEEDS) if seed is None else seed
        return self.line.enter((REPLY, name, candidates), Asked(dialogue, want, seed))

    def ask_readings(self, dialogue: Dialogue, top: int) -> Place:
        """Take a place for a dialogue to be annotated."""
        return self.line.enter((ANNOTATE, top), dialogue)

    def ask_ranks(self, dialogue: Dialogue, replies: Sequence[str]) -> Place:
        """Take a place for replies to be ranked; the result is the ranker's name and a score for each."""
        return self.line.enter((RANK,), (dialogue, tuple(replies)))

    def keep_going(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        """Do something whether or not its client stays; `close` waits for it."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # heard, so that asyncio does not write it to the log

    def _work(self, kind: Hashable, requests: Sequence[Any], load: int) -> Sequence[Any]:
        """Answer requests of one kind; in the thread of the line."""
        assert isinstance(kind, tuple)
        if kind[0] == REPLY:
            listener = self.models.get(kind[1])[1]
            return answer_all(load_shedding(listener, kind[2] or self._share(listener, load)), requests)
        if kind[0] == ANNOTATE:
            top = kind[1]
            return each(
                requests,
                lambda many: list(self._annotator.annotate_all(many, top)),
                lambda one: self._annotator.annotate(one, top),
            )
        return each(requests, None, lambda one: (self._ranker.name, self._ranker.scores(*one).tolist()))

    def _share(self, listener: Answers, load: int) -> int:
        own, fewest = proposed(listener), self.settings.fewest
        return own if fewest is None else share(own, load, fewest)

    @cached_property
    def _annotator(self) -> "Annotator":
        return self._make_annotator()

    @cached_property
    def _ranker(self) -> "Ranker":
        return self._make_ranker()


def finished(place: Place) -> Reply:
    """The reply of a place, with the time in the line; scores that JSON cannot hold are left out."""
    reply: Reply = place.result.result()
    candidates = tuple(
        replace(one, scores={name: score for name, score in one.scores.items() if math.isfinite(score)})
        for one in reply.candidates
    )
    timings = {**reply.timings, "queue": round(place.waited, 4)}
    return replace(reply, candidates=candidates, timings=timings)
