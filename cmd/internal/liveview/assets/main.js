// The page as a whole: signing in and out, and which view is shown.
import { $, attribute, hide, klass, on, set } from "./dom.js";
import { Refused, call, setToken } from "./api.js";
import { calm, tell } from "./dialog.js";
import { clearExecutions, leaveExecutions, showExecutions, startExecutions } from "./executions.js";
import { clearOverview, drawOverview } from "./overview.js";
import { clearPast, leavePast, showPast, startPast } from "./past.js";
import { place } from "./route.js";
import { clearEditor, focusEditor } from "./run.js";
import { leaveSession, newSession, showSession, startSession } from "./session.js";
import { forgetSources } from "./source.js";
import { connected, forget, hello, hurry, listen, look, pause, say, state, watch } from "./state.js";
import { clearTable, leaveTable, showTable, startTable } from "./table.js";
import { clearTree, leaveTree, showTree, startTree } from "./tree.js";
import { leaveWorkspaces, showWorkspace, showWorkspaces, startWorkspaces } from "./workspaces.js";

const KEY = "coppice-token", DENSITY = "coppice-density";
const views = ["overview", "sessions", "tree", "executions", "events", "workspaces", "workspace", "session"];

/** @type {AbortController | null} */
let live = null; // of everything that belongs to a sign-in
let view = "";

/** signIn goes on with a token, if the server knows it. @param {string} token */
async function signIn(token) {
  signOut("");
  setToken(token);
  live = new AbortController();
  const { signal } = live;
  say("connecting");
  try {
    await hello(signal);
  } catch (err) {
    signOut(err instanceof Refused && err.status === 401 ? "The server does not know this token." : "The server did not answer: " + /** @type {Error} */ (err).message);
    $("token").focus();
    return;
  }
  sessionStorage.setItem(KEY, token);
  hide($("signin"), true);
  for (const id of ["live", "nav", "pause", "signout", "density"]) hide($(id), false);
  watch(signal, () => signOut("The server does not know this token any more: a server that was started again has another. Use the link that it printed."));
  look(signal);
  show();
}

/** signOut forgets everything. @param {string} why */
function signOut(why) {
  live?.abort();
  live = null;
  leave("");
  view = "";
  setToken("");
  sessionStorage.removeItem(KEY);
  forget();
  forgetSources();
  clearEditor();
  for (const f of [clearExecutions, clearPast, clearOverview, clearTable, clearTree]) f();
  tell("");
  hide($("signin"), false);
  for (const id of ["live", "nav", "pause", "signout", "density"]) hide($(id), true);
  $("signin-error").textContent = why;
  draw();
}

/** draw shows what belongs to no view. */
function draw() {
  const { health, connection, paused, overview } = state, { text, well } = connected();
  klass($("connection"), well ? "ok" : connection === "signed out" ? "" : "bad");
  set($("connection"), paused ? `paused; ${state.held.length} new` : text);
  set($("health"), health ? `${health.backend} backend, process ${health.pid}, ${health.cwd}` : "");
  attribute($("health"), "title", health?.why ?? "");
  const problems = (overview?.problems?.length ?? 0) + (overview?.more_problems ?? 0);
  hide($("nav-problems"), !problems);
  set($("nav-problems"), String(problems));
  attribute($("pause"), "aria-pressed", paused);
  set($("pause"), paused ? "Go on" : "Pause");
  if (view === "overview") drawOverview();
}

/** leave ends what a view does. @param {string} next */
function leave(next) {
  if (next !== "sessions") leaveTable();
  if (next !== "tree") leaveTree();
  if (next !== "session") leaveSession();
  if (next !== "executions") leaveExecutions();
  if (next !== "events") leavePast();
  if (next !== "workspaces" && next !== "workspace") leaveWorkspaces();
}

