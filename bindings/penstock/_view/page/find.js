// Search by text, ids and in metadata: hits as they come, with progress, until enough is found or it is stopped.
import { filter, go, listen, place, wanted } from "./address.js";
import { at, complain, counted, make, number, visible } from "./dom.js";
import { openDocument } from "./documents.js";

let stopper = null; // of the search that runs
let shown = ""; // which search the hits are of
let following = null; // where one goes on

/** Draws the form that the address says, and searches if it says what for. */
export function showSearch(facts) {
  const look = wanted("look", facts.decodes || facts.cells ? "text" : facts.no_tokens ? "metadata" : "ids");
  at("look-text").value = wanted("find");
  at("look-in").value = look;
  at("look-in").options[0].disabled = !facts.decodes && !facts.cells;
  at("look-in").options[0].textContent = facts.cells ? "genes" : facts.decodes ? "text" : "text (needs --tokenizer)";
  at("look-case").checked = wanted("case") === "1";
  at("case-label").hidden = look === "ids";
  const now = JSON.stringify([filter(false), wanted("find"), look, wanted("case")]);
  if (now === shown) return;
  stop();
  shown = now;
  at("hits").replaceChildren();
  at("look-on").hidden = true;
  at("look-said").textContent = wanted("find") ? "" : "It stops after 100 documents, and goes on from there.";
  at("look-bar").value = 0;
  if (wanted("find")) search(0);
}

/** Ends the search that runs. */
export function stop() {
  stopper?.abort();
  stopper = null;
  at("look-stop").disabled = true;
}

async function search(start) {
  const mine = new AbortController();
  stopper = mine;
  at("look-stop").disabled = false;
  at("look-on").hidden = true;
  at("look-said").textContent = "searching…";
  const query = { ...filter(false), text: wanted("find"), look: at("look-in").value, case: wanted("case", "0"), start };
  try {
    await listen("search", query, mine.signal, (line) => {
      if (stopper !== mine) return;
      if (line.hit) drawHit(line.hit);
      if (line.progress) report(line.progress);
      if (line.end) finish(line.end);
    });
  } catch (error) {
    if (error.name === "AbortError") at("look-said").textContent += " · stopped";
    else {
      at("look-said").textContent = "";
      complain(error);
    }
  }
  if (stopper === mine) stop();
}

function speed(told) {
  if (!told.tokens || !told.seconds) return "";
  return ` · ${number(told.tokens)} tokens in ${number(told.seconds)} s`;
}

function report(told) {
  at("look-bar").value = told.of ? told.done / told.of : 1;
  at("look-said").textContent = `${number(told.done)} of ${counted(told.of, told.noun.slice(0, -1))} looked at${speed(told)}`;
}

function finish(told) {
  report(told);
  following = told.done;
  at("look-on").hidden = told.all;
  const found = at("hits").children.length;
  const what = told.noun === "documents" ? counted(found, "document") : counted(found, "place");
  at("look-said").textContent = `${found ? what : "Nothing"} found · ${at("look-said").textContent}`;
  at("hits").dataset.ready = `${found}`;
}

function drawHit(hit) {
  const name = hit.document === null ? `Record ${number(hit.record)}` : `Document ${number(hit.document)}`;
  const where = hit.document !== null && hit.record !== null ? ` from record ${number(hit.record)}` : "";
  const link = make("button", { type: "button", class: "link", text: name });
  link.addEventListener("click", () => {
    const mark = { mark: hit.record, mark_records: hit.records };
    if (hit.document === null) go({ tab: "read", kind: "window", ...place({ record: hit.record, ...mark }) });
    else if (hit.record === null) openDocument(hit.document);
    else go({ tab: "read", kind: "document", ...place({ index: hit.document, ...mark }) });
  });
  const text = make("p", { class: "text" }, hit.before ? `…${visible_line(hit.before)}` : "",
    make("mark", { text: visible_line(hit.text) }), `${visible_line(hit.after)}…`);
  at("hits").append(make("li", {}, make("p", { class: "at" }, link, where), text));
}

const visible_line = (text) => text.replaceAll(/[\n\r\t]+/g, (each) => visible(each));

at("look").addEventListener("submit", (event) => {
  event.preventDefault();
  shown = ""; // the same again is searched again
  go({ find: at("look-text").value, look: at("look-in").value, case: at("look-case").checked ? "1" : "" });
});
at("look-in").addEventListener("change", () => {
  at("case-label").hidden = at("look-in").value === "ids";
});
at("look-stop").addEventListener("click", stop);
at("look-on").addEventListener("click", () => search(following));
