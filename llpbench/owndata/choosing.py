"""Comparison of methods on your bags by repeated cross-validation over whole bags, without labels.

Each method is fitted to all folds but one. The criterion is the KL divergence of its mean predictions from the
proportions of the held-out bags.

Folds share most of their training bags, so their differences are not independent. Intervals are those of Nadeau &
Bengio (2003), whose variance is larger by the ratio of held-out to training bags. Those of methods hold together; that
of the baseline holds alone.

A method other than the reference is recommended only if its whole interval is above zero and bags are not confounded.
On confounded bags, a method that predicts bags well may rank rows wrongly.
"""

# ruff: noqa: N803 (X is scikit-learn's name)

from __future__ import annotations

import warnings
from collections.abc import Callable, Container, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import t as student
from sklearn.base import clone
from sklearn.model_selection import RepeatedKFold, TimeSeriesSplit

from llpbench.core.bags import BoolArray, FloatArray, IntArray
from llpbench.core.errors import LLPBenchError, LLPBenchWarning, argument
from llpbench.core.text import fault, one_line, plural
from llpbench.data.bag_tables import BagLabels
from llpbench.data.reading_bags import as_pandas, values_of_bags
from llpbench.owndata.bag_data import BagData
from llpbench.owndata.classifier import LLPClassifier
from llpbench.owndata.columns import as_frame
from llpbench.owndata.doubts import Doubts
from llpbench.owndata.fitted import coarse_criteria
from llpbench.owndata.fitting import AUTO, YARDSTICK, method_on_bags, progress_display, require_whole
from llpbench.owndata.weights import in_bags

COMPARED = (AUTO, "bag-gp", "count-gbdt", "bag-mean-linear", "bag-soft-label-gbdt", "dllp")
"""Default methods."""
DECIDES = "kl"
"""Criterion of the recommendation. Of four criteria it has the smallest regret (`benchmarks.choosing`)."""
_FEWEST_BAGS = 4
"""smallest number of bags with known counts for folds"""
_FEWEST_FOLDS = 2
"""Number of folds from which differences have an interval."""


@dataclass(frozen=True, eq=False)
class MethodChoice:
    """Result of a comparison."""

    board: pd.DataFrame
    """a row for each method, the best first: `method`, means over folds of all coarse-grained criteria, `gain` over the
    reference in the criterion of the recommendation with its interval (`low`, `high`), and `seconds` of a fit; methods
    that failed are last and have only the reason in `failure` ("" for all others)"""
    folds: pd.DataFrame
    """a row for each `repeat`, `fold` and `method`: all criteria, and `seconds`"""
    reference: str
    """method that others are compared with: the union, or without it the method with the best mean criterion; never a
    method that failed"""
    best: str
    """recommended method"""
    advice: str
    """the recommendation, then its reasons, one a line"""
    union: LLPClassifier | None
    """`method="auto"`, fitted to all bags; its `doubts_` are part of the advice; None without such a fit"""
    later: bool = False
    """whether folds are later bags, predicted from earlier ones; else they are random"""

    def __repr__(self) -> str:
        compared = plural(len(self.board) - 1, "method")  # without the baseline, as before the first fold
        return f"<llpbench choice of {compared}: {' '.join(self.advice.splitlines())}>"


