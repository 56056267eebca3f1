"""Plots: what is drawn of which journals, that names are shown as they are, and that everything is reproducible."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
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

from llpbench.core.errors import LLPBenchError
from llpbench.core.record import Record
from llpbench.report.boards import Board, Leaderboards
from llpbench.report.costs import cost_of
from llpbench.report.plots import Plot, draw_all, layout, saving
from llpbench.report.plots.bag_sizes import bag_size_curves
from llpbench.report.plots.critical import critical_difference
from llpbench.report.plots.dark import dark_of, luminance
from llpbench.report.plots.heat_map import heat_maps
from llpbench.report.plots.layout import LONGEST, labels, shown, shown_apart
from llpbench.report.plots.learning import MOST_FIGURES, learning_curves
from llpbench.report.plots.pretraining_gain import pretraining
from llpbench.report.plots.proportions import proportions, shares
from llpbench.report.plots.reliability import reliability
from llpbench.report.plots.robustness import _ticks, robustness
from llpbench.report.plots.saving import Drawing, save_parts
from llpbench.report.plots.style import METHODS, method_style, row_styles
from llpbench.report.plots.time import front, time
from llpbench.report.ranking import runs_that_count
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
    return save_parts([lambda: drawings], out)


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
    return Drawn(draw_all(tabulate(records), folder), records, folder)


def test_every_kind_is_drawn_where_there_are_data_for_it(odd: Drawn) -> None:
    assert odd.kinds() == {
        "bag-size",
        "time",
        "critical-difference",
        "robustness",
        "heat-map",
        "learning-curves",
        "proportions",
    }
    for plot in odd.plots:
        assert (plot.svg, plot.png) == (odd.folder / f"{plot.name}.svg", odd.folder / f"{plot.name}.png")
        assert plot.png.read_bytes().startswith(b"\x89PNG")
        assert plot.svg.stat().st_size < 150_000
        assert plot.title
        assert plot.caption.endswith(".")
    assert len({plot.name for plot in odd.plots}) == len(odd.plots)
    assert {file.name for file in odd.folder.glob("[!.]*")} == {
        file.name for plot in odd.plots for file in (plot.svg, plot.png)
    }


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


def test_a_picture_says_what_it_is_of_and_has_dark_colours(tmp_path: Path) -> None:
    """Colours that mean something stay; white, black and what is too dark to be seen do not."""
    plots = {plot.kind: plot for plot in draw_all(tabulate(journal()), tmp_path) if plot.criterion == "auc"}
    text = plots["time"].svg.read_text(encoding="utf-8")
    assert "epochs chosen by AUC of validation rows · ordered bags · at most 300 epochs, patience 20" in text
    assert "[style*='fill: #ffffff']{fill:#1a1d21!important}" in text
    assert "svg{fill:#e5e7ea}" in text, "what is black says no colour"
    assert "prefers-color-scheme:dark" in text
    of_map = plots["heat-map"].svg.read_text(encoding="utf-8")
    assert "#fee838" in of_map or "#fde737" in of_map, "the best of a column"
    assert not re.search(r"\[style\*='fill: #(fee838|fde737|010101|fefefe)'", of_map)
    assert dark_of("#000000") == "#e6e6e6"
    assert all(luminance(dark_of(style.colour)) >= 0.14 for style in METHODS.values())


def test_plots_are_the_same_however_many_processes_draw_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    boards = tabulate(journal(("dllp", "mine"), datasets=("adult",), curves=COURSE))
    drawn = []
    for processors in (1, 2):
        monkeypatch.setattr(saving, "_processors", lambda number=processors: number)
        drawn.append([(plot.name, plot.svg.read_bytes()) for plot in draw_all(boards, tmp_path / str(processors))])
    assert drawn[0] == drawn[1]


def test_ticks_of_small_spreads_do_not_touch() -> None:
    assert _ticks(1.7) == [-1.0, -0.5, 0.0, 0.5, 1.0]
    for edge in (0.01, 0.3, 1.7, 3.0, 10.0, 40.0, 100.0):
        ticks = np.arcsinh(np.array(_ticks(edge)) / 2.0)
        assert len(ticks) >= 5
        assert np.diff(ticks).min() >= 0.149 * np.arcsinh(edge / 2.0)
    assert _ticks(10.0) == [-10.0, -5.0, -2.0, -1.0, 0.0, 1.0, 2.0, 5.0, 10.0]


def test_a_plot_is_drawn_once_for_each_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing is most of what a report takes; `savefig` does it twice for each file."""
    drawn: list[str] = []
    draw = Figure.draw

    def counted(figure: Figure, renderer: Any) -> None:
        drawn.append(type(renderer).__name__)
        draw(figure, renderer)

    monkeypatch.setattr(Figure, "draw", counted)
    (plot,) = saved(robustness(board(journal(("dllp",), datasets=("adult",))), "x"), tmp_path)
    assert drawn == ["RendererAgg", "MixedModeRenderer"]
    assert plot.png.stat().st_size > 10_000


