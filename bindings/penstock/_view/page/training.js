// What training sees: a row as a loader gives it. Each token stands with what the model is to say after it; where the loss
// does not count, and in padding, it is grey.
import { ask, documentPlace, go, wanted } from "./address.js";
import { at, counted, make, number, percent, whole } from "./dom.js";
import { token } from "./tokens.js";

const COLOURS = 6;

function rowOf(facts, row) {
  const kind = wanted("as", row.kind === "document" ? "padded" : "windows");
  const window = wanted("row_window", String(row.kind === "window" ? row.window : Math.max(Math.min(256, facts.records - 1), 1)));
  const query = { dataset: wanted("dataset", "0"), as: kind, window, cross: wanted("cross", "1"), seed: wanted("seed", "0") };
  if (wanted("middle")) query.middle = wanted("middle");
  const given = wanted("row");
  if (given !== "") query.index = given;
  else if (row.kind === "document") Object.assign(query, { document: row.index, record: row.mark?.begin ?? 0 });
  else if (kind === "windows") query.index = Math.floor((row.mark?.begin ?? row.first_record) / Number(window));
  else query.index = 0;
  return query;
}

/** The places [begin, end) of a training row that the address marks: of the document, of the stream. */
function markedOf(row, query, found) {
  const { mark } = row;
  let first = null; // the record of the document, or of the stream, at place 0
  if (mark && row.kind !== "document" && query.as === "windows") first = found.index * Number(query.window);
  const span = mark && row.kind === "document" ? found.spans.find((each) => each.document === row.index) : null;
  if (span) first = (span.offset ?? 0) - span.start;
  if (first === null || query.middle) return () => false; // which moves tokens
  const [low, high] = span ? [span.start, span.stop] : [0, found.ids.length];
  return (place) => place >= Math.max(mark.begin - first, low) && place < Math.min(mark.end - first, high);
}

/** Draws the row of a loader that has the window or document `row`. */
export async function drawTraining(facts, row, isCurrent) {
  const query = rowOf(facts, row);
  at("sees-as").value = query.as;
  at("sees-window").value = query.window;
  at("sees-cross").checked = query.cross !== "0";
  at("cross-label").hidden = query.as !== "windows";
  at("sees-middle").value = query.middle ?? "";
  at("sees-seed").value = query.seed;
  const found = await ask("sees", query);
  if (!isCurrent()) return;
  at("sees-index").value = found.index;
  at("sees-before").disabled = found.index === 0;
  at("sees-after").disabled = found.index + 1 >= found.count;
  at("sees-before").onclick = () => go({ row: found.index - 1 });
  at("sees-after").onclick = () => go({ row: found.index + 1 });
  const counts = found.labels.filter((label) => label >= 0).length;
  const padding = found.documents.filter((each) => each < 0).length;
  at("row-title").textContent = `Row ${number(found.index)}`;
  const said = [`of ${number(found.count)}`,
    `loss of ${number(counts)} of ${counted(found.labels.length, "token")} (${percent(counts, found.labels.length)})`];
  if (padding) said.push(`${number(padding)} padding`);
  if (found.waste !== null) said.push(`padding of all rows ${percent(found.waste, 1)}`);
  at("row-place").textContent = said.join(" · ");
  drawInto(at("content"), found, markedOf(row, query, found));
  drawSpans(found);
  at("reader").dataset.training = `${query.as} ${found.index}`;
}

function drawInto(content, found, isMarked) {
  const text = make("p", { class: `text tokens training ${found.pieces ? "" : "ids"}` });
  const special = new Set(found.special);
  let run = null;
  let before = null;
  found.ids.forEach((id, place) => {
    const document = found.documents[place];
    if (run === null || document !== before) {
      if (run !== null && document >= 0) text.append(make("b", { class: "border", text: "¦", title: "A document begins here" }));
      run = make("span", { class: document < 0 ? "padding" : `s${document % COLOURS}` });
      text.append(run);
      before = document;
    }
    if (document < 0 && run.childElementCount >= 12) {
      run.dataset.more = String(Number(run.dataset.more ?? 0) + 1);
      return;
    }
    const label = found.labels[place];
    const piece = found.pieces ? found.pieces[place] : null;
    const made = token(id, document < 0 && piece !== null ? "▒" : piece,
      { special: special.has(place) && document >= 0, odd: place % 2 === 1,
        more: [label < 0 ? "out" : "", isMarked(place) ? "hit" : ""].join(" ").trim() });
    const next = found.label_pieces ? JSON.stringify(found.label_pieces[place]) : label;
    made.dataset.said = `${place}: ${document < 0 ? "padding" : label < 0 ? "label -100, no loss" : `label ${label} ${found.label_pieces ? next : ""}`}`;
    run.append(made);
    if (piece === null) run.append(" ");
  });
  for (const each of text.querySelectorAll("[data-more]")) each.append(make("small", { text: ` … ${number(each.dataset.more)} more` }));
  content.replaceChildren(legend(), text);
}

function legend() {
  const sample = (name, words) => make("span", {}, make("i", { class: name, text: "token" }), ` ${words}`);
  return make("p", { class: "legend tokens training" }, sample("s0", "its label counts"), sample("s0 out", "no loss at it"),
    sample("special", "no text"));
}

function drawSpans(found) {
  const cards = found.spans.slice(0, 300).map((span, place) => {
    const name = span.document === null ? "Span" : `Document ${number(span.document)}`;
    const title = make("h3", {}, make("span", { text: name }));
    if (span.document !== null) {
      const open = make("button", { type: "button", text: "open" });
      open.addEventListener("click", () =>
        go({ form: "", ...documentPlace(span.document, span.offset, span.stop - span.start) }));
      title.append(open);
    }
    const ends = [span.begins ? "" : "its beginning is elsewhere", span.ends ? "" : "it goes on elsewhere"].filter(Boolean);
    return make("li", { class: `s${place % COLOURS}` }, title,
      make("p", { class: "at", text: [`${number(span.start)} to ${number(span.stop)}`, ...ends].join(" · ") }));
  });
  at("spans").replaceChildren(...cards);
  at("content").parentElement.classList.toggle("alone", cards.length === 0);
}

at("training").addEventListener("submit", (event) => {
  event.preventDefault();
  go({
    as: at("sees-as").value, row_window: whole(at("sees-window")), row: whole(at("sees-index")),
    cross: at("sees-cross").checked ? "" : "0", middle: at("sees-middle").value.trim(), seed: whole(at("sees-seed")),
  });
});
at("sees-as").addEventListener("change", () => go({ as: at("sees-as").value, row: "" }));
at("sees-cross").addEventListener("change", () => go({ cross: at("sees-cross").checked ? "" : "0" }));
