import io
import os
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from listenwell.annotators import stream
from listenwell.cli import app
from listenwell.corpora import CORPORA
from listenwell.corpora.own import OwnJsonl
from listenwell.dialogue import Dialogue, LabelledText
from listenwell.errors import InputError, UnknownNameError
from listenwell.progress import progress
from tests.annotators.fake import FakeAnnotator, module, noted
from tests.annotators.fake import lines as numbered

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "tests" / "data"
PROGRAM = [sys.executable, "-m", "tests.annotators.program", "annotate"]


@pytest.fixture
def loaded(monkeypatch):
    """Every annotator that was loaded."""
    made = []

    class Remembered(FakeAnnotator):
        @classmethod
        def load(cls, folder=None, heads=None, weights=None):
            made.append((folder, heads, weights))
            return super().load(folder, heads, weights)

    stand_in = module()
    stand_in.Annotator = Remembered
    monkeypatch.setitem(sys.modules, "listenwell.annotators.annotator", stand_in)
    return made


@pytest.fixture
def call(loaded, monkeypatch, tmp_path):
    monkeypatch.setenv("LISTENWELL_DATA", str(SAMPLES))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(stream, "WINDOW", 4)
    runner = CliRunner()
    return lambda *arguments, text=None: runner.invoke(app, ["annotate", *map(str, arguments)], input=text)


def lines(output):
    return [Dialogue.from_json(line) for line in output.splitlines()]


def test_standard_input_to_standard_output(call):
    done = call("-", text="I am sad\n\nI am glad\n")
    assert done.exit_code == 0, done.exception
    assert lines(done.stdout) == list(
        FakeAnnotator().annotate_all(noted(numbered({1: "I am sad", 3: "I am glad"})))
    )
    summary = done.stderr.strip()
    assert summary.startswith("2 lines annotated, ") and "\n" not in summary
    assert summary.endswith(" lines/s, nothing skipped; written to standard output.")


def test_jsonl_on_standard_input(call):
    done = call("-", "--out", "-", text='{"text": "I am sad", "id": "a"}\n{"text": "[SEP]"}\n')
    assert [one.id for one in lines(done.stdout)] == ["a", "2"]


def test_a_file_with_broken_lines_says_what_was_skipped(call):
    Path("talk.jsonl").write_bytes(
        b'{"text": "I am sad"}\n{"text": "\xff"}\nbroken\n{"te\\u001bxt": 1}\nbroken\n{"text": "\\ud800"}\n'
    )
    done = call("talk.jsonl", "--out", "new/out.jsonl")
    assert done.exit_code == 0, done.exception
    summary, *skipped = done.stderr.splitlines()
    assert summary.startswith("2 lines annotated, ")
    assert summary.endswith(" lines/s, 4 skipped; written to new/out.jsonl.")
    assert skipped[:2] == ["  skipped 2: not JSON (lines 3, 5)", "  skipped 1: not UTF-8 (line 2)"]
    assert "te\\x1bxt" in skipped[2] and "\x1b" not in done.stderr and "(line 4)" in skipped[2]
    assert list(OwnJsonl(Path("new/out.jsonl")).read("all")) == list(
        FakeAnnotator().annotate_all(noted(numbered({1: "I am sad", 6: "\ud800"})))
    )


@pytest.mark.parametrize("text", ["", "\n\n", "{broken\n{\n"])
def test_nothing_annotated_is_an_error(call, text):
    Path("in.txt").write_text(text)
    for out in ((), ("--out", "out.jsonl")):
        done = call("in.txt", *out)
        assert isinstance(done.exception, InputError)
        assert "Nothing was annotated: in.txt holds no text" in str(done.exception)
        assert ("skipped 2: not JSON (lines 1, 2)" in done.stderr) == ("{" in text)
        assert done.stdout == ""
    assert [path.name for path in Path().iterdir()] == ["in.txt"]


@pytest.mark.parametrize("name", [name for name in CORPORA if not name.startswith(("pec_", "jsonl"))])
def test_every_corpus_can_be_annotated_and_read_back(call, name):
    done = call(name, "--out", "out.jsonl")
    assert done.exit_code == 0, done.exception
    found = list(OwnJsonl(Path("out.jsonl")).read("all"))
    reader = CORPORA.load(name)()
    given = [(split, item) for split in reader.available() for item in reader.read(split)]
    assert [(one.note("split"), one.id) for one in found] == [(split, item.id) for split, item in given]
    for one, (_, item) in zip(found, given, strict=True):
        texts = [item.text] if isinstance(item, LabelledText) else [turn.text for turn in item.turns]
        assert [turn.text for turn in one.turns] == texts
        assert all(turn.reading("emotion") for turn in one.turns)


