"""SVG files in half of matplotlib's size, with inverted colours in dark mode."""

from __future__ import annotations

import re

DARK = "@media (prefers-color-scheme:dark){svg{filter:invert(0.9) hue-rotate(180deg)}}"
"""Inverts brightness and keeps hues."""

_TAG = re.compile(r"<[^<>]+>")
_NUMBERED_ID = re.compile(r' id="[\w.]+_\d+"')
_BETWEEN_TAGS = re.compile(r">\s+<")
_DECIMALS = re.compile(r"(\.\d\d)\d+")
_NO_ROTATION = re.compile(r' transform="rotate\(-?0 [^"]*"')
_ID = re.compile(r"""( id="|"#|url\(#)([\w.]+)""")
_STYLE = re.compile(r' style="([^"]*)"')


def compacted(svg: str) -> str:
    """Return the same picture with short ids, classes instead of repeated styles, and two decimals."""
    text = _TAG.sub(_shortened, _BETWEEN_TAGS.sub(">\n<", svg)).replace("<g/>\n", "")
    classes: dict[str, str] = {}
    ids: dict[str, str] = {}

    def as_class(style: re.Match[str]) -> str:
        return f' class="{classes.setdefault(style[1], f"c{len(classes)}")}"'

    def renamed(tag: re.Match[str]) -> str:
        text = _ID.sub(lambda match: f"{match[1]}{ids.setdefault(match[2], f'i{len(ids)}')}", tag[0])
        return _STYLE.sub(as_class, text)

    text = _TAG.sub(renamed, _without_empty_groups(text))
    rules = "".join(f".{name}{{{style}}}" for style, name in classes.items())
    return text.replace("</style>", f"{rules}{DARK}</style>", 1)


def _shortened(tag: re.Match[str]) -> str:
    """Return a tag with two decimals and without ids that nothing refers to."""
    return _NO_ROTATION.sub("", _NUMBERED_ID.sub("", _DECIMALS.sub(r"\1", tag[0]))).replace(" \nL ", "L")


def _without_empty_groups(svg: str) -> str:
    """Return the picture without groups that have no attribute."""
    lines: list[str] = []
    has_attributes: list[bool] = []
    for line in svg.split("\n"):
        if line.startswith("<g") and not line.endswith("/>"):
            has_attributes.append(line != "<g>")
            lines += [line] * has_attributes[-1]
        elif line == "</g>":
            lines += [line] * has_attributes.pop()
        else:
            lines.append(line)
    return "\n".join(lines)
