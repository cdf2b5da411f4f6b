// The page of one session: how it is, what became of its state, and what can be done.
import { $, attribute, button, element, hide, klass, link, on, put, set } from "./dom.js";
import { act, actions } from "./actions.js";
import { call, download } from "./api.js";
import { tell } from "./dialog.js";
import { to, toSession } from "./route.js";
import { changed, listen, sessionOf, state } from "./state.js";
import { leaveEditor, showEditor, startEditor } from "./run.js";
import { drawTranscript, leaveTranscript, showTranscript } from "./transcript.js";
import { ago, bytes, exitOf, healthOf, idOf, moment, pathOf, same, shortName, span } from "./words.js";

/** @typedef {import("./words.js").Key} Key */

/** @type {Key | null} */
let key = null;
/** @type {any} */
let story = null;
let told = ""; // what was known of the session when its story was read
/** @type {any} */
let question = null;

/** showSession goes to a session. @param {Key} which @param {string | null} execution */
export function showSession(which, execution) {
  if (!same(which, key)) {
    story = question = null;
    told = "";
    $("answer-text").value = "";
    put($("facts"), []);
    put($("story"), []);
  }
  key = which;
  showTranscript(key, execution);
  showEditor(key);
  drawSession();
}

/** leaveSession ends what is read for it. */
export function leaveSession() { if (key) { key = null; leaveTranscript(); leaveEditor(); } }

/** heldBy is the session whose page is shown. */
export const heldBy = () => key;

/** drawSession draws the view. */
function drawSession() {
  if (!key) return;
  const s = sessionOf(idOf(key)) ?? null, level = s?.level ?? "";
  document.title = `${shortName(key.session)} · Coppice`;
  set($("session-title"), shortName(key.session));
  attribute($("session-title"), "title", key.session);
  if ($("session-where").dataset.of !== idOf(key)) {
    $("session-where").dataset.of = idOf(key);
    $("session-where").replaceChildren(...key.workspace ? [document.createTextNode("workspace "), link(to("workspace", key.workspace), key.workspace), document.createTextNode(", ")] : [], document.createTextNode((key.kernel ? `kernel ${key.kernel}, ` : "") + "in " + key.cwd));
  }
  const twins = [...state.sessions.values()].filter((o) => o.session === key?.session && !same(o, key));
  put($("session-twins"), twins.slice(0, 5).map((o) => link(toSession(o), "also in " + o.cwd)));
  const health = healthOf(level);
  set($("session-state"), (s?.state ?? (state.asked ? "no kernel" : "…")) + (health && " · " + health));
  klass($("session-state"), "state s-" + (s?.state ?? "gone") + (level && " l-" + level));
  const problem = (state.overview?.problems ?? []).find((/** @type {any} */ p) => p.level === level && same(p.key, key));
  hide($("session-why"), !level || level === "asks");
  set($("session-why"), !level ? "" : problem ? `${problem.what} ${problem.do}` : `It is ${s?.state}. ${s?.why ?? exitOf(s?.last_exit)}`);
  klass($("session-why"), "banner l-" + (level || "well"));
  drawFacts(s);
  drawActions(s);
  drawQuestion(s);
  drawTranscript();
  readStory(s);
}

/** @param {any} s */
function drawFacts(s) {
  /** @type {[string, string][]} */
  const facts = [];
  if (s?.state === "hibernated") {
    facts.push(["hibernated for", ago(s.since)], ["on disk", bytes(s.hibernated?.bytes) || "not known"], ["next", "Its next call restores it."]);
    if (s.owner) facts.push(["owner", s.owner]);
    if (s.expires) facts.push(["forgotten in", span(Math.max(0, new Date(s.expires).getTime() - Date.now()))]);
  } else if (s) {
    const limit = state.overview?.limits?.memory;
    facts.push([s.state + " for", ago(s.since)], ["calls answered", String(s.done)], ["calls waiting", String(s.queue)],
      ["memory", s.rss ? bytes(s.rss) + (limit && s.rss > limit / 100 ? ` (${Math.round(100 * s.rss / limit)} %)` : "") : "not known"], ["processor", s.cpu === null || s.cpu === undefined ? (s.pid ? "measuring" : "not known") : s.cpu.toFixed(0) + " %"],
      ["restarts", String(s.restarts)], ["pinned", s.pinned ? "yes" : "no"]);
    if (s.owner) facts.push(["owner", s.owner]);
    if (s.node) facts.push(["node", s.node]);
    if (s.parent) facts.push(["copy of", shortName(s.parent)]);
    if (s.expires && !s.pinned && s.state === "idle") facts.push(["evicted in", span(Math.max(0, new Date(s.expires).getTime() - Date.now()))]);
    if (s.pid) facts.push(["process", String(s.pid)]);
    if (s.last_exit) facts.push(["last end", exitOf(s.last_exit)]);
    if (s.detail) facts.push(["detail", s.detail.split("\n")[0]]);
  } else if (state.asked) facts.push(["state", "It has no kernel: the next call starts one, with no variables."]);
  put($("facts"), facts.map(([name, value], i) => {
    let div = $("facts").children[i];
    if (!div) { div = element("div"); div.append(element("dt"), element("dd")); }
    set(div.firstElementChild, name);
    set(div.lastElementChild, value);
    klass(div, value.length > 28 ? "long" : "");
    return div;
  }));
}

