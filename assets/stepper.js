// The stepper: one recorded run, shown step by step, in the app, in a notebook and in an exported page.
//
// Python has decided everything: the payload holds the graph, the sentences, the arrays and, for each cell, the cells
// it is made of. What stays (controls, timeline, graph, code) is drawn once; a step rewrites the cards and switches
// classes. The only arithmetic here multiplies numbers that are shown; totals are read.

const SHOWN = 12; // rows and columns a grid shows at most
const SYMBOLS = { agrees: "✓", differs: "✗", kink: "∧", undecided: "?", undefined: "?" };

// --- numbers and text -------------------------------------------------------------------------------------------

const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
const escape = (text) => String(text).replace(/[&<>"']/g, (mark) => `&#${mark.charCodeAt(0)};`);
const withMinus = (text) => text.replaceAll("-", "−");

/** A number in four significant digits: 0.3, −1.65, 1.1e−11, ∞. A value that was not kept is "…". */
function short(value) {
  if (value === undefined) return "…";
  if (!Number.isFinite(value)) return withMinus(String(value)).replace("Infinity", "∞");
  const rounded = Number(value.toPrecision(4));
  const size = Math.abs(rounded);
  const plain = size === 0 || (size >= 1e-4 && size < 1e4);
  return withMinus(plain ? String(rounded) : rounded.toExponential().replace("e+", "e"));
}

const inParentheses = (text) => (text.startsWith("−") ? `(${text})` : text);
const sumOf = (texts) => texts.join(" + ").replaceAll(" + −", " − ");
const shapeText = (shape) => (shape.length ? shape.join("×") : "scalar");

// --- index arithmetic -------------------------------------------------------------------------------------------

const product = (numbers) => numbers.reduce((total, number) => total * number, 1);
const ravel = (index, shape) => shape.reduce((flat, size, axis) => flat * size + index[axis], 0);

function unravel(flat, shape) {
  return shape.reduceRight((index, size) => {
    index.unshift(flat % size);
    flat = Math.floor(flat / size);
    return index;
  }, []);
}

/** Where a cell lies among the stored numbers: of a large array only a corner is kept. */
function position({ shape, data, corner_shape }, index) {
  if (data) return ravel(index, shape);
  const corner = corner_shape.slice(-shape.length);
  const lead = shape.length - corner.length;
  const kept = index.every((i, axis) => i < (axis < lead ? 1 : corner[axis - lead]));
  return kept ? ravel(index.slice(lead), corner) : undefined;
}

function valueAt(array, index) {
  const at = position(array, index);
  return at === undefined ? undefined : Number((array.data ?? array.corner)[at]);
}

/** The largest finite magnitude: the full strength of a colour scale. */
function largest({ data, min, max }) {
  const sizes = (data ?? [min, max]).map((value) => Math.abs(Number(value)));
  return sizes.reduce((most, size) => (size > most && size < Infinity ? size : most), 0);
}

/** The cells shown of one slice (the last two axes), as rows of indices. */
function shownRows({ shape, corner_shape }, slice) {
  const [rows, columns] = [1, 1, ...(corner_shape?.slice(-shape.length) ?? shape)].slice(-2);
  const lead = unravel(slice, shape.slice(0, -2));
  const count = (size) => Array.from({ length: Math.min(size, SHOWN) }, (_, i) => i);
  return count(rows).map((row) => count(columns).map((column) => [...lead, ...[row, column].slice(-shape.length || 2)]));
}

// --- sources: what a cell is made of ----------------------------------------------------------------------------

/**
 * The terms of one result cell: how many, the n-th, and whether a cell of another grid takes part.
 * `arrayOf(key)` finds the array that a source refers to.
 */
function recipe({ sources, array }, index, arrayOf) {
  return sources.cells
    ? recipeOfCells(sources, ravel(index, array.shape), arrayOf(sources.of).shape)
    : recipeOfLetters(sources, index, arrayOf);
}

function recipeOfCells({ cells, of }, flat, shape) {
  const list = cells[flat] ?? [];
  return {
    count: list.length,
    term: (n) => ({ times: Number(list[n][0]), factors: [{ key: of, index: unravel(list[n][1], shape) }] }),
    touches: (key, at) => key === of && list.some(([, source]) => source === ravel(at, shape)),
  };
}

/** Letters name axes: those of `out` are fixed by the cell, the others are summed over; size 1 always has index 0. */
function recipeOfLetters({ out, factors, times }, index, arrayOf) {
  const fixed = new Map([...out].map((letter, axis) => [letter, index[axis]]));
  const free = new Map();
  for (const [key, letters] of factors) {
    [...letters].forEach((letter, axis) => {
      const size = arrayOf(key).shape[axis];
      if (!fixed.has(letter) && (size !== 1 || !free.has(letter))) free.set(letter, size);
    });
  }
  const names = [...free.keys()];
  const sizes = [...free.values()];
  const factorAt = (key, letters, where) =>
    key.startsWith("=")
      ? { value: Number(key.slice(1)) }
      : { key, index: [...letters].map((letter, axis) => (arrayOf(key).shape[axis] === 1 ? 0 : where.get(letter))) };
  return {
    count: product(sizes),
    term(n) {
      const summed = unravel(n, sizes).map((i, axis) => [names[axis], i]);
      const where = new Map([...fixed, ...summed]);
      return { times: times ?? 1, factors: factors.map(([key, letters]) => factorAt(key, letters, where)) };
    },
    touches(key, at) {
      const allows = (i, axis) => i === undefined || i === at[axis]; // undefined: the axis is summed over
      return factors.some(([name, letters]) => name === key && factorAt(key, letters, fixed).index.every(allows));
    },
  };
}

/** "b̄[0,0,0]", "0.3·(−1) + 2·0.5", "−0.3 + 1", "0.7": what stands between the equals signs for one cell. */
function equation(grid, index, arrayOf) {
  const name = grid.symbol + (index.length ? `[${index}]` : "");
  const total = valueAt(grid.array, index);
  if (!grid.sources) return [name, withMinus(String(total))];

  const { count, term } = recipe(grid, index, arrayOf);
  const { apply, infix } = grid.sources;
  const long = count > 8;
  const terms = Array.from({ length: long ? 6 : count }, (_, n) => {
    const { times, factors } = term(n);
    return { times, values: factors.map((factor) => factor.value ?? valueAt(arrayOf(factor.key), factor.index)) };
  });
  const texts = terms.flatMap(({ values }) => values.map(short));
  if (infix) return [name, texts.map((text, n) => (n ? inParentheses(text) : text)).join(` ${infix} `), short(total)];
  if (apply) return [name, `${apply}(${texts.join(", ")}${long ? `, …(${count})` : ""})`, short(total)];

  const factors = terms.map(({ times, values }) => (times === 1 ? values : [times, ...values]).map(short));
  const written = sumOf(factors.map((list) => (list.length > 1 ? list.map(inParentheses).join("·") : list[0])));
  const products = sumOf(terms.map(({ times, values }) => short(times * product(values))));
  const middle = count > 1 && !long && products !== written ? [products] : [];
  const left = count ? [written + (long ? ` + …(${count} terms)` : "")] : [];
  return count === 1 && written === short(total) ? [name, written] : [name, ...left, ...middle, short(total)];
}

// --- markup: grids and cards ------------------------------------------------------------------------------------

/** The grids of a frame in the order in which they are drawn; those of the row come first. */
function gridsOf({ parts, aside, jacobian, check, ledger }) {
  const all = [...parts, ...(aside?.parts ?? []), jacobian, check?.numeric, check?.difference, ...(ledger?.parts ?? [])];
  return all.filter((part) => part?.grid);
}

function cellMarkup({ array, marks, peak }, index) {
  const value = valueAt(array, index);
  const mark = marks?.[position(array, index)] ?? "agrees";
  const kind = [value < 0 && "neg", !Number.isFinite(value) && "odd", mark !== "agrees" && mark].filter(Boolean).join(" ");
  const strength = Number.isFinite(value) && peak ? (Math.abs(value) / peak).toFixed(3) : 0;
  const symbol = mark === "agrees" ? "" : `<b title="${escape(mark)}">${SYMBOLS[mark]}</b> `;
  const attributes = `data-index="${index}" data-value="${value}"${kind && ` class="${kind}"`} style="--t:${strength}"`;
  return `<td tabindex="0" ${attributes}>${symbol}${short(value)}</td>`;
}

function tableMarkup(view, slice) {
  const { array, hue, grid, symbol } = view;
  if (array.shape.includes(0)) return `<div class="empty">empty</div>`;
  const rows = shownRows(array, slice);
  const [height, width] = [1, 1, ...array.shape].slice(-2);
  const more = (count) => `<th aria-label="${count} more">…</th>`;
  const body = rows.map((row) => {
    const cells = row.map((index) => cellMarkup(view, index)).join("");
    return `<tr>${cells}${width > row.length ? more(width - row.length) : ""}</tr>`;
  });
  if (height > rows.length) body.push(`<tr>${more(height - rows.length)}</tr>`);
  return `<table class="grid ${hue}" aria-label="${escape(`${grid} ${symbol}`)}">${body.join("")}</table>`;
}

function sliceText({ shape }, slice) {
  const lead = shape.slice(0, -2);
  return `slice [${[...unravel(slice, lead), ":", ":"].join(", ")}] · ${slice + 1} of ${product(lead)}`;
}

function gridMarkup(view, slice) {
  const { grid, caption, symbol, array, note } = view;
  const testid = grid === "residual" ? "" : ` data-testid="${grid}"`;
  const { shape, corner, min, max, mean, norm } = array;
  const slices = shape.includes(0) ? 1 : product(shape.slice(0, -2));
  const bounds = `min="0" max="${slices - 1}" value="${slice}"`;
  const range = corner ? "" : `<input type="range" ${bounds} aria-label="slice of ${escape(symbol)}">`;
  const slider = slices > 1 ? `<label class="slice">${range}<span>${sliceText(array, slice)}</span></label>` : "";
  const summary = Object.entries({ min, max, mean, norm }).map(([word, value]) => `${word} ${short(Number(value))}`);
  return `<figure class="arr"${testid}>
    <figcaption><b>${caption}</b> <span class="shape">${shapeText(shape)}</span></figcaption>
    ${slider}<div class="scroll">${tableMarkup(view, slice)}</div>
    ${corner ? `<div class="sub">${summary.join(" · ")}</div>` : ""}${note ? `<div class="sub">${note}</div>` : ""}
  </figure>`;
}

const signMarkup = ({ sign, under }) =>
  `<span class="sign">${escape(sign)}${under ? `<small>${escape(under)}</small>` : ""}</span>`;

function checkMarkup({ verdict, symbol, word, numeric, difference, rows, notes }, draw) {
  const facts = rows.map(([term, fact]) => `<dt>${term}</dt><dd>${fact}</dd>`).join("");
  return `<div class="check">${numeric ? draw(numeric) : ""}${difference ? draw(difference) : ""}
    <div class="verdict" data-testid="verdict"><span class="chip ${escape(verdict)}">${escape(symbol)} ${escape(word)}</span>
      ${facts && `<dl>${facts}</dl>`}${notes.map((note) => `<p>${note}</p>`).join("")}</div></div>`;
}

/** Everything below the graph: the step card and, where something accumulates, the ledger. */
function cardsMarkup({ say, parts, aside, jacobian, check, ledger }, legend, drawGrid) {
  const draw = (part) => (part.grid ? drawGrid(part) : signMarkup(part));
  const flow = (list) => `<div class="flow">${list.map(draw).join("")}</div>`;
  const hasCells = gridsOf({ parts, aside, jacobian }).length > 0;
  const hint = `<span class="legend hint">hover or focus a cell to see what it is made of</span>`;
  const ledgerTitle = ledger && `<h3><span>${ledger.title}</span> <span class="legend">${ledger.note}</span></h3>`;
  return `<section class="card" data-testid="step-card" aria-label="this step">
      <h3>This step <span class="legend">${legend}</span>${hasCells ? hint : ""}</h3>
      ${say && `<p class="say">${say}</p>`}
      <div class="row">${parts.length ? flow(parts) : ""}
        ${aside ? `<div class="aside" data-testid="${escape(aside.testid)}"><h4>${aside.title}</h4>${flow(aside.parts)}</div>` : ""}
        ${jacobian ? draw(jacobian) : ""}</div>
      ${hasCells ? `<div class="explain" data-testid="explain" aria-live="polite"></div>` : ""}
      ${check ? checkMarkup(check, draw) : ""}
    </section>
    ${ledger ? `<section class="card" data-testid="ledger">${ledgerTitle}${flow(ledger.parts)}</section>` : ""}`;
}

// --- markup: what stays from step to step -----------------------------------------------------------------------

const icon = (path) =>
  `<svg width="16" height="16" viewBox="0 0 16 16" fill="currentColor" aria-hidden="true"><path d="${path}"/></svg>`;
const ICONS = {
  first: icon("M3 3h2v10H3zM13 3v10L6 8z"),
  prev: icon("M12 3v10L4 8z"),
  next: icon("M4 3l8 5-8 5z"),
  last: icon("M11 3h2v10h-2zM3 3l7 5-7 5z"),
  pause: icon("M4 3h3v10H4zM9 3h3v10H9z"),
};

function timelineMarkup(frames) {
  return frames
    .map(({ phase, tick, check }, step) => {
      const wrong = check?.verdict === "differs";
      const heading = phase === frames[step - 1]?.phase ? "" : `<span class="phase">${phase}</span>`;
      return `${heading}<button class="tick ${phase}${wrong ? " wrong" : ""}" data-go="${step}" tabindex="-1">${wrong ? "✗ " : ""}${escape(tick)}</button>`;
    })
    .join("");
}

const POLICIES = ["save_all", "recompute"];
const SWATCH = `<svg class="swatch" width="31" height="10" aria-hidden="true"><path d="M0 5H30"/></svg>`;

/** The bytes of one policy as stairs: step s reaches from s − ½ to s + ½; 1 is the most of all. */
function stairs(bytes, most) {
  const heights = bytes.map((count) => `V${(1 - count / most).toFixed(4)}`);
  return `M0,1${heights.map((height, step) => `${height}H${Math.min(step + 0.5, bytes.length - 1)}`).join("")}`;
}

/** Both policies over the same axis as the scrubber; without bytes there is no lane. */
function memoryMarkup({ memory, frames }) {
  if (!memory) return "";
  const policies = POLICIES.filter((policy) => memory[policy]);
  const most = Math.max(...policies.map((policy) => memory[policy][memory.peaks[policy].step]));
  const last = Math.max(frames.length - 1, 1);
  const legend = policies.map((policy) =>
    `<span class="policy ${policy}">${SWATCH}<span>${memory.labels[policy]}, now <b data-now="${policy}"></b></span></span>`);
  const curves = policies.map((policy) => `<path class="${policy}" d="${stairs(memory[policy], most)}"/>`);
  const [first, second = first] = policies.map((policy) => memory.peaks[policy]);
  const isOne = first.step === second.step && first.text === second.text; // one label for both dots
  const isLeft = ({ step }, other) => step / last > 0.8 || (step / last > 0.2 && step < other.step);
  const sides = [isLeft(first, second), isLeft(second, first)];
  const peaks = policies.map((policy, n) => {
    const { step, text } = memory.peaks[policy];
    const high = memory[policy][step] / most;
    const isBelow = n && high > 0.6 && sides[0] === sides[1];
    const place = `${policy}${sides[n] ? " left" : ""}${isBelow ? " below" : ""}`;
    const style = `style="--at:${step / last};--high:${high}"`;
    return `<i class="peak ${policy}" ${style}></i>${n && isOne ? "" : `<span class="peak ${place}" ${style}>${text}</span>`}`;
  });
  const said = `bytes held for backward at each step; ${policies.map((policy) => memory.labels[policy]).join("; ")}`;
  return `<details class="memory" data-testid="memory"${memoryOpen ?? memory.open ? " open" : ""}>
      <summary><span class="title">Memory <span class="legend">held for backward</span></span>
        <span class="policies">${legend.join("")}</span></summary>
      <div class="lane" role="img" aria-label="${said}">
        <svg viewBox="0 0 ${last} 1" preserveAspectRatio="none" aria-hidden="true">${curves.join("")}</svg>
        <i class="mark"></i>${peaks.join("")}</div>
    </details>`;
}

let memoryOpen; // once somebody has opened or folded a lane, the steppers that come next follow

/** A step moves the mark and rewrites two numbers; a click goes to the step below the pointer. */
function memoryPanel(details, { memory, frames }, go) {
  if (!details) return { show() {} };
  const [lane, mark] = [".lane", ".mark"].map((name) => details.querySelector(name));
  const now = [...details.querySelectorAll("[data-now]")];
  const last = Math.max(frames.length - 1, 1);
  lane.addEventListener("click", ({ clientX }) => {
    const { left, width } = lane.querySelector("svg").getBoundingClientRect();
    go(Math.round(clamp((clientX - left) / width, 0, 1) * last));
  });
  details.querySelector("summary").addEventListener("click", () => (memoryOpen = !details.open));
  return {
    show(step) {
      mark.style.setProperty("--at", step / last);
      for (const number of now) number.textContent = memory.texts[memory[number.dataset.now][step]];
    },
  };
}

function codeMarkup({ title, lines }) {
  const rows = lines.map(({ number, text }) =>
    `<div class="line" data-line="${number}"><i>${number}</i><span>${escape(text)}</span></div>`);
  return `<section class="card code" data-testid="code" aria-label="code"><h3>${escape(title)}</h3>
    <div class="lines" style="--lines:${lines.length}">${rows.join("")}</div></section>`;
}

function shellMarkup({ frames, summary, code, memory }) {
  const button = (name, label, text = "") =>
    `<button data-testid="${name}" aria-label="${label}">${text}${ICONS[name]}</button>`;
  const speeds = [0.5, 1, 2, 4].map((x) => `<option value="${x}"${x === 1 ? " selected" : ""}>${x}×</option>`);
  return `<div class="bar">
      <div class="buttons">
        ${button("first", "first step")}${button("prev", "previous step")}
        ${button("next", "next step", "Next ")}${button("last", "last step")}
        <button data-testid="play"></button><select aria-label="speed">${speeds.join("")}</select></div>
      <div class="label" data-testid="step-label" aria-live="polite"></div>
      <span class="chip ${escape(summary.verdict)}">${escape(`${summary.symbol} ${summary.text}`)}</span>
    </div>
    <input class="scrub" data-testid="scrub" type="range" min="1" max="${frames.length}" aria-label="step">
    <div class="timeline" data-testid="timeline" role="group" aria-label="timeline">${timelineMarkup(frames)}</div>
    ${memoryMarkup({ frames, memory })}
    <div class="two${code ? "" : " alone"}">
      <section class="card graph" data-testid="graph" aria-label="graph">
        <h3>Graph <span class="legend">‖·‖ value · grad = size of the gradient so far</span><span class="tools">
          <button data-zoom="0.8" aria-label="zoom out">−</button>
          <button data-zoom="1.25" aria-label="zoom in">+</button>
          <button data-zoom="fit" aria-label="fit the whole graph">Fit</button></span></h3>
        <div class="port"></div></section>
      ${code ? codeMarkup(code) : ""}
    </div>
    <div class="cards"></div>`;
}

// --- the graph: its nodes never move, the view does -------------------------------------------------------------

const READABLE = 13; // px: the text size aimed for
const LEGIBLE = 9.5; // px: down to this size a graph is shown whole, before the view begins to pan
const MARGIN = 12;

/** Pan and zoom: `drawing` is sized by the scale and moved by a transform, so that panning costs no layout. */
function viewport(port, drawing) {
  const whole = drawing.viewBox.baseVal;
  const fonts = [...drawing.querySelectorAll("text")].slice(0, 40).map((text) => parseFloat(getComputedStyle(text).fontSize));
  const smallest = Math.min(...fonts, READABLE);
  const readable = READABLE / smallest;
  const most = (READABLE + 2) / smallest; // a small graph is not blown up further
  const room = { width: 0, height: 0 }; // what the panel offers, less a margin for strokes
  let [left, top, scale] = [0, 0, 0];
  let untouched = true;

  function place(newLeft, newTop, newScale) {
    if (newScale !== scale) {
      drawing.style.width = `${whole.width * newScale}px`;
      drawing.style.height = `${whole.height * newScale}px`;
    }
    [left, top, scale] = [newLeft, newTop, newScale];
    drawing.style.transform = `translate(${left}px, ${top}px)`;
  }

  const fitting = () => Math.min(room.width / whole.width, room.height / whole.height, most);
  const pan = (dx, dy) => place(left + dx, top + dy, scale);

  function centre(newScale) {
    const [spareX, spareY] = [port.clientWidth - whole.width * newScale, port.clientHeight - whole.height * newScale];
    place(spareX / 2, spareY / 2, newScale);
  }

  function zoom(factor, atX = port.clientWidth / 2, atY = port.clientHeight / 2) {
    const newScale = clamp(scale * factor, Math.min(fitting(), 1) / 2, 4 * most);
    const ratio = newScale / scale;
    untouched = false;
    place(atX - (atX - left) * ratio, atY - (atY - top) * ratio, newScale);
  }

  /** Moves as little as needed to show these elements; does nothing when they are in sight. */
  function reveal(elements) {
    const frame = port.getBoundingClientRect();
    const boxes = elements.map((element) => element.getBoundingClientRect());
    if (!boxes.length || !frame.width) return;
    const shift = (start, end) => {
      const [low, high] = [Math.min(...boxes.map((box) => box[start])), Math.max(...boxes.map((box) => box[end]))];
      const tooLarge = high - low > frame[end] - frame[start];
      if (tooLarge) return (frame[start] + frame[end] - low - high) / 2;
      return Math.max(frame[start] - low, 0) + Math.min(frame[end] - high, 0);
    };
    const dx = shift("left", "right");
    const dy = shift("top", "bottom");
    if (Math.abs(dx) > 1 || Math.abs(dy) > 1) pan(dx && dx + MARGIN * Math.sign(dx), dy && dy + MARGIN * Math.sign(dy));
  }

  /** The panel takes the height that the graph needs, and a row of its own if the graph is wide; what does not fit is panned to. */
  function resize() {
    const row = port.closest(".two");
    row.classList.toggle("alone", !row.querySelector(".code") || whole.width * readable > row.clientWidth * 0.75);
    const wanted = clamp((port.clientWidth - MARGIN) / whole.width, readable, most) * whole.height + MARGIN;
    port.style.minHeight = `${clamp(wanted, 180, 420)}px`;
    Object.assign(room, { width: port.clientWidth - MARGIN, height: port.clientHeight - MARGIN });
    if (untouched) centre(Math.max(fitting(), LEGIBLE / smallest));
  }

  function fit() {
    untouched = false;
    centre(fitting());
  }

  return { pan, zoom, fit, reveal, resize };
}

/** Drag pans, a pinch or ctrl + wheel zooms, a plain wheel scrolls the page. Returns whether the last press was a drag. */
function gestures(port, { pan, zoom }) {
  const pointers = new Map();
  let dragged = false;
  const middle = () => {
    const [a, b = a] = [...pointers.values()];
    return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2, spread: Math.hypot(a.x - b.x, a.y - b.y) };
  };
  const release = ({ pointerId }) => pointers.delete(pointerId);
  port.addEventListener("pointerdown", ({ pointerId, clientX, clientY, button }) => {
    if (button !== 0) return;
    if (!pointers.size) dragged = false;
    pointers.set(pointerId, { x: clientX, y: clientY });
  });
  port.addEventListener("pointermove", ({ pointerId, clientX, clientY }) => {
    const pointer = pointers.get(pointerId);
    if (!pointer || (!dragged && Math.hypot(clientX - pointer.x, clientY - pointer.y) < 4)) return;
    if (!dragged) port.setPointerCapture(pointerId);
    dragged = true;
    const before = middle();
    Object.assign(pointer, { x: clientX, y: clientY });
    const after = middle();
    const corner = port.getBoundingClientRect();
    pan(after.x - before.x, after.y - before.y);
    if (before.spread) zoom(after.spread / before.spread, after.x - corner.left, after.y - corner.top);
  });
  port.addEventListener("pointerup", release);
  port.addEventListener("pointercancel", release);
  port.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const corner = port.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY / 200), event.clientX - corner.left, event.clientY - corner.top);
  }, { passive: false });
  return () => dragged;
}

