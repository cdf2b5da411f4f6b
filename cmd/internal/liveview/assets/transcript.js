// What a session executed, newest last, each with its output as it came.
import { $, Keep, button, element, hide, klass, link, put, set } from "./dom.js";
import { Refused, follow, sleep } from "./api.js";
import { Screen, copyButton } from "./output.js";
import { toExecution } from "./route.js";
import { sourceOf } from "./source.js";
import { state, takeExecution } from "./state.js";
import { many, moment, same, span } from "./words.js";

const SHOWN = 30; // executions of one session
const OPEN = 4; // whose output is read at once
const LINES = 12; // of code that are shown at first, as the style .cut has it

/** @typedef {import("./words.js").Key} Key */

/** @type {Keep<Cell>} */
const cells = new Keep();
/** @type {Key | null} */
let whose = null;
/** @type {string | null} */
let wanted = null; // an execution that its address names

/** Cell is one execution in the transcript. */
class Cell {
  /** @param {any} x */
  constructor(x) {
    this.x = x;
    /** @type {AbortController | null} */
    this.watching = null;
    this.e = element("article", "cell");
    this.head = element("div", "cell-head");
    this.fold = element("button", "fold");
    this.fold.type = "button";
    this.time = element("span", "muted");
    this.title = element("code", "", x.title || "(no code)");
    this.outcome = element("span", "outcome");
    this.took = element("span", "muted num");
    this.fold.append(this.time, this.title);
    this.open = false;
    this.body = element("div", "output");
    this.body.tabIndex = 0;
    this.body.setAttribute("role", "log");
    this.body.setAttribute("aria-live", "off");
    this.body.setAttribute("aria-label", "Output of " + (x.title || "the execution"));
    this.said = element("p", "muted");
    this.source = element("pre", "source");
    this.source.hidden = true;
    this.tools = element("span", "tools");
    this.tools.append(copyButton(() => this.body.innerText), link(toExecution(x.id), "Link", "small"));
    this.box = element("div");
    this.box.append(this.source, this.body, this.said);
    this.box.hidden = true;
    this.head.append(this.fold, this.tools, this.outcome, this.took);
    this.e.append(this.head, this.box);
    this.fold.addEventListener("click", () => this.show(!this.open));
    this.show(false);
  }

  /** draw shows how it stands. @param {any} x */
  draw(x) {
    this.x = x;
    const outcome = x.state === "running" ? "running" : x.outcome ?? "ended";
    set(this.time, moment(x.started));
    set(this.outcome, outcome.replace("_", " "));
    klass(this.outcome, "outcome o-" + outcome);
    set(this.took, span((x.ended ? new Date(x.ended).getTime() : Date.now()) - new Date(x.started).getTime()));
  }

  /** show opens or folds the output. @param {boolean} open */
  show(open) {
    this.open = open;
    this.fold.setAttribute("aria-expanded", String(open));
    hide(this.box, !open);
    hide(this.tools, !open);
    if (open && !this.watching) { this.watch(); this.read(); }
    if (!open && this.x.state === "running") this.end();
  }

  /** read shows the code, where it is more than the title says. */
  async read() {
    const code = this.source.textContent ? "" : await sourceOf(this.x.id);
    if (!code || code.trim() === this.x.title) return;
    this.source.textContent = code;
    hide(this.source, false);
    this.title.classList.toggle("said", code.trimStart().startsWith(this.x.title));
    const lines = code.trimEnd().split("\n").length;
    if (lines <= LINES + 2 && code.length < 100 * LINES) return;
    this.source.classList.add("cut");
    const all = button(lines > LINES ? `Show all ${lines} lines` : "Show all of it", "small");
    all.addEventListener("click", () => { this.source.classList.remove("cut"); all.remove(); });
    this.source.after(all);
  }

  /** end stops reading. */
  end() { this.watching?.abort(); this.watching = null; }

