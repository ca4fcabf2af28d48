"""Choose the sentences of a pack, and hide which system is which in a mapping that annotators never get."""

from __future__ import annotations

import argparse
from pathlib import Path

from entropy_valley import provenance, run
from entropy_valley.analysis.params import Params
from entropy_valley.analysis.scores import sentences
from entropy_valley.human_evaluation import pack
from entropy_valley.human_evaluation.sampling import Sentence
from entropy_valley.scoring.alignment import read_outputs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("spec", help="the rule's params: a JSON file, or JSON")
    parser.add_argument("--testset", required=True)
    parser.add_argument("--pack", type=Path, required=True, help="output: what annotators see")
    parser.add_argument("--mapping", type=Path, required=True, help="output: what they never see")
    options = parser.parse_args()
    params, spec = Params.parse(options.spec), run.params(options.spec)
    read = [path for cell in params.cells for path in (cell.hypotheses, cell.segments)]
    written = [options.pack, options.mapping]
    with provenance.made("human_pack", spec, [options.testset, *read], written):
        found = _sentences(params, options.testset)
        made, behind = pack.make(found, params.cells[0].direction, spec["sentences"], spec["pack_seed"])
        made.write(options.pack)
        pack.write_mapping(options.mapping, made, params.metric.name, behind)


def _sentences(params: Params, testset: str) -> list[Sentence]:
    first, second = (read_outputs(testset, cell.hypotheses) for cell in params.cells)
    differences = sentences(params.cells[0], params.metric) - sentences(params.cells[1], params.metric)
    columns = (first.ids, first.sources, first.references, first.hypotheses, second.hypotheses)
    rows = zip(*columns, strict=True)
    return [Sentence(*row, difference=float(differences[row[0]])) for row in rows]


if __name__ == "__main__":
    run.script(main)
