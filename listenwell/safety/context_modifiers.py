"""Context that changes the meaning of a match: negation, past, jokes, songs, figures of speech."""

import re

from listenwell.safety.patterns.base import (
    ABUSE,
    EMERGENCY,
    HARM_TO_OTHERS,
    SELF_HARM,
    SOMEONE_ELSE,
    SUICIDE,
    Pattern,
)
from listenwell.words import word_set

NONE, CONCERN, CRISIS = LEVELS = ("none", "concern", "crisis")
"""The severity levels: nothing, something to keep in mind, something to answer now."""
_MYSELF_SAID = re.compile(r" i (?:said|told|wrote)(?= )")
_WANTING = re.compile(r" i (?:\S+ ){0,3}?(?:want|wish|am going|will)(?= )")
NEGATIONS = word_set("not never no nor neither deny denied")
NO_DENIAL = word_set(
    "know sure stop help care only understand see mind one longer reason point joking kidding"
)
"""After a negation these deny nothing of what follows: "I do not know if I should"."""
OPENERS = word_set("if why but because until unless than then , how what when so and")
"""Between a negation and a phrase: here something else begins."""
_SPELT = re.compile(r"\b(?:not|never|no)\b")
"""In a pattern that spells a negation, it is part of the phrase."""
DENIED = re.compile(
    r" (?:(?:would|will|could|can|have|i) never|never (?:would|will|even|ever)?|(?:am|was|is|are|be|been) not"
    r"|(?:do|did) not (?:\S+ )?(?:want|plan|intend|feel|think|wish|have)|(?:will|would) not|"
    r"no (?:\S+ )?(?:thoughts?|plans?|"
    r"intentions?|desire|urges?|wish|longer)|neither|nor|deny|denied|said no to)(?: (?:any|going|"
    r"planning|trying|thinking|considering|"
    r"having|feeling|being|want|to|of|about|like|actually|really|actively|even|at all|thoughts|"
    r"thought|plans|a|currently|self)){0,5} $"
)
"""Before a phrase about oneself: only a plain denial is one. "I can not even kill myself" is none."""
REACH = 5
"""Words before a phrase in which a negation denies it."""
THIRD = word_set(
    "he she they who someone somebody guy girl man woman boy person husband wife boyfriend "
    "girlfriend partner ex father "
    "mother brother sister cousin uncle aunt son daughter kid child teacher friend roommate "
    "neighbour neighbor coworker "
    "colleague classmate student niece nephew grandpa grandma everyone people"
)
FIRST = word_set("i me my myself")
ASKED = re.compile(
    r" (?:asked|asks|asking|wondered) (?:me )?(?:if|whether) i (?:was|am|were|felt|had|wanted)"
)
PAST = re.compile(
    r" (?:used to|(?:years?|decades?|months) (?:ago|back|since|later)|years ago|when (?:i|we|she|he|"
    r"they) (?:was|were)|"
    r"in (?:high school|college|middle school|my (?:teens|twenties|youth|childhood)|the past|19\d\d|"
    r"20[012]\d)|"
    r"as a (?:kid|child|teen|teenager|boy|girl)|back (?:in|then|when)|growing up|childhood|(?:i|we|"
    r"she|he) once|once (?:i|when|stood|tried|upon)|a long time ago|"
    r"decade since|years since|in the (?:eighties|nineties)|last (?:century|decade)|at that time|"
    r"since then)(?= )"
)
OVERCOME = re.compile(
    r" (?:thoughts are (?:\S+ ){0,3}?(?:gone|rare|less|fewer)|(?:fine|better|okay|ok|happy|good|well|"
    r"safe|healthy|stable) (?:now|today|these days)|glad (?:that )?i am (?:here|alive|still)|"
    r"(?:love|enjoy) (?:my )?life|no longer|never been happier|recovered|(?:clean|sober) (?:for|"
    r"since)|made (?:my |a )?peace|"
    r"(?:so )?(?:thankful|grateful)|have not (?:since|for years|done|felt|had|in years)|(?:therapy|"
    r"treatment|help) (?:helped|saved)|"
    r"(?:got|gotten|doing|feel|much|so much) better|am (?:fine|okay|ok|happy)|survived (?:a|an|it|the|"
    r"my|that|cancer|in)|(?:long|way) behind me|years (?:clean|sober)|"
    r"happy (?:mother|father|now|today)|it (?:got|gets) better|now i (?:run|work|am|have|love|help))(?= )"
)
"""Signs that it is over."""
CURRENT = re.compile(
    r" (?:again|lately|tonight|right now|at the moment|these days|every (?:day|night|single)|"
    r"this (?:week|morning|month|"
    r"weekend)|last (?:night|week|weekend|friday|monday)|yesterday|today|still (?!have the scar|"
    r"have scars|here|miss|cry|"
    r"think of)|recently|now i want|wants?|want to|can not stop|keeps?|coming back|came back|back to|"
    r"days ago|not (?:fine|"
    r"okay|ok|better))(?= )"
)
"""Signs that it goes on."""
GONE_BY = word_set("was were had used tried wanted did thought")
PRESENT = re.compile(
    r" (?:am|planning|thinking|considering|want|wants|going|keep|keeps|will|is|can|wish|need|hits|"
    r"beats|touches|feel|feels|hate|hope)(?= )"
)
"""A phrase that holds one of these is of today, whatever the sentence says of years."""
TOLD = re.compile(
    r" (?:thought (?:it|that|there|someone|i)|(?:had|offered|wanted) to|was trying|were trying|"
    r"dreamed|dreamt|there (?:was|were)|one night|one day|"
    r"last (?:year|month|summer)|as if|like|pretend\w*|if|in case|felt like)(?= )"
)
"""Before an emergency: it is over, or was none."""
UNREAL = word_set("almost nearly would could might")
"""In what somebody did to one: it was not done, or in a game."""
STORY = re.compile(
    r" (?:song|songs|lyrics?|chorus|sings?|singing|band|album|track|movie|movies|film|films|novel|"
    r"book|books|character|"
    r"episode|documentary|news|newspaper|paper|article|essay on|statistics|rates?|prevention|"
    r"awareness|training|game|"
    r"games|level|match|teammates?|respawn|show|series|scene|play|plays|playlist|poem|hero|villain|"
    r"trailer|podcast|"
    r"history|theatre|opera|actor|actress|radio|headline|bomber|law|volunteer|lecture|seminar|"
    r"class talk|quest|"
    r"fortnite|minecraft|boss fight|zombie|zombies|dragon|comedian|video|meme|tiktok|story about)(?= )"
)
CALLED = re.compile(r" (?:called|named|titled|entitled|name of|title) (?:\S+ ){0,2}$")
SAID = re.compile(r" (?:says?|said|saying|told|texted|wrote|writes|messaged|posted|tells|sent)(?= )")
LAUGH = re.compile(r" (?:lol|joking|kidding|sarcasm)(?= )")
EARNEST = re.compile(r" (?:not (?:joking|kidding)|no joke|i mean it|for real this|seriously this)(?= )")
FIGURATIVE = re.compile(
    r" (?:(?:so|was|am|felt|feel|were|be|too|very) (?:\S+ )?(?:embarrass\w*|awkward|cringe\w*|bored|"
    r"ashamed of my)|of "
    r"(?:embarrassment|boredom|shame|laughter)|laugh\w*|so hot|spicy|cute|adorable|delicious|"
    r"rollercoaster|roller coaster|"
    r"hilarious|comedian|so much fun)(?= )"
)
"""In the same sentence: what people die of, or cannot breathe for, in a manner of speaking."""
ACCIDENT = re.compile(
    r" (?:fall|fell|falling|slipped|tripped|crashed|skiing|skating|lifting|football|bike|stairs)(?= )"
)
ANNOYANCE = re.compile(
    r" (?:socks?|dishes|sandwich|leftovers|spoil\w*|printer|computer|laptop|mosquito\w*|spiders?|fly|"
    r"flies|referee|wifi|"
    r"ate|ending|yoghurt|snoring|snores|messenger|penalty|lego|annoying)(?= )"
)
"""In the same sentence: what nobody is killed for."""
CONDITION = re.compile(
    r" if (?:i|he|she|they|you|it|this|my \w+|that \w+|the \w+|one more|anyone|somebody|someone|"
    r"we) (?:\S+ ){0,2}?(?:hear|"
    r"see|have to|has to|leaves?|gets?|eats?|forgets?|does it|do it|plays?|says?|asks?|am late|"
    r"is late|are late|loses?|lose|miss|touch\w*|"
    r"tell|calls?|takes?|rains?|sings?|starts?|cancels?|fails? (?:this|my|the))(?= )"
)
"""A small thing that would be the last straw: said so, not meant so."""
LAST_STRAW = re.compile(
    r" if (?:i|he|she|they|it|my \w+|one more) (?:\S+ ){0,2}?(?:hear|see|have to|has to|says?|asks?|"
    r"plays?|sings?|calls?) (?:\S+ )*?"
    r"(?:again|another|one more|once more)(?= )"
)
"""The same of oneself; only where something small comes again."""
TOPICS = word_set(
    "die died dies dying dead death kill killed killing kills suicide suicidal alive exist existing "
    "hang rope pills tablets "
    "overdose overdosed bridge jump gun knife razor blade cutting cuts blood bleeding bleed burn "
    "burning harm ending end "
    "disappear vanish goodbye burden wake hits beats slaps slapped choked chokes punches raped rape "
    "touches touching assaulted "
    "abuse abused abusive molested threatens threatened violent breathe breathing chest unconscious "
    "collapsed ambulance fire "
    "smoke stabbed shot shoot shooting poison bleach strangle strangled murder herself himself "
    "locked forever buried grave "
    "heaven pain noose wrists platform tracks roof ledge"
)
"""Words of which a sentence must have one for the classifier alone to count."""
BEREAVED = re.compile(
    r" (?:killed (?:himself|herself|themselves)|took (?:his|her|their) own life|(?:died|die|lost|loss|"
    r"death|passed|funeral)"
    r" (?:\S+ ){0,4}?(?:suicide|overdose|overdosed)|committed suicide|died by suicide|suicide of|"
    r"overdosed and died|"
    r"(?:was|were|got) murdered|hanged (?:himself|herself)|shot (?:himself|herself)|drank (?:himself|"
    r"herself) to death)(?= )"
)
"""Somebody is dead already: grief, not an emergency."""


