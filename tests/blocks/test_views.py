"""Views and samples of rows: what CutMix and MixUp mix, which rows are compared, and that padding never gets in."""

from __future__ import annotations

import pytest
import torch
from small import small_encoder, some_bags, stream

from llpbench.blocks.views import _cut_mix, at, mixed_view, random_partner, some_rows
from llpbench.core.bags import Rows
from llpbench.core.model import MLP, Model, Network


def made(kind: str) -> Model:
    """A model with an encoder and a head."""
    return Model(Network(small_encoder(kind), MLP(8, 8, 2)), stream())


def test_partners_are_permutation_without_padding() -> None:
    mask = torch.tensor([True, False, True, True, False, True])
    seen = set()
    for key in range(200):
        partner = random_partner(mask, stream(key))
        assert sorted(partner.tolist()) == list(range(6))
        assert mask[partner[mask]].all()
        seen.add(tuple(partner[mask].tolist()))
    assert len(seen) == 24  # every order of the four rows


def test_cut_mix_replaces_cells_by_partner_values() -> None:
    numeric = torch.arange(4000.0).reshape(2, 1000, 2)
    rows = Rows(numeric, numeric[..., :1].long() + 10, numeric[..., :2] % 3 == 0)
    mixed = _cut_mix(rows, torch.ones(2, 1000, dtype=torch.bool), 0.1, stream())
    changed = mixed.numeric != numeric
    assert changed.float().mean() == pytest.approx(0.1, abs=0.02)
    assert (mixed.categorical != rows.categorical).float().mean() == pytest.approx(0.1, abs=0.03)
    assert (mixed.numeric % 2 == torch.tensor([0.0, 1.0])).all()  # even numbers stand in the first column
    assert torch.equal(mixed.missing, mixed.numeric % 3 == 0)  # a number takes its mark of missing with it


@pytest.mark.parametrize("kind", ["mlp", "saint"])
def test_view_without_mixing_is_row(kind: str) -> None:
    bags, model = some_bags(), made(kind)
    assert torch.allclose(mixed_view(model, bags, 0.0, 1.0).z, model.encode(bags).z, atol=1e-6)
    assert not torch.allclose(mixed_view(model, bags, 0.0, 0.3).z, model.encode(bags).z, atol=1e-2)
    assert not torch.allclose(mixed_view(model, bags, 0.5, 1.0).z, model.encode(bags).z, atol=1e-2)


def test_bags_above_cap_are_sampled_without_replacement() -> None:
    mask = torch.ones(2, 9, dtype=torch.bool)
    mask[1, [0, 2, 4, 6, 7, 8]] = False
    chosen = some_rows(mask, stream(), most=5)
    assert chosen is not None
    assert chosen.shape == (2, 5)
    assert all(len(set(row)) == 5 for row in chosen.tolist())
    assert at(mask, chosen)[0].all()
    assert set(chosen[1, :3].tolist()) == {1, 3, 5}  # all of the shorter bag's rows, then padding
    assert at(mask, chosen)[1].tolist() == [True, True, True, False, False]
    vectors = torch.randn(2, 9, 3)
    taken = at(vectors, chosen)
    assert torch.equal(taken, torch.stack([vectors[bag, chosen[bag]] for bag in (0, 1)]))
