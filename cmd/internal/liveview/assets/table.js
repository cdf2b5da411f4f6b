// The sessions as a table. Only the rows that are in sight are in the page, so that ten
// thousand cost no more than fifty.
import { $, attribute, element, hide, klass, on, set } from "./dom.js";
import { act, actions } from "./actions.js";
import { drawGroups, hidden, hideColumns, startColumns } from "./groups.js";
import { hold, levels, matches, moved, parse, sort, sorts, words } from "./filter.js";
import { go, rewrite, to, toSession } from "./route.js";
import { listen, sessionOf, state } from "./state.js";
import { ago, bytes, exitOf, many, nodeName, places, shortName } from "./words.js";

/** @typedef {import("./state.js").Session} Session */

const OVER = 6; // rows beyond what is in sight

/** @type {{id: string, title: string, cls: string, text: (s: Session) => string, long?: (s: Session) => string}[]} */
const columns = [
  { id: "health", title: "Health", cls: "c-health", text: (s) => ({ bad: "down", asks: "asks", shaky: "look" }[s.level] ?? "well"), long: (s) => s.why ?? "" },
  { id: "name", title: "Session", cls: "c-name", text: (s) => shortName(s.session), long: (s) => s.session + " in " + s.cwd + (s.parent ? `, a copy of ${s.parent}` : "") },
  { id: "dir", title: "Directory", cls: "c-dir", text: (s) => where.get(s.cwd) ?? s.cwd, long: (s) => s.cwd },
  { id: "state", title: "State", cls: "c-state", text: (s) => s.state, long: (s) => s.detail ?? (s.hibernated ? `${bytes(s.hibernated.bytes) || "nothing"} on disk; its next call restores it` : "") },
  { id: "age", title: "For", cls: "c-age num", text: (s) => ago(s.since) },
  { id: "queue", title: "Waiting", cls: "c-queue num", text: (s) => (s.queue ? String(s.queue) : "") },
  { id: "done", title: "Calls", cls: "c-done num", text: (s) => String(s.done) },
  { id: "rss", title: "Memory", cls: "c-rss num", text: (s) => bytes(s.rss) },
  { id: "cpu", title: "CPU", cls: "c-cpu num", text: (s) => (s.cpu === null || s.cpu === undefined ? "" : s.cpu.toFixed(0) + " %") },
  { id: "restarts", title: "Restarts", cls: "c-restarts num", text: (s) => (s.restarts ? String(s.restarts) : "") },
  { id: "workspace", title: "Workspace", cls: "c-workspace", text: (s) => s.workspace ?? "", long: (s) => s.workspace ?? "" },
  { id: "node", title: "Node", cls: "c-node", text: (s) => nodeName(s.node ?? ""), long: (s) => s.node ?? "" },
  { id: "owner", title: "Owner", cls: "c-owner", text: (s) => s.owner ?? "", long: (s) => s.owner ?? "" },
  { id: "exit", title: "Last end", cls: "c-exit", text: (s) => exitOf(s.last_exit), long: (s) => exitOf(s.last_exit) },
];

/** @type {Map<string, string>} */
let where = new Map();
/** @type {Session[]} */
let list = [];
/** @type {string | null} */
let active = null; // the id of the row that keys act on
let spot = 0, lost = false, anew = true; // where it is, or was when it was lost; whether another list was asked for
/** @type {string | null} */
let anchor = null; // where a selection of several began
/** @type {Set<string>} */
const chosen = new Set();
let by = "health", filter = "", shown = false, rowHeight = 0, drawnFirst = 0, scrolling = 0, cost = 0, last = 0;
/** @type {any} */
let waiting = null;
/** @type {any[]} */
const pool = [];

/** show goes to the table with what its address says. @param {URLSearchParams} params */
export function showTable(params) {
  shown = true;
  filter = params.get("q") ?? "";
  anew = true;
  by = sorts(params.get("sort") ?? "") ? String(params.get("sort")) : "health";
  if ($("find").value !== filter) $("find").value = filter;
  hideColumns(params.get("hide"));
  rowHeight = 0;
  drawTable();
}

