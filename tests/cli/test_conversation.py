"""The chat's commands, on a listener that says what it was asked."""

from dataclasses import dataclass, field

import pytest

from listenwell.cli.conversation import Conversation
from listenwell.cli.terminal_chat import COMMANDS, completions, describe_plan, run_command
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

    def reply(self, text, *, history, persona, target, seed, on_text):
        if text == "fail":
            raise InputError("It failed.", "Say something else.")
        self.asked.append((text, history, persona, target, seed))
        said = f"You said {text} ({seed})"
        if on_text:
            on_text(said)
        other = Candidate("Or else.", Factors(act="wishing", mechanisms=()))
        plan = Factors(
            emotion="sad", mechanisms=("exploration",), act="questioning", expressed_emotion="caring"
        )
        return Reply(said, "parrot", seed or 0, (Scored("sad", 0.8),), plan, (Candidate(said, plan), other))


@pytest.fixture
def conversation():
    return Conversation(Parrot(), (), 5, None)


def test_another_reply_takes_the_place_of_the_last(conversation, capsys):
    run_command(conversation, "/again", "")
    assert "Write a message first" in capsys.readouterr().out
    conversation.say("hello", stream=False)
    conversation.say("my dog died", stream=False)
    run_command(conversation, "/again", "")
    run_command(conversation, "/again", "")
    assert [turn.text for turn in conversation.dialogue.turns] == [
        "hello",
        "You said hello (5)",
        "my dog died",
        "You said my dog died (7)",  # another seed each time
    ]
    conversation.say("more", stream=False)
    assert conversation.listener.asked[-1][4] == 5
    one = Conversation(Parrot(), (), 5, None)
    one.say("hello", stream=False)
    one.again(stream=False)
    assert len(one.dialogue.turns) == 2 and one.listener.asked[-1][1] is None


def test_a_reply_that_fails_when_asked_again_is_not_lost(conversation):
    conversation.say("hello", stream=False)
    before = conversation.dialogue
    conversation.listener.reply = lambda *given, **named: (_ for _ in ()).throw(KeyboardInterrupt)
    run_command(conversation, "/again", "")
    assert conversation.dialogue == before


def test_steering_holds_until_it_is_freed(conversation, capsys):
    run_command(conversation, "/act", "Questioning")
    run_command(conversation, "/mechanism", "EX")
    conversation.say("hello", stream=False)
    assert conversation.listener.asked[-1][3] == Factors(act="questioning", mechanisms=("exploration",))
    assert "exploration · questioning" in capsys.readouterr().out
    run_command(conversation, "/act", "")
    conversation.say("hello", stream=False)
    assert conversation.listener.asked[-1][3] == Factors(mechanisms=("exploration",))
    run_command(conversation, "/express", "cosy")
    assert "cosy" in capsys.readouterr().out and conversation.target == Factors(mechanisms=("exploration",))
    run_command(conversation, "/free", "")
    assert conversation.target is None


def test_a_model_without_plans_says_so(capsys):
    conversation = Conversation(Parrot(plan=None), (), 5, None)
    run_command(conversation, "/act", "questioning")
    assert "does not plan" in capsys.readouterr().out and conversation.target is None


def test_a_persona_can_be_given_shown_and_forgotten(conversation, capsys):
    run_command(conversation, "/persona", "")
    assert "There is no persona" in capsys.readouterr().out
    run_command(conversation, "/persona", "I work as a nurse.")
    run_command(conversation, "/persona", "I have \x1b[31m a dog.")
    shown = capsys.readouterr().out
    assert "I work as a nurse." in shown and "\x1b" not in shown
    conversation.say("hello", stream=False)
    assert conversation.listener.asked[-1][2] == conversation.persona and len(conversation.persona) == 2
    assert conversation.dialogue.personas[0].lines == conversation.persona
    run_command(conversation, "/persona", "none")
    conversation.say("hello", stream=False)
    assert conversation.persona == () and conversation.dialogue.personas == ()


def test_why_shows_the_plan_and_the_others(conversation, capsys):
    run_command(conversation, "/why", "")
    assert "Write a message first" in capsys.readouterr().out
    conversation.say("hello", stream=False)
    run_command(conversation, "/why", "")
    shown = capsys.readouterr().out
    assert "Plan: sad · exploration · questioning · caring" in shown
    assert "Or else.  (no mechanism · wishing)" in shown and "You said hello" not in shown
    run_command(conversation, "/emotion", "")
    assert "sad" in capsys.readouterr().out
    run_command(conversation, "/heard", "")  # the name of earlier versions
    assert "sad" in capsys.readouterr().out


def test_an_unknown_command_shows_all(conversation, capsys):
    run_command(conversation, "/wat", "")
    shown = capsys.readouterr().out
    assert all(name in shown for name in COMMANDS)


def test_lines_are_completed():
    assert completions("/pe") == ["/persona"]
    assert completions("/act que") == ["questioning"]
    assert completions("/mechanisms n") == ["none"]
    assert completions("/express ") and completions("hello") == [] and completions("") == []


def test_plans_describe_plan():
    assert describe_plan(Factors(act="wishing")) == "wishing"
    assert (
        describe_plan(Factors(mechanisms=("emotional_reaction", "exploration")))
        == "emotional reaction and exploration"
    )


def test_what_is_kept_is_the_talk_as_it_is_now(tmp_path):
    file = tmp_path / "conversation.jsonl"
    conversation = Conversation(Parrot(), (), 5, file)
    conversation.say("hello", stream=False)
    conversation.again(stream=False)
    kept = Dialogue.from_json(file.read_text().strip())
    assert [turn.text for turn in kept.turns] == ["hello", "You said hello (6)"]
