"""Systems evaluated for perplexity, plans and replies, by one worker or several, and scored from files."""

import json
import math
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from listenwell.corpora import CORPORA
from listenwell.corpora.sampling import Sampling
from listenwell.dialogue import Factors
from listenwell.errors import InputError, UnknownNameError
from listenwell.evaluation import systems
from listenwell.evaluation.embedder import Embedder
from listenwell.evaluation.factor_prediction import (
    compare_pair,
    evaluate_factor_prediction,
    read_predictions,
)
from listenwell.evaluation.generate import generate, generator_answer
from listenwell.evaluation.outputs import load_run
from listenwell.evaluation.perplexity import evaluate_perplexity, perplexity_under, save_perplexity
from listenwell.evaluation.request import EvaluationRequest, EvaluationSplit, reply_seed
from listenwell.evaluation.score import score_plan_adherence, score_replies
from listenwell.evaluation.systems import System, row_name
from listenwell.generators.plans import plan_of
from listenwell.listener import Listener
from listenwell.papers.comae.generator import Comae, ComaeSettings
from listenwell.papers.comae.runtime import ComaeRuntime
from listenwell.results.store import file_name, write_result
from listenwell.runtime.engines import Engine
from listenwell.runtime.torch_engine import TorchRuntime
from tests.evaluation.fake_generator import PLAN, FakeAnnotator, FakeGenerator, FakeSystem, annotate
from tests.papers.comae.talks import tiny_comae

SAMPLES = Path(__file__).parents[1] / "data"
ED = "empathetic_dialogues"


@pytest.fixture
def reader():
    return CORPORA.load(ED)(SAMPLES / ED)


@pytest.fixture
def split(reader, tmp_path):
    annotate(reader, "train", tmp_path / "annotated" / ED)
    return EvaluationSplit(ED, "train", annotated=tmp_path / "annotated")


@pytest.fixture
def fake_request(split, tmp_path):
    return EvaluationRequest(FakeSystem("fake"), split, tmp_path / "run", "gold")


def count(reader):
    return len(list(reader.examples("train")))


def test_gold_plans_come_from_the_annotated_corpus(split, reader):
    sample = split.sample(with_plans=True)
    assert len(sample) == count(reader) and {plan_of(example) for _, example in sample} == {PLAN}
    unlabelled = EvaluationSplit(ED, "train", SAMPLES / ED)
    with pytest.raises(InputError, match="--annotated"):
        unlabelled.sample(with_plans=True)
    assert len(unlabelled.sample()) == count(reader)


def test_replies_without_all_factors_are_left_out_and_counted(reader, tmp_path):
    annotate(reader, "train", tmp_path / "some" / ED, Factors(act="wishing"))
    split = EvaluationSplit(ED, "train", annotated=tmp_path / "some")
    with pytest.raises(InputError, match="has its factors"):
        split.sample(with_plans=True)
    total = count(reader)
    left_out = split.conditions(total - 1)["sample"]
    assert left_out == f"all {total}; without the 1 whose factors are not all known"
    assert split.conditions(total)["sample"] == f"all {total}"


def test_perplexity_has_a_row_for_each_kind_of_factors(fake_request):
    gold = evaluate_perplexity(fake_request)
    assert (gold.task, gold.system) == ("perplexity", "fake, gold factors")
    assert gold.metric("perplexity_by_token") == pytest.approx(math.e, abs=1e-6)
    assert gold.metric("perplexity_by_word") == pytest.approx(math.e**2, abs=1e-6)
    conditions = dict(gold.conditions)
    assert (
        conditions["factors"].startswith("gold: those of the human reply")
        and conditions["tokenizer"] == "letters"
    )
    free = evaluate_perplexity(replace(fake_request, factors="none", name="Ours"))
    assert (free.system, free.metric("perplexity_by_token")) == (
        "Ours, no factors",
        pytest.approx(math.e**3, abs=1e-5),
    )
    assert len(gold.data) == 64 and gold.seed == 0 and dict(gold.units)["bits_per_byte"] == "bits"


@pytest.mark.parametrize("corpus", ["esconv", "epitome"])
def test_corpora_that_nobody_learns_from_have_a_table_of_their_own(corpus, tmp_path):
    split = EvaluationSplit(corpus, "test", SAMPLES / corpus)
    result = evaluate_perplexity(EvaluationRequest(FakeSystem("fake"), split, tmp_path, "none"))
    title = {"esconv": "ESConv's supporters", "epitome": "EPITOME's responses"}[corpus]
    assert (result.task, result.system) == ("unseen corpora", f"{title}: fake, no factors")
    assert result.count == len(split.examples) > 0
    assert ("sha256(sp_id)" in dict(result.conditions).get("split", "")) == (corpus == "epitome")


