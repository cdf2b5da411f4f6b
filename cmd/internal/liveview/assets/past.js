// What happened, by pages of the server: the newest that fit, then older ones, and what
// comes in meanwhile.
import { $, element, hide, link, on, put, set } from "./dom.js";
import { call } from "./api.js";
import { rewrite, to, toExecution, toSession } from "./route.js";
import { listen, state } from "./state.js";
import { happened, keyOf, many, moment, shortName } from "./words.js";

const PAGE = 200, MOST = 2000;
const ROOM = 2 * PAGE; // events that come in and are kept, until a person asks for older ones

/** @type {any[]} */
let list = []; // the oldest first
let shown = false, more = false, asked = 0, seen = 0, newest = 0, forgotten = 0, failed = "", ready = false, room = ROOM, cost = 0, last = 0;
/** @type {any} */
let timer = null;
/** @type {any} */
let waiting = null;
/** @type {WeakMap<any, Element>} */
let made = new WeakMap();

/** showPast begins to show it. @param {URLSearchParams} params */
export function showPast(params) {
  shown = true;
  for (const name of ["filter", "since", "until"]) {
    const f = $({ filter: "find-events", since: "events-since", until: "events-until" }[name] ?? ""), value = params.get(name) ?? "";
    if (f.value !== value) f.value = value;
  }
  ask();
}

/** leavePast ends that. */
export function leavePast() { shown = false; clearTimeout(timer); }

/** clearPast forgets what was drawn. */
export function clearPast() { leavePast(); list = []; made = new WeakMap(); newest = seen = 0; ready = false; $("events").replaceChildren(); }

/** wanted is what is looked for. */
function wanted() {
  const at = (/** @type {string} */ id) => { const v = $(id).value, d = v ? new Date(v) : null; return d && !Number.isNaN(d.getTime()) ? d : null; };
  return { words: $("find-events").value.toLowerCase().split(/\s+/).filter(Boolean), since: at("events-since"), until: at("events-until") };
}

/** fits says whether something that came in is looked for, as the server would. @param {any} c @param {ReturnType<typeof wanted>} w */
function fits(c, w) {
  const at = new Date(c.at);
  if (w.since && at < w.since || w.until && at > w.until) return false;
  if (!w.words.length) return true;
  /** @type {string[]} */
  const all = [];
  const visit = (/** @type {any} */ v) => {
    if (typeof v === "string") all.push(v, keyOf(v)?.session ?? "");
    else if (v && typeof v === "object") Object.values(v).forEach(visit);
  };
  visit([c.type, c.tree, c.execution]);
  const text = all.join("\n").toLowerCase();
  return w.words.every((/** @type {string} */ word) => text.includes(word));
}

/** ask reads a page: the newest, or with before the one before that. @param {number} [before] */
async function ask(before) {
  const mine = ++asked, w = wanted(), query = new URLSearchParams({ limit: String(PAGE) });
  if (w.words.length) query.set("filter", w.words.join(" ").slice(0, 200));
  if (w.since) query.set("since", w.since.toISOString());
  if (w.until) query.set("until", w.until.toISOString());
  if (before) query.set("before", String(before));
  const counted = state.eventsSeen;
  try {
    const got = await call("GET", "/api/events?" + query);
    if (mine !== asked || !shown) return;
    list = before ? [...got.events, ...list].slice(-MOST) : got.events;
    room = before ? Math.min(MOST, list.length + PAGE) : ROOM;
    more = got.more && list.length < MOST;
    forgotten = got.forgotten ?? 0;
    if (!before) [newest, seen, ready] = [got.newest, counted, true];
    failed = "";
  } catch (err) {
    if (mine !== asked || !shown) return;
    failed = /** @type {Error} */ (err).message;
  }
  take();
}

/** take puts in what came since. */
function take() {
  if (!shown) return;
  const n = state.eventsSeen - seen, w = wanted(), fresh = n > 0 ? state.events.slice(-n) : [];
  if (ready && (n < 0 || n > state.events.length)) { ready = false; ask(); return; } // more came than the page keeps
  seen = state.eventsSeen;
  let again = false;
  for (const c of fresh) {
    if (c.type === "restarted" || c.type === "missed") again = true;
    else if (c.seq > newest) { newest = c.seq; if (fits(c, w)) list.push(c); }
  }
  if (list.length > room) { list = list.slice(-room); more = room < MOST; }
  if (again) { clearTimeout(timer); timer = setTimeout(ask, 100); }
  draw();
}

function draw() {
  last = performance.now();
  const w = wanted(), all = [...list, ...state.events.filter((c) => c.type === "restarted" && fits(c, w))].sort( // which no server knows of itself
    (a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : (a.seq ?? 0) - (b.seq ?? 0)));
  set($("events-state"), failed ? "They could not be read: " + failed : state.paused ? `Paused; ${state.held.length} new` : many(all.length, "event") + (more ? ", and older ones" : ""));
  hide($("more-events"), !more);
  hide($("no-events"), all.length > 0 || Boolean(failed));
  set($("events-cut"), !more && forgotten && !$("events-since").value ? `Of ${many(forgotten, "older event")} only ends, restarts and failures are kept.` : "");
  put($("events"), all.reverse().map((c) => { const e = made.get(c) ?? eventOf(c); made.set(c, e); return e; }));
  cost = performance.now() - last;
}

/** eventOf is one event in the list. @param {any} c */
function eventOf(c) {
  const li = element("li"), at = new Date(c.at), time = element("time", "", moment(at)), key = c.execution ?? keyOf(c.tree?.key ?? "");
  time.dateTime = c.at;
  time.title = (c.seq ? `event ${c.seq}, ` : "") + at.toLocaleString();
  li.append(time);
  const text = happened(c), name = key ? shortName(key.session) : "";
  if (key && text.startsWith(name)) li.append(link(c.execution ? toExecution(c.execution.id) : toSession(key), name || "(no name)"), document.createTextNode(text.slice(name.length)));
  else li.append(document.createTextNode(text));
  if (c.tree?.exit && !["normal", "shutdown", "evicted", "hibernated", "reset"].includes(c.tree.exit.kind) || c.execution?.outcome && c.execution.outcome !== "ok") li.className = "bad";
  return li;
}

/** startPast connects it, once. */
export function startPast() {
  listen(() => { // many at once are drawn together, and a draw gets a fifth of the time at most
    if (shown) waiting ??= setTimeout(() => { waiting = null; take(); }, Math.max(0, last + 5 * cost - performance.now()));
  });
  const search = () => {
    rewrite(to("events", "", { filter: $("find-events").value.trim(), since: $("events-since").value, until: $("events-until").value }));
    clearTimeout(timer);
    timer = setTimeout(ask, 200);
  };
  for (const id of ["find-events", "events-since", "events-until"]) on(id, "input", search);
  on("more-events", "click", () => ask(list[0]?.seq));
}
