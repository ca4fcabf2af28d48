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


def main() -> None:
    arguments = _arguments()
    spec = json.loads(arguments.spec)
    outputs = read_outputs(arguments.testset, arguments.hypotheses)
    named = spec["comet"]["checkpoint"]
    comet = Comet(
        arguments.comet or named,
        name=None if named.endswith(".ckpt") else named,
        device=spec["comet"]["device"],
        batch_size=spec["comet"]["batch_size"],
    )
    with Store(arguments.store or ".", enabled=arguments.store is not None) as store:
        scores = comet.segment_scores(outputs.sources, outputs.hypotheses, outputs.references, store)
    chrf = bleu.segment_chrf(outputs.hypotheses, outputs.references)
    rows = zip(outputs.ids, scores, chrf, strict=True)
    files.write_jsonl(arguments.segments, ({"id": i, "comet22": c, "chrf": f} for i, c, f in rows))
    digests = {
        "testset": files.file_digest(arguments.testset),
        "hypotheses": files.file_digest(arguments.hypotheses),
        "comet": comet.digest,
    }
    files.write_json(
        arguments.system, {**_system(outputs, scores, comet.signature, spec["target_language"]), "digests": digests}
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


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("spec", help="JSON: direction, revision, target_language, comet {checkpoint, batch_size, device}")
    parser.add_argument("--testset", required=True)
    parser.add_argument("--hypotheses", required=True)
    parser.add_argument("--segments", required=True, help="output, one row per sentence")
    parser.add_argument("--system", required=True, help="output, the system's scores")
    parser.add_argument("--store", help="folder of remembered scores; without it everything is computed")
    parser.add_argument("--comet", help="a .ckpt file instead of the spec's checkpoint")
    return parser.parse_args()


if __name__ == "__main__":
    errors.run(main)
