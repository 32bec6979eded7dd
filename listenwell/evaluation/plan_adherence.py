"""Whether replies do what they were planned to do: CoMAE's realization scores (Zheng et al. 2021, Table 5).

A reply is made under a plan, the annotators read it, and a factor is realized where the two agree. The paper
takes plans that the model sampled; ours are taken from the people's replies ("gold") or from the generator
itself ("predicted"), and the row says which.
"""

from collections.abc import Sequence

from listenwell.annotators.replies import REPLY_HEADS
from listenwell.dialogue import Dialogue, Factors
from listenwell.errors import InputError
from listenwell.evaluation.empathy import Reads, read_pairs
from listenwell.metrics import realization

TASK = "realization"
_FACTORS = (("cm_realized", "mechanisms"), ("da_realized", "act"), ("em_realized", "tone"))
RULE = (
    "share of replies in which our annotators read the factor they were planned with; CM: all three "
    "mechanisms alike"
)


def measure_realization(
    plans: Sequence[Factors], contexts: Sequence[Dialogue], replies: Sequence[str], readers: Reads
) -> dict[str, float]:
    """The share of replies that show their plan, factor by factor and all at once, in percent.

    Args:
        plans: what each reply was meant to do; a factor that no plan decides is left out.
        contexts: what was said before.
        replies: what was said then.
        readers: the annotators, with REPLY_HEADS.
    """
    found = read_pairs(contexts, replies, readers)
    return agreement(plans, found)


def agreement(plans: Sequence[Factors], found: Sequence[Factors]) -> dict[str, float]:
    """The same from what was read: equal factors in percent, over the replies whose plan decides them."""
    figures: dict[str, float] = {}
    decided: list[str] = []
    for name, field in _FACTORS:
        pairs = [
            (planned, getattr(read, field))
            for plan, read in zip(plans, found, strict=True)
            if (planned := getattr(plan, field)) is not None
        ]
        if not pairs:
            continue
        if any(read is None for _, read in pairs):
            raise InputError(
                f"The {field} of a reply was not read.", f"Ask for the heads {', '.join(REPLY_HEADS)}."
            )
        decided.append(field)
        figures[name] = realization([planned for planned, _ in pairs], [read for _, read in pairs])
    if not figures:
        raise InputError("No reply has a plan.", "Name replies of a generator that plans.")
    if len(decided) > 1:
        alike = [
            all(getattr(plan, field) in (None, getattr(read, field)) for field in decided)
            for plan, read in zip(plans, found, strict=True)
        ]
        figures["all_realized"] = 100 * sum(alike) / len(alike)
    return figures
