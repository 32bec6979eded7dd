"""How fast, how well and in how much memory a large pool is searched, beside an exact scan in numpy.

The vectors: all-MiniLM-L6-v2's of real short utterances (of four corpora), at length 1. Pools no larger than
their number are real alone; larger ones are filled up with points between a real one and one of its twenty
nearest, a share drawn evenly, with a little noise, so that they lie where sentences lie. Queries are real
utterances that are not in the pool. Encoding a query and reading the best again by the full ranker are not
timed: they do not depend on the pool's size. Each size is built in one process and searched in a fresh one.

The libraries are compared on one size, each with the quickest setting that reaches the recall.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, files, version
from pathlib import Path
from typing import Any

import numpy as np

from listenwell.corpora import CORPORA
from listenwell.dialogue import Dialogue
from listenwell.rankers.ranker import Ranker
from listenwell.results.drawing import STYLE, need_matplotlib, save
from listenwell.results.store import environment
from listenwell.retrieval.pool import FilePool
from listenwell.retrieval.search import CANDIDATES, Lists, PoolSearch

CORPORA_USED = ("empathetic_dialogues", "synthetic_persona_chat", "goemotions", "esconv")
WIDTH, NEIGHBOURS, NOISE = 384, 20, 0.01
QUERIES, HELD_OUT = 200, 400
"""Queries that are timed, and real vectors outside the pool: the others choose the index's settings."""
RECALL = 0.95
LIBRARIES = {"faiss": ("faiss-cpu",), "usearch": ("usearch", "numkong"), "hnswlib": ("hnswlib",)}
"""Module to its package, and what that alone brings along; numpy is there already."""
INSTALL = {"hnswlib": "compiled on the user's machine: there are no wheels"}


Find = Callable[[np.ndarray], np.ndarray]


def utterances(count: int) -> list[str]:
    """Different real texts of 3 to 12 words, drawn evenly."""
    found: dict[str, None] = {}
    for name in CORPORA_USED:
        reader = CORPORA.load(name)()
        for split in reader.available():
            for item in reader.read(split):
                texts = [turn.text for turn in item.turns] if isinstance(item, Dialogue) else [item.text]
                found.update((text, None) for text in texts if 3 <= len(text.split()) <= 12)
    drawn = list(found)
    random.Random(0).shuffle(drawn)
    return drawn[:count]


def real_vectors(count: int, kept: Path | None) -> np.ndarray:
    """(count, WIDTH) of length 1; from a file where they were made before."""
    if kept and kept.is_file():
        loaded: np.ndarray = np.load(kept)
        return loaded[:count]
    from listenwell.evaluation.embedder import Embedder

    texts, embedder = utterances(count), Embedder.load()
    made = np.concatenate(
        [embedder.embed(texts[at : at + 2000]).sentences for at in range(0, len(texts), 2000)]
    )
    if kept:
        np.save(kept, made)
    return made


def neighbours(vectors: np.ndarray) -> np.ndarray:
    """(n, NEIGHBOURS): the nearest others of each."""
    found = np.empty((len(vectors), NEIGHBOURS), np.int64)
    for start in range(0, len(vectors), 1000):
        near = vectors[start : start + 1000] @ vectors.T
        near[np.arange(len(near)), np.arange(start, start + len(near))] = -1
        found[start : start + 1000] = np.argpartition(-near, NEIGHBOURS, axis=1)[:, :NEIGHBOURS]
    return found


def filled_up(real: np.ndarray, size: int, file: Path) -> None:
    """Write (size, WIDTH) float32: the real ones, then points between neighbours."""
    out = np.lib.format.open_memmap(file, mode="w+", dtype=np.float32, shape=(size, WIDTH))
    out[: len(real)] = real[:size]
    near = neighbours(real) if size > len(real) else np.empty(0)
    draw = np.random.default_rng(0)
    for start in range(len(real), size, 50_000):
        count = min(50_000, size - start)
        first = draw.integers(0, len(real), count)
        second = near[first, draw.integers(0, NEIGHBOURS, count)]
        share = draw.random((count, 1), dtype=np.float32)
        mixed = share * real[first] + (1 - share) * real[second]
        mixed += NOISE * draw.standard_normal((count, WIDTH), dtype=np.float32)
        out[start : start + count] = mixed / np.linalg.norm(mixed, axis=1, keepdims=True)
    out.flush()


