from pathlib import Path

import pytest

from listenwell.corpora.base import Report
from listenwell.errors import UnknownNameError
from listenwell.evaluation.baselines import HUMAN, MIME, MOEL, check_system, read_baselines, recognize

SAMPLES = Path(__file__).parents[1] / "data" / "peers"


def read(name):
    file, report = SAMPLES / name, Report()
    form = recognize(file)
    return list(read_baselines(file, form, report)), report


def test_files_are_known_by_their_contents(tmp_path):
    assert recognize(SAMPLES / "moel.txt") is MOEL
    assert recognize(SAMPLES / "mime.txt") is MIME
    other = tmp_path / "moel.txt"
    other.write_text('{"reply": "hi"}\n')
    assert recognize(other) is None


def test_moel_records_hold_every_system():
    records, _ = read("moel.txt")
    assert [record.emotion for record in records] == ["joyful", "afraid", "sad"]
    first, second = records[:2]
    assert dict(first.replies) == {
        "Transformer": "that is great !",
        "Transformer multitask": "that is great ! congratulations !",
        "MoEL": "that is great ! what job is it ?",
        "MoEL oracle emotion": "i am so happy for her !",
        HUMAN: "wow , you must be proud of her !",
    }
    assert first.context == ("my sister got the job she wanted",)
    assert second.context[0] == "there was a noise in my friend 's cellar"
    assert second.reference == "i would n't dare either : who knows what it was ?"  # a colon is text
    assert second.reply("MoEL oracle emotion") == "that is scary . i hope you are ok ."  # lines in any order


def test_mime_records_hold_every_decoding_and_the_head_is_no_block():
    records, report = read("mime.txt")
    assert [record.emotion for record in records] == ["joyful", "afraid"]
    assert dict(records[0].replies) == {
        "MIME greedy": "that is good to hear !",
        "MIME beam": "that is great !",
        "MIME top-k": "good for her !",
        HUMAN: "wow , you must be proud of her !",
    }
    assert report.skipped == {"block without Topk": 1}
    assert report.first["block without Topk"] == "mime.txt:18"


def test_broken_blocks_are_skipped_and_counted():
    _, report = read("moel.txt")
    assert report.skipped == {"block without trs+multitask": 1, "block whose context is no list of texts": 1}
    assert report.first["block without trs+multitask"] == "moel.txt:17"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("MOE: that is great ! what job is it ?", "no key here"), "block with an unknown line"),
        (("trs+multitask: that is great ! c", "trs: that is great ! c"), "block with a line twice"),
        (("['my sister got the job she wanted']", "[]"), "block whose context is no list of texts"),
        (("['my sister got the job she wanted']", "[1]"), "block whose context is no list of texts"),
        (
            ("['my sister got the job she wanted']", "__import__('os')"),
            "block whose context is no list of texts",
        ),
        (("['my sister got the job she wanted']", "[" * 5000), "block whose context is no list of texts"),
        (("Emotion: joyful", "Emotion:"), "block without emotion"),
    ],
)
def test_every_kind_of_damage_is_named(tmp_path, change, reason):
    file = tmp_path / "moel.txt"
    first = (SAMPLES / "moel.txt").read_text().split("\n\n")[0]
    file.write_text(first.replace(*change) + "\n\n" + first)
    report = Report()
    assert len(list(read_baselines(file, MOEL, report))) == 1
    assert report.skipped == {reason: 1}


def test_bytes_that_are_no_text_cost_their_block(tmp_path):
    file = tmp_path / "moel.txt"
    first = (SAMPLES / "moel.txt").read_bytes().split(b"\n\n")[0]
    file.write_bytes(first.replace(b"MOE: that", b"MOE: \xff") + b"\n\n" + first + b"\n")
    report = Report()
    assert len(list(read_baselines(file, MOEL, report))) == 1
    assert report.skipped == {"not UTF-8": 1, "block without MOE": 1}


def test_a_system_is_found_whatever_its_case_and_else_the_near_ones_are_named():
    assert check_system(MIME, "mime TOP-K") == "MIME top-k"
    with pytest.raises(UnknownNameError, match="Did you mean 'MIME greedy'"):
        check_system(MIME, "MIME greddy")


def test_the_oracle_says_that_it_was_given_the_emotion():
    assert "gold emotion given" in MOEL.conditions_of("MoEL oracle emotion")["factors"]
    for form in (MOEL, MIME):
        assert all(form.conditions_of(name)["decoding"] for name in form.names())


@pytest.mark.data
def test_the_released_files_hold_the_same_contexts_and_references(real_data):
    found = {}
    for name, file in (("moel", "moel_generation_result.txt"), ("mime", "mime_output.txt")):
        path, report = real_data / "peers" / file, Report()
        found[name] = list(read_baselines(path, recognize(path), report))
        assert not report.skipped
    assert len(found["moel"]) == 5255
    same = [(record.context, record.emotion, record.reference) for record in found["moel"]]
    assert same == [(record.context, record.emotion, record.reference) for record in found["mime"]]
