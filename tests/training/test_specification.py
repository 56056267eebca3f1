"""Cells from declarations: what is wrong with a declaration is said before anything runs."""

from __future__ import annotations

import pytest

from llpbench.core.cell import Cell
from llpbench.core.errors import LLPBenchError
from llpbench.core.registry import register_encoder
from llpbench.training.specification import make_cell


def test_an_encoder_without_sizes_is_refused() -> None:
    @register_encoder("plain")
    class Plain:
        """States nothing."""

    with pytest.raises(LLPBenchError, match=r"encoder 'plain' .* states no `Params`"):
        make_cell("dllp", "adult", bag_size=256, encoder="plain")


def test_numbers_are_part_of_a_specification_where_they_are_no_z_scores() -> None:
    usual = make_cell("dllp", "adult", bag_size=64, encoder="mlp")
    scores = make_cell("dllp", "adult", bag_size=64, encoder="mlp", numbers="scores")
    assert "numbers" not in usual.spec
    assert scores.spec == {**usual.spec, "numbers": "scores"}
    assert scores.id != usual.id
    assert Cell.of(scores.spec) == scores
    assert make_cell("bag-mean-linear", "adult", bag_size=64, numbers="robust").numbers == "robust"
    assert make_cell("llp-gan", "adult", bag_size=64, numbers="scores").numbers == "z", "it brings its own network"
