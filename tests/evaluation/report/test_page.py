from pathlib import Path

from listenwell.evaluation.report.names import PAGES, display_name
from listenwell.evaluation.report.page import Report, page_problems, write_pages
from listenwell.evaluation.report.tables import HEADLINES, headline_grid
from listenwell.results.metric_registry import METRICS
from listenwell.results.store import Result, file_name, read_results, write_result

ROOT = Path(__file__).parents[3]


def rated(system, overall, checkpoint=None):
    return Result(
        "ratings", system, (("rated_overall", overall),), "c", "test", 80, "d", checkpoint=checkpoint
    )


def test_names_of_older_result_files_are_shown_in_the_fields_words():
    assert display_name("planned: speaker") == "planned generator 0.1"
    assert display_name("planned: speaker, unvoiced") == "planned generator 0.1, no soft prompt"
    assert display_name("judge: liking_unvoiced") == "reward model, base prompt"
    assert display_name("planned: speaker, 200 contexts without interprets, explores") == (
        "planned generator 0.1, 200 contexts without interpretation, exploration"
    )
    assert display_name("situation emotion: bag_emotion") == "situation emotion: fastText classifier"
    assert display_name("MoEL") == "MoEL"


def test_no_page_shows_a_retired_name():
    for name, text in Report(ROOT / "results").pages().items():
        tables = [line for line in text.splitlines() if line.startswith("|")]
        for retired in ("speaker", "unvoiced", "liking", "judge", "reader"):
            assert not any(retired in line for line in tables), (name, retired)


def test_the_headline_has_ours_the_best_published_and_people():
    results = [
        rated("planned: speaker", 3.3, "c"),
        rated("MoEL", 2.5),
        rated("MIME", 2.0),
        rated("human", 3.5),
    ]
    (line,) = headline_grid(results, {("ratings", "planned: speaker"): "⁴"}).rows
    assert line[2:5] == ("3.30 ⁴", "2.50 (MoEL)", "3.50")
    assert line[5:] == ("80 contexts, rated by language models", "[ratings](results/ratings.md)")


def test_every_headline_has_a_row_and_a_page():
    rows = {(row.task, row.system): row for row in read_results(ROOT / "results")}
    slugs = {page.slug for page in PAGES}
    for headline in HEADLINES:
        assert headline["metric"] in METRICS and headline["page"] in slugs
        assert rows[headline["task"], headline["system"]].metric(headline["metric"]) is not None
    assert len(headline_grid(list(rows.values()), {}).rows) == len(HEADLINES)


def test_marked_rows_have_their_note_at_the_foot():
    pages = Report(ROOT / "results").pages()
    note = "⁴ put together from several runs until a new generator is measured in one run"
    assert "| planned generator 0.1 ⁴ | ours | 5,247 |" in pages["results/replies.md"]
    assert pages["results/replies.md"].endswith(f"{note}\n")
    assert note in pages["results.md"]


def test_a_task_without_a_page_stands_on_the_last(tmp_path):
    odd = Result("speed test", "x", (("R@1", 1.0),), "c", "test", 3, "d", commit="abc")
    write_result(odd, tmp_path / "results" / file_name(odd))
    (tmp_path / "docs" / "results").mkdir(parents=True)
    gone = tmp_path / "docs" / "results" / "gone.md"
    gone.write_text("old")
    assert any(
        "gone.md has no results" in line for line in page_problems(tmp_path / "results", tmp_path / "docs")
    )
    write_pages(tmp_path / "results", tmp_path / "docs")
    assert "## The true reply among 100" in (tmp_path / "docs" / "results" / "other.md").read_text()
    assert not gone.exists() and page_problems(tmp_path / "results", tmp_path / "docs") == []


def test_links_of_the_contents_lead_to_headings():
    for name, text in Report(ROOT / "results").pages().items():
        headings = {
            "".join(sign for sign in line.lstrip("# ").lower() if sign.isalnum() or sign in " -").replace(
                " ", "-"
            )
            for line in text.splitlines()
            if line.startswith("#")
        }
        links = {part.split(")")[0] for part in text.split("](#")[1:]}
        assert links <= headings, name
