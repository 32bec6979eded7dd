"""Load shedding: while several requests wait, fewer candidates are generated for each."""

import copy
import math
from dataclasses import replace
from typing import Any

from listenwell.generators.base import Generator
from listenwell.listener import Listener

BEAM = 3
"""Plan beam under load: with few candidates, planning is most of the work."""


def candidate_count(listener: Listener) -> int:
    """How many candidates a listener generates per reply; 1 if unknown."""
    settings = _settings(listener)
    return int(settings.get("candidates") or settings.get("plans") or 1)


def shed_count(own: int, load: int, minimum: int) -> int:
    """The number of candidates per reply under load: the work for one reply is divided among the requests.

    Args:
        own: the listener's number without load.
        load: how many requests wait or are being processed.
        minimum: the lower limit, as far as `own` allows.
    """
    return min(own, max(minimum, math.ceil(own / max(load, 1))))


def with_fewer_candidates(listener: Listener, candidates: int) -> Listener:
    """A copy of the listener, on the same engine, that generates at most this many candidates.

    A retrieval listener is returned unchanged: it generates nothing.
    """
    settings = _settings(listener)
    fewer = {name: candidates for name in ("plans", "candidates") if (settings.get(name) or 0) > candidates}
    own = listener.generate
    if not isinstance(own, Generator) or not fewer or own.capabilities.ranked:
        return listener
    if "plan_beam" in settings:
        fewer["plan_beam"] = min(settings["plan_beam"], BEAM)
    generator = copy.copy(own)
    generator.config = replace(generator.config, **fewer)
    planner: Any = listener.plan
    planner = generator if planner is own else planner
    # A single candidate needs no reranking.
    reranker = listener.rerank if candidates > 1 else None
    return replace(listener, generate=generator, plan=planner, rerank=reranker)


def _settings(listener: Listener) -> dict[str, Any]:
    """The generator's settings by name."""
    return vars(listener.generate.config) if isinstance(listener.generate, Generator) else {}
