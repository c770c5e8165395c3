// One window or document: its text in the colours of its spans, and a card for each span. Whatever comes from the data
// is put in as text nodes, never as markup.
import { make, precise, table, visible } from "./dom.js";
import { drawTokens } from "./tokens.js";

const COLOURS = 6;
const MOST_CARDS = 300; // of a window of many short documents

/** Which forms a row can be shown in. */
export function formsOf(row) {
  const found = [];
  if (row.genes) return ["table"];
  if (row.spans.some((span) => typeof span.text === "string")) found.push("text");
  if (row.spans.some((span) => span.pieces)) found.push("tokens");
  if (row.spans.some((span) => typeof span.ids === "string")) found.push("ids");
  if (row.table) found.push("table");
  if (row.spans.some((span) => typeof span.ids === "string")) found.push("training");
  return found;
}

/** Draws the row into `content` and `cards`; `open(span)` is called where its document is asked for. */
export function drawRow(row, form, content, cards, open) {
  const runs = drawContent(row, form, content);
  const described = row.spans.filter((span) => span.shard !== undefined);
  content.parentElement.classList.toggle("alone", described.length === 0);
  cards.replaceChildren(...described.slice(0, MOST_CARDS).map((span, at) => card(row, span, at, open)));
  const light = (at, on) => {
    runs[at]?.classList.toggle("on", on);
    cards.children[at]?.classList.toggle("on", on);
  };
  for (const [at, each] of [...runs.entries(), ...[...cards.children].entries()]) {
    each.addEventListener("mouseenter", () => light(at, true));
    each.addEventListener("mouseleave", () => light(at, false));
  }
  // Within their own boxes: the page itself stays where it is.
  if (described.length > MOST_CARDS) {
    const words = `The first ${precise(MOST_CARDS)} of ${precise(described.length)} spans: choose a smaller window.`;
    cards.append(make("li", { class: "empty", text: words }));
  }
  const hit = content.querySelector(".hit");
  if (hit) content.scrollTop += hit.getBoundingClientRect().top - content.getBoundingClientRect().top - content.clientHeight / 4;
  const show = (box, each) => box.scrollTo({ top: each.offsetTop - box.offsetTop - 10, behavior: "smooth" });
  runs.forEach((run, at) => run.addEventListener("click", () => cards.children[at] && show(cards, cards.children[at])));
  [...cards.children].forEach((each, at) => each.addEventListener("click", () => runs[at] && show(content, runs[at])));
}

/** The places [begin, end) among a span's records that are marked. */
function markedOf(row, span) {
  if (!row.mark) return { begin: 0, end: 0 };
  const first = row.kind === "window" ? row.first_record + (span.start ?? 0) : row.begin ?? 0;
  return { begin: row.mark.begin - first, end: row.mark.end - first };
}

function drawContent(row, form, content) {
  content.scrollTop = 0;
  if (row.genes) {
    drawGenes(row.genes, content);
    return [];
  }
  if (form === "table" && row.table) {
    drawTable(row, content);
    return [];
  }
  if (form === "tokens" || form === "ids") {
    const spans = row.spans.filter((span) => typeof span.ids === "string" && span.ids !== "");
    if (spans.length) return drawTokens(spans, form, content, (span) => markedOf(row, span));
  }
  const said = (span) => (form === "text" ? span.text : span.ids);
  const runs = row.spans.filter((span) => typeof said(span) === "string");
  if (runs.length === 0 || (row.records === 0 && row.spans.every((span) => !said(span)))) {
    const words = row.first_record === undefined ? "An entry without records: what it says is beside." : "No records.";
    content.replaceChildren(make("p", { class: "empty", text: words }));
    return [];
  }
  const text = make("p", { class: "text" });
  const made = runs.map((span, at) => make("span", { class: `s${at % COLOURS}` }, ...textOf(span, said(span))));
  made.forEach((run, at) => text.append(...(form === "ids" && at ? ["\n", run] : [run])));
  content.replaceChildren(text);
  if (!runs.some(said)) content.append(make("p", { class: "empty", text: "The tokenizer makes no text of these ids." }));
  return made;
}

