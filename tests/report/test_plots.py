"""Plots: what is drawn of which journals, that names are shown as they are, and that everything is reproducible."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log2
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from factory import failed, record, runs
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

from llpbench.core import registry
from llpbench.core.errors import LLPBenchError
from llpbench.core.record import Record
from llpbench.report.boards import Board, Leaderboards
from llpbench.report.leaderboard import costs
from llpbench.report.plots import Plot, draw_gallery, saving
from llpbench.report.plots.bag_sizes import bag_size_curves
from llpbench.report.plots.critical import critical_difference
from llpbench.report.plots.forest import differences, pretraining
from llpbench.report.plots.gallery import MOST, PLAN, every_kind, gallery
from llpbench.report.plots.heat_map import heat_map
from llpbench.report.plots.layout import LONGEST, labels, shown
from llpbench.report.plots.learning import learning_curves
from llpbench.report.plots.proportions import proportions, shares
from llpbench.report.plots.reliability import reliability
from llpbench.report.plots.robustness import _ticks, robustness
from llpbench.report.plots.saving import Drawing, save
from llpbench.report.plots.style import METHODS, method_style, row_styles
from llpbench.report.plots.svg import DARK, compacted
from llpbench.report.plots.time import front, time
from llpbench.report.statistics import interval
from llpbench.report.tabulate import tabulate

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

COURSE = {"auc": [0.6, 0.8, None, 0.7], "mpiou": [0.5, 0.6, 0.7], "l1": [0.4, 0.2, 0.3]}

BAGS = {"number": 4, "histograms": [[0] * 18 + [3, 1], [1, 3] + [0] * 18]}


def journal(
    methods: Sequence[str] = ("dllp", "llp-vat", "mine"),
    *,
    sizes: Sequence[int] = (64, 256),
    datasets: Sequence[str] = ("adult", "credit"),
    seeds: int = 2,
    **facts: Any,
) -> list[Record]:
    """A complete little benchmark, with floor and ceiling."""
    every = [*((method, "") for method in methods), ("supervised", "ceiling"), ("bag-soft-label", "floor")]
    return [
        record(
            method,
            0.9 - 0.01 * log2(size) - 0.007 * place - 0.001 * seed * (1 + place),
            role=role,
            dataset=dataset,
            bag_size=size,
            seed=seed,
            **facts,
        )
        for place, (method, role) in enumerate(every)
        for dataset in datasets
        for size in sizes
        for seed in range(seeds)
    ]


def saved(drawings: Iterable[Drawing], out: Path) -> list[Plot]:
    return save(drawings, out)


def board(records: Sequence[Record]) -> Board:
    return tabulate(records).boards[0]


@dataclass(frozen=True)
class Drawn:
    plots: list[Plot]
    records: list[Record]
    folder: Path

    def kinds(self) -> set[str]:
        return {plot.kind for plot in self.plots}


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Drawn:
    """Everything there is, of methods with odd names, drawn once."""
    records = [
        *journal(ODD, datasets=("adult", "<b>$1$"), curves=COURSE, bags=BAGS),
        *runs("late", 0.8, None, pretraining="bag"),
        failed("broken", dataset="adult"),
    ]
    folder = tmp_path_factory.mktemp("plots")
    return Drawn(draw_gallery(tabulate(records), folder), records, folder)


def test_every_kind_is_drawn_where_there_are_data_for_it(odd: Drawn) -> None:
    assert odd.kinds() == {
        "bag-size",
        "time",
        "differences",
        "critical-difference",
        "robustness",
        "heat-map",
        "learning-curves",
        "proportions",
    }
    for plot in odd.plots:
        assert (plot.svg, plot.png) == (odd.folder / f"{plot.name}.svg", None)
        assert plot.svg.stat().st_size < 100_000
        assert plot.title
        assert plot.caption.endswith(".")
    assert len({plot.name for plot in odd.plots}) == len(odd.plots)
    assert {file.name for file in odd.folder.glob("[!.]*")} == {plot.svg.name for plot in odd.plots}


def test_facts_tell_the_plots_apart(odd: Drawn) -> None:
    facts = {(plot.kind, plot.criterion, plot.dataset) for plot in odd.plots}
    assert {("time", "auc", None), ("time", "mpiou", None), ("learning-curves", None, "adult")} <= facts
    assert {plot.bagging for plot in odd.plots} == {"ordered"}
    assert {plot.bag_size for plot in odd.plots if plot.kind == "learning-curves"} == {256}


def test_names_from_outside_are_text_and_nothing_else(odd: Drawn) -> None:
    texts = set()
    for plot in odd.plots:
        raw = plot.svg.read_text(encoding="utf-8")
        assert "<script" not in raw
        assert "mathdefault" not in raw
        texts |= {"".join(text.itertext()) for text in ElementTree.fromstring(raw).iter(f"{SVG}text")}
    everything = "\n".join(texts)
    for name in ODD[:5]:
        assert name in everything
    assert "control [31m" in everything
    assert ODD[-1] not in everything
    assert re.search(r"long-x+…x+-end", everything)


def test_a_picture_says_what_it_is_of_and_can_be_dark(tmp_path: Path) -> None:
    plots = {plot.kind: plot for plot in draw_gallery(tabulate(journal()), tmp_path) if plot.criterion == "auc"}
    text = plots["time"].svg.read_text(encoding="utf-8")
    assert "epochs chosen by AUC of validation rows · ordered bags · at most 300 epochs, patience 20" in text
    assert text.count("prefers-color-scheme:dark") == 1


def test_ticks_of_small_spreads_do_not_touch() -> None:
    assert _ticks(1.7) == [-1.0, -0.5, 0.0, 0.5, 1.0]
    for edge in (0.01, 0.3, 1.7, 3.0, 10.0, 40.0, 100.0):
        ticks = np.arcsinh(np.array(_ticks(edge)) / 2.0)
        assert len(ticks) >= 5
        assert np.diff(ticks).min() >= 0.149 * np.arcsinh(edge / 2.0)
    assert _ticks(10.0) == [-10.0, -5.0, -2.0, -1.0, 0.0, 1.0, 2.0, 5.0, 10.0]


def test_a_png_is_drawn_where_it_is_asked_for_and_a_figure_once_for_each_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Drawing is most of what a report takes; `savefig` does it twice for each file."""
    drawn: list[str] = []
    draw = Figure.draw

    def counted(figure: Figure, renderer: Any) -> None:
        drawn.append(type(renderer).__name__)
        draw(figure, renderer)

    monkeypatch.setattr(Figure, "draw", counted)
    of = board(journal(("dllp",), datasets=("adult",)))
    (plot,) = save(robustness(of, "x"), tmp_path, png=True)
    assert drawn == ["MixedModeRenderer", "RendererAgg"]
    assert plot.png is not None
    assert plot.png.read_bytes().startswith(b"\x89PNG")
    drawn.clear()
    saved(robustness(of, "x"), tmp_path)
    assert drawn == ["MixedModeRenderer"]
    assert not plot.png.exists(), "an earlier one is deleted"


