"""A model in a folder: the same predictions after loading, and one clear line for anything else."""

from __future__ import annotations

import errno
import hashlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost
from districts import counted, people

from llpbench import LLPClassifier
from llpbench.core.errors import LLPBenchError
from llpbench.core.files import replace_file
from llpbench.core.registry import METHODS, load_plugin
from llpbench.owndata import boosters, storing

FAST: dict[str, dict[str, Any]] = {
    "bag-gp-gbdt": {"trees": 200, "rounds": 2},
    "bag-gp": {"draws": 0, "most_pairs": 50},
    "em-gbdt": {"start": "soft-labels", "rounds": 1, "trees": 50},
    "bag-mean-linear": {},
    "bag-soft-label-linear": {"model": "logistic"},
    "dllp": {"hidden": 64},
    "llp-gan": {},
}


TREES = {"trees": 100}


def fitted(method: str, classes: int = 2, **settings: Any) -> LLPClassifier:
    frame, bags, votes = people(200, 300 if method == "bag-gp-gbdt" else 10, classes=classes)
    model = LLPClassifier(method, params=FAST.get(method, TREES), epochs=2, **settings)
    return model.fit(frame, bags, counts=counted(bags, votes))


@pytest.mark.parametrize(
    ("method", "classes"), [*((name, 2) for name in FAST), ("bag-gp", 3), ("bag-soft-label-linear", 3)]
)
def test_predictions_are_the_same_after_loading(method: str, classes: int, tmp_path: Path) -> None:
    model = fitted(method, classes)
    model.save(tmp_path / "model")
    found = LLPClassifier.load(tmp_path / "model")
    new, bags, _ = people(100, 12, seed=1)
    assert np.array_equal(found.predict_proba(new), model.predict_proba(new))
    assert np.array_equal(found.predict_proba(new, bags), model.predict_proba(new, bags))
    assert np.array_equal(found.predict(new), model.predict(new))
    assert found.get_params() == model.get_params()
    assert found.left_out_ == model.left_out_ == {"rows": 0, "bags": 0, "suppressed": 0, "impossible": 0}
    assert found.doubts_ == model.doubts_
    assert (found.doubts_ is not None) == (method == "bag-gp-gbdt")
    assert found.bags_.tolist() == model.bags_.tolist()
    assert list(found.feature_names_in_) == list(model.feature_names_in_)
    if method == "bag-gp":
        for mine, other in zip(model.effects(), found.effects(), strict=True):
            assert mine.name == other.name
            assert np.array_equal(mine.values, other.values)
            assert np.array_equal(mine.std, other.std)


def test_ensembles_classes_and_natural_keys_are_kept(tmp_path: Path) -> None:
    frame, bags, votes = people(200, 10)
    keys = pd.DataFrame({"state": "s", "place": bags})
    share = pd.Series(votes).groupby([keys["state"], keys["place"]]).mean()
    model = LLPClassifier("count-gbdt", params=TREES, ensemble=2)
    model.fit(frame, keys, proportions=share, classes=["no", "yes"]).save(tmp_path)
    found = LLPClassifier.load(str(tmp_path))
    assert found.bags_[0] == ("s", "d00")
    assert found.classes_.tolist() == ["no", "yes"]
    assert np.array_equal(found.disaggregate(frame, keys), model.disaggregate(frame, keys))
    assert np.array_equal(found.assign(frame, keys), model.assign(frame, keys))
    found.save(tmp_path / "again")  # and once more
    assert np.array_equal(LLPClassifier.load(tmp_path / "again").predict(frame), model.predict(frame))


def test_no_row_is_saved(tmp_path: Path) -> None:
    """As many numbers for a hundred times as many rows."""
    sizes = []
    for copies in (1, 20):
        frame, bags, votes = people(200, 10)
        repeated = pd.concat([frame] * copies)
        model = LLPClassifier("bag-gp", params=FAST["bag-gp"])
        model.fit(repeated, np.tile(bags, copies), counts=counted(bags, votes) * copies).save(tmp_path / str(copies))
        sizes.append((tmp_path / str(copies) / storing.ARRAYS).stat().st_size)
    assert sizes[1] < 1.1 * sizes[0]