def test_pretraining_is_compared_seed_by_seed_with_the_same_method_without() -> None:
    of = board(
        [*runs("a", 0.8, 0.9), *runs("a", 0.85, 0.92, pretraining="bag"), *runs("b", 0.5, 0.5, pretraining="bag")]
    )
    (drawing,) = pretraining(of, "x")
    (ax,) = visible(drawing)
    dots = [line for line in ax.get_lines() if line.get_marker() == "o"]
    assert [x for line in dots for x, _ in points(line)] == pytest.approx([5, 2])
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a (bag)"]
    assert not list(pretraining(board(runs("a", 0.8, 0.9)), "x"))


def test_failed_runs_and_every_seed_are_seen() -> None:
    of = board([*runs("a", 0.8, 0.9, 0.7), failed("a", seed=3), *runs("b", 0.6, 0.6, 0.6, 0.6)])
    (drawing,) = robustness(of, "x")
    (ax,) = visible(drawing)
    found = [tuple(np.round(np.sort(np.asarray(dots.get_offsets())[:, 0]), 6).tolist()) for dots in ax.collections]
    assert sorted(found) == [(-10, 0, 10), (0, 0, 0, 0)]
    assert "× 1" in {text.get_text() for text in ax.texts}


def test_more_runs_than_a_row_has_room_for_are_a_density(tmp_path: Path) -> None:
    many = [record("a", 0.8 + 0.001 * (seed % 7), dataset=f"d{d}", seed=seed) for d in range(13) for seed in range(10)]
    (drawing,) = robustness(board(many), "x")
    (ax,) = visible(drawing)
    (outline,) = ax.collections
    assert len(outline.get_paths()) == 1
    first, second = (saved(robustness(board(many), "x"), tmp_path / each)[0] for each in ("first", "second"))
    assert first.svg.read_bytes() == second.svg.read_bytes()


def test_an_svg_has_the_same_bytes_in_every_process(tmp_path: Path) -> None:
    """Sets of strings are ordered anew in each process, so another one draws what is most likely to depend on it."""
    program = (
        "import sys; sys.path[:0] = sys.argv[2:]\n"
        "from pathlib import Path\n"
        "from test_plots import board, journal, saved\n"
        "from llpbench.report.plots.critical import critical_difference\n"
        "saved(critical_difference(board(journal(datasets=tuple('abcdefgh'))), 'x'), Path(sys.argv[1]))\n"
    )
    here = Path(__file__).parent
    hash_seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "there"), str(here), str(here.parent)],
        check=True,
        env={"PYTHONHASHSEED": hash_seed, "OMP_NUM_THREADS": "1", "MPLCONFIGDIR": matplotlib.get_configdir()},
    )
    saved(critical_difference(board(journal(datasets=tuple("abcdefgh"))), "x"), tmp_path / "here")
    ours, theirs = ((tmp_path / each / "critical-difference-x.svg").read_bytes() for each in ("here", "there"))
    assert ours == theirs


