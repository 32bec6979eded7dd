"""From a listener, or from replies someone made, to a result: nothing that moves a number is left unsaid."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import Any

from listenwell.corpora.base import CorpusLoader
from listenwell.corpora.sampling import Sampling
from listenwell.dialogue import Example
from listenwell.errors import InputError
from listenwell.evaluation.embedder import Embedder
from listenwell.evaluation.empathy import Reads, empathy_conditions, measure_empathy
from listenwell.evaluation.outputs import Given
from listenwell.evaluation.replies import claim, generate_replies, measure_replies, metric_conditions
from listenwell.evaluation.report.ablations import ABLATIONS
from listenwell.evaluation.systems import likelihood_metrics, row_name, takes_factors
from listenwell.files import hash_files
from listenwell.listener import Listener
from listenwell.metrics import Perplexity
from listenwell.results.metric_registry import METRICS, units
from listenwell.results.store import Result, environment
from listenwell.runtime.weights import HUB_FILES, find_weights
from listenwell.serialization import dumps

REPLIES = "replies"


@dataclass(frozen=True)
class Run:
    """One evaluation of one listener."""

    reader: CorpusLoader
    split: str
    sampling: Sampling
    """How many contexts; its seed is also that of the replies."""
    out: Path
    """A folder; replies.jsonl grows in it, and a run that was stopped goes on from there."""
    checkpoint: str | None = None
    """sha256 over the model's files."""
    readers: Reads | None = None
    """Annotators that read the empathy of replies; without them it is not measured."""
    without: tuple[str, ...] = ()
    """What was switched off in the listener; the row's name says it, and it stands among the ablations."""


def evaluate_listener(listener: Listener, run: Run, embedder: Embedder) -> Result:
    """Let a listener answer a split (or a sample of it) and measure its replies."""
    data = hash_files(run.reader.check(run.split))
    examples, seed = list(run.reader.examples(run.split)), run.sampling.seed
    if not examples:
        raise InputError(
            f"{run.reader.name} {run.split} has no replies to make.", "Name a corpus of conversations."
        )
    chosen = run.sampling.draw(examples)
    switches = listener_conditions(listener) | {"sample": run.sampling.describe(len(examples), len(chosen))}
    if run.without:
        switches["switched off"] = ", ".join(run.without)
    about: dict[str, Any] = {
        "system": row_name(listener.generate.name, without=run.without),
        "corpus": run.reader.name,
        "split": run.split,
        "data": data,
        "checkpoint": run.checkpoint,
        "seed": seed,
    }
    conditions = metric_conditions(embedder) | switches
    claim(run.out, about | {"conditions": switches})
    replies = generate_replies(listener, chosen, seed, run.out / "replies.jsonl")
    measured = measure_replies(replies, [example.reply.text for _, example in chosen], embedder)
    if run.readers:
        measured |= measure_empathy([example.context for _, example in chosen], replies, run.readers)
        conditions |= empathy_conditions(run.readers)
    if likelihood := _perplexity(listener, [example for _, example in chosen]):
        conditions["tokenizer"] = likelihood.tokenizer
        figures = likelihood_metrics(likelihood)
        measured |= {name: value for name, value in figures.items() if METRICS[name].group == "perplexity"}
    task = ABLATIONS if run.without else REPLIES
    return result_of(task, measured, conditions, about | {"count": len(replies)})


def evaluate_given(
    given: Given,
    embedder: Embedder,
    seed: int | None = None,
    readers: Reads | None = None,
    table: str | None = None,
) -> Result:
    """Measure replies that were made before, by a run of ours or by someone else.

    Args:
        given: the replies.
        embedder: whose vectors the metrics of meaning use.
        seed: of the draw, None where all were taken; a run's own seed counts before it.
        readers: annotators that read the empathy of replies, where their contexts are known.
        table: the table of the row, where it is not the usual one.
    """
    measured = measure_replies(given.replies, given.references, embedder) | given.figures
    conditions = metric_conditions(embedder) | given.conditions
    if readers and given.contexts:
        measured |= measure_empathy(given.contexts, given.replies, readers)
        conditions |= empathy_conditions(readers)
    usual = ABLATIONS if given.conditions.get("switched off", "nothing") != "nothing" else REPLIES
    return result_of(table or usual, measured, conditions, given_about(given, seed))


def given_about(given: Given, seed: int | None = None) -> dict[str, Any]:
    """What a result says of given replies, beside their figures."""
    return {
        "system": given.system,
        "corpus": given.corpus,
        "split": given.split,
        "data": given.data,
        "checkpoint": given.checkpoint,
        "seed": seed if given.seed is None else given.seed,
        "count": len(given.replies),
    }


def model_files(generator: Any, weights: Path | None) -> tuple[Path, ...]:  # noqa: ANN401
    """The files behind a generator: those it names itself (`files()`), or its base weights."""
    if hasattr(generator, "files"):
        return tuple(generator.files())
    base = getattr(getattr(generator, "config", None), "base", None)
    if base is None:
        return ()
    folder = find_weights(base, weights)
    return tuple(folder / name for name in HUB_FILES)


def result_of(
    task: str, measured: Mapping[str, float], conditions: Mapping[str, str], about: Mapping[str, Any]
) -> Result:
    """A result of a table, with units and surroundings."""
    figures = {name: round(float(value), 6) for name, value in measured.items()}
    return Result(
        task=task,
        metrics=tuple(figures.items()),
        units=units(tuple(figures)),
        conditions=tuple(conditions.items()),
        **about,
        **environment(),  # type: ignore[arg-type]
    )


def _perplexity(listener: Listener, examples: Iterable[Example]) -> Perplexity | None:
    """The likelihood of the references, where the generator can tell it.

    One that plans has several, by whose factors: they are rows of their own (`spoken`).
    """
    measure = getattr(listener.generate, "perplexity", None)
    return measure(examples) if measure and not takes_factors(measure) else None


def listener_conditions(listener: Listener) -> dict[str, str]:
    """The listener's switches; settings are written out whole, those at their defaults too.

    What a generator says of itself (`conditions()`) stands for settings of the same names.
    """
    config = getattr(listener.generate, "config", None)
    settings = asdict(config) if is_dataclass(config) and not isinstance(config, type) else {}
    decoding = settings.pop("decoding", None)
    places = ("understand", "plan", "rerank", "guard")
    filled = [place for place in places if getattr(listener, place)]
    own: dict[str, str] = getattr(listener.generate, "conditions", dict)()
    chooser = {"chooser": _chooser(listener.rerank)} if listener.rerank else {}
    found = {
        "model": listener.generate.name,
        "decoding": _flat(decoding) if isinstance(decoding, dict) else "the model's own",
        "factors": "predicted" if listener.plan else "none",
        "pool": "none: replies were generated",
        "places filled": ", ".join(["generate", *filled]),
        "settings": dumps({name: value for name, value in settings.items() if name not in own}),
    }
    return found | chooser | own


def _chooser(rerank: object) -> str:
    """A ranker by its name and key; who has none is called by its class."""
    name, key = getattr(rerank, "name", type(rerank).__name__), getattr(rerank, "key", None)
    return f"{name}, key {key}" if key else str(name)


def _flat(settings: Mapping[str, object]) -> str:
    """Settings in words: `temperature 0.3, top_p 0.9`."""
    parts = []
    for name, value in settings.items():
        parts.append(_flat(value) if isinstance(value, Mapping) else f"{name} {value}")
    return ", ".join(parts)
