"""Plots: which are drawn for which journals, unchanged names, and reproducible files."""

from __future__ import annotations

import re
import warnings
from itertools import product
from math import log2
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from factory import failed, fine_alone, record, runs
from made import fine
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from pandas import Series

from llpbench.core.record import Record
from llpbench.report.plots.figures import KINDS, _pareto_front, gallery, proportions
from llpbench.report.plots.layout import Drawing, save
from llpbench.report.report_table import Plot
from llpbench.report.statistics import interval
from llpbench.report.tabulate import Leaderboards

SVG = "{http://www.w3.org/2000/svg}"

ODD = (
    "<script>alert(1)</script>",
    "cost $x_1$ and $y$",
    r"back\$lash_{label}-{rank}",
    "_under & 'quoted\"",
    "smile-😀",
    "control\x00\x1b[31m\n",
    "long-" + "x" * 70 + "-end",
)

BAGS = {"number": 4, "histograms": [[0] * 18 + [3, 1], [1, 3] + [0] * 18]}


BOTH, THREE = ("adult", "credit"), ("dllp", "llp-vat", "mine")


def journal(
    methods: Any = THREE, *, sizes: Any = (64, 256), datasets: Any = BOTH, seeds: int = 2, **facts: Any
) -> list[Record]:
    """Return a small complete benchmark with floor and ceiling."""
    every = [*((method, "") for method in methods), ("supervised", "ceiling"), ("bag-soft-label", "floor")]
    made = []
    for (place, (method, role)), dataset, size, seed in product(enumerate(every), datasets, sizes, range(seeds)):
        auc = 0.9 - 0.01 * log2(size) - 0.007 * place - 0.001 * seed * (1 + place)
        made.append(record(method, auc, role=role, dataset=dataset, bag_size=size, seed=seed, **facts))
    return made


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Plot], Path]:
    """Return all figures of methods with odd names, and their folder."""
    records = [*journal(ODD, datasets=("adult", "<b>$1$"), bags=BAGS), failed("broken")]
    records += runs("late", 0.8, None, pretraining="bag")
    folder = tmp_path_factory.mktemp("plots")
    return save(gallery(Leaderboards.of(records)), folder), folder


def test_every_figure_is_drawn_if_data_exist(odd: tuple[list[Plot], Path]) -> None:
    plots, folder = odd
    kinds = {"bag-size", "time", "differences", "robustness", "proportions"}
    assert {kind for kind in kinds for plot in plots if plot.name.startswith(kind)} == kinds
    for plot in plots:
        assert plot.svg == (folder / f"{plot.name}.svg").read_text(encoding="utf-8")
        assert len(plot.svg) < 100_000
        assert plot.svg.count("prefers-color-scheme:dark") == 1
        assert plot.caption.endswith(".")
        root = ElementTree.fromstring(plot.svg)
        size = [float((root.get(name) or "").removesuffix("pt")) for name in ("width", "height")]
        assert [plot.width, plot.height] == pytest.approx(size, abs=0.51)
    assert {file.name for file in folder.glob("[!.]*")} == {f"{plot.name}.svg" for plot in plots}
    assert save(gallery(Leaderboards((), Leaderboards.of([]).origin)), folder / "none") == []
    assert save(gallery(Leaderboards.of([failed("dllp", bags={}), failed("mine", bags={})])), folder / "none") == []


def test_foreign_names_are_plain_text_in_figures(odd: tuple[list[Plot], Path]) -> None:
    texts = set()
    for plot in odd[0]:
        assert "<script" not in plot.svg
        assert "mathdefault" not in plot.svg
        texts |= {"".join(text.itertext()) for text in ElementTree.fromstring(plot.svg).iter(f"{SVG}text")}
    everything = "\n".join(texts)
    assert all(name in everything for name in ODD[:5])
    assert "control [31m" in everything
    assert ODD[-1] not in everything
    assert re.search(r"long-x+…x+-end", everything)


def test_svg_ignores_user_settings(tmp_path: Path) -> None:
    boards = Leaderboards.of(journal(("dllp", "mine"), datasets=("adult",), bags=BAGS, aucs={"auc": 0.8}))
    first = save(gallery(boards), tmp_path / "first")
    with matplotlib.rc_context({"font.size": 30, "lines.linewidth": 9, "svg.fonttype": "path"}):
        mine = dict(matplotlib.rcParams)
        second = save(gallery(boards), tmp_path / "second")
        assert dict(matplotlib.rcParams) == mine
    assert first == second
    plot = next(plot for plot in first if plot.name.startswith("time-"))
    texts = " ".join("".join(text.itertext()) for text in ElementTree.fromstring(plot.svg).iter(f"{SVG}text"))
    assert all(word in texts for word in plot.title.split())


