"""Add estimates of PyEI to the 2 x 2 tables of a file. `benchmarks.ecological` runs it in a Python that has pyei."""

from __future__ import annotations

import importlib
import json
import logging
import sys
import time
import warnings
from pathlib import Path

import numpy as np


def main(path: Path, models: list[str]) -> None:
    """Fit every model that a table lacks and write the file after each."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    pyei = importlib.import_module("pyei")
    tables = json.loads(path.read_text(encoding="utf-8"))
    for table in tables:
        for model in models:
            if model in table:
                continue
            clock = time.perf_counter()
            fitted = pyei.TwoByTwoEI(model_name=model, lmbda=0.5)  # the prior of King, Rosen and Tanner
            fitted.fit(
                np.array(table["share"]),
                np.array(table["votes"]),
                np.array(table["rows"]),
                chains=2,
                cores=1,
                random_seed=0,
                progressbar=False,
            )
            intervals = fitted.credible_interval_95_mean_voting_prefs
            table[model] = [
                (float(mean), *map(float, interval))
                for mean, interval in zip(fitted.posterior_mean_voting_prefs, intervals, strict=True)
            ]
            table["seconds"][model] = time.perf_counter() - clock
            path.write_text(json.dumps(tables), encoding="utf-8")
            print(f"{table['table']} {table['by']} {model}: {table['seconds'][model]:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
