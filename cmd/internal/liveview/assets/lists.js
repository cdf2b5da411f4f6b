// Two lists: what was executed, and what happened.
import { $, Keep, element, klass, link, on, put, set } from "./dom.js";
import { toExecution, toSession } from "./route.js";
import { listen, state } from "./state.js";
import { clock, happened, keyOf, lastOf, many, shortName, span } from "./words.js";

const ROWS = 300;

/** @type {Keep<any>} */
const rows = new Keep();
/** @type {"" | "executions" | "events"} */
let shown = "";
let drawn = -1; // how many events are in the list
let drawnFilter = "";

/** showList begins to show one. @param {"executions" | "events"} which */
export function showList(which) { shown = which; drawn = -1; draw(); }

/** leaveList ends that. */
export function leaveList() { shown = ""; }

/** clearLists forgets what was drawn. */
export function clearLists() { rows.clear(); drawn = -1; for (const id of ["executions", "events"]) $(id).replaceChildren(); }

function draw() { if (shown === "executions") drawExecutions(); else if (shown === "events") drawEvents(); }

/** has says whether all words are in a text. @param {string} text @param {string[]} words */
const has = (text, words) => { const t = text.toLowerCase(); return words.every((w) => t.includes(w)); };
const wordsOf = (/** @type {string} */ id) => $(id).value.toLowerCase().split(/\s+/).filter(Boolean);

function drawExecutions() {
  const words = wordsOf("find-executions"), all = [...state.executions.values()].sort((a, b) => (a.started < b.started ? 1 : -1));
  const list = all.filter((x) => has([x.title, x.session, x.cwd, x.owner, x.state, x.outcome, x.id].join(" "), words));
  set($("executions-count"), words.length ? `${list.length} of ${many(all.length, "execution")}` : `${many(all.length, "execution")}; the server keeps those that ended for an hour`);
  put($("executions"), list.slice(0, ROWS).map((x) => {
    const made = rows.get(x.id, () => {
      const tr = element("tr"), code = element("td", "code"), whose = element("td"), outcome = element("td"), took = element("td", "num");
      const open = link(toExecution(x.id), x.title || "(no code)"), session = link(toSession(x), shortName(x.session));
      open.title = x.title;
      session.title = x.session + " in " + x.cwd;
      code.append(open);
      whose.append(session);
      tr.append(element("td", "", clock(x.started)), code, whose, element("td", "", lastOf(x.cwd)), outcome, took);
      return { tr, outcome, took };
    });
    const outcome = x.state === "running" ? "running" : x.outcome ?? "ended";
    klass(made.outcome, "o-" + outcome);
    set(made.outcome, outcome.replace("_", " "));
    set(made.took, span((x.ended ? new Date(x.ended).getTime() : Date.now()) - new Date(x.started).getTime()));
    return made.tr;
  }));
  rows.sweep();
}

/** eventOf is one event in the list. @param {any} c */
function eventOf(c) {
  const li = element("li"), time = element("time", "", clock(c.at)), key = c.execution ?? keyOf(c.tree?.key ?? "");
  time.dateTime = c.at;
  time.title = new Date(c.at).toLocaleString();
  li.append(time);
  const text = happened(c), name = key ? shortName(key.session) : "";
  if (key && text.startsWith(name)) li.append(link(c.execution ? toExecution(c.execution.id) : toSession(key), name), document.createTextNode(text.slice(name.length)));
  else li.append(document.createTextNode(text));
  if (c.tree?.exit && !["normal", "shutdown", "evicted", "hibernated", "reset"].includes(c.tree.exit.kind) || c.execution?.outcome && c.execution.outcome !== "ok") li.className = "bad";
  return li;
}

function drawEvents() {
  const words = wordsOf("find-events"), filter = words.join(" ");
  set($("events-state"), state.paused ? `Paused; ${state.held.length} new` : many(state.events.length, "event"));
  const box = $("events");
  if (filter !== drawnFilter || drawn < 0 || state.eventsSeen - drawn > 200 || state.eventsSeen < drawn) {
    drawnFilter = filter;
    box.replaceChildren(...state.events.filter((c) => !filter || has(happened(c) + " " + (c.tree?.path ?? ""), words)).slice(-ROWS).reverse().map(eventOf));
  } else {
    const fresh = state.events.slice(state.events.length - (state.eventsSeen - drawn)).filter((c) => !filter || has(happened(c) + " " + (c.tree?.path ?? ""), words));
    if (fresh.length) box.prepend(...fresh.reverse().map(eventOf));
    while (box.childElementCount > ROWS) box.lastElementChild.remove();
  }
  drawn = state.eventsSeen;
}

/** startLists connects them, once. */
export function startLists() {
  listen(draw);
  for (const id of ["find-executions", "find-events"]) on(id, "input", draw);
}