def test_pretraining_is_compared_with_the_same_method_without() -> None:
    """Seed by seed on a single dataset, on several by the means of their columns."""
    runs_of_a = [
        *runs("a", 0.8, 0.9),
        *runs("a", 0.85, 0.92, pretraining="bag"),
        *runs("b", 0.5, 0.5, pretraining="bag"),
    ]
    elsewhere = [*runs("a", 0.7, dataset="credit"), *runs("a", 0.6, pretraining="bag", dataset="credit")]
    for records, expected in ((runs_of_a, [5, 2]), ([*runs_of_a, *elsewhere], [3.5, -10])):
        (drawing,) = pretraining(board(records), "x")
        (ax,) = visible(drawing)
        dots = [line for line in ax.get_lines() if line.get_marker() == "o"]
        assert [x for line in dots for x, _ in points(line)] == pytest.approx(expected)
        assert [label.get_text() for label in ax.get_yticklabels()] == ["a (bag)"]
    assert not list(pretraining(board(runs("a", 0.8, 0.9)), "x"))


def test_the_leader_is_compared_with_every_other_ranked_row() -> None:
    datasets = {"x": (0.9, 0.8, 0.6), "y": (0.8, 0.75, 0.85), "z": (0.7, 0.6, 0.5)}
    scores = {"first": [], "second": [], "third": []}  # type: dict[str, list[float]]
    records = []
    for dataset, aucs in datasets.items():
        for method, auc in zip(scores, aucs, strict=True):
            scores[method].append(100 * auc)
            records += runs(method, auc, auc, dataset=dataset)
    of = board(
        [*records, *runs("elsewhere", 0.99, dataset="x"), *runs("supervised", 0.99, role="ceiling", dataset="x")]
    )
    (drawing,) = differences(of, "x")
    (ax,) = visible(drawing)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["second", "third"]
    found = {
        marker: [points(line) for line in ax.get_lines() if line.get_marker() == marker]
        for marker in ("o", "D", "None")
    }
    for place, name in enumerate(("second", "third")):
        gaps = [one - other for one, other in zip(scores["first"], scores[name], strict=True)]
        assert sorted(x for x, _ in found["o"][place]) == pytest.approx(sorted(gaps))
        assert found["D"][place][0][0] == pytest.approx(sum(gaps) / 3)
        assert [x for x, _ in found["None"][place]] == pytest.approx(interval(gaps))
    assert not list(differences(board(runs("a", 0.8, 0.9)), "x"))


