"""Pseudo-pairs: against brute force, under vmap, with padding, with NaN."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from small import everything
from torch.func import vmap

from llpbench.blocks.pairing import _assign_rows, _linear, _priced, pseudo_pairs


def solve(similarity: torch.Tensor, generator: str = "linear") -> list[int]:
    n, m = similarity.shape
    return _assign_rows(similarity, everything(n), everything(m), generator == "greedy").tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("seed", range(20))
def test_linear_assignment_matches_brute_force(seed: int) -> None:
    n = 2 + seed % 5
    similarity = torch.from_numpy(np.random.default_rng(seed).normal(size=(n, n))).float()
    best = max(float(similarity[range(n), list(order)].sum()) for order in itertools.permutations(range(n)))
    assert float(similarity[range(n), solve(similarity)].sum()) == pytest.approx(best, abs=1e-5)


@pytest.mark.parametrize("seed", range(20))
def test_greedy_assignment_scans_sorted_similarities(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = rng.integers(1, 12, size=2)
    similarity = rng.normal(size=shape)
    if seed % 2:
        similarity = similarity.round()  # ties: the scan takes the first
    expected = np.full(shape[0], -1)
    taken: set[int] = set()
    for position in np.argsort(-similarity, axis=None, kind="stable"):
        row, column = divmod(int(position), int(shape[1]))
        if expected[row] < 0 and column not in taken:
            expected[row] = column
            taken.add(column)
    found = solve(torch.from_numpy(similarity).float(), "greedy")
    assert (np.array(found) >= 0).sum() == min(shape)
    if seed % 2:
        total = sum(similarity[row, column] for row, column in enumerate(found) if column >= 0)
        assert total == sum(similarity[row, column] for row, column in enumerate(expected) if column >= 0)
    else:
        assert found == expected.tolist()


@pytest.mark.parametrize("shape", [(128, 128), (300, 300), (200, 150), (90, 90)])
@pytest.mark.parametrize("rank", [1, 4, 64])
@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_initial_prices_do_not_change_assignment(shape: tuple[int, int], rank: int, offset: float) -> None:
    rng = np.random.default_rng(rank)
    left, right = (rng.normal(size=(n, rank)) for n in shape)
    similarity = (left @ right.T).astype(np.float32) + np.float32(offset) * rng.integers(0, 2, shape[1])
    total = [similarity[solve(similarity)].sum(dtype=np.float64) for solve in (_linear, _priced)]
    assert total[1] == pytest.approx(total[0], rel=1e-12)
    if not offset and rank > 1:  # nothing is tied
        assert np.array_equal(_linear(similarity)[1], _priced(similarity)[1])


def test_padding_is_never_assigned() -> None:
    similarity = torch.rand(5, 6)
    similarity[1] = similarity[:, 2] = 100.0  # padding, however alike
    rows, columns = everything(5), everything(6)
    rows[1] = columns[2] = False
    partner = _assign_rows(similarity, rows, columns, False)
    assert partner[1] == -1
    assert 2 not in partner
    kept = [0, 2, 3, 4]
    inside = solve(similarity[kept][:, [0, 1, 3, 4, 5]])
    assert partner[kept].tolist() == [[0, 1, 3, 4, 5][column] for column in inside]


@pytest.mark.parametrize("greedy", [False, True])
def test_population_assignment_equals_single(greedy: bool) -> None:
    similarity = torch.rand(3, 7, 9)
    mask = torch.rand(3, 7) > 0.2
    columns = everything(9)
    together = vmap(lambda s, r: _assign_rows(s, r, columns, greedy))(similarity, mask)
    alone = [_assign_rows(s, r, columns, greedy) for s, r in zip(similarity, mask, strict=True)]
    assert torch.equal(together, torch.stack(alone))
    flipped = vmap(lambda s, r: _assign_rows(s, r, columns, greedy), in_dims=(2, 0))(similarity.movedim(0, 2), mask)
    assert torch.equal(flipped, together)


def test_operator_passes_opcheck() -> None:
    torch.library.opcheck(_assign_rows, (torch.rand(2, 4, 5), torch.ones(2, 4).bool(), torch.ones(2, 5).bool(), False))


@pytest.mark.parametrize("wrong", [torch.nan, torch.inf])
@pytest.mark.parametrize("greedy", [False, True])
def test_infinite_similarities_are_refused(wrong: float, greedy: bool) -> None:
    similarity = torch.rand(4, 4)
    similarity[2, 1] = wrong
    with pytest.raises(ValueError, match=r"not finite.*learning rate"):
        _assign_rows(similarity, everything(4), everything(4), greedy)


@pytest.mark.parametrize(
    ("counts", "positives"),
    [
        ([[2.7, -0.9], [1.6, 3.2]], 1),  # 1.6 and nothing: rounded down
        ([[2.5, 1.5], [1.5, 2.5]], 3),
        ([[-3.0, 9.0], [4.0, -9.0]], 0),
        ([[9.0, 9.0], [8.0, 7.0]], 4),  # there are no more rows
        ([[0.0, 0.0], [2.0, 2.0]], 0),  # suppressed
        ([[2, 2], [1, 3]], 3),
        ([[4, 0], [0, 4]], 0),
        ([[3, 1], [3, 1]], 4),
    ],
)
def test_number_of_positive_pairs_follows_counts(counts: list[list[float]], positives: int) -> None:
    similarity = torch.diag(torch.tensor([0.9, 0.1, 0.8, 0.7]))
    pairs = pseudo_pairs(similarity, everything(4), everything(4), torch.tensor(counts), "linear")
    assert pairs.partner.tolist() == [0, 1, 2, 3]
    assert int(pairs.positive.sum()) == positives
    assert set(torch.where(pairs.positive)[0].tolist()) == set([0, 2, 3, 1][:positives])  # the most similar
