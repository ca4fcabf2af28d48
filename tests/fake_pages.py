"""Made-up texts and scores of the systems on one test set, as the page of its sentences reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from finished import METRIC, Run

from entropy_valley.experiment.tables import pages
from entropy_valley.results import SCORES, TRANSLATIONS

Output = tuple[str, float]  # a translation and its score


def write(folder: Path, pairs: Sequence[tuple[str, str]], outputs: Mapping[str, Sequence[Output]]) -> Path:
    """The page of these systems, by method, and of a beam search whose outputs are the references."""
    run = Run(folder)
    systems = {**outputs, "beam4": [(y, 0.5) for _, y in pairs]}
    shown = [cell for cell in pages.cells(run.experiment)["en-zh", "grammar"] if cell.method in systems]
    shown = [cell for cell in shown if cell.backbone in ("llada-tiny", "llama3-tiny")]
    names = [f"test-{number}" for number in range(len(pairs))]
    rows = [{"id": name, "source": x, "target": y} for name, (x, y) in zip(names, pairs, strict=True)]
    run.replace(run.root / f"corpus/{shown[0].direction}/test/{shown[0].testset}.jsonl", rows)
    for cell in shown:
        ev = cell.method == "ev"
        grid = {"candidates": [6, 5, 8], "scores": [0.25, 0.5, 0.75]} if ev else {"candidates": [6], "scores": []}
        chosen = {} if cell.autoregressive else {"canvas": {"length": 6, **grid}}
        given = list(zip(names, systems[cell.method], strict=True))
        texts = [{"id": name, "hypothesis": text, "length": 6, "tokens": [1], **chosen} for name, (text, _) in given]
        run.put(cell, TRANSLATIONS, texts)
        run.put(cell, SCORES, [{"id": name, METRIC: score, "chrf": 100 * score} for name, (_, score) in given])
    path = folder / "en-zh.grammar.html"
    pages.write_sentences(path, run.results, shown)
    return path
