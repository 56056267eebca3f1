"""Every number of README's result section, made again from the published journal: what docs/claims.md lists.

`python tests/report/claims.py` writes that list anew, and README's tables of encoders and of which method to take. A
claim's `text` is README's own words, with numbers as they are computed here; a test demands that README has them, and
that no number there is without a claim.
"""

from __future__ import annotations

import json
import re
import statistics as middle
from collections.abc import Iterator, Sequence
from decimal import ROUND_HALF_UP, Decimal
from math import fsum
from pathlib import Path
from typing import NamedTuple

from pandas import DataFrame, Series
from papers_encoder import BAG_SIZE, Networks

from llpbench.core.record import Record
from llpbench.report import wording as words
from llpbench.report.advice import ADVICE, advice
from llpbench.report.boards import HEADLINE, Board, Contender, Row, Score
from llpbench.report.markdown import grid
from llpbench.report.reference import rows
from llpbench.report.standings import Standings
from llpbench.report.statistics import dataset_means, interval
from llpbench.report.tabulate import tabulate
from llpbench.results.journal import FILE

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "leaderboards"
LIST = ROOT / "docs" / "claims.md"

DATASETS = ("adult", "bank_marketing", "california", "credit", "electricity")
SIZES = (64, 128, 256, 512, 1024)
SEEDS = 3
OTHERS = ("diamonds", "flights_2013", "movielens_1m")
"""on which no constant was found"""
FLOOR, BDC, LEADER = "bag-soft-label (mlp)", "tabllp-bdc (mlp)", "bag-gp-gbdt"
PRETRAINED = "tabllp-bdc (mlp, self+bag)"


class Claim(NamedTuple):
    """Words of README, and what their numbers are before they are rounded."""

    text: str
    behind: str
    source: str


NOT_OF_THE_JOURNAL = {
    "sorted by gives an AUC of 82.9 alone, that of credit 76.7": "test AUC of MedInc, and of the first column of "
    "credit, on the data, which are not in the journal",
    "6 and 12 ordered bags of electricity: 44 and 51": "docs/choosing.md, one seed",
    "counts of adult dealt to wrong bags: 42": "docs/choosing.md, one seed",
    "The rarer of two classes has 12 % (bank_marketing) to 50 % of the rows": "the data",
}
"""words whose numbers no test makes again, and where they are from"""

NO_RESULTS = (
    "test AUC × 100",
    "the 95 % interval of the rank",
    "with its 95 % interval over datasets",
    "at 5 % by paired t tests",
    "(SAINT, 300 epochs, 10 seeds)",
    "an MLP of at most 100 epochs against SAINT of 300",
    "for bags of 256",
    "on ordered bags of 256: at most 100 epochs, patience 10, bfloat16",
    "Test AUC × 100, fine-grained",
    "[finding 16]",
    "300 epochs, patience 20, ten seeds and tuning by 50 trials",
    "| ordered bags of 256 |",
    "The intervals (95 %) are over our splits of each table",
    "the second in bags of 64, 256 and 1,024",
    "fewer than about 20 bags",
    "AUC × 100 on new rows",
    "`flights_2013`, on other splits of which the rule of confounded bags was found",
)
"""words with numbers that say what is shown, or what the paper's protocol is"""