/** A span's text, with the part of it that is looked for marked. */
function textOf(span, text) {
  if (!span.around) return [text];
  const [before, hit, after] = span.around;
  return [before, make("mark", { class: "hit", text: hit }), after];
}

function drawTable(row, content) {
  const shown = make("table");
  const begin = row.begin ?? 0;
  const lines = row.table.rows.map((values, at) => [precise(begin + at), ...values]);
  table(shown, ["record", ...row.table.names], lines, [0, ...row.table.names.map((_, at) => at + 1)]);
  const first = row.kind === "window" ? row.first_record : begin;
  const marked = row.mark ? [...shown.tBodies[0].rows].slice(Math.max(row.mark.begin - first, 0), Math.max(row.mark.end - first, 0)) : [];
  for (const line of marked) line.classList.add("hit");
  content.replaceChildren(shown);
  if (lines.length < row.table.records) {
    const words = `The first ${precise(lines.length)} of ${precise(row.table.records)} records.`;
    content.append(make("p", { class: "empty", text: words }));
  }
}

function drawGenes(genes, content) {
  const most = Math.max(...genes.rows.map((each) => each.values[0] ?? 0), 1e-30);
  const shown = make("table");
  const lines = genes.rows.map((each) => {
    const bar = make("i");
    bar.style.width = `${Math.max((each.values[0] ?? 0) / most, 0) * 100}%`;
    return [each.name ?? "–", precise(each.gene), ...each.values.map((value) => precise(value)),
      make("td", { class: "count" }, bar)];
  });
  table(shown, ["gene", "number", ...genes.fields, ""], lines, [1, ...genes.fields.map((_, at) => at + 2)]);
  content.replaceChildren(shown);
  if (lines.length < genes.count) {
    const words = `The ${precise(lines.length)} largest of ${precise(genes.count)} genes.`;
    content.append(make("p", { class: "empty", text: words }));
  }
}

function card(row, span, at, open) {
  const known = span.document !== undefined;
  const noun = row.genes ? "Cell" : "Document";
  const title = make("h3", {}, make("span", { text: known ? `${noun} ${precise(span.document)}` : "Span" }));
  if (known && row.kind === "window") {
    const button = make("button", { type: "button", text: "open" });
    button.addEventListener("click", (event) => {
      event.stopPropagation();
      open(span);
    });
    title.append(button);
  }
  const parts = [title, make("p", { class: "at", text: placeOf(row, span) })];
  if (span.problem) parts.push(make("p", { class: "bad", text: span.problem }));
  parts.push(...pairs("columns", span.columns), ...metadataOf(span));
  return make("li", { class: `s${at % COLOURS}` }, ...parts);
}

function placeOf(row, span) {
  const entry = `shard ${precise(span.shard)}, entry ${precise(span.entry)}`;
  if (row.kind === "document") return entry;
  const from = span.begins ? "from its beginning" :
    span.offset === null ? "" : `from its record ${precise(span.offset)}`;
  const to = span.ends ? "to its end" : "";
  return [`${precise(span.start)} to ${precise(span.stop)}`, [from, to].filter(Boolean).join(" "), entry]
    .filter(Boolean).join(" · ");
}

function metadataOf(span) {
  if (span.metadata === null) return [];
  if (Array.isArray(span.metadata)) return pairs("metadata", span.metadata);
  return [make("p", { class: "pairs-of", text: "metadata" }), make("p", { class: "plain", text: span.metadata })];
}

function pairs(what, found) {
  if (!found.length) return [];
  const list = make("dl", { class: "pairs" });
  for (const [name, value] of found) list.append(make("dt", { text: visible(name) }), make("dd", { text: value }));
  return [make("p", { class: "pairs-of", text: what }), list];
}
