// The page: what is looked at is in the address behind #, so that going back, reloading and bookmarks work.
import { drawLengths, drawMost, drawRanks } from "./charts.js";
import { drawRow, formsOf, make, table } from "./reader.js";

const at = (id) => document.getElementById(id);
const full = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const number = (value) => full.format(typeof value === "string" ? BigInt(value) : value);
let facts = null; // of the dataset that is shown
let row = null;
let asked = 0; // number of the latest request for a row: answers to earlier ones are dropped

// ---- what is looked at

function state() {
  return new URLSearchParams(location.hash.slice(1));
}

/** Goes to what is looked at now but for `changes`; undefined removes one. */
function go(changes, replace = false) {
  const next = state();
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined) next.delete(name);
    else next.set(name, value);
  }
  const hash = `#${next}`;
  if (hash === location.hash) return show();
  if (replace) history.replaceState(null, "", hash);
  else history.pushState(null, "", hash);
  return show();
}

const toIndex = (index) => go({ index, position: undefined, record: undefined, part: undefined });
const toPosition = (position) => go({ position, index: undefined, record: undefined, part: undefined });

async function ask(name, query = {}) {
  let answer;
  try {
    answer = await fetch(`api/${name}?${new URLSearchParams(query)}`);
  } catch {
    throw new Error("penstock view no longer answers: was it ended?");
  }
  const value = await answer.json();
  if (!answer.ok) throw new Error(value.error);
  return value;
}

function complain(error) {
  at("problem").textContent = error.message;
  at("problem").hidden = false;
}

// ---- a row

async function show() {
  const wanted = state();
  const dataset = wanted.get("dataset") ?? "0";
  const mine = ++asked;
  at("problem").hidden = true;
  try {
    if (facts === null || facts.number !== dataset) {
      const found = await ask("facts", { dataset });
      if (mine !== asked) return;
      facts = { ...found, number: dataset };
      row = null;
      drawFacts();
      drawCharts();
    }
    const kind = wanted.get("kind") ?? firstKind();
    if (kind === null) {
      drawNoRow(wanted);
      at("content").replaceChildren(make("p", { class: "empty", text: "There are no records and no documents." }));
      return;
    }
    const place = ["position", "record"].find((each) => wanted.has(each)) ?? "index";
    const query = { dataset, kind, window: windowSize(wanted), [place]: wanted.get(place) ?? "0" };
    const found = await ask("row", { ...query, seed: wanted.get("seed") ?? "0", part: wanted.get("part") ?? "0" });
    if (mine !== asked) return;
    row = found;
    draw(wanted);
  } catch (error) {
    if (mine !== asked) return;
    complain(error);
    if (row === null && facts !== null) drawNoRow(wanted);
  }
}

/** Nothing to see yet, but fields to ask again with. */
function drawNoRow(wanted) {
  at("row-title").textContent = at("row-place").textContent = "";
  at("content").replaceChildren();
  at("spans").replaceChildren();
  at("forms").hidden = at("parts").hidden = true;
  const kind = wanted.get("kind") ?? firstKind();
  for (const button of at("kinds").children) button.setAttribute("aria-pressed", button.dataset.kind === kind);
  at("of-window").hidden = at("by").hidden = kind !== "window";
  at("window").value = windowSize(wanted);
}

function firstKind() {
  if (facts.documents && (facts.cells || facts.mode === "opaque")) return "document";
  return facts.records ? "window" : facts.documents ? "document" : null;
}

function windowSize(wanted) {
  return wanted.get("window") ?? String(Math.max(Math.min(256, facts.records), 1));
}

function draw(wanted) {
  const forms = formsOf(row);
  const form = forms.includes(wanted.get("form")) ? wanted.get("form") : forms[0];
  for (const button of at("forms").children) {
    button.hidden = !forms.includes(button.dataset.form);
    button.setAttribute("aria-pressed", button.dataset.form === form);
  }
  at("forms").hidden = forms.length < 2;
  for (const button of at("kinds").children) button.setAttribute("aria-pressed", button.dataset.kind === row.kind);
  const noun = row.kind === "window" ? "Window" : facts.cells ? "Cell" : "Document";
  at("row-title").textContent = `${noun} ${number(row.index)}`;
  at("row-place").textContent = placeOf();
  at("of-window").hidden = row.kind !== "window";
  at("window").value = row.window;
  at("number").setAttribute("aria-label", `${noun} number`);
  at("number").value = row.index;
  at("by").value = "index";
  at("by").hidden = row.kind !== "window";
  at("seed").value = row.seed;
  at("position").value = row.position;
  at("previous").disabled = row.index === 0;
  at("next").disabled = row.index + 1 >= row.count;
  at("earlier").disabled = row.position === "0";
  drawParts();
  drawRow(row, form, at("content"), at("spans"), (document) =>
    go({ kind: "document", index: document, position: undefined, record: undefined, part: undefined }));
  at("reader").dataset.ready = `${row.kind} ${row.index}`;
}

