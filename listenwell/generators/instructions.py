"""Plans for models that were not trained with any: acts that fit the emotion, told in words."""

from dataclasses import replace

from listenwell.dialogue import Factors
from listenwell.labels import GROUP_MEMBERS, GROUP_OF_EMOTION
from listenwell.pipeline import Emotions

ACTS = {
    "acknowledging": "acknowledge what they said",
    "agreeing": "agree with them",
    "consoling": "console them",
    "encouraging": "encourage them",
    "questioning": "ask them one question about it",
    "suggesting": "suggest something gently",
    "sympathizing": "say that you feel with them",
    "wishing": "wish them well",
    "others": "simply answer",
}
MECHANISMS = {
    "emotional_reaction": "show warmth, compassion or concern",
    "interpretation": "say what you understand of their feelings or what they live through",
    "exploration": "gently explore what they have not said",
}
PLEASANT_GROUPS = ("prepared", "hopeful", "grateful", "excited", "proud", "sentimental", "trusting", "caring")
"""Groups of pleasant emotions."""
ACTS_IF_PLEASANT = ("acknowledging", "questioning", "encouraging", "wishing")
ACTS_IF_UNPLEASANT = ("sympathizing", "questioning", "acknowledging", "consoling", "encouraging")


def plans_for(emotion: Emotions | None, target: Factors, count: int) -> tuple[Factors, ...]:
    """Plans with different acts, at most so many; the emotion is the annotators' if the target has none."""
    label = target.emotion or (emotion[0].label if emotion else None)
    target = replace(target, emotion=label)
    if target.act is not None:
        return (target,)
    is_pleasant = label is not None and GROUP_OF_EMOTION[label] in PLEASANT_GROUPS
    acts = (ACTS_IF_PLEASANT if is_pleasant else ACTS_IF_UNPLEASANT)[:count]
    return tuple(replace(target, act=act) for act in acts)


def instruction(plan: Factors) -> str:
    """A plan in words, for a model that was not trained with plans."""
    parts = [f"They feel {_near(plan.emotion)}."] if plan.emotion else []
    if plan.mechanisms:
        parts.append(f"In your reply, {'; '.join(MECHANISMS[name] for name in plan.mechanisms)}.")
    if plan.act:
        parts.append(f"Above all, {ACTS[plan.act]}.")
    if plan.expressed_emotion and plan.expressed_emotion != "neutral":
        parts.append(f"Let {plan.expressed_emotion} be heard in it.")
    return " ".join(parts)


def _near(emotion: str) -> str:
    """An emotion, and the group of near ones where it is not its own."""
    group = GROUP_OF_EMOTION[emotion]
    return emotion if group == emotion or emotion not in GROUP_MEMBERS[group] else f"{emotion} ({group})"
