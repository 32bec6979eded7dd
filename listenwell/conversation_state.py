"""The state of a conversation: what a small generator loses from view after a few turns.

Read anew from the turns before the last message: the gravest event so far and what was felt about it, names,
and what the listener asked already. The generator is trained with it as a line before its reply, the planner
leaves out glad tones while a loss is open, and `Reply.state` shows it.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from listenwell.dialogue import OPEN_LOSS, STATE, ConversationState, Dialogue, Scored, Turn

GOOD_NEWS = frozenset(
    {"confident", "content", "excited", "grateful", "hopeful", "impressed", "joyful", "proud"}
)
"""What is felt about good news; a glad tone fits again."""
LOSS = 2
"""The gravity from which an event is a loss."""
MOST_WORDS = 24
"""Of an event."""
MOST_NAMES, MOST_QUESTIONS = 4, 2

_FAMILY = (
    r"mum|mom|mother|dad|father|husband|wife|partner|son|daughter|baby|child|brother|sister|twin|aunt|uncle|"
    r"cousin|niece|nephew|gran\w*|nan|nana|friend|dog|puppy|cat|kitten|horse|rabbit|hamster|parrot|bird"
)
_GRAVITY: tuple[tuple[int, re.Pattern[str]], ...] = tuple(
    (weight, re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE))
    for weight, pattern in (
        (
            3,
            r"died|dead|death|dying|dies|passed away|passed on|funeral|killed|buried|cremat\w+|miscarr\w+|"
            r"stillborn|terminal|hospice|widow\w*|put (?:(?:him|her|it|them) )?(?:down|to sleep)|"
            rf"lost (?:my|our|his|her|their|the) (?:\w+ )?(?:{_FAMILY})",
        ),
        (
            2,
            r"cancer|tumou?r|stroke|heart attack|diagnos\w+|chemo\w*|dementia|alzheimer'?s|hospital|surgery|"
            r"accident|crash\w*|laid off|got fired|fired me|let me go|redundan\w+|lost (?:my|his|her) job|"
            r"divorc\w+|broke up|broken up|left me|cheat(?:ed|ing) on|evict\w+|homeless|robbed|burgl\w+|"
            r"assault\w*|attacked|bankrupt\w*|burn(?:ed|t) down|missing since|ran away",
        ),
        (
            1,
            r"sick|ill|injur\w+|fail(?:ed|ing)?|reject\w+|lost|stolen|stole|hurt|fight|argu\w+|scared|afraid|"
            r"alone|lonely|cry|crying|cried|betray\w*|lied|debt\w*|bullied|ghosted|forgot|broke|worried",
        ),
    )
)
_FIGURE = re.compile(
    r"\b(?:dead (?:tired|serious|right|end|line|easy)|die[ds]? (?:laughing|of (?:laughter|shame|boredom))|"
    r"to die for|dying (?:to|laughing)|drop dead|killed it|killing it|phone died|battery died|car died)\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[^.!?…\n]+[.!?…]*")
_NAME = re.compile(
    rf"\b(?i:my|our|his|her|their)\s+(?:\w+\s+)?({_FAMILY}|boss|neighbour|neighbor|teacher|colleague|boyfriend|"
    r"girlfriend|roommate|flatmate)[,]?\s+(?:called\s+|named\s+)?([A-Z][a-z]+)\b"
)
_CAPITAL = re.compile(r"(?<=[a-z,;] )([A-Z][a-z]{2,})\b")
_NO_NAME = frozenset(
    """
    Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March April May June
    July August September October November December Christmas Easter Halloween Thanksgiving God Lord
    Mum Mom Dad Grandma Grandpa Nan English French Spanish German Chinese Internet Facebook
    Instagram Amazon Google Zoom
    """.split()  # noqa: SIM905 - one word a name is easier to extend
)


def read_state(dialogue: Dialogue) -> tuple[ConversationState, int]:
    """The state before the last message, and the number of the turn with the gravest event.

    The feeling is taken from the readings of that turn, where it has any. A dialogue with one message of the
    person has an empty state.
    """
    end = _last_message(dialogue)
    earlier = [(number, turn) for number, turn in enumerate(dialogue.turns[:end])]
    said = [(number, turn) for number, turn in earlier if turn.speaker != dialogue.listener]
    if not said:
        return ConversationState(), -1
    number, event, weight = max(_events(said), key=lambda candidate: candidate[2])
    reading = dialogue.turns[number].reading("emotion")
    state = ConversationState(
        event,
        weight,
        reading.scores[0].label if reading else "",
        tuple(dict.fromkeys(_names(" ".join(turn.text for _, turn in said))))[:MOST_NAMES],
        tuple(_questions(turn for _, turn in earlier if turn.speaker == dialogue.listener))[-MOST_QUESTIONS:],
    )
    return state, number


def with_state(
    dialogue: Dialogue, state: ConversationState | None = None, feeling: str | None = None
) -> Dialogue:
    """The dialogue with its state as notes for planners and generators.

    Args:
        dialogue: ends with the person's message.
        state: where it is already known.
        feeling: what the last message was felt with: good news ends a loss.
    """
    if state is None:
        state, _ = read_state(dialogue)
    notes = {name: text for name, text in dialogue.notes if name not in (STATE, OPEN_LOSS)}
    if line := state.line():
        notes[STATE] = line
    if is_open_loss(state, feeling):
        notes[OPEN_LOSS] = "true"
    return replace(dialogue, notes=tuple(notes.items()))


Annotate = Callable[[Sequence[Dialogue]], Sequence[tuple[Scored, ...]]]
"""Predicts the emotion of each dialogue's last message, the likeliest first."""


