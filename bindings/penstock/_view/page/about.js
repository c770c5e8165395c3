// Charts of a dataset, its duplicates, shards, and what it says of itself.
import { ask, filter, go, listen, note, wanted } from "./address.js";
import { drawLengths, drawMost, drawRanks, drawShares } from "./charts.js";
import { at, bytes, complain, copy, counted, escaped, make, number, percent, quoted, table } from "./dom.js";
import { openDocument } from "./documents.js";

let facts = null;
let drawn = ""; // the dataset that the page is of
let charted = ""; // the question that the charts answer
let shared = ""; // the question that the shares answer
let redrawShares = null;
let stopper = null; // of the search for duplicates
let compared = ""; // the question that the duplicates answer

/** Draws what of the charts' page the address asks for. */
export function showCharts(found, names) {
  facts = found;
  if (drawn !== facts.number) {
    drawn = facts.number;
    drawFacts();
    charted = compared = "";
    stopTwins();
    at("twins").replaceChildren();
    at("twins-bar").hidden = at("twins-out").hidden = true;
    at("twins-said").textContent = facts.no_twins || "Documents with the same ids in the same order.";
    at("twins-go").disabled = Boolean(facts.no_twins);
    shared = "";
  }
  drawCharts();
  if (wanted("twins") && !facts.no_twins) lookForTwins();
  return showShares(names);
}

// ---- shares

async function showShares(names) {
  const columns = facts.column_list.filter((each) => each.sorts).map((each) => each.name);
  const choices = [...(names.length > 1 ? [["", "dataset"]] : []), ...columns.map((name) => [name, `column ${name}`])];
  at("shares-card").hidden = choices.length === 0;
  if (!choices.length) return;
  const by = wanted("by", choices[0][0]);
  at("shares-by").replaceChildren(...choices.map(([value, text]) => make("option", { value, text })));
  at("shares-by").value = by;
  at("shares-of").value = wanted("of", "documents");
  at("shares-of").disabled = Boolean(facts.no_lengths);
  const query = by ? { ...filter(false), by } : {};
  const now = JSON.stringify([query, wanted("of"), is_filtered()]);
  if (now === shared) return;
  const found = await ask("shares", query);
  shared = now;
  const of = wanted("of", "documents");
  const value = (bar) => bar[of] ?? 0;
  const total = found.bars.reduce((sum, bar) => sum + value(bar), 0);
  const open = (bar) => {
    if (bar.dataset !== undefined) return go({ tab: "table", dataset: bar.dataset, where: "", at: "" });
    const both = wanted("where") ? `(${wanted("where")}) and ${bar.where}` : bar.where;
    return go({ tab: "table", where: both, at: "" });
  };
  redrawShares = () => drawShares(at("shares"), found.bars, value, total, open);
  if (found.bars.length) redrawShares();
  else at("shares").replaceChildren(make("p", { text: "There is nothing to draw." }));
  const rest = found.rest ? ` · ${counted(found.rest, "value")} more` : "";
  at("shares-said").textContent = `${number(total)} ${of}${is_filtered() && by ? " that the filter chooses" : ""}${by ? "" : unfiltered()}${rest}`;
}

at("shares-by").addEventListener("change", () => go({ by: at("shares-by").value }));
at("shares-of").addEventListener("change", () => go({ of: at("shares-of").value === "documents" ? "" : "records" }));

// ---- the dataset

