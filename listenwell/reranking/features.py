"""Reranking features: pure functions from a reply, and what is known of it, to a number.

Most need no model and find what a reply should not do: repeat itself or the dialogue, quote the persona,
consist of stock phrases, stop in the middle, ask a question that fits anything, or be too short. Those that
come from the annotators' probabilities say how far it follows its plan, and its level of each mechanism.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from listenwell.dialogue import Candidate, Dialogue, Factors
from listenwell.labels import LEVELS, MECHANISMS
from listenwell.metrics import STOCK_PHRASES
from listenwell.words import expanded, longest_common_run, ngrams, sentences, spoken_words, word_set, words

if TYPE_CHECKING:
    from listenwell.annotators.annotator import Annotator

Probabilities = Mapping[str, Mapping[str, float]]
"""Head to label to probability, the likeliest label first."""

ENOUGH_WORDS = 9
"""A reply of this many words is long enough; half of the human replies have at least 11."""
PERSONA_RUN = 5
"""Words in a row that count as a quotation of a persona line; "i have a dog" is too common to be one."""
REPEATED_RUN = 4
"""Words in a row that two different replies seldom share."""
LOOP_RUN = 3
"""Words in a row that a reply of three sentences seldom contains twice."""
ECHO_RUN = 6
"""Words in a row that are rarely repeated from the other person without turning "my" into "your"."""
ALIKE = 0.8
"""Two sentences are the same if they share this part of the shorter one's words."""
SHORTEST_SENTENCE = 3
"""Shorter sentences ("oh no!", "thank you!") may be repeated."""
LONGEST_GENERIC_QUESTION = 6
"""Words."""

DANGLING = word_set("a an the and or but my your their our because if than i'm i've you're which into very")
"""Words that no sentence ends with. "to", "with" and "is" can: "i would love to"."""
GENERIC_QUESTION_WORDS = word_set("""
    what why when where who how which really oh is was are were did do does that this it so happened you he
    she they and then ok okay wow hmm huh for to of your the a mean made make happen come
    """)
"""Words of questions that fit any conversation."""


def brevity(reply: str) -> float:
    """How far a reply is from being long enough, from 0 to 1: "Good luck." is close to 1."""
    return max(0.0, 1 - len(spoken_words(reply)) / ENOUGH_WORDS)


def copied_persona(reply: str, persona: Iterable[str]) -> float:
    """The largest part of a persona line that the reply quotes in one run, from 0 to 1; 0 below 5 words."""
    reply_words, largest = spoken_words(reply), 0.0
    for line in persona:
        line_words = spoken_words(line)
        run = longest_common_run(reply_words, line_words)
        if run >= PERSONA_RUN:
            largest = max(largest, run / len(line_words))
    return largest


def stock_phrases(reply: str) -> tuple[str, ...]:
    """The phrases of `metrics.STOCK_PHRASES` that a reply holds, in the order of that list."""
    text = f" {' '.join(map(expanded, words(reply)))} "
    return tuple(phrase for phrase in STOCK_PHRASES if f" {phrase} " in text)


def generic_response(reply: str) -> float:
    """How much of a reply consists of stock phrases, from 0 to 1.

    "I am so sorry to hear that." is close to 1; followed by two specific sentences it counts less. Words that
    several phrases share count once.
    """
    count = len(spoken_words(reply))
    stock_words = {word for phrase in stock_phrases(reply) for word in phrase.split()}
    return min(1.0, len(stock_words) / count) if count else 0.0


def repetition(reply: str, dialogue: Dialogue) -> float:
    """How much a reply repeats, from 0 to 1: earlier replies, itself, or the other person's last turn."""
    own_turns = [turn.text for turn in dialogue.turns if turn.speaker == dialogue.listener]
    other_turns = [turn.text for turn in dialogue.turns if turn.speaker != dialogue.listener]
    echoed = echo(reply, other_turns[-1]) if other_turns else 0.0
    return max(repeated_from(reply, own_turns), loops(reply), echoed)


def repeated_from(reply: str, earlier: Sequence[str]) -> float:
    """The part of a reply that earlier turns hold: of its runs of 4 words, or of its sentences."""
    runs = list(ngrams(spoken_words(reply), REPEATED_RUN))
    earlier_runs = {run for turn in earlier for run in ngrams(spoken_words(turn), REPEATED_RUN)}
    earlier_sentences = {
        sentence for turn in earlier for sentence in sentences(turn) if len(sentence) >= SHORTEST_SENTENCE
    }
    own = sentences(reply)
    repeats = [
        sentence in earlier_sentences or any(_alike(sentence, other) for other in earlier_sentences)
        for sentence in own
    ]
    return max(
        sum(run in earlier_runs for run in runs) / len(runs) if runs else 0.0,
        sum(repeats) / len(own) if own else 0.0,
    )


def _alike(first: Sequence[str], second: Sequence[str]) -> bool:
    """Whether two sentences differ in a word or two only: "did you (try to) talk to him?"."""
    shared = sum((Counter(first) & Counter(second)).values())
    return shared >= REPEATED_RUN and shared >= ALIKE * min(len(first), len(second))