def in_context(
    pattern: Pattern, text: str, start: int, end: int, sentence: tuple[int, int]
) -> tuple[str, str]:
    """The kind and the level of a match, given its context.

    Args:
        pattern: that matched.
        text: the whole message, normalized.
        start: of the match.
        end: of the match.
        sentence: the span of the sentence around it.
    """
    phrase, around = f"{text[start:end]} ", f"{text[sentence[0] : sentence[1]]} "
    before = text[sentence[0] : start + 1]
    own = pattern.kind in (SUICIDE, SELF_HARM)
    quoted = bool(text.count('"', 0, start) % 2)
    if CALLED.search(before) or (quoted and STORY.search(around)):
        return pattern.kind, NONE
    if own and quoted and SAID.search(text[:start]) and not _MYSELF_SAID.search(text[:start]):
        return SOMEONE_ELSE, CRISIS
    if _only_told(pattern, phrase, before, around) or _is_figurative(pattern, phrase, around):
        return pattern.kind, NONE
    kind = SOMEONE_ELSE if own and _of_another(phrase, before) else pattern.kind
    soft = (
        _negated(pattern, before, phrase)
        or ASKED.search(before)
        or _not_meant(pattern, text, around)
        or _not_now(pattern, phrase, before)
        or (BEREAVED.search(around) and not _WANTING.search(around))
        or (not _of_today(phrase, before) and softened(text, *sentence))
    )
    return kind, CONCERN if soft else CRISIS


