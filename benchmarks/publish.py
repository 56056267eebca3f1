"""Write all published boards, pages and plots again: those of the suites, then the front page, which shows theirs.

`docs/generate.py` then writes the scores of `docs/methods.md`.

python -m benchmarks.publish
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence

from llpbench.cli.main import cli

SUITES = {
    "core": ("--datasets", "suite:core", "--title", "Core suite"),
    "few-bags": ("--title", "Few bags"),
    "natural": ("--title", "Natural bags"),
    "rare": ("--title", "Rare classes", "--metric", "average-precision"),
    "multiclass": ("--title", "More than two classes"),
}
"""Options of each suite, which is a folder of `leaderboards/`."""

README_FIGURE = ("leaderboards/core/plots/differences-coarse-mpiou-ordered.svg", "docs/images/differences-core.svg")


def _report(*options: str) -> None:
    arguments: Sequence[str] = ("report", *options)
    cli(arguments, standalone_mode=False)


def main() -> None:
    """Write the boards. Run this in the folder of the checkout."""
    for name, options in SUITES.items():
        folder = f"leaderboards/{name}"
        _report("--journal", folder, "--out", folder, *options)
    _report("--journal", "leaderboards", "--out", "leaderboards", "--plots", "plots")
    shutil.copyfile(*README_FIGURE)
    subprocess.run([sys.executable, "docs/generate.py"], check=True)


if __name__ == "__main__":
    main()
