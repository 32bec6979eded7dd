"""EPITOME (Sharma et al. 2020): posts of seekers, replies, and how much of each mechanism a reply holds.

Three CSV files, one a mechanism, list the same pairs. There is no official split; ours goes by a hash of
the post, so that no post is on both sides.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from listenwell.corpora.base import CorpusLoader, csv_rows, hash_bucket
from listenwell.corpora.download import pinned
from listenwell.dialogue import LISTENER, SPEAKER, Dialogue, Factors, Turn
from listenwell.labels import MECHANISMS

_FILES = {
    "emotional-reactions-reddit.csv": "225b28ffdc257f8a997d557eb937e78b68235e6203c87c7e2203d00fef8545cc",
    "interpretations-reddit.csv": "2cedbe4252c919d22a6f46685afa16d3192a91e3306c2d4a386be12a30ad3f29",
    "explorations-reddit.csv": "9efa1af8e0537c16894379598f2076cb380ae18aacd9a8d26ebd381f5b7f9645",
}
"""One a mechanism, in the order of MECHANISMS, with its sha256 sum."""
_COLUMNS = ("sp_id", "rp_id", "seeker_post", "response_post", "level", "rationales")
_BASE = (
    "https://raw.githubusercontent.com/behavioral-data/Empathy-Mental-Health/"
    "741a8df4d3bc5301f0426e0c72e1d8e354c42fd3/dataset/"
)

SPLIT_RULE = (
    "the first 8 hexadecimal digits of sha256(sp_id), modulo 100: below 75 train, below 80 valid, else test"
)


def split_of(post: str) -> str:
    """The split of a post by SPLIT_RULE: about 75 / 5 / 20 percent."""
    bucket = hash_bucket(post)
    return "train" if bucket < 75 else "valid" if bucket < 80 else "test"


class Epitome(CorpusLoader):
    """3,084 pairs of a post and a reply from Reddit, with levels 0, 1, 2 and the words that show them."""

    name = "epitome"
    title = "EPITOME: empathy in replies on Reddit, by mechanism"
    licence = "academic use"
    citation = "Sharma et al. 2020"
    splits = ("train", "valid", "test")
    downloads = pinned(_BASE, _FILES)

    def files(self, split: str) -> tuple[Path, ...]:
        """All three files hold every split."""
        return tuple(self.path / name for name in _FILES)

    def read(self, split: str) -> Iterator[Dialogue]:
        """A post and its reply; the reply has the levels as factors and the rationales as notes."""
        first, *others = self.check(split)
        # A pair can stand in the files more than once: the n-th of one file belongs to the n-th of another.
        known: list[dict[tuple[str, str, int], dict[str, str]]] = [
            {(*key, number): row for key, number, _, row in self._pairs(file)} for file in others
        ]
        for key, number, where, row in self._pairs(first):
            if split_of(row["sp_id"]) != split:
                continue
            rows = [row, *(table.get((*key, number)) for table in known)]
            if number:
                self.report.counts["pairs that stand in the files before"] += 1
            if any(row is None or row["level"] not in ("0", "1", "2") for row in rows):
                self.report.skip("no level of each mechanism", where)
            elif not row["seeker_post"].strip() or not row["response_post"].strip():
                self.report.skip("empty post or reply", where)
            else:
                yield _dialogue(key, number, [row for row in rows if row])

    def _pairs(self, file: Path) -> Iterator[tuple[tuple[str, str], int, str, dict[str, str]]]:
        """The pair's ids, how often it came before, its file:line, and its row."""
        seen: Counter[tuple[str, str]] = Counter()
        for where, row in csv_rows(file, _COLUMNS, self.report):
            key = (row["sp_id"], row["rp_id"])
            yield key, seen[key], where, row
            seen[key] += 1


def _dialogue(key: tuple[str, str], number: int, rows: list[dict[str, str]]) -> Dialogue:
    levels = tuple(int(row["level"]) for row in rows)
    notes = {
        f"rationale.{mechanism}": row["rationales"].rstrip("|")
        for mechanism, row in zip(MECHANISMS, rows, strict=True)
        if row["rationales"].rstrip("|")
    }
    factors = Factors(levels=(levels[0], levels[1], levels[2]))
    reply = Turn(LISTENER, rows[0]["response_post"], factors, tuple(notes.items()))
    identity = "_".join(key) + (f"_{number}" if number else "")
    return Dialogue((Turn(SPEAKER, rows[0]["seeker_post"]), reply), identity)
