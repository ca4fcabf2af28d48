"""The tables of reveal orders, on made-up results small enough to work out."""

from __future__ import annotations

import math

import fake_orders
import pytest
from fake_sets import diagnose
from making import made

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.stats.cells import ScoredCell
from entropy_valley.tables.categories import Categories
from entropy_valley.tables.order_sweep import Orders

MED = [0.5, 0.5, 0.5, 0.5, 0.5]
SIG = [0.6, 0.7, 0.3, 0.5, 0.45]  # its lead: +.1, +.2, -.2, 0, -.05
SWEEP = {
    ("oracle", "med"): MED,
    ("oracle", "random"): [0.1] * 5,
    ("oracle", "sig_first"): SIG,
    ("oracle", "hybrid_25"): [0.45] * 5,
    ("ratio", "med"): [0.3] * 5,
    ("ev", "med"): [0.4] * 5,
}
CHALLENGE = {system: SWEEP[system] for system in [("oracle", "med"), ("oracle", "sig_first")]}


@pytest.fixture
def sweep(tmp_path):
    return fake_orders.write(tmp_path, SWEEP, seeds=(1, 2))


@pytest.fixture
def challenge(tmp_path):
    return fake_orders.write(tmp_path, CHALLENGE)


def swept(params):
    return made(Orders, params)


def challenged(params):
    return made(Categories, params)


def rows_of(table):
    return [
        (section.heading, {group.label: [cell.text for cell in group.rows[0].cells] for group in section.groups})
        for section in table.sections
    ]


class TestOrderSweep:
    def test_the_span_leaves_controls_out_and_is_set_against_the_length_gaps(self, sweep):
        """0.51 − 0.45; Oracle leads Ratio by 0.2, and EV by 0.1."""
        table, numbers = swept(sweep)
        _, _, (_, spans), *_ = rows_of(table)
        assert spans["Source-guided span (max − min)"] == ["0.0600", *["–"] * 6]
        assert spans["Oracle − Ratio"][:3] == ["+0.2000", "–", "3.3× the span"]
        assert spans["EV − Ratio"][:3] == ["+0.1000", "–", "1.7× the span"]
        found = numbers[(numbers.order == "") & (numbers.seed == 1)].set_index("metric")["value"]
        assert found["source_guided_span"] == pytest.approx(0.06)
        assert found["span"] == pytest.approx(0.41)

    def test_the_span_is_of_the_guided_orders_alone_and_beside_it_with_med(self, tmp_path):
        """0.51 and 0.55; MED has 0.5, and the random order does not count."""
        params = fake_orders.write(tmp_path, SWEEP | {("oracle", "hybrid_25"): [0.55] * 5})
        table, numbers = swept(params)
        _, _, (_, spans), *_ = rows_of(table)
        assert (spans["Source-guided span (max − min)"][0], spans["The same with MED"][0]) == ("0.0400", "0.0500")
        assert spans["Oracle − Ratio"][2] == "5.0× the span"
        found = numbers[numbers.order == ""].set_index("metric")["value"]
        assert found["main_and_guided_span"] == pytest.approx(0.05) and found["span"] == pytest.approx(0.45)

    def test_the_main_order_must_be_there(self, sweep):
        cells = [cell for cell in sweep["cells"] if (cell["method"], cell["order"]) != ("oracle", "med")]
        with pytest.raises(InputError, match="no cell of oracle and med"):
            swept(sweep | {"cells": cells})

    def test_a_users_own_order_goes_by_its_name(self, sweep):
        mine = {"order": "mine:Order", "settings": {"reach": 2}, "source_guided": True}
        (_, guided), *_ = rows_of(swept(sweep | {"orders": sweep["orders"] | {"random": mine}})[0])
        assert "random" in guided


class TestChallenge:
    def test_categories_by_the_authors_rules(self, challenge):
        """By theirs one source has two names, and a number needs two digits."""
        (_, rows), _ = rows_of(challenged({**challenge, "challenge": "first"})[0])
        counts = {name: rows[name][0] for name in rows}
        ours, _ = rows_of(challenged(challenge)[0])
        assert counts != {name: row[0] for name, row in ours[1].items()}

    def test_spearman_by_hand(self, challenge):
        """Concentrations fall 5 4 3 2 1 in rank; the leads' ranks are 4 5 1 3 2: ρ = 1 − 6 (1+1+4+1+1) / 120 = 0.6."""
        table, numbers = challenged(challenge)
        found = numbers[numbers.category == "overall"].set_index("metric")["value"]
        assert found["spearman_rho"] == pytest.approx(0.6)
        assert 0.2 < found["spearman_p"] < 0.4
        texts = [note.text for note in table.notes]
        assert any(
            "SIG-Concentration and its SIG-first − MED: +0.6000, two-sided p = 0.2848, N = 5" in t for t in texts
        )

    def test_equal_leads_have_no_correlation(self, tmp_path):
        value = fake_orders.write(tmp_path, {**CHALLENGE, ("oracle", "sig_first"): [0.6] * 5})
        table, numbers = challenged(value)
        assert math.isnan(numbers[numbers.metric == "spearman_rho"]["value"].item())
        assert any("MED: n/a (LLaDA-tiny" in note.text for note in table.notes)

    @pytest.mark.parametrize("which", ["testset", "sig"])
    def test_files_of_other_sentences_are_refused(self, challenge, which):
        if which == "sig":
            first = ScoredCell(**challenge["cells"][0])
            *rows, last = first.diagnostics("sig")
            diagnose(first, "sig", [*rows, last | {"id": "t9"}])
        else:
            path = next(iter(challenge["testsets"].values()))
            *rows, last = files.read_jsonl(path)
            files.write_jsonl(path, [*rows, last | {"id": "t9"}])
        with pytest.raises(InputError, match=r"not the sentences of .*2 ids are in one only, such as 't4'|'t9'"):
            challenged(challenge)
