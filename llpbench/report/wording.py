"""The words that page, files and terminal share: scores, headings and the protocol in plain language."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from llpbench.core.criteria import Regime
from llpbench.core.text import plural
from llpbench.report.boards import FEW_BAGS, FEWEST_BAGS, FEWEST_DATASETS, Board, Column, Origin, Row, Score, Summary

NOTHING = "–"

STALE = "stale"
"""marks runs that were made by other code than there is now"""

DIFFERENCES_NOTE = "How training bags differ"

MOST_COMMITS = 3
"""that are named"""

STALE_NOTE = "Made by other code"
"""what notes on them begin with"""

NO_RUNS = "Nothing has run yet. Start with `llpbench run`."

TASK = (
    "A method trains on bags of rows of which it knows only how many rows of each class they hold, and is judged on "
    "single test rows. Each seed has its own split into training, validation and test rows, its own bags and its own "
    "initialisation."
)

SELECTION: dict[Regime, str] = {
    "fine": (
        "Each run's epoch is chosen by the labels of the validation rows. "
        "Test labels are never used to choose anything."
    ),
    "coarse": (
        "Each run's epoch is chosen by the class proportions of bags of validation rows, "
        "so no single label is needed; what is trained on labels is shown with the epochs that labels choose. "
        "Both criteria are shown, each in boards of its own, never the better one; with a handful of bags they choose "
        "the same epochs, since both fall with the distance between true and predicted proportions of the same bags. "
        "Test labels are never used to choose anything."
    ),
}

NO_SELECTION = "These methods have no epochs, so no criterion chooses any: their scores are the same by each."

ROLES = (
    "A ceiling trains an encoder on the label of every single training row, and is the 100 % mark of the way from the "
    "floor up; whatever else trains on all labels is called supervised, and may stand above it. Floors give each row "
    "the class proportions of its bag as its label, the simplest use of bags there is, or, as bag-share, know nothing "
    "of a row; they see what the methods see, and are ranked with them. Direct methods have no epochs, so nothing is "
    "chosen and they score the same in every board."
)

CAPTION = (
    "AUC of test rows times 100 (50: chance), mean ± standard deviation over seeds (number of seeds). "
    "Ranked over all tables of this board, by the mean over datasets of the mean over their columns, on runs that more "
    f"than half of the methods share; a method that lacks one of them stands below, without a rank ({NOTHING}). "
    "Bold: the best of a column, ceilings aside, and all within one standard deviation of it; several in bold are a "
    "tie, and a best over a single seed is not marked."
)

RANKS = (
    "95 % of rank: where the row stands among these rows by its mean over all datasets of which these are a sample, by "
    "paired t tests over dataset means; each rank by itself is held at 95 % (in simulated boards 96 % at least, and "
    "mostly 99 %). "
    "Tie: the first row leads A; down the table, the first row that can be told apart from the leaders of all letters "
    "so far leads the next. A row has the letters of all leaders that it cannot be told apart from. That is: p below "
    "0.05 by Student's paired t test over dataset means, corrected after Holm for all pairs of ranked rows."
)

AGAINST_FLOOR = (
    "Against floor: mean over datasets minus that of the floor of the row's encoder (rows without one: of the board's "
    "first), with its 95 % t interval over datasets, each by itself, and in how many columns the row is ahead."
)

SECONDS = (
    "Seconds: training steps of a run, with warm-up and pretraining, mean over datasets of the mean over their columns."
)

COVERAGE = "Coverage: runs with a score, of all runs of a complete row."

OVERALL = (
    "Over {columns} and the {runs} runs in them that count: those that more than half of the methods have attempted. "
    "Mean AUC: mean over datasets, of the mean over their columns; ± standard deviation over seeds, as of a mean of "
    "datasets whose seeds are independent (least number of seeds of a dataset). "
    f"{RANKS} {AGAINST_FLOOR} Mean rank: over datasets. Gap closed: percent of the way from floor to ceiling, with its "
    "95 % interval, over the columns where there is one (page Gap closed). Wins: percent of runs in which a row is "
    f"above another ranked row. {COVERAGE}"
)

BRIEFLY = (
    "Mean AUC of test rows × 100 ± standard deviation over seeds (number of seeds); against floor: points above soft "
    "labels; intervals of 95 % over datasets; seconds of training."
)

BOARDS = (
    "Rank: by mean AUC × 100, averaged over the bag sizes of each dataset, then over datasets, on the runs that more "
    "than half of the methods share; ± standard deviation over seeds (number of seeds). 95 % of rank: its confidence "
    "interval over datasets. Against floor: points of AUC above soft labels, with a 95 % interval over datasets, and "
    "in how many columns the row is ahead. Gap closed: percent of the way from floor to ceiling. Wins: percent of runs "
    "in which a row is above another ranked row. Seconds: training of a run. Coverage: runs with a score, of all runs. "
    "Bold: the best of a column and all within one standard deviation of it. Rows without a rank, further tables and "
    "the runs behind each score are on [the page](index.html)."
)

BY_L1 = (
    "Boards by {l1} choose nearly the same epochs: `llpbench report --formats csv` writes them. Methods without epochs "
    "have the same scores under any criterion, so they stand with the [fine-grained](fine.md) boards alone where "
    "nothing else has run."
)

SELECTION_GAP = (
    "What it costs to choose epochs by proportions of validation bags instead of labels of validation rows, in points "
    "of AUC, run by run: mean ± standard deviation over seeds (number of seeds). Mean: over the datasets, of the mean "
    "over their columns that count in both boards ({columns}), with its 95 % t interval over datasets. Of tuned rows "
    "hyperparameters were chosen so, too: it is what both choices cost."
)

TUNING = (
    "Each configuration was chosen by this board's criterion on the validation rows of a split of its own, and is "
    "judged here on other splits of the same table: a tenth of their test rows were validation rows there. Gain: tuned "
    "minus default test AUC, seed by seed, with the 95 % t interval of its mean over splits, as if they were "
    "independent; their rows overlap, so it is rather too narrow, and it is of this configuration: another search "
    "might choose another. Validation gain and test gain are of the criterion itself, better is positive. The first is "
    "the largest of many, and so too large; a test gain below 0 says that the search has overtuned."
)

TUNING_ORDER = (
    "Rank of a method's default configuration among the defaults → rank of what this board's criterion has chosen for "
    "it, among what it has chosen for the others: by mean test AUC over the seeds that more than half of the tuned "
    "methods have, of methods that have both on all of them. Of several searches for one method that of most trials "
    "counts. What is trained on labels has no rank. Close methods change places by chance: the gains below say by how "
    "much."
)

GAP_CLOSED = (
    "Percent of the way from the floor (0: each row has its bag's proportions for a label) to the ceiling (100: every "
    "label is known), both with the row's encoder and without pretraining; rows without an encoder are put between "
    "those of the board's first encoder. Below 0: worse than the floor; above 100: better than the ceiling. Unknown "
    "where floor and ceiling are closer than one standard deviation of either. Together: the sum of what is gained "
    "over the sum of the gaps, of the columns where it is known, with its 95 % jackknife interval over datasets."
)

KNOWN_BAGS = (
    "AUC of test rows whose training bag is known: logits of a bag's rows are moved together, by the random effect "
    "that the counts of its training rows tell of. Mean ± standard deviation over seeds; below, the AUC by features "
    "alone, as on the board. bag-share, the same of what says the prior of every row, is what there is to beat. Mean: "
    "over datasets, of the mean over columns, of the {runs} runs that count, where a row has them all; log loss "
    "likewise."
)

WHOLE_BAGS = (
    "Of the training rows themselves, whose bags were counted: probabilities moved and scaled until they add up to the "
    "counts of every bag, and (accuracy) labels of which each bag has as many as were counted. Mean ± standard "
    "deviation over seeds. bag-share, every row of a bag the same, is what there is to beat. Means: over datasets, "
    "of the mean over columns, of the {runs} runs that count, where a row has them all."
)

BAG_ONLY = {
    "mpiou": "Nobody knows the label of a row: whole bags are held out, and predictions of their rows, averaged over "
    "each bag, are compared with its proportions. mPIoU x 100 of test bags: the larger the better. Mean ± standard "
    "deviation over seeds, of which each holds out other bags. Of single rows this says nothing: what is constant "
    "within bags can meet their proportions and order their rows at random.",
    "l1": "As above, in L1 distance of test bags (0 to 2): the smaller the better.",
}

CALIBRATION = (
    "Whether probabilities mean what they say, on test rows: smaller is better. Log loss: mean of -log of the label's "
    "probability (natural logarithm; of a 0 as of 1e-15). Brier score: mean over rows of the squared distance of the "
    "probabilities from the label (0 to 2). Calibration error: mean over rows of |accuracy - confidence| within 15 "
    "bins of the predicted class's probability, in percent. Over {columns} and their {runs} runs that count, mean over "
    "datasets ± standard deviation over seeds, as mean AUC on the board; then the Brier score of each column. "
    f"{NOTHING}: a run lacks it, as those made before log loss was measured. Where only the order of scores means "
    "something, as of ridge on bag means, these figures judge what the method does not claim."
)

ROBUSTNESS = (
    "Mean over columns of the rank of the standard deviation over seeds (1: the smallest), among ranked methods; then "
    "the standard deviations. A method can be robust and bad."
)

TIMING = (
    "Seconds a run, synchronised with the device, medians over seeds: of training steps alone; then over all columns "
    "predicting the test rows once, the first step of every stage and population size (compilation included), "
    "pretraining; the peak memory of the process or GPU. Seeds that train together share the time, which is divided "
    "among them. Shared: runs during which others used the device, whose times are upper bounds; ? where runs do not "
    "say. Epochs: trained in a run, median; where there are several stages, over all of them: one that goes on from "
    "selected weights is trained once for each kind of validation, and each counts."
)

WIN_RATES = (
    "Percent of runs (dataset, bag size, seed) in which the row's method is above the column's; ties count half, "
    "columns of the leaderboard weigh equally."
)

COMPARISONS = (
    "p values of Student's paired t test over dataset means (of a single dataset: over its seeds), corrected after "
    "Holm for all pairs of ranked rows: below 0.05, two rows are told apart, as the letters of the board say it."
)

WILCOXON = (
    "p values of Wilcoxon's signed-rank test over dataset means, corrected by Holm for all pairs. Few datasets cannot "
    "give small ones, however clear the difference is."
)

NO_FRIEDMAN = "Too few methods or datasets for Friedman's test."

BETWEEN_PROTOCOLS = "a difference is between protocols, too"
"""what is said of the paper's numbers wherever encoder and training are not the paper's"""

BESIDE = (
    "Each field: the paper's number (SAINT encoder, at most 300 epochs, patience 20, 10 repeats), ours (mean ± "
    "standard deviation over seeds, number of seeds), the difference, and ⚑ where, with the paper's encoder "
    "(for times its hardware, too), it exceeds twice the larger of the two standard deviations. A figure that several "
    f"tables share is flagged in the first. Where encoder or training are others {BETWEEN_PROTOCOLS}."
)

ROBUSTNESS_STUDY = (
    "Mean rank of the standard deviation over seeds (1: the smallest), ours over {over} that all methods have. The "
    "middle column applies our code to the paper's fine-grained table: it must give the paper's ranking."
)

ARMS = (
    "What changes from one end of an arm to the other: mean over datasets of the differences of their seeds, which "
    "share split and test rows, with its 95 % t interval over datasets (of a single dataset: over its seeds)."
)

DATASETS_STUDY = (
    "The paper's numbers and, of datasets that have run, those that every copy of the data is checked against. The "
    "paper counts the target of the OpenML data among their categorical features. PA and PB are private."
)


ADVICE = (
    "For each kind and size of bags in this journal: of the methods that learn from counts alone, in their default "
    "configuration and without pretraining, the one with the highest mean test AUC × 100, and all within {alike:g} "
    "points of it; none where that is below {least:g} or may be chance. Mean over datasets ± standard deviation over "
    "seeds (number of seeds), on the runs that more than half of the methods share. Epochs of networks are chosen by "
    "labels of validation rows here, which favours them: methods without epochs need none. Seconds: of training, from "
    "the fastest column to the slowest. Next best: of all others, and of networks. Ridge: on means of bags, the "
    "simplest. With labels: the best that has seen the label of every training row. Caution: another method leads by "
    "more than {ahead:g} on a dataset, the share of a row's bag alone says as much as all features, or the best mean "
    "is within two standard deviations of chance. Groups not seen in training are drawn at random, not later ones. "
    "These are few datasets, and a line of one dataset is one example: methods that a board cannot tell apart may "
    "change places on yours."
)


def some_of(lines: Sequence[str], most: int = 20) -> list[str]:
    """The first lines, and how many more there are."""
    more = len(lines) - most
    return [*lines[:most], *([f"and {more:,} more"] if more > 0 else [])]


def lowered(text: str) -> str:
    """A title inside a sentence."""
    return text[:1].lower() + text[1:]


def sentence(text: str) -> str:
    """Text that begins with a capital and ends with a full stop."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def summary_text(summary: Summary, digits: int = 2) -> str:
    """`85.93 ± 0.52 (3)`: never a mean without its spread and number of seeds."""
    spread = NOTHING if summary.std is None else f"{summary.std:.{digits}f}"
    return f"{summary.mean:.{digits}f} ± {spread} ({summary.n})"


