"""Score one system's hypotheses: COMET and chrF per segment; COMET, BLEU and chrF of the system, with signatures."""

from __future__ import annotations

import argparse
import json
from typing import Any

from entropy_valley import errors, files
from entropy_valley.scoring import bleu
from entropy_valley.scoring.alignment import Outputs, read_outputs
from entropy_valley.scoring.comet import Comet
from entropy_valley.store import Store

EMBEDDED = "embedded"


def main() -> None:
    options = _options()
    comet = _comet(options)
    outputs = read_outputs(options.testset, options.hypotheses)
    with Store(options.store, enabled=not options.no_store) as store:
        scores = comet.segment_scores(outputs.sources, outputs.hypotheses, outputs.references, store)
    chrf = bleu.segment_chrf(outputs.hypotheses, outputs.references)
    digests = {
        "testset": files.file_digest(options.testset),
        "hypotheses": files.file_digest(options.hypotheses),
        "comet": comet.digest,
    }
    system = _system(outputs, scores, comet.signature, options.spec["target_language"])
    rows = zip(outputs.ids, scores, chrf, strict=True)
    files.write_jsonl(options.segments, ({"id": i, "comet22": c, "chrf": f} for i, c, f in rows))
    files.write_json(options.system, {**system, "digests": digests})


def _comet(options: argparse.Namespace) -> Comet:
    settings = options.spec["comet"]
    named = settings["checkpoint"] or EMBEDDED
    return Comet(
        options.comet,
        name=None if named.endswith(".ckpt") else named,
        device=options.device,
        batch_size=settings["batch_size"],
        threads=options.threads,
    )


def _system(outputs: Outputs, scores: list[float], signature: str, target_language: str) -> dict[str, Any]:
    system_bleu = bleu.corpus_bleu(outputs.hypotheses, outputs.references, target_language)
    system_chrf = bleu.corpus_chrf(outputs.hypotheses, outputs.references)
    return {
        "comet22": sum(scores) / len(scores),
        "bleu": system_bleu.value,
        "chrf": system_chrf.value,
        "signatures": {"comet22": signature, "bleu": system_bleu.signature, "chrf": system_chrf.signature},
        "sentences": len(scores),
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("spec", type=json.loads, help="JSON: target_language, comet: {checkpoint, batch_size}, …")
    parser.add_argument("--testset", required=True)
    parser.add_argument("--hypotheses", required=True)
    parser.add_argument("--comet", required=True, help="a COMET folder or its .ckpt file")
    parser.add_argument("--segments", required=True, help="output: one row per sentence")
    parser.add_argument("--system", required=True, help="output: the system's scores and their signatures")
    parser.add_argument("--store", required=True, help="folder of finished work, shared between jobs")
    parser.add_argument("--no-store", action="store_true", help="neither read nor write finished work")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads of the model")
    return parser.parse_args()


if __name__ == "__main__":
    errors.run(main)