def test_failed_runs_and_every_seed_are_seen() -> None:
    of = board([*runs("a", 0.8, 0.9, 0.7), failed("a", seed=3), *runs("b", 0.6, 0.6, 0.6, 0.6)])
    (drawing,) = robustness(of, "x")
    (ax,) = visible(drawing)
    found = [tuple(np.round(np.sort(np.asarray(dots.get_offsets())[:, 0]), 6).tolist()) for dots in ax.collections]
    assert sorted(found) == [(-10, 0, 10), (0, 0, 0, 0)]
    assert "× 1" in {text.get_text() for text in ax.texts}


def test_more_runs_than_a_row_has_room_for_are_a_density() -> None:
    many = [record("a", 0.8 + 0.001 * (seed % 7), dataset=f"d{d}", seed=seed) for d in range(13) for seed in range(10)]
    (drawing,) = robustness(board(many), "x")
    (ax,) = visible(drawing)
    (outline,) = ax.collections
    assert len(outline.get_paths()) == 1


def test_an_svg_has_the_same_bytes_each_time_whatever_the_users_settings(tmp_path: Path) -> None:
    boards = tabulate(journal(("dllp", "mine"), datasets=("adult",), curves=COURSE, bags=BAGS, aucs={"auc": 0.8}))
    first = draw_gallery(boards, tmp_path / "first")
    with matplotlib.rc_context({"font.size": 30, "lines.linewidth": 9, "svg.fonttype": "path"}):
        mine = dict(matplotlib.rcParams)
        second = draw_gallery(boards, tmp_path / "second")
        assert dict(matplotlib.rcParams) == mine
    assert [plot.svg.read_bytes() for plot in first] == [plot.svg.read_bytes() for plot in second]


def test_a_small_svg_is_the_same_picture() -> None:
    """Names with tags and styles in them stay as they are."""
    svg = (
        '<svg>\n<defs>\n<style type="text/css">*{}</style>\n</defs>\n<g id="axes_1">\n <g>\n  <g/>\n'
        '  <path id="m1" style="fill: #ffffff" d="M 1.23456 2"/>\n  <use xlink:href="#m1" style="fill: #000000"/>\n'
        '  <g clip-path="url(#p1)">\n   <text style="fill: #000000" transform="rotate(-0 1 2)">'
        'a style="x" &lt;g&gt;</text>\n'
        "  </g>\n </g>\n</g>\n</svg>"
    )
    assert compacted(svg) == (
        '<svg>\n<defs>\n<style type="text/css">*{}.c0{fill: #ffffff}.c1{fill: #000000}'
        f"{DARK}</style>\n</defs>\n"
        '<path id="i0" class="c0" d="M 1.23 2"/>\n<use xlink:href="#i0" class="c1"/>\n'
        '<g clip-path="url(#i1)">\n<text class="c1">a style="x" &lt;g&gt;</text>\n</g>\n</svg>'
    )


