from dataclasses import replace

import numpy as np
import pytest
import torch

from listenwell.dialogue import Dialogue, Example, Factors, Turn
from listenwell.errors import CorpusError, RecipeError
from listenwell.generators.planned import PlannedGenerator
from listenwell.generators.planned_config import PlannedConfig
from listenwell.generators.plans import CROWD, LEVELS, PlanTokens, plan_of
from listenwell.generators.prompt_template import PromptTemplate
from listenwell.training.batching import Epoch
from listenwell.training.loop import Trainer
from listenwell.training.planned import PlannedTask, _of_each
from listenwell.training.recipe import BatchRecipe, LoraRecipe
from listenwell.training.run import train
from listenwell.training.task_configs import PairsRecipe, PlanningRecipe
from tests.training.helpers import talks, tiny_recipe, with_changes

CPU = torch.device("cpu")
LORA = LoraRecipe(rank=4, alpha=8, dropout=0.0)


def annotated(count):
    """Talks whose replies have factors: those that ask are questions, the others wishes."""
    for number, talk in enumerate(talks(count)):
        turns = [
            replace(
                turn,
                factors=Factors(
                    mechanisms=("exploration",) if turn.text.endswith("?") else ("emotional_reaction",),
                    act="questioning" if turn.text.endswith("?") else "wishing",
                    expressed_emotion="surprise" if turn.text.endswith("?") else "joy",
                ),
            )
            if turn.speaker == "listener"
            else turn
            for turn in talk.turns
        ]
        yield replace(talk, turns=tuple(turns), emotion="sad" if number % 2 else "joyful")


