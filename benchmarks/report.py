"""How long a large journal takes: to be planned over, and to be reported.

    python benchmarks/report.py [--lines 10000] [--json FILE] [--page FILE]

The journal is synthetic: the published runs, repeated under the names of more datasets and with more seeds, their
scores shaken a little.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import json
import random
import re
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from llpbench.core.cell import Cell
from llpbench.core.record import Record
from llpbench.results.journal import FILE, read
from llpbench.results.lines import to_line
from llpbench.results.merging import shipped

SEEDS = 10


def synthetic(lines: int) -> Iterator[Record]:
    """As many records: of every published cell `SEEDS` seeds, then the same for further datasets."""
    rng = random.Random(0)
    templates = {record["cell"]: record for record in read(shipped()).records.values() if record["status"] == "ok"}
    endless = (
        (copy_number, template, seed)
        for copy_number in itertools.count()
        for template in templates.values()
        for seed in range(SEEDS)
    )
    for copy_number, template, seed in itertools.islice(endless, lines):
        record = copy.deepcopy(template)
        if copy_number:
            record["spec"]["dataset"] += f"-{copy_number}"
        cell = Cell.of(record["spec"])
        record |= {"cell": cell.id, "seed": seed, "run": cell.run_id(seed), "spec": cell.spec}
        for result in record["results"].values():
            result["test"] = {
                name: value and min(max(value + rng.gauss(0, 0.01), 0.0), 1.0) for name, value in result["test"].items()
            }
        yield record


def main() -> None:
    """Print the seconds of each step, and the size of the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=10_000)
    parser.add_argument("--json", type=Path, help="write the numbers there")
    parser.add_argument("--page", type=Path, help="keep the page there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / FILE
        with path.open("wb") as file:
            file.writelines(to_line(record) for record in synthetic(options.lines))
        result: dict[str, float] = {"lines": options.lines, "journal MB": path.stat().st_size / 1e6}

        from llpbench.running.obstacles import resolver
        from llpbench.running.planning import make_plan

        clock = time.process_time()
        records = read(path).records
        result["reading CPU s"] = time.process_time() - clock
        specs = {record["cell"]: record["spec"] for record in records.values()}
        resolve, cells = resolver(), map(Cell.of, specs.values())
        # further datasets have the declarations of those that they repeat
        known = ((cell, resolve(replace(cell, dataset=re.sub(r"-\d+$", "", cell.dataset)))) for cell in cells)
        make_plan((one._replace(cell=cell) for cell, one in known), tuple(range(SEEDS)), records)
        result["reading and plan CPU s"] = time.process_time() - clock
        from llpbench.report import make_report, write_report  # its imports are part of what a report takes

        clock = time.process_time()
        report = make_report(list(records.values()))
        result["tables and statistics CPU s"] = time.process_time() - clock
        clock = time.process_time()
        write_report(report, Path(folder))
        result["files and page CPU s"] = time.process_time() - clock
        clock = time.process_time()
        write_report(report, Path(folder), plots=Path(folder) / "plots")
        result["files, page and plots CPU s"] = time.process_time() - clock
        page = Path(folder) / "index.html"
        result["page MB"] = page.stat().st_size / 1e6
        result["plots"] = len(list((Path(folder) / "plots").glob("*.svg")))

        if options.page:
            options.page.write_bytes(page.read_bytes())
    for name, value in result.items():
        print(f"{name:30}{value:12,.2f}")
    if options.json:
        options.json.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
