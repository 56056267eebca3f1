"""Every encoder: shapes, what a row depends on, missing values; SAINT's blocks in the layout for CPUs."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest
import torch
from torch import Tensor

from llpbench.blocks.attention import LANES, Block
from llpbench.core.bags import Rows, Schema
from llpbench.core.model import Encoder, Random
from llpbench.core.registry import ENCODERS
from llpbench.encoders.flat_mlps import _RealMLP, _ResNet, _ScaledLayer, _TabM, _TabMParams
from llpbench.encoders.ft_transformer import _FTTransformer
from llpbench.encoders.saint import _Saint, _SaintParams, _to_lanes

SCHEMA = Schema(numeric=3, cardinalities=(4, 6), classes=2, prior=(0.5, 0.5), rows_per_step=10)


def build(name: str, schema: Schema = SCHEMA) -> Encoder:
    torch.manual_seed(0)
    encoder = ENCODERS.get(name)
    return encoder(schema, encoder.Params(), 0.1)


def rows(bags: int, size: int, schema: Schema = SCHEMA) -> Rows:
    torch.manual_seed(1)
    codes = [torch.randint(0, c, (bags, size)) for c in schema.cardinalities]
    categorical = torch.stack(codes, dim=-1) if codes else torch.zeros(bags, size, 0, dtype=torch.long)
    missing = torch.rand(bags, size, schema.numeric) < 0.2
    return Rows(torch.randn(bags, size, schema.numeric).masked_fill(missing, 0), categorical, missing)


@pytest.fixture(params=ENCODERS.names())
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_permuting_rows_permutes_outputs(name: str) -> None:
    encoder, data, mask = build(name), rows(1, 12), torch.ones(1, 12, dtype=torch.bool)
    order = torch.randperm(12)
    permuted = encoder(Rows(*(value[:, order] for value in data)), mask, None).z
    assert torch.allclose(permuted, encoder(data, mask, None).z[:, order], atol=1e-5)


def test_value_under_missing_mark_is_ignored(name: str) -> None:
    encoder, data, mask = build(name), rows(1, 6), torch.ones(1, 6, dtype=torch.bool)
    data.missing[0, 0, 0] = True
    other = Rows(data.numeric.clone(), data.categorical, data.missing)
    other.numeric[0, 0, 0] = 5
    assert torch.equal(encoder(data, mask, None).z, encoder(other, mask, None).z)


def test_every_parameter_has_gradient(name: str) -> None:
    encoder = build(name)
    encoding = encoder(rows(2, 8), torch.ones(2, 8, dtype=torch.bool), None)
    (encoding.z.square().sum() + encoding.tokens.square().sum()).backward()
    assert [n for n, p in encoder.named_parameters() if p.grad is None] == []


def test_names_of_resnet_stay_those_of_saved_weights() -> None:
    names = {name.partition(".")[0] for name in build("resnet").state_dict()}
    assert names == {"missing", "categories", "inputs", "first", "blocks", "norm"}


def test_saint_has_published_size() -> None:
    """As published: about 175,000 parameters in the blocks at width 32 and depth 6."""
    encoder = _Saint(SCHEMA, _SaintParams(), 0.1)
    assert sum(p.numel() for p in encoder.blocks.parameters()) == pytest.approx(175_000, rel=0.02)
    assert asdict(_SaintParams()) == {"dim": 32, "depth": 6, "heads": 8, "head_dim": 16, "numeric_hidden": 100}


def test_published_and_prenorm_blocks_differ_in_skip_path() -> None:
    published, prenorm = build("saint"), build("saint-prenorm")
    x = torch.randn(1, 1, 4, 32) * 10
    for encoder, scale in ((published, 1.0), (prenorm, 10.0)):
        assert isinstance(encoder, _Saint)
        block = encoder.blocks[0]
        assert isinstance(block, Block)
        for parameter in (*block.attention.parameters(), *block.feed_forward.parameters()):
            torch.nn.init.zeros_(parameter)
        assert float(block(x, None).detach().std()) == pytest.approx(scale, rel=0.2)


@pytest.mark.parametrize("name", ["saint", "saint-prenorm"])
def test_compiler_layout_gives_equal_outputs(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    encoder, data, mask = build(name), rows(2, 9), torch.ones(2, 9, dtype=torch.bool)
    reference = encoder(data, mask, None)
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    for found, expected in zip(encoder(data, mask, None), reference, strict=True):
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


def parameters(*modules: torch.nn.Module | torch.Tensor | None) -> int:
    """Return the number of parameters of modules and of single ones."""
    return sum(
        part.numel() if isinstance(part, torch.Tensor) else sum(each.numel() for each in part.parameters())
        for part in modules
        if part is not None
    )


WIDE = Schema(numeric=6, cardinalities=(10,) * 8, classes=2, prior=(0.5, 0.5), rows_per_step=10)


@pytest.mark.parametrize(
    ("name", "size"), [("ft-transformer", 910_464), ("ft-transformer-small", 84_352), ("resnet", 313_536)]
)
def test_encoders_have_published_sizes(name: str, size: int) -> None:
    """But for the learned vectors of missing numbers, and the norm that the authors count as part of the head."""
    encoder = build(name, replace(WIDE, numeric=86, cardinalities=()) if name == "resnet" else WIDE)
    assert isinstance(encoder, _FTTransformer | _ResNet)
    missing = encoder.missing if isinstance(encoder, _ResNet) else encoder.features.missing
    assert parameters(encoder) - parameters(missing, encoder.norm) == size
    if isinstance(encoder, _FTTransformer):
        assert isinstance(encoder.blocks[0].norm_attention, torch.nn.Identity), "none before the first attention"


def test_realmlp_starts_as_published() -> None:
    encoder = build("realmlp", Schema(2, (10, 30), 2, (0.5, 0.5), 10))
    assert isinstance(encoder, _RealMLP)
    assert len(encoder.inputs) == 9 + 8 + 2 * 4, "one-hot up to nine levels, then embeddings of eight"
    data = Rows(torch.tensor([[[0.5, -2.0]]]), torch.tensor([[[2, 7]]]), torch.zeros(1, 1, 2, dtype=torch.bool))
    embedded = encoder.embed(data)[0, 0]
    assert embedded[0].tolist() == [0, 1] + [0] * 7
    assert embedded[2:, 0].tolist() == [0.5, -2.0], "a number stands first in its embedding"
    assert encoder.numbers is not None
    own = (0.1 * encoder.numbers.get_parameter(name) for name in ("frequency", "phase", "weight", "bias"))
    frequency, phase, weight, bias = own
    waves = (2 * torch.pi * torch.tensor([[0.5], [-2.0]]) * frequency + phase).cos()
    expected = torch.einsum("fk,fkd->fd", waves, weight) + bias
    torch.testing.assert_close(embedded[2:, 1:4], expected)
    x = torch.randn(5, 8)
    layer = _ScaledLayer(8, 4)
    torch.testing.assert_close(layer(x), torch.nn.functional.selu(x @ layer.weight / 8**0.5))


def test_tabm_has_published_size() -> None:
    """But for the heads, which are the method's: 32 linear ones, which the authors count."""
    encoder = build("tabm", replace(WIDE, cardinalities=(11,) * 8))
    assert isinstance(encoder, _TabM)
    own, shared = (
        sum(p.numel() for name, p in encoder.layers.named_parameters() if (f"layers.{name}" in encoder.of_copy) == mine)
        for mine in (True, False)
    )
    assert encoder.copies * (own + 512 * 2 + 2) + shared == 734_976


