"""The trees of `auto` from all rows of files larger than memory: the parts of `TreeRows`, in temporary files.

Bags are assigned to parts at random. Each tree is grown on the next part in turn, so the time for all trees does not
grow with the rows. Bins and categories come from the sample of bags.
"""

from __future__ import annotations

import importlib
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from llpbench.blocks import bag_process, trees
from llpbench.blocks.bag_logits import LogitProcess
from llpbench.blocks.count_trees import TreeLogits, _cross_entropy, _likelihood, start_of
from llpbench.blocks.counts import BagCounts
from llpbench.blocks.side_by_side import side_by_side
from llpbench.blocks.tree_scores import ScoreTree, TreeColumns, add_scores, trees_of
from llpbench.blocks.trees import Gradients, TreeRows, TreeSettings, full_logits, tree_options, tree_seed
from llpbench.core.bags import BaggedRows, FloatArray, IntArray, Rows
from llpbench.core.registry import METHODS
from llpbench.owndata.fitting import AUTO
from llpbench.owndata.rows_by_bag import RowsByBag, piece_of, without_rows

Look = Callable[[FloatArray, FloatArray, BagCounts], Gradients]
"""Function of a part's values, its logits by the process, and its counts, which returns the gradients of its rows."""


class TreeParts(RowsByBag):
    """All rows in parts of whole bags."""

    def __init__(self, train: BaggedRows, sample: BaggedRows) -> None:
        """`train` has counts and sizes of all bags, but no rows; `sample` has rows of some bags."""
        rows, bags = int(train.sizes.sum()), len(train.sizes)
        number = max(trees._parts(rows, bags), min(-(-rows // trees._ONE_PART), bags // bag_process._FEWEST_BAGS))
        part_of_bag = np.random.default_rng(0).permutation(bags) % number
        order = np.argsort(part_of_bag, kind="stable")
        self._place = np.argsort(order)
        self._bags = without_rows(train.counts[order], train.sizes[order], train.noise)
        import xgboost

        some, outputs = TreeRows(sample.rows), train.counts.shape[1]
        self.input = some.input
        self._reference = self.input(some._some(), xgboost.QuantileDMatrix)
        ends = np.cumsum(np.bincount(part_of_bag, minlength=number)).tolist()
        self.outputs = 1 if outputs == 2 else outputs
        fields = [("values", np.float32, (self._reference.num_col(),)), ("start", np.float64, (self.outputs,))]
        self.bags_of_part = [slice(first, last) for first, last in zip([0, *ends], ends, strict=False)]
        super().__init__(fields, self._bags.sizes, self.bags_of_part)

    def records_by(self, process: LogitProcess) -> Callable[[Rows, IntArray], tuple[IntArray, FloatArray, FloatArray]]:
        """Return the function of rows and their bags [rows] that returns what is stored of them.

        Threads and other machines may call it.
        """
        return partial(_records, self._place, self.input, self.outputs, process)

    def grow(self, look: Look, settings: TreeSettings, seed: int) -> tuple[Any, list[ScoreTree]]:
        """Return a booster for scores that start from zero, as `TreeRows.grow`, and its trees."""
        import xgboost

        largest = int(max(self._starts[bags.stop] - self._starts[bags.start] for bags in self._pieces))
        options = tree_options(settings, self.outputs, seed, trees._threads(largest))
        booster = xgboost.Booster(options, [self._reference])
        grown: list[ScoreTree] = []
        for step, (bags, part) in enumerate(islice(self._in_turn(), settings.rounds)):
            values = np.ascontiguousarray(part["values"])
            gradients = look(values, full_logits(part["start"]), BagCounts(piece_of(self._bags, bags)))
            first, second = gradients(self.scores(grown, values))
            data = self.input(values, xgboost.QuantileDMatrix, ref=self._reference)
            if self.outputs == 1:
                first, second = first.ravel(), second.ravel()
            booster.boost(data, step, grad=first, hess=second)
            grown += trees_of(booster[step])
        return booster.reset(), grown

    def _in_turn(self) -> Iterator[tuple[slice, Any]]:
        while True:
            yield from self

    def scores(self, grown: list[ScoreTree], values: FloatArray) -> FloatArray:
        """Return the sums of trees [rows, outputs]."""
        threads = trees._threads(len(values))
        scores = np.zeros((len(values), self.outputs), np.float32)
        pairs = zip(np.array_split(values, threads), np.array_split(scores, threads), strict=True)

        def add(pair: tuple[FloatArray, FloatArray]) -> None:
            add_scores(grown, TreeColumns(pair[0]), pair[1])

        deque(map(add, pairs) if threads == 1 else side_by_side(pairs, add), maxlen=0)
        return scores.astype(np.float64)


def _records(
    place: IntArray, source: Any, outputs: int, process: LogitProcess, rows: Rows, bags: IntArray
) -> tuple[IntArray, FloatArray, FloatArray]:
    return place[bags], source.values(rows), process(rows)[:, -outputs:]


def union_of_all_rows(
    process: LogitProcess, parts: TreeParts, prior: FloatArray, params: Any, rng: np.random.Generator
) -> Any:
    """Return the predictor of `auto` with trees from all rows; `params` are those of the method."""
    before: list[ScoreTree] = []

    def to_posteriors(values: FloatArray, start: FloatArray, counts: BagCounts) -> Gradients:
        now = full_logits(parts.scores(before, values)) if before else start
        return _cross_entropy(counts.fitted(now)[:, -parts.outputs :])

    for seed in [tree_seed(rng) for _ in range(params.rounds)]:
        booster, before = parts.grow(to_posteriors, TreeSettings(100), seed)
    offset = start_of(prior)
    counted, _ = parts.grow(lambda *part: _likelihood(part[-1], offset), TreeSettings(params.trees), tree_seed(rng))
    union = vars(importlib.import_module(METHODS.get(AUTO).__module__))["UnionPredictor"]
    refitted = TreeLogits(parts.input, booster, np.zeros(parts.outputs))
    return union(process, refitted, TreeLogits(parts.input, counted, offset))
