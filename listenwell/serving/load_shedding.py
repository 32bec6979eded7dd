"""Less work for each when several wait: their replies are chosen from fewer, so that all come sooner."""

import copy
import math
from dataclasses import replace
from typing import Any

from listenwell.listener import Listener
from listenwell.serving.batching import Answers

BEAM = 3
"""So many of the likeliest mechanisms and acts are looked at: of few replies, planning is the most work."""


def proposed(listener: Answers) -> int:
    """How many replies a listener proposes, of which one is said; 1 for one that does not tell."""
    config = getattr(getattr(listener, "generate", None), "config", None)
    return int(getattr(config, "candidates", 0) or getattr(config, "plans", 1))


def share(own: int, load: int, fewest: int) -> int:
    """How many replies are proposed to each of so many who wait: the work for one is shared out among them.

    Args:
        own: the listener's number, for somebody alone.
        load: how many wait and are answered now.
        fewest: so many are left in any case, as far as the listener proposes them at all.
    """
    return min(own, max(fewest, math.ceil(own / max(load, 1))))


def load_shedding(listener: Answers, candidates: int) -> Answers:
    """The same listener on the same engine, which proposes so many replies at most, each by its own plan.

    One whose replies are not made but found, in a pool, has nothing to spare and stays as it is.
    """
    config: Any = getattr(getattr(listener, "generate", None), "config", None)
    own = {name: getattr(config, name, 0) for name in ("plans", "candidates")}
    fewer = {name: candidates for name, number in own.items() if number > candidates}
    if not isinstance(listener, Listener) or not fewer or hasattr(config, "top"):
        return listener
    if hasattr(config, "plan_beam"):
        fewer["plan_beam"] = min(config.plan_beam, BEAM)
    generate: Any = copy.copy(listener.generate)
    generate.config = replace(config, **fewer)
    plan = listener.plan and (generate if hasattr(generate, "plan") else listener.plan)
    # Of one reply there is nothing to rerank.
    return replace(listener, generate=generate, plan=plan, rerank=listener.rerank if candidates > 1 else None)
