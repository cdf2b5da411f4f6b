// The supervision tree, with health that rolls up: who is above something that needs a
// person shows it.
import { $, Keep, attribute, element, klass, on, put, set } from "./dom.js";
import { levels } from "./filter.js";
import { go, toSession } from "./route.js";
import { listen, refresh, state } from "./state.js";
import { bytes, exitOf, healthOf, many, shortName, span } from "./words.js";

const PAGE = 50; // sessions that are shown at once, and that one step adds
const byName = new Intl.Collator("en", { numeric: true });

/** @type {Keep<any>} */
const items = new Keep();
/** @type {Set<string>} */
const closed = new Set();
let most = PAGE, shown = false;
/** @type {string | null} */
let focused = null;

/** showTree begins to show it. */
export function showTree() { shown = true; state.wantTree = true; refresh().catch(() => {}); drawTree(); } // watch tells of it

/** leaveTree ends that. */
export function leaveTree() { shown = state.wantTree = false; }

/** clearTree forgets what was drawn. */
export function clearTree() { items.clear(); closed.clear(); most = PAGE; focused = null; $("tree").replaceChildren(); }

const worse = (/** @type {string} */ a, /** @type {string} */ b) => ((levels[a] ?? 3) <= (levels[b] ?? 3) ? a : b);

/** levelOf is the worst of a node and of all below it. @param {any} node @returns {string} */
export function levelOf(node) {
  const one = node.kind === "kernel" ? state.sessions.get(node.name) : null;
  let level = one?.level ?? "";
  if (["failed", "suspended", "restarting"].includes(node.state)) level = "bad";
  else if (!one && node.kind === "server" && node.restarts >= 3) level = "shaky";
  if (node.abandoned?.length) level = "bad";
  for (const c of node.children ?? []) level = worse(levelOf(c), level);
  return level;
}

/** drawTree draws the view. */
export function drawTree() {
  if (!shown || !state.tree) return;
  const root = $("tree"), had = root.contains(document.activeElement);
  put(root, [item(state.tree, "", 1, 1, 1)]);
  items.sweep();
  const all = visible(), mine = all.find((i) => i.dataset.path === focused) ?? all[0];
  if (!mine) return;
  for (const i of all) if (i.tabIndex !== -1 && i !== mine) i.tabIndex = -1;
  mine.tabIndex = 0;
  focused = mine.dataset.path ?? null;
  if (had && document.activeElement !== mine) mine.focus({ preventScroll: true });
}

/** @param {any} node @param {string} parent @param {number} level @param {number} size @param {number} place @returns {any} */
function item(node, parent, level, size, place) {
  const path = parent ? parent + "/" + node.name : node.name;
  const made = items.get(path, () => {
    const li = element("li"), row = element("div", "node"), parts = { li, dot: element("span", "dot"), name: element("span", "name"), state: element("span", "state"), more: element("span", "more"), ul: element("ul") };
    li.setAttribute("role", "treeitem");
    li.tabIndex = -1;
    li.dataset.path = path;
    parts.ul.setAttribute("role", "group");
    row.append(parts.dot, parts.name, parts.state, parts.more);
    li.append(row);
    return parts;
  });
  const { li } = made, one = node.kind === "kernel" ? state.sessions.get(node.name) : null, health = levelOf(node);
  attribute(li, "aria-level", level);
  attribute(li, "aria-setsize", size);
  attribute(li, "aria-posinset", place);
  const word = healthOf(health), more = [], steady = [one ? one.session : node.name, one?.state ?? node.state];
  if (word) steady.push(word);
  const q = one?.mark?.question;
  if (q) more.push(q.until ? `waits for an answer, ${span(Math.max(0, new Date(q.until).getTime() - Date.now()))} left` : "waits for an answer");
  else if (one?.why) more.push(one.why.split("\n")[0]);
  if (node.queue) more.push(node.queue + " waiting");
  if (one?.rss ?? node.rss) more.push(bytes(one?.rss ?? node.rss));
  if (node.restarts) { more.push(many(node.restarts, "restart")); steady.push(many(node.restarts, "restart")); }
  if (node.pinned) { more.push("pinned"); steady.push("pinned"); }
  if (!one && node.last_exit && node.last_exit.kind !== "normal") more.push("last end: " + exitOf(node.last_exit));
  if (node.detail && !one) more.push(node.detail.split("\n")[0]);
  klass(made.dot, "dot l-" + (health || "well"));
  set(made.name, one ? shortName(one.session) : node.name);
  if (one) made.name.title = one.session + " in " + one.cwd;
  set(made.state, one?.state ?? node.state);
  klass(made.state, "state s-" + (one?.state ?? node.state));
  set(made.more, more.join(" · "));
  attribute(li, "aria-label", steady.join(", ")); // without what changes all the time, and without what is below
  if (one) li.dataset.session = node.name;
  below(node, made, path, level);
  return li;
}