/** leaveTable says that it is not shown. */
export function leaveTable() { shown = false; }

/** clearTable forgets who was chosen. */
export function clearTable() { chosen.clear(); active = anchor = null; lost = false; anew = true; list = []; filter = ""; $("find").value = ""; }

/** address is that of the table as it is, or with another filter. */
const address = (q = filter) => to("sessions", "", { q, sort: by === "health" ? "" : by, hide: hidden() });

/** drawTable finds, sorts and draws. */
export function drawTable() {
  if (!shown) return;
  last = performance.now();
  const { terms, problems } = parse(filter);
  list = [];
  let nodes = false, places = false;
  for (const some of [state.sessions, state.asleep]) for (const s of some.values()) { nodes ||= Boolean(s.node); places ||= Boolean(s.workspace); if (matches(s, terms)) list.push(s); }
  $("grid").classList.toggle("nodes", nodes);
  $("grid").classList.toggle("workspaces", places);
  drawGroups(nodes || places ? [state.sessions.values(), state.asleep.values()] : [], filter, address);
  sort(list, by);
  locate();
  for (const id of chosen) if (!sessionOf(id)) chosen.delete(id);
  ({ id: active, at: spot, lost } = hold(list, { id: active, at: spot, lost }, anew));
  anew = anew && !list.length;
  for (const th of $("head").children) {
    const id = th.dataset.by;
    attribute(th, "aria-sort", id === by.replace(/^-/, "") ? (by.startsWith("-") ? "descending" : "ascending") : "none");
  }
  const all = state.sessions.size + state.asleep.size;
  set($("count"), filter ? `${list.length.toLocaleString("en")} of ${many(all, "session")}` : many(all, "session"));
  set($("find-problem"), problems.join("; "));
  hide($("no-sessions"), list.length > 0 || !state.asked);
  if (!list.length) set($("no-sessions"), all ? "No session is like that. Escape clears the filter." : "No session has a kernel. Start one here, or with coppice run --session NAME -c CODE.");
  attribute($("grid"), "aria-rowcount", list.length + 1);
  drawRows();
  drawBulk();
  cost = performance.now() - last;
}

/** locate says how the directories are told apart, when there is a new one. */
function locate() {
  for (const s of list) if (!where.has(s.cwd)) { where = places([...state.sessions.values(), ...state.asleep.values()].map((one) => one.cwd)); return; }
}

/** drawRows draws those that are in sight. */
function drawRows() {
  const box = $("rows-box"), body = $("rows");
  rowHeight ||= parseFloat(getComputedStyle(document.documentElement).getPropertyValue("--row")) || 30;
  const first = Math.max(0, Math.floor(box.scrollTop / rowHeight) - OVER), n = Math.min(list.length - first, Math.ceil((box.clientHeight || 600) / rowHeight) + 2 * OVER);
  while (pool.length < n) pool.push(row());
  // What scrolls out at one end comes in at the other: the rows between stay as they are.
  for (let moves = Math.min(pool.length, first - drawnFirst); moves > 0; moves--) { const r = pool.shift(); pool.push(r); if (r.tr.isConnected) body.append(r.tr); }
  for (let moves = Math.min(pool.length, drawnFirst - first); moves > 0; moves--) { const r = pool.pop(); pool.unshift(r); body.prepend(r.tr); }
  drawnFirst = first;
  let after = null;
  for (let i = 0; i < n; i++) {
    fill(pool[i], list[first + i], first + i);
    if (!pool[i].tr.isConnected) body.insertBefore(pool[i].tr, after ? after.nextSibling : body.firstChild);
    after = pool[i].tr;
  }
  for (let i = Math.max(0, n); i < pool.length && pool[i].tr.isConnected; i++) pool[i].tr.remove();
  const above = first * rowHeight, below = Math.max(0, list.length - first - n) * rowHeight;
  if ($("space-above").style.height !== above + "px") $("space-above").style.height = above + "px";
  if ($("space-below").style.height !== below + "px") $("space-below").style.height = below + "px";
  const at = pool.findIndex((r, i) => i < n && r.id === active);
  if (at >= 0) attribute($("grid"), "aria-activedescendant", pool[at].tr.id); else if ($("grid").hasAttribute("aria-activedescendant")) $("grid").removeAttribute("aria-activedescendant");
}

