"""How often what boards claim is wrong: significant differences, intervals, and Friedman's test.

    python benchmarks/error_and_coverage.py [--draws 1000] [--datasets 4 9] [--json FILE]

Boards are drawn as `tests/report/boards_drawn.py` says: twelve methods, three bag sizes, ten seeds, spreads as in the
published journal; what the truths are stands there, too. docs/statistics.md has the numbers.
"""

from __future__ import annotations

import argparse
import json
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
from pandas import DataFrame
from scipy.stats import friedmanchisquare

from llpbench.report import statistics

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "report"))

from boards_drawn import MEANS, TRUTHS, Shape, draw, true_ranks


def measure(name: str, datasets: int, draws: int, shape: Shape = "normal") -> dict[str, float | str]:
    """Of boards of that many datasets."""
    rng = np.random.default_rng(1)
    found: dict[str, list[float]] = {}
    held = np.zeros(len(MEANS))
    for _ in range(draws):
        means = TRUTHS[name](rng)
        blocks = DataFrame(draw(rng, means, datasets=datasets, shape=shape).mean(axis=(1, 2)))
        first, last = true_ranks(means)
        low, high = statistics.rank_intervals(blocks)
        holds = (low <= last) & (high >= first)
        held += holds
        above = np.greater.outer(blocks.mean().to_numpy(), blocks.mean().to_numpy())
        told = np.zeros_like(above)
        pairs = {pair: [*(blocks[pair[0]] - blocks[pair[1]])] for pair in combinations(range(len(means)), 2)}
        for (one, other), difference in statistics.compared(pairs).items():
            told[[one, other], [other, one]] = difference.is_significant
        told &= above
        ends = [statistics.interval(blocks[other] - blocks[len(means) - 1]) for other in range(len(means) - 1)]
        each = {
            "any pair wrongly significant": (told & (means[:, None] <= means)).any(),
            "pairs rightly significant": (told & (means[:, None] > means)).sum()
            / max((means[:, None] > means).sum(), 1),
            "rank interval holds, mean": holds.mean(),
            "rank interval holds, all rows": holds.all(),
            "ranks in an interval": (high - low + 1).mean(),
            "against floor holds": np.mean([a <= m - means[-1] <= b for (a, b), m in zip(ends, means, strict=False)]),
            "friedman below 0.05": friedmanchisquare(*blocks.to_numpy().T).pvalue < 0.05,
        }
        for key, value in each.items():
            found.setdefault(key, []).append(float(value))
    worst = {"rank interval holds, worst row": held.min() / draws}
    setting = {"truth": name, "datasets": datasets, "shape": shape}
    return {**setting, **{key: float(np.mean(values)) for key, values in found.items()}, **worst}


def main() -> None:
    """Print a line for each kind of board."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--datasets", type=int, nargs="+", default=[4, 6, 9])
    parser.add_argument("--json", type=Path, help="write the numbers there")
    options = parser.parse_args()
    lines: list[dict[str, float | str]] = []

    def tell(line: dict[str, float | str]) -> None:
        lines.append(line)
        print(
            *(f"{k}: {v:.3f}" if isinstance(v, float) else f"{k}: {v}" for k, v in line.items()), sep="  ", flush=True
        )

    for datasets in options.datasets:
        for name in TRUTHS:
            tell(measure(name, datasets, options.draws))
    for shape in ("heavy", "skewed", "two-valued"):
        for name in ("equal", "random"):
            tell(measure(name, options.datasets[0], options.draws, shape))
    if options.json:
        options.json.write_text(json.dumps(lines, indent=1))


if __name__ == "__main__":
    main()
