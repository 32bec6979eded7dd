"""Speakers asked for perplexities, plans and replies, by one worker or several, and measured from files."""

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
from listenwell.evaluation import generate_replies as speaking
from listenwell.evaluation import systems as generators
from listenwell.evaluation.embedder import Embedder
from listenwell.evaluation.factor_prediction import read_predictions
from listenwell.evaluation.generator_results import (
    Row,
    evaluate_perplexity,
    evaluate_planning,
    generate_all,
    keep_likelihood,
    paired,
)
from listenwell.evaluation.protocol import evaluate_given
from listenwell.evaluation.replies import reply_seed
from listenwell.evaluation.saved_runs import evaluate_realization, is_made, read_made
from listenwell.evaluation.systems import Asked, System, answering, likelihood, planned, row_name
from listenwell.evaluation.workers import Job, make_replies
from listenwell.listener import Listener
from listenwell.papers.comae.generator import Comae, ComaeSettings
from listenwell.papers.comae.runtime import ComaeRuntime
from listenwell.results.store import file_name, read_result, write_result
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
def asked(reader, tmp_path):
    annotate(reader, "train", tmp_path / "annotated" / ED)
    return Asked(ED, "train", annotated=tmp_path / "annotated")


@pytest.fixture
def job(asked, tmp_path):
    return Job(FakeSystem("fake"), asked, "gold", tmp_path / "run")


def count(reader):
    return len(list(reader.examples("train")))


def test_gold_plans_come_from_the_annotated_corpus(asked, reader):
    found = planned(asked)
    assert len(found) == count(reader) and {plan for _, _, plan in found} == {PLAN}
    generic_question = Asked(ED, "train", SAMPLES / ED)
    with pytest.raises(InputError, match="--annotated"):
        planned(generic_question)
    assert len(generic_question.drawn(planned=False)) == count(reader)


def test_replies_without_all_factors_are_left_out_and_counted(reader, tmp_path):
    annotate(reader, "train", tmp_path / "some" / ED, Factors(act="wishing"))
    asked = Asked(ED, "train", annotated=tmp_path / "some")
    with pytest.raises(InputError, match="has its factors"):
        asked.drawn(planned=True)
    total = count(reader)
    assert (
        asked.conditions(total - 1)["sample"] == f"all {total}; without the 1 whose factors are not all known"
    )
    assert asked.conditions(total)["sample"] == f"all {total}"


def test_perplexity_has_a_row_for_each_kind_of_factors(job):
    gold = evaluate_perplexity(Row(job))
    assert (gold.task, gold.system) == ("perplexity", "fake, gold factors")
    assert gold.metric("perplexity_by_token") == pytest.approx(math.e, abs=1e-6)
    assert gold.metric("perplexity_by_word") == pytest.approx(math.e**2, abs=1e-6)
    said = dict(gold.conditions)
    assert (
        said["factors"].startswith("gold: those of the person's own reply") and said["tokenizer"] == "letters"
    )
    free = evaluate_perplexity(Row(replace(job, factors="none"), "Ours"))
    assert (free.system, free.metric("perplexity_by_token")) == (
        "Ours, no factors",
        pytest.approx(math.e**3, abs=1e-5),
    )
    assert len(gold.data) == 64 and gold.seed == 0 and dict(gold.units)["bits_per_byte"] == "bits"


@pytest.mark.parametrize("corpus", ["esconv", "epitome"])
def test_corpora_that_nobody_learns_from_have_a_table_of_their_own(corpus, tmp_path):
    asked = Asked(corpus, "test", SAMPLES / corpus)
    result = evaluate_perplexity(Row(Job(FakeSystem("fake"), asked, "none", tmp_path)))
    title = {"esconv": "ESConv's supporters", "epitome": "EPITOME's responses"}[corpus]
    assert (result.task, result.system) == ("unseen corpora", f"{title}: fake, no factors")
    assert result.count == len(asked.every) > 0
    assert ("sha256(sp_id)" in dict(result.conditions).get("split", "")) == (corpus == "epitome")


def test_a_speaker_without_factors_has_one_perplexity():
    class Plain:
        name = "plain"

        def perplexity(self, examples):
            return FakeGenerator().perplexity(examples, "none")

    pairs = [(0, "a"), (1, "b")]
    assert likelihood(Plain(), pairs, "none").nll == 60
    with pytest.raises(InputError, match="knows no factors"):
        likelihood(Plain(), pairs, "gold")
    with pytest.raises(UnknownNameError, match="'gold'"):
        likelihood(FakeGenerator(), pairs, "golden")
    with pytest.raises(InputError, match="cannot tell"):
        likelihood(object.__new__(type("Mute", (), {"name": "mute"})), pairs, "gold")


