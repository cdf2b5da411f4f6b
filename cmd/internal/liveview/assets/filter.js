// What sessions are looked for, and in which order they are shown. Pure.

/** @typedef {{session: string, cwd: string, workspace?: string, kernel?: string, state: string, owner?: string, rss?: number, cpu?: number | null, queue: number, done: number, restarts: number, pinned?: boolean, pid?: number, since: string, last_exit?: {kind: string, reason?: string}, level: string, why?: string, parent?: string, node?: string, order?: number}} Row */
/** @typedef {{key: string, op: string, value: string, number: number | null, whole?: boolean, not: boolean}} Term */

// The words of a filter, with what they look at.
/** @type {Record<string, (r: Row) => string | number>} */
const fields = {
  state: (r) => r.state, name: (r) => r.session, dir: (r) => r.cwd, cwd: (r) => r.cwd, owner: (r) => r.owner ?? "",
  workspace: (r) => r.workspace ?? "", ws: (r) => r.workspace ?? "", health: (r) => r.level || "well", exit: (r) => r.last_exit?.kind ?? "",
  parent: (r) => r.parent ?? "", node: (r) => r.node ?? "", pinned: (r) => (r.pinned ? "yes" : "no"),
  rss: (r) => r.rss ?? 0, memory: (r) => r.rss ?? 0, mem: (r) => r.rss ?? 0, cpu: (r) => r.cpu ?? 0, queue: (r) => r.queue, done: (r) => r.done,
  restarts: (r) => r.restarts, pid: (r) => r.pid ?? 0, age: (r) => (Date.now() - new Date(r.since).getTime()) / 1000,
};

/** words are the names that a filter knows. */
export const words = Object.keys(fields);

/** numberOf reads 100M, 1.5GiB, 10m, 30%. In an age m is minutes. @param {string} text @param {boolean} time @returns {number | null} */
export function numberOf(text, time) {
  const m = /^(\d+(?:\.\d+)?)\s*(%|[a-z]*)$/i.exec(text);
  if (!m) return null;
  const unit = m[2].toLowerCase();
  if (time) {
    const f = { "": 1, s: 1, m: 60, min: 60, h: 3600, d: 86_400 }[unit];
    return f === undefined ? null : Number(m[1]) * f;
  }
  const f = { "": 1, "%": 1, k: 2 ** 10, kb: 2 ** 10, kib: 2 ** 10, m: 2 ** 20, mb: 2 ** 20, mib: 2 ** 20, g: 2 ** 30, gb: 2 ** 30, gib: 2 ** 30 }[unit];
  return f === undefined ? null : Number(m[1]) * f;
}

/**
 * parse reads a filter: words that all have to be there, state:busy, rss:>100M, -owner:x,
 * node:=one for that alone;
 * quotes keep spaces. problems names what it does not understand.
 * @param {string} text
 * @returns {{terms: Term[], problems: string[]}}
 */
export function parse(text) {
  /** @type {Term[]} */
  const terms = [], problems = [];
  for (const part of text.match(/-?(?:[\w]+:)?(?:[<>=]=?)?(?:"[^"]*"?|[^\s"]+)|"[^"]*"?/g) ?? []) {
    const m = /^(-?)(?:([a-z]+):)?([<>]=?|=)?(.*)$/is.exec(part);
    if (!m) continue;
    let [, not, key = "", op = "", value] = m;
    key = key.toLowerCase();
    value = value.replaceAll('"', "");
    if (!key && op) { value = op + value; op = ""; }
    if (key && !fields[key]) { // a name may hold a colon
      problems.push(`${key}: is not known; there are ${["state", "name", "dir", "owner", "health", "rss", "cpu", "queue", "restarts", "age"].join(", ")}`);
      value = part.replace(/^-/, "").replaceAll('"', "");
      key = op = "";
    }
    if (!value) continue;
    const number = op ? numberOf(value, key === "age") : null;
    if (op === "=" && number === null) { terms.push({ key, op: "", value: value.toLowerCase(), number, whole: true, not: not === "-" }); continue; }
    if (op && number === null) { problems.push(`${part} compares with no number`); continue; }
    terms.push({ key, op, value: value.toLowerCase(), number, not: not === "-" });
  }
  return { terms, problems };
}

/** compare holds a number against a term. @param {number} have @param {string} op @param {number} want */
function compare(have, op, want) {
  switch (op) {
    case ">": return have > want;
    case ">=": return have >= want;
    case "<": return have < want;
    case "<=": return have <= want;
    default: return have === want;
  }
}

