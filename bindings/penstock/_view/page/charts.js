// Charts as inline SVG, drawn at the width that they have. Text of the data goes in as text nodes only.
import { escaped, visible } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";

function element(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = escaped(text);
  return made;
}

function canvas(into, height, label) {
  const width = Math.max(into.clientWidth, 200);
  const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": label });
  into.replaceChildren(svg);
  return { svg, width };
}

const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const full = new Intl.NumberFormat("en");

// A power of two as people say it: 512, 4Ki, 2Mi.
function binary(number) {
  const units = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];
  let unit = 0;
  while (number >= 1024 && unit + 1 < units.length) {
    number /= 1024;
    unit += 1;
  }
  return `${number}${units[unit]}`;
}

/** Makes a bar a link: by mouse and by keyboard. */
function linked(group, label, act) {
  if (!act) return;
  group.classList.add("link");
  group.setAttribute("tabindex", "0");
  group.setAttribute("role", "button");
  group.setAttribute("aria-label", label);
  group.addEventListener("click", act);
  group.addEventListener("keydown", (event) => event.key === "Enter" && act());
}

/** Documents in bins of lengths that double; `open(bin)` is called for one that is chosen. */
export function drawLengths(into, found, open) {
  const bins = found.bins;
  const height = 300;
  const { svg, width } = canvas(into, height, `Histogram of the lengths of ${full.format(found.sampled)} documents`);
  const [left, bottom, top] = [4, 22, 18];
  const most = Math.max(...bins.map((bin) => bin.documents));
  const step = (width - left * 2) / bins.length;
  const labelled = Math.ceil(bins.length / Math.floor(width / 46));
  svg.append(element("line", { x1: 0, x2: width, y1: height - bottom, y2: height - bottom }));
  bins.forEach((bin, number) => {
    const tall = (bin.documents / most) * (height - bottom - top);
    const x = left + number * step;
    const said = bin.to === 1 ? "empty" : bin.to - bin.from === 1 ? `${bin.from} record` :
      `${full.format(bin.from)} to ${full.format(bin.to - 1)} records`;
    const group = element("g", {});
    group.append(
      element("title", {}, `${said}: ${full.format(bin.documents)} documents`),
      element("rect", { class: "reach", x, y: 0, width: step, height }),
      element("rect", {
        class: "bar", x: x + 1, width: Math.max(step - 2, 1), rx: 2,
        y: height - bottom - tall, height: bin.documents ? Math.max(tall, 1) : 0,
      }),
    );
    if (bin.documents) linked(group, said, open && (() => open(bin)));
    if (number % labelled === 0) {
      group.append(element("text", { x: x + 1, y: height - 7 }, binary(bin.from)));
    }
    if (step > 30 && bin.documents) {
      const at = { x: x + step / 2, y: height - bottom - tall - 4, "text-anchor": "middle" };
      group.append(element("text", at, short.format(bin.documents)));
    }
    svg.append(group);
  });
}

/** The most frequent tokens, or genes: a bar each. */
export function drawMost(into, found) {
  const line = 19;
  const { svg, width } = canvas(into, found.most.length * line + 4, "The most frequent ones with their counts");
  const nameOf = (each) =>
    each.name === null ? String(each.id) : found.cells_mode ? each.name : visible(each.name);
  const longest = Math.max(...found.most.map((each) => nameOf(each).length));
  const names = Math.min(longest * 7.4 + 14, width * 0.4);
  const room = width - names - 56;
  const most = Math.max(...found.most.map((each) => each.count));
  found.most.forEach((each, number) => {
    const y = number * line;
    const name = nameOf(each);
    const fits = Math.floor((names - 14) / 7.4 + 0.01);
    const group = element("g", {});
    const long = Math.max((each.count / most) * room, 1);
    group.append(
      element("title", {}, `${each.name === null ? "" : `${name} · `}id ${each.id}: ${full.format(each.count)}`),
      element("rect", { class: "reach", x: 0, y, width, height: line }),
      element("text", { class: "name", x: 0, y: y + 14 }, name.length > fits ? `${name.slice(0, fits - 1)}…` : name),
      element("rect", { class: "bar", x: names, y: y + 3, width: long, height: line - 6, rx: 2 }),
      element("text", { x: names + long + 5, y: y + 14 }, short.format(each.count)),
    );
    svg.append(group);
  });
}

