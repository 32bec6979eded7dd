"""`--base`: a model of the user's own, to talk to and to train on."""

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from listenwell.cli import app
from listenwell.errors import InputError, WeightsError
from tests.bases import save_base, write_gguf
from tests.training.test_planned import annotated

TINY = "guide: Listen.\nprompt_tokens: 900\ndecoding: {max_tokens: 6, temperature: 1.0}"


@pytest.fixture
def call(tmp_path):
    recipe = tmp_path / "tiny.yaml"
    recipe.write_text(TINY)

    def run(command, base, *arguments, text=None):
        options = ["--base", str(base), "--recipe", str(recipe)]
        return CliRunner().invoke(app, [command, *arguments, *options], input=text)

    return run


def test_a_reply_by_a_gguf_file(call, tmp_path):
    write_gguf(tmp_path / "tiny.gguf", "qwen3")
    result = call(
        "reply", tmp_path / "tiny.gguf", "I am sad", "--seed", "4", "--json", "--act", "questioning"
    )
    assert result.exit_code == 0, result.exception
    data = json.loads(result.stdout)
    assert data["model"] == "instructed (tiny)" and data["reply"].strip()
    assert data["plan"]["act"] == "questioning" and len(data["candidates"]) > 1


def test_a_chat_with_a_folder(call, tmp_path):
    base = save_base(tmp_path / "base", "gemma3_text")
    result = call("chat", base, "--persona", "I sing.", "--seed", "1", text="I am sad\n<end_of_turn>\n")
    assert result.exit_code == 0, result.exception
    assert len(result.stdout.splitlines()) == 2


def test_what_does_not_fit_is_named(call, tmp_path):
    for option in (("--model", "prompted"), ("--weights", str(tmp_path))):
        error = call("reply", tmp_path, "Hi", *option).exception
        assert isinstance(error, InputError) and "neither --model nor --weights" in str(error)
    error = call("reply", tmp_path / "none.gguf", "Hi").exception
    assert isinstance(error, WeightsError) and "There is no" in str(error)


@pytest.fixture
def annotated_corpus(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    for split, count in (("train", 24), ("valid", 8), ("test", 6)):
        lines = [dialogue.to_json() for dialogue in annotated(count)]
        (folder / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def train(tmp_path, corpus, base):
    """The shipped recipe of the planned generator, but for its size."""
    settings = yaml.safe_load(Path("recipes/generator/planned.yaml").read_text())
    settings |= {
        "epochs": 6,
        "validate_every": 6,
        "data": {"corpus": "jsonl", "path": str(corpus), "test": "test"},
    }
    settings |= {"batches": {"tokens": 1024, "row_tokens": 256}, "lora": {"rank": 8, "alpha": 16}}
    settings["optimizer"]["learning_rate"] = 5e-3
    del settings["pairs"]
    (tmp_path / "planned.yaml").write_text(yaml.safe_dump(settings))
    arguments = [str(tmp_path / "planned.yaml"), "--base", str(base), "--output", str(tmp_path / "run")]
    return CliRunner().invoke(app, ["train", *arguments])


@pytest.mark.parametrize("family", ["llama", "qwen2", "gemma2", "gemma3_text"])
def test_the_planned_generator_is_trained_on_it_by_one_option(family, tmp_path, annotated_corpus):
    """What it learned is what runs, on onnxruntime and on torch."""
    from listenwell.generators.planned import PlannedConfig, PlannedGenerator
    from listenwell.runtime.engines import Engine

    base = tmp_path / "base.gguf"
    if family == "gemma3_text":
        write_gguf(base, family)
    else:
        base = save_base(tmp_path / "base", family, unused=9 if family == "qwen2" else 0)
    result = train(tmp_path, annotated_corpus, base)
    assert result.exit_code == 0, result.exception
    measured = json.loads((tmp_path / "run" / "result.json").read_text())
    assert measured["conditions"]["base"] == base.name
    examples = [example for talk in annotated(6) for example in talk.examples()]
    for name in ("onnx", "torch"):
        config = PlannedConfig(plans=1, candidates=2, engine=Engine(name, "fp32"))
        generator = PlannedGenerator.load(config, tmp_path / "run")
        perplexity = generator.perplexity(examples, "gold").by_token
        assert perplexity == pytest.approx(measured["metrics"]["perplexity_by_token"], rel=0.02), name
        context = examples[0].context
        output = generator.generate(context, generator.plan(context, None, examples[0].reply.factors, 1), 1)
        assert all(candidate.text.strip() for candidate in output.candidates)


def test_a_base_that_is_not_there_is_named_before_training(tmp_path, annotated_corpus):
    error = train(tmp_path, annotated_corpus, tmp_path / "none").exception
    assert isinstance(error, WeightsError) and "There is no" in str(error)
