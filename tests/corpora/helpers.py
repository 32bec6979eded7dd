from collections.abc import Iterable
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st

from listenwell.corpora import CORPORA, CorpusLoader, Item
from listenwell.dialogue import Dialogue, Turn

DATA = Path(__file__).parent.parent / "data"
NAMES = tuple(CORPORA)

quick = settings(max_examples=150, deadline=None, derandomize=True, database=None)


def reader(name: str, folder: str | Path = "") -> CorpusLoader:
    return CORPORA.load(name)(DATA / (folder or name))


def read(name: str, split: str, folder: str | Path = "") -> list[Item]:
    return list(reader(name, folder).read(split))


def report(name: str, split: str, folder: str | Path = "") -> tuple[dict[str, int], dict[str, int]]:
    """What a reading skipped, and what else it counted."""
    one = reader(name, folder)
    for _ in one.read(split):
        pass
    return dict(one.report.skipped), dict(one.report.counts)


def replies(name: str, split: str, folder: str | Path = "") -> list[tuple[int, str, str]]:
    """Each example as the length of its context, who replies, and the reply."""
    examples = list(reader(name, folder).examples(split))
    assert all(example.context.listener == example.reply.speaker for example in examples)
    return [(len(example.context.turns), example.reply.speaker, example.reply.text) for example in examples]


def through_jsonl(items: Iterable[Item], folder: Path) -> list[Item]:
    """The items as our own JSONL gives them back."""
    file = folder / "items.jsonl"
    file.write_bytes("".join(f"{item.to_json()}\n" for item in items).encode())
    own = CORPORA.load("jsonl")(file)
    back = list(own.read("all"))
    assert not own.report.skipped
    return back


def talk(*texts: str, **fields: object) -> Dialogue:
    """A dialogue of a speaker and a listener who take turns."""
    roles = ("speaker", "listener")
    return Dialogue(tuple(Turn(roles[i % 2], text) for i, text in enumerate(texts)), **fields)


def lines_of_text(forbidden: str = "") -> st.SearchStrategy[str]:
    """Texts of one line that UTF-8 can hold and that neither begin nor end with white space."""
    letters = st.characters(exclude_characters="\n" + forbidden, exclude_categories=["Cs"])
    likely = st.sampled_from(
        [letter for letter in '",;|*[]\\_\t\r\x00\u2028\x85é🙂' if letter not in forbidden]
    )
    return st.text(letters | likely, min_size=1).map(str.strip).filter(bool)