@pytest.mark.parametrize(
    "records",
    [
        pytest.param(journal(seeds=1, sizes=(64,)), id="single seed"),
        pytest.param(runs("dllp", 0.8, 0.9, bags=BAGS), id="single method"),
        pytest.param([*runs("a", 0.8, 0.8), *runs("b", 0.8, 0.8), *runs("c", 0.8, 0.8)], id="no variance"),
        pytest.param([*runs("a", None, None), *runs("b", 0.8, None)], id="no AUC"),
        pytest.param([*runs("a", 0.4, 0.3), *runs("b", 0.45, 0.2)], id="worse than chance"),
        pytest.param([*runs("a", 0.8, 0.9), *runs("b", 0.7, dataset="credit"), failed("c")], id="missing and failed"),
        pytest.param(runs("g", 0.8, 0.9, encoder=None, times={"total": 1.0}), id="direct, without times"),
        pytest.param(runs("a", 0.8, 0.9, bags={"number": 0, "histograms": []}), id="empty bags"),
    ],
)
def test_incomplete_journals_are_drawn_without_warnings(records: list[Record], tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("default", module=r"(?!llpbench|matplotlib|seaborn)")
        plots = save(gallery(Leaderboards.of(fine_alone(records))), tmp_path)
    for plot in plots:
        ElementTree.fromstring(plot.svg)


def points(line: Line2D) -> list[tuple[float, float]]:
    """Where a line goes, x and y, without what rounding alone explains."""
    return [(x, round(y, 6)) for x, y in np.asarray(line.get_xydata()).tolist()]


def test_differences_figure_compares_leader_with_ranked_entries() -> None:
    scores = {"first": (0.9, 0.8, 0.7), "second": (0.8, 0.75, 0.6), "third": (0.6, 0.85, 0.5)}
    places = [(method, *pair) for method, aucs in scores.items() for pair in zip("xyz", aucs, strict=True)]
    records = [run for method, dataset, auc in places for run in runs(method, auc, auc, dataset=dataset)]
    records += [*runs("elsewhere", 0.99, dataset="x"), *runs("supervised", 0.99, role="ceiling", dataset="x")]
    of = fine(records)
    (drawing,) = KINDS["differences"](of, "x")
    (ax,) = visible(drawing)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["second", "third"]
    means = [points(line)[0][0] for line in ax.get_lines() if line.get_marker() == "o"]
    ends = [[x for x, _ in points(line)] for line in ax.get_lines() if line.get_marker() == "None"]
    for place, name in enumerate(("second", "third")):
        gaps = [100 * (other - one) for one, other in zip(scores["first"], scores[name], strict=True)]
        assert means[place] == pytest.approx(sum(gaps) / 3)
        assert ends[place] == pytest.approx(interval(gaps))
    assert not list(KINDS["differences"](fine(runs("a", 0.8, 0.9)), "x"))


def test_robustness_bars_are_sorted_by_mean_rank() -> None:
    records = [*runs("first", 0.80, 0.90), *runs("second", 0.70, 0.72), *runs("third", 0.60, 0.64)]
    (drawing,) = KINDS["robustness"](fine(records), "x")
    (ax,) = visible(drawing)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["second", "third", "first"]
    assert [bar.get_width() for bar in ax.containers[0]] == [1, 2, 3]
    assert len({bar.get_facecolor() for bar in ax.containers[0]}) == 1
    assert [text.get_text() for text in ax.texts] == ["± 1.4", "± 2.8", "± 7.1"]
    assert not list(KINDS["robustness"](fine(journal(seeds=1)), "x"))
    (drawing,) = KINDS["robustness"](fine([*runs("share", 0.5, 0.5, role="floor"), *runs("worse", 0.40, 0.45)]), "x")
    assert "share" not in drawing.title, "the first on the board is constant"
    unranked = [
        *runs("a", 0.7, 0.8),
        failed("a", seed=2),
        failed("b", seed=0),
        record("b", 0.6, seed=1),
        record("b", seed=2),
    ]
    assert len(list(KINDS["robustness"](fine(unranked), "x"))) == 1


def test_pareto_front_has_undominated_entries() -> None:
    alike = Series({"b": 1.0, "a": 1.0, "c": 0.5})
    assert _pareto_front(alike, alike) == ["c", "b", "a"], "equal ones are both ahead"

    def timed(method: str, auc: float, seconds: float, **facts: Any) -> Record:
        return record(method, auc, times={"train": seconds, "warm-up": 1.0, "total": 99.0}, **facts)

    of = fine(
        [
            timed("fast", 0.7, 1.0),
            timed("better", 0.8, 10.0),
            timed("beaten", 0.75, 20.0),
            timed("supervised", 0.9, 2.0, role="ceiling"),
            record("best", 0.85, pretraining="self", times={"train": 1.0, "pretraining": 50.0, "total": 9.0}),
        ]
    )

    front = _pareto_front(of.costs().mean()[of.learners], of.mean()["mean"][of.learners])
    assert [of.entries["method"][entry] for entry in front] == ["fast", "better", "best"]
    (drawing,) = KINDS["time"](of, "x")
    (ax,) = visible(drawing)
    steps = next(points(line) for line in ax.get_lines() if len(points(line)) > 3)
    assert steps[:3] == [(2.0, 70.0), (11.0, 80.0), (51.0, 85.0)]
    assert "in 51.0 s" in drawing.title
    times = {"train": 1.0, "total": 2.0, "cpu train": 0.25, "cpu total": 0.5}
    by_cpu = [record("a", 0.8, times=times), record("b", 0.7, times=times | {"cpu train": 0.5})]
    (measured,) = KINDS["time"](fine(by_cpu), "x")
    assert visible(measured)[0].get_xlabel() == "training time of a run (CPU seconds)"
    assert "in 0.25 s" in measured.title
    (partly,) = KINDS["time"](fine([by_cpu[0], record("b", 0.7, times={"train": 1.0, "total": 2.0})]), "x")
    assert visible(partly)[0].get_xlabel() == "training time of a run (seconds)"
    assert "in 1.00 s" in partly.title


def test_bag_size_curves_show_means() -> None:
    records = [*runs("a", 0.8, 0.9, 0.85), *runs("a", 0.6, bag_size=1024)]  # of a single seed no spread
    (drawing,) = KINDS["bag-size"](fine(records), "x")
    (ax,) = visible(drawing)
    (line,) = ax.get_lines()
    assert points(line) == [(0, 85), (1, 60)]
    assert np.allclose(ax.collections[0].get_segments()[0][:, 1], [80, 90])  # type: ignore[attr-defined]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["64", "1024"]
    assert "loses 25.0 " in drawing.title, "not gains"
    assert not list(KINDS["bag-size"](fine(journal(sizes=(64,), datasets=("adult",))), "x"))
    several = [
        record("a", 0.9 - 0.01 * number * (size == 1024), dataset=f"d{number}", bag_size=size)
        for number in range(9)
        for size in (64, 1024)
    ]
    (drawing,) = KINDS["bag-size"](fine(several), "x")
    assert "loses 4.0 points on average of 9 datasets" in drawing.title, "not only of those drawn"
    apart = [record("a", 0.9, dataset=f"d{size}", bag_size=each) for size in (64, 512) for each in (size, 2 * size)]
    (drawing,) = KINDS["bag-size"](fine(apart), "x")
    assert "points" not in drawing.title, "no dataset has both ends"


def test_reliability_pools_seeds_and_omits_small_bins() -> None:
    def judged(method: str, seed: int, role: str = "", rows: int = 60) -> Record:
        made = record(method, 0.8, seed=seed, role=role)
        for result in made["results"].values():
            result["reliability"] = [[rows, 0.25, 0.5], [rows * (seed + 1) - 20, 0.75, 0.75 + seed / 4]]
        return made

    records = [judged("a", seed) for seed in (0, 1)] + [judged("supervised", 0, "ceiling"), record("b", 0.7)]
    (drawing,) = KINDS["reliability"](fine(records), "x")
    (panel,) = visible(drawing)
    _, curve = panel.lines
    assert panel.get_title() == "a"
    assert points(curve) == [(0.25, 0.5), (0.75, round((40 * 0.75 + 100 * 1.0) / 140, 6))]
    assert not list(KINDS["reliability"](fine([judged("a", 0, rows=49)]), "x"))
    assert not list(KINDS["reliability"](fine([record("a", 0.7)]), "x"))


def test_proportions_figure_uses_dataset_with_most_baggings() -> None:
    """At the usual size, ordered and random bags first, then such as follow a column."""
    made = ["kmeans", "column:by=job+education", "random", "column:by=job", "ordered"]
    records = [record("a", dataset="adult", bagging=bagging, bags=BAGS, bag_size=256) for bagging in made]
    records += [record("a", dataset="adult", bags=BAGS), record("a", dataset="aaa", bags=BAGS)]
    (drawing,) = proportions(Leaderboards.of(records))
    shown = [ax.get_title().split("\n")[0] for ax in visible(drawing)]
    assert shown == ["ordered bags, 256 rows", "random bags, 256 rows", "bags by job", "kmeans bags, 256 rows"]
    assert drawing.setting == "adult"
    assert not list(proportions(Leaderboards.of(journal(bags={}))))


def test_gallery_has_figures_of_first_board_and_differences_of_second_bagging() -> None:
    many = [*journal(bags=BAGS), *journal(("direct", "other"), bagging="random", encoder=None, seeds=1)]
    names = [drawing.name for drawing in gallery(Leaderboards.of([*many, *runs("direct", 0.8, 0.9, bagging="kmeans")]))]
    coarse = "coarse-mpiou-ordered"
    assert names[:3] == [f"differences-{coarse}", "differences-fine-random", f"robustness-{coarse}"]
    assert names[3:] == ["time-coarse-mpiou-ordered", "bag-size-coarse-mpiou-ordered", "proportions"]


def visible(drawing: Drawing) -> list[Axes]:
    return [ax for ax in drawing.figure.axes if ax.get_visible()]
