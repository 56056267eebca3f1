"""`LLPClassifier`: any method of the benchmark on your own bags, as a scikit-learn estimator."""

# ruff: noqa: N803 (X is scikit-learn's name)

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import pandas as pd

from llpbench.blocks.distinct import Distinct
from llpbench.core.bags import Rows
from llpbench.core.errors import LLPBenchError, warn
from llpbench.owndata.bag_data import BagData
from llpbench.owndata.bag_effects import BagCalibration, few_positives_warning, rare_classes
from llpbench.owndata.count_ranges import CountRanges
from llpbench.owndata.doubts import Doubts, Union, sameness_warning
from llpbench.owndata.fitted import FittedClassifier
from llpbench.owndata.fitting import YARDSTICK, NetworkPredictor, is_network
from llpbench.owndata.storing import FittedModel
from llpbench.owndata.training_set import read_training_set

_NESTED = ("params", "encoder_params")
"""Arguments that are dictionaries: `params__strength` is `params={"strength": ...}`."""
_TRIED = 100
"""Number of rows that a newly fitted method must be able to predict."""


class LLPClassifier(FittedClassifier):
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
        Number of CPU threads. None uses one thread for up to 100,000 rows, and all cores beyond. -1 always uses all. Up
        to 100,000 rows, threads share only independent work, such as two members of "auto".

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
        [bags, classes] counts, NaN if suppressed; expected counts of ranges.
    bag_sizes_
        [bags] numbers of rows, or sums of their weights.
    left_out_
        Number of dropped "rows" (without a known bag) and "bags" (without rows), and of bags with "suppressed" or
        "impossible" counts.
    distinct_rows_
        Number of distinct rows if there are so few that each is computed only once; else None, as in a loaded model.
    groupings_
        Number of groupings of the rows.
    key_features_
        Columns of X that name bags or hold weights, and were not used as features.
    reading_
        How the command line read the file of rows: marks of "missing" values, and "decimals" by column.
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

    _ranges: CountRanges | None

    def fit(self, X: Any, bags: Any, **facts: Any) -> Self:
        """Fit the method to rows in bags.

        Parameters
        ----------
        X
            Frame or array [rows, features] of numbers, bools, texts or categories. Missing values are allowed.
        bags
            [rows] label of each row's bag, or `BagData`.
        facts
            Arguments of `BagData.read`, such as `counts`, if `bags` are labels.

        Raises
        ------
        LLPBenchError
            The arguments do not fit together. The message has the numbers.
        DataError
            Almost all values of a column are numbers, but a few are texts. Columns of dtype category may have both.

        Warns
        -----
        LLPBenchWarning
            Its `about` is "identifier", "bag column", "label", "numbers as text" or "extreme values" (of a column),
            "missing counts", "total" (of a class), "large noise", "one row per bag", "rounded weights", "few positives"
            (the method is then fitted two or three more times, and its probabilities are calibrated to held-out bags),
            "same predictions" (all rows have the same probabilities), or "doubts" (bags show that "auto" may be wrong
            about rows).
        """
        data = BagData.of(X, bags, several=True, **facts)
        if data.labels.copies > 1 and is_network(self.method):
            raise LLPBenchError(f"several groupings need a direct method, got {self._method!r}. Use method='bag-gp'.")
        X = data.rows(X)  # noqa: N806
        columns, train, of_bags, ranges = read_training_set(X, data, self._scaling())
        known, classes, held_out, calibrated = train.where_known(), of_bags.classes, None, None
        if ranges is not None:
            with self._threads(len(known.bag_of_row)):
                without_bag = self._held_out_predictions(known, columns.cardinalities)
            if without_bag is not None:
                train = ranges.refilled(train, without_bag)
                known, people = train.where_known(), of_bags.sizes / train.sizes
                of_bags.counts[ranges.bags] = (train.counts * people[:, None])[ranges.bags]
        with self._threads(len(train.bag_of_row)):
            predictor = self._predictor(train, columns.cardinalities, self.ensemble)
            step = -(-len(train.bag_of_row) // _TRIED)
            tried = self._probabilities(predictor, Rows(*(part[::step] for part in train.rows)), len(classes))
            (rare, calibrating), evidence = rare_classes(known), None
            if calibrating and self._method != YARDSTICK:
                held_out = self._held_out_predictions(known, columns.cardinalities) if rare else None
                fitted = self._probabilities(predictor, known.rows, len(classes))
                calibrated = BagCalibration.learn(known, fitted, held_out)
                evidence = calibrated.evidence if rare else None
            doubts = Doubts.of(predictor, known, evidence) if isinstance(predictor, Union) else None
        network = isinstance(predictor, NetworkPredictor)
        if network or not (rare or doubts or self._method == YARDSTICK):
            warn("same predictions", sameness_warning(tried, network=network))
        if rare:
            warn("few positives", few_positives_warning(known, classes, calibrated))

        named = isinstance(X, pd.DataFrame) and all(isinstance(name, str) for name in X.columns)
        facts = {"columns": columns, "named": named, "predictor": predictor, "bags": of_bags}
        self._hold(FittedModel(**facts, calibration=calibrated, doubts=doubts))
        same = Distinct.of_rows(train.rows)
        self.distinct_rows_ = None if same is None else len(same.first)
        self._known, self._ranges = known, ranges
        self._held_out = None if held_out is None else self._calibrated(held_out)
        self._table = data.table if data.table is None or data.counted == "rows" else data.table.shares()
        self._weighted, self._suppressing = data.labels.weights is not None, data.suppress_impossible
        warn("doubts", "" if doubts is None else doubts.warning)
        return self

    def set_params(self, **params: Any) -> Self:
        """Set arguments, as in scikit-learn. `params__strength` sets one value of the dictionary `params`."""
        for name in [name for name in params if name.partition("__")[0] in _NESTED and "__" in name]:
            argument, _, part = name.partition("__")
            params[argument] = {**(params.get(argument, vars(self)[argument]) or {}), part: params.pop(name)}
        super().set_params(**params)
        return self

    def save(self, folder: str | Path) -> None:
        """Write the fitted model to a folder, without pickle.

        The folder has estimates, names of columns, categories and bags, and counts of bags, but no rows. Raises
        `LLPBenchError` for a method whose models cannot be saved.
        """
        self._require_fitted()
        given = {name: value for name, value in self.get_params().items() if name != "device"}  # of the machine
        settings = {name: dict(value) if isinstance(value, Mapping) else value for name, value in given.items()}
        model = replace(self._model, known_bags=self._known_bags(), reading=self.reading_)
        model.write(Path(folder), self._method, settings)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read a model that `save` has written. Raises `LLPBenchError` for anything else.

        Load only what you trust: the model of another person may predict anything.
        """
        settings, model = FittedModel.read(Path(folder))
        estimator = cls(**settings)
        estimator._hold(model)
        return estimator

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = replace(tags.input_tags, allow_nan=True, categorical=True, string=True)
        return tags