def test_one_split_of_a_corpus_elsewhere(call, tmp_path):
    done = call("goemotions", "--split", "valid", "--path", SAMPLES / "goemotions")
    reader = CORPORA.load("goemotions")()
    found = lines(done.stdout)
    assert [one.id for one in found] == [item.id for item in reader.read("valid")]
    assert {one.note("split") for one in found} == {"valid"}


def test_the_settings_reach_the_annotator(call, loaded):
    options = (
        "--head",
        "act",
        "--heads",
        "emotion, act",
        "--top",
        "2",
        "--model",
        "ears",
        "--weights",
        "base",
    )
    done = call("-", *options, text="I am sad")
    assert loaded == [(Path("ears"), ("act", "emotion"), Path("base"))]
    (one,) = lines(done.stdout)
    assert [(reading.head, len(reading.scores)) for reading in one.turns[0].readings] == [
        ("act", 2),
        ("emotion", 2),
    ]
    call("-", text="I am sad")
    assert loaded[1] == (None, None, None)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("-", "--heads", "emotion,akt"), UnknownNameError, "no head named 'akt'. Did you mean 'act'"),
        (("-", "--heads", ","), InputError, "--heads names none"),
        (("goemotion",), InputError, "Did you mean the corpus 'goemotions'"),
        (("nowhere.txt",), InputError, "no file and no corpus named 'nowhere.txt'"),
        (("-", "--out", "old.jsonl"), InputError, "is there already, and finished"),
        (("-", "--out", "."), InputError, "is a folder"),
    ],
)
def test_errors_say_what_to_do_before_anything_is_loaded(call, loaded, arguments, error, message):
    Path("old.jsonl").write_text("old")
    done = call(*arguments, text="I am sad")
    assert isinstance(done.exception, error)
    assert message in str(done.exception)
    assert loaded == [] and Path("old.jsonl").read_text() == "old"


def test_overwrite_replaces_a_finished_file(call):
    Path("in.txt").write_text("I am sad\n")
    for text in ("I am sad", "I am glad"):
        Path("in.txt").write_text(text)
        assert call("in.txt", "--out", "out.jsonl", "--overwrite").exit_code == 0
    assert [one.turns[0].text for one in OwnJsonl(Path("out.jsonl")).read("all")] == ["I am glad"]


def test_a_file_can_be_annotated_in_its_place(call):
    Path("talk.jsonl").write_text('{"text": "I am sad"}\n')
    assert call("talk.jsonl", "--out", "talk.jsonl", "--overwrite").exit_code == 0
    (one,) = OwnJsonl(Path("talk.jsonl")).read("all")
    assert one.turns[0].reading("emotion")


def test_ctrl_c_says_how_to_go_on(call, monkeypatch):
    Path("in.txt").write_text("".join(f"line {number}\n" for number in range(20)))
    assert call("in.txt", "--out", "whole.jsonl").exit_code == 0
    real = FakeAnnotator.annotate_all

    def interrupted(self, dialogues, top=5):
        for dialogue in real(self, dialogues, top):
            if "line 10" in dialogue.turns[0].text:
                raise KeyboardInterrupt
            yield dialogue

    monkeypatch.setattr(FakeAnnotator, "annotate_all", interrupted)
    stopped = call("in.txt", "--out", "out.jsonl")
    assert stopped.exit_code == 130
    assert "Stopped after 10 lines. They are kept in" in stopped.stderr
    assert "The same command goes on from there." in stopped.stderr
    piped = call("in.txt")
    assert (piped.exit_code, piped.stderr.strip()) == (130, "Stopped after 10 lines.")
    monkeypatch.setattr(FakeAnnotator, "annotate_all", real)
    resumed = call("in.txt", "--out", "out.jsonl")
    assert resumed.stderr.startswith("20 lines annotated (8 of them before), ")
    assert Path("out.jsonl").read_bytes() == Path("whole.jsonl").read_bytes()


def test_a_pipe_in_the_files_place_is_written_to(call):
    os.mkfifo("pipe")
    reader = subprocess.Popen(["cat", "pipe"], stdout=subprocess.PIPE)
    assert call("-", "--out", "pipe", text="I am sad").exit_code == 0
    assert len(lines(reader.communicate(timeout=20)[0].decode())) == 1
    assert Path("pipe").is_fifo() and [path.name for path in Path().iterdir()] == ["pipe"]


