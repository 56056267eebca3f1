"""Rare classes in held-out bags: how many rows are predicted, and which bags have one, without labels of rows."""

from __future__ import annotations

import pandas as pd
from sklearn.metrics import average_precision_score

from llpbench.owndata.rare import RARE


def held_out_positives(bags: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each method and class that is less than 5 % of the counted rows of held-out bags.

    `bags`: as in `MethodChoice`. Columns: `method`, `class`; rows of the class that were `counted` and `predicted`;
    `bags_with`, the share of bags with such a row; `average_precision` of finding these bags by their expected number
    of such rows, NaN if all bags or none have one. By chance it is about `bags_with`.
    """
    numbers = bags.assign(counted=bags["known"] * bags["rows"], predicted=bags["predicted"] * bags["rows"])
    first = numbers[numbers["method"] == numbers["method"].iloc[0]]
    shares = first.groupby("class", sort=False)["counted"].sum() / first.groupby("class", sort=False)["rows"].sum()
    rare = {label for label in shares.index if 0 < shares[label] < RARE}
    found = []
    for (method, label), own in numbers[numbers["class"].isin(rare)].groupby(["method", "class"], sort=False):
        has = own["counted"].round() >= 1
        mixed = 0 < has.sum() < len(has)
        found.append(
            {
                "method": method,
                "class": label,
                "counted": own["counted"].sum(),
                "predicted": own["predicted"].sum(),
                "bags_with": has.mean(),
                "average_precision": average_precision_score(has, own["predicted"]) if mixed else None,
            }
        )
    columns = ["method", "class", "counted", "predicted", "bags_with", "average_precision"]
    return pd.DataFrame(found, columns=columns).astype({"average_precision": float})
