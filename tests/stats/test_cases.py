"""Which sentences are shown, by rule."""

from __future__ import annotations

import pytest
from fake_sets import put, rows
from fake_texts import write_cases
from hypothesis import given
from hypothesis import strategies as st

from entropy_valley.errors import InputError
from entropy_valley.results import TRANSLATIONS
from entropy_valley.stats.cells import Params
from entropy_valley.tables.cases import BEYOND, FIELDS, KEPT, RULES, WIN, cases, chosen, curve
from entropy_valley.tables.coverage import NUMBERS, PLACEHOLDERS

ORG = {"source": "#PRS_ORG# calls #DATE#.", "ratio": ("#PRS_打。", 0.5)}


def found(root, *sentences, **over):
    params = write_cases(root, *sentences) | over
    return cases(Params(params))


def test_each_case_has_its_sentence_with_all_that_is_shown_of_it(tmp_path):
    rows = found(
        tmp_path,
        {},
        {"ratio": ("时间", 0.25), "ev": ("点击重置。", 0.75)},
        {**ORG, "ev": ("#PRS_ORG#打#DATE#。", 0.625)},
        {"ev": ("击", 0.25), "true": 5},
    )
    assert list(rows.columns) == FIELDS
    assert dict(zip(rows["case"], rows["id"], strict=True)) == {WIN: "t1", KEPT: "t2", BEYOND: "t3"}
    win, kept, loss = rows.itertuples()
    assert (win.source, win.reference, win.ratio_output, win.ev_output) == (
        "Tap Reset.",
        "点击重置。",
        "时间",
        "点击重置。",
    )
    assert (win.ratio_slots, win.ev_slots, win.oracle_slots) == (6, 8, 8)
    assert (win.ratio_score, win.ev_score, win.delta, loss.delta) == (0.25, 0.75, 0.5, -0.25)
    assert (kept.items, kept.ratio_kept, kept.ev_kept) == (PLACEHOLDERS, 0, 1)
    assert win.ratio_kept != win.ratio_kept
    assert curve(win) == ([6, 8, 9], [0.9, 0.3, 0.5])


def test_a_larger_share_that_is_kept_comes_before_a_larger_score(tmp_path):
    half = {**ORG, "ev": ("#PRS_ORG#", 0.75)}
    whole = {**ORG, "ev": ("#PRS_ORG##DATE#", 0.625)}
    rows = found(tmp_path, {"ev": ("", 0.9)}, half, whole, {**whole, "ev": ("#DATE##PRS_ORG#", 0.6875)})
    assert rows.set_index("case")["id"].to_dict() == {WIN: "t0", KEPT: "t3"}


def test_a_sentence_without_entropies_is_named(tmp_path):
    params = write_cases(tmp_path, {}, {})
    (ev,) = (cell for cell in params["cells"] if cell["method"] == "ev")
    texts = rows(ev, TRANSLATIONS)
    put(ev, TRANSLATIONS, [texts[0], {**texts[1], "canvas": {**texts[1]["canvas"], "scores": []}}])
    with pytest.raises(
        InputError, match=r"translations\.jsonl: test ev med-T8: sentence 't1' has 0 entropies of 3 cand"
    ):
        cases(Params(params))


def test_numbers_count_where_there_are_no_placeholders(tmp_path):
    rows = found(tmp_path, {"source": "Buy 29 of 30.", "ratio": ("买29", 0.5), "ev": ("买29 30", 0.5)})
    (row,) = rows.itertuples()
    assert (row.case, row.items, row.ratio_kept, row.ev_kept) == (KEPT, NUMBERS, 0.5, 1)


@pytest.mark.parametrize(("true", "shown"), [(5, True), (6, False), (9, False), (10, True)])
def test_beyond_the_grid_is_below_or_above_all_candidates(tmp_path, true, shown):
    assert len(found(tmp_path, {"ev": ("", 0.25), "true": true})) == shown


def test_a_metric_that_is_better_low_turns_wins_and_losses_round(tmp_path):
    params = write_cases(tmp_path, {"ev": ("", 0.25)}, {"ev": ("", 0.75), "true": 12})
    params["metrics"][0]["higher_is_better"] = False
    rows = cases(Params(params))
    assert rows.set_index("case")["id"].to_dict() == {WIN: "t0", BEYOND: "t1"}


def test_a_run_may_have_no_case(tmp_path):
    rows = found(tmp_path, {}, {})
    assert (len(rows), list(rows.columns)) == (0, FIELDS)


numbers = st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0])
sentence = st.fixed_dictionaries(
    {"lead": numbers, "more_kept": st.one_of(numbers, st.just(float("nan"))), "beyond": st.booleans()}
)


@given(st.lists(sentence, max_size=8))
def test_no_sentence_comes_twice_and_none_that_is_left_is_larger(listed):
    listed = [one | {"id": at} for at, one in enumerate(listed)]
    taken = dict(chosen(listed))
    assert len({one["id"] for one in taken.values()}) == len(taken)
    others = [one for one in listed if one not in taken.values()]
    for case, (counts, size) in RULES.items():
        left = [size(one) for one in others if counts(one)]
        assert case in taken or not left
        assert case not in taken or size(taken[case]) >= max(left, default=size(taken[case]))