/** show goes to where the address says. */
async function show() {
  if (!live) return;
  const at = place();
  let next = views.includes(at.view) ? at.view : "overview", execution = null, key = { session: at.rest, cwd: at.params.get("cwd") ?? "", ...(at.params.get("workspace") ? { workspace: String(at.params.get("workspace")) } : {}), ...(at.params.get("kernel") ? { kernel: String(at.params.get("kernel")) } : {}) };
  if (at.view === "execution") {
    try {
      const x = state.executions.get(at.rest) ?? await call("GET", "/api/executions/" + encodeURIComponent(at.rest), undefined, live.signal);
      state.executions.set(x.id, x);
      [next, execution, key] = ["session", x.id, { session: x.session, cwd: x.cwd, ...(x.workspace ? { workspace: x.workspace } : {}), ...(x.kernel ? { kernel: x.kernel } : {}) }];
    } catch (err) {
      tell("This execution cannot be shown: " + /** @type {Error} */ (err).message, true);
      next = "executions";
    }
  }
  if (next === "session" && !key.session) next = "sessions";
  if (next === "workspace" && !at.rest) next = "workspaces";
  if (next === "session" && !key.cwd) key.cwd = state.health?.cwd ?? "";
  const other = next !== view;
  leave(next);
  view = next;
  const asleep = next === "sessions" || next === "session";
  if (asleep && !state.wantAsleep) hurry();
  state.wantAsleep = asleep;
  for (const v of views) hide($("view-" + v), v !== next);
  for (const a of document.querySelectorAll("#nav a")) {
    const mine = a.getAttribute("href") === "#/" + (["session", "workspace"].includes(next) ? next + "s" : next);
    if (mine) a.setAttribute("aria-current", "page"); else a.removeAttribute("aria-current");
  }
  document.title = (next === "overview" ? "" : next[0].toUpperCase() + next.slice(1) + " · ") + "Coppice";
  switch (next) {
    case "sessions": showTable(at.params); break;
    case "tree": showTree(); break;
    case "session": showSession(key, execution); break;
    case "executions": showExecutions(at.params); break;
    case "events": showPast(at.params); break;
    case "workspaces": showWorkspaces(); break;
    case "workspace": showWorkspace(at.rest, at.params); break;
    default: drawOverview();
  }
  if (other && document.activeElement === document.body) $("main").focus({ preventScroll: true });
  if (other) scrollTo(0, 0);
}

/** dense says how close rows are. @param {boolean} on */
function dense(on) {
  document.documentElement.classList.toggle("dense", on);
  attribute($("density"), "aria-pressed", on);
  if (on) sessionStorage.setItem(DENSITY, "dense"); else sessionStorage.removeItem(DENSITY);
  dispatchEvent(new Event("resize"));
}

on("signin", "submit", () => signIn($("token").value.trim()).then(() => { $("token").value = ""; }));
on("signout", "click", () => { sessionStorage.clear(); signOut(""); });
on("pause", "click", () => pause(!state.paused));
on("density", "click", () => { dense(!document.documentElement.classList.contains("dense")); show(); });
on("new-session", "submit", async () => {
  const name = $("new-name").value.trim();
  if (!name) return;
  tell("starting " + name);
  try {
    await newSession(name);
    $("new-name").value = "";
    tell("started " + name);
    focusEditor();
  } catch (err) {
    tell("not started: " + /** @type {Error} */ (err).message, true);
  }
});
addEventListener("hashchange", () => { calm(); show(); });
document.addEventListener("keydown", (e) => {
  const at = /** @type {HTMLElement} */ (e.target);
  if (e.key !== "/" || e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName) || at.isContentEditable || !live || document.querySelector("dialog[open]")) return;
  e.preventDefault();
  if (view !== "executions" && view !== "events") location.hash = view === "sessions" ? location.hash : "#/sessions";
  setTimeout(() => { const f = /** @type {HTMLInputElement} */ ($(view === "executions" ? "find-executions" : view === "events" ? "find-events" : "find")); f.focus(); f.select(); });
});

startTable();
startTree();
startSession();
startExecutions();
startPast();
startWorkspaces();
listen(draw);
dense(sessionStorage.getItem(DENSITY) === "dense");

// An address may bring the token behind its #, which no server and no log sees; it is
// taken out of the address at once.
const given = /^#(?!\/)/.test(location.hash) ? new URLSearchParams(location.hash.slice(1)).get("token") : null;
if (given) window.history.replaceState(null, "", location.pathname);
const kept = given ?? sessionStorage.getItem(KEY);
if (kept) signIn(kept);
