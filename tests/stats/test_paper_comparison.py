"""The paper's numbers against made-up tables of ours."""

from __future__ import annotations

import pandas as pd
import pytest

from entropy_valley.errors import InputError
from entropy_valley.stats.cells import Params
from entropy_valley.stats.our_numbers import FUNCTIONS, TABLES_OF, TableRows, ours
from entropy_valley.stats.paper_numbers import find, means
from entropy_valley.tables.paper_comparison import compare

MAIN = """\
backbone,direction,testset,steps,runs,method,metric,mean,std,gap_closure_mean,gap_closure_std
tiny,en-zh,grammar,32,3,oracle,comet22,0.8612,0.0002,1,0
tiny,en-zh,grammar,32,3,ratio,comet22,0.8300,0.0005,0,0
tiny,en-zh,grammar,32,3,ev,comet22,0.85172,,0.6,
tiny,en-zh,grammar,32,3,ev,bleu,40,,0.4,
tiny,en-zh,grammar,32,3,ratio,bleu,30,,0,
"""
TESTS = """\
backbone,direction,testset,sentences,resamples,seed,first,second,delta,ci_low,ci_high,p_one_sided,p_two_sided,wilcoxon_p
tiny,zh-en,grammar,2037,1000,7,ev,ratio,0.0174,0.01,0.02,0,0,1e-50
tiny,zh-en,grammar,2037,1000,8,ev,ratio,-0.002,-0.01,0.02,0.6,0.9,0.5
"""


@pytest.fixture
def params(tmp_path):
    tables = {"main": MAIN, "full_significance": TESTS}
    for name, text in tables.items():
        (tmp_path / f"{name}.csv").write_text(text)
    paths = {name: str(tmp_path / f"{name}.csv") for name in tables}
    names = {"llada-8b": "tiny", "wmt22": "grammar"}
    return Params(tables=paths, names=names, metric="comet22", steps=32, seeds=[7, 8], values=True)


def rows(params, **where):
    frame = compare(params)
    for key, value in where.items():
        frame = frame[frame[key] == value]
    return frame


def verdict(params, label, metric, **named):
    (found,) = rows(params, kind="value", label=label, metric=metric, **named)["verdict"]
    return found


@pytest.mark.parametrize(
    ("metric", "system", "expected"),
    [
        ("comet", "ev", "equal"),  # as far as it is printed
        ("comet", "oracle", "within"),  # 0.0002 away, and the paper's deviation is 0.0013
        ("comet", "ratio", "outside"),  # 0.0045 away, 2 · 0.0017 allowed
        ("comet_closure", "ev", "within"),  # 60 % and 64.9 ± 7.4 %
        ("bleu_closure", "ev", "differs"),  # neither has a deviation
        ("bleu", "oracle", "not run"),
    ],
)
def test_a_value_is_judged_by_the_spread_of_runs(params, metric, system, expected):
    assert verdict(params, "tab:main", metric, system=system, direction="en-zh") == expected


def test_bounds_hold_or_fail_and_runs_are_seeds(params):
    place = {"label": "tab:full_significance", "direction": "zh-en"}
    assert verdict(params, metric="p_one_sided", setting="run A", **place) == "holds"
    assert verdict(params, metric="p_one_sided", setting="run B", **place) == "fails"
    assert verdict(params, metric="p_one_sided", setting="run C", **place) == "not run"  # there is no third seed


def test_differences_are_in_the_papers_unit(params):
    closure = rows(params, label="tab:main", metric="comet_closure", direction="en-zh", kind="value").iloc[0]
    assert (closure["paper"], closure["ours"], closure["difference"]) == (64.9, pytest.approx(60), pytest.approx(-4.9))


def test_other_models_are_compared_by_sign_and_order_alone(params):
    signs = Params(params | {"values": False})
    assert set(compare(signs)["kind"]) == {"sign", "order"}
    found = rows(signs, kind="sign", label="tab:full_significance", metric="comet_lead", direction="zh-en")
    assert list(found["verdict"]) == ["same", "other", "not run"]
    order = rows(signs, kind="order", label="tab:main", metric="comet", direction="en-zh").iloc[0]
    assert (order["text"], order["ours_text"], order["verdict"]) == (*["oracle > ev > ratio"] * 2, "same")


def test_an_order_that_is_not_the_papers_says_in_how_many_pairs_it_is(params, tmp_path):
    (tmp_path / "main.csv").write_text(MAIN.replace("0.8612", "0.8400"))
    order = rows(params, kind="order", label="tab:main", metric="comet", direction="en-zh").iloc[0]
    assert (order["ours_text"], order["verdict"]) == ("ev > oracle > ratio", "2 of 3 pairs")


def test_equal_values_are_no_order(params, tmp_path):
    (tmp_path / "main.csv").write_text(MAIN.replace("0.8612", "0.85172"))
    order = rows(params, kind="order", label="tab:main", metric="comet", direction="en-zh").iloc[0]
    assert (order["ours_text"], order["verdict"]) == ("oracle = ev > ratio", "2 of 3 pairs")


def test_nothing_is_run(params):
    """It waits for no study, and says so of each number."""
    found = compare(Params(params | {"tables": {}}))
    assert set(found["verdict"]) == {"not run", "not compared"}
    assert len(found[found["kind"] == "value"]) == len(means())


def test_each_table_has_a_number_and_each_label_its_tables():
    labels = {number.label for number in means()}
    assert TABLES_OF.keys() <= labels
    assert {name for names in TABLES_OF.values() for name in names} == FUNCTIONS.keys()


def test_a_table_of_other_columns_is_named():
    rows = TableRows(pd.DataFrame({"direction": ["en-zh"]}), {}, "comet22", 32, [1])
    with pytest.raises(InputError, match=r"main\.csv: its columns do not have tab:main comet: no column"):
        ours(find("tab:main", "comet", direction="en-zh", system="ev"), {"main": rows})


def test_several_runs_stand_for_their_mean_and_deviation():
    number = find("sec:appendix_method", "comet_lead", direction="en-zh", system="oracle-ratio")
    columns = {"direction": "en-zh", "testset": "wmt22", "backbone": "llada-8b", "first": "oracle", "second": "ratio"}
    frame = pd.DataFrame([{**columns, "seed": f"{seed}", "delta": f"0.{seed}"} for seed in (1, 2, 3)])
    tables = {"full_significance": TableRows(frame, {}, "comet22", 32, [1])}
    assert ours(number, tables) == (pytest.approx(0.2), pytest.approx(0.1))
