"""The rows of each set: their sentences, texts, canvases and costs, what the header says of each cell, and the scores
again as their job has made them: by sacreBLEU, and by COMET with each text once."""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from entropy_valley.decoding.requests import Denoising
from entropy_valley.errors import InputError, listed
from entropy_valley.experiment.verification.folder import Cell, Folder, Report, Row, Unchecked, testset_file
from entropy_valley.lengths import Choice, Sentence, make_method
from entropy_valley.results import SCORES, TRANSLATIONS, System
from entropy_valley.scoring import from_params, metrics
from entropy_valley.scoring.comet import MainComet
from entropy_valley.scoring.metrics import Scorer, ScoringJob
from entropy_valley.scoring.sets import Outputs, read_outputs, score_cells
from entropy_valley.texts import counted
from entropy_valley.translation import autoregressive, translations

ON_GRID = ("ev", "neighbours", "lr_style", "eos_probe")  # they probe a grid of ratios
UNPROBED = ("oracle", "oracle_on_grid", "ratio")  # they need the numbers of tokens alone
NO_TOKENIZER = Unchecked("the backbone's tokenizer is not at hand")
NO_COUNTS = Unchecked("the numbers of tokens are not among the results")
NO_TESTSET = Unchecked("the test set is not among the results")
NEAR = 1e-5  # between two computations of COMET, whose sums differ in their order
ROWS = 16  # texts that COMET reads together: less time, and digits beyond `NEAR`
NO_COMET = Unchecked("COMET's checkpoint is not at hand (--comet names one)")
OWN = Unchecked("a further metric: a checkpoint of COMET, or the user's own")
Tokens = Mapping[str, tuple[int, int]]


def check(folder: Folder, report: Report) -> None:
    """Check every row of every set, and what its header says of each cell."""
    for cell in folder.cells(report, TRANSLATIONS):
        with report.reading("rows", cell.file):
            check_ids(folder, report, cell)
            prompt, first_line = folder.prompt(cell.backbone), cell.params.get("first_line", False)
            for row in cell.rows:
                text = prompt.text(row["tokens"], first_line) if prompt else NO_TOKENIZER
                report.compare("texts", cell.file, f"line {row['line']}, hypothesis", row["hypothesis"], text)
            tokens = folder.tokens(cell.direction, cell.backbone, cell.system.testset)
            # An autoregressive system has no canvas.
            if cell.denoising:
                _check_canvases(report, cell, cell.denoising, tokens)
            _check_totals(report, cell, tokens)


def check_ids(folder: Folder, report: Report, cell: Cell) -> None:
    """A row for each sentence of the test set, in its order."""
    ids, stored = [*folder.testset(cell.direction, cell.system.testset)], [row["id"] for row in cell.rows]
    # Missing and foreign sentences, by name; then doubles and the order.
    different = sorted({*ids} ^ {*stored}) if ids else []
    if different:
        sentences = f"{counted(len(different), 'sentence')} of rows or test set alone: {listed(different, 5)}"
        report.differ("rows", cell.file, f"{cell.system.label} has {sentences}")
    else:
        report.compare("rows", cell.file, f"sentences of {cell.system.label}", stored, ids or NO_TESTSET)


def check_tokens(folder: Folder, report: Report) -> None:
    """Count the tokens of every test set again."""
    for path in sorted(folder.root.glob("*/*/tokens/*.jsonl")):
        file = path.relative_to(folder.root)
        direction, backbone, testset = file.parts[0], file.parts[1], file.stem
        with report.reading("token counts", file):
            prompt, texts = folder.prompt(backbone), folder.testset(direction, testset)
            stored = folder.tokens(direction, backbone, testset)
            # A sentence that one of the two files lacks is a difference.
            for sentence in dict.fromkeys([*stored, *texts]):
                follows: Any = None if texts else NO_TESTSET
                if prompt is None:
                    follows = NO_TOKENIZER
                elif text := texts.get(sentence):
                    follows = len(prompt.tokens(text["source"])), len(prompt.tokens(text["target"]))
                report.compare("token counts", file, f"tokens of {sentence}", stored.get(sentence), follows)


