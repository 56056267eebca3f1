"""Tables of groups by outcomes from precincts: margins, bounds and intervals."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from known_cells import GROUPS, OUTCOMES, simulated

from llpbench import CrossTable, cross_table
from llpbench.core.errors import LLPBenchError, LLPBenchWarning


def test_bounds_match_enumeration_of_tables() -> None:
    cells = [np.array([[a, 3 - a], [4 - a, a - 2]]) for a in range(6) if min(3 - a, 4 - a, a - 2) >= 0]
    found = cross_table([[3, 2]], [[4, 1]]).by_precinct()
    assert np.array_equal(found["count_min"], np.min(cells, axis=0).ravel())
    assert np.array_equal(found["count_max"], np.max(cells, axis=0).ravel())


def test_cells_match_margins_and_bounds() -> None:
    people, votes, _ = simulated()
    table = cross_table(people, votes)
    cells, each = table.cells, table.by_precinct()
    assert np.allclose(cells.groupby("outcome", sort=False)["count"].sum(), votes.sum())
    assert np.allclose(each.groupby(["group", "outcome"], sort=False)["count"].sum(), cells["count"])
    assert np.allclose(each.groupby(["precinct", "group"], sort=False)["count"].sum(), people.to_numpy().ravel())
    in_order = pd.concat([cells, each])[["count_min", "count_lower", "count", "count_upper", "count_max"]].to_numpy()
    assert (np.diff(in_order, axis=1) >= -1e-6).all()


def test_shares_are_recovered_and_intervals_cover() -> None:
    covered = []
    for seed in range(8):
        people, votes, truth = simulated(seed=seed)
        table = cross_table(people, votes)
        total = truth.sum(axis=0)
        assert np.abs(table.shares.to_numpy() - total / total.sum(axis=1, keepdims=True)).max() < 0.08
        for lines, cells in ((table.cells, total), (table.by_precinct(), truth)):
            inside = cells.ravel() >= lines["count_lower"] - 0.5
            covered.append((inside & (cells.ravel() <= lines["count_upper"] + 0.5)).mean())
            assert (lines["share_upper"] - lines["share_lower"]).mean() < 0.6, "intervals say something"
    assert min(np.mean(covered[::2]), np.mean(covered[1::2])) > 0.9


def test_joined_columns_are_sums_and_shares_among_some_outcomes_cover_the_truth() -> None:
    inside = []
    for seed in range(6):
        people, votes, truth = simulated(seed=seed)
        table = cross_table(people, votes, join=["black", "others", "others"], among=["ann", "bob"])
        every = cross_table(people, votes, join=["black", "others", "others"])
        assert np.allclose(every.shares.loc["black"], cross_table(people, votes).shares.loc["black"])
        found = every.cells.query("outcome != 'abstained'")["count"]
        assert np.allclose(found, table.cells["count"])
        assert np.allclose(table.shares.sum(axis=1), 1.0)
        pd.testing.assert_frame_equal(table.differences, every.differences)
        total = truth.sum(axis=0)[:, :2]
        voted = np.stack([total[0], total[1:].sum(axis=0)])
        share = (voted / voted.sum(axis=1, keepdims=True)).ravel()
        inside.append(((share > table.cells["share_lower"]) & (share < table.cells["share_upper"])).mean())
    assert np.mean(inside) > 0.9


def shares_of(numbers: pd.DataFrame, whole: int = 1) -> pd.DataFrame:
    """Shares of precincts in four digits."""
    return whole * numbers.div(numbers.sum(axis=1), axis=0).round(4)


def changed(change: Callable[..., tuple[Any, ...]], precincts: int = 30) -> CrossTable:
    """Return the table of precincts, from what `change` makes of both margins (and sizes)."""
    groups, outcomes, *sizes = change(*simulated(precincts)[:2])
    return cross_table(groups, outcomes, sizes=sizes[0] if sizes else None)


@pytest.mark.parametrize(
    ("change", "tolerance"),
    [
        pytest.param(lambda p, v: (p[::-1][GROUPS[::-1]], v[OUTCOMES[::-1]]), 1e-4, id="other order"),
        pytest.param(lambda p, v: (p.to_numpy(), v.to_numpy()), 1e-9, id="arrays"),
        pytest.param(lambda p, v: (p.assign(nobody=0), v), 1e-4, id="a group without people"),
        pytest.param(lambda p, v: (shares_of(p), shares_of(v), p.T.sum()), 0.01, id="shares with sizes"),
        pytest.param(lambda p, v: (shares_of(p, 100), shares_of(v, 100), p.T.sum()), 0.01, id="percentages with sizes"),
    ],
)
def test_same_precincts_give_same_shares(change: Any, tolerance: float) -> None:
    expected, shares, goodman = changed(lambda *both: both).shares, (table := changed(change)).shares, table.goodman
    found = shares if "group 0" in shares.index else shares.loc[GROUPS, OUTCOMES]
    assert np.allclose(found, expected, atol=tolerance)
    assert "nobody" not in shares.index or shares.loc["nobody"].isna().all()
    assert goodman.drop(index="nobody", errors="ignore").notna().all(axis=None)


def test_percentages_of_groups_say_that_those_of_rare_outcomes_are() -> None:
    people, votes, _ = simulated(30)
    sizes, rare = people.T.sum(), votes[["ann"]] // 100
    often = votes[["ann"]] // 50
    often.iloc[:4] *= 5
    for some in (rare, often):  # often: some percentages are above 1
        percentages = [100 * margin.div(sizes, axis=0) for margin in (people, some)]
        with pytest.warns(LLPBenchWarning, match="percentages"):
            found = cross_table(*percentages, sizes=sizes, rest_as="rest")
        assert np.allclose(found.shares, cross_table(people, some, rest_as="rest").shares, atol=1e-6)


def test_shares_of_outcomes_remain_shares_with_percentages_of_groups() -> None:
    people, votes, _ = simulated(30)
    sizes, some = people.T.sum(), votes[["ann", "bob"]]
    percentages, shares = 100 * people.div(sizes, axis=0), some.div(sizes, axis=0)
    with pytest.warns(LLPBenchWarning):
        found = cross_table(percentages, shares, sizes=sizes, rest_as="rest")
    assert np.allclose(found.shares, cross_table(people, some, rest_as="rest").shares, atol=1e-6)
    shares.iloc[0] *= 100
    with pytest.raises(LLPBenchError, match="P00"), pytest.warns(LLPBenchWarning):
        cross_table(percentages, shares, sizes=sizes, rest_as="rest")
    every = votes.div(sizes, axis=0)
    every.iloc[0] *= 1.03
    with pytest.raises(LLPBenchError, match="1 precinct "):
        cross_table(percentages, every, sizes=sizes)


def test_weights_equal_repeated_precincts() -> None:
    people, votes, _ = simulated(30)
    often = np.arange(30) % 3
    repeated = [table.loc[table.index.repeat(often)].reset_index(drop=True) for table in (people, votes)]
    weighted, plain = cross_table(people, votes, weights=often), cross_table(*repeated)
    assert np.allclose(weighted.shares, plain.shares, atol=1e-3)
    assert np.allclose(weighted.cells[["count_min", "count_max"]], plain.cells[["count_min", "count_max"]])


def test_totals_may_differ_by_rounding() -> None:
    people, votes, _ = simulated(30)
    votes.iloc[0, 0] += 2
    for groups, outcomes in ((people, votes), (people // 5 * 5, votes // 5 * 5)):
        assert np.allclose(cross_table(groups, outcomes).cells["count"].sum(), groups.to_numpy().sum())
    votes.iloc[0, 0] += 20
    with pytest.raises(LLPBenchError, match="'P00'"):
        cross_table(people, votes)


def test_single_precinct_has_wide_intervals() -> None:
    people, votes, _ = simulated(30)
    one = cross_table(people[:1], votes[:1]).cells
    assert np.allclose(one.groupby("outcome", sort=False)["count"].sum(), votes.iloc[0])
    bounds = (one["share_max"] - one["share_min"]).clip(upper=0.9)
    assert ((one["share_upper"] - one["share_lower"])[bounds > 0.3] > 0.2).all(), "little is known"


def test_goodman_is_weighted_least_squares() -> None:
    people, votes, _ = simulated(30)
    size = people.sum(axis=1).to_numpy()
    x, y = (table.to_numpy() / size[:, None] for table in (people, votes))
    expected = np.linalg.solve(x.T * size @ x, x.T * size @ y)
    assert np.allclose(cross_table(people, votes).goodman, expected)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda p, v: (p.mask(p.eq(p.loc["P03"]) & (p.index == "P03")[:, None]), v), "'black' of precinct 'P03'"),
        (lambda p, v: (p, v - 1000), "got '-"),
        (lambda p, v: (p[1:], v), "'P00'"),
        (lambda p, v: (p[["black"]], v), "10 x 1"),
        (lambda p, v: (p, v.set_axis([1, "1", "2"], axis=1)), "'1' twice"),
        (lambda p, v: (p, v.rename(columns={"ann": "black"})), "'black'"),
        (lambda p, v: (p.rename(index={"P01": "P00"}), v), "'P00'"),
        (lambda p, v: [pd.concat([each, each.sum().rename("Total").to_frame().T]) for each in (p, v)], "'Total'"),
        (lambda p, v: (p.assign(every=p.T.sum()), v), "'every'"),
        (lambda p, v: (p[["black"]].assign(every=p.T.sum()), v), "'every'"),
        (lambda p, v: (p, v[["ann"]].assign(cast=p.T.sum())), "'cast'.* rest_as="),
        (lambda p, v: (shares_of(p, 100), shares_of(v, 100)), "100 .* sizes="),
        (lambda p, v: (p, shares_of(v)), "1 .* sizes="),
        (lambda p, v: (p, v.iloc[:, :2]), "'P00'.* rest_as="),
        (lambda p, v: (p // 2, v), "missing group"),
    ],
)
def test_wrong_margins_are_refused(change: Any, named: str) -> None:
    with pytest.raises(LLPBenchError, match=named):
        changed(change, precincts=10)


def test_estimate_table_command_writes_every_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, llpbench: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    people, votes = (10 * each for each in simulated(12)[:2])
    texts = people.assign(white=people["white"].map("{:,}".format))  # such as 1,456
    pd.concat([texts, votes], axis=1).rename_axis("precinct").to_csv("precincts.csv")

    def run(options: str, code: int = 0) -> Any:
        given = f"precincts.csv --outcomes ann,bob --precinct-column precinct --out cells.csv --groups {options}"
        result = llpbench("estimate-table", *given.split())
        assert result.code == code, result.err
        return result

    every, rest = ",".join(GROUPS), "--rest-as others"
    assert "two outcomes" in run(f"{every} {rest} --among ann", 2).err, "all shares would be 1"
    for other in ("precincts.csv", "cells.csv"):
        assert other in run(f"{every} {rest} --differences {other}", 2).err
        assert len([*tmp_path.iterdir()]) == 1, "no file is replaced"
    out = run(f"{every} {rest} --plot cells.svg").out
    assert all(name in out for name in (*GROUPS, "ann", "others"))
    cells = pd.read_csv("cells.csv", index_col=["precinct", "group", "outcome"])
    assert [*cells.index] == [*product(["all", *people.index], GROUPS, ["ann", "bob", "others"])]
    assert cells["count"][:9].sum() == pytest.approx(people.to_numpy().sum(), rel=1e-4)
    assert Path("cells.svg").stat().st_size > 1_000
    assert "'P01'" in run(f"black,white {rest}", 2).err, "people of one group are in no column"
    run(f"{every} {rest} --among ann,bob --covariates asian --differences d.csv")
    assert [*pd.read_csv("cells.csv")["outcome"][:4]] == ["ann", "bob"] * 2
    assert {"shift", "shift_p"} < {*pd.read_csv("d.csv").columns}
    with pd.ExcelWriter("precincts.xlsx") as writer:
        people.join(votes).rename(columns={"black": "black, all"}).to_excel(writer, sheet_name="counts")
        people.to_excel(writer, sheet_name="people")
    names = ["--groups", '"black, all",white,asian', "--outcomes", "ann,bob,abstained", "--out", "book.csv"]
    result = llpbench("estimate-table", "precincts.xlsx", *names)
    assert (result.code, "'counts'" in result.err) == (0, True), result.err
    error = run(every, 2).err
    assert ("--rest-as" in error, "rest_as=" in error) == (True, False)