def test_a_generator_without_factors_has_one_perplexity():
    class Plain:
        name = "plain"

        def perplexity(self, examples):
            return FakeGenerator().perplexity(examples, "none")

    pairs = [(0, "a"), (1, "b")]
    assert perplexity_under(Plain(), pairs, "none").nll == 60
    with pytest.raises(InputError, match="has no factors"):
        perplexity_under(Plain(), pairs, "gold")
    with pytest.raises(UnknownNameError, match="'gold'"):
        perplexity_under(FakeGenerator(), pairs, "golden")
    with pytest.raises(InputError, match="has no perplexity"):
        perplexity_under(object.__new__(type("Mute", (), {"name": "mute"})), pairs, "gold")


def test_plans_that_are_drawn_have_the_seed_of_their_reply():
    class Drawn(FakeGenerator):
        seeds = ()

        def perplexity(self, examples, factors="gold", seeds=None):
            self.seeds += tuple(seeds)
            return super().perplexity(examples, factors)

    generator = Drawn()
    assert perplexity_under(generator, [(4, "a"), (7, "b")], "marginal", seed=3).nll == 30
    assert generator.seeds == (reply_seed(3, 4), reply_seed(3, 7))


def test_planning_is_one_row_and_keeps_predictions(fake_request, tmp_path):
    first = evaluate_factor_prediction(replace(fake_request, name="CM → DA"))
    assert (first.task, first.system) == ("planning", "CM → DA")
    assert first.metric("cm_exact") == 100 and first.metric("da_hits_1_after") == 0
    assert first.metric("da_hits_3_after") == 100 and first.metric("emotion_hits_5") == 100
    assert len(read_predictions(fake_request.out / "planning.jsonl")) == first.count
    beside = replace(fake_request, out=tmp_path / "other")
    second = evaluate_factor_prediction(replace(beside, name="CM ‖ DA"))
    for result, folder in ((first, fake_request.out), (second, beside.out)):
        write_result(result, folder / file_name(result))
    both = compare_pair(beside.out / "planning.jsonl", fake_request.out / "planning.jsonl")
    assert (both.system, both.metric("da_share"), both.checkpoint) == ("CM ‖ DA", 100, second.checkpoint)
    assert dict(both.conditions)["DA against CM → DA"] == "0 won, 0 lost, sign test p 1"
    assert "by this model and by CM → DA" in dict(both.conditions)["given"]
    (fake_request.out / file_name(first)).unlink()
    with pytest.raises(InputError, match="no result of planning"):
        compare_pair(beside.out / "planning.jsonl", fake_request.out / "planning.jsonl")
    assert {file_name(first), file_name(second)} == {
        "factor_prediction/cm-to-da.json",
        "factor_prediction/cm-and-da.json",
    }


def test_forced_plans_are_carried_out_and_kept(fake_request, reader):
    file = generate(fake_request)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(lines) == count(reader)
    assert all(line["reply"].startswith("questioning ") for line in lines)
    assert all(Factors.from_dict(line["plan"]) == PLAN for line in lines)
    run = json.loads((fake_request.out / "run.json").read_text())
    assert run["system"] == "fake, gold factors" and run["corpus"] == ED
    assert json.loads((fake_request.out / "made.json").read_text())["command"]
    with pytest.raises(InputError, match="other settings"):
        generate(replace(fake_request, factors="predicted"))


def test_predicted_plans_are_the_generators_own(fake_request):
    free = replace(fake_request, factors="predicted", out=fake_request.out / "free")
    lines = [json.loads(line) for line in generate(free).read_text().splitlines()]
    assert {line["plan"]["act"] for line in lines} == {"sympathizing"}
    with pytest.raises(InputError, match="gold, predicted or none"):
        generator_answer(Listener(FakeGenerator()), "marginal")


def test_a_generator_that_can_do_without_plans_generates_without(fake_request):
    free = replace(fake_request, factors="none", out=fake_request.out / "none")
    lines = [json.loads(line) for line in generate(free).read_text().splitlines()]
    assert all(line["reply"].startswith("nothing planned") and "plan" not in line for line in lines)

    class Plain:
        name = "plain"

    with pytest.raises(InputError, match="has no factors"):
        generator_answer(Listener(Plain()), "gold")