function placeOf() {
  const words = [`of ${number(row.count)}`];
  if (row.genes) {
    const sums = row.genes.fields.map((name, each) => `${name} ${number(row.genes.sums[each])} in all`);
    words.push(`${number(row.genes.count)} genes`, ...sums);
  } else if (row.first_record !== undefined) {
    words.push(`${number(row.records)} records from ${number(row.first_record)} on`);
  }
  if (row.kind === "window") words.push(`${number(row.spans.filter((span) => span.shard !== undefined).length)} spans`);
  const epoch = row.epoch === "0" ? "" : ` (epoch ${number(row.epoch)})`;
  words.push(`position ${number(row.position)}${epoch} in the order of seed ${row.seed}`);
  return words.join(" · ");
}

function drawParts() {
  const parts = row.kind === "document" ? Math.ceil(row.records / facts.part) : 1;
  at("parts").hidden = parts <= 1 || Boolean(row.genes);
  if (at("parts").hidden) return;
  const part = row.begin / facts.part;
  const end = Math.min(row.begin + facts.part, row.records);
  at("part").textContent = `part ${number(part + 1)} of ${number(parts)}: records ${number(row.begin)} to ${number(end)}`;
  at("part-before").disabled = part === 0;
  at("part-after").disabled = part + 1 >= parts;
  at("part-before").onclick = () => go({ part: part - 1 });
  at("part-after").onclick = () => go({ part: part + 1 });
}

// ---- the dataset

function bytes(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  while (count >= 1024 && unit + 1 < units.length) {
    count /= 1024;
    unit += 1;
  }
  return [unit === 0 ? String(count) : full.format(count), units[unit]];
}

function drawFacts() {
  at("path").textContent = facts.path;
  document.title = `${facts.path} · penstock view`;
  const [size, unit] = bytes(facts.size_bytes);
  const found = [["records", number(facts.records)],
    [facts.cells ? "cells" : facts.mode === "opaque" ? "entries" : "documents", number(facts.spans)],
    ["shards", number(facts.shards)], ["size", size, unit], ["bytes a record", number(facts.record_bytes)],
    ["kind", facts.kind, facts.layout ? `${facts.mode}, ${facts.layout}` : facts.mode]];
  if (facts.features !== undefined) found.splice(2, 0, ["features", number(facts.features)]);
  if (!facts.spans) found.splice(1, 1);
  at("facts").replaceChildren(...found.map(([name, value, small]) => {
    const shown = make("dd", { text: value });
    if (small) shown.append(" ", make("small", { text: small }));
    return make("div", {}, make("dt", { text: name }), shown);
  }));
  const notes = [facts.tokenizer_note, ...facts.notices].filter(Boolean);
  at("note").hidden = notes.length === 0;
  at("note").textContent = notes.join("\n");
  const [windows, documents] = at("kinds").children;
  windows.disabled = facts.records === 0 || facts.mode === "opaque";
  documents.disabled = !facts.documents;
  documents.textContent = facts.cells ? "Cells" : "Documents";
  documents.title = facts.no_documents;
  const size_of = (count) => bytes(count).join(" ");
  table(at("shards"), ["name", "records", facts.cells ? "cells" : "documents", "size"], facts.shard_list.map((each) =>
    [each.name, number(each.records), number(each.documents), size_of(each.bytes)]), [1, 2, 3]);
  const listed = facts.shard_list.length;
  at("shards-of").textContent = listed < facts.shards ? `The first ${number(listed)} of ${number(facts.shards)}` : "";
  const list = (values) => Object.entries(values ?? {}).map(([name, value]) => `${name}: ${value}`).join("\n");
  const said = [["fields", list(facts.fields)], ["columns", list(facts.columns)], ["codec", facts.codec],
    ["tokenizer", list(facts.tokenizer)], ["fingerprint", facts.fingerprint]];
  table(at("more"), [], said.filter(([, value]) => value).map(([name, value]) =>
    [name, make("td", { class: "mono text", text: value })]));
}

const charts = {
  lengths: { api: "lengths", draw: drawLengths, of: lengthsOf, empty: (found) => found.bins.length === 0 },
  tokens: { api: "tokens", draw: drawMost, of: tokensOf, empty: (found) => found.most.length === 0 },
  ranks: { api: "tokens", draw: drawRanks, of: () => "How often the n-th most frequent one occurs", empty: (found) => found.distinct < 3 },
};

function drawCharts() {
  at("lengths-title").textContent = facts.cells ? "Genes of a cell" : "Document lengths";
  at("tokens-title").textContent = facts.cells ? "Genes in most cells" : "Most frequent tokens";
  const answers = {};
  for (const [name, chart] of Object.entries(charts)) {
    const refusal = chart.api === "lengths" ? facts.no_lengths : facts.no_tokens;
    answers[chart.api] ??= refusal ? Promise.reject(new Error(refusal)) : ask(chart.api, { dataset: facts.number });
    drawChart(name, chart, answers[chart.api], facts.number);
  }
}

