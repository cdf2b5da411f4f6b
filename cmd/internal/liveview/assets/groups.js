// The sessions by node and by workspace, and the columns of the table that a person wants.
import { $, attribute, element, hide, klass, link, put, set } from "./dom.js";
import { levels } from "./filter.js";
import { bytes, many, nodeName } from "./words.js";

/** @typedef {import("./filter.js").Row} Row */
/** @typedef {{field: string, name: string, sessions: number, busy: number, rss: number, level: string, troubled: number}} Group */

const MOST = 12; // groups of a kind that are shown

/**
 * groupsOf are the groups of the rows by a field, those first that need a person most, then
 * the largest. Rows that are in none are left out. Pure.
 * @param {Iterable<Row>} rows @param {"node" | "workspace"} field
 * @returns {Group[]}
 */
export function groupsOf(rows, field) {
  /** @type {Map<string, Group>} */
  const all = new Map();
  for (const r of rows) {
    const name = r[field];
    if (!name) continue;
    let g = all.get(name);
    if (!g) all.set(name, g = { field, name, sessions: 0, busy: 0, rss: 0, level: "", troubled: 0 });
    g.sessions++;
    if (r.state === "busy") g.busy++;
    g.rss += r.rss ?? 0;
    if (r.level) g.troubled++;
    if ((levels[r.level] ?? 3) < (levels[g.level] ?? 3)) g.level = r.level;
  }
  return [...all.values()].sort((a, b) => (levels[a.level] ?? 3) - (levels[b.level] ?? 3) || b.sessions - a.sessions || (a.name < b.name ? -1 : 1));
}

/** term is what finds the sessions of a group. @param {Group} g */
export const term = (g) => `${g.field}:=${/^[\w.~-]+$/.test(g.name) ? g.name : `"${g.name.replaceAll('"', "")}"`}`;

/** @type {Map<string, any>} */
const made = new Map();

/**
 * drawGroups shows those of all sessions, each as a link to its own. One node alone is no
 * group. @param {Iterable<Row>[]} some @param {string} filter @param {(filter: string) => string} address
 */
export function drawGroups(some, filter, address) {
  const rows = some.flatMap((s) => [...s]), parts = [];
  for (const [field, title, least] of /** @type {["node" | "workspace", string, number][]} */ ([["node", "Nodes", 2], ["workspace", "Workspaces", 1]])) {
    const groups = groupsOf(rows, field);
    if (groups.length < least) continue;
    parts.push(part(field + "/", () => element("strong", "", title)));
    for (const g of groups.slice(0, MOST)) {
      const a = part(field + "/" + g.name, () => link("", "")), here = filter.split(/\s+/).includes(term(g)) || filter === term(g);
      set(a, `${field === "node" ? nodeName(g.name) : g.name} ${g.sessions}`);
      klass(a, "group l-" + (g.level || "well"));
      attribute(a, "href", address(here ? "" : term(g)));
      if (here) attribute(a, "aria-current", "true"); else if (a.hasAttribute("aria-current")) a.removeAttribute("aria-current");
      const about = [many(g.sessions, "session"), g.busy ? g.busy + " busy" : "", g.troubled ? g.troubled + " to look at" : "", bytes(g.rss)].filter(Boolean).join(", ");
      attribute(a, "title", `${field} ${g.name}: ${about}`);
      parts.push(a);
    }
    if (groups.length > MOST) {
      const more = part(field + "/more/", () => element("span", "muted"));
      set(more, `and ${groups.length - MOST} more: ${field}:…`);
      parts.push(more);
    }
  }
  put($("groups"), parts);
  hide($("groups"), !parts.length);
  if (made.size > 4 * parts.length + 100) made.clear();
}

/** @param {string} key @param {() => any} make */
function part(key, make) {
  let e = made.get(key);
  if (!e) made.set(key, e = make());
  return e;
}

const KEY = "coppice-columns";
/** @type {Set<string>} */
let away = new Set();

/** hidden are the columns that are not shown, for the address. */
export const hidden = () => [...away].join(",");

/** hideColumns is called with what the address says; null: it says nothing. @param {string | null} ids */
export function hideColumns(ids) {
  away = new Set((ids ?? sessionStorage.getItem(KEY) ?? "").split(",").filter((id) => $("columns-list").querySelector(`input[value="${CSS.escape(id)}"]`)));
  drawColumns();
}

function drawColumns() {
  for (const box of $("columns-list").querySelectorAll("input")) {
    box.checked = !away.has(box.value);
    $("grid").classList.toggle("no-" + box.value, away.has(box.value));
  }
}

/** startColumns offers the columns that may be hidden. @param {{id: string, title: string}[]} columns @param {() => void} changed */
export function startColumns(columns, changed) {
  for (const c of columns) {
    const label = element("label"), box = element("input");
    box.type = "checkbox";
    box.value = c.id;
    box.checked = true;
    label.append(box, " " + c.title);
    $("columns-list").append(label);
    box.addEventListener("change", () => {
      if (box.checked) away.delete(c.id); else away.add(c.id);
      sessionStorage.setItem(KEY, hidden());
      drawColumns();
      changed();
    });
  }
}