def test_many_dialogues_are_answered_in_one_batch_where_a_generator_can(fake_request, monkeypatch):
    class Many(FakeGenerator):
        batches = ()

        def generate_batch(self, requests):
            self.batches += (len(requests),)
            return [self.generate(*request) for request in requests]

    one_by_one = generate(fake_request).read_bytes()
    generator = Many()
    monkeypatch.setattr(FakeSystem, "generator", lambda self: generator)
    monkeypatch.setattr(systems, "GENERATOR_BATCH", 2)
    assert generate(replace(fake_request, out=fake_request.out / "batches")).read_bytes() == one_by_one
    assert set(generator.batches[:-1]) == {2} and sum(generator.batches) == len(fake_request.examples)


def test_the_number_of_workers_moves_no_number(fake_request, tmp_path):
    alone = generate(fake_request).read_bytes()
    both = replace(fake_request, out=tmp_path / "two", workers=2)
    assert generate(both).read_bytes() == alone
    assert sorted(file.name for file in both.out.iterdir()) == ["made.json", "replies.jsonl", "run.json"]
    first, second = (evaluate_factor_prediction(replace(fake_request, workers=n)).metrics for n in (1, 2))
    assert first == second
    assert (
        evaluate_perplexity(replace(fake_request, workers=2)).metrics
        == evaluate_perplexity(fake_request).metrics
    )


_WORKS_LONG = """
import os, sys, time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from listenwell.evaluation.request import start_worker

def work(seconds):
    print(os.getpid(), flush=True)
    time.sleep(seconds)

if __name__ == "__main__":
    context = get_context("spawn")
    shares = context.SimpleQueue()
    shares.put([0])
    with ProcessPoolExecutor(1, mp_context=context, initializer=start_worker, initargs=(shares,)) as pool:
        list(pool.map(work, [600]))
"""


