import pytest
from hypothesis import given
from hypothesis import strategies as st

from listenwell.corpora import CORPORA
from listenwell.errors import ListenwellError

from .helpers import quick

# corpus, split, the file to fill, and how it must begin to be looked at
FILES = {
    "newsgroups": ("test", "20news-bydate-test/sci.med/1", b"Subject: Tea\n\n"),
    "empathetic_dialogues": ("train", "train.csv", b"conv_id,utterance_idx,context\n"),
    "empathetic_dialogues_labels": ("train", "utterance_labels.csv", b"conv_id,utterance_idx,label\n"),
    "empathetic_intents": ("train", "train.txt", b""),
    "epitome": (
        "train",
        "emotional-reactions-reddit.csv",
        b"sp_id,rp_id,seeker_post,response_post,level,rationales\n",
    ),
    "goemotions": ("train", "train.tsv", b""),
    "synthetic_persona_chat": (
        "valid",
        "valid.csv",
        b"user 1 personas,user 2 personas,Best Generated Conversation\n",
    ),
    "esconv": ("valid", "devWithStrategy_short.tsv", b""),
    "pec_happy": ("train", "happy/train.txt", b""),
    "pec_offmychest": ("train", "offmychest/train.jsonl", b""),
    "jsonl": ("train", "train.jsonl", b""),
    "plain_talks": ("train", "talks_plain.jsonl", b'{"id": "a", "emotion": "sad"}\n'),
    "rich_talks": ("train", "talks_rich.jsonl", b'{"id": "a", "emotion": "sad"}\n'),
    "plain_rewrites": ("train", "rewrites_plain.jsonl", b'{"id": "a", "listener": []}\n'),
    "rich_rewrites": ("train", "rewrites_rich.jsonl", b'{"id": "a", "listener": []}\n'),
    "risk_messages": ("train", "train.jsonl", b'{"text": "Hi.", "level": "none", "kind": "none"}\n'),
    "everyday_messages": ("train", "everyday_train.jsonl", b'{"corpus": "goemotions"}\n'),
}
BESIDE = {
    "empathetic_dialogues_labels": {"train.csv": b"c,1,sad,p,1,Hi.,,\n"},
    "epitome": dict.fromkeys(("interpretations-reddit.csv", "explorations-reddit.csv"), FILES["epitome"][2]),
    "pec_happy": {"happy/persona.txt": b"anna\nI row.\n" + b"*" * 20 + b"\n"},
}
PIECES = [
    piece.encode()
    for piece in (
        *(
            ",",
            ",,",
            "\t",
            '"',
            '""',
            "\n",
            "\r",
            "\r\n",
            " ",
            "\0",
            "0",
            "1",
            "27",
            "99",
            "²",
            "٣",
            "\u2028",
        ),
        *(
            "sad",
            "c",
            "post1",
            "Hi.",
            "_comma_",
            "5|5|5_5|5|5",
            " <SEP> ",
            "User 1: ",
            "*",
            "[",
            "]",
            "{",
            "}",
        ),
        *("1.0 0 0 ", "1.0 1 1 [Other] ", " EOS ", "anna", "---+---", "*" * 20, "c,1,sad,p,1,", "c,1,sad"),
        *(
            '{"turns": [',
            '{"speaker": "a", "text": "b"}',
            "]}",
            '{"labels": []',
            ', "text": "\\ud800"}',
            "null",
        ),
        *('{"personas": [], "context": ["a"], "context_speakers": ["b"], "response": "c"', "NaN", "true"),
        *("c,²,sad,p,1,Hi.,,", "Hi.\t²\ta", "² <SEP> Hi."),
    )
] + [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf"]
bodies = st.binary(max_size=200) | st.lists(st.sampled_from(PIECES), max_size=30).map(b"".join)


def reading(name, folder):
    split = FILES[name][0]
    reader = CORPORA.load(name)(folder)
    return list(reader.read(split)), reader


@pytest.mark.parametrize("name", FILES)
@quick
@given(body=bodies, with_head=st.booleans())
def test_random_bytes_raise_nothing_but_our_own_error(scratch, name, body, with_head):
    _, file, head = FILES[name]
    for other, content in ({file: head * with_head + body} | BESIDE.get(name, {})).items():
        (scratch / name / other).parent.mkdir(parents=True, exist_ok=True)
        (scratch / name / other).write_bytes(content)
    try:
        items, reader = reading(name, scratch / name)
    except ListenwellError as error:
        assert error.advice
        return
    assert all(item.from_json(item.to_json()) == item for item in items)
    assert set(reader.report.first) == set(reader.report.skipped)


def test_every_corpus_is_fuzzed():
    assert {*FILES, "pec"} == set(CORPORA)
