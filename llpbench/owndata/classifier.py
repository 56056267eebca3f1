"""`LLPClassifier`: any method of the benchmark on your own bags, by scikit-learn's contract."""

# ruff: noqa: N803 (X is scikit-learn's name)

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError

from llpbench.core.bags import BaggedRows, FloatArray, IntArray, Rows
from llpbench.core.cell import Protocol
from llpbench.core.effects import Explained, FeatureEffects
from llpbench.core.errors import LLPBenchError
from llpbench.core.method import Predictor
from llpbench.core.text import one_line, plural, verb
from llpbench.data.bag_tables import BagLabels, matched, read_bag_labels, read_bag_table, rows_of_bags
from llpbench.owndata.bag_effects import (
    FEWEST_BAGS,
    KnownBags,
    added_up,
    assigned_labels,
    held_out_predictions,
    learn_known_bags,
    of_all_bags,
)
from llpbench.owndata.columns import as_frame
from llpbench.owndata.doubts import (
    CollapsedNetwork,
    DoubtfulFit,
    Doubts,
    SamePredictions,
    Union,
    collapse_warning,
    doubts_of,
    sameness_warning,
)
from llpbench.owndata.fitting import (
    YARDSTICK,
    NetworkPredictor,
    NetworkTraining,
    fit_members,
    numbers_for,
    own_code,
)
from llpbench.owndata.rare import FewPositives, calibration, few_positives_warning, has_rare_class, is_rare
from llpbench.owndata.scoring import coarse_criteria
from llpbench.owndata.selecting import bag_scorer, bags_of, by_bag, without_nested
from llpbench.owndata.storing import read_model, write_model
from llpbench.owndata.training_set import read_training_set
from llpbench.owndata.unknown_bags import UnknownBags, unknown_bags_warning
from llpbench.training.cell_runs import limit_threads, probabilities

AUTO = "bag-gp-gbdt"
"""what `method="auto"` is: first of the published leaderboards, in seconds"""
_TRIED = 100
"""rows, of all bags, that a fitted method predicts before it is a model"""
_SMALL = 100_000
"""rows: up to here one thread is quick enough, where several wait for one another if processors have other work"""


class UnfittedError(NotFittedError, LLPBenchError):  # type: ignore[misc]
    """Asked before `fit`: scikit-learn's error, in one line as ours."""


class LLPClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier of rows, learned from the class proportions or counts of bags, without labels.

    Parameters
    ----------
    method
        Registered method that learns from bags (`llpbench list methods`). "auto" is `bag-gp-gbdt`.
    params
        Hyperparameters of the method that differ from its defaults, by name (`llpbench list params METHOD`).
    ensemble
        Number of models to fit with different random numbers. Their probabilities are averaged.
    random_state
        Seed, a whole number. The same seed gives the same predictions.
    encoder
        Encoder of a network.
    encoder_params
        Sizes of the encoder that differ from its defaults, by name.
    numbers
        Scaling of numbers: "z" (z-scores), "scores" (normal scores) or "robust". None uses the scaling that the encoder
        declares, or "z".
    pretraining
        Pretraining of a network's encoder on the bags: "none", "self", "bag" or "self+bag".
    pretraining_params
        Hyperparameters of the pretraining by name, such as `{"epochs": 50}`.
    epochs
        Maximum number of epochs of a network.
    patience
        Number of epochs without improvement after which a network stops.
    bags_per_step
        Number of bags in one gradient step of a network.
    validation
        Share of the bags that is held out to choose a network's epoch by their proportions. At least five bags are held
        out if there are ten.
    device
        Device of a network in training and prediction: "auto", "cpu" or "cuda". It is not saved with the model.
    n_jobs
        Number of CPU threads. None uses one thread for up to 100,000 rows, and all cores beyond. -1 always uses all.

    Attributes
    ----------
    classes_
        Classes in ascending order, as the columns of `predict_proba`.
    n_features_in_
        Number of features of X.
    feature_names_in_
        Names of the features if X is a frame.
    bags_
        Labels of the bags of `fit`.
    bag_counts_
        [bags, classes] counts, NaN if suppressed.
    bag_sizes_
        [bags] numbers of rows.
    left_out_
        Numbers of "rows" without a known bag and of "bags" without rows, which were dropped, and of bags with
        "suppressed" or "impossible" counts.
    key_features_
        Columns of X that name bags and were not used as features.
    reading_
        How the command line has read the file of rows: marks of "missing" values, "decimals" by column.
    doubts_
        Signs in the bags that the model may be wrong. None unless the method is "auto" without an ensemble.

    Examples
    --------
    Ten districts of four people, with the number of votes for "yes" in each:

    >>> import pandas as pd
    >>> from llpbench import LLPClassifier
    >>> people = pd.DataFrame({"age": [25, 35, 45, 55, 30, 40, 60, 70] * 5})
    >>> district = [row // 4 for row in range(40)]
    >>> model = LLPClassifier("bag-mean-linear").fit(people, district, counts={bag: 1 + bag % 2 for bag in range(10)})
    >>> model.predict_proba(people[:2]).shape
    (2, 2)
    """

    def __init__(
        self,
        method: str = "auto",
        *,
        params: Mapping[str, Any] | None = None,
        ensemble: int = 1,
        random_state: int = 0,
        encoder: str = "mlp",
        encoder_params: Mapping[str, Any] | None = None,
        pretraining: str = "none",
        pretraining_params: Mapping[str, Any] | None = None,
        epochs: int = 100,
        patience: int = 10,
        bags_per_step: int = Protocol.bags_per_step,
        validation: float = 0.1,
        device: str = "auto",
        n_jobs: int | None = None,
        numbers: str | None = None,
    ) -> None:
        self.method = method
        self.params = params
        self.ensemble = ensemble
        self.random_state = random_state
        self.encoder = encoder
        self.encoder_params = encoder_params
        self.pretraining = pretraining
        self.pretraining_params = pretraining_params
        self.epochs = epochs
        self.patience = patience
        self.bags_per_step = bags_per_step
        self.validation = validation
        self.device = device
        self.n_jobs = n_jobs
        self.numbers = numbers

    def fit(
        self,
        X: Any,
        bags: Any,
        *,
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
        keep_key: bool = False,
    ) -> Self:
        """Learn from rows in bags.

        Parameters
        ----------
        X
            Frame or array [rows, features] of numbers, bools, texts or categories. Missing values are allowed.
        bags
            [rows] label of each row's bag, by position. A frame of several natural keys has tuples as labels.
        proportions
            Proportions of each bag, instead of counts.
        counts
            Counts of each bag, in one of these forms: a mapping or series by bag (for two classes those of the positive
            one); a frame by bag with a column for each class; a series by bag and class, in which a missing class has
            0; an array in ascending order of the bags. NaN is suppressed: nothing is learned from these rows.
        classes
            Names of the classes in the order of the columns, if these have no names. The last of two is the positive
            one. Default: the names of the columns (for a single column `late`: "not late" and "late"), else 0, 1, ...
        sizes
            Published number of rows of each whole bag: a mapping, series or array as above.
        sampled
            X has only some rows of each bag, but `counts` or `sizes` are those of all. These rows are assumed to have
            the proportions of their bag.
        as_shares
            Use only the shares of `counts`, which are of other people than the rows (voters among adults) or in other
            units (thousands).
        noise
            Scale of the privacy noise added to each count: the standard deviation if Gaussian, b if Laplace, which
            enters the likelihood by its variance 2 b^2. Counts may then be fractional or negative.
        noise_kind
            "gaussian" or "laplace".
        unmatched
            "raise", or "drop" rows without a bag, rows of bags without an entry, bags without rows, and classes that
            are not in `classes`.
        impossible
            "raise" for bags whose counts do not fit their rows, or "suppress" these counts.
        keep_key
            Use columns of X that name the bags as features, too. They are found in `bags`, if that is a series or
            frame, by name and values. By default they are left out, as on the command line: a category for each bag
            explains its counts without any other feature. Keep keys that several bags share, such as the county of a
            precinct.

        Raises
        ------
        LLPBenchError
            The parts do not fit together. One line has the numbers.

        Warns
        -----
        LikelyIdentifier, BagColumn, NumbersAsText
            A column looks like an identifier, like a name or the counts of bags, or like numbers written as text.
        FewPositives
            Positives are rare. The method is then fitted two or three more times, and its probabilities are calibrated
            to held-out bags.
        CollapsedNetwork, SamePredictions
            A network, or a direct method, gives all rows the same probabilities.
        DoubtfulFit
            The bags show that "auto" may be wrong about rows.
        """
        given = read_training_set(
            X,
            bags,
            proportions=proportions,
            counts=counts,
            classes=classes,
            sizes=sizes,
            sampled=sampled,
            as_shares=as_shares,
            noise=noise,
            noise_kind=noise_kind,
            unmatched=unmatched,
            impossible=impossible,
            keep_key=keep_key,
            numbers=numbers_for(self._method, self.encoder, self.numbers),
        )
        columns, train, known = given.columns, given.train, given.known
        number = len(given.classes)
        held_out = calibrated = None
        with self._threads(len(train.bag_of_row)):
            predictor = self._fitted(train, columns.cardinalities)
            step = -(-len(train.bag_of_row) // _TRIED)
            tried = self._probabilities(predictor, Rows(*(part[::step] for part in train.rows)), number)
            rare, evidence = is_rare(known), None
            if has_rare_class(known) and self._method != YARDSTICK:
                if rare:
                    held_out = self._held_out_predictions(known, columns.cardinalities)
                calibrated = calibration(known, self._probabilities(predictor, known.rows, number), held_out)
                evidence = calibrated.evidence if rare else None
            doubts = doubts_of(predictor, known.rows, known.counts, evidence) if isinstance(predictor, Union) else None
        if isinstance(predictor, NetworkPredictor) and (told := collapse_warning(tried)):
            warnings.warn(told, CollapsedNetwork, stacklevel=2)
        elif (told := sameness_warning(tried)) and not (rare or doubts or self._method == YARDSTICK):
            warnings.warn(told, SamePredictions, stacklevel=2)
        if rare and (told := few_positives_warning(known, given.classes, calibrated)):
            warnings.warn(told, FewPositives, stacklevel=2)

        self.classes_ = np.array(given.classes)
        self._positive = given.order.index(number - 1) if given.nameless else number - 1
        self._order = [given.order.index(column) for column in range(number)]
        self.n_features_in_ = len(columns.names)
        if isinstance(X, pd.DataFrame) and all(isinstance(name, str) for name in X.columns):
            self.feature_names_in_ = np.array(columns.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.key_features_ = [*given.keys]
        self.bags_ = _objects(given.bags)
        self.bag_counts_, self.bag_sizes_ = train.counts, train.sizes
        self._deviation = train.noise
        self.left_out_ = given.left_out
        self._columns, self._predictor = columns, predictor
        self._known = known
        self._table = None if sampled or as_shares else by_bag(proportions, counts)
        self.reading_: dict[str, Any] = {}
        self._of_known_bags: KnownBags | None = None  # learned when it is first asked for
        self._held_out = held_out
        self._calibration = calibrated
        self.doubts_: Doubts | None = doubts
        if self.doubts_ is not None and self.doubts_.warning:
            warnings.warn(self.doubts_.warning, DoubtfulFit, stacklevel=2)
        return self

    @property
    def text_features_(self) -> list[str]:
        """Features that were texts in `fit`. Files must be read without converting these columns."""
        self._demand_fitted()
        return self._columns.texts

    @property
    def numeric_features_(self) -> list[str]:
        """The features that were numbers in `fit`."""
        self._demand_fitted()
        return list(self._columns.numeric)

    @property
    def _method(self) -> str:
        return AUTO if self.method == "auto" else self.method

    def _fitted(self, train: BaggedRows, cardinalities: tuple[int, ...], ensemble: int | None = None) -> Predictor:
        training = NetworkTraining(
            encoder=self.encoder,
            encoder_params=self.encoder_params or {},
            pretraining=self.pretraining,
            pretraining_params=self.pretraining_params or {},
            protocol=Protocol(self.epochs, self.patience, self.bags_per_step),
            validation=self.validation,
            device=self.device,
            numbers=numbers_for(self._method, self.encoder, self.numbers),
        )
        return fit_members(
            self._method,
            self.params or {},
            train,
            cardinalities,
            ensemble=self.ensemble if ensemble is None else ensemble,
            seed=self.random_state,
            training=training,
        )

    def predict_proba(self, X: Any, bags: Any = None) -> FloatArray:
        """[rows, classes] probabilities of rows by their features and, where `bags` are given, by their bag.

        What made a bag of `fit` what it is, and no feature says, its new rows share: their logits are moved by the
        bag's random effect, as its counts tell it, hardly any in a small bag. How large effects are, and how far rows
        of a bag differ, is learned from bags that the method is fitted without: it is fitted two or three times more
        when this, `disaggregate` or `save` is first called. Rows of other bags go by features alone; if these are half
        of the rows or more, a line warns of it (`UnknownBags`). For the very rows that a bag's counts are of:
        `disaggregate`.
        """
        proba = self._predicted(self._rows(X, fewest=0))
        if bags is None or not len(proba):
            return proba
        labels = read_bag_labels(bags, X)
        place = labels.among(self.bags_.tolist())
        inside = place >= 0
        if labels.names and not inside.any() and _kinds(labels.names).isdisjoint(_kinds(self.bags_)):
            raise LLPBenchError(
                f"bag labels look like {labels.names[0]!r}, but fit saw labels like {self.bags_[0]!r}; none match. "
                "Give labels of the same type."
            )
        if told := unknown_bags_warning(labels, inside, self.bags_):
            warnings.warn(told, UnknownBags, stacklevel=2)
        return self._known_bags()(proba, place)

    def predict(self, X: Any, bags: Any = None) -> Any:
        """[rows] the likeliest class of each, with `bags` as in `predict_proba`."""
        proba = self.predict_proba(X, bags)
        return self.classes_[proba.argmax(axis=1)]

    def disaggregate(self, X: Any, bags: Any, *, proportions: Any = None, counts: Any = None) -> FloatArray:
        """[rows, classes] probabilities that add up to the counts of each bag: X holds whole bags.

        Without `proportions` and `counts` (as in `fit`; columns without names in the order of those of `fit`), the bags
        are those of `fit`, with as many rows. The rows of a
        bag whose counts are suppressed have their predictions. Noisy counts, of a model whose `fit` was told of noise,
        are first made possible: what is negative is 0, and all is scaled to the bag's rows.
        """
        return added_up(*self._whole_bags(X, bags, proportions, counts), self._known_bags().spread)

    def assign(self, X: Any, bags: Any, *, proportions: Any = None, counts: Any = None) -> Any:
        """[rows] classes, in each bag exactly as many of each as its counts say, the likeliest together.

        As `disaggregate`; fractional counts are rounded, largest remainders first. The rows of a bag whose counts are
        suppressed have their likeliest class.
        """
        return self.classes_[assigned_labels(*self._whole_bags(X, bags, proportions, counts))]

    def disaggregate_and_assign(
        self, X: Any, bags: Any, *, proportions: Any = None, counts: Any = None
    ) -> tuple[FloatArray, Any]:
        """What `disaggregate` and `assign` return, from one prediction of the rows."""
        found = self._whole_bags(X, bags, proportions, counts)
        return added_up(*found, self._known_bags().spread), self.classes_[assigned_labels(*found)]

    def predict_proportions(self, X: Any, bags: Any) -> pd.DataFrame:
        """The mean prediction of the rows of each bag: a frame by bag, with a column a class."""
        proba = self.predict_proba(X)
        labels = read_bag_labels(bags, X)
        inside = labels.of_row >= 0
        sums = np.stack(
            [np.bincount(labels.of_row[inside], column[inside], len(labels.names)) for column in proba.T], 1
        )
        index = pd.Index(_objects(labels.names), tupleize_cols=False, name="bag").infer_objects()
        return pd.DataFrame(sums / labels.sizes[:, None], index=index, columns=self.classes_)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows whose class `y` is predicted; for labels of bags `y`, what `bag_scorer` returns.

        So scikit-learn's model selection works without `scoring=`. Raises `LLPBenchError` if `y` holds anything else.
        """
        self._demand_fitted()
        found, known, bags = pd.unique(np.asarray(y).ravel()).tolist(), set(self.classes_.tolist()), self._named_bags()
        if bags.issuperset(found) and (not known.issuperset(found) or len(found) == 1):
            if known.issuperset(found):
                raise LLPBenchError(f"y must be classes or bags, but {found[0]!r} is both. Use scoring=bag_scorer.")
            return bag_scorer(self, X, y)
        if other := [label for label in found if label not in known]:
            raise LLPBenchError(
                f"y must be classes ({self.classes_.tolist()}) or bags of fit, got {other[0]!r}. "
                "To score other bags, use score_bags with counts=."
            )
        return float(super().score(X, y, sample_weight))

    def score_bags(
        self, X: Any, bags: Any, *, proportions: Any = None, counts: Any = None, unmatched: str = "raise"
    ) -> dict[str, float]:
        """Return how well mean predictions meet what is known of bags, best of bags that `fit` has not learned from.

        Every coarse-grained criterion by name: L1 distance and KL divergence (smaller is better), mPIoU and log
        likelihood (larger is better). No label is needed. Without `proportions` and `counts`, those given to `fit` are
        used, which may be of more bags. Noisy counts as in `disaggregate`; `unmatched` as in `fit`: with "drop"
        `counts` may be of more bags than X.
        """
        rows = self._rows(X)
        if proportions is not None or counts is not None:
            labels, found = self._given(X, bags, proportions, counts, unmatched)
        elif self._table is not None:
            labels, found = self._given(X, bags, unmatched="drop", **self._table)
            if unmatched == "raise":
                _demand_bags(labels)
        else:
            labels = read_bag_labels(bags, X)
            found = self._counts_of_fit(labels)
        inside = labels.of_row >= 0
        if not inside.all() and unmatched == "drop":
            rows, labels = Rows(*(each[inside] for each in rows)), replace(labels, of_row=labels.of_row[inside])
        _demand_bags(labels)
        whole = BaggedRows(rows, rows_of_bags(labels.of_row, len(labels.names)), found)
        if not whole.known.any():
            raise LLPBenchError(
                f"at least one bag must have known counts, got {plural(len(labels.names), 'bag')} without."
            )
        return coarse_criteria(self._predicted(rows), whole)

    def _named_bags(self) -> set[Hashable]:
        """The bags of `fit`, and others whose counts it was given."""
        if self._table is None:
            return set(self.bags_.tolist())
        return {*self.bags_.tolist(), *bags_of(self._table)}

    def set_params(self, **params: Any) -> Self:
        """Set arguments, by scikit-learn's contract; `params__strength` sets one value of the dictionary `params`."""
        super().set_params(**without_nested(vars(self), params))
        return self

    def effects(self, label: Hashable = None) -> FeatureEffects:
        """What the model says of each feature, with its uncertainty, on a class (default: the last), in their order.

        `effects().strongest(5)` picks. What is returned names the class. Raises `LLPBenchError` for a method that tells
        none.
        """
        self._demand_fitted()
        known = self.classes_.tolist()
        if label is not None and label not in known:
            raise LLPBenchError(f"label must be one of the classes {known}, got {label!r}.")
        if not isinstance(self._predictor, Explained):
            raise LLPBenchError(f"method {self.method!r} has no effects, nor has an ensemble. Use method='bag-gp'.")
        place = len(known) - 1 if label is None else known.index(label)
        found = self._columns.named(self._predictor.effects(place))
        return FeatureEffects(replace(each, label=known[place]) for each in found)

    def save(self, folder: str | Path) -> None:
        """Write the fitted model to a folder, without pickle: estimates, names of columns, categories and bags, counts
        of bags, and no row. Raises `LLPBenchError` for a method whose models cannot be saved."""
        self._demand_fitted()
        names = getattr(self, "feature_names_in_", None)
        content = {
            "settings": {
                name: dict(value) if isinstance(value, Mapping) else value
                for name, value in self.get_params().items()
                if name != "device"  # of this machine
            },
            "classes": self.classes_.tolist(),
            "positive": self._positive,
            "order": self._order,
            "features": self.n_features_in_,
            "names": None if names is None else list(names),
            "bags": self.bags_.tolist(),
            "counts": self.bag_counts_,
            "deviation": self._deviation,
            "sizes": self.bag_sizes_,
            "known_bags": self._known_bags(),
            "left_out": self.left_out_,
            "reading": self.reading_,
            "keys": self.key_features_,
            "calibration": self._calibration,
            "doubts": self.doubts_,
            "columns": self._columns,
            "predictor": self._predictor,
        }
        write_model(Path(folder), self._method, content)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """A model that `save` has written, with the same predictions. Raises `LLPBenchError` for anything else."""
        content = read_model(Path(folder))
        try:
            return cls._of(content)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise LLPBenchError(
                f"the model in {str(folder)!r} cannot be read: {one_line(error)}. Fit it again."
            ) from error

    @classmethod
    def _of(cls, content: dict[str, Any]) -> Self:
        """A model from what `save` has written."""
        model = cls(**content["settings"])
        model.classes_ = np.array(content["classes"])
        model._positive = content["positive"]
        model._order = content["order"]
        model.n_features_in_ = content["features"]
        if content["names"] is not None:
            model.feature_names_in_ = _objects(content["names"])
        model.bags_, model._table = _objects(content["bags"]), None
        model.bag_counts_, model.bag_sizes_ = content["counts"], content["sizes"]
        model._deviation = content["deviation"]
        model._columns, model._predictor = content["columns"], content["predictor"]
        model._of_known_bags = content["known_bags"]
        model.key_features_, model._calibration = content["keys"], content["calibration"]
        model.reading_ = content["reading"]
        model.left_out_, model.doubts_ = content["left_out"], content["doubts"]
        return model

    def _demand_fitted(self) -> None:
        if not hasattr(self, "_predictor"):
            raise UnfittedError("this LLPClassifier is not fitted yet. Call fit with rows, bags and counts= first.")

    def _rows(self, features: Any, fewest: int = 1) -> Rows:
        self._demand_fitted()
        frame = as_frame(features, fewest=fewest)
        names = self._columns.names
        frame = frame.drop(columns=[name for name in self.key_features_ if name in frame.columns and name not in names])
        if not isinstance(features, pd.DataFrame) and not {*names} & {*frame.columns}:
            raise LLPBenchError(
                f"X is an array, whose columns have no names; fit was given a frame with {', '.join(names[:5])}"
                f"{' and others' if len(names) > 5 else ''}. Give a frame with these columns."
            )
        rows: Rows = self._columns(frame)
        return rows

    def _predicted(self, rows: Rows) -> FloatArray:
        if not len(rows.numeric):
            return np.zeros((0, self.bag_counts_.shape[1]))
        with self._threads(len(rows.numeric)):
            proba = self._probabilities(self._predictor, rows, self.bag_counts_.shape[1])
        return proba if self._calibration is None else self._calibration(proba)

    def _probabilities(self, predictor: Predictor, rows: Rows, classes: int) -> FloatArray:
        """Raises `LLPBenchError` for a method, of somebody's own most likely, that predicts something else."""
        with own_code(self._method):
            made = predictor.on(rows, self.device) if isinstance(predictor, NetworkPredictor) else predictor(rows)
        try:
            return probabilities(made, len(rows.numeric), classes)
        except ValueError as error:
            raise LLPBenchError(f"method {self.method!r} gives no probabilities: {error}.") from error

    def _threads(self, rows: int) -> AbstractContextManager[None]:
        number = self.n_jobs
        if number is not None and not (isinstance(number, int | np.integer) and (number == -1 or number >= 1)):
            raise LLPBenchError(f"n_jobs must be None, -1 or a whole number from 1, got {number!r}")
        if number is None:
            number = 1 if rows <= _SMALL else -1
        return limit_threads(int(number)) if number > 0 else nullcontext()

    def _known_bags(self) -> KnownBags:
        """What the bags of `fit` say of their rows."""
        if self._of_known_bags is None:
            known = np.asarray(~np.isnan(self.bag_counts_).any(axis=1))
            held_out = self._held_out
            if held_out is None:
                with self._threads(len(self._known.bag_of_row)):
                    held_out = self._held_out_predictions(self._known, self._columns.cardinalities)
            if held_out is not None and self._calibration is not None:
                held_out = self._calibration(held_out)
            learned = learn_known_bags(self._known, self._predicted(self._known.rows), held_out)
            self._of_known_bags = of_all_bags(learned, known)
        return self._of_known_bags

    def _held_out_predictions(self, known: BaggedRows, cardinalities: tuple[int, ...]) -> FloatArray | None:
        """[rows, classes] of bags of known counts, each by models that were fitted without it; None of few bags."""

        def learn(part: BaggedRows, rows: Rows) -> FloatArray:
            return self._probabilities(self._fitted(part, cardinalities, ensemble=1), rows, part.counts.shape[1])

        return held_out_predictions(known, learn, self.random_state) if len(known.sizes) >= FEWEST_BAGS else None

    def _given(
        self, features: Any, bags: Any, proportions: Any, counts: Any, unmatched: str = "raise"
    ) -> tuple[BagLabels, FloatArray]:
        """The bags of rows, and their counts [bags, classes], in the order of `classes_`."""
        labels = read_bag_labels(bags, features)
        table = replace(read_bag_table(proportions, counts, labels), at_fit=False)
        known = self.classes_.tolist()
        if table.columns and len(table.columns) > 1:
            known = None
        elif table.values.shape[1] > 1:  # an array or lists, as fit was given: what names the columns is their order
            known = [known[place] for place in self._order]
        elif len(known) == 2:  # the one that is counted comes last: it is named, or else the one of `fit`
            only = table.columns[0] if table.columns else None
            positive = known.index(only) if only in known else self._positive
            known = [known[1 - positive], known[positive]]
        named = table.classes(known)
        if set(named) != set(self.classes_.tolist()):
            raise LLPBenchError(f"the {table.what} must be of the classes {self.classes_.tolist()}, got {named}.")
        place = [named.index(label) for label in self.classes_.tolist()]
        labels = matched(labels, table, unmatched)
        return labels, table.counts(labels, self._deviation)[:, place]

    def _whole_bags(
        self, features: Any, bags: Any, proportions: Any, counts: Any
    ) -> tuple[FloatArray, BaggedRows, IntArray]:
        """Predictions of all rows, the bags whose counts are known, and the rows [rows of these] they hold."""
        rows = self._rows(features)
        if proportions is None and counts is None:
            labels = read_bag_labels(bags, features)
            found = self._counts_of_fit(labels)
        else:
            labels, found = self._given(features, bags, proportions, counts)
        _demand_bags(labels)
        whole = BaggedRows(rows, rows_of_bags(labels.of_row, len(labels.names)), found)
        chosen = np.flatnonzero(whole.known[whole.bag_of_row])
        return self._predicted(rows), whole.where_known(), chosen

    def _counts_of_fit(self, labels: BagLabels) -> FloatArray:
        place = {name: index for index, name in enumerate(self.bags_.tolist())}
        lacking = [name for name in labels.names if name not in place]
        if lacking:
            raise LLPBenchError(
                f"{plural(len(lacking), 'bag')} ({', '.join(map(repr, lacking[:5]))}) "
                f"{verb(len(lacking), 'was', 'were')} not in fit. Give counts= or proportions= of all bags."
            )
        at = [place[name] for name in labels.names]
        other = np.flatnonzero(self.bag_sizes_[at] != labels.sizes)
        if len(other):
            first = other[0]
            raise LLPBenchError(
                f"bag {labels.names[first]!r} has {plural(int(labels.sizes[first]), 'row')}, but had "
                f"{int(self.bag_sizes_[at[first]]):,} in fit; so {plural(len(other), 'bag')}. Give whole bags, or "
                "counts= of these; for new rows of known bags there is predict_proba(X, bags)."
            )
        return np.asarray(self.bag_counts_[at])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


def _kinds(names: Iterable[Hashable]) -> set[tuple[bool, ...]]:
    """Of labels of bags, whether each of their keys is a text."""
    return {tuple(isinstance(key, str) for key in (name if isinstance(name, tuple) else (name,))) for name in names}


def _demand_bags(labels: BagLabels) -> None:
    if alone := int((labels.of_row < 0).sum()):
        raise LLPBenchError(f"{plural(alone, 'row')} {verb(alone)} no bag. Leave them out.")


def _objects(names: Sequence[Hashable]) -> Any:
    """[names] objects, also where they are tuples"""
    array = np.empty(len(names), dtype=object)
    array[:] = names
    return array
