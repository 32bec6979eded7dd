"""The listener's place *choose*: several judges, one order.

score = Σ_soft w_j z_j + Σ_merit w_j m_j − Σ_fault w_j f_j, with z_j a judge's score standardized over the
candidates of this reply; the prior's z is taken off. Every judge's own score stays on the candidate: a choice
can be read.

Judges that take time and count little (`config.LATE`) are asked last, and only where they could still change
which candidate comes first: of n standardized scores, two are at most √(2n) apart.
"""

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Protocol

import numpy as np

from listenwell.dialogue import Candidate, Dialogue, Factors
from listenwell.metrics import normalized
from listenwell.reranking.brevity import brevity
from listenwell.reranking.config import CHOICE, FAULTS, LATE, MERITS, READ, SOFT, RerankerConfig
from listenwell.reranking.copied import copied
from listenwell.reranking.generic_response import generic_share
from listenwell.reranking.plan_adherence import plan_adherence, read_candidates, shown
from listenwell.reranking.repeated import repeated
from listenwell.reranking.self_disclosure.unsupported import unsupported_disclosure
from listenwell.reranking.unfinished import generic_question, unfinished
from listenwell.serialization import dumps

if TYPE_CHECKING:
    from listenwell.annotators.annotator import Annotator


class ScoresReplies(Protocol):
    """Whoever says how well replies fit, such as `rankers.ranker.Ranker`."""

    name: str
    key: str

    def scores(self, dialogue: Dialogue, replies: Sequence[str]) -> np.ndarray:
        """How well each reply fits, the higher the better: (replies,)."""
        ...


Priors = Callable[[Sequence[str]], Sequence[float]]
"""How likely replies are whatever was said: log P(y) by token; see `planned.PlannedGenerator.priors`."""


