// Workspaces: which there are, and of one its sessions, processes and files.
import { $, Keep, element, hide, link, on, put, set } from "./dom.js";
import { call } from "./api.js";
import { tell } from "./dialog.js";
import { leaveFiles, showFiles, startFiles } from "./files.js";
import { leaveProcesses, showProcesses, startProcesses } from "./processes.js";
import { go, to, toSession } from "./route.js";
import { listen, state } from "./state.js";
import { ago, bytes, many, shortName } from "./words.js";

const LOOK = 3000; // ms

/** @type {Keep<any>} */
const rows = new Keep();
/** @type {"" | "list" | "one"} */
let shown = "";
let name = "", asked = 0;
/** @type {any} */
let timer = null;

/** showWorkspaces begins to show the list. */
export function showWorkspaces() { leaveWorkspaces(); shown = "list"; look(); }

/** showWorkspace begins to show one. @param {string} which @param {URLSearchParams} params */
export function showWorkspace(which, params) {
  if (shown !== "one" || which !== name) leaveWorkspaces();
  shown = "one";
  name = which;
  document.title = `${name} · Coppice`;
  set($("workspace-title"), name);
  showFiles(name, params.get("dir") ?? ".");
  showProcesses(name, params.get("process") ?? "");
  look();
}

/** leaveWorkspaces ends that. */
export function leaveWorkspaces() {
  shown = "";
  asked++;
  clearTimeout(timer);
  leaveFiles();
  leaveProcesses();
  for (const id of ["workspace-facts", "workspace-sessions"]) $(id).replaceChildren();
  set($("workspace-problem"), "");
}

async function look() {
  clearTimeout(timer);
  const mine = ++asked, which = shown;
  if (!document.hidden && !state.paused) {
    try {
      const got = await call("GET", which === "list" ? "/api/workspaces" : "/api/workspaces/" + encodeURIComponent(name));
      if (mine !== asked) return;
      if (which === "list") drawList(got.workspaces ?? []); else drawOne(got);
      set($("workspace-problem"), "");
    } catch (err) {
      if (mine !== asked) return;
      if (which === "one") set($("workspace-problem"), "This workspace cannot be shown: " + /** @type {Error} */ (err).message);
    }
  }
  timer = setTimeout(look, LOOK);
}

/** endOf says when a workspace ends. @param {any} w */
const endOf = (w) => (w.pinned ? "never: pinned" : w.end_at ? new Date(w.end_at).toLocaleString() : w.idle_end_seconds ? `${Math.round(w.idle_end_seconds / 60)} min after its last use` : "never");

/** @param {any[]} list */
function drawList(list) {
  hide($("no-workspaces"), list.length > 0);
  set($("workspaces-count"), many(list.length, "workspace"));
  put($("workspaces"), list.map((w) => {
    const made = rows.get(w.name, () => {
      const tr = element("tr"), cells = Array.from({ length: 5 }, () => element("td"));
      cells[0].append(link(to("workspace", w.name), w.name));
      cells[1].className = "where";
      cells[2].className = "num";
      tr.append(...cells);
      return { tr, cells };
    });
    const sessions = [...state.sessions.values()].filter((s) => s.workspace === w.name).length;
    [w.owner ?? "", String(sessions), w.in_use ? many(w.in_use, "use") + " now" : `used ${ago(w.used)} ago`, endOf(w)].forEach((text, i) => set(made.cells[i + 1], text));
    return made.tr;
  }));
  rows.sweep();
}

/** @param {any} w */
function drawOne(w) {
  /** @type {[string, string][]} */
  const facts = [["folder", w.folder], ["owner", w.owner || "nobody"], ["made", ago(w.made) + " ago"], ["in use", w.in_use ? `by ${many(w.in_use, "call or process", "calls and processes")}` : "no"], ["ends", endOf(w)]];
  if (w.quota_bytes) facts.push(["quota of its files", bytes(w.quota_bytes)]);
  if (w.isolation) facts.push(["isolation", w.isolation]);
  for (const [label, value] of Object.entries(w.labels ?? {})) facts.push([label, String(value)]);
  put($("workspace-facts"), facts.map(([label, value], i) => {
    let div = $("workspace-facts").children[i];
    if (!div) { div = element("div"); div.append(element("dt"), element("dd")); }
    set(div.firstElementChild, label);
    set(div.lastElementChild, value);
    return div;
  }));
  drawSessions();
}

/** drawSessions lists the sessions of the workspace. */
function drawSessions() {
  if (shown !== "one") return;
  const mine = [...state.sessions.values()].filter((s) => s.workspace === name), box = $("workspace-sessions");
  hide($("no-workspace-sessions"), mine.length > 0);
  put(box, mine.slice(0, 50).map((s, i) => {
    let li = box.children[i];
    if (!li || li.dataset.id !== s.id) { li = element("li"); li.dataset.id = s.id; li.append(link(toSession(s), shortName(s.session)), element("span", "muted")); }
    set(li.lastElementChild, ` ${s.state}${s.rss ? ", " + bytes(s.rss) : ""}`);
    return li;
  }));
}

/** startWorkspaces connects them, once. */
export function startWorkspaces() {
  listen(drawSessions);
  startFiles();
  startProcesses();
  on("new-workspace", "submit", async () => {
    const wanted = $("workspace-name").value.trim();
    try {
      const w = await call("POST", "/api/workspaces", { name: wanted });
      $("workspace-name").value = "";
      go(to("workspace", w.name));
    } catch (err) {
      tell("not made: " + /** @type {Error} */ (err).message, true);
    }
  });
  on("workspace-session", "submit", async () => {
    const wanted = $("workspace-session-name").value.trim();
    try {
      const s = await call("POST", "/api/sessions", { session: wanted, workspace: name });
      $("workspace-session-name").value = "";
      go(toSession(s));
    } catch (err) {
      tell("not started: " + /** @type {Error} */ (err).message, true);
    }
  });
}
