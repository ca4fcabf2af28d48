"""EV's lead over Ratio + EOS, by how far that one's canvas is from the reference's: is it won where the ratio is wrong?

    python docs/lead_by_ratio.py    # behind a run of config/human.yaml, in the same checkout

Writes docs/numbers/results/lead_by_ratio.
"""

import numpy as np
import pandas as pd
from check_numbers import RESULTS
from keep_tables import commit

from entropy_valley import files, load_results, machine
from entropy_valley.experiment.stats.significance import LEVELS, Analysis, bootstrap_means

FOLDER = RESULTS / "lead_by_ratio"
SENTENCE = ["direction", "testset", "id"]
BOUNDS = [-np.inf, -3, -1, 0, 2, np.inf]  # in slots, above the first and up to the second
HOW = Analysis(resamples=10_000, seed=1)
GROUPS = ["3_or_more_too_short", "1_or_2_too_short", "right", "1_or_2_too_long", "3_or_more_too_long"]


def leads(sentences: pd.DataFrame) -> pd.DataFrame:
    """A row a sentence: the lead, and the slots of Ratio + EOS's canvas that are too many (or, below 0, too few)."""
    plain = sentences[(sentences["order"] == "med") & (sentences["steps"] == 32)]
    scores, slots = (plain.pivot_table(value, SENTENCE, "method") for value in ("toy_comet", "length"))
    lead = scores["ev"] - scores["ratio_eos"]
    return pd.DataFrame({"lead": lead, "too_many": slots["ratio_eos"] - slots["oracle"]}).reset_index()


def table(of_sentences: pd.DataFrame) -> pd.DataFrame:
    """A row for each test set and group: the mean lead with its 95 % interval, and its share of the summed lead."""
    groups = pd.cut(of_sentences["too_many"], BOUNDS, labels=GROUPS)
    rows = []
    for (testset, group), part in of_sentences.groupby(["testset", groups], observed=True):
        lead = part["lead"].to_numpy()
        low, high = np.quantile(bootstrap_means(lead, HOW), LEVELS)
        whole = of_sentences["lead"][of_sentences["testset"] == testset].sum()
        row = {"testset": testset, "ratio_eos": group, "sentences": len(lead), "lead": lead.mean()}
        rows.append(row | {"lead_low": low, "lead_high": high, "share": lead.sum() / whole})
    return pd.DataFrame(rows)


if __name__ == "__main__":
    sentences, _ = load_results("results/human", columns=["length"], sets=["matrix"])
    FOLDER.mkdir(parents=True, exist_ok=True)
    table(leads(sentences)).to_csv(FOLDER / "lead_by_ratio.csv", index=False, float_format="%.10g")
    origin = {"commit": commit(), "command": "python docs/lead_by_ratio.py", "machine": machine.description()}
    files.write_json(FOLDER / "origin.json", origin)
