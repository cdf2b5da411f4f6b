// The processes of a workspace, and a terminal for one of them. What it prints comes as
// numbered events, so that a connection that breaks goes on where it broke.
import { $, Keep, button, element, hide, klass, on, put, set } from "./dom.js";
import { Refused, call, follow, send, sleep } from "./api.js";
import { sure, tell } from "./dialog.js";
import { rewrite, to } from "./route.js";
import { state } from "./state.js";
import { ago, many, plain } from "./words.js";

const LOOK = 2000; // ms

/** @type {Keep<any>} */
const rows = new Keep();
let name = "", asked = 0;
/** @type {any[]} */
let list = [];
/** @type {any} */
let timer = null;
/** @type {{id: string, watching: AbortController, terminal: any} | null} */
let open = null;

const at = (/** @type {string} */ rest) => `/api/workspaces/${encodeURIComponent(name)}/processes${rest}`;
const titleOf = (/** @type {any} */ p) => plain((p.args ?? []).join(" ")) || "(no program)";

/** showProcesses shows those of a workspace, and the terminal of one. @param {string} workspace @param {string} id */
export function showProcesses(workspace, id) {
  name = workspace;
  look().then(() => { const p = list.find((one) => one.id === id); if (p && open?.id !== id && name === workspace) attach(p, false); });
}

/** leaveProcesses ends that; the processes go on. */
export function leaveProcesses() {
  name = "";
  asked++;
  clearTimeout(timer);
  list = [];
  detach();
  rows.clear();
  $("processes").replaceChildren();
}

async function look() {
  clearTimeout(timer);
  const mine = ++asked;
  if (!document.hidden && !state.paused) {
    try {
      const got = await call("GET", at(""));
      if (mine !== asked) return;
      list = got.processes ?? [];
      draw();
    } catch { if (mine !== asked) return; } // the workspace's part says so
  }
  timer = setTimeout(look, LOOK);
}

function draw() {
  hide($("no-processes"), list.length > 0);
  put($("processes"), [...list].sort((a, b) => (a.started < b.started ? 1 : -1)).map((p) => {
    const made = rows.get(p.id, () => {
      const tr = element("tr"), what = element("td", "code"), now = element("td"), since = element("td", "when"), acts = element("td", "acts"), show = button(p.terminal ? "Terminal" : "Output", "small"), end = button("End", "small danger");
      const title = element("span", "", titleOf(p));
      title.title = titleOf(p);
      what.append(title);
      show.setAttribute("aria-label", `${p.terminal ? "Terminal" : "Output"} of ${titleOf(p)}, process ${p.pid}`);
      end.setAttribute("aria-label", `End ${titleOf(p)}, process ${p.pid}`);
      show.addEventListener("click", () => attach(p, true));
      end.addEventListener("click", () => stop(p));
      acts.append(show, end);
      tr.append(what, element("td", "num", `pid ${p.pid}`), now, since, acts);
      return { tr, now, since, end };
    });
    const x = p.exit, ended = x ? (x.signal ? "ended by " + x.signal : "ended with " + (x.code ?? 0)) + (x.reason ? ": " + plain(x.reason) : "") : "runs";
    klass(made.now, x ? (x.code === 0 && !x.signal ? "muted" : "bad") : "o-ok");
    set(made.now, ended);
    set(made.since, ago(p.started) + " ago");
    hide(made.end, p.state === "ended");
    klass(made.tr, open?.id === p.id ? "chosen" : "");
    return made.tr;
  }));
  rows.sweep();
  const mine = open && list.find((p) => p.id === open?.id);
  if (mine?.state === "ended") set($("terminal-state"), "has ended");
}

/** stop ends a process, after a question. @param {any} p */
async function stop(p) {
  if (!await sure({ title: "End this process?", lost: ["It is asked to end, and killed when it has not after two seconds.", "What it has not written is lost."], names: [titleOf(p)], yes: "End" })) return;
  try { await call("DELETE", at("/" + encodeURIComponent(p.id))); tell("ended"); } catch (err) { tell("not ended: " + /** @type {Error} */ (err).message, true); }
  look();
}

/** detach takes the terminal away. */
function detach() {
  open?.watching.abort();
  open?.terminal?.end();
  open = null;
  hide($("terminal-box"), true);
  $("terminal").replaceChildren();
}

