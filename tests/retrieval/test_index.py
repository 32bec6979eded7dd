import errno
import os
import shutil
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from listenwell.errors import InputError
from listenwell.retrieval.index import open_index
from listenwell.retrieval.pool import find_pool
from tests.rankers.pool_fake import FakeSelector, vector

TEXTS = [f"Reply number {number}, ü." for number in range(10)]


@pytest.fixture
def pool(tmp_path):
    file = tmp_path / "pool.txt"
    file.write_text("\n".join([*TEXTS, "", TEXTS[0]]), encoding="utf-8")
    return find_pool(str(file))


def opened(pool, selector=None, batch=4):
    selector = selector or FakeSelector()
    return open_index(selector, pool, batch), selector


def assert_right(index):
    assert list(index.replies) == TEXTS
    assert index.vectors.shape == (10, 8) and index.vectors.dtype == np.float16
    np.testing.assert_allclose(index.vectors, [vector(text) for text in TEXTS], atol=1e-3)


def test_the_pool_is_encoded_once_and_kept_with_its_counts(pool):
    index, first = opened(pool)
    assert_right(index)
    assert first.encoded == TEXTS
    again, second = opened(pool)
    assert_right(again)
    assert second.encoded == []
    assert again.contents == index.contents
    assert dict(again.contents.skipped) == {"empty": 1, "said before in the pool": 1}
    assert isinstance(index.vectors, np.memmap)
    assert index.most_memory > 10 * 8 * 2
    assert index.replies[9] == TEXTS[9]
    with pytest.raises(IndexError):
        index.replies[10]


def test_another_ranker_pool_or_setting_has_its_own_folder(pool):
    folders = {opened(pool)[0].folder}
    folders.add(opened(pool, FakeSelector("another"))[0].folder)
    folders.add(opened(pool, batch=5)[0].folder)
    pool.longest = 999
    folders.add(opened(pool)[0].folder)
    pool.file.write_text("\n".join([*TEXTS, "one more"]), encoding="utf-8")
    folders.add(opened(pool)[0].folder)
    assert len(folders) == 5


def test_a_stopped_run_goes_on_where_it_was(pool):
    with pytest.raises(KeyboardInterrupt):
        opened(pool, FakeSelector(stop_after=4))
    index, rest = opened(pool)
    assert rest.encoded == TEXTS[4:]
    assert_right(index)


@pytest.mark.kill
def test_a_kill_at_any_moment_loses_at_most_the_part_in_the_making(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "tests.rankers.pool_kills", str(tmp_path)],
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 10


def test_damaged_vectors_are_made_again(pool):
    index, _ = opened(pool)
    with (index.folder / "vectors.f16").open("r+b") as file:
        file.seek(5 * 16)
        file.write(b"\xff" * 16)
    again, selector = opened(pool)
    assert selector.encoded == TEXTS
    assert_right(again)
    assert opened(pool)[1].encoded == []


def test_a_touched_but_sound_file_is_kept(pool):
    index, _ = opened(pool)
    os.utime(index.folder / "vectors.f16", ns=(1, 1))
    os.utime(index.folder / "replies.bin", ns=(1, 1))
    again, selector = opened(pool)
    assert selector.encoded == []
    assert_right(again)


@pytest.mark.parametrize(
    ("name", "content", "made_again"),
    [
        ("vectors.f16", b"", 10),
        ("vectors.f16", None, 10),
        ("vectors.json", b"{", 10),
        ("vectors.json", b"\xff\xff", 10),
        ("replies.bin", b"other texts", 0),
        ("offsets.npy", b"", 0),
        ("pool.json", b"{}", 0),
        ("pool.json", None, 0),
    ],
)
def test_a_damaged_folder_is_made_whole(pool, name, content, made_again):
    index, _ = opened(pool)
    file = index.folder / name
    file.unlink() if content is None else file.write_bytes(content)
    again, selector = opened(pool)
    assert len(selector.encoded) == made_again
    assert_right(again)


def test_a_letter_that_changed_in_the_texts_is_put_right(pool):
    file = opened(pool)[0].folder / "replies.bin"
    file.write_bytes(file.read_bytes().replace(b"number 3", b"number 8"))
    assert_right(opened(pool)[0])


def test_what_hangs_on_behind_is_cut_off(pool):
    index, _ = opened(pool)
    with (index.folder / "vectors.f16").open("ab") as file:
        file.write(b"more")
    again, selector = opened(pool)
    assert selector.encoded == [] and (index.folder / "vectors.f16").stat().st_size == 10 * 16
    assert_right(again)


def test_half_a_part_that_a_kill_left_is_cut_off(pool):
    with pytest.raises(KeyboardInterrupt):
        opened(pool, FakeSelector(stop_after=4))
    (vectors,) = pool.file.parent.glob("cache/pools/*/vectors.f16")
    with vectors.open("ab") as file:
        file.write(b"half of a part")
    index, selector = opened(pool)
    assert selector.encoded == TEXTS[4:]
    assert_right(index)


def test_a_file_that_was_cut_short_is_made_again(pool):
    index, _ = opened(pool)
    os.truncate(index.folder / "vectors.f16", 9 * 16)
    assert_right(opened(pool)[0])


def full(*_arguments):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_told_before_anything_is_encoded(pool, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=10))
    selector = FakeSelector()
    with pytest.raises(InputError, match="disk is full"):
        opened(pool, selector)
    assert selector.encoded == []


def test_a_disk_that_fills_up_later_is_told_too_and_the_run_goes_on(pool, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr("os.write", full)
        with pytest.raises(InputError, match="disk is full"):
            opened(pool)
    assert_right(opened(pool)[0])


@pytest.mark.parametrize("wrong", [np.zeros((4, 7)), np.full((4, 8), np.nan), np.full((4, 8), 1e6)])
def test_vectors_that_cannot_be_kept_are_an_error(pool, wrong):
    selector = FakeSelector()
    selector.reply_vectors = lambda replies, advance=None: wrong
    with pytest.raises(InputError, match="cannot be kept as float16"):
        opened(pool, selector)


def test_an_empty_pool_is_an_error_that_says_what_was_found(tmp_path):
    file = tmp_path / "empty.txt"
    file.write_text("\n \n")
    with pytest.raises(InputError, match="holds no reply: skipped 2: empty"):
        opened(find_pool(str(file)))


def test_a_pool_that_changes_under_the_reader_is_not_kept(pool):
    class Growing(type(pool)):
        def __iter__(self):
            yield from super().__iter__()
            self.file.write_text("something else")

    with pytest.raises(InputError, match="changed while it was read"):
        opened(Growing(pool.file))
