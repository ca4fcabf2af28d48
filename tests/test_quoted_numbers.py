"""README and docs quote the numbers of their CSV files; `docs/check_numbers.py` names those that differ."""

from __future__ import annotations

import check_numbers
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
    ("text", "mark"),
    [
        ("EV has 0.8125.", "0.8125: comet(method='ev', seed='1')"),
        ("EV has\n0.73, of\nall.", "0.73, of all: comet(method='ev', statistic='mean')"),
        ("So 25 % or −12.5 %.", "25 % or −12.5 %: share(method='ev', seed='1'); share(method='ev', statistic='mean')"),
        ("It is 0.7 ± 0.1 %.", "0.7 ± 0.1 %: comet(method='ratio', seed='2') / 100; 0.001"),
        ("1,236 calls of `0.9`.", "1,236: calls(method='ev', seed='2')"),
        (
            "0.1125 more.",
            "0.1125: comet(method='ev', statistic='mean') - 0.01875 - comet(method='ratio', statistic='mean')",
        ),
        (
            "Ahead in 1 of 2.",
            "1 of 2: (comet(method='ev', statistic='run') > comet(method='ratio', statistic='run')).sum(); 2",
        ),
        (
            "At least -0.05.",
            "-0.05: (comet(method='ev', statistic='run') - comet(method='ratio', statistic='run')).min()",
        ),
        ("2 runs, over 31.", "2 runs, over 31: calls(method='ratio', statistic='run').count(); 0.97 * 32"),
    ],
)
def test_numbers_of_the_file_are_right(tmp_path, text, mark):
    outcome = checked(tmp_path, text, "table.csv direction=en-zh", mark)
    assert (outcome.problems, outcome.right) == ([], mark.count(";") + 1)


@pytest.mark.parametrize(
    ("text", "mark", "problem"),
    [
        ("EV has 0.9.", "0.9: comet(method='ev', seed='1')", "says 0.8"),
        ("EV has 0.8.", "0.9: comet(method='ev', seed='1')", "does not stand under"),
        ("0.8 and 0.7.", "0.8: comet(method='ev', seed='1')", "0.7 has no mark"),
        ("EV has 0.8.", "0.8: comet(seed='1')", "2 rows with"),
        ("EV has 0.8.", "0.8: comet(method='beam')", "0 rows with"),
        ("EV has 0.8.", "0.8: comet(statistic='run', method='ev')", "2 rows; say which"),
        ("EV has 0.8.", "0.8: bleu(method='ev', seed='1')", "'bleu'"),
        ("EV has 0.8.", "0.8: share(method='ratio', seed='1')", "no number there"),
        ("0.8 of 2.", "0.8 of 2: comet(method='ev', seed='1')", "2 numbers, but 1 expressions"),
        ("EV has 0.8.", "0.8: open('x')", "'open'"),
        ("EV has 0.8.", "0.8: comet(method='ev', seed=1).mean()", "0 rows with"),
        ("EV has 0.8.", "0.8: comet(ev)", "'ev'"),
        (
            "1 of them.",
            "1: (comet(method='ev', statistic='run') > comet(method='ratio', seed='1')).sum()",
            "identically-labeled",
        ),
    ],
)
def test_a_wrong_mark_is_a_problem(tmp_path, text, mark, problem):
    outcome = checked(tmp_path, text, "table.csv", mark)
    assert any(problem in line for line in outcome.problems), outcome.problems


def test_what_no_result_says_is_marked_and_not_compared(tmp_path):
    outcome = checked(tmp_path, "A ratio of 0.7.", "table.csv", "0.7: stated")
    assert (outcome.problems, outcome.right) == ([], 0)


def test_a_file_that_is_not_there_is_a_problem(tmp_path):
    outcome = checked(tmp_path, "A ratio of 0.7.", "results/full.csv", "0.7: comet(method='ev')")
    (problem,) = outcome.problems
    assert outcome.right == 0 and "results/full.csv" in problem and "No such file" in problem


def test_numbers_of_the_paper_are_compared_with_its_transcription(tmp_path):
    source = "paper label=tab:main direction=en-zh system=ev"
    right = "0.8517 and 64.9 %: value(metric='comet'); value(metric='comet_closure')"
    assert checked(tmp_path, "EV has 0.8517 and 64.9 %.", source, right).right == 2
    (problem,) = checked(tmp_path, "EV has 0.8571.", source, "0.8571: value(metric='comet')").problems
    assert "paper says 0.8517" in problem


def test_wrong_numbers_are_corrected_in_the_text_and_in_their_marks(tmp_path):
    marks = [
        "table.csv",
        "0.9 and −5 %: comet(method='ev', seed='1'); share(method='ev', seed='2')",
        "0.6: comet(seed='2', method='ev')",
    ]
    checked(tmp_path, "It has 0.9\nand −5 %, then 0.6.", *marks, write=True)
    page, numbers = tmp_path / "text.md", tmp_path / "text.txt"
    assert "It has 0.8\nand −50 %, then 0.7." in page.read_text()
    assert "\n0.8 and −50 %: comet(" in numbers.read_text()
    again = check_numbers.check(page, numbers, tmp_path)
    assert (again.problems, again.right) == ([], 3)


def test_marks_belong_to_a_heading_of_the_page():
    outcome = check_numbers.Outcome()
    assert not [*check_numbers.marks("# One\n0.5\n# Two\n", "# One\n0.5: stated\n\n# Three\n0.5: stated\n", outcome)]
    assert len(outcome.problems) == 1


@pytest.mark.parametrize("numbers", check_numbers.all_numbers(), ids=lambda path: path.stem)
def test_readme_and_docs_say_what_the_committed_tables_say(numbers):
    outcome = check_numbers.check(check_numbers.page_of(numbers), numbers)
    assert not outcome.problems and outcome.right
