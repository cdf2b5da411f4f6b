// What was executed, searched by the server: also in code that no list shows.
import { $, Keep, element, hide, klass, link, on, put, set } from "./dom.js";
import { call } from "./api.js";
import { rewrite, to, toExecution, toSession } from "./route.js";
import { listen, state } from "./state.js";
import { lastOf, many, moment, shortName, span } from "./words.js";

const PAGE = 100, AGAIN = 1500; // ms between two looks

/** @type {Keep<any>} */
const rows = new Keep();
/** @type {any[]} */
let list = [];
let shown = false, more = false, pages = 1, seen = -1, asked = 0, failed = "";
/** @type {any} */
let timer = null;

/** showExecutions begins to show them. @param {URLSearchParams} params */
export function showExecutions(params) {
  shown = true;
  const filter = params.get("filter") ?? "", outcome = params.get("outcome") ?? "";
  if ($("find-executions").value !== filter) $("find-executions").value = filter;
  $("outcome").value = outcome;
  if ($("outcome").selectedIndex < 0) $("outcome").value = "";
  pages = 1;
  ask();
}

/** leaveExecutions ends that. */
export function leaveExecutions() { shown = false; clearTimeout(timer); timer = null; }

/** clearExecutions forgets what was drawn. */
export function clearExecutions() { leaveExecutions(); rows.clear(); list = []; more = false; $("executions").replaceChildren(); }

/** later looks again, not more often than a person reads. */
function later() {
  if (!shown || state.paused || seen === state.executionsSeen && !list.some((x) => x.state === "running")) return;
  timer ??= setTimeout(ask, seen === state.executionsSeen ? 2 * AGAIN : AGAIN);
}

async function ask() {
  clearTimeout(timer);
  timer = null;
  const mine = ++asked, was = state.executionsSeen, filter = $("find-executions").value.trim(), outcome = $("outcome").value;
  const query = new URLSearchParams({ limit: String(Math.min(1000, PAGE * pages)) });
  if (filter) query.set("filter", filter.slice(0, 200));
  if (outcome) query.set("outcome", outcome);
  try {
    const got = await call("GET", "/api/executions?" + query);
    if (mine !== asked || !shown) return;
    [list, more, seen, failed] = [got.executions ?? [], got.more ?? false, was, ""];
  } catch (err) {
    if (mine !== asked || !shown) return;
    failed = /** @type {Error} */ (err).message;
  }
  draw(filter, outcome);
}

/** @param {string} filter @param {string} outcome */
function draw(filter, outcome) {
  set($("executions-count"), failed ? "They could not be read: " + failed : `${many(list.length, "execution")}${more ? ", and older ones" : ""}${filter || outcome ? " found" : "; the server forgets the oldest that ended (serve --keep-executions)"}`);
  klass($("executions-count"), failed ? "error" : "muted");
  hide($("no-executions"), list.length > 0 || Boolean(failed));
  set($("no-executions"), filter || outcome ? "Nothing that the server still has fits." : "The server has executed nothing, or nothing that it still has.");
  hide($("more-executions"), !more || pages * PAGE >= 1000);
  put($("executions"), list.map((x) => {
    const made = rows.get(x.id, () => {
      const tr = element("tr"), code = element("td", "code"), whose = element("td", "whose"), result = element("td"), took = element("td", "num");
      const open = link(toExecution(x.id), x.title || "(no code)"), session = link(toSession(x), shortName(x.session)), where = element("td", "where", lastOf(x.cwd));
      open.title = x.title;
      session.title = x.session + " in " + x.cwd;
      where.title = x.cwd;
      code.append(open);
      whose.append(session);
      const when = element("td", "when", moment(x.started));
      when.title = new Date(x.started).toLocaleString();
      tr.append(when, code, whose, where, result, took);
      return { tr, result, took };
    });
    const result = x.state === "running" ? "running" : x.outcome ?? "ended";
    klass(made.result, "o-" + result);
    set(made.result, result.replace("_", " "));
    set(made.took, span((x.ended ? new Date(x.ended).getTime() : Date.now()) - new Date(x.started).getTime()));
    return made.tr;
  }));
  rows.sweep();
  later();
}

/** startExecutions connects them, once. */
export function startExecutions() {
  listen(later);
  const search = () => {
    pages = 1;
    rewrite(to("executions", "", { filter: $("find-executions").value.trim(), outcome: $("outcome").value }));
    clearTimeout(timer);
    timer = setTimeout(ask, 200);
  };
  on("find-executions", "input", search);
  on("outcome", "change", search);
  on("more-executions", "click", () => { pages++; ask(); });
}