def test_an_svg_has_the_same_bytes_each_time_whatever_the_users_settings(tmp_path: Path) -> None:
    boards = tabulate(journal(("dllp", "mine"), datasets=("adult",), curves=COURSE, bags=BAGS, aucs={"auc": 0.8}))
    first = draw_all(boards, tmp_path / "first")
    with matplotlib.rc_context({"font.size": 30, "lines.linewidth": 9, "svg.fonttype": "path"}):
        mine = dict(matplotlib.rcParams)
        second = draw_all(boards, tmp_path / "second")
        assert dict(matplotlib.rcParams) == mine
    assert [plot.svg.read_bytes() for plot in first] == [plot.svg.read_bytes() for plot in second]


def test_no_ids_of_two_plots_meet_in_one_page(odd: Drawn) -> None:
    ids = [set(re.findall(r' id="([^"]+)"', plot.svg.read_text(encoding="utf-8"))) for plot in odd.plots]
    assert any(ids)
    for one, other in itertools.combinations(ids, 2):
        assert not one & other


def test_nothing_to_draw(tmp_path: Path) -> None:
    assert draw_all(Leaderboards((), tabulate([]).origin), tmp_path / "none") == []
    assert draw_all(tabulate([]), tmp_path / "none") == []
    assert draw_all(tabulate([failed("dllp", bags={}), failed("mine", bags={})]), tmp_path / "none") == []


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(LLPBenchError, match=r"plots cannot be written into .*file.*--out") as caught:
        draw_all(tabulate(journal()), tmp_path / "file")
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
        plots = draw_all(tabulate(records), tmp_path)
    assert "heat-map" in {plot.kind for plot in plots}
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
    folder = Path(__file__).parents[2] / "methods"
    names = {file.stem.replace("_", "-") for file in folder.glob("[!_]*.py")}
    assert names == set(METHODS)


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


def test_names_of_points_cover_no_other_name_and_no_point() -> None:
    """Boxes are those that are drawn, not those that places were chosen by."""
    rng = np.random.default_rng(0)
    points = [layout.NamedPoint(x, y, f"method-{n}", "black") for n, (x, y) in enumerate(rng.normal(size=(16, 2)))]
    figure = Figure(figsize=(7, 4))
    ax = figure.add_axes((0.1, 0.1, 6.2 / 7, 3.4 / 4))
    with saving._our_look():
        ax.plot([point.x for point in points], [point.y for point in points], "o")
        ax.autoscale_view()
        layout.label_points(ax, points, (6.2, 3.4))
        figure.draw_without_rendering()
        boxes = [Text.get_window_extent(text) for text in ax.texts]  # that of an annotation has its line in it, too
    assert len(boxes) == 16
    at = ax.transData.transform([point[:2] for point in points])
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
    assert not any(box.contains(*point) for box in boxes for point in at)


def test_long_labels_that_differ_in_the_middle_stay_apart() -> None:
    first = 'tabllp-bdc (self+bag, pretraining.aggregator="attention", pretraining.projection=true)'
    second = "tabllp-bdc (self+bag, pretraining.projection=true)"
    assert shown(first) == shown(second)
    apart = shown_apart([first, second, "dllp"])
    assert apart == ['tabllp-bdc (s…aggregator="atten…on=true)', "tabllp-bdc (s…projection=true)", "dllp"]
    assert max(map(len, apart)) <= LONGEST
    same = ["a" * 50 + middle + "b" * 50 for middle in ("c", "d")]
    assert len(set(shown_apart(same))) == 2
    assert shown_apart(["x\x00", "x", "y"]) == ["x 1", "x 2", "y"]