/** Draws payload.svg once; `show` switches classes and the third text line of the nodes that changed. */
function graphPanel(card, { svg, nodes }, go) {
  const port = card.querySelector(".port");
  port.innerHTML = svg;
  const drawing = port.querySelector("svg");
  const find = (name) => new Map([...drawing.querySelectorAll(`[data-${name}]`)].map((group) => [group.dataset[name], group]));
  const groups = find("node");
  const edges = find("edge");
  const shown = new Map(); // node → the entry of its stats on screen
  let lit = [];
  let litNodes = [];

  const view = viewport(port, drawing);
  const wasDragged = gestures(port, view);
  const drawn = nodes.filter(({ id }) => groups.has(String(id)));
  const stepOf = new Map(drawn.map(({ id, step }) => [groups.get(String(id)), step]));
  for (const { id, name } of drawn) {
    const group = groups.get(String(id));
    group.setAttribute("tabindex", 0);
    group.setAttribute("role", "button");
    group.setAttribute("aria-label", `go to ${name}`);
    group.classList.add("pending");
  }

  const goToNode = ({ target }) => {
    const group = target.closest("[data-node]");
    if (stepOf.has(group)) go(stepOf.get(group));
  };
  drawing.addEventListener("click", (event) => wasDragged() || goToNode(event));
  drawing.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    goToNode(event);
  });
  card.querySelector(".tools").addEventListener("click", ({ target: { dataset } }) => {
    if (dataset.zoom) dataset.zoom === "fit" ? view.fit() : view.zoom(Number(dataset.zoom));
  });

  const observer = new ResizeObserver(() => {
    view.resize();
    view.reveal(litNodes);
  });
  observer.observe(port);

  function show(frame, step) {
    for (const node of drawn) {
      const stat = node.stats.findLast(({ from }) => from <= step);
      if (stat === shown.get(node)) continue;
      shown.set(node, stat);
      const group = groups.get(String(node.id));
      group.querySelector(".stat").textContent = stat?.text ?? "";
      group.classList.toggle("pending", !stat);
      group.classList.toggle("grad", stat?.hue === "grad");
      group.style.setProperty("--t", stat?.strength ?? 0);
    }
    for (const group of lit) group.classList.remove("lit", "backward");
    litNodes = frame.lit.nodes.map((id) => groups.get(String(id))).filter(Boolean);
    lit = [...litNodes, ...frame.lit.edges.map((id) => edges.get(id)).filter(Boolean)];
    for (const group of lit) group.classList.add("lit", ...(frame.lit.flow === "backward" ? ["backward"] : []));
    view.reveal(litNodes);
  }

  return { show, destroy: () => observer.disconnect() };
}

