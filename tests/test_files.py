import errno
import os
import subprocess
import sys
import textwrap

import pytest

from listenwell.errors import InputError
from listenwell.files import ResumableJsonl, disk_errors, folder_written_whole, recover, written_whole


def test_a_file_appears_only_when_it_is_whole(tmp_path):
    file = tmp_path / "new" / "out.txt"
    with written_whole(file) as out:
        out.write(b"half")
        assert not file.exists()
        out.write(b" and half")
    assert file.read_bytes() == b"half and half"
    assert list(file.parent.iterdir()) == [file]


def test_an_error_leaves_the_old_file(tmp_path):
    file = tmp_path / "out.txt"
    file.write_text("old")
    with pytest.raises(RuntimeError), written_whole(file) as out:
        out.write(b"new")
        raise RuntimeError
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_an_error_leaves_the_old_folder(tmp_path):
    folder = tmp_path / "model"
    with folder_written_whole(folder) as aside:
        (aside / "a").write_text("old")
    with pytest.raises(RuntimeError), folder_written_whole(folder) as aside:
        (aside / "a").write_text("new")
        raise RuntimeError
    assert (folder / "a").read_text() == "old"
    assert list(tmp_path.iterdir()) == [folder]


def test_a_folder_is_replaced_whole(tmp_path):
    folder = tmp_path / "model"
    for text in ("old", "new"):
        with folder_written_whole(folder) as aside:
            (aside / text).write_text(text)
    assert [path.name for path in folder.iterdir()] == ["new"]
    assert list(tmp_path.iterdir()) == [folder]


@pytest.mark.parametrize("moves", [0, 1, 2])
def test_a_kill_at_any_move_loses_neither_the_old_nor_the_new_folder(tmp_path, moves):
    folder = tmp_path / "model"
    with folder_written_whole(folder) as aside:
        (aside / "a").write_text("old")
    program = f"""
        import os, pathlib, signal
        from listenwell.files import folder_written_whole
        rename, left = pathlib.Path.rename, [{moves}]
        def killed(self, target):
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= 1
            return rename(self, target)
        pathlib.Path.rename = killed
        with folder_written_whole(pathlib.Path({str(folder)!r})) as aside:
            (aside / "a").write_text("new")
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=False, timeout=60)
    recover(folder)
    assert (folder / "a").read_text() == ("new" if moves == 2 else "old")


@pytest.mark.parametrize(
    ("number", "advice"), [(errno.ENOSPC, "full"), (errno.EACCES, "may write"), (errno.EROFS, "read-only")]
)
def test_disk_trouble_says_what_to_do(tmp_path, number, advice):
    with pytest.raises(InputError, match=advice), disk_errors(tmp_path):
        raise OSError(number, os.strerror(number))


def test_a_full_disk_is_a_clear_error():
    with pytest.raises(InputError, match="full"), disk_errors("/dev/full"), open("/dev/full", "wb") as full:  # noqa: PTH123
        full.write(b"x" * 100_000)


def test_a_link_is_followed_and_a_pipe_is_written_to(tmp_path):
    target, link = tmp_path / "real.txt", tmp_path / "link.txt"
    target.write_text("old")
    link.symlink_to(target)
    with written_whole(link) as out:
        out.write(b"new")
    assert link.is_symlink() and target.read_text() == "new"

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE)
    with written_whole(pipe) as out:
        out.write(b"through")
    assert reader.communicate(timeout=20)[0] == b"through"
    assert pipe.is_fifo()


def test_a_folder_in_the_files_place_is_a_clear_error(tmp_path):
    with pytest.raises(InputError, match="Cannot write"), written_whole(tmp_path) as out:
        out.write(b"x")
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="Cannot write"), written_whole(tmp_path / "file" / "x") as out:
        out.write(b"x")


def test_a_resumable_file_goes_on_after_a_kill(tmp_path):
    path, part = tmp_path / "pairs.jsonl", tmp_path / "pairs.jsonl.part"
    ResumableJsonl(path, {"seed": 1}).add("0", ["a", "b"])
    part.write_bytes(part.read_bytes() + b'["1", ["c')  # a kill in the middle of a line
    assert not path.exists()
    with pytest.raises(InputError, match="begun with other inputs or settings"):
        ResumableJsonl(path, {"seed": 2})
    resumed = ResumableJsonl(path, {"seed": 1})
    assert "0" in resumed and "1" not in resumed
    resumed.add("1", ["d"])
    assert resumed.finish() == ["a", "b", "d"] and path.read_text() == "a\nb\nd\n"
    assert not part.exists()
    with pytest.raises(InputError, match="finished"):
        ResumableJsonl(path, {"seed": 1})
