"""The results as two data frames: a row for each sentence of each cell, and a row for each cell.

    from entropy_valley import load_results

    sentences, cells = load_results("results/demo")
    cells.groupby(["direction", "method"])["toy_comet"].mean()

Both begin with the columns of :data:`CELL`, which say whose a row is. A run without a pool of training pairs has "" for
it; a system that writes from left to right has its beam for a method, "" for an order, and 0 steps.

``sentences`` then has ``id``, a score by each metric that scores sentences, under the metric's name in the config, and
the columns that were asked for, see :data:`SOURCES`:

``hypothesis``, ``source``, ``target``: texts. ``source_tokens``, ``target_tokens``: tokens of source and reference
under the backbone's tokenizer. ``length``: slots of the canvas that was decoded, the EOS slot included. ``tokens``: the
ids that were decoded. ``logprob``: mean log probability of a token, natural logarithm. ``calls``, ``slots``: forward
passes and the canvas slots in these, as the paper counts them; ``passes``, ``run_tokens``: passes that the engine
needs, and the tokens in these. ``canvas``: what the length method says of its choice. ``concentration``: the
SIG-Concentration of the sentence's all-mask canvas, where the run was diagnosed.

``cells`` has ``sentences`` (their number), ``copies`` (hypotheses that are their source), a score of the whole by each
metric, the means per sentence of ``calls``, ``slots``, ``passes`` and ``run_tokens``, ``within_steps`` (share of
canvases of at most T slots), ``length_mae`` (mean distance of the canvas to the reference's, in slots), ``set`` (the
folder that it is in), and what it was made by: ``decoder``, ``data_digest``, ``backbone_digest``, ``adapter_digest``,
``shifted``, and ``signature.NAME`` of each metric.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pandas as pd
import pyarrow as pa
import pyarrow.json

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.results import (
    DIAGNOSTICS,
    REMEDY,
    SCORES,
    TRANSLATIONS,
    System,
    entries,
    read_record,
    record_path,
    require_sound,
)

# --- The keys. A cell is one result: a system decodes a test set by the adapter of a run.

PLACE = ["direction", "testset"]  # which sentences
RUN = ["backbone", "direction", "pool", "seed"]  # a training run, of which each has a folder
SYSTEM = ["method", "order", "steps"]  # how a run is decoded
SETTING = ["backbone", *PLACE, "order", "steps"]  # what a mean over seeds is of, beside the method
MATCHED = [*SETTING, "pool", "seed"]  # cells that agree in these are compared method by method
CELL = [*MATCHED, "method"]

# --- The columns of sentences, by the file that has them. What a table asks for says which files it reads.

NUMBERS = ("length", "calls", "slots", "passes", "run_tokens", "head_rows")  # int
TRANSLATED = ("hypothesis", "logprob", *NUMBERS, "tokens", "canvas")
SOURCES = {
    **dict.fromkeys(TRANSLATED, "translations"),
    **dict.fromkeys(("source", "target"), "test set"),
    **dict.fromkeys(("source_tokens", "target_tokens"), "token counts"),
    "concentration": "diagnostics",
}
# The sources with a file of their own, and which cells share it.
FURTHER = {"test set": PLACE, "token counts": [*PLACE, "backbone"], "diagnostics": [*RUN, "testset"]}
USUAL = ("hypothesis", "source", "target", "length", "calls", "slots", "passes")
# Of columns that are no texts.
TYPES = {"logprob": pa.float64(), "tokens": pa.list_(pa.int64()), **dict.fromkeys((*NUMBERS, "steps"), pa.int64())}
MEANS = ("calls", "slots", "passes", "run_tokens", "within_steps")  # per sentence; their files have totals
BLOCK = 2**26  # bytes that are decoded at once: a row is never larger


class Frames(NamedTuple):
    """Both frames; a cell of the one has its rows in the other."""

    sentences: pd.DataFrame
    cells: pd.DataFrame


class Loaded(Protocol):
    """Whatever has both frames."""

    @property
    def sentences(self) -> pd.DataFrame: ...

    @property
    def cells(self) -> pd.DataFrame: ...


def load_results(folder: str | Path, columns: Sequence[str] = USUAL, sets: Iterable[str] | None = None) -> Frames:
    """All results in a folder, or those of some ``sets`` (``matrix``, and the names of studies).

    ``columns`` are those of sentences beside their scores; the fewer there are, the faster it is. A cell that several
    sets have, such as one that was asked for alone, comes once. Raises InputError for a folder without results, for an
    unknown column, and for files that were edited or do not fit together.
    """
    found = sorted(path.parent for path in Path(folder).glob(f"*/*/seed*/*/{SCORES}"))
    if sets is not None:
        found = [path for path in found if path.name in {*sets}]
    if not found:
        raise InputError(folder, "no scores in it", "Name the `results` of a config that has run.")
    frames = read_sets(folder, {str(path): None for path in found}, columns)
    cells = frames.cells.drop_duplicates(CELL)
    return Frames(frames.sentences.merge(cells[[*CELL, "set"]])[[*frames.sentences]], cells)


def read_sets(root: str | Path, folders: Mapping[str, Iterable[System] | None], columns: Sequence[str] = ()) -> Frames:
    """The results of some sets, of each the systems that are named (None: all).

    Rows come in the order of the folders and systems; the sentences of each cell in that of its test set.
    Raises InputError for a system that a set does not have, for cells that do not have the same sentences, and for
    results that do not fit together, see :func:`.results.require_sound`.
    """
    if unknown := [name for name in columns if name not in SOURCES]:
        raise InputError("columns", f"{', '.join(unknown)}: no such column", f"There are {', '.join(SOURCES)}.")
    sentences: list[pd.DataFrame] = []
    cells: list[dict[str, Any]] = []
    order: dict[tuple[str, str], pd.Index] = {}  # of the sentences of each place
    sound: set[Path] = set()
    for folder, wanted in folders.items():
        require_sound(Path(folder, SCORES), root, sound)  # and what they were made from
        run, rows, described = run_of(Path(folder)), _rows_of_set(folder, columns), _cells_of_set(folder)
        for system in described if wanted is None else wanted:
            if system not in described:
                raise InputError(record_path(f"{folder}/{SCORES}"), f"has nothing of {system.label}", REMEDY)
            # Systems are compared sentence by sentence.
            if not rows[system].index.equals(order.setdefault((run["direction"], system.testset), rows[system].index)):
                problem = "has not the sentences of other results of its test set, in their order"
                raise InputError(f"{folder}/{SCORES}: {system.label}", problem, REMEDY)
            key = run | system._asdict()
            sentences.append(rows[system].assign(**key))
            cells.append({**key, **described[system], "set": Path(folder).name})
    whole = pd.concat(sentences).rename_axis("id").reset_index()
    own = [name for name in whole if name not in CELL]
    frame = _with_further(root, whole[[*CELL, *own]], columns, sound)
    return Frames(frame, pd.DataFrame(cells)[[*CELL, *(name for name in cells[0] if name not in CELL)]])


def run_of(folder: Path) -> dict[str, Any]:
    """The columns of RUN of a set's folder: ``en-zh/llada-8b/seed1-50k/matrix``."""
    direction, backbone, name = folder.parts[-4:-1]
    seed, _, pool = name.removeprefix("seed").partition("-")
    return {"backbone": backbone, "direction": direction, "pool": pool, "seed": int(seed)}