class Published:
    """The published boards, read once."""

    def __init__(self) -> None:
        lines = [*map(json.loads, (PUBLISHED / FILE).read_text(encoding="utf-8").splitlines())]
        # `test_published.py` checks each of them
        runs: list[Record] = [line for line in lines if "run" in line]
        ordered = [run for run in runs if run["spec"]["bagging"] == "ordered"]
        self.numbered = [run for run in ordered if "max_bags" in run["spec"]]
        """those of the study of the number of bags"""
        every = tabulate(runs, tunings=[line for line in lines if "tuning" in line])
        with_networks = [board for board in every.boards if board.protocol]
        # of each criterion the one of most rows: datasets trained for fewer epochs have boards of their own
        ordered_boards = (board for board in with_networks if board.bagging == "ordered")
        found = {board.criterion.name: board for board in sorted(ordered_boards, key=lambda board: len(board.rows))}
        (self.random,) = (
            board for board in with_networks if (board.bagging, board.criterion.name) == ("random", "auc")
        )
        self.fine, self.coarse = Standings(found["auc"]), Standings(found["mpiou"])
        self.sized = [
            board
            for board in every.boards
            if board.criterion.name == "auc" and board.bagging in ("ordered", "random") and board.max_bags is None
        ]
        """fine-grained boards of ordered and random bags, with and without networks"""
        self.networks = Networks(runs, self.fine.board.protocol)
        advised = advice(every)
        assert advised is not None
        self.advice = advised

    def shown(self) -> list[Row]:
        """The rows of README's table: those with a mean over all columns that count, in the order of the board, what is
        trained on labels last."""
        standings = zip(self.fine.board.rows, self.fine.rows, strict=True)
        rows = [row for row, standing in standings if standing.overall is not None]
        return sorted(rows, key=lambda row: row.contender.role == "ceiling")

    def counting(self, row: Row) -> list[Score]:
        """Its scores in the columns that count."""
        return [row.scores[place] for place in self.fine.columns]


def claims(published: Published) -> Iterator[Claim]:
    """Every claim, in the order of README."""
    fine, coarse, board = published.fine, published.coarse, published.fine.board
    (networks,), (direct,) = (
        {
            len(score.succeeded)
            for row in published.shown()
            if (row.contender.kind == "neural") == neural
            for score in published.counting(row)
        }
        for neural in (True, False)
    )
    yield Claim(
        f"at most {board.protocol['epochs']} epochs, patience {board.protocol['patience']}, {networks} seeds "  # type: ignore[index]
        f"({direct} of methods without a network)",
        f"{words.protocol_text(board.protocol)}; {networks} and {direct} seeds",
        "specifications of the runs",
    )
    yield Claim(
        f"over all {_word(len(fine.columns))} columns",
        f"{len(fine.columns)}",
        "columns of the board that count",
    )
    yield from _table(published)
    times = [
        middle.median(run["times"]["train"] for run in score.runs.values())
        for score in published.counting(_row(board, LEADER))
    ]
    yield Claim(
        f"takes {min(times):.0f} to {max(times):.0f} seconds of one core",
        f"{min(times):.2f} to {max(times):.2f}",
        f"least and largest of {_word(len(times))} medians over seeds of `times.train`",
    )
    means = dataset_means(fine.frame())
    first = means[LEADER] - means[PRETRAINED], means[LEADER] - means[BDC]
    yield Claim(
        f"ranks first, {_interval(first[0], above=True)} above TabLLP-BDC with `self+bag`, {_interval(first[1])} above "
        "it without",
        "; ".join(map(_exact, first)),
        _DIFFERENCE,
    )
    ahead = fine.against_floor(_row(board, LEADER))
    assert ahead is not None
    yield Claim(f"ahead of the floor in {ahead.ahead} of {ahead.columns} columns", f"{ahead.ahead}", "page fine")
    for bagging, shown_on in (("ordered", board), ("random", published.random)):
        yield from _beside_the_paper(shown_on, bagging)
    yield from _papers_encoder(published.networks)
    union = {
        board.columns[place].dataset: middle.fmean(_row(board, LEADER).scores[place].values[HEADLINE].values())
        for place in _places(board, BAG_SIZE)
        if board.columns[place].dataset in published.networks.datasets
    }
    yield Claim(
        f"`{LEADER}` ({_and([f'{dataset} {mean:.1f}' for dataset, mean in union.items()])})",
        ", ".join(f"{mean:.3f}" for mean in union.values()),
        f"leaderboards.csv, bags of {BAG_SIZE}",
    )
    yield _elsewhere(published.sized)
    neural = {row.contender.label for row in fine.ranked if row.contender.kind == "neural"}
    assert means[[*neural]].mean().idxmax() == PRETRAINED
    above = means[PRETRAINED] - means[FLOOR], means[BDC] - means[FLOOR]
    yield Claim(
        f"Of the neural methods TabLLP-BDC with `self+bag` has the highest mean, {_interval(above[0])} above the floor "
        f"(without it {_interval(above[1])})",
        "; ".join(map(_exact, above)),
        _DIFFERENCE,
    )
    yield from _selection(fine, coarse)
    yield from _number_of_bags(published.numbered)
    findings = len(
        re.findall(r"^\d+\. \*\*", (ROOT / "docs" / "findings.md").read_text(encoding="utf-8"), re.MULTILINE)
    )
    yield Claim(f"has {_word(findings)} findings", f"{findings}", "docs/findings.md")
    hours = _hours([score for row in published.shown() for score in published.counting(row)])
    yield Claim(f"{hours:.1f} hours of one core", f"{hours:.3f}", "sum of `times.total` of three seeds; a busy machine")
    yield from _advice(published)


