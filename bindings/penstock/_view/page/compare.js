// Two datasets side by side: their sizes and lengths, and a document of each.
import { ask, go, wanted } from "./address.js";
import { drawTwoLengths } from "./charts.js";
import { at, bytes, make, number, table, whole } from "./dom.js";
import { drawTokens } from "./tokens.js";

const COLOURS = 6;
let asked = 0;
let drawn = null; // both histograms

/** Draws both datasets. */
export async function showCompare(facts, names) {
  const mine = ++asked;
  const other = wanted("other", facts.number === "0" && names.length > 1 ? "1" : "0");
  at("other").replaceChildren(...names.map((text, value) => make("option", { text, value })));
  at("other").value = other;
  const index = wanted("both", "0");
  at("both").value = index;
  const theirs = { ...await ask("facts", { dataset: other }), number: other };
  const sides = [facts, theirs];
  const match = drawMatch(facts, theirs);
  const rows = await Promise.all([rowOf(facts, index), match ? matched(facts, theirs, index, match) : rowOf(theirs, index)]);
  const lengths = await Promise.all(sides.map((each) => (each.no_lengths ? null : ask("lengths", { dataset: each.number }))));
  if (mine !== asked) return;
  at("both-before").disabled = index === "0";
  at("both-before").onclick = () => go({ both: Number(index) - 1 });
  at("both-after").onclick = () => go({ both: Number(index) + 1 });
  const form = drawForms(rows);
  const columns = sides.map((each, side) => column(side, rows[side], rows[1 - side], form));
  const chart = make("div", { class: "chart", id: "two-lengths" });
  const title = make("h2", { text: "Document lengths, as shares of documents" });
  at("two").replaceChildren(sizes(sides), make("section", { class: "card wide" }, title, chart), ...columns);
  drawn = lengths.every((each) => each && each.bins.length) ? lengths : null;
  if (drawn) drawTwoLengths(chart, ...drawn);
  else chart.append(make("p", { text: "There are no lengths to draw." }));
  at("two").dataset.ready = `${facts.number} ${other} ${index}`;
  at("two").dataset.shown = `${match} ${form}`;
}

/** Draws the chart anew at the width that it has now. */
export function resizeCompare() {
  if (drawn && at("two-lengths")) drawTwoLengths(at("two-lengths"), ...drawn);
}

async function rowOf(facts, index) {
  const kind = facts.documents ? "document" : "window";
  const window = String(Math.max(Math.min(256, facts.records), 1));
  try {
    return await ask("row", { dataset: facts.number, kind, index, window });
  } catch (error) {
    return { problem: error.message };
  }
}

/** Offers the columns that both datasets have, and gives the one that documents are matched by; "" for their numbers. */
function drawMatch(facts, theirs) {
  const kinds = new Map(theirs.column_list.filter((each) => each.sorts).map((each) => [each.name, each.category]));
  const names = facts.documents && theirs.documents ?
    facts.column_list.filter((each) => each.sorts && kinds.get(each.name) === each.category).map((each) => each.name) : [];
  const choices = [["", "number"], ...names.map((name) => [name, `column ${name}`])];
  at("match").replaceChildren(...choices.map(([value, text]) => make("option", { value, text })));
  at("match").value = names.includes(wanted("match")) ? wanted("match") : "";
  at("match").parentElement.hidden = names.length === 0;
  return at("match").value;
}

/** The document of the other dataset that has the same value of a column. */
async function matched(facts, theirs, index, column) {
  try {
    const found = await ask("match", { dataset: facts.number, other: theirs.number, document: index, column });
    if (found.document === null) return { problem: `No document has the ${column} ${found.value}.` };
    const more = found.count > 1 ? ` · the first of ${number(found.count)} with this ${column}` : "";
    return { ...await rowOf(theirs, String(found.document)), more };
  } catch (error) {
    return { problem: error.message };
  }
}

