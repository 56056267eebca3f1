"""Studies made of a journal, the paper's numbers beside: values, flags, settings, choices by validation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from factory import PROTOCOL, failed, record, runs

from llpbench.core.record import Record
from llpbench.report.report_table import ReportTable
from llpbench.report.study_tables import _paper_numbers, _PaperFigure, _StudyTable, study_tables
from llpbench.results.frame import NO_STALE_RUNS, tidy
from llpbench.results.studies import STUDIES

HERE: dict[str, Any] = {"bag_size": 256, "encoder": "saint"}


def table(study: str, *groups: list[Record]) -> ReportTable:
    (made,) = tables(study, [run for group in groups for run in group])
    return made.table


def tables(study: str, records: Sequence[Record], stale: Mapping[str, str] = NO_STALE_RUNS) -> list[_StudyTable]:
    return study_tables(STUDIES[study], tidy(records, stale))


def field(of: ReportTable, column: str, *labels: str) -> Any:
    place = [heading.text for heading in of.headings].index(column)
    return next(row[place] for row in of.rows if tuple(f.lines[0] for f in row[: len(labels)]) == labels)


def test_study_table_has_paper_ours_difference_and_flag() -> None:
    # paper: DLLP on AD 87.61 ± 0.21; ours 89 ± 0.71 is 1.39 above, less than 2 x 0.71; 1.89 is between 2 and 3 times
    near = field(table("fine-grained", runs("dllp", 0.885, 0.895, **HERE)), "AD", "DLLP")
    assert near.lines == ("paper 87.61 ± 0.21", "89.00 ± 0.71 (2)", "+1.39")
    found = table("fine-grained", runs("dllp", 0.89, 0.90, **HERE))
    far = field(found, "AD", "DLLP")
    assert far.lines[2] == "+1.89 ⚑"
    assert found.notes == {"⚑ Beyond two standard deviations": ("DLLP on AD: +1.89",)}
    assert field(found, "BA", "DLLP").lines == ("paper 77.18 ± 1.07",)
    without = field(table("encoder", runs("dllp", 0.5, **HERE)), "AD", "col-6")  # the paper prints no std here
    assert without.lines == ("paper 87.49", "50.00 ± – (1)", "-37.49")
    mlp = table("fine-grained", runs("dllp", 0.5, 0.51, bag_size=256, encoder="mlp"))
    assert (field(mlp, "AD", "DLLP").lines[2], mlp.notes) == ("-37.11", {}), "of another encoder"
    short = {"epochs": 30, "patience": 5, "bags_per_step": 2}
    less = table("fine-grained", runs("dllp", 0.5, 0.51, protocol=short, **HERE))
    assert field(less, "AD", "DLLP").lines[2] == "-37.11 ⚑"


def test_study_never_mixes_settings() -> None:
    short = {"epochs": 30, "patience": 5, "bags_per_step": 2}
    made = tables(
        "fine-grained",
        [
            record("dllp", 0.8, bag_size=64),
            record("dllp", 0.7, bag_size=256),
            record("dllp", 0.6, bag_size=256, encoder="saint"),
            record("dllp", 0.5, bag_size=256, protocol=short),
            record("dllp", 0.4, bag_size=256, bagging="random"),
        ],
    )
    found = [each.table for each in made]
    shown = {t.title.split(": ")[1]: field(t, "AD", "DLLP").lines for t in found}
    long = "at most 300 epochs, patience 20, 2 bags per step"
    paper = "paper 87.61 ± 0.21"
    assert shown == {
        f"ordered · bags of 256 · encoder mlp · {long}": (paper, "70.00 ± – (1)", "-17.61"),
        f"ordered · bags of 256 · encoder saint · {long}": (paper, "60.00 ± – (1)", "-27.61 ⚑"),
        "ordered · bags of 256 · encoder mlp · at most 30 epochs, patience 5, 2 bags per step": (
            paper,
            "50.00 ± – (1)",
            "-37.61",
        ),
        f"ordered · bags of 64 · encoder mlp · {long}": ("80.00 ± – (1)",),
        f"random · bags of 256 · encoder mlp · {long}": ("40.00 ± – (1)",),
    }
    assert len({t.name for t in found}) == 5


def test_study_ignores_other_configurations() -> None:
    own = record("dllp", 0.8, **HERE)
    other = record("dllp", 0.9, params={"weight": 2.0}, **HERE)
    other["method"]["changed"] = {"weight": 2.0}
    (before,) = runs("dllp", 0.6, params={"weight": 3.0}, **HERE)  # of defaults that have changed since
    before["method"]["changed"] = {}
    again = record("dllp", 0.8, seed=1, **HERE)
    found = table("fine-grained", [own, again, other, before])
    assert field(found, "AD", "DLLP").lines[1] == "80.00 ± 0.00 (2)"


def test_best_pretraining_is_chosen_on_common_seeds() -> None:
    def pretrained(pretraining: str, seed: int, test: float, validation: float) -> Record:
        run = record("dllp", test, seed=seed, pretraining=pretraining, **HERE)
        run["results"]["auc"]["validation"] = validation
        return run

    chosen = [pretrained("self", 0, 0.9, 0.6), pretrained("self", 1, 0.9, 0.99), pretrained("bag", 0, 0.7, 0.7)]
    lines = field(table("downstream-objectives", chosen), "AD", "Optimal", "DLLP").lines
    assert (lines[1], lines[-1]) == ("70.00 ± – (1)", "bag, best of 2 of 3")


def test_study_reads_criteria_diagnostics_and_times_of_same_runs() -> None:
    run = record("tabllp-bdc", pretraining="self+bag", aucs={"auc": 0.9, "mpiou": 0.8, "l1": 0.7}, **HERE)
    run["results"]["mpiou"]["diagnostics"] = {"pair-accuracy": 0.75, "cas": 0.6}
    run["results"]["auc"]["diagnostics"] = {"pair-accuracy": 0.85, "cas": 0.62}
    run["times"] = {"train": 100.0, "evaluate": 20.0, "warm-up": 0.0, "pretraining": 90.0, "total": 200.0}
    assert field(table("coarse-grained", [run]), "AD", "TabLLP-BDC", "L1").lines[1].startswith("70.00 ")
    assert field(table("pair-accuracy", [run]), "AD", "Coarse-grained").lines[1].startswith("75.00 ")
    assert field(table("class-awareness", [run]), "AD", "TabLLP-BDC").lines[1] == "0.6200 ± – (1)"
    assert field(table("training-time", [run]), "AD", "TabLLP-BDC").lines[1].startswith("2.00 ")
    assert field(table("training-time", [run]), "AD", "Pretrain").lines[1].startswith("1.50 ")
    shared = table("training-time", runs("dllp", 0.8, 0.8, **HERE))
    assert field(shared, "AD", "DLLP").lines[1] == "0.06 ± – (2)", "times that seeds share have no spread"
    run["dataset"] = {**run["dataset"], "code": "BA"}
    assert field(table("fine-grained", [run]), "BA", "TabLLP-BDC").lines[1].startswith("90.00 ")


def test_failed_and_infinite_values_are_no_results() -> None:
    broken = record("dllp", None, seed=1, **HERE)
    infinite = record("dllp", float("inf"), seed=2, **HERE)
    found = table("fine-grained", [record("dllp", 0.8, **HERE), broken, infinite, failed("dllp", seed=3, **HERE)])
    assert field(found, "AD", "DLLP").lines[1::2] == ("80.00 ± – (1)", "1 failed")
    assert found.notes["Failed"] == ("dllp on adult, seed 3: loss became NaN in epoch 4",)
    alone = [failed("dllp", **HERE)]
    assert field(table("fine-grained", alone), "AD", "DLLP").lines == ("paper 87.61 ± 0.21", "1 failed")
    assert field(table("robustness", alone), "ours", "DLLP").is_empty
    old, new = runs("dllp", 0.8, 0.8, **HERE)
    (made,) = tables("fine-grained", [old, new], stale={old["run"]: "the method has changed"})
    assert made.table.notes["Made by other code"] == ("dllp on adult, seed 0: the method has changed",)


def test_robustness_study_uses_common_tasks() -> None:
    smaller = {**HERE, "bag_size": 64}
    found = table(
        "robustness",
        runs("dllp", 0.80, 0.90, **HERE),
        runs("llp-vat", 0.80, 0.81, **HERE),
        runs("dllp", 0.80, 0.81, **smaller),
        runs("llp-vat", 0.80, 0.80, **smaller),
        runs("dllp", 0.80, 0.80, dataset="credit", **HERE),
    )
    ours = {row[0].lines[0]: row[2].lines for row in found.rows}
    assert (ours["DLLP"], ours["LLP-VAT"], ours["LLP-GAN"]) == (("2.000",), ("1.000",), ("–",))


def test_bdc_without_pretraining_is_shown_with_remark() -> None:
    plain = runs("tabllp-bdc", 0.90, 0.91, **HERE)
    remark = "without pretraining"
    shown = field(table("fine-grained", plain), "AD", "TabLLP-BDC").lines
    assert shown[1:] == ("90.50 ± 0.71 (2)", "+2.69", remark), "far from the paper, but not flagged"
    robust = table("robustness", plain, runs("dllp", 0.8, 0.9, **HERE))
    assert field(robust, "ours", "TabLLP-BDC").lines == ("1.000", remark)
    both = [*plain, *runs("tabllp-bdc", 0.8, 0.8, pretraining="self+bag", **HERE)]
    assert field(table("fine-grained", both), "AD", "TabLLP-BDC").lines[1] == "80.00 ± 0.00 (2)"
    assert tables("aggregation", plain) == [], "it has no aggregation of rows in pretraining"


def test_every_paper_number_is_read() -> None:
    keys, printed = _paper_numbers("fine_grained")
    assert (keys, len(printed), printed["DLLP", "AD"]) == (["method", "dataset"], 81, (87.61, 0.21))
    assert _paper_numbers("pretraining")[1]["Self", "DLLP", "BA"] == pytest.approx((84.36, math.nan), nan_ok=True)


def test_times_are_compared_on_paper_hardware_only() -> None:
    def timed(name: str) -> _PaperFigure:
        hardware = {**record("dllp")["hardware"], "name": name}
        runs = [
            record("dllp", 0.8, seed=s, members=1, hardware=hardware, times={"train": 600.0 + s, "total": 1.0}, **HERE)
            for s in range(2)
        ]
        ((figure,),) = (made.figures for made in tables("training-time", runs))
        return figure

    here, there = timed("NVIDIA H200"), timed("NVIDIA GeForce RTX 2080 Ti")
    assert (here.is_comparable, there.is_comparable) == (False, True)
    assert here.difference == there.difference


def test_methods_without_epochs_join_study() -> None:
    bags: dict[str, Any] = {"bag_size": 256, "max_bags": 13}
    records = [record("bag-gp", encoder=None, **bags), record("llp-vat", **bags)]
    records.append(record("dllp", protocol={**PROTOCOL, "epochs": 30}, **bags))
    found = [
        {row[0].lines[0] for row in made.table.rows if not all(field.is_empty for field in row[2:])}
        for made in tables("bag-number", records)
    ]
    assert found == [{"bag-gp", "dllp"}, {"bag-gp", "llp-vat"}]
