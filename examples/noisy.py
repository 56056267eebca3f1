"""Adult again, as a statistics office would publish it: counts with Laplace noise, those of small groups withheld."""

from __future__ import annotations

import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from llpbench import LLPClassifier

KEYS = ["native-country", "education"]
SCALE = 5.0
"""b of the noise on each count: an epsilon of 0.2, where a person is in one count"""
LEAST = 5
"""people of a group whose counts are published"""


def write_tables(folder: Path, rows: int | None = None) -> None:
    """people.csv and groups.csv, with marks where counts are withheld; truth.csv to judge by."""
    adult = pd.read_parquet(str(files("llpbench.datasets") / "embedded" / "adult.parquet")).head(rows)
    adult["native-country"] = adult["native-country"].fillna("unknown")
    counts = pd.crosstab([adult[key] for key in KEYS], adult["class"])
    small = counts.sum(axis=1) < LEAST
    noisy = (counts + np.random.default_rng(0).laplace(0, SCALE, counts.shape)).round(1).astype(object)
    noisy.columns = ["up_to_50K", "more"]
    noisy[small] = "*"
    folder.mkdir(parents=True, exist_ok=True)
    noisy.reset_index().to_csv(folder / "groups.csv", index=False)
    adult.drop(columns="class").to_csv(folder / "people.csv", index=False)
    (adult[["class"]] == ">50K").to_csv(folder / "truth.csv", index=False)


def main(folder: Path, rows: int | None = None, **settings: Any) -> dict[str, float]:
    """AUC with the scale of the noise, and with a scale that is too small."""
    write_tables(folder, rows)
    people = pd.read_csv(folder / "people.csv")
    groups = pd.read_csv(folder / "groups.csv", na_values="*").set_index(KEYS)
    truth = pd.read_csv(folder / "truth.csv")["class"]
    features, keys = people.drop(columns=KEYS), people[KEYS]
    found = {}
    for name, scale in (("noise modelled", SCALE), ("noise understated", 0.4 * SCALE)):
        given: dict[str, Any] = {"counts": groups, "noise": scale * 2**0.5}
        # with too small a scale, one count is further below 0 than the noise can explain
        model = LLPClassifier(**settings).fit(features, keys, **given, impossible="suppress")
        found[name] = float(roc_auc_score(truth, model.predict_proba(features)[:, list(model.classes_).index("more")]))
    return found


if __name__ == "__main__":
    print(main(Path(sys.argv[1] if len(sys.argv) > 1 else "noisy")))