// --- the cards of one step: grids, slices, the explained cell ---------------------------------------------------

const TWINS = new Set(["numeric", "difference", "before", "added", "after"]);

/** Draws a frame's cards into `box`; hovered or focused cells are explained and their sources lit. */
function cardsPanel(box, { arrays, legend }) {
  const slices = new Map(); // leading shape → the slice shown; kept from step to step
  const leadOf = ({ array }) => String(array.shape.slice(0, -2));
  const sliceOf = (view) => (view.array.corner ? 0 : slices.get(leadOf(view)) ?? 0);
  let views = []; // the grids of this step, each with its array, figure and cells
  let rowLength = 0; // how many of them stand in the row
  let explained = null; // the cell whose sum is written

  const arrayOf = (key) => views.find((view) => view.key === key).array;
  const viewOf = (cell) => views.find((view) => view.cells.has(cell));
  const takeCells = (view) => {
    const indices = view.array.shape.includes(0) ? [] : shownRows(view.array, sliceOf(view)).flat();
    const cells = view.figure.querySelectorAll("td");
    view.cells = new Map(indices.map((index, n) => [cells[n], index]));
  };

  function show(frame) {
    const grids = gridsOf(frame);
    const peaks = {};
    for (const { hue, array } of grids) peaks[hue] = Math.max(peaks[hue] ?? 0, largest(arrays[array]));
    views = grids.map((grid) => ({ ...grid, array: arrays[grid.array], peak: peaks[grid.hue] }));
    rowLength = frame.parts.filter((part) => part.grid).length;
    const drawGrid = (grid) => {
      const view = views[grids.indexOf(grid)];
      return gridMarkup(view, sliceOf(view));
    };
    box.innerHTML = cardsMarkup(frame, legend, drawGrid);
    box.querySelectorAll("figure").forEach((figure, n) => takeCells(Object.assign(views[n], { figure })));
    explain(defaultCell());
  }

  function defaultCell() {
    const row = views.slice(0, rowLength).filter((view) => view.cells.size);
    const view = row.findLast((view) => view.sources) ?? row.at(-1) ?? views.find((view) => view.cells.size);
    return view?.cells.keys().next().value;
  }

  /** Which cells of `other` belong to the explained one: sources, steps on the way, the same cell checked or added. */
  function litIn(other, view, index, made) {
    const isSame = (at) => at.every((i, axis) => i === index[axis]);
    if (other === view) return isSame;
    const place = views.indexOf(other);
    const isTwin = place >= rowLength && TWINS.has(other.grid) && String(other.array.shape) === String(view.array.shape);
    const isBetween = made && other.sources && place < views.indexOf(view) && views.indexOf(view) < rowLength;
    const onTheWay = (at) => {
      const { count, term } = recipe(other, at, arrayOf);
      return count > 0 && term(0).factors.every(({ key, index }) => made.touches(key, index));
    };
    return (at) => (isTwin && isSame(at)) || Boolean(made?.touches(other.key, at)) || (isBetween && onTheWay(at));
  }

  function explain(cell) {
    const line = box.querySelector(".explain");
    if (!cell) line?.remove();
    if (!cell || !line || cell === explained) return;
    explained = cell;
    const view = viewOf(cell);
    const index = view.cells.get(cell);
    const made = view.sources && recipe(view, index, arrayOf);
    for (const other of views) {
      const isLit = litIn(other, view, index, made);
      for (const [td, at] of other.cells) td.classList.toggle("hl", isLit(at));
    }
    // within a step the line only grows: what stands below stays put
    if (line.firstChild) line.style.minHeight = `${line.offsetHeight}px`;
    const parts = equation(view, index, arrayOf).map(escape);
    line.innerHTML = `<span>${parts.slice(0, -1).join(" = ")} = <b>${parts.at(-1)}</b></span>`;
  }

  const cellAt = (element) => element?.closest?.("td[data-index]");
  const settle = () => explain(cellAt(box.getRootNode().activeElement) ?? defaultCell());
  const point = ({ target }) => (cellAt(target) ? explain(cellAt(target)) : settle());
  box.addEventListener("pointerover", point);
  box.addEventListener("focusin", point);
  box.addEventListener("pointerleave", settle);
  box.addEventListener("input", ({ target }) => {
    const lead = leadOf(views.find((view) => view.figure.contains(target)));
    slices.set(lead, target.valueAsNumber);
    for (const view of views) {
      const range = view.figure.querySelector(".slice input");
      if (!range || leadOf(view) !== lead) continue;
      range.value = target.value;
      range.nextElementSibling.textContent = sliceText(view.array, target.valueAsNumber);
      view.figure.querySelector(".scroll").innerHTML = tableMarkup(view, target.valueAsNumber);
      takeCells(view);
    }
    explained = null;
    explain(defaultCell());
  });
  return { show };
}

