// What the page knows of the server, and who is told when it changes. Changes of the
// stream are put in at once; what has no event (memory, processor) is read now and then.
import { call, follow, patience, sleep, within } from "./api.js";
import { idOf, keyOf } from "./words.js";

/** @typedef {import("./filter.js").Row & {id: string, cpu_seconds?: number, expires?: string, detail?: string, mark?: any, node?: string, hibernated?: {bytes: number}}} Session */

const MAX_EVENTS = 1000, MAX_EXECUTIONS = 512, MAX_SAMPLES = 360;
const LOOK = 2000; // ms between looks, at least
const SOON = 300; // ms until a look at what is new

export const state = {
  /** @type {any} */ health: null,
  /** @type {Map<string, Session>} */ sessions: new Map(),
  /** @type {Map<string, Session>} */ asleep: new Map(), // kept on disk, as it was while somebody wanted it
  /** @type {Map<string, any>} */ marks: new Map(),
  /** @type {Map<string, any>} */ executions: new Map(),
  /** @type {any} */ tree: null,
  /** @type {any} */ overview: null,
  /** @type {any[]} */ samples: [],
  /** @type {any[]} */ events: [],
  executionsSeen: 0, // counts what became of executions
  eventsSeen: 0, // counts all events, also those that are no longer kept
  paused: false,
  /** @type {any[]} */ held: [],
  wantTree: false, // a view shows it
  wantAsleep: false, // a view shows those on disk, too
  stale: "", // why the last look failed
  connection: "signed out",
  asked: false, // the sessions were read
};

/** @type {Map<string, {at: number, seconds: number, pid: number | undefined, percent: number | null}>} */
const cpu = new Map();
/** @type {Set<() => void>} */
const listeners = new Set();
/** @type {number | null} */
let cursor = 0;
/** @type {string | null} */
let began = null;
let took = 0;
let hasty = false; // somebody wants a look before its time
/** @type {any} */
let drawing = null;
/** @type {(() => void) | null} */
let wake = null;

/** listen calls f after something has changed, not more often than a person sees. @param {() => void} f */
export function listen(f) { listeners.add(f); }

/** changed tells the listeners, a little later. @param {boolean} [now] */
export function changed(now) {
  if (now) { clearTimeout(drawing); drawing = null; run(); return; }
  drawing ??= setTimeout(() => { drawing = null; requestAnimationFrame(run); }, 120);
}

function run() { for (const f of listeners) f(); }

/** connected says how current what is shown is, for people. @returns {{text: string, well: boolean}} */
export function connected() {
  const { connection, stale } = state;
  return connection === "live" && stale ? { text: `live, but what is shown is old: ${stale}`, well: false } : { text: connection, well: connection === "live" };
}

/** sessionOf is a session that has a kernel, or is on disk. @param {string} id */
export const sessionOf = (id) => state.sessions.get(id) ?? state.asleep.get(id);

/** say tells how the connection is. @param {string} text */
export function say(text) { if (state.connection !== text) { state.connection = text; changed(true); } }

/** forget empties everything, for the next who signs in. */
export function forget() {
  for (const map of [state.sessions, state.asleep, state.marks, state.executions, cpu]) map.clear();
  Object.assign(state, { health: null, tree: null, overview: null, samples: [], events: [], eventsSeen: 0, held: [], paused: false, asked: false, stale: "", connection: "signed out" });
  cursor = 0;
  began = null;
  hasty = false;
}

/**
 * soonOr asks what is answered at once by a server that is there.
 * @template T @param {AbortSignal | undefined} signal @param {(signal: AbortSignal) => Promise<T>} ask @returns {Promise<T>}
 */
async function soonOr(signal, ask) {
  const bound = within(patience.look, signal);
  try { return await ask(bound.signal); } finally { bound.done(); }
}

/** hello asks who the server is, and begins again when it is another than before. @param {AbortSignal} signal */
export async function hello(signal) {
  const health = await soonOr(signal, (s) => call("GET", "/api/health", undefined, s));
  if (began && began !== health.started) { // its numbers are those of another
    cursor = 0;
    state.held = [];
    state.executions.clear();
    state.samples = [];
    state.overview = null;
    cpu.clear();
    note({ at: health.started, type: "restarted" });
  }
  began = health.started;
  state.health = health;
}