async function drawChart(name, chart, answer, dataset) {
  const into = at(name);
  into.replaceChildren(make("p", { text: "reading…" }));
  at(`${name}-of`).textContent = "";
  chart.found = null;
  try {
    const found = await answer;
    if (facts.number !== dataset) return;
    if (chart.empty(found)) {
      into.replaceChildren(make("p", { text: "There is nothing to draw." }));
      return;
    }
    chart.found = found;
    at(`${name}-of`).textContent = chart.of(found);
    chart.draw(into, found);
  } catch (error) {
    if (facts.number === dataset) into.replaceChildren(make("p", { text: error.message }));
  }
}

function lengthsOf(found) {
  const what = facts.cells ? "cells" : "documents";
  const of = found.sampled < found.documents ?
    `A sample: ${number(found.sampled)} of ${number(found.documents)} ${what}, in runs spread evenly. ` :
    `All ${number(found.documents)} ${what}. `;
  return `${of}Shortest ${number(found.shortest)}, median ${number(found.median)}, mean ${number(found.mean)}, ` +
    `longest ${number(found.longest)} records`;
}

function tokensOf(found) {
  const what = found.cells === undefined ? "records" : "cells";
  const sampled = found.cells ?? found.records;
  const of = sampled < found.of ? `A sample: ${number(sampled)} of ${number(found.of)} ${what}, spread evenly. ` :
    `All ${number(sampled)} ${what}. `;
  const known = found.known ? ` of ${number(found.known)}` : "";
  return `${of}${number(found.distinct)}${known} different ${facts.cells ? "genes" : "ids"} occur`;
}

// ---- what the user does

const whole = (input) => input.value.trim().replaceAll(/[,_\s]/g, "");
const step = (by) => row && row.index + by >= 0 && row.index + by < row.count && toIndex(row.index + by);
const move = (by) => row && BigInt(row.position) + by >= 0n && toPosition(String(BigInt(row.position) + by));

at("previous").addEventListener("click", () => step(-1));
at("next").addEventListener("click", () => step(1));
at("earlier").addEventListener("click", () => move(-1n));
at("later").addEventListener("click", () => move(1n));
at("search").addEventListener("submit", (event) => {
  event.preventDefault();
  const wanted = { index: undefined, record: undefined, position: undefined, part: undefined, window: whole(at("window")) };
  const by = at("by").hidden ? "index" : at("by").value;
  // Windows of another size have other numbers: stay at the record that is looked at.
  const is_resized = row && row.kind === "window" && wanted.window !== String(row.window);
  if (is_resized && by === "index" && whole(at("number")) === String(row.index)) wanted.record = row.first_record;
  else wanted[by] = whole(at("number"));
  go(wanted);
});
at("order").addEventListener("submit", (event) => {
  event.preventDefault();
  const seed = whole(at("seed"));
  // Another seed alone: stay where one is, and see its place in that order.
  if (row && seed !== row.seed && whole(at("position")) === row.position) {
    go({ seed, index: row.index, position: undefined, record: undefined });
  } else {
    go({ seed, position: whole(at("position")), index: undefined, record: undefined, part: undefined });
  }
});
at("kinds").addEventListener("click", (event) => {
  const { kind } = event.target.dataset;
  if (!kind || (row && row.kind === kind)) return;
  // From a window to its first document and back: to what is looked at already.
  const place = { index: "0", record: undefined, position: undefined, part: undefined };
  if (row && kind === "document" && row.spans[0]?.document !== undefined) place.index = row.spans[0].document;
  if (row && kind === "window" && row.first_record < Math.floor(facts.records / row.window) * row.window) {
    Object.assign(place, { index: undefined, record: row.first_record });
  }
  go({ kind, ...place });
});
at("forms").addEventListener("click", (event) => {
  if (event.target.dataset.form) go({ form: event.target.dataset.form }, true);
});
at("dataset").addEventListener("change", () => {
  location.hash = `#${new URLSearchParams({ dataset: at("dataset").value })}`;
});
document.addEventListener("keydown", (event) => {
  if (event.target.closest("input, select") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "ArrowLeft") step(-1);
  if (event.key === "ArrowRight") step(1);
});
addEventListener("popstate", show);
let width = innerWidth;
addEventListener("resize", () => {
  if (width === innerWidth) return;
  width = innerWidth;
  for (const [name, chart] of Object.entries(charts)) if (chart.found) chart.draw(at(name), chart.found);
});

async function start() {
  try {
    const names = await ask("datasets");
    at("choose").hidden = names.length < 2;
    at("dataset").replaceChildren(...names.map((name, value) => make("option", { text: name, value })));
    at("dataset").value = state().get("dataset") ?? "0";
  } catch (error) {
    complain(error);
    return;
  }
  await show();
}
start();