// --- mount ------------------------------------------------------------------------------------------------------

/** Light text means a dark host. */
function themeOf(element) {
  const [red, green, blue] = getComputedStyle(element).color.match(/[\d.]+/g).map(Number);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 128 ? "dark" : "light";
}

/** Keeps data-theme on `root` equal to its host's theme; returns a function that stops it. */
function followTheme(root) {
  const host = root.parentElement ?? root.getRootNode().host;
  const update = () => (root.dataset.theme = themeOf(host));
  const observer = new MutationObserver(update);
  const outer = root.getRootNode().host ?? host;
  for (const element of [host, outer, document.documentElement, document.body]) observer.observe(element, { attributes: true });
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  scheme.addEventListener("change", update);
  update();
  const stop = () => {
    observer.disconnect();
    scheme.removeEventListener("change", update);
  };
  return { update, stop };
}

/** Scrolls inside `box` only, and only as far as needed to show `child` with `margin` around it. */
function keepInSight(box, child, margin) {
  const within = (now, start, size, room) => clamp(now, start + size + margin - room, start - margin);
  const across = within(box.scrollLeft, child.offsetLeft, child.offsetWidth, box.clientWidth);
  const down = within(box.scrollTop, child.offsetTop, child.offsetHeight, box.clientHeight);
  if (across !== box.scrollLeft || down !== box.scrollTop) box.scrollTo(across, down);
}