# --- Canvases: chosen from the numbers of tokens and from the scores in the row, as the length method does.


def _check_canvases(report: Report, cell: Cell, denoising: Denoising, tokens: Tokens) -> None:
    """The candidates from the numbers of tokens, the choice from the candidates' scores, calls and slots from both."""
    settings = cell.params["methods"][cell.system.method]
    # A block of the config may be a method under another name.
    kind = settings.get("method", cell.system.method)
    method = make_method(cell.system.method, settings) if kind in (*ON_GRID, *UNPROBED) else None
    for row in cell.rows:
        canvas, sentence = row["canvas"], row["id"]
        candidates: Any = Unchecked(f"the candidates of {kind}: they depend on what is not stored")
        if method and sentence not in tokens:
            candidates = NO_COUNTS
        elif method:
            known = Sentence(*tokens[sentence])
            candidates = [method.choose(known, {}).length] if kind in UNPROBED else sorted(method.propose(known, {}))
        length: Any = canvas["length"]
        costs: Any = _costs(denoising, row, kind)
        if denoising.variable_length:
            length = costs = Unchecked("a canvas that changes in decoding")
        elif "contenders" in canvas:
            length = Unchecked("which of several translations is kept: the others are not stored")
        values = (
            ("canvas.candidates", canvas["candidates"], candidates),
            ("canvas.length", canvas["length"], _chosen(kind, canvas)),
            ("length", row["length"], length),
            ("calls and slots", (row["calls"], row["slots"]), costs),
        )
        for key, stored, follows in values:
            report.compare("canvases", cell.file, f"line {row['line']}, {key}", stored, follows)


def _chosen(kind: str, canvas: Mapping[str, Any]) -> int | Unchecked:
    """The candidate of the lowest score; DAEDAL takes its longest, a method without scores its only one."""
    candidates, scores = canvas["candidates"], canvas["scores"]
    if kind == "daedal":
        return max(candidates)
    if scores:
        if kind in ("cal", "length_head") and scores.count(min(scores)) > 1:
            return Unchecked(f"a tie of {kind}: the first in the order of its search wins")
        return Choice.lowest(dict(zip(candidates, scores, strict=True))).length
    if len(candidates) == 1 and kind not in ON_GRID:
        return candidates[0]
    return Unchecked(f"the choice of {kind}: it depends on what is not stored")


def _costs(denoising: Denoising, row: Row, kind: str) -> tuple[int, int]:
    """Calls and slots as the paper counts them: a probe a candidate, then the passes of the order over each canvas; one
    more over each of several that are scored again. A search may have probed more than its candidates."""
    canvas = row["canvas"]
    # Lengths that no pass has read cost nothing.
    probed = canvas["candidates"] if canvas["scores"] else []
    decoded = canvas.get("contenders", [canvas["length"]])
    passes = denoising.calls + bool(canvas.get("rescoring") and len(decoded) > 1)
    is_grid = kind in (*ON_GRID, *UNPROBED, "reassigned")
    calls, slots = (len(probed), sum(probed)) if is_grid else (canvas["calls"], canvas["slots"])
    return calls + passes * len(decoded), slots + passes * sum(decoded)


def _check_totals(report: Report, cell: Cell, tokens: Tokens) -> None:
    """What the header says of a cell, from its rows."""
    part, label = "totals of cells", cell.system.label
    if not cell.denoising:
        totals = autoregressive.summary(cell.rows)
    elif all(row["id"] in tokens for row in cell.rows):
        totals = translations.summary(cell.rows, [tokens[row["id"]][1] for row in cell.rows], cell.denoising)
    else:
        # Or the test set lacks a sentence, which is a difference already.
        report.compare(part, cell.header, label, None, NO_COUNTS)
        return
    for name, total in totals.items():
        report.compare(part, cell.header, f"{name} of {label}", cell.entry.get(name), total)


# --- The scores.


