"""The repository as files: its packages, their folders, and committed files."""

from __future__ import annotations

import importlib.util
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FOLDERS: dict[str, str] = PROJECT["tool"]["setuptools"]["package-dir"]
PACKAGES: list[str] = PROJECT["tool"]["setuptools"]["packages"]


def folder(package: str) -> Path:
    """Where a package's files stand in the repository."""
    if package in FOLDERS:
        return ROOT / FOLDERS[package]
    parent, _, name = package.rpartition(".")
    return folder(parent) / name


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name; a package is called by its own name, without `__init__`."""
    found = {}
    for package in PACKAGES:
        for file in sorted(folder(package).glob("*.py")):
            found[package if file.stem == "__init__" else f"{package}.{file.stem}"] = file
    return found


def committed() -> list[Path]:
    """Files in git, and those that would be with the next `git add`; links are named, not followed."""
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    files = [ROOT / name for name in listed.stdout.split("\0") if name]
    return [file for file in files if file.is_file() or file.is_symlink()]


def module_of(file: Path) -> Any:
    """A script as a module."""
    spec = importlib.util.spec_from_file_location(f"script_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
