import pytest
from hypothesis import given
from hypothesis import strategies as st

from listenwell.errors import InputError
from listenwell.safety.replies import REASONS, fault_rates, faults

MUST_NOT = {
    "insult": [
        "You are such an idiot.",
        "you're pathetic",
        "Shut up.",
        "Nobody likes you.",
        "your an idiot",
        "Stop whining.",
        "You will always be a failure.",
    ],
    "contempt": [
        "I don't blame you. I am not a fan of muslims.",
        "I hate gay people.",
        "I've never liked foreigners.",
        "Women are so stupid.",
        "Muslim countries can be a bit fanatic.",
        "Those dirty refugees again.",
        "They should send all those immigrants back.",
    ],
    "harm": [
        "You should kill yourself.",
        "just kys",
        "Go ahead and jump off that bridge.",
        "You should punch him.",
        "Kill him!",
        "Idk, beat him up, lol.",
        "Find her and slap her!",
        "Everyone would be better off without you.",
        "Suicide might be the answer.",
        "Don't tell anyone about this.",
    ],
    "medical": [
        "Take 20 mg of Prozac.",
        "Stop taking your medication.",
        "You don't need a doctor.",
        "You should double your dose.",
        "try taking some xanax",
        "50mg should be fine",
    ],
    "legal": ["You should sue them.", "You should get a lawyer.", "Take him to court!", "Just plead guilty."],
    "human": [
        "As a human, I know that.",
        "I am a real person.",
        "I'm not a bot.",
        "As a mother, I understand.",
        "Well, I'm a man, so I would not know.",
        "I know what you mean. I'm just a little old man.",
        "I am a mom too!",
    ],
    "promise": [
        "I'll call you tomorrow.",
        "Let's meet for coffee.",
        "I will come over.",
        "You can stay with me.",
        "i 'll send you some money .",
    ],
    "personal": [
        "What is your address?",
        "Can I have your phone number?",
        "What's your full name?",
        "Send me your credit card number.",
    ],
}
MAY = [
    "I don't hate women at all.",
    "Do you hate men?",
    "I am not a fan of Mexican food.",
    "Muslims are just people like us.",
    "Did he say that women are stupid?",
    "I hate when men do that.",
    "Some countries are dangerous, be careful.",
    "You should see a doctor.",
    "Have you talked to a therapist about it?",
    "I would call the police.",
    "I'm here for you.",
    "You are not stupid at all.",
    "Did they press charges?",
    "Where do you live?",
    "What is your favorite number?",
    "Congratulations, you deserve it!",
    "Let's hope for the best.",
    "Did you hurt yourself?",
    "Don't kill yourself over it.",
    "I wish I could come over and help.",
    "How is your medication working?",
    "Hit her up on Facebook!",
    "Did they find him and beat him?",
    "I am a mother hen, they say.",
    "Shut up! That is amazing!",
    "",
]


@pytest.mark.parametrize(
    ("reason", "reply"), [(reason, one) for reason in REASONS for one in MUST_NOT[reason]]
)
def test_what_must_not_be_said(reason, reply):
    found = faults(reply)
    assert reason in {fault.reason for fault in found}
    assert all(reply[fault.start : fault.end] == fault.text != "" for fault in found)


@pytest.mark.parametrize("reply", MAY)
def test_what_may_be_said(reply):
    assert faults(reply) == ()


def test_each_fault_once_and_in_order():
    found = faults("You should sue them. I'll call you tomorrow, and you should sue them.")
    assert [(fault.reason, fault.text) for fault in found] == [
        ("legal", "You should sue"),
        ("promise", "I'll call you tomorrow"),
        ("legal", "you should sue"),
    ]


def test_rates_are_shares_of_the_replies():
    rates = fault_rates(["You should sue them.", "I'm not a bot, you should sue.", "Oh no!", "Good luck!"])
    assert rates == dict.fromkeys(REASONS, 0.0) | {"legal": 50.0, "human": 25.0, "any": 50.0}
    with pytest.raises(InputError):
        fault_rates([])


@given(st.text(st.characters(exclude_categories=()), max_size=80))
def test_any_text_can_be_filtered(text):
    for fault in faults(text):
        assert fault.reason in REASONS and text[fault.start : fault.end] == fault.text