/** row makes one that can show any session. */
function row() {
  const tr = element("tr"), mark = element("td", "c-mark"), box = element("span", "box");
  tr.id = "row-" + pool.length;
  box.setAttribute("aria-hidden", "true");
  mark.append(box);
  tr.append(mark);
  const cells = columns.map((c) => {
    const td = element("td", c.cls);
    const e = c.id === "name" ? td.appendChild(element("a")) : td;
    if (c.id === "name") e.tabIndex = -1;
    tr.append(td);
    return e;
  });
  return { tr, cells, box, id: "" };
}

/** @param {any} r @param {Session} s @param {number} at */
function fill(r, s, at) {
  const id = s.id, on = chosen.has(id);
  if (r.id !== id) { r.id = id; r.tr.dataset.session = id; }
  klass(r.tr, `${id === active ? "active " : ""}${on ? "chosen " : ""}l-${s.level || "well"}`);
  attribute(r.tr, "aria-rowindex", at + 2);
  attribute(r.tr, "aria-selected", on);
  columns.forEach((c, i) => {
    const text = c.text(s), e = r.cells[i];
    if (e.firstChild) { if (e.firstChild.nodeValue !== text) e.firstChild.nodeValue = text; } else e.append(document.createTextNode(text));
    if (c.long) { const long = c.long(s); if (e.title !== long) e.title = long; }
    if (c.id === "state") klass(e, "c-state s-" + s.state);
    if (c.id === "name") attribute(e, "href", toSession(s));
  });
}

function drawBulk() {
  const some = [...chosen].map(sessionOf).filter(Boolean);
  hide($("bulk"), !some.length);
  const all = $("choose-all");
  all.checked = some.length > 0 && list.every((s) => chosen.has(s.id));
  all.indeterminate = some.length > 0 && !all.checked;
  if (!some.length) return;
  set($("bulk-count"), `${many(some.length, "session")} chosen`);
  for (const b of $("bulk").querySelectorAll("[data-act]")) {
    const a = actions.find((x) => x.name === b.dataset.act), n = some.filter((s) => !a?.why(/** @type {Session} */ (s))).length;
    hide(b, n === 0);
    set(b, n === some.length ? a?.label ?? "" : `${a?.label} (${n})`);
  }
}

/** moveTo makes a row the active one, and brings it into sight. @param {number} at @param {boolean} [extend] */
function moveTo(at, extend) {
  if (!list.length) return;
  at = Math.min(list.length - 1, Math.max(0, at));
  if (extend) {
    anchor ??= active;
    const from = list.findIndex((s) => s.id === anchor);
    for (let i = Math.min(from, at); i <= Math.max(from, at); i++) if (i >= 0) chosen.add(list[i].id);
  } else anchor = null;
  [active, spot, lost] = [list[at].id, at, false];
  const box = $("rows-box"), head = $("head").offsetHeight, top = at * rowHeight;
  if (top < box.scrollTop) box.scrollTop = top;
  else if (top + rowHeight > box.scrollTop + box.clientHeight - head) box.scrollTop = top + rowHeight - box.clientHeight + head;
  drawRows();
  drawBulk();
}

/** @param {string} id */
function toggle(id) { if (chosen.has(id)) chosen.delete(id); else chosen.add(id); }

