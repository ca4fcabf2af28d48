"""Made-up params of every report, with their files; run, it writes what their tables and numbers are: golden/.

PYTHONPATH=tests:tests/tables python tests/tables/made_up.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import fake_corpora
import fake_coverage
import fake_orders
import fake_ratings
import fake_results
from fake_texts import add_canvases, write_cases
from test_config_tables import write_adapters
from test_cost_table import params as write_costs

from entropy_valley import tables

GOLDEN = Path(__file__).with_name("golden")
BOTH = {("oracle", "med"): [0.5] * 5, ("oracle", "sig_first"): [0.6] * 5}
STUDY = {"columns": ["comet", "closure_best", "lead"], "against": ["ev", "med", 8], "fixed": ["ratio"]}
MED = {"med": {"order": "med", "settings": {}, "source_guided": False}}
PROMPT = {"direction": "en-zh", "prompt": "Translate English to Chinese.\n\nEnglish: {src}\nChinese: "}
NOTHING_RUN = {
    "names": {},
    "metric": "comet22",
    "metric_label": "COMET",
    "paper_label": "COMET-22",
    "steps": 32,
    "seeds": [1],
    "values": True,
    "settings": [],
}
MADE_UP = {
    "tables/main": lambda root: fake_results.write(root),
    "tables/crossbb": lambda root: fake_results.write(root, backbones={"llada-tiny": (1, 2), "dream-tiny": (1,)}),
    "tables/crossbb_bleu": lambda root: fake_results.write(root) | {"shown": ["bleu"]},
    "tables/full_significance": lambda root: fake_results.write(root),
    "tables/ar_reference": lambda root: fake_results.write(root, autoregressive={"llama3-tiny": (1, 2)}),
    "tables/dream_instruct": lambda root: fake_results.write_instruct(root),
    "tables/systems": lambda root: fake_results.write(root) | STUDY,
    "tables/transfer": lambda root: fake_results.write_pools(root) | {"columns": [], "against": ["ev", "med", 8]},
    "tables/orders": lambda root: fake_orders.write(root, BOTH),
    "tables/categories": lambda root: fake_orders.write(root, BOTH),
    "tables/checks": lambda root: fake_results.write_selector_checks(root),
    "tables/budgets": lambda root: fake_results.write(root, steps=(4, 8)),
    "tables/matrix": lambda root: {**fake_results.write(root, steps=(4, 8)), "orders": MED, "main": "med"},
    "tables/coverage": lambda root: fake_coverage.write(root),
    "tables/faithfulness_summary": lambda root: fake_coverage.write(root),
    "tables/failure_buckets": lambda root: fake_coverage.write(root),
    "tables/reproduction": lambda root: fake_results.write(root),
    "tables/readings": lambda root: {
        **fake_results.write(root),
        "origins": {"llada-tiny": "llada-tiny"},
        "against": "ev",
    },
    "tables/dissociation": lambda root: add_canvases(fake_results.write(root)),
    "tables/cases": lambda root: write_cases(root, {"ev": ("点", 0.9)}),
    "figures/cases": lambda root: write_cases(root, {"ev": ("点", 0.9)}),
    "figures/dissociation": lambda root: add_canvases(fake_results.write(root, sentences=4)),
    "tables/hyperparams": write_adapters,
    "tables/prompts": lambda root: {
        "backbones": [["tiny", "Tiny"]],
        "prompts": [{**PROMPT, "backbone": "tiny", "decoded_as": "zh-en"}],
    },
    "tables/cost": lambda root: write_costs(root, root / "benchmarks"),
    "tables/human_eval": fake_ratings.write,
    "tables/human_eval_details": fake_ratings.write,
    "figures/human_eval": fake_ratings.write,
    "tables/paper_comparison": lambda root: {**NOTHING_RUN, "tables": {}},
    "tables/corpus": lambda root: fake_corpora.write(root),
    "figures/hero": lambda root: fake_results.write(root),
    "figures/method": lambda root: {"ratios": [0.55, 0.62, 0.71, 0.8, 1.0], "steps": 32, "schedule": "llada"},
    "figures/crossbb": lambda root: fake_results.write(root),
    "figures/entropy_valley": lambda root: fake_results.write_selector_checks(root),
    "figures/selector_checks": lambda root: fake_results.write_selector_checks(root),
    "figures/systems": lambda root: fake_results.write(root),
    "figures/budgets": lambda root: fake_results.write(root, steps=(4, 8)),
}


def make(key, root):
    """Make a report of made-up params below ``root``; the paths of its files by ending."""
    outputs = {ending: root / f"out.{ending}" for ending in tables.find(key).endings}
    how = {"report": key, "caption": "A caption.", "root": str(root), "here": str(root)}
    tables.write(MADE_UP[key](root), how, list(map(str, outputs.values())))
    return outputs


def golden(key, ending):
    return GOLDEN / f"{key.replace('/', '_')}.{ending}"


def kept(key):
    """The endings of the files that are kept; the comparison with the paper is long, and has tests of its own."""
    endings = tables.find(key).endings
    return [] if key == "tables/paper_comparison" else [ending for ending in ("md", "csv") if ending in endings]


if __name__ == "__main__":
    for key in tables.REPORTS:
        with tempfile.TemporaryDirectory() as folder:
            outputs = make(key, Path(folder))
            for ending in kept(key):
                golden(key, ending).write_bytes(outputs[ending].read_bytes())