def choose(
    X: Any,
    bags: Any,
    *,
    methods: str | Sequence[str] | Mapping[str, LLPClassifier] = COMPARED,
    folds: int = 5,
    repeats: int | None = None,
    random_state: int = 0,
    progress: bool = True,
    time: Any = None,
    **given: Any,
) -> MethodChoice:
    """Compare methods on held-out bags, without labels.

    Parameters
    ----------
    X
        Rows, as in `LLPClassifier.fit`.
    bags
        Bag of each row, as in `LLPClassifier.fit`.
    given
        Arguments of `BagData.read`, such as `counts`, if `bags` are not `BagData`.
    methods
        Names of methods that learn from bags (a list, or one text with commas), or unfitted classifiers by name. The
        baseline "bag-share" is always compared, too.
    folds
        Number of parts that bags are split into.
    repeats
        Number of splits. Default: 2, with `time` 1.
    random_state
        Seed of the folds and of the methods. The same seed repeats everything but the seconds.
    progress
        Show a bar in a terminal or notebook.
    time
        Time of each bag, a number or a date: a mapping or series by bag, or an array in ascending order of the bags.
        Folds are then later bags, each predicted from all earlier ones.

    Notes
    -----
    Held-out predictions are mixed with uniform ones, which have the weight 1/(2 training rows). Otherwise a prediction
    of exactly 0 for a class that no training bag has would cost hundreds of nats, and its fold would outweigh all
    others.

    A method that fails in a fold is a row of the board with its reason. The others are compared without it. If the
    comparison is interrupted (Ctrl-C), the result has the folds that were finished, if there are at least two.

    Raises `LLPBenchError` as `fit` does, for fewer bags with known counts than folds, if a fold holds out all bags of
    all classes but one, and if every method fails.

    Examples
    --------
    >>> import pandas as pd
    >>> from llpbench import choose
    >>> rows = pd.DataFrame({"age": [20, 30, 40, 50, 60, 70] * 10})
    >>> district = [row // 3 for row in range(60)]
    >>> counts = {bag: 1 + bag % 2 for bag in range(20)}
    >>> methods = ["bag-mean-linear", "bag-soft-label-linear"]
    >>> choice = choose(rows, district, counts=counts, methods=methods, folds=2, repeats=1, progress=False)
    >>> sorted(choice.board["method"])
    ['bag-mean-linear', 'bag-share', 'bag-soft-label-linear']
    """
    candidates, X, bags = _candidates(methods, random_state), as_pandas(X), as_pandas(bags)  # noqa: N806
    data = BagData.of(X, bags, **given)
    if time is not None and repeats not in (None, 1):
        raise LLPBenchError(f"{argument('repeats')} must be 1 with {argument('time=')}, got {repeats!r}.")
    read = LLPClassifier(YARDSTICK).fit(X, data)  # checks bags and rows
    names, found, frame = read.bags_.tolist(), read.bag_counts_.copy(), as_frame(X)
    texts = [name for name in frame.columns if str(name) in read._model.columns.texts]
    frame = frame.astype(dict.fromkeys(texts, "category"))  # so that no fold checks again whether texts are numbers
    if read._ranges is not None:  # bags of ranges are learned from, and never judged by
        found[read._ranges.bags] = np.nan
    bagged = _Bagged(frame, data, names, found)
    if time is None:
        parts = [*_random_folds(found, folds, 2 if repeats is None else repeats, random_state)]
    else:
        of_bags = BagLabels(data.labels.among(names), names)
        parts = [*_later_folds(found, values_of_bags(time, "time", names, of_bags, _as_times), folds)]
    _require_classes(found, parts, read.classes_.tolist())
    union = next((name for name, each in candidates.items() if each.method in ("auto", AUTO)), None)
    rows, failures, finished, fitted, stopped = list[dict[str, Any]](), dict[str, str](), 0, None, ""

    def tried(name: str, compute: Callable[[], Any]) -> Any:
        """Return a result of a method; None if it fails, or has failed before."""
        if name not in failures:
            try:
                return compute()
            except Exception as error:
                failures[name] = one_line(str(error)) if isinstance(error, LLPBenchError) else fault(error)
                if len(failures) == len(candidates):
                    told = " ".join(f"{method}: {why}" for method, why in failures.items())
                    raise LLPBenchError(f"every method failed. {told}") from error
        return None

    try:
        with progress_display(shown=progress) as bar:
            every = {**candidates, YARDSTICK: LLPClassifier(YARDSTICK)}
            task = bar.add_task("", total=len(parts) * len(every))
            for part in parts:
                of_fold = {}
                for name, candidate in every.items():
                    bar.update(task, description=f"fold {finished + 1} of {len(parts)}: {name}")
                    of_fold[name] = tried(name, partial(bagged.judged, candidate, part))
                    bar.advance(task)
                where = dict(zip(("repeat", "fold"), divmod(finished, folds), strict=True))
                rows += [{**where, "method": name, **scores} for name, scores in of_fold.items() if scores]
                finished += 1
        if union is not None:
            fitted = tried(union, lambda: bagged.fitted(candidates[union], slice(None))[0])
    except KeyboardInterrupt:
        if finished < _FEWEST_FOLDS:
            raise
        stopped = f"\nInterrupted: the result is of {finished} of {len(parts)} folds, without a fit to all bags."
    by_fold = pd.DataFrame([row for row in rows if row["method"] not in failures])
    working = [name for name in candidates if name not in failures]
    reference = union if union in working else str(by_fold.groupby("method")[DECIDES].mean()[working].idxmin())
    known = ~np.isnan(found).any(axis=1)  # the ratio is that of held-out to training bags, mean over folds
    ratio = float(np.mean([len(part.held) / (part.train & known).sum() for part in parts[:finished]]))
    boards = {name: compared(by_fold, name, ratio).set_index("method") for name in working}
    unsure = {name for name, each in boards.items() if each.loc[YARDSTICK, "high"] >= 0}
    board = boards[reference].reset_index()
    best, advice = _advised(board, reference, None if fitted is None else fitted.doubts_, unsure)
    advice += "\nHeld-out bags were later than the bags that methods learned from." * (time is not None)
    advice += stopped
    if reference != union:
        advice += f"\nauto is not compared. The reference is {reference}, which has the best mean {DECIDES.upper()}."
    if failures:
        advice += f"\nNot compared, because a fit failed: {_listed([*failures])}."
    failed = [pd.DataFrame({"method": [name], "failure": [why]}) for name, why in failures.items()]
    board = pd.concat([board.assign(failure=""), *failed], ignore_index=True)
    return MethodChoice(board, by_fold, reference, best, advice, fitted, later=time is not None)