def _beside_the_paper(board: Board, bagging: str) -> Iterator[Claim]:
    """The leader with bags of 256 and the best number that the paper has of such bags, a dataset a column."""
    scores = [_row(board, LEADER).scores[place] for place in _places(board, 256)]
    (number,) = {len(score.succeeded) for score in scores}
    own = [[*score.values[HEADLINE].values()] for score in scores]
    means, spreads = [*map(middle.fmean, own)], [*map(middle.stdev, own)]
    each = [f"{mean:.1f} ± {spread:.1f}" for mean, spread in zip(means, spreads, strict=True)]
    yield Claim(
        f"| {bagging}: `{LEADER}` ({number} seeds) | {' | '.join(each)} |",
        ", ".join(f"{mean:.3f} ± {spread:.3f}" for mean, spread in zip(means, spreads, strict=True)),
        "leaderboards.csv",
    )
    best = [_papers_best(bagging)[code] for code in _CODES]
    printed = [str(mean.quantize(Decimal("0.1"), ROUND_HALF_UP)) for mean in best]
    yield Claim(
        f"| the paper's best of such bags | {' | '.join(printed)} |",
        ", ".join(map(str, best)),
        "all tables of report/paper/ with fine-grained test AUC, but for Supervised",
    )
    above = [[value - float(paper) for value in values] for values, paper in zip(own, best, strict=True)]
    gains = [_bracket(middle.fmean(values), interval(values), 1, "+") for values in above]
    yield Claim(
        f"| difference | {' | '.join(gains)} |",
        ", ".join(map(_exact, above)),
        "95 % t interval over our seeds; the paper's number as it is printed",
    )


def _papers_encoder(networks: Networks) -> Iterator[Claim]:
    """SAINT beside the MLP and the paper, and what changes in the order of methods."""
    for line in networks.lines:
        own = [scores[dataset] for dataset in networks.datasets for scores in line.scores.values() if line.has(dataset)]
        behind = ", ".join(f"{middle.fmean(values):.3f} ± {middle.stdev(values):.3f}" for values in own)
        yield Claim(networks.text(line), behind, "runs of the journal; report/paper/fine_grained.csv")
    for dataset in networks.datasets:
        for text, behind in networks.orders(dataset):
            yield Claim(text, behind, "the same runs")
    least, most = min(networks.minutes), max(networks.minutes)
    times = "`times.total` of each run with SAINT, beside another job"
    yield Claim(f"takes {least:.1f} to {most:.1f} minutes a run on one core", f"{least:.3f} to {most:.3f}", times)
    first = [(dataset, sum(networks.best_first[dataset])) for dataset in sorted(networks.datasets)]
    yield Claim(
        f"a run is judged there: {_and([f'{number} on {dataset}' for dataset, number in first])}",
        ", ".join(f"{number} of {len(networks.best_first[dataset])}" for dataset, number in first),
        "runs of SAINT whose best epoch is the first",
    )


def _elsewhere(boards: Sequence[Board]) -> Claim:
    """How far the leader is behind the best other direct method, in every column of `OTHERS`."""
    behind = []
    for board in boards:
        rows = [row for row in board.rows if row.contender.kind == "direct" and row.contender.role == ""]
        for place in (place for place, column in enumerate(board.columns) if column.dataset in OTHERS):
            shown = {row.contender.label: row.scores[place].headline for row in rows}
            own = shown.pop(LEADER)
            best = max(other.mean for other in shown.values() if other is not None)
            assert own is not None
            behind.append(best - own.mean)
    first = sum(each <= 0 for each in behind)
    return Claim(
        f"first of its kind in {_word(first)} of {_word(len(behind))} columns, and at most {max(behind):.1f} points "
        "behind the first",
        ", ".join(f"{each:.3f}" for each in behind),
        "the best other direct method minus the union, boards of ordered and random bags",
    )


