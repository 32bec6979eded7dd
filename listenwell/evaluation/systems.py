"""Asking generators that plan: who is asked, for which replies, under whose factors, and the row's name.

The same on a bare machine (`python -m listenwell.evaluation.generate_replies`) and for `listenwell evaluate`: nothing
but torch, transformers, peft, numpy and the standard library is imported.
"""

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from listenwell.corpora.sampling import Sampling
from listenwell.corpora.sources import Source
from listenwell.dialogue import Example, Factors, Reply
from listenwell.errors import InputError, unknown_name
from listenwell.evaluation.replies import Answer, by_listener, example_id, reply_seed
from listenwell.files import hash_files
from listenwell.generators import GENERATORS
from listenwell.generators.plans import plan_of
from listenwell.metrics import Perplexity
from listenwell.recipe import read_recipe
from listenwell.runtime.engines import TORCH, is_installed

GOLD, PREDICTED, NONE, MARGINAL = FACTORS = ("gold", "predicted", "none", "marginal")
WORDS = {
    GOLD: "gold factors",
    PREDICTED: "predicted factors",
    NONE: "no factors",
    MARGINAL: "factors summed over",
}
"""How a row's name says whose factors it had."""
SAID = {
    GOLD: "gold: those of the person's own reply, as our annotators read it; the generator is told more than it"
    " could know",
    PREDICTED: "predicted: the speaker's own",
    NONE: "none; of a generator that could write a plan it is known that it does not",
    MARGINAL: "marginal: the likelihood summed over the speaker's own plans",
}
BATCH, WHOLE_BATCH = 64, 16
"""Dialogues that are answered at a time: by a generator alone, and on a GPU by a whole listener, who words
several replies to each."""
TITLES = {"esconv": "ESConv's supporters", "epitome": "EPITOME's responses"}
"""How tables call the corpora that no generator learns from."""


@dataclass(frozen=True)
class Asked:
    """Which replies of which corpus are asked for."""

    corpus: str = "empathetic_dialogues"
    split: str = "test"
    path: Path | None = None
    annotated: Path | None = None
    """The folder with what `listenwell annotate` wrote; gold factors come from there."""
    sampling: Sampling = field(default_factory=Sampling)

    @cached_property
    def source(self) -> Source:
        """The corpus."""
        return Source(self.corpus, self.path, annotated=self.annotated)

    @cached_property
    def every(self) -> list[Example]:
        """All replies of the split."""
        return list(self.source.examples(self.split))

    def drawn(self, planned: bool) -> list[tuple[int, Example]]:
        """The chosen replies with their places; `planned`: only those whose factors are all known."""
        chosen = self.sampling.draw(self.every)
        if planned:
            chosen = [(place, example) for place, example in chosen if plan_of(example)]
            if not chosen:
                raise InputError(
                    f"No reply of {self.corpus} {self.split} has its factors.",
                    "Annotate it (`listenwell annotate`) and name the folder with --annotated.",
                )
        return chosen

    def data(self) -> str:
        """sha256 over the split's files; of an annotated split, over its annotated file."""
        return hash_files(self.source.files(self.split))

    def conditions(self, taken: int) -> dict[str, str]:
        """The sample, and where factors come from."""
        drawn = len(self.sampling.draw(self.every))
        rule = self.sampling.describe(len(self.every), drawn)
        if taken < drawn:
            rule += f"; without the {drawn - taken:,} whose factors are not all known"
        labels = "our annotators'; the speaker's emotion is the corpus's own where it has one"
        return {"sample": rule} | ({"labels": labels} if self.annotated else {})


@dataclass(frozen=True)
class System:
    """Who is asked: a generator by its name, its settings and weights, and how it is switched."""

    model: str
    weights: Path | None = None
    recipe: Path | None = None
    whole: bool = False
    """The whole listener with all its places, instead of the generator alone."""
    without: tuple[str, ...] = ()
    """Of the whole listener: places and judges that are switched off."""

    def __post_init__(self) -> None:
        if self.without and not self.whole:
            raise InputError("A generator alone has nothing to switch off.", "Ask the whole listener.")

    def generator(self) -> Any:  # noqa: ANN401 - any generator
        """The generator alone, on a GPU where there is one; it words one reply under one plan."""
        generator: Any = GENERATORS.load(self.model)
        config = read_recipe(generator.Config, self.recipe) if self.recipe else generator.Config()
        single: dict[str, Any] = {name: 1 for name in ("plans", "candidates") if hasattr(config, name)}
        if hasattr(config, "engine"):  # a model's own figures are exact
            name = TORCH if _has_gpu() else config.engine.name  # onnxruntime stays on the CPU
            single["engine"] = replace(config.engine, name=name, precision="fp32")
        return _quick(generator.load(replace(config, **single), self.weights))

    def listener(self) -> Any:  # noqa: ANN401
        """The whole listener, or the generator alone as one."""
        from listenwell.listener import Listener

        if not self.whole:
            generator = self.generator()
            return Listener(generator, plan=generator if hasattr(generator, "plan") else None)
        made = Listener.load(self.model, recipe=self.recipe, weights=self.weights, without=self.without)
        _quick(made.generate)
        return made


