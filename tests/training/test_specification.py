"""Cells from declarations: what is wrong with a declaration is said before anything runs."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import Generator

from llpbench.core.bags import IntArray
from llpbench.core.cell import Cell
from llpbench.core.errors import LLPBenchError
from llpbench.core.registry import register_bagging, register_encoder
from llpbench.core.tables import Table
from llpbench.data.baggings import parse_bagging
from llpbench.data.splits import assign_bags
from llpbench.data.toy import toy_table
from llpbench.training.specification import make_cell


def test_an_encoder_without_sizes_is_refused() -> None:
    @register_encoder("plain")
    class Plain:
        """States nothing."""

    with pytest.raises(LLPBenchError, match=r"encoder 'plain' .* states no `Params`"):
        make_cell("dllp", "adult", bag_size=256, encoder="plain")


def test_a_bagging_told_a_size_must_keep_to_it() -> None:
    @register_bagging("small")
    def small(table: Table, rows: IntArray, size: int, rng: Generator) -> IntArray:
        """Bags of four, whatever it is told."""
        del table, size, rng
        return rows[:16].reshape(-1, 4)

    with pytest.raises(LLPBenchError, match="must make bags of 8 rows, got 4 to 4"):
        assign_bags(toy_table(), "small", 8, seed=0)


def test_options_must_stand_behind_a_star() -> None:
    @register_bagging("loose")
    def loose(table: Table, rows: IntArray, rng: Generator, clusters: int = 4) -> IntArray:
        """An option that nobody could give."""
        del table, rng
        return np.array_split(rows, clusters)[0][None]

    with pytest.raises(LLPBenchError, match=r"options after a \*, got \(table, rows, rng, clusters\)"):
        parse_bagging("loose")


def test_an_option_at_its_default_is_as_if_it_were_not_given() -> None:
    @register_bagging("parts")
    def parts(table: Table, rows: IntArray, rng: Generator, *, clusters: int = 4) -> IntArray:
        """Equal parts."""
        del table, rng
        return np.stack(np.split(rows[: len(rows) // clusters * clusters], clusters))

    assert parse_bagging("parts:clusters=4") == parse_bagging("parts") == ("parts", {})
    assert parse_bagging("parts:clusters=5") == ("parts", {"clusters": 5})


def test_numbers_are_part_of_a_specification_where_they_are_no_z_scores() -> None:
    usual = make_cell("dllp", "adult", bag_size=64, encoder="mlp")
    scores = make_cell("dllp", "adult", bag_size=64, encoder="mlp", numbers="scores")
    assert "numbers" not in usual.spec
    assert scores.spec == {**usual.spec, "numbers": "scores"}
    assert scores.id != usual.id
    assert Cell.of(scores.spec) == scores
    assert make_cell("bag-mean-linear", "adult", bag_size=64, numbers="robust").numbers == "robust"
    assert make_cell("llp-gan", "adult", bag_size=64, numbers="scores").numbers == "z", "it brings its own network"
