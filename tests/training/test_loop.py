import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from listenwell import Listener
from listenwell.checkpoint import open_checkpoint
from listenwell.corpora import CORPORA
from listenwell.errors import CheckpointError, InputError, UnknownNameError, WeightsError
from listenwell.recipe import read_recipe, write_recipe
from listenwell.results.store import read_result
from listenwell.training.loop import Trainer, learning_rate
from listenwell.training.recipe import BatchRecipe, DataRecipe, LoraRecipe, OptimizerRecipe, TrainRecipe
from listenwell.training.run import train
from tests.training.helpers import tiny_recipe, with_changes, write_corpus

ROOT = Path(__file__).parents[2]


@pytest.fixture
def recipe(tiny_llama, tmp_path):
    return tiny_recipe(tmp_path / "run", write_corpus(tmp_path / "data"), tiny_llama)


def weights_of(folder):
    return load_file(folder / "last" / "training.safetensors")


def assert_same_bits(first, second):
    first, second = weights_of(first), weights_of(second)
    assert first.keys() == second.keys()
    for name, value in first.items():
        assert torch.equal(value, second[name]), name


def run_in_process(recipe, before="", timeout=100):
    """Run a recipe in a process of its own; `before` may put traps into the code."""
    file = recipe.output.with_suffix(".yaml")
    write_recipe(recipe, file)
    program = textwrap.dedent(before) + textwrap.dedent(f"""
        from pathlib import Path
        from listenwell.recipe import read_recipe
        from listenwell.training.recipe import TrainRecipe
        from listenwell.training.run import train
        train(read_recipe(TrainRecipe, Path({str(file)!r})))
    """)
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


KILL_IN_SAVE = """
    import os, signal
    from listenwell.training import loop
    save, saves = loop.save_state, [0]
    def killed(folder, *rest):
        saves[0] += 1
        save(folder, *rest)
        if saves[0] == {number}:
            os.truncate(folder / "training.safetensors", 1000)
            os.kill(os.getpid(), signal.SIGKILL)
    loop.save_state = killed
"""


@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.kill
def test_killed_in_the_middle_of_a_save_it_ends_with_the_same_bits(recipe, tmp_path, number):
    killed = with_changes(recipe, output=tmp_path / "killed")
    assert run_in_process(killed, KILL_IN_SAVE.format(number=number)).returncode == -signal.SIGKILL
    train(killed)
    train(recipe)
    assert_same_bits(killed.output, recipe.output)
    assert (read_result(killed.output / "result.json").metric("perplexity_by_token")) == read_result(
        recipe.output / "result.json"
    ).metric("perplexity_by_token")
    if number > 1:
        assert '"event": "resumed"' in (killed.output / "log.jsonl").read_text()


def test_saves_on_the_way_change_nothing(recipe, tmp_path):
    often = with_changes(recipe, output=tmp_path / "often", save_seconds=0.0)
    Trainer(recipe).run()
    Trainer(often).run()
    assert_same_bits(recipe.output, often.output)


def test_it_can_overfit_ten_dialogues(tiny_llama, tmp_path):
    corpus = write_corpus(tmp_path / "data", train=10, valid=10, test=10)
    recipe = tiny_recipe(tmp_path / "run", corpus, tiny_llama, epochs=120, dropout=0.0, validate_every=40)
    metrics = Trainer(recipe).run()
    assert metrics["perplexity_by_token"] < 1.2


def test_training_lowers_validation_perplexity_and_writes_all_files(recipe):
    trainer = Trainer(recipe)
    before = trainer.task.measure("valid")["perplexity_by_token"]
    folder = train(recipe)
    result = read_result(folder / "result.json")
    assert result.metric("valid_perplexity_by_token") < before / 2
    assert (result.corpus, result.split, result.seed) == ("jsonl", "test", 1)
    best = open_checkpoint(folder / "best", "causal")
    assert {"config.json", "model.safetensors", "tokenizer.json", "recipe.yaml"} <= set(best.sums)
    assert read_recipe(TrainRecipe, best.path("recipe.yaml")) == recipe
    events = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    assert [event["event"] for event in events if "event" in event].count("valid") == 6
    assert any(event.get("tokens_per_second", 0) > 0 for event in events)


def test_a_finished_run_is_not_run_again(recipe):
    train(recipe)
    before = (recipe.output / "last" / "training.safetensors").stat().st_mtime_ns
    train(recipe)
    assert (recipe.output / "last" / "training.safetensors").stat().st_mtime_ns == before


def test_other_settings_do_not_go_on_from_this_run(recipe):
    Trainer(recipe).run()
    with pytest.raises(CheckpointError, match="other settings"):
        Trainer(with_changes(recipe, seed=2)).run()
    Trainer(
        with_changes(recipe, data=replace(recipe.data, test=None))
    ).run()  # what is measured after is no setting