class StoredVectors(Ranker):
    """A ranker whose vectors are there already; replies are their numbers."""

    name = "given"
    width = WIDTH

    def __init__(self, vectors: np.ndarray, held_out: np.ndarray, key: str) -> None:
        self.vectors, self.held_out, self.key = vectors, held_out, key

    def reply_vectors(
        self, replies: Sequence[str], advance: Callable[[int], None] | None = None
    ) -> np.ndarray:
        """Rows of the file."""
        if advance:
            advance(len(replies))
        return np.asarray(self.vectors[[int(reply) for reply in replies]])

    def context_vector(self, dialogue: Dialogue) -> np.ndarray:
        """One that is not in the pool and not among the timed queries."""
        found: np.ndarray = self.held_out[QUERIES + int(dialogue.turns[-1].text) % (HELD_OUT - QUERIES)]
        return found

    def scores(self, dialogue: Dialogue, replies: Sequence[str]) -> np.ndarray:
        """Nothing is read again here."""
        return np.zeros(len(replies))


def memory() -> dict[str, float]:
    """MB of this process that are its own, and that are pages of files (Linux)."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return {name: int(lines[name].split()[0]) / 1000 for name in ("RssAnon", "RssFile")}


class Peak(threading.Thread):
    """The most memory of its own that the process had."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.before = self.most = memory()["RssAnon"]
        self.ended = threading.Event()

    def run(self) -> None:
        """Look every twentieth of a second."""
        while not self.ended.wait(0.05):
            self.most = max(self.most, memory()["RssAnon"])

    def end(self) -> float:
        """MB above the beginning."""
        self.ended.set()
        self.join()
        return self.most - self.before


def timed(work: Find, queries: np.ndarray) -> tuple[float, list[np.ndarray]]:
    """Median milliseconds of a query after a warm-up, and what was found."""
    for query in queries[:20]:
        work(query)
    times, found = [], []
    for query in queries:
        begin = time.perf_counter()
        found.append(work(query))
        times.append(time.perf_counter() - begin)
    return 1000 * statistics.median(times), found


def scan(vectors: np.ndarray) -> Find:
    """The yardstick: every float32 vector in memory, one product, the best hundred."""

    def find(query: np.ndarray) -> np.ndarray:
        scores = vectors @ query
        return np.argpartition(-scores, CANDIDATES)[:CANDIDATES]

    return find


def recall(found: Sequence[np.ndarray], truth: Sequence[np.ndarray]) -> float:
    """Mean share of the true best hundred that were found."""
    return float(np.mean([np.isin(true, some).mean() for some, true in zip(found, truth, strict=True)]))


def opened(folder: Path, size: int) -> PoolSearch:
    """The search of a pool of that size, as the package makes and keeps it."""
    pool = folder / f"{size}.txt"
    if not pool.exists():
        pool.write_text("".join(f"{number}\n" for number in range(size)))
    vectors, held_out = np.load(folder / "all.npy", mmap_mode="r"), np.load(folder / "held_out.npy")
    return PoolSearch.open(StoredVectors(vectors, held_out, "benchmark"), FilePool(pool))


def build(folder: Path, size: int) -> dict[str, Any]:
    """Encode (here: look up) and index a pool."""
    peak = Peak()
    peak.start()
    begin = time.perf_counter()
    found = opened(folder, size)
    figures: dict[str, Any] = {"build_seconds": round(time.perf_counter() - begin, 1)}
    figures["build_own_memory_mb"] = round(peak.end())
    figures["files_mb"] = round(found.index.most_memory / 1e6, 1)
    lists = found.index.folder / "lists.json"
    if lists.exists():
        about = Lists.from_json(lists.read_bytes())
        figures |= {
            "lists": about.lists,
            "lists_read": about.probes,
            "scored_again": about.wider * CANDIDATES,
        }
        figures["recall_when_built"] = about.recall
    return figures