def test_plans_that_are_drawn_have_the_seed_of_their_reply():
    class Drawn(FakeGenerator):
        seeds = ()

        def perplexity(self, examples, factors, seeds=()):
            self.seeds += tuple(seeds)
            return super().perplexity(examples, factors)

    generator = Drawn()
    assert likelihood(generator, [(4, "a"), (7, "b")], "marginal", seed=3).nll == 30
    assert generator.seeds == (reply_seed(3, 4), reply_seed(3, 7))


def test_planning_is_one_row_and_keeps_what_was_foretold(job, tmp_path):
    first = evaluate_planning(Row(job, "CM → DA"))
    assert (first.task, first.system) == ("planning", "CM → DA")
    assert first.metric("cm_exact") == 100 and first.metric("da_hits_1_after") == 0
    assert first.metric("da_hits_3_after") == 100 and first.metric("emotion_hits_5") == 100
    assert len(read_predictions(job.out / "planning.jsonl")) == first.count
    beside = replace(job, out=tmp_path / "other")
    second = evaluate_planning(Row(beside, "CM ‖ DA"))
    for result, folder in ((first, job.out), (second, beside.out)):
        write_result(result, folder / file_name(result))
    both = paired(beside.out / "planning.jsonl", job.out / "planning.jsonl")
    assert (both.system, both.metric("da_share"), both.checkpoint) == ("CM ‖ DA", 100, second.checkpoint)
    assert dict(both.conditions)["DA against CM → DA"] == "0 won, 0 lost, sign test p 1"
    assert "by this model and by CM → DA" in dict(both.conditions)["given"]
    (job.out / file_name(first)).unlink()
    with pytest.raises(InputError, match="no result of planning"):
        paired(beside.out / "planning.jsonl", job.out / "planning.jsonl")
    assert {file_name(first), file_name(second)} == {"planning-cm-to-da.json", "planning-cm-and-da.json"}


def test_forced_plans_are_carried_out_and_kept(job, asked, reader):
    file = generate_all(Row(job))
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(lines) == count(reader)
    assert all(line["reply"].startswith("questioning ") for line in lines)
    assert all(Factors.from_dict(line["plan"]) == PLAN for line in lines)
    run = json.loads((job.out / "run.json").read_text())
    assert run["system"] == "fake, gold factors" and run["corpus"] == ED and is_made(file)
    assert json.loads((job.out / "made.json").read_text())["command"]
    with pytest.raises(InputError, match="other settings"):
        generate_all(Row(replace(job, factors="predicted")))


def test_predicted_plans_are_the_speakers_own(job):
    free = replace(job, factors="predicted", out=job.out / "free")
    lines = [json.loads(line) for line in generate_all(Row(free)).read_text().splitlines()]
    assert {line["plan"]["act"] for line in lines} == {"sympathizing"}
    with pytest.raises(InputError, match="gold, predicted or none"):
        answering(Listener(FakeGenerator()), "marginal")


def test_a_speaker_that_can_do_without_plans_is_asked_without(job):
    free = replace(job, factors="none", out=job.out / "none")
    lines = [json.loads(line) for line in generate_all(Row(free)).read_text().splitlines()]
    assert all(line["reply"].startswith("nothing planned") and "plan" not in line for line in lines)

    class Plain:
        name = "plain"

    with pytest.raises(InputError, match="knows no factors"):
        answering(Listener(Plain()), "gold")


def test_many_dialogues_are_answered_in_one_batch_where_a_speaker_can(job, monkeypatch):
    class Many(FakeGenerator):
        batches = ()

        def generate_batch(self, asked):
            self.batches += (len(asked),)
            return [self.generate(*one) for one in asked]

    job.out.mkdir()
    one_by_one = make_replies(job).read_bytes()
    generator = Many()
    monkeypatch.setattr(FakeSystem, "generator", lambda self: generator)
    monkeypatch.setattr("listenwell.evaluation.systems.BATCH", 2)
    batch_size = replace(job, out=job.out / "together")
    batch_size.out.mkdir()
    assert make_replies(batch_size).read_bytes() == one_by_one
    assert set(generator.batches[:-1]) == {2} and sum(generator.batches) == len(planned(job.asked))


def test_the_number_of_workers_moves_no_number(job, tmp_path):
    (job.out).mkdir()
    alone = make_replies(job).read_bytes()
    both = replace(job, out=tmp_path / "two")
    both.out.mkdir()
    assert make_replies(both, workers=2).read_bytes() == alone
    assert [file.name for file in both.out.iterdir()] == ["replies.jsonl"]
    one, two = (evaluate_planning(Row(job, workers=n)).metrics for n in (1, 2))
    assert one == two
    assert evaluate_perplexity(Row(job, workers=2)).metrics == evaluate_perplexity(Row(job)).metrics


