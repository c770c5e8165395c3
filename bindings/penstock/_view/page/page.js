// The page: which of its parts is shown, and what belongs to all of them.
import { resizeCharts, showCharts } from "./about.js";
import { ask, go, onChange, state, wanted } from "./address.js";
import { resizeCompare, showCompare } from "./compare.js";
import { documentKey, openRandom, showDocuments } from "./documents.js";
import { at, bytes, complain, copy, counted, escaped, make, table, whole } from "./dom.js";
import { showSearch, stop } from "./find.js";
import { readKey, showRow } from "./read.js";
import { showStep } from "./step.js";

const TABS = ["table", "read", "search", "step", "charts", "compare"];
let names = []; // of the datasets
let mixture = { path: null };
let facts = null; // of the dataset that is shown
let asked = 0;

/** The part of the page that the address says; what is not there is another one. */
function tab() {
  const found = state().get("tab");
  if (TABS.includes(found) && (found !== "table" || facts.documents)) return found;
  if (["kind", "index", "window", "record", "position"].some((each) => state().has(each))) return "read";
  return facts.documents ? "table" : "read";
}

async function show() {
  const dataset = wanted("dataset", "0");
  const mine = ++asked;
  at("problem").hidden = at("tip").hidden = true;
  try {
    if (facts === null || facts.number !== dataset) {
      const found = await ask("facts", { dataset });
      if (mine !== asked) return;
      facts = { ...found, number: dataset };
    }
    drawHead();
    const shown = tab();
    drawTab(shown);
    if (shown !== "search") stop();
    if (shown === "table") await showDocuments(facts);
    if (shown === "read") await showRow(facts);
    if (shown === "search") showSearch(facts);
    if (shown === "step") await showStep(facts, mixture);
    if (shown === "charts") await showCharts(facts, names);
    if (shown === "compare") await showCompare(facts, names);
  } catch (error) {
    if (mine === asked) complain(error);
  }
}

function drawHead() {
  at("dataset").value = facts.number;
  at("path").textContent = escaped(facts.path);
  at("path").hidden = names.length > 1;
  document.title = `${facts.path} · penstock view`;
  const documents = facts.cells ? "cell" : facts.mode === "opaque" ? "entry" : "document";
  const parts = [facts.spans ? counted(facts.spans, documents) : "", facts.records ? counted(facts.records, "record") : "",
    counted(facts.shards, "shard"), `${bytes(facts.size_bytes).join(" ")} of data`,
    facts.disk_bytes ? `${bytes(facts.disk_bytes).join(" ")} on disk` : ""];
  at("summary").textContent = parts.filter(Boolean).join(" · ");
  const notes = [facts.tokenizer_note, ...facts.notices].filter(Boolean);
  at("note").hidden = notes.length === 0;
  at("note").textContent = escaped(notes.join("\n"));
  const [first] = at("tabs").children;
  first.textContent = facts.cells ? "Cells" : facts.mode === "opaque" ? "Entries" : "Documents";
  first.disabled = !facts.documents;
  first.title = facts.no_documents || "Key 1";
  at("where").placeholder = example();
  at("random").textContent = `Random ${documents}`;
  at("shares-of").options[0].textContent = facts.cells ? "cells" : facts.mode === "opaque" ? "entries" : "documents";
}

/** A condition as one may write it for this dataset. */
function example() {
  const words = facts.column_list.filter((each) => each.sorts).slice(0, 2).map((each) => {
    const name = /^[A-Za-z_]\w*$/.test(each.name) ? each.name : `"${each.name}"`;
    const value = each.example === null ? "a" : each.example.replaceAll("'", "''");
    return each.category ? `${name} = '${value}'` : each.kind === "b" ? name : `${name} > 1`;
  });
  return words.length ? words.join(" and ") : "no columns: penstock annotate DATA --from-metadata url,lang,score adds them";
}

