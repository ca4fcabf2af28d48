"""The paper's numbers against made-up tables of ours."""

import functools
import io
import math

import pandas as pd
import pytest

from entropy_valley.experiment.stats.paper_numbers import OurTables, means
from entropy_valley.experiment.tables.paper_comparison import compare

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


NAMES = {"llada-8b": "tiny", "wmt22": "grammar", "comet": "comet22", "T": "32", "run A": "7", "run B": "8"}


@functools.cache
def compared(main=MAIN):
    """The comparison of these two tables; the config has no others."""
    texts = {"main": main, "full_significance": TESTS}
    frames = {name: pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False) for name, text in texts.items()}
    return compare(OurTables(frames, NAMES), {}, True)


def rows(frame=None, **where):
    frame = compared() if frame is None else frame
    for key, value in where.items():
        frame = frame[frame[key] == value]
    return frame


def verdict(label, metric, frame=None, **named):
    (found,) = rows(frame, kind="value", label=label, metric=metric, **named)["verdict"]
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
def test_a_value_is_judged_by_the_spread_of_runs(metric, system, expected):
    assert verdict("tab:main", metric, system=system, direction="en-zh") == expected


def test_a_number_of_one_run_has_no_deviation_but_is_judged_by_that_of_all():
    place = {"label": "tab:full_significance", "metric": "comet_lead", "direction": "zh-en", "system": "ev-ratio"}
    for run, verdict_of_run in (("run A", "equal"), ("run B", "within")):
        (found,) = rows(kind="value", setting=run, **place).to_dict("records")
        assert found["verdict"] == verdict_of_run and math.isnan(found["ours_std"])


def test_bounds_hold_or_fail_and_runs_are_seeds():
    place = {"label": "tab:full_significance", "direction": "zh-en"}
    assert verdict(metric="p_one_sided", setting="run A", **place) == "holds"
    assert verdict(metric="p_one_sided", setting="run B", **place) == "fails"
    assert verdict(metric="p_one_sided", setting="run C", **place) == "not run"  # there is no third seed


@pytest.mark.parametrize(
    ("ratio", "here", "verdict"), [("0.83", "1 of 1", "same"), ("0.86", "0 of 1", "0 of 1 places")]
)
def test_a_claim_says_in_how_many_places_it_holds(ratio, here, verdict):
    claims = rows(compared(MAIN.replace("0.8300", ratio)), kind="claim")
    first = claims.iloc[0]
    assert (first["text"], first["ours_text"], first["verdict"]) == ("3 of 3", here, verdict)
    assert len(claims) == 5 and list(claims["verdict"][1:]) == ["not run"] * 4


def test_nothing_is_run():
    """It waits for no study, and says so of each number."""
    found = compare(OurTables({}, NAMES), {}, True)
    assert set(found["verdict"]) == {"not run", "not compared"} and not found["why"].isna().any()
    assert len(found[found["kind"] == "value"]) == len(means())
