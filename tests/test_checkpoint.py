import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from listenwell.checkpoint import BEST, FORMAT, MANIFEST, find_checkpoint, open_checkpoint, writing
from listenwell.errors import CheckpointError


@pytest.fixture
def saved(tmp_path):
    folder = tmp_path / "model"
    with writing(folder, "tiny") as aside:
        (aside / "config.json").write_text('{"width": 3}')
        (aside / "sub").mkdir()
        (aside / "sub" / "weights").write_bytes(bytes(range(256)))
    return folder


def test_what_was_saved_is_opened(saved):
    found = open_checkpoint(saved, "tiny")
    assert found.kind == "tiny"
    assert found.config() == {"width": 3}
    assert found.path("sub/weights").read_bytes() == bytes(range(256))


@pytest.mark.parametrize(("here", "folder"), [(".", "."), (".", ""), ("sub", ".."), ("sub", "../.")])
def test_it_is_opened_from_within(saved, monkeypatch, here, folder):
    monkeypatch.chdir(saved / here)
    assert open_checkpoint(Path(folder)).config() == {"width": 3}


def test_a_folder_without_a_name_is_no_checkpoint():
    with pytest.raises(CheckpointError, match=f"has no {MANIFEST}"):
        open_checkpoint(Path("/"))


def test_it_is_written_where_one_stands(saved, monkeypatch):
    monkeypatch.chdir(saved)
    with writing(Path(), "tiny") as aside:
        (aside / "config.json").write_text('{"width": 4}')
    assert open_checkpoint(saved).config() == {"width": 4}
    assert [path.name for path in saved.parent.iterdir()] == ["model"]


def test_a_run_is_known_by_its_best(saved, tmp_path):
    run = tmp_path / "run"
    assert find_checkpoint(saved) == saved
    assert find_checkpoint(run) == run  # there is none: what opens it says so
    run.mkdir()
    assert find_checkpoint(run) == run
    saved.rename(run / BEST)
    assert find_checkpoint(run) == find_checkpoint(run / BEST) == run / BEST
    # A kill in the middle of writing left the previous one only.
    (run / BEST).rename(run / f".{BEST}.previous")
    assert find_checkpoint(run) == run / BEST and open_checkpoint(run / BEST).kind == "tiny"


def test_every_byte_counts(saved):
    file = saved / "sub" / "weights"
    for place in (0, 100, 255):
        content = bytearray(range(256))
        content[place] ^= 1
        file.write_bytes(content)
        with pytest.raises(CheckpointError, match=r"weights is damaged.*make it anew"):
            open_checkpoint(saved)


def test_a_missing_file_is_named(saved):
    (saved / "config.json").unlink()
    with pytest.raises(CheckpointError, match=r"lacks config\.json"):
        open_checkpoint(saved)


def test_a_file_that_came_later_is_not_part_of_it(saved):
    (saved / "extra.bin").write_bytes(b"x")
    with pytest.raises(CheckpointError, match=r"holds no extra\.bin"):
        open_checkpoint(saved).path("extra.bin")


def test_another_kind_is_refused(saved):
    with pytest.raises(CheckpointError, match="'tiny' checkpoint, not 'llama'"):
        open_checkpoint(saved, "llama")


def test_a_foreign_folder_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="no such folder"):
        open_checkpoint(tmp_path / "none")
    with pytest.raises(CheckpointError, match=f"has no {MANIFEST}"):
        open_checkpoint(tmp_path)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": 1}', '{"format":1,"kind":"a","sha256":{"a":1}}', "\x80"]
)
def test_a_damaged_manifest_is_refused(saved, text):
    (saved / MANIFEST).write_bytes(text.encode("latin-1"))
    with pytest.raises(CheckpointError, match="damaged or foreign"):
        open_checkpoint(saved)


def test_another_format_is_refused(saved):
    manifest = json.loads((saved / MANIFEST).read_text())
    (saved / MANIFEST).write_text(json.dumps(manifest | {"format": FORMAT + 1}))
    with pytest.raises(CheckpointError, match=f"format {FORMAT + 1}"):
        open_checkpoint(saved)


def test_a_manifest_cannot_point_outside(saved):
    manifest = json.loads((saved / MANIFEST).read_text())
    (saved / MANIFEST).write_text(json.dumps(manifest | {"sha256": {"../secret": "0"}}))
    with pytest.raises(CheckpointError, match="outside of itself"):
        open_checkpoint(saved)


def test_a_kill_while_writing_leaves_the_old_checkpoint(saved):
    program = f"""
        import os, pathlib, signal
        from listenwell.checkpoint import writing
        with writing(pathlib.Path({str(saved)!r}), "tiny") as aside:
            (aside / "config.json").write_text("half")
            os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=False, timeout=60)
    assert done.returncode == -9
    assert open_checkpoint(saved).config() == {"width": 3}