function drawFacts() {
  const found = [["records", number(facts.records)],
    [facts.cells ? "cells" : facts.mode === "opaque" ? "entries" : "documents", number(facts.spans)],
    ["shards", number(facts.shards)], ["data", ...bytes(facts.size_bytes)], ...(facts.disk_bytes ? [["on disk", ...bytes(facts.disk_bytes)]] : []),
    ["bytes a record", number(facts.record_bytes)],
    ["kind", facts.kind, facts.layout ? `${facts.mode}, ${facts.layout}` : facts.mode]];
  if (facts.features !== undefined) found.splice(2, 0, ["features", number(facts.features)]);
  if (!facts.spans) found.splice(1, 1);
  at("facts").replaceChildren(...found.map(([name, value, small]) => {
    const shown = make("dd", { text: value });
    if (small) shown.append(" ", make("small", { text: small }));
    return make("div", {}, make("dt", { text: name }), shown);
  }));
  const size_of = (count) => bytes(count).join(" ");
  table(at("shards"), ["name", "records", facts.cells ? "cells" : "documents", "data"], facts.shard_list.map((each) =>
    [each.name, number(each.records), number(each.documents), size_of(each.bytes)]), [1, 2, 3]);
  const listed = facts.shard_list.length;
  at("shards-of").textContent = listed < facts.shards ? `The first ${number(listed)} of ${number(facts.shards)}` : "";
  const list = (values) => Object.entries(values ?? {}).map(([name, value]) => `${name}: ${value}`).join("\n");
  const said = [["fields", list(facts.fields)], ["columns", list(facts.columns)], ["codec", facts.codec],
    ["tokenizer", list(facts.tokenizer)], ["fingerprint", facts.fingerprint]];
  table(at("more"), [], said.filter(([, value]) => value).map(([name, value]) =>
    [name, make("td", { class: "mono text", text: value })]));
}

const openLengths = (bin) => go({ tab: "table", shortest: bin.from, longest: bin.to - 1, at: "" });

const charts = {
  lengths: { api: "lengths", draw: (into, found) => drawLengths(into, found, facts.no_documents ? null : openLengths),
    of: lengthsOf, empty: (found) => found.bins.length === 0 },
  tokens: { api: "tokens", draw: drawMost, of: tokensOf, empty: (found) => found.most.length === 0 },
  ranks: { api: "tokens", draw: drawRanks, of: () => `How often the n-th most frequent one occurs${unfiltered()}`, empty: (found) => found.distinct < 3 },
};

function drawCharts() {
  at("lengths-title").textContent = facts.cells ? "Genes of a cell" : "Document lengths";
  at("tokens-title").textContent = facts.cells ? "Genes in most cells" : "Most frequent tokens";
  const now = JSON.stringify(filter(false));
  if (now === charted) return;
  const before = charted && JSON.parse(charted).dataset;
  charted = now;
  const answers = {};
  for (const [name, chart] of Object.entries(charts)) {
    if (chart.api === "tokens" && before === facts.number && chart.found) {
      at(`${name}-of`).textContent = chart.of(chart.found); // which the filter is not applied to
      continue;
    }
    const refusal = chart.api === "lengths" ? facts.no_lengths : facts.no_tokens;
    answers[chart.api] ??= refusal ? Promise.reject(new Error(refusal)) : ask(chart.api, chart.api === "lengths" ? filter(false) : { dataset: facts.number });
    drawChart(name, chart, answers[chart.api], now);
  }
}

async function drawChart(name, chart, answer, asked) {
  const into = at(name);
  into.replaceChildren(make("p", { class: "wait", text: "reading…" }));
  at(`${name}-of`).textContent = "";
  chart.found = null;
  try {
    const found = await answer;
    if (charted !== asked) return;
    if (chart.empty(found)) {
      into.replaceChildren(make("p", { text: "There is nothing to draw." }));
      return;
    }
    chart.found = found;
    at(`${name}-of`).textContent = chart.of(found);
    chart.draw(into, found);
  } catch (error) {
    if (charted === asked) into.replaceChildren(make("p", { text: error.message }));
  }
}

/** Draws the charts anew at the width that they have now. */
export function resizeCharts() {
  for (const [name, chart] of Object.entries(charts)) if (chart.found) chart.draw(at(name), chart.found);
  redrawShares?.();
}

const is_filtered = () => ["where", "shortest", "longest"].some((name) => wanted(name));

/** Said of a chart that the filter is not applied to. */
const unfiltered = () => (is_filtered() ? ` · of all ${facts.cells ? "cells" : "documents"}: the filter is not applied` : "");

function lengthsOf(found) {
  const what = facts.cells ? "cells" : "documents";
  const of = found.sampled < found.documents ?
    `A sample: ${number(found.sampled)} of ${number(found.documents)} ${what}, in runs spread evenly. ` :
    is_filtered() ? `The ${number(found.documents)} ${what} that the filter chooses. ` : `All ${number(found.documents)} ${what}. `;
  return `${of}Shortest ${number(found.shortest)}, median ${number(found.median)}, mean ${number(found.mean)}, ` +
    `longest ${number(found.longest)} records. A bar opens its documents`;
}