def score_lines(score: Score) -> list[str]:
    """What stands in a score's place: the headline, or that there is none, then what is lacking of it."""
    if score.failures and len(score.failures) == score.expected:
        return ["failed", STALE] if score.stale else ["failed"]
    headline = score.headline
    if score.cell is None or not (headline or score.failures or score.undefined()):
        return [NOTHING]
    lacks = {"failed": score.failures, "missing": score.missing, "undefined": score.undefined(), STALE: score.stale}
    lacking = [f"{len(seeds)}/{score.expected} {what}" for what, seeds in lacks.items() if seeds]
    return [summary_text(headline) if headline else NOTHING, *lacking]


def rank_text(row: Row) -> str:
    """The rank, or why there is none."""
    return str(row.rank) if row.rank is not None else row.mark if row.contender.role == "ceiling" else NOTHING


def method_text(row: Row) -> str:
    """The method, and whether it is the floor."""
    return row.contender.method + (f" ({row.mark})" if row.mark == "floor" else "")


def interval_text(value: float, interval: tuple[float, float] | None, digits: int = 1, sign: str = "") -> str:
    """`+1.9 [-3.2, 7.0]`."""
    known = "" if interval is None else f" [{interval[0]:.{digits}f}, {interval[1]:.{digits}f}]"
    return f"{value:{sign}.{digits}f}{known}"


