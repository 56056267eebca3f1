"""Tables of groups by outcomes from precincts: margins, bounds, intervals, and New Zealand's elections."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from districts import warned
from scipy.optimize import check_grad
from scipy.special import expit

from benchmarks.elections import District, districts, error
from llpbench import cross_table
from llpbench.blocks.cross_shares import CrossLikelihood
from llpbench.core.bags import FloatArray
from llpbench.core.errors import LLPBenchError
from llpbench.owndata.cross_tables import _bounds

SHARES = np.array([[0.85, 0.10, 0.05], [0.35, 0.50, 0.15], [0.20, 0.20, 0.60]])
GROUPS, OUTCOMES = ["black", "white", "asian"], ["ann", "bob", "abstained"]
ELECTIONS = Path(__file__).parents[3] / "shared" / "data" / "elections"


def simulated(precincts: int = 60, rho: float = 0.02, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame, FloatArray]:
    """People by group, votes, and true cells [precincts, groups, outcomes]; shares vary between precincts."""
    rng = np.random.default_rng(seed)
    people = np.array([rng.multinomial(rng.integers(200, 800), mix) for mix in rng.dirichlet([1.5, 1.5, 1], precincts)])
    cells = np.array(
        [
            [rng.multinomial(number, rng.dirichlet(p * (1 / rho - 1))) for number, p in zip(row, SHARES, strict=True)]
            for row in people
        ]
    )
    index = pd.Index([f"P{number:02}" for number in range(precincts)])
    votes = pd.DataFrame(cells.sum(axis=1), index, OUTCOMES)
    return pd.DataFrame(people, index, GROUPS), votes, cells.astype(np.float64)


def test_cells_match_margins_and_bounds() -> None:
    people, votes, _ = simulated()
    table = cross_table(people, votes)
    cells, each = table.cells, table.by_precinct()
    assert np.allclose(cells.groupby("group", sort=False)["count"].sum(), people.sum())
    assert np.allclose(cells.groupby("outcome", sort=False)["count"].sum(), votes.sum())
    wide = each.pivot_table(index="precinct", columns="group", values="count", aggfunc="sum")[GROUPS]
    assert np.allclose(wide, people, atol=1e-6)
    assert np.allclose(each.groupby(["group", "outcome"], sort=False)["count"].sum(), cells["count"])
    for lines in (cells, each):
        in_order = lines[["count_min", "count_lower", "count", "count_upper", "count_max"]].to_numpy()
        assert (np.diff(in_order, axis=1) >= -1e-6).all()


def test_shares_are_recovered_and_intervals_cover() -> None:
    covered, wide = [], []
    for seed in range(8):
        people, votes, truth = simulated(seed=seed)
        table = cross_table(people, votes)
        total = truth.sum(axis=0)
        assert np.abs(table.shares.to_numpy() - total / total.sum(axis=1, keepdims=True)).max() < 0.08
        for lines, cells in ((table.cells, total), (table.by_precinct(), truth)):
            inside = cells.ravel() >= lines["count_lower"] - 0.5
            covered.append((inside & (cells.ravel() <= lines["count_upper"] + 0.5)).mean())
            wide.append((lines["share_upper"] - lines["share_lower"]).mean())
    assert np.mean(covered[::2]) > 0.9
    assert np.mean(covered[1::2]) > 0.9
    assert max(wide) < 0.6, "intervals say something"


def test_bounds_match_enumeration_of_tables() -> None:
    people, counts = np.array([[3.0, 2.0]]), np.array([[4.0, 1.0]])
    cells = [np.array([[a, 3 - a], [4 - a, a - 2]]) for a in range(6) if min(3 - a, 4 - a, a - 2) >= 0]
    least, most = _bounds(people, counts)
    assert np.array_equal(least[0], np.min(cells, axis=0))
    assert np.array_equal(most[0], np.max(cells, axis=0))


@pytest.mark.parametrize("covariates", [0, 2])
def test_gradient_matches_finite_differences(covariates: int) -> None:
    people, votes, _ = simulated(20)
    rng = np.random.default_rng(0)
    margins = people.to_numpy(np.float64), votes.to_numpy(np.float64)
    likelihood = CrossLikelihood(*margins, np.linspace(0.5, 2, 20), rng.standard_normal((20, covariates)))
    at = rng.normal(-1, 1, 10 + 3 * covariates)
    value = likelihood.value(at)[0]
    assert check_grad(lambda x: likelihood.value(x)[0], lambda x: likelihood.value(x)[1], at) < 1e-4 * abs(value)


def confounded(kind: str) -> tuple[pd.DataFrame, pd.DataFrame, FloatArray, pd.DataFrame]:
    """Two groups with shares 0.4 and 0.5 on average, against the effect of a cause that varies with their sizes."""
    rng = np.random.default_rng(0)
    cause = rng.standard_normal(80)
    share = expit(1.2 * cause + 0.7 * rng.standard_normal(80))
    people = rng.binomial(400, share)
    logits = np.stack([-0.4 + cause, cause if kind == "hidden" else 0 * cause], axis=1)
    cells = rng.binomial(np.stack([people, 400 - people], axis=1), expit(logits))
    votes = pd.DataFrame({"ann": cells.sum(axis=1), "bob": 400 - cells.sum(axis=1)})
    truth = cells.sum(axis=0) / [people.sum(), (400 - people).sum()]
    return pd.DataFrame({"black": people, "white": 400 - people}), votes, truth, pd.DataFrame({"cause": cause})


def test_confounded_precincts_are_warned_of_and_corrected_by_covariates() -> None:
    people, votes, truth, cause = confounded("hidden")
    plain, corrected = cross_table(people, votes), cross_table(people, votes, covariates=cause)
    errors = [np.abs(each.shares["ann"].to_numpy() - truth).max() for each in (plain, corrected)]
    assert errors[0] > 0.1 > 0.05 > errors[1]
    line = corrected.differences.query("outcome == 'ann'").iloc[0]
    assert line["shift"] < -0.2
    assert line["shift_p"] < 1e-6
    with warned("confounded precincts"):
        assert cross_table(*confounded("of one group")[:2]).curvature.max() < 1e-4
    harmless = cross_table(*simulated()[:2], covariates=np.random.default_rng(0).standard_normal((60, 1)))
    assert harmless.differences["shift_p"].min() > 0.001
    assert harmless.curvature.min() > 0.001


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


def with_total(numbers: pd.DataFrame) -> pd.DataFrame:
    """Return the lines of precincts and a last one with their sums."""
    return pd.concat([numbers, numbers.sum().rename("Total").to_frame().T])


def shares_of(numbers: pd.DataFrame) -> pd.DataFrame:
    """Shares of precincts in four digits."""
    return numbers.div(numbers.sum(axis=1), axis=0).round(4)


@pytest.mark.parametrize(
    ("given", "tolerance"),
    [
        (lambda people, votes: {"groups": people[::-1][GROUPS[::-1]], "outcomes": votes[OUTCOMES[::-1]]}, 1e-4),
        (lambda people, votes: {"groups": people.to_numpy(), "outcomes": votes.to_numpy()}, 1e-9),
        (lambda people, votes: {"groups": people.assign(nobody=0), "outcomes": votes}, 1e-4),
        (lambda people, votes: {"groups": people, "outcomes": votes.iloc[:, :2], "rest": "abstained"}, 1e-9),
        *(
            (
                lambda people, votes, whole=whole: {
                    "groups": whole * shares_of(people),
                    "outcomes": whole * shares_of(votes),
                    "sizes": people.T.sum(),
                },
                0.01,
            )
            for whole in (1, 100)
        ),
    ],
    ids=["other order", "arrays", "a group without people", "rest", "shares with sizes", "percentages with sizes"],
)
def test_same_precincts_give_same_shares(given: Any, tolerance: float) -> None:
    people, votes, _ = simulated(30)
    expected, table = cross_table(people, votes).shares, cross_table(**given(people, votes))
    found = table.shares if "group 0" in table.groups else table.shares.loc[GROUPS, OUTCOMES]
    assert np.allclose(found, expected, atol=tolerance)
    assert "nobody" not in table.groups or table.shares.loc["nobody"].isna().all()


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
    for outcomes, told in ((votes, "'P00'"), (votes.iloc[:, :2], "rest=")):
        with pytest.raises(LLPBenchError, match=told):
            cross_table(people, outcomes)


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


def test_robustness_matches_regression() -> None:
    people, votes, _ = simulated(40)
    people = people[["black", "white"]].assign(white=people["white"] + people["asian"])
    table = cross_table(people, votes)
    size, line = people.sum(axis=1).to_numpy(), table.differences.query("outcome == 'ann'").iloc[0]
    x, y = people["black"].to_numpy() / size, votes["ann"].to_numpy() / size
    root = np.sqrt(size / (1 + (size - 1) * table.fitted.rho))
    design = np.column_stack([np.ones(40), x]) * root[:, None]
    left = np.linalg.lstsq(design, y * root, rcond=None)[1]
    scale = np.sqrt(left[0] * np.linalg.inv(design.T @ design)[1, 1])  # error times the root of degrees of freedom
    bias = scale * np.sqrt(line["robustness"] ** 2 / (1 - line["robustness"]))
    assert bias == pytest.approx(abs(line["difference"]))
    assert line["difference_lower"] < line["difference"] < line["difference_upper"]
    others = cross_table(simulated(40)[0].assign(nobody=0), votes).differences
    assert len(others) == 3 * 3, "each pair of groups with people, and each outcome"
    assert others["robustness"].between(0, 1).all()
    assert cross_table(people[:2], votes[:2]).differences["robustness"].isna().all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda people, votes: (people.mask(people.eq(people.loc["P03"]) & (people.index == "P03")[:, None]), votes),
            "'black' of precinct 'P03'",
        ),
        (lambda people, votes: (people, votes - 1000), "got '-"),
        (lambda people, votes: (people[1:], votes), "'P00' in only one"),
        (lambda people, votes: (people[["black"]], votes), "two columns"),
        (lambda people, votes: (people, votes.rename(columns={"ann": "black"})), "'black' must not be both"),
        (lambda people, votes: (people.rename(index={"P01": "P00"}), votes), "'P00' twice"),
        (lambda people, votes: (with_total(people), with_total(votes)), "precinct 'Total' is the sum of all other"),
        (lambda people, votes: (people.assign(all=people.T.sum()), votes), "'all' is the sum of the other groups"),
        (lambda people, votes: (people[["black"]].assign(all=people.T.sum()), votes), "'all' is the number of people"),
        (lambda people, votes: (people, votes[["ann"]].assign(cast=people.T.sum())), "'cast' is .* rest="),
        (lambda people, votes: (100 * shares_of(people), 100 * shares_of(votes)), "groups .* are percentages.* sizes="),
        (lambda people, votes: (people, shares_of(votes)), "outcomes .* are shares"),
    ],
)
def test_wrong_margins_are_refused(change: Any, message: str) -> None:
    people, votes, _ = simulated(10)
    with pytest.raises(LLPBenchError, match=message):
        cross_table(*change(people, votes))


def test_new_zealand_districts_reach_stated_error() -> None:
    if not ELECTIONS.is_dir():
        pytest.skip("no elections beside the repository")
    errors = []
    for district in islice(districts(ELECTIONS), 0, 60, 6):
        assert isinstance(district, District)
        table = cross_table(
            pd.DataFrame(district.parties).add_prefix("p"), pd.DataFrame(district.candidates).add_prefix("c")
        )
        found = table.cells["count"].to_numpy().reshape(district.truth.shape)
        errors.append(error(found, district.truth))
    assert np.mean(errors) < 9.5  # 8.3 in these districts of 2002


def test_estimate_table_command_writes_every_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, llpbench: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    people, votes = (10 * each for each in simulated(12)[:2])
    texts = people.assign(white=people["white"].map("{:,}".format))  # such as 1,456
    pd.concat([texts, votes], axis=1).rename_axis("precinct").to_csv("precincts.csv")

    def run(*options: str, groups: Sequence[str] = GROUPS) -> Any:
        columns = ["--groups", ",".join(groups), "--outcomes", "ann,bob", "--precinct-column", "precinct"]
        return llpbench("estimate-table", "precincts.csv", *columns, "--out", "cells.csv", *options)

    for other in ("precincts.csv", "cells.csv"):
        result = run("--rest-as", "others", "--differences", other)
        assert (result.code, other in result.err, len([*tmp_path.iterdir()])) == (2, True, 1), "no file is replaced"
    result = run("--rest-as", "others", "--plot", "cells.svg")
    assert result.code == 0, result.err
    cells = pd.read_csv("cells.csv")
    names = [*product(["all", *people.index], GROUPS, ["ann", "bob", "others"])]
    assert [*cells[["precinct", "group", "outcome"]].itertuples(index=False, name=None)] == names
    assert cells["count"][:9].sum() == pytest.approx(people.to_numpy().sum(), rel=1e-4)
    assert all(name in result.out for name in (*GROUPS, "ann", "others"))
    assert Path("cells.svg").stat().st_size > 1_000
    options = ["--rest-as", "others", "--among", "ann,bob", "--covariates", "asian", "--differences", "d.csv"]
    result = run(*options, groups=GROUPS[:2])
    assert (result.code, "same total" in result.err) == (2, True), "asian is no group now"
    result = run(*options)
    assert result.code == 0, result.err
    cells = pd.read_csv("cells.csv")
    assert [*cells["outcome"][:2]] == ["ann", "bob"]
    assert np.allclose(cells.groupby(["precinct", "group"])["share"].sum(), 1.0)
    assert {"shift", "shift_p"} < {*pd.read_csv("d.csv").columns}
    result = run()
    assert (result.code, "--rest-as" in result.err, "rest=" in result.err) == (2, True, False)
