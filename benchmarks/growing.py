"""What the campaigns under way show so far, against the published runs of the same datasets, bags and seeds.

    python -m benchmarks.growing leaderboards/growing/averages.jsonl.xz
    python -m benchmarks.growing leaderboards/growing/ramps.jsonl.xz
    python -m benchmarks.growing leaderboards/growing/encoders.jsonl.xz

Differences of test AUC x 100 with 95 % t intervals over datasets, for the judges (leaderboards/judges.toml) and for
other datasets: each criterion, average, encoder or ensemble minus published epochs by mPIoU, and minus published epochs
by labels (networks with an MLP, z-scores).
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import click
import pandas as pd

from llpbench.report.statistics import interval
from llpbench.results.frame import tidy
from llpbench.results.merging import journal_files, merge

KEYS = ["method", "bagging", "dataset"]
JUDGES = tomllib.loads(Path("leaderboards/judges.toml").read_text(encoding="utf-8"))["judges"]


def runs(*journals: str) -> pd.DataFrame:
    """Return the default runs of networks in bags of 256, seeds 0 to 2, with epochs by labels and by mPIoU."""
    records = [record for name in journals for record in merge(journal_files(name)).records.values()]
    frame = tidy(records, criteria={"auc", "mpiou"})
    frame = frame[(frame["status"] == "ok") & (frame["bag_size"] == 256) & frame["max_bags"].isna()]
    return frame[(frame["pretraining"] == "none") & (frame["changed"] == "") & (frame["seed"] < 3)]


@click.command(help=__doc__)
@click.argument("journal")
def main(journal: str) -> None:
    """Print the differences."""
    new, old = runs(journal), runs("leaderboards/core", "published")
    plain = (old["encoder"] == "mlp") & (old["numbers"] == "z") & (old["average"] == "") & (old["ensemble"] == 1)
    old = old[plain & (old["max_epochs"] == 100)].drop_duplicates([*KEYS, "seed", "criterion"])
    names = {
        "encoder": new["encoder"].where(new["encoder"] != "mlp", ""),
        "ensemble": new["ensemble"].map(lambda number: f"ensemble of {number}" if number > 1 else ""),
        "average": new["average"],
        "criterion": ("by " + new["criterion"]).where(new["average"] == "", ""),
    }
    new = new.assign(way=pd.DataFrame(names).agg(lambda parts: ", ".join(filter(None, parts)), axis="columns"))
    new = new.drop_duplicates([*KEYS, "seed", "way"])
    complete = new.groupby([*KEYS, "way"])["seed"].transform("nunique") == 3
    auc = 100 * new[complete].pivot_table(index=KEYS, columns="way", values="test_auc")
    both = auc.join(100 * old.pivot_table(index=KEYS, columns="criterion", values="test_auc"), how="inner")
    kind = both.index.get_level_values("dataset").isin(JUDGES)
    for (judges, method, bagging), part in both.groupby([kind, "method", "bagging"]):
        for way in auc:
            for criterion in ("mpiou", "auc"):
                gains = (part[way] - part[criterion]).dropna()
                low, high = interval(gains)
                click.echo(
                    f"{'judges' if judges else 'others':6} {method:15} {bagging:7} {way} minus {criterion}: "
                    f"{gains.mean():+.1f} [{low:.1f}, {high:.1f}], {len(gains)} datasets"
                )


if __name__ == "__main__":
    main()
