// The editor of a session's page: what was run before, what the kernel knows of the code,
// and what runs.
import { $, hide, on, set } from "./dom.js";
import { Refused, call } from "./api.js";
import { sourceOf } from "./source.js";
import { changed, state } from "./state.js";
import { openExecution } from "./transcript.js";
import { idOf, pathOf, same } from "./words.js";

/** @typedef {import("./words.js").Key} Key */

const EARLIER = 40; // executions whose code the arrow keys bring back

/** @type {Key | null} */
let key = null;
/** @type {Promise<any> | null} */
let making = null;
/** @type {any} */
let editor = null;
/** @type {Map<string, string>} */
const drafts = new Map();
/** @type {{codes: string[], at: number, draft: string, read: string}} */
let past = { codes: [], at: 0, draft: "", read: "" };
/** @type {AbortController | null} */
let asking = null;

/** make loads the editor, which is large, when a session is first looked at. */
function make() {
  making ??= import("./vendor-editor.js").then(({ makeEditor }) => {
    editor = makeEditor($("editor"), {
      id: "code", label: "Code to run", describedBy: "run-help", hint: "# Python, for this session\nprint('hello')",
      run, recall, complete: (/** @type {string} */ code, /** @type {number} */ at) => look("complete", code, at), inspect: (/** @type {string} */ code, /** @type {number} */ at) => look("inspect", code, at).then((got) => got && got.text),
    });
    if (key) editor.put(drafts.get(idOf(key)) ?? "");
    hide($("editor-wait"), true);
    return editor;
  });
  making.catch(() => { making = null; set($("editor-wait"), "The editor could not be loaded: load the page again."); });
  return making;
}

/** showEditor is for a session from now on. @param {Key} which */
export function showEditor(which) {
  if (same(which, key)) return;
  leaveEditor();
  key = which;
  past = { codes: [], at: 0, draft: "", read: "" };
  set($("run-result"), "");
  if (editor) editor.put(drafts.get(idOf(which)) ?? "");
  make().catch(() => {});
}

/** leaveEditor keeps what was typed for that session. */
export function leaveEditor() {
  if (key && editor) drafts.set(idOf(key), editor.text());
  asking?.abort();
  key = null;
}

/** clearEditor forgets what was typed, for the next who signs in. */
export function clearEditor() { drafts.clear(); key = null; editor?.put(""); }

/** focusEditor goes there, when it is there. */
export function focusEditor() { make().then((e) => e.focus(), () => {}); }

/** gather reads the code that the session ran, for the arrow keys. */
async function gather() {
  if (!key) return;
  const mine = key, list = [...state.executions.values()].filter((x) => x.kind === "call" && same(x, mine)).sort((a, b) => (a.started < b.started ? -1 : 1)).slice(-EARLIER);
  const read = list.map((x) => x.id).join();
  if (read === past.read) return;
  past.read = read;
  const codes = await Promise.all(list.map((x) => sourceOf(x.id)));
  if (!same(mine, key)) return;
  const was = past.at === past.codes.length;
  past.codes = codes.filter((c, i) => c.trim() && c !== codes[i - 1]);
  if (was) past.at = past.codes.length;
}

/** recall is earlier code. @param {number} by @param {string} now what the editor has @returns {string | null} */
function recall(by, now) {
  if (past.at >= past.codes.length) past.draft = now;
  const at = past.at + by;
  if (at < 0 || at > past.codes.length) return null;
  past.at = at;
  return past.codes[at] ?? past.draft;
}

/**
 * look asks the kernel about code, unless it has something else to do.
 * @param {string} what @param {string} code @param {number} cursor
 */
async function look(what, code, cursor) {
  const s = key && state.sessions.get(idOf(key));
  if (!s || s.state !== "idle") { set($("run-note"), s ? `The kernel is ${s.state}: it is not asked for ${what === "complete" ? "completions" : "help"} now.` : "There is no kernel yet: the first run starts it."); return null; }
  set($("run-note"), "");
  asking?.abort();
  asking = new AbortController();
  try {
    return await call("POST", pathOf(s, what), { code, cursor }, asking.signal);
  } catch (err) {
    if (err instanceof Refused && err.status === 409) set($("run-note"), "The kernel is busy: it is not asked now.");
    return null;
  }
}

/** run runs code in the session whose page is shown. @param {string} code @param {boolean} clear */
async function run(code, clear) {
  if (!key || !code.trim()) { focusEditor(); return; }
  const mine = key;
  asking?.abort();
  try {
    const x = await call("POST", "/api/executions", { session: key.session, cwd: key.cwd, workspace: key.workspace, kernel: key.kernel, cells: [{ code }], allow_stdin: true });
    if (!same(mine, key)) return;
    if (past.codes.at(-1) !== code) past.codes.push(code);
    past.at = past.codes.length;
    past.draft = "";
    set($("run-result"), "");
    if (clear && editor.text() === code) editor.put("");
    openExecution(x);
    changed();
  } catch (err) {
    set($("run-result"), "Not run: " + /** @type {Error} */ (err).message);
  }
}

/** startEditor connects it, once. */
export function startEditor() {
  on("run", "submit", () => make().then((e) => run(e.text(), true), () => {}));
  on("inspect", "click", () => make().then((e) => { e.focus(); e.inspect(); }, () => {}));
  $("editor").addEventListener("focusin", gather);
  $("editor").addEventListener("keydown", (/** @type {KeyboardEvent} */ e) => { if (e.key === "ArrowUp") gather(); });
}
