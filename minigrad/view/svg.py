"""DOT → SVG, laid out once by the Graphviz inside pygraphviz's wheel, and cleaned: classes instead
of colours.
"""

from __future__ import annotations

import re
import threading
from functools import lru_cache
from xml.etree import ElementTree

_GRAPHVIZ = threading.Lock()  # its layout keeps global state
_SVG = "http://www.w3.org/2000/svg"
_LINES = ("name", "shape", "stat")
_PAINT = ("fill", "stroke", "stroke-dasharray", "font-family", "font-weight")


@lru_cache(maxsize=64)
def svg(dot: str) -> str:
    """The picture of a graph. Nodes are `<g data-node="3">`, edges `<g data-edge="3-1">` (consumer,
    argnum).
    """
    import pygraphviz

    with _GRAPHVIZ:
        graph = pygraphviz.AGraph(string=dot)
        drawn = graph.draw(format="svg", prog="dot")
        graph.close()
    ElementTree.register_namespace("", _SVG)
    root = ElementTree.fromstring(drawn)
    main = root.find(f"{{{_SVG}}}g")
    assert main is not None
    for child in list(main):
        if child.get("class", "").split()[:1] not in (["node"], ["edge"]):
            main.remove(child)  # the background
    for group in main:
        _clean(group)
    for element in root.iter():
        for paint in _PAINT:
            element.attrib.pop(paint, None)
        element.attrib.pop("{http://www.w3.org/XML/1998/namespace}space", None)
        element.tail = None
    main.attrib.pop("id", None)
    return ElementTree.tostring(root, encoding="unicode")


def _clean(group: ElementTree.Element) -> None:
    kind, *more = group.get("class", "").split()
    title = group.find(f"{{{_SVG}}}title")
    if kind == "node":
        assert title is not None
        group.set("data-node", re.sub(r"\D", "", title.text or ""))
        for name, text in zip(_LINES, group.findall(f"{{{_SVG}}}text"), strict=False):
            text.set("class", name)
            text.text = "" if name == "stat" else (text.text or "").strip()
    else:
        group.set("data-edge", group.get("id", ""))
        heads = group.findall(f"{{{_SVG}}}polygon")
        for name, head in zip(("backward", "forward"), heads, strict=False):
            head.set("class", name)
    if title is not None:
        group.remove(title)
    group.attrib.pop("id", None)
    group.set("class", " ".join([kind, *more]))
