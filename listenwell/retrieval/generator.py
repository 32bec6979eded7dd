"""The retrieval generator: it replies with the best human replies of a large pool (PEC §4)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from listenwell.dialogue import Candidate, Dialogue, Factors
from listenwell.errors import InputError
from listenwell.generators.base import Capabilities, Generator
from listenwell.pipeline import GeneratorOutput, OnText
from listenwell.retrieval.pool import LONGEST, find_pool
from listenwell.retrieval.search import CANDIDATES, PoolSearch
from listenwell.serialization import also_read_as

FIRST, FULL = "first stage", "ranker"


@dataclass(frozen=True)
class RetrievalConfig:
    """Settings of the retrieval generator."""

    pool: str = "empathetic_dialogues"
    """A file with a reply a line or JSONL, a corpus, or CORPUS:SPLIT; train otherwise."""
    ranker: Path | None = None
    """A ranker's folder; None is the shipped one."""
    candidates: int = field(default=5, metadata=also_read_as("top"))
    """How many replies are proposed."""
    searched: int = CANDIDATES
    """How many results of the vector search the full ranker scores."""
    longest: int = LONGEST
    """Longer replies, in characters, are left out of the pool."""

    def __post_init__(self) -> None:
        for name in ("candidates", "searched", "longest"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}.", "Give 1 or more.")


class Retrieval(Generator):
    """Selects replies from a pool."""

    Config = RetrievalConfig
    capabilities = Capabilities(ranked=True)

    def __init__(self, config: RetrievalConfig, search: PoolSearch) -> None:
        self.config = config
        self.search = search
        self.name = f"retrieval ({search.selector.name}, {search.index.name})"

    @classmethod
    def load(cls, config: RetrievalConfig, weights: Path | None = None) -> "Retrieval":
        """Open the pool, which is encoded the first time; `weights` is the user's own ranker folder."""
        pool = find_pool(config.pool, config.longest)  # a wrong name is reported before anything is loaded

        from listenwell.rankers.ranker import Ranker

        return cls(config, PoolSearch.open(Ranker.load(weights or config.ranker), pool))

    def conditions(self) -> dict[str, str]:
        """Settings in words, for result files; pool and ranker by the hash of their contents."""
        index, ranker = self.search.index, self.search.selector
        return {
            "decoding": "none: replies are retrieved",
            "pool": f"{index.name}, {index.contents.count:,} replies, sha256 {index.key.pool}",
            "ranker": f"{ranker.name}, key {ranker.key}",
        }

    def generate(
        self, dialogue: Dialogue, plans: Sequence[Factors], seed: int, on_text: OnText | None = None
    ) -> GeneratorOutput:
        """The best replies, the best first; texts of the dialogue itself come after all others.

        Nothing is sampled, so the seed has no effect; plans are not used, since the pool has none.
        """
        # As many more as there are turns: there is always something new, if the pool has it.
        turns = {" ".join(turn.text.split()) for turn in dialogue.turns}
        results = self.search.search(dialogue, self.config.candidates + len(turns), self.config.searched)
        fresh = sorted(results, key=lambda reply: reply.text in turns)[: self.config.candidates]
        if on_text:
            on_text(fresh[0].text)
        candidates = tuple(
            Candidate(reply.text, scores={FIRST: reply.first_score, FULL: reply.score}) for reply in fresh
        )
        return GeneratorOutput(candidates, self.search.notices)