/**
 * Shows `payload` inside `host`, an element or a shadow root.
 * `step` (0-based, clamped) is where it starts, `onStep(step)` is called after each change.
 */
export function mount(host, payload, { step = 0, onStep } = {}) {
  const { frames } = payload;
  const root = document.createElement("div");
  Object.assign(root, { className: "stepper", tabIndex: -1, innerHTML: shellMarkup(payload) });
  Object.assign(root.dataset, { testid: "stepper", steps: frames.length });
  root.setAttribute("role", "group");
  root.setAttribute("aria-label", `steps of ${payload.name}`);
  host.append(root);

  const part = (testid) => root.querySelector(`[data-testid="${testid}"]`);
  const controls = { first: part("first"), prev: part("prev"), next: part("next"), last: part("last") };
  const [label, scrub, timeline, playButton] = ["step-label", "scrub", "timeline", "play"].map(part);
  const speed = root.querySelector("select");
  const ticks = [...timeline.querySelectorAll(".tick")];
  const lines = [...root.querySelectorAll(".line")];
  const theme = followTheme(root);
  const cards = cardsPanel(root.querySelector(".cards"), payload);
  const graph = graphPanel(part("graph"), payload, move);
  const memory = memoryPanel(part("memory"), payload, move);
  let current = 0;
  let timer = null;

  const valid = (wanted) => clamp(Math.trunc(wanted) || 0, 0, frames.length - 1);

  function drawTimeline(next) {
    ticks[current].removeAttribute("aria-current");
    ticks[current].tabIndex = -1;
    for (let n = Math.min(current, next); n < Math.max(current, next); n++) ticks[n].classList.toggle("done", n < next);
    ticks[next].setAttribute("aria-current", "step");
    ticks[next].tabIndex = 0;
    keepInSight(timeline, ticks[next], 80);
  }

  function drawCode(numbers) {
    for (const line of lines) line.classList.toggle("current", numbers.includes(Number(line.dataset.line)));
    const first = lines.find((line) => line.classList.contains("current"));
    if (first) keepInSight(first.parentElement, first, 24);
  }

  function draw(next) {
    const frame = frames[next];
    const { activeElement } = root.getRootNode();
    const focused = root.contains(activeElement) && activeElement;
    Object.assign(root.dataset, { step: next, phase: frame.phase });
    label.innerHTML = `<span><b>Step ${next + 1} of ${frames.length}</b> · ${frame.title}</span>`;
    for (const name of ["first", "prev"]) controls[name].disabled = next === 0;
    for (const name of ["next", "last"]) controls[name].disabled = next === frames.length - 1;
    scrub.value = next + 1;
    scrub.style.setProperty("--done", `${(100 * next) / Math.max(frames.length - 1, 1)}%`);
    scrub.setAttribute("aria-valuetext", `${next + 1} of ${frames.length}, ${frame.tick}`);
    cards.show(frame);
    graph.show(frame, next);
    drawCode(frame.lines);
    drawTimeline(next);
    memory.show(next);
    current = next;
    if (focused) keepFocus(focused);
  }

  /** The focus must not fall out of the stepper when its cell is redrawn, its button disabled or its tick left. */
  function keepFocus(focused) {
    const grid = focused.closest("[data-testid]")?.dataset.testid;
    const redrawn = `[data-testid="${grid}"] td[data-index="${focused.dataset.index}"]`;
    const same = focused.isConnected ? focused : root.querySelector(redrawn);
    const target = focused.classList.contains("tick") ? ticks[current] : same && !same.disabled ? same : root;
    if (target !== focused) target.focus({ preventScroll: true });
  }

  function go(wanted) {
    const next = valid(wanted);
    if (next === current) return;
    draw(next);
    onStep?.(next);
  }

  /** A step asked for by hand: it also stops the playing. */
  function move(wanted) {
    play(false);
    go(wanted);
  }

  function play(on) {
    clearInterval(timer);
    const advance = () => (current < frames.length - 1 ? go(current + 1) : play(false));
    timer = on ? setInterval(advance, 1200 / Number(speed.value)) : null;
    playButton.innerHTML = on ? `${ICONS.pause}<span> Pause</span>` : `${ICONS.next}<span> Play</span>`;
    playButton.setAttribute("aria-label", on ? "pause" : "play");
  }

  function togglePlay() {
    if (timer === null && current === frames.length - 1) go(0);
    play(timer === null);
  }

  const actions = {
    first: () => move(0),
    prev: () => move(current - 1),
    next: () => move(current + 1),
    last: () => move(frames.length - 1),
    play: togglePlay,
  };
  for (const name of Object.keys(actions)) part(name).addEventListener("click", actions[name]);
  scrub.addEventListener("input", () => move(scrub.valueAsNumber - 1));
  timeline.addEventListener("click", ({ target: { dataset } }) => dataset.go && move(Number(dataset.go)));
  speed.addEventListener("change", () => play(timer !== null));

  play(false);
  draw(valid(step));
  const leaveKeys = listenForKeys({ root, actions });

  function destroy() {
    play(false);
    leaveKeys();
    theme.stop();
    graph.destroy();
    root.remove();
  }

  const focus = () => root.focus({ preventScroll: true });
  return {
    destroy,
    go,
    focus,
    updateTheme: theme.update,
    get step() { return current; },
    get first() { return [...mounted][0]?.root === root; },
  };
}

