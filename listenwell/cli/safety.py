"""`listenwell safety`: measure crisis detection and the reply filter, and fit the thresholds of detection."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from listenwell.safety.crisis import Detector

safety = typer.Typer(
    no_args_is_help=True, help="Measure crisis detection and the reply filter; fit thresholds."
)
measure = typer.Typer(no_args_is_help=True, help="Measure on sentences, a corpus, or replies; prints JSON.")
safety.add_typer(measure, name="measure")

Keep = Annotated[Path | None, typer.Option(help="A folder for result files.")]
Classifier = Annotated[
    Path | None,
    typer.Option("--classifier", help="A crisis classifier's checkpoint; the shipped one otherwise."),
]
Show = Annotated[int, typer.Option(min=0, help="How many filtered replies of each system to show.")]


@measure.command()
def sentences(
    file: Annotated[
        Path, typer.Argument(exists=True, dir_okay=False, help="A JSONL file of labelled sentences.")
    ],
    keep: Keep = None,
) -> None:
    """Recall and false alarms of crisis detection on labelled sentences."""
    from listenwell.files import sha256
    from listenwell.safety.crisis import Detector
    from listenwell.safety.measure import as_json, read_list, report

    detector = Detector.load()
    figures = report(detector, read_list(file))
    for part, values in figures["figures"].items():
        if keep is None:
            break
        metrics = {name.replace(" ", "_"): value for name, value in values.items()}
        count, crises = int(metrics.pop("sentences")), metrics.pop("crises")
        _write_detection(
            keep,
            f"measure sentences {file.name}",
            metrics,
            detector,
            part,
            (("crises", f"{crises:.0f}"),),
            corpus="own sentences",
            count=count,
            data=sha256(file),
        )
    typer.echo(as_json(figures))


@measure.command()
def messages(
    path: Annotated[
        Path,
        typer.Argument(
            exists=True, help="A JSONL file of labelled messages, or a folder such as data/risk/test."
        ),
    ],
    keep: Keep = None,
    folder: Classifier = None,
) -> None:
    """Recall and false alarms of crisis detection on messages and conversations, by kind and form."""
    from listenwell.corpora.risk import RiskMessages
    from listenwell.errors import InputError
    from listenwell.files import hash_files
    from listenwell.safety.crisis import Detector
    from listenwell.safety.measure import as_json, cases, risk_report

    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    if not files:
        raise InputError(f"{path} holds no JSONL file.", "Name a folder such as data/risk/test.")
    detector, loader = Detector.load(folder), RiskMessages(path.parent)
    dialogues = [dialogue for file in files for dialogue in loader.dialogues(file)]
    figures = risk_report(cases(detector, dialogues))
    for part, values in figures.items():
        if keep is None:
            break
        metrics = {
            name.replace(", ", "_").replace(" ", "_").replace("-", "_"): value
            for name, value in values.items()
        }
        count = int(metrics.pop("messages"))
        name = path.stem if part == "all" else f"{path.stem}, {part}"
        fields: dict[str, Any] = {"corpus": "risk messages", "count": count, "data": hash_files(files)}
        _write_detection(
            keep, f"measure messages {path.name}", metrics, detector, name, (), classifier=folder, **fields
        )
    typer.echo(as_json({**figures, "skipped": loader.report.lines()}))


@measure.command()
def agreement(
    folder: Annotated[
        Path, typer.Argument(exists=True, file_okay=False, help="The folder with the messages.")
    ] = Path("data/risk"),
    keep: Keep = None,
) -> None:
    """How far writer and second annotator agree on the level and the kind of labelled messages."""
    from listenwell.files import hash_files
    from listenwell.safety.measure import as_json, label_agreement

    files = sorted(folder.rglob("*.jsonl"))
    figures = label_agreement(files)
    if keep:
        metrics = dict(figures)
        _write(
            keep,
            "measure agreement",
            metrics,
            task="safety",
            system="writer and second annotator: labels",
            corpus="risk messages",
            split="all",
            count=int(metrics.pop("messages")),
            data=hash_files(files),
            conditions=(("annotators", "language models; the second did not see the first label"),),
        )
    typer.echo(as_json(dict(figures)))


@measure.command()
def corpus(
    name: Annotated[str, typer.Argument(help="A corpus of conversations or comments.")],
    split: Annotated[str, typer.Argument(help="One of its splits.")],
    keep: Keep = None,
    show: Show = 0,
) -> None:
    """Alarms on the messages of a corpus, each read alone, and the share of its replies that is filtered."""
    from listenwell.corpora import CORPORA
    from listenwell.dialogue import Dialogue
    from listenwell.evaluation.baselines import HUMAN
    from listenwell.files import data_folder, hash_files
    from listenwell.safety.crisis import Detector
    from listenwell.safety.measure import alarms, as_json, filtered

    kind = CORPORA.load(name)
    reader = kind(data_folder() / (kind.folder or name))
    messages, replies = list[str](), list[str]()
    for dialogue in reader.read(split):
        if not isinstance(dialogue, Dialogue):
            messages.append(dialogue.text)
            continue
        for turn in dialogue.turns:
            (replies if turn.speaker == dialogue.listener else messages).append(turn.text)
    detector = Detector.load()
    rates = alarms(detector, list(dict.fromkeys(messages)))  # a post may occur several times
    report: dict[str, Any] = {"corpus": f"{name}, {split}", "alarms": dict(rates), "replies": len(replies)}
    command, data = f"measure corpus {name} {split}", hash_files(reader.files(split))
    if replies:
        figures = filtered({HUMAN: replies}, show)
        report |= figures | {"faults": figures["faults"][HUMAN]}
    if keep and replies:
        _keep_replies({HUMAN: replies}, (name, split), data, command, keep)
    if keep:
        metrics = {"everyday_crisis": rates["crisis"], "everyday_concern": rates["concern"]}
        part = f"messages of {name} {split}"
        fields: dict[str, Any] = {"corpus": name, "count": int(rates["texts"]), "data": data}
        _write_detection(keep, command, metrics, detector, part, (), **fields)
    typer.echo(as_json(report))


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
def thresholds(
    run: Annotated[
        Path, typer.Argument(exists=True, file_okay=False, help="A trained classifier's checkpoint.")
    ],
    out: Annotated[Path, typer.Argument(help="Where the checkpoint with thresholds is written.")],
    data: Annotated[
        Path, typer.Option(exists=True, file_okay=False, help="The folder with the labelled messages.")
    ] = Path("data/risk"),
) -> None:
    """Fit a crisis classifier's thresholds on validation, and write a checkpoint that holds them."""
    from listenwell.corpora.risk import EverydayMessages, RiskMessages
    from listenwell.safety.crisis import Detector
    from listenwell.safety.measure import cases, risk_metrics
    from listenwell.safety.thresholds import Rates, fit_thresholds, with_thresholds, write_thresholds

    detector = Detector.load(run)
    risk = list(RiskMessages(data).read("valid"))
    everyday = list(EverydayMessages(data).read("valid"))
    fitted = fit_thresholds(detector, cases(detector, risk), cases(detector, everyday), Rates())
    write_thresholds(run, out, fitted)
    typer.echo(fitted.to_json())
    for name, value in risk_metrics(cases(with_thresholds(detector, fitted), risk)).items():
        typer.echo(f"{name}: {value:.1f}")


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


def _write_detection(
    folder: Path,
    command: str,
    metrics: Mapping[str, float],
    detector: "Detector",
    part: str,
    conditions: tuple[tuple[str, str], ...],
    classifier: Path | None = None,
    **fields: Any,  # noqa: ANN401
) -> None:
    """Write a result of crisis detection with its thresholds in words; the shipped classifier is `crisis`."""
    from listenwell.files import hash_files
    from listenwell.safety import crisis
    from listenwell.safety.classifier import SHIPPED

    own = detector.classifier.thresholds
    words = f"crisis {own.crisis:g}, concern {own.concern:g}, weak patterns {crisis.AGREES:g}: {own.fitted}"
    option = f" --classifier {classifier.name}" if classifier else ""
    _write(
        folder,
        f"{command}{option}",
        metrics,
        task="safety",
        system=f"{part}: {classifier.name if classifier else 'crisis'}",
        split=part,
        conditions=(("part", part), *conditions, ("thresholds", words)),
        checkpoint=hash_files(
            file for file in (classifier or SHIPPED).iterdir() if file.suffix in (".safetensors", ".json")
        ),
        **fields,
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