/**
 * watch follows the server until the signal, and says how that goes. refused is called
 * when the server does not know the token any more.
 * @param {AbortSignal} signal @param {() => void} refused
 */
export async function watch(signal, refused) {
  for (let wait = 500; !signal.aborted; wait = Math.min(15_000, wait * 2)) {
    try {
      await hello(signal);
      const list = await soonOr(signal, (s) => call("GET", "/api/executions", undefined, s));
      for (const x of (list.executions ?? []).reverse()) keep(x); // the newest come first
      await refresh(signal);
      await follow("/api/changes", cursor, signal, (c) => { wait = 250; take(c); }, () => say("live"));
      say("the server closed the connection; trying again");
    } catch (err) {
      if (signal.aborted) return;
      const { status } = /** @type {any} */ (err);
      if (status === 401) { refused(); return; }
      if (status === 400 || status === 422) cursor = 0; // it was started again
      say(`no connection; trying again in ${Math.round(wait / 1000) || 1} s`);
    }
    try { await sleep(wait, signal); } catch { return; }
  }
}

/** look reads what changes without an event, until the signal. @param {AbortSignal} signal */
export async function look(signal) {
  try {
    for (;;) {
      // A server with much to show is asked less often.
      if (!hasty) await sleep(Math.max(LOOK, 10 * took), signal, (f) => { wake = f; });
      wake = null;
      if (hasty) await sleep(Math.max(SOON, 4 * took), signal);
      hasty = false; // what is asked for from now on is of the next look
      if (state.paused || document.hidden) continue;
      try {
        await refresh(signal);
      } catch (err) {
        if (signal.aborted) return;
        const { message } = /** @type {Error} */ (err);
        if (state.stale !== message) { state.stale = message; changed(true); }
      }
    }
  } catch { /* signed out */ }
}

/** hurry looks soon. */
export function hurry() { hasty = true; wake?.(); }

/** refresh reads sessions, the overview, and the tree if it is shown. @param {AbortSignal} [signal] */
export async function refresh(signal) {
  const asked = performance.now(), newest = state.samples.at(-1)?.seq ?? 0, asleep = state.wantAsleep && Boolean(state.overview?.hibernated);
  const [s, o, t] = await soonOr(signal, (bound) => Promise.all([
    call("GET", "/api/sessions" + (asleep ? "?hibernated=true" : ""), undefined, bound), call("GET", "/api/overview" + (newest ? `?after=${newest}` : ""), undefined, bound),
    state.wantTree ? call("GET", "/api/tree", undefined, bound) : null,
  ]));
  took = performance.now() - asked;
  state.stale = "";
  if (state.paused) return;
  if (t) state.tree = t;
  state.overview = o;
  state.samples.push(...o.samples.filter((/** @type {any} */ one) => one.seq > (state.samples.at(-1)?.seq ?? 0)));
  state.samples.splice(0, state.samples.length - MAX_SAMPLES);
  state.marks = new Map(o.marks.map((/** @type {any} */ m) => [idOf(m.key), m]));
  takeSessions(s.sessions ?? [], asleep || !o.hibernated);
  if (o.hibernated && state.wantAsleep && !asleep) hurry();
  state.asked = true;
  changed();
}

const collator = new Intl.Collator("en", { numeric: true });
/** @type {Map<string, number>} */
let order = new Map();

/**
 * arrange gives each session its place in the order of the names: to compare five
 * thousand names takes longer than a frame, so that it is done when there is a new one.
 * @param {Map<string, any>} all
 */
function arrange(all) {
  let known = true;
  for (const id of all.keys()) if (!order.has(id)) { known = false; break; }
  if (!known) order = new Map([...all].sort(([, a], [, b]) => collator.compare(a.session, b.session) || collator.compare(a.cwd, b.cwd)).map(([id], i) => [id, i]));
  for (const [id, one] of all) one.order = order.get(id);
}

