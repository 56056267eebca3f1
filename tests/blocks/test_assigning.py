"""Pseudo-pairs, transport and labels of rows from counts: against brute force, under vmap, with padding and NaN."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from bagged import in_bags, rows_of
from scipy.optimize import linear_sum_assignment
from scipy.special import expit, logit
from small import (
    SCHEMA,
    bags_of,
    everything,
    make_bags,
    moment,
    no_features,
    select,
    small_encoder,
    some_bags,
    stream,
    toy_task,
)
from torch import nn
from torch.func import vmap
from torch.nn import functional as F

from llpbench.blocks.assigning import transported
from llpbench.blocks.losses import proportion_loss
from llpbench.blocks.pairing import _assign_rows, _linear, _priced, pseudo_pairs
from llpbench.core.bags import BaggedRows, FloatArray
from llpbench.core.errors import LLPBenchError
from llpbench.core.model import Model, Network, NoEncoder
from llpbench.methods.llpfc import _forward_targets, _noisy_prior, _transition
from llpbench.methods.rot import _counted_labels
from llpbench.methods.selfclr_llp import SelfCLR
from llpbench.methods.tabllp_bdc import TabLLPBDC, _BDCParams, _difference_contrast
from llpbench.methods.tabllp_pse import TabLLPPSE, _centroids_of, _constrained_kmeans, _match_counts, _PSEParams


def solve(similarity: torch.Tensor, generator: str = "linear") -> list[int]:
    n, m = similarity.shape
    return _assign_rows(similarity, everything(n), everything(m), generator == "greedy").tolist()


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
    assert pairs.partner.tolist() == ([0, 1, 2, 3] if all(map(sum, counts)) else [-1] * 4)
    assert int(pairs.positive.sum()) == positives
    assert set(torch.where(pairs.positive)[0].tolist()) == set([0, 2, 3, 1][:positives])  # the most similar


BDC = TabLLPBDC(_BDCParams(hidden=8, temperature=0.2))


def bdc_model() -> Model:
    torch.manual_seed(1)
    return Model(BDC.build(small_encoder("saint"), SCHEMA), stream())


def test_bdc_is_ramped_sum_of_two_losses_and_judges_pairs_of_loss() -> None:
    model, bags = bdc_model(), some_bags(unequal=True)
    z = F.normalize(model.encode(bags).z, dim=-1)
    cosine = z[0] @ z[1].T
    pairs = pseudo_pairs(cosine, bags.mask[0], bags.mask[1], bags.counts, "linear")
    contrast = _difference_contrast(cosine / 0.2, pairs, bags.mask[0], bags.mask[1])
    dllp = proportion_loss(model.log_proba(bags), bags)
    for epoch, rising in ((0, math.exp(-5)), (150, math.exp(-5 / 4)), (299, math.exp(-5 / 300**2))):
        expected = rising * contrast + (1 - rising) * dllp
        assert torch.allclose(BDC.loss(model, bags, moment(epoch=epoch, epochs=300)), expected, atol=1e-5)
    assert all(map(torch.equal, BDC.pseudo_pairs(Model(model.network), bags), pairs))
    assert int(pairs.positive.sum()) == int(bags.counts.amin(dim=0).sum())


def test_odd_number_of_bags_is_refused() -> None:
    model, bags, now = bdc_model(), some_bags(), moment(epoch=150, epochs=300)
    four = BDC.loss(model, select(bags, 0, 1, 0, 1), now)
    assert torch.allclose(four, BDC.loss(model, bags, now), atol=1e-5)
    with pytest.raises(ValueError, match=r"even number of bags per step, got 3"):
        BDC.loss(model, select(bags, 0, 1, 0), now)


@pytest.mark.parametrize("scope", ["step", "bag"])
def test_self_contrast_compares_rows_of_scope_without_padding(scope: Any) -> None:
    torch.manual_seed(0)
    vectors, mask = torch.randn(2, 6, 4), torch.arange(6) < torch.tensor([[6], [4]])
    groups = [vectors[mask]] if scope == "step" else [vectors[0], vectors[1, :4]]
    own = torch.cat([(each @ each.T / 0.5).log_softmax(dim=-1).diagonal() for each in groups])
    found = SelfCLR(SelfCLR.Params(scope=scope, temperature=0.5))._contrast(vectors, mask, None)
    assert float(found) == pytest.approx(-float(own.mean()), abs=1e-5)


TWO = torch.tensor([[[0.9, 0.1], [0.6, 0.4]]]).log()
ONE_EACH = make_bags(no_features(1, 2), torch.ones(1, 2, dtype=torch.bool), [[0.5, 0.5]])


@pytest.mark.parametrize("entropy", [1.0, 0.2, 0.05])
def test_transport_plan_of_two_rows_matches_hand_computation(entropy: float) -> None:
    found = transported(TWO, ONE_EACH, entropy, rounds=200)[0, 0, 0]
    expected = float(expit((logit(0.9) - logit(0.6)) / (2 * entropy)))
    assert float(found) == pytest.approx(expected, abs=1e-5)
    assert expected == pytest.approx({1.0: 0.710102, 0.2: 0.988787, 0.05: 1 - 1.7e-8}[entropy], abs=1e-6)


@pytest.mark.parametrize("counts", [[[3.0, 4.0], [1.0, 3.0]], [[3.0, 4.0, 0.0], [0.0, 1.0, 3.0]]])
def test_labels_match_counts_at_least_cost(counts: list[list[float]]) -> None:
    """Of random predictions of bags of 7 and 4 rows; of three classes each bag lacks one."""
    torch.manual_seed(0)
    mask, classes = torch.arange(7) < torch.tensor([[7], [4]]), len(counts[0])
    bags = make_bags(no_features(2, 7), mask, (torch.tensor(counts) / mask.sum(dim=1, keepdim=True)).tolist())
    log_proba = torch.randn(2, 7, classes).log_softmax(dim=-1)
    labels = _counted_labels(log_proba, bags)
    assert torch.equal(labels.sum(dim=1), bags.counts)
    assert torch.equal(labels.sum(dim=2), mask.float())
    for k, size in enumerate((7, 4)):
        places = np.repeat(np.arange(classes), bags.counts[k].int().tolist())
        cost = log_proba[k, :size].numpy()[:, places]
        best = cost[linear_sum_assignment(cost, maximize=True)].sum()
        assert float((labels[k, :size] * log_proba[k, :size]).sum()) == pytest.approx(float(best), abs=1e-4)


def test_fractional_counts_round_like_whole_counts() -> None:
    train = toy_task(0).train
    train = replace(train, index=train.index[:2, :4], counts=np.array([[2.5, 1.5], [1.2, 2.8]]))
    labels = _counted_labels(torch.randn(2, 4, 2).log_softmax(dim=-1), bags_of(train, 0, 1))
    assert labels.sum(dim=1).tolist() == train.whole_counts.tolist()


GAMMA = np.array([[0.8, 0.2], [0.4, 0.6]])


def test_matrix_and_prior_of_two_bags_match_hand_computation() -> None:
    half = np.array([0.5, 0.5])
    assert _transition(GAMMA, half) == pytest.approx(np.array([[2 / 3, 0.25], [1 / 3, 0.75]]), abs=1e-6)
    assert _transition(np.array([[1.0, 0.0], [1.0, 0.0]]), half).tolist() == [[0.5, 0.5]] * 2, "a class in no bag"
    assert _noisy_prior(GAMMA, half) == pytest.approx([0.25, 0.75], abs=1e-5)
    assert _noisy_prior(GAMMA, np.array([0.95, 0.05])) == pytest.approx([1.0, 0.0], abs=1e-5)  # beyond any mixture


def test_grouping_handles_left_over_and_suppressed_bags() -> None:
    counts = [[8.0, 2.0], [4.0, 6.0], [5.0, 5.0], [np.nan, np.nan]]
    train = in_bags(rows_of([[0.0]] * 40), [list(range(10 * k, 10 * k + 10)) for k in range(4)], counts)
    targets = _forward_targets(train, "uniform", np.random.default_rng(0)).reshape(4, 10, 2)
    with pytest.raises(LLPBenchError, match="2"):
        _forward_targets(train.some(np.arange(4) == 0), "uniform", np.random.default_rng(0))
    assert bool((targets == targets[:, :1]).all())
    parts = [k for k in range(4) if not bool((targets[k] == 1).all())]
    assert len(parts) == 2
    assert 3 not in parts
    first, second = (targets[k, 0] for k in parts)
    assert first + second == pytest.approx([1, 1])


def test_surplus_rows_of_larger_bag_are_dropped() -> None:
    """Bags of 10 and 90 rows weigh the same together: a row of the large one takes part with probability 1/9."""
    train = in_bags(rows_of([[0.0]] * 100), [list(range(10)), list(range(10, 100))], [[8.0, 2.0], [36.0, 54.0]])
    shares = []
    for seed in range(200):
        targets = _forward_targets(train, "uniform", np.random.default_rng(seed))
        assert not (targets[:10] == 1).all(axis=1).any()
        shares.append((targets[10:] != 1).any(axis=1).mean())
    assert np.mean(shares) == pytest.approx(1 / 9, abs=0.01)


@pytest.mark.parametrize("classes", [2, 3])
def test_objective_never_increases_and_labels_match_counts(classes: int) -> None:
    train = toy_task(0, classes=classes, unequal=True).train
    points = np.random.default_rng(1).normal(size=(len(train.rows.numeric), 5))
    labels, objective = _constrained_kmeans(points, points[:classes], train)
    assert len(objective) > 2
    assert (np.diff(objective) <= 1e-9).all()
    for bag, counts in zip(train.index, train.counts, strict=True):
        assert np.bincount(labels[bag[bag >= 0]], minlength=classes).tolist() == counts.tolist()
    away = points - _centroids_of(points, np.eye(classes)[labels])[labels]
    assert objective[-1] == pytest.approx((away**2).sum())


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("noise", [0.0, 3.0])
def test_labels_match_counts_at_least_cost_and_suppressed_bags_get_cheapest(classes: int, noise: float) -> None:
    train = toy_task(0, classes=classes, unequal=True).train
    cost = np.random.default_rng(classes).normal(size=(len(train.rows.numeric), classes))
    counts = train.counts + np.random.default_rng(0).normal(0, noise, size=train.counts.shape)
    counts[[1, 4]] = np.nan
    some = replace(train, counts=counts, noise=noise)
    labels = _match_counts(cost, some)
    for number, bag in enumerate(train.index):
        rows = bag[bag >= 0]
        if number in (1, 4):
            assert labels[rows].tolist() == cost[rows].argmin(axis=1).tolist()
            continue
        held = some.whole_counts[number] if noise else train.counts[number].astype(int)
        assert np.bincount(labels[rows], minlength=classes).tolist() == held.tolist()
        matrix = cost[rows][:, np.repeat(np.arange(classes), held)]
        assert cost[rows, labels[rows]].sum() == pytest.approx(matrix[linear_sum_assignment(matrix)].sum())


class Fixed:
    """A `method.Member` with given row vectors and predictions."""

    def __init__(self, train: BaggedRows, z: FloatArray, positive: list[float]) -> None:
        self.network, self.rng = Network(NoEncoder(), nn.Identity()), np.random.default_rng(0)
        self.train, self.z, self.positive = train, z, np.array(positive)

    def encode(self) -> FloatArray:
        return self.z

    def proba(self) -> FloatArray:
        return np.stack([1 - self.positive, self.positive], axis=1)


@pytest.mark.parametrize(
    ("space", "positive", "expected"),
    [
        ("z", [0.9, 0.1, 0.8, 0.2], [1, 0, 1, 0]),
        ("z", [0.1, 0.9, 0.2, 0.8], [0, 1, 0, 1]),  # the same clusters, of the other class
        ("z", [0.9, 0.8, 0.2, 0.1], [1, 0, 1, 0]),
        ("proba", [0.9, 0.8, 0.2, 0.1], [1, 1, 0, 0]),
    ],
)
def test_pseudo_labels_follow_row_order_and_keep_class(space: str, positive: list[float], expected: list[int]) -> None:
    method = TabLLPPSE(_PSEParams(space=space))
    z = np.array([[10.0], [0.0], [9.0], [1.0]])
    member = Fixed(in_bags(rows_of([[]] * 4), [[3, 1, 0, 2]], [[2, 2]]), z, positive)
    targets = method.prepare(member, moment("pseudo-labels"))
    assert targets is not None
    assert targets.tolist() == np.eye(2)[expected].tolist()
    assert method.prepare(member, moment("proportions")) is None