def compared(folds: pd.DataFrame, reference: str, ratio: float) -> pd.DataFrame:
    """Return the board of a comparison (`MethodChoice.board`) from its folds. `ratio`: held-out to training bags."""
    means = folds.drop(columns=["repeat", "fold"]).groupby("method", sort=False).mean()
    scores = folds.pivot(index=["repeat", "fold"], columns="method", values=DECIDES)
    for name in means.index:
        gains = (scores[reference] - scores[name]).to_numpy()
        # whether features help is one question, no matter how many methods are compared
        others = 1 if name == YARDSTICK else max(scores.shape[1] - 2, 1)
        means.loc[name, ["gain", "low", "high"]] = _corrected(gains, ratio, others)
    return means.sort_values(DECIDES, kind="stable").reset_index()


def _corrected(differences: FloatArray, ratio: float, comparisons: int = 1) -> tuple[float, float, float]:
    """Return the mean of paired differences over folds, and its 95 % interval (corrected resampled t, Bonferroni)."""
    number, mean = len(differences), float(differences.mean())
    spread = np.sqrt((1 / number + ratio) * differences.var(ddof=1))
    half = float(student.ppf(1 - 0.025 / comparisons, number - 1) * spread)
    return mean, mean - half, mean + half


def _advised(board: pd.DataFrame, reference: str, doubts: Doubts | None, unsure: Container[str]) -> tuple[str, str]:
    """Return the recommended method, and the reasons. `unsure`: methods not significantly better than the baseline."""
    rows = {row["method"]: row for row in board.to_dict("records") if row["method"] not in (YARDSTICK, reference)}
    ahead = sorted((name for name, row in rows.items() if row["low"] > 0), key=lambda name: -rows[name]["gain"])
    behind = [name for name, row in rows.items() if row["high"] < 0]
    level = [name for name in rows if name not in (*ahead, *behind)]
    unexplained = doubts.unexplained if doubts is not None and doubts.confounded else 0.0
    best = ahead[0] if ahead and not unexplained else reference
    told = [f"Use {best}."]
    if ahead and unexplained:
        better = f"{_listed(ahead)} predicts held-out bags better ({_interval(rows[ahead[0]])}), but features do not "
        told.append(f"{better}explain {100 * unexplained:.0f} % of the variance of bags, so these may be misleading.")
    elif ahead:
        told.append(f"It predicts held-out bags significantly better than {reference} ({_interval(rows[best])}).")
    else:
        keep = f"Keep the default, {reference}" if reference in (AUTO, "auto") else told[0].rstrip(".")
        better = "no method predicts held-out bags significantly better"
        told = [f"{keep}: {'your bags cannot decide between methods' if reference in unsure else better}."]
    off = 50 * board.set_index("method")["l1"]  # half, as each error is in two classes
    errors = f"predicted shares of held-out bags are off by {off[best]:.1f} points, the mean share by "
    why = "Bags or folds are too few, or bags too similar."
    help_ = "Whether features help is unresolved" if best in unsure else "Features help"
    told.append(f"{help_}: {errors}{off[YARDSTICK]:.1f}.{f' {why}' * (best in unsure)}")
    told += [f"{best} does not differ significantly from {_listed(level)}."] if level and not ahead else []
    told += [f"Significantly worse: {_listed(behind)}."] if behind else []
    ranks = "Only labels show how well rows are ranked."
    return best, "\n".join([*told, f"Held-out bags show how well shares of new bags are predicted. {ranks}"])


