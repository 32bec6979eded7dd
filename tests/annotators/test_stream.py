import errno
import io
import json
import os
import queue
import random
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from listenwell import annotators
from listenwell.annotators import stream
from listenwell.annotators.inputs import LineSource, Source
from listenwell.annotators.stream import GrowingFile, Stream
from listenwell.corpora import Report
from listenwell.corpora.own import OwnJsonl
from listenwell.dialogue import Dialogue, Factors, Turn
from listenwell.errors import InputError, ListenwellError

from .fake import FakeAnnotator, noted, said

ROOT = Path(__file__).parents[2]


def silent(count):
    pass


class Given(Source):
    """Dialogues from a list, counted as they are read."""

    name = identity = "given"

    def __init__(self, dialogues):
        self.dialogues = list(dialogues)
        self.report = Report()
        self.taken = 0

    def __iter__(self):
        for dialogue in self.dialogues:
            self.taken += 1
            yield dialogue


@pytest.fixture(autouse=True)
def small_windows(monkeypatch):
    monkeypatch.setattr(stream, "WINDOW", 4)


NUMBERS = said(*(f"I am number {number}." for number in range(11)))


def write(file, dialogues=NUMBERS, overwrite=False, **settings):
    """Annotate into a file as the command does; returns the stream."""
    one = Stream(FakeAnnotator(settings.pop("heads", None)), Given(dialogues), **settings)
    one.write_file(GrowingFile(file, overwrite), silent)
    return one


def stop(file, lines, half=b"", **settings):
    """What a run that was killed after so many lines leaves behind; returns the whole file's bytes."""
    whole = file.with_name("whole.jsonl")
    write(whole, overwrite=True, **settings)
    growing = GrowingFile(file)
    with growing:
        one = Stream(FakeAnnotator(settings.pop("heads", None)), Given(NUMBERS), **settings)
        growing.begin(one.run(), iter(()))
        for line in whole.read_bytes().splitlines(keepends=True)[:lines]:
            growing.add(line)
        growing.add(half)
    return whole.read_bytes()


def test_lines_go_out_in_order_and_come_back(tmp_path):
    out = tmp_path / "new" / "out.jsonl"
    texts = ["I am sad", "NUL \0 [SEP] 🙂 \u2028", "lone \ud800"]
    given = said(*texts)
    assert write(out, given).lines == 3
    found = list(OwnJsonl(out).read("all"))
    assert found == list(FakeAnnotator().annotate_all(noted(given)))
    assert all(turn.reading("emotion") and turn.factors.act for one in found for turn in one.turns)
    assert [path.name for path in out.parent.iterdir()] == ["out.jsonl"]
    pipe = io.BytesIO()
    Stream(FakeAnnotator(), Given(given)).write(pipe, silent)
    assert pipe.getvalue() == out.read_bytes()


def test_reading_never_runs_ahead_of_writing_by_more_than_a_window(tmp_path):
    source, ahead = Given(NUMBERS * 20), []
    one = Stream(FakeAnnotator(), source)
    one.write_file(GrowingFile(tmp_path / "out.jsonl"), lambda count: ahead.append(source.taken - one.lines))
    assert len(ahead) == 220 and max(ahead) < stream.WINDOW


class Live(Given):
    """Dialogues from a queue, as someone at the other end gives them; an error is raised."""

    is_live = True

    def __init__(self):
        super().__init__(())
        self.given = queue.Queue()

    def __iter__(self):
        while (one := self.given.get(timeout=10)) is not None:
            if isinstance(one, Exception):
                raise one
            yield one


def test_a_live_input_is_answered_before_it_goes_on():
    source, out = Live(), io.BytesIO()
    rest = iter([*NUMBERS[1:], None])

    def answer(count):
        # Only now is there another: a stream that waited for it would wait for ever.
        assert len(out.getvalue().splitlines()) == one.lines
        source.given.put(next(rest))

    one = Stream(FakeAnnotator(), source)
    source.given.put(NUMBERS[0])
    one.write(out, answer)
    texts = [json.loads(line)["turns"][0]["text"] for line in out.getvalue().splitlines()]
    assert texts == [dialogue.turns[0].text for dialogue in NUMBERS]