/** @param {any[]} list @param {boolean} all with those on disk @returns {void} */
function takeSessions(list, all) {
  const now = performance.now(), next = new Map(), asleep = all ? new Map() : state.asleep;
  for (const one of list) {
    const id = idOf(one);
    if (one.state === "hibernated") { asleep.set(id, { ...one, id, cpu: null, level: "" }); continue; }
    asleep.delete(id);
    const m = state.marks.get(id), before = cpu.get(id);
    let percent = before?.percent ?? null;
    if (!before || before.pid !== one.pid) { cpu.set(id, { at: now, seconds: one.cpu_seconds ?? 0, pid: one.pid, percent: null }); percent = null; }
    else if (now - before.at >= 500) {
      percent = one.cpu_seconds >= before.seconds ? 100 * (one.cpu_seconds - before.seconds) / ((now - before.at) / 1000) : null;
      cpu.set(id, { at: now, seconds: one.cpu_seconds ?? 0, pid: one.pid, percent });
    }
    next.set(id, { ...one, id, cpu: percent, level: levelOf(one, m), why: m?.why, parent: m?.parent, mark: m });
  }
  for (const id of cpu.keys()) if (!next.has(id)) cpu.delete(id);
  arrange(asleep.size ? new Map([...next, ...asleep]) : next);
  state.sessions = next;
  state.asleep = asleep;
}

/** levelOf says how much a session needs a person. @param {any} one @param {any} mark */
function levelOf(one, mark) {
  if (["failed", "suspended", "restarting"].includes(one.state)) return "bad";
  if (mark?.level === "asks" && one.state !== "busy") return ""; // it had its answer after the mark was made
  return mark?.level ?? "";
}

/** take puts a change in. @param {any} c */
export function take(c) {
  cursor = c.seq;
  if (state.paused) {
    state.held.push(c);
    if (state.held.length > MAX_EVENTS) state.held.shift();
  } else {
    note(c);
    if (c.type === "execution") takeExecution(c.execution);
    else if (c.tree?.type === "child_changed") takeChild(c.tree, c.at);
    else if (c.type === "missed") hurry();
  }
  changed();
}

/** @param {any} c */
function note(c) {
  state.events.push(c);
  state.eventsSeen++;
  if (state.events.length > MAX_EVENTS + 100) state.events.splice(0, state.events.length - MAX_EVENTS);
}

/** takeExecution puts in how an execution stands. @param {any} x */
export function takeExecution(x) {
  const known = state.executions.get(x.id);
  if (known?.state === "ended" && x.state !== "ended") return; // of the past
  keep(x);
  state.executionsSeen++;
  if (x.state === "ended" && x.outcome !== "ok") hurry();
}

/** keep has an execution in the table, which is in their order. The oldest that has ended makes room. @param {any} x */
function keep(x) {
  state.executions.set(x.id, x);
  if (state.executions.size <= MAX_EXECUTIONS) return;
  for (const [id, one] of state.executions) {
    if (one.state === "ended" && id !== x.id) { state.executions.delete(id); break; }
  }
}

/** @param {any} t @param {string} at */
function takeChild(t, at) {
  if (t.kind !== "kernel" || !keyOf(t.key)) return;
  const one = state.sessions.get(t.key);
  if (!one) { if (t.to !== "gone" && state.asked) hurry(); return; }
  if (one.since > at) return; // of before the last look
  if (t.to === "gone") {
    state.sessions.delete(t.key);
    if (state.wantAsleep) hurry(); // it may be on disk now
    return;
  }
  one.state = t.to;
  one.since = at;
  if (t.exit) { one.last_exit = t.exit; hurry(); }
  if (t.pid) one.pid = t.pid;
  one.level = levelOf(one, one.mark);
}

/** pause holds what happens back, or lets it in. @param {boolean} on */
export function pause(on) {
  state.paused = on;
  if (!on) {
    const list = state.held;
    state.held = [];
    list.forEach(take);
    hurry();
  }
  changed(true);
}
