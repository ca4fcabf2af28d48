"""README and docs quote the numbers of their CSV files; `docs/check_numbers.py` names those that differ."""

import os
from pathlib import Path

import check_numbers
import pandas as pd
import paper_lengths
import pytest

TABLE = """\
backbone,direction,seed,method,statistic,comet,share,calls
llada,en-zh,1,ratio,run,0.5,,32
llada,en-zh,2,ratio,run,0.7,,32
llada,en-zh,,ratio,mean,0.6,,32
llada,en-zh,1,ev,run,0.8125,0.25,36.5
llada,en-zh,2,ev,run,0.65,-0.5,1236.5
llada,en-zh,,ev,mean,0.73125,-0.125,636.5
"""


def checked(tmp_path, text, *marks, write=False):
    """The outcome of a page of a text, and its marks."""
    (tmp_path / "table.csv").write_text(TABLE)
    page, numbers = tmp_path / "text.md", tmp_path / "text.txt"
    page.write_text(f"# Title 0.1\n\n{text}\n\n# Next 0.2\n")
    numbers.write_text("\n".join(["# Title 0.1", *marks]) + "\n")
    return check_numbers.check(page, numbers, tmp_path, write)


@pytest.mark.parametrize(
    ("text", "mark", "problem"),
    [
        ("EV has 0.9.", "0.9: comet(method='ev', seed='1')", "says 0.8"),
        ("EV has 0.8.", "0.9: comet(method='ev', seed='1')", "does not stand under"),
        ("0.8 and 0.7.", "0.8: comet(method='ev', seed='1')", "0.7 has no mark"),
        ("EV has 0.8.", "0.8: comet(seed='1')", "2 rows with"),
        ("EV has 0.8.", "0.8: comet(statistic='run', method='ev')", "2 rows; say which"),
        ("EV has 0.8.", "0.8: share(method='ratio', seed='1')", "no number there"),
        ("0.8 of 2.", "0.8 of 2: comet(method='ev', seed='1')", "2 numbers, but 1 expressions"),
        ("EV has 0.8.", "0.8: open('x')", "'open'"),
        ("In 2 of 2 runs.", "", "2 of 2 is a claim without an expression"),
    ],
)
def test_a_wrong_mark_is_a_problem(tmp_path, text, mark, problem):
    outcome = checked(tmp_path, text, "table.csv", mark)
    assert any(problem in line for line in outcome.problems), outcome.problems


@pytest.mark.parametrize("numbers", check_numbers.all_numbers(), ids=lambda path: path.stem)
def test_readme_and_docs_say_what_the_committed_tables_say(numbers):
    outcome = check_numbers.check(check_numbers.page_of(numbers), numbers)
    assert not outcome.problems and outcome.right


DATA = os.environ.get("ENTROPY_VALLEY_DATA")


@pytest.mark.skipif(not DATA, reason="ENTROPY_VALLEY_DATA names no folder of tatoeba/ and wmt22/")
def test_the_papers_canvases_come_out_again():
    here = pd.DataFrame(paper_lengths.measure(Path(DATA, "wmt22")))
    committed = pd.read_csv(paper_lengths.FOLDER / "lengths.csv")
    pd.testing.assert_frame_equal(here, committed, rtol=1e-5)