def test_a_method_that_cannot_be_saved_says_so(tmp_path: Path) -> None:
    """To its user: what its `fit` may return is for authors of plugins."""
    with pytest.raises(LLPBenchError, match=r"'bag-soft-label-gbdt' cannot be saved\. (?!.*returns?\b)"):
        fitted("bag-soft-label-gbdt").save(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    fitted("count-gbdt").save(folder)
    return folder


@pytest.fixture(scope="module")
def newer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("newer")
    fitted("count-gbdt", ensemble=2).save(folder)
    return folder


def retold(folder: Path, **facts: Any) -> None:
    """Change the manifest, and make it whole again."""
    manifest = json.loads((folder / storing.MANIFEST).read_text()) | facts
    del manifest["digest"]
    (folder / storing.MANIFEST).write_text(json.dumps({**manifest, "digest": storing._digest(manifest)}))


def with_tree(folder: Path, text: str) -> None:
    """Replace the tree, as somebody would who knows of the checksums."""
    (folder / storing.TREE).write_text(text)
    names = (storing.TREE, storing.ARRAYS)
    retold(folder, sha256={name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names})


def rewritten(folder: Path, old: str, new: str) -> None:
    text = (folder / storing.TREE).read_text()
    assert old in text
    with_tree(folder, text.replace(old, new))


def ensemble_of(folder: Path) -> int:
    return int(LLPClassifier.load(folder).ensemble)


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


@pytest.mark.parametrize(
    ("harm", "told"),
    [
        (lambda f: (f / storing.MANIFEST).unlink(), "manifest.json"),
        (lambda f: (f / storing.MANIFEST).write_text("{"), "damaged"),
        (lambda f: (f / storing.MANIFEST).write_text("[]"), "damaged"),
        (lambda f: flip(f / storing.MANIFEST), "damaged"),
        (lambda f: flip(f / storing.TREE), "model.json' has changed"),
        (lambda f: flip(f / storing.ARRAYS), "arrays.npz' has changed"),
        (lambda f: (f / storing.ARRAYS).unlink(), "cannot be read"),
        (lambda f: retold(f, format=99), "got 99"),
        (lambda f: retold(f, source="0" * 16), "code of 'count-gbdt'"),
        (lambda f: rewritten(f, "llpbench.blocks.trees", "os"), "classes of os cannot be part of a model"),
        (lambda f: rewritten(f, '"TreeInput"', '"xgboost"'), "cannot be read"),
        (lambda f: rewritten(f, '"offset"', '"other"'), "TreeLogits has different fields in this version"),
        (lambda f: with_tree(f, '{"dict": ' * 5_000), "cannot be read"),
        (lambda f: with_tree(f, "[]"), "cannot be read"),
        (lambda f: with_tree(f, '{"dict": {}}'), "cannot be read"),
        (lambda f: with_tree(f, '{"dict": {"settings": 5}}'), "cannot be read"),
        (lambda f: retold(f, sha256={"../secret": "0"}), r"manifest\.json"),
        (lambda f: retold(f, sha256=[]), r"manifest\.json"),
        (lambda f: retold(f, sha256={storing.TREE: "0"}), r"manifest\.json"),
        (lambda f: retold(f, sha256={storing.ARRAYS: "0", storing.TREE: "0"}), r"manifest\.json"),
        (lambda f: retold(f, sha256=5), r"manifest\.json"),
    ],
)
def test_a_foreign_model_is_one_clear_line(
    harm: Callable[[Path], None], told: str, saved: Path, tmp_path: Path
) -> None:
    shutil.copytree(saved, folder := tmp_path / "model")
    harm(folder)
    with pytest.raises(LLPBenchError, match=told) as error:
        LLPClassifier.load(folder)
    assert "\n" not in str(error.value)


KILLED = """
import itertools, os, shutil, signal, sys
from llpbench import LLPClassifier
from llpbench.owndata import storing

newer, saved, base = sys.argv[1:]
storing.require_sound = lambda _: None  # seconds of a process of its own
model = LLPClassifier.load(newer)

def killed_after(steps, folder):
    calls = []

    def step(event, arguments):
        if event in ("open", "os.rename", "os.remove", "os.mkdir", "os.chmod") and folder in str(arguments[0]):
            calls.append(event)
            if len(calls) > steps:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(step)
    model.save(folder)
    os._exit(0)

for steps in itertools.count():
    folder = f"{base}/model{steps}"
    shutil.copytree(saved, folder)
    child = os.fork() or killed_after(steps, folder)
    if os.waitpid(child, 0)[1] == 0:
        break
"""


def test_a_kill_at_any_step_leaves_the_old_or_the_new_model(saved: Path, newer: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", KILLED, *map(str, (newer, saved, tmp_path))], check=True, timeout=300)
    folders = sorted(tmp_path.iterdir(), key=lambda folder: int(folder.name.removeprefix("model")))
    found = [ensemble_of(folder) for folder in folders]
    assert found == sorted(found), "the old one until the new one takes effect"
    assert {1, 2} == {*found}
    assert len(found) > 8
    model = LLPClassifier.load(newer)
    for folder in folders:
        model.save(folder)
        assert ensemble_of(folder) == 2
        assert len([*folder.iterdir()]) == 3, "nothing is left of the save that was killed"


def test_a_failure_at_any_step_keeps_the_old_model(
    saved: Path, newer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, replace = LLPClassifier.load(newer), replace_file
    folder = tmp_path / "model"
    shutil.copytree(saved, folder)
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    for failing in range(3):
        written: list[Path] = []

        def full(path: Path, content: bytes, failing: int = failing, written: list[Path] = written) -> None:
            if len(written) == failing:
                raise OSError(errno.ENOSPC, "No space left on device")
            written.append(path)
            replace(path, content)

        monkeypatch.setattr(storing, "replace_file", full)
        with pytest.raises(LLPBenchError, match="No space left"):
            model.save(folder)
        assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    monkeypatch.setattr(storing, "replace_file", replace)
    for source, members in ((newer, 2), (saved, 1), (newer, 2)):
        LLPClassifier.load(source).save(folder)
        assert ensemble_of(folder) == members
        assert len([*folder.iterdir()]) == 3


def test_a_first_save_that_was_killed_can_be_repeated(saved: Path, tmp_path: Path) -> None:
    for names in ([".model.json.0123456789ab.tmp"], [storing.TREE], [storing.TREE, storing.ARRAYS]):
        folder = tmp_path / str(len(names)) / names[0]
        folder.mkdir(parents=True)
        for name in names:
            (folder / name).write_bytes((saved / name).read_bytes() if (saved / name).exists() else b"{")
        LLPClassifier.load(saved).save(folder)
        assert ensemble_of(folder) == 1


def test_a_folder_of_something_else_is_left_alone(saved: Path, tmp_path: Path) -> None:
    for name in ("model.json", "arrays.npz", "letter.txt"):
        folder = tmp_path / name.partition(".")[0]
        folder.mkdir()
        (folder / name).write_text('{"learner": {}}')
        with pytest.raises(LLPBenchError, match=re.escape(str(folder))):
            LLPClassifier.load(saved).save(folder)
        assert [file.name for file in folder.iterdir()] == [name]
        assert (folder / name).read_text() == '{"learner": {}}'


def test_a_model_that_is_replaced_while_it_is_read_is_read(
    saved: Path, newer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, read, second = tmp_path / "model", storing._bytes, LLPClassifier.load(newer)
    shutil.copytree(saved, folder)

    def replaced(file: Path) -> bytes:
        if file.name == storing.TREE:
            monkeypatch.setattr(storing, "_bytes", read)
            second.save(folder)
        return read(file)

    monkeypatch.setattr(storing, "_bytes", replaced)
    assert ensemble_of(folder) == 2


def readable(booster: bytes) -> Any:
    """A booster as XGBoost writes it in JSON."""
    return json.loads(bytes(xgboost.Booster(model_file=bytearray(booster)).save_raw("json")))


def first_tree(model: Any) -> dict[str, Any]:
    tree: dict[str, Any] = model["learner"]["gradient_booster"]["model"]["trees"][0]
    return tree


def forged(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Replace every booster of a model by a changed one, with sums that are right."""
    with np.load(folder / storing.ARRAYS) as archive:
        parts = dict(archive)
    tree = (folder / storing.TREE).read_text()
    for place in storing._boosters(json.loads(tree)):
        model = readable(parts[str(place)].tobytes())
        change(first_tree(model))
        parts[str(place)] = np.frombuffer(json.dumps(model).encode(), np.uint8)
    np.savez(folder / storing.ARRAYS, **parts)
    with_tree(folder, tree)


FORGERIES: tuple[Callable[[dict[str, Any]], None], ...] = (
    lambda tree: tree["left_children"].__setitem__(0, 10**6),
    lambda tree: tree["left_children"].__setitem__(0, 0),
    lambda tree: tree["split_indices"].__setitem__(0, 10**6),
    lambda tree: tree["tree_param"].__setitem__("num_nodes", "1000000"),
)


def test_a_forged_booster_is_one_clear_line_and_one_that_is_written_otherwise_is_read(
    saved: Path, tmp_path: Path
) -> None:
    shutil.copytree(saved, folder := tmp_path / "forged")
    forged(folder, FORGERIES[0])
    with pytest.raises(LLPBenchError) as error:
        LLPClassifier.load(folder)
    assert "\n" not in str(error.value)
    shutil.copytree(saved, folder := tmp_path / "written otherwise")
    forged(folder, len)
    rows = people(200, 10)[0]
    assert np.array_equal(LLPClassifier.load(folder).predict_proba(rows), LLPClassifier.load(saved).predict_proba(rows))


@pytest.mark.parametrize("change", FORGERIES)
def test_a_forged_tree_of_a_booster_is_unsound(saved: Path, change: Callable[[dict[str, Any]], None]) -> None:
    place = next(iter(storing._boosters(json.loads((saved / storing.TREE).read_bytes()))))
    with np.load(saved / storing.ARRAYS) as archive:
        model = readable(archive[str(place)].tobytes())
    boosters._require_trees(model["learner"])
    change(first_tree(model))
    with pytest.raises(boosters.UnsoundError):
        boosters._require_trees(model["learner"])


PLUGIN = '''
import numpy as np
from llpbench import DirectMethod, register_method


@register_method("nearer", reference="Doe 2026")
class Nearer(DirectMethod):
    """The overall shares."""

    def fit(self, train, schema, rng):
        return Shares(train.prior, schema, self.params)


class Shares:
    def __init__(self, prior, schema, params):
        self.prior, self.schema, self.params = prior, schema, params

    def __call__(self, rows):
        return np.tile(self.prior, (len(rows.numeric), 1)) * (self.schema.classes == 2)
'''


def test_a_predictor_of_a_plugin_is_saved_and_needs_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(METHODS, "_entries", dict(METHODS._index()))
    before = METHODS._entries
    for name in ("nearer", "renamed"):
        (tmp_path / f"{name}.py").write_text(PLUGIN)
    load_plugin(tmp_path / "nearer.py")
    frame, bags, votes = people(20, 10)
    model = LLPClassifier("nearer").fit(frame, bags, counts=counted(bags, votes))
    model.save(tmp_path / "model")
    expected = model.predict_proba(frame)
    assert np.array_equal(LLPClassifier.load(tmp_path / "model").predict_proba(frame), expected)

    METHODS._entries = {name: entry for name, entry in before.items() if name != "nearer"}
    with pytest.raises(LLPBenchError, match=r"needs method 'nearer' .*--plugin FILE\.py"):
        LLPClassifier.load(tmp_path / "model")
    load_plugin(tmp_path / "renamed.py")
    assert np.array_equal(LLPClassifier.load(tmp_path / "model").predict_proba(frame), expected)


def test_boosters_of_this_process_need_no_process_of_their_own(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise AssertionError("a process was started")

    LLPClassifier.load(saved)
    monkeypatch.setattr("llpbench.owndata.boosters.subprocess.run", refused)
    LLPClassifier.load(saved)
    monkeypatch.setattr("llpbench.owndata.boosters._sound", set())
    with pytest.raises(LLPBenchError):
        LLPClassifier.load(saved)