def test_nothing_to_draw(tmp_path: Path) -> None:
    assert draw_gallery(Leaderboards((), tabulate([]).origin), tmp_path / "none") == []
    assert draw_gallery(tabulate([]), tmp_path / "none") == []
    assert draw_gallery(tabulate([failed("dllp", bags={}), failed("mine", bags={})]), tmp_path / "none") == []


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(LLPBenchError, match=r"plots cannot be written into .*file.*--out") as caught:
        draw_gallery(tabulate(journal()), tmp_path / "file")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "records",
    [
        pytest.param(journal(seeds=1, sizes=(64,)), id="single seed"),
        pytest.param(runs("dllp", 0.8, 0.9, curves=COURSE, bags=BAGS), id="single method"),
        pytest.param([*runs("a", 0.8, 0.8), *runs("b", 0.8, 0.8), *runs("c", 0.8, 0.8)], id="no variance"),
        pytest.param([*runs("a", None, None), *runs("b", 0.8, None)], id="no AUC"),
        pytest.param([*runs("a", 0.4, 0.3), *runs("b", 0.45, 0.2)], id="worse than chance"),
        pytest.param([*runs("a", 0.8, 0.9), *runs("b", 0.7, dataset="credit"), failed("c")], id="missing and failed"),
        pytest.param(runs("g", 0.8, 0.9, encoder=None, times={"total": 1.0}), id="direct, without times"),
        pytest.param(
            runs("a", 0.8, 0.9, curves={"auc": [], "mpiou": [None], "l1": []}, bags={"number": 0, "histograms": []}),
            id="empty curves and bags",
        ),
    ],
)
def test_whatever_a_journal_lacks_can_be_drawn_without_a_warning(records: list[Record], tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("default", module=r"(?!llpbench|matplotlib|seaborn)")
        plots = draw_gallery(tabulate(records), tmp_path)
    for plot in plots:
        ElementTree.fromstring(plot.svg.read_bytes())


def test_tests_that_need_more_are_not_drawn() -> None:
    one_column = board(journal(sizes=(64,), datasets=("adult",)))
    assert not list(critical_difference(one_column, "x"))
    assert not list(bag_size_curves(one_column, "x"))
    assert not list(robustness(board(journal(seeds=1)), "x"))
    assert not list(learning_curves(board(journal(curves={})), "x"))
    assert not list(proportions(tabulate(journal(bags={}))))


def test_a_method_looks_the_same_whoever_is_beside_it() -> None:
    few, many = board(journal(("mine", "dllp"))), board(journal(("a", "mine", "b", "dllp", "c", "llp-gan")))
    first, second = (styles_by_method(of) for of in (few, many))
    assert first["mine"] == second["mine"] == method_style("mine")
    assert first["dllp"] == second["dllp"] == METHODS["dllp"]


def test_a_method_has_its_colour_in_every_plot() -> None:
    of = board(journal())
    curves = lines(*bag_size_curves(of, "x"))
    points = lines(*time(of, "x"))
    for method in ("dllp", "llp-vat", "mine", "supervised"):
        style = method_style(method)
        for drawn in (curves, points):
            assert any(line.get_color() == style.colour and line.get_marker() == style.marker for line in drawn)


def test_no_two_built_in_methods_look_alike() -> None:
    assert len({(style.marker, style.line) for style in METHODS.values()}) == len(METHODS)
    assert len({style.colour for style in METHODS.values()}) == len(METHODS)


def test_every_method_that_comes_along_has_a_style_of_its_own() -> None:
    """Those of `--methods all`; an extra method without one gets what its name's hash picks."""
    entries = registry.METHODS.entries()
    assert {entry.name for entry in entries if not entry.facts["extra"]} <= set(METHODS)
    assert set(METHODS) <= {entry.name for entry in entries}


def test_pretraining_is_hollow_and_variants_are_paler() -> None:
    of = board(
        [
            *runs("dllp", 0.8),
            *runs("dllp", 0.8, encoder="saint"),
            *runs("dllp", 0.8, pretraining="self"),
            *runs("dllp", 0.8, pretraining="self+bag"),
        ]
    )
    styles = {contender.label: style for contender, style in row_styles(of.rows).items()}
    plain, saint = styles["dllp (mlp)"], styles["dllp (saint)"]
    assert (plain.colour, plain.hollow) == (METHODS["dllp"].colour, False)
    assert (saint.marker, saint.hollow) == (plain.marker, False)
    assert saint.colour != plain.colour
    hollow = [styles[f"dllp (mlp, {pretraining})"] for pretraining in ("self", "self+bag")]
    assert all(style.hollow for style in hollow)
    assert len({style.colour for style in hollow}) == 2


def test_long_names_keep_both_ends() -> None:
    name = shown("a" * 50 + " (saint, self+bag)")
    assert len(name) <= LONGEST
    assert name.startswith("aaaa")
    assert "…" in name
    assert name.endswith("self+bag)")
    assert shown("_hidden") == " _hidden"
    assert shown("\x00") == "–"


def test_labels_name_the_encoder_only_where_it_tells_rows_apart() -> None:
    one = board([*runs("a", 0.8), *runs("b", 0.8, encoder=None)])
    assert sorted(labels(one.rows).values()) == ["a", "b"]
    two = board([*runs("a", 0.8), *runs("a", 0.8, encoder="saint")])
    assert sorted(labels(two.rows).values()) == ["a (mlp)", "a (saint)"]


def test_labels_name_what_a_text_is_of_only_where_rows_would_look_alike() -> None:
    bfloat16, greedy = runs("a", 0.8, precision="bfloat16"), runs("b", 0.8, params={"generator": "greedy"})
    told = board([*runs("a", 0.8), *bfloat16, *greedy])
    assert sorted(labels(told.rows).values()) == ["a", "a (bfloat16)", "b (greedy)"]
    alike = board([*bfloat16, *runs("b", 0.8, params={"generator": "x"}), *runs("b", 0.8, params={"objective": "x"})])
    assert sorted(labels(alike.rows).values()) == ['a (precision="bfloat16")', 'b (generator="x")', 'b (objective="x")']


def test_long_labels_that_differ_in_the_middle_have_numbers() -> None:
    long = [runs("a" * 50, 0.8, params={"x" * 30 + end: "y" * 30}) for end in "pq"]
    found = sorted(labels(board([*long[0], *long[1]]).rows).values())
    assert len({*found}) == 2
    assert [name[-4:] for name in found] == [" (1)", " (2)"]


def test_bag_size_plots_say_which_datasets_and_methods_are_left_out() -> None:
    records = [*journal(("a",)), *runs("a", 0.8, dataset="single")]
    (drawing,) = bag_size_curves(board(records), "x")
    assert "single" in drawing.about.caption
    assert "single" in drawing.about.note
    assert "left out." not in drawing.about.caption.replace("Left out", "")
    (many,) = bag_size_curves(board(journal([f"m{n:02}" for n in range(14)])), "x")
    assert "9 further methods left out." in many.about.caption


def test_titles_of_reliability_do_not_meet_ticks() -> None:
    told = [[100, 0.05, 0.1], [100, 0.55, 0.5]]
    records = [
        record(f"m{n}", results={"auc": {"epoch": 1, "validation": 0, "test": {"auc": 0.9}, "reliability": told}})
        for n in range(12)
    ]
    with saving._our_look():
        (drawing,) = reliability(board(records), "x")
        drawing.figure.draw_without_rendering()
        texts = [text for ax in visible(drawing) for text in ax.findobj(Text) if text.get_text()]
        titles = [text.get_window_extent() for text in texts if text.get_text().startswith("m")]
        ticks = [text.get_window_extent() for text in texts if text.get_text() in ("0.0", "0.5", "1.0")]
    assert len(titles) == 12
    assert not any(title.overlaps(tick) for title in titles for tick in ticks)


def test_heat_maps_explain_their_hatches() -> None:
    whole = board(runs("a", 0.8, 0.9))
    three = [run for method in ("a", "c", "d") for run in runs(method, 0.8)]  # two more than the methods of credit
    lacking = board([*three, *runs("a", 0.8, dataset="credit")])
    for of, is_hatched in ((whole, False), (lacking, True)):
        (drawing,) = heat_map(of, "x")
        texts = [text.get_text() for text in drawing.figure.legends[0].get_texts()]
        assert ("no result" in texts) == is_hatched


def test_legends_of_learning_curves_name_what_is_drawn() -> None:
    (one,) = learning_curves(board([record("a", curves=COURSE)]), "x")
    (two,) = learning_curves(board([record("a", curves=COURSE), record("a", curves=COURSE, seed=1)]), "x")
    for drawing, has_others in ((one, False), (two, True)):
        legend = drawing.figure.legends[0]
        texts = [text.get_text() for text in legend.get_texts()]
        assert ("other seeds, faint" in texts) == has_others
        assert {line.get_marker() for line in legend.get_lines()} <= {"o", "s", "^", "None"}
        assert "marker" in drawing.about.note


def test_proportions_are_of_the_dataset_with_most_kinds_of_bags() -> None:
    """At the usual size, ordered and random bags first, then such as follow a column."""
    made = ["kmeans", "column:by=job+education", "random", "column:by=job", "ordered"]
    records = [record("a", dataset="adult", bagging=bagging, bags=BAGS, bag_size=256) for bagging in made]
    records += [record("a", dataset="adult", bags=BAGS), record("a", dataset="aaa", bags=BAGS)]
    (drawing,) = proportions(tabulate(records))
    assert [ax.get_title().split("\n")[0] for ax in visible(drawing)] == ["ordered bags", "random bags", "bags by job"]
    assert all("256 rows" in ax.get_title() for ax in visible(drawing))
    assert "adult" in drawing.about.title


def test_panels_of_proportions_say_their_bagging_in_words() -> None:
    uneven = {"number": 4, "sizes": [1, 3, 11701], "histograms": BAGS["histograms"]}
    (drawing,) = proportions(tabulate([record("a", bag_size=0, bagging="column:by=job+education", bags=uneven)]))
    assert drawing.about.title == "Class proportions of bags: adult"
    (ax,) = visible(drawing)
    assert ax.get_title() == "bags by job and education\n1 to 11,701 rows,\nmedian 3, 4 bags"


def test_the_front_holds_what_nothing_beats_and_no_ceiling() -> None:
    def timed(method: str, auc: float, seconds: float, **facts: Any) -> Record:
        return record(method, auc, times={"train": seconds, "warm-up": 1.0, "total": 99.0}, **facts)

    of = board(
        [
            timed("fast", 0.7, 1.0),
            timed("better", 0.8, 10.0),
            timed("beaten", 0.75, 20.0),
            timed("supervised", 0.9, 2.0, role="ceiling"),
            record("best", 0.85, pretraining="self", times={"train": 1.0, "pretraining": 50.0, "total": 9.0}),
        ]
    )
    seconds = costs(of).mean()
    assert [of.rows[row].contender.method for row in front(of, seconds)] == ["fast", "better", "best"]
    assert {of.rows[row].contender.method: found for row, found in seconds.items()} == {
        "fast": 2.0,
        "better": 11.0,
        "beaten": 21.0,
        "supervised": 3.0,
        "best": 51.0,
    }
    (step,) = [line for line in lines(*time(of, "x")) if line.get_drawstyle() == "steps-post" and len(line.get_xdata())]
    assert list(step.get_xdata())[:3] == [2.0, 11.0, 51.0]
    assert list(step.get_ydata()) == pytest.approx([70.0, 80.0, 85.0, 85.0])


def test_shared_devices_are_confessed() -> None:
    hardware = record()["hardware"]
    alone, shared, unknown = ({**hardware, "shared": flag} for flag in (False, True, None))
    (mixed,) = time(board([*runs("a", 0.8, 0.9, hardware=alone), *runs("b", 0.8, 0.9, hardware=shared)]), "x")
    assert "In 2 of 4 runs others used the device, so their times are upper bounds." in mixed.about.caption
    (silent,) = time(board(runs("a", 0.8, 0.9, hardware=unknown)), "x")
    assert "2 of 2 runs do not say" in silent.about.caption
    (quiet,) = time(board(runs("a", 0.8, 0.9, hardware=alone)), "x")
    assert "others" not in quiet.about.caption


def points(line: Line2D) -> list[tuple[float, float]]:
    """Where a line goes, x and y, without what rounding alone explains."""
    return [(x, round(y, 6)) for x, y in np.asarray(line.get_xydata()).tolist()]


def test_bag_size_curves_follow_the_means() -> None:
    records = [*runs("a", 0.8, 0.9, 0.85), *runs("a", 0.6, bag_size=1024)]  # of a single seed no spread
    (drawing,) = bag_size_curves(board(records), "x")
    (ax,) = visible(drawing)
    (line,) = ax.get_lines()
    assert points(line) == [(0, 85), (1, 60)]
    (bars,) = ax.collections
    (bar,) = bars.get_segments()  # type: ignore[attr-defined]
    assert np.allclose(bar[:, 1], [80, 90])
    assert [label.get_text() for label in ax.get_xticklabels()] == ["64", "1024"]


def test_unequal_bags_are_drawn_by_their_real_sizes(tmp_path: Path) -> None:
    uneven = {"number": 4, "sizes": [1, 9, 11660], "validation": 2, "test": 2, "histograms": BAGS["histograms"]}
    facts: dict[str, Any] = {"bag_size": 0, "bagging": "key", "bags": uneven}
    drawn = {plot.kind: plot for plot in draw_gallery(tabulate([*runs("a", 0.8, 0.9, **facts)]), tmp_path)}
    assert "bags of 1–9–11,660" in drawn["learning-curves"].title
    texts = drawn["proportions"].svg.read_text(encoding="utf-8")
    assert all(part in texts for part in ("1 to 11,660 rows,", "median 9, 4 bags"))
    assert all(part in drawn["heat-map"].svg.read_text(encoding="utf-8") for part in ("1–", "9–", "11,660"))
    assert "bag-size" not in drawn
    for kind in ("heat-map", "proportions", "time"):
        assert "1–9–11,660 are the least, median and most rows of a training bag" in drawn[kind].caption


def test_with_many_methods_leaders_floor_ceiling_and_newcomers_are_drawn() -> None:
    names = [name for name in METHODS if name not in ("supervised", "bag-soft-label")]
    (drawing,) = bag_size_curves(board(journal([*names, "mine"])), "x")
    drawn = {text.get_text() for text in drawing.figure.legends[0].get_texts()}
    assert drawn == {"supervised", "bag-soft-label", *names[:4], "mine", "± standard deviation"}


def test_heat_maps_show_the_means_of_ranked_rows_and_mark_what_is_lacking() -> None:
    of = board([*runs("a", 0.8, 0.9), *runs("b", 0.7, 0.6), *runs("late", 0.95), record("a", 0.6, dataset="credit")])
    (drawing,) = heat_map(of, "x")
    (ax,) = visible(drawing)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["a", "b"]
    assert {"85.0\n±7.1", "65.0\n±7.1", "60.0", "–"} == {text.get_text() for text in ax.texts}
    assert [label.get_text() for label in ax.get_yticklabels()] == ["adult  64", "credit  64"]


def test_heat_maps_leave_out_what_has_no_room() -> None:
    of = board(journal([f"m{n:02}" for n in range(20)], sizes=tuple(range(8, 48)), datasets=("x",), seeds=1))
    (drawing,) = heat_map(of, "x")
    (ax,) = visible(drawing)
    assert (len(ax.get_xticklabels()), len(ax.get_yticklabels())) == (18, 36)
    assert "3 ranked methods left out. 4 columns left out." in drawing.about.caption


def test_learning_curves_mark_the_epoch_that_each_criterion_chose() -> None:
    chosen = {name: {"epoch": epoch, "validation": 0, "test": {"auc": 0.9}} for name, epoch in (("auc", 1), ("l1", 2))}
    run = record(results=chosen, curves=COURSE, bag_size=1024)
    (drawing,) = learning_curves(board([run, record(seed=1, curves=COURSE, bag_size=1024)]), "x")
    assert (drawing.about.dataset, drawing.about.bag_size) == ("adult", 1024)
    marked = [line for line in visible(drawing)[0].get_lines() if line.get_marker() not in (None, "None", "")]
    assert {points(line)[0] for line in marked} == {(1, 0.8), (2, 0.85)}


def test_earlier_stages_stand_before_the_last_and_count_their_own_epochs() -> None:
    times = {"stage warm-up": 2.0, "stage first": 3.25, "stage between": 4.0, "stage last": 5.0}
    earlier = {"first": {"auc": [0.5] * 40, "l1": [1.0] * 30}}
    others = {"first": {"auc": [0.4] * 50}}
    chosen = {"auc": {"epoch": 1, "validation": 0, "test": {"auc": 0.9}}}
    of = board(
        [
            record("new", curves=COURSE, earlier_curves=earlier, times=times, results=chosen),
            record("new", curves=COURSE, earlier_curves=others, times=times, seed=1),
            record("old", curves=COURSE, times=times, results=chosen),
        ]
    )
    (drawing,) = learning_curves(of, "x")
    old, new = sorted(visible(drawing), key=lambda ax: ax.get_title() == "new")
    assert old.get_xlabel() == "epoch of last\nafter warm-up (2.00 s)\nafter first (3.25 s)\nafter between (4.00 s)"
    assert (
        new.get_xlabel() == "epoch of first,\nthen between (4.00 s), not drawn,\nthen of last\nafter warm-up (2.00 s)"
    )
    lines = new.get_lines()
    assert [points(line)[0] for line in lines if line.get_marker() == "o"] == [(51, 0.8)], "after the longest"
    assert any(points(line) == [(epoch, 0.5) for epoch in range(40)] for line in lines)
    assert all(line.get_linewidth() < 1 for line in lines if points(line) and points(line)[-1][0] < 50)
    assert [points(line) for line in lines if (49.5, 1) in points(line)] == [[(49.5, 0), (49.5, 1)]]
    ticks = list(zip(new.get_xticks(), (text.get_text() for text in new.get_xticklabels()), strict=True))
    assert ticks == [(0, "0"), (10, "10"), (20, "20"), (30, "30"), (40, "40"), (50, "0")]


def test_a_stage_without_a_name_or_without_epochs_is_no_hindrance() -> None:
    strange = {"": {"auc": [0.5]}, "empty": {}, "other": {"own": [1.0]}}
    (drawing,) = learning_curves(board([record("a", curves=COURSE, earlier_curves=strange)]), "x")
    (ax,) = visible(drawing)
    assert ax.get_xlabel() == "epoch"
    assert max(x for line in ax.get_lines() for x, _ in points(line)) == 3


def test_learning_curves_are_of_the_easiest_and_the_hardest_dataset() -> None:
    aucs = {"middle": 0.8, "hard": 0.6, "easy": 0.9}
    of = board([record("a", auc, curves=COURSE, dataset=dataset) for dataset, auc in aucs.items()])
    assert [drawing.about.dataset for drawing in learning_curves(of, "x")] == ["easy", "hard"]
    every = learning_curves(of, "x", every=True)
    assert sorted(drawing.about.dataset or "" for drawing in every) == sorted(aucs)


def test_learning_curves_name_the_training_before_the_stage_that_they_show() -> None:
    stages = {"train": 9.0, "stage proportions": 3.25, "stage pseudo-labels": 4.0, "total": 9.0}
    of = board(
        [
            record("pse", curves=COURSE, times=stages),
            record("plain", curves=COURSE, times={"train": 9.0, "stage train": 9.0}),
            record("plain", curves=COURSE, pretraining="bag", times={"train": 9.0, "pretraining": 20.0}),
        ]
    )
    (drawing,) = learning_curves(of, "x")
    labels = {ax.get_title(): ax.get_xlabel() for ax in visible(drawing)}
    assert labels == {
        "pse": "epoch of pseudo-labels\nafter proportions (3.25 s)",
        "plain": "epoch",
        "plain (bag)": "epoch\nafter bag (20.0 s)",
    }


def test_the_shares_of_bags_count_every_seed_once() -> None:
    other = {"number": 2, "histograms": [[0, 2], [2, 0]]}
    half = {"number": 2, "histograms": [[1, 1], [1, 1]]}
    records = [
        *(record(method, seed=0, bags=other) for method in ("a", "b", "c")),
        record("a", seed=1, bags=half),
        record("a", bagging="random", bags=half),
        record("a", dataset="credit", bags={}),
    ]
    assert shares(tabulate(records)) == {("adult", 64): {"ordered": [0.75, 0.25], "random": [0.5, 0.5]}}
    (drawing,) = proportions(tabulate(records))
    assert drawing.about.bagging is None


def test_the_highest_bar_of_all_panels_is_whole() -> None:
    low, high = ({"number": 4, "histograms": [counts, counts]} for counts in ([2, 2], [0, 4]))
    (drawing,) = proportions(tabulate([record("a", bags=low), record("a", bagging="random", bags=high)]))
    assert {ax.get_ylim()[1] > 100 for ax in visible(drawing)} == {True}


def test_the_class_prior_is_a_line_with_its_number() -> None:
    """Not the mean of bags of many sizes, each of which counts once."""
    equal = {"number": 4, "sizes": [64, 64, 64], "histograms": [[0] * 15 + [4] + [0] * 4, [0] * 4 + [4] + [0] * 15]}
    uneven = {"number": 4, "sizes": [1, 9, 900], "histograms": [[0, 4], [4, 0]]}
    records = [record("a", bags=equal), record("a", bag_size=0, bagging="key", bags=uneven)]
    (drawing,) = proportions(tabulate(records))
    for ax in visible(drawing):
        (line,) = ax.get_lines()
        assert (list(line.get_xdata()), line.get_linestyle()) == ([0.225] * 2, "--")  # type: ignore[arg-type]
        assert [text.get_text() for text in ax.texts] == ["prior 0.23"]
    (alone,) = proportions(tabulate(records[1:]))
    assert [text.get_text() for ax in visible(alone) for text in ax.texts] == ["mean 0.25"]


def test_the_gallery_goes_by_its_plan_and_has_an_end() -> None:
    """Most figures of the group with most runs, fewer of the next, one each of the others, none of what repeats."""
    many = [*journal(curves=COURSE, bags=BAGS), *journal(("direct",), bagging="random", encoder=None, seeds=1)]
    further = [
        *runs("direct", 0.8, 0.9, 0.7, encoder=None, bagging="kmeans"),
        *runs("direct", 0.8, 0.9, encoder=None, bagging="key"),
        *runs("direct", 0.8, encoder=None, bagging="other", bag_size=0),
    ]
    found = [drawing.about for drawing in gallery(tabulate([*many, *further]))]
    assert [(about.kind, about.bagging, about.criterion) for about in found[:5]] == [
        ("time", "ordered", "auc"),
        ("differences", "ordered", "auc"),
        ("bag-size", "ordered", "auc"),
        ("heat-map", "ordered", "auc"),
        ("time", "ordered", "mpiou"),
    ]
    by_bagging = {
        bagging: [each for each in found if each.bagging == bagging] for bagging in ("random", "kmeans", "key")
    }
    assert {each.criterion for own in by_bagging.values() for each in own} == {"auc"}, "no criterion chooses there"
    assert len(by_bagging["random"]) == 3
    assert [len(by_bagging[bagging]) for bagging in ("kmeans", "key")] == [1, 1]
    assert by_bagging["kmeans"][0].kind != by_bagging["key"][0].kind


def test_the_gallery_stops_at_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    from llpbench.report.plots import gallery as module

    boards = tabulate(journal(curves=COURSE, bags=BAGS))
    every = [drawing.about.name for drawing in gallery(boards)]
    assert 3 < len(every) <= MOST
    monkeypatch.setattr(module, "MOST", 3)
    assert [drawing.about.name for drawing in gallery(boards)] == every[:3]
    assert len(set(PLAN)) == len(PLAN)
    assert {*every} <= {drawing.about.name for drawing in every_kind(boards)}


def test_matplotlib_waits_until_something_is_drawn() -> None:
    program = "import sys, llpbench.report, llpbench.report.plots; print('matplotlib' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert found.stdout.strip() == "False"


def styles_by_method(of: Board) -> dict[str, Any]:
    return {contender.method: style for contender, style in row_styles(of.rows).items()}


def visible(drawing: Drawing) -> list[Axes]:
    return [ax for ax in drawing.figure.axes if ax.get_visible()]


def lines(*drawings: Drawing) -> list[Any]:
    return [line for drawing in drawings for ax in visible(drawing) for line in ax.get_lines()]
