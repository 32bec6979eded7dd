"""Fixed answers to everyday turns that are no story: thanks, goodbyes, greetings, requests, other languages.

The generator takes every message for something that happened; these need a short usual answer instead. Only
short messages that are nothing else are answered here, so that no story is.
"""

import re
from collections.abc import Callable, Sequence

LONGEST = 12
"""Words of a message that may be an everyday turn."""
MOST_CHARACTERS = 120

ANSWERS: dict[str, tuple[str, ...]] = {
    "thanks": (
        "You're welcome. I'm glad it helped to talk.",
        "You're welcome. I'm here whenever you want to talk.",
        "Of course. Take good care of yourself.",
    ),
    "goodbye": (
        "Goodbye, and take care. I'm here whenever you want to talk.",
        "Take care. Thank you for talking with me.",
    ),
    "greeting": (
        "Hello! It's good to hear from you. How are you today?",
        "Hello again. What is on your mind?",
    ),
    "how_are_you": (
        "Thank you for asking. I'm a program, so I have no good or bad days. How are you today?",
        "I'm a program, so every day is the same for me. What has your day been like?",
    ),
    "request": (
        "I'm made for listening, so I can't help well with that. Is there something on your mind?",
        "That is not something I can do; I'm here to listen. How are things with you?",
    ),
    "identity": (
        "I'm a program: I don't see, feel or believe things as a person does. I'm here to listen. "
        "What is on your mind?",
        "As I said, I'm a program. I'm still here to listen.",
    ),
    "insult": (
        "I'm sorry that I'm not helping. I'd like to understand better. What do you need right now?",
        "You may be angry with me. I'm still here if you want to talk.",
    ),
    "language": (
        "I'm sorry, I only understand English. Can you tell me in English?",
        "I'm sorry, I can't follow that language. English works best with me.",
    ),
    "nonsense": (
        "I'm not sure how to read that. What would you like to tell me?",
        "I can't make sense of that, but I'm listening. What is going on?",
    ),
    "unsure": (
        "That's all right, you don't have to know. I'm here if you want to say more.",
        "It's fine not to know. Take your time.",
    ),
    "short": ("Okay. I'm here if you want to say more.", "I'm listening. Take your time."),
    "laugh": ("Ha! What made you laugh?", "I'm glad there is something to laugh about."),
}

_START = r"^(?:(?:ok|okay|oh|ah|aw|well|right|great|good|anyway|alright|hey|hi|yes|yeah|no|and|so|but|um) )*"
_THANKS = re.compile(
    _START + r"(?:thank (?:you|u|ya)|thanks|thanx|thx|ty|tysm|cheers|ta|much (?:appreciated|obliged)|"
    r"bless you)(?: (?:so|very|really|again|much|a lot|a million|a bunch|"
    r"for (?:the )?(?:listening|talking|that|this|everything|help|chat|your (?:help|time))|"
    r"for listening to me|i (?:really )?appreciate (?:it|that|you)|dear|mate|friend|bud|you helped|"
    r"that helped|that helps))*$"
)
_LEAVING = (
    r"(?:good ?bye+|by+e+|good ?night|night night|nighty night|cya|see (?:you|ya)|ttyl|gtg|g2g|farewell|"
    r"so long|i(?:'ve)? (?:got|have|need) to go|gotta (?:go|run)|talk (?:to you )?(?:later|soon|tomorrow)|"
    r"good (?:evening|day) to you|take care|speak soon|signing off|(?:i'm )?(?:heading )?off to bed)"
)
_BYE = re.compile(
    rf"(?:(?:{_LEAVING}|ok|okay|oh|well|right|anyway|alright|thanks|thank you|thx|so much|"
    r"for (?:listening|now|today)|now|then|and|later|soon|tomorrow|all|everyone|mate|dear|friend|again|xx?|"
    r"sleep well)(?: |$))+\Z"
)
_GREETING = re.compile(
    r"^(?:(?:oh|well|um|and|no worries) )*(?:hi+|hello+|hey+|heya|hiya|yo|sup|howdy|greetings|hallo|hullo|"
    r"namaste|g'day|good (?:morning|afternoon|evening|day)|morning|evening|afternoon)"
    r"(?: (?:there|again|you|all|hello|hi|hey|listener|friend|everyone|to you|bot|mate|love|dear|anyway))*$"
)
_HOW = re.compile(r"^(?:\w+ ){0,4}how (?:are|r) (?:you|u|things)(?: (?:doing|today|then|now|feeling))*$")
_REQUEST = re.compile(
    _START + r"(?:(?:please|pls|can you|could you|would you|will you|i need you to) )*"
    r"(?:write|code|translate|calculate|compute|solve|generate|compose|draw|program|convert|summari[sz]e|"
    r"name (?:the|all|three|two|five)|list (?:the|all)|spell|define|recite|sing|tell me (?:a joke|the))\b"
)
_FACT = re.compile(
    _START + r"(?:what|what's|which|who|who's|when|where|how (?:many|much|far|long|old|tall|big))\b.*"
    r"(?:\d|\b(?:capital|president|country|countries|planets?|weather|temperature|population|recipe|spell|"
    r"plural|square|grams?|ounces?|kilomet\w+|miles|percent|degrees|film|movie|song|actor|author|world cup|"
    r"election|vote|language)\b)"
)
_PERSONAL = re.compile(
    r"\b(?:i|i'm|i've|my|me|mine|you|your|u|we|our|us|he|she|they|him|her|them|his|their|this|that|it)\b"
)
_MATHS = re.compile(r"(?:what(?:'s| is) )?[\d.,() ]+(?:[-+*/x×÷^%=][\d.,() ]*)+\??\Z")
_IDENTITY = re.compile(  # what identity.py does not ask about
    _START + r"(?:(?:wait|seriously|honestly|listen|sorry) )*(?:(?:do|can|did) (?:you|u)|if i unplug)\b.*"
    r"\b(?:believe in god|see me|hear me|wifi|camera|typing)\b"
)
_INSULT = re.compile(
    _START + r"(?:(?:you|u|you're|you are|ur|youre)(?: (?:are|r|so|just|really|such|a|totally)){0,3} "
    r"(?:useless|stupid|dumb|idiot|rubbish|pathetic|boring|worthless|crap|trash|garbage|moron|suck|annoying)|"
    r"shut up$|i hate you|(?:(?:dumb|stupid|useless) )+(?:bot|chatbot|ai|program)$|"
    r"stop asking (?:me )?questions)\b"
)
_OTHER = frozenset(
    """
    hola gracias hablas habla español estoy muy pero bonjour merci je suis pas vous avec est très ich
    nicht und danke bitte heute mir geht das ist ein guten tag ciao grazie sono molto oggi che olá
    obrigado obrigada não estou você como estás está bugün nasılsın teşekkürler merhaba cześć jestem
    dziękuję hej jag är tack kamusta salamat hoe gaat het met goed niet dag wie bist puedes ayudarme por
    favor triste qué tal ça va français discuter deutsch kann weiterschreiben jak się masz português
    fala tudo bem oi piove oggi voglia svenska får på skriva nederlands versta mij
    """.split()  # noqa: SIM905
)
_UNSURE = frozenset("idk dunno unsure".split())  # noqa: SIM905
_SHORT = frozenset("ok okay k kk fine meh hm hmm hmmm mhm sure whatever nothing nvm eh".split())  # noqa: SIM905
_LAUGH = frozenset("lol lmao haha hahaha hehe rofl".split())  # noqa: SIM905
_MASH = re.compile(r"[bcdfghjklmnpqrstvwxz]{5,}")


