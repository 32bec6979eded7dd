"""The chat at a real (pseudo) terminal."""

import codecs
import fcntl
import os
import pty
import select
import subprocess
import sys
import termios
import time

import pytest


class Terminal:
    """A program that believes it talks to a person."""

    def __init__(self, *command):
        self._master, slave = pty.openpty()
        self._process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - makes Ctrl-C a signal
        )
        os.close(slave)
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self.screen = ""

    def wait_for(self, text, count=1, seconds=60):
        end = time.monotonic() + seconds
        while self.screen.count(text) < count:
            assert time.monotonic() < end, self.screen
            if select.select([self._master], [], [], 0.2)[0]:
                try:
                    self.screen += self._decode(os.read(self._master, 4096))
                except OSError:  # the program has left
                    break
        assert self.screen.count(text) >= count, self.screen

    def interrupt(self):
        """Press Ctrl-C until a new prompt shows."""
        self.type_until("\x03", "you ›", self.screen.count("you ›") + 1)

    def type_until(self, keys, text, count):
        """Press keys, again and again, until a text shows: what is typed while a prompt is drawn is lost."""
        for _ in range(30):
            self.type(keys)
            try:
                return self.wait_for(text, count, seconds=1)
            except AssertionError:
                continue
        raise AssertionError(self.screen)

    def type(self, text):
        os.write(self._master, text.encode())

    def end(self):
        self._process.wait(timeout=30)
        os.close(self._master)
        return self._process.returncode


@pytest.fixture
def terminal(tiny_llama, tmp_path):
    recipe = tmp_path / "tiny.yaml"
    recipe.write_text(
        "system: Listen.\nshots: []\nprompt_tokens: 128\ndecoding: {max_tokens: 6, temperature: 1.0}"
    )
    options = ["--model", "prompted", "--weights", str(tiny_llama), "--recipe", str(recipe), "--seed", "1"]
    program = "from listenwell.cli import main; main()"
    opened = Terminal(sys.executable, "-c", program, "chat", *options)
    yield opened
    opened._process.kill()


def test_a_person_can_talk_save_start_over_and_leave(terminal, tmp_path):
    terminal.wait_for("you ›")
    assert "Write a message" in terminal.screen
    terminal.type("I am sad\n")
    terminal.wait_for("listener ›")
    terminal.wait_for("you ›", 2)
    terminal.type(f"/save {tmp_path / 'talk.jsonl'}\n")
    terminal.wait_for("Saved to")
    terminal.type("/new\n")
    terminal.wait_for("Started a new conversation.")
    terminal.type("/what\n")
    terminal.wait_for("you ›", 5)
    terminal.type_until("\x15/pers\t", "/persona", 3)  # twice in the help, and now completed
    terminal.type("I sing.\n")
    terminal.wait_for("Persona:")
    terminal.type("/quit\n")
    assert terminal.end() == 0
    assert '"I am sad"' in (tmp_path / "talk.jsonl").read_text()


def test_ctrl_c_at_the_prompt_does_not_end_the_talk_and_ctrl_d_does(terminal):
    terminal.wait_for("you ›")
    terminal.interrupt()
    terminal.type("\x04")
    assert terminal.end() == 0