def seconds_text(seconds: float) -> str:
    """Three digits, `0.06`, `6.52`, `102` or `3,480`; no power of ten."""
    digits = 2 if seconds < 10 else 1 if seconds < 100 else 0
    return f"{seconds:,.{digits}f}"


def title(board: Board) -> str:
    """What tells a board from most others: methods without epochs have boards of what nothing else has run on."""
    alone = "" if board.protocol else ", methods without epochs"
    regime = board.criterion.regime.capitalize()
    return f"{regime}-grained, {bags_words(board.bagging)}{alone}, selected by {board.criterion.title}"


def bagging_words(bagging: str) -> str:
    """How rows became bags: of bags by columns `by job and education`, of others the name that it has everywhere."""
    name, *options = bagging.split(":")
    keys = [option.removeprefix("by=") for option in options if option.startswith("by=")]
    number = name.removesuffix("column")
    if len(keys) != 1 or number == name:
        return bagging
    others = ", ".join(option for option in options if not option.startswith(("by=", "split=")))
    new = ", tested on other bags" if "split=bags" in options else ""
    return f"{number}by {' and '.join(keys[0].split('+'))}{f' ({others})' if others else ''}{new}"


def bags_words(bagging: str) -> str:
    """Of what kind bags are: `ordered bags`, `bags by job and education`."""
    found = bagging_words(bagging)
    number, by, keys = found.partition("by ")
    return f"{bagging} bags" if found == bagging else f"{number}bags {by}{keys}"