const HAS = {
  text: (span) => typeof span.text === "string", tokens: (span) => Boolean(span.pieces), ids: (span) => typeof span.ids === "string",
};
const has = (row, form) => Boolean(row.spans?.some(HAS[form]));

/** Offers the forms that one of the rows has, and gives the one that is chosen. */
function drawForms(rows) {
  const forms = Object.keys(HAS).filter((form) => rows.some((row) => has(row, form)));
  const chosen = forms.includes(wanted("form")) ? wanted("form") : forms[0];
  for (const button of at("both-forms").children) {
    button.hidden = !forms.includes(button.dataset.form);
    button.setAttribute("aria-pressed", button.dataset.form === chosen);
  }
  at("both-forms").hidden = forms.length < 2;
  return chosen;
}

function sizes(sides) {
  const into = make("table");
  const lines = [
    ["kind", (each) => `${each.kind}, ${each.mode}`], ["documents", (each) => number(each.spans)],
    ["records", (each) => number(each.records)],
    ["records a document", (each) => (each.spans && each.records ? number(each.records / each.spans) : "–")],
    ["data", (each) => bytes(each.size_bytes).join(" ")],
    ["on disk", (each) => (each.disk_bytes ? bytes(each.disk_bytes).join(" ") : "–")], ["shards", (each) => number(each.shards)],
    ["columns", (each) => Object.keys(each.columns).join(", ") || "–"],
    ["tokenizer", (each) => each.tokenizer?.name ?? "–"],
    ["fingerprint", (each) => each.fingerprint],
  ];
  const head = ["", ...sides.map((each, side) => `${side ? "B" : "A"} · ${each.path}`)];
  const rows = lines.map(([name, value]) => {
    const [one, other] = sides.map(value);
    return [make("td", { class: "soft", text: name }), ...[one, other].map((text) =>
      make("td", { text, class: one === other ? "same" : "differs" }))];
  });
  table(into, head, rows);
  return make("section", { class: "card wide" }, make("div", { class: "scroll tall" }, into));
}

function column(side, row, other, form) {
  const title = make("h2", { class: side ? "second" : "" , text: side ? "B" : "A" });
  const box = make("section", { class: "card" }, title);
  if (row.problem) {
    box.append(make("p", { class: "empty", text: row.problem }));
    return box;
  }
  const same = other.spans && JSON.stringify(row.spans.map((each) => each.ids)) === JSON.stringify(other.spans.map((each) => each.ids));
  title.textContent += ` · ${row.kind} ${number(row.index)} · ${number(row.records)} records`;
  if (row.more) title.append(make("small", { text: row.more }));
  if (same && row.records) title.append(make("small", { text: " equal records" }));
  const content = make("div", { class: "beside" });
  const spans = row.spans.filter((span) => typeof span.ids === "string" && span.ids !== "");
  if (spans.length) drawSpans(spans, has(row, form) ? form : "ids", content);
  const metadata = row.spans[0]?.metadata;
  if (Array.isArray(metadata)) {
    const list = make("dl", { class: "pairs" });
    for (const [name, value] of [...(row.spans[0].columns ?? []), ...metadata]) list.append(make("dt", { text: name }), make("dd", { text: value }));
    box.append(list);
  } else if (metadata) box.append(make("p", { class: "plain", text: metadata }));
  box.append(content);
  return box;
}

function drawSpans(spans, form, content) {
  if (form !== "text") return drawTokens(spans, form, content);
  const runs = spans.map((span, place) => make("span", { class: `s${place % COLOURS}`, text: span.text }));
  content.replaceChildren(make("p", { class: "text" }, ...runs));
}

at("match").addEventListener("change", () => go({ match: at("match").value }));
at("both-forms").addEventListener("click", (event) => {
  if (event.target.dataset.form) go({ form: event.target.dataset.form }, true);
});
at("beside").addEventListener("submit", (event) => {
  event.preventDefault();
  go({ other: at("other").value, both: whole(at("both")) });
});
at("other").addEventListener("change", () => go({ other: at("other").value }));
