"""The chat's commands, on a listener that says what it was asked."""

from dataclasses import dataclass, field

import pytest

from listenwell.cli.conversation import Talk
from listenwell.cli.terminal_chat import COMMANDS, completions, in_words, obey
from listenwell.dialogue import Candidate, Dialogue, Factors, Reply, Scored
from listenwell.errors import InputError


@dataclass
class Parrot:
    """Remembers what it was asked; fails at the word fail."""

    plan: object = "some"
    asked: list = field(default_factory=list)
    name: str = "parrot"

    @property
    def generate(self):
        return self

    def reply(self, text, *, history, persona, want, seed, on_text):
        if text == "fail":
            raise InputError("It failed.", "Say something else.")
        self.asked.append((text, history, persona, want, seed))
        said = f"You said {text} ({seed})"
        if on_text:
            on_text(said)
        other = Candidate("Or else.", Factors(act="wishing", mechanisms=()))
        plan = Factors(emotion="sad", mechanisms=("exploration",), act="questioning", tone="caring")
        return Reply(said, "parrot", seed or 0, (Scored("sad", 0.8),), plan, (Candidate(said, plan), other))


@pytest.fixture
def talk():
    return Talk(Parrot(), (), 5, None)


def test_another_reply_takes_the_place_of_the_last(talk, capsys):
    obey(talk, "/again", "")
    assert "Say something first" in capsys.readouterr().out
    talk.say("hello", stream=False)
    talk.say("my dog died", stream=False)
    obey(talk, "/again", "")
    obey(talk, "/again", "")
    assert [turn.text for turn in talk.dialogue.turns] == [
        "hello",
        "You said hello (5)",
        "my dog died",
        "You said my dog died (7)",  # another seed each time
    ]
    talk.say("more", stream=False)
    assert talk.listener.asked[-1][4] == 5
    one = Talk(Parrot(), (), 5, None)
    one.say("hello", stream=False)
    one.again(stream=False)
    assert len(one.dialogue.turns) == 2 and one.listener.asked[-1][1] is None


def test_a_reply_that_fails_when_asked_again_is_not_lost(talk):
    talk.say("hello", stream=False)
    before = talk.dialogue
    talk.listener.reply = lambda *given, **named: (_ for _ in ()).throw(KeyboardInterrupt)
    obey(talk, "/again", "")
    assert talk.dialogue == before


def test_steering_holds_until_it_is_freed(talk, capsys):
    obey(talk, "/act", "Questioning")
    obey(talk, "/mechanism", "EX")
    talk.say("hello", stream=False)
    assert talk.listener.asked[-1][3] == Factors(act="questioning", mechanisms=("exploration",))
    assert "exploration · questioning" in capsys.readouterr().out
    obey(talk, "/act", "")
    talk.say("hello", stream=False)
    assert talk.listener.asked[-1][3] == Factors(mechanisms=("exploration",))
    obey(talk, "/tone", "cosy")
    assert "cosy" in capsys.readouterr().out and talk.want == Factors(mechanisms=("exploration",))
    obey(talk, "/free", "")
    assert talk.want is None


def test_a_model_without_plans_says_so(capsys):
    talk = Talk(Parrot(plan=None), (), 5, None)
    obey(talk, "/act", "questioning")
    assert "makes no plans" in capsys.readouterr().out and talk.want is None


def test_a_persona_can_be_given_shown_and_forgotten(talk, capsys):
    obey(talk, "/persona", "")
    assert "Nothing is known" in capsys.readouterr().out
    obey(talk, "/persona", "I work as a nurse.")
    obey(talk, "/persona", "I have \x1b[31m a dog.")
    shown = capsys.readouterr().out
    assert "I work as a nurse." in shown and "\x1b" not in shown
    talk.say("hello", stream=False)
    assert talk.listener.asked[-1][2] == talk.persona and len(talk.persona) == 2
    assert talk.dialogue.personas[0].lines == talk.persona
    obey(talk, "/persona", "none")
    talk.say("hello", stream=False)
    assert talk.persona == () and talk.dialogue.personas == ()


def test_why_shows_the_plan_and_the_others(talk, capsys):
    obey(talk, "/why", "")
    assert "Say something first" in capsys.readouterr().out
    talk.say("hello", stream=False)
    obey(talk, "/why", "")
    shown = capsys.readouterr().out
    assert "I meant: sad · exploration · questioning · caring" in shown
    assert "Or else.  (no mechanism · wishing)" in shown and "You said hello" not in shown
    obey(talk, "/heard", "")
    assert "sad" in capsys.readouterr().out


def test_an_unknown_command_shows_all(talk, capsys):
    obey(talk, "/wat", "")
    shown = capsys.readouterr().out
    assert all(name in shown for name in COMMANDS)


def test_lines_are_completed():
    assert completions("/pe") == ["/persona"]
    assert completions("/act que") == ["questioning"]
    assert completions("/mechanism n") == ["none"]
    assert completions("/tone ") and completions("hello") == [] and completions("") == []


def test_plans_in_words():
    assert in_words(Factors(act="wishing")) == "wishing"
    assert (
        in_words(Factors(mechanisms=("emotional_reaction", "exploration")))
        == "emotional reaction and exploration"
    )


def test_what_is_kept_is_the_talk_as_it_is_now(tmp_path):
    file = tmp_path / "talk.jsonl"
    talk = Talk(Parrot(), (), 5, file)
    talk.say("hello", stream=False)
    talk.again(stream=False)
    kept = Dialogue.from_json(file.read_text().strip())
    assert [turn.text for turn in kept.turns] == ["hello", "You said hello (6)"]