def runs(process):
    """Whether a process is alive; one that has ended may wait for somebody system asks how."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{process}/stat")
    return not (state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z")


def test_a_worker_ends_with_its_parent(tmp_path):
    file = tmp_path / "works_long.py"
    file.write_text(_WORKS_LONG, encoding="utf-8")
    here = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, file], stdout=subprocess.PIPE, text=True, env=here) as parent:
        worker = int(parent.stdout.readline())
        parent.kill()
    until = time.monotonic() + 30
    while runs(worker) and time.monotonic() < until:
        time.sleep(0.05)
    assert not runs(worker)


def test_a_run_is_measured_from_its_folder(fake_request, reader, tiny_encoder):
    file = generate(fake_request)
    save_perplexity(fake_request, FakeGenerator())
    outputs = load_run(file, reader)
    assert (outputs.system, outputs.corpus, outputs.split, outputs.seed) == (
        "fake, gold factors",
        ED,
        "train",
        0,
    )
    result = score_replies(outputs, Embedder.load(tiny_encoder), annotator=FakeAnnotator())
    assert result.task == "replies" and result.count == count(reader)
    assert result.metric("perplexity_by_token") == pytest.approx(math.e, abs=1e-6)
    assert result.metric("er_level") == 0 and result.metric("invented_life") == 0
    assert "made by" in dict(result.conditions)
    named = score_replies(load_run(file, reader, "Mine"), Embedder.load(tiny_encoder), table="family")
    assert (named.task, named.system, named.metric("er_level")) == ("family", "Mine", None)


def test_plan_adherence_is_measured_from_the_replies_of_a_run(fake_request, reader):
    file = generate(fake_request)
    outputs = load_run(file, reader)
    first = outputs.replies[0]
    result = score_plan_adherence(outputs, FakeAnnotator({first: replace(PLAN, expressed_emotion="joy")}))
    share = 100 / count(reader)
    assert (result.task, result.system) == ("realization", "fake, gold factors")
    assert result.metric("cm_realized") == result.metric("da_realized") == pytest.approx(share, abs=1e-5)
    assert result.metric("em_realized") == result.metric("all_realized") == 0
    with pytest.raises(InputError, match="have no plans"):
        score_plan_adherence(replace(outputs, plans=[]), FakeAnnotator())


def test_a_run_that_was_stopped_says_so(fake_request, reader):
    file = generate(fake_request)
    file.unlink()
    with pytest.raises(InputError, match=r"is not finished.*it continues"):
        load_run(file, reader)


def test_a_run_of_another_corpus_is_named(fake_request, tmp_path):
    file = generate(fake_request)
    with pytest.raises(InputError, match="--corpus empathetic_dialogues"):
        load_run(file, CORPORA.load("esconv")(SAMPLES / "esconv"))
    (fake_request.out / "run.json").write_text("[]")
    with pytest.raises(InputError, match="is damaged"):
        load_run(file, CORPORA.load(ED)(SAMPLES / ED))


def test_rows_say_whose_factors_and_what_was_switched_off():
    assert row_name("planned", "gold") == "planned, gold factors"
    assert (
        row_name("planned", without=("ranker", "plan_adherence")) == "planned without ranker, plan_adherence"
    )
    with pytest.raises(InputError, match="nothing to switch off"):
        System("planned", without=("ranker",))


def test_a_whole_listener_is_loaded_with_its_parts_switched_off(monkeypatch):
    called = {}
    monkeypatch.setattr(
        Listener,
        "from_pretrained",
        lambda model, **settings: called.update(settings) or Listener(FakeGenerator()),
    )
    assert System("planned", whole=True, without=("ranker",)).listener().generate.name == "fake"
    assert called == {"recipe": None, "weights": None, "without": ("ranker",)}


def test_a_generator_alone_runs_where_the_gpu_is(tiny_generator, monkeypatch):
    system = System("planned", tiny_generator)
    assert system.generator().config.engine == Engine("auto", "fp32")
    monkeypatch.setattr(systems, "_has_gpu", lambda: True)
    assert system.generator().config.engine == Engine("torch", "fp32")
    assert isinstance(system.generator().runtime, TorchRuntime)


def test_the_planned_generator_itself(split, reader, tiny_generator, tmp_path):
    system = System("planned", tiny_generator)
    assert system.generator().config.candidates == system.generator().config.plans == 1
    few = replace(split, sampling=Sampling(2, 1))
    fake_request = EvaluationRequest(system, few, tmp_path / "gold", "gold")
    plans = evaluate_factor_prediction(fake_request)
    assert plans.count == 2 and {"cm_exact", "da_hits_3", "em_hits_1", "emotion_hits_5"} <= set(
        dict(plans.metrics)
    )
    assert plans.checkpoint and plans.system.startswith("planned (")
    perplexities = [
        evaluate_perplexity(replace(fake_request, factors=factors)).metric("perplexity_by_token")
        for factors in ("gold", "predicted", "none", "marginal")
    ]
    assert len({round(value, 3) for value in perplexities}) == 4
    for factors in ("gold", "predicted", "none"):
        outputs = load_run(generate(replace(fake_request, factors=factors, out=tmp_path / factors)), reader)
        assert len(outputs.replies) == 2 and all(outputs.replies)
        assert [plan == PLAN for plan in outputs.plans] == {"gold": [True, True], "none": []}.get(
            factors, [False, False]
        )
    whole = System("planned", tiny_generator, whole=True, without=("understand", "rerank"))
    listening = EvaluationRequest(whole, few, tmp_path / "whole", name="ours")
    outputs = load_run(generate(listening), reader)
    assert outputs.system == "ours without understand, rerank"
    assert outputs.conditions["switched off"] == "understand, rerank"


@pytest.mark.parametrize("factors", [("mechanisms", "act"), ("act", "expressed_emotion"), ()])
def test_comae_itself(fake_request, reader, tiny_llama, monkeypatch, factors):
    model, inputs = tiny_comae(tiny_llama, factors=factors)
    generator = Comae(ComaeSettings(annotate=False), ComaeRuntime(model, inputs.vocabulary))
    monkeypatch.setattr(FakeSystem, "generator", lambda self: generator)
    row = replace(fake_request, name="a member")
    gold = load_run(generate(row), reader)
    assert len(gold.replies) == count(reader)
    if not factors:
        alone = replace(row, factors="none", out=fake_request.out / "none")
        assert load_run(generate(alone), reader).plans == [] == gold.plans
        return
    assert all(getattr(plan, name) == getattr(PLAN, name) for plan in gold.plans for name in factors)
    assert "batches" in gold.conditions
    figures = dict(evaluate_factor_prediction(row).metrics)
    second = {"act": "da", "expressed_emotion": "em"}[factors[-1]]
    assert {f"{second}_share", f"{second}_hits_1", f"{second}_hits_3"} <= set(figures)
    assert ("cm_exact" in figures, "da_first" in figures) == (factors[0] == "mechanisms", factors[0] == "act")
    assert evaluate_perplexity(row).metric("perplexity_by_token") > 1
    with pytest.raises(InputError, match="always decides"):
        generate(replace(row, factors="none", out=fake_request.out / "none"))


def test_replies_are_generated_without_the_libraries_of_the_metrics():
    code = (
        "import sys\n"
        "for name in ('typer', 'rich', 'sacrebleu', 'rouge_score', 'nltk', 'sklearn', 'scipy', 'matplotlib',"
        " 'vaderSentiment', 'platformdirs'):\n    sys.modules[name] = None\n"
        "import listenwell.evaluation.generate"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])
