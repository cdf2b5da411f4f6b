// The overview: what needs a person first, then how the server goes.
import { $, Keep, attribute, element, hide, klass, link, put, set } from "./dom.js";
import { to, toSession } from "./route.js";
import { Spark } from "./spark.js";
import { state } from "./state.js";
import { ago, bytes, idOf, lastOf, many, shortName, span } from "./words.js";

const ROOM = 360; // samples of an hour
const SHOWN = 30; // problems

/** @typedef {{name: string, classes: string[], of: (s: any, step: number) => (number | null)[], say: (v: (number | null)[]) => string, now?: () => (number | null)[]}} Chart */

const calls = (/** @type {any} */ s, /** @type {(o: string) => boolean} */ f) => Object.entries(s.calls ?? {}).reduce((n, [o, c]) => n + (f(o) ? c : 0), 0);
const rate = (/** @type {number | null} */ v) => (v === null ? "–" : v >= 100 ? v.toFixed(0) : v.toFixed(1));
const count = (/** @type {number | null} */ v) => (v ?? 0).toLocaleString("en");
const ms = (/** @type {number | null} */ v) => (v ? span(v) : "–");

// States that are counted as down, and not once more by their names.
const down = new Set(["failed", "suspended", "restarting"]);

/** sums adds up what the sessions say now. */
function sums() {
  const out = { rss: 0, cpu: 0, queue: 0, busy: 0, idle: 0, all: 0 };
  for (const s of state.sessions.values()) {
    out.rss += s.rss ?? 0;
    out.cpu += s.cpu ?? 0;
    out.queue += s.queue;
    out.all++;
    if (s.state === "busy") out.busy++; else if (s.state === "idle") out.idle++;
  }
  return out;
}

/** @type {Chart[]} */
const charts = [
  { name: "Sessions", classes: ["c-well", "c-busy"], of: (s) => [Object.values(s.sessions ?? {}).reduce((/** @type {any} */ a, /** @type {any} */ b) => a + b, 0), s.sessions?.busy ?? 0], now: () => { const n = sums(); return [n.all, n.busy]; }, say: ([all, busy]) => `${count(all)}, ${count(busy)} busy` },
  { name: "Calls per second", classes: ["c-well", "c-bad"], of: (s, step) => [calls(s, () => true) / step, calls(s, (o) => o !== "ok") / step], say: ([all, bad]) => `${rate(all)}, ${rate(bad)} not ok` },
  { name: "Time of calls", classes: ["c-busy", "c-well"], of: (s) => [s.p99_ms ?? null, s.p50_ms ?? null], say: ([p99, p50]) => `p50 ${ms(p50)}, p99 ${ms(p99)}` },
  { name: "Calls that wait", classes: ["c-busy"], of: (s) => [s.queue ?? 0], now: () => [sums().queue], say: ([n]) => count(n) },
  { name: "Starts and restarts", classes: ["c-well", "c-busy"], of: (s) => [s.starts ?? 0, s.restarts ?? 0], say: ([a, b]) => `${count(a)} and ${count(b)} in 10 s` },
  { name: "Deaths and evictions", classes: ["c-bad", "c-wait"], of: (s) => [s.deaths ?? 0, s.evictions ?? 0], say: ([a, b]) => `${count(a)} and ${count(b)} in 10 s` },
  { name: "Memory", classes: ["c-well"], of: (s) => [s.rss ?? 0], now: () => [sums().rss], say: ([n]) => bytes(n ?? 0) || "0 MiB" },
  { name: "Processor", classes: ["c-busy"], of: (s) => [s.cpu_percent ?? 0], now: () => [sums().cpu], say: ([n]) => `${(n ?? 0).toFixed(0)} %${state.overview?.limits?.cpus ? ` of ${state.overview.limits.cpus * 100} %` : ""}` },
  { name: "Pressure of the machine", classes: ["c-bad"], of: (s) => [100 * (s.pressure ?? 0)], say: ([n]) => `${(n ?? 0).toFixed(0)} %` },
];

/** @type {Keep<any>} */
const items = new Keep(), tiles = new Keep(), totals = new Keep();

/** drawOverview draws the view. */
export function drawOverview() {
  const o = state.overview;
  drawProblems(o);
  drawTotals();
  drawCharts(o);
}

/** clearOverview forgets what was drawn. */
export function clearOverview() { for (const k of [items, tiles, totals]) k.clear(); }