def test_it_stops_early_and_keeps_the_best(recipe):
    wild = replace(
        recipe, epochs=50, patience=2, optimizer=OptimizerRecipe(learning_rate=0.5, warmup_share=0.0)
    )
    trainer = Trainer(wild)
    metrics = trainer.run()
    assert trainer.progress.epoch < 49
    assert trainer.progress.worse == 2
    assert metrics["perplexity_by_token"] == pytest.approx(trainer.progress.best)


def test_accumulated_parts_give_the_step_of_the_whole(recipe, tmp_path):
    parts = replace(
        recipe, output=tmp_path / "parts", dropout=0.0, batches=BatchRecipe("packed", 1024, 256, 2)
    )
    whole = with_changes(recipe, dropout=0.0)
    first, second = Trainer(whole).run(), Trainer(parts).run()
    assert first["nll"] == pytest.approx(second["nll"], rel=1e-4)


LAUNCHERS = {
    "torchrun": ["torch.distributed.run", "--nproc-per-node", "2", "--master-port"],
    "accelerate": [
        *("accelerate.commands.launch", "--multi_gpu", "--num_processes", "2", "--num_machines", "1"),
        *("--mixed_precision", "no", "--dynamo_backend", "no", "--main_process_port"),
    ],
}


def free_port():
    """A port that nobody listens on: other tests may launch processes at the same time."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return str(listening.getsockname()[1])


def launch(launcher, recipe, before=""):
    """Run a recipe in two processes; `before` may put traps into their code."""
    write_recipe(recipe, recipe.output.with_suffix(".yaml"))
    program = recipe.output.with_suffix(".py")
    call = f"""
        import runpy, sys
        sys.path.insert(0, {str(ROOT)!r})
        sys.argv = ["listenwell", {str(recipe.output.with_suffix(".yaml"))!r}]
        {{before}}
        runpy.run_module("listenwell.training", run_name="__main__")
    """
    program.write_text(textwrap.dedent(call).format(before=textwrap.dedent(before)))
    return subprocess.run(
        [sys.executable, "-m", *LAUNCHERS[launcher], free_port(), str(program)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_two_processes_train_as_one(recipe, tmp_path, launcher):
    one = with_changes(recipe, dropout=0.0)
    two = replace(one, output=tmp_path / "two")
    train(one)
    launched = launch(launcher, two)
    assert launched.returncode == 0, launched.stderr[-2000:]
    assert launched.stdout.count("result:") == 2  # both processes came to the end
    alone, batch_size = (
        json.loads((run.output / "last" / "training.json").read_text()) for run in (one, two)
    )
    assert batch_size["steps"] == alone["steps"]
    assert batch_size["best"] == pytest.approx(alone["best"], rel=1e-3)
    first, second = weights_of(one.output), weights_of(two.output)
    for name in first:
        if name.startswith("weight."):
            torch.testing.assert_close(first[name], second[name], rtol=1e-2, atol=2e-3)


def test_two_processes_with_dropout_resume_to_the_same_bits(recipe, tmp_path):
    whole, killed = (with_changes(recipe, output=tmp_path / name) for name in ("whole", "killed"))
    assert launch("torchrun", whole).returncode == 0
    assert launch("torchrun", killed, KILL_IN_SAVE.format(number=3)).returncode != 0
    assert not (killed.output / "result.json").exists()
    assert launch("torchrun", killed).returncode == 0
    assert_same_bits(whole.output, killed.output)


def test_adapters_are_trained_alone_and_can_be_talked_to(recipe, tiny_llama, tmp_path, monkeypatch):
    lora = with_changes(recipe, lora=LoraRecipe(rank=4, alpha=8))
    trainer = Trainer(lora)
    trained = [name for name, p in trainer.task.model.named_parameters() if p.requires_grad]
    assert trained and all("lora_" in name for name in trained)
    train(lora)
    best = lora.output / "best"
    assert (best / "adapter_model.safetensors").is_file() and not (best / "model.safetensors").exists()
    assert not (best / "README.md").exists()
    monkeypatch.setattr(
        "listenwell.generators.vanilla.find_source", lambda base: {"smollm2-135m-instruct": tiny_llama}[base]
    )
    listener = Listener.load("vanilla", weights=best)
    assert listener.reply("My dog made me feel happy today.", seed=1).text
    measured = trainer.task.measure("valid")
    trainer.task.load(best)
    assert trainer.task.measure("valid") != measured


def test_a_trained_model_can_be_talked_to_and_says_what_it_learned(tiny_llama, tmp_path):
    corpus = write_corpus(tmp_path / "data", train=10, valid=10)
    data = DataRecipe(corpus="jsonl", path=corpus)
    recipe = tiny_recipe(
        tmp_path / "dogs", corpus, tiny_llama, epochs=120, dropout=0.0, validate_every=40, data=data
    )
    train(recipe)
    settings = tmp_path / "greedy.yaml"
    settings.write_text("decoding: {temperature: 0.0, repetition_penalty: 1.0}")
    listener = Listener.load("vanilla", weights=recipe.output / "best", recipe=settings)
    reply = listener.reply("My dog made me feel happy today.")
    assert reply.text == "What happened to your dog?"
    assert reply.model == "vanilla (dogs)"


def test_evaluation_and_training_measure_the_same_perplexity(recipe):
    train(recipe)
    listener = Listener.load("vanilla", weights=recipe.output, precision="fp32")  # a run is known by its best
    reader = CORPORA.load("jsonl")(recipe.data.path)
    found, written = (
        listener.generate.perplexity(reader.examples("test")),
        read_result(recipe.output / "result.json"),
    )
    assert found.by_token == pytest.approx(written.metric("perplexity_by_token"), rel=1e-4)
    assert found.by_word == pytest.approx(written.metric("perplexity_by_word"), rel=1e-4)
    assert found.bits_per_byte == pytest.approx(written.metric("bits_per_byte"), rel=1e-4)


def test_vanilla_without_weights_says_how_to_make_some():
    with pytest.raises(WeightsError, match=r"listenwell train recipes/vanilla\.yaml"):
        Listener.load("vanilla")


def test_half_precision_needs_a_gpu(recipe):
    assert Trainer(with_changes(recipe, precision="bf16"))  # on a CPU too, where the recipe asks for it
    if torch.cuda.is_available():
        assert Trainer(with_changes(recipe, precision="fp16"))
    else:
        with pytest.raises(InputError, match="needs a GPU"):
            Trainer(with_changes(recipe, precision="fp16"))


def test_a_run_that_goes_astray_says_so(recipe, monkeypatch):
    trainer = Trainer(recipe)
    monkeypatch.setattr(trainer.task, "measure", lambda split: {"perplexity_by_token": float("nan")})
    with pytest.raises(InputError, match=r"went astray.*learning_rate"):
        trainer.run()
    assert not (recipe.output / "best").exists()


def test_an_unknown_metric_is_named(recipe):
    for metric in ("accuracy", "tokens"):
        with pytest.raises(InputError, match=f"no metric '{metric}'"):
            Trainer(with_changes(recipe, metric=metric))


def test_a_mistyped_split_is_found_before_training(recipe):
    with pytest.raises(UnknownNameError, match="no split of jsonl named 'tset'"):
        Trainer(with_changes(recipe, data=replace(recipe.data, test="tset")))


def test_other_data_does_not_go_on_from_this_run(recipe):
    Trainer(recipe).run()
    with (recipe.data.path / "train.jsonl").open("a") as file:
        file.write('{"turns": [{"speaker": "speaker", "text": "a"}, {"speaker": "listener", "text": "b"}]}\n')
    with pytest.raises(CheckpointError, match="other settings"):
        Trainer(recipe).run()


def test_what_a_killed_save_left_is_removed(recipe):
    leftover = recipe.output / ".last.abc.part"
    leftover.mkdir(parents=True)
    Trainer(recipe).run()
    assert not leftover.exists()


def test_the_learning_rate_worked_by_hand():
    recipe = OptimizerRecipe(learning_rate=1.0, warmup_share=0.1, decay="linear")
    assert learning_rate(recipe, 0.05) == pytest.approx(0.5)
    assert learning_rate(recipe, 0.1) == pytest.approx(1.0)
    assert learning_rate(recipe, 0.55) == pytest.approx(0.5)
    assert learning_rate(recipe, 1.0) == pytest.approx(0.0)
    assert learning_rate(replace(recipe, decay="cosine"), 0.55) == pytest.approx(0.5)
    assert learning_rate(replace(recipe, decay="constant"), 0.9) == pytest.approx(1.0)


def test_training_needs_only_what_a_bare_machine_has(recipe):
    trap = """
        import builtins
        real, missing = builtins.__import__, {"typer", "rich", "fastapi", "platformdirs", "matplotlib",
                                              "sacrebleu", "nltk", "sklearn", "scipy", "pyarrow"}
        def guarded(name, globals=None, *rest, **more):
            importer = str((globals or {}).get("__name__"))
            if importer.startswith("listenwell") and name.split(".")[0] in missing:
                raise ModuleNotFoundError(f"{importer} wants {name}")
            return real(name, globals, *rest, **more)
        builtins.__import__ = guarded
    """
    done = run_in_process(with_changes(recipe, epochs=1), trap)
    assert done.returncode == 0, done.stderr[-2000:]


def test_the_recipe_in_the_repository_is_read():
    recipe = read_recipe(TrainRecipe, ROOT / "recipes" / "vanilla.yaml")
    assert recipe.data.test == "test"
    assert recipe.model == "vanilla"