def test_what_is_there_already_is_taken_together_up_to_a_window():
    source, sizes = Live(), []

    class Counting(FakeAnnotator):
        def annotate_all(self, dialogues, top=5):
            sizes.append(len(dialogues))
            time.sleep(0.2)  # the rest arrives meanwhile
            yield from super().annotate_all(dialogues, top)

    for dialogue in [*NUMBERS, None]:
        source.given.put(dialogue)
    Stream(Counting(), source).write(io.BytesIO(), silent)
    assert sum(sizes) == 11 and sizes[1] == max(sizes) == stream.WINDOW


def test_an_error_of_a_live_input_comes_after_the_lines_before_it():
    source, out = Live(), io.BytesIO()
    for one in (NUMBERS[0], InputError("It broke.", "Mend it.")):
        source.given.put(one)
    with pytest.raises(InputError, match="It broke"):
        Stream(FakeAnnotator(), source).write(out, silent)
    assert len(out.getvalue().splitlines()) == 1


def test_there_is_one_window(monkeypatch):
    monkeypatch.undo()
    assert stream.WINDOW is annotators.WINDOW


def test_an_input_that_cannot_be_read_leaves_nothing(tmp_path):
    class Broken(Given):
        def __iter__(self):
            raise InputError("It broke.", "Mend it.")
            yield

    with pytest.raises(InputError, match="It broke"):
        Stream(FakeAnnotator(), Broken(())).write_file(GrowingFile(tmp_path / "out.jsonl"), silent)
    assert not list(tmp_path.iterdir())


def talk(*speakers, listener="listener"):
    return Dialogue(tuple(Turn(name, f"I am {name}.") for name in speakers), listener=listener)


def test_dialogues_without_their_listener_are_counted():
    talks = [talk("a", "b"), talk("a"), talk("a", "listener"), talk("b", "a", listener="b")]
    for listener, unheard in ((None, 1), ("a", 0), ("b", 1), ("c", 3)):
        one, out = Stream(FakeAnnotator(), Given(talks), listener=listener), io.BytesIO()
        one.write(out, silent)
        assert one.without_listener == unheard
        found = [Dialogue.from_json(line).listener for line in out.getvalue().splitlines()]
        assert found == [listener or given.listener for given in talks]


def test_a_run_that_went_on_knows_what_the_earlier_one_read(tmp_path):
    out = tmp_path / "out.jsonl"
    stop(out, 4)

    class Deaf(FakeAnnotator):
        def annotate_all(self, dialogues, top=5):
            return iter(dialogues)

    one = Stream(Deaf(), Given(NUMBERS))
    one.write_file(GrowingFile(out), silent)
    assert (one.earlier, one.read) == (4, {"emotion", "act"})


@pytest.mark.parametrize("half", [b"", b'{"turns": [{"spea'])
@pytest.mark.parametrize("lines", [0, 1, 3, 4, 5, 8, 11])
def test_a_stopped_run_goes_on_to_the_same_bytes(tmp_path, lines, half):
    out = tmp_path / "out.jsonl"
    whole = stop(out, lines, half)
    one = write(out)
    assert out.read_bytes() == whole
    assert (one.lines, one.earlier) == (11, lines // 4 * 4)
    assert {path.name for path in tmp_path.iterdir()} == {"out.jsonl", "whole.jsonl"}


def test_only_whole_windows_are_kept_because_the_batch_moves_the_figures(tmp_path):
    # The fake's figures follow from the place in the window: going on in its midst would change them.
    out = tmp_path / "out.jsonl"
    whole = stop(out, 6)
    with GrowingFile(out) as growing:
        rest = growing.begin(Stream(FakeAnnotator(), Given(())).run(), iter(noted(NUMBERS)))
        assert growing.kept == 4 and list(rest) == noted(NUMBERS)[4:]
    assert GrowingFile(out).part.read_bytes() == b"".join(whole.splitlines(keepends=True)[:4])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"top": 3}, "top 5, now 3"),
        ({"listener": "ann"}, "listener none, now ann"),
        (
            {"heads": ("act",)},
            "annotator fake None emotion,act, now fake None act; heads emotion, act, now act",
        ),
        ({"dialogues": NUMBERS[:2]}, "jsonl.part:3 was made from another input"),
        ({"dialogues": [*NUMBERS[:4], *said("other")]}, "jsonl.part:5 was made from another input"),
        ({"dialogues": [replace(NUMBERS[0], id="x"), *NUMBERS[1:]]}, "jsonl.part:1 was made from another"),
        ({"dialogues": []}, "jsonl.part:1 was made from another input"),
    ],
)
def test_going_on_under_other_settings_is_refused(tmp_path, changes, message):
    out = tmp_path / "out.jsonl"
    stop(out, 6)
    kept = GrowingFile(out).part.read_bytes()
    with pytest.raises(InputError) as raised:
        write(out, **changes)
    assert message in str(raised.value) and "--overwrite" in str(raised.value)
    assert not out.exists() and GrowingFile(out).part.read_bytes() == kept
    if changes.get("dialogues") != []:
        write(out, overwrite=True, **changes)
        write(tmp_path / "fresh.jsonl", **changes)
        assert out.read_bytes() == (tmp_path / "fresh.jsonl").read_bytes()


