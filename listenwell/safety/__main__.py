"""Measure safety and write the figures as JSON.

python -m listenwell.safety list LIST.jsonl        crisis detection on labelled sentences
python -m listenwell.safety corpus NAME SPLIT      alarms on what people say, faults in the listeners' replies
python -m listenwell.safety peers FILE             faults in the replies that MoEL's or MIME's authors gave
python -m listenwell.safety replies FILE           faults in what a listener said, and in all that it proposed

With --keep FOLDER each part or system gets a result file there, too; with --show N, up to N replies of each
system that are filtered are shown, with the words they are filtered for.
"""

import argparse
import sys
from pathlib import Path

from listenwell.errors import InputError, ListenwellError
from listenwell.serialization import Json


def main() -> None:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(
        prog="python -m listenwell.safety",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parts = parser.add_subparsers(dest="part", required=True)
    names = ("list", "corpus", "peers", "replies")
    sentences, corpus, baselines, replies = (parts.add_parser(name) for name in names)
    for part in (sentences, baselines, replies):
        part.add_argument("file", type=Path)
    corpus.add_argument("name")
    corpus.add_argument("split")
    for part in (sentences, corpus, baselines, replies):
        part.add_argument("--keep", type=Path, help="a folder that gets result files, too")
    for part in (corpus, baselines, replies):
        part.add_argument("--show", type=int, default=0, help="filtered replies of each system to show")
    given = parser.parse_args()
    from listenwell.safety.measure import written

    try:
        print(written(_figures(given)))
    except (ListenwellError, OSError) as error:
        sys.exit(str(error))


def _figures(given: argparse.Namespace) -> dict[str, Json]:
    measures = {"list": _list, "corpus": _corpus, "peers": _baselines, "replies": _replies}
    return measures[given.part](given)


def _list(given: argparse.Namespace) -> dict[str, Json]:
    from listenwell.safety.crisis import Detector
    from listenwell.safety.measure import read_list, report
    from listenwell.safety.results import keep_crisis

    figures = report(Detector.load(), read_list(given.file))
    if given.keep:
        keep_crisis(figures, given.file, given.keep)
    return figures


def _corpus(given: argparse.Namespace) -> dict[str, Json]:
    from listenwell.corpora import CORPORA
    from listenwell.dialogue import Dialogue
    from listenwell.evaluation.baselines import HUMAN
    from listenwell.files import data_folder, hash_files
    from listenwell.safety.crisis import Detector
    from listenwell.safety.measure import alarms, filtered
    from listenwell.safety.results import keep_replies

    name, split = given.name, given.split
    kind = CORPORA.load(name)
    reader = kind(data_folder() / (kind.folder or name))
    said, replies = list[str](), list[str]()
    for dialogue in reader.read(split):
        if not isinstance(dialogue, Dialogue):
            raise InputError(f"The corpus {name} has no conversations.", "Name one that has.")
        for turn in dialogue.turns:
            (replies if turn.speaker == dialogue.listener else said).append(turn.text)
    said = list(dict.fromkeys(said))  # a post with several replies stands in a corpus several times
    if given.keep:
        data = hash_files(reader.files(split))
        keep_replies({HUMAN: replies}, (name, split), data, f"corpus {name} {split}", given.keep)
    figures = filtered({HUMAN: replies}, given.show)
    return {
        "corpus": f"{name}, {split}",
        "alarms": alarms(Detector.load(), said),
        "replies": len(replies),
        "faults": figures.pop(HUMAN),
        **figures,
    }


def _baselines(given: argparse.Namespace) -> dict[str, Json]:
    from listenwell.corpora.base import Report
    from listenwell.evaluation.baselines import HUMAN, read_baselines, recognize
    from listenwell.files import sha256
    from listenwell.safety.measure import filtered
    from listenwell.safety.results import keep_replies

    file: Path = given.file
    form = recognize(file)
    if form is None:
        raise InputError(f"{file} is neither of the released files.", "Name MoEL's or MIME's.")
    records = list(read_baselines(file, form, Report()))
    systems = {name: [record.reply(name) for record in records] for name in form.names()}
    if given.keep:
        released = {name: replies for name, replies in systems.items() if name != HUMAN}
        where = ("empathetic_dialogues", "test")
        keep_replies(released, where, sha256(file), f"peers {file.name}", given.keep)
    figures = filtered(systems, given.show)
    return {
        "file": file.name,
        "replies": len(records),
        "faults": {name: figures.pop(name) for name in systems},
        **figures,
    }


def _replies(given: argparse.Namespace) -> dict[str, Json]:
    from listenwell.files import sha256
    from listenwell.safety.measure import filtered, read_made
    from listenwell.safety.results import keep_replies

    systems, where = read_made(given.file)
    if given.keep:
        keep_replies(systems, where, sha256(given.file), f"replies {given.file.name}", given.keep)
    figures = filtered(systems, given.show)
    return {"file": given.file.name, "faults": {name: figures.pop(name) for name in systems}, **figures}


if __name__ == "__main__":
    main()
