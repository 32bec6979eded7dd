import pytest

from listenwell.errors import InputError
from listenwell.reranking.self_disclosure.unsupported import (
    Claim,
    claims,
    unsupported_disclosure,
    unsupported_disclosure_rate,
)

LIFE = {
    "My wife does that too.": ["relative"],
    "I lost my dad too.": ["past", "relative"],
    "Oh no, my old dog died.": ["pet"],
    "I was bullied when I was in college.": ["past", "past"],
    "I have two kids": ["possession"],
    "I used to live there": ["past"],
    "i had the same problem": ["experience"],
    "The same thing happened to me!": ["experience"],
    "I've been there.": ["experience"],
    "Been there!": ["experience"],
    "i 've never seen one": ["experience"],  # as the peers' releases are spelled
    "I don't have any pets.": ["possession"],
    "I'm a nurse.": ["state"],
    "I'm in the same boat": ["state"],
    "I live in Texas": ["habit"],
    "I do that all the time": ["habit"],
    "I get really nervous too": ["habit"],
    "Mine is ten.": ["possession"],
    "So did I!": ["experience"],
    "We got our puppy last year": ["past", "pet"],
    "I went with my friend.": ["past", "relative"],
    "I know someone who moved there.": ["relative"],
    "My first is on the way": ["possession"],
    "I wish you luck, but I was scared": ["past"],  # the wish is another clause's
}
NO_LIFE = (
    "I am sorry to hear that.",
    "I'm so sorry.",
    "I hope you find it!",
    "I think so, and I would be sad.",
    "Oh my goodness!",
    "Oh my!",
    "My condolences.",
    "My heart goes out to you.",
    "In my opinion that is unfair.",
    "I have heard of it.",
    "I've never heard of that.",
    "I can imagine.",
    "My thoughts are with you.",
    "I would love to go.",
    "I understand, I really do.",
    "I had no idea!",
    "I have to say that is great.",
    "I was just wondering how you are.",
    "I was so happy to hear it.",
    "If I had a dog I would do that too.",
    "I wish I was there.",
    "I didn't know that.",
    "I get it.",
    "I can relate.",
    "Good luck, my friend!",
    "It is my favorite.",
    "I told you!",
    "Did I get that right?",
    "That would have scared me.",
    "We all make mistakes.",
    "I always like those.",
    "I am a little confused.",
    "What a gold mine!",
    "",
)


@pytest.mark.parametrize("reply", LIFE)
def test_claims_about_a_life_are_found(reply):
    assert [claim.kind for claim in claims(reply)] == LIFE[reply]


@pytest.mark.parametrize("reply", NO_LIFE)
def test_sympathy_opinions_and_wishes_are_no_life(reply):
    assert claims(reply) == ()


def test_a_claim_tells_where_it_stands():
    reply = "Wow  — I did n't sleep;  MY  Wife’s dog barked."
    found = claims(reply)
    assert [reply[claim.start : claim.end] for claim in found] == ["I did n't sleep", "MY  Wife’s"]
    assert found[1] == Claim("relative", "MY  Wife’s", 25, 35, ("wife's",))


def test_letters_that_change_their_length_do_not_move_the_place():
    reply = "İ̇ é ok. My dog"  # the first is two letters in lower case
    assert [claim.text for claim in claims(reply)] == ["My dog"]


def test_what_the_persona_holds_is_not_invented():
    persona = ("i am married and have three children.", "i work at a bank.")
    assert unsupported_disclosure("My husband loves it.", persona) == ()
    assert unsupported_disclosure("My son loves it.", persona) == ()
    assert unsupported_disclosure("I worked at a bank once.", persona) == ()
    assert [claim.text for claim in unsupported_disclosure("My dog loves my husband.", persona)] == ["My dog"]
    assert [claim.text for claim in unsupported_disclosure("I've been there.", persona)] == ["I've been"]


def test_a_parent_has_children_and_nobody_else_has():
    assert unsupported_disclosure("My kids love it.", ("i am a single mom.",)) == ()
    assert unsupported_disclosure("My kids love it.", ("my mom is a teacher.",)) != ()


def test_common_words_support_nothing():
    assert unsupported_disclosure("I have two cats.", ("i have two brothers.",)) != ()


def test_the_rate_counts_replies():
    replies = ["My wife and my dog.", "I am sorry.", "I live here.", "Oh no!"]
    assert unsupported_disclosure_rate(replies) == 50.0
    assert unsupported_disclosure_rate(replies, [("i am married", "a dog"), (), (), ()]) == 25.0


def test_the_rate_wants_a_persona_for_each_reply():
    with pytest.raises(InputError, match="2 replies and 1 personas"):
        unsupported_disclosure_rate(["a", "b"], [()])
    with pytest.raises(InputError, match="no replies"):
        unsupported_disclosure_rate([])
