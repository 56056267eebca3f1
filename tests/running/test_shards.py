"""Parts of a plan: together the whole, stable, and joined by merging."""

from __future__ import annotations

from pathlib import Path

from bench import LLPBench, make_settings
from test_runner import Silent

from llpbench.results.journal import FILE, read
from llpbench.running import runner
from llpbench.running.planning import expand


def test_parts_are_the_whole_and_do_not_depend_on_what_else_is_planned(tiny_bench: Path, tmp_path: Path) -> None:
    sizes = "4,5,6,7,8,9,10,11,12,13,14,15,16"
    whole = [cell.id for cell in expand(make_settings(tiny_bench, tmp_path, bag_sizes=sizes))]
    parts = [
        [cell.id for cell in expand(make_settings(tiny_bench, tmp_path, bag_sizes=sizes, shard=f"{part}/3"))]
        for part in (1, 2, 3)
    ]
    assert sorted(cell for part in parts for cell in part) == sorted(whole)
    assert all(parts)
    few = [cell.id for cell in expand(make_settings(tiny_bench, tmp_path, bag_sizes="4,5", shard="2/3"))]
    assert set(few) <= set(parts[1])


def test_parts_have_journals_of_their_own_which_are_merged(
    tiny_bench: Path, tmp_path: Path, llpbench: LLPBench
) -> None:
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
    assert {record["cell"] for record in read(tmp_path / FILE).records.values()} == {cell.id for cell in whole}

    (tmp_path / "shards" / "1-of-2" / FILE).unlink()  # what is merged counts as done in every part
    again = Silent()
    runner.run(make_settings(tiny_bench, tmp_path, bag_sizes="4,5,6,7", shard="1/2"), again)
    assert again.jobs == []