/** @param {KeyboardEvent} e */
function gridKey(e) {
  if (/** @type {Element} */ (e.target).id === "choose-all") return;
  const at = list.findIndex((s) => s.id === active), page = Math.max(1, Math.floor($("rows-box").clientHeight / rowHeight) - 2);
  if ((e.ctrlKey || e.metaKey) && e.key === "a") { e.preventDefault(); list.forEach((s) => chosen.add(s.id)); drawRows(); drawBulk(); return; }
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  const next = moved(e.key, { id: at < 0 ? null : active, at: at < 0 ? spot : at }, page, list.length);
  /** @type {Record<string, string>} */
  const keys = { i: "interrupt", r: "reset", p: "pin", u: "unpin", f: "fork", x: "stop", Delete: "stop" };
  if (next !== null) moveTo(next, e.shiftKey);
  else if (e.key === " " && active) { toggle(active); anchor = null; drawRows(); drawBulk(); }
  else if (e.key === "Enter" && list[at]) go(toSession(list[at]));
  else if (e.key === "Escape" && chosen.size) { chosen.clear(); drawRows(); drawBulk(); }
  else if (keys[e.key] && (chosen.size || list[at])) doIt(keys[e.key], chosen.size ? null : list[at]);
  else return;
  e.preventDefault();
}

/** @param {string} name @param {Session | null} one null: those that are chosen */
async function doIt(name, one) {
  const some = one ? [one] : /** @type {Session[]} */ ([...chosen].map(sessionOf).filter(Boolean));
  if (await act(name, some) && !one) chosen.clear();
  drawTable();
}

/** @param {string} next */
function sortBy(next) {
  const numeric = columns.find((c) => c.id === next)?.cls.includes("num");
  by = by === next ? "-" + next : by === "-" + next ? next : numeric ? "-" + next : next;
  if (by === "-health" && levels) by = "health"; // the worst first, always
  rewrite(address());
  drawTable();
}

/** startTable connects the table, once. */
export function startTable() {
  const head = $("head");
  const all = $("choose-all");
  all.addEventListener("change", () => { if (all.checked) list.forEach((s) => chosen.add(s.id)); else chosen.clear(); drawRows(); drawBulk(); });
  for (const c of columns) {
    const th = element("th", c.cls), b = element("button", "sort", c.title);
    th.scope = "col";
    th.dataset.by = c.id;
    b.type = "button";
    b.addEventListener("click", () => sortBy(c.id));
    th.append(b);
    head.append(th);
  }
  startColumns(columns.filter((c) => c.id !== "health" && c.id !== "name"), () => rewrite(address()));
  $("find").setAttribute("title", "words: " + words.join(", "));
  on("rows-box", "scroll", () => { scrolling ||= requestAnimationFrame(() => { scrolling = 0; drawRows(); }); });
  on("grid", "keydown", gridKey);
  on("grid", "click", (e) => {
    const tr = e.target.closest("tr[data-session]");
    if (!tr || e.target.closest("a")) return;
    [active, lost] = [tr.dataset.session, false];
    if (e.target.closest(".c-mark") || e.ctrlKey || e.metaKey) toggle(tr.dataset.session);
    else if (e.shiftKey) { moveTo(list.findIndex((s) => s.id === tr.dataset.session), true); return; }
    else { const s = sessionOf(tr.dataset.session); if (s) go(toSession(s)); }
    drawRows();
    drawBulk();
  });
  on("find", "input", () => { filter = $("find").value; anew = true; $("rows-box").scrollTop = 0; rewrite(address()); drawTable(); });
  on("find", "keydown", (e) => {
    if (e.key === "Escape") { $("find").value = filter = ""; anew = true; rewrite(address()); drawTable(); }
    else if (e.key === "ArrowDown") { e.preventDefault(); $("grid").focus(); }
    else if (e.key === "Enter") { e.preventDefault(); if (list[0]) go(toSession(list[0])); }
  });
  on("bulk", "click", (e) => {
    if (e.target.dataset.act) doIt(e.target.dataset.act, null);
    else if (e.target.id === "bulk-all") { list.forEach((s) => chosen.add(s.id)); drawRows(); drawBulk(); }
    else if (e.target.id === "bulk-none") { chosen.clear(); drawRows(); drawBulk(); $("grid").focus(); }
  });
  new ResizeObserver(() => { if (shown) { rowHeight = 0; drawRows(); } }).observe($("rows-box"));
  listen(() => {
    // With thousands of rows a draw takes its time: it gets a fifth of it at most.
    if (!shown || waiting) return;
    waiting = setTimeout(() => { waiting = null; drawTable(); }, Math.max(0, last + 5 * cost - performance.now()));
  });
}