def test_bag_size_plots_say_which_datasets_are_left_out_and_what_is_grey() -> None:
    records = [*journal(("a",)), *runs("a", 0.8, dataset="single")]
    (drawing,) = bag_size_curves(board(records), "x")
    assert "Left out, since their bags are not of two or more sizes: single." in drawing.about.caption
    assert "rey lines" not in drawing.about.caption
    assert drawing.about.note == "Not drawn, since all their bags are of one size: single."
    (many,) = bag_size_curves(board(journal([f"m{n:02}" for n in range(14)])), "x")
    assert "Grey lines join the means of these 4, without intervals" in many.about.caption


def test_bag_size_plots_name_their_bars_and_mark_those_that_are_cut() -> None:
    """And name nothing that is not drawn."""
    far = runs("b", 0.3, 0.9, 0.8, bag_size=256)
    alone = runs("elsewhere", 0.8, 0.9, dataset="single")
    records = [*runs("a", 0.8, 0.801, 0.802), *runs("a", 0.7, 0.701, 0.702, bag_size=256), *alone]
    for more, arrows in (([], set()), (far, {"v", "^"})):
        (drawing,) = bag_size_curves(board([*records, *more]), "x")
        texts = [text.get_text() for text in drawing.figure.legends[0].get_texts()]
        assert "95 % t interval over seeds" in texts
        assert ("goes on beyond the axis" in texts) == bool(arrows)
        assert {line.get_marker() for line in lines(drawing)} & {"v", "^"} == arrows
        assert "elsewhere" not in texts


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
    lacking = board([*runs("a", 0.8, 0.9), *runs("b", 0.7, dataset="credit"), *runs("b", 0.7)])
    for of, is_hatched in ((whole, False), (lacking, True)):
        (drawing,) = heat_maps(of, "x")
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


def test_proportions_say_which_panels_have_no_room() -> None:
    records = [record("a", dataset=f"d{n:03}", bags=BAGS) for n in range(98)]
    drawings = [*proportions(tabulate(records))]
    assert [drawing.about.name for drawing in drawings] == ["proportions", *(f"proportions-{n}" for n in (2, 3, 4))]
    assert drawings[1].about.title.startswith("Class proportions of bags, 2 of 5: d024, d025, ")
    assert "The first 96 of 98 panels" in drawings[0].about.caption
    assert "left out: 1 of d096, 1 of d097." in drawings[0].about.caption


