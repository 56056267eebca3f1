"""The trees of `auto` from all rows of files larger than memory: the parts of `TreeRows`, in temporary files.

Bags are assigned to parts at random. Each tree is grown on the next part in turn, so the time for all trees does not
grow with the rows. If bags are large, parts are smaller than in memory: about 600,000 rows in at least 300 bags. Bins
and categories come from the sample of bags.
"""

from __future__ import annotations

import importlib
import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from llpbench.blocks import bag_process, trees
from llpbench.blocks.bag_logits import LogitProcess
from llpbench.blocks.count_trees import TreeLogits, cross_entropy_gradients, likelihood_gradients, start_of
from llpbench.blocks.counts import BagCounts
from llpbench.blocks.side_by_side import side_by_side
from llpbench.blocks.tree_scores import ScoreTree, TreeColumns, add_scores, trees_of
from llpbench.blocks.trees import Gradients, TreeRows, TreeSettings, full_logits, tree_options, tree_seed
from llpbench.core.bags import BaggedRows, FloatArray, IntArray, Rows
from llpbench.core.registry import METHODS
from llpbench.core.temporary import writing
from llpbench.owndata.fitting import AUTO
from llpbench.owndata.rows_by_bag import RowsByBag, piece_of, without_rows

_KEPT_BYTES = 1e9
"""largest size of the binned parts that stay in memory"""
_ZEROS = 1 << 20
"""rows that are written at once"""


@dataclass(frozen=True, eq=False)
class Part:
    """A part in its turn."""

    rows: slice
    """its place among all rows"""
    values: FloatArray
    """[rows, features] float32"""
    start: FloatArray
    """[rows, classes] logits by the process"""
    counts: BagCounts


Look = Callable[[Part], Gradients]
"""Function that returns the gradients of a part's rows."""


class TreeSums:
    """Sums of trees for all rows, in a temporary file. A part gets the trees it lacks when it is its turn."""

    def __init__(self, rows: int, outputs: int) -> None:
        self.trees: list[ScoreTree] = []
        self._file = tempfile.TemporaryFile(prefix="llpbench-")  # noqa: SIM115  # it is deleted when closed
        with writing():  # all zeros are written now, because a full disk would later kill the process
            for first in range(0, rows, _ZEROS):
                np.zeros((min(_ZEROS, rows - first), outputs), np.float32).tofile(self._file)
            self._file.flush()
        self._sums = np.memmap(self._file, np.float32, "r+", shape=(rows, outputs))
        self._added: dict[int, int] = {}
        """number of trees by the first row of a part"""

    def __call__(self, part: Part) -> FloatArray:
        """Return the sums of all trees [rows, outputs] of a part."""
        sums, lacking = self._sums[part.rows], self.trees[self._added.get(part.rows.start, 0) :]
        threads = trees.threads_for_rows(len(sums))
        pairs = zip(np.array_split(part.values, threads), np.array_split(sums, threads), strict=True)

        def add(pair: tuple[FloatArray, FloatArray]) -> None:
            add_scores(lacking, TreeColumns(pair[0]), pair[1])

        if lacking:
            deque(map(add, pairs) if threads == 1 else side_by_side(pairs, add), maxlen=0)
        self._added[part.rows.start] = len(self.trees)
        return np.asarray(sums, dtype=np.float64)