def loops(reply: str) -> float:
    """The part of a reply that it contains a second time: of its runs of 3 words, or of its sentences."""
    runs = list(ngrams(spoken_words(reply), LOOP_RUN))
    own = [sentence for sentence in sentences(reply) if len(sentence) >= SHORTEST_SENTENCE]
    return max(
        1 - len(set(runs)) / len(runs) if runs else 0.0,
        1 - len(set(own)) / len(own) if own else 0.0,
    )


def echo(reply: str, turn: str) -> float:
    """The part of a reply that repeats the other person's turn in one run; 0 below 6 words.

    A reply that holds nothing else counts from 3 words on.
    """
    reply_words, turn_words = spoken_words(reply), spoken_words(turn)
    run = longest_common_run(reply_words, turn_words)
    least = SHORTEST_SENTENCE if run == len(reply_words) else ECHO_RUN
    return run / len(reply_words) if reply_words and run >= least else 0.0


def unfinished(reply: str) -> bool:
    """Whether a reply was cut off: it ends with an ellipsis, a comma, or a word such as "and".

    A missing full stop is no sign of it: people leave it out.
    """
    text = reply.rstrip().rstrip("\"'”’")
    last = (spoken_words(text) or ("",))[-1]
    return not text or text.endswith(("…", ",")) or (text[-1].isalnum() and last in DANGLING)


def generic_question(reply: str) -> bool:
    """Whether a reply is only a question that fits any conversation: "what happened?", "really?"."""
    reply_words = spoken_words(reply)
    return (
        reply.rstrip().endswith("?")
        and len(reply_words) <= LONGEST_GENERIC_QUESTION
        and set(reply_words) <= GENERIC_QUESTION_WORDS
    )


def predict_candidates(
    annotator: "Annotator", dialogue: Dialogue, candidates: Sequence[Candidate]
) -> list[Probabilities | None]:
    """The annotators' probabilities of all candidates, in one batch; None for one without plan or text."""
    planned = [index for index, reply in enumerate(candidates) if reply.plan and reply.text.strip()]
    predictions: list[Probabilities | None] = [None] * len(candidates)
    if planned:
        texts = [candidates[index].text for index in planned]
        for index, readings in zip(planned, annotator.read_replies(dialogue, texts), strict=True):
            predictions[index] = {
                reading.head: {score.label: score.probability for score in reading.scores}
                for reading in readings
            }
    return predictions


def plan_adherence(
    predictions: Sequence[Probabilities | None],
    candidates: Sequence[Candidate],
    target: Factors | None = None,
) -> list[float | None]:
    """The probability that each candidate does what its plan says, 0 to 1; None where there is no plan.

    A target counts instead of the plan, by its least likely part.
    """
    return [
        None
        if prediction is None or candidate.plan is None
        else mean_probability(candidate.plan, prediction)
        if target is None
        else least_probability(target, prediction)
        for prediction, candidate in zip(predictions, candidates, strict=True)
    ]


def mechanism_levels(predictions: Sequence[Probabilities | None], mechanism: str) -> list[float | None]:
    """EPITOME's level of a mechanism in each candidate, 0 to 2: the likeliest one."""
    return [
        float(LEVELS.index(next(iter(prediction[mechanism]))))
        if prediction and mechanism in prediction
        else None
        for prediction in predictions
    ]


def mean_probability(plan: Factors, prediction: Probabilities) -> float | None:
    """The mean probability of the plan's factors; None where none of them was predicted.

    Mechanisms are one factor: the mean over ER, IP and EX of the planned yes or no, where weak and strong are
    yes (CoMAE §4.2). The user's emotion is no part of what a reply does.
    """
    mechanisms = _mechanisms(plan, prediction)
    parts = [
        *([sum(mechanisms) / len(mechanisms)] if mechanisms else []),
        *_act_and_expressed_emotion(plan, prediction),
    ]
    return sum(parts) / len(parts) if parts else None


def least_probability(target: Factors, prediction: Probabilities) -> float | None:
    """The least probability of a target's parts, each mechanism being one of them."""
    return min(
        [*_mechanisms(target, prediction), *_act_and_expressed_emotion(target, prediction)], default=None
    )


def _mechanisms(plan: Factors, prediction: Probabilities) -> list[float]:
    """For each mechanism that was predicted, the probability that it is present or absent as planned."""
    if plan.mechanisms is None:
        return []
    absent = {name: prediction[name].get(LEVELS[0], 0.0) for name in MECHANISMS if name in prediction}
    return [1 - value if name in plan.mechanisms else value for name, value in absent.items()]


def _act_and_expressed_emotion(plan: Factors, prediction: Probabilities) -> list[float]:
    """The probabilities of the planned act and expressed emotion, as far as they were predicted."""
    planned = (("act", plan.act), ("expressed_emotion", plan.expressed_emotion))
    return [prediction[head].get(label, 0.0) for head, label in planned if label and head in prediction]
