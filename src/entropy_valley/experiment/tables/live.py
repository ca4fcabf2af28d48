"""``live.html``: the tiny model of a run in one page, which translates what is typed into it, in a browser.

Here the page gets the files of the run as they are: checkpoint, tokenizer and the adapter of each direction, with the
settings that the headers of its translations have. The computation is in ``templates/live``: ``model.js``,
``tokenizer.js``, ``lengths.js`` and ``denoising.js`` are a decoder of their own, which shares nothing with the engine.
``worker.js`` calls them in a thread, and ``page.js`` draws.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.experiment.config import Experiment, paths
from entropy_valley.experiment.config.matrix import Cell, Run, sets_of, single_name
from entropy_valley.experiment.tables import render
from entropy_valley.experiment.tables.coverage import EXTRACTORS, PLACEHOLDERS
from entropy_valley.experiment.tables.formats import Names
from entropy_valley.experiment.tables.report import Results, require_of_config
from entropy_valley.model import adapters, checkpoint
from entropy_valley.model.checkpoint import WHOLE
from entropy_valley.results import Record, header_path, moved, read_record, rows
from entropy_valley.settings import read_object

NAME = "live.html"
RATIOS = ("ratio", "ratio_eos")
METHODS = (*RATIOS, "ev", "ev_fit")  # from top to bottom
FAMILY = "llada"
# What `lengths.js` computes: classes of length methods; and the params that `model.js` and `denoising.js` compute.
CLASSES = ("ratio", "ev", "ev_fit")
COMPUTED = {
    "family": FAMILY,
    "bos": False,
    "shifted": False,
    "attention": "bidirectional",
    "schedule": "llada",
    "mask_token": "never",
    "prompt_cache": 1,
}
REMEDY = "Make the page of the demo: snakemake --workflow-profile demo live."


def cells(experiment: Experiment) -> dict[str, list[Cell]]:
    """By direction, the cells that the page repeats: the first run of the main backbone, with each of ``METHODS``.

    Raises InputError for a backbone that is not a tiny one of LLaDA's family, and for another order than MED.
    """
    # A browser has neither the memory nor the time for a larger model.
    matrix, main = experiment.matrix, experiment.tables
    backbone = experiment.backbones[main.backbone]
    if backbone.pretraining is None or backbone.family != FAMILY:
        raise InputError(NAME, f"{backbone.label} is not a tiny model of the family {FAMILY}", REMEDY)
    if main.order != "med":
        raise InputError(NAME, f"the order of the main tables is {main.order}; the page has MED alone", REMEDY)
    # One run is enough to look at.
    seed = matrix.seeds_of.get(main.backbone, matrix.seeds)[0]
    shown = {}
    for direction in matrix.directions:
        run, first = Run(direction, main.backbone, seed), experiment.directions[direction].tests[0]
        shown[direction] = [Cell(run, first, method, main.order, main.steps) for method in METHODS]
    return shown


def inputs(experiment: Experiment) -> list[str]:
    """Every result that the page reads."""
    read = []
    for shown in cells(experiment).values():
        run = shown[0].run
        adapter = paths.adapter_folder(experiment, run)
        read += [*paths.backbone_files(experiment, run.backbone, run.seed), testset(shown[0], experiment.results)]
        read += [f"{adapter}/{name}" for name in adapters.FILES]
        for cell in shown:
            path = translations(experiment, cell, experiment.results)
            read += [path, str(header_path(path))]
    return list(dict.fromkeys(read))


def testset(cell: Cell, root: str) -> str:
    """The sentences of a cell's test set."""
    return f"{root}/corpus/{cell.direction}/test/{cell.testset}.jsonl"


def translations(experiment: Experiment, cell: Cell, root: str) -> str:
    """The file of a cell's translations: of the set that has it, or of itself alone where the config lists it not."""
    sets = sets_of(experiment)
    return (sets.home.get(cell) or sets.named(cell.run, single_name(cell))).translations(root)


def write(experiment: Experiment, out: str, declared: Iterable[str]) -> None:
    """Write the page; ``declared`` as of :class:`Results`."""
    results = Results(experiment, Path(out).parent, declared)
    # A cell that the config lists nowhere is in no set: it was asked for alone, by its path.
    home = sets_of(experiment).home
    require_of_config(results, [cell for some in cells(experiment).values() for cell in some if cell in home])
    render.write_page(out, "live", "Entropy-Valley, live", content(results))


def content(results: Results) -> dict[str, Any]:
    """What the page gets: the names of the model and of its files, and the files, each as base64 of gzip."""
    experiment, shown = results.experiment, cells(results.experiment)
    run = next(iter(shown.values()))[0].run
    # The results of a workflow that runs as a module are elsewhere than its config says; a given checkpoint is not.
    own = paths.backbone_folder(experiment, run.backbone, run.seed)
    folder = Path(moved(own, experiment.results, results.root))
    (weights,) = checkpoint.shards(folder)
    config = files.read_json(folder / "config.json")
    # A wrong translation would look like any other.
    if config["n_kv_heads"] != config["n_heads"]:
        raise InputError(folder / "config.json", "heads share keys and values: the page does not compute that", REMEDY)
    return {
        "model": experiment.backbones[run.backbone].label,
        "seed": run.seed,
        "checkpoint": checkpoint.checkpoint_digest(folder),
        "files": {
            "config": config,
            "tokenizer": _packed(folder / WHOLE),
            "weights": _packed(weights),
            "directions": [_direction(results, some) for some in shown.values()],
        },
    }


