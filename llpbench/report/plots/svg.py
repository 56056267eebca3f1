"""An SVG as it is published: small, and with colours for readers who prefer a dark ground."""

from __future__ import annotations

import re

DARK = "@media (prefers-color-scheme:dark){svg{filter:invert(0.9) hue-rotate(180deg)}}"
"""in the dark, light and dark change places, and colours stay what they are"""

_TAG = re.compile(r"<[^<>]+>")
_NUMBERED = re.compile(r' id="[\w.]+_\d+"')
_BETWEEN = re.compile(r">\s+<")
_DIGITS = re.compile(r"(\.\d\d)\d+")
_UNTURNED = re.compile(r' transform="rotate\(-?0 [^"]*"')
_ID = re.compile(r"""( id="|"#|url\(#)([\w.]+)""")
_STYLE = re.compile(r' style="([^"]*)"')


def compacted(svg: str) -> str:
    """The same picture in half of the bytes, which is dark where its reader prefers that."""
    text = _TAG.sub(_tag, _BETWEEN.sub(">\n<", svg)).replace("<g/>\n", "")
    names: dict[str, str] = {}
    ids: dict[str, str] = {}

    def as_class(style: re.Match[str]) -> str:
        return f' class="{names.setdefault(style[1], f"c{len(names)}")}"'

    def shorter(tag: re.Match[str]) -> str:
        text = _ID.sub(lambda found: f"{found[1]}{ids.setdefault(found[2], f'i{len(ids)}')}", tag[0])
        return _STYLE.sub(as_class, text)

    text = _TAG.sub(shorter, _without_groups(text))
    rules = "".join(f".{name}{{{style}}}" for style, name in names.items())
    return text.replace("</style>", f"{rules}{DARK}</style>", 1)


def _tag(tag: re.Match[str]) -> str:
    """With no more than hundredths of a point, which are enough for any eye, and no id that nothing refers to."""
    return _UNTURNED.sub("", _NUMBERED.sub("", _DIGITS.sub(r"\1", tag[0]))).replace(" \nL ", "L")


def _without_groups(svg: str) -> str:
    """Without groups that say nothing: half of the lines that matplotlib writes."""
    kept: list[str] = []
    said: list[bool] = []
    for line in svg.split("\n"):
        if line.startswith("<g") and not line.endswith("/>"):
            said.append(line != "<g>")
            kept += [line] * said[-1]
        elif line == "</g>":
            kept += [line] * said.pop()
        else:
            kept.append(line)
    return "\n".join(kept)
