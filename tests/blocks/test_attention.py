"""SAINT's blocks: the layout for CPUs and its derivatives equal those of the reference."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from llpbench.blocks.attention import LANES, Block
from llpbench.core.model import Random
from llpbench.encoders.saint import _from_lanes, _to_lanes

DIM, TOKENS = 12, 5


def make_block(prenorm: bool = False, dropout: float = 0.0) -> Block:
    torch.manual_seed(0)
    block = Block(DIM, heads=3, head_dim=4, dropout=dropout, prenorm=prenorm)
    for norm in (block.norm_attention, block.norm_feed_forward):  # nothing that an exchange of weights would hide
        torch.nn.init.normal_(norm.weight)
        torch.nn.init.normal_(norm.bias)
    return block


def make_rows(rows: int) -> Tensor:
    return torch.randn(rows, TOKENS, DIM, generator=torch.Generator().manual_seed(rows))


def by_lanes(block: Block, x: Tensor, random: Random | None = None) -> Tensor:
    return _from_lanes(block.lanes(_to_lanes(x), random), len(x))


@pytest.mark.parametrize("rows", [1, LANES, LANES + 7])
@pytest.mark.parametrize("prenorm", [False, True])
def test_both_layouts_give_equal_outputs(rows: int, prenorm: bool) -> None:
    block, x = make_block(prenorm), make_rows(rows)
    expected = block(x, None)
    torch.testing.assert_close(by_lanes(block, x), expected, atol=1e-5, rtol=1e-5)
    for part in (slice(1), slice(1, None), slice(2, 4)):
        some = _from_lanes(block.lanes(_to_lanes(x), None, part), len(x))
        torch.testing.assert_close(some, expected[:, part], atol=1e-5, rtol=1e-5)


def test_both_layouts_have_equal_derivatives() -> None:
    block, x = make_block(), make_rows(LANES + 7)
    found = []
    for apply in (lambda x: block(x, None), lambda x: by_lanes(block, x)):
        start = x.clone().requires_grad_()
        (first,) = torch.autograd.grad(apply(start).square().sum(), start, create_graph=True)
        second = torch.autograd.grad(first.square().sum(), [start, *block.parameters()])
        found.append((first, *second))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, atol=1e-3, rtol=1e-3)


def test_layout_dropout_keeps_expected_share() -> None:
    block, x = make_block(dropout=0.5), make_rows(4 * LANES)
    keys = torch.arange(300)
    drawn = torch.stack([by_lanes(block, x, Random(key)).detach() for key in keys])
    without = by_lanes(block, x).detach()
    spread = drawn.std(dim=0) / len(keys) ** 0.5
    assert ((drawn.mean(dim=0) - without).abs() < 6 * spread + 1e-6).all()
    assert (drawn.std(dim=0) > 0).all()