def understood(
    dialogues: Sequence[Dialogue], annotate: Annotate | None
) -> tuple[list[tuple[Scored, ...] | None], list[ConversationState]]:
    """The emotion of each last message, and the state before it with what was felt about its event.

    Both are predicted in one batch; without `annotate` there are no emotions.
    """
    read = [read_state(dialogue) for dialogue in dialogues]
    if annotate is None or not dialogues:
        return [None] * len(dialogues), [state for state, _ in read]
    untold = [row for row, (state, turn) in enumerate(read) if turn >= 0 and not state.feeling]
    events = [replace(dialogues[row], turns=dialogues[row].turns[: read[row][1] + 1]) for row in untold]
    emotions = list(annotate([*dialogues, *events]))
    states = [state for state, _ in read]
    for row, emotion in zip(untold, emotions[len(dialogues) :], strict=True):
        states[row] = replace(states[row], feeling=emotion[0].label)
    return list(emotions[: len(dialogues)]), states


def without_state(dialogue: Dialogue) -> Dialogue:
    """The dialogue without its state."""
    return replace(dialogue, notes=tuple(note for note in dialogue.notes if note[0] != STATE))


def is_open_loss(state: ConversationState, feeling: str | None) -> bool:
    """Whether there was a loss and the last message, felt so, is no good news."""
    return state.gravity >= LOSS and feeling not in GOOD_NEWS


def gravity(text: str) -> int:
    """How grave the gravest word of a text is, 0 to 3; figures of speech count nothing."""
    plain = _FIGURE.sub(" ", text)
    return next((weight for weight, pattern in _GRAVITY if pattern.search(plain)), 0)


def _last_message(dialogue: Dialogue) -> int:
    """The number of the turn where the person's last message begins."""
    end = len(dialogue.turns)
    while end and dialogue.turns[end - 1].speaker != dialogue.listener:
        end -= 1
    return end


def _events(said: Sequence[tuple[int, Turn]]) -> Iterator[tuple[int, str, int]]:
    """Turn, sentence and gravity of every sentence; of equal ones `max` takes the first."""
    for number, turn in said:
        for sentence in _SENTENCE.findall(turn.text):
            words = sentence.split()
            if len(words) > 3:
                yield number, " ".join(words[:MOST_WORDS]), gravity(sentence)
    yield said[0][0], " ".join(said[0][1].text.split()[:MOST_WORDS]), -1


def _names(text: str) -> Iterator[str]:
    known = dict[str, str]()
    for relation, name in _NAME.findall(text):
        if name not in _NO_NAME:
            known.setdefault(name, relation.lower())
    for name in (*known, *_CAPITAL.findall(text)):
        if name not in _NO_NAME:
            yield f"{name} ({known[name]})" if name in known else name


def _questions(turns: Iterator[Turn]) -> list[str]:
    return [
        sentence.strip()
        for turn in turns
        for sentence in _SENTENCE.findall(turn.text)
        if sentence.rstrip().endswith("?")
    ]
