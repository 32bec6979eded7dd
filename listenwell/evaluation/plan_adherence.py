"""Plan adherence: how many replies carry out their plan (realization in CoMAE, Zheng et al. 2021, Table 5).

A reply is generated under a plan, the annotators label it, and a factor is realized where the two agree. The
paper takes plans that the model sampled; ours are those of the human replies ("gold") or the generator's own
("predicted"), and the row says which.
"""

from collections.abc import Sequence

from listenwell.annotators.replies import REPLY_HEADS
from listenwell.dialogue import Dialogue, Factors
from listenwell.errors import InputError
from listenwell.evaluation.empathy import ReplyAnnotator, annotate_replies
from listenwell.metrics import realization

TASK = "realization"
_FACTORS = (("cm_realized", "mechanisms"), ("da_realized", "act"), ("em_realized", "tone"))
RULE = (
    "share of replies in which our annotators read the factor they were planned with; CM: all three "
    "mechanisms alike"
)


def measure_plan_adherence(
    plans: Sequence[Factors],
    contexts: Sequence[Dialogue],
    replies: Sequence[str],
    annotator: ReplyAnnotator,
) -> dict[str, float]:
    """The share of replies that carry out their plan, factor by factor and all at once, in percent.

    Args:
        plans: of each reply; a factor that no plan decides is left out.
        contexts: the dialogue before each reply.
        replies: of the system.
        annotator: with REPLY_HEADS.
    """
    return agreement(plans, annotate_replies(contexts, replies, annotator))


def agreement(plans: Sequence[Factors], labelled: Sequence[Factors]) -> dict[str, float]:
    """Equal factors in percent, over the replies whose plan decides them; `labelled` are the replies' own."""
    measured: dict[str, float] = {}
    decided: list[str] = []
    for name, factor in _FACTORS:
        pairs = [
            (planned, getattr(reply, factor))
            for plan, reply in zip(plans, labelled, strict=True)
            if (planned := getattr(plan, factor)) is not None
        ]
        if not pairs:
            continue
        if any(shown is None for _, shown in pairs):
            raise InputError(
                f"The {factor} of a reply was not predicted.", f"Load the heads {', '.join(REPLY_HEADS)}."
            )
        decided.append(factor)
        measured[name] = realization([planned for planned, _ in pairs], [shown for _, shown in pairs])
    if not measured:
        raise InputError("No reply has a plan.", "Name replies of a generator that plans.")
    if len(decided) > 1:
        complete = [
            all(getattr(plan, factor) in (None, getattr(reply, factor)) for factor in decided)
            for plan, reply in zip(plans, labelled, strict=True)
        ]
        measured["all_realized"] = 100 * sum(complete) / len(complete)
    return measured