// --- keys: one document listener for all steppers of the page ---------------------------------------------------

const KEYS = { ArrowLeft: "prev", ArrowRight: "next", Home: "first", End: "last", " ": "play" };
const FIELDS = "input, textarea, select, canvas, [contenteditable]:not([contenteditable=false])";
const TYPING = `${FIELDS},` +
  ["textbox", "slider", "spinbutton", "combobox", "listbox", "menu", "tab", "grid"].map((role) => `[role=${role}]`).join();
const PRESSABLE = "button, a, summary, [role=button]";
const mounted = new Set();

/** The focused element, also inside shadow roots. */
function focusedElement(root = document) {
  const { activeElement } = root;
  return activeElement?.shadowRoot ? focusedElement(activeElement.shadowRoot) : activeElement;
}

function onKey(event) {
  const action = KEYS[event.key];
  const path = event.composedPath();
  const within = (selector) => path.some((node) => node.matches?.(selector));
  if (!action || event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || within(TYPING)) return;
  if (event.key === " " && within(PRESSABLE)) return;
  const chosen = [...mounted].find(({ root }) => path.includes(root)) ?? firstOnScreen();
  if (!chosen) return;
  event.preventDefault();
  chosen.actions[action]();
}

function firstOnScreen() {
  const placed = [...mounted].map((stepper) => ({ stepper, box: stepper.root.getBoundingClientRect() }));
  const visible = placed.filter(({ box }) => box.height && box.bottom > 0 && box.top < innerHeight);
  return visible.sort((a, b) => a.box.top - b.box.top)[0]?.stepper;
}

