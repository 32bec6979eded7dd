import io
import shutil
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from listenwell.cli import app
from listenwell.errors import CorpusError, InputError, UnknownNameError
from listenwell.rankers.ensemble import Ensemble, load_scorer
from listenwell.rankers.scoring import Pools, pool_scores, ranks, truth_first
from tests.corpora.test_sources import write_talks as write_persona_talks
from tests.rankers.many_talks import Knows, number_of, write_talks
from tests.rankers.tiny_rankers import keep_ranker, tiny_ranker

CORPUS = "empathetic_dialogues"
TEST = Pools(CORPUS)


@pytest.fixture(autouse=True)
def talks(tmp_path):
    """Where LISTENWELL_DATA points to in tests."""
    return write_talks(tmp_path / "data", valid=120, test=210)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "scores"


def kept(folder):
    return sorted(folder.rglob("*.npy"))


def numbers(given):
    return [[number_of(example.reply.text) for example in block] for block in given.blocks()]


def test_blocks_hold_each_reply_once_with_its_own_context():
    found = numbers(TEST)
    assert [len(block) for block in found] == [100, 100]
    assert len(set(found[0]) | set(found[1])) == 200  # ten are left out
    for block in TEST.blocks():
        assert all(
            number_of(one.context.turns[-1].text) == number_of(one.reply.text) and one.context.listener
            for one in block
        )
    assert numbers(TEST) == found  # everybody's shuffle is the same
    assert found[0] != sorted(found[0])
    assert numbers(Pools(CORPUS, shuffled=False)) == [list(range(100)), list(range(100, 200))]
    assert numbers(Pools(CORPUS, most=1)) == found[:1]
    assert numbers(Pools(CORPUS, most=7)) == found
    assert str(TEST) == "empathetic_dialogues test, shuffled"
    assert str(Pools(CORPUS, "valid", False)) == "empathetic_dialogues valid, unshuffled"


def test_wrong_pools_are_clear_errors(tmp_path, folder):
    write_talks(tmp_path / "data", valid=99)
    with pytest.raises(InputError, match=r"valid, shuffled holds 99 replies, too few for a pool of 100"):
        pool_scores(Knows(), Pools(CORPUS, "valid"), folder)
    for most in (0, -1):
        with pytest.raises(InputError, match=f"number of pools is {most}"):
            Pools(CORPUS, most=most)
    with pytest.raises(CorpusError, match="corpus download"):
        pool_scores(Knows(), Pools(CORPUS, "train"), folder)
    with pytest.raises(UnknownNameError, match="'test'"):
        pool_scores(Knows(), Pools(CORPUS, "tst"), folder)
    assert not kept(folder)


def test_true_replies_stand_on_the_diagonals(folder):
    scorer = Knows(1)
    found = pool_scores(scorer, TEST, folder)
    assert found.shape == (2, 100, 100) and found.dtype == np.float32
    np.testing.assert_array_equal(found, np.stack([np.eye(100)] * 2))
    assert scorer.asked == 2


def test_what_is_known_is_not_asked_again(folder):
    scorer = Knows(3)
    first = pool_scores(scorer, TEST, folder)
    again = Knows(3)
    np.testing.assert_array_equal(pool_scores(again, TEST, folder), first)
    assert again.asked == 0
    # Fewer pools are the first of all.
    np.testing.assert_array_equal(pool_scores(again, replace(TEST, most=1), folder), first[:1])
    assert again.asked == 0 and len(kept(folder)) == 2


def test_a_stopped_run_goes_on_where_it_was(folder):
    with pytest.raises(KeyboardInterrupt):
        pool_scores(Knows(3, stop_at=1), TEST, folder)
    assert len(kept(folder)) == 1
    scorer = Knows(3)
    found = pool_scores(scorer, TEST, folder)
    assert scorer.asked == 1
    np.testing.assert_array_equal(found, pool_scores(Knows(3), TEST, folder.with_name("unbroken")))


def saved(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:5],
        lambda data: data[:70],
        lambda data: data[:-1],
        lambda data: data[:10] + b"\0" + data[11:],  # inside numpy's header
        lambda data: data.replace(b"}", b"(", 1),
        lambda data: b"PK\x03\x04" + data[4:],
        lambda data: saved(np.zeros((99, 100), np.float32)),
        lambda data: saved(np.zeros((100, 100), np.float64)),
        lambda data: saved(np.array([{"a": 1}], dtype=object)),  # a pickle is never opened
    ],
)
def test_a_damaged_block_is_made_again(folder, capsys, damage):
    first = pool_scores(Knows(3), TEST, folder)
    _, second = kept(folder)
    second.write_bytes(damage(whole := second.read_bytes()))
    scorer = Knows(3)
    np.testing.assert_array_equal(pool_scores(scorer, TEST, folder), first)
    assert scorer.asked == 1 and second.read_bytes() == whole
    assert f"{second} is damaged. It is made again." in capsys.readouterr().err


def test_scores_are_the_same_the_first_time_and_later(folder):
    class Exact(Knows):
        def score(self, contexts, replies):
            return super().score(contexts, replies) / np.float64(3)  # more digits than are kept

    first = pool_scores(Exact(), TEST, folder)
    assert first.dtype == np.float32
    np.testing.assert_array_equal(pool_scores(Exact(stop_at=0), TEST, folder), first)


