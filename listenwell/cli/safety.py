"""`listenwell safety`: measure crisis detection and the reply filter, and train the crisis classifier."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

safety = typer.Typer(no_args_is_help=True, help="Measure and train crisis detection and the reply filter.")
measure = typer.Typer(no_args_is_help=True, help="Measure on sentences, a corpus, or replies; prints JSON.")
safety.add_typer(measure, name="measure")

Keep = Annotated[Path | None, typer.Option(help="A folder for result files.")]
Show = Annotated[int, typer.Option(min=0, help="How many filtered replies of each system to show.")]


@measure.command()
def sentences(
    file: Annotated[
        Path, typer.Argument(exists=True, dir_okay=False, help="A JSONL file of labelled sentences.")
    ],
    keep: Keep = None,
) -> None:
    """Recall and false alarms of crisis detection on labelled sentences."""
    from listenwell.files import hash_files, sha256
    from listenwell.safety import crisis
    from listenwell.safety.head import SHIPPED
    from listenwell.safety.measure import as_json, read_list, report

    figures = report(crisis.Detector.load(), read_list(file))
    thresholds = f"sure {crisis.SURE}, agrees {crisis.AGREES}, uneasy {crisis.UNEASY}"
    for part, values in figures["figures"].items():
        if keep is None:
            break
        metrics = {name.replace(" ", "_"): value for name, value in values.items()}
        count, crises = int(metrics.pop("sentences")), metrics.pop("crises")
        _write(
            keep,
            f"measure sentences {file.name}",
            metrics,
            task="safety",
            system=f"{part}: crisis",
            corpus="own sentences",
            split=part,
            count=count,
            data=sha256(file),
            conditions=(("part", part), ("crises", f"{crises:.0f}"), ("thresholds", thresholds)),
            checkpoint=hash_files([SHIPPED / "model.safetensors", SHIPPED / "config.json"]),
        )
    typer.echo(as_json(figures))


@measure.command()
def corpus(
    name: Annotated[str, typer.Argument(help="A corpus of conversations.")],
    split: Annotated[str, typer.Argument(help="One of its splits.")],
    keep: Keep = None,
    show: Show = 0,
) -> None:
    """Alarms on the messages of a corpus, and the share of its replies that is filtered."""
    from listenwell.corpora import CORPORA
    from listenwell.dialogue import Dialogue
    from listenwell.errors import InputError
    from listenwell.evaluation.baselines import HUMAN
    from listenwell.files import data_folder, hash_files
    from listenwell.safety.crisis import Detector
    from listenwell.safety.measure import alarms, as_json, filtered

    kind = CORPORA.load(name)
    reader = kind(data_folder() / (kind.folder or name))
    messages, replies = list[str](), list[str]()
    for dialogue in reader.read(split):
        if not isinstance(dialogue, Dialogue):
            raise InputError(f"The corpus {name} has no conversations.", "Name one that has.")
        for turn in dialogue.turns:
            (replies if turn.speaker == dialogue.listener else messages).append(turn.text)
    if keep:
        command = f"measure corpus {name} {split}"
        _keep_replies({HUMAN: replies}, (name, split), hash_files(reader.files(split)), command, keep)
    figures = filtered({HUMAN: replies}, show)
    head = {
        "corpus": f"{name}, {split}",
        "alarms": alarms(Detector.load(), list(dict.fromkeys(messages))),  # a post may occur several times
        "replies": len(replies),
    }
    typer.echo(as_json(head | figures | {"faults": figures["faults"][HUMAN]}))


@measure.command()
def baselines(
    file: Annotated[
        Path,
        typer.Argument(
            exists=True, dir_okay=False, help="The outputs that MoEL's or MIME's authors released."
        ),
    ],
    keep: Keep = None,
    show: Show = 0,
) -> None:
    """The share of filtered replies of published systems."""
    from listenwell.corpora.base import Report
    from listenwell.errors import InputError
    from listenwell.evaluation.baselines import HUMAN, read_baselines, recognize
    from listenwell.files import sha256
    from listenwell.safety.measure import as_json, filtered

    form = recognize(file)
    if form is None:
        raise InputError(f"{file} is not one of the released files.", "Name MoEL's or MIME's.")
    records = list(read_baselines(file, form, Report()))
    systems = {name: [record.reply(name) for record in records] for name in form.names()}
    if keep:
        released = {name: replies for name, replies in systems.items() if name != HUMAN}
        split = ("empathetic_dialogues", "test")
        _keep_replies(released, split, sha256(file), f"measure baselines {file.name}", keep)
    typer.echo(as_json({"file": file.name, "replies": len(records)} | filtered(systems, show)))


@measure.command()
def replies(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="The replies.jsonl of a run.")],
    keep: Keep = None,
    show: Show = 0,
) -> None:
    """The share of a listener's replies, and of all its candidates, that is filtered."""
    from listenwell.files import sha256
    from listenwell.safety.measure import as_json, filtered, read_run

    systems, split = read_run(file)
    if keep:
        _keep_replies(systems, split, sha256(file), f"measure replies {file.name}", keep)
    typer.echo(as_json({"file": file.name} | filtered(systems, show)))


@safety.command()
def train(
    folder: Annotated[Path, typer.Argument(help="Where the checkpoint is written.")],
    card: Annotated[
        Path | None, typer.Option(help="A model card; its line {{figures}} becomes a table.")
    ] = None,
    sentences: Annotated[
        Path | None, typer.Option("--sentences", "--list", help="Labelled sentences to measure on.")
    ] = None,
) -> None:
    """Train the crisis classifier and write a checkpoint with its recipe, metrics and card."""
    from listenwell.safety.train import write_checkpoint

    write_checkpoint(folder, card, sentences)


def _keep_replies(
    systems: Mapping[str, Sequence[str]], split: tuple[str, str], data: str, command: str, folder: Path
) -> None:
    """Write for each system the share of its replies that is filtered, by reason."""
    from listenwell.files import sha256
    from listenwell.safety.replies import FILE, REASONS, fault_rates

    for system, texts in systems.items():
        _write(
            folder,
            command,
            fault_rates(texts),
            task="reply_filter",
            system=system,
            corpus=split[0],
            split=split[1],
            count=len(texts),
            data=data,
            conditions=(("reasons", ", ".join(REASONS)), ("patterns", f"sha256 {sha256(FILE)[:12]}")),
        )


def _write(folder: Path, command: str, metrics: Mapping[str, float], **fields: Any) -> None:  # noqa: ANN401
    """Write a result whose metrics are percentages; the command names no path of this machine."""
    from listenwell.results.store import Result, environment, file_name, write_result

    recorded: dict[str, Any] = environment() | {
        "command": f"listenwell safety {command} --keep {folder.name}"
    }
    units = tuple((name, "percent") for name in metrics)
    result = Result(metrics=tuple(metrics.items()), units=units, **fields, **recorded)
    write_result(result, folder / file_name(result))