/** matches says whether a row is looked for. @param {Row} r @param {Term[]} terms */
export function matches(r, terms) {
  for (const t of terms) {
    let yes;
    if (!t.key) {
      const text = [r.session, r.cwd, r.workspace, r.state, r.owner, r.level, r.parent, r.node, r.pinned ? "pinned" : "", r.queue ? "waiting" : "", r.restarts ? "restarted" : "", r.last_exit?.kind].join(" ").toLowerCase();
      yes = text.includes(t.value);
    } else {
      const have = fields[t.key](r);
      if (t.op) yes = compare(Number(have), t.op, t.number ?? 0);
      else if (t.whole) yes = String(have).toLowerCase() === t.value;
      else if (typeof have === "number") yes = have === numberOf(t.value, t.key === "age");
      else yes = t.key === "state" || t.key === "pinned" || t.key === "health" ? have.toLowerCase() === t.value : have.toLowerCase().includes(t.value);
    }
    if (yes === t.not) return false;
  }
  return true;
}

const collator = new Intl.Collator("en", { numeric: true });
// From the worst on: who needs a person stands first.
/** @type {Record<string, number>} */
export const levels = { bad: 0, asks: 1, shaky: 2, "": 3 };
/** @type {Record<string, number>} */
const states = { failed: 0, suspended: 1, restarting: 2, stopping: 3, starting: 4, waiting: 5, busy: 6, idle: 7, hibernated: 9 };

/** @type {Record<string, (a: Row, b: Row) => number>} */
const orders = {
  health: (a, b) => (levels[a.level] ?? 3) - (levels[b.level] ?? 3),
  name: (a, b) => (a.order !== undefined && b.order !== undefined ? a.order - b.order : 0) || collator.compare(a.session, b.session), dir: (a, b) => collator.compare(a.cwd, b.cwd), owner: (a, b) => collator.compare(a.owner ?? "", b.owner ?? ""),
  workspace: (a, b) => collator.compare(a.workspace ?? "", b.workspace ?? ""),
  node: (a, b) => collator.compare(a.node ?? "", b.node ?? ""),
  state: (a, b) => (states[a.state] ?? 8) - (states[b.state] ?? 8), exit: (a, b) => collator.compare(a.last_exit?.kind ?? "", b.last_exit?.kind ?? ""),
  rss: (a, b) => (a.rss ?? 0) - (b.rss ?? 0), cpu: (a, b) => (a.cpu ?? -1) - (b.cpu ?? -1), queue: (a, b) => a.queue - b.queue, done: (a, b) => a.done - b.done,
  restarts: (a, b) => a.restarts - b.restarts, age: (a, b) => (a.since < b.since ? 1 : a.since > b.since ? -1 : 0), pid: (a, b) => (a.pid ?? 0) - (b.pid ?? 0),
};

/** sorts says whether rows can be sorted by a word. @param {string} by */
export const sorts = (by) => by.replace(/^-/, "") in orders;

/**
 * sort orders rows in place: by a word, downwards with a minus before it. Equal ones are
 * in the order of their names.
 * @param {Row[]} rows @param {string} by
 */
export function sort(rows, by) {
  const down = by.startsWith("-"), f = orders[by.replace(/^-/, "")] ?? orders.health;
  return rows.sort((a, b) => (down ? f(b, a) : f(a, b)) || (a.order !== undefined && b.order !== undefined ? a.order - b.order : collator.compare(a.session, b.session) || collator.compare(a.cwd, b.cwd)));
}

/**
 * hold says which row keys act on when the list is another. When that row is gone there is
 * none, until a person moves: what follows it has its place, and was not meant. at is where it
 * was. anew says that a person has asked for another list.
 * @param {{id: string}[]} list @param {{id: string | null, at: number, lost: boolean}} was @param {boolean} [anew]
 * @returns {{id: string | null, at: number, lost: boolean}}
 */
export function hold(list, was, anew) {
  const at = was.id === null ? -1 : list.findIndex((s) => s.id === was.id);
  if (at >= 0) return { id: was.id, at, lost: false };
  if (anew || was.id === null && !was.lost) return { id: list[0]?.id ?? null, at: 0, lost: false };
  return { id: null, at: was.at, lost: true };
}

/**
 * moved is the row to which a key moves, null for another key. From a row that is gone the
 * way down leads to the one in its place.
 * @param {string} key @param {{id: string | null, at: number}} from @param {number} page @param {number} length
 * @returns {number | null}
 */
export function moved(key, from, page, length) {
  /** @type {Record<string, number>} */
  const steps = { ArrowDown: from.id === null ? from.at : from.at + 1, ArrowUp: from.at - 1, PageDown: from.at + page, PageUp: from.at - page, Home: 0, End: length - 1 };
  return steps[key] ?? null;
}
