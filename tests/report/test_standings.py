"""Where rows stand over all columns: hand-computed."""

from __future__ import annotations

import pytest
from factory import failed, record, runs

from llpbench.core.record import Record
from llpbench.report.boards import Board, Summary
from llpbench.report.standings import Standing, Standings
from llpbench.report.tabulate import tabulate


def board(*groups: list[Record], common: bool = False) -> Board:
    return tabulate([run for group in groups for run in group], common=common).of("fine")[0]


def standing(of: Board, label: str) -> Standing:
    return next(s for row, s in zip(of.rows, Standings(of).rows, strict=True) if row.contender.label == label)


def both(method: str, small: tuple[float, ...], large: tuple[float, ...], **facts: object) -> list[Record]:
    return [*runs(method, *small, **facts), *runs(method, *large, bag_size=256, **facts)]  # type: ignore[arg-type]


FOUR = (
    both("supervised", (0.90, 0.92), (0.90, 0.90), role="ceiling"),  # means 91, 90
    both("a", (0.80, 0.84), (0.70, 0.70)),  # means 82, 70
    both("b", (0.82, 0.80), (0.60, 0.62)),  # means 81, 61
    both("bag-soft-label", (0.70, 0.72), (0.60, 0.60), role="floor"),  # means 71, 60
)


def test_the_overall_mean_has_the_spread_of_its_seeds() -> None:
    # seed 0: (80 + 70) / 2 = 75, seed 1: (84 + 70) / 2 = 77: std sqrt(2)
    assert standing(board(*FOUR), "a (mlp)").overall == pytest.approx((76.0, 2**0.5, 2))


def test_the_gap_is_closed_over_all_columns_together() -> None:
    # a: gained (82 - 71) + (70 - 60) = 21 of (91 - 71) + (90 - 60) = 50
    found = board(*FOUR)
    assert standing(found, "a (mlp)").gap_closed == pytest.approx(42.0)
    assert standing(found, "bag-soft-label (mlp)").gap_closed == pytest.approx(0.0)
    assert standing(found, "supervised (mlp)").gap_closed == pytest.approx(100.0)
    by_column = Standings(found).gaps_closed(next(row for row in found.rows if row.contender.method == "a"))
    assert by_column == pytest.approx({0: 55.0, 1: 100 / 3})


def test_no_gap_is_closed_where_floor_and_ceiling_cannot_be_told_apart() -> None:
    near = both("bag-soft-label", (0.90, 0.91), (0.60, 0.60), role="floor")  # 90.5 against 91 ± 1.41
    found = board(*FOUR[:3], near)
    assert Standings(found).gaps_closed(found.rows[1]).keys() == {1}
    # all columns together still have one: (82 - 90.5) + (70 - 60) of 0.5 + 30
    assert standing(found, "a (mlp)").gap_closed == pytest.approx(100 * 1.5 / 30.5)


def test_a_board_without_floor_has_no_gap() -> None:
    assert standing(board(*FOUR[:3]), "a (mlp)").gap_closed is None


def test_another_configuration_of_the_ceiling_changes_no_gap() -> None:
    usual, other = (both("supervised", (0.90, 0.92), (0.90, 0.90), role="ceiling", params={"rate": r}) for r in (1, 2))
    for run in usual:
        run["method"]["changed"] = {}
    for run in other:
        run["method"]["changed"] = {"rate": 2}
    assert standing(board(usual, other, *FOUR[1:]), "a (mlp)").gap_closed == pytest.approx(42.0)


def test_wins_are_counted_run_by_run() -> None:
    # 64: seed 0 lost (80 < 82), seed 1 won; 256: both won. Columns weigh equally: (1/2 + 1) / 2
    assert standing(board(*FOUR), "a (mlp)").wins == pytest.approx(75.0)
    assert standing(board(*FOUR), "b (mlp)").wins == pytest.approx(25.0)


def test_ranks_and_coverage() -> None:
    found = board(*FOUR, [*runs("c", 0.99, 0.99), failed("c", bag_size=256)])
    a, c = standing(found, "a (mlp)"), standing(found, "c (mlp)")
    assert (a.mean_rank, a.done, a.failed, a.expected) == (1.0, 4, 0, 4)
    assert (c.overall, c.mean_rank, c.interval, c.wins) == (None, None, None, None)
    assert (c.done, c.failed, c.expected) == (2, 1, 4)


def test_a_single_run_has_no_interval() -> None:
    found = standing(board(runs("a", 0.8), runs("b", 0.7)), "a (mlp)")
    assert (found.overall, found.interval, found.group) == (Summary(80.0, None, 1), None, "")


def test_seeds_that_no_column_shares_have_no_spread() -> None:
    methods = ("a", "b")
    found = board(*([record(m, 0.8, seed=0), record(m, 0.6, seed=1, bag_size=256)] for m in methods))
    assert standing(found, "a (mlp)").overall == Summary(70.0, None, 0)


def test_zero_variance_is_shown_as_zero_and_ranks_are_shared() -> None:
    found = board(runs("a", 0.8, 0.8), runs("b", 0.8, 0.8), runs("c", 0.7, 0.7))
    assert [row.rank for row in found.rows] == [1, 1, 3]
    a = standing(found, "a (mlp)")
    assert (a.overall, a.interval, a.wins) == (Summary(80.0, 0.0, 2), (1, 1), 75.0)
    assert (a.group, standing(found, "b (mlp)").group, standing(found, "c (mlp)").group) == ("A", "A", "B")


class TestCommon:
    def test_only_runs_that_all_rows_have_are_shown(self) -> None:
        found = board(runs("a", 0.8, 0.7, 0.6), [record("b", 0.9), failed("b", seed=1)], common=True)
        assert [column.seeds for column in found.columns] == [(0,)]
        assert [standing(found, f"{m} (mlp)").overall for m in ("a", "b")] == [
            Summary(80.0, None, 1),
            Summary(90.0, None, 1),
        ]

    def test_columns_that_one_lacks_are_left_out(self) -> None:
        found = board(both("a", (0.8,), (0.7,)), runs("b", 0.9), common=True)
        assert [column.bag_size for column in found.columns] == [64]

    def test_what_never_succeeded_stays_and_takes_nothing_away(self) -> None:
        found = board(runs("a", 0.8, 0.7), [failed("b")], common=True)
        assert [column.seeds for column in found.columns] == [(0, 1)]
        assert {row.contender.method for row in found.rows} == {"a", "b"}
