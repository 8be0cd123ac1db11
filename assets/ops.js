// The search of the Ops page and of the file of all ops, and the page's mount in Streamlit.
//
// Python has written the markup: links by family, each with the words it is found by.

/**
 * Filters the links inside `root` as somebody types; Enter opens the best match by `open(href)`.
 * Sheets on the same page (ids are op names) are hidden and shown with their links.
 */
function search(root, open) {
  const field = root.querySelector("input[type=search]");
  const entries = [...root.querySelectorAll("li[data-words]")];
  const families = [...root.querySelectorAll(".family")];
  const nothing = root.querySelector(".nothing");
  const asked = () => field.value.trim().toLowerCase();
  const shown = () => entries.filter((entry) => !entry.hidden);

  function filter() {
    const words = asked().split(/\s+/).filter(Boolean);
    for (const entry of entries) {
      entry.hidden = !words.every((word) => entry.dataset.words.includes(word));
      const sheet = root.querySelector(`article[data-op="${entry.dataset.op}"]`);
      if (sheet && root.classList.contains("all")) sheet.hidden = entry.hidden;
    }
    for (const family of families) family.hidden = !family.querySelector("li:not([hidden])");
    root.classList.toggle("searching", words.length > 0);
    nothing.hidden = shown().length > 0;
    nothing.textContent = nothing.hidden ? "" : `No op matches “${field.value.trim()}”.`;
  }

  function best() {
    const named = (test) => shown().find((entry) => test(entry.dataset.op));
    return named((name) => name === asked()) ?? named((name) => name.startsWith(asked())) ?? shown()[0];
  }

  field.addEventListener("input", filter);
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && asked()) open(best()?.querySelector("a").getAttribute("href"));
    if (event.key !== "Escape") return;
    field.value = "";
    filter();
  });
}

const apps = new WeakMap(); // Streamlit's parent element → the markup that is shown in it

/** Streamlit calls this again at each rerun; unchanged markup stays, with what was typed in its field. */
export default function component({ data, parentElement, setTriggerValue }) {
  const known = apps.get(parentElement);
  if (known?.html === data.html) return undefined;
  apps.set(parentElement, { html: data.html });
  known?.root.remove();
  const root = document.createElement("div");
  Object.assign(root, { className: "ops", innerHTML: data.html });
  apps.get(parentElement).root = root;
  parentElement.append(root);
  const open = (href) => href && setTriggerValue("go", href);
  root.addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault(); // Streamlit goes there without loading the page anew
    open(link.getAttribute("href"));
  });
  search(root, open);
  if (known) root.scrollIntoView({ block: "start" });
  return undefined;
}