def _interval(row: Mapping[str, float]) -> str:
    return f"by {row['gain']:.4f} [{row['low']:.4f}, {row['high']:.4f}] in KL divergence"


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


@dataclass(frozen=True, eq=False)
class _Bagged:
    """Rows in bags, and the classifiers to compare on them."""

    frame: pd.DataFrame
    data: BagData
    names: list[Hashable]
    counts: FloatArray  # [bags, classes] NaN for bags that are never held out

    def fitted(self, candidate: LLPClassifier, bags: Any) -> tuple[LLPClassifier, pd.Index]:
        """Return a candidate fitted to some `bags` (a mask or positions), and the columns with values in these bags."""
        data, rows = self._some(bags)
        frame = self.frame[rows].dropna(axis="columns", how="all")
        model: LLPClassifier = clone(candidate)
        with warnings.catch_warnings(action="ignore", category=LLPBenchWarning):  # shown when arguments were read
            return model.fit(frame, data), frame.columns

    def _some(self, bags: Any) -> tuple[BagData, BoolArray]:
        return self.data.some({self.names[bag] for bag in np.arange(len(self.names))[bags]})

    def judged(self, candidate: LLPClassifier, part: _Fold) -> dict[str, float]:
        """Return criteria of a candidate on the held-out bags of a fold; predictions are mixed with uniform ones."""
        clock = perf_counter()
        model, columns = self.fitted(candidate, part.train)
        seconds = perf_counter() - clock
        uniform = 1 / (2 * int(model._known.sizes.sum()))
        held, rows = self._some(part.held)
        with warnings.catch_warnings(action="ignore", category=LLPBenchWarning):  # each bag has its own categories
            features = model._rows(self.frame.loc[rows, columns])
        whole, *_ = in_bags(features, held.labels, self.counts[part.held])
        proba = (1 - uniform) * model._predicted(whole.rows) + uniform / self.counts.shape[1]
        return {**coarse_criteria(proba, whole), "seconds": seconds}


def _candidates(methods: str | Sequence[str] | Mapping[str, LLPClassifier], seed: int) -> dict[str, LLPClassifier]:
    """Return classifiers by name, without the baseline. Raises `LLPBenchError` if there is nothing to compare."""
    if isinstance(methods, Mapping):
        found, named = dict(methods), list(methods)
        if YARDSTICK in found:
            raise LLPBenchError(f"{YARDSTICK!r} is the name of the baseline. Give your classifier another name.")
    else:
        given = [name.strip() for name in methods.split(",") if name.strip()] if isinstance(methods, str) else methods
        named = list(dict.fromkeys(AUTO if name == "auto" else name for name in given))
        found = {name: LLPClassifier(name, random_state=seed) for name in named if name != YARDSTICK}
    if not all(isinstance(name, str) for name in named):
        raise LLPBenchError(f"{argument('methods')} must be names, or a mapping from names to classifiers.")
    for name, each in found.items():
        if not isinstance(each, LLPClassifier):
            raise LLPBenchError(f"{name!r} must be an LLPClassifier, got {each!r}")
        method_on_bags(each.method)
    if len(named) < 2:
        raise LLPBenchError(f"{argument('methods')} must be two or more, got {named}")
    return found


