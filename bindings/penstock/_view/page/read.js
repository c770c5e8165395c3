// The page of one window or document: where it is, how to go on from it, and the forms in which it is shown.
import { ask, documentPlace, filter, go, place, state, wanted as said } from "./address.js";
import { sortWords } from "./documents.js";
import { at, complain, counted, escaped, make, number, whole } from "./dom.js";
import { drawRow, formsOf } from "./reader.js";
import { drawTraining } from "./training.js";

let facts = null;
let row = null; // that is shown
let shown = ""; // the question that it answers
let asked = 0; // number of the latest question: answers to earlier ones are dropped
let through = null; // the question for the document's place in the table; null where the dataset's order is gone through
let around = null; // its answer, which is on its way

const toIndex = (index) => go(place({ index }));
const toPosition = (position) => go(place({ position }));

/** Draws the window or document that the address says. */
export async function showRow(found) {
  if (facts !== found) row = null;
  facts = found;
  const wanted = state();
  const mine = ++asked;
  const dataset = facts.number;
  const kind = wanted.get("kind") ?? firstKind();
  if (kind === null) {
    drawNoRow(wanted);
    at("content").replaceChildren(make("p", { class: "empty", text: "There are no records and no documents." }));
    return;
  }
  const by = ["position", "record"].find((each) => wanted.has(each)) ?? "index";
  const query = { dataset, kind, window: windowSize(wanted), [by]: wanted.get(by) ?? "0" };
  const mark = markOf(wanted);
  const part = wanted.get("part") ?? (mark && kind === "document" ? Math.floor(mark.begin / facts.part) : "0");
  const marks = mark ? { mark: mark.begin, mark_records: mark.end - mark.begin } : {};
  const asks = { ...query, seed: wanted.get("seed") ?? "0", part, ...marks };
  try {
    if (row === null || shown !== JSON.stringify(asks)) {
      const answer = await ask("row", asks);
      if (mine !== asked) return;
      row = answer;
      shown = JSON.stringify(asks);
    }
    goThrough();
    await draw(wanted, () => mine === asked);
  } catch (error) {
    if (mine !== asked) return;
    if (row === null) drawNoRow(wanted);
    throw error;
  }
}

/** The records [begin, end) that are looked for: of the document; of a window, of the stream. */
function markOf(wanted) {
  if (!/^\d{1,15}$/.test(wanted.get("mark") ?? "")) return null;
  const begin = Number(wanted.get("mark"));
  const count = Number(wanted.get("mark_records") ?? 1);
  return { begin, end: begin + (Number.isSafeInteger(count) && count > 0 ? count : 1) };
}

/** Nothing to see yet, but fields to ask again with. */
function drawNoRow(wanted) {
  at("row-title").textContent = at("row-place").textContent = "";
  at("content").replaceChildren();
  at("spans").replaceChildren();
  at("forms").hidden = at("parts").hidden = at("training").hidden = at("through").hidden = true;
  drawKinds();
  const kind = wanted.get("kind") ?? firstKind();
  for (const button of at("kinds").children) button.setAttribute("aria-pressed", button.dataset.kind === kind);
  at("of-window").hidden = at("by").hidden = kind !== "window";
  at("window").value = windowSize(wanted);
}

function drawKinds() {
  const [windows, documents] = at("kinds").children;
  windows.disabled = facts.records === 0 || facts.mode === "opaque";
  documents.disabled = !facts.documents;
  documents.textContent = facts.cells ? "Cells" : "Documents";
  documents.title = facts.no_documents;
}

function firstKind() {
  if (facts.documents && (facts.cells || facts.mode === "opaque")) return "document";
  return facts.records ? "window" : facts.documents ? "document" : null;
}

function windowSize(wanted) {
  return wanted.get("window") ?? String(Math.max(Math.min(256, facts.records), 1));
}

async function draw(wanted, isCurrent) {
  const forms = formsOf(row);
  const form = forms.includes(wanted.get("form")) ? wanted.get("form") : forms[0];
  for (const button of at("forms").children) {
    button.hidden = !forms.includes(button.dataset.form);
    button.setAttribute("aria-pressed", button.dataset.form === form);
  }
  at("forms").hidden = forms.length < 2;
  drawKinds();
  for (const button of at("kinds").children) button.setAttribute("aria-pressed", button.dataset.kind === row.kind);
  const noun = row.kind === "window" ? "Window" : facts.cells ? "Cell" : "Document";
  at("row-title").textContent = `${noun} ${number(row.index)}`;
  const mark = markOf(wanted);
  at("row-place").textContent = placeOf(mark);
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
  if (through === null) drawThrough(null);
  else around.then((found) => isCurrent() && drawThrough(found), () => isCurrent() && drawThrough(null));
  drawParts(form);
  at("training").hidden = form !== "training";
  if (form === "training") {
    await drawTraining(facts, { ...row, mark }, isCurrent);
    if (!isCurrent()) return;
  } else {
    drawRow({ ...row, mark }, form, at("content"), at("spans"), (span) =>
      go(documentPlace(span.document, span.offset, span.stop - span.start)));
  }
  at("reader").dataset.ready = `${row.kind} ${row.index}`;
}

