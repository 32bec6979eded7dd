"""Load shedding: while several requests wait, fewer candidates are generated for each."""

import copy
import math
from dataclasses import replace
from typing import Any

from listenwell.listener import Listener
from listenwell.serving.batching import Answers

BEAM = 3
"""Plan beam under load: with few candidates, planning is most of the work."""


def candidate_count(listener: Answers) -> int:
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


def with_fewer_candidates(listener: Answers, candidates: int) -> Answers:
    """A copy of the listener, on the same engine, that generates at most this many candidates.

    A retrieval listener is returned unchanged: it generates nothing.
    """
    settings = _settings(listener)
    fewer = {name: candidates for name in ("plans", "candidates") if (settings.get(name) or 0) > candidates}
    if not isinstance(listener, Listener) or not fewer:
        return listener
    if "plan_beam" in settings:
        fewer["plan_beam"] = min(settings["plan_beam"], BEAM)
    own: Any = listener.generate
    if own.capabilities.ranked:
        return listener
    generator = copy.copy(own)
    generator.config = replace(generator.config, **fewer)
    planner = generator if listener.plan is own else listener.plan
    # A single candidate needs no reranking.
    reranker = listener.rerank if candidates > 1 else None
    return replace(listener, generate=generator, plan=planner, rerank=reranker)


def _settings(listener: Answers) -> dict[str, Any]:
    """The generator's settings by name; empty for a listener of another kind."""
    # Not every generator has settings, so they are no part of the protocol.
    config = getattr(listener.generate, "config", None) if isinstance(listener, Listener) else None
    return {} if config is None else vars(config)
