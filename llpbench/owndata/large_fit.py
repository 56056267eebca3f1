"""`LLPClassifier` from rows in files larger than memory, fitted in passes over the rows.

There are passes over the files for bags and columns, for extreme values (if there are any), for the sample of bags (two
if bags are confounded), and for writing bins of all rows to temporary files. All other passes read these.

`bag-gp` and `auto` are fitted to all rows; a pass writes temporary files for the trees of `auto` (`tree_parts.py`).
Other direct methods are fitted to the sample. Effects of bags then need one more pass over the files.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from scipy.special import log_expit, softmax

from llpbench.blocks.assigning import log_of
from llpbench.blocks.bag_logits import LogitProcess, ProcessPredictor
from llpbench.blocks.bag_process import FittedProcess, ProcessSettings
from llpbench.blocks.counts import BagCounts
from llpbench.blocks.design import as_proba
from llpbench.blocks.many_rows import BagGroup
from llpbench.blocks.side_by_side import side_by_side
from llpbench.core import memory
from llpbench.core.bags import BaggedRows, BoolArray, FloatArray, IntArray, Rows
from llpbench.core.cell import Protocol
from llpbench.core.errors import LLPBenchError
from llpbench.core.method import Predictor
from llpbench.core.ranges import read_params
from llpbench.core.registry import METHODS
from llpbench.core.seeding import generator
from llpbench.core.text import plural, verb
from llpbench.data.bag_tables import BagTable, ascending, matched, read_bag_table, rows_of_bags
from llpbench.owndata.bag_codes import BagCodes, CountedLabels
from llpbench.owndata.bag_effects import (
    FEWEST_BAGS,
    KnownBags,
    held_out_predictions,
    learn_known_bags,
    level,
    of_all_bags,
)
from llpbench.owndata.bag_store import BagStore
from llpbench.owndata.classifier import LLPClassifier
from llpbench.owndata.column_statistics import BatchStatistics, ColumnStatistics, Moments
from llpbench.owndata.columns import ColumnsOfManyRows, FeatureColumns, LikelyIdentifier, identifier_warning
from llpbench.owndata.count_ranges import ranged_counts
from llpbench.owndata.counted import noise_deviation, require_no_shares
from llpbench.owndata.doubts import DoubtfulFit, Union, doubts_of
from llpbench.owndata.extremes import ExtremeValues
from llpbench.owndata.fitting import AUTO, YARDSTICK, NetworkTraining, fit_members, is_network
from llpbench.owndata.number_text import NumbersAsText, numbers_as_text_warning
from llpbench.owndata.process_passes import (
    fit_to_sample,
    logits_of_all_bags,
    needs_no_sample,
    sample_of_bags,
    shares_of_all_bags,
)
from llpbench.owndata.progress import RowsDone
from llpbench.owndata.rare import FewPositives, calibration, few_positives_warning, has_rare_class, is_rare
from llpbench.owndata.row_batches import RowBatch, RowBatches
from llpbench.owndata.rows_by_bag import RowsByBag, piece_of, without_rows
from llpbench.owndata.sizes import LargeFit, require_classes, size_warning
from llpbench.owndata.tree_parts import TreeParts, union_of_all_rows
from llpbench.training.cell_runs import limit_threads

METHOD = "bag-gp"
"""The only method that is fitted to all rows in passes."""
Say = Callable[[str], None]
Found = TypeVar("Found")
Effects = Callable[[slice, FloatArray], FloatArray]
"""Function that returns the effects of some bags [bags, classes] from probabilities of their rows [rows, classes]."""


@dataclass(frozen=True, eq=False)
class LargeRows:
    """Rows in batches, with the roles of their columns."""

    batches: RowBatches
    keys: Sequence[str]
    """columns that name a bag"""
    left_out: Sequence[str]
    """columns that are not features, apart from `keys`"""
    keep_key: bool = False
    """whether `keys` are features, too"""

    def features(self, batch: RowBatch) -> pd.DataFrame:
        """Return the features of some rows. Columns that the user declared as text are categories."""
        out = {*self.left_out, *(() if self.keep_key else self.keys)}
        return batch.frame.drop(columns=[name for name in out if name in batch.frame.columns])


@dataclass(frozen=True, eq=False)
class _Counted:
    """Results of the first pass."""

    columns: FeatureColumns
    codes: BagCodes
    bag_of_code: IntArray
    """position in `names` of each number of `codes`, then of missing labels; -1 if left out"""
    table: BagTable
    names: list[Hashable]
    named: list[Hashable]
    """classes in the order of the table"""
    order: list[int]
    train: BaggedRows
    """counts and sizes of all bags, without rows"""
    left_out: dict[str, int]


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
) -> LLPClassifier:
    """Return a fitted copy of `model`, as its `fit` with these arguments.

    Facts about the fit go to `say`, its stage to `show`.

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
        return table.counts(labels, deviation, sampled=sampled, as_shares=as_shares, suppress=suppress)

    reader = _Reader(rows, say, show)
    counted = reader.count(read_table, counts_of, classes, unmatched, deviation, model.random_state)
    with limit_threads(model.n_jobs) if model.n_jobs and model.n_jobs > 0 else nullcontext():
        content = _Fit(model, reader, counted).content()
    if (peak := memory.peak_mb()) is not None:
        say(f"peak memory: {peak / 1000:.1f} GB")
    return LLPClassifier._of(content)


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
    """Passes over the files."""

    def __init__(self, rows: LargeRows, say: Say, show: Say) -> None:
        self._rows, self.say, self.show = rows, say, show
        self._total = rows.batches.total
        self._codes = BagCodes(rows.keys)

    def _batches(self, what: str) -> Iterator[tuple[RowBatch, pd.DataFrame, IntArray]]:
        """Yield batches, their features and the numbers of their bags, and show progress."""
        done = RowsDone(self.show, what, self._total)
        for batch in self._rows.batches:
            with batch.blamed():
                codes = self._codes(batch)
                frame = self._rows.features(batch)
                if self._rows.keep_key:
                    frame = frame.assign(**self._codes.texts(batch))
            yield batch, frame, codes
            done.add(len(codes))

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
        head = next(iter(self._batches_of_head()))
        table = read_table([*self._codes.labels])
        named, listed = table.classes(classes), set(table.names)
        statistics = ColumnStatistics([str(name) for name in head.columns], seed)
        rows_of_code: IntArray = np.zeros(0, dtype=np.int64)
        alone = 0
        known: list[bool] = []

        def inside(codes: IntArray) -> BoolArray:
            names = list(self._codes.labels)
            known.extend(unmatched == "raise" or name in listed for name in names[len(known) :])
            return np.array([*known, False], dtype=bool)[codes]

        def prepared() -> Iterator[tuple[RowBatch, pd.DataFrame, IntArray, FloatArray]]:
            for batch, frame, codes in self._batches("bags and columns"):
                kept = inside(codes)
                some = frame if kept.all() else frame[kept]
                yield batch, some, codes, statistics.draw(len(some))

        def found_in(
            item: tuple[RowBatch, pd.DataFrame, IntArray, FloatArray],
        ) -> tuple[RowBatch, BatchStatistics, IntArray]:
            batch, frame, codes, drawn = item
            with batch.blamed():
                return batch, statistics.of_batch(frame, drawn), codes

        for batch, seen, codes in side_by_side(prepared(), found_in):
            with batch.blamed():
                statistics.merge(seen)
            alone += int((codes < 0).sum())
            more = np.bincount(codes[codes >= 0], minlength=len(self._codes.labels))
            more[: len(rows_of_code)] += rows_of_code
            rows_of_code = more
        self._demand_bags(alone, int(rows_of_code.sum()) + alone, unmatched)
        labels, bag_of_code = self._labels(table, rows_of_code, unmatched)
        require_classes(len(named), int(rows_of_code.sum()))
        order = ascending(named)
        found = counts_of(table, labels)[:, order]
        suppressed = table.suppressed(labels)
        left_out = {
            "rows": int(rows_of_code.sum()) + alone - int(labels.sizes.sum()),
            "bags": len(table.names) - len(labels.names),
            "suppressed": suppressed,
            "impossible": int(np.isnan(found).any(axis=1).sum()) - suppressed,
        }
        ranges, moments = statistics.ranges(), statistics.moments
        if changed := [name for name, each in ranges.items() if each.far or each.unit != 1]:
            moments = Moments(len(statistics.names))
            for _, frame, codes in self._batches(f"extreme values of {', '.join(changed[:3])}"):
                kept = inside(codes)
                for place, name in enumerate(statistics.names):
                    if name in ranges:
                        values = frame[name].to_numpy(dtype=np.float64, na_value=np.nan)[kept]
                        moments.add(place, ranges[name](values))
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
        _demand_two(train, named, order)
        return _Counted(columns, self._codes, bag_of_code, table, labels.names, named, order, train, left_out)

    def _batches_of_head(self) -> Iterator[pd.DataFrame]:
        for batch in self._rows.batches:
            if len(batch.frame):
                self._codes(batch)
                frame = self._rows.features(batch)
                if not frame.shape[1]:
                    raise LLPBenchError("no feature is left in ROWS. Keep at least one column besides the bag.")
                yield frame.assign(**self._codes.texts(batch)) if self._rows.keep_key else frame
        raise LLPBenchError(f"file {str(self._rows.batches.path)!r} has no rows.")

    @staticmethod
    def _demand_bags(alone: int, rows: int, unmatched: str) -> None:
        if alone and unmatched == "raise":
            raise LLPBenchError(
                f"{alone:,} of {rows:,} rows {verb(alone)} no bag. Name the bag of each row. To drop rows without a "
                "bag, use unmatched='drop'."
            )

    def _labels(self, table: BagTable, rows: IntArray, unmatched: str) -> tuple[CountedLabels, IntArray]:
        """Return the labels of the bags in ascending order, and the position of each bag number among them."""
        number = self._codes.labels
        names: list[Hashable] = sorted(number, key=lambda label: label)  # type: ignore[arg-type,return-value]
        columns: list[Hashable] = [*self._rows.keys]
        once = CountedLabels(np.arange(len(names)), names, columns, rows=rows[[number[name] for name in names]])
        kept = matched(once, table, unmatched).names
        bag_of_code = np.full(len(number) + 1, -1, dtype=np.int64)
        bag_of_code[[number[name] for name in kept]] = np.arange(len(kept))
        sizes = rows[[number[name] for name in kept]].astype(np.int64)
        return CountedLabels(np.arange(len(kept)), kept, columns, rows=sizes), bag_of_code

    def read(
        self, counted: _Counted, bags: BoolArray, what: str, use: Callable[[Rows, IntArray], Found]
    ) -> Iterator[Found]:
        """Yield `use` of the rows of some bags [bags], and of the positions of their bags among these [rows]."""
        place = np.append(np.where(bags, np.cumsum(bags) - 1, -1), -1)
        columns = ColumnsOfManyRows(counted.columns)

        def found(item: tuple[RowBatch, pd.DataFrame, IntArray]) -> Found | None:
            batch, frame, codes = item
            bag = place[counted.bag_of_code[codes]]
            kept = np.flatnonzero(bag >= 0)
            if not len(kept):
                return None
            with batch.blamed():
                rows = columns(frame if len(kept) == len(bag) else frame.take(kept))
            return use(rows, bag[kept])

        for each in side_by_side(self._batches(what), found):
            if each is not None:
                yield each


