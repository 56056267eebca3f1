"""Ads: which impressions are clicked, from daily clicks of campaigns with noise. About 1.5 % are, in simulated data.

The advertiser logs each impression without its click. The platform reports the clicks of each campaign and day, with
Laplace noise, so that nobody can learn whether a single person clicked.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.metrics import average_precision_score, roc_auc_score

from llpbench import LLPClassifier

KEYS = ["campaign", "day"]
SCALE = 2.0
"""b of the noise on each count: an epsilon of 0.5, where a person is in one count"""


def write_tables(folder: Path, rows: int = 60_000, campaigns: int = 10, days: int = 20, together: bool = False) -> None:
    """impressions.csv and clicks.csv for training; next.csv with impressions of later days, and truth.csv.

    The impressions are also in parts, as large logs are: parts/ and next-parts/. `together`: the features of a campaign
    and day all move together, so that bags hardly show which one matters.
    """
    rng = np.random.default_rng(0)
    campaign, day = rng.integers(0, campaigns, rows), rng.integers(0, days + days // 4, rows)
    # a campaign reaches other people on each day
    reach = rng.normal(size=(4, campaigns, days + days // 4))[:, campaign, day]
    phone, late, young, known = reach[[0, 0, 0, 0]] if together else reach
    log = pd.DataFrame(
        {
            "campaign": campaign,
            "day": day,
            "device": np.where(rng.random(rows) < expit(phone), "phone", "desktop"),
            "hour": np.clip(rng.normal(14 + 3 * late, 5), 0, 23).astype(int),
            "slot": rng.choice(["top", "side", "feed"], rows),
            "age": np.clip(rng.normal(40 - 6 * young, 12), 18, 80).astype(int),
            "visits": rng.poisson(np.exp(0.5 * known)),
        }
    )
    logits = -6.0 + 1.2 * (log["device"] == "phone") + 0.5 * (log["slot"] == "feed") - 0.02 * (log["age"] - 40)
    clicked = rng.random(rows) < expit(logits + 0.6 * np.minimum(log["visits"], 4))
    later = log["day"] >= days
    clicks = clicked[~later].groupby([log.loc[~later, key] for key in KEYS]).sum().rename("clicks").reset_index()
    clicks["clicks"] = (clicks["clicks"] + rng.laplace(0, SCALE, len(clicks))).round(1)
    folder.mkdir(parents=True, exist_ok=True)
    clicks.to_csv(folder / "clicks.csv", index=False)
    for name, part in (("impressions", log[~later]), ("next", log[later])):
        part.to_csv(folder / f"{name}.csv", index=False)
        parts = folder / ("parts" if name == "impressions" else "next-parts")
        parts.mkdir(exist_ok=True)
        for number, rows_of_part in enumerate(np.array_split(np.arange(len(part)), 4)):
            part.iloc[rows_of_part].to_parquet(parts / f"{number}.parquet", index=False)
    pd.DataFrame(
        {"clicked": clicked[later], "probability": expit(logits + 0.6 * np.minimum(log["visits"], 4))[later]}
    ).to_csv(folder / "truth.csv", index=False)


def main(
    folder: Path, rows: int = 60_000, campaigns: int = 10, days: int = 20, together: bool = False, **settings: Any
) -> dict[str, float]:
    """Return AUC and average precision on later days, and the predicted and true rate of clicks."""
    write_tables(folder, rows, campaigns, days, together)
    log, later = pd.read_csv(folder / "impressions.csv"), pd.read_csv(folder / "next.csv")
    clicks = pd.read_csv(folder / "clicks.csv").set_index(KEYS)["clicks"]
    truth = pd.read_csv(folder / "truth.csv")
    model = LLPClassifier(**settings)
    model.fit(log.drop(columns=KEYS), log[KEYS], counts=clicks, noise=SCALE * 2**0.5)
    probability = model.predict_proba(later.drop(columns=KEYS))[:, 1]
    return {
        "AUC": float(roc_auc_score(truth["clicked"], probability)),
        "AUC of the true probabilities": float(roc_auc_score(truth["clicked"], truth["probability"])),
        "average precision": float(average_precision_score(truth["clicked"], probability)),
        "average precision of the true probabilities": float(
            average_precision_score(truth["clicked"], truth["probability"])
        ),
        "rate of clicks": float(truth["clicked"].mean()),
        "predicted rate": float(probability.mean()),
    }


if __name__ == "__main__":
    print(main(Path(sys.argv[1] if len(sys.argv) > 1 else "ads")))