function listenForKeys(stepper) {
  if (!mounted.size) document.addEventListener("keydown", onKey);
  mounted.add(stepper);
  return () => {
    mounted.delete(stepper);
    if (!mounted.size) document.removeEventListener("keydown", onKey);
  };
}

// --- hosts: Streamlit and anywidget -----------------------------------------------------------------------------

function writeStepToAddress(step) {
  const address = new URL(location.href);
  address.searchParams.set("step", step + 1);
  history.replaceState(history.state, "", address);
}

/**
 * The server clears the step when a case is chosen, and may do so after the stepper was drawn: an address that goes on
 * saying another step is put right. With several steppers on a page the first one speaks.
 */
function keepAddress(app) {
  let wrong = 0;
  return setInterval(() => {
    if (!app.stepper.first) return;
    const said = Number(new URL(location.href).searchParams.get("step") ?? 1);
    wrong = said - 1 === app.stepper.step ? 0 : wrong + 1;
    if (wrong > 1) writeStepToAddress(app.stepper.step);
  }, 300);
}

const apps = new WeakMap(); // Streamlit's parent element → what is mounted in it

/**
 * Streamlit calls this again at each rerun. An unchanged payload keeps its stepper; a step that only echoes what the
 * stepper wrote to the address since the last call is not a wish from outside.
 */
