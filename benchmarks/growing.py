"""What the campaigns under way show so far, against the published runs of the same datasets, bags and seeds.

    python -m benchmarks.growing leaderboards/growing/averages.jsonl.xz --version-1
    python -m benchmarks.growing leaderboards/growing/encoders.jsonl.xz
    python -m benchmarks.growing leaderboards/growing/ensembles.jsonl.xz --version-1
    python -m benchmarks.growing leaderboards/growing/tuned.jsonl.xz --version-1
    python -m benchmarks.growing leaderboards/growing/version-1.jsonl.xz

Differences of test AUC x 100 with 95 % t intervals over datasets, for the judges (leaderboards/judges.toml) and for
other datasets: each criterion, average, encoder, ensemble or search (hyperparameters by proportions) minus published
epochs by mPIoU, minus published epochs by labels (direct methods and networks with an MLP, z-scores), and minus the
default.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import click
import pandas as pd

from llpbench.report.statistics import interval
from llpbench.results.frame import tidy
from llpbench.results.merging import journal_files, merge

TASK = ["bagging", "dataset", "seed"]
KEYS = ["method", *TASK]
LEADER = "bag-gp-gbdt"
VERSION_1 = "leaderboards/growing/version-1.jsonl.xz"
"""runs of tabllp-bdc and llp-vat whose patience counted during the ramp, too"""
JUDGES = tomllib.loads(Path("leaderboards/judges.toml").read_text(encoding="utf-8"))["judges"]


def runs(*journals: str) -> pd.DataFrame:
    """Return the runs in bags of 256, seeds 0 to 2, with epochs by labels and by mPIoU.

    Hyperparameters are the defaults, or (`tuned`) those that a search found by mPIoU.
    """
    merged = [merge(journal_files(name)) for name in journals]
    frame = tidy([record for each in merged for record in each.records.values()], criteria={"auc", "mpiou"})
    tunings = [tuning for each in merged for tuning in each.tunings.values()]
    best = {tuning["best"]["mpiou"]["cell"] for tuning in tunings if "mpiou" in tuning["best"]}
    frame["tuned"] = frame["cell"].isin(best) & (frame["criterion"] == "mpiou")
    frame = frame[(frame["status"] == "ok") & (frame["bag_size"] == 256) & frame["max_bags"].isna()]
    return frame[(frame["pretraining"] == "none") & ((frame["changed"] == "") | frame["tuned"]) & (frame["seed"] < 3)]


@click.command(help=__doc__)
@click.argument("journal")
@click.option("--version-1", "earlier", is_flag=True, help="compare tabllp-bdc and llp-vat with runs of version 1")
def main(journal: str, earlier: bool) -> None:
    """Print the differences."""
    new = runs(journal)
    old = runs("leaderboards/core", "published", *[VERSION_1] * earlier)
    plain = (old["numbers"] == "z") & (old["average"] == "") & (old["ensemble"] == 1) & (old["changed"] == "")
    old = old[plain & old["encoder"].isin(["mlp", None]) & old["max_epochs"].isin([100, float("nan")])]
    old = old.drop_duplicates([*KEYS, "criterion"], keep="last")
    names = {
        "encoder": new["encoder"].where(new["encoder"].notna() & (new["encoder"] != "mlp"), ""),
        "ensemble": new["ensemble"].map(lambda number: f"ensemble of {number}" if number > 1 else ""),
        "tuned": new["tuned"].map({True: "tuned", False: ""}),
        "average": new["average"],
        "criterion": ("by " + new["criterion"]).where(new["average"] == "", ""),
    }
    new = new.assign(way=pd.DataFrame(names).agg(lambda parts: ", ".join(filter(None, parts)), axis="columns"))
    auc = 100 * new.pivot_table(index=KEYS, columns="way", values="test_auc")
    both = auc.join(100 * old.pivot_table(index=KEYS, columns="criterion", values="test_auc"), how="inner")
    of_leader = 100 * old[(old["method"] == LEADER) & (old["criterion"] == "auc")].set_index(TASK)["test_auc"]
    both = both.join(of_leader.rename(LEADER), on=TASK)
    kind = both.index.get_level_values("dataset").isin(JUDGES)
    methods = both.index.get_level_values("method")
    alone = both.groupby([kind, methods, "bagging"])
    together = both.groupby([kind, ["mean of all"] * len(both), "bagging"])
    for (judges, method, bagging), part in (*alone, *together):
        for way in auc:
            for criterion in ("mpiou", "auc", LEADER):
                paired = (part[way] - part[criterion]).dropna()
                gains, seeds = paired.groupby("dataset").mean(), paired.index.unique("seed")
                low, high = interval(gains)
                click.echo(
                    f"{'judges' if judges else 'others':6} {method:15} {bagging:7} {way} minus {criterion}: "
                    f"{gains.mean():+.1f} [{low:.1f}, {high:.1f}], {len(gains)} datasets, {len(seeds)} seeds"
                )


if __name__ == "__main__":
    main()
