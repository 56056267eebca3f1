"""`bag-gp` on more rows than fit into memory: the fit of `bag_process` and `bag_logits`, with passes over a `Store`.

Bins, kernel scales, pairs and hyperparameters come from a sample of bags in memory, as in `fit_process` with more than
600,000 rows. Each Gauss-Newton step of the logits is one pass. There are at most four passes for each class; with two
classes, for only one of them. On the scale of shares there is a single pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

import numpy as np
from scipy.special import expit

from llpbench.blocks import bag_logits, bag_process
from llpbench.blocks.bag_logits import LogitProcess, fit_logits
from llpbench.blocks.bag_process import FittedProcess, ProcessSettings
from llpbench.blocks.main_effects import Precision
from llpbench.blocks.many_rows import BagGroup, NormalEquations, Seen
from llpbench.core.bags import BaggedRows, BoolArray, FloatArray, IntArray
from llpbench.core.errors import DataError
from llpbench.core.text import plural
from llpbench.owndata.bag_store import Store
from llpbench.owndata.progress import RowsDone
from llpbench.owndata.quick_rows import QuickGroup

Sampler = Callable[[BoolArray], BaggedRows]
"""Function that reads the rows of some bags, given as a mask [bags]."""
Say = Callable[[str], None]
Found = TypeVar("Found")


def needs_no_sample(sizes: IntArray) -> bool:
    """Return whether the process is fitted to the rows of all bags at once; `sizes` [bags] are numbers of rows.

    Raises `DataError` for more than 600,000 rows in bags that are too few or too large for a sample.
    """
    if sizes.sum() <= bag_process._MANY_ROWS:
        return True
    few, largest = _bags_in_sample(sizes), bag_process._LARGEST_BAG
    if len(sizes) <= few or sizes.max() > largest:
        raise DataError(
            f"--out-of-core needs more than {few} bags of at most {largest:,} rows, got {plural(len(sizes), 'bag')} "
            f"of up to {int(sizes.max()):,} rows. Use --in-memory, or a sample of the rows of each bag and --sampled."
        )
    return False


def fit_to_sample(
    train: BaggedRows, settings: ProcessSettings, rng: np.random.Generator, sample: Sampler, say: Say, show: Say
) -> FittedProcess:
    """Return the process of `fit_wary` on shares, with the coefficients of its sample.

    `train` has counts and sizes of all bags, but no rows.
    """
    if len(train.sizes) > bag_process._MANY_BAGS:
        settings = replace(settings, most_pairs=settings.most_pairs // 4)
    found = _drawn(train, settings, rng, sample, say, show)
    if found.confounded:
        say("bags are confounded: fitting again with other priors and another sample")
        again = _drawn(train, replace(settings, wary=True), rng, sample, say, show)
        found = replace(again, unexplained=found.unexplained)
    return replace(found, prior=train.prior)


def _drawn(
    train: BaggedRows, settings: ProcessSettings, rng: np.random.Generator, sample: Sampler, say: Say, show: Say
) -> FittedProcess:
    some = sample_of_bags(train, rng, sample)
    few, rows = len(some.sizes), plural(len(some.bag_of_row), "row")
    say(f"bins, kernel scales, pairs and hyperparameters come from {few} randomly drawn bags ({rows})")
    show(f"fit to {few} bags")
    found = bag_process._fit(some, settings, rng, brief=True)
    return replace(found, sample=(found, some))


def sample_of_bags(train: BaggedRows, rng: np.random.Generator, sample: Sampler) -> BaggedRows:
    """Return randomly drawn bags: 300 to 1,000, with about 500,000 rows."""
    chosen = np.zeros(len(train.sizes), dtype=bool)
    chosen[rng.choice(len(train.sizes), _bags_in_sample(train.sizes), replace=False)] = True
    return sample(chosen)


def _bags_in_sample(sizes: IntArray) -> int:
    bags = bag_process._SAMPLE_ROWS / sizes.mean()
    return int(np.clip(bags, bag_process._FEWEST_BAGS, bag_process._MANY_BAGS))


def shares_of_all_bags(found: FittedProcess, store: Store, train: BaggedRows) -> FittedProcess:
    """Return the process with coefficients from all bags, in one pass."""
    evidence, t = found.evidence, found.hyperparameters
    prior = train.prior.clip(1e-9, 1 - 1e-9)
    spread = np.sqrt(prior * (1 - prior))
    targets = (train.proportions - train.prior) / spread
    noise = evidence.variances(t, train.sizes, (train.noise / train.sizes) ** 2 / (spread**2).mean())
    scales, widths = evidence.scales(t), [len(each) for each in found.coefficients]
    root = np.sqrt(np.repeat(scales, widths))
    equations = NormalEquations()
    for seen in store(lambda group: Seen(root * group.features(), noise[group.bags], targets[group.bags])):
        equations.add(seen)
    inner, solved = equations.solved()
    coefficients = np.split(root[:, None] * solved, np.cumsum(widths)[:-1])
    return replace(found, coefficients=coefficients, precision=Precision(scales, inner), sample=None)


def logits_of_all_bags(found: FittedProcess, store: Store, train: BaggedRows, show: Say) -> LogitProcess:
    """Return logits that are fitted to the sample, then refined in a few passes over all bags."""
    assert found.sample is not None
    show("logits of the sample")
    start = fit_logits(*found.sample)
    classes = range(1, 2) if len(found.prior) == 2 else range(len(found.prior))
    fits = []
    for label, offset, coefficients in zip(classes, start.offsets, start.coefficients, strict=True):
        groups = _ShownPasses(store, f"logits of class {label + 1}" if len(classes) > 1 else "logits", show)
        fit = _QuickLogits(found, train, label)
        fits.append(fit.run_in_groups(groups, offset, coefficients))  # type: ignore[arg-type]
    offsets, weights, precisions = (list(each) for each in zip(*fits, strict=True))
    return LogitProcess(found.components, offsets, weights, precisions, found.unexplained)


class _QuickLogits(bag_logits._LogitFit):
    """The fit of one class, which computes the joint features of a row once for each step."""

    def _seen(self, group: BagGroup, weights: FloatArray, root: FloatArray) -> tuple[Seen, FloatArray]:
        assert isinstance(group, QuickGroup)
        level = self.center + weights[0]

        def slopes(values: FloatArray) -> FloatArray:
            p = expit(level + values)
            return np.asarray(p * (1 - p))

        found, features = group.values_and_features(np.split(weights[1:], np.cumsum(self.widths)[:-1]), slopes)
        values = level + found
        p = expit(values)
        v = p * (1 - p)
        average, bags = group.mean(v), group.bags
        noise = np.maximum(average, self.least) / group.sizes + self.known_noise[bags] + self.bag_effects
        misfit = self.shares[bags] - group.mean(p)
        target = misfit + group.mean(v * (values - self.center))
        return Seen(root * np.hstack([average[:, None], features]), noise, target[:, None]), misfit


class _ShownPasses:
    """A store that shows the progress of each pass."""

    def __init__(self, store: Store, name: str, show: Say) -> None:
        self._store, self._name, self._show, self._passes = store, name, show, 0

    def __call__(self, look: Callable[[QuickGroup], Found]) -> Iterator[Found]:
        self._passes += 1
        name = f"{self._name}, step {self._passes} of at most 4"
        done = RowsDone(self._show, name, self._store.layout.rows)

        def counted(group: QuickGroup) -> tuple[int, Found]:
            return len(group.bag_of_row), look(group)

        for rows, found in self._store(counted):
            done.add(rows)
            yield found
