"""The studies as declarations: their cells, what flags choose of them, and that they speak the paper's language."""

from __future__ import annotations

from typing import Any

import pytest

from llpbench.core.cell import Cell
from llpbench.core.criteria import CRITERIA
from llpbench.core.errors import LLPBenchError
from llpbench.data.facts import built_in_facts
from llpbench.data.splits import training_bags
from llpbench.report.study_tables import MEASURES, _paper_numbers
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
        name: [training_bags(built_in_facts()[name].rows, each["bag_size"]) - each["max_bags"] for each in levels]
        for name in ("credit", "california", "electricity", "adult")
    }
    assert left["credit"][2::3] == [0, 0], "all that credit has of 1024 and 64 rows"
    assert min(map(min, left.values())) == 0


def test_flags_complete_and_narrow_study() -> None:
    found = cells("bag-size", encoders="mlp", bag_sizes="64,256,4096", methods="dllp,llp-gan", epochs=100, seeds=3)
    assert {(c.method, c.bag_size, c.encoder) for c in found} == {
        ("dllp", 64, "mlp"),
        ("dllp", 256, "mlp"),
        ("llp-gan", 64, None),
        ("llp-gan", 256, None),
    }
    assert {c.protocol.epochs for c in found if c.protocol} == {100}
    assert {c.bag_size for c in cells("fine-grained", bag_sizes=64)} == {64}
    assert {c.pretraining for c in cells("pretraining", pretraining="bag,none")} == {"bag", "none"}
    some = cells("paper", methods="dllp", encoders="mlp")  # studies without a selected cell do not matter among others
    assert {(c.method, c.encoder) for c in some} == {("dllp", "mlp")}


def test_study_uses_paper_preset_and_its_own_hyperparameters() -> None:
    assert resolve({"study": "encoder"}).seeds == tuple(range(10))
    with pytest.raises(LLPBenchError, match="--set and --study cannot be combined"):
        cells("encoder", set=("dllp.learning_rate=0.5",))
