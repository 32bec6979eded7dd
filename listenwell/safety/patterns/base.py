"""Crisis patterns, and the parts that they share.

Patterns are in text files, one per kind of crisis: a regular expression per line, under [strong] or [weak]; a
line that starts with two blanks continues the previous one. Names in <> are the parts below. They match
normalized text (`normalizer`), from one blank to the next.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from listenwell.errors import InputError

SUICIDE, SELF_HARM, HARM_TO_OTHERS, ABUSE, EMERGENCY, SOMEONE_ELSE = KINDS = (
    "suicide",
    "self_harm",
    "harm_to_others",
    "abuse",
    "emergency",
    "someone_else",
)
"""The kinds of crisis; the last is about a person other than the writer."""
STRONG, WEAK = "strong", "weak"
"""Whether a pattern suffices by itself, or needs the classifier to agree."""

_KIN = (
    "husband|wife|boyfriend|girlfriend|partner|fiance|fiancee|spouse|ex|father|mother|stepfather|stepmother|"
    "parents|uncle|aunt|brother|sister|cousin|grandfather|grandmother|grandpa|grandma|son|daughter|kid|"
    "child|teacher|coach|boss|roommate|flatmate|neighbour|neighbor|caregiver|carer|friend|family|"
    "stepbrother|stepsister|guardian|priest|pastor|landlord|in laws|nephew|niece|coworker|colleague|"
    "classmate|student|buddy|mate|bestfriend|baby|twin|patient|client"
)
PARTS = {
    "adverbs": r"(?:(?:really|just|so|honestly|actually|only|still|always|also|often|sometimes|literally|"
    r"seriously|even|truly|fucking|kind of|sort of|now|again|lowkey|genuinely|constantly|basically|"
    r"definitely|probably|totally|do|very|feeling|feel|like|all|sincerely|pretty|almost|already|actively|"
    r"badly|desperately|for real|too|a bit|a little|quite|more|lately|finally|ever|would|might|could|"
    r"secretly|to be honest|then) ){0,3}",
    "kin": f"(?:{_KIN})",
    "group": r"(?:(?:muslim|islamic|christian|catholic|jewish|hindu|buddhist|arab|black|white|brown|asian|"
    r"african|mexican|latino|hispanic|indian|chinese|japanese|korean|russian|american|french|german|polish|"
    r"pakistani|gypsy|foreign|gay|lesbian|trans|transgender|bisexual|disabled|autistic|homeless|poor|fat|"
    r"religious) (?:people|person|folks|men|women|guys|girls|kids|ones|countries)|muslims|islam|christians|"
    r"catholics|jews|hindus|buddhists|arabs|blacks|whites|asians|africans|mexicans|latinos|hispanics|indians|"
    r"pakistanis|gypsies|foreigners|immigrants|migrants|refugees|gays|lesbians|homosexuals|transgenders|"
    r"women|men|old people|the homeless|the poor|the disabled)",
    "person": rf"(?:he|she|they|who|someone|somebody|(?:guy|girl|man|woman|boy|person|{_KIN})(?: 's \w+)?)",
    "who": rf"(?:he|she|they|{_KIN}|man|guy|guys|people|someone|somebody|boys)",
    "somebody": rf"(?:he|she|they|{_KIN}|toddler|someone|somebody|man|woman|dog|person|stranger)",
    "reflexive": r"(?:himself|herself|themselves|themself)",
    "want": r"(?:want|wanted|wanting|wish|wishing|need|long|longing|would like|would love|prefer|would "
    r"prefer|going|planning|plan|ready|about|try|trying|tried|attempted|decided|intend|hoping|hope|urge|"
    r"urges|tempted|have|thought|desire|might|love|like|dying)(?: to)?(?: just| really| fucking)?",
    "thought": r"(?:thought|thoughts|think|thinking|thinks|fantasies|fantasize|fantasise|fantasizing|"
    r"fantasising|dream|dreaming|daydream|obsessed|contemplating|contemplate|considering|considered|"
    r"consider|idea|ideas|ideation|urge|urges|plan|plans|planning|talk|talking|talks|talked|close|"
    r"googled|googling|researching|imagine|imagining|scared|afraid)",
    "target": rf"(?:him|her|them|people|someone|somebody|everyone|everybody|my (?:own )?(?:\w+ )?(?:{_KIN})|"
    r"my kids|my children|the (?:kids|baby|children)|others|another person|strangers|women|men|kids|children|"
    r"that (?:man|woman|guy|bitch|bastard)|his|those (?:people|kids|guys))",
    "unfair": r"(?! (?:at|in (?:chess|the game|a race|tennis|the final|every game|mario)|to it|to the|"
    r"by (?:\d|one|two|a)|up|that|like|with (?:kindness|questions|a question|the bill|a pillow|love|laughter|"
    r"the news|a ball|a snowball)|for being|every time we play|playing|out|when it comes|"
    r"on the (?:shoulder|head gently)|hard (?:that|when)|so hard that|home|deeply|there|today because)\b)",
    "start": r"(?:(?<=^ )|(?<=[.?,] ))",
    "gap": r"(?:(?![.?])\S+ ){0,4}?",
    "wide": r"(?:(?![.?])\S+ ){0,9}?",
    "arms": r"(?:arms?|wrists?|legs?|thighs?|skin|stomach|body)",
    "pills": r"(?:pills|tablets|meds|medication|medicine|painkillers|tylenol|ibuprofen|xanax|bleach|"
    r"paracetamol|aspirin|sleeping pills|antidepressants)",
}
_NAME = re.compile(r"<(\w+)>")


@dataclass(frozen=True)
class Pattern:
    """A regular expression for one kind of crisis."""

    kind: str
    strength: str
    regex: re.Pattern[str]


@cache
def patterns() -> tuple[Pattern, ...]:
    """All patterns, from the files in this folder."""
    folder = Path(__file__).parent
    return tuple(
        Pattern(kind, strength, regex)
        for kind in KINDS
        for strength, regex in read((folder / f"{kind}.txt").read_text("utf-8"), (STRONG, WEAK), kind)
    )


def read(text: str, sections: Collection[str], name: str) -> Iterator[tuple[str, re.Pattern[str]]]:
    """The section and expression of every line; an invalid one is an error that names it.

    Args:
        text: of a file of patterns.
        sections: the names allowed in [].
        name: of the file, for the message.
    """
    section = ""
    for line in text.replace("\n  ", "").splitlines():
        if not line or line.startswith("#"):
            continue
        if line[1:-1] in sections:
            section = line[1:-1]
        elif section:
            yield section, _compiled(line, name)
        else:
            raise _unreadable(line, name, "no section before it")


def _compiled(line: str, name: str) -> re.Pattern[str]:
    """Compile a line."""
    try:
        whole = _NAME.sub(lambda part: PARTS[part[1]], line)
        return re.compile(f" (?:{whole})(?= )")
    except (re.error, KeyError) as error:
        raise _unreadable(line, name, str(error)) from None


def _unreadable(line: str, name: str, why: str) -> InputError:
    return InputError(f"The pattern {line!r} of {name} cannot be read: {why}.", "Correct it in its file.")