_WORKS_LONG = """
import os, sys, time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from listenwell.evaluation.workers import _keep_to

def work(seconds):
    print(os.getpid(), flush=True)
    time.sleep(seconds)

if __name__ == "__main__":
    context = get_context("spawn")
    shares = context.SimpleQueue()
    shares.put([0])
    with ProcessPoolExecutor(1, mp_context=context, initializer=_keep_to, initargs=(shares,)) as pool:
        list(pool.map(work, [600]))
"""


def runs(process):
    """Whether a process is alive; one that has ended may wait for somebody who asks how."""
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


def test_a_run_is_measured_from_its_folder(job, reader, tiny_encoder):
    file = generate_all(Row(job))
    keep_likelihood(Row(job))
    given = read_made(file, reader)
    assert (given.system, given.corpus, given.split, given.seed) == ("fake, gold factors", ED, "train", 0)
    result = evaluate_given(given, Embedder.load(tiny_encoder), readers=FakeAnnotator())
    assert result.task == "replies" and result.count == count(reader)
    assert result.metric("perplexity_by_token") == pytest.approx(math.e, abs=1e-6)
    assert result.metric("er_level") == 0 and result.metric("invented_life") == 0
    assert "made by" in dict(result.conditions)
    named = evaluate_given(read_made(file, reader, "Mine"), Embedder.load(tiny_encoder), table="family")
    assert (named.task, named.system, named.metric("er_level")) == ("family", "Mine", None)


def test_realization_is_read_from_the_replies_of_a_run(job, reader):
    file = generate_all(Row(job))
    given = read_made(file, reader)
    first = given.replies[0]
    result = evaluate_realization(given, FakeAnnotator({first: replace(PLAN, tone="joy")}))
    share = 100 / count(reader)
    assert (result.task, result.system) == ("realization", "fake, gold factors")
    assert result.metric("cm_realized") == result.metric("da_realized") == pytest.approx(share, abs=1e-5)
    assert result.metric("em_realized") == result.metric("all_realized") == 0
    with pytest.raises(InputError, match="have no plans"):
        evaluate_realization(replace(given, plans=[]), FakeAnnotator())


def test_a_run_that_was_stopped_says_so(job, reader):
    file = generate_all(Row(job))
    file.unlink()
    assert is_made(file)
    with pytest.raises(InputError, match=r"is not finished.*it goes on"):
        read_made(file, reader)


def test_a_run_of_another_corpus_is_named(job, tmp_path):
    file = generate_all(Row(job))
    with pytest.raises(InputError, match="--corpus empathetic_dialogues"):
        read_made(file, CORPORA.load("esconv")(SAMPLES / "esconv"))
    (job.out / "run.json").write_text("[]")
    with pytest.raises(InputError, match="is damaged"):
        read_made(file, CORPORA.load(ED)(SAMPLES / ED))


def test_rows_say_whose_factors_and_what_was_switched_off():
    assert row_name("planned", "gold") == "planned, gold factors"
    assert row_name("planned", without=("ranker", "plan_adherence")) == "planned without ranker, realized"
    with pytest.raises(InputError, match="nothing to switch off"):
        System("planned", without=("ranker",))


def test_a_whole_listener_is_loaded_with_its_parts_switched_off(monkeypatch):
    called = {}
    monkeypatch.setattr(
        Listener, "load", lambda model, **settings: called.update(settings) or Listener(FakeGenerator())
    )
    assert System("planned", whole=True, without=("ranker",)).listener().generate.name == "fake"
    assert called == {"recipe": None, "weights": None, "without": ("ranker",)}


def test_a_speaker_alone_runs_where_the_gpu_is(tiny_generator, monkeypatch):
    who = System("planned", tiny_generator)
    assert who.generator().config.engine == Engine("auto", "fp32")
    monkeypatch.setattr(generators, "_has_gpu", lambda: True)
    assert who.generator().config.engine == Engine("torch", "fp32")
    assert isinstance(who.generator().runtime, TorchRuntime)


