"""Spelling variants: abbreviations, typos, and words disguised from filters.

Data only; `normalizer` applies it. Each entry maps one written word to the intended words.
"""

from listenwell.words import word_set


def table(text: str) -> dict[str, str]:
    """Lines of "meant: written written …" as a mapping from the written to the meant."""
    meanings: dict[str, str] = {}
    for line in text.strip().splitlines():
        meant, _, written = line.partition(":")
        meanings |= dict.fromkeys(written.split(), meant.strip())
    return meanings


def _ordered(text: str) -> tuple[str, ...]:
    return tuple(text.split())


MEANT = table("""
    want to: wanna wana wannna wnna
    want: wnat wan wnt wamt whant wantt
    going to: gonna gunna gona goin2 finna
    going: goin goign
    got to: gotta
    kind of: kinda
    do not: dont dnt dnot donot dun
    does not: doesnt
    did not: didnt
    is not: isnt
    are not: arent
    was not: wasnt
    can not: cant cnt cannot carnt
    could not: couldnt
    would not: wouldnt
    should not: shouldnt
    will not: wont
    have not: havent
    has not: hasnt
    i am: im iam i'm
    i would: id i'd idve
    i have: ive
    he is: hes
    she is: shes
    it is: its
    they are: theyre
    that is: thats
    there is: theres
    what is: whats wats
    let us: let's lets
    you are: youre
    your: ur
    you: u ya
    are: r
    because: bc cuz cos coz becuz becasue
    with: w wit
    though: tho
    please: pls plz plss
    right now: rn
    tonight: tonite 2nite tn 2night
    tomorrow: tmrw tmr tomorow 2morrow tommorow tomoro
    anymore: anymor animore nymore
    any longer: anylonger
    i do not know: idk
    i do not care: idc
    to be honest: tbh
    for real: fr frfr
    really: rly realy rlly
    life: lyfe lief
    live: livee liv
    was: wuz
    dead: ded
    death: deth
    kill: kil unalive unaliv
    dying: dieing
    killing: unaliving kiling killin killling
    killed: unalived
    kill myself: kms killmyself
    killing myself: kmsing killingmyself
    kill yourself: kys killyourself
    want to die: wtd wanttodie wannadie
    end my life: ctb endmylife
    end it all: enditall
    suicide: sewerslide sewercide toaster-bath suey suicied succide suisyde
    suicidal: suicidle suicidall sucidial sewerslidal
    overdosing: oding
    overdosed: od'd oded
    hurt: hrut hurtt
    hurting: hurtin hurtign
    cut: cutt
    cutting: cuting cuttin cuttting
    burning: burnin
    self harm: selfharm
    self harmed: selfharmed
    self harming: selfharming
    harmed: harmd
    depressed: deppressed depresed depressd
    hopefully: hopefuly
    planning: planing
    thinking: thinkin thinkign
    again: agian agen
    boyfriend: bf boyfrend
    girlfriend: gf
    best friend: bff bestie
    friend: freind frend
    mother: mom mum mam mommy mummy mama
    father: dad daddy papa
    stepfather: stepdad
    stepmother: stepmom stepmum
    hospital: hosptial
    breathe: breath breeth
    bleeding: bleding
    lol: haha hahaha hahahaha lmao lmfao rofl jk hehe xd
    """)
"""Words as they are written in a hurry, and what they mean. "breath" for "breathe" is the common slip."""

HIDDEN = _ordered(
    "kill killing killed die dying dead death suicide suicidal myself yourself himself herself cut "
    "cutting hurt hurting harm harming self rape raped rapes rapist gun shoot murder murdered overdose "
    "overdosed abuse abused abuses molested sex hang hanging pills wrists bleach unalive life end"
)
"""Words that people hide with figures and signs, as in su1cide, k!ll, s*icidal."""

SPELT_OUT = ("killmyself", "killingmyself", "wanttodie", "wannadie", "endmylife", "enditall", "killyourself")
"""What people write letter by letter; how each is meant stands above."""

SIGNS = {
    "0": "o",
    "1": "il",
    "3": "e",
    "4": "a",
    "5": "s",
    "7": "t",
    "8": "b",
    "@": "a",
    "$": "s",
    "!": "il",
    "|": "il",
    "+": "t",
    "*": "abcdefghijklmnopqrstuvwxyz",
    "#": "abcdefghijklmnopqrstuvwxyz",
}
"""Which letters a sign may stand for; the last two for any."""

NEAR = ("suicide", "suicidal", "myself", "himself", "herself", "overdose", "overdosed")
"""Words that are recognized with one letter wrong, missing, doubled or changed places."""
NOT_NEAR = word_set("overdone overdoes suicided suicides overdoses")
"""Words of their own that lie as near."""

DOUBLE = word_set(
    "kill killing killed will pill pills feel feeling need bleed bleeding off all tell still soon good hell "
    "sleep keep too see been hitting cutting well call school goodbye"
)
"""Words with a double letter: "killll" is "kill", "dieee" is "die"."""

LOOKALIKES = str.maketrans("аеорсухіѕԁӏո", "aeopcyxisdln")
"""Cyrillic and Armenian letters that look like Latin ones."""
