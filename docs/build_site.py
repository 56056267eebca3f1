"""Build the site into `build/site` with Zensical, the successor of mkdocs-material: no warning and no dead link.

The site has the layout of the repository, so that links between its files hold. Folders with a page `index.html` (the
boards) have this page instead of their README.md.

python docs/build_site.py
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from html import unescape
from pathlib import Path

ROOT = Path(__file__).parents[1]
SHOWN = ("*.md", "CITATION.cff", "LICENSE", "docs", "examples", "leaderboards", "plots", "methods/*.py")
"""what git lists of these is on the site"""

_MARKDOWN_LINK = re.compile(r"(?<=\]\()([^)#:]*)README\.md")
_HTML_LINK = re.compile(r'\b(?:href|src)="(?!#|[a-z]+:)([^"#?]+)')


def copy_pages(pages: Path) -> None:
    """Copy the tracked files that the site shows, without journals."""
    listed = subprocess.run(["git", "ls-files", *SHOWN], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listed.splitlines():
        file, copy = ROOT / name, pages / name
        replaced = file.name == "README.md" and (file.parent / "index.html").exists()
        if replaced or "journal" in file.parts or file.suffix in {".parquet", ".xz"}:
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix == ".md":
            copy.write_text(_with_pages(file), encoding="utf-8")
        elif file.suffix == ".html":
            page = file.read_text(encoding="utf-8")
            copy.write_text(page.replace('<a href="journal">journal</a>', "journal"), encoding="utf-8")
        else:
            shutil.copyfile(file, copy)


def _with_pages(file: Path) -> str:
    """Return the text of a Markdown file. Links to a README.md lead to the page in its place."""

    def target(link: re.Match[str]) -> str:
        return f"{link[1]}index.html" if (file.parent / link[1] / "index.html").exists() else link[0]

    return _MARKDOWN_LINK.sub(target, file.read_text(encoding="utf-8"))


def dead_links(site: Path) -> list[str]:
    """Return links and pictures of the built pages that lead nowhere. Zensical checks Markdown pages only."""
    return [
        f"{page.relative_to(site)}: {target}"
        for page in sorted(site.rglob("*.html"))
        for target in sorted(set(map(unescape, _HTML_LINK.findall(page.read_text("utf-8")))))
        if not ((site if target.startswith("/") else page.parent) / target.lstrip("/")).exists()
    ]


def main() -> None:
    pages, site = ROOT / "build" / "pages", ROOT / "build" / "site"
    for folder in (pages, site):
        shutil.rmtree(folder, ignore_errors=True)
    copy_pages(pages)
    zensical = str(Path(sys.executable).parent / "zensical")
    command = [zensical, "build", "--strict", "--clean"]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if built.returncode or "griffe: " in built.stdout + built.stderr:  # warnings about docstrings
        sys.exit(built.stdout + built.stderr)
    if dead := dead_links(site):
        sys.exit("dead links:\n" + "\n".join(dead))
    print(f"{len(list(site.rglob('*.html')))} pages in {site.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
