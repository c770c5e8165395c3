// The table of documents: any number of rows, of which those in sight are asked for. The scroll bar is of a spacer that is
// at most TALLEST pixels high, since browsers have a limit; beyond it a pixel of the bar stands for several rows.
import { ask, documentPlace, filter, go, note, wanted } from "./address.js";
import { at, complain, counted, make, number } from "./dom.js";

const ROW = 31; // pixels
const PAGE = 50; // rows of one question
const TALLEST = 8_000_000;
const MOST_PAGES = 40; // that are kept
const MOST_KEYS = 8; // of metadata that have a column
const WIDEST = 220; // pixels of a text of a column

let facts = null;
let query = ""; // which the pages are of
let pages = new Map(); // from number of page to rows, or to null while they are on their way
let count = 0;
let top = 0; // the first row in sight
let chosen = 0; // the row with the frame
let keys = []; // of metadata, with a column each
let lastScroll = 0;
let timer = 0;
let marked = false; // that rows were drawn
let mine = 0; // number of the latest question of a new table

const grid = at("grid");
const head = at("rows").tHead;
const body = at("rows").tBodies[0];
const room = () => Math.max(Math.floor((grid.clientHeight - head.offsetHeight - 2) / ROW), 1);
const last = () => Math.max(count - room(), 0);

/** Draws the table that the address says. */
export async function showDocuments(found) {
  facts = found;
  const now = JSON.stringify(filter());
  if (now === query && pages.size) return draw();
  const asked = ++mine;
  body.classList.add("old");
  const begin = Math.max(Number(wanted("at", "0")) || 0, 0);
  const page = Math.floor(begin / PAGE);
  const answer = await ask("table", { ...filter(), first: page * PAGE, count: PAGE });
  if (asked !== mine) return;
  query = now;
  pages = new Map([[page, answer.rows]]);
  count = answer.count;
  keys = keysOf(answer.rows);
  chosen = begin;
  body.classList.remove("old");
  at("found").textContent = count === answer.documents ? counted(count, noun()) :
    `${number(count)} of ${counted(answer.documents, noun())}`;
  at("random").disabled = count === 0;
  drawHead();
  at("spacer").style.height = `${Math.min(count * ROW + head.offsetHeight + 4, TALLEST)}px`;
  goTo(begin);
  fit();
}

const noun = () => (facts.cells ? "cell" : facts.mode === "opaque" ? "entry" : "document");

/** Names of metadata that have a column: of the first rows, in their order. */
function keysOf(rows) {
  const found = new Set();
  for (const row of rows) {
    if (Array.isArray(row.metadata)) for (const [name] of row.metadata) found.add(name);
    else if (row.metadata !== null) found.add("");
  }
  return [...found].slice(0, MOST_KEYS);
}

function drawHead() {
  const sort = wanted("sort", "document");
  const down = wanted("descending") === "1";
  const cell = (text, by, attributes) => {
    const made = make("th", { scope: "col", ...attributes });
    if (by === null) {
      made.append(make("span", { text }));
      return made;
    }
    const isMine = sort === by;
    made.setAttribute("aria-sort", isMine ? (down ? "descending" : "ascending") : "none");
    const button = make("button", { type: "button", text: `${text}${isMine ? (down ? " ↓" : " ↑") : ""}` });
    button.addEventListener("click", () => sortBy(by, isMine, down));
    made.append(button);
    return made;
  };
  const cells = [cell(noun(), "document", { class: "number" })];
  if (facts.mode !== "opaque") cells.push(cell(facts.cells ? "genes" : "records", "length", { class: "number" }));
  for (const each of facts.column_list) {
    cells.push(cell(each.name, each.sorts ? `column.${each.name}` : null, { class: is_number(each) ? "number" : "column" }));
  }
  for (const key of keys) cells.push(cell(key || "metadata", null, { class: "meta", title: facts.column_list.some((each) => each.name === key) ? "metadata, where its column says something else" : "metadata" }));
  if (facts.mode !== "opaque") cells.push(cell(facts.cells ? "genes by number" : "begins with", null, { class: "begins" }));
  head.replaceChildren(make("tr", {}, ...cells));
  at("sorted").textContent = sortWords();
}

/** The order of the table in words; empty where it is the dataset's. */
export function sortWords() {
  const sort = wanted("sort", "document");
  const down = wanted("descending") === "1";
  return sort === "document" && !down ? "" :
    `sorted by ${sort === "length" ? "records" : sort.replace(/^column\./, "")}, ${down ? "largest" : "smallest"} first`;
}

/** Makes long texts of columns and metadata narrower, until the beginnings of the documents are in sight. */
function fit() {
  grid.style.setProperty("--widest", `${WIDEST}px`);
  const over = grid.scrollWidth - grid.clientWidth;
  const wide = [...head.querySelectorAll(".column, .meta")].filter((each) => each.offsetWidth >= WIDEST - 1).length;
  if (over <= 0 || !wide) return;
  const least = grid.clientWidth < 700 ? 160 : 84;
  grid.style.setProperty("--widest", `${Math.max(WIDEST - Math.ceil(over / wide), least)}px`);
}

const is_number = (column) => !column.category && column.sorts && column.kind !== "b";

function sortBy(by, isMine, down) {
  // Upwards, downwards, not at all.
  const next = !isMine ? { sort: by, descending: by === "document" ? "1" : "" } :
    down ? { sort: "", descending: "" } : { sort: by, descending: "1" };
  go({ ...next, at: "" });
}

