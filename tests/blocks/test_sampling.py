"""The cap on rows that are compared pair by pair."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.func import vmap

from llpbench.blocks import sampling
from llpbench.blocks.sampling import MOST_COMPARED, at, some_rows
from llpbench.core.model import Random


def stream(key: int = 1) -> Random:
    return Random(torch.tensor(key))


def test_up_to_the_cap_nothing_is_drawn() -> None:
    random = stream()
    assert some_rows(torch.ones(2, MOST_COMPARED, dtype=torch.bool), random) is None
    assert torch.equal(random.bits(3), stream().bits(3))  # the stream stands where it stood
    values = torch.arange(6.0).view(2, 3)
    assert at(values, None) is values


def test_beyond_it_rows_are_drawn_without_replacement_and_padding_last() -> None:
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


def test_the_stream_decides_and_every_row_has_its_chance() -> None:
    mask = torch.ones(9, dtype=torch.bool)

    def drawn(key: int) -> Tensor:
        chosen = some_rows(mask, stream(key), most=4)
        assert chosen is not None
        return chosen

    assert torch.equal(drawn(1), drawn(1))
    assert not torch.equal(drawn(1), drawn(2))
    often = torch.bincount(torch.cat([drawn(key) for key in range(900)]), minlength=9)
    assert (often - 400).abs().max() < 100  # 4 of 9 rows in each of 900 draws, std 15
    fixed = [some_rows(mask, None, most=4) for _ in range(2)]
    assert torch.equal(*fixed)  # type: ignore[arg-type]


def test_members_draw_as_each_does_alone() -> None:
    mask = torch.ones(3, 9, dtype=torch.bool)
    keys = torch.tensor([5, 6, 7])

    def draw(mask: Tensor, key: Tensor) -> Tensor:
        chosen = some_rows(mask, Random(key), most=4)
        assert chosen is not None
        return chosen

    together = vmap(draw, randomness="error")(mask, keys)
    assert torch.equal(together, torch.stack([draw(*each) for each in zip(mask, keys, strict=True)]))


@pytest.mark.parametrize("method", ["tabllp-bdc", "tabllp-self", "selfclr-llp"])
def test_methods_that_compare_rows_train_on_bags_beyond_the_cap(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from llpbench.conformance.subject import Subject
    from llpbench.core.registry import METHODS

    subject = Subject(METHODS.entry(method))
    whole = subject.learn(subject.toy(unequal=True)).proba
    monkeypatch.setattr(sampling.some_rows, "__defaults__", (6,))  # bags have 8 or 16 rows
    sampled = subject.learn(subject.toy(unequal=True)).proba
    assert sampled.shape == whole.shape
    assert (sampled != whole).any()
