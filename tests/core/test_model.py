"""Random streams and networks."""

from __future__ import annotations

import pytest
import torch
from small import stream
from torch.func import vmap

from llpbench.core import model
from llpbench.core.model import Random


def test_extreme_words_give_numbers_inside_unit_interval() -> None:
    class Extreme(Random):
        def _words(self, *shape: int) -> torch.Tensor:
            return torch.tensor([0, 2**32 - 1]).expand(*shape)

    low, high = Extreme(torch.tensor(0)).uniform(2).tolist()
    assert 0 < low < 1e-6
    assert 1 - 1e-6 < high < 1


def test_normal_numbers_have_normal_moments() -> None:
    numbers = stream(3).normal(100_000)
    assert abs(float(numbers.mean())) < 0.02
    assert abs(float(numbers.std()) - 1) < 0.02
    assert abs(float((numbers**4).mean()) - 3) < 0.15


def test_streams_depend_on_key_and_draw_only() -> None:
    first = stream(1)
    a, b = first.bits(1000), first.bits(1000)
    assert (a == b).float().mean() < 0.01
    assert (a == stream(2).bits(1000)).float().mean() < 0.01
    assert torch.equal(a, stream(1).bits(1000))
    assert torch.equal(stream(5).permutation(100).sort().values, torch.arange(100))


@pytest.mark.parametrize("size", [1, 3, 1000, 70_000])
def test_compiled_and_eager_words_are_equal(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = torch.tensor([0, 1, 2**31, 2**32 - 1])
    eager = vmap(lambda key: Random(key).bits(size))(keys)
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert torch.equal(eager, vmap(lambda key: Random(key).bits(size))(keys))
    assert eager.dtype == torch.int64
    assert 0 <= int(eager.min()) <= int(eager.max()) < 2**32


def test_stream_is_equal_under_vmap() -> None:
    keys = torch.tensor([7, 2**32 - 9, 12345])
    x = torch.randn(3, 10, 7)
    together = vmap(lambda key, x: Random(key).dropout(x, 0.3) + Random(key).normal(10, 7))(keys, x)
    alone = [Random(key).dropout(part, 0.3) + Random(key).normal(10, 7) for key, part in zip(keys, x, strict=True)]
    # logarithm and cosine round differently where a tensor of another size is cut into vectors
    assert torch.allclose(together, torch.stack(alone), atol=1e-5)


@pytest.mark.parametrize("size", [1, 3, 4, 1001])
def test_dropout_drops_given_share_with_and_without_byte_view(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    keys, found = torch.arange(max(40, 4000 // size)) * 1_000_003 % 2**32, []
    for views in (True, False):
        monkeypatch.setattr(model, "_MAPS_VIEWS", views)
        found.append(vmap(lambda key: Random(key).dropout(torch.ones(size), 0.25))(keys))
    dropped, same = found
    assert torch.equal(dropped, same)
    assert abs(float((dropped == 0).float().mean()) - 0.25) < 0.02
    assert abs(float(dropped.mean()) - 1) < 0.04