function goTo(row) {
  top = Math.min(Math.max(row, 0), last());
  const most = grid.scrollHeight - grid.clientHeight;
  const is_scaled = count * ROW > TALLEST - 100;
  grid.scrollTop = is_scaled ? (top / Math.max(last(), 1)) * most : top * ROW;
  lastScroll = grid.scrollTop;
  draw();
}

function scrolled() {
  const now = grid.scrollTop;
  const most = grid.scrollHeight - grid.clientHeight;
  const moved = now - lastScroll;
  if (moved === 0) return;
  lastScroll = now;
  if (count * ROW <= TALLEST - 100) top = Math.min(Math.round(now / ROW), last());
  else if (now <= 0) top = 0;
  else if (now >= most - 1) top = last();
  else if (Math.abs(moved) > 3 * grid.clientHeight) top = Math.round((now / most) * last());
  else top = Math.min(Math.max(top + Math.sign(moved) * Math.max(Math.round(Math.abs(moved) / ROW), 1), 0), last());
  draw();
}

function draw() {
  const rows = [];
  const missing = new Set();
  for (let place = top; place < Math.min(top + room() + 1, count); place++) {
    const page = pages.get(Math.floor(place / PAGE));
    if (!page && !pages.has(Math.floor(place / PAGE))) missing.add(Math.floor(place / PAGE));
    rows.push(line(place, page?.[place % PAGE]));
  }
  if (count === 0) rows.push(make("tr", {}, make("td", { class: "empty", colspan: 20, text: "No document is so." })));
  body.replaceChildren(...rows);
  if (!missing.size && !marked) requestAnimationFrame(() => performance.mark("rows")); // for those who measure
  marked ||= !missing.size;
  grid.dataset.ready = missing.size ? "" : `${top} of ${count}`;
  clearTimeout(timer);
  timer = setTimeout(() => {
    note({ at: top || "" });
    for (const page of missing) load(page);
  }, missing.size ? 40 : 250);
}

function line(place, row) {
  const made = make("tr", { "data-place": place, ...(place === chosen ? { class: "chosen" } : {}) });
  if (!row) {
    made.append(make("td", { class: "empty", colspan: 20, text: "…" }));
    return made;
  }
  made.append(make("td", { class: "number", text: number(row.document) }));
  if (row.length !== null) made.append(make("td", { class: "number", text: number(row.length) }));
  row.columns.forEach((text, column) => {
    made.append(make("td", { text, class: is_number(facts.column_list[column]) ? "number" : "column" }));
  });
  const metadata = new Map(Array.isArray(row.metadata) ? row.metadata : row.metadata === null ? [] : [["", row.metadata]]);
  for (const key of keys) made.append(make("td", { class: "meta", text: metadata.get(key) ?? "" }));
  if (facts.mode !== "opaque") made.append(make("td", { class: "begins", text: row.text }));
  return made;
}

async function load(page) {
  const of = query;
  pages.set(page, null);
  try {
    const answer = await ask("table", { ...JSON.parse(of), first: page * PAGE, count: PAGE });
    if (of !== query) return;
    pages.set(page, answer.rows);
    while (pages.size > MOST_PAGES) pages.delete(pages.keys().next().value);
  } catch (error) {
    if (of !== query) return;
    pages.delete(page);
    complain(error);
    return;
  }
  draw();
}

/** Opens the document of a row. */
function open(place) {
  const row = pages.get(Math.floor(place / PAGE))?.[place % PAGE];
  if (row) openDocument(row.document);
}

/** Goes to the page of a document, at some of its records where they are given. */
export function openDocument(document, record = null, count = 1) {
  go({ tab: "read", ...documentPlace(document, record, count) });
}

/** Opens any of the documents that the filter chooses. */
export async function openRandom() {
  const answer = await ask("table", { ...filter(false), first: 0, count: 1 });
  if (answer.count === 0) return;
  const place = Math.floor(Math.random() * answer.count);
  const found = await ask("table", { ...filter(false), first: place, count: 1 });
  openDocument(found.rows[0].document);
}

function choose(place) {
  chosen = Math.min(Math.max(place, 0), Math.max(count - 1, 0));
  if (chosen < top) goTo(chosen);
  else if (chosen >= top + room()) goTo(chosen - room() + 1);
  else draw();
}

const MOVES = {
  ArrowDown: () => chosen + 1, ArrowUp: () => chosen - 1, j: () => chosen + 1, k: () => chosen - 1,
  PageDown: () => chosen + room(), PageUp: () => chosen - room(), Home: () => 0, End: () => count - 1,
};

/** Keys of the table; true where one was its own. */
export function documentKey(key) {
  if (key === "Enter") open(chosen);
  else if (MOVES[key]) choose(MOVES[key]());
  else return false;
  return true;
}

function resized() {
  draw();
  fit();
}

grid.addEventListener("scroll", scrolled);
body.addEventListener("click", (event) => {
  if (String(getSelection())) return; // text was marked, not a row chosen
  const place = event.target.closest("tr")?.dataset.place;
  if (place !== undefined) open(Number(place));
});
at("random").addEventListener("click", () => openRandom().catch(complain));
new ResizeObserver(() => facts && count && !grid.closest("[hidden]") && resized()).observe(grid);
