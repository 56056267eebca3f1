"""The package as a whole: what it imports, holds, pins and must never mention."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from bench import python
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from repository import FOLDERS, PACKAGES, PROJECT, ROOT, committed, folder, modules

import llpbench
from llpbench.results.journal import FILE, Contents
from llpbench.results.merging import EXCERPT, SHIPPED

DATA_ONLY = "llpbench.leaderboards"
"""holds the published journal and no code"""


def travels(file: Path) -> bool:
    """Whether an embedded file is part of the wheel: Adult, and small files."""
    return file.stem == "adult" or file.stat().st_size <= 200_000


EMBEDDED = [*(folder("llpbench.datasets") / "embedded").iterdir()]


WITHOUT = """
import sys

class Without:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, *more):
        return None if name.partition(".")[0] in {absent} else self.finder.find_spec(name, *more)

    def __getattr__(self, name):
        return getattr(self.finder, name)

sys.meta_path[:] = map(Without, sys.meta_path)
"""
"""a `sitecustomize` with which some libraries are not installed, in a process and all that it starts"""
ABSENT = {"ray", "optuna", "openml", "xgboost", "colorlog", "alembic", "sqlalchemy"}
"""libraries that networks and reports do not need"""


def test_public_modules_have_docstrings() -> None:
    public = [file for file in modules().values() if file.stem == "__init__" or not file.stem.startswith("_")]
    assert [file for file in public if not ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")))] == []


MOST_PUBLIC_NAMES, MOST_FILES = 593, 227
"""ceilings of top-level functions and classes without an underscore, and of files: lower them when there are fewer"""


def test_public_names_and_files_stay_below_ceilings() -> None:
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in modules().values()]
    defined = [node for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    assert len([node for node in defined if not node.name.startswith("_")]) <= MOST_PUBLIC_NAMES
    assert len(trees) <= MOST_FILES


def test_no_file_mentions_machine_or_package_index() -> None:
    foreign = re.compile(
        rb"(?<![\w./~-])/(?:home|root|work|opt|Users|mnt)/\w"  # somebody's folders
        rb"|\b(?:pypi\.org|pythonhosted\.org|npmjs\.org|conda\.anaconda\.org)\b"
    )
    found = {
        str(file.relative_to(ROOT)): match[0].decode()
        for file in committed()
        if file.suffix != ".parquet" and (match := foreign.search(file.read_bytes()))
    }
    assert found == {}


def test_no_restricted_data_is_committed() -> None:
    from llpbench.core.registry import DATASETS
    from llpbench.data.specs import dataset_spec

    found = {file for file in committed() if file.suffix in {".parquet", ".arff", ".zip"}}
    data = {file.stem for file in found if not file.is_relative_to(ROOT / "leaderboards")}  # which holds results
    assert "adult" in data
    assert data <= {spec.name for spec in map(dataset_spec, DATASETS.names()) if spec.redistributable}


def test_tracked_tree_is_below_size_limit() -> None:
    """A machine that is lent for minutes takes the tree as it is: results and figures must not grow without notice."""
    sizes = {file: file.lstat().st_size for file in committed()}
    embedded = sum(size for file, size in sizes.items() if file.parent.name == "embedded")
    assert sum(sizes.values()) - embedded < 20_000_000
    assert sum(sizes.values()) < 40_000_000


def pins() -> dict[str, Requirement]:
    """The lines of constraints.txt, by name."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    requirements = [Requirement(line) for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(requirement.name): requirement for requirement in requirements}


class TestConstraints:
    def test_installed_packages_are_pinned(self) -> None:
        for name, pin in pins().items():
            assert [specifier.operator for specifier in pin.specifier] == ["=="], name
        seen: set[str] = set()
        project = PROJECT["project"]
        waiting = [Requirement(text) for text in (*project["dependencies"], *project["optional-dependencies"]["test"])]
        seen |= {str(each) for each in waiting if each.marker is None or each.marker.evaluate()}
        while waiting:
            wanted = waiting.pop()
            extras = wanted.extras or {""}
            if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
                continue
            for text in metadata.requires(wanted.name) or []:
                dependency = Requirement(text)
                marker = dependency.marker
                needed = marker is None or any(marker.evaluate({"extra": extra}) for extra in extras)
                if needed and str(dependency) not in seen:
                    seen.add(str(dependency))
                    waiting.append(dependency)
        names = {canonicalize_name(Requirement(text).name) for text in seen}
        assert len(names) > 50
        # what torch brings for GPUs it pins itself
        unpinned = {name for name in names - pins().keys() if not re.match("nvidia-|cuda-|triton", name)}
        assert unpinned == set()

    def test_pins_satisfy_project_requirements(self) -> None:
        extras = PROJECT["project"]["optional-dependencies"]
        for text in [*PROJECT["project"]["dependencies"], *extras["test"], *extras["docs"]]:
            wanted = Requirement(text)
            (pin,) = pins()[canonicalize_name(wanted.name)].specifier
            assert wanted.specifier.contains(pin.version), text


def test_changelog_and_citation_have_this_version() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (cited["cff-version"], cited["version"]) == ("1.2.0", llpbench.__version__)
    assert {"message", "title", "authors"} <= cited.keys()
    released = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert released[:2] == ["Unreleased", llpbench.__version__]


