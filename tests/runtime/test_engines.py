import pytest

from listenwell.errors import InputError, MissingExtraError, UnknownNameError
from listenwell.runtime import engines
from listenwell.runtime.engines import Engine, choose_engine, load_runtime
from listenwell.runtime.onnx.engine import OnnxRuntime
from listenwell.runtime.torch_engine import TorchRuntime


def without(monkeypatch, missing):
    monkeypatch.setattr(engines, "is_installed", lambda package: package != missing)


def test_the_choice_of_an_engine(monkeypatch):
    assert choose_engine("torch", "It") == choose_engine("auto", "It", fits=False) == "torch"
    assert choose_engine("auto", "It") == choose_engine("onnx", "It") == "onnx"
    with pytest.raises(UnknownNameError, match=r"no engine named 'onx'\. Did you mean 'onnx'"):
        choose_engine("onx", "It")
    without(monkeypatch, "torch")
    assert choose_engine("auto", "It") == "onnx"
    for asked, fits in (("torch", True), ("auto", False)):
        with pytest.raises(MissingExtraError, match=r"It needs .*'torch'.*pip install 'listenwell\[train\]'"):
            choose_engine(asked, "It", fits)


def test_a_model_runs_on_the_engine_that_was_asked_for(tiny_llama, monkeypatch):
    assert isinstance(load_runtime(tiny_llama), OnnxRuntime)
    assert isinstance(load_runtime(tiny_llama, engine=Engine("torch")), TorchRuntime)
    without(monkeypatch, "onnxruntime")
    assert isinstance(load_runtime(tiny_llama), TorchRuntime)
    with pytest.raises(InputError, match=r"The model .* needs the packages onnx and onnxruntime"):
        load_runtime(tiny_llama, engine=Engine("onnx"))
    without(monkeypatch, "torch")
    with pytest.raises(MissingExtraError, match=r"The model .* needs the package 'torch'"):
        load_runtime(tiny_llama, engine=Engine("torch"))


def test_an_engine_that_nobody_knows_is_refused():
    for name, precision in (("onx", "int8"), ("onnx", "int4")):
        with pytest.raises(InputError, match=r"An engine cannot be .*Give one of"):
            Engine(name, precision)
