"""The speed and the peak memory of drawing training pairs.

    python benchmarks/corpus.py --pairs 1000000

Made-up pairs of WMT19's lengths are written as the Parquet files of a hub repository, in row groups of 1,000. Of these,
200,000 + 2,000 are drawn under the paper's filters.
"""

import argparse
import random
import resource
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from entropy_valley.data import build

ROWS, SHARDS = 1000, 4
ENGLISH = "abcdefghijklmnopqrstuvwxyz"
CHINESE = [chr(0x4E00 + place) for place in range(4000)]


def shard(path: Path, groups: int, draw: random.Random) -> None:
    words = ["".join(draw.choices(ENGLISH, k=draw.randint(2, 10))) for _ in range(20_000)]
    schema = pa.schema([("translation", pa.struct([("zh", pa.string()), ("en", pa.string())]))])
    with pq.ParquetWriter(path, schema) as written:
        for _ in range(groups):
            sizes = [max(1, int(draw.gauss(24, 14))) for _ in range(ROWS)]
            rows = [
                {"zh": "".join(draw.choices(CHINESE, k=int(1.8 * n) + 1)), "en": " ".join(draw.choices(words, k=n))}
                for n in sizes
            ]
            written.write_table(pa.table({"translation": pa.array(rows, schema.field(0).type)}))


def spec(folder: Path, direction: str) -> dict[str, object]:
    filters = {"en": {"words": [5, 200]}, "zh": {"characters": [2, 600]}}
    source = {"name": "huggingface", "dataset": "made/up", "subset": "zh-en", "folder": str(folder)}
    sizes = {"train": 200_000, "dev": 2_000, "seed": 1, "revision": 1}
    return {"direction": direction, "source": source, "filters": filters, **sizes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    pairs = parser.parse_args().pairs
    with tempfile.TemporaryDirectory() as made:
        folder, draw = Path(made), random.Random(1)
        (folder / "zh-en").mkdir()
        for number in range(SHARDS):
            name = f"train-{number:05}-of-{SHARDS:05}.parquet"
            shard(folder / "zh-en" / name, pairs // SHARDS // ROWS, draw)
        begun = time.perf_counter()
        build.corpus(spec(folder, "en-zh"))
        speed = pairs / (time.perf_counter() - begun)
    print(f"{speed:,.0f} pairs a second, at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
