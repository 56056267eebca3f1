"""`LLPClassifier` from rows in files larger than memory, fitted in passes over the rows.

There are passes over the files for bags and columns, for extreme values (if there are any), for the sample of bags (two
if bags are confounded), and for writing bins of all rows to temporary files. All other passes read these.

`bag-gp` and `auto` are fitted to all rows; a pass writes temporary files for the trees of `auto` (`tree_parts.py`).
Other direct methods are fitted to the sample. Effects of bags then need one more pass over the files.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from typing import Any, TypeVar

import numpy as np
from scipy.special import log_expit, softmax

from llpbench.blocks.assigning import log_of
from llpbench.blocks.bag_logits import LogitProcess, ProcessPredictor
from llpbench.blocks.bag_process import FittedProcess, ProcessSettings
from llpbench.blocks.components import Components
from llpbench.blocks.counts import BagCounts
from llpbench.blocks.design import as_proba
from llpbench.blocks.many_rows import BagGroup
from llpbench.core.bags import BaggedRows, BoolArray, FloatArray, IntArray, Rows
from llpbench.core.cell import Protocol
from llpbench.core.errors import LLPBenchError
from llpbench.core.method import Predictor
from llpbench.core.ranges import read_params
from llpbench.core.registry import METHODS
from llpbench.core.seeding import generator
from llpbench.core.text import plural, verb
from llpbench.data.bag_tables import BagTable, ascending, matched, read_bag_table, rows_of_bags
from llpbench.owndata.bag_codes import CountedLabels, rows_by_label
from llpbench.owndata.bag_effects import (
    FEWEST_BAGS,
    KnownBags,
    held_out_predictions,
    learn_known_bags,
    level,
    of_all_bags,
)
from llpbench.owndata.bag_store import LocalPasses, Passes, Store
from llpbench.owndata.classifier import LLPClassifier
from llpbench.owndata.column_statistics import BatchStatistics, ColumnStatistics, Moments
from llpbench.owndata.columns import ColumnsOfManyRows, FeatureColumns, LikelyIdentifier, identifier_warning
from llpbench.owndata.count_ranges import ranged_counts
from llpbench.owndata.counted import (
    LargeNoise,
    MissingCounts,
    large_noise_warning,
    missing_counts_warning,
    noise_deviation,
    require_no_shares,
)
from llpbench.owndata.doubts import DoubtfulFit, Union, doubts_of
from llpbench.owndata.extremes import ExtremeValues, NumberRange
from llpbench.owndata.fitted_model import FittedModel
from llpbench.owndata.fitting import AUTO, YARDSTICK, NetworkTraining, fit_members, is_network
from llpbench.owndata.process_passes import (
    fit_to_sample,
    logits_of_all_bags,
    needs_no_sample,
    sample_of_bags,
    shares_of_all_bags,
)
from llpbench.owndata.progress import RowsDone
from llpbench.owndata.rare import (
    BagCalibration,
    FewPositives,
    calibration,
    few_positives_warning,
    has_rare_class,
    is_rare,
)
from llpbench.owndata.row_passes import Compute, FeatureBatch, LargeRows
from llpbench.owndata.rows_by_bag import RowsByBag, piece_of, without_rows
from llpbench.owndata.sizes import LargeFit, require_classes, size_warning
from llpbench.owndata.tree_parts import TreeParts, union_of_all_rows
from llpbench.tables.number_text import NumbersAsText, numbers_as_text_warning
from llpbench.training import memory
from llpbench.training.cell_runs import limit_threads

METHOD = "bag-gp"
"""The only method that is fitted to all rows in passes."""
Say = Callable[[str], None]
Found = TypeVar("Found")
Effects = Callable[[slice, FloatArray], FloatArray]
"""Function that returns the effects of some bags [bags, classes] from probabilities of their rows [rows, classes]."""


@dataclass(frozen=True, eq=False)
class _Counted:
    """Results of the first pass."""

    columns: FeatureColumns
    table: BagTable
    names: list[Hashable]
    named: list[Hashable]
    """classes in the order of the table"""
    order: list[int]
    train: BaggedRows
    """counts and sizes of all bags, without rows"""
    left_out: dict[str, int]
    of_rows: bool
    """whether the table counts these rows, not whole bags or other people"""


def fit_large(
    model: LLPClassifier,
    rows: LargeRows,
    *,
    say: Say,
    show: Say = lambda _: None,
    proportions: Any = None,
    counts: Any = None,
    classes: Sequence[Hashable] | None = None,
    sizes: Any = None,
    sampled: bool = False,
    as_shares: bool = False,
    noise: float = 0.0,
    noise_kind: str = "gaussian",
    unmatched: str = "raise",
    impossible: str = "raise",
    ray_address: str | None = None,
) -> LLPClassifier:
    """Return a fitted copy of `model`, as its `fit` with these arguments.

    Facts about the fit go to `say`, its stage to `show`. `ray_address` is a Ray cluster that makes the passes: auto or
    HOST:PORT. None: this machine makes them.

    Raises `LLPBenchError` as `fit` does, and for other methods than `bag-gp`. Warns as `fit` does.
    """
    _require_settings(model)
    deviation = noise_deviation(noise, noise_kind)
    if (sampled or as_shares) and deviation:
        raise LLPBenchError(f"noise= needs counts of all rows, got {'sampled' if sampled else 'as_shares'}=True.")
    if ranged_counts(counts) is not None:
        raise LLPBenchError(
            "counts as ranges need all rows in memory, got --out-of-core. Leave --out-of-core out, or ignore the "
            "ranges with --suppressed."
        )
    if as_shares and counts is None:
        raise LLPBenchError("as_shares=True works only with counts. Leave it out: proportions are shares already.")

    def read_table(names: list[Hashable]) -> BagTable:
        columns: list[Hashable] = [*rows.keys]
        table = read_bag_table(proportions, counts, CountedLabels(np.zeros(0, np.int64), names, columns), sizes)
        if not (deviation or as_shares):
            require_no_shares(table)
        return table.only(classes) if unmatched == "drop" else table

    def counts_of(table: BagTable, labels: CountedLabels) -> FloatArray:
        suppress = impossible == "suppress"
        found = table.counts(labels, deviation, sampled=sampled, as_shares=as_shares, suppress=suppress)
        exact = table.is_counts and not (sampled or as_shares or deviation)
        if told := missing_counts_warning(table, labels, table.classes(classes), (), of_rows=exact):
            warnings.warn(told, MissingCounts, stacklevel=4)
        return found

    with rows.batches.unchanged(), passes_on(ray_address) as passes:
        reader = _Reader(rows, passes, say, show)
        counted = reader.count(read_table, counts_of, classes, unmatched, deviation, model.random_state)
        counted = replace(counted, of_rows=not (sampled or as_shares))
        with limit_threads(model.n_jobs) if model.n_jobs and model.n_jobs > 0 else nullcontext():
            fitted = _Fit(model, reader, counted).fitted_model()
    if (peak := memory.peak_mb()) is not None:
        say(f"peak memory: {peak / 1000:.1f} GB")
    return LLPClassifier._of(model.get_params(), fitted)


def passes_on(ray_address: str | None) -> AbstractContextManager[Passes]:
    """Return passes on this machine (None) or on a Ray cluster."""
    if ray_address is None:
        return nullcontext(LocalPasses())
    from llpbench.owndata.cluster_passes import cluster_passes

    return cluster_passes(ray_address)


def require_streamable(method: str) -> None:
    """Raise `LLPBenchError` for a method that needs all rows in memory: a network."""
    if method != "auto" and is_network(method):
        raise LLPBenchError(f"--out-of-core fits direct methods, got the network {method!r}. Use --method auto.")


def _require_settings(model: LLPClassifier) -> None:
    require_streamable(model.method)
    if model.ensemble != 1:
        raise LLPBenchError(f"--out-of-core fits one model, got --ensemble {model.ensemble}. Leave --ensemble out.")
    if model.numbers not in (None, "z"):
        raise LLPBenchError(f"--out-of-core needs --numbers z, got {model.numbers}. Leave --numbers out.")


class _Reader:
    """Passes over the files, on this machine or on a cluster."""

    def __init__(self, rows: LargeRows, passes: Passes, say: Say, show: Say) -> None:
        self._rows, self._passes, self.say, self.show = rows, passes, say, show
        self._total = rows.batches.total

    def _pass(self, what: str, compute: Compute[Found]) -> Iterator[Found]:
        """Yield `compute` of each batch, in the order of batches, and show progress."""
        done = RowsDone(self.show, what, self._total)
        with self._rows.batches.unchanged():
            for rows, found in self._passes.read(self._rows, compute):
                yield found
                done.add(rows)

    def count(
        self,
        read_table: Callable[[list[Hashable]], BagTable],
        counts_of: Callable[[BagTable, CountedLabels], FloatArray],
        classes: Sequence[Hashable] | None,
        unmatched: str,
        deviation: float,
        seed: int,
    ) -> _Counted:
        """Return bags and columns, after one or two passes."""
        first = self._head()
        head = first.frame
        table = read_table([label for label in first.labels if label is not None])
        named, listed = table.classes(classes), {*table.names} if unmatched == "drop" else None
        statistics = ColumnStatistics([str(name) for name in head.columns], seed)
        rows_of_bag: Counter[Hashable] = Counter()
        for numbers, seen in self._pass("bags and columns", partial(_counted, statistics, listed)):
            statistics.merge(seen)
            rows_of_bag.update(numbers)
        alone = rows_of_bag.pop(None, 0)
        number = rows_of_bag.total()
        self._require_bags(alone, number + alone, unmatched)
        labels = self._labels(table, rows_of_bag, unmatched)
        if deviation and (told := large_noise_warning(deviation, labels.sizes)):
            warnings.warn(told, LargeNoise, stacklevel=3)
        require_classes(len(named), number)
        order = ascending(named)
        found = counts_of(table, labels)[:, order]
        suppressed = table.suppressed(labels)
        left_out = {
            "rows": number + alone - int(labels.sizes.sum()),
            "bags": len(table.names) - len(labels.names),
            "suppressed": suppressed,
            "impossible": int(np.isnan(found).any(axis=1).sum()) - suppressed,
        }
        ranges, moments = statistics.ranges(), statistics.moments
        if changed := [name for name, each in ranges.items() if each.far or each.unit != 1]:
            moments = Moments(len(statistics.names))
            compute = partial(_moments_in_ranges, statistics.names, ranges, listed)
            for seen_inside in self._pass(f"extreme values of {', '.join(changed[:3])}", compute):
                moments.merge(seen_inside)
            for place, name in enumerate(statistics.names):
                if name in changed and ranges[name].far:
                    far = int(moments.missing[place] - statistics.moments.missing[place])
                    ranges[name] = replace(ranges[name], far=far)
        columns = statistics.columns(ranges, moments)
        for told, category in (
            (identifier_warning(head), LikelyIdentifier),
            (size_warning(statistics.rows, head.shape[1], columns.cardinalities), LargeFit),
            (numbers_as_text_warning(head), NumbersAsText),
            (" ".join(filter(None, (r.warning(name, statistics.rows) for name, r in ranges.items()))), ExtremeValues),
        ):
            if told:
                warnings.warn(told, category, stacklevel=3)
        train = without_rows(found, labels.sizes, deviation)
        _require_two_bags_and_classes(train, named, order)
        return _Counted(columns, table, labels.names, named, order, train, left_out, of_rows=True)

    def _head(self) -> FeatureBatch:
        """Return the first batch with rows."""
        for item in self._rows.features_of(self._rows.batches):
            if len(item.codes):
                if not item.frame.shape[1]:
                    raise LLPBenchError("no feature is left in ROWS. Keep at least one column besides the bag.")
                categories = {name: "category" for name in self._rows.texts if name in item.frame}
                return replace(item, frame=item.frame.astype(categories))
        raise LLPBenchError(f"file {str(self._rows.batches.path)!r} has no rows.")

    @staticmethod
    def _require_bags(alone: int, rows: int, unmatched: str) -> None:
        if alone and unmatched == "raise":
            raise LLPBenchError(
                f"{alone:,} of {rows:,} rows {verb(alone)} no bag. Name the bag of each row. To drop rows without a "
                "bag, use unmatched='drop'."
            )

    def _labels(self, table: BagTable, rows: Mapping[Hashable, int], unmatched: str) -> CountedLabels:
        """Return the labels of the bags in ascending order. `rows` are numbers of rows by label."""
        names: list[Hashable] = sorted(rows, key=lambda label: label)  # type: ignore[arg-type,return-value]
        columns: list[Hashable] = [*self._rows.keys]

        def labelled(some: list[Hashable]) -> CountedLabels:
            sizes = np.array([rows[name] for name in some], dtype=np.int64)
            return CountedLabels(np.arange(len(some)), some, columns, rows=sizes)

        return labelled(matched(labelled(names), table, unmatched).names)

    def read(
        self, counted: _Counted, bags: BoolArray, what: str, use: Callable[[Rows, IntArray], Found]
    ) -> Iterator[Found]:
        """Yield `use` of the rows of some bags [bags], and of the positions of their bags among these [rows]."""
        return (each for each in self._pass(what, _of_bags(counted, bags, use)) if each is not None)

    @contextmanager
    def stored(self, counted: _Counted, bags: BoolArray, components: Components) -> Iterator[Store]:
        """Store the bins of the rows of some bags [bags]."""
        with self._passes.store(components, counted.train.sizes[bags]) as store:
            self.say(store.description)
            self._fill(counted, bags, store)
            yield store

    def _fill(self, counted: _Counted, bags: BoolArray, store: Store) -> None:
        done = RowsDone(self.show, "bins of all rows", self._total)
        store.fill(self._rows, _of_bags(counted, bags, store.layout.records), done.add)
        self.show("ordering rows by bag")
        store.finish()


def _inside(item: FeatureBatch, listed: Collection[Hashable] | None) -> BoolArray:
    """Return whether the bag of each row [rows] is known, and is `listed` (None: all are)."""
    known = [label is not None and (listed is None or label in listed) for label in item.labels]
    return np.array(known, dtype=bool)[item.codes]


def _counted(
    statistics: ColumnStatistics, listed: Collection[Hashable] | None, item: FeatureBatch
) -> tuple[Counter[Hashable], BatchStatistics]:
    """Return the number of rows by bag, and the statistics of rows in `listed` bags."""
    inside = _inside(item, listed)
    drawn = statistics.draw(item.batch.number, item.batch.first, len(inside))
    frame = item.frame if inside.all() else item.frame[inside]
    return rows_by_label(item.codes, item.labels), statistics.of_batch(frame, drawn[inside])


def _moments_in_ranges(
    names: Sequence[str], ranges: Mapping[str, NumberRange], listed: Collection[Hashable] | None, item: FeatureBatch
) -> Moments:
    """Return the moments of numbers, without extreme values."""
    moments, inside = Moments(len(names)), _inside(item, listed)
    for place, name in enumerate(names):
        if name in ranges:
            values = item.frame[name].to_numpy(dtype=np.float64, na_value=np.nan)[inside]
            moments.add(place, ranges[name](values))
    return moments


def _of_bags(counted: _Counted, bags: BoolArray, use: Callable[[Rows, IntArray], Found]) -> Compute[Found | None]:
    """Return a function of a batch: `use` of the rows of some bags [bags], and of the positions of their bags."""
    places = {name: place for place, name in enumerate(compress(counted.names, bags))}
    return partial(_used, places, ColumnsOfManyRows(counted.columns), use)


def _used(
    places: Mapping[Hashable, int],
    columns: ColumnsOfManyRows,
    use: Callable[[Rows, IntArray], Found],
    item: FeatureBatch,
) -> Found | None:
    bag = np.array([places.get(label, -1) for label in item.labels], dtype=np.int64)[item.codes]
    kept = np.flatnonzero(bag >= 0)
    if not len(kept):
        return None
    return use(columns(item.frame if len(kept) == len(bag) else item.frame.take(kept)), bag[kept])


class _Fit:
    """The fit of a model to the results of the first pass."""

    def __init__(self, model: LLPClassifier, reader: _Reader, counted: _Counted) -> None:
        self._model, self._reader, self._counted, self._say = model, reader, counted, reader.say
        self._method = AUTO if model.method == "auto" else model.method
        known = counted.train.known
        self._known_bags = known
        self._train = without_rows(counted.train.counts[known], counted.train.sizes[known], counted.train.noise)

    def fitted_model(self) -> FittedModel:
        """Return the fitted model."""
        model, counted, number = self._model, self._counted, len(self._counted.order)
        if needs_no_sample(self._train.sizes):
            self._say(f"{plural(int(self._train.sizes.sum()), 'row')} of known bags are few enough to fit them at once")
            sample = self._sample(np.ones(len(self._train.sizes), dtype=bool))
            predictor = self._fitted(sample)
            calibrated, known_bags = self._learned(predictor, sample, None)
        elif self._method in (METHOD, AUTO):
            predictor, sample, calibrated, known_bags = self._in_passes()
        else:
            sample = sample_of_bags(self._train, generator(model.random_state, "training"), self._sample)
            self._say(f"{model.method} is fitted to {_bags_and_rows(sample)}")
            predictor = self._fitted(sample)
            calibrated, known_bags = self._learned(predictor, sample, partial(self._predicted, predictor))
        doubts = None
        if isinstance(predictor, Union):
            evidence = calibrated.evidence if calibrated is not None and is_rare(self._train) else None
            doubts = doubts_of(predictor, sample.rows, self._train.counts, evidence)
            if doubts.warning:
                warnings.warn(doubts.warning, DoubtfulFit, stacklevel=3)
        order, nameless = counted.order, counted.table.columns is None or counted.table.values.shape[1] == 1
        return FittedModel(
            columns=counted.columns,
            names=counted.columns.names,
            predictor=predictor,
            classes=[counted.named[place] for place in order],
            positive=order.index(number - 1) if nameless else number - 1,
            order=[order.index(column) for column in range(number)],
            bags=counted.names,
            counts=counted.train.counts,
            sizes=counted.train.sizes,
            deviation=counted.train.noise,
            of_rows=counted.of_rows,
            calibration=calibrated,
            doubts=doubts,
            left_out=counted.left_out,
            known_bags=of_all_bags(known_bags, self._known_bags),
        )

    def _in_passes(self) -> tuple[Any, BaggedRows, Any, KnownBags]:
        """Return `bag-gp` or `auto` with its sample, the calibration and the effects of known bags."""
        own: Any = read_params(METHODS.get(self._method).Params, self._model.params or {}, owner=self._method)
        settings = own.process if self._method == METHOD else ProcessSettings()
        rng = generator(self._model.random_state, "training")
        found = fit_to_sample(self._train, settings, rng, self._sample, self._say, self._reader.show)
        assert found.sample is not None
        sample = found.sample[1]
        with self._reader.stored(self._counted, self._known_bags, found.components) as store:
            process: FittedProcess | LogitProcess
            if self._method == METHOD and own.link == "identity":
                process = shares_of_all_bags(found, store, self._train)
            else:
                process = logits_of_all_bags(found, store, self._train, self._reader.show)
            if self._method == METHOD:

                def groups(look: Effects) -> Iterator[FloatArray]:
                    return store(lambda group: look(group.bags, _probabilities(process, group)))

                return ProcessPredictor(process), sample, *self._learned(ProcessPredictor(process), sample, groups)
        assert isinstance(process, LogitProcess)
        predictor = self._union(process, sample, own, rng)
        return predictor, sample, *self._learned(predictor, sample, partial(self._predicted, predictor))

    def _union(self, process: LogitProcess, sample: BaggedRows, params: Any, rng: np.random.Generator) -> Any:
        """Return `auto` with trees from all rows."""
        with TreeParts(self._train, sample, self._reader.show) as parts:
            stored = parts.records_by(process)
            for records in self._reader.read(self._counted, self._known_bags, "parts for trees", stored):
                parts.add(*records)
            number = plural(len(parts.bags_of_part), "part")
            self._say(f"trees come from all rows in {number}, temporary files: {parts.bytes / 1e9:.2f} GB")
            return union_of_all_rows(process, parts, self._train.prior, params, rng)

    def _predicted(self, predictor: Predictor, look: Effects) -> Iterator[FloatArray]:
        """Yield `look` of the predictions of all rows, piece by piece, after one pass over the files."""

        def predicted(rows: Rows, bags: IntArray) -> tuple[IntArray, FloatArray]:
            return bags, predictor(rows)

        with RowsByBag([("proba", np.float32, (len(self._counted.order),))], self._train.sizes) as store:
            for bags, proba in self._reader.read(self._counted, self._known_bags, "predictions", predicted):
                store.add(bags, proba)
            for of_piece, records in store:
                yield look(of_piece, records["proba"].astype(np.float64))

    def _sample(self, bags: BoolArray) -> BaggedRows:
        """Return the rows of some of the known bags [known bags]."""
        chosen = np.zeros(len(self._known_bags), dtype=bool)
        chosen[np.flatnonzero(self._known_bags)[bags]] = True
        parts = [*self._reader.read(self._counted, chosen, "sample of bags", lambda rows, bags: (rows, bags))]
        rows = Rows(*(np.concatenate(each) for each in zip(*(rows for rows, _ in parts), strict=True)))
        index = rows_of_bags(np.concatenate([of_row for _, of_row in parts]), int(bags.sum()))
        return BaggedRows(rows, index, self._train.counts[bags], self._train.noise)

    def _fitted(self, part: BaggedRows) -> Any:
        """Return the method fitted to bags in memory."""
        model = self._model
        training = NetworkTraining(
            encoder=model.encoder,
            encoder_params=model.encoder_params or {},
            pretraining=model.pretraining,
            pretraining_params=model.pretraining_params or {},
            protocol=Protocol(model.epochs, model.patience, model.bags_per_step),
            validation=model.validation,
            device=model.device,
            numbers="z",
        )
        return fit_members(
            self._method,
            model.params or {},
            part,
            self._counted.columns.cardinalities,
            ensemble=1,
            seed=model.random_state,
            training=training,
        )

    def _learned(
        self, predictor: Predictor, sample: BaggedRows, groups: Callable[[Effects], Iterator[FloatArray]] | None
    ) -> tuple[Any, KnownBags]:
        """Return the calibration of rare positives (None if not needed) and the effects of known bags.

        Both are learned from the sample, by holding out some of its bags in turn. With `groups` of all bags, effects
        are estimated for all bags.
        """
        self._reader.show("effects of bags: learned by holding out bags of the sample in turn")
        held_out = None
        if len(sample.sizes) >= FEWEST_BAGS:
            held_out = held_out_predictions(
                sample, lambda part, rows: self._fitted(part)(rows), self._model.random_state
            )
        proba, calibrated = predictor(sample.rows), None
        if has_rare_class(self._train) and self._method != YARDSTICK:
            rare = is_rare(self._train)
            calibrated = calibration(sample, proba, held_out if rare else None)
            classes = [self._counted.named[place] for place in self._counted.order]
            if rare and (told := few_positives_warning(sample, classes, calibrated)):
                warnings.warn(told, FewPositives, stacklevel=2)
            proba, held_out = calibrated(proba), None if held_out is None else calibrated(held_out)
        learned = learn_known_bags(sample, proba, held_out)
        if groups is None:
            return calibrated, learned
        offset = level(learned.spread * log_of(proba), sample)

        effects = partial(_effects, self._train, calibrated, learned, offset)
        return calibrated, replace(learned, effects=offset + np.concatenate([*groups(effects)]))


def _bags_and_rows(sample: BaggedRows) -> str:
    return f"{len(sample.sizes)} randomly drawn bags ({plural(len(sample.bag_of_row), 'row')})"


def _effects(
    train: BaggedRows,
    calibrated: BagCalibration | None,
    learned: KnownBags,
    offset: FloatArray,
    bags: slice,
    proba: FloatArray,
) -> FloatArray:
    """Return the effects of some bags, apart from `offset`; `proba` are predictions of their rows [rows, classes]."""
    logits = learned.spread * log_of(proba if calibrated is None else calibrated(proba)) + offset
    return BagCounts(piece_of(train, bags)).effects_of_spread(logits, learned.deviation)[0]


def _probabilities(process: FittedProcess | LogitProcess, group: BagGroup) -> FloatArray:
    """Return probabilities [rows, classes] of the rows of some bags."""
    if isinstance(process, FittedProcess):
        columns = [group.values([w[:, c] for w in process.coefficients]) for c in range(len(process.prior))]
        return as_proba(process.prior + np.sqrt(process.prior * (1 - process.prior)) * np.column_stack(columns))
    values = np.column_stack([group.values([w[:, 0] for w in each]) for each in process.coefficients])
    values = values + np.array(process.offsets)
    logits = np.hstack([np.zeros_like(values), values]) if values.shape[1] == 1 else log_expit(values)
    return np.asarray(softmax(logits, axis=1))


def _require_two_bags_and_classes(train: BaggedRows, named: Sequence[Hashable], order: Sequence[int]) -> None:
    """Raise `LLPBenchError` unless two bags and two classes are known."""
    known = int(train.known.sum())
    if known < 2:
        raise LLPBenchError(
            f"at least 2 bags must have known counts, got {known} of {len(train.sizes):,}. Give more or smaller bags."
        )
    if train.prior.max() == 1.0:
        only = named[order[int(train.prior.argmax())]]
        raise LLPBenchError(
            f"known bags must have two classes, got only {only!r} in all {known:,}. Add bags with another class."
        )