@dataclass
class Reranker:
    """Puts candidates in order, the best first.

    A judge without what it needs is passed over: reader, ranker and `realized` where they are not given,
    likelihood, prior and plan where the generator put no such scores on the candidates.
    """

    config: RerankerConfig = field(default_factory=RerankerConfig)
    ranker: ScoresReplies | None = None
    annotator: "Annotator | None" = None
    name: str = "judges"
    priors: Priors | None = None
    """Where given, who is asked for a prior that the candidates do not have yet."""
    want: Factors | None = None
    """What somebody asked for, if anybody did: then `realized` asks for this alone."""
    reader: ScoresReplies | None = None
    """Who reads dialogue and reply together."""

    @classmethod
    def load(
        cls,
        config: RerankerConfig | None = None,
        annotator: "Annotator | None" = None,
        priors: Priors | None = None,
    ) -> "Reranker":
        """With the shipped reader, ranker and annotators, as far as the config asks for them.

        Args:
            config: the weights; the default ones without.
            annotator: one that is loaded already and has the heads of `annotators.replies.REPLY_HEADS`.
            priors: the speaker's, if it has any.
        """
        from listenwell.rankers.ranker import READER, Ranker

        config = config or RerankerConfig()
        reader = Ranker.load(READER) if config.weight("reader") else None
        ranker = Ranker.load() if config.weight("ranker") else None
        if annotator is None and any(map(config.weight, READ)):
            from listenwell.annotators.annotator import Annotator
            from listenwell.annotators.replies import REPLY_HEADS

            annotator = Annotator.load(heads=REPLY_HEADS)
        return cls(config, ranker, annotator, priors=priors, reader=reader)

    @property
    def key(self) -> str:
        """Names weights and judges: equal keys give equal choices."""
        return sha256(dumps(self.conditions()).encode()).hexdigest()

    def conditions(self) -> dict[str, str]:
        """What moves a choice, for results."""
        weights = {name: self.config.weight(name) for name in self.config.asked()}
        return {
            "judges": ", ".join(f"{name} {weight:g}" for name, weight in weights.items()) or "none",
            "judges of a reply that was steered": f"realized {self.config.steered:g}, by the "
            f"weakest part that was asked for; liked {self.config.steered_reward:g} at most; no merits; "
            f"faults times {self.config.steered_faults:g}; said once more without a voice where realized is "
            f"below {self.config.done:g}",
            "judges left out": ", ".join(self.config.without) or "none",
            "reader": f"{self.reader.name}, key {self.reader.key}" if self.reader else "none",
            "ranker": f"{self.ranker.name}, key {self.ranker.key}" if self.ranker else "none",
            "annotator": f"key {self.annotator.key}" if self.annotator else "none",
        }

    def rerank(
        self, dialogue: Dialogue, candidates: Sequence[Candidate], want: Factors | None = None
    ) -> tuple[Candidate, ...]:
        """The candidates with the score of every judge that was asked and their sum, the best first.

        Of candidates with the same words the first is kept; of equally good ones the first stays first.

        Args:
            dialogue: what was said.
            candidates: the replies.
            want: what a reply was asked to do; then it counts more that it does this.
        """
        if _steers(want):
            return replace(self, config=self.config.for_steering(), want=want).rerank(dialogue, candidates)
        kept = list({normalized(one.text): one for one in reversed(candidates)}.values())[::-1]
        if not kept:
            return ()
        late = self._late(dialogue, kept)
        judged = self._given(kept, late) | self._read(dialogue, kept) | self._faults(dialogue, kept)
        total = self._total(judged, len(kept))
        while late and (self.config.every or _close(total, sum(map(self.config.weight, late)))):
            feature = next(iter(late))
            judged[feature] = late.pop(feature)()
            total = self._total(judged, len(kept))
        scored = [_with_scores(one, judged, total, place) for place, one in enumerate(kept)]
        return tuple(scored[place] for place in np.argsort(-total, kind="stable"))

    def misses_target(self, chosen: Sequence[Candidate], want: Factors | None) -> bool:
        """Whether the best of these, put in order by `choose`, most likely does not do what was asked for."""
        return _steers(want) and dict(chosen[0].scores).get("plan_adherence", 1.0) < self.config.done

    def _total(self, judged: dict[str, Sequence[float | None]], count: int) -> np.ndarray:
        """The weighted sum of all judges' scores: (candidates,)."""
        total = np.zeros(count)
        for feature, scores in judged.items():
            weight = self.config.weight(feature)
            if feature in FAULTS or feature in MERITS:
                points = weight * np.array([score or 0.0 for score in scores])
                total += points if feature in MERITS else -points
            else:
                total += (-weight if feature == "prior" else weight) * standardized(scores)
        return total

    def _late(
        self, dialogue: Dialogue, candidates: Sequence[Candidate]
    ) -> dict[str, Callable[[], Sequence[float | None]]]:
        """Judges that can wait, in the order of asking them, and how they are asked."""
        texts = [one.text for one in candidates]
        found: dict[str, Callable[[], Sequence[float | None]]] = {}
        if reader := self.reader:
            found["reader"] = lambda: reader.scores(dialogue, texts).tolist()
        if ranker := self.ranker:
            found["ranker"] = lambda: ranker.scores(dialogue, texts).tolist()
        if (priors := self.priors) and not any("prior" in dict(one.scores) for one in candidates):
            found["prior"] = lambda: list(priors(texts))
        return {
            feature: found[feature] for feature in LATE if feature in found and self.config.weight(feature)
        }

    def _given(
        self, candidates: Sequence[Candidate], late: Container[str]
    ) -> dict[str, Sequence[float | None]]:
        """For each soft judge whose scores the candidates bring along."""
        given = [dict(one.scores) for one in candidates]
        asked = [feature for feature in SOFT if feature not in late and feature not in READ]
        return {
            feature: [scores.get(feature) for scores in given]
            for feature in asked
            if self.config.weight(feature)
        }

    def _read(self, dialogue: Dialogue, candidates: Sequence[Candidate]) -> dict[str, Sequence[float | None]]:
        """For each judge who asks the annotators; all candidates are read once."""
        asked = [feature for feature in READ if self.config.weight(feature)]
        if self.annotator is None or not asked:
            return {}
        readings = read_candidates(self.annotator, dialogue, candidates)
        found: dict[str, Sequence[float | None]] = {}
        for feature in asked:
            mechanism = READ[feature]
            found[feature] = (
                shown(readings, mechanism) if mechanism else plan_adherence(readings, candidates, self.want)
            )
        return found

    def _faults(
        self, dialogue: Dialogue, candidates: Sequence[Candidate]
    ) -> dict[str, Sequence[float | None]]:
        """For each judge of faults that was asked, how much of it there is in each candidate."""
        persona = dialogue.persona_of(dialogue.listener)
        lines = persona.lines if persona else ()
        features: dict[str, Callable[[str], float]] = {
            "generic_response": generic_share,
            "repeated": lambda text: repeated(text, dialogue),
            "copied": lambda text: copied(text, lines),
            "unsupported_disclosure": lambda text: float(len(unsupported_disclosure(text, lines))),
            "unfinished": lambda text: float(unfinished(text)),
            "generic_question": lambda text: float(generic_question(text)),
            "brevity": brevity,
        }
        asked = [feature for feature in FAULTS if self.config.weight(feature)]
        return {feature: [features[feature](one.text) for one in candidates] for feature in asked}


def standardized(scores: Sequence[float | None]) -> np.ndarray:
    """Scores with mean 0 and deviation 1; one that is missing, or not finite, stands at the mean.

    All 0 where they do not differ: a judge who sees no difference has no say.
    """
    values = np.array([np.nan if score is None else score for score in scores], np.float64)
    known = np.isfinite(values)
    found = np.zeros(len(values))
    if known.any():
        spread = values[known].std()
        # Scores of one text in batches of different shapes differ in the last digits.
        if spread > 1e-6 * max(1.0, float(np.abs(values[known]).max())):
            found[known] = (values[known] - values[known].mean()) / spread
    return found


def _steers(want: Factors | None) -> bool:
    """Whether anything was asked of the reply; the user's emotion is not the reply's to realize."""
    return want is not None and any(part is not None for part in (want.mechanisms, want.act, want.tone))


def _close(total: np.ndarray, weight: float) -> bool:
    """Whether soft judges of this weight together could put another candidate first."""
    if len(total) < 2:
        return False
    second, first = np.sort(total)[-2:]
    return bool(first - second < weight * np.sqrt(2 * len(total)))


def _with_scores(
    one: Candidate, judged: dict[str, Sequence[float | None]], total: np.ndarray, place: int
) -> Candidate:
    own = {feature: scores[place] for feature, scores in judged.items()} | {CHOICE: float(total[place])}
    new = {feature: round(score, 4) for feature, score in own.items() if score is not None}
    return replace(one, scores=tuple((dict(one.scores) | new).items()))
