"""DOT → SVG, laid out once by the Graphviz in pygraphviz's wheel; classes, not colours."""

from __future__ import annotations

import re
import threading
from functools import lru_cache
from xml.etree import ElementTree

from .dot import Far

_GRAPHVIZ = threading.Lock()  # its layout keeps global state
_SVG = "http://www.w3.org/2000/svg"
_LINES = ("name", "shape", "stat")
_PAINT = ("fill", "stroke", "stroke-dasharray", "font-family", "font-weight")


@lru_cache(maxsize=64)
def svg(dot: str, far: tuple[Far, ...] = ()) -> str:
    """The picture of a graph: `<g data-node="3">`, `<g data-edge="3-1">` (consumer, argnum)."""
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
    boxes = {g.get("data-node"): _box(g) for g in main if "data-node" in g.attrib}
    for n, edge in enumerate(far):
        ends = boxes[str(edge.operand)], boxes[str(edge.consumer)]
        main.insert(n, _arc(edge, *ends))
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


Box = tuple[float, float, float, float]  # left, top, right, bottom


def _box(group: ElementTree.Element) -> Box:
    path = group.find(f"{{{_SVG}}}path")
    numbers = [float(n) for n in re.findall(r"-?[\d.]+", "" if path is None else path.get("d", ""))]
    xs, ys = numbers[::2], numbers[1::2]
    return min(xs), min(ys), max(xs), max(ys)


def _arc(edge: Far, operand: Box, consumer: Box) -> ElementTree.Element:
    """A long edge, in a bow from the operand's right side to the consumer's left side."""
    x1, y1 = operand[2] + 8, (operand[1] + operand[3]) / 2
    x2, y2 = consumer[0] - 8, (consumer[1] + consumer[3]) / 2
    bend = 0.12 * (x2 - x1)
    curve = f"M{x1:.1f},{y1:.1f}C{x1 + bend:.1f},{y1 + bend:.1f} {x2 - bend:.1f},{y2 + bend:.1f}"
    name = f"{edge.consumer}-{edge.argnum}"
    group = ElementTree.Element("g", {"class": f"edge far {edge.kind}", "data-edge": name})
    ElementTree.SubElement(group, "path", {"d": f"{curve} {x2:.1f},{y2:.1f}"})
    for kind, x, y, way in (("backward", x1, y1, -1), ("forward", x2, y2, 1)):
        points = f"{x},{y - 3} {x + 7 * way},{y} {x},{y + 3}"
        ElementTree.SubElement(group, "polygon", {"class": kind, "points": points})
    return group
