"""Adult: who earns more than 50,000, when only the counts by native country and education are known."""

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


def write_tables(folder: Path, rows: int | None = None) -> None:
    """people.csv and groups.csv for training; new.csv with people to predict, and truth.csv with their classes."""
    adult = pd.read_parquet(str(files("llpbench.datasets") / "embedded" / "adult.parquet")).head(rows)
    adult["native-country"] = adult["native-country"].fillna("unknown")
    new = np.random.default_rng(0).random(len(adult)) < 0.3
    known = adult[~new]
    counts = pd.crosstab([known[key] for key in KEYS], known["class"])
    counts.columns = ["up_to_50K", "more"]
    folder.mkdir(parents=True, exist_ok=True)
    counts.reset_index().to_csv(folder / "groups.csv", index=False)
    known.drop(columns="class").to_csv(folder / "people.csv", index=False)
    adult[new].drop(columns="class").to_csv(folder / "new.csv", index=False)
    (adult.loc[new, ["class"]] == ">50K").to_csv(folder / "truth.csv", index=False)


def main(folder: Path, rows: int | None = None, **settings: Any) -> dict[str, float]:
    """AUC of new people, by their features alone and by their group, too."""
    write_tables(folder, rows)
    people, new = pd.read_csv(folder / "people.csv"), pd.read_csv(folder / "new.csv")
    groups = pd.read_csv(folder / "groups.csv").set_index(KEYS)
    model = LLPClassifier(**settings).fit(people.drop(columns=KEYS), people[KEYS], counts=groups)
    truth = pd.read_csv(folder / "truth.csv")["class"]
    features, more = new.drop(columns=KEYS), list(model.classes_).index("more")  # classes are in ascending order
    found = {
        "by features": roc_auc_score(truth, model.predict_proba(features)[:, more]),
        "by features and group": roc_auc_score(truth, model.predict_proba(features, bags=new[KEYS])[:, more]),
    }
    if settings.get("method", "auto") in ("auto", "bag-gp", "bag-gp-gbdt"):
        print("what raises the probability of more than 50,000")
        for effect in model.effects("more").strongest(5):
            print(f"  {effect.name}: from {effect.values.min():+.2f} to {effect.values.max():+.2f}")
    return {name: float(value) for name, value in found.items()}


if __name__ == "__main__":
    print(main(Path(sys.argv[1] if len(sys.argv) > 1 else "adult")))
