"""A folder with the ratings of one context's replies, and the command line."""

import json

from typer.testing import CliRunner

from listenwell.cli import app
from listenwell.dialogue import Dialogue, Example, Factors, Turn
from listenwell.preference.ratings import HEADER

PLAN = Factors("sad", ("exploration",), "questioning", "caring")
TALK = Dialogue((Turn("speaker", "My dog died. I am so sad."),), id="hit:0_conv:0")


class Corpus:
    """Stands for `Source`: the one context."""

    def examples(self, split):
        yield Example(TALK, Turn("listener", "how sad"))


def rated_folder(folder, split="train", name="hit:0_conv:0#1", plans=(PLAN, PLAN), last="1"):
    """Two candidates, liked with 4.5 and with `last`, and the person's reply."""
    replies = [
        {"letter": letter, "text": text, "who": [who], "plan": given and given.to_dict()}
        for letter, text, who, given in (
            ("A", "I love dogs.", "candidate 2", plans[1]),
            ("B", "Oh no!", "candidate 1", plans[0]),
            ("C", "how sad", "human", None),
        )
    ]
    entry = {"number": 1, "sheet": 1, "id": name, "replies": replies}
    folder.mkdir()
    key = {"corpus": "empathetic_dialogues", "split": split, "sample": "1", "files": [], "entries": [entry]}
    (folder / "key.json").write_text(json.dumps(key))
    lines = [",".join(HEADER), f"1,A,1,2,5,{last}", "1,B,4,4,5,4.5", "1,C,3,3,3,3"]
    (folder / "sheet-01.csv").write_text("\n".join(lines))
    return folder


def call(*arguments):
    """Run `listenwell preference …`; gives what it prints, and raises its errors."""
    result = CliRunner().invoke(app, ["preference", *map(str, arguments)])
    if result.exception is not None:
        raise result.exception
    return result.output