/** below draws the children of a node. @param {any} node @param {any} made @param {string} path @param {number} level */
function below(node, made, path, level) {
  // Eight sinks that only make results say nothing to a person.
  let list = (node.children ?? []).filter((/** @type {any} */ c) => c.kind !== "result"), hidden = 0, kernels = 0;
  if (list.some((/** @type {any} */ c) => c.kind === "kernel")) {
    const rank = new Map(list.map((/** @type {any} */ c) => [c.name, levels[levelOf(c)] ?? 3]));
    list = list.sort((/** @type {any} */ a, /** @type {any} */ b) => Number(a.kind === "kernel") - Number(b.kind === "kernel") || rank.get(a.name) - rank.get(b.name) || byName.compare(a.name, b.name))
      .filter((/** @type {any} */ c) => c.kind !== "kernel" || ++kernels <= most || (hidden++, false));
  }
  if (!list.length && !hidden) { made.li.removeAttribute("aria-expanded"); made.ul.remove(); return; }
  const open = !closed.has(path);
  attribute(made.li, "aria-expanded", open);
  if (!open) { made.ul.remove(); return; }
  const all = list.length + (hidden ? 1 : 0), drawn = list.map((/** @type {any} */ c, /** @type {number} */ i) => item(c, path, level + 1, all, i + 1));
  if (hidden) drawn.push(rest(path, level + 1, all, hidden));
  put(made.ul, drawn);
  if (made.ul.parentElement !== made.li) made.li.append(made.ul);
}

/** rest is the item that shows more sessions. @param {string} parent @param {number} level @param {number} place @param {number} hidden */
function rest(parent, level, place, hidden) {
  const made = items.get(parent + "/ more", () => {
    const li = element("li"), row = element("div", "node"), name = element("span", "name");
    li.setAttribute("role", "treeitem");
    li.tabIndex = -1;
    li.dataset.path = parent + "/ more";
    li.dataset.rest = "";
    row.append(name);
    li.append(row);
    return { li, name };
  });
  attribute(made.li, "aria-level", level);
  attribute(made.li, "aria-setsize", place);
  attribute(made.li, "aria-posinset", place);
  set(made.name, `Show ${Math.min(PAGE, hidden)} of ${hidden} more`);
  attribute(made.li, "aria-label", made.name.textContent);
  return made.li;
}

/** @returns {any[]} */
const visible = () => [...$("tree").querySelectorAll("[role=treeitem]")];

/** @param {any} target */
function move(target) {
  if (!target) return;
  visible().forEach((i) => { i.tabIndex = -1; });
  target.tabIndex = 0;
  focused = target.dataset.path;
  target.focus();
}

/** @param {any} e */
function treeKey(e) {
  const at = e.target.closest("[role=treeitem]");
  if (!at || e.ctrlKey || e.metaKey || e.altKey) return;
  const all = visible(), i = all.indexOf(at), open = at.getAttribute("aria-expanded");
  const fold = (/** @type {boolean} */ shut) => { if (shut) closed.add(at.dataset.path); else closed.delete(at.dataset.path); drawTree(); };
  switch (e.key) {
    case "ArrowDown": move(all[i + 1]); break;
    case "ArrowUp": move(all[i - 1]); break;
    case "Home": move(all[0]); break;
    case "End": move(all.at(-1)); break;
    case "ArrowRight": if (open === "false") fold(false); else if (open === "true") move(all[i + 1]); break;
    case "ArrowLeft": if (open === "true") fold(true); else move(at.parentElement.closest("[role=treeitem]")); break;
    case "Enter": case " ": choose(at); break;
    default: return;
  }
  e.preventDefault();
}

/** @param {any} at */
function choose(at) {
  if (at?.dataset.rest !== undefined) {
    // The first that this brings into view takes the place of what was chosen.
    const before = at.previousElementSibling?.dataset.path;
    most += PAGE;
    drawTree();
    move(visible().find((i) => i.dataset.path === before)?.nextElementSibling);
    return;
  }
  const one = state.sessions.get(at?.dataset.session ?? "");
  if (one) go(toSession(one));
}

/** startTree connects the tree, once. */
export function startTree() {
  on("tree", "keydown", treeKey);
  on("tree", "click", (e) => {
    const at = e.target.closest("[role=treeitem]");
    if (at) { move(at); choose(at); }
  });
  listen(drawTree);
}