def setting(board: Board) -> str:
    """What else makes its numbers incomparable with another board's: protocol, encoders, seeds, hardware."""
    encoders = f"encoder {', '.join(board.encoders)}" if board.encoders else "no encoder"
    numbers = sorted({score.expected for row in board.rows for score in row.scores}) or [0]
    seeds = plural(numbers[-1], "seed")
    if numbers[0] != numbers[-1]:
        seeds = f"{numbers[0]} to {seeds}"
    parts = [protocol_text(board.protocol), encoders, seeds, *board.hardware]
    if board.common:
        parts.append(
            "only runs that all rows have completed" if board.columns else "no run that all rows have completed"
        )
    return " · ".join(parts)


def protocol_text(protocol: Mapping[str, Any] | None) -> str:
    """A protocol in a few words, e.g. `at most 300 epochs, patience 20, 2 bags a step`."""
    if protocol is None:
        return "methods without epochs"
    known = {"epochs": "at most {} epochs", "patience": "patience {}", "bags_per_step": "{} bags a step"}
    named = [known[key].format(protocol[key]) for key in known if key in protocol]
    return ", ".join([*named, *(f"{key} {value}" for key, value in protocol.items() if key not in known)])


def code_text(code: Sequence[str], most: int | None = None) -> str:
    """Versions of llpbench, each with its commits, or where there are more than `most` with their number."""
    commits: dict[str, list[str]] = {}
    for each in code:
        version, _, commit = each.removesuffix(")").partition(" (")
        commits.setdefault(version, []).extend([commit] if commit else [])
    named = {
        version: f"{len(own)} commits" if most is not None and len(own) > most else ", ".join(own)
        for version, own in commits.items()
    }
    return ", ".join(f"{version} ({own})" if own else version for version, own in named.items())