def test_a_closed_pipe_is_no_error(tmp_path):
    file = tmp_path / "in.txt"
    file.write_text("I am sad\n" * 5_000)
    command = f"{' '.join(PROGRAM)} {file} | head -n 1"
    done = subprocess.run(
        command, shell=True, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert len(lines(done.stdout)) == 1
    assert done.stderr == ""


def test_lines_come_out_while_the_input_is_still_open():
    running = subprocess.Popen([*PROGRAM, "-"], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    for text in ("I am sad", "I am glad"):
        running.stdin.write(f"{text}\n".encode())
        running.stdin.flush()
        assert select.select([running.stdout], [], [], 20)[0]
        assert Dialogue.from_json(running.stdout.readline()).turns[0].text == text
    running.stdin.close()
    assert running.stdout.read() == b""
    assert running.wait(20) == 0


def test_ctrl_c_while_it_waits_for_a_line_ends_it_in_order():
    running = subprocess.Popen(
        [*PROGRAM, "-"], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    running.stdin.write(b"I am sad\n")
    running.stdin.flush()
    assert select.select([running.stdout], [], [], 20)[0] and running.stdout.readline()
    time.sleep(0.3)  # until it waits again
    running.send_signal(signal.SIGINT)
    assert running.wait(20) == 130
    assert re.fullmatch(r"\s*Stopped after [01] lines\.\s*", running.stderr.read().decode())
    running.stdin.close()


def test_without_standard_input_it_says_so():
    done = subprocess.run(
        f"{' '.join(PROGRAM)} - <&-", shell=True, cwd=ROOT, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert done.returncode == 1 and "no standard input" in done.stderr and "Traceback" not in done.stderr


TALK = '{"turns": [{"speaker": "ann", "text": "Hi."}, {"speaker": "bob", "text": "Hello."}]}\n'


def test_nobody_who_listens_is_remarked_and_mended_by_a_name(call):
    Path("talk.jsonl").write_text(TALK * 3 + '{"text": "alone"}\n')
    remark = call("talk.jsonl").stderr.splitlines()[1:]
    assert remark == [
        "3 dialogues have two or more turns, but none of their listener. Say who listens: --listener NAME"
    ]
    named = call("talk.jsonl", "--listener", "bob", "--out", "out.jsonl")
    assert len(named.stderr.splitlines()) == 1
    assert {one.listener for one in OwnJsonl(Path("out.jsonl")).read("all")} == {"bob"}
    assert "1 dialogue has two or more turns, but none of its listener." in call("-", text=TALK).stderr
    nobody = call("talk.jsonl", "--listener", "")
    assert "--listener names nobody" in str(nobody.exception)


def test_a_head_that_read_nothing_is_named(call, monkeypatch):
    class Deaf(FakeAnnotator):
        def annotate_all(self, dialogues, top=5):
            self.heads = ("act",)
            return super().annotate_all(dialogues, top)

    sys.modules["listenwell.annotators.annotator"].Annotator = Deaf
    done = call("-", "--heads", "act,exploration,emotion", text="I am sad")
    assert done.stderr.splitlines()[1:] == [
        "exploration was read nowhere: it needs the listener's turns after another person's.",
        "emotion was read nowhere: it needs turns of everyone but the listener.",
    ]
    assert len(call("-", text="I am sad").stderr.splitlines()) == 1  # nothing was asked for


def test_ctrl_c_in_a_real_process_leaves_a_run_that_goes_on(tmp_path):
    file, out = tmp_path / "in.txt", tmp_path / "out.jsonl"
    file.write_text("I am sad\n" * 300)
    running = subprocess.Popen(
        [*PROGRAM, file, "--out", out],
        cwd=ROOT, env={**os.environ, "FAKE_PAUSE": "0.01"}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    part = tmp_path / "out.jsonl.part"
    while running.poll() is None and not (part.exists() and part.stat().st_size):
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    errors = running.communicate(timeout=20)[1]
    assert running.returncode == 130, errors
    assert "The same command goes on from there." in errors and "Traceback" not in errors
    subprocess.run([*PROGRAM, file, "--out", out], cwd=ROOT, check=True, capture_output=True, timeout=60)
    assert len(out.read_bytes().splitlines()) == 300


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_the_bar_shows_a_rate_and_takes_names_as_text(monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "150")
    with progress("annotating [bold]x[/oops]", unit="lines", rate=True) as advance:
        advance(100)  # an earlier run's: no part of the rate
        for _ in range(20):
            time.sleep(0.02)
            advance(1)
        time.sleep(0.15)
    text = screen.getvalue()
    assert "annotating [bold]x[/oops]" in text and "lines" in text
    rates = [float(piece.split()[-1]) for piece in text.split("/s")[:-1]]
    assert rates and 5 < rates[-1] < 51


def test_help_needs_no_model():
    check = (
        "import sys; from listenwell.cli import app; from typer.testing import CliRunner\n"
        "done = CliRunner().invoke(app, ['annotate', '--help'])\n"
        "assert done.exit_code == 0 and '--overwrite' in done.output\n"
        "heavy = {'torch', 'transformers', 'numpy', 'listenwell.annotators'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run(
        [sys.executable, "-c", check], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
