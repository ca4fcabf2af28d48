"""What the rules of the human evaluation do: choose the sentences of a pack, and take in filled forms."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from entropy_valley import files, provenance, results
from entropy_valley.analysis.cells import Params
from entropy_valley.analysis.closure import sentences
from entropy_valley.errors import InputError
from entropy_valley.human_evaluation import pack as packs
from entropy_valley.human_evaluation.intake import read_forms
from entropy_valley.human_evaluation.pack import Pack
from entropy_valley.human_evaluation.ratings import unblinded
from entropy_valley.human_evaluation.sampling import Sentence
from entropy_valley.scoring.sets import read_outputs


def write_pack(params: Mapping[str, Any], how: Mapping[str, Any], read: Sequence[str], pack: str, mapping: str) -> None:
    """Choose the sentences of a pack, and hide which system is which in a mapping that annotators never get.

    ``read`` are all files that it is made of, the test set first. ``how`` says where the results are: ``root`` as the
    params have it, ``here`` for this process.
    """
    parsed = Params(results.moved(params, how["root"], how["here"]))
    with provenance.made("human_pack", params, read, [pack, mapping]):
        found = _sentences(parsed, read[0])
        made, behind = packs.make(found, parsed.cells[0].direction, params["sentences"], params["pack_seed"])
        made.write(Path(pack))
        packs.write_mapping(Path(mapping), made, parsed.metric.name, behind)


def _sentences(params: Params, testset: str) -> list[Sentence]:
    first, second = (
        read_outputs(testset, cell.translations(), cell.within(cell.translations_file)) for cell in params.cells
    )
    differences = sentences(params.cells[0], params.metric) - sentences(params.cells[1], params.metric)
    columns = (first.ids, first.sources, first.references, first.hypotheses, second.hypotheses)
    rows = zip(*columns, strict=True)
    return [Sentence(*row, difference=float(differences[row[0]])) for row in rows]


def write_ratings(
    params: Mapping[str, Any], folder: str, pack: str, mapping: str, forms: Sequence[str], out: str
) -> None:
    """Check filled forms cell by cell, and write what they say of the systems; ``folder`` is where they are to be put.

    Raises InputError where there is no form, and for what :func:`read_forms` finds.
    """
    made = Pack.read(Path(pack))
    if not forms:
        remedy = (
            f"Make the forms by `snakemake packs`, have them filled in, and put them there: {made.direction}.A.xlsx."
        )
        raise InputError(folder, f"has no filled form of {made.direction}", remedy)
    with provenance.made("human_ratings", params, [pack, mapping, *forms], [out]):
        found = read_forms(list(map(Path, forms)), made, params["annotators"])
        behind = packs.read_mapping(Path(mapping), made)
        for annotator, ratings in found.items():
            part = "" if len(ratings) == len(made.rows) else ": the form is partial"
            print(f"{annotator} rated {len(ratings)} of {len(made.rows)} sentences{part}", file=sys.stderr)
        files.write_jsonl(out, [row for ratings in found.values() for row in unblinded(ratings, behind)])