def test_every_package_is_declared_and_checkout_adds_contributions_only() -> None:
    packages = {file.parent for top in FOLDERS.values() for file in (ROOT / top).rglob("__init__.py")}
    assert packages == {folder(package) for package in PACKAGES if package != DATA_ONLY}
    found = find_spec("llpbench.methods.dllp")
    assert found is not None
    assert found.origin == str(folder("llpbench.methods") / "dllp.py")
    others = ("tests", "docs", "benchmarks", "examples", "plots")
    assert [name for name in others if find_spec(f"llpbench.{name}")] == []


@pytest.mark.slow
def test_wheel_is_complete_and_works_anywhere(tmp_path: Path) -> None:
    source = tmp_path / "source"  # a build leaves files behind
    for file in committed():
        target = source / file.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.read_bytes())
    sdist = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
    python(sdist, tmp_path, cwd=source, check=True)
    (packed,) = tmp_path.glob("*.tar.gz")
    pip, offline = (sys.executable, "-m", "pip"), ("--quiet", "--no-deps", "--no-index")
    # the wheel is made of the source distribution, so that both are tried with one build
    wheel = [*pip, "wheel", *offline, "--no-build-isolation", "--wheel-dir", str(tmp_path), str(packed)]
    subprocess.run(wheel, check=True, timeout=240)
    (built,) = tmp_path.glob("*.whl")
    install = [*pip, "install", *offline, "--no-compile", "--target", str(tmp_path / "site"), str(built)]
    subprocess.run(install, check=True, timeout=120)
    with tarfile.open(packed) as archive:
        top = packed.name.removesuffix(".tar.gz")
        expected = {f"{top}/datasets/embedded/{file.name}" for file in EMBEDDED}
        others = ("CHANGELOG.md", "CITATION.cff", "docs/tutorial.md", "examples/sweep.ipynb")
        expected |= {f"{top}/{name}" for name in others}
        assert expected <= set(archive.getnames())
    with zipfile.ZipFile(built) as wheel_file:
        names = set(wheel_file.namelist())
    expected = {f"{package.replace('.', '/')}/{f.name}" for package in PACKAGES for f in folder(package).glob("*.py")}
    expected |= {"llpbench/py.typed", "llpbench/results/studies.toml", "llpbench/datasets/facts.json"}
    expected |= {*(f"llpbench/datasets/embedded/{f.name}" for f in EMBEDDED if travels(f))}
    report = folder("llpbench.report")
    shipped = [file for name in ("paper", "page", "templates") for file in report.glob(f"{name}/*")]
    expected |= {f"llpbench/report/{file.relative_to(report)}" for file in shipped}
    expected |= {str(Path("llpbench/leaderboards") / name / EXCERPT) for name in SHIPPED.values()}
    expected.add("llpbench/leaderboards/core/label-curves.csv")
    assert {name for name in names if ".dist-info/" not in name} == expected
    assert any(name.endswith("/licenses/LICENSE") for name in names)
    assert built.stat().st_size < 6_000_000

    code = """
import llpbench, llpbench.methods
from llpbench.data.loading import load_table
print(llpbench.__file__, *(len(load_table(name)) for name in ("adult", "letter", "nursery")))
from llpbench.results.journal import Contents, FILE
from llpbench.results.merging import journal_files
assert Contents.read(*journal_files("published")).records
"""
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site"), "LLPBENCH_DATA": ""}
    done = python(code, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(tmp_path / "site" / "llpbench" / "__init__.py"), "48842", "20000", "12958"]

    # a slim machine has no compiler, no OpenMP of its own (`test_libraries_bring_their_own_openmp`) and few libraries
    (tmp_path / "few").mkdir()
    (tmp_path / "few" / "sitecustomize.py").write_text(WITHOUT.replace("{absent}", repr(ABSENT)), encoding="utf-8")
    places = os.pathsep.join(str(tmp_path / name) for name in ("few", "site"))
    slim = environment | {"PATH": str(tmp_path / "empty"), "CC": "", "CXX": "", "PYTHONPATH": places}
    code = f"""
import sys
from importlib.util import find_spec
assert not [name for name in {ABSENT} if find_spec(name)]
from llpbench.cli.main import main
main()
"""
    quick = "run --methods dllp --datasets nursery --seeds 1 --epochs 1 --encoders mlp --bag-sizes 64 --max-bags 8"
    done = python(code, *quick.split(), "--executor", "inline", "--out", "slim", cwd=tmp_path, env=slim)
    assert done.returncode == 0, done.stderr
    records = Contents.read(tmp_path / "slim" / FILE).records.values()
    assert [(record["spec"]["method"], record["status"]) for record in records] == [("dllp", "ok")]
    assert re.search(r"^\|.*\| dllp\b", (tmp_path / "slim" / "README.md").read_text(encoding="utf-8"), re.MULTILINE)

    # a checkout works by itself, too
    bare = "import sys; sys.meta_path = [each for each in sys.meta_path if 'editable' not in str(each)]; "
    alone = bare + "import llpbench.methods.bag_mean_linear, llpbench.datasets.society"
    python(alone, cwd=source, env=environment | {"PYTHONPATH": ""}, check=True)


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="only Linux tells what a process has loaded")
def test_libraries_bring_their_own_openmp() -> None:
    """Slim machines have none."""
    code = """
import sklearn.ensemble, torch, xgboost
xgboost.train({}, xgboost.DMatrix([[0.0], [1.0]], label=[0.0, 1.0]), 1)
print(*{line.split()[-1] for line in open("/proc/self/maps") if "libgomp" in line or "libomp" in line}, sep="\\n")
"""
    done = python(code, check=True)
    loaded = done.stdout.split()
    assert loaded
    assert [path for path in loaded if "site-packages" not in path] == []
