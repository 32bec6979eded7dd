"""What a reply costs as the talk before it grows, and as more candidates are proposed.

    python benchmarks/growth.py --model planned --weights runs/planned

Talks of 1 to 50 turns, answered with four candidates; and talks of five turns, answered with 1 to 16. All
sizes are gone through in every round, so that a noisy moment hits all alike; medians count. A talk that is
longer than the speaker's prompt loses its oldest turns: from there on its length costs no more.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from reply_speed import CANDIDATES, add_model, dialogue, keep, load_listener, settings

from listenwell.dialogue import Reply
from listenwell.results.drawing import STYLE, need_matplotlib, save

OUT = Path(__file__).parent / "results" / "growth.json"
FIGURES = Path(__file__).parents[1] / "docs" / "figures"
TURNS = (1, 2, 5, 10, 15, 20, 30, 40, 50)
COUNTS = (1, 2, 4, 6, 8, 12, 16)
LENGTH, STARTS = 5, 3
"""Turns of the talks that several numbers of candidates answer, and how many such talks there are."""
COLOURS = {
    "understand": "#56B4E9",
    "plan": "#E69F00",
    "generate": "#0072B2",
    "rerank": "#009E73",
    "guard": "#CC79A7",
}
"""Of the pipeline stages, in order."""


def row(name: str, size: int, replies: Sequence[Reply]) -> dict[str, Any]:
    """Medians of what replies took: in all, and in each stage."""
    seconds = {
        stage: median(dict(reply.timings)[stage] for reply in replies) for stage in (*COLOURS, "total")
    }
    return {
        name: size,
        "seconds": round(seconds.pop("total"), 4),
        "stages": {stage: round(value, 4) for stage, value in seconds.items()},
        "turns_left_out": any("oldest turns were left out" in notice for notice in replies[0].notices),
    }


def over_turns(options: dict[str, Any], turns: Sequence[int], rounds: int) -> list[dict[str, Any]]:
    """One row for each length of a talk."""
    listener = load_listener(options, candidates=CANDIDATES)
    listener.reply("Hello, how are you?", seed=1)  # warm up
    replies: dict[int, list[Reply]] = {count: [] for count in turns}
    for number in range(rounds):
        for count in turns:
            replies[count].append(listener.reply(dialogue(count, number), seed=number))
    return [row("turns", count, timed) for count, timed in replies.items()]


def over_candidates(options: dict[str, Any], counts: Sequence[int], rounds: int) -> list[dict[str, Any]]:
    """One row for each number of candidates; of one reply there is nothing to choose."""
    replies: dict[int, list[Reply]] = {count: [] for count in counts}
    for number in range(rounds):
        for count in counts:
            listener = load_listener(options, candidates=count)
            listener.reply("Hello, how are you?", seed=1)
            replies[count] += [
                listener.reply(dialogue(LENGTH, first), seed=number) for first in range(0, 2 * STARTS, 2)
            ]
    return [row("candidates", count, timed) for count, timed in replies.items()]


def draw(result: dict[str, Any], folder: Path) -> list[Path]:
    """Seconds in each place, one upon the other."""
    need_matplotlib()
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        canvas = Figure(figsize=(9, 3.6), layout="constrained")
        history, several = canvas.subplots(1, 2)
        for panel, name in ((history, "turns"), (several, "candidates")):
            rows = result[name]
            sizes = [row[name] for row in rows]
            heights = [[row["stages"][stage] for row in rows] for stage in COLOURS]
            panel.stackplot(sizes, heights, labels=list(COLOURS), colors=list(COLOURS.values()), alpha=0.85)
            panel.plot(sizes, [sum(values) for values in zip(*heights, strict=True)], "o", ms=3, color="#333")
            panel.set(xlabel=name, ylabel="seconds a reply", xlim=(min(sizes), max(sizes)))
            panel.set_ylim(bottom=0)
        history.set(title=f"As the dialogue grows, {CANDIDATES} candidates", xlabel="turns of the dialogue")
        several.set(title=f"As candidates grow, dialogues of {LENGTH} turns", xlabel="candidates")
        if cut := [row["turns"] for row in result["turns"] if row["turns_left_out"]]:
            history.axvline(cut[0], color="#666666", linestyle=":")
            where = history.get_xaxis_transform()
            history.text(cut[0], 0.97, " oldest turns left out", va="top", fontsize=9, transform=where)
        several.legend(*(entries[::-1] for entries in several.get_legend_handles_labels()), frameon=False)
        return save(canvas, folder, "growth")


def main() -> None:
    """Measure, draw and write the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add_model(parser)
    parser.add_argument("--turns", type=int, nargs="+", default=TURNS)
    parser.add_argument("--candidates", type=int, nargs="+", default=COUNTS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--figures", type=Path, default=FIGURES, help="draw into this folder")
    chosen = parser.parse_args()
    need_matplotlib()  # said before the work, not after it
    options = settings(chosen)
    result = {
        "rounds": chosen.rounds,
        "turns": over_turns(options, sorted(chosen.turns), chosen.rounds),
        "candidates": over_candidates(options, sorted(chosen.candidates), chosen.rounds),
    }
    keep(result, chosen.out)
    draw(result, chosen.figures)


if __name__ == "__main__":
    main()