def test_the_key_names_all_that_shapes_the_scores(tmp_path, folder):
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(tmp_path / "data" / CORPUS, elsewhere)
    assert replace(TEST, path=elsewhere).key() == TEST.key() == replace(TEST, most=1).key()
    others = [replace(TEST, shuffled=False), replace(TEST, split="valid")]
    changed = replace(TEST, path=write_talks(tmp_path / "changed", "0", test=210))
    keys = {given.key() for given in (TEST, *others, changed)}
    assert len(keys) == 4
    scorer = Knows()
    for given in (TEST, *others, changed):
        pool_scores(scorer, given, folder)
    assert scorer.asked == 2 + 2 + 1 + 2
    other = Knows(key="another's")
    pool_scores(other, TEST, folder)
    assert other.asked == 2
    assert len({file.parent for file in kept(folder)}) == 5


def test_the_key_of_a_part_is_not_that_of_the_whole_file(tmp_path):
    given = Pools("synthetic_persona_chat", "valid", path=tmp_path / "spc")
    write_persona_talks(tmp_path / "spc", valid=2000, test=60)
    divided, test = given.key(), replace(given, split="test").key()
    count = len(list(given.blocks()))
    # With its train file, all of valid is valid: other replies from the same file.
    write_persona_talks(tmp_path / "spc", train=1)
    assert len(list(given.blocks())) == 40 > count > 0
    assert given.key() != divided
    assert replace(given, split="test").key() == test


def test_members_of_an_ensemble_are_kept_one_by_one(folder):
    one, two = Knows(2, "one"), Knows(3, "two")
    found = pool_scores(Ensemble([one, two], [2.0, -0.5]), TEST, folder)
    assert (one.asked, two.asked) == (2, 2) and len(kept(folder)) == 4
    given = [number for block in numbers(TEST) for number in block]
    expected = [(2 if n % 2 == 0 else -2) + (-0.5 if n % 3 == 0 else 0.5) for n in given]
    np.testing.assert_allclose(found.diagonal(axis1=1, axis2=2).ravel(), expected)
    assert found.shape == (2, 100, 100) and found.dtype == np.float32
    # Other weights, another order, one alone, an ensemble of ensembles: nobody is asked again.
    again = pool_scores(Ensemble([two, Ensemble([one], [0.5])], [1.0, 4.0]), TEST, folder)
    np.testing.assert_allclose(again[0, 0, 0], (1 if given[0] % 3 == 0 else -1) + 2 * (-1) ** given[0])
    pool_scores(one, TEST, folder)
    assert (one.asked, two.asked) == (2, 2) and len(kept(folder)) == 4
    # A third member is asked alone.
    three = Knows(5, "three")
    pool_scores(Ensemble([one, three], [1.0, 1.0]), TEST, folder)
    assert (one.asked, three.asked) == (2, 2)


BLOCKS = np.array([[[9, 1, 2], [3, 4, 8], [5, 6, 5]], [[0, 0, 0], [1, 2, 3], [7, 8, 9]]], np.float32)


def test_ranks_by_hand():
    # A tie counts against the truth: 5 of (5, 6, 5) is third.
    assert ranks(BLOCKS).tolist() == [1, 2, 3, 3, 2, 1]


def test_truth_first_by_hand():
    assert truth_first(BLOCKS).tolist() == [
        [9, 1, 2],
        [4, 3, 8],
        [5, 5, 6],
        [0, 0, 0],
        [2, 1, 3],
        [9, 7, 8],
    ]


def test_a_trained_ranker_gives_the_same_as_asked_directly(tmp_path, folder, tiny_encoder, installed_encoder):
    scorer = load_scorer(keep_ranker(tiny_ranker(tiny_encoder, "bi")[0], tmp_path / "bi"))
    found = pool_scores(scorer, Pools(CORPUS, "valid"), folder)
    (block,) = Pools(CORPUS, "valid").blocks()
    direct = scorer.score([one.context for one in block], [one.reply.text for one in block])
    np.testing.assert_array_equal(found[0], direct)
    assert found.std() > 1e-3


@pytest.fixture
def members(tmp_path, tiny_encoder, installed_encoder):
    return [keep_ranker(tiny_ranker(tiny_encoder, name)[0], tmp_path / name) for name in ("bi", "poly")]


@pytest.fixture
def run_module():
    """`listenwell score-pools`; returns its exit code, its lines, and its error."""

    def run(*arguments):
        done = CliRunner().invoke(app, ["score-pools", *map(str, arguments)])
        return done.exit_code, done.stdout.splitlines(), str(done.exception or "")

    return run


def test_the_command_scores_pools_for_later(run_module, members, folder, monkeypatch):
    code, lines, complaints = run_module(*members, "--out", folder, "--unshuffled", "--pools", 1)
    assert (code, complaints) == (0, "")
    parts = [Pools(CORPUS, "valid", most=1), Pools(CORPUS, most=1), Pools(CORPUS, shuffled=False, most=1)]
    assert [line.rpartition(":")[0] for line in lines] == [
        f"{place}: {given}" for place in members for given in parts
    ]
    assert len(kept(folder)) == 6
    # What is printed is what is kept, and nobody is asked again.
    scorer = load_scorer(members[0])
    monkeypatch.setattr(scorer, "score", None)
    for line, given in zip(lines[:3], parts, strict=True):
        first = ranks(pool_scores(scorer, given, folder)) == 1
        assert line.endswith(f"R@1 {100 * first.mean():.2f}")
    run_module(members[0], "--out", folder, "--split", "test")
    assert len(kept(folder)) == 7  # the second pool of test


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--split", "tset"), "Did you mean 'test'"),
        (("--pools", "0"), "number of pools is 0"),
        (("--corpus", "empathetic_dialogs"), "Did you mean 'empathetic_dialogues'"),
        (("none",), "none is not a listenwell checkpoint: there is no such folder"),
    ],
)
def test_wrong_options_are_named(run_module, members, folder, options, message):
    code, _, error = run_module(members[0], *options, "--out", folder)
    assert code == 1 and message in error
