"""Shares of a group by bag-gp and by models of ecological inference, on 2 x 2 tables with hidden labels.

    python3 -m venv pyei && pyei/bin/pip install pyei
    python -m benchmarks.ecological --python pyei/bin/python

A 2 x 2 table is the most frequent value of a column against the others, and the rarer class of a target against the
other, in the natural bags of a table. King's model (King, Rosen and Tanner 1999) is that of PyEI (Knudson, Schoenbach
and Becker 2021), which needs other versions of numpy than llpbench and runs in a Python of its own. `bag-gp` is fitted
twice: with all features, and with the group as its only feature, which is what King's model gets.
"""

from __future__ import annotations

import json
import subprocess
import time
import warnings
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd

from benchmarks.groups import CHOSEN_ON, DATA, JUDGED_ON, goodman, read
from llpbench import LLPClassifier

MODELS = ("king99",)
WORKER = Path(__file__).with_name("ecological_pyei.py")
_MOST_BAGS = 400
_LEAST_ROWS = 5
"""of a bag on average: precincts of elections have hundreds"""


def tables(rows: int, columns: int, seed: int, data: Path) -> list[dict[str, Any]]:
    """Return a 2 x 2 table for each column of groups, with estimates of `bag-gp` and the truth."""
    made = []
    for name, source in (CHOSEN_ON | JUDGED_ON).items():
        if not source.keys or not (data / f"{name}.parquet").exists():
            continue
        table = read(name, source, seed, rows, data)
        classes, sizes = np.unique(table.labels, return_counts=True)
        bags = pd.Series(table.bags)
        if len(classes) != 2 or bags.nunique() > _MOST_BAGS or len(bags) < _LEAST_ROWS * bags.nunique():
            continue
        counts = pd.crosstab(table.bags, table.labels)
        rarer = str(classes[sizes.argmin()])
        positive = pd.Series(table.labels == rarer)
        clock = time.perf_counter()
        model = LLPClassifier("bag-gp", random_state=seed).fit(table.features, table.bags, counts=counts)
        fitting = time.perf_counter() - clock
        several = {column: groups for column, groups in table.groups.items() if len(np.unique(groups)) > 1}
        for column, groups in [*several.items()][:columns]:
            member = pd.Series(groups == pd.Series(groups).value_counts().index[0])
            inside = pd.DataFrame({"group": np.where(member, "in", "out")})
            alone = LLPClassifier("bag-gp", random_state=seed).fit(inside, table.bags, counts=counts)
            share = member.groupby(bags).mean()
            votes = positive.groupby(bags).mean()
            number = bags.value_counts()[share.index]
            regression = goodman(np.column_stack([share, 1 - share]), votes.to_numpy(), number.to_numpy())
            made.append(
                {
                    "table": name,
                    "by": column,
                    "share": share.tolist(),
                    "votes": votes.tolist(),
                    "rows": number.tolist(),
                    "truth": [float(positive[member].mean()), float(positive[~member].mean())],
                    "bag-gp": estimated(model, table.features, table.bags, inside["group"], rarer),
                    "bag-gp, the group alone": estimated(alone, inside, table.bags, inside["group"], rarer),
                    "share of the bag": [
                        (float((votes * number * w).sum() / (number * w).sum()),) * 3 for w in (share, 1 - share)
                    ],
                    "Goodman": [(float(value),) * 3 for value in regression],
                    "seconds": {"bag-gp": fitting},
                }
            )
        click.echo(f"{name}: {bags.nunique()} bags, {fitting:.0f} s", err=True)
    return made


def estimated(
    model: LLPClassifier, features: pd.DataFrame, bags: Any, group: pd.Series, label: str
) -> list[tuple[float, float, float]]:
    """Return share, lower and upper end of the class, in the group and outside."""
    found = model.estimate(features, bags, group.rename("is"))
    found = found[(found["bag"] == "all") & (found["class"] == label)].set_index("is")
    rows = (found.loc[value] for value in ("in", "out"))
    return [(float(row["share"]), float(row["share_lower"]), float(row["share_upper"])) for row in rows]


def judged(made: list[dict[str, Any]]) -> pd.DataFrame:
    """Return a row a table, group and model: error and width in points, and whether the interval holds the truth."""
    rows = []
    for table in made:
        for model in (*MODELS, "bag-gp", "bag-gp, the group alone", "share of the bag", "Goodman"):
            for truth, (share, low, high) in zip(table["truth"], table[model], strict=True):
                rows.append(
                    {
                        "table": table["table"],
                        "by": table["by"],
                        "model": model,
                        "error": 100 * abs(share - truth),
                        "width": 100 * (high - low),
                        "coverage": 100.0 * (low - 1e-9 <= truth <= high + 1e-9),
                        "seconds": table["seconds"].get(model, np.nan),
                    }
                )
    return pd.DataFrame(rows)


@click.command()
@click.option("--python", required=True, help="A Python that has pyei.")
@click.option("--data", default=DATA, type=click.Path(path_type=Path))
@click.option("--rows", default=5_000)
@click.option("--columns", default=1, help="Number of 2 x 2 tables of each table.")
@click.option("--seed", default=0)
@click.option("--out", default="ecological.json", type=click.Path(path_type=Path), help="Tables; continued if there.")
def main(python: str, data: Path, rows: int, columns: int, seed: int, out: Path) -> None:
    """Fit models that --out lacks, then print means over groups."""
    warnings.simplefilter("ignore")
    if not out.exists():
        out.write_text(json.dumps(tables(rows, columns, seed, data)), encoding="utf-8")
    subprocess.run([python, str(WORKER), str(out), *MODELS], check=True)
    found = judged(json.loads(out.read_text(encoding="utf-8")))
    click.echo(found.groupby("model", sort=False)[["error", "width", "coverage", "seconds"]].mean().round(1))
    paired = found.pivot_table(index=["table", "by"], columns="model", values="error")
    click.echo(paired.round(1).to_string())


if __name__ == "__main__":
    main()
