// Tokens one by one, in alternating shades of their document's colour; what one is, where the mouse is.
import { ask, wanted } from "./address.js";
import { at, escaped, make, number, visible } from "./dom.js";

const COLOURS = 6;
const known = new Map(); // what the server said of an id, by dataset and id

/** A token: its text, or its id. Line ends are seen, and end the line. */
export function token(id, piece, { special = false, odd = false, more = "" } = {}) {
  const text = piece === null ? String(id) : piece;
  const made = make("i", { "data-id": id, class: `${special ? "special " : ""}${odd ? "odd " : ""}${more}` });
  const seen = text.replaceAll(/\r?\n|\t|\r/g, (each) => visible(each) + (each.endsWith("\n") ? "\n" : ""));
  made.textContent = text === "" ? "∅" : escaped(seen);
  return made;
}

const unmarked = () => ({ begin: 0, end: 0 });

/** Draws the tokens of some spans, those at the places [begin, end) of `marked(span)` marked; gives the spans' elements. */
export function drawTokens(spans, form, content, marked = unmarked) {
  const text = make("p", { class: `text tokens ${form}` });
  const made = spans.map((span, place) => {
    const run = make("span", { class: `s${place % COLOURS}` });
    const special = new Set(span.special);
    const { begin, end } = marked(span);
    const pieces = form === "ids" ? null : span.pieces;
    span.ids.split(" ").forEach((id, number) => {
      if (!pieces && number) run.append(" ");
      run.append(token(id, pieces ? pieces[number] : null, {
        special: special.has(number), odd: number % 2 === 1, more: begin <= number && number < end ? "hit" : "",
      }));
    });
    return run;
  });
  made.forEach((run, place) => text.append(...(form === "ids" && place ? ["\n", run] : [run])));
  content.replaceChildren(text);
  return made;
}

async function describe(id) {
  const dataset = wanted("dataset", "0");
  const key = `${dataset} ${id}`;
  if (!known.has(key)) known.set(key, ask("token", { dataset, id }));
  const found = await known.get(key);
  const words = [`id ${id}`];
  if (found.special) words.push("special");
  if (found.bytes !== null) words.push(found.bytes === "" ? "no bytes" : `bytes ${found.bytes}`);
  words.push(`${number(found.count)} of ${number(found.counted)} tokens${found.all ? "" : " of a sample"}`);
  return words.join(" · ");
}

let over = null; // the token that the mouse is on

async function tell(event) {
  const under = event.target.closest?.("i[data-id]");
  if (under === over) return;
  over = under;
  const tip = at("tip");
  tip.hidden = !under;
  if (!under) return;
  const said = under.dataset.said ? `${under.dataset.said} · ` : "";
  tip.textContent = `${said}id ${under.dataset.id}`;
  place(under);
  try {
    const words = await describe(under.dataset.id);
    if (over === under) tip.textContent = said + words;
  } catch {
    return; // its id alone is told
  }
  if (over === under) place(under);
}

function place(under) {
  const tip = at("tip");
  const box = under.getClientRects()[0] ?? under.getBoundingClientRect();
  tip.style.left = `${Math.max(Math.min(box.left, innerWidth - tip.offsetWidth - 8), 4)}px`;
  tip.style.top = `${box.top > tip.offsetHeight + 8 ? box.top - tip.offsetHeight - 6 : box.bottom + 6}px`;
}

at("content").addEventListener("mouseover", tell);
at("content").addEventListener("click", tell);
at("content").addEventListener("mouseleave", () => {
  over = null;
  at("tip").hidden = true;
});
