"""All ops in one self-contained HTML file: no server, no network, searchable, each to step."""

from __future__ import annotations

import os
from collections.abc import Callable

from ..card import Op, registry
from ..paths import ASSETS
from ..trace_file import write_whole
from .html import inline, payload
from .sheet import call_in_words, recorded, smallest
from .sheet_html import index_html, sheet_html, sheets

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>The ops of minigrad</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ margin: 0; background: light-dark(#f5f6f8, #0f141a); }}
{style}
</style>
</head><body>
<div class="ops all"><header class="top"><h1>The ops of minigrad</h1>
<p>{count} ops: formula, rules, what they save, kinks, plots, all read from their cards.</p>
</header>{index}<main>{sheets}</main></div>
<script type="application/json" id="style">{stepper_style}</script>
<script type="module">
{search}
search(document.querySelector(".ops"), (href) => {{ location.hash = href; }});
</script>
<script type="module">
{stepper}
const style = JSON.parse(document.getElementById("style").textContent);
document.addEventListener("toggle", ({{ target }}) => {{
  const host = target.querySelector?.(".stepper-host");
  if (!target.open || !host || host.shadowRoot) return;
  const root = host.attachShadow({{ mode: "open" }});
  const sheet = document.createElement("style");
  sheet.textContent = style;
  const inner = document.createElement("div");
  root.append(sheet, inner);
  mount(inner, JSON.parse(target.querySelector("script").textContent));
}}, true);
</script>
</body></html>
"""


def page(said: Callable[[str], None] = lambda name: None) -> str:
    """The whole page. said: is told each op's name as its sheet is drawn."""
    cards = [registry[sheet.name] for sheet in sheets()]
    drawn = []
    for card in cards:
        said(card.name)
        drawn.append(sheet_html(card).removesuffix("</article>") + _step_it(card) + "</article>")
    return _PAGE.format(
        style=(ASSETS / "ops.css").read_text(encoding="utf-8"),
        count=len(cards),
        index=index_html(lambda name: f"#{name}"),
        sheets="".join(drawn),
        stepper_style=inline((ASSETS / "stepper.css").read_text(encoding="utf-8")),
        search=_script("ops.js"),
        stepper=_script("stepper.js"),
    )


def _script(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8").replace("</script", r"<\/script")


def _step_it(card: Op) -> str:
    """The stepper for the op's example, mounted when it is opened."""
    operands, params = smallest(card)
    data = inline(payload(recorded(card, operands, params)))
    return (
        f"<details><summary>Step it: {call_in_words(card, operands, params)}</summary>"
        '<div class="stepper-host"></div>'
        f'<script type="application/json">{data}</script></details>'
    )


def to_html(path: str | os.PathLike[str], said: Callable[[str], None] = lambda name: None) -> None:
    """Write `page` to a file. Raises TraceError where it cannot be written."""
    write_whole(path, page(said))
