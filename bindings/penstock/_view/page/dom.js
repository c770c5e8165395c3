// Elements and numbers. Whatever comes from the data is put in as text nodes, never as markup.
const plain = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const exact = new Intl.NumberFormat("en", { maximumFractionDigits: 3 });

export const at = (id) => document.getElementById(id);
export const number = (value) => plain.format(typeof value === "string" ? BigInt(value) : value);
export const precise = (value) => exact.format(value);
export const percent = (part, of) => {
  const share = of ? (100 * part) / of : 0;
  return share > 0 && share < 0.05 ? "<0.1 %" : `${plain.format(share)} %`;
};
export const counted = (count, noun) => `${number(count)} ${count === 1 ? noun : noun.replace(/y$/, "ie") + "s"}`;

/** A size as number and unit. */
export function bytes(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  while (count >= 1024 && unit + 1 < units.length) {
    count /= 1024;
    unit += 1;
  }
  return [unit === 0 ? String(count) : plain.format(count), units[unit]];
}

// Control and format characters, which would be obeyed or not be seen; not the joiners of Persian words and of emoji.
const OBEYED = /(?![\n\t\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** A text with escapes, as `penstock show` has them, in place of characters that a page would obey: \\x1b, \\u202e. */
export function escaped(text) {
  return String(text).replaceAll(OBEYED, (each) => {
    const digits = each.codePointAt(0).toString(16);
    if (each === "\r") return "\\r";
    const [letter, size] = digits.length <= 2 ? ["x", 2] : digits.length <= 4 ? ["u", 4] : ["U", 8];
    return `\\${letter}${digits.padStart(size, "0")}`;
  });
}

/** An element with text and children; texts are escaped. */
export function make(name, { text, ...attributes } = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, key === "title" ? escaped(value) : value);
  if (text !== undefined) made.textContent = escaped(text);
  made.append(...children.map((each) => (typeof each === "string" ? escaped(each) : each)));
  return made;
}

/** A button that does something. */
export function button(text, act, attributes = {}) {
  const made = make("button", { type: "button", text, ...attributes });
  made.addEventListener("click", act);
  return made;
}

/** A table of a head and rows; `numbers` are the columns that are aligned right. */
export function table(into, head, rows, numbers = []) {
  const align = (place) => (numbers.includes(place) ? { class: "number" } : {});
  const cell = (each, place) => (each instanceof Node ? each : make("td", { text: each, ...align(place) }));
  const lines = rows.map((row) => make("tr", {}, ...row.map(cell)));
  const parts = [make("tbody", {}, ...lines)];
  if (head.length) {
    const names = head.map((each, place) => make("th", { text: each, scope: "col", ...align(place) }));
    parts.unshift(make("thead", {}, make("tr", {}, ...names)));
  }
  into.replaceChildren(...parts);
}

/** A text so that blanks and line ends can be seen. */
export function visible(text) {
  return text.replaceAll(" ", "␣").replaceAll("\n", "⏎").replaceAll("\t", "⇥").replaceAll("\r", "␍");
}

/** A word of a shell's command: in quotes where it needs them. */
export const quoted = (text) => (/^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/** Copies a text; the button says so for a moment, or `otherwise` where the browser does not let it. */
export async function copy(button, text, otherwise = "Mark it, and copy that") {
  const name = (button.dataset.name ??= button.textContent);
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = otherwise;
  }
  setTimeout(() => (button.textContent = name), 2000);
}

/** What was typed as a number, without separators. */
export const whole = (input) => input.value.trim().replaceAll(/[,_\s]/g, "");

export function complain(error) {
  at("problem").textContent = escaped(error.message);
  at("problem").hidden = false;
}
