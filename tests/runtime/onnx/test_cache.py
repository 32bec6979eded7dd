import errno
import os
import shutil
import time
from dataclasses import replace

import pytest

from listenwell.errors import InputError, WeightsError
from listenwell.files import cache_folder
from listenwell.runtime.onnx import cache
from listenwell.runtime.onnx.cache import Ingredients, graph_folder
from listenwell.runtime.onnx.graph import GRAPH, WEIGHTS, Graph


@pytest.fixture
def model(tiny_encoder):
    return Ingredients(tiny_encoder)


def test_a_graph_is_built_once(model, monkeypatch):
    folder = graph_folder(model)
    assert folder.is_relative_to(cache_folder())
    assert {path.name for path in folder.iterdir()} == {GRAPH, WEIGHTS, "tokenizer.json", "checkpoint.json"}
    assert [path.name for path in folder.parent.iterdir() if not path.name.startswith(".")] == [folder.name]
    monkeypatch.setattr(cache, "_build", lambda *_: pytest.fail("built again"))
    assert graph_folder(model) == folder


@pytest.mark.parametrize("name", [GRAPH, WEIGHTS, "tokenizer.json", "checkpoint.json"])
def test_a_damaged_file_is_made_again(model, name, capsys):
    folder = graph_folder(model)
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole[:-3])
    assert graph_folder(model) == folder
    assert (folder / name).read_bytes() == whole
    assert "is damaged. It is made again." in capsys.readouterr().err


def test_the_key_names_all_that_shapes_a_graph(tiny_llama, tmp_path, monkeypatch):
    base = Ingredients(tiny_llama)
    (tmp_path / "adapter_config.json").write_text("{}")
    (tmp_path / "adapter_model.safetensors").write_bytes(b"1")
    other = shutil.copytree(tiny_llama, tmp_path / "copy")
    assert Ingredients(other).key() == base.key()  # the same weights in another place
    keys = [
        base.key(),
        replace(base, precision="fp32").key(),
        replace(base, adapter=tmp_path).key(),
    ]
    (tmp_path / "adapter_model.safetensors").write_bytes(b"2")
    keys.append(replace(base, adapter=tmp_path).key())
    (tmp_path / "added_tokens.safetensors").write_bytes(b"3")
    keys.append(replace(base, adapter=tmp_path).key())
    (other / "config.json").write_text((other / "config.json").read_text() + " ")
    keys.append(Ingredients(other).key())
    monkeypatch.setattr(cache, "GRAPH_VERSION", 0)
    keys.append(base.key())
    monkeypatch.setattr(cache, "version", lambda package: "0")
    keys.append(base.key())
    assert len(set(keys)) == len(keys)


def test_a_full_disk_is_a_clear_error_and_leaves_nothing(model, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Graph, "save", full)
    with pytest.raises(InputError, match=r"The disk is full: free some space"):
        graph_folder(model)
    assert [path.name for path in (cache_folder() / "graphs").iterdir() if path.is_dir()] == []


def test_what_is_missing_or_unknown_is_named(model, tmp_path):
    with pytest.raises(WeightsError, match=r"There is no .*config\.json"):
        graph_folder(Ingredients(tmp_path))
    with pytest.raises(InputError, match=r"precision is 'int4'.*int8, fp32"):
        replace(model, precision="int4")


def test_a_sum_is_remembered_until_the_file_changes(tmp_path, monkeypatch):
    read, real = [], cache.sha256
    monkeypatch.setattr(cache, "sha256", lambda path: read.append(path) or real(path))
    file = tmp_path / "file"
    file.write_bytes(b"one")
    before = time.time() - 60
    os.utime(file, (before, before))
    first = cache.known_sha256(file)
    assert cache.known_sha256(file) == first == real(file)
    assert len(read) == 1
    file.write_bytes(b"two")
    assert cache.known_sha256(file) == real(file) != first


def test_a_file_of_this_moment_is_read_every_time(tmp_path, monkeypatch):
    """It can change again within the clock's tick."""
    file = tmp_path / "file"
    file.write_bytes(b"one")
    cache.known_sha256(file)
    stamp = file.stat().st_mtime_ns
    file.write_bytes(b"two")
    os.utime(file, ns=(stamp, stamp))
    assert cache.known_sha256(file) == cache.sha256(file)
