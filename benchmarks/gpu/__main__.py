"""Check, measure and use a GPU for some minutes, end in time, and go on there the next time (docs/machines.md).

    python -m benchmarks.gpu --minutes 9                           # correctness, measures, campaign
    python -m benchmarks.gpu --minutes 9 --continue earlier        # goes on where rows and journal there end
    python -m benchmarks.gpu --minutes 9 --ray --data-dir data     # with two cells at once by Ray
    python -m benchmarks.gpu --device cpu --minutes 3              # a rehearsal, with reduced sizes

Everything is written as it is measured: rows.jsonl, journal.jsonl, log.txt, and at the end summary.txt, which is also
printed. The exit code is 1 if a check failed.
"""

from __future__ import annotations

import time

_BEGIN = time.time()  # before anything that takes seconds to import

import faulthandler  # noqa: E402
import os  # noqa: E402
import shutil  # noqa: E402
import sys  # noqa: E402
import threading  # noqa: E402
from pathlib import Path  # noqa: E402

import click  # noqa: E402

from benchmarks.gpu import campaign, correctness, measures, ray_check, tables  # noqa: E402
from benchmarks.gpu.device import name_of  # noqa: E402
from benchmarks.gpu.part import end_children, run_part  # noqa: E402
from benchmarks.gpu.rows import FILE, Box, Rows  # noqa: E402
from benchmarks.gpu.sizes import sizes_for  # noqa: E402
from llpbench.core.errors import LLPBenchError  # noqa: E402
from llpbench.core.provenance import software, software_facts  # noqa: E402

PARTS = (correctness.PART, measures.PART, ray_check.PART, campaign.PART)

_SHARES = {correctness.PART: 1 / 6, measures.PART: 1 / 3, ray_check.PART: 1 / 4}
"""of the minutes, at most: 90 seconds, three minutes and 135 seconds of nine"""
_RESERVE = 1 / 30
"""of the minutes, for the end"""
_LATE = 15.0
"""seconds after its time when a process that hangs is ended from outside Python"""


@click.command(help=__doc__)
@click.option("--minutes", default=9.0, help="all that it may take")
@click.option("--device", default="auto", help="auto, cuda, or cpu for a rehearsal")
@click.option("--out", type=click.Path(path_type=Path), default=None, help="default: $OUT, else gpu-results")
@click.option("--continue", "earlier", type=click.Path(path_type=Path, exists=True), help="folder of an earlier call")
@click.option("--data-dir", type=click.Path(exists=True), help="folder with NAME.parquet")
@click.option("--journal", "journals", multiple=True, help="cells in these journals are done (published, a folder)")
@click.option("--ray", is_flag=True, help="two cells at once by Ray, too")
@click.option("--parts", default=",".join(PARTS), help="some of them; ray only with --ray")
def main(
    minutes: float,
    device: str,
    out: Path | None,
    earlier: Path | None,
    data_dir: str | None,
    journals: tuple[str, ...],
    ray: bool,
    parts: str,
) -> None:
    """Run the parts, each within its share of the time."""
    from llpbench.training.device import pick_device

    whole = Box(_BEGIN + 60 * minutes)
    chosen = [part for part in parts.split(",") if part != ray_check.PART or ray]
    if unknown := set(chosen) - {*PARTS}:
        raise click.BadParameter(f"{', '.join(sorted(unknown))} must be of {', '.join(PARTS)}", param_hint="--parts")
    folder = out or Path(os.environ.get("OUT") or "gpu-results")
    folder.mkdir(parents=True, exist_ok=True)
    _take_over(earlier, folder)
    kind = pick_device(device).type
    rows = Rows(folder, name_of(kind))
    rows.add("software", "software", "ok", {**software_facts(), "content": software()["llpbench"]})
    faulthandler.dump_traceback_later(max(whole.left, 0.1) + _LATE, exit=True)
    watchdog = threading.Timer(whole.left, _end, (rows, folder, "the time was over while a part ran"))
    watchdog.daemon = True
    watchdog.start()
    notes = []
    try:
        for part in chosen:
            box = Box(whole.end - 60 * minutes * _RESERVE).within(60 * minutes * _SHARES.get(part, 1.0))
            notes += _run(part, rows, folder, kind, box, data_dir, journals)
    except LLPBenchError as error:
        notes.append(str(error))
    watchdog.cancel()
    _end(rows, folder, *notes)


def _run(
    part: str, rows: Rows, folder: Path, device: str, box: Box, data_dir: str | None, journals: tuple[str, ...]
) -> list[str]:
    """Run a part and return notes on how it ended."""
    if part != campaign.PART:
        return [run_part(part, rows, folder, device, box)]
    campaign.run_all(rows, folder, device, sizes_for(device), box, data_dir, journals)
    return []


def _take_over(earlier: Path | None, folder: Path) -> None:
    """Copy rows and journal of an earlier call, unless the folder has its own."""
    from llpbench.results.journal import FILE as JOURNAL

    for name in (FILE, JOURNAL):
        if earlier is not None and (earlier / name).is_file() and not (folder / name).exists():
            shutil.copy(earlier / name, folder / name)


def _end(rows: Rows, folder: Path, *notes: str) -> None:
    """Show the results and end the process, even if something still runs."""
    end_children()
    failed = True
    try:
        text = tables.render(rows, [note for note in notes if note], time.time() - _BEGIN)
        failed = tables.something_failed(rows)
    except Exception as error:  # a fault of the table must not keep the process from ending
        text = f"no table could be made ({error!r}); everything measured is in {folder / FILE}"
    (folder / "summary.txt").write_text(text, encoding="utf-8")
    click.echo(text)
    sys.stdout.flush()
    os._exit(int(failed))


if __name__ == "__main__":
    main()
