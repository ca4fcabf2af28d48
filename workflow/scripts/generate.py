"""Translate a test set from left to right with an autoregressive backbone; what the store has is not searched again."""

from __future__ import annotations

from pathlib import Path

from entropy_valley import files, run
from entropy_valley.decoding.autoregressive import Search, signature, summary, translate
from entropy_valley.engine.arguments import arguments
from entropy_valley.engine.job import Job
from entropy_valley.engine.made import made


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--info", type=Path, required=True, help="where signature and totals go, as JSON")
    options = parser.parse_args()
    with Job(options) as job, made("generate", job, options):
        search = Search.of(job.spec)
        rows = translate(job, search)
        made_by = {**signature(job, search), "data_digest": files.file_digest(options.testset)}
        files.write_jsonl(options.out, rows)
        files.write_json(options.info, {"signature": made_by, **summary(rows)})
        job.report("generate")


if __name__ == "__main__":
    run.script(main)