def run_folder(root: str | Path, run: Any) -> str:
    """The folder of a run, which has the columns of RUN as attributes."""
    return f"{root}/{run.direction}/{run.backbone}/seed{run.seed}{'-' * bool(run.pool)}{run.pool}"


def further_file(root: str | Path, source: str, one: Any) -> str:
    """The file of one of FURTHER, for a cell, or for whatever has the columns of its source as attributes."""
    if source == "test set":
        return f"{root}/corpus/{one.direction}/test/{one.testset}.jsonl"
    if source == "token counts":
        return f"{root}/{one.direction}/{one.backbone}/tokens/{one.testset}.jsonl"
    return f"{run_folder(root, one)}/{DIAGNOSTICS}"


# --- The files of a set.


def _rows_of_set(folder: str, columns: Sequence[str]) -> dict[System, pd.DataFrame]:
    """The sentences of each system by their ids: scores, and what is asked for of the translations."""
    of_scores = _by_system(_read_rows(f"{folder}/{SCORES}"))
    asked = [name for name in columns if SOURCES[name] == "translations"]
    if not asked:
        return of_scores
    of_texts = _by_system(_read_rows(f"{folder}/{TRANSLATIONS}", [*System._fields, "id", *asked]))
    return {system: scores.join(of_texts[system]) for system, scores in of_scores.items()}


