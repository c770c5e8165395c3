// The rows of a step: which documents, on which rank.
import { ask, documentPlace, go, place, wanted } from "./address.js";
import { at, counted, escaped, make, number, table, whole } from "./dom.js";
import { drawShares } from "./charts.js";

const DEFAULTS = { step: "0", batch: "8", ranks: "1", rank: "", run_as: "windows", run_window: "", order: "uniform", run_seed: "0" };
const MOST = 64; // rows of one answer
let asked = 0;

const given = (name) => wanted(name, DEFAULTS[name]);

/** Draws the step that the address says. */
export async function showStep(facts, mixture) {
  const mine = ++asked;
  const is_entries = facts.mode === "opaque" || facts.cells;
  const window = given("run_window") || String(Math.max(Math.min(256, facts.records - 1), 1));
  const kind = is_entries ? "documents" : given("run_as");
  at("step-number").value = given("step");
  at("step-batch").value = given("batch");
  at("step-ranks").value = given("ranks");
  at("step-rank").value = given("rank");
  at("step-as").value = kind;
  at("step-window").value = window;
  at("step-order").value = given("order");
  at("step-seed").value = given("run_seed");
  at("step-view").hidden = mixture.path !== null;
  at("step-of").hidden = kind === "documents";
  for (const option of at("step-as").options) option.disabled = is_entries && option.value !== "documents";
  drawPlan(mixture);
  const first = Number(wanted("rows", "0")) || 0;
  const query = {
    dataset: wanted("dataset", "0"), step: given("step"), batch: given("batch"), ranks: given("ranks"), rank: given("rank"),
    as: kind, window, order: given("order"), seed: given("run_seed"), first,
  };
  const section = at("step-rows").closest("section");
  section.classList.add("old");
  const found = await ask("step", query); // where it fails, the step before stays, dimmed
  if (mine !== asked) return;
  section.classList.remove("old");
  draw(found, mixture);
}

function drawPlan(mixture) {
  at("step-plan").hidden = mixture.path === null;
  if (mixture.path === null) return;
  const stages = mixture.stages.map((stage) => {
    const all = Object.values(stage.weights).reduce((sum, each) => sum + each, 0);
    const shares = Object.entries(stage.weights).map(([name, weight]) => `${name} ${((100 * weight) / all).toFixed(1)} %`);
    return `from position ${number(stage.begin)}: ${shares.join(", ")}`;
  });
  const end = mixture.end === null ? "it has no end" : `it ends at position ${number(mixture.end)}`;
  at("step-plan").textContent = escaped(`${mixture.path} · ${stages.join(" · ")} · ${end}`);
}

function draw(found, mixture) {
  at("step-title").textContent = `Step ${number(found.step)}`;
  const last = Math.min(found.first + MOST, found.count);
  const part = found.count > MOST ? `, ${number(found.first)} to ${number(last)} of them here` : "";
  at("step-said").textContent = `position ${number(found.position)} · ${counted(found.count, "row")}${part}`;
  at("step-sources").hidden = mixture.path === null;
  if (mixture.path !== null) {
    const bars = found.sources.map((each) => ({ name: each.name, rows: each.rows }));
    drawShares(at("step-sources"), bars, (bar) => bar.rows, bars.reduce((sum, bar) => sum + bar.rows, 0), null);
  }
  const names = ["position", "rank", "row", ...(mixture.path === null ? [] : ["source"]), "epoch", "index", "documents", "begins with"];
  const rows = found.rows.map((row) => [
    number(row.position), number(row.rank), number(row.row), ...(mixture.path === null ? [] : [row.name]), number(row.epoch),
    number(row.index), documentsOf(row, mixture), make("td", { class: "begins", text: row.text }),
  ]);
  table(at("step-rows"), names, rows, mixture.path === null ? [0, 1, 2, 3, 4] : [0, 1, 2, 4, 5]);
  at("rows-before").hidden = at("rows-after").hidden = found.count <= MOST;
  at("rows-before").disabled = found.first === 0;
  at("rows-after").disabled = last >= found.count;
  at("rows-before").onclick = () => go({ rows: Math.max(found.first - MOST, 0) });
  at("rows-after").onclick = () => go({ rows: found.first + MOST });
  at("step-before").disabled = found.step === 0;
  at("step-before").onclick = () => go({ step: found.step - 1, rows: "" });
  at("step-after").onclick = () => go({ step: found.step + 1, rows: "" });
  at("step-rows").dataset.ready = `step ${found.step}`;
}

function documentsOf(row, mixture) {
  const cell = make("td", { class: "documents" });
  const dataset = mixture.path === null ? wanted("dataset", "0") : String(row.source);
  const other = dataset === wanted("dataset", "0") ? {} : { where: "", shortest: "", longest: "", sort: "", descending: "" };
  const there = { tab: "read", dataset, ...other };
  for (const span of row.spans) {
    if (span.document === null) continue;
    const from = span.offset ? ` from record ${number(span.offset)} on` : "";
    const title = `records ${number(span.start)} to ${number(span.stop)} of the row${from}`;
    const link = make("button", { type: "button", class: "link", text: number(span.document), title });
    link.addEventListener("click", () => go({ ...there, ...documentPlace(span.document, span.offset, span.stop - span.start) }));
    cell.append(link, " ");
  }
  if (row.more) cell.append(`and ${number(row.more)} more`);
  if (!cell.childNodes.length && row.first_record !== null) {
    const link = make("button", { type: "button", class: "link", text: `record ${number(row.first_record)}` });
    link.addEventListener("click", () => go({ ...there, kind: "window", ...place({ record: row.first_record }) }));
    cell.append(link);
  }
  return cell;
}

at("run").addEventListener("submit", (event) => {
  event.preventDefault();
  go({
    step: whole(at("step-number")), batch: whole(at("step-batch")), ranks: whole(at("step-ranks")), rank: whole(at("step-rank")),
    run_as: at("step-as").value, run_window: whole(at("step-window")), order: at("step-order").value,
    run_seed: whole(at("step-seed")), rows: "",
  });
});
at("step-as").addEventListener("change", () => {
  at("step-of").hidden = at("step-as").value === "documents";
});
