"""Parts of a plan: together the whole, stable, and joined by merging."""

from __future__ import annotations

import subprocess
from copy import deepcopy
from pathlib import Path

from bench import LLPBench, arguments, make_settings
from test_runner import Silent

from llpbench.core.provenance import NUMERICS
from llpbench.results.journal import FILE, Journal, read
from llpbench.running import runner
from llpbench.running.planning import expand


def test_shards_partition_plan_independently(tiny_bench: Path, tmp_path: Path) -> None:
    sizes = "4,5,6,7,8,9,10,11,12,13,14,15,16"

    def ids(sizes: str, shard: str | None = None) -> list[str]:
        part = {} if shard is None else {"shard": shard}
        return [one.cell.id for one in expand(make_settings(tiny_bench, tmp_path, bag_sizes=sizes, **part))]

    whole, parts = ids(sizes), [ids(sizes, f"{part}/3") for part in (1, 2, 3)]
    assert sorted(cell for part in parts for cell in part) == sorted(whole)
    assert all(parts)
    assert set(ids("4,5", "2/3")) <= set(parts[1])


def test_shard_journals_are_merged(tiny_bench: Path, tmp_path: Path, llpbench: LLPBench) -> None:
    for part in (1, 2):
        given = make_settings(tiny_bench, tmp_path, bag_sizes="4,5,6,7", shard=f"{part}/2")
        summary = runner.run(given, Silent())
        assert not summary.incomplete
        assert given.journal == tmp_path / "shards" / f"{part}-of-2"
    merged = llpbench(
        "merge", str(tmp_path / "shards" / "1-of-2"), str(tmp_path / "shards" / "2-of-2"), "--out", str(tmp_path)
    )
    assert merged.code == 0
    whole = expand(make_settings(tiny_bench, tmp_path, bag_sizes="4,5,6,7"))
    assert {record["cell"] for record in read(tmp_path / FILE).records.values()} == {one.cell.id for one in whole}

    (tmp_path / "shards" / "1-of-2" / FILE).unlink()  # merged runs count as done in every part
    again = Silent()
    runner.run(make_settings(tiny_bench, tmp_path, bag_sizes="4,5,6,7", shard="1/2"), again)
    assert again.jobs == []


def test_shards_agree_with_merged_journals(tiny_bench: Path, tmp_path: Path) -> None:
    part = make_settings(tiny_bench, tmp_path, bag_sizes="4,5,6,7", shard="1/2")
    runner.run(part, Silent())
    own = read(part.journal / FILE)
    assert own.records
    (tmp_path / FILE).write_bytes((part.journal / FILE).read_bytes())
    with Journal(tmp_path) as common:  # repeated since, by the whole plan
        for record in own.records.values():
            common.append({**record, "finished": "2999-01-01T00:00:00Z"})
    (part.journal / FILE).unlink()
    with Journal(part.journal) as journal:
        for record in own.records.values():
            journal.append({**record, "numerics": 0})
    display = Silent()
    summary = runner.run(part, display)
    assert display.jobs == [], "the newer one counts, whosever it is"
    assert {record["numerics"] for record in summary.contents.records.values()} == {NUMERICS}


def test_disputed_run_counts_as_made(tiny_bench: Path, tmp_path: Path) -> None:
    part = make_settings(tiny_bench, tmp_path, bag_sizes="4", shard="1/1")
    runner.run(part, Silent())
    with Journal(part.journal) as journal:
        other = deepcopy(next(iter(read(part.journal / FILE).records.values())))
        other["results"]["auc"]["test"]["auc"] = 0.125
        journal.append(other)
    assert read(part.journal / FILE).disputes
    display = Silent()
    runner.run(part, display)
    assert display.jobs == [], "running again would not resolve the dispute"


def test_printed_merge_command_works(tiny_bench: Path, tmp_path: Path, llpbench: LLPBench) -> None:
    out = tmp_path / "some where's"
    words = ["--methods", "bag-mean-linear", "--bag-sizes", "16", "--tune", "3", "--executor", "debug"]
    for part in ("1/2", "2/2"):
        done = llpbench(*arguments(tiny_bench, out, *words, "--shard", part))
        assert done.code == 0
    told = done.err.splitlines()[-1].partition("When all parts are done: ")[2]
    listed = subprocess.run(["sh", "-c", f"printf '%s\\n' {told}"], capture_output=True, text=True, check=True)
    program, *merge = listed.stdout.splitlines()
    assert program == "llpbench"
    assert merge[:2] == ["merge", str(out / "shards" / "1-of-2")]
    merged = llpbench(*merge)
    assert merged.code == 0
    names = sorted(path.name for path in (out / "tuned").iterdir())
    assert names == [f"{criterion}-tiny-ordered-16-direct.toml" for criterion in ("auc", "l1", "mpiou")]
    assert f"2 tunings; 3 configurations for --config: {out / 'tuned'}" in merged.out
