"""Every encoder: shapes, what a row depends on, missing values."""

from __future__ import annotations

from dataclasses import asdict

import pytest
import torch

from llpbench.blocks.attention import Block
from llpbench.core.bags import Rows, Schema
from llpbench.core.model import Encoder, Random
from llpbench.core.registry import ENCODERS
from llpbench.encoders.saint import Saint, SaintParams

SCHEMA = Schema(numeric=3, cardinalities=(4, 6), classes=2, prior=(0.5, 0.5), rows_per_step=10)
SCHEMAS = [
    SCHEMA,
    Schema(numeric=0, cardinalities=(4,), classes=2, prior=(0.5, 0.5), rows_per_step=10),
    Schema(numeric=2, cardinalities=(), classes=3, prior=(0.5, 0.3, 0.2), rows_per_step=10),
]


def build(name: str, schema: Schema = SCHEMA) -> Encoder:
    torch.manual_seed(0)
    encoder = ENCODERS.get(name)
    built: Encoder = encoder(schema, encoder.Params(), 0.1)
    return built


def rows(bags: int, size: int, schema: Schema = SCHEMA) -> Rows:
    torch.manual_seed(1)
    codes = [torch.randint(0, c, (bags, size)) for c in schema.cardinalities]
    categorical = torch.stack(codes, dim=-1) if codes else torch.zeros(bags, size, 0, dtype=torch.long)
    missing = torch.rand(bags, size, schema.numeric) < 0.2
    return Rows(torch.randn(bags, size, schema.numeric).masked_fill(missing, 0), categorical, missing)


@pytest.fixture(params=ENCODERS.names())
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("schema", SCHEMAS, ids=["mixed", "categorical", "numeric"])
def test_shapes(name: str, schema: Schema) -> None:
    encoder = build(name, schema)
    z, tokens = encoder(rows(2, 5, schema), torch.ones(2, 5, dtype=torch.bool), None)
    assert z.shape == (2, 5, encoder.dim)
    assert tokens.shape[:3] == (2, 5, schema.features)


def test_permuting_rows_permutes_outputs(name: str) -> None:
    encoder, data, mask = build(name), rows(1, 12), torch.ones(1, 12, dtype=torch.bool)
    order = torch.randperm(12)
    permuted = encoder(Rows(*(value[:, order] for value in data)), mask, None).z
    assert torch.allclose(permuted, encoder(data, mask, None).z[:, order], atol=1e-5)


def test_a_row_depends_on_others_only_where_the_encoder_says_so(name: str) -> None:
    encoder, data, mask = build(name), rows(1, 6), torch.ones(1, 6, dtype=torch.bool)
    changed = Rows(data.numeric.clone(), data.categorical, data.missing)
    changed.numeric[0, 5] += 3
    difference = (encoder(data, mask, None).z - encoder(changed, mask, None).z)[0, :5].abs().max()
    assert (difference > 1e-6) == encoder.row_interaction


def test_padding_changes_nothing(name: str) -> None:
    encoder, data = build(name), rows(1, 6)
    whole = encoder(data, torch.ones(1, 6, dtype=torch.bool), None).z
    more = rows(1, 9)
    padded = Rows(*(torch.cat([a, b[:, 6:]], dim=1) for a, b in zip(data, more, strict=True)))
    masked = encoder(padded, torch.arange(9)[None] < 6, None).z[:, :6]
    assert torch.allclose(whole, masked, atol=1e-5)


def test_what_stands_under_a_missing_value_does_not_matter(name: str) -> None:
    encoder, data, mask = build(name), rows(1, 6), torch.ones(1, 6, dtype=torch.bool)
    data.missing[0, 0, 0] = True
    other = Rows(data.numeric.clone(), data.categorical, data.missing)
    other.numeric[0, 0, 0] = 5
    assert torch.equal(encoder(data, mask, None).z, encoder(other, mask, None).z)
    present = Rows(data.numeric, data.categorical, torch.zeros_like(data.missing))
    assert not torch.equal(encoder(data, mask, None).z, encoder(present, mask, None).z)


def test_dropout_only_with_a_random_stream(name: str) -> None:
    encoder, data, mask = build(name), rows(1, 6), torch.ones(1, 6, dtype=torch.bool)
    first = encoder(data, mask, Random(torch.tensor(1))).z
    assert not torch.equal(first, encoder(data, mask, Random(torch.tensor(2))).z)
    assert torch.equal(first, encoder(data, mask, Random(torch.tensor(1))).z)
    assert torch.equal(encoder(data, mask, None).z, encoder(data, mask, None).z)


def test_every_parameter_is_used(name: str) -> None:
    encoder = build(name)
    encoding = encoder(rows(2, 8), torch.ones(2, 8, dtype=torch.bool), None)
    (encoding.z.square().sum() + encoding.tokens.square().sum()).backward()
    assert [n for n, p in encoder.named_parameters() if p.grad is None] == []


def test_saint_has_the_published_size() -> None:
    """As published: about 175,000 parameters in the blocks at width 32 and depth 6."""
    encoder = Saint(SCHEMA, SaintParams(), 0.1)
    assert sum(p.numel() for p in encoder.blocks.parameters()) == pytest.approx(175_000, rel=0.02)
    assert asdict(SaintParams()) == {"dim": 32, "depth": 6, "heads": 8, "head_dim": 16, "numeric_hidden": 100}


def test_published_and_prenorm_blocks_differ_in_the_skip_path() -> None:
    published, prenorm = build("saint"), build("saint-prenorm")
    x = torch.randn(1, 1, 4, 32) * 10
    for encoder, scale in ((published, 1.0), (prenorm, 10.0)):
        assert isinstance(encoder, Saint)
        block = encoder.blocks[0]
        assert isinstance(block, Block)
        for parameter in (*block.attention.parameters(), *block.feed_forward.parameters()):
            torch.nn.init.zeros_(parameter)
        assert float(block(x, None).detach().std()) == pytest.approx(scale, rel=0.2)


@pytest.mark.parametrize("name", ["saint", "saint-prenorm"])
def test_the_layout_for_compilers_gives_the_same(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    encoder, data, mask = build(name), rows(2, 9), torch.ones(2, 9, dtype=torch.bool)
    reference = encoder(data, mask, None)
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    for found, expected in zip(encoder(data, mask, None), reference, strict=True):
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