def answer(folder: Path, size: int) -> dict[str, Any]:
    """Search it in a fresh process, beside the scan."""
    queries = np.load(folder / "held_out.npy")[:QUERIES]
    with suppress(ModuleNotFoundError):
        import_module("faiss")  # the library's own pages are the same for every pool
    before = memory()
    begin = time.perf_counter()
    search = opened(folder, size)
    opening = time.perf_counter() - begin
    ours, found = timed(lambda query: search.nearest.find(query, CANDIDATES)[0], queries)
    after = memory()
    vectors = np.array(np.load(folder / "all.npy", mmap_mode="r")[:size])
    exact, truth = timed(scan(vectors), queries)
    return {
        "open_ms": round(1000 * opening, 1),
        "scan_ms": round(exact, 3),
        "search_ms": round(ours, 3),
        "times_as_fast": round(exact / ours, 1),
        "recall_at_100": round(recall(found, truth), 4),
        "own_memory_mb": round(after["RssAnon"] - before["RssAnon"], 1),
        "file_pages_mb": round(after["RssFile"] - before["RssFile"], 1),
        "scan_memory_mb": round(vectors.nbytes / 1e6, 1),
    }


def apart(folder: Path, size: int, what: str) -> dict[str, Any]:
    """One step in a process of its own."""
    command = [sys.executable, __file__, "--step", what, "--folder", str(folder), "--sizes", str(size)]
    environment = {**os.environ, "LISTENWELL_CACHE": str(folder / "cache")}
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def compared(folder: Path, size: int) -> dict[str, dict[str, Any]]:
    """Each library that is installed, with the settings that reach the recall."""
    vectors = np.array(np.load(folder / "all.npy", mmap_mode="r")[:size])
    queries = np.load(folder / "held_out.npy")[:QUERIES]
    exact, truth = timed(scan(vectors), queries)
    table: dict[str, dict[str, Any]] = {"numpy scan": {"search_ms": round(exact, 3), "recall_at_100": 1.0}}
    for name, (package, *others) in LIBRARIES.items():
        try:
            library, installed = import_module(name), sum(map(_installed_mb, (package, *others)))
        except (ModuleNotFoundError, PackageNotFoundError):
            table[package] = {"not installed": True}
            continue
        begin = time.perf_counter()
        way = WAYS[name](library, vectors, str(folder / name))
        figures: dict[str, Any] = {"version": version(package), "install": INSTALL.get(name, "a wheel")}
        figures["build_seconds"] = round(time.perf_counter() - begin, 1)
        figures["installed_mb"] = round(installed, 1)
        figures["index_mb"] = round((folder / name).stat().st_size / 1e6, 1)
        for value in way.values:  # from the quickest on
            way.set(value)
            ms, found = timed(way.find, queries)
            figures |= {"setting": f"{way.name} {value}", "search_ms": round(ms, 3)}
            figures["recall_at_100"] = round(recall(found, truth), 4)
            if figures["recall_at_100"] >= RECALL:
                break
        table[package] = figures
    return table


@dataclass(frozen=True)
class Way:
    """An index of a library: how it is asked, and the setting that trades time for recall."""

    name: str
    values: tuple[int, ...]
    set: Callable[[int], Any]
    find: Find


def _faiss(library: Any, vectors: np.ndarray, file: str) -> Way:  # noqa: ANN401
    lists = 2 ** round(np.log2(2 * np.sqrt(len(vectors))))
    kind = f"IVF{lists},PQ{WIDTH // 2}x4fs"
    index = library.index_factory(WIDTH, kind, library.METRIC_INNER_PRODUCT)
    index.train(vectors[: 40 * lists])
    index.add(vectors)
    library.write_index(index, file)

    def find(query: np.ndarray) -> np.ndarray:
        (near,) = index.search(query[None], 4 * CANDIDATES)[1]
        near = near[near >= 0]
        found: np.ndarray = near[np.argsort(-(vectors[near] @ query))[:CANDIDATES]]
        return found

    name = f"{kind}, {4 * CANDIDATES} scored once more, lists read"
    return Way(name, (8, 16, 32, 64, 128, 256), lambda value: setattr(index, "nprobe", value), find)


def _usearch(library: Any, vectors: np.ndarray, file: str) -> Way:  # noqa: ANN401
    index = import_module("usearch.index").Index(
        ndim=WIDTH, metric="ip", dtype="i8", connectivity=16, expansion_add=128
    )
    index.add(np.arange(len(vectors)), vectors)
    index.save(file)
    return Way(
        "HNSW16 in i8, expansion",
        (100, 200, 400, 800, 1600),
        lambda value: setattr(index, "expansion_search", value),
        lambda query: index.search(query, CANDIDATES).keys,
    )


