// What is shown stands in the address behind #, so that going back, reloading and links work; and questions to the server.
let show = () => {};

/** `whenChanged` draws what the address says. */
export function onChange(whenChanged) {
  show = whenChanged;
  addEventListener("popstate", show);
}

export function state() {
  return new URLSearchParams(location.hash.slice(1));
}

/** What stands in the address, or what stands for nothing there. */
export const wanted = (name, otherwise = "") => state().get(name) ?? otherwise;

function changed(changes) {
  const next = state();
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === null || value === "") next.delete(name);
    else next.set(name, value);
  }
  return `#${next}`;
}

/** Goes to what is shown now but for `changes`; undefined removes one. */
export function go(changes, replace = false) {
  const hash = changed(changes);
  if (hash !== location.hash) {
    if (replace) history.replaceState(null, "", hash);
    else history.pushState(null, "", hash);
  }
  return show();
}

/** Notes something in the address that is shown already. */
export function note(changes) {
  history.replaceState(null, "", changed(changes));
}

const JUST_LOADED = 3000; // milliseconds

async function answer(name, query, signal) {
  let found;
  try {
    found = await fetch(`api/${name}?${new URLSearchParams(query)}`, { signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("penstock view no longer answers: was it ended?");
  }
  // The server opened changed files anew: their columns may be others. A page that was just loaded says so instead.
  if (found.status === 409 && performance.now() > JUST_LOADED) location.reload();
  if (!found.ok) throw new Error((await found.json()).error);
  return found;
}

/** The server's answer to a question. */
export async function ask(name, query = {}, signal = undefined) {
  return (await answer(name, query, signal)).json();
}

/** A place in a dataset and none beside it: the changes of the address that go there. */
export const place = (changes) => ({
  index: "", position: "", record: "", part: "", row: "", mark: "", mark_records: "", ...changes,
});

/** What goes to a document, at the `count` records from `record` on; at its beginning where that is null or 0. */
export const documentPlace = (document, record = null, count = 1) =>
  place({ kind: "document", index: document, ...(record ? { mark: record, mark_records: count } : {}) });

/** Lines of an answer as they come; `take(line)` is called with each. */
export async function listen(name, query, signal, take) {
  const reader = (await answer(name, query, signal)).body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      const found = JSON.parse(line);
      if (found.error) throw new Error(found.error);
      take(found);
    }
  }
}

/** Which documents, in which order, as the server's questions have it. */
export function filter(with_order = true) {
  const found = { dataset: wanted("dataset", "0") };
  for (const name of ["where", "shortest", "longest", ...(with_order ? ["sort", "descending"] : [])]) {
    const value = wanted(name);
    if (value) found[name] = value;
  }
  return found;
}