/** @param {any} o */
function drawProblems(o) {
  const list = (o?.problems ?? []).slice(0, SHOWN), more = (o?.problems?.length ?? 0) - list.length + (o?.more_problems ?? 0);
  set($("problems-title"), list.length ? many(list.length + more, "problem") : "Problems");
  hide($("no-problems"), !o || list.length > 0);
  hide($("more-problems"), more <= 0);
  const address = to("sessions", "", { q: "-health:well", sort: "health" });
  if (more > 0) put($("more-problems"), [items.get("more", () => link(address, "", ""))]);
  if (more > 0) set($("more-problems").firstElementChild, `and ${many(more, "more")}: see the sessions that are not well`.replace("mores", "more"));
  put($("problems"), list.map((/** @type {any} */ p) => {
    const key = `${p.kind} ${idOf(p.key)} ${p.kind === "machine" || p.kind === "limit" ? "" : p.since ?? ""}`;
    const made = items.get(key, () => {
      const li = element("li"), level = element("strong", "level"), head = element("p"), whose = p.key.session ? link(toSession(p.key), "") : element("span", ""), what = element("span", "what"), when = element("span", "when muted"), todo = element("p", "do");
      whose.classList.add("whose");
      head.append(level, whose, when);
      li.append(head, what, todo);
      return { li, level, whose, what, when, todo };
    });
    klass(made.li, "problem l-" + p.level);
    set(made.level, { bad: "Down", asks: "Asks", shaky: "Look" }[/** @type {string} */ (p.level)] ?? p.level);
    set(made.whose, p.key.session ? shortName(p.key.session) + " in " + lastOf(p.key.cwd) : "Server");
    if (p.key.session) made.whose.title = p.key.session + " in " + p.key.cwd;
    set(made.when, p.until ? `${span(Math.max(0, new Date(p.until).getTime() - Date.now()))} left` : p.since ? ago(p.since) : "");
    set(made.what, p.what);
    set(made.todo, p.do);
    return made.li;
  }));
  items.sweep();
}

function drawTotals() {
  /** @type {Map<string, number>} */
  const by = new Map();
  for (const s of state.sessions.values()) by.set(s.state, (by.get(s.state) ?? 0) + 1);
  const limit = state.overview?.limits?.sessions;
  const list = [["all", limit ? `of ${limit}` : "sessions", state.sessions.size, to("sessions")]];
  for (const [name, n] of [...by].sort()) if (!down.has(name)) list.push([name, name, n, to("sessions", "", { q: "state:" + name })]);
  const asleep = state.overview?.hibernated;
  if (asleep) list.push(["hibernated", "on disk", asleep, to("sessions", "", { q: "state:hibernated" })]);
  for (const [level, text] of [["bad", "down"], ["asks", "ask a person"], ["shaky", "to look at"]]) {
    const n = [...state.sessions.values()].filter((s) => s.level === level).length;
    if (n) list.push(["l-" + level, text, n, to("sessions", "", { q: "health:" + level })]);
  }
  put($("totals"), list.map(([cls, text, n, address]) => {
    const made = totals.get(String(cls), () => {
      const li = element("li"), a = link(String(address), ""), num = element("strong"), word = element("span");
      a.append(num, word);
      li.append(a);
      return { li, a, num, word };
    });
    klass(made.li, String(cls).startsWith("l-") ? "total " + cls : "total s-" + cls);
    set(made.num, Number(n).toLocaleString("en"));
    set(made.word, " " + text);
    return made.li;
  }));
  totals.sweep();
}

/** @param {any} o */
function drawCharts(o) {
  const step = o?.step_seconds ?? 10, samples = state.samples;
  put($("charts"), charts.map((c) => {
    const made = tiles.get(c.name, () => {
      const li = element("li", "chart"), name = element("h3", "", c.name), value = element("p", "value"), spark = new Spark(c.classes), peak = element("p", "muted peak");
      li.append(name, value, spark.e, peak);
      return { li, value, spark, peak };
    });
    /** @type {(number | null)[][]} */
    const lines = c.classes.map(() => []);
    for (const s of samples) c.of(s, step).forEach((v, i) => lines[i].push(v));
    const last = c.now ? c.now() : lines.map((l) => l.at(-1) ?? null);
    if (c.now) last.forEach((v, i) => lines[i].push(v));
    const most = lines.map((l) => l.reduce((/** @type {number | null} */ a, b) => (b === null ? a : Math.max(a ?? 0, b)), null));
    set(made.value, c.say(last));
    set(made.peak, samples.length > 1 ? `most: ${c.say(most)}` : "fills within an hour");
    attribute(made.peak, "title", samples.length ? "since " + new Date(samples[0].at).toLocaleTimeString() : "");
    made.spark.draw(lines, ROOM, `${c.name} in the last ${Math.max(1, Math.round(samples.length * step / 60))} minutes: now ${c.say(last)}; most ${c.say(most)}`);
    return made.li;
  }));
}
