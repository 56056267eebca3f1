"""Leaderboard columns and ranks, computed by hand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from bench import refusal
from factory import failed, record, runs
from made import fine, make_report, summary
from pandas import DataFrame, MultiIndex, Series, isna

from llpbench.core.errors import LLPBenchError
from llpbench.core.record import Record
from llpbench.report import leaderboard
from llpbench.report.board_tables import ANCHOR
from llpbench.report.boards import Board
from llpbench.report.leaderboard import COLUMNS, SIZES, LeaderboardColumn, comparisons, label_worth, register_column
from llpbench.report.overview import Standings
from llpbench.report.publishing import Published
from llpbench.report.report_table import ReportTable


def board(*groups: list[Record]) -> Board:
    return fine(run for group in groups for run in group)


def standing(of: Board, label: str) -> dict[Any, Any]:
    """Return the parts of all columns of an entry; None for unknown ones."""
    place = of.labels.index(label)
    return {key: None if isna(value) else value for key, value in Standings.of(of).lines.loc[place].items()}


def parts(of: Board, label: str, column: str, *names: str) -> tuple[Any, ...]:
    """Return parts of a column of an entry."""
    found, prefix = standing(of, label), "" if column == "mean" else f"{column}_"
    return tuple(found[f"{prefix}{name}"] for name in names)


def overall(of: Board, label: str) -> tuple[Any, ...]:
    return parts(of, label, "mean", "mean", "std", "n")


def both(method: str, small: tuple[float, ...], large: tuple[float, ...], **facts: object) -> list[Record]:
    return [*runs(method, *small, **facts), *runs(method, *large, bag_size=256, **facts)]  # type: ignore[arg-type]


FOUR = (
    both("supervised", (0.90, 0.92), (0.90, 0.90), role="ceiling"),  # means 91, 90
    both("a", (0.80, 0.84), (0.70, 0.70)),  # means 82, 70
    both("b", (0.82, 0.80), (0.60, 0.62)),  # means 81, 61
    both("bag-soft-label", (0.70, 0.72), (0.60, 0.60), role="floor"),  # means 71, 60
)


def test_overall_mean_has_spread_over_seeds() -> None:
    # seed 0: (80 + 70) / 2 = 75, seed 1: (84 + 70) / 2 = 77: std sqrt(2)
    assert overall(board(*FOUR), "a (mlp)") == pytest.approx((76.0, 2**0.5, 2))
    single = board(runs("a", 0.8), runs("b", 0.7))
    assert overall(single, "a (mlp)") == (80.0, None, 1)
    assert parts(single, "a (mlp)", "interval", "low", "high") == (None, None)
    # d: (80 + 70) / 2 = 75 and (84 + 72) / 2 = 78, variance 4.5; e: 60 and 64, variance 8. Mean of both: 69.25, with
    # variance (4.5 + 8) / 4. Were seed 0 of d paired with seed 0 of e, it would be (67.5, 71): 6.1
    made = [*runs("a", 0.80, 0.84, dataset="d"), *runs("a", 0.70, 0.72, dataset="d", bag_size=256)]
    found = overall(board(made, runs("a", 0.60, 0.64, dataset="e")), "a (mlp)")
    assert found == pytest.approx((69.25, (12.5 / 4) ** 0.5, 2))
    # datasets weigh equally, however many seeds and sizes they have: (10 + (30 + 50) / 2) / 2; over runs it would be 22
    made = [*runs("a", 0.1, 0.1, 0.1, dataset="x"), *runs("a", 0.3, dataset="y")]
    found = overall(board(made, runs("a", 0.5, dataset="y", bag_size=128)), "a (mlp)")
    assert found == (pytest.approx(25.0), None, 1)
    apart = board(*([record(m, 0.8, seed=0), record(m, 0.6, seed=1, bag_size=256)] for m in ("a", "b")))
    assert overall(apart, "a (mlp)") == (70.0, None, 0), "seeds that no column shares have no spread"


def datasets(method: str, *aucs: float, **facts: object) -> list[Record]:
    """One run on each of several datasets."""
    return [record(method, auc, dataset=f"d{i}", **facts) for i, auc in enumerate(aucs)]  # type: ignore[arg-type]


def test_every_entry_is_compared_with_baseline() -> None:
    scores = {"a": (0.80, 0.75, 0.76), "floor": (0.70, 0.73, 0.70), "b": (0.60, 0.70, 0.65)}
    found = board(*(datasets(name, *aucs, role="floor" if name == "floor" else "") for name, aucs in scores.items()))
    ranked = [*found.entries[["method", "rank", "mark"]].itertuples(index=False, name=None)]
    assert ranked == [("a", 1, ""), ("floor", 2, "floor"), ("b", 3, "")]
    # 10, 2 and 6: mean 6, std 4, t of 2 degrees of freedom 4.3027: 6 ± 4.3027 * 4 / sqrt(3)
    assert parts(found, "a (mlp)", "floor", "points", "ahead", "of") == pytest.approx((6.0, 3, 3))
    assert parts(found, "a (mlp)", "floor", "low", "high") == pytest.approx((6 - 9.9366, 6 + 9.9366), abs=1e-3)
    assert standing(found, "b (mlp)")["floor_points"] == pytest.approx(-6.0)
    assert standing(found, "floor (mlp)")["floor_points"] is None
    two = board(datasets("a", 0.80, 0.75), datasets("floor", 0.70, 0.73, role="floor"))
    assert parts(two, "a (mlp)", "floor", "points", "low", "high") == (pytest.approx(6.0), None, None)


def test_first_is_compared_with_best_entry_of_each_method_outside_its_family() -> None:
    names = ["adult", "bank_marketing", *"cdefgh"]
    aucs = {"bag-gp-gbdt": 0.90, "bag-gp": 0.89, "close": 0.895, "far": 0.80, "bag-share": 0.5}
    found = [
        record(
            method,
            auc + 0.001 * ((seed + place) % 3) + (0.5 - auc if name == "adult" else 0),
            dataset=name,
            seed=seed,
            role="floor" if method == "bag-share" else "",
        )
        for method, auc in aucs.items()
        for place, name in enumerate(names)
        for seed in range(3)
    ]
    found += [record("far", 0.7, dataset=name, seed=seed, pretraining="bag") for name in names for seed in range(3)]
    shown = board(found)
    verdict = comparisons(shown)
    labels = {shown.labels[entry]: lead.points for entry, lead in verdict.leads.items()}
    assert labels == pytest.approx({"close (mlp)": 0.5, "far (mlp)": 10.0})
    assert (verdict.is_tested, verdict.over, verdict.left_out) == (True, "6 datasets", ("adult", "bank_marketing"))
    lines = Standings.of(shown)
    assert [[*of["method"]] for of in (lines.similar, lines.worse)] == [["close"], ["close", "far"]]
    few = board([run for run in found if run["spec"]["dataset"] not in "gh"])
    assert not comparisons(few).is_tested
    assert Standings.of(few).compared.empty
    assert parts(shown, "far (mlp)", "first", "points")[0] == pytest.approx(-10.0)
    own = comparisons(board([run for run in found if run["spec"]["dataset"] in names[:2]]))
    assert (own.over, own.left_out) == ("2 datasets of its development", ())


@pytest.mark.parametrize(("devices", "marked"), [("cpu cuda", [0, 1]), ("cpu cpu", [0, 0]), ("cuda cuda", [0, 0])])
def test_gpu_seconds_are_marked(devices: str, marked: list[bool]) -> None:
    one, other = ({**record()["hardware"], "device": device} for device in devices.split())
    lost = [failed("llp-vat", seed=2, hardware={})]
    found = board(runs("dllp", 0.9, 0.9, hardware=one), runs("llp-vat", 0.8, 0.8, hardware=other), lost)
    assert ["GPU" in field.lines[0] for field in COLUMNS["seconds"].fields(Standings.of(found).lines)] == marked
    assert len(found.hardware) == len({*devices.split()})


def test_ranking_follows_direction_of_metric() -> None:
    made = [*runs("a", 0.8, 0.8), *runs("b", 0.8, 0.8)]
    for run in made:
        is_a = run["spec"]["method"] == "a"
        for result in run["results"].values():
            result["test"] |= {"brier": 0.2, "accuracy": 0.9} if is_a else {"brier": 0.1, "accuracy": 0.7}
    for metric, expected, best in (("accuracy", ["a", "b"], 90.0), ("brier", ["b", "a"], 10.0)):
        found = fine(made, metric=metric)
        assert order(found) == [(expected[0], 1), (expected[1], 2)]
        assert summary(found) == pytest.approx((best, 0.0, 2))
        assert found.leaders == {(0, 0)}
        assert ("highest", "lowest")[metric == "brier"] in Standings.of(found).headline


def test_difference_from_the_floor_has_the_sign_of_the_metric() -> None:
    made = [*datasets("a", 0.8, 0.8, 0.8), *datasets("floor", 0.7, 0.7, 0.7, role="floor")]
    for run in made:
        for result in run["results"].values():
            result["test"]["brier"] = {"a": 0.1, "floor": 0.2}[run["spec"]["method"]]
    found = standing(fine(made, metric="brier"), "a (mlp)")
    assert [found[f"floor_{part}"] for part in ("points", "low", "high", "ahead")] == pytest.approx([-10, -10, -10, 3])


def test_entry_without_encoder_is_compared_with_the_first_complete_floor() -> None:
    direct = runs("direct", 0.9, 0.9, encoder=None, protocol=None)
    floors = [*runs("floor", 0.7, 0.7, role="floor"), *runs("floor", 0.6, encoder="early", role="floor")]
    found = board(direct, floors, runs("a", 0.8, 0.8, encoder="early"))
    assert standing(found, "direct")["floor_points"] == pytest.approx(20.0)


def test_incomplete_ceiling_does_not_hide_a_complete_one() -> None:
    both_seeds = runs("gbdt", 0.95, 0.95, encoder=None, protocol=None, role="supervised")
    shown = Standings.of(board(runs("a", 0.8, 0.8), both_seeds, [record("supervised", 0.9, role="ceiling")])).table()
    assert "gbdt" in shown.columns[1][1][-1].lines[0]


@pytest.fixture
def no_memory_column(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(COLUMNS, "memory", COLUMNS["mean"])  # so that it is removed at the end
    del COLUMNS["memory"]


def peak(board: Board, field: str = "memory_mb") -> DataFrame:
    return DataFrame({"": board.runs.groupby("entry")[field].max()})


@pytest.mark.usefixtures("no_memory_column")
def test_plugin_column_is_on_every_board() -> None:
    column = LeaderboardColumn("memory", "MB", ("",), peak, lambda parts: f"{parts['']:.0f}", caption="Peak memory.")
    register_column(column)
    found = board(*FOUR)
    assert [field.lines for field in column.fields(Standings.of(found).lines)] == [("100",)] * 4
    with pytest.raises(LLPBenchError, match="'memory' is registered already"):
        register_column(column)


@pytest.mark.usefixtures("no_memory_column")
@pytest.mark.parametrize(("field", "fault"), [("memory", "KeyError"), ("memory_mb", "IndexError")])
def test_broken_plugin_column_names_its_file(field: str, fault: str) -> None:
    column = LeaderboardColumn("memory", "MB", ("",), lambda of: peak(of, field), lambda parts: str(parts[""])[99])
    register_column(column)
    with refusal(f"(?=.*'memory')(?=.*{re.escape(__file__)}).*{fault}"):
        column.fields(Standings.of(board(*FOUR)).lines)
    assert column.explained(board(*FOUR)) == "", "no caption was given"


def test_board_without_complete_entry_has_no_ranks() -> None:
    runs = [(lacking, number, seed) for lacking in range(3) for number in range(6) for seed in range(3)]
    found = board([record(f"m{a}", seed=seed, dataset=f"d{b}") for a, b, seed in runs if (b, seed) != (a, 0)])
    assert len(found.counting) == 18
    assert [*found.entries["rank"]] == [None] * 3
    assert Standings.of(found).lines[["interval_low", "first_points"]].isna().all(axis=None)
    disjoint = board([record("a", 0.8)], [record("b", 0.9, bag_size=256)])
    assert order(disjoint) == [("a", None), ("b", None)]
    assert len(disjoint.counting) == 0, "half of the methods is too few"


def order(shown: Board) -> list[tuple[str, int | None]]:
    return [*zip(shown.entries["method"], shown.entries["rank"], strict=True)]


def test_entries_are_ranked_by_mean_over_tasks() -> None:
    shown = board(
        [record("floor", 0.95, role="floor")],  # best of all, but unranked
        [record("b", 0.70), record("b", 0.90, bag_size=256)],  # mean 80
        [record("a", 0.75), record("a", 0.83, bag_size=256)],  # mean 79
        [record("low-ceiling", 0.60, role="ceiling"), record("high-ceiling", 0.99, role="ceiling")],
    )
    assert order(shown) == [("high-ceiling", None), ("low-ceiling", None), ("b", 1), ("a", 2), ("floor", None)]


def test_failed_seed_costs_rank() -> None:
    shown = board(runs("a", 0.7, 0.7), [record("b", 0.99, seed=0), failed("b", seed=1)], runs("c", 0.6, 0.6))
    assert order(shown) == [("a", 1), ("c", 2), ("b", None)]
    everybody = [record("a", 0.7), failed("a", seed=1)], [record("b", 0.6), failed("b", seed=1)]
    assert order(board(*everybody)) == [("a", 1), ("b", 2)], "a seed that nobody has completed"
    column = [record("a", 0.7), record("a", 0.5, bag_size=256)], [record("b", 0.99), failed("b", bag_size=256)]
    assert order(board(*column)) == [("a", 1), ("b", None)]


def test_entries_within_one_std_of_best_are_marked() -> None:
    # a: 90 ± 1.41, so b at 88.6 is within one std and c at 88.5 is not
    close = board(runs("a", 0.89, 0.91), runs("b", 0.886, 0.886), runs("c", 0.885, 0.885))
    apart, single = board(runs("a", 0.90, 0.92), runs("b", 0.80, 0.82)), board(runs("a", 0.9), runs("b", 0.8))
    assert [shown.leaders for shown in (close, apart, single)] == [{(0, 0), (1, 0)}, {(0, 0)}, set()]
    more = board(runs("a", 0.89, 0.91), runs("b", 0.886, 0.886, 0.5, encoder=None, protocol=None))
    assert more.leaders == {(0, 0)}, "the mean that is shown, of all three seeds, decides"


KEYS = MultiIndex.from_product([["forest"], ["one", "two"], [0, 1]], names=["learner", "dataset", "seed"])
RISING = [60.0, 62.0, 64.0, 66.0, 68.0, 70.0, 72.0, 74.0, 76.0, 78.0]
"""two points for each doubling of labelled rows"""


@pytest.fixture
def curves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaderboard, "_label_curves", lambda: DataFrame([RISING] * 4, KEYS, [*SIZES]))


def scores(**auc: list[float]) -> DataFrame:
    return DataFrame(auc, KEYS.droplevel("learner"))


@pytest.mark.usefixtures("curves")
def test_label_worth_inverts_the_curve_and_divides_by_the_geometric_mean_of_bags() -> None:
    found = label_worth(scores(a=[66.0] * 4, b=[69.0] * 4, c=[90.0] * 4), Series({"one": 4.0, "two": 16.0}))
    assert found["labels"].tolist() == pytest.approx([64, 128 * 2**0.5, 4096])
    assert found["per_bag"].tolist() == pytest.approx([8, 16 * 2**0.5, 512])


@pytest.mark.usefixtures("curves")
def test_interval_has_no_width_if_datasets_and_seeds_agree_and_contains_the_value_if_they_differ() -> None:
    bags = Series({"one": 8.0, "two": 8.0})
    found = label_worth(scores(equal=[66.0] * 4, spread=[62.0, 64.0, 68.0, 70.0]), bags)
    assert found["low"]["equal"] == pytest.approx(found["high"]["equal"]) == pytest.approx(8)
    assert found["low"]["spread"] == pytest.approx(2, rel=0.5)
    assert found["per_bag"]["spread"] == pytest.approx(8)
    assert found["high"]["spread"] > 8


@pytest.mark.usefixtures("curves")
def test_datasets_without_curves_have_no_label_worth() -> None:
    other = scores(a=[66.0] * 4).rename(index={"two": "three"})
    assert label_worth(other, Series({"one": 8.0, "three": 8.0})).empty


TASKS: list[dict[str, Any]] = [{}, {"bag_size": 256}, {"dataset": "credit"}]


def test_differences_are_paired_by_dataset_or_by_seeds_of_the_only_shared_one() -> None:
    found = board(datasets("a", 0.8, 0.8), datasets("b", 0.7, 0.6))
    assert found.paired(Series({(0, 0): 1.0, (0, 1): 3.0, (1, 0): 5.0})) == [2.0, 5.0]
    assert found.paired(Series({(0, 0): 1.0, (0, 1): 3.0})) == [1.0, 3.0]


def on_tasks(method: str, *aucs: tuple[float, float], **facts: Any) -> list[Record]:
    return [run for task, pair in zip(TASKS, aucs, strict=True) for run in runs(method, *pair, **task, **facts)]


RECORDS = [
    *on_tasks("steady", (0.80, 0.81), (0.70, 0.73), (0.60, 0.66)),
    *on_tasks("good", (0.90, 0.94), (0.80, 0.81), (0.90, 0.98)),
    *on_tasks("bag-share", *[(0.5, 0.5)] * 3, role="floor", encoder=None),
    *runs("supervised", 0.99, 0.99, role="ceiling"),
]


def test_tasks_with_more_seeds_do_not_count_more() -> None:
    found = fine(RECORDS)
    assert found.paired(Series({(0, 0): 6.0, (0, 1): 6.0, (1, 0): -4.0, (2, 0): 1.0})) == [1.0, 1.0]
    assert found.paired(Series({(0, 0): 1.0, (0, 1): 3.0, (1, 0): 5.0})) == [3.0]
    shared = {"a": (0.9, 0.8), "b": (0.7, 0.65)}
    large = [record(name, auc, bag_size=256) for name, auc in (("a", 0.5), ("b", 0.8))]
    found = fine([*(run for name, aucs in shared.items() for run in runs(name, *aucs)), *large])
    (lead,) = comparisons(found).leads.values()
    assert lead.points == pytest.approx((67.5 + 80) / 2 - (85 + 50) / 2)
    assert not lead.has_interval
    assert Standings.of(found).lines[["interval_low", "interval_high"]].isna().all(axis=None)


def ranking(records: list[Record]) -> ReportTable:
    return make_report(records).robustness[0]


def test_mean_ranks_average_tasks_then_datasets() -> None:
    board = fine(RECORDS)
    found = board.robustness()
    assert [*board.entries["method"][found.index]] == ["steady", "good"]
    # adult: steady has ranks 1 and 2, good 2 and 1; credit: 1 and 2
    assert found["mean_rank"].tolist() == [(1.5 + 1) / 2, (1.5 + 2) / 2]
    root = 2**0.5
    assert found["std"].tolist() == pytest.approx([((1 + 3) / 2 + 6) / 2 / root, ((4 + 1) / 2 + 8) / 2 / root])
    assert found["mean"].tolist() == pytest.approx([((80.5 + 71.5) / 2 + 63) / 2, ((92 + 80.5) / 2 + 94) / 2])
    assert found["tasks"].tolist() == [3, 3]


def test_equal_mean_ranks_share_a_rank_and_one_seed_has_none() -> None:
    found = fine([*runs("a", 0.7, 0.8), *runs("b", 0.5, 0.6), *runs("c", 0.5, 0.7)]).robustness()
    assert found[["rank", "mean_rank"]].to_numpy().tolist() == [[1, 1.5], [1, 1.5], [3, 3]]
    both = [*runs("tabllp-bdc", 0.8, 0.9), *runs("tabllp-bdc", 0.8, 0.84, pretraining="self+bag")]
    assert [row[1].lines[0] for row in ranking(both).rows] == ["tabllp-bdc (mlp, self+bag)", "tabllp-bdc (mlp)"]
    assert make_report([record("a", 0.8), record("b", 0.7)]).robustness == []


def test_constants_methods_trained_on_labels_and_incomplete_entries_have_no_rank() -> None:
    half = [record("half", 0.7), record("half", 0.7, seed=1), record("half", 0.7, bag_size=256)]
    learning_floor = on_tasks("bag-soft-label", (0.51, 0.5), (0.5, 0.5), (0.5, 0.5), role="floor")
    table = ranking([*RECORDS, *half, *learning_floor])
    assert [row[1].lines[0] for row in table.rows] == ["bag-soft-label (mlp)", "steady (mlp)", "good (mlp)"]
    assert "constant predictions (bag-share)" in table.caption
    assert table.notes == {"Not ranked: without two seeds on every task": ("half (mlp)",)}


def test_readme_and_page_have_the_ranking_under_its_anchor(tmp_path: Path) -> None:
    Published.write(make_report(RECORDS), tmp_path)
    readme = (tmp_path / "README.md").read_text(encoding="utf-8")
    section = readme.partition(f"\n## {ANCHOR.capitalize()}\n")[2]
    assert "| 1 | steady (mlp) | 1.25 | 2.83 | 69.50 |\n| 2 | good (mlp) | 1.75 |" in section
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert f'<a href="#{ANCHOR}">' in page
    assert "2.83" in page.partition(f'id="{ANCHOR}"')[2].partition("</section>")[0]
