"""Independent computation of a main board from records, without code of `llpbench.report`."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
from pandas import DataFrame

from llpbench.core.record import Record, TuningRecord

ROW = ["method", "encoder", "pretraining", "configuration"]
COLUMN = ["dataset", "bag_size"]


def tidy(records: Sequence[Record], tunings: Sequence[TuningRecord], criterion: str, bagging: str) -> DataFrame:
    """Return one row per run of a bagging with all bags, without configurations that a search chose."""
    chosen = {best["cell"] for tuning in tunings for best in tuning["best"].values()}
    chosen |= {cell for tuning in tunings for cell in tuning.get("former", [])}
    found = []
    for record in records:
        spec, method = record["spec"], record["method"]
        if spec["bagging"] != bagging or "max_bags" in spec or (record["cell"] in chosen and method["changed"]):
            continue
        settings = {
            **method["changed"],
            **{name: spec[name] for name in ("ensemble", "precision", "numbers") if name in spec},
        }
        # labels choose the epochs of methods trained on labels, on every board
        result = record["results"].get("auc" if method["role"] == "ceiling" else criterion)
        auc = None if result is None else result["test"]["auc"]
        found.append(
            {
                **{name: spec[name] or "" for name in ("method", "encoder", "pretraining")},
                "configuration": ", ".join(f"{name}={json.dumps(value)}" for name, value in sorted(settings.items())),
                **{name: spec[name] for name in COLUMN},
                "protocol": json.dumps(spec["protocol"], sort_keys=True),
                "role": method["role"],
                "seed": record["seed"],
                "auc": np.nan if auc is None else 100 * auc,
            }
        )
    return DataFrame(found)


def board(records: Sequence[Record], tunings: Sequence[TuningRecord], criterion: str, bagging: str) -> DataFrame:
    """Return rank, mean, std and n of each row that has all runs that count.

    Uses the protocol with most runs. Runs count if more than half of the methods have attempted them.
    """
    runs = tidy(records, tunings, criterion, bagging)
    main = runs.loc[runs["protocol"] != "null", "protocol"].mode()[0]
    columns = runs.loc[runs["protocol"] == main, COLUMN].drop_duplicates()
    runs = runs[runs["protocol"].isin([main, "null"])].merge(columns)
    learners = runs[~runs["role"].isin(["ceiling", "control"])]
    votes = learners.groupby([*COLUMN, "seed"]).agg(methods=("method", "nunique"), known=("auc", "count"))
    counting = votes.index[(2 * votes["methods"] > learners["method"].nunique()) & (votes["known"] > 0)]
    wide = runs.pivot(index=[*COLUMN, "seed"], columns=ROW, values="auc").reindex(counting).dropna(axis="columns")
    means = wide.groupby(level=COLUMN).mean().groupby(level="dataset").mean()
    spread = wide.groupby(level=["dataset", "seed"]).mean().groupby(level="dataset").std()
    roles = runs.groupby(ROW)["role"].first().reindex(wide.columns)
    found = DataFrame({"mean": means.mean(), "std": np.sqrt((spread**2).sum()) / len(means)})
    found["n"] = min(seeds.index.unique("seed").size for _, seeds in wide.groupby(level="dataset"))
    found["rank"] = found["mean"][~roles.isin(["ceiling", "control"])].rank(ascending=False, method="min")
    return found