/** sender hands input on in order, as one request at a time takes it. @param {string} path */
function sender(path) {
  /** @type {Uint8Array<ArrayBuffer>[]} */
  let waiting = [];
  let busy = false;
  const go = async () => {
    busy = true;
    while (waiting.length) {
      let data = new Uint8Array(await new Blob(waiting.splice(0)).arrayBuffer());
      while (data.length) {
        try {
          const { taken } = await (await send("POST", path, data.slice(0, 1 << 19), "application/octet-stream")).json();
          data = data.slice(taken);
        } catch (err) { waiting = []; data = new Uint8Array(); if (!(err instanceof Refused && err.status === 409)) tell("the input was not taken: " + /** @type {Error} */ (err).message, true); }
      }
    }
    busy = false;
  };
  return (/** @type {Uint8Array<ArrayBuffer>} */ data) => { waiting.push(data); if (!busy) go(); };
}

/** attach opens the terminal of a process. @param {any} p @param {boolean} focus */
async function attach(p, focus) {
  detach();
  const watching = new AbortController(), mine = { id: p.id, watching, terminal: /** @type {any} */ (null) }, path = at("/" + encodeURIComponent(p.id));
  open = mine;
  rewrite(to("workspace", name, { dir: new URLSearchParams(location.hash.split("?")[1] ?? "").get("dir") ?? "", process: p.id }));
  const { makeTerminal } = await import("./vendor-terminal.js");
  if (open !== mine) return;
  hide($("terminal-box"), false);
  set($("terminal-title"), titleOf(p));
  set($("terminal-state"), p.state === "ended" ? "has ended" : "connecting");
  const input = sender(path + "/input");
  let live = p.state !== "ended", sizing = /** @type {any} */ (null);
  mine.terminal = makeTerminal($("terminal"), {
    label: `Terminal of ${titleOf(p)}`,
    input: (/** @type {Uint8Array<ArrayBuffer>} */ data) => { if (p.input && live) input(data); },
    resize: (/** @type {number} */ columns, /** @type {number} */ rows) => {
      clearTimeout(sizing);
      if (p.terminal && live) sizing = setTimeout(() => call("POST", path + "/resize", { columns, rows }).catch(() => {}), 100); // it may have ended
    },
    leave: () => $("terminal-close").focus(),
  });
  if (p.terminal && live) call("POST", path + "/resize", mine.terminal.size()).catch(() => {});
  if (focus) { $("terminal-box").scrollIntoView({ block: "nearest" }); mine.terminal.focus(); }
  draw();
  let seen = 0;
  for (let over = false; !over && !watching.signal.aborted;) {
    try {
      await follow(path + "/events", seen, watching.signal, (e) => {
        seen = e.seq;
        if (e.type === "end") { over = true; live = false; return; }
        if (e.type === "gap") { mine.terminal.write("\r\n[older output is gone]\r\n"); return; }
        const data = Uint8Array.from(atob(e.data ?? ""), (c) => c.charCodeAt(0));
        mine.terminal.write(p.terminal ? data : new TextDecoder().decode(data).replace(/\r?\n/g, "\r\n"));
      }, () => set($("terminal-state"), p.input ? "connected" : "connected; it takes no input"));
      if (!over) over = p.state === "ended";
    } catch (err) {
      if (watching.signal.aborted) return;
      if (err instanceof Refused) { if (err.status !== 204) set($("terminal-state"), err.message); break; }
      set($("terminal-state"), "no connection; trying again");
    }
    if (!over) try { await sleep(700, watching.signal); } catch { return; }
  }
  if (open !== mine) return;
  live = false;
  mine.terminal.stop();
  set($("terminal-state"), "has ended");
  look();
}

/** words takes a line apart as a shell would, but for its signs. @param {string} line */
const words = (line) => [...line.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map((m) => m[1] ?? m[2] ?? m[3]);

/** startProcesses connects them, once. */
export function startProcesses() {
  on("terminal-close", "click", () => { detach(); rewrite(to("workspace", name)); draw(); });
  on("new-process", "submit", async () => {
    const args = words($("program").value.trim() || "bash");
    try {
      const p = await call("POST", at(""), { args, terminal: { columns: 80, rows: 24 }, env: { TERM: "xterm-256color" } });
      tell("started " + titleOf(p));
      await look();
      attach(p, true);
    } catch (err) {
      tell(`not started: ${/** @type {Error} */ (err).message}`, true);
    }
  });
  hide($("terminal-box"), true);
  set($("terminal-help"), `Ctrl+Shift+Escape leaves the terminal. A process goes on when the page is closed; at most ${many(64, "process", "processes")} of a workspace run at a time.`);
}