def _number_of_bags(runs: Sequence[Record]) -> Iterator[Claim]:
    scores: dict[tuple[str, int, int], dict[str, list[float]]] = {}
    for run in runs:
        spec = run["spec"]
        by_dataset = scores.setdefault((spec["method"], spec["max_bags"], spec["bag_size"]), {})
        by_dataset.setdefault(spec["dataset"], []).append(100 * (run["results"]["auc"]["test"]["auc"] or 0.0))

    def gained(method: str, last: tuple[int, int], first: tuple[int, int]) -> Series:
        end, start = (
            Series({dataset: middle.fmean(values) for dataset, values in scores[method, *each].items()})
            for each in (last, first)
        )
        return end - start

    methods = sorted({method for method, *_ in scores})
    lost = {method: -gained(method, (13, 1024), (208, 64)) for method in methods}
    assert all(each.mean() > 0 for each in lost.values())
    yield Claim(
        "the same 13,312 rows in 13 bags of 1024 instead of 208 of 64 cost each of "
        f"{_word(len(methods))} methods, DLLP {_interval(lost['dllp'])}, `{LEADER}` {_interval(lost[LEADER])}",
        f"{_exact(lost['dllp'])}; {_exact(lost[LEADER])}; of all from {min(each.mean() for each in lost.values()):.3f}",
        "means over seeds of runs with 13 and with 208 training bags, 95 % t interval over datasets",
    )
    larger = {method: gained(method, (13, 1024), (13, 64)) for method in methods}
    least, most = (end(each.mean() for each in larger.values()) for end in (min, max))
    yield Claim(
        "while from 13 bags of 64 rows to 13 of 1024, sixteen times the rows, they change by "
        f"{_signed(least)} to {_signed(most)} (`{LEADER}` {_interval(larger[LEADER])})",
        f"{least:.3f} to {most:.3f}; {_exact(larger[LEADER])}",
        "the same of runs with 13 training bags",
    )


_DIFFERENCE = "mean over datasets of the means over their columns, 95 % t interval over datasets"
_PAPERS_TABLES = (
    "fine_grained",
    "bagging",
    "pretraining",
    "downstream_objectives",
    "pair_generator",
    "difference_loss",
    "augmentation",
    "aggregation",
    "encoder",
)
"""of test AUC, its epochs chosen by labels; all but one of ordered bags alone"""
_PAPERS_BAGS = {"ordered": "Ord.", "random": "Rand."}
_CODES = ("AD", "BA", "CA", "CR", "EL")


def _table(published: Published) -> Iterator[Claim]:
    """The lines of the table, as README has them."""
    board = published.fine.board
    datasets = [len(_places(board, size)) for size in SIZES]
    every = len({board.columns[place].dataset for size in SIZES for place in _places(board, size)})
    numbers = [f"of {size} ({number})" for size, number in zip(SIZES[1:], datasets[1:], strict=True)]
    heading = [f"bags of {SIZES[0]} ({datasets[0]} datasets)", *numbers, f"all ({every})"]
    yield Claim(
        f"| rank | method | {' | '.join(heading)} | 95 % of rank | against floor | seconds |",
        f"{', '.join(map(str, datasets))}; {every}",
        "datasets of the columns that count",
    )
    standings = dict(zip([id(row) for row in board.rows], published.fine.rows, strict=True))
    for row in published.shown():
        standing = standings[id(row)]
        sizes = [_mean_of_size(row, board, size) for size in SIZES]
        overall, floor = standing.overall, standing.floor
        assert overall is not None
        method = row.contender.method + (f" ({row.mark})" if row.mark else "")
        method += "" if row.is_plain else f", `{row.contender.pretraining}`"
        rank = "–" if standing.interval is None else f"{standing.interval[0]}–{standing.interval[1]}"
        against = "–" if floor is None else _bracket(floor.mean, floor.interval, 1, "+")
        seconds = standing.seconds
        assert seconds is not None
        cells = [
            "" if row.rank is None else str(row.rank),
            method,
            *(f"{mean:.1f}" for mean in sizes),
            f"{overall.mean:.1f} ± {overall.std:.1f}",
            rank,
            against,
            words.seconds_text(seconds),
        ]
        yield Claim(
            f"| {' | '.join(cells)} |",
            f"{', '.join(f'{mean:.3f}' for mean in sizes)}; {overall.mean:.3f} ± {overall.std:.3f}; "
            f"{'–' if floor is None else _bracket(floor.mean, floor.interval, 2, '+')}; {seconds:.2f} seconds",
            "page fine (the seeds that all methods share)",
        )