function tokensOf(found) {
  const what = found.cells === undefined ? "records" : "cells";
  const sampled = found.cells ?? found.records;
  const of = sampled < found.of ? `A sample: ${number(sampled)} of ${number(found.of)} ${what}, spread evenly. ` :
    `All ${number(sampled)} ${what}. `;
  const known = found.known ? ` of ${number(found.known)}` : "";
  return `${of}${number(found.distinct)}${known} different ${facts.cells ? "genes" : "ids"} occur${unfiltered()}`;
}

// ---- duplicates

function stopTwins() {
  stopper?.abort();
  stopper = null;
  at("twins-stop").disabled = true;
}

async function lookForTwins() {
  const now = JSON.stringify(filter(false));
  if (now === compared) return;
  stopTwins();
  compared = now;
  const mine = new AbortController();
  stopper = mine;
  at("twins-stop").disabled = at("twins-bar").hidden = false;
  at("twins-bar").value = 0;
  at("twins").replaceChildren();
  at("twins-out").hidden = true;
  at("twins-said").textContent = "comparing…";
  try {
    await listen("duplicates", filter(false), mine.signal, (line) => {
      if (stopper === mine) drawTwins(line);
    });
  } catch (error) {
    at("twins-said").textContent = error.name === "AbortError" ? "stopped" : "";
    if (error.name !== "AbortError") complain(error);
  }
  if (stopper === mine) stopTwins();
}

function drawTwins(line) {
  if (line.progress) {
    at("twins-bar").value = line.progress.done / line.progress.of;
    at("twins-said").textContent = `${number(line.progress.done)} of ${counted(line.progress.of, "document")} read`;
    return;
  }
  at("twins-bar").value = 1;
  const share = line.documents ? ` (${percent(line.extra, line.documents)} of ${number(line.documents)})` : "";
  const empty = line.empty ? ` · ${counted(line.empty, "document")} without records` : "";
  const few = line.groups.length < line.count;
  const listed = few ? ` · below, the ${number(line.groups.length)} largest groups of ${number(line.count)}` : "";
  at("twins-said").textContent = line.count === 0 ? `No two of ${counted(line.documents, "document")} are equal${empty}` :
    `${counted(line.extra, "document")} ${line.extra === 1 ? "repeats" : "repeat"} another one${share}, in ${counted(line.count, "group")}${listed}${empty}`;
  table(at("twins"), ["times", "records", "documents"], line.groups.map((group) => {
    const cell = make("td", { class: "documents" });
    for (const each of group.documents) {
      const link = make("button", { type: "button", class: "link", text: number(each) });
      link.addEventListener("click", () => openDocument(each));
      cell.append(link, " ");
    }
    if (group.count > group.documents.length) cell.append(`and ${number(group.count - group.documents.length)} more`);
    return [number(group.count), number(group.length), cell];
  }), [0, 1]);
  drawTwinsOut(line.count > 0);
  at("twins").dataset.ready = String(line.count);
}

/** The commands that leave duplicates out. */
function drawTwinsOut(some) {
  at("twins-out").hidden = !some || facts.kind !== "penstock";
  if (at("twins-out").hidden) return;
  const data = quoted(facts.path);
  const where = wanted("where") ? ` --where ${quoted(wanted("where"))}` : "";
  const of = wanted("shortest") || wanted("longest") ? ", of documents of any number of records: that filter is not applied" : "";
  at("twins-how").textContent = `A dataset without them, but for the first of each group${of}`;
  const commands = `penstock query ${data} --duplicates${where} --out dups.npy\npenstock convert ${data} --without dups.npy --out NEW`;
  at("twins-commands").textContent = escaped(commands);
  at("twins-copy").onclick = (event) => copy(event.target, commands);
}

at("twins-go").addEventListener("click", () => {
  compared = ""; // the same again is compared again
  go({ twins: "1" });
});
at("twins-stop").addEventListener("click", () => {
  stopTwins();
  note({ twins: "" });
});
