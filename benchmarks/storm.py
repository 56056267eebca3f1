"""A storm of kills: what SIGKILL of driver, worker, raylet and Ray's process loses, doubles, changes and leaves behind.

    python -m benchmarks.storm --kills 80                      # inline: driver and worker
    python -m benchmarks.storm --kills 20 --executor ray       # also raylet and host

Runs, predictions and searches of small cells are made undisturbed, then under kills, each at a random moment once the
one before was overcome; the same command goes on when the driver is dead. Both must be equal but for times.
"""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import pandas as pd

from llpbench.results.journal import FILE

CELLS = ["--datasets", "telco_churn", "--methods", "bag-mean-linear,count-linear,dllp", "--bag-sizes", "64"]
CELLS += ["--max-bags", "12", "--seeds", "3", "--epochs", "20", "--patience", "20", "--retry", "failed"]
CELLS += ["--tune", "4", "--tune-regimes", "fine", "--save-predictions"]
MARK = "LLPBENCH_STORM"  # in the environment of every process that a storm starts
VICTIMS = {"worker": b"llpbench.running.worker", "host": b"llpbench.running.ray_host", "raylet": b"raylet/raylet"}
FLEETING = ("times", "memory_mb", "finished", "code", "hardware", "seconds")


def processes(mark: str) -> dict[int, bytes]:
    """The command lines of all living processes of a storm, by number."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"{MARK}={mark}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found[int(folder.name)] = (folder / "cmdline").read_bytes()
    return found


def without_times(value: Any) -> Any:
    """A line of the journal without what differs between two computations of the same."""
    if isinstance(value, dict):
        return {key: without_times(each) for key, each in value.items() if key not in FLEETING}
    return [without_times(each) for each in value] if isinstance(value, list) else value


def finished(out: Path) -> tuple[dict[str, Any], int]:
    """What a journal and its predictions hold, and how many lines stand there twice."""
    named: list[tuple[str, dict[str, Any]]] = []
    for text in (out / FILE).read_bytes().splitlines() if (out / FILE).exists() else ():
        with suppress(ValueError):  # a line that a kill has cut is none
            line = json.loads(text)
            named += [(str(line.get("run") or line.get("tuning")), line)] if line["status"] == "ok" else []
    found: dict[str, Any] = {name: without_times(line) for name, line in named}
    for file in (out / "predictions").glob("*.parquet"):
        found[file.name] = pd.read_parquet(file).to_csv()
    return found, len(named) - len({name for name, _ in named})


class Storm:
    """Kills, and what came of them."""

    def __init__(self, folder: Path, executor: str, most: int) -> None:
        self.folder, self.executor, self.most, self.moment = folder, executor, most, random.Random(0)
        self.kills: Counter[str] = Counter()
        self.lost = self.doubled = self.different = self.rounds = 0

    def start(self, out: Path) -> subprocess.Popen[bytes]:
        """The command, which goes on from what `out` holds."""
        command = [sys.executable, "-m", "llpbench", "run", *CELLS, "--out", str(out), "--executor", self.executor]
        environment = {**os.environ, MARK: self.folder.name, "TMPDIR": str(self.folder / "t")}
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)

    def wait(self, process: subprocess.Popen[bytes], out: Path) -> int | None:
        """Wait until something was added to `out`, and a moment more; the exit code of a process that ends first."""
        until, before = math.inf, 0
        while time.monotonic() < until or self.kills.total() >= self.most:
            with suppress(subprocess.TimeoutExpired):
                return process.wait(0.05)
            size = sum(path.stat().st_size for path in (*out.glob(FILE), *out.glob("tuning/*.log")))  # runs and trials
            before = before or size
            if until == math.inf and size > before:
                until = time.monotonic() + self.moment.uniform(0.0, 3.0)
        return None

    def round(self, wanted: dict[str, Any]) -> None:
        """One command, killed until enough kills are done or it ends, then judged."""
        out, self.rounds = self.folder / f"round-{self.rounds}", self.rounds + 1
        process, before = self.start(out), set[str]()
        while (code := self.wait(process, out)) != 0:
            if code is None:
                self.strike(process)
            now = finished(out)[0].keys()
            self.lost += len(before - now)
            before = {*now}
            if process.poll() is not None:
                process = self.start(out)
        found, doubled = finished(out)
        self.lost += len(wanted.keys() - found.keys())
        self.different += sum(found[name] != wanted.get(name) for name in found)
        self.doubled += doubled
        shutil.rmtree(out)

    def strike(self, process: subprocess.Popen[bytes]) -> None:
        """Kill one process of a kind that is there."""
        alive = {"driver": [process.pid]}
        for number, line in processes(self.folder.name).items():
            for kind in (kind for kind, part in VICTIMS.items() if part in line):
                alive.setdefault(kind, []).append(number)
        kind = min(alive, key=lambda kind: (self.kills[kind], self.moment.random()))
        with suppress(ProcessLookupError):
            os.kill(self.moment.choice(alive[kind]), signal.SIGKILL)
            self.kills[kind] += 1


@click.command()
@click.option("--kills", default=100, show_default=True)
@click.option("--executor", type=click.Choice(["inline", "ray"]), default="inline", show_default=True)
def main(kills: int, executor: str) -> None:
    """Kill so often, and tell what it did."""
    folder = Path(tempfile.mkdtemp(prefix="st-", dir="/tmp"))
    (folder / "t").mkdir()
    storm = Storm(folder, executor, kills)
    if code := storm.start(folder / "undisturbed").wait():
        raise click.ClickException(f"the undisturbed run ended with {code}: see {folder / 'log'}")
    wanted = finished(folder / "undisturbed")[0]
    click.echo(f"undisturbed: {len(wanted)} runs, predictions and searches")
    while storm.kills.total() < kills:
        storm.round(wanted)
        click.echo(f"{dict(storm.kills)}: {storm.lost} lost, {storm.doubled} doubled, {storm.different} different")
    time.sleep(60)
    left, files = processes(folder.name), sorted(path.name for path in (folder / "t").iterdir())
    click.echo(f"{storm.rounds} rounds; left after a minute: {len(left)} processes, files: {files or 'none'}")
    click.echo(b"\n".join(line.replace(b"\0", b" ")[:150] for line in left.values()))


if __name__ == "__main__":
    main()
