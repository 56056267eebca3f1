"""Pseudo-pairs: an assignment of the rows of one bag to the rows of another (TabLLP-BDC's pair generator).

`vmap` cannot map assignment problems, so they are one custom operator. For a population, parallel threads solve all
problems (scipy's solver releases the GIL).
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from llpbench.core.bags import BoolArray, FloatArray, IntArray
from llpbench.core.method import Pairs

_LARGE = 512
"""smallest size of bags for which CPUs use prices: they break ties otherwise, and smaller ones are published without"""
_ENTROPY, _ROUNDS = 0.1, 50
"""regularisation (in standard deviations of the similarities) and rounds of scaling of the transport problem whose
prices start an assignment. For bags of 1,024 rows, it is then solved in a quarter to two thirds of the time"""
_LEAST_KERNEL = 40.0
"""lower limit of kernel exponents, negated: products of two such factors still fit into float32"""


def pseudo_pairs(similarity: Tensor, rows: Tensor, columns: Tensor, counts: Tensor, generator: str) -> Pairs:
    """Assign the rows of two bags to each other, and mark the most similar pairs as positive.

    `similarity` [n, m]; `rows` [n], `columns` [m] bool mark real rows; `counts` [2, classes] of the two bags. There are
    sum_c min(n_1c, n_2c) positive pairs: as many pairs of equal class are possible, whatever the labels (TabLLP-BDC).
    Noisy counts are rounded down; suppressed counts give no pairs. `generator` is `linear` (the largest total
    similarity) or `greedy` (the most similar pair first, and so on).
    """
    partner = _assign_rows(similarity.detach().float(), rows, columns, generator == "greedy")
    partner = torch.where((counts.sum(dim=1) != 0).all(), partner, -1)
    chosen = similarity.detach().gather(1, partner.clamp(min=0)[:, None]).squeeze(1)
    rank = chosen.masked_fill(partner < 0, -torch.inf).argsort(descending=True, stable=True).argsort()
    positive = (rank < counts.clamp(min=0).amin(dim=0).sum().floor()) & (partner >= 0)
    return Pairs(partner, positive)


@torch.library.custom_op("llpbench::assign", mutates_args=())
def _assign_rows(similarity: Tensor, rows: Tensor, columns: Tensor, greedy: bool) -> Tensor:
    """Return the column assigned to each row, -1 for none: a one-to-one assignment of rows to columns.

    `similarity` [..., n, m] float32; `rows` [..., n], `columns` [..., m] bool mark real rows. Returns [..., n] int64.
    Raises `ValueError` if a similarity is not finite, for example because a network diverged.
    """
    problems = similarity.reshape(-1, *similarity.shape[-2:]).cpu().numpy()
    inside = rows.reshape(-1, rows.shape[-1]).cpu().numpy(), columns.reshape(-1, columns.shape[-1]).cpu().numpy()
    linear = _priced if similarity.is_cuda or similarity.shape[-1] >= _LARGE else _linear
    solve = _greedy if greedy else linear
    tasks = [(solve, *problem) for problem in zip(problems, *inside, strict=True)]
    workers = min(len(tasks), _threads(similarity.is_cuda))
    solved = _pool(workers).map(_solve, tasks) if workers > 1 else map(_solve, tasks)
    return torch.from_numpy(np.stack(list(solved))).reshape(rows.shape).to(similarity.device)


@_assign_rows.register_fake
def _(similarity: Tensor, rows: Tensor, columns: Tensor, greedy: bool) -> Tensor:  # noqa: ARG001
    return torch.empty_like(rows, dtype=torch.int64)


@_assign_rows.register_vmap
def _(info: Any, in_dims: Any, similarity: Tensor, rows: Tensor, columns: Tensor, greedy: bool) -> tuple[Tensor, int]:
    def stacked(value: Tensor, dim: int | None) -> Tensor:
        return value.expand(info.batch_size, *value.shape) if dim is None else value.movedim(dim, 0)

    parts = (stacked(value, dim) for value, dim in zip((similarity, rows, columns), in_dims, strict=False))
    return _assign_rows(*parts, greedy), 0


def _threads(gpu: bool) -> int:
    """Return the threads of the cell, or all CPUs of the process if the network is on a GPU."""
    return len(os.sched_getaffinity(0)) if gpu and hasattr(os, "sched_getaffinity") else torch.get_num_threads()


@cache
def _pool(workers: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(workers, thread_name_prefix="assign")


def _solve(task: Any) -> IntArray:
    solve, similarity, rows, columns = task
    partner = np.full(len(rows), -1, dtype=np.int64)
    positions = np.flatnonzero(rows), np.flatnonzero(columns)
    problem = similarity[np.ix_(*positions)]
    if not np.isfinite(problem).all():
        raise ValueError(
            "similarities of rows are not finite: the network has diverged. Try a lower learning rate, such as 1e-4."
        )
    first, second = solve(problem)
    partner[positions[0][first]] = positions[1][second]
    return partner


def _linear(similarity: FloatArray) -> tuple[IntArray, IntArray]:
    """Return the assignment with the largest total similarity (modified Jonker-Volgenant, Crouse 2016)."""
    from scipy.optimize import linear_sum_assignment  # takes long to import

    first, second = linear_sum_assignment(similarity, maximize=True)
    return first, second


def _priced(similarity: FloatArray) -> tuple[IntArray, IntArray]:
    """Return the same assignment in less time.

    If as many rows as columns are assigned, subtracting a price from a whole row or column changes the total of every
    assignment equally, so the best one stays the best. With good prices most rows get their column at the first try.
    """
    if similarity.shape[0] != similarity.shape[1] or not len(similarity):
        return _linear(similarity)
    rows, columns = _prices(similarity.astype(np.float64))
    left = similarity - columns - rows[:, None]
    left -= left.max(axis=0)
    left -= left.max(axis=1, keepdims=True)
    return _linear(left)


def _prices(similarity: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return prices of rows [n] and of columns [n] that are nearly the dual solution of an assignment.

    They are computed by entropic transport, with Sinkhorn scaling (Cuturi 2013).
    """
    of_columns = similarity.mean(axis=0)
    of_rows = (similarity - of_columns).mean(axis=1)
    centred = similarity - of_columns - of_rows[:, None]
    scale = _ENTROPY * centred.std()
    if scale == 0:
        return of_rows, of_columns
    highest = centred.max(axis=1)
    centred -= highest[:, None]
    of_rows += highest
    highest = centred.max(axis=0)
    centred -= highest
    of_columns += highest
    kernel = np.exp(np.maximum(centred / scale, -_LEAST_KERNEL).astype(np.float32))
    column = np.ones(len(kernel), np.float32)
    for _ in range(_ROUNDS):
        row = 1 / (kernel @ column)
        column = 1 / (row @ kernel)
    return of_rows - scale * np.log(row), of_columns - scale * np.log(column)


def _greedy(similarity: FloatArray) -> tuple[IntArray, IntArray]:
    """Assign the most similar pair, then the most similar pair of the remaining rows, and so on.

    Each round assigns every pair in which both rows are most similar to each other. A scan of the sorted similarities
    would give the same pairs, but one at a time.
    """
    rows, columns = np.arange(similarity.shape[0]), np.arange(similarity.shape[1])
    first, second = [], []
    while len(rows) and len(columns):
        favourite, admirer = similarity.argmax(axis=1), similarity.argmax(axis=0)
        mutual: BoolArray = admirer[favourite] == np.arange(len(rows))
        first.append(rows[mutual])
        second.append(columns[favourite[mutual]])
        free = np.ones(len(columns), dtype=bool)
        free[favourite[mutual]] = False
        rows, columns, similarity = rows[~mutual], columns[free], similarity[np.ix_(~mutual, free)]
    return np.concatenate(first or [rows]), np.concatenate(second or [columns])