def _not_meant(pattern: Pattern, text: str, around: str) -> bool:
    """A threat with a laugh, or one that hangs on something small."""
    if pattern.kind not in (SUICIDE, SELF_HARM, HARM_TO_OTHERS):
        return False
    laughed = LAUGH.search(around) and not EARNEST.search(text)
    return bool(laughed or (CONDITION if pattern.kind == HARM_TO_OTHERS else LAST_STRAW).search(around))


def _not_now(pattern: Pattern, phrase: str, before: str) -> bool:
    """An emergency that is over or was none, a blow that was not struck."""
    if pattern.kind == EMERGENCY:
        return bool(TOLD.search(before))
    return pattern.kind == ABUSE and bool(UNREAL & set(phrase.split()))


def _negated(pattern: Pattern, before: str, phrase: str) -> bool:
    """Whether the phrase is denied: "I would never", "no thoughts of", or inside of it: "I do not cut"."""
    if pattern.kind in (SUICIDE, SELF_HARM):
        words = phrase.split()
        inside = " ".join(words[: words.index("not") + 1]) if "not" in words else ""
        spelt = _SPELT.search(pattern.regex.pattern)
        return bool(DENIED.search(f"{before}{words[0]} ") or DENIED.search(before)) or (
            bool(inside) and not spelt and bool(DENIED.search(f" {inside} "))
        )
    near = before.split()[-REACH:]
    for index, word in enumerate(near):
        following = [*near[index + 1 :], *phrase.split()]
        if "reason" in near[:index]:  # no reason not to
            return False
        if word in NEGATIONS and following[0] not in NO_DENIAL and not OPENERS & set(near[index + 1 :]):
            return True
    return False


