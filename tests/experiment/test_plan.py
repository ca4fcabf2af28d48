"""What a dry run says of its jobs."""

from __future__ import annotations

import itertools
import json
from types import SimpleNamespace

import pytest

from entropy_valley.experiment import plan
from entropy_valley.experiment.plan import Job


def rows(**values):
    return [dict(zip(values, row, strict=True)) for row in itertools.product(*values.values())]


def cells(wildcards, room):
    return plan.cells(wildcards, room).replace(plan.GLUE, " ")


def reason(**said):
    nothing = {"forced": False, "code_changed": False, "software_stack_changed": False, "input_changed": False}
    files = dict.fromkeys(("missing_output", "incomplete_output", "updated_input", "updated_input_run"), frozenset())
    return SimpleNamespace(**{**nothing, **files, "params_changed": change([], []), **said})


def change(before, now):
    """Params as Snakemake keeps them: the repr of each."""
    sides = ({repr(json.dumps(value)) for value in side} for side in (before, now))
    return type("Change", (SimpleNamespace,), {"__bool__": lambda self: bool(self.only_old)})(
        **dict(zip(("only_old", "only_new"), sides, strict=True))
    )


def test_cells_that_are_a_product():
    some = rows(direction=["en-zh", "zh-en"], seed=["1", "2", "3"], steps=["32"])
    assert cells(some, 80) == "en-zh zh-en × seeds 1–3 × T 32"


def test_cells_that_are_two_products():
    some = rows(direction=["en-zh", "zh-en"], backbone=["a", "b"], seed=["1", "3"])
    some += rows(direction=["en-zh"], backbone=["c"], seed=["1"])
    assert cells(some, 80) == "en-zh zh-en × a b × seeds 1 3; en-zh × c × seed 1"


def test_cells_that_find_no_room_are_counted():
    methods = [f"a_long_name_{number}" for number in range(20)]
    assert cells(rows(method=methods, testset=["wmt22", "dev"]), 40) == "20 methods × wmt22 dev"
    ragged = [{"method": method, "seed": str(place)} for place, method in enumerate(methods)]
    assert cells(ragged, 40) == "20 methods, seeds 0–19"


def test_a_line_for_each_rule_and_its_reasons():
    jobs = [Job("train", one, "missing output") for one in rows(seed=["1", "2"])]
    jobs += [Job("canvas", one, "", ("train",)) for one in rows(seed=["1", "2", "3"])]
    jobs += [Job("canvas", {"seed": "4"}, "forced"), Job("all", {}, "", ("canvas",)), Job("audit", {}, "")]
    said = [" ".join(line.split()) for line in plan.summary(jobs).splitlines() if line]
    assert said[0] == "8 jobs:"
    assert said[2:] == [
        "train 2 seeds 1 2 missing output",
        "canvas 4 seeds 1–4 input from train (3); forced (1)",
        "all 1 input from canvas",
        "audit 1 always runs",
    ]


def test_a_plan_without_jobs():
    assert plan.summary([]) == "Nothing to be done.\n"


def test_no_line_is_wider_than_the_page():
    methods = [f"a_long_name_{number}" for number in range(20)]
    jobs = [Job("decode", one, "params changed: " + ", ".join(methods)) for one in rows(method=methods)]
    assert max(map(len, plan.summary(jobs).splitlines())) <= plan.WIDTH


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ({"forced": True, "missing_output": {"a"}}, "forced"),
        ({"missing_output": {"stamp"}}, "temporary, needed now"),
        ({"missing_output": {"stamp", "a"}}, "missing output"),
        ({"missing_output": {"a"}, "updated_input_run": {"b"}}, "missing output"),
        ({"code_changed": True, "input_changed": True}, "command changed, other input files"),
        ({"updated_input": {"b", "a", "c"}}, "newer input: a, b … (3 files)"),
        ({"updated_input": {"a"}, "updated_input_run": {"a"}}, ""),
    ],
)
def test_reasons_in_a_few_words(said, text):
    assert plan.why(reason(**said), ["stamp"]) == text


def test_changed_params_are_named_by_their_keys():
    before = {"selector": {"ratios": [0.7], "score": "mean"}, "seed": 1}
    now = {"selector": {"ratios": [0.8], "score": "mean"}, "seed": 1, "new": None}
    assert plan.why(reason(params_changed=change([before], [now]))) == "new, selector.ratios"
    other = SimpleNamespace(only_old={"'a'"}, only_new={"'b'"})
    assert plan.changed_params(other) == []
