"""The arrows of the design: a lower layer never imports a higher one, and training machines stay bare."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "listenwell"
BARE = {"torch", "transformers", "peft", "safetensors", "numpy", "tokenizers", "gguf"}
FORBIDDEN = {
    "dialogue.py": {"corpora", "generators", "rankers", "runtime", "listener", "cli"},
    "labels.py": {"corpora", "generators", "rankers", "runtime", "listener", "cli", "dialogue"},
    "errors.py": {"corpora", "generators", "rankers", "runtime", "listener", "cli", "dialogue", "labels"},
    "corpora": {"generators", "rankers", "runtime", "listener", "cli"},
    "runtime": {"corpora", "generators", "rankers", "listener", "cli"},
    "generators": {"corpora", "choosing", "listener", "cli", "training"},
    "annotators": {"generators", "rankers", "choosing", "listener", "cli", "training"},
    "rankers": {"choosing", "listener", "cli", "training"},
    "choosing": {"listener", "cli", "training"},
    "listener.py": {"cli", "training", "serving"},
    "places.py": {"listener", "cli", "training", "serving", "annotators", "rankers", "choosing"},
    "safety": {"listener", "cli", "training", "serving", "generators", "rankers"},
    "serving": {"cli", "training"},
    "training": {"cli", "listener"},
    "evaluation/metrics": {"cli", "listener", "training", "generators", "rankers", "corpora", "runtime"},
}


def imports(file):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module


@pytest.mark.parametrize("place", FORBIDDEN)
def test_no_arrow_is_turned_round(place):
    path = PACKAGE / place
    files = [path] if path.is_file() else sorted(path.rglob("*.py"))
    assert files
    for file in files:
        rooms = {name.split(".")[1] for name in imports(file) if name.startswith("listenwell.")}
        assert not rooms & FORBIDDEN[place], f"{file.name} imports {rooms & FORBIDDEN[place]}"


@pytest.mark.parametrize("place", ["annotators", "rankers", "generators", "choosing"])
def test_models_use_the_metrics_of_the_evaluation_and_nothing_else_of_it(place):
    for file in (PACKAGE / place).rglob("*.py"):
        for name in imports(file):
            is_metric = name.startswith("listenwell.metrics")
            assert is_metric or not name.startswith("listenwell.evaluation"), file


def test_rankers_ask_generators_for_likelihoods_only():
    users = [
        file.name
        for file in (PACKAGE / "rankers").rglob("*.py")
        if any(name.startswith("listenwell.generators") for name in imports(file))
    ]
    assert users == ["likelihood.py"]