def _of_today(phrase: str, before: str) -> bool:
    """Whether the phrase, or the words right before it, stand in the present."""
    lead = before.split()[-3:]
    return bool(PRESENT.search(f" {' '.join(lead)}{phrase}")) and not GONE_BY & set(lead)


def _of_another(phrase: str, before: str) -> bool:
    """Whether a phrase without "I" is said of another person: of the last one named before it."""
    if FIRST & set(phrase.split()):
        return False
    last = next((word for word in reversed(before.split()) if word in THIRD or word in ("i", "me")), "")
    return last in THIRD


def _only_told(pattern: Pattern, phrase: str, before: str, around: str) -> bool:
    """Of a song, a film, a game, the news: not of the one who writes, nor of somebody near."""
    if not STORY.search(around) or " my " in phrase:
        return False
    if '"' in phrase:
        return True
    if pattern.kind in (SUICIDE, SELF_HARM):
        return not FIRST & set(phrase.split()) and (
            _of_another(phrase, before) or not FIRST & set(before.split())
        )
    return " i " not in phrase or pattern.kind in (HARM_TO_OTHERS, EMERGENCY)


def _is_figurative(pattern: Pattern, phrase: str, around: str) -> bool:
    """Dying of laughter, killing for a sandwich, hurting oneself by a fall."""
    if pattern.kind == SELF_HARM and " hurt " in phrase and ACCIDENT.search(around):
        return True
    loose = " die " in phrase or " breathe " in phrase or " dead " in phrase
    if loose and FIGURATIVE.search(around):
        return True
    return pattern.kind == HARM_TO_OTHERS and bool(ANNOYANCE.search(around))


def speaks_of_harm(sentence: str) -> bool:
    """Whether the classifier alone counts: a word of harm that is not quoted from a story."""
    return bool(TOPICS & set(sentence.split())) and not ('"' in sentence and STORY.search(f"{sentence} "))


def softened(text: str, start: int, end: int) -> bool:
    """Whether a sentence tells of what is past or overcome."""
    sentence = text[start:end] + " "
    if CURRENT.search(sentence):
        return bool(OVERCOME.search(sentence) and PAST.search(sentence))
    return bool(PAST.search(sentence) or OVERCOME.search(sentence))