@pytest.mark.parametrize(("name", "signs"), [("tabm", True), ("tabm-small", False)])
def test_tabm_copies_differ_in_first_factors_only(name: str, signs: bool) -> None:
    """One factor a feature: a sign, or with embeddings of numbers a normal number."""
    encoder = build(name)
    other = encoder.another()
    assert isinstance(encoder, _TabM)
    assert isinstance(other, _TabM)
    differing = {n for (n, a), b in zip(encoder.named_parameters(), other.parameters(), strict=True) if (a != b).any()}
    assert differing == {"layers.0.scale_in"}
    factors = torch.cat([each.layers[0].get_parameter("scale_in").detach() for each in (encoder, other)])
    assert (factors.abs().unique().tolist() == [1.0]) is signs
    assert factors.min() < 0 < factors.max()
    categories, numbers = factors[:8].split((3, 5)), factors[8 : len(factors) // 2].reshape(3, -1)
    assert all(len(block.unique()) == 1 for block in (*categories, *numbers))
    for layer in encoder.layers[1:]:
        assert bool((layer.get_parameter("scale_in") == 1).all())


def test_tabm_matches_hand_computation() -> None:
    torch.manual_seed(0)
    encoder, data = _TabM(SCHEMA, _TabMParams(dim=4, depth=1), 0.1), rows(1, 6)
    layer = encoder.layers[0]
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.normal_()
    assert encoder.numbers is not None
    one_hot = [torch.nn.functional.one_hot(data.categorical[..., c], n)[..., 1:] for c, n in enumerate((4, 6))]
    x = torch.cat([*one_hot, torch.where(data.missing, encoder.numbers.get_parameter("missing"), data.numeric)], dim=-1)
    scale_in, weight, scale_out, bias = (
        layer.get_parameter(each) for each in ("scale_in", "weight", "scale_out", "bias")
    )
    expected = ((x * scale_in) @ weight * scale_out + bias).relu()
    torch.testing.assert_close(encoder(data, torch.ones(1, 6, dtype=torch.bool), None).z, expected)


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


def by_lanes(block: Block, x: Tensor, random: Random | None = None, part: slice = slice(None)) -> Tensor:
    return block.lanes(_to_lanes(x), random, part).permute(0, 3, 2, 1).flatten(0, 1)[: len(x)]


@pytest.mark.parametrize("rows", [1, LANES, LANES + 7])
@pytest.mark.parametrize("prenorm", [False, True])
@pytest.mark.parametrize("part", [slice(None), slice(1), slice(1, None), slice(2, 4)])
def test_both_layouts_have_equal_outputs_and_derivatives(rows: int, prenorm: bool, part: slice) -> None:
    block, x = make_block(prenorm), make_rows(rows)
    found = []
    for apply in (lambda x: block(x, None)[:, part], lambda x: by_lanes(block, x, None, part)):
        start = x.clone().requires_grad_()
        output = apply(start)
        (first,) = torch.autograd.grad(output.square().sum(), start, create_graph=True)
        second = torch.autograd.grad(first.square().sum(), [start, *block.parameters()])
        found.append((output, first, *second))
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