def whole_batch() -> int:
    """How many dialogues a whole listener answers at a time: a CPU gains nothing by several."""
    return WHOLE_BATCH if _has_gpu() else 1


def _has_gpu() -> bool:
    if not is_installed("torch"):
        return False
    import torch

    return bool(torch.cuda.is_available())


def _quick(generator: Any) -> Any:  # noqa: ANN401
    """Moved to a GPU, where there is one and the generator can be moved."""
    for part in (generator, getattr(generator, "runtime", None)):
        if part is not None and hasattr(part, "use_gpu"):
            part.use_gpu()
            break
    return generator


@dataclass(frozen=True)
class Answering:
    """How examples are answered, and how many at a time."""

    answer: Answer
    batch: int = 1


def answering(listener: Any, factors: str) -> Answering:  # noqa: ANN401
    """How a generator alone answers examples under some factors; nothing chooses.

    Args:
        listener: the generator in its place, as `Who.listener` gives it.
        factors: "gold" forces the plan of the person's own reply, "predicted" leaves it to the generator,
            "none" lets one that can do without speak from the dialogue alone.
    """
    generator = listener.generate
    batch = BATCH if hasattr(generator, "generate_batch") else 1
    if factors not in (GOLD, PREDICTED, NONE):
        raise InputError(f"No reply is made under {factors!r} factors.", "Give gold, predicted or none.")
    if factors != NONE and not hasattr(generator, "factor_probabilities"):
        raise InputError(f"{generator.name} knows no factors.", "Ask it with --factors none.")
    if factors == PREDICTED:
        return Answering(by_listener(listener), batch)
    if factors == NONE:
        return Answering(_unplanned(listener), batch)

    def forced(examples: Sequence[Example], seeds: Sequence[int]) -> list[Reply]:
        asked = [
            (example.context, tuple(filter(None, [plan_of(example)])), seed)
            for example, seed in zip(examples, seeds, strict=True)
        ]
        speeches = (
            generator.generate_batch(asked) if batch > 1 else [generator.generate(*one) for one in asked]
        )
        said = [speech.candidates[0] for speech in speeches]
        return [
            Reply(one.text, generator.name, seed, plan=one.plan)
            for one, seed in zip(said, seeds, strict=True)
        ]

    return Answering(forced, batch)


def _unplanned(listener: Any) -> Answer:  # noqa: ANN401
    """Replies from the dialogue alone, of a generator that can do without a plan."""
    generate = by_listener(replace(listener, plan=None))

    def answer(examples: Sequence[Example], seeds: Sequence[int]) -> Sequence[Reply]:
        replies = generate(examples, seeds)
        if any(reply.plan not in (None, Factors()) for reply in replies):
            raise InputError(
                f"{listener.generate.name} always decides on factors.", "Give gold or predicted."
            )
        return replies

    return answer


def planned(asked: Asked) -> list[tuple[str, Example, Factors]]:
    """Every chosen reply whose factors are known, with its id and its plan."""
    return [
        (example_id(example, place), example, plan)
        for place, example in asked.drawn(planned=True)
        if (plan := plan_of(example))
    ]


def likelihood(
    generator: Any,  # noqa: ANN401
    examples: Sequence[tuple[int, Example]],
    factors: str,
    seed: int = 0,
) -> Perplexity:
    """The perplexity of people's replies under some factors; a generator that knows none has only "none".

    Args:
        generator: any that can tell.
        examples: each with its place in the corpus.
        factors: one of FACTORS.
        seed: of a generator that draws plans; with the place it gives the seed of each reply.
    """
    if factors not in FACTORS:
        raise unknown_name("kind of factors", factors, FACTORS)
    measure = getattr(generator, "perplexity", None)
    if measure is None:
        raise InputError(f"{generator.name} cannot tell likelihoods.", "Name a trained generator.")
    texts = [example for _, example in examples]
    if not takes_factors(measure):
        if factors != NONE:
            raise InputError(
                f"{generator.name} knows no factors.", "Ask for its likelihoods: --factors none."
            )
        alone: Perplexity = measure(texts)
        return alone
    if factors == MARGINAL and "seeds" in inspect.signature(measure).parameters:
        # A seed each, so that a reply's plans do not depend on what else is asked, or by how many workers.
        drawn: Perplexity = measure(texts, factors, [reply_seed(seed, place) for place, _ in examples])
        return drawn
    found: Perplexity = measure(texts, factors)
    return found


def takes_factors(measure: Callable[..., Perplexity]) -> bool:
    """Whether a speaker's `perplexity` asks whose factors to use."""
    return "factors" in inspect.signature(measure).parameters


def row_name(system: str, factors: str | None = None, without: Iterable[str] = ()) -> str:
    """A row's name says whose factors it had, and what was switched off."""
    name = f"{system}, {WORDS[factors]}" if factors else system
    off = ", ".join(without)
    return f"{name} without {off}" if off else name


def likelihood_metrics(found: Perplexity) -> dict[str, float]:
    """The three figures and the sums behind them, under the names of `units.METRICS`."""
    return {
        "perplexity_by_token": found.by_token,
        "perplexity_by_word": found.by_word,
        "bits_per_byte": found.bits_per_byte,
        "nll": found.nll,
        "tokens": float(found.tokens),
        "words": float(found.words),
        "bytes": float(found.bytes),
    }