/** @param {any} s */
function drawActions(s) {
  const list = s ? actions.filter((a) => !a.why(s)) : [], not = s ? actions.filter((a) => a.why(s) && !["pin", "unpin", "restore", "forget"].includes(a.name)) : [];
  const made = $("actions");
  put(made, list.map((a) => {
    const b = made.querySelector(`[data-act=${a.name}]`)?.parentElement;
    if (b) { set(b.lastElementChild, a.cost(s)); return b; }
    const li = element("li"), it = button(a.label, a.ends ? "danger" : ""), cost = element("span", "muted", a.cost(s));
    it.dataset.act = a.name;
    cost.id = "cost-" + a.name;
    it.setAttribute("aria-describedby", cost.id);
    li.append(it, cost);
    return li;
  }));
  set($("not-now"), not.length ? "Not now: " + not.map((a) => `${a.label} (${a.why(s)})`).join(", ") + "." : "");
}

/** @param {any} s */
function drawQuestion(s) {
  const q = s?.mark?.question ?? null;
  hide($("answer"), !q);
  if (q && q.id !== question?.id) {
    $("answer-text").type = q.password ? "password" : "text";
    $("answer-text").value = "";
    set($("answer-label"), q.prompt?.trim() || "The code asks for a line of input");
    if (!document.querySelector("dialog[open]") && document.activeElement?.id !== "code") $("answer-text").focus({ preventScroll: true });
  }
  question = q;
  if (!q) return;
  const left = q.until ? new Date(q.until).getTime() - Date.now() : null;
  set($("answer-left"), left === null ? `asked ${ago(q.asked)} ago` : left > 0 ? `${span(Math.round(left / 1000) * 1000)} left` : "the time is over");
  klass($("answer-left"), left !== null && left < 30_000 ? "error" : "muted");
}

/** readStory reads what became of the session when something new is known. @param {any} s */
async function readStory(s) {
  const known = [idOf(/** @type {Key} */ (key)), s?.state === "busy" ? "idle" : s?.state, s?.restarts, s?.pid, s?.level, s?.mark?.question?.id, Math.floor(Date.now() / 3000)].join(); // a fork changes nothing of it
  if (known === told) return;
  told = known;
  const mine = /** @type {Key} */ (key);
  try {
    const query = new URLSearchParams({ session: mine.session, cwd: mine.cwd });
    if (mine.workspace) query.set("workspace", mine.workspace);
    if (mine.kernel) query.set("kernel", mine.kernel);
    const got = await call("GET", "/api/story?" + query);
    if (!same(mine, key) || story && story.moments.length === got.moments.length && story.moments.at(-1)?.at === got.moments.at(-1)?.at) return;
    story = got;
  } catch { told = ""; return; } // the next look tries again
  put($("story"), story.moments.toReversed().map((/** @type {any} */ m) => {
    const li = element("li", "w-" + m.what), time = element("time", "muted", moment(m.at));
    time.dateTime = m.at;
    time.title = new Date(m.at).toLocaleString();
    li.append(time, element("strong", "", m.what), element("span", "", m.why ?? ""));
    return li;
  }));
  hide($("no-story"), story.moments.length > 0);
  set($("story-cut"), story.forgotten ? `${story.forgotten} older moments are forgotten.` : "");
}

/** newSession gives a session of this name a kernel. @param {string} name */
export async function newSession(name) {
  const s = await call("POST", "/api/sessions", { session: name });
  location.hash = toSession(s);
  return s;
}

/** startSession connects the page of a session, once. */
export function startSession() {
  listen(drawSession);
  setInterval(() => { if (key && !document.hidden && !state.paused) { const s = sessionOf(idOf(key)); drawFacts(s); drawQuestion(s); } }, 1000);
  startEditor();
  on("export", "click", async () => {
    if (!key) return;
    try { await download(pathOf(key, "notebook"), key.session + ".ipynb"); } catch (err) { tell("not saved: " + /** @type {Error} */ (err).message, true); }
  });
  on("actions", "click", async (e) => {
    const name = e.target.dataset.act, s = key && sessionOf(idOf(key));
    if (!name || !s) return;
    await act(name, [s]);
  });
  on("answer", "submit", async () => {
    if (!question || !key) return;
    const { id, execution } = question, value = $("answer-text").value;
    try {
      const { status } = await call("POST", `/api/executions/${encodeURIComponent(execution)}/input`, { id, value });
      if (status === "accepted") tell("answered"); else tell(`the answer came to nothing: ${status}`, true);
      const s = sessionOf(idOf(key));
      if (s?.mark) { s.mark = { ...s.mark, question: null }; s.level = s.level === "asks" ? "" : s.level; }
      changed(true);
    } catch (err) {
      tell("not answered: " + /** @type {Error} */ (err).message, true);
    }
  });
}