function renderInStreamlit({ data, parentElement }) {
  if (!data?.payload) return undefined;
  const known = apps.get(parentElement);
  const wished = data.step != null && data.step !== known?.asked && !known?.written.has(data.step);
  const step = wished || !known ? (data.step ?? 1) - 1 : known.stepper.step;
  const text = JSON.stringify(data.payload);
  const app = known ?? {};
  const written = new Set();
  const onStep = (now) => {
    app.written.add(now + 1);
    if (data.url) writeStepToAddress(now);
  };
  if (known?.text === text) {
    known.stepper.go(step);
    known.stepper.updateTheme();
  } else {
    known?.stepper.destroy();
    app.stepper = mount(parentElement, data.payload, { step, onStep });
    if (!known && !focusedElement()?.matches(FIELDS)) app.stepper.focus(); // so that → steps at once
  }
  if (!known && data.url) app.keeper = keepAddress(app);
  const call = Symbol("latest call");
  apps.set(parentElement, Object.assign(app, { text, asked: data.step, written, call }));
  return () => {
    if (app.call !== call) return; // a later call took the stepper over
    clearInterval(app.keeper);
    app.stepper.destroy();
    apps.delete(parentElement);
  };
}

function renderInNotebook({ model, el }) {
  let stepper = mount(el, model.get("payload"));
  const renew = () => {
    stepper.destroy();
    stepper = mount(el, model.get("payload"), { step: stepper.step });
  };
  model.on("change:payload", renew);
  return () => {
    model.off("change:payload", renew);
    stepper.destroy();
  };
}

/** Streamlit passes its component, anywidget nothing. */
export default function component(streamlit) {
  return streamlit ? renderInStreamlit(streamlit) : { render: renderInNotebook };
}