function drawTab(shown) {
  document.body.dataset.tab = shown;
  for (const button of at("tabs").children) {
    if (button.dataset.tab === shown) button.setAttribute("aria-current", "page");
    else button.removeAttribute("aria-current");
  }
  for (const part of document.querySelectorAll("[data-page]")) part.hidden = part.dataset.page !== shown;
  at("filter").hidden = !["table", "search", "charts"].includes(shown) || !facts.documents;
  at("where").value = wanted("where");
  at("where").disabled = facts.column_list.length === 0;
  at("shortest").value = wanted("shortest");
  at("longest").value = wanted("longest");
  at("shortest").parentElement.hidden = at("longest").parentElement.hidden = Boolean(facts.no_lengths);
  at("clear").disabled = !["where", "shortest", "longest"].some((each) => wanted(each));
}

// ---- what the user does

at("filter").addEventListener("submit", (event) => {
  event.preventDefault();
  go({ where: at("where").value.trim(), shortest: whole(at("shortest")), longest: whole(at("longest")), at: "" });
});
at("clear").addEventListener("click", () => go({ where: "", shortest: "", longest: "", at: "" }));
at("dataset").addEventListener("change", () => {
  // Filters and places are of the dataset before.
  location.hash = `#${new URLSearchParams({ dataset: at("dataset").value, ...(state().has("tab") ? { tab: tab() } : {}) })}`;
});
at("tabs").addEventListener("click", (event) => {
  if (event.target.dataset.tab) go({ tab: event.target.dataset.tab });
});
const copyLink = () => copy(at("copy"), location.href, "Copy it from the address bar");
at("copy").addEventListener("click", copyLink);
at("help").addEventListener("click", help);


const KEYS = [
  ["1 … 6", "documents, read, search, steps, charts, compare"], ["/", "type a condition, or what to search"],
  ["r", "a random document that the filter chooses"], ["c", "copy a link to what is shown"], ["?", "these keys"],
  ["↑ ↓ · j k", "in the table: the row before, the next"], ["Page ↑ ↓, Home, End", "in the table: further"],
  ["Enter", "in the table: open the document"], ["← →", "reading: the window or document before, the next; in the table's order where it is filtered or sorted"],
];

function help() {
  table(at("keys-list"), [], KEYS.map(([key, what]) => [make("td", {}, make("kbd", { text: key })), what]));
  at("keys").showModal();
}

/** The field that "/" goes to: the first in which one can type. */
function field(shown) {
  const places = shown === "search" ? ["look-text"] : ["where", "shortest", "number", "step-number", "both"];
  return places.map(at).find((each) => !each.disabled && each.checkVisibility());
}

document.addEventListener("keydown", (event) => {
  if (event.target.closest("input, select, dialog") || event.ctrlKey || event.metaKey || event.altKey || !facts) return;
  const shown = document.body.dataset.tab;
  const place = Number(event.key) - 1;
  if (event.key === "Enter" && event.target.closest("button, [role=button]")) return;
  let mine = true;
  if (TABS[place] && !at("tabs").children[place].disabled) go({ tab: TABS[place] });
  else if (event.key === "?") help();
  else if (event.key === "c") copyLink();
  else if (event.key === "r" && facts.documents) openRandom().catch(complain);
  else if (event.key === "/") field(shown)?.focus();
  else mine = shown === "table" ? documentKey(event.key) : shown === "read" && readKey(event.key);
  if (mine) event.preventDefault();
});
let width = innerWidth;
addEventListener("resize", () => {
  if (width === innerWidth) return;
  width = innerWidth;
  resizeCharts();
  resizeCompare();
});

async function start() {
  try {
    const dataset = wanted("dataset", "0");
    const first = ask("facts", { dataset }).catch(() => null); // what is wrong with it is told by `show`
    let found;
    [names, mixture, found] = await Promise.all([ask("datasets"), ask("mixture"), first]);
    if (found) facts = { ...found, number: dataset };
    at("choose").hidden = names.length < 2;
    at("dataset").replaceChildren(...names.map((name, value) => make("option", { text: name, value })));
  } catch (error) {
    complain(error);
    return;
  }
  onChange(show);
  await show();
}
start();
