"""Pseudo-pairs: which row of one bag goes with which row of another (TabLLP-BDC's pair generator).

Assignment problems cannot be mapped by `vmap`, so they are one custom operator: a method calls `assign_rows` like any
function, and for a population all problems are solved in parallel threads (scipy's solver releases the GIL).
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from llpbench.core.bags import BoolArray, FloatArray, IntArray
from llpbench.core.method import Pairs

_LARGE = 128
"""rows and columns from which prices are worth their time"""
_ENTROPY, _ROUNDS = 0.1, 50
"""of the transport problem whose prices an assignment starts from: its regularisation in standard deviations of the
similarities, and rounds of scaling. For bags of 1,024 rows that have been trained on, solving takes a quarter of the
time; less of the first is more exact, until more rounds take longer than they save"""
_LEAST_KERNEL = 40.0
"""below e to its negative nothing counts: products of two such factors are still numbers in float32"""


def pseudo_pairs(similarity: Tensor, rows: Tensor, columns: Tensor, counts: Tensor, generator: str) -> Pairs:
    """Assign the rows of two bags to one another; as many of the most similar pairs are positive as must exist.

    `similarity` [n, m]; `rows` [n], `columns` [m] bool: no padding; `counts` [2, classes] of the two bags. However the
    labels lie, sum_c min(n_1c, n_2c) pairs of equal class can be formed (TabLLP-BDC, pseudo-pairs generator); of noisy
    counts that is rounded down, and of suppressed ones none.
    `generator`: `linear` (the largest total similarity) or `greedy` (the most similar pair first, and so on).
    """
    partner = assign_rows(similarity.detach().float(), rows, columns, generator == "greedy")
    chosen = similarity.detach().gather(1, partner.clamp(min=0)[:, None]).squeeze(1)
    rank = chosen.masked_fill(partner < 0, -torch.inf).argsort(descending=True, stable=True).argsort()
    positive = (rank < counts.clamp(min=0).amin(dim=0).sum().floor()) & (partner >= 0)
    return Pairs(partner, positive)


@torch.library.custom_op("llpbench::assign", mutates_args=())
def assign_rows(similarity: Tensor, rows: Tensor, columns: Tensor, greedy: bool) -> Tensor:
    """For each row the column it is assigned to, -1 for none: a one-to-one assignment of rows to columns.

    `similarity` [..., n, m] float32; `rows` [..., n], `columns` [..., m] bool: which take part. -> [..., n] int64.
    Raises `ValueError` if a similarity is not finite, as those of a network that has diverged.
    """
    problems = similarity.reshape(-1, *similarity.shape[-2:]).cpu().numpy()
    inside = rows.reshape(-1, rows.shape[-1]).cpu().numpy(), columns.reshape(-1, columns.shape[-1]).cpu().numpy()
    linear = _priced if similarity.is_cuda else _linear  # ties may fall otherwise: CPUs keep what is published
    solve = _greedy if greedy else linear
    tasks = [(solve, *problem) for problem in zip(problems, *inside, strict=True)]
    workers = min(len(tasks), _threads(similarity.is_cuda))
    solved = _pool(workers).map(_solve, tasks) if workers > 1 else map(_solve, tasks)
    return torch.from_numpy(np.stack(list(solved))).reshape(rows.shape).to(similarity.device)


@assign_rows.register_fake
def _(similarity: Tensor, rows: Tensor, columns: Tensor, greedy: bool) -> Tensor:  # noqa: ARG001
    return torch.empty_like(rows, dtype=torch.int64)


@assign_rows.register_vmap
def _(info: Any, in_dims: Any, similarity: Tensor, rows: Tensor, columns: Tensor, greedy: bool) -> tuple[Tensor, int]:
    def stacked(value: Tensor, dim: int | None) -> Tensor:
        return value.expand(info.batch_size, *value.shape) if dim is None else value.movedim(dim, 0)

    parts = (stacked(value, dim) for value, dim in zip((similarity, rows, columns), in_dims, strict=False))
    return assign_rows(*parts, greedy), 0


def _threads(gpu: bool) -> int:
    """As many as the cell may use; where a GPU does the rest, every CPU that the process has."""
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
    """The assignment with the largest total similarity (modified Jonker-Volgenant, Crouse 2016)."""
    first, second = linear_sum_assignment(similarity, maximize=True)
    return first, second


def _priced(similarity: FloatArray) -> tuple[IntArray, IntArray]:
    """The same in a quarter of the time, for bags of 1,024 rows, while a GPU waits.

    Where as many rows as columns are assigned, what is taken from a whole row or column is taken from every
    assignment, so the best one stays the best; with the right prices most rows get theirs at the first try.
    """
    if not similarity.shape[0] == similarity.shape[1] >= _LARGE:
        return _linear(similarity)
    rows, columns = _prices(similarity.astype(np.float64))
    left = similarity - columns - rows[:, None]
    left -= left.max(axis=0)
    left -= left.max(axis=1, keepdims=True)
    return _linear(left)


def _prices(similarity: FloatArray) -> tuple[FloatArray, FloatArray]:
    """[n] of rows and [n] of columns: nearly the dual solution of an assignment.

    That of entropic transport, by Sinkhorn scaling (Cuturi 2013).
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
    """The most similar pair, then the most similar of what is left, and so on.

    In each round every pair whose members prefer each other is taken: these are pairs that a scan of the sorted
    similarities would take, too, and most rounds take many.
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
