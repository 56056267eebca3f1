"""The order of rows and the marked best scores: nobody gains from what failed, nobody loses to what others lack."""

from __future__ import annotations

from factory import failed, fine_alone, record, runs

from llpbench.core.record import Record
from llpbench.report.boards import Board
from llpbench.report.tabulate import tabulate


def board(*groups: list[Record]) -> Board:
    return tabulate(fine_alone(run for group in groups for run in group)).of("fine")[0]


def order(shown: Board) -> list[tuple[str, int | None]]:
    return [(row.contender.method, row.rank) for row in shown.rows]


def leaders(shown: Board) -> set[tuple[str, str]]:
    return {(shown.rows[row].contender.method, shown.columns[column].title) for row, column in shown.leaders}


def test_rows_are_ranked_by_the_mean_over_columns_between_ceilings_and_floors() -> None:
    shown = board(
        [record("floor", 0.95, role="floor")],  # beats all, and still stands apart
        [record("b", 0.70), record("b", 0.90, bag_size=256)],  # mean 80
        [record("a", 0.75), record("a", 0.83, bag_size=256)],  # mean 79
        [record("low-ceiling", 0.60, role="ceiling"), record("high-ceiling", 0.99, role="ceiling")],
    )
    assert order(shown) == [("high-ceiling", None), ("low-ceiling", None), ("b", 1), ("a", 2), ("floor", None)]


def test_equal_means_share_a_rank() -> None:
    shown = board([record("a", 0.8)], [record("b", 0.8)], [record("c", 0.7)])
    assert order(shown) == [("a", 1), ("b", 1), ("c", 3)]


def test_a_failed_seed_costs_the_rank_however_good_the_others_are() -> None:
    shown = board(runs("a", 0.7, 0.7), [record("b", 0.99, seed=0), failed("b", seed=1)], runs("c", 0.6, 0.6))
    assert order(shown) == [("a", 1), ("c", 2), ("b", None)]


def test_a_failed_column_costs_the_rank() -> None:
    shown = board(
        [record("a", 0.7), record("a", 0.5, bag_size=256)],
        [record("b", 0.99), failed("b", bag_size=256)],
    )
    assert order(shown) == [("a", 1), ("b", None)]


def test_unranked_rows_stand_by_what_they_completed() -> None:
    shown = board(
        runs("a", 0.7, 0.7, 0.7),
        [record("b", 0.9, seed=0), failed("b", seed=1), failed("b", seed=2)],
        [*runs("c", 0.6, 0.6), failed("c", seed=2)],
        runs("d", 0.6, 0.6, 0.6),
    )
    assert order(shown) == [("a", 1), ("d", 2), ("c", None), ("b", None)]


def test_columns_and_seeds_that_only_a_newcomer_ran_change_no_rank() -> None:
    published = [runs("a", 0.8, 0.8), runs("b", 0.7, 0.7), runs("c", 0.6, 0.6)]
    newcomer = [*runs("new", 0.75, 0.75, 0.75, 0.75), record("new", 0.1, bag_size=256)]
    assert order(board(*published, newcomer)) == [("a", 1), ("new", 2), ("b", 3), ("c", 4)]


def test_arms_of_one_method_on_one_column_take_no_other_away() -> None:
    both = [
        run for name, auc in (("a", 0.8), ("b", 0.7)) for size in (64, 256) for run in runs(name, auc, bag_size=size)
    ]
    arms = [record("a", 0.9, bag_size=64, params={"weight": weight}) for weight in (0.1, 0.2, 0.3)]
    shown = board(both, arms)
    assert [row.rank for row in shown.rows] == [1, 2, None, None, None]


def test_a_column_where_everything_failed_takes_no_rank_away() -> None:
    shown = board(*([record(m, auc), failed(m, dataset="credit")] for m, auc in (("a", 0.8), ("b", 0.7))))
    assert order(shown) == [("a", 1), ("b", 2)]


def test_methods_that_share_no_run_are_not_ranked() -> None:
    assert order(board([record("a", 0.8)], [record("b", 0.9, bag_size=256)])) == [("a", None), ("b", None)]


class TestLeaders:
    def test_a_clear_lead_is_marked_alone(self) -> None:
        assert leaders(board(runs("a", 0.90, 0.92), runs("b", 0.80, 0.82))) == {("a", "adult 64")}

    def test_all_within_one_std_of_the_best_are_marked_with_it(self) -> None:
        # a: 90 ± 1.41, so b at 88.6 is within one std and c at 88.5 is not
        shown = board(runs("a", 0.89, 0.91), runs("b", 0.886, 0.886), runs("c", 0.885, 0.885))
        assert leaders(shown) == {("a", "adult 64"), ("b", "adult 64")}

    def test_seeds_of_its_own_make_no_score_a_leader(self) -> None:
        best, near, other = runs("a", 0.80, 0.81, 0.82), runs("b", 0.80, 0.80, 0.81), runs("c", 0.70, 0.71, 0.72)
        before = tabulate(fine_alone([*best, *near, *other])).of("fine")[0].leaders
        more = [record("c", 0.99, seed=seed) for seed in range(3, 20)]
        assert tabulate(fine_alone([*best, *near, *other, *more])).of("fine")[0].leaders == before == {(0, 0), (1, 0)}

    def test_a_single_seed_leads_nothing(self) -> None:
        assert leaders(board(runs("a", 0.9), runs("b", 0.8))) == set()

    def test_a_ceiling_never_leads_and_a_floor_can(self) -> None:
        shown = board(
            runs("top", 0.98, 0.99, role="ceiling"), runs("a", 0.80, 0.81), runs("base", 0.90, 0.91, role="floor")
        )
        assert leaders(shown) == {("base", "adult 64")}

    def test_a_score_with_failed_seeds_does_not_lead(self) -> None:
        shown = board(
            runs("a", 0.70, 0.71, 0.72), [*runs("b", 0.98, 0.99), failed("b", seed=2)], runs("c", 0.60, 0.61, 0.62)
        )
        assert leaders(shown) == {("a", "adult 64")}

    def test_a_column_of_one_newcomer_is_no_contest(self) -> None:
        shown = board(
            runs("a", 0.7, 0.8), runs("b", 0.5, 0.6), [*runs("new", 0.1, 0.2), *runs("new", 0.9, 0.9, bag_size=256)]
        )
        assert leaders(shown) == {("a", "adult 64")}
