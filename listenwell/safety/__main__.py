"""Measure safety and write the figures as JSON.

python -m listenwell.safety list LIST.jsonl        crisis detection on labelled sentences
python -m listenwell.safety corpus NAME SPLIT      alarms on what people say, faults in the listeners' replies
python -m listenwell.safety peers FILE             faults in the replies that MoEL's or MIME's authors gave
"""

import argparse
import sys
from pathlib import Path

from listenwell.errors import InputError, ListenwellError
from listenwell.records import Json


def main() -> None:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(
        prog="python -m listenwell.safety",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parts = parser.add_subparsers(dest="part", required=True)
    sentences = parts.add_parser("list")
    sentences.add_argument("file", type=Path)
    sentences.add_argument("--keep", type=Path, help="a folder that gets a result file of each part, too")
    corpus = parts.add_parser("corpus")
    corpus.add_argument("name")
    corpus.add_argument("split")
    parts.add_parser("peers").add_argument("file", type=Path)
    given = parser.parse_args()
    from listenwell.safety.measure import written

    try:
        print(written(_figures(given)))
    except (ListenwellError, OSError) as error:
        sys.exit(str(error))


def _figures(given: argparse.Namespace) -> dict[str, Json]:
    from listenwell.safety.crisis import Detector
    from listenwell.safety.measure import read_list, report

    if given.part == "list":
        figures = report(Detector.load(), read_list(given.file))
        if given.keep:
            _keep(figures, given.file, given.keep)
        return figures
    return _corpus(given.name, given.split) if given.part == "corpus" else _peers(given.file)


def _keep(figures: dict[str, Json], file: Path, folder: Path) -> None:
    """Write what was measured as results, for the page and the model card."""
    from listenwell.evaluation.ledger import Result, surroundings, write_result
    from listenwell.files import hash_files, sha256, slug
    from listenwell.safety import crisis
    from listenwell.safety.head import SHIPPED

    for part, found in figures["figures"].items():
        metrics = {name.replace(" ", "_"): value for name, value in found.items()}
        counts = {"count": int(metrics.pop("sentences")), "data": sha256(file)}
        conditions = {
            "part": part,
            "crises": f"{metrics.pop('crises'):.0f}",
            "thresholds": f"sure {crisis.SURE}, agrees {crisis.AGREES}, uneasy {crisis.UNEASY}",
        }
        around = surroundings() | {
            "command": f"python -m listenwell.safety list {file.name} --keep {folder.name}"
        }
        result = Result(
            task="safety",
            system=f"{part}: crisis",
            metrics=tuple(metrics.items()),
            units=tuple((name, "percent") for name in metrics),
            corpus="own sentences",
            split=part,
            conditions=tuple(conditions.items()),
            checkpoint=hash_files([SHIPPED / "model.safetensors", SHIPPED / "config.json"]),
            **counts,  # type: ignore[arg-type]
            **around,  # type: ignore[arg-type]
        )
        write_result(result, folder / f"safety-crisis-{slug(part)}.json")


def _corpus(name: str, split: str) -> dict[str, Json]:
    from listenwell.corpora import CORPORA
    from listenwell.dialogue import Dialogue
    from listenwell.files import data_folder
    from listenwell.safety.crisis import Detector
    from listenwell.safety.measure import alarms
    from listenwell.safety.replies import fault_rates

    kind = CORPORA.load(name)
    reader = kind(data_folder() / (kind.folder or name))
    said, replies = list[str](), list[str]()
    for dialogue in reader.read(split):
        if not isinstance(dialogue, Dialogue):
            raise InputError(f"The corpus {name} has no conversations.", "Name one that has.")
        for turn in dialogue.turns:
            (replies if turn.speaker == dialogue.listener else said).append(turn.text)
    said = list(dict.fromkeys(said))  # a post with several replies stands in a corpus several times
    return {
        "corpus": f"{name}, {split}",
        "alarms": alarms(Detector.load(), said),
        "replies": len(replies),
        "faults": fault_rates(replies),
    }


def _peers(file: Path) -> dict[str, Json]:
    from listenwell.corpora.base import Report
    from listenwell.evaluation.peers import read_peers, recognize
    from listenwell.safety.replies import fault_rates

    form = recognize(file)
    if form is None:
        raise InputError(f"{file} is neither of the released files.", "Name MoEL's or MIME's.")
    records = list(read_peers(file, form, Report()))
    return {
        "file": file.name,
        "replies": len(records),
        "faults": {name: fault_rates([record.reply(name) for record in records]) for name in form.names()},
    }


if __name__ == "__main__":
    main()