def _direction(results: Results, shown: Sequence[Cell]) -> dict[str, Any]:
    """A direction's adapter, length methods and test sentences."""
    first, folder = shown[0], f"{shown[0].run.folder(results.root)}/adapter"
    # The page names the digest of the adapter that it has.
    facts, settings = files.read_json(results.file(f"{folder}/{adapters.FACTS}")), _settings(Path(folder))
    source, target = first.direction.split("-")
    return {
        "name": first.direction,
        "source": source,
        "target": target,
        "prompt": _header(results, first).params["prompt"],
        "steps": first.steps,
        "methods": [_method(results, cell) for cell in shown],
        "sentences": [[row["source"], row["target"]] for row in _sorted_sentences(results, shown)],
        "adapter": _packed(Path(results.file(f"{folder}/{adapters.WEIGHTS}"))),
        "adapter_digest": facts["adapter_digest"],
        "scaling": settings["lora_alpha"] / settings["r"],
    }


def _sorted_sentences(results: Results, shown: Sequence[Cell]) -> list[dict[str, Any]]:
    """The test sentences: first those with something to see, last those with placeholders."""
    # Whoever opens the page sees a few sentences, so the first ones should tell something.
    canvases: dict[str, dict[str, Any]] = {}
    for cell in shown:
        translated = rows(results.file(translations(results.experiment, cell, results.root)), cell)
        canvases[cell.method] = {row["id"]: row["canvas"] for row in translated}

    def rank(row: Mapping[str, str]) -> tuple[bool, bool]:
        chosen = {method: by_id[row["id"]] for method, by_id in canvases.items()}
        return bool(EXTRACTORS[PLACEHOLDERS](row["source"])), not worth_seeing(chosen)

    return sorted(files.read_jsonl(results.file(testset(shown[0], results.root)), ("id", "source", "target")), key=rank)


def worth_seeing(canvases: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether a sentence's canvases, by method, show what EV does: its valley lies inside its grid, at another length
    than Ratio's, with or without an EOS slot, and at that of EV fit, so that no row beside the grid looks better."""
    ev, lengths = canvases["ev"], {method: canvas["length"] for method, canvas in canvases.items()}
    inside = ev["candidates"][0] < ev["length"] < ev["candidates"][-1]
    return inside and ev["length"] == lengths["ev_fit"] and ev["length"] not in [lengths[name] for name in RATIOS]


def _method(results: Results, cell: Cell) -> dict[str, Any]:
    """A length method as the header of its translations has it; ``class`` is one of ``CLASSES``.

    ``fit`` is what the run has measured for it, if it uses that: the length line and the weights. Raises InputError for
    a method that the page does not compute.
    """
    header = _header(results, cell)
    # The header has what was decoded; the config may have changed since.
    settings, fits = dict(header.params["methods"][cell.method]), header.facts.get("fits", {})
    kind = settings.pop("method", cell.method)
    if kind not in CLASSES or settings.get("score", "mean") != "mean" or settings.get("exact") is False:
        problem = f"{cell.method} is {kind} with {settings}: the page does not compute that"
        raise InputError(translations(results.experiment, cell, results.root), problem, REMEDY)
    method = {
        "name": cell.method,
        "label": Names(results.experiment).method(cell.method).short,
        "class": kind,
        "settings": settings,
    }
    # Its weights were learned in the run, so no config has them.
    if kind == "ev_fit":
        line, weights = fits["length_statistics"]["line"], fits["learned"][cell.method]["weights"]
        method["fit"] = {"line": line, "weights": weights}
    return method


def _header(results: Results, cell: Cell) -> Record:
    """The header of a cell's translations. Raises InputError for params that the page does not compute."""
    place = header_path(results.file(translations(results.experiment, cell, results.root)))
    header = read_record(place)
    if header is None:
        raise files.not_there(place)
    # A param that the page ignores would change texts unseen.
    if others := [f"{key} is {header.params[key]}" for key, value in COMPUTED.items() if header.params[key] != value]:
        raise InputError(place, f"{'; '.join(others)}: the page does not compute that", REMEDY)
    return header


def _settings(folder: Path) -> dict[str, Any]:
    """The settings of an adapter. Raises InputError for another function than W + alpha / rank · B A."""
    path = folder / adapters.SETTINGS
    settings = read_object(path, adapters.Settings)
    # Each of these computes another product than the page does.
    keys = ("use_rslora", "use_dora", "lora_bias", "init_lora_weights", "rank_pattern", "alpha_pattern")
    if others := [key for key in keys if settings.get(key)]:
        raise InputError(path, f"has {', '.join(others)}: the page does not compute that", REMEDY)
    return settings


def _packed(path: Path) -> str:
    """A file as base64 of gzip; the same file always gives the same text."""
    return base64.b64encode(gzip.compress(files.regular(path).read_bytes(), mtime=0)).decode("ascii")