def origin_text(origin: Origin) -> str:
    """Number of runs, code, libraries and hardware."""
    runs = plural(origin.runs, "run") + (f", of which {origin.failed:,} failed" if origin.failed else "")
    code = code_text(origin.code, MOST_COMMITS)
    return f"{runs}, by llpbench {code}; {', '.join(origin.libraries)}. Hardware: {'; '.join(origin.hardware)}."


def bags_text(bag_size: int) -> str:
    """`bags of 256`; of a bagging without a size `bags of their own sizes`."""
    return f"bags of {bag_size}" if bag_size else "bags of their own sizes"


def sizes_text(columns: Sequence[Column]) -> str:
    """What numbers like `1–9–11,660` in headings mean, as a sentence; "" where all bags of each column are equal."""
    unequal = next((column.bags for column in columns if column.unequal), None)
    return "" if unequal is None else f"Unequal bags: {unequal} are the least, median and most rows of a training bag."


def classes_text(classes: Iterable[tuple[str, int | None]]) -> str:
    """What AUC means where a dataset (name, classes) has more than two, as a sentence; "" where none has."""
    several = {dataset: number for dataset, number in classes if number is not None and number > 2}
    named = ", ".join(f"{dataset} {number:,}" for dataset, number in several.items())
    meant = "AUC is macro one-versus-rest, the unweighted mean over classes of each against the rest"
    return f"More than two classes: {named}; {meant}." if several else ""


def columns_text(columns: Sequence[Column]) -> str:
    """What is out of the ordinary in some columns: their classes, sizes of bags, or that they do not count."""
    few = (
        ""
        if all(column.counts for column in columns)
        else f"{FEW_BAGS}: fewer than {FEWEST_BAGS} validation bags to choose an epoch by; in no mean or rank."
    )
    return " ".join(
        filter(None, (classes_text((each.dataset, each.classes) for each in columns), sizes_text(columns), few))
    )


def datasets_text(number: int) -> str:
    """How much stands behind a rank, as a sentence."""
    if number == 0:
        return "No column counts, so nothing is ranked."
    if number == 1:
        return "1 dataset: ranks and what is told apart hold for this table alone, over its seeds."
    if number < FEWEST_DATASETS:
        return f"{number} datasets: exploratory, too few to say how methods rank on others."
    return f"{number} datasets."


def bags_note(board: Board) -> str:
    """What is out of the ordinary in a board's bags: whether test rows are of new ones, and what some columns are."""
    own = not any(column.bag_size for column in board.columns)
    new = "split=bags" in board.bagging.split(":")
    seen = {
        True: "New bags: validation and test rows are of bags of which no row was seen in training.",
        False: "Validation and test rows are of the same bags as training rows.",
    }
    return " ".join(filter(None, (seen[new] if own and board.columns else "", columns_text(board.columns))))


def validation_text(board: Board, columns: Sequence[Column]) -> str:
    """How many bags a coarse criterion has to choose an epoch by, as a sentence; "" where labels choose or no run says.

    Columns are named as headings of one bag size name them: by dataset, unless that is said twice.
    """
    if board.criterion.regime == "fine":
        return ""
    several = len({column.bag_size for column in columns}) > 1
    found = [
        f"{column.title if several else column.dataset} {'–'.join(f'{n:,}' for n in dict.fromkeys(column.validation))}"
        for column in columns
        if column.validation is not None
    ]
    return f"Validation bags: {', '.join(found)}." if found else ""


def clean(text: str) -> str:
    """A name from outside on one line, without control characters (a terminal would obey them)."""
    if not text.isprintable():  # few are not, and there are many texts
        text = "".join(char if char.isprintable() else " " for char in text)
    return " ".join(text.split())


def trials_text(spec: Mapping[str, Any]) -> str:
    """`50 trials`, of a search with this specification; its sampler where it is not the usual one."""
    return plural(spec["trials"], "trial") + ("" if spec["sampler"] == "tpe" else f", {spec['sampler']}")


def range_text(space: Mapping[str, Any]) -> str:
    """`0.0001–0.01 log`, or `64|128`: what is searched of a hyperparameter, and where alone it is."""
    if "choices" in space:
        text = "|".join(map(str, space["choices"]))
    else:
        given = (space.get("low", NOTHING), space.get("high", NOTHING))
        ends = (f"{end:g}" if isinstance(end, int | float) else str(end) for end in given)
        text = f"{'–'.join(ends)}{' log' if space.get('log') else ''}"
    where = " and ".join(f"{name} {'|'.join(map(str, values))}" for name, values in space.get("when", {}).items())
    return f"{text} where {where}" if where else text