function placeOf(mark) {
  const words = [`of ${number(row.count)}`];
  if (row.genes) {
    const sums = row.genes.fields.map((name, each) => `${name} ${number(row.genes.sums[each])} in all`);
    words.push(`${number(row.genes.count)} genes`, ...sums);
  } else if (row.first_record !== undefined) {
    words.push(`${number(row.records)} records from ${number(row.first_record)} on`);
  }
  if (row.kind === "window") words.push(counted(row.spans.filter((span) => span.shard !== undefined).length, "span"));
  if (mark) words.push(`marked from record ${number(mark.begin)}`);
  const epoch = row.epoch === "0" ? "" : ` (epoch ${number(row.epoch)})`;
  words.push(`position ${number(row.position)}${epoch} in the order of seed ${row.seed}`);
  return words.join(" · ");
}

function drawParts(form) {
  const parts = row.kind === "document" ? Math.ceil(row.records / facts.part) : 1;
  at("parts").hidden = parts <= 1 || Boolean(row.genes) || form === "training";
  if (at("parts").hidden) return;
  const part = row.begin / facts.part;
  const end = Math.min(row.begin + facts.part, row.records);
  at("part").textContent = `part ${number(part + 1)} of ${number(parts)}: records ${number(row.begin)} to ${number(end)}`;
  at("part-before").disabled = part === 0;
  at("part-after").disabled = part + 1 >= parts;
  at("part-before").onclick = () => go({ part: part - 1 });
  at("part-after").onclick = () => go({ part: part + 1 });
}

/** Asks where the document stands in the table, if the table is filtered or sorted. */
function goThrough() {
  const query = { ...filter(), document: row.index };
  const now = row.kind === "document" && Object.keys(query).length > 2 ? JSON.stringify(query) : null;
  if (now === through) return;
  through = now;
  around = now && ask("neighbours", query);
  delete at("reader").dataset.through;
  around?.catch((error) => through === now && complain(error));
}

const NAMES = { before: "The one before it in", after: "The one after it in" };

/** Says where the document stands in the table, once that is known. */
function drawThrough(found) {
  const is_in = found !== null && found.place !== null;
  for (const [id, which, key] of [["previous", "before", "left"], ["next", "after", "right"]]) {
    if (is_in) at(id).disabled = found[which] === null;
    at(id).title = `${NAMES[which]} the ${is_in ? "table" : "dataset"} (${key} arrow)`;
  }
  at("through").hidden = found === null;
  if (found === null) return;
  const lengths = said("shortest") || said("longest") ? `${said("shortest", "0")} to ${said("longest", "any number of")} records` : "";
  const of = [said("where"), lengths, sortWords()].filter(Boolean).join(" · ");
  at("through-said").textContent = escaped(is_in ? `${number(found.place + 1)} of ${number(found.count)} in the table: ${of}` :
    `Not among the ${number(found.count)} of the table: ${of}.`);
  at("through-all").textContent = facts.cells ? "All cells" : "All documents";
  at("reader").dataset.through = is_in ? String(found.place) : "none";
}

// ---- what the user does

async function step(by) {
  const from = row;
  const found = await around?.catch(() => null);
  if (row === null || row !== from) return;
  const is_in = found && found.place !== null;
  const next = is_in ? (by < 0 ? found.before : found.after) : row.index + by;
  if (next !== null && next >= 0 && next < row.count) toIndex(next);
}

const move = (by) => row && BigInt(row.position) + by >= 0n && toPosition(String(BigInt(row.position) + by));

at("previous").addEventListener("click", () => step(-1));
at("next").addEventListener("click", () => step(1));
at("earlier").addEventListener("click", () => move(-1n));
at("later").addEventListener("click", () => move(1n));
at("through-all").addEventListener("click", () =>
  go({ where: "", shortest: "", longest: "", sort: "", descending: "", at: "" }));
at("search").addEventListener("submit", (event) => {
  event.preventDefault();
  const wanted = place({ window: whole(at("window")) });
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
    go({ seed, index: row.index, position: "", record: "" });
  } else {
    go({ seed, ...place({ position: whole(at("position")) }) });
  }
});
at("kinds").addEventListener("click", (event) => {
  const { kind } = event.target.dataset;
  if (!kind || (row && row.kind === kind)) return;
  // From a window to its first document and back: to what is looked at already.
  let there = place({ kind, index: "0" });
  const first = row?.spans[0];
  if (row && kind === "document" && first?.document !== undefined) {
    there = documentPlace(first.document, first.offset, first.stop - first.start);
  }
  const record = row && row.first_record + (row.begin ?? 0);
  if (row && kind === "window" && record < Math.floor(facts.records / row.window) * row.window) {
    there = place({ kind, record });
  }
  go(there);
});
at("forms").addEventListener("click", (event) => {
  if (event.target.dataset.form) go({ form: event.target.dataset.form }, true);
});

/** Keys of this page; true where one was its own. */
export function readKey(key) {
  if (key === "ArrowLeft") step(-1);
  else if (key === "ArrowRight") step(1);
  else return false;
  return true;
}
