"""Each table and figure of the paper is a target of the same name."""

from __future__ import annotations

import pytest

from entropy_valley.experiment import tables
from entropy_valley.experiment.config import base_files, load_files

TABLES = {
    *("main", "ar_reference", "faithfulness_summary", "human_eval", "hyperparams", "candidate_range", "ratio_sweep"),
    *("multi_candidate", "direct_length_baselines", "full_pareto", "full_significance", "fwdcount_control"),
    *("coverage", "failure_buckets", "order_sweep_summary", "negative_order", "crossbb", "crossbb_bleu"),
    *("defr_transfer", "human_eval_details"),
}
FIGURES = {"cases", "method", "hero", "crossbb", "dissociation", "pareto", "human_eval"}
LABELS = {f"tables/{name}" for name in TABLES} | {f"figures/{name}" for name in FIGURES}


@pytest.mark.parametrize("files", [[], ["config/demo.yaml", "config/demo-full.yaml"]], ids=["paper", "demo-full"])
def test_each_label_of_the_paper_is_a_target(files):
    made = tables.configured(load_files([*base_files(), *files], tables.problems))
    assert not LABELS - made.keys()
