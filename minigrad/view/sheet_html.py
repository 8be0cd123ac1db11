"""A sheet and the index of all ops as HTML: for the app's Ops page and for the file of all ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from itertools import groupby

from ..card import Op, registry
from .figures import Curve, Figure, Jacobian, figures
from .formula import bar_tex, mathml, name_tex
from .plot import plot
from .sheet import Input, Sheet, sheet_of, verdict


def sheets() -> list[Sheet]:
    """The sheets of all our ops, family by family."""
    rows = [sheet_of(card) for card in registry.values()]
    families = list(dict.fromkeys(sheet.family for sheet in rows))
    return sorted(rows, key=lambda sheet: families.index(sheet.family))


# --- the index ------------------------------------------------------------------------------------


def index_html(address: Callable[[str], str], chosen: str = "") -> str:
    """A search field, and links to all ops by family.

    address: name → link. chosen: the op that is shown below: then only its family is listed until
    somebody searches.
    """
    families = [(family, list(rows)) for family, rows in groupby(sheets(), lambda s: s.family)]
    lists = "".join(_family(family, rows, address, chosen) for family, rows in families)
    back = f'<a class="back" href="{address("")}">All ops</a>' if chosen else ""
    return (
        f'<div class="search">{back}<input type="search" data-testid="search" '
        'placeholder="Search: name, word, formula" aria-label="Search the ops" '
        f'autocomplete="off" spellcheck="false"></div>'
        f'<nav class="index{" small" if chosen else ""}" data-testid="matches" '
        f'aria-label="Ops by family">{lists}</nav>'
        '<p class="nothing" role="status" hidden></p>'
    )


def _family(family: str, rows: Sequence[Sheet], address: Callable[[str], str], chosen: str) -> str:
    own = any(sheet.name == chosen for sheet in rows)
    links = "".join(
        f'<li data-words="{escape(sheet.text)}" data-op="{sheet.name}">'
        f'<a href="{address(sheet.name)}"{_current(sheet.name == chosen)}><b>{sheet.name}</b>'
        f"<span>{escape(sheet.words)}</span></a></li>"
        for sheet in rows
    )
    kind = "family own" if own else "family"
    return f'<section class="{kind}"><h3>{escape(family)}</h3><ul>{links}</ul></section>'


def _current(yes: bool) -> str:
    return ' aria-current="page"' if yes else ""


# --- one sheet ------------------------------------------------------------------------------------


def sheet_html(card: Op) -> str:
    """One op: formula, calls, a row per input, kinks, facts, the verdict of its check, plots."""
    sheet = sheet_of(card)
    shown = figures(card)
    kinks = "".join(f"<li>{escape(words)}</li>" for words in sheet.kinks)
    mark, words = verdict(card)
    parts = [
        f'<div class="formula" data-testid="formula">{mathml(sheet.tex)}</div>',
        f'<p class="calls">{"".join(f"<code>{escape(c)}</code>" for c in sheet.calls)}</p>',
        _rules(sheet),
        f'<h4>Kinks and edges</h4><ul class="kinks" data-testid="kinks">{kinks}</ul>'
        if kinks
        else "",
        f'<h4>Facts</h4><dl data-testid="facts">{_facts(sheet)}</dl>',
        f'<p class="verdict {mark}" data-testid="verdict">{escape(words)}</p>',
    ]
    plots = "".join(_figure(figure, f"{card.name}-{n}") for n, figure in enumerate(shown))
    if isinstance(shown[0], Jacobian):
        plots = f'<p class="example">Example: {escape(shown[0].note)}</p>{plots}'
    return (
        f'<article class="sheet" data-testid="sheet" data-op="{card.name}" id="{card.name}">'
        f'<header><h2>{card.name}</h2><p class="words">{escape(sheet.words)}</p></header>'
        f'<div class="card">{"".join(parts)}</div>'
        f'<div class="plots" data-testid="plots">{plots}</div></article>'
    )


def _rules(sheet: Sheet) -> str:
    """A row per input: its rule, what that saves, and the input's domain."""
    domains = not sheet.domain
    head = "<th>input</th><th>" + ("local slope" if sheet.elementwise else "rule")
    head += "</th><th>saves</th>" + "<th>domain</th>" * domains
    rows = "".join(
        f'<tr data-input="{i.name}"><td><code>{i.name}</code></td>'
        f'<td class="math">{_rule(sheet, i)}</td><td data-testid="saves">{_saves(i)}</td>'
        + f"<td>{escape(i.domain)}</td>" * domains
        + "</tr>"
        for i in sheet.inputs
    )
    return (
        f'<div class="scroll"><table data-testid="rules"><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _rule(sheet: Sheet, row: Input) -> str:
    if not row.tex:
        return "an index or a mask: no gradient"
    if sheet.elementwise:
        left = rf"\frac{{\partial y}}{{\partial {name_tex(row.name)}}}"
    elif sheet.variadic:
        left = rf"\bar{{{row.name[:-1]}}}_k"
    else:
        capital = row.name.upper() if len(row.name) == 1 else ""
        left = bar_tex(capital if capital in sheet.tex.split() else row.name)
    return mathml(f"{left} = {row.tex}")


def _saves(row: Input) -> str:
    badges = "".join(f'<span class="badge">{word}</span>' for word in row.saves)
    return badges or ("nothing" if row.tex else "")


def _facts(sheet: Sheet) -> str:
    return "".join(f"<dt>{escape(a)}</dt><dd>{escape(b)}</dd>" for a, b in sheet.facts)


def _figure(figure: Figure, prefix: str) -> str:
    kind = type(figure).__name__.lower()
    if isinstance(figure, Jacobian):
        caption = f"Jacobian by {figure.input}"
    else:
        title = "value and slope" if isinstance(figure, Curve) else figure.name
        caption = " · ".join(filter(None, [title, figure.note]))
    return (
        f'<figure class="{kind}"><figcaption>{escape(caption)}</figcaption>'
        f'<div class="scroll">{plot(figure, prefix)}</div></figure>'
    )
