"""Repetition: of what the listener said before, of itself, or of the other person's last words."""

from collections import Counter
from collections.abc import Sequence

from listenwell.dialogue import Dialogue
from listenwell.words import longest_common_run, ngrams, sentences, spoken_words

RUN = 4
"""Words in a row that two different replies seldom share."""
LOOP = 3
"""Words in a row that a reply of three sentences seldom says twice."""
PARROTED = 6
"""Words in a row that nobody takes from the other's mouth without turning "my" into "your"."""
ALIKE = 0.8
"""Of the shorter sentence's words, from where on two sentences say the same."""
SHORTEST = 3
"""Shorter sentences ("oh no!", "thank you!") may come again."""


def repeated(reply: str, dialogue: Dialogue) -> float:
    """How much a reply repeats, from 0 to 1: the worst of its three ways."""
    own = [turn.text for turn in dialogue.turns if turn.speaker == dialogue.listener]
    others = [turn.text for turn in dialogue.turns if turn.speaker != dialogue.listener]
    return max(said_before(reply, own), loops(reply), parroted(reply, others[-1]) if others else 0.0)


def said_before(reply: str, earlier: Sequence[str]) -> float:
    """The share of the reply that was said in earlier turns: of its runs of 4 words, or of its sentences."""
    runs = list(ngrams(spoken_words(reply), RUN))
    known = {run for turn in earlier for run in ngrams(spoken_words(turn), RUN)}
    whole = {sentence for turn in earlier for sentence in sentences(turn) if len(sentence) >= SHORTEST}
    own = sentences(reply)
    again = [sentence in whole or any(_alike(sentence, other) for other in whole) for sentence in own]
    return max(
        sum(run in known for run in runs) / len(runs) if runs else 0.0,
        sum(again) / len(own) if own else 0.0,
    )


def _alike(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two sentences are the same but for a word or two: "did you (try to) talk to him?"."""
    shared = sum((Counter(one) & Counter(other)).values())
    return shared >= RUN and shared >= ALIKE * min(len(one), len(other))


def loops(reply: str) -> float:
    """The share of the reply that it says a second time: of its runs of 3 words, or of its sentences."""
    runs = list(ngrams(spoken_words(reply), LOOP))
    own = [sentence for sentence in sentences(reply) if len(sentence) >= SHORTEST]
    return max(
        1 - len(set(runs)) / len(runs) if runs else 0.0,
        1 - len(set(own)) / len(own) if own else 0.0,
    )


def parroted(reply: str, said: str) -> float:
    """The share of the reply that is the other person's words in one row; 0 below 6 words.

    A reply that is nothing but the other's words is one from 3 words on.
    """
    own, theirs = spoken_words(reply), spoken_words(said)
    run = longest_common_run(own, theirs)
    least = SHORTEST if run == len(own) else PARROTED
    return run / len(own) if own and run >= least else 0.0