/** Counts by rank, both logarithmic. */
export function drawRanks(into, found) {
  const height = 300;
  const { svg, width } = canvas(into, height, "Count by rank, both logarithmic");
  const [left, right, top, bottom] = [38, 8, 8, 22];
  const lastRank = Math.max(found.ranks.at(-1)[0], 2);
  const mostCount = Math.max(found.ranks[0][1], 2);
  const x = (rank) => left + (Math.log(rank) / Math.log(lastRank)) * (width - left - right);
  const y = (count) => top + (1 - Math.log(count) / Math.log(mostCount)) * (height - top - bottom);
  for (let power = 1; power <= mostCount; power *= 10) {
    svg.append(
      element("line", { x1: left, x2: width - right, y1: y(power), y2: y(power) }),
      element("text", { x: left - 5, y: y(power) + 4, "text-anchor": "end" }, short.format(power)),
    );
  }
  for (let power = 1; power <= lastRank; power *= 10) {
    svg.append(
      element("line", { x1: x(power), x2: x(power), y1: top, y2: height - bottom }),
      element("text", { x: x(power), y: height - 7, "text-anchor": power === 1 ? "start" : "middle" }, short.format(power)),
    );
  }
  svg.append(element("polyline", { points: found.ranks.map(([rank, count]) => `${x(rank)},${y(count)}`).join(" ") }));
}

/** Bars with a name, a number and a share each; `open(bar)` is called for one that is chosen. */
export function drawShares(into, bars, valueOf, total, open) {
  const line = 21;
  const { svg, width } = canvas(into, bars.length * line + 4, "Shares");
  const longest = Math.max(...bars.map((bar) => bar.name.length), 1);
  const names = Math.min(longest * 7.4 + 14, width * 0.38);
  const fits = Math.floor((names - 14) / 7.4 + 0.01);
  const room = width - names - 118;
  const most = Math.max(...bars.map(valueOf), 1);
  bars.forEach((bar, number) => {
    const y = number * line;
    const value = valueOf(bar);
    const part = (100 * value) / Math.max(total, 1);
    const share = part > 0 && part < 0.05 ? "<0.1 %" : `${part.toFixed(1)} %`;
    const long = value ? Math.max((value / most) * room, 1) : 0;
    const group = element("g", {});
    group.append(
      element("title", {}, `${bar.name}: ${full.format(value)}, ${share}`),
      element("rect", { class: "reach", x: 0, y, width, height: line }),
      element("text", { class: "name", x: 0, y: y + 15 }, bar.name.length > fits ? `${bar.name.slice(0, fits - 1)}…` : bar.name),
      element("rect", { class: "bar", x: names, y: y + 4, width: long, height: line - 7, rx: 2 }),
      element("text", { x: names + long + 6, y: y + 15 }, `${short.format(value)} · ${share}`),
    );
    linked(group, `${bar.name}: ${share}`, open && value && (() => open(bar)));
    svg.append(group);
  });
}

/** Two histograms of lengths on one axis, as shares of each one's documents. */
export function drawTwoLengths(into, one, other) {
  const height = 220;
  const { svg, width } = canvas(into, height, "Lengths of documents in both datasets, as shares");
  const [left, bottom, top] = [4, 22, 8];
  const starts = [...new Set([...one.bins, ...other.bins].map((bin) => bin.from))].sort((a, b) => a - b);
  const share = (found, from) => (found.bins.find((bin) => bin.from === from)?.documents ?? 0) / Math.max(found.sampled, 1);
  const most = Math.max(...starts.flatMap((from) => [share(one, from), share(other, from)]), 1e-9);
  const step = (width - left * 2) / Math.max(starts.length, 1);
  const labelled = Math.ceil(starts.length / Math.floor(width / 46));
  svg.append(element("line", { x1: 0, x2: width, y1: height - bottom, y2: height - bottom }));
  starts.forEach((from, number) => {
    const group = element("g", {});
    const x = left + number * step;
    const said = [one, other].map((found) => `${(100 * share(found, from)).toFixed(1)} %`).join(" and ");
    group.append(element("title", {}, `from ${full.format(from)} records: ${said}`), element("rect", { class: "reach", x, y: 0, width: step, height }));
    [one, other].forEach((found, side) => {
      const tall = (share(found, from) / most) * (height - bottom - top);
      group.append(element("rect", {
        class: side ? "bar second" : "bar", x: x + 1 + side * (step / 2 - 1), width: Math.max(step / 2 - 2, 1),
        y: height - bottom - tall, height: tall, rx: 2,
      }));
    });
    if (number % labelled === 0) group.append(element("text", { x: x + 1, y: height - 7 }, binary(from)));
    svg.append(group);
  });
}
