"""Views: what CutMix and MixUp mix, and that padding never gets in."""

from __future__ import annotations

import pytest
import torch
from small import SCHEMA, small_encoder, some_bags, stream
from torch import Tensor
from torch.func import vmap
from torch.nn import functional as F

from llpbench.blocks.losses import instance_contrast
from llpbench.blocks.views import Projectors, cut_mix, mixed_view, random_partner, self_contrast
from llpbench.core.bags import Rows
from llpbench.core.model import MLP, Model, Network, Random


def made(kind: str) -> Model:
    """A model with an encoder and a head."""
    return Model(Network(small_encoder(kind), MLP(8, 8, 2)), stream())


def test_partners_are_a_permutation_of_the_rows_and_padding_stays_outside() -> None:
    mask = torch.tensor([True, False, True, True, False, True])
    seen = set()
    for key in range(200):
        partner = random_partner(mask, stream(key))
        assert sorted(partner.tolist()) == list(range(6))
        assert mask[partner[mask]].all()
        seen.add(tuple(partner[mask].tolist()))
    assert len(seen) == 24  # every order of the four rows


def test_partners_under_vmap_are_those_of_each_member() -> None:
    mask, keys = torch.rand(3, 9) > 0.3, torch.arange(3)
    together = vmap(lambda m, k: random_partner(m, Random(k)))(mask, keys)
    assert torch.equal(together, torch.stack([random_partner(m, Random(k)) for m, k in zip(mask, keys, strict=True)]))


def test_cut_mix_replaces_cells_with_the_probability_by_the_same_column_of_one_other_row() -> None:
    numeric = torch.arange(4000.0).reshape(2, 1000, 2)
    rows = Rows(numeric, numeric[..., :1].long() + 10, numeric[..., :2] % 3 == 0)
    mixed = cut_mix(rows, torch.ones(2, 1000, dtype=torch.bool), 0.1, stream())
    changed = mixed.numeric != numeric
    assert changed.float().mean() == pytest.approx(0.1, abs=0.02)
    assert (mixed.categorical != rows.categorical).float().mean() == pytest.approx(0.1, abs=0.03)
    assert (mixed.numeric % 2 == torch.tensor([0.0, 1.0])).all()  # even numbers stand in the first column
    assert torch.equal(mixed.missing, mixed.numeric % 3 == 0)  # a number takes its mark of missing with it


def test_cut_mix_never_brings_in_padding() -> None:
    bags = some_bags(unequal=True)
    padded = Rows(torch.where(bags.mask[..., None], bags.rows.numeric, 99.0), bags.rows.categorical, bags.rows.missing)
    mixed = cut_mix(padded, bags.mask, 1.0, stream())
    assert not bags.mask.all()
    assert (mixed.numeric[bags.mask] != 99.0).all()


@pytest.mark.parametrize("kind", ["mlp", "saint"])
def test_without_cut_mix_and_mix_up_the_view_is_the_row_itself(kind: str) -> None:
    bags, model = some_bags(), made(kind)
    assert torch.allclose(mixed_view(model, bags, 0.0, 1.0).z, model.encode(bags).z, atol=1e-6)
    assert not torch.allclose(mixed_view(model, bags, 0.0, 0.3).z, model.encode(bags).z, atol=1e-2)
    assert not torch.allclose(mixed_view(model, bags, 0.5, 1.0).z, model.encode(bags).z, atol=1e-2)


@pytest.mark.parametrize("kind", ["mlp", "saint"])
def test_with_one_projector_and_equal_views_it_is_selfclrs_contrast(kind: str) -> None:
    bags, model = some_bags(unequal=True), made(kind)
    projectors = Projectors(model.network.encoder, SCHEMA, 16)
    projectors.g2 = projectors.g1
    view = model.encode(bags)
    vectors: Tensor = projectors(view, view)[0].flatten(0, 1)
    assert torch.allclose(vectors.norm(dim=-1), torch.ones(len(vectors)), atol=1e-5)
    expected = instance_contrast(vectors @ vectors.T / 0.7, bags.mask.flatten())
    assert torch.allclose(self_contrast(projectors, view, view, bags.mask, 0.7), expected, atol=1e-5)


@pytest.mark.parametrize("kind", ["mlp", "saint"])
def test_separated_views_come_from_the_clean_pass_alone(kind: str) -> None:
    bags, model = some_bags(), made(kind)
    projectors = Projectors(model.network.encoder, SCHEMA, 16, "separated")
    clean, other = model.encode(bags), mixed_view(model, bags, 0.5, 0.3)
    assert torch.equal(projectors(clean, other)[1], projectors(clean, clean)[1])
    flat = F.normalize(projectors.g2(clean.tokens.flatten(-2)), dim=-1)
    assert torch.allclose(projectors(clean, clean)[1], flat)