def test_the_planned_speaker_itself_is_asked(asked, reader, tiny_generator, tmp_path):
    who = System("planned", tiny_generator)
    assert who.generator().config.candidates == who.generator().config.plans == 1
    few = replace(asked, sampling=Sampling(2, 1))
    job = Job(who, few, "gold", tmp_path / "gold")
    plans = evaluate_planning(Row(job))
    assert plans.count == 2 and {"cm_exact", "da_hits_3", "em_hits_1", "emotion_hits_5"} <= set(
        dict(plans.metrics)
    )
    assert plans.checkpoint and plans.system.startswith("planned (")
    found = [
        evaluate_perplexity(Row(replace(job, factors=factors))).metric("perplexity_by_token")
        for factors in ("gold", "predicted", "none", "marginal")
    ]
    assert len({round(value, 3) for value in found}) == 4
    for factors in ("gold", "predicted", "none"):
        made = read_made(generate_all(Row(replace(job, factors=factors, out=tmp_path / factors))), reader)
        assert len(made.replies) == 2 and all(made.replies)
        assert [plan == PLAN for plan in made.plans] == {"gold": [True, True], "none": []}.get(
            factors, [False, False]
        )
    whole = System("planned", tiny_generator, whole=True, without=("understand", "rerank"))
    listening = Row(Job(whole, few, "predicted", tmp_path / "whole"), "ours")
    given = read_made(generate_all(listening), reader)
    assert given.system == "ours without understand, choose"
    assert given.conditions["switched off"] == "understand, choose"


@pytest.mark.parametrize("factors", [("mechanisms", "act"), ("act", "tone"), ()])
def test_comae_itself_is_asked(job, reader, tiny_llama, monkeypatch, factors):
    model, inputs = tiny_comae(tiny_llama, factors=factors)
    generator = Comae(ComaeSettings(annotate=False), ComaeRuntime(model, inputs.vocabulary))
    monkeypatch.setattr(FakeSystem, "generator", lambda self: generator)
    row = Row(job, "a member")
    gold = read_made(generate_all(row), reader)
    assert len(gold.replies) == count(reader)
    if not factors:
        alone = replace(row, job=replace(job, factors="none", out=job.out / "none"))
        assert read_made(generate_all(alone), reader).plans == [] == gold.plans
        return
    assert all(getattr(plan, name) == getattr(PLAN, name) for plan in gold.plans for name in factors)
    assert "batches" in gold.conditions
    figures = dict(evaluate_planning(row).metrics)
    second = {"act": "da", "tone": "em"}[factors[-1]]
    assert {f"{second}_share", f"{second}_hits_1", f"{second}_hits_3"} <= set(figures)
    assert ("cm_exact" in figures, "da_first" in figures) == (factors[0] == "mechanisms", factors[0] == "act")
    assert evaluate_perplexity(row).metric("perplexity_by_token") > 1
    with pytest.raises(InputError, match="always decides"):
        generate_all(replace(row, job=replace(job, factors="none", out=job.out / "none")))


def test_the_program_of_bare_machines(monkeypatch, asked, reader, tmp_path, capsys):
    monkeypatch.setattr(speaking, "System", FakeSystem)
    monkeypatch.setattr(sys, "argv", [speaking.__file__, "perplexity", "fake"])
    common = ["fake", "--split", "train", "--annotated", str(asked.annotated), "--limit", "3", "--seed", "2"]
    out = tmp_path / "out"
    assert speaking.main(["perplexity", *common, "--factors", "gold", "marginal", "--out", str(out)]) == 0
    result = read_result(out / "perplexity-fake-gold-factors.json")
    assert result.count == 3 and result.seed == 2
    assert result.command == "python -m listenwell.evaluation.generate_replies perplexity fake"
    assert dict(result.conditions)["sample"] == Sampling(3, 2).wording(count(reader), 3)
    assert (out / "perplexity-fake-factors-summed-over.json").is_file()
    replies = ["replies", *common, "--factors", "gold", "--likelihood", "--out", str(out / "r")]
    assert speaking.main(replies) == 0
    assert len((out / "r" / "replies.jsonl").read_text().splitlines()) == 3
    assert speaking.main(["planning", *common, "--out", str(out / "p")]) == 0
    assert read_result(out / "p" / "planning-fake.json").metric("cm_exact") == 100
    assert "perplexity a token: 2.718" in capsys.readouterr().out
    assert speaking.main([*replies, "--without", "ranker"]) == 1
    assert "is of a generator alone" in capsys.readouterr().err
    wrong = ["replies", *common, "--factors", "marginal", "--out", str(out / "w")]
    assert speaking.main(wrong) == 1
    assert "gold, predicted or none" in capsys.readouterr().err


def test_the_program_needs_no_library_that_bare_machines_lack():
    import subprocess

    code = (
        "import sys\n"
        "for name in ('typer', 'rich', 'sacrebleu', 'rouge_score', 'nltk', 'sklearn', 'scipy', 'matplotlib',"
        " 'vaderSentiment', 'platformdirs'):\n    sys.modules[name] = None\n"
        "import listenwell.evaluation.generate_replies"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])
