"""Tables of parties by candidates in 420 districts of New Zealand with known cells: `llpbench.cross_table` and others.

    python -m benchmarks.elections
    python -m benchmarks.elections --data DIR --elections NZ_2014,NZ_2017
    python -m benchmarks.elections --every 7 --methods count-linear,bag-gp,auto --out found.csv  # continues found.csv
    python -m benchmarks.elections --every 15 --r-library DIR  # a folder with R's package lphom

At a polling station, people cast a party vote and a candidate vote. Both margins are published for each station, the
table of parties by candidates only for the district. Data: Pavia 2022 (R package ei.Datasets, CC BY 4.0) and the New
Zealand Electoral Commission; neither had a part in this project. As in the literature, parties and candidates with less
than 3 % of a district's votes are merged. The error index EI is the percentage of votes in a wrong cell.

Constants of the estimator were chosen on the elections of 2002 to 2011; those of 2014 and 2017 judge them.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
import pandas as pd

from llpbench import LLPClassifier, cross_table
from llpbench.core.bags import FloatArray
from llpbench.report.statistics import interval

DATA = Path("../shared/data/elections")
JUDGED = ("NZ_2014", "NZ_2017")
PUBLISHED = {
    "mvn_pdf, symmetric": [9.464, 6.881, 6.342, 7.091, 7.123, 5.938],
    "mult, symmetric": [10.493, 7.930, 7.493, 8.194, 8.117, 6.866],
    "ei.MD.bayes": [10.757, 8.435, 8.605, 7.697, 7.761, 7.256],
    "ecolRxC": [10.898, 8.807, 7.564, 8.201, 8.591, 6.787],
    "nslphom_dual_w": [11.216, 8.567, 8.019, 8.954, 8.970, 7.918],
    "BPF": [11.972, 9.975, 11.287, 10.535, 9.765, 9.235],
    "lphom": [16.878, 12.142, 12.218, 12.992, 12.950, 12.201],
}
"""Mean EI of all districts in each of the six elections, from the supplement of Ubilla, Hermosilla & Thraves
(https://github.com/DanielHermosilla/ecological-inference-elections-supplementary)."""
_LEAST = 0.03
_EM_STEPS, _EM_CHANGE = 5_000, 1e-7
_LPHOM = """
args <- commandArgs(TRUE); .libPaths(c(args[1], .libPaths())); library(lphom)
P <- as.matrix(read.csv(args[2], header=FALSE)); C <- as.matrix(read.csv(args[3], header=FALSE))
found <- list(lphom(P, C, "simultaneous", verbose=FALSE)$VTM.complete.votes, nslphom_dual(P, C)$VTM.votes.w)
for (i in 1:2) write.table(found[[i]], args[3 + i], sep=",", row.names=FALSE, col.names=FALSE)
"""


class District(NamedTuple):
    """The margins of the stations of a district, and its true table."""

    election: str
    parties: FloatArray
    """[stations, parties]"""
    candidates: FloatArray
    """[stations, candidates]"""
    truth: FloatArray
    """[parties, candidates]"""


def districts(folder: Path) -> Iterator[District]:
    """Yield the districts, with small parties and candidates merged."""
    votes, truth = (pd.read_parquet(folder / f"elections_{name}.parquet") for name in ("votes", "truth"))
    tables = dict(list(truth.groupby(["election", "district"])))
    for (election, name), of_district in votes.groupby(["election", "district"], sort=True):
        wide = [
            rows.pivot_table(index="station", columns="option", values="votes", aggfunc="sum", fill_value=0)
            for rows in (of_district[of_district["side"] == side] for side in ("party", "candidate"))
        ]
        stations = wide[0].index.union(wide[1].index)
        parties, candidates = (each.reindex(stations, fill_value=0) for each in wide)
        table = tables[election, name].pivot_table(
            index="party", columns="candidate", values="votes", aggfunc="sum", fill_value=0
        )
        cells = table.reindex(index=parties.columns, columns=candidates.columns, fill_value=0).to_numpy(np.float64)
        there = parties.sum(axis=1) > 0
        rows, columns = (_merging(each.to_numpy(np.float64)) for each in (parties, candidates))
        yield District(
            str(election),
            parties[there].to_numpy() @ rows,
            candidates[there].to_numpy() @ columns,
            rows.T @ cells @ columns,
        )


def _merging(counts: FloatArray) -> FloatArray:
    """Return the matrix [options, merged options] that adds up options with few votes, if there are several."""
    small = counts.sum(axis=0) / counts.sum() < _LEAST
    one = np.eye(len(small))
    return np.column_stack([one[:, ~small], one[:, small].sum(axis=1)]) if small.sum() > 1 else one


def error(found: FloatArray, truth: FloatArray) -> float:
    """Return the error index: the percentage of votes in a wrong cell."""
    return float(50 * np.abs(found - truth).sum() / truth.sum())


def em(parties: FloatArray, candidates: FloatArray) -> FloatArray:
    """Return the cells by multinomial EM to convergence: each vote of a station has a party with its share."""
    shares = np.tile(candidates.sum(axis=0) / candidates.sum(), (parties.shape[1], 1))
    for _ in range(_EM_STEPS):
        expected = parties @ shares
        ratio = np.divide(candidates, expected, out=np.zeros_like(expected), where=expected > 0)
        cells: FloatArray = shares * (parties.T @ ratio)
        new = cells / cells.sum(axis=1, keepdims=True)
        if np.abs(new - shares).max() < _EM_CHANGE:
            break
        shares = new
    return cells


def lphom(district: District, library: str) -> dict[str, float]:
    """Return the errors of R's package lphom, which is in the folder `library`."""
    with tempfile.TemporaryDirectory() as folder:
        files = [str(Path(folder) / name) for name in ("parties", "candidates", "lphom", "nslphom_dual")]
        for name, margin in zip(files, (district.parties, district.candidates), strict=False):
            np.savetxt(name, margin, delimiter=",", fmt="%d")
        subprocess.run(["Rscript", "-e", _LPHOM, library, *files], check=True)
        return {Path(name).name: error(np.loadtxt(name, delimiter=","), district.truth) for name in files[2:]}


def by_method(district: District, method: str) -> dict[str, float]:
    """Return error and CPU seconds of a method whose predictions are adjusted to the counts of stations."""
    _, parties, candidates, truth = district
    station, party = np.nonzero(parties)
    weights, features = parties[station, party], pd.DataFrame({"party": party.astype(str)})
    given: dict[str, Any] = {"counts": pd.DataFrame(candidates).add_prefix("c"), "sample_weight": weights}
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LLPClassifier(method).fit(features, station, **given)
        proba = model.disaggregate(features, station, **given)
    cells = np.zeros(truth.shape)
    np.add.at(cells, party, proba * weights[:, None])
    return {method: error(cells, truth), f"seconds: {method}": time.process_time() - start}


def measured(district: District) -> dict[str, Any]:
    """Return errors, coverage and width of intervals (points of a party's votes), and CPU seconds of one district."""
    _, parties, candidates, truth = district
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cells = cross_table(parties, candidates).cells
    seconds = time.process_time() - start
    found, lower, upper = (
        cells[name].to_numpy().reshape(truth.shape) for name in ("count", "count_lower", "count_upper")
    )
    covered = (truth >= lower - 0.5) & (truth <= upper + 0.5)
    people, share = truth.sum(axis=1, keepdims=True), candidates / candidates.sum(axis=1, keepdims=True)
    goodman = np.clip(cells["goodman"].to_numpy().reshape(truth.shape), 0, None)
    width = 100 * (upper - lower) / people
    relative = np.broadcast_to(people / truth.sum(), truth.shape)
    result = {
        "election": district.election,
        "cross_table": error(found, truth),
        "station's share": error(parties.T @ share, truth),
        "Goodman, cut at 0": error(goodman / goodman.sum(axis=1, keepdims=True) * people, truth),
        "multinomial EM": error(em(parties, candidates), truth),
        "covered": 100 * covered.mean(),
        "width": width.mean(),
        "seconds": seconds,
    }
    for name, cell in (
        ("parties above 20 %", relative > 0.2),
        ("parties below 6 %", relative < 0.06),
        ("cells above 10 % of a party", truth > 0.1 * people),
        ("cells below 10 % of a party", truth <= 0.1 * people),
    ):
        result |= {f"covered: {name}": 100 * covered[cell].mean() if cell.any() else np.nan}
        result |= {f"width: {name}": width[cell].mean() if cell.any() else np.nan}
    return result


def _all_of(district: District, methods: Sequence[str], library: str | None) -> dict[str, Any]:
    found = measured(district)
    for method in methods:
        found |= by_method(district, method)
    return found | ({} if library is None else lphom(district, library))


@click.command(help=__doc__)
@click.option("--data", type=click.Path(path_type=Path, exists=True), default=DATA, show_default=True)
@click.option("--elections", default="", help="Names, such as NZ_2014,NZ_2017. [default: all]")
@click.option("--every", default=1, show_default=True, help="Take every N-th district.")
@click.option("--first", default=0, show_default=True, help="Number of the first district, from 0.")
@click.option("--methods", default="", help="Methods to add, such as count-linear,bag-gp,auto (seconds a district).")
@click.option("--r-library", help="Folder with R's package lphom, to add lphom and nslphom_dual.")
@click.option("--out", type=click.Path(path_type=Path), help="File of the results by district (.csv), continued.")
def main(
    data: Path, elections: str, every: int, first: int, methods: str, r_library: str | None, out: Path | None
) -> None:
    wanted = elections.split(",") if elections else []
    lines = pd.read_csv(out).to_dict("records") if out is not None and out.exists() else []
    done = {line["number"] for line in lines}
    for number, district in islice(enumerate(districts(data)), first, None, every):
        if number not in done and (not wanted or district.election in wanted):
            lines.append({"number": number, **_all_of(district, [*filter(None, methods.split(","))], r_library)})
            if out is not None:
                pd.DataFrame(lines).to_csv(out, index=False)
    frame = pd.DataFrame(lines).drop(columns="number")
    means = frame.drop(columns="election")
    parts = {
        "all": means,
        "chosen on": means[~frame["election"].isin(JUDGED)],
        "judged": means[frame["election"].isin(JUDGED)],
    }
    click.echo(
        pd.DataFrame({f"{name} ({len(part)})": part.mean() for name, part in parts.items()}).round(3).to_string()
    )
    by_election = frame.groupby("election")["cross_table"].agg(["mean", "size"])
    if every == 1 and len(by_election) == len(next(iter(PUBLISHED.values()))):
        for name, values in PUBLISHED.items():
            _show(
                f"{name} (published: {np.average(values, weights=by_election['size']):.2f})",
                by_election["mean"] - values,
            )
    others = ["station's share", "Goodman, cut at 0", "multinomial EM", "lphom", "nslphom_dual", *methods.split(",")]
    for name in (name for name in others if name in frame):
        _show(name, frame["cross_table"] - frame[name])


def _show(name: str, away: pd.Series) -> None:
    """Print the mean of paired differences, of districts or of elections, with its 95 % interval."""
    low, high = interval(away := away.dropna())
    click.echo(f"EI, cross_table - {name}: {away.mean():.2f} [{low:.2f}, {high:.2f}]")


if __name__ == "__main__":
    main()
