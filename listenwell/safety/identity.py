"""Fixed answers to the question whether a person is there: a program must not pass for a human.

A generator trained on human replies says "I am" to "are you a real person?". The reply filter cannot see what
these two words claim, so the question is detected before generation.
"""

import re
from collections.abc import Sequence

from listenwell.safety.answers import AGAIN, FIRST, IDENTITY, answers
from listenwell.safety.normalizer import normalize

_BEGIN = (
    r"(?:^|[.?]) (?:(?:so|but|and|wait|hey|hi|hello|ok|okay|hmm|um|oh|well|sorry|honestly|seriously|please|"
    r"tell me|be honest|can i ask|may i ask|let me ask|just curious|quick question|by the way|"
    r"first|thanks|thank you|i wonder|listenwell)(?: ,)? ){0,3}"
)
"""The start of a sentence: "he asked whether you are a robot" asks nothing here."""
_ADVERBS = r"(?:(?:really|actually|even|just|truly|maybe|perhaps|not|also|sure you are) )*"
_A = r"(?:(?:a|an|some|any|real|actual|living|live|human|fellow|computer|chat|automated|artificial) )*"
_BEING = (
    r"(?:human|humans|human being|person|people|robot|bot|chatbot|machine|computer|program|software|ai|"
    r"algorithm|intelligence|language model)"
)
_END = r"(?= (?:$|(?:[.?,]|or|and|too|at all|like|behind|then) ))"
_ASKED = re.compile(
    _BEGIN
    + rf"(?:are you {_ADVERBS}(?:{_A}{_BEING}|real|alive|conscious|sentient){_END}"
    + rf"|am i {_ADVERBS}(?:talking|speaking|chatting|writing|texting) (?:to|with) {_A}{_BEING}{_END}"
    + rf"|is this {_ADVERBS}{_A}{_BEING}{_END}"
    + rf"|is there {_ADVERBS}{_A}(?:human|person|somebody|someone|anybody|anyone) (?:there|here|behind)"
    + rf"|do you {_ADVERBS}(?:have|feel|experience) (?:(?:any|real|human|your|own|true) )*"
    rf"(?:feelings|emotions|consciousness|a soul|a body){_END}"
    + rf"|can you {_ADVERBS}(?:feel|have) (?:(?:any|real|human) )*"
    rf"(?:feelings|emotions|pain|love|sadness|joy|happiness|anything|things|sad|happy){_END}"
    + rf"|(?:who|what) {_ADVERBS}are you(?: {_ADVERBS})? ?(?=[.?]|$))"
)


def asks_who(message: str) -> bool:
    """Whether a message asks if the listener is a person or a program, or has feelings."""
    return _ASKED.search(normalize(message).text) is not None


def who(own_turns: Sequence[str]) -> str:
    """The fixed answer; a shorter one if the listener gave it before."""
    first, again = (" ".join(answers()[IDENTITY][part]) for part in (FIRST, AGAIN))
    return again if first in own_turns else first