def everyday_answer(message: str, own_turns: Sequence[str]) -> str | None:
    """The fixed answer to an everyday turn, one that was not given before; None for everything else."""
    kind = everyday_kind(message)
    if kind is None:
        return None
    return next((text for text in ANSWERS[kind] if text not in own_turns), ANSWERS[kind][-1])


def everyday_kind(message: str) -> str | None:
    """Which of ANSWERS a message asks for."""
    if len(message) > MOST_CHARACTERS:
        return None
    text = message.casefold().replace("’", "'")
    words = re.findall(r"[^\W\d_]+(?:'[^\W\d_]+)?|\d+", text)
    if len(words) > LONGEST:
        return None
    if _MATHS.match(text.strip()):
        return "request"
    if not any(word.isalpha() for word in words):
        return "nonsense" if text.strip() and not words else None
    plain, is_question = " ".join(words), "?" in message
    return next((kind for kind, test in _TESTS if test(plain, words, is_question)), None)


Test = Callable[[str, Sequence[str], bool], bool]


def _is_foreign(words: Sequence[str]) -> bool:
    letters = "".join(words)
    latin = sum(letter < "ɐ" for letter in letters)
    known = sum(word in _OTHER for word in words)
    return latin < len(letters) / 2 or (known >= 2 and known >= len(words) / 3)


_TESTS: tuple[tuple[str, Test], ...] = (
    ("language", lambda text, words, asks: _is_foreign(words)),
    (
        "goodbye",
        lambda text, words, asks: not asks and bool(_BYE.match(text)) and bool(re.search(_LEAVING, text)),
    ),
    (
        "thanks",
        lambda text, words, asks: not asks and bool(_THANKS.match(text)),
    ),
    ("how_are_you", lambda text, words, asks: bool(_HOW.match(text))),
    ("greeting", lambda text, words, asks: bool(_GREETING.match(text))),
    ("identity", lambda text, words, asks: bool(_IDENTITY.match(text))),
    ("insult", lambda text, words, asks: bool(_INSULT.match(text))),
    ("request", lambda text, words, asks: bool(_REQUEST.match(text))),
    ("request", lambda text, words, asks: asks and bool(_FACT.match(text)) and not _PERSONAL.search(text)),
    ("unsure", lambda text, words, asks: len(words) <= 2 and words[0] in _UNSURE),
    ("short", lambda text, words, asks: len(words) == 1 and words[0] in _SHORT and not asks),
    ("laugh", lambda text, words, asks: len(words) == 1 and words[0] in _LAUGH),
    ("nonsense", lambda text, words, asks: len(words) <= 3 and all(map(_MASH.search, words))),
)
"""In this order: a goodbye with thanks is a goodbye."""
