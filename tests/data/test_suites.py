"""Suites of datasets: what they hold, how a pattern takes them, and how a plugin adds one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from bench import LLPBench

from llpbench.core.errors import LLPBenchError
from llpbench.core.registry import load_plugin, register_suite
from llpbench.data.loading import EMBEDDED, list_suites, locate, select_datasets, suite_datasets
from llpbench.data.specs import built_in_facts, dataset_specs

pytestmark = pytest.mark.usefixtures("empty_cache")

LABELLED = {spec.name: spec for spec in dataset_specs() if spec.bags is None}


def share(name: str) -> float:
    """Share of positive rows; 0 of more than two classes."""
    facts, positive = built_in_facts()[name], LABELLED[name].positive
    return 0.0 if positive is None else facts.classes[positive] / facts.rows


def test_core_suite_is_every_embedded_dataset_of_its_size() -> None:
    locations = {name: locate(spec) for name, spec in LABELLED.items()}
    embedded = {name for name, place in locations.items() if place is not None and place.path.parent == EMBEDDED}
    of_size = {name for name in embedded if 5_000 <= built_in_facts()[name].rows <= 150_000}
    assert set(suite_datasets("core")) == of_size
    assert len(of_size) >= 30


def test_other_suites_follow_from_declarations() -> None:
    assert set(suite_datasets("natural")) == {name for name, spec in LABELLED.items() if spec.natural_keys}
    assert set(suite_datasets("rare")) == {name for name in LABELLED if 0.01 <= share(name) <= 0.08}
    assert set(suite_datasets("multiclass")) == {name for name in LABELLED if len(built_in_facts()[name].classes) > 2}


def test_pattern_selects_suites_names_and_globs_once_each() -> None:
    rare = suite_datasets("rare")
    assert select_datasets("adult, suite:rare,ai4i2020,AD,letter") == ["adult", *rare, "letter"]
    assert select_datasets("suite:rare,syn*") == [*rare, "synthetic_a", "synthetic_b"]
    assert set(suite_datasets("core")) < set(select_datasets("all"))


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("suite:cor", "unknown suite 'cor'. Did you mean core"),
        ("adult,suite:", "unknown suite ''"),
        ("suites:core", "unknown dataset 'suites:core'"),
        ("suite:odd", "suite 'odd' .* unknown dataset 'adlut'. Did you mean adult"),
        ("suite:empty", "suite 'empty' .* must return names of datasets"),
        ("suite:text", "suite 'text' .* must return names of datasets"),
    ],
)
def test_invalid_suite_pattern_is_refused(pattern: str, message: str) -> None:
    register_suite("odd")(lambda: ("adult", "adlut"))
    register_suite("empty")(lambda: ())
    register_suite("text")(lambda: "adult")
    with pytest.raises(LLPBenchError, match=message):
        select_datasets(pattern)


def test_suite_of_plugin_is_selected_and_listed(tmp_path: Path, llpbench: LLPBench) -> None:
    plugin = tmp_path / "mine.py"
    plugin.write_text(
        "from llpbench import register_suite\n"
        "@register_suite('mine')\n"
        "def mine():\n"
        '    """My two."""\n'
        "    return 'letter', 'cces_2016', 'letter'\n"
    )
    load_plugin(plugin)
    assert select_datasets("suite:mine") == ["letter", "cces_2016"]
    (mine,) = [entry for entry in list_suites() if entry.name == "mine"]
    assert (mine.summary, mine.missing) == ("My two.", ("cces_2016",))
    listed = llpbench("list", "suites")
    assert re.search(r"^mine +2 datasets\n +My two\.\n +Missing here: cces_2016\.$", listed.out, re.MULTILINE)