def _selection(fine: Standings, coarse: Standings) -> Iterator[Claim]:
    """What it costs to choose without labels."""
    neural = {row.contender.label: row.contender for row in coarse.ranked if row.contender.kind == "neural"}
    columns = {coarse.board.columns[place].key for place in coarse.columns}
    before, after = (_means_over(standings, columns) for standings in (fine, coarse))
    costs = {label: before[label] - after[label] for label in neural}
    means = [float(cost.mean()) for cost in costs.values()]
    beyond = [_name(neural[label]) for label, cost in costs.items() if not _includes_zero(*interval(cost))]
    zero = f"intervals of {_and(beyond)} exclude 0, each by itself" if beyond else "every interval includes 0"
    yield Claim(
        f"proportions costs neural methods {min(means):.1f} to {max(means):.1f} points (mPIoU; {zero}), over the "
        f"{_word(len(columns))} columns with at least five validation bags",
        f"{min(means):.3f} to {max(means):.3f}; {len(columns)} columns",
        "fine minus coarse, means over datasets",
    )
    best = max((float(after[label].mean()), label) for label in neural)
    yield Claim(
        f"there `bag-gp-gbdt` has {after[LEADER].mean():.1f}, {_interval(after[LEADER] - after[FLOOR])} above the "
        f"floor, and the best neural method, {_name(neural[best[1]])}, {best[0]:.1f}",
        f"{after[LEADER].mean():.3f}; {_exact(after[LEADER] - after[FLOOR])}; {best[0]:.3f} ({best[1]})",
        _DIFFERENCE,
    )


def _advice(published: Published) -> Iterator[Claim]:
    """The table that says which method to take: README has what the page has."""
    table = published.advice
    for line, row in zip(grid(table).splitlines()[2:], table.rows, strict=True):
        (mean,) = (field.values["mean"] for field, heading in zip(row, table.headings, strict=True) if heading.numeric)
        yield Claim(line, f"{mean:.3f}", f"page {ADVICE}")


def _name(contender: Contender) -> str:
    """A method's, with its pretraining."""
    return f"`{contender.method}`" + ("" if contender.pretraining == "none" else f" with `{contender.pretraining}`")


def _includes_zero(low: float, high: float) -> bool:
    return low <= 0 <= high


def _means_over(standings: Standings, columns: set[tuple[str, int]]) -> DataFrame:
    """Dataset means over some columns, of the ranked rows."""
    frame = standings.frame()
    inside = [key in columns for key in zip(frame["dataset"], frame["bag_size"], strict=True)]
    return dataset_means(frame[inside])


def _row(board: Board, label: str) -> Row:
    return next(row for row in board.rows if row.contender.label == label)


def _places(board: Board, size: int) -> list[int]:
    found = {column.dataset: place for place, column in enumerate(board.columns) if column.bag_size == size}
    return [found[dataset] for dataset in DATASETS if dataset in found]


def _mean_of_size(row: Row, board: Board, size: int) -> float:
    """Over datasets, of the mean over those seeds that most methods have."""
    means = []
    for place in _places(board, size):
        own = row.scores[place].values[HEADLINE]
        means.append(middle.fmean(value for seed, value in own.items() if seed not in board.columns[place].extra))
    return fsum(means) / len(means)