  async watch() {
    this.watching = new AbortController();
    const { signal } = this.watching, screen = new Screen(this.body);
    let seen = 0;
    this.body.replaceChildren();
    hide(this.body, false);
    this.said.textContent = "";
    while (!signal.aborted) {
      try {
        let over = false;
        await follow(`/api/executions/${encodeURIComponent(this.x.id)}/events`, seen, signal, (e) => {
          seen = e.seq;
          if (e.type === "final") { over = true; this.finish(e); }
          else if (e.type === "input_request") screen.text("stdout", (e.prompt ?? "") + "\n");
          else screen.add(e);
        });
        if (over) { this.quiet(); return; }
      } catch (err) {
        if (signal.aborted) return;
        if (err instanceof Refused) { this.said.textContent = err.status === 404 ? "The server has forgotten this output." : err.message; return; }
      }
      try { await sleep(700, signal); } catch { return; }
    }
  }

  /** quiet says that nothing was shown, if that is so. */
  quiet() {
    if (this.body.firstChild) return;
    hide(this.body, true);
    if (!this.said.textContent) this.said.textContent = "no output";
  }

  /** finish says what became of it and of the session's variables. @param {any} r */
  finish(r) {
    /** @type {Record<string, string>} */
    const words = { kept: "", fresh: "It ran in a new kernel, which had no variables.", lost: "The session's variables are lost.", reset: "The session was reset." };
    this.said.textContent = [r.reason, words[r.state] ?? (r.state ? "State: " + r.state + "." : ""), r.artifact ? "The whole output is kept: " + r.artifact : "", ...(r.notices ?? [])].filter(Boolean).map((text) => text[0].toUpperCase() + text.slice(1) + (/[.!?:]$/.test(text) ? "" : ".")).join(" ");
    klass(this.said, r.outcome === "ok" ? "muted" : "error");
  }
}

/** showTranscript begins with another session. @param {Key} key @param {string | null} execution */
export function showTranscript(key, execution) {
  wanted = execution;
  if (!same(key, whose)) {
    leaveTranscript();
    whose = key;
  }
  drawTranscript();
  if (wanted) cells.map.get(wanted)?.e.scrollIntoView({ block: "nearest" });
}

/** leaveTranscript ends what is read. */
export function leaveTranscript() {
  for (const c of cells.map.values()) c.end();
  cells.clear();
  whose = null;
  $("transcript").replaceChildren();
}

/** open shows the output of an execution that was begun here. @param {any} x */
export function openExecution(x) {
  takeExecution(x); // its end may have been heard of before the answer
  wanted = x.id;
  drawTranscript();
  cells.map.get(x.id)?.e.scrollIntoView({ block: "nearest" });
}

/** drawTranscript draws the executions of the session. */
export function drawTranscript() {
  if (!whose) return;
  const mine = [...state.executions.values()].filter((x) => same(x, whose)).sort((a, b) => (a.started < b.started ? -1 : 1));
  const cut = mine.length - SHOWN, list = cut > 0 ? mine.filter((x, i) => i >= cut || x.id === wanted) : mine;
  hide($("no-transcript"), list.length > 0);
  hide($("export"), !list.length);
  set($("transcript-cut"), cut > 0 ? `${many(cut, "older execution")} ${cut === 1 ? "is" : "are"} not shown here.` : "");
  const atEnd = innerHeight + scrollY >= document.documentElement.scrollHeight - 60;
  put($("transcript"), list.map((x, i) => {
    const is = cells.map.has(x.id), c = cells.get(x.id, () => new Cell(x));
    c.draw(x);
    // The newest are open from the beginning, and what an address names.
    if (!is && i >= list.length - OPEN || x.id === wanted && !c.open) c.show(true);
    return c.e;
  }));
  for (const [id, c] of cells.map) if (!list.some((x) => x.id === id)) c.end();
  cells.sweep();
  wanted = null;
  if (atEnd && list.at(-1)?.state === "running") scrollTo({ top: document.documentElement.scrollHeight });
}
