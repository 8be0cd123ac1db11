"""Formulas: a card's LaTeX with the names of this graph put in, then LaTeX → MathML.

What a person called a tensor can be anything, so it travels through LaTeX as a placeholder and is
escaped into the result; a formula that does not come out as plain MathML is shown as text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from html import escape
from unicodedata import normalize
from xml.etree import ElementTree

_PIECE = re.compile(r"\\(?:text|mathrm)\s*\{[^{}]*\}|\\[A-Za-z]+|\\.|[A-Za-z]+\d*|.", re.DOTALL)
_PLACEHOLDER = re.compile(r"QZ((?:[0-9a-f]{2})+)ZQ")
_TAGS = set(
    "math mrow mi mn mo mtext mspace msub msup msubsup mover munder munderover mfrac msqrt mroot "
    "mtable mtr mtd mstyle mpadded menclose".split()
)

_MATHML = "http://www.w3.org/1998/Math/MathML"
_ATTRIBUTES = {
    "display",
    "stretchy",
    "accent",
    "width",
    "mathvariant",
    "fence",
    "form",
    "rspace",
    "lspace",
}


def name_tex(name: str) -> str:
    """A tensor's name as LaTeX: a letter as itself, v3 with an index, else a placeholder."""
    if re.fullmatch(r"[A-Za-z]", name):
        return name
    if index := re.fullmatch(r"([A-Za-z])_?(\d+)", name):
        return f"{{{index[1]}_{{{index[2]}}}}}"
    letters = name.encode(errors="replace").hex()
    return rf"{{\text{{QZ{letters}ZQ}}}}"


def bar_tex(name: str) -> str:
    """The gradient of the loss by that tensor: its name with a bar."""
    return rf"\bar{{{name_tex(name)}}}"


def bar_text(name: str) -> str:
    """The same in plain text: a combining macron over the letter, else ∂name."""
    plain_name = re.fullmatch(r"([A-Za-z])_?(\d*)", name)
    if plain_name is None:
        return f"∂{name}"
    return normalize("NFC", f"{plain_name[1]}\u0304") + plain_name[2]


def named(tex: str, names: Mapping[str, str]) -> str:
    """A card's formula in this graph's words: operand `a` by what the graph calls it.

    `names` maps a card's word (`a`, `y`) to LaTeX; a capital stands for the same word (`A`, `Y`).
    Commands and other text stay as they are.
    """
    words = {**{k.upper(): v for k, v in names.items() if len(k) == 1}, **names}

    def swap(match: re.Match[str]) -> str:
        piece = match[0]
        if inner := re.fullmatch(r"\\(?:text|mathrm)\s*\{(.*)\}", piece, re.DOTALL):
            return words.get(inner[1], piece)
        if piece in words:
            return words[piece]
        if not piece[0].isalpha():
            return piece
        return "".join(words.get(letter, letter) for letter in piece)

    return _PIECE.sub(swap, tex)


def _tree(tex: str) -> ElementTree.Element | None:
    """The formula as a MathML tree; None if it is not drawn, or holds anything but MathML."""
    from latex2mathml.converter import convert

    try:
        root = ElementTree.fromstring(convert(tex))
    except Exception:  # whatever a stranger's LaTeX does to the converter
        return None
    for element in root.iter():
        text = (element.text or "") + (element.tail or "")
        if element.tag.rpartition("}")[2] not in _TAGS or "\\" in text:
            return None
        if not _ATTRIBUTES.issuperset(element.attrib):
            return None
    return root


@lru_cache(maxsize=4096)
def mathml(tex: str) -> str:
    """LaTeX as inline MathML; the escaped LaTeX in <code> if it cannot be drawn."""
    root = _tree(tex)
    if root is None:
        return f"<code>{escape(_restored(tex))}</code>"
    for element in list(root.iter()):
        _draw_long_bars(element)
    ElementTree.register_namespace("", _MATHML)
    markup = ElementTree.tostring(root, encoding="unicode")
    return _PLACEHOLDER.sub(lambda m: escape(bytes.fromhex(m[1]).decode()), markup)


def _draw_long_bars(element: ElementTree.Element) -> None:
    """A bar over more than one letter becomes a line that css draws: few fonts can stretch one."""
    if element.tag != f"{{{_MATHML}}}mover" or len(list(element[0].iter(f"{{{_MATHML}}}mi"))) == 1:
        return
    element.tag = f"{{{_MATHML}}}mrow"
    element.set("class", "bar")
    element.remove(element[1])


@lru_cache(maxsize=4096)
def plain(tex: str) -> str:
    """LaTeX as one line of text, for terminals and screen readers."""
    root = _tree(tex)
    return _restored(tex if root is None else " ".join(_line(root).split()))


def _line(element: ElementTree.Element) -> str:
    parts = [_line(child) for child in element]
    match element.tag.rpartition("}")[2]:
        case "mfrac":
            return "/".join(p if len(p.strip()) == 1 else f"({p.strip()})" for p in parts)
        case "mover":
            return bar_text(_restored(parts[0].strip()))
        case "msup":
            return f"{parts[0]}^{parts[1].strip()}"
        case "msub" | "munder":
            return f"{parts[0]}_{parts[1].strip()} "
        case "msqrt":
            return f"√({parts[0].strip()})"
        case "mo" if (sign := element.text or "") in "+=−⊙>-":
            return f" {sign} "
        case "mtext":
            return f" {element.text} "
        case "mi" if len(element.text or "") > 1:
            return f" {element.text} "
        case "mspace":
            return " "
    return (element.text or "") + "".join(parts)


def _restored(tex: str) -> str:
    return _PLACEHOLDER.sub(lambda m: bytes.fromhex(m[1]).decode(), tex)