def _read_rows(path: str, columns: Sequence[str] = ()) -> pd.DataFrame:
    """The rows of a file, or some of its columns; decoded by Arrow, which takes a fifth of the time of Python."""
    flat = [name for name in columns if name != "canvas"]
    types = [(name, TYPES.get(name, pa.string())) for name in flat]
    parsing = pyarrow.json.ParseOptions(
        pa.schema(types) if flat else None, unexpected_field_behavior="ignore" if flat else "infer"
    )
    content = pa.BufferReader(files.read_bytes(path))
    with files.readable(path, "file of results", REMEDY):
        table = pyarrow.json.read_json(content, pyarrow.json.ReadOptions(block_size=BLOCK), parsing)
    frame = table.to_pandas()
    if "canvas" in columns:  # its keys are those of each length method; a beam search has none
        frame["canvas"] = [row.get("canvas") for row in files.read_jsonl(path)]
    return frame


def _by_system(frame: pd.DataFrame) -> dict[System, pd.DataFrame]:
    """The rows of each system, by the sentences' ids."""
    keys = [*System._fields]
    return {System(*key): rows.drop(columns=keys).set_index("id") for key, rows in frame.groupby(keys, sort=False)}


def _cells_of_set(folder: str) -> dict[System, dict[str, Any]]:
    """What the headers of a set say of each system, costs per sentence."""
    headers = [Path(folder, record_path(name)) for name in (TRANSLATIONS, SCORES)]
    translated, scored = map(entries, headers)
    described, record = {}, read_record(headers[0])
    for system, scores in scored.items():
        facts = {name: value for name, value in translated[system].items() if name not in System._fields}
        for name, value in (facts.pop("signature", None) or {}).items():
            facts[name] = value if isinstance(value, str) else json.dumps(value)
        facts |= {name: facts[name] / facts["sentences"] for name in MEANS if name in facts}
        facts["code"] = record.facts["code"] if record else None
        facts |= {f"signature.{name}": value for name, value in (scores.get("signatures") or {}).items()}
        others = (*System._fields, "signatures", "digests")
        described[system] = facts | {name: value for name, value in scores.items() if name not in others}
    return described


# --- What other files say of sentences.


def _with_further(root: str | Path, sentences: pd.DataFrame, columns: Sequence[str], sound: set[Path]) -> pd.DataFrame:
    """Sentences with the columns of their test sets, of token counts and of diagnostics, as far as asked for; ``sound``
    are the results that were looked at before."""
    for source, keys in FURTHER.items():
        asked = [name for name in columns if SOURCES[name] == source]
        if not asked:
            continue
        parts = []
        for one in sentences[keys].drop_duplicates().itertuples(index=False):
            path = further_file(root, source, one)
            require_sound(Path(path), root, sound)
            if source == "diagnostics":
                rows = diagnosed(path, "sig", one.testset)
            else:
                rows = files.read_jsonl(path, ("id", *asked))
            parts.append(pd.DataFrame(rows)[["id", *asked]].assign(**one._asdict()))
        sentences = sentences.merge(pd.concat(parts), how="left", on=[*keys, "id"], validate="many_to_one")
    return sentences


def diagnosed(path: str, kind: str, testset: str) -> Any:
    """What the diagnostics of a run say of a test set: curves of ``valley``, or rows of ``sig``."""
    content = files.read_json(path)
    if testset not in content.get(kind, {}):
        raise InputError(path, f"has no {kind} of {testset}", REMEDY)
    return content[kind][testset]
