"""A storm of kills: what SIGKILL of driver, worker, raylet and Ray's process loses, doubles, changes and leaves behind.

    python -m benchmarks.storm --kills 50                      # inline: driver and worker
    python -m benchmarks.storm --kills 30 --executor ray       # also raylet and host
    python -m benchmarks.storm --kills 80 --own                # fit; predict and estimate in memory and in batches

Runs, predictions and searches of small cells (with --own: a model, its predictions and estimates) are made
undisturbed, then under kills, each at a random moment once the one before was overcome; the same command goes on when
the driver is dead. Both must be equal but for times, and leave the same files.
"""

from __future__ import annotations

import hashlib
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
import numpy as np
import pandas as pd

from llpbench.results.journal import FILE

CELLS = ["--datasets", "telco_churn", "--methods", "bag-mean-linear,count-linear,dllp", "--bag-sizes", "64"]
CELLS += ["--max-bags", "12", "--seeds", "3", "--epochs", "20", "--patience", "20", "--retry", "failed"]
CELLS += ["--tune", "4", "--tune-regimes", "fine", "--save-predictions"]
OWN = [
    "fit rows.csv --bags bags.csv --bag-column bag --counts no,yes --out OUT/model",
    "predict OUT/model rows.csv --bag-column bag --whole-bags --out OUT/predicted.csv",
    "predict OUT/model rows.csv --bag-column bag --out-of-core --out OUT/in-batches.csv",
    "estimate OUT/model rows.csv --bag-column bag --by sex --out OUT/groups.csv",
    "estimate OUT/model rows.csv --bag-column bag --by sex --out-of-core --out OUT/groups-in-batches.csv",
]
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