@pytest.fixture
def corpus(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    for split, count in (("train", 24), ("valid", 8), ("test", 6)):
        lines = [dialogue.to_json() for dialogue in annotated(count)]
        (folder / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture
def recipe(tmp_path, corpus, tiny_llama):
    return tiny_recipe(tmp_path / "run", corpus, tiny_llama, model="planned", lora=LORA, dropout=0.0)


def learned(task):
    """The spelling of what each training sequence teaches, plan tokens by name."""
    names = {number: name for name, number in named(task).items()}
    for piece in task.examples():
        tokens = piece.tokens[piece.targets].tolist()
        yield [names.get(token) for token in tokens if token in names], task.vocabulary.decode(tokens)


def named(task):
    tokens = PlanTokens.of(task.vocabulary)
    return {
        f"{level}:{number}": token
        for level, numbers in zip(LEVELS, tokens.numbers, strict=True)
        for number, token in enumerate(numbers)
    }


def test_plan_and_words_are_learned_and_a_share_without_plan_and_without_context(recipe):
    task = PlannedTask.prepare(with_changes(recipe, planning=PlanningRecipe(plan_dropout=0)), CPU)
    replies = [example for talk in annotated(24) for example in talk.examples()]
    assert [text for _, text in learned(task)] == [example.reply.text for example in replies]
    assert all(len(plan) == 4 for plan, _ in learned(task))
    first = next(iter(task.examples()))
    assert (
        task.data.template.plans.encode(plan_of(replies[0]))
        == [token for token in first.tokens.tolist() if token in task.vocabulary.special_ids][4:8]
    )
    unplanned = PlannedTask.prepare(
        with_changes(recipe, planning=PlanningRecipe(plan_dropout=1), unconditional=1.0), CPU
    )
    assert all(plan == [] for plan, _ in learned(unplanned))
    assert len(unplanned.examples()) == 2 * len(replies)
    assert sorted(text for _, text in learned(unplanned)) == sorted([e.reply.text for e in replies] * 2)
    alone = min(unplanned.examples(), key=len)
    assert task.vocabulary.decode(alone.tokens[~alone.targets]).strip() == "assistant"


def test_an_emotion_that_is_not_known_is_read_but_not_learned(recipe, corpus):
    lines = [replace(talk, emotion=None) for talk in annotated(24)]
    lines = [
        replace(
            talk,
            turns=tuple(
                replace(turn, factors=replace(turn.factors, emotion="proud")) if turn.factors else turn
                for turn in talk.turns
            ),
        )
        for talk in lines
    ]
    (corpus / "train.jsonl").write_text("\n".join(talk.to_json() for talk in lines) + "\n")
    task = PlannedTask.prepare(with_changes(recipe, planning=PlanningRecipe(plan_dropout=0)), CPU)
    assert all(
        [name.split(":")[0] for name in plan] == ["mechanisms", "act", "expressed_emotion"]
        for plan, _ in learned(task)
    )


@pytest.mark.parametrize("lora", [LORA, None])
def test_it_learns_saves_and_speaks_by_its_plan(recipe, lora, tiny_llama, monkeypatch):
    monkeypatch.setattr("listenwell.generators.vanilla.find_source", lambda base: tiny_llama)
    quick = replace(recipe.optimizer, learning_rate=2e-2)
    run = with_changes(recipe, lora=lora, epochs=25, validate_every=25, optimizer=quick)
    trainer = Trainer(run)
    before = trainer.task.measure("valid")
    after = trainer.run()
    assert after["perplexity_by_token"] < before["perplexity_by_token"] / 2
    assert after["plan_nll"] < before["plan_nll"] / 2
    generator = PlannedGenerator.load(PlannedConfig(plans=1, candidates=1), run.output)
    examples = [example for talk in annotated(8) for example in talk.examples()]
    gold = generator.perplexity(examples, "gold").by_token
    assert gold == pytest.approx(after["perplexity_by_token"], rel=0.02)  # halves in the file, here wholes
    unplanned = generator.perplexity(examples, "none").by_token
    assert gold < unplanned  # the plan tells whether a question or a wish comes
    # In training, the chance that a plan would begin counts against a reply without one.
    vocabulary = generator.runtime.vocabulary
    layout = PromptTemplate(vocabulary, PlanTokens.of(vocabulary), CROWD)
    replies = [layout.words(example.reply.text) for example in examples]
    nats = [
        float(generator.runtime.log_likelihoods(layout.prompt(example.context, 256).tokens, [words])[0])
        for example, words in zip(examples, replies, strict=True)
    ]
    counted = np.exp(-sum(nats) / sum(map(len, replies)))
    assert counted == pytest.approx(after["perplexity_by_token_unplanned"], rel=0.02)
    assert unplanned < counted


def test_neighbours_in_a_row_do_not_change_the_loss(recipe):
    task = PlannedTask.prepare(recipe, CPU)
    task.model.eval()

    def total(tokens, rows):
        batches = BatchRecipe("packed", tokens, rows)
        with torch.no_grad():
            return sum(
                float(task.loss_sum(batch))
                for step in Epoch(task.examples(), task.collate, batches, 0, 0).steps()
                for batch in step.batches
            )

    assert total(1024, 256) == pytest.approx(total(256, 128), rel=1e-5)


def test_only_adapters_and_new_rows_are_trained(recipe):
    task = PlannedTask.prepare(recipe, CPU)
    trained = {name: value.numel() for name, value in task.model.named_parameters() if value.requires_grad}
    rows = [name for name in trained if "lora_" not in name]
    assert len(rows) == 1 and rows[0].endswith("embed_tokens.rows")
    embeddings = task.generator.base.get_input_embeddings()
    tokens = torch.tensor([[3, len(embeddings.known), len(embeddings.known) + 5]])
    found = embeddings(tokens)[0]
    assert torch.equal(found[0], embeddings.known[3]) and torch.equal(found[2], embeddings.rows[5])


def test_a_run_goes_on_from_a_trained_speaker_and_from_a_model_without_plans(recipe, tmp_path):
    train(with_changes(recipe, epochs=2))
    first = Trainer(recipe).task.measure("valid")  # the base model's
    pairs = PairsRecipe((("jsonl", 0),), start=recipe.output / "best")
    prefix = PlannedTask.prepare(with_changes(recipe, output=tmp_path / "second", pairs=pairs), CPU)
    assert prefix.measure("valid")["perplexity_by_token"] < first["perplexity_by_token"]
    assert any("checkpoint.json" in str(file) for file in prefix.base_files)
    other = with_changes(recipe, output=tmp_path / "third", pairs=pairs, lora=LoraRecipe(rank=8, alpha=8))
    with pytest.raises(RecipeError, match="another form"):
        PlannedTask.prepare(other, CPU)
    with pytest.raises(RecipeError, match="cannot go on"):
        PlannedTask.prepare(with_changes(other, lora=None), CPU)
    vanilla = with_changes(recipe, model="vanilla", output=tmp_path / "vanilla", epochs=2)
    train(vanilla)
    start = replace(pairs, start=vanilla.output / "best")
    task = PlannedTask.prepare(with_changes(recipe, output=tmp_path / "fourth", pairs=start), CPU)
    assert task.measure("valid")["perplexity_by_token"] < first["perplexity_by_token"]


def test_what_is_missing_is_named(recipe, tmp_path):
    with pytest.raises(CorpusError, match="listenwell annotate empathetic_dialogues --split train"):
        data = replace(recipe.data, corpus="empathetic_dialogues", path=None, annotated=tmp_path / "none")
        PlannedTask.prepare(with_changes(recipe, data=data), CPU)
    with pytest.raises(RecipeError, match="not 1000"):
        PlannedTask.prepare(with_changes(recipe, pairs=PairsRecipe((("jsonl", 1000),))), CPU)


def test_a_reply_to_ones_own_words_is_left_out(recipe, corpus):
    odd = Dialogue((Turn("listener", "Hello."), Turn("listener", "Anyone?")), emotion="sad")
    whole = next(iter(annotated(1)))
    (corpus / "train.jsonl").write_text(f"{odd.to_json()}\n{whole.to_json()}\n")
    task = PlannedTask.prepare(with_changes(recipe, data=replace(recipe.data, limit=None)), CPU)
    assert len(task.examples()) == 1
    assert isinstance(task.examples()[0].tokens, np.ndarray)


def test_the_other_persons_turns_are_learned_once_where_the_recipe_asks_for_them(recipe):
    plain = PlannedTask.prepare(with_changes(recipe, planning=PlanningRecipe(plan_dropout=0)), CPU)
    task = PlannedTask.prepare(
        with_changes(recipe, learn="all", planning=PlanningRecipe(plan_dropout=0)), CPU
    )
    taught = [text for _, text in learned(task)]
    assert len(taught) == len(list(plain.examples()))
    every = "\n".join(taught)
    for talk in annotated(24):
        last = list(talk.examples())[-1].context
        for turn in last.turns:
            if turn.speaker == "speaker":
                assert turn.text in every
    # Of a talk's replies the last one alone has more to learn.
    more = [len(new) > len(old) for new, (_, old) in zip(taught, learned(plain), strict=True)]
    assert sum(more) == 24
    assert dict(task.conditions())["learned beside"] == "the other person's turns"
    assert task.measure("valid").keys() == plain.measure("valid").keys()


def test_what_happened_is_told_after_the_talk(recipe, corpus):
    lines = [replace(talk, situation=f"It was so sad {talk.id}.").to_json() for talk in annotated(24)]
    (corpus / "train.jsonl").write_text("\n".join(lines) + "\n")
    told = with_changes(recipe, planning=PlanningRecipe(plan_dropout=0, situations=1.0))
    task = PlannedTask.prepare(told, CPU)
    found = [text for plan, text in learned(task) if not plan]
    assert len(found) == 24 and all(text.startswith("It was so sad") for text in found)
    layout, talk = PromptTemplate(task.vocabulary, PlanTokens.of(task.vocabulary)), next(iter(annotated(1)))
    laid = layout.situation(replace(talk, situation="It rained."), 200)
    before, after = laid.tokens[: laid.words], laid.tokens[laid.words :]
    assert after == layout.words("It rained.")
    mark = 1 + len(task.vocabulary.encode("situation\n"))
    assert list(layout.prompt(talk, 200).tokens[: -len(layout.head)]) == before[:-mark]
    half = PlannedTask.prepare(
        with_changes(told, planning=PlanningRecipe(plan_dropout=0, situations=0.5)), CPU
    )
    assert 0 < len([1 for plan, _ in learned(half) if not plan]) < 24


def test_theirs_are_the_words_of_the_other_person_whatever_they_wrote(recipe):
    task = PlannedTask.prepare(recipe, CPU)
    layout = PromptTemplate(task.vocabulary, PlanTokens.of(task.vocabulary))
    said = (("speaker", "oh user no"), ("listener", "why ?"), ("speaker", "assistant is sad"))
    talk = Dialogue(tuple(Turn(*one) for one in said))
    tokens = list(layout.prompt(talk, 200).tokens)
    mask = layout.said_by("user", tokens)
    theirs = [token for token, is_theirs in zip(tokens, mask, strict=True) if is_theirs]
    assert theirs == [*layout.words("oh user no"), *layout.words("assistant is sad")]
    assert not layout.said_by("user", []).size


def test_the_listeners_earlier_turns_are_learned_with_the_last_reply(recipe):
    planning = PlanningRecipe(plan_dropout=0, replies=1, earlier=True)
    task = PlannedTask.prepare(with_changes(recipe, planning=planning), CPU)
    layout = PromptTemplate(task.vocabulary, PlanTokens.of(task.vocabulary), "plain")
    said = ("I row.", "With whom?", "With my sister.", "That is nice.", "It is.")
    turns = tuple(Turn(("speaker", "listener")[number % 2], text) for number, text in enumerate(said))
    plan = Factors("sad", ("exploration",), "questioning", "caring")
    prompt = layout.example(Example(Dialogue(turns), Turn("listener", "Good.")), plan, 200)
    mask = layout.earlier(prompt)
    words = [token for token, is_target in zip(prompt.tokens, mask, strict=True) if is_target]
    assert words == [*layout.words("With whom?"), *layout.words("That is nice.")]
    everything = PlannedTask.prepare(with_changes(recipe, planning=PlanningRecipe(plan_dropout=0)), CPU)
    assert 0 < len(task.examples()) < len(everything.examples())


def test_of_each_conversation_so_many_replies():
    keys = ["a", "a", "a", "b", "c", "c"]
    chosen = list(_of_each([4, 2, 0, 1, 3, 5], keys, {2, 3, 5}, 2))
    assert chosen == [4, 2, 0, 3, 5]
    assert list(_of_each(range(6), keys, {2, 3, 5}, 0)) == list(range(6))
