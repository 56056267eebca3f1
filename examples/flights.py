"""Flights by day: which flights of a day were late, given the day's share of late ones."""

from __future__ import annotations

import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from llpbench import LLPClassifier


def write_tables(folder: Path, rows: int | None = None) -> None:
    """Write every third day of the year: flights.csv and days.csv to learn from, and truth.csv to judge by."""
    flights = pd.read_parquet(str(files("llpbench.datasets") / "embedded" / "flights_2013.parquet"))
    dates = sorted(flights["date"].unique())[::3]
    flights = flights[flights["date"].isin(dates)].head(rows)
    late = flights.pop("late") == "late"
    days = late.groupby(flights["date"]).agg(["size", "mean"]).round(3)
    days.columns = ["flights", "share_late"]
    folder.mkdir(parents=True, exist_ok=True)
    flights.drop(columns=["month", "weekday"]).to_csv(folder / "flights.csv", index=False)
    days.reset_index().to_csv(folder / "days.csv", index=False)
    late.to_frame("late").to_csv(folder / "truth.csv", index=False)


def main(folder: Path, rows: int | None = None, **settings: Any) -> dict[str, float]:
    """Within days, whose flights are all that is compared: AUC, and the share of assigned late flights that were."""
    write_tables(folder, rows)
    flights, days = pd.read_csv(folder / "flights.csv"), pd.read_csv(folder / "days.csv").set_index("date")
    date = flights.pop("date")
    model = LLPClassifier(**settings)
    model.fit(flights, date, proportions=days["share_late"], sizes=days["flights"], classes=["on time", "late"])
    proba = model.disaggregate(flights, date)[:, list(model.classes_).index("late")]
    assigned = model.assign(flights, date) == "late"
    late = pd.read_csv(folder / "truth.csv")["late"].to_numpy()
    inside = [
        roc_auc_score(late[date == day], proba[date == day]) for day in days.index if 0 < late[date == day].mean() < 1
    ]
    return {
        "AUC within days, mean": float(np.mean(inside)),
        "AUC": float(roc_auc_score(late, proba)),
        "AUC of the day's share": float(roc_auc_score(late, date.map(days["share_late"]))),
        "assigned as late, and so": float(late[assigned].mean()),
        "late in all": float(late.mean()),
    }


if __name__ == "__main__":
    print(main(Path(sys.argv[1] if len(sys.argv) > 1 else "flights")))