@pytest.mark.parametrize("name", ["source", "splits", "window", "version", "annotator"])
def test_every_setting_is_compared(tmp_path, name):
    out = tmp_path / "out.jsonl"
    stop(out, 6)
    mark = GrowingFile(out).mark
    data = json.loads(mark.read_text())
    data[name] = {"splits": ["train"], "window": 8}.get(name, "other")
    mark.write_text(json.dumps(data))
    with pytest.raises(InputError, match=f"under other settings: {name} "):
        write(out)


def test_known_factors_of_the_input_are_compared_too(tmp_path):
    out = tmp_path / "out.jsonl"

    def told(act, expressed_emotion=None):
        return [
            replace(
                one,
                turns=(replace(one.turns[0], factors=Factors(act=act, expressed_emotion=expressed_emotion)),),
            )
            for one in NUMBERS
        ]

    class Interrupted(Given):
        def __iter__(self):
            yield from self.dialogues[:8]
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Stream(FakeAnnotator(), Interrupted(told("wishing"))).write_file(GrowingFile(out), silent)
    for other in (told("questioning"), told("wishing", "anger")):
        with pytest.raises(InputError, match="part:1 was made from another input"):
            write(out, other)
    assert write(out, told("wishing")).earlier == 8


@pytest.mark.parametrize("damage", [b"nonsense\n", b"\0\0\0\0\n", b'{"turns": 5}\n', b"[]\n", b"\n"])
def test_a_damaged_line_is_named(tmp_path, damage):
    out = tmp_path / "out.jsonl"
    stop(out, 2, damage)
    with pytest.raises(InputError, match=r"part:3 is damaged. Begin anew with --overwrite"):
        write(out)


def test_a_damaged_mark_is_named(tmp_path):
    out = tmp_path / "out.jsonl"
    whole = stop(out, 2)
    GrowingFile(out).mark.write_text("{")
    with pytest.raises(InputError, match=r"part.json is damaged. Begin anew with --overwrite"):
        write(out)
    write(out, overwrite=True)
    assert out.read_bytes() == whole


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_strangers_file_in_the_way_is_left_alone(tmp_path, overwrite):
    stranger = tmp_path / "out.jsonl.part"
    stranger.write_text("mine")
    with pytest.raises(InputError, match="in the way"):
        write(tmp_path / "out.jsonl", overwrite=overwrite)
    assert stranger.read_text() == "mine"


def test_a_finished_file_is_replaced_only_on_demand_and_only_whole(tmp_path):
    out = tmp_path / "out.jsonl"
    out.write_text("old")
    with pytest.raises(InputError, match=r"is there already, and finished.*--overwrite"):
        write(out)

    class Broken(Given):
        def __iter__(self):
            yield from self.dialogues[:6]
            raise KeyboardInterrupt

    growing = GrowingFile(out, overwrite=True)
    with pytest.raises(KeyboardInterrupt):
        Stream(FakeAnnotator(), Broken(NUMBERS)).write_file(growing, silent)
    assert out.read_text() == "old"
    assert growing.how_to_go_on() == "The same command without --overwrite goes on from there."
    assert write(out).earlier == 4
    assert len(list(OwnJsonl(out).read("all"))) == 11
    with pytest.raises(InputError, match="finished"):
        write(out)


def test_without_a_dialogue_nothing_is_left_and_the_old_file_stays(tmp_path):
    write(tmp_path / "none.jsonl", [])
    assert not list(tmp_path.iterdir())
    (tmp_path / "old.jsonl").write_text("old")
    write(tmp_path / "old.jsonl", [], overwrite=True)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def test_a_link_is_followed(tmp_path):
    (tmp_path / "there").mkdir()
    link = tmp_path / "link.jsonl"
    link.symlink_to(tmp_path / "there" / "real.jsonl")
    write(link)
    assert link.is_symlink() and (tmp_path / "there" / "real.jsonl").is_file()