class _Fold(NamedTuple):
    """A split of bags into training bags and held-out bags."""

    train: BoolArray  # [bags] whether a bag is for training
    held: IntArray  # positions of the held-out bags, which have known counts


def _random_folds(counts: FloatArray, folds: int, repeats: int, seed: int) -> Iterator[_Fold]:
    """Yield folds of random parts of the bags with known counts. All other bags are for training."""
    require_whole("repeats", repeats, 1)
    require_whole("random_state", seed, 0)
    known = _known(counts, folds)
    for _, held in RepeatedKFold(n_splits=folds, n_repeats=repeats, random_state=seed).split(known):
        train = np.ones(len(counts), dtype=bool)
        train[known[held]] = False
        yield _Fold(train, known[held])


def _later_folds(counts: FloatArray, times: FloatArray, folds: int) -> Iterator[_Fold]:
    """Yield folds of blocks by `times` [bags], of about as many times each. All earlier bags are for training."""
    known = _known(counts, folds)
    moments = np.unique(times[known])
    if len(moments) <= folds:
        raise LLPBenchError(f"{folds} folds need {folds + 1} different times, got {len(moments)}. Choose fewer folds.")
    for _, held in TimeSeriesSplit(folds).split(moments):
        earlier = np.asarray(times < moments[held[0]])
        if (number := int(earlier[known].sum())) < 2:
            needed = f"the earliest of {folds + 1} parts must have 2 bags with known counts"
            raise LLPBenchError(f"{needed}, got {number}. Choose fewer folds.")
        yield _Fold(earlier, known[~earlier[known] & (times[known] <= moments[held[-1]])])


def _as_times(values: Any, what: str = "time") -> FloatArray:
    """Return numbers, or dates as days [bags]. Raises `LLPBenchError` for other values, and for both together."""
    column = pd.Series([*values], dtype=object).map(lambda value: value.strip() if isinstance(value, str) else value)
    numbers = pd.to_numeric(column.astype(str), errors="coerce")  # of dates, pandas would count microseconds
    dates = pd.to_datetime(column.where(numbers.isna()), format="ISO8601", utc=True, errors="coerce")
    if np.isfinite(numbers).all():
        return np.asarray(numbers, dtype=np.float64)
    if dates.notna().all():
        return np.asarray((dates - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1), dtype=np.float64)
    wrong = column[~np.isfinite(numbers)]
    odd = wrong[dates[wrong.index].isna()].tolist() or wrong.tolist()
    raise LLPBenchError(f"{argument(what)} must be all numbers, or all dates such as 2024-03-31, got {odd[0]!r}.")


def _require_classes(counts: FloatArray, parts: Sequence[_Fold], classes: Sequence[Hashable]) -> None:
    has = counts > 0  # [bags, classes], False if suppressed
    for part in parts:
        left = has[part.train].any(axis=0)
        if left.sum() < 2 <= has.any(axis=0).sum():
            place, only = int(np.flatnonzero(has.any(axis=0) & ~left)[0]), classes[int(left.argmax())]
            got = f"{has[:, place].sum()} of {(~np.isnan(counts).any(axis=1)).sum():,}"
            wrong = f"class {classes[place]!r} must be in more bags, got {got}: without a fold, all have only {only!r}"
            raise LLPBenchError(f"{wrong}. Give more bags with {classes[place]!r}.")


def _known(counts: FloatArray, folds: int) -> IntArray:
    require_whole("folds", folds, 2)
    known = np.flatnonzero(~np.isnan(counts).any(axis=1))
    if len(known) < (fewest := max(folds, _FEWEST_BAGS)):
        needed = f"{folds} folds need at least {fewest} bags with known counts, got {len(known)}"
        raise LLPBenchError(f"{needed}. Choose fewer folds, or give more bags.")
    return known