class TreeParts(RowsByBag):
    """All rows in parts of whole bags."""

    def __init__(self, train: BaggedRows, sample: BaggedRows, show: Callable[[str], None] = lambda _: None) -> None:
        """`train` has counts and sizes of all bags, but no rows; `sample` has rows of some bags.

        The number of trees goes to `show`.
        """
        self._show, self._grown = show, 0
        rows, bags = int(train.sizes.sum()), len(train.sizes)
        number = max(
            trees.number_of_parts(rows, bags), min(-(-rows // trees.ONE_PART), bags // bag_process._FEWEST_BAGS)
        )
        part_of_bag = np.random.default_rng(0).permutation(bags) % number
        order = np.argsort(part_of_bag, kind="stable")
        self._place = np.argsort(order)
        self._bags = without_rows(train.counts[order], train.sizes[order], train.noise)
        import xgboost

        some, outputs = TreeRows(sample.rows), train.counts.shape[1]
        self.input = some.input
        self._reference = self.input(some.rows_for_bins(), xgboost.QuantileDMatrix)
        ends = np.cumsum(np.bincount(part_of_bag, minlength=number)).tolist()
        self.outputs = 1 if outputs == 2 else outputs
        fields = [("values", np.float32, (self._reference.num_col(),)), ("start", np.float64, (self.outputs,))]
        self._kept: dict[int, Any] = {}
        self.bags_of_part = [slice(first, last) for first, last in zip([0, *ends], ends, strict=False)]
        super().__init__(fields, self._bags.sizes, self.bags_of_part)

    def records_by(self, process: LogitProcess) -> Callable[[Rows, IntArray], tuple[IntArray, FloatArray, FloatArray]]:
        """Return the function of rows and their bags [rows] that returns what is stored of them.

        Threads and other machines may call it.
        """
        return partial(_records, self._place, self.input, self.outputs, process)

    def grow(self, look: Look, settings: TreeSettings, seed: int) -> tuple[Any, TreeSums]:
        """Return a booster for scores that start from zero, as `TreeRows.grow`, and the sums of its trees."""
        import xgboost

        largest = int(max(self._starts[bags.stop] - self._starts[bags.start] for bags in self._pieces))
        options = tree_options(settings, self.outputs, seed, trees.threads_for_rows(largest))
        booster = xgboost.Booster(options, [self._reference])
        sums = TreeSums(int(self._starts[-1]), self.outputs)
        for step, part in enumerate(islice(self._in_turn(), settings.rounds)):
            first, second = look(part)(sums(part))
            if self.outputs == 1:
                first, second = first.ravel(), second.ravel()
            booster.boost(self._binned(part), step, grad=first, hess=second)
            sums.trees += trees_of(booster[step])
            self._grown += 1
            self._show(f"trees: {self._grown:,} are grown")
        return booster.reset(), sums

    def _in_turn(self) -> Iterator[Part]:
        while True:
            for bags, records in self:
                rows = slice(int(self._starts[bags.start]), int(self._starts[bags.stop]))
                values = np.ascontiguousarray(records["values"])
                yield Part(rows, values, full_logits(records["start"]), BagCounts(piece_of(self._bags, bags)))

    def _binned(self, part: Part) -> Any:
        """Return XGBoost's matrix of a part. Binning takes far longer than a tree, so the first parts are kept."""
        import xgboost

        if (found := self._kept.get(part.rows.start)) is not None:
            return found
        data = self.input(part.values, xgboost.QuantileDMatrix, ref=self._reference)
        if part.rows.stop * part.values.shape[1] <= _KEPT_BYTES:  # a byte for each value of it and of those before it
            self._kept[part.rows.start] = data
        return data


def _records(
    place: IntArray, source: Any, outputs: int, process: LogitProcess, rows: Rows, bags: IntArray
) -> tuple[IntArray, FloatArray, FloatArray]:
    return place[bags], source.values(rows), process(rows)[:, -outputs:]


def union_of_all_rows(
    process: LogitProcess, parts: TreeParts, prior: FloatArray, params: Any, rng: np.random.Generator
) -> Any:
    """Return the predictor of `auto` with trees from all rows; `params` are those of the method."""
    before: TreeSums | None = None

    def to_posteriors(part: Part) -> Gradients:
        now = part.start if before is None else full_logits(before(part))
        return cross_entropy_gradients(part.counts.fitted(now)[:, -parts.outputs :])

    for seed in [tree_seed(rng) for _ in range(params.rounds)]:
        booster, before = parts.grow(to_posteriors, TreeSettings(100), seed)
    offset = start_of(prior)
    counted, _ = parts.grow(
        lambda part: likelihood_gradients(part.counts, offset), TreeSettings(params.trees), tree_seed(rng)
    )
    union = vars(importlib.import_module(METHODS.get(AUTO).__module__))["UnionPredictor"]
    refitted = TreeLogits(parts.input, booster, np.zeros(parts.outputs))
    return union(process, refitted, TreeLogits(parts.input, counted, offset))