def test_two_at_once_are_not_mixed(tmp_path):
    out = tmp_path / "out.jsonl"
    one = Stream(FakeAnnotator(), Given(NUMBERS))
    with GrowingFile(out) as first:
        first.begin(one.run(), iter(NUMBERS))
        with pytest.raises(InputError, match="Another process is writing"):
            write(out)
        with pytest.raises(InputError, match="Another process is writing"):
            write(out, overwrite=True)
    write(out)


def test_the_part_is_never_its_own_input(tmp_path):
    out = tmp_path / "out.jsonl"
    stop(out, 6)
    part = GrowingFile(out).part
    kept = part.read_bytes()
    one = Stream(FakeAnnotator(), LineSource(part))
    with pytest.raises(InputError, match="read and written at once"):
        one.write_file(GrowingFile(out, overwrite=True), silent)
    assert part.read_bytes() == kept


def test_a_full_disk_is_named_and_the_run_goes_on_later(tmp_path, monkeypatch):
    out, room, real = tmp_path / "out.jsonl", [3_000], os.write

    def write_while_there_is_room(descriptor, data):
        if not room[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        count = real(descriptor, data[: min(room[0], 100)])  # short writes are allowed, too
        room[0] -= count
        return count

    monkeypatch.setattr(os, "write", write_while_there_is_room)
    with pytest.raises(InputError, match=r"disk is full.*The same command goes on from there"):
        write(out)
    assert GrowingFile(out).part.stat().st_size == 3_000
    room[0] = 10**6
    assert write(out).earlier == 4
    monkeypatch.undo()
    monkeypatch.setattr(stream, "WINDOW", 4)
    write(tmp_path / "whole.jsonl")
    assert out.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


@pytest.mark.parametrize("place", ["folder", "file/out.jsonl"])
def test_a_place_that_cannot_be_written_is_named(tmp_path, place):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")
    with pytest.raises(ListenwellError, match=r"is a folder|Cannot write"):
        write(tmp_path / place)


@pytest.mark.kill
def test_a_kill_at_any_step_loses_and_doubles_no_line(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "tests.annotators.kills", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == 15  # the mark, 11 lines, the sync, the move, the tidying


@pytest.mark.kill
def test_kills_at_random_moments_lose_and_double_no_line(tmp_path):
    given, whole, out = tmp_path / "in.txt", tmp_path / "whole.jsonl", tmp_path / "out.jsonl"
    given.write_text("".join(f"I am number {number}, {'so ' * (number % 50)}sad.\n" for number in range(150)))
    command = [sys.executable, "-m", "tests.annotators.program", "annotate", str(given), "--out"]
    small = {**os.environ, "FAKE_WINDOW": "4"}
    subprocess.run([*command, str(whole)], cwd=ROOT, env=small, check=True, capture_output=True, timeout=60)
    moment, kills, sizes = random.Random(7), 0, set()
    part = tmp_path / "out.jsonl.part"
    while kills < 40 and not out.exists():
        running = subprocess.Popen(
            [*command, str(out)], cwd=ROOT, env={**small, "FAKE_PAUSE": "0.004"}, stderr=subprocess.PIPE
        )
        wait_for_growth(running, part)
        time.sleep(moment.uniform(0, 0.25))
        running.kill()
        errors = running.communicate(timeout=20)[1]
        assert running.returncode in (0, -9), errors.decode()
        kills += 1
        sizes.add(part.stat().st_size if part.exists() else 0)
    # A kill after the last move leaves the mark, which the next call takes away.
    again = subprocess.run([*command, str(out)], cwd=ROOT, check=False, capture_output=True, timeout=60)
    assert again.returncode == 1 and b"finished" in again.stderr
    assert out.read_bytes() == whole.read_bytes()
    assert kills >= 3 and len(sizes) >= 3
    assert {path.name for path in tmp_path.iterdir()} == {"in.txt", "whole.jsonl", "out.jsonl"}


def wait_for_growth(running, part):
    """Until the process is at work: its part changes, or it is done."""

    def state():
        try:
            return part.stat().st_mtime_ns
        except FileNotFoundError:
            return None

    before = state()
    while running.poll() is None and state() == before:
        time.sleep(0.005)
