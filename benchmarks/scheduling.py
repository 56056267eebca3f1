"""Cost of scheduling empty cells: through Ray, and by the schedule alone.

    python -m benchmarks.scheduling --cells 10000 --slots 16
    python -m benchmarks.scheduling --simulate --cells 100000 --slots 200

The first does no-op cells on a Ray of so many slots, whatever cores there are: seconds a cell, and the driver's memory.
The second lets the driver answer a simulated cluster, with cells of all lengths and a clock that is only counted: how
long it works itself, and how much later the run ends than with perfect packing.
"""

from __future__ import annotations

import heapq
import random
import time
from collections.abc import Callable, Sequence

import click

from llpbench.core.cell import Cell, Environment, Epoch
from llpbench.core.record import Record, TuningRecord
from llpbench.core.text import duration
from llpbench.running.cluster import Nodes, Room, TrialJob
from llpbench.running.executors import Resources
from llpbench.running.executors.ray import RayExecutor
from llpbench.running.schedule import Ended, Job, Schedule
from llpbench.training import memory

OnEpoch = Callable[[Epoch], None] | None


class Counter:
    """Hears of jobs, and counts them."""

    def __init__(self) -> None:
        self.finished_jobs = 0
        self.first = 0.0

    def started(self, job: Job) -> None: ...

    def progressed(self, job: Job, epoch: Epoch) -> None: ...

    def finished(self, job: Job, records: list[Record]) -> None:  # noqa: ARG002
        self.finished_jobs += 1
        self.first = self.first or time.perf_counter()

    def search_finished(self, job: Job, record: TuningRecord) -> None: ...

    def ended(self, job: Job, end: Ended) -> None:
        raise RuntimeError(f"{job}: {end}")

    def warned(self, text: str) -> None:
        raise RuntimeError(text)


def nothing(cell: Cell, seeds: Sequence[int], environment: Environment, on_epoch: OnEpoch) -> list[Record]:  # noqa: ARG001
    """A cell that makes no record."""
    return []


def jobs_of(number: int) -> list[Job]:
    """Different cells of a direct method."""
    from llpbench.training.specification import make_cell  # torch: not in the processes that do nothing

    return [Job(make_cell("bag-mean-linear", "adult", bag_size=size + 2), (0,)) for size in range(number)]


def through_ray(number: int, slots: int) -> None:
    """Time no-op cells on a Ray of our own."""
    from benchmarks.scheduling import nothing  # as other processes find it, rather than in `__main__`

    schedule, counter = Schedule(jobs_of(number), lambda _: 1.0), Counter()
    before = memory.peak_mb() or 0.0
    begin = time.perf_counter()
    RayExecutor(Environment(), Resources(slots), run=nothing).run(schedule, counter)
    end = time.perf_counter()
    each = (end - counter.first) / max(counter.finished_jobs - 1, 1)
    click.echo(f"{counter.finished_jobs:,} cells on {slots} slots in {duration(end - begin)}, {each:.4f} s a cell")
    most = memory.peak_mb() or 0.0
    click.echo(f"first after {counter.first - begin:.1f} s; driver {before:.0f} MB, {most:.0f} MB at most")


def simulated(number: int, slots: int) -> None:
    """Let the driver answer a cluster that is only counted."""
    rng = random.Random(0)
    jobs = jobs_of(number)
    lengths = {job.id: rng.lognormvariate(3.0, 1.5) for job in jobs}
    slots = slots // 16 * 16
    begin = time.perf_counter()
    schedule = Schedule(jobs, lambda job: lengths[job.id])
    executor = RayExecutor(Environment(), Resources(16))
    executor._nodes = Nodes(tuple(Room(16.0, 0.0, 64_000.0) for _ in range(slots // 16)), 0.0)
    running: dict[str, object] = {}
    ends: list[tuple[float, str]] = []
    clock, asked = 0.0, 0
    while True:
        trial = str(asked)
        answer = executor._answer(trial, running, schedule)  # type: ignore[arg-type]
        asked += 1
        if isinstance(answer, TrialJob):
            heapq.heappush(ends, (clock + lengths[answer.job.id], trial))
        elif answer == "finished":
            break
        else:
            clock, trial = heapq.heappop(ends)
            del running[trial]
    took = time.perf_counter() - begin
    perfect = max(sum(lengths.values()) / slots, max(lengths.values()))
    click.echo(f"{number:,} cells on {slots} slots: {1e6 * took / number:.0f} us of the driver a cell ({took:.1f} s)")
    click.echo(f"the last one ends after {clock / perfect:.3f} of the time of perfect packing")


@click.command(help=__doc__)
@click.option("--cells", default=10_000)
@click.option("--slots", default=16)
@click.option("--simulate", is_flag=True)
def main(cells: int, slots: int, simulate: bool) -> None:
    (simulated if simulate else through_ray)(cells, slots)


if __name__ == "__main__":
    main()
