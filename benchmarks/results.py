"""Loading results: the paper's whole matrix as two frames, and the part that the main table reads.

    python benchmarks/results.py

Writes 540 cells of 2,037 sentences (3 backbones, 3 directions, 3 seeds, 4 length methods, 5 step budgets) into a
temporary folder, about 400 MB, and loads them in processes of their own.
"""

import itertools
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from entropy_valley import files, load_results
from entropy_valley.experiment.frames import read_sets
from entropy_valley.results import SCORES, TRANSLATIONS, Record, System, record_path, tidy

SENTENCES = 2037
BACKBONES, DIRECTIONS, SEEDS = ("llada-8b", "dream-7b", "diffullama-7b"), ("en-zh", "zh-en", "en-de"), (1, 2, 3)
SYSTEMS = [
    System("wmt22", method, "med", steps)
    for method, steps in itertools.product(("oracle", "ratio", "ratio_eos", "ev"), (8, 16, 32, 64, 128))
]


def write(root: Path) -> None:
    """All runs have the same rows."""
    draw = random.Random(0)
    ids = [f"wmt22-{number:04d}" for number in range(SENTENCES)]
    texts = {
        name: " ".join(draw.choices(["der", "Satz", "ist", "hier", "und", "dort", "wieder", "so", "lang"], k=24))
        for name in ids
    }
    translations, scores = {}, {}
    for system in SYSTEMS:
        costs = {"calls": system.steps, "slots": 31 * system.steps, "passes": 28, "run_tokens": 2100, "head_rows": 900}
        canvas = {"length": 31, "candidates": [25, 28, 31, 34, 37], "scores": [3.25, 3.11, 3.02, 3.08, 3.3]}
        tokens = draw.choices(range(100_000), k=30)
        translations[system] = [
            {
                "id": name,
                "hypothesis": texts[name],
                "length": 31,
                "tokens": tokens,
                "logprob": -0.5,
                **costs,
                "canvas": canvas,
            }
            for name in ids
        ]
        scores[system] = [{"id": name, "comet22": round(draw.uniform(0.5, 1), 6), "chrf": 55.5} for name in ids]
    for direction in DIRECTIONS:
        rows = [{"id": name, "source": texts[name], "target": texts[name]} for name in ids]
        files.write_jsonl(root / "corpus" / direction / "test/wmt22.jsonl", rows)
    for direction, backbone, seed in itertools.product(DIRECTIONS, BACKBONES, SEEDS):
        folder = root / direction / backbone / f"seed{seed}" / "matrix"
        for name, parts in ((TRANSLATIONS, translations), (SCORES, scores)):
            path = folder / name
            files.write_jsonl(path, tidy(parts))
            facts = [{**system._asdict(), "sentences": SENTENCES} for system in parts]
            outputs = {name: {"digest": files.file_digest(path)}}
            Record("score", str(path), {}, {}, outputs, {"cells": facts}).write(record_path(path))


def load(root: str, part: str) -> None:
    """Load a part, and print the seconds, those of the CPU, and the most memory that the process had."""
    started = time.perf_counter()
    if part == "whole":
        sentences, cells = load_results(root)
    else:
        runs = [f"{root}/{direction}/llada-8b/seed{seed}/matrix" for direction in DIRECTIONS for seed in SEEDS]
        shown = [system for system in SYSTEMS if system.steps == 32]
        sentences, cells = read_sets(root, dict.fromkeys(runs, shown))
    took, memory = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    seconds = f"{took:.1f} s, CPU {time.process_time():.1f} s"
    print(f"{part}: {len(cells)} cells, {len(sentences):,} sentences: {seconds}, {memory:.2f} GB")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        load(*sys.argv[1:])
    else:
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder))
            for part in ("main", "whole"):
                subprocess.run([sys.executable, __file__, folder, part], check=True)
