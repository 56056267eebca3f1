"""Diamonds: the quality of a cut, one of five, when only how many of each a lot holds is known."""

from __future__ import annotations

import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.metrics import roc_auc_score

from llpbench import LLPClassifier

KEYS = ["color", "clarity", "weight"]


def write_tables(folder: Path, rows: int | None = None) -> None:
    """diamonds.csv and lots.csv, a long table without the cuts that a lot has none of; truth.csv to judge by."""
    diamonds = pd.read_parquet(str(files("llpbench.datasets") / "embedded" / "diamonds.parquet"))
    diamonds = diamonds.sample(frac=1.0, random_state=0).head(rows)
    diamonds["weight"] = pd.qcut(diamonds["carat"], 5, labels=["lightest", "light", "middle", "heavy", "heaviest"])
    lots = diamonds.groupby([*KEYS, "cut"], observed=True).size().rename("stones").reset_index()
    folder.mkdir(parents=True, exist_ok=True)
    lots.to_csv(folder / "lots.csv", index=False)
    diamonds.drop(columns="cut").to_csv(folder / "diamonds.csv", index=False)
    diamonds[["cut"]].to_csv(folder / "truth.csv", index=False)


def main(folder: Path, rows: int | None = None, **settings: Any) -> dict[str, float]:
    """AUC of each class against the rest, mean; and how many of the labels that match every count are right."""
    write_tables(folder, rows)
    diamonds = pd.read_csv(folder / "diamonds.csv")
    counts = pd.read_csv(folder / "lots.csv").set_index([*KEYS, "cut"])["stones"]  # by bag and class: a long table
    lots, features = diamonds[KEYS], diamonds.drop(columns=["weight"])
    model = LLPClassifier(**settings).fit(features, lots, counts=counts)
    truth = pd.read_csv(folder / "truth.csv")["cut"]
    proba = model.predict_proba(features)
    return {
        "AUC": float(roc_auc_score(truth, proba, multi_class="ovr", labels=list(model.classes_))),
        "accuracy": float((model.classes_[proba.argmax(axis=1)] == truth).mean()),
        "accuracy of assigned": float((model.assign(features, lots) == truth).mean()),
        "largest class": float(truth.value_counts(normalize=True).iloc[0]),
    }


if __name__ == "__main__":
    print(main(Path(sys.argv[1] if len(sys.argv) > 1 else "diamonds")))
