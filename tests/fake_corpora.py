"""The training pairs of two directions, made up, as files."""

from __future__ import annotations

from pathlib import Path

from entropy_valley import files, results

FILTERS = {"en": {"words": [5, 200]}, "zh": {"characters": [2, 600]}}
DROPPED = {"en": {"short": 1200, "long": 30}, "zh": {"blank": 4, "short": 66}}  # 1300
SPREAD = {"p10": 0.55, "p30": 0.625, "p50": 0.8, "p70": 0.9, "p90": 1.0}
RATIOS = {
    "en-zh": {"llada-tiny": {"median": 0.8, "mean": 0.8349, "pairs": 20_000, **SPREAD}},
    "zh-en": {
        "llada-tiny": {"median": 1.2375, "mean": 1.3, "pairs": 20_000, **SPREAD},
        "dream-tiny": {"median": 1.5, "mean": 1.6, "pairs": 20_000, **SPREAD},
    },
}


def write(root: Path) -> dict:
    """Write the files of both directions; the params of their table."""
    directions = []
    for name, label in (("en-zh", "En→Zh"), ("zh-en", "Zh→En")):
        folder = root / "corpus" / name
        counts = {"read": 1_000_000, "filtered": 1300, "train": 20_000, "dev": 300}
        spec = {"direction": name}
        with results.made("corpus", spec, [], [folder / "train.jsonl", folder / "corpus.json"]) as record:
            files.write_jsonl(folder / "train.jsonl", [])
            files.write_json(
                folder / "corpus.json",
                {"counts": counts, "filters": FILTERS, "digest": {"train": f"digest of {name}", "dev": ""}},
            )
            record.facts["dropped"] = DROPPED
        files.write_json(folder / "length_ratios.json", RATIOS[name])
        paths = {"report": str(folder / "corpus.json"), "ratios": str(folder / "length_ratios.json")}
        directions.append({"direction": name, "label": label, "source": "wmt19-zh-en", **paths})
    backbones = [["llada-tiny", "LLaDA-tiny"], ["dream-tiny", "Dream-tiny"]]
    return {"revision": 1, "directions": directions, "backbones": backbones, "paper": {"zh-en": "1.24"}}
