"""A listener that says what people have said: the best replies of a large pool (PEC §4)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from listenwell.dialogue import Candidate, Dialogue, Factors
from listenwell.errors import InputError
from listenwell.generators.base import GeneratorOutput
from listenwell.retrieval.pool import LONGEST, find_pool
from listenwell.retrieval.search import CANDIDATES, Found, PoolSearch

FIRST, FULL = "first stage", "ranker"


@dataclass(frozen=True)
class RetrievalConfig:
    """Settings of a listener with a pool."""

    pool: str = "empathetic_dialogues"
    """A file with a reply a line or JSONL, a corpus, or CORPUS:SPLIT; train otherwise."""
    ranker: Path | None = None
    """A ranker's folder; None is the shipped one."""
    top: int = 5
    """How many replies are proposed."""
    candidates: int = CANDIDATES
    """How many of the quick search the full ranker reads again."""
    longest: int = LONGEST
    """Characters of the longest reply that is kept."""

    def __post_init__(self) -> None:
        for name in ("top", "candidates", "longest"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}.", "Give 1 or more.")


class Retrieval:
    """Speaks by choosing from a pool."""

    Config = RetrievalConfig

    def __init__(self, config: RetrievalConfig, search: PoolSearch) -> None:
        self.config = config
        self.search = search
        self.name = f"retrieval ({search.selector.name}, {search.index.name})"

    @classmethod
    def load(cls, config: RetrievalConfig, weights: Path | None = None) -> "Retrieval":
        """Open the pool, which is encoded the first time; `weights` is the user's own ranker folder."""
        pool = find_pool(config.pool, config.longest)  # a wrong name is told before anything is loaded

        from listenwell.rankers.ranker import Ranker

        return cls(config, PoolSearch.open(Ranker.load(weights or config.ranker), pool))

    def conditions(self) -> dict[str, str]:
        """What a result says of it; pool and ranker by what they hold, wherever they lie."""
        index, ranker = self.search.index, self.search.selector
        return {
            "decoding": "none: replies are chosen",
            "pool": f"{index.name}, {index.contents.count:,} replies, sha256 {index.key.pool}",
            "ranker": f"{ranker.name}, key {ranker.key}",
        }

    def generate(
        self,
        dialogue: Dialogue,
        plans: Sequence[Factors],
        seed: int,
        on_text: Callable[[str], None] | None = None,
    ) -> GeneratorOutput:
        """The best replies, the best first; what was said before in the talk comes after all others.

        Nothing is drawn, so the seed moves nothing; plans are not used, since the pool was written without.
        """
        # As many more as were said: there is always something new, if the pool has it.
        earlier_texts = {" ".join(turn.text.split()) for turn in dialogue.turns}
        replies = self.search.search(dialogue, self.config.top + len(earlier_texts), self.config.candidates)
        fresh = sorted(replies, key=lambda reply: reply.text in earlier_texts)[: self.config.top]
        if on_text:
            on_text(fresh[0].text)
        return GeneratorOutput(tuple(map(_candidate, fresh)), self.search.notices)


def _candidate(reply: Found) -> Candidate:
    # No plan: the reply was not made by one.
    return Candidate(reply.text, scores=((FIRST, reply.first_score), (FULL, reply.score)))
