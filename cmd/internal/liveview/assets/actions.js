// What can be done about sessions, when, and what it costs.
import { call } from "./api.js";
import { sure, tell } from "./dialog.js";
import { hurry, sessionOf, state } from "./state.js";
import { bytes, idOf, many, pathOf, shortName } from "./words.js";

/** @typedef {import("./state.js").Session} Session */
/** @typedef {{name: string, label: string, cost: (s: Session) => string, why: (s: Session) => string, done: string, ends?: boolean}} Action */

const onDisk = (/** @type {Session} */ s) => s.state === "hibernated";
const up = (/** @type {Session} */ s) => ["idle", "busy"].includes(s.state);

/** actions are all there are. why is the reason that one cannot be done now, "" if it can. @type {Action[]} */
export const actions = [
  { name: "interrupt", label: "Interrupt", cost: () => "ends the call that runs; variables stay", why: (s) => (s.state === "busy" ? "" : "nothing runs"), done: "interrupted" },
  { name: "fork", label: "Fork", cost: (s) => `a copy with all variables; at first it shares the ${bytes(s.rss) || "memory"}`, why: (s) => (!state.overview?.limits?.fork ? "this backend cannot copy" : s.state !== "idle" ? "only an idle session can be copied" : ""), done: "copied" },
  { name: "pin", label: "Pin", cost: () => "it is never evicted, and keeps its place", why: (s) => (s.pinned ? "it is pinned" : up(s) ? "" : "it has no kernel"), done: "pinned" },
  { name: "unpin", label: "Unpin", cost: () => "it may be evicted when it is idle", why: (s) => (s.pinned ? "" : "it is not pinned"), done: "unpinned" },
  { name: "reset", label: "Reset", cost: (s) => `loses all variables${s.rss ? ` (${bytes(s.rss)})` : ""}; the next call gets an empty kernel`, why: (s) => (onDisk(s) ? "it is on disk" : ["stopping", "gone"].includes(s.state) ? "it is ending" : ""), done: "reset", ends: true },
  { name: "stop", label: "Stop", cost: (s) => `ends the session; all variables are lost${s.rss ? ` (${bytes(s.rss)})` : ""}`, why: (s) => (onDisk(s) ? "it is on disk" : ["stopping", "gone"].includes(s.state) ? "it is ending" : ""), done: "stopped", ends: true },
  { name: "restore", label: "Restore", cost: (s) => `starts a kernel with what is on disk${s.hibernated?.bytes ? ` (${bytes(s.hibernated.bytes)})` : ""}`, why: (s) => (onDisk(s) ? "" : "it is not on disk"), done: "restored" },
  { name: "forget", label: "Forget", cost: (s) => `drops what is on disk${s.hibernated?.bytes ? ` (${bytes(s.hibernated.bytes)})` : ""}; all variables are lost`, why: (s) => (onDisk(s) ? "" : "it is not on disk"), done: "forgotten", ends: true },
];

/** actionOf finds one. @param {string} name @returns {Action | undefined} */
export const actionOf = (name) => actions.find((a) => a.name === name);

/** losses says what the end of sessions would cost. @param {Session[]} list @param {string} name */
export function losses(list, name) {
  let rss = 0, runs = 0, queue = 0, pinned = 0, disk = 0;
  for (const s of list) {
    rss += s.rss ?? 0;
    disk += s.hibernated?.bytes ?? 0;
    runs += s.state === "busy" ? 1 : 0;
    queue += s.queue;
    pinned += s.pinned ? 1 : 0;
  }
  const out = [`The variables of ${many(list.length, "session")} are lost for good${rss ? `: ${bytes(rss)} of memory` : disk ? `: ${bytes(disk)} on disk` : ""}.`];
  if (runs) out.push(`${many(runs, "call")} that ${runs === 1 ? "runs is" : "run are"} ended.`);
  if (queue) out.push(`${many(queue, "call")} that ${queue === 1 ? "waits" : "wait"} ${name === "stop" ? (queue === 1 ? "is" : "are") + " refused" : "then " + (queue === 1 ? "runs" : "run") + " without the variables"}.`);
  if (pinned) out.push(`${many(pinned, "session")} of them ${pinned === 1 ? "is" : "are"} pinned.`);
  return out;
}

/** copyName is the first name of a copy that is free. @param {Session} s */
function copyName(s) {
  const stem = s.session.replace(/~\d+$/, "");
  for (let n = 1; ; n++) {
    const name = `${stem}~${n}`;
    if (!sessionOf(idOf({ ...s, session: name }))) return name;
  }
}

/**
 * act does something about sessions that it can be done about, and tells what became of
 * it. What ends them asks first.
 * @param {string} name @param {Session[]} all
 * @returns {Promise<boolean>} whether it was done
 */
export async function act(name, all) {
  const action = actionOf(name);
  if (!action || !all.length) return false;
  const list = all.filter((s) => !action.why(s)), who = (/** @type {Session[]} */ some) => (some.length === 1 ? shortName(some[0].session) : many(some.length, "session"));
  if (!list.length) { tell(`${action.label}: ${all.length === 1 ? action.why(all[0]) : "none of them can"}`, true); return false; }
  if (action.ends && !await sure({ title: `${action.label} ${list.length === 1 ? "the session " + shortName(list[0].session) : many(list.length, "session")}?`, lost: losses(list, name), names: list.length > 1 ? list.map((s) => shortName(s.session)) : [list[0].cwd], yes: list.length === 1 ? action.label : `${action.label} ${list.length}` })) return false;
  tell(`${action.label}: ${who(list)} …`);
  /** @type {string[]} */
  const failed = [];
  /** @type {Session[]} */
  const ok = [];
  let said = "";
  const left = [...list];
  await Promise.all(Array.from({ length: Math.min(8, left.length) }, async () => {
    for (let s; (s = left.shift());) {
      try {
        if (name === "fork") {
          const { sessions: made } = await call("POST", pathOf(s, "fork"), { names: [copyName(s)] });
          said = `copied to ${made.map((/** @type {any} */ m) => m.session).join(", ")}`;
        } else if (name === "stop" || name === "forget") await call("DELETE", pathOf(s));
        else if (name === "restore") await call("POST", "/api/sessions", { session: s.session, cwd: s.cwd, ...(s.workspace ? { workspace: s.workspace } : {}), ...(s.kernel ? { kernel: s.kernel } : {}) });
        else await call("POST", pathOf(s, name));
        ok.push(s);
      } catch (err) {
        failed.push(`${shortName(s.session)}: ${/** @type {Error} */ (err).message}`);
      }
    }
  }));
  hurry();
  if (failed.length) tell(`${action.label} failed for ${many(failed.length, "session")}: ${failed.slice(0, 3).join("; ")}`, true);
  else tell(said || `${action.done}: ${who(ok)}`);
  return failed.length === 0;
}
