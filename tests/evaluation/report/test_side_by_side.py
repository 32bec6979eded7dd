import json
from pathlib import Path

import pytest

from listenwell.corpora import CORPORA
from listenwell.corpora.sampling import Sampling
from listenwell.dialogue import Dialogue, Example, Factors, Turn
from listenwell.errors import InputError, UnknownNameError
from listenwell.evaluation.report.side_by_side import (
    Column,
    Said,
    escaped,
    letters,
    plan_words,
    read_column,
    side_by_side,
)

SAMPLES = Path(__file__).parents[2] / "data"


def example(number, text="I lost my dog.", reply="Oh no!"):
    return Example(
        Dialogue((Turn("speaker", text),), id=f"hit:{number}", emotion="sad"), Turn("listener", reply)
    )


def column(name, *replies, plan=None):
    return Column(
        name, f"{name}.jsonl", {f"hit:{n}#1": Said(text, plan) for n, text in enumerate(replies)}, {}
    )


def test_a_context_is_known_however_a_file_spells_it():
    ours = Dialogue((Turn("speaker", "I couldn't wait, it's Tom's 1st day & we'll cry!"),))
    for theirs in (
        "i could not wait , it is tom 's 1st day we will cry !",
        "i could n't wait , it 's tom 's 1st day & we 'll cry !",
    ):
        assert letters(ours) == letters([theirs])
    assert letters(["I can't"]) == letters(["i can not"]) == letters(["i cannot"])
    assert letters(["I will"]) != letters(["I would"])


def test_the_page_has_every_system_and_the_person():
    page = side_by_side(
        [column("ours", "How sad.", plan=Factors(act="sympathizing")), column("MoEL", "ok .")],
        [example(0)],
        Sampling(50, 0),
        "some test",
    )
    assert "## 1. hit:0\\#1, sad\n\n> **speaker**: I lost my dog.  \n" in page
    assert "- **ours**: How sad. *(sympathizing)*\n- **MoEL**: ok .\n- **the person**: Oh no!\n" in page
    assert "not picked: all 1, of those of some test that all of them answered" in page
    assert "- **ours**: ours.jsonl\n" in page


def test_contexts_are_drawn_by_seed_from_those_all_answered():
    examples = [example(number, f"text {number}") for number in range(30)]
    columns = [column("a", *(["x"] * 30)), column("b", *(["y"] * 25))]
    page = side_by_side(columns, examples, Sampling(5, 3), "c")
    wanted = [place for place, _ in Sampling(5, 3).draw(range(25))]
    assert [line.split()[2] for line in page.splitlines() if line.startswith("## ")] == [
        f"hit:{place}\\#1," for place in wanted
    ]
    assert page == side_by_side(columns, examples, Sampling(5, 3), "c")
    assert page != side_by_side(columns, examples, Sampling(5, 4), "c")


def test_what_people_wrote_is_data():
    assert escaped("a *b* _c_ <i>d</i> `e` [f](g) ![h](i) \\ | ~j~ @k $l$ &amp; #1") == (
        r"a \*b\* \_c\_ \<i\>d\</i\> \`e\` \[f\](g) !\[h\](i) \\ \| \~j\~ \@k \$l\$ \&amp; \#1"
    )
    assert escaped("see https://x.y and WWW.z.w: yes") == r"see https\://x.y and WWW\.z.w: yes"
    assert escaped("one\n# two\r\n- three\x00\u202e") == r"one \# two - three��"


def test_a_reply_cannot_leave_its_line():
    page = side_by_side(
        [column("ours", "fine\n\n## 9. fake\n- **the person**: no")], [example(0)], Sampling(), "c"
    )
    assert page.count("\n## ") == 1 and page.count("\n- **the person**") == 1


def test_plans_are_told_in_words():
    plan = Factors("sad", ("emotional_reaction", "exploration"), "questioning", "caring")
    assert plan_words(plan) == "hears sad; emotional reaction and exploration; questioning; tone caring"
    assert plan_words(Factors(mechanisms=())) == "no mechanism"


def test_files_are_read_by_what_they_hold(tmp_path):
    moel = read_column("moel", SAMPLES / "peers" / "moel.txt")
    assert moel.name == "MoEL"
    found = moel.reply("x", example(0, "My sister got the job she wanted"))
    assert found == Said("that is great ! what job is it ?")
    file = tmp_path / "replies.jsonl"
    file.write_text(json.dumps({"id": "hit:0#1", "reply": "Hm.", "plan": {"act": "wishing"}}) + "\n\n")
    ours = read_column("ours", file)
    assert ours.reply("hit:0#1", example(0)) == Said("Hm.", Factors(act="wishing"))
    assert ours.reply("hit:1#1", example(1)) is None
    file.write_text('{"reply": "no id"}\n')
    with pytest.raises(InputError, match=r"replies\.jsonl:1 has no id"):
        read_column("ours", file)
    with pytest.raises(UnknownNameError, match="MoEL"):
        read_column("MoELL", SAMPLES / "peers" / "moel.txt")
    with pytest.raises(InputError, match="There is no file"):
        read_column("ours", tmp_path / "none")


def test_a_context_that_stands_twice_in_a_file_is_nobodys(tmp_path):
    block = (SAMPLES / "peers" / "moel.txt").read_text().split("\n\n")[0]
    file = tmp_path / "moel.txt"
    file.write_text(f"{block}\n\n{block}\n\n")
    assert read_column("MoEL", file).by_letters == {}


def test_systems_that_share_no_context_or_a_name_are_refused():
    with pytest.raises(InputError, match="No context was answered"):
        side_by_side([column("a", "x"), column("b")], [example(0)], Sampling(), "c")
    with pytest.raises(InputError, match="Two systems have one name"):
        side_by_side([column("a", "x"), column("a", "y")], [example(0)], Sampling(), "c")


@pytest.mark.data
def test_almost_every_released_context_is_one_of_the_corpus(real_data):
    examples = list(CORPORA.load("empathetic_dialogues")(real_data / "empathetic_dialogues").examples("test"))
    moel = read_column("MoEL", real_data / "peers" / "moel_generation_result.txt")
    known = sum(moel.reply("", one) is not None for one in examples)
    assert (known, len(examples)) == (5231, 5247)
