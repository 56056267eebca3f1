"""Studies: their cells, and their tables made of a journal with the paper's numbers beside."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from factory import PROTOCOL, failed, record, runs

from llpbench.core.cell import Cell
from llpbench.core.criteria import CRITERIA
from llpbench.core.errors import LLPBenchError
from llpbench.core.record import Record
from llpbench.data.specs import built_in_facts
from llpbench.report.report_table import ReportTable
from llpbench.report.study_tables import MEASURES, _paper_numbers, _PaperFigure, _StudyTable, study_tables
from llpbench.results.frame import NO_STALE_RUNS, tidy
from llpbench.results.studies import OPEN, STUDIES, Study
from llpbench.running.planning import expand
from llpbench.running.settings import PRETRAININGS, resolve
from llpbench.training.specification import changed

KEYS = {*OPEN, "method", "max_bags", "pretraining", "otherwise", "params", "pretraining_params", "criterion", "measure"}


def cells(study: str, **flags: Any) -> list[Cell]:
    named = {name.replace("_", "-"): value for name, value in flags.items()}
    return [one.cell for one in expand(resolve({"study": study, "datasets": "adult", **named}))]


@pytest.mark.parametrize("study", [*STUDIES.values()], ids=lambda study: study.name)
def test_every_study_expands_to_valid_cells(study: Any) -> None:
    found = cells(study.name)
    assert len({cell.id for cell in found}) == len(found)
    assert {cell.method for cell in found} == {row.fixed["method"] for row in study.rows}
    assert all(cell.protocol is None or cell.protocol.epochs == 300 for cell in found)
    for row in study.rows:
        assert {*row.fixed} <= KEYS
        assert row.fixed["criterion"] in CRITERIA
        assert row.fixed["measure"] in MEASURES
        assert {*row.pretrainings, row.fixed.get("otherwise", "none")} <= {*PRETRAININGS}


@pytest.mark.parametrize("study", [study for study in STUDIES.values() if study.reference], ids=str)
def test_study_has_every_row_of_the_paper(study: Any) -> None:
    keys, printed = _paper_numbers(study.reference)
    factors = [key for key in keys if key != "dataset"]
    assert set(factors) <= set(study.factors)
    places = [list(study.factors).index(factor) for factor in factors]
    ours = {tuple(row.labels[place] for place in places) for row in study.rows}
    rows = {key[: len(factors)] for key in printed}
    only_theirs = {("TabLLP-BDC (fine-grained validation)",)}  # repeats the fine-grained table
    assert rows - only_theirs == ours


def test_paper_study_is_union_of_others() -> None:
    assert Study.select("all") == list(STUDIES.values())
    assert Study.select("paper") == [study for study in STUDIES.values() if not study.own]
    assert {study.name for study in STUDIES.values() if study.own} == {"bag-number"}
    every = {cell.id for study in Study.select("paper") for cell in cells(study.name)}
    assert {cell.id for cell in cells("paper")} == every


def test_fixed_values_of_row_enter_cell() -> None:
    (greedy,) = (cell for cell in cells("pair-generator") if cell.params["generator"] == "greedy")
    assert (greedy.pretraining, changed(greedy)) == ("self+bag", {"generator": "greedy"})
    found = {(c.pretraining_params["aggregator"], c.pretraining_params["projection"]) for c in cells("aggregation")}
    assert len(found) == 4
    assert {cell.bag_size for cell in cells("bag-size", methods="dllp")} == {64, 128, 256, 512, 1024}


def test_dataset_bags_follow_study() -> None:
    levels = STUDIES["bag-number"].factors["bags"].values()
    left = {
        name: [(rows - 2 * (rows // 10)) // each["bag_size"] - each["max_bags"] for each in levels]
        for name in ("credit", "california", "electricity", "adult")
        if (rows := built_in_facts()[name].rows)
    }
    assert left["credit"][2::3] == [0, 0], "all that credit has of 1024 and 64 rows"
    assert min(map(min, left.values())) == 0


def test_flags_complete_and_narrow_study() -> None:
    found = cells("bag-size", encoders="mlp", bag_sizes="64,256,4096", methods="dllp,llp-gan", epochs=100, seeds=3)
    expected = {(*entry, size) for entry in (("dllp", "mlp"), ("llp-gan", None)) for size in (64, 256)}
    assert {(c.method, c.encoder, c.bag_size) for c in found} == expected
    assert {c.protocol.epochs for c in found if c.protocol} == {100}
    assert {c.bag_size for c in cells("fine-grained", bag_sizes=64)} == {64}
    assert {c.pretraining for c in cells("pretraining", pretraining="bag,none")} == {"bag", "none"}
    some = cells("paper", methods="dllp", encoders="mlp")  # studies without a selected cell do not matter among others
    assert {(c.method, c.encoder) for c in some} == {("dllp", "mlp")}


def test_study_uses_paper_preset_and_its_own_hyperparameters() -> None:
    assert resolve({"study": "encoder"}).seeds == tuple(range(10))
    with pytest.raises(LLPBenchError, match="--set and --study cannot be combined"):
        cells("encoder", set=("dllp.learning_rate=0.5",))


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
    settings: list[dict[str, Any]] = [{"bag_size": 64}, {}, {"encoder": "saint"}]
    settings += [{"protocol": short}, {"bagging": "random"}]
    made = [record("dllp", 0.8 - place / 10, **{"bag_size": 256} | each) for place, each in enumerate(settings)]
    found = [each.table for each in tables("fine-grained", made)]
    shown = {t.title.split(": ")[1]: field(t, "AD", "DLLP").lines for t in found}
    long = "at most 300 epochs, patience 20, 2 bags per step"
    brief, paper = "at most 30 epochs, patience 5, 2 bags per step", "paper 87.61 ± 0.21"
    assert shown == {
        f"ordered · bags of 256 · encoder mlp · {long}": (paper, "70.00 ± – (1)", "-17.61"),
        f"ordered · bags of 256 · encoder saint · {long}": (paper, "60.00 ± – (1)", "-27.61 ⚑"),
        f"ordered · bags of 256 · encoder mlp · {brief}": (paper, "50.00 ± – (1)", "-37.61"),
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
    run["dataset"] = {**run["dataset"], "code": "BA"}  # of a plugin
    assert len(field(table("fine-grained", [run]), "BA", "TabLLP-BDC").lines) == 1, "the number of the paper"
    run["spec"] = {**run["spec"], "dataset": "bank_marketing"}
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
    smaller, elsewhere = {**HERE, "bag_size": 64}, runs("dllp", 0.80, 0.80, dataset="credit", **HERE)
    here = [*runs("dllp", 0.80, 0.90, **HERE), *runs("llp-vat", 0.80, 0.81, **HERE)]
    here += [*runs("dllp", 0.80, 0.81, **smaller), *runs("llp-vat", 0.80, 0.80, **smaller)]
    found = table("robustness", here, elsewhere)
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
        times = [{"train": 600.0, "total": 1.0}, {"train": 601.0, "total": 1.0}]
        timed = [record(seed=s, members=1, hardware=hardware, times=each, **HERE) for s, each in enumerate(times)]
        ((figure,),) = (made.figures for made in tables("training-time", timed))
        return figure

    here, there = timed("NVIDIA H200"), timed("NVIDIA GeForce RTX 2080 Ti")
    assert (here.is_comparable, there.is_comparable) == (False, True)
    assert here.difference == there.difference


def test_methods_without_epochs_join_study() -> None:
    bags: dict[str, Any] = {"bag_size": 256, "max_bags": 13}
    records = [record("bag-gp", encoder=None, **bags), record("llp-vat", **bags)]
    records.append(record("dllp", protocol={**PROTOCOL, "epochs": 30}, **bags))
    rows = [made.table.rows for made in tables("bag-number", records)]
    found = [{row[0].lines[0] for row in each if not all(field.is_empty for field in row[2:])} for each in rows]
    assert found == [{"bag-gp", "dllp"}, {"bag-gp", "llp-vat"}]