def _hours(scores: Sequence[Score]) -> float:
    """Of three seeds of each."""
    runs = (run for score in scores for seed, run in score.runs.items() if seed < SEEDS)
    return fsum(run["times"]["total"] for run in runs) / 3600


def _papers_best(bagging: str) -> dict[str, Decimal]:
    """By dataset, the best mean of the paper's methods and variants in ordered or random bags, as it is printed."""
    found: dict[str, Decimal] = {}
    for row in (row for table in _PAPERS_TABLES for row in rows(table)):
        if row.get("method") != "Supervised" and row.get("bagging", "Ord.") == _PAPERS_BAGS[bagging]:
            found[row["dataset"]] = max(found.get(row["dataset"], Decimal(0)), Decimal(row["mean"]))
    return found


def _interval(differences: Sequence[float], above: bool = False) -> str:
    """`3.7 [−0.3, 7.6]`, with `points` where a sentence says so."""
    mean, (low, high) = fsum(differences) / len(differences), interval(differences)
    return f"{mean:.1f} {'points ' if above else ''}[{_signed(low)}, {_signed(high)}]"


def _exact(differences: Sequence[float]) -> str:
    low, high = interval(differences)
    return f"{fsum(differences) / len(differences):.3f} [{low:.3f}, {high:.3f}]"


def _signed(value: float) -> str:
    return f"{value:.1f}".replace("-", "−")


def _bracket(value: float, ends: tuple[float, float] | None, digits: int, sign: str) -> str:
    known = "" if ends is None else f" [{ends[0]:.{digits}f}, {ends[1]:.{digits}f}]"
    return f"{value:{sign}.{digits}f}{known}" if ends or digits != 1 or sign else f"{value:.0f}"


def _and(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]


def _word(number: int) -> str:
    small = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
    return small[number] if number < len(small) else {13: "thirteen", 14: "fourteen"}.get(number, str(number))


def result_section() -> str:
    """README's section `A result`, on one line."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = text[text.index("\n## A result\n") : text.index("\n## Run it\n")]
    return flat(re.sub(r"```.*?```", "", section, flags=re.DOTALL))


def flat(text: str) -> str:
    """Without line ends and marks of links."""
    return " ".join(text.split())


def listed(found: Sequence[Claim]) -> str:
    """docs/claims.md."""
    head = (
        "# Claims\n\n"
        "Every number of README's result section, what it is before it is rounded, and where it comes from. "
        "Written by\n"
        "`python tests/report/claims.py` from the published journal; `tests/report/test_claims.py` demands that README "
        "says the\nsame, and that it has no other number. What stands on the boards and on the page is made from the "
        "journal alone, which\n`tests/report/test_published.py` shows.\n\n"
        "| README | number | from |\n| --- | --- | --- |\n"
    )
    lines = [(claim.text.strip("| ").replace("|", "·"), claim.behind, claim.source) for claim in found]
    others = [(said, "not made again here", source) for said, source in NOT_OF_THE_JOURNAL.items()]
    return head + "".join(f"| {' | '.join(line)} |\n" for line in [*lines, *others])


def with_tables(readme: str, published: Published) -> str:
    """README with its generated tables: methods over all columns, two of the paper's encoder, which method to take."""
    heading, *lines = (f"{claim.text}\n" for claim in _table(published))
    readme = re.sub(r"\| rank \|.*\n(.*\n)(\|.*\n)+", lambda at: "".join([heading, at[1], *lines]), readme, count=1)
    encoders = published.networks.tables()
    for heading, table in (("The paper's encoder", encoders), ("Which method for my data?", grid(published.advice))):
        before, head, after = readme.partition(f"\n### {heading}\n")
        said, _, left = re.split(r"((?:^\|.*\n(?:\n(?=\|))?)+)", after, maxsplit=1, flags=re.MULTILINE)
        readme = f"{before}{head}{said}{table}\n{left}"
    return readme


def main() -> None:
    """Write the list and README's tables anew."""
    published, readme = Published(), ROOT / "README.md"
    readme.write_text(with_tables(readme.read_text(encoding="utf-8"), published), encoding="utf-8")
    LIST.write_text(listed([*claims(published)]), encoding="utf-8")


if __name__ == "__main__":
    main()
