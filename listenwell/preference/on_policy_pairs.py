"""Pairs to learn from by contrast: of the listener's own replies, the one its judges like best and the worst.

Best of n against worst of n, both the speaker's own words under one plan, so that what is learned is the
judges' taste and not a person's style. `listenwell evaluate generate` with a
recipe of one plan and several candidates makes the replies; `python -m listenwell.preference.on_policy_pairs REPLIES`
writes a `rejected.Pair` a line, on a bare machine too.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from listenwell.corpora.sources import Source
from listenwell.dialogue import Candidate, Dialogue
from listenwell.errors import InputError, ListenwellError
from listenwell.corpora.sampling import example_id
from listenwell.generators.plans import is_whole
from listenwell.preference.pairs import Pair, add_pairs, pair_of
from listenwell.reranking.config import CHOICE, FAULTS

ON_POLICY = "on_policy"
"""Where such a pair's rejected reply comes from."""
GAP = 1.5
"""In points of the choice: nearer ones differ by chance."""


def on_policy_pairs(replies: Path, contexts: Mapping[str, Dialogue], gap: float = GAP) -> Iterator[Pair]:
    """A pair of every reply whose candidates differ enough.

    Args:
        replies: replies.jsonl with candidates.
        contexts: what each reply answers, by its id.
        gap: least difference of the two choices.
    """
    for number, line in enumerate(replies.read_bytes().split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            data = json.loads(line)
            candidates = [Candidate.from_dict(one) for one in data["candidates"]]
            context = contexts[data["id"]]
        except (ValueError, TypeError, KeyError, ListenwellError) as error:
            raise InputError(
                f"{replies}:{number} holds no candidates of a reply to this corpus: {error}",
                "Make the replies with --whole, several candidates, and the same corpus and split.",
            ) from None
        yield from _pairs(context, candidates, gap)


def _pairs(context: Dialogue, candidates: Sequence[Candidate], gap: float) -> Iterator[Pair]:
    """The best one and the worst one under the same plan; none where even the best has a fault."""
    best = candidates[0]
    others = [one for one in candidates[1:] if one.plan == best.plan]
    if best.plan is None or not is_whole(best.plan) or not others:
        return
    scores, worst = dict(best.scores), others[-1]
    if any(scores.get(fault) for fault in FAULTS) or scores[CHOICE] - dict(worst.scores)[CHOICE] < gap:
        return
    yield from pair_of(context, best.plan, best.text, worst.text, ON_POLICY)


def main(arguments: Sequence[str] | None = None) -> int:
    """Make pairs as the command line says; gives the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m listenwell.preference.on_policy_pairs", description=__doc__
    )
    parser.add_argument("replies", type=Path, help="replies.jsonl of the whole listener")
    parser.add_argument("--corpus", default="empathetic_dialogues")
    parser.add_argument("--split", default="train")
    parser.add_argument("--gap", type=float, default=GAP, help="least difference of the two choices")
    parser.add_argument("--out", type=Path, required=True, help="the JSONL file; goes after what it holds")
    asked = parser.parse_args(arguments)
    try:
        if not asked.replies.is_file():
            raise InputError(f"There is no file {asked.replies}.", "Make the replies first.")
        examples = enumerate(Source(asked.corpus).examples(asked.split))
        contexts = {example_id(example, place): example.context for place, example in examples}
        pairs = list(on_policy_pairs(asked.replies, contexts, asked.gap))
        add_pairs(asked.out, pairs)
    except ListenwellError as error:
        print(f"listenwell: {error}", file=sys.stderr)
        return 1
    print(f"{asked.out}: {len(pairs):,} {ON_POLICY} pairs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
