"""A storm of kills: what SIGKILL of driver, worker, raylet and Ray's process loses, doubles, changes and leaves behind.

    python -m benchmarks.storm --kills 80                      # inline: driver and worker
    python -m benchmarks.storm --kills 20 --executor ray       # also raylet and host

Runs, predictions and searches of small cells are made undisturbed, then over and over under kills at random moments;
the same command goes on after each death of the driver. What is finished must equal the undisturbed but for times.
"""

from __future__ import annotations

import json
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
MARK = "LLPBENCH_STORM"
"""in the environment of every process that a storm starts"""
VICTIMS = {"worker": b"llpbench.running.worker", "host": b"llpbench.running.ray_host", "raylet": b"raylet/raylet"}
FLEETING = ("times", "memory_mb", "finished", "code", "hardware", "seconds")
PATIENCE = 60.0
"""seconds after which nothing may be left"""


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
    for run in list(found):
        if (file := out / "predictions" / f"{run}.parquet").exists():
            found[f"{run} predicted"] = pd.read_parquet(file).to_csv()
    return found, len(named) - len({name for name, _ in named})


class Storm:
    """Kills, and what came of them."""

    def __init__(self, folder: Path, executor: str) -> None:
        self.folder, self.executor, self.moment = folder, executor, random.Random(0)
        self.kills: Counter[str] = Counter()
        self.lost = self.doubled = self.different = self.rounds = 0

    def start(self, out: Path) -> subprocess.Popen[bytes]:
        """The command, which goes on from what `out` holds."""
        command = [sys.executable, "-m", "llpbench", "run", *CELLS, "--out", str(out), "--executor", self.executor]
        environment = {**os.environ, MARK: self.folder.name, "TMPDIR": str(self.folder / "t")}
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)

    def undisturbed(self) -> tuple[dict[str, Any], float]:
        """What is to come out, and in how many seconds."""
        out, clock = self.folder / "undisturbed", time.monotonic()
        if code := self.start(out).wait():
            raise click.ClickException(f"the undisturbed run ended with {code}: see {self.folder / 'log'}")
        return finished(out)[0], time.monotonic() - clock

    def round(self, wanted: dict[str, Any], longest: float, kills: int) -> None:
        """One command, killed until so many kills are done or it ends, then judged."""
        out, self.rounds = self.folder / f"round-{self.rounds}", self.rounds + 1
        process, code, before = self.start(out), -1, set[str]()
        while code != 0:
            try:
                pause = self.moment.uniform(0.2, 1.0) * longest if sum(self.kills.values()) < kills else None
                code = process.wait(pause)
            except subprocess.TimeoutExpired:
                self.strike(process)
                code = process.poll() or -1
            now = finished(out)[0].keys()
            self.lost += len(before - now)
            before = {*now}
            if process.poll() is not None and code != 0:
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
@click.option("--pace", default=0.5, show_default=True, help="Longest pause between kills, as a share of a calm run.")
def main(kills: int, executor: str, pace: float) -> None:
    """Kill so often, and tell what it did."""
    folder = Path(tempfile.mkdtemp(prefix="st-", dir="/tmp"))
    (folder / "t").mkdir()
    storm = Storm(folder, executor)
    wanted, seconds = storm.undisturbed()
    click.echo(f"undisturbed: {len(wanted)} runs, predictions and searches in {seconds:.0f} s")
    while sum(storm.kills.values()) < kills:
        storm.round(wanted, seconds * pace, kills)
        click.echo(f"{dict(storm.kills)}: {storm.lost} lost, {storm.doubled} doubled, {storm.different} different")
    time.sleep(PATIENCE)
    left, files = processes(folder.name), sorted(path.name for path in (folder / "t").iterdir())
    click.echo(f"{storm.rounds} rounds; left after {PATIENCE:.0f} s: {len(left)} processes, files: {files or 'none'}")
    click.echo(b"\n".join(line.replace(b"\0", b" ")[:150] for line in left.values()))


if __name__ == "__main__":
    main()
