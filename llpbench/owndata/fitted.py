"""A fitted classifier: predictions of rows and of whole bags, estimates of groups, and scores without labels."""

# ruff: noqa: N803 (X is scikit-learn's name)

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import ClassifierMixin
from sklearn.exceptions import NotFittedError

from llpbench.blocks.assigning import assigned, log_of
from llpbench.core.bags import BaggedRows, BoolArray, FloatArray, Holdout, Rows
from llpbench.core.criteria import CRITERIA
from llpbench.core.effects import FeatureEffects
from llpbench.core.errors import LLPBenchError, argument, either, warn
from llpbench.core.metrics import holdout_criteria
from llpbench.core.text import plural, verb
from llpbench.data.bag_tables import BagLabels, BagTable, near_names, shown
from llpbench.data.reading_bags import as_pandas, read_bag_labels
from llpbench.owndata.bag_data import BagData
from llpbench.owndata.bag_effects import KnownBags, added_up, held_out_predictions, shows_features_help
from llpbench.owndata.columns import as_frame
from llpbench.owndata.fitting import MOST_PADDED, FitSettings
from llpbench.owndata.group_estimates import GroupEstimates, Groups
from llpbench.owndata.logit_draws import ProcessDraws
from llpbench.owndata.storing import FittedModel
from llpbench.owndata.weights import in_bags

_BAG_GP = argument("method='bag-gp'")
_OF_ALL = "counts= or proportions= of all bags of X", "their counts with --bags (a table of all bags in ROWS)"
_RISKS = ("dsq", "easyllp")
_MANY_UNKNOWN = 0.5
"""Share of rows without a known bag from which there is a warning."""


class UnfittedError(NotFittedError, LLPBenchError):  # type: ignore[misc]
    """A method was called before `fit`. It is scikit-learn's error and ours."""