def check_scores(folder: Folder, report: Report, comet: Path | None, device: str) -> None:
    """Score the translations of every set again. ``comet`` is a checkpoint of the main metric, where the folder has
    none of its own."""
    # By name and settings: a COMET is loaded once, and knows the texts that it has scored.
    scorers: dict[str, Scorer] = {}
    for _, of_set in itertools.groupby(folder.cells(report, SCORES), key=lambda cell: cell.home):
        cells = [*of_set]
        outputs = _outputs(folder, report, cells)
        # The cells of a set share a header and its params.
        header, params = cells[0].header, cells[0].params
        with report.reading("scores", header):
            for name, metric in from_params({**params, "metrics": {}}).items():
                scorer = scorers.setdefault(f"{name} {metric!r}", metric)
                with report.reading("scores", header):
                    job = _job(folder, params["target_language"], name, scorer, comet, device)
                    again = {} if isinstance(job, Unchecked) else score_cells(name, scorer, job, outputs)
                    for cell in cells:
                        if cell.system in outputs:
                            _compare(report, cell, name, outputs[cell.system].ids, again.get(cell.system, job))


def _outputs(folder: Folder, report: Report, cells: list[Cell]) -> dict[System, Outputs]:
    """The translations of each cell beside its test set, where their sentences are the same."""
    outputs = {}
    for cell in cells:
        with report.reading("rows", cell.file):
            check_ids(folder, report, cell)
            label, stored = cell.system.label, cell.entry.get("sentences")
            report.compare("totals of cells", cell.header, f"sentences of {label}", stored, len(cell.rows))
            for name in cell.params.get("metrics", {}):
                report.compare("further metrics", cell.header, f"{name} of {label}", None, OWN)
            testset = folder.root / testset_file(cell.direction, cell.system.testset)
            if not testset.is_file():
                report.compare("scores", cell.header, label, None, NO_TESTSET)
                continue
            file = f"{cell.home}/{TRANSLATIONS}"
            outputs[cell.system] = read_outputs(testset, folder.rows(file).get(cell.system, []), f"{file}: {label}")
    return outputs


def _job(
    folder: Folder, language: str, name: str, metric: Scorer, comet: Path | None, device: str
) -> ScoringJob | Unchecked:
    """What a metric needs to score, or why it cannot."""
    checkpoint = None
    if isinstance(metric, MainComet):
        trained_here = folder.root / "comet"
        checkpoint = comet or (trained_here if metric.checkpoint is None and trained_here.exists() else None)
        if checkpoint is None:
            return NO_COMET
    job = ScoringJob(language, checkpoint, device, rows=ROWS if device == "cpu" else None)
    try:
        metrics.prepare(name, metric, job)
    # As where a tokenizer of sacreBLEU is not installed.
    except InputError as error:
        return Unchecked(f"{error.place}: {error.problem}")
    return job


def _compare(report: Report, cell: Cell, name: str, ids: Sequence[str], again: Any) -> None:
    """Compare the scores of a cell and of its sentences with those ``again``, or say why there are none. COMET's score
    of a cell is the mean of its rows, with or without a checkpoint."""
    part, within = ("BLEU and chrF", 0.0) if name in ("bleu", "chrf") else ("COMET", NEAR)
    place, stored = f"{name} of {cell.system.label}", cell.entry.get(name)
    if part == "COMET":
        mean = sum(row[name] for row in cell.rows) / len(cell.rows)
        report.compare(part, cell.header, f"{place}, the mean of its rows", stored, mean)
    if isinstance(again, Unchecked):
        report.compare(part, cell.header, place, stored, again)
        return
    report.compare(part, cell.header, place, stored, again.system, within)
    # Other weights may give nearly the same scores.
    if again.digest:
        used = cell.entry.get("digests", {}).get("comet")
        report.compare(part, cell.header, f"digest of the checkpoint of {name}", used, again.digest)
    segments = dict(zip(ids, again.segments or (), strict=False))
    for row in cell.rows if segments else ():
        score = segments.get(row["id"])
        report.compare(part, cell.file, f"line {row['line']}, {name}", row.get(name), score, within)