def files(folder: Path) -> set[str]:
    """The paths below a folder."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def finished(out: Path, own: bool) -> tuple[dict[str, Any], int]:
    """What a journal and its predictions hold, or the files of --own, and how many lines stand there twice."""
    if own:
        made = {path.name: path.read_bytes() for path in out.rglob("*") if path.is_file() and path.suffix != ".tmp"}
        # two fits of the same give models of different bytes, whose predictions are equal
        return {name: hashlib.sha256(data).hexdigest() * (name != "model.skops") for name, data in made.items()}, 0
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

    def __init__(self, folder: Path, executor: str, own: bool, most: int) -> None:
        self.folder, self.executor, self.own, self.most = folder, executor, own, most
        self.moment = random.Random(0)
        self.kills: Counter[str] = Counter()
        self.lost = self.doubled = self.different = self.rounds = 0
        self.left: set[str] = set()
        self.seconds: dict[str, float] = {}  # of undisturbed commands

    def commands(self, out: Path) -> list[list[str]]:
        """Return the commands of a round. Each one continues the runs in `out`."""
        if self.own:
            return [line.replace("OUT", str(out)).split() for line in OWN]
        return [["run", *CELLS, "--out", str(out), "--executor", self.executor]]

    def name(self, command: list[str]) -> str:
        """What a command does and writes."""
        return f"{command[0]} {Path(command[-1]).name}"

    def start(self, command: list[str]) -> subprocess.Popen[bytes]:
        environment = {**os.environ, MARK: self.folder.name, "TMPDIR": str(self.folder / "t")}
        with (self.folder / "log").open("ab") as log:
            call = [sys.executable, "-m", "llpbench", *command]
            return subprocess.Popen(
                call, stdout=log, stderr=log, env=environment, cwd=self.folder, start_new_session=True
            )

    def undisturbed(self) -> tuple[dict[str, Any], set[str]]:
        """What the commands make if nothing is killed, and their files."""
        out = self.folder / "undisturbed"
        for command in self.commands(out):
            begin = time.monotonic()
            if code := self.start(command).wait():
                raise click.ClickException(f"an undisturbed command ended with {code}: see {self.folder / 'log'}")
            self.seconds[self.name(command)] = time.monotonic() - begin
        return finished(out, self.own)[0], files(out)

    def wait(self, command: str, process: subprocess.Popen[bytes], out: Path) -> int | None:
        """Wait until something was added to `out`, and a moment more; the exit code of a process that ends first."""
        until, before = math.inf, 0
        if self.own:
            until = time.monotonic() + self.moment.uniform(0.3, 1.3) * self.seconds[command]
        while time.monotonic() < until or self.kills.total() >= self.most:
            with suppress(subprocess.TimeoutExpired):
                return process.wait(0.05)
            size = sum(path.stat().st_size for path in (*out.glob(FILE), *out.glob("tuning/*.json")))  # runs and trials
            before = before or size
            if until == math.inf and size > before:
                until = time.monotonic() + self.moment.uniform(0.0, 3.0)
        return None

    def round(self, wanted: dict[str, Any], paths: set[str]) -> None:
        """The commands, killed until enough kills are done or they end, then judged."""
        out, self.rounds, before = self.folder / f"round-{self.rounds}", self.rounds + 1, set[str]()
        for command in self.commands(out):
            process, begin = self.start(command), time.monotonic()
            while (code := self.wait(self.name(command), process, out)) != 0:
                if code is None:
                    self.strike(self.name(command), process)
                elif code > 1:
                    raise click.ClickException(f"a command ended with {code}: see {self.folder / 'log'}")
                found = finished(out, self.own)[0]
                self.lost += len(before - found.keys())
                self.different += sum(value != wanted.get(name) for name, value in found.items())
                before = {*found}
                if process.poll() is not None:
                    process, begin = self.start(command), time.monotonic()
            self.seconds[self.name(command)] = time.monotonic() - begin
        found, doubled = finished(out, self.own)
        self.lost += len(wanted.keys() - found.keys())
        self.different += sum(value != wanted.get(name) for name, value in found.items())
        self.doubled += doubled
        self.left |= files(out) - paths
        shutil.rmtree(out)

    def strike(self, command: str, process: subprocess.Popen[bytes]) -> None:
        """Kill one process of a kind that is there."""
        alive = {"driver": [process.pid]}
        for number, line in processes(self.folder.name).items():
            for kind in (kind for kind, part in VICTIMS.items() if part in line):
                alive.setdefault(kind, []).append(number)
        kind = min(alive, key=lambda kind: (self.kills[f"{kind} of {command}"], self.moment.random()))
        with suppress(ProcessLookupError):
            os.kill(self.moment.choice(alive[kind]), signal.SIGKILL)
            self.kills[f"{kind} of {command}"] += 1
        if kind == "driver":
            process.wait()


def tables(folder: Path) -> None:
    """Write rows of 60 bags and the counts of the bags."""
    random, size = np.random.default_rng(0), 4000
    numbers, bags = random.normal(size=(size, 4)), random.integers(0, 60, size)
    positive = numbers[:, 0] + bags / 30 - 1 + random.logistic(size=size) > 0
    rows = pd.DataFrame(numbers, columns=[*"abcd"]).assign(sex=random.choice(["F", "M"], size), bag=bags)
    rows.to_csv(folder / "rows.csv", index=False)
    counts = {"no": np.bincount(bags, ~positive).astype(int), "yes": np.bincount(bags, positive).astype(int)}
    pd.DataFrame(counts).rename_axis("bag").to_csv(folder / "bags.csv")


@click.command()
@click.option("--kills", default=100, show_default=True)
@click.option("--executor", type=click.Choice(["inline", "ray"]), default="inline", show_default=True)
@click.option("--own", is_flag=True, help="Fit, predict and estimate instead of runs.")
def main(kills: int, executor: str, own: bool) -> None:
    """Kill so often, and tell what it did."""
    folder = Path(tempfile.mkdtemp(prefix="st-", dir="/tmp"))
    (folder / "t").mkdir()
    tables(folder)
    storm = Storm(folder, executor, own, kills)
    wanted, paths = storm.undisturbed()
    click.echo(f"undisturbed: {len(wanted)} results, {len(paths)} files")
    while storm.kills.total() < kills:
        storm.round(wanted, paths)
        click.echo(f"{dict(storm.kills)}: {storm.lost} lost, {storm.doubled} doubled, {storm.different} different")
    storm.undisturbed()  # removes what killed commands have left
    time.sleep(60)
    left = processes(folder.name)
    click.echo(f"{storm.rounds} rounds; left beside the results: {sorted(storm.left) or 'nothing'}")
    click.echo(f"left after a minute: {len(left)} processes; temporary: {sorted(files(folder / 't')) or 'nothing'}")
    click.echo(b"\n".join(line.replace(b"\0", b" ")[:150] for line in left.values()))


if __name__ == "__main__":
    main()