def _hnswlib(library: Any, vectors: np.ndarray, file: str) -> Way:  # noqa: ANN401
    index = library.Index(space="ip", dim=WIDTH)
    index.init_index(max_elements=len(vectors), ef_construction=128, M=16, random_seed=0)
    index.add_items(vectors)
    index.save_index(file)
    return Way(
        "HNSW16, ef",
        (100, 200, 400, 800, 1600),
        index.set_ef,
        lambda query: index.knn_query(query, CANDIDATES)[0][0],
    )


WAYS = {"faiss": _faiss, "usearch": _usearch, "hnswlib": _hnswlib}


def _installed_mb(package: str) -> float:
    """MB that an installed package takes, without what it depends on."""
    found = [Path(str(file.locate())) for file in files(package) or ()]
    return sum(path.stat().st_size for path in found if path.is_file()) / 1e6


def draw(rows: Sequence[dict[str, Any]], folder: Path) -> list[Path]:
    """Time and memory over the pool's size."""
    need_matplotlib()
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        canvas = Figure(figsize=(9, 3.6), layout="constrained")
        clock, room = canvas.subplots(1, 2)
        sizes = [row["replies"] for row in rows]
        clock.plot(sizes, [row["scan_ms"] for row in rows], "o-", color="#E69F00", label="exact numpy scan")
        goal = [row["scan_ms"] / 20 for row in rows]
        clock.plot(sizes, goal, ":", color="#666666", label="a twentieth of it")
        clock.plot(sizes, [row["search_ms"] for row in rows], "D-", color="#0072B2", label="listenwell")
        clock.set(title="Time of a query", ylabel="milliseconds")
        room.plot(
            sizes, [row["scan_memory_mb"] for row in rows], "o-", color="#E69F00", label="float32 in numpy"
        )
        touched = [row["own_memory_mb"] + row["file_pages_mb"] for row in rows]
        room.plot(sizes, touched, "D-", color="#0072B2", label="listenwell, mapped files counted in")
        own = [row["own_memory_mb"] for row in rows]
        room.plot(sizes, own, "s--", color="#009E73", label="listenwell, what it holds itself")
        room.set(title="Memory", ylabel="MB")
        for axes in (clock, room):
            axes.set(xscale="log", yscale="log", xlabel="replies in the pool")
            axes.legend(frameon=False)
        return save(canvas, folder, "pool-search")


def measure(chosen: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """All figures."""
    real = real_vectors(chosen.real, chosen.vectors)
    np.save(folder / "held_out.npy", real[:HELD_OUT])
    filled_up(real[HELD_OUT:], max(chosen.sizes), folder / "all.npy")
    rows = []
    for size in sorted(chosen.sizes):
        share = min(1, round((len(real) - HELD_OUT) / size, 3))
        row = {
            "replies": size,
            "real": share,
            **apart(folder, size, "build"),
            **apart(folder, size, "answer"),
        }
        print(json.dumps(row), file=sys.stderr, flush=True)
        rows.append(row)
    table = compared(folder, min(chosen.compare, max(chosen.sizes))) if chosen.compare else {}
    about = {name: value for name, value in environment().items() if name != "command"}
    return {
        "about": " ".join((__doc__ or "").split()),
        "width": WIDTH,
        "queries": QUERIES,
        "cores": os.cpu_count(),
        "sizes": rows,
        "libraries": {"replies": min(chosen.compare, max(chosen.sizes)), **table},
        **about,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 30_000, 100_000, 300_000, 1_000_000])
    parser.add_argument("--real", type=int, default=40_000, help="real utterances to encode")
    parser.add_argument("--vectors", type=Path, default=None, help="keep the real vectors here (.npy)")
    parser.add_argument("--compare", type=int, default=100_000, help="compare libraries on this size; 0: not")
    parser.add_argument("--out", type=Path, default=None, help="write the figures here too")
    parser.add_argument("--figures", type=Path, default=None, help="draw into this folder")
    parser.add_argument("--folder", type=Path, default=None, help=argparse.SUPPRESS)
    parser.add_argument("--step", choices=("build", "answer"), default=None, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.step:
        print(json.dumps({"build": build, "answer": answer}[chosen.step](chosen.folder, chosen.sizes[0])))
        sys.exit()
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        figures = measure(chosen, Path(folder))
    if chosen.out:
        chosen.out.write_text(json.dumps(figures, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    if chosen.figures:
        draw(figures["sizes"], chosen.figures)
    print(json.dumps({name: figures[name] for name in ("sizes", "libraries")}, indent=1))