class _Fit:
    """The fit of a model to the results of the first pass."""

    def __init__(self, model: LLPClassifier, reader: _Reader, counted: _Counted) -> None:
        self._model, self._reader, self._counted, self._say = model, reader, counted, reader.say
        self._method = AUTO if model.method == "auto" else model.method
        known = counted.train.known
        self._known_bags = known
        self._train = without_rows(counted.train.counts[known], counted.train.sizes[known], counted.train.noise)

    def content(self) -> dict[str, Any]:
        """Return the values that `LLPClassifier.save` writes."""
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
            self._say(f"{model.method} is fitted to {_told(sample)}")
            predictor = self._fitted(sample)
            calibrated, known_bags = self._learned(predictor, sample, partial(self._predicted, predictor))
        doubts = None
        if isinstance(predictor, Union):
            evidence = calibrated.evidence if calibrated is not None and is_rare(self._train) else None
            doubts = doubts_of(predictor, sample.rows, self._train.counts, evidence)
            if doubts.warning:
                warnings.warn(doubts.warning, DoubtfulFit, stacklevel=3)
        order, nameless = counted.order, counted.table.columns is None or counted.table.values.shape[1] == 1
        return {
            "settings": model.get_params(),
            "classes": [counted.named[place] for place in order],
            "positive": order.index(number - 1) if nameless else number - 1,
            "order": [order.index(column) for column in range(number)],
            "features": len(counted.columns.names),
            "names": counted.columns.names,
            "bags": counted.names,
            "counts": counted.train.counts,
            "deviation": counted.train.noise,
            "sizes": counted.train.sizes,
            "known_bags": of_all_bags(known_bags, self._known_bags),
            "left_out": counted.left_out,
            "reading": {},
            "keys": [],
            "calibration": calibrated,
            "doubts": doubts,
            "columns": counted.columns,
            "predictor": predictor,
        }

    def _in_passes(self) -> tuple[Any, BaggedRows, Any, KnownBags]:
        """Return `bag-gp` or `auto` with its sample, the calibration and the effects of known bags."""
        own: Any = read_params(METHODS.get(self._method).Params, self._model.params or {}, owner=self._method)
        settings = own.process if self._method == METHOD else ProcessSettings()
        rng = generator(self._model.random_state, "training")
        found = fit_to_sample(self._train, settings, rng, self._sample, self._say, self._reader.show)
        assert found.sample is not None
        sample = found.sample[1]
        with BagStore(found.components, self._train.sizes) as store:
            self._say(f"temporary files: {store.bytes / 1e9:.2f} GB")
            for records in self._reader.read(self._counted, self._known_bags, "bins of all rows", store.records):
                store.add(records)
            self._reader.show("ordering rows by bag")
            store.finish()
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
        with TreeParts(self._train, sample) as parts:
            stored = partial(parts.records, process)
            for records in self._reader.read(self._counted, self._known_bags, "parts for trees", stored):
                parts.add(*records)
            number = plural(len(parts.bags_of_part), "part")
            self._say(f"trees come from all rows in {number}, temporary files: {parts.bytes / 1e9:.2f} GB")
            self._reader.show("trees")
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

        Both are learned from held-out bags of the sample. With `groups` of all bags, effects are estimated for these.
        """
        self._reader.show("effects of bags: learned from bags that are held out of the sample")
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

        def effects(bags: slice, found: FloatArray) -> FloatArray:
            logits = learned.spread * log_of(found if calibrated is None else calibrated(found)) + offset
            return BagCounts(piece_of(self._train, bags)).effects_of_spread(logits, learned.deviation)[0]

        return calibrated, replace(learned, effects=offset + np.concatenate([*groups(effects)]))


def _told(sample: BaggedRows) -> str:
    return f"{len(sample.sizes)} randomly drawn bags ({plural(len(sample.bag_of_row), 'row')})"


def _probabilities(process: FittedProcess | LogitProcess, group: BagGroup) -> FloatArray:
    """Return probabilities [rows, classes] of the rows of some bags."""
    if isinstance(process, FittedProcess):
        columns = [group.values([w[:, c] for w in process.coefficients]) for c in range(len(process.prior))]
        return as_proba(process.prior + np.sqrt(process.prior * (1 - process.prior)) * np.column_stack(columns))
    values = np.column_stack([group.values([w[:, 0] for w in each]) for each in process.coefficients])
    values = values + np.array(process.offsets)
    logits = np.hstack([np.zeros_like(values), values]) if values.shape[1] == 1 else log_expit(values)
    return np.asarray(softmax(logits, axis=1))


def _demand_two(train: BaggedRows, named: Sequence[Hashable], order: Sequence[int]) -> None:
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