def test_panels_of_proportions_say_their_bagging_in_words() -> None:
    uneven = {"number": 4, "sizes": [1, 3, 11701], "histograms": BAGS["histograms"]}
    (drawing,) = proportions(tabulate([record("a", bag_size=0, bagging="column:by=job+education", bags=uneven)]))
    assert drawing.about.title == "Class proportions of bags: adult"
    (ax,) = visible(drawing)
    assert ax.get_title() == "adult\nbags by job and\neducation\n1 to 11,701 rows,\nmedian 3, 4 bags"


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
    counting = runs_that_count(of.rows, of.columns)
    costs = [cost for row in of.rows if (cost := cost_of(row, counting, of.columns))]
    assert [cost.row.contender.method for cost in front(costs)] == ["fast", "better", "best"]
    assert {cost.row.contender.method: cost.seconds for cost in costs} == {
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
    records = [*runs("a", 0.8, 0.9, 0.85), *runs("a", 0.6, 0.7, bag_size=1024)]  # of two seeds no interval
    (drawing,) = bag_size_curves(board(records), "x")
    (ax,) = visible(drawing)
    (line,) = [line for line in ax.get_lines() if line.get_marker() not in ("None", "v", "^")]
    assert points(line) == [(0, 85), (1, 65)]
    (bars,) = ax.collections
    (bar,) = bars.get_segments()  # type: ignore[attr-defined]
    assert np.allclose(bar[:, 1], interval([80, 90, 85]))
    assert [label.get_text() for label in ax.get_xticklabels()] == ["64", "1024"]


def test_unequal_bags_are_drawn_by_their_real_sizes(tmp_path: Path) -> None:
    uneven = {"number": 4, "sizes": [1, 9, 11660], "validation": 2, "test": 2, "histograms": BAGS["histograms"]}
    facts: dict[str, Any] = {"bag_size": 0, "bagging": "key", "bags": uneven}
    drawn = {plot.kind: plot for plot in draw_all(tabulate([*runs("a", 0.8, 0.9, **facts)]), tmp_path)}
    assert "bags of 1–9–11,660" in drawn["learning-curves"].title
    texts = drawn["proportions"].svg.read_text(encoding="utf-8")
    assert all(part in texts for part in ("1 to 11,660 rows,", "median 9, 4 bags"))
    assert all(part in drawn["heat-map"].svg.read_text(encoding="utf-8") for part in ("1–", "9–", "11,660"))
    assert "bag-size" not in drawn
    for kind in ("heat-map", "proportions", "time"):
        assert "1–9–11,660 are the least, median and most rows of a training bag" in drawn[kind].caption


def test_with_many_methods_the_last_step_back_and_no_leader_does() -> None:
    names = [name for name in METHODS if METHODS[name] is not METHODS["supervised"] and name != "bag-soft-label"]
    (drawing,) = bag_size_curves(board(journal([*reversed(names), "mine"])), "x")
    assert "In grey: " in drawing.about.caption
    grey = drawing.about.caption.split("In grey: ")[1].split(". ")[0]
    assert grey.split(", ") == names[::-1][9:], "all but the first eight, a newcomer, and the next"


def test_heat_maps_show_every_mean_and_mark_what_is_lacking() -> None:
    of = board([*runs("a", 0.8, 0.9), *runs("b", 0.7), *runs("a", 0.6, dataset="credit")])
    (drawing,) = heat_maps(of, "x")
    texts = [text.get_text() for text in visible(drawing)[0].texts]
    assert {"85.0\n±7.1", "70.0*", "60.0", "–"} <= set(texts)


def test_heat_maps_are_split_before_numbers_touch() -> None:
    of = board(journal(("a",), sizes=(8, 16, 32, 64, 128), datasets=("x", "y", "z"), seeds=1))
    first, second = heat_maps(of, "x")
    assert (first.about.name, second.about.name) == ("heat-map-x-1", "heat-map-x-2")
    assert first.about.dataset is None
    assert second.about.dataset == "z"


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


def test_no_more_learning_curves_are_drawn_than_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    panels = layout.panels

    def counted(number: int, **how: Any) -> Any:
        drawn.append(number)
        return panels(number, **how)

    monkeypatch.setattr(layout, "panels", counted)
    of = board([record("a", curves=COURSE, dataset=f"d{number:02}") for number in range(MOST_FIGURES + 2)])
    figures = list(learning_curves(of, "x"))
    assert len(figures) == len(drawn) == MOST_FIGURES
    assert f"The first {MOST_FIGURES} of {MOST_FIGURES + 2} datasets are drawn." in figures[0].about.caption


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


def test_only_the_largest_groups_are_drawn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from llpbench.report.plots import gallery

    def nothing(*_: object) -> Iterator[Drawing]:
        return iter(())

    for other in ("bag_size_curves", "critical_difference", "robustness", "heat_maps", "learning_curves"):
        monkeypatch.setattr(gallery, other, nothing)
    records = [
        record("a", seed=seed, bagging=bagging, bags={})
        for number, bagging in enumerate(("small", "key", "kmeans", "my bags", "my-bags", "random"), start=1)
        for seed in range(number)
    ]
    plots = draw_all(tabulate(records), tmp_path)
    assert {plot.bagging for plot in plots} == {"key", "kmeans", "my bags", "my-bags", "random"}
    assert len({plot.name for plot in plots}) == len(plots) == 10
    assert all("Of 6 pairs of bagging and protocol the 5 with most runs are drawn." in plot.caption for plot in plots)


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