class FittedClassifier(ClassifierMixin, FitSettings):  # type: ignore[misc]
    """Methods of a fitted `LLPClassifier`."""

    _known: BaggedRows  # training rows of known bags; a loaded model has none
    _held_out: FloatArray | None = None  # [rows] their calibrated predictions by models without their bags
    _weighted = _suppressing = False  # whether fit had weights, and ignored impossible counts; unknown if loaded

    def _hold(self, model: FittedModel) -> None:
        self._model, bags, names = model, model.bags, model.columns.names
        self._table: BagTable | None = None
        self.distinct_rows_: int | None = None
        self.classes_ = np.array(bags.classes)
        self.n_features_in_ = len(names)
        if model.named:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.bags_ = pd.Series(bags.names, dtype=object).to_numpy()
        self.bag_counts_, self.bag_sizes_, self.left_out_ = bags.counts, bags.sizes, bags.left_out
        self.key_features_, self.groupings_ = bags.keys, bags.groupings
        self.doubts_, self.reading_ = model.doubts, model.reading

    def predict_proba(self, X: Any, bags: Any = None) -> FloatArray:
        """Return probabilities [rows, classes] of rows, from features and, with `bags`, from the counts of their bags.

        With `bags`, logits of rows in bags of `fit` are shifted by a random effect of the bag, which is estimated from
        its counts. Sizes of effects are learned from held-out bags: the method is fitted two or three more times when
        this method, `disaggregate` or `save` is first called. Rows of other bags are predicted from features alone. If
        these are at least half of the rows, there is a warning. For rows that are part of the counts
        use `disaggregate`.
        """
        proba = self._predicted(self._rows(X, fewest=0))
        if bags is None or not len(proba):
            return proba
        labels, known = BagData.of(X, bags).labels, self.bags_.tolist()
        place = labels.among(known)
        warn("unknown bags", _unknown_bags(labels, place < 0, known))
        return self._known_bags()(proba, place)

    def predict(self, X: Any, bags: Any = None) -> Any:
        """Return the most probable class of each row [rows], with `bags` as in `predict_proba`."""
        proba = self.predict_proba(X, bags)
        return self.classes_[proba.argmax(axis=1)]

    def disaggregate(
        self, X: Any, bags: Any, *, proportions: Any = None, counts: Any = None, sample_weight: Any = None
    ) -> FloatArray:
        """Return probabilities [rows, classes] that add up to the counts of each bag. X must hold whole bags.

        Bags are those of `fit` with as many rows, or others with `proportions` or `counts` as in `fit`. Columns without
        names are in the order of those of `fit`. Rows of bags with suppressed counts have their predictions. Noisy
        counts (of a model fitted with noise) are first clipped at 0 and scaled to the rows of the bag. With
        `sample_weight` as in `fit`, sums of weights times probabilities are the counts of people.
        """
        data = BagData.of(X, bags, proportions=proportions, counts=counts, sample_weight=sample_weight)
        return self._adding_up(self._predicted(self._rows(X)), data)[0]

    def assign(self, X: Any, bags: Any, *, proportions: Any = None, counts: Any = None) -> Any:
        """Return the most probable classes [rows] whose numbers in each bag are its counts.

        Arguments are those of `disaggregate`. Fractional counts are rounded, largest remainders first. Rows of bags
        with suppressed counts have their most probable class.
        """
        data = BagData.of(X, bags, proportions=proportions, counts=counts)
        return self._adding_up(self._predicted(self._rows(X)), data)[1]

    def _adding_up(self, proba: FloatArray, data: BagData) -> tuple[FloatArray, Any]:
        """Return probabilities and labels that add up to counts of bags (labels: without weights)."""
        labels, found = self._whole_counts(data, data.table)
        nothing = np.empty((len(proba), 0))
        whole = BaggedRows(Rows(nothing, nothing, nothing), labels.index(), found)
        chosen, known = np.flatnonzero(whole.known[whole.bag_of_row]), whole.where_known()
        made = added_up(proba, known, chosen, self._known_bags().spread, labels.weights)
        classes = (proba if labels.weights is None else made).argmax(axis=1)
        if labels.weights is None and len(chosen):
            classes[chosen] = assigned(log_of(proba[chosen]), known)
        return made, self.classes_[classes]

    def estimate(
        self,
        X: Any,
        bags: Any,
        by: Any,
        *,
        proportions: Any = None,
        counts: Any = None,
        sample_weight: Any = None,
        among: Sequence[Hashable] | None = None,
    ) -> pd.DataFrame:
        """Return expected counts and shares of classes in groups of rows, with intervals: ecological inference.

        X must hold whole bags, as in `disaggregate`. Groups of a bag add up to its counts.

        Parameters
        ----------
        X
            Features, and columns of `by` that are not features.
        bags
            [rows] label of each row's bag, as in `fit`.
        by
            Groups: a column of X, a list of columns (each combination is a group), or a label for each row.
        proportions, counts
            Proportions or counts of the bags, as in `fit`. Default: those of `fit`.
        sample_weight
            [rows] number of people that each row stands for, as in `fit`. `rows` and `count` are then of people.
        among
            Classes that have lines, and shares among these instead of all rows: those who voted, for example.

        Returns
        -------
        DataFrame
            A line for each group and class in all bags (the bag is "all"), then one for each bag, group and class:

            - the columns that name the bag (or `bag`), the columns of `by` (or `group`), and `class`;
            - `rows`: number of rows of the group;
            - `count`, `share`: expected number of rows of the class, and this number divided by `rows`;
            - `count_lower`, `count_upper`, `share_lower`, `share_upper`: ends of the 95 % interval;
            - `count_min`, `count_max`, `share_min`, `share_max`: bounds of Duncan and Davis. The counts of bags allow
              no value outside them.

        Notes
        -----
        Intervals include the uncertainty of the model, unknown effects of groups, and the randomness of rows. For
        `bag-gp` and "auto", the first part is from the posterior of `bag-gp`. Other methods have none: their groups are
        estimated only if features and groups have few combinations of values.

        On eight tables with hidden labels, intervals of `bag-gp` contain the truth for 99 % of the groups in all bags
        (docs/group-estimates.md). For counts with noise, or of other people than the rows, the bounds are 0 and `rows`.

        Warns
        -----
        LLPBenchWarning
            Intervals are nearly as wide as the bounds, or shares of groups change with the composition of bags.
        """
        self._require_fitted()
        X = as_pandas(X)  # noqa: N806
        groups, features, name = Groups.read(by, X), X, str(getattr(bags, "name", None) or "bag")
        if isinstance(X, pd.DataFrame):
            needless = {*groups.labels.columns} - {*self._model.columns.names, *self.key_features_}
            features = X.drop(columns=[name for name in X.columns if name in needless])
        data = BagData.of(X, bags, proportions=proportions, counts=counts, sample_weight=sample_weight)
        return self._estimate(self._rows(features), data, groups, among=among, name=name)

    def _estimate(
        self, rows: Rows, data: BagData, groups: Groups, *, among: Sequence[Hashable] | None, name: str = "bag"
    ) -> pd.DataFrame:
        """Return the estimates of `estimate`. `rows` may be in files; those of about 2 million rows stay in memory."""
        labels, found = self._whole_counts(data, data.table)
        whole, copies, weights = in_bags(rows, labels, found, groups.of_row)
        warn("known groups", self._told_of_known_groups(groups, labels))
        there, of_row = np.unique(groups.of_row[copies.places], return_inverse=True)  # a group may have no weight
        groups = Groups(of_row, groups.labels.iloc[there].reset_index(drop=True))
        warn("rounded weights", copies.warning(len(rows.numeric)))
        model, facts, classes = self._model, self._model.bags, self.classes_.tolist()
        wanted = {*(classes if among is None else among)}
        if wanted - {*classes} or len(wanted) < 2:
            raise LLPBenchError(f"{argument('among')} must name two classes or more of {classes}, got {among!r}.")
        some = [place for place, label in enumerate(classes) if label in wanted]
        chosen, names = some if len(some) < len(classes) else None, [str(each) for each in labels.columns or [name]]
        sums = weights, copies.ratio, labels.sizes * copies.ratio
        estimates = GroupEstimates(groups, labels.names, names, classes, chosen, *sums, self.random_state)
        exact = whole.known.all() and facts.of_rows and not facts.deviation
        if exact and (table := estimates.from_table(whole)) is not None:
            return table
        if (draws := ProcessDraws.of(model.predictor)) is None:
            needs = f"estimate needs a model of 'bag-gp' or auto, got one of {self.method!r}"
            raise LLPBenchError(f"{needs}, unless features and groups have few combinations of values. Use {_BAG_GP}.")
        return estimates.from_draws(whole, draws, self._known_bags(), self._predicted, facts)

    def _told_of_known_groups(self, groups: Groups, labels: BagLabels) -> str:
        counts, bags = self.bag_counts_, {name: place for place, name in enumerate(self.bags_.tolist())}
        places = {name: bags[name] for name in bags.keys() - {*labels.names} if not np.isnan(counts[bags[name]]).any()}
        keys = groups.labels.itertuples(index=False, name=None)
        known = [places[name] for key in keys if (name := key[0] if len(key) == 1 else key) in places]
        if not known:
            return ""
        first, label = known[0], self.classes_.tolist()[-1]
        told = f"{plural(len(known), 'group')} {verb(len(known), 'is a bag', 'are bags')} of fit with known counts: "
        told += f"{counts[first, -1]:,.10g} of {self.bag_sizes_[first]:,.10g} are {label!r} in {self.bags_[first]!r}"
        return f"{told}. These estimates use only the bags given here."

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy if `y` [rows] are classes, or the score of `bag_scorer` if `y` are labels of bags.

        This makes scikit-learn's model selection work without `scoring=`. Raises `LLPBenchError` for anything else.
        """
        self._require_fitted()
        found = {*(read_bag_labels(y, X).names if np.ndim(y) == 2 else np.ravel(y).tolist())}
        known = {*self.classes_.tolist()}
        bags = {*self.bags_.tolist(), *(() if self._table is None else self._table.names)}
        if found <= bags and (not found <= known or len(found) == 1):
            if found <= known:
                raise LLPBenchError(f"y must be classes or bags, but {found.pop()!r} is both. Use scoring=bag_scorer.")
            return bag_scorer(self, X, y, sample_weight)
        if other := found - known:
            must = f"y must be classes ({self.classes_.tolist()}) or bags of fit, got {other.pop()!r}"
            raise LLPBenchError(f"{must}. To score other bags, use score_bags with counts=.")
        return float(super().score(X, y, sample_weight))

    def score_bags(
        self,
        X: Any,
        bags: Any,
        *,
        proportions: Any = None,
        counts: Any = None,
        unmatched: str = "raise",
        sample_weight: Any = None,
    ) -> dict[str, float]:
        """Return how well mean predictions agree with known counts of bags. Use bags that were not in `fit`.

        The result has all coarse-grained criteria by name: L1 distance and KL divergence (smaller is better), mPIoU and
        log likelihood (larger is better). No label is needed. Without `proportions` and `counts`, those given to `fit`
        are used. With `unmatched="drop"` they may be of more bags than X. Noisy counts are treated as in
        `disaggregate`, and `sample_weight` is that of `fit`. Without it there is a warning, and only shares are used.
        """
        rows = self._rows(X)
        known = {"proportions": proportions, "counts": counts, "sample_weight": sample_weight}
        data = BagData.of(X, bags, **known, unmatched=unmatched)
        table, advice = data.table, ""
        if table is None and (table := self._table) is not None:
            if table.ends is not None and {*data.labels.names} <= {*self.bags_.tolist()}:
                table = None  # the expected counts of ranges are those of the bags of fit
            elif self._weighted and data.labels.weights is None:
                table, advice = table.shares(), f" Give {argument('sample_weight=')} of these rows."
                warn("no weights", f"bags are scored without the weights of fit.{advice}")
        labels, found = self._whole_counts(data, table, data.drop_unmatched)
        whole, *_ = in_bags(rows, labels, found)
        if not whole.known.any():
            raise LLPBenchError(f"at least one bag must have known counts, got {len(labels.names):,} without.{advice}")
        return coarse_criteria(self._predicted(whole.rows), whole)

    def effects(self, label: Hashable = None) -> FeatureEffects:
        """Return the effect of each feature on a class (default: the last) with its uncertainty, in order of features.

        `effects().strongest(5)` selects the strongest. Raises `LLPBenchError` for a method that gives no effects.
        """
        self._require_fitted()
        known, effects = self.classes_.tolist(), getattr(self._model.predictor, "effects", None)
        if label is not None and label not in known:
            raise LLPBenchError(f"label must be one of the classes {known}, got {label!r}.")
        if effects is None:
            raise LLPBenchError(f"a model of {self.method!r} has no effects. Use {_BAG_GP}, without an ensemble.")
        label = known[-1] if label is None else label
        found = self._model.columns.named(effects(known.index(label)))
        return FeatureEffects(replace(each, label=label) for each in found)

    def _require_fitted(self) -> None:
        if not hasattr(self, "_model"):
            raise UnfittedError("this LLPClassifier is not fitted yet. Call fit with rows, bags and counts= first.")

    def _rows(self, features: Any, fewest: int = 1) -> Rows:
        self._require_fitted()
        features, names = as_pandas(features), self._model.columns.names
        frame = as_frame(features, fewest=fewest)
        frame = frame.drop(columns=[name for name in self.key_features_ if name in frame.columns and name not in names])
        if not isinstance(features, pd.DataFrame) and not {*names} & {*frame.columns}:
            given = f"fit was given a frame with {', '.join(names[:5])}{' and others' * (len(names) > 5)}"
            raise LLPBenchError(f"{argument('X')} is an array, but {given}. Give a frame with these columns.")
        return self._model.columns(frame)

    def _predicted(self, rows: Rows) -> FloatArray:
        if not len(rows.numeric):
            return np.zeros((0, len(self.classes_)))
        with self._threads(len(rows.numeric)):
            return self._calibrated(self._probabilities(self._model.predictor, rows, len(self.classes_)))

    def _calibrated(self, proba: FloatArray) -> FloatArray:
        return proba if self._model.calibration is None else self._model.calibration(proba)

    def _known_bags(self) -> KnownBags:
        if self._model.known_bags is None:
            if self._held_out is None:
                with self._threads(len(self._known.bag_of_row)):
                    held_out = self._held_out_predictions(self._known, self._model.columns.cardinalities)
                self._held_out = None if held_out is None else self._calibrated(held_out)
            learned = KnownBags.learn(self._known, self._predicted(self._known.rows), self._held_out)
            effects = np.full(self.bag_counts_.shape, np.nan)
            effects[~np.isnan(self.bag_counts_).any(axis=1)] = learned.effects
            self._model = replace(self._model, known_bags=replace(learned, effects=effects))
        assert self._model.known_bags is not None
        return self._model.known_bags

    def features_help(self) -> bool | None:
        """Return whether held-out bags show that features help: None with few bags, and for a loaded model.

        They do if held-out predictions of bags are significantly better than the mean share.
        """
        self._require_fitted()
        self._known_bags()
        return None if self._held_out is None else shows_features_help(self._known, self._held_out)

    def _held_out_predictions(self, known: BaggedRows, cardinalities: tuple[int, ...]) -> FloatArray | None:
        def learn(part: BaggedRows, rows: Rows) -> FloatArray:
            return self._probabilities(self._predictor(part, cardinalities, 1), rows, part.counts.shape[1])

        return held_out_predictions(known, learn, self.random_state)

    def _counts_of(self, data: BagData, table: BagTable | None, drop: bool = False) -> tuple[BagLabels, FloatArray]:
        """Return the bags of rows, and their counts [bags, classes] in the order of `classes_`."""
        labels, own = data.labels, data.table is None
        if data.table is not None and data.table.ends is not None:
            advice = either("Give NaN for unknown values.", "Leave unknown values empty.")
            raise LLPBenchError(f"counts as ranges work only in fit. {advice}")
        listed, there = dict.fromkeys(self.bags_.tolist() if table is None else table.names), {*labels.names}
        lacking = [name for name in labels.names if name not in listed]
        if lacking and own and (table is None or not drop):
            near = near_names(lacking, [name for name in listed if name not in there])
            unknown = f"{plural(len(lacking), 'bag')} ({shown(lacking)}) {verb(len(lacking), 'was', 'were')} not in fit"
            raise LLPBenchError(f"{unknown}{f' ({near})' * bool(near)}. Give {either(*_OF_ALL)}.")
        if table is None:
            return labels, self._counts_of_fit(labels)
        if own and table.is_counts:
            self._counts_of_fit(data.some({*self.bags_.tolist()})[0].labels)  # refuses parts of bags
        table, classes, facts = replace(table, at_fit=False), self.classes_.tolist(), self._model.bags
        known: list[Hashable] | None = classes
        if table.columns and len(table.columns) > 1:
            known = None
        elif table.values.shape[1] > 1:  # an array or lists, as in fit: columns have no names, only an order
            known = [classes[place] for place in facts.order]
        elif len(classes) == 2:  # the counted class is last
            known = [classes[1 - facts.positive], classes[facts.positive]]
        named = table.classes(known)
        if {*named} != {*classes}:
            raise LLPBenchError(f"the {table.what} must be of the classes {classes}, got {named}.")
        labels = labels.matched(table, drop_unmatched=drop or own)
        found = table.counts(labels, facts.deviation, suppress=own and self._suppressing)
        return labels, found[:, [named.index(label) for label in classes]]

    def _whole_counts(self, data: BagData, table: BagTable | None, drop: bool = False) -> tuple[BagLabels, FloatArray]:
        labels, found = self._counts_of(data, table, drop)
        if (alone := int((labels.of_row < 0).sum())) and not drop:
            raise LLPBenchError(f"{plural(alone, 'row')} {verb(alone)} no bag. Leave them out.")
        labels.require_people()
        return labels, found

    def _counts_of_fit(self, labels: BagLabels) -> FloatArray:
        place = {name: index for index, name in enumerate(self.bags_.tolist())}
        at = [place[name] for name in labels.names]
        if len(other := np.flatnonzero(np.abs(self.bag_sizes_[at] - labels.sizes) > 1e-9 * labels.sizes)):
            name, rows, before = labels.names[other[0]], labels.sizes[other[0]], self.bag_sizes_[at[other[0]]]
            wrong = f"bag {name!r} has {rows:,.10g} {verb(rows, 'row', 'rows')}, but had {before:,.10g} in fit"
            weights = f", {argument('sample_weight=')} if rows stand for several people" * (labels.weights is None)
            ways = f"Give whole bags{weights}, or {either('counts= of these', '--bags, a table of these')}. For new "
            ways += f"rows of known bags {either('use predict_proba(X, bags)', 'leave --whole-bags out')}."
            raise LLPBenchError(f"{wrong} ({plural(len(other), 'such bag')} in all). {ways}")
        return np.asarray(self.bag_counts_[at])


def _unknown_bags(labels: BagLabels, strange: BoolArray, known: Sequence[Hashable]) -> str:
    """Return a message if at least half of the rows are in `strange` bags; refuse labels of another type."""
    if labels.names and strange.all() and _kinds(labels.names).isdisjoint(_kinds(known)):
        wrong = f"bag labels look like {labels.names[0]!r}, but fit saw labels like {known[0]!r}"
        raise LLPBenchError(f"{wrong}; none match. Give labels of the same type.")
    if strange.mean() < _MANY_UNKNOWN:
        return ""
    examples = [labels.names[place] for place in pd.unique(labels.of_row[strange]) if place >= 0][:2]
    such = f", such as {' and '.join(map(repr, examples))}" if examples else ""
    who = "all rows" if strange.all() else f"{strange.sum():,} of {plural(len(strange), 'row')}"
    none = "" if (labels.of_row[strange] >= 0).all() else ", or in no bag"
    told = f"{who} are in bags that were not in fit{such} (fit had {' and '.join(map(repr, known[:2]))}){none}"
    return f"{told}: they are predicted from features alone."


def _kinds(names: Sequence[Hashable]) -> set[tuple[bool, ...]]:
    """Return, for each key of the labels of bags, whether it is a text."""
    return {tuple(isinstance(key, str) for key in (name if isinstance(name, tuple) else (name,))) for name in names}


def coarse_criteria(proba: FloatArray, bags: BaggedRows) -> dict[str, float]:
    """Return coarse-grained criteria of predictions [rows, classes] by name: means over bags with known counts.

    Debiased risks are left out. They are no means over bags, because they compare each bag with all others.
    """
    known = np.flatnonzero(bags.known)
    order = known[np.argsort(-bags.sizes[known], kind="stable")]
    sums: dict[str, float] = defaultdict(float)
    while len(order):
        longest = int(bags.sizes[order[0]])
        alike = int((2 * bags.sizes[order] >= longest).sum())
        some, order = np.split(order, [min(alike, max(MOST_PADDED // (longest * proba.shape[1]), 1))])
        counts = bags.proportions[some] * bags.sizes[some, None]
        holdout = Holdout(bags.rows, bags.padded(some, longest), counts, labels=None)
        for name, value in holdout_criteria(proba, holdout).items():
            sums[name] += value * len(some)
    means = {name for name, each in CRITERIA.items() if each.regime == "coarse"}.difference(_RISKS)
    return {name: total / len(known) for name, total in sums.items() if name in means}


def bag_scorer(estimator: Any, X: Any, bags: Any, sample_weight: Any = None) -> float:
    """Return how well mean predictions agree with the counts of held-out bags; larger is better.

    The score is minus the KL divergence of `LLPClassifier.score_bags`. Use it as `scoring=` in scikit-learn's model
    selection. Pass bags as labels, and counts of all bags and `unmatched="drop"` to `fit`. The classifier may be the
    last step of a pipeline.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.model_selection import GridSearchCV, GroupKFold
    >>> from llpbench import LLPClassifier, bag_scorer
    >>> rows = pd.DataFrame({"age": [20, 30, 40, 50, 60, 70] * 4})
    >>> district = [row // 3 for row in range(24)]
    >>> search = GridSearchCV(
    ...     LLPClassifier("bag-mean-linear"),
    ...     {"params__strength": [0.1, 10.0]},
    ...     scoring=bag_scorer,
    ...     cv=GroupKFold(2),
    ... )
    >>> counts = {bag: 1 + bag % 2 for bag in range(8)}
    >>> search = search.fit(rows, district, groups=district, counts=counts, unmatched="drop")
    >>> bool(search.best_score_ < 0)
    True
    """
    steps = getattr(estimator, "steps", None)
    model = estimator if steps is None else estimator[-1]
    if not hasattr(model, "score_bags"):
        raise LLPBenchError(f"bag_scorer needs an LLPClassifier, got {type(model).__name__}.")
    rows = X if steps is None or len(steps) == 1 else estimator[:-1].transform(X)
    facts = {} if isinstance(bags, BagData) else {"unmatched": "drop", "sample_weight": sample_weight}
    return -float(model.score_bags(rows, bags, **facts)["kl"])
