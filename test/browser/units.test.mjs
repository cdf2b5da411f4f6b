// The parts of the page that are pure: names, filters, orders, colours.
//
//	ASSETS=.../cmd/internal/liveview/assets node --test units.test.mjs
import assert from "node:assert/strict";
import test from "node:test";
import { pathToFileURL } from "node:url";

const of = (name) => import(pathToFileURL(`${process.env.ASSETS}/${name}`).href);
const ansi = await of("ansi.js"), markup = await of("markup.js"), filter = await of("filter.js"), words = await of("words.js"), groups = await of("groups.js"), route = await (async () => { globalThis.location = { hash: "" }; return of("route.js"); })();

const now = Date.now(), since = (ms) => new Date(now - ms).toISOString();
const rows = [
  { session: "s-10", cwd: "/w/one", state: "busy", queue: 3, done: 7, restarts: 0, rss: 300 * 2 ** 20, cpu: 80, since: since(5000), level: "asks", owner: "ada" },
  { session: "s-9", cwd: "/w/one", state: "idle", queue: 0, done: 1, restarts: 2, rss: 10 * 2 ** 20, cpu: 0, since: since(3_600_000), level: "shaky", last_exit: { kind: "failed" } },
  { session: "s-9", cwd: "/w/two", state: "idle", queue: 0, done: 0, restarts: 0, rss: 0, cpu: null, since: since(0), level: "", pinned: true, workspace: "lab" },
  { session: "a:b c", cwd: "/w/one", state: "failed", queue: 0, done: 0, restarts: 5, since: since(1000), level: "bad" },
];

test("a filter finds what it says", () => {
  for (const [text, want] of Object.entries({
    "": 4, "state:busy": 1, "rss:>100M": 1, "rss:<=10MiB": 3, "owner:ADA": 1, "-health:well": 3, "health:asks": 1, "pinned:yes": 1, "s-9": 2, "s-9 two": 1, "exit:failed": 1,
    "age:>30m": 1, "restarts:>=2": 2, "restarts:2": 1, "cpu:>50%": 1, "-s-9": 2, '"a:b c"': 1, "a:b": 1, "name:s-1": 1, "dir:two": 1, "ws:lab": 1, "queue:3 state:busy": 1, nothing: 0, "-": 0,
  })) {
    const { terms } = filter.parse(text);
    if (text === "-") continue; // a minus alone is being typed
    assert.equal(rows.filter((r) => filter.matches(r, terms)).length, want, text);
  }
});

test("sessions are in groups, those first that need a person", () => {
  const some = [...rows, { ...rows[0], node: "one", workspace: "lab 2" }, { ...rows[1], node: "one" }, { ...rows[2], node: "two", workspace: "lab" }, { ...rows[2], node: "two" }, { ...rows[2], node: "three" }];
  assert.deepEqual(groups.groupsOf(some, "node").map((g) => [g.name, g.sessions, g.busy, g.troubled, g.level]), [["one", 2, 1, 2, "asks"], ["two", 2, 0, 0, ""], ["three", 1, 0, 0, ""]]);
  assert.equal(groups.groupsOf(some, "node")[0].rss, 310 * 2 ** 20);
  assert.deepEqual(groups.groupsOf([], "workspace"), []);
  for (const g of groups.groupsOf(some, "workspace")) { // a group finds its own, and no more
    const { terms, problems } = filter.parse(groups.term(g));
    assert.deepEqual(problems, []);
    assert.equal(some.filter((r) => filter.matches(r, terms)).length, g.sessions, g.name);
  }
});

test("a filter says what it does not understand", () => {
  assert.match(filter.parse("colour:red").problems[0], /colour: is not known/);
  assert.match(filter.parse("rss:>lots").problems[0], /compares with no number/);
  assert.deepEqual(filter.parse("state:busy rss:>1G -x").problems, []);
  for (let i = 0; i < 5000; i++) { // whatever is typed does no harm
    const text = Array.from({ length: i % 12 }, () => ':-<>="a9 %\u202e'[Math.floor(Math.random() * 11)]).join("");
    const { terms } = filter.parse(text);
    rows.forEach((r) => filter.matches(r, terms));
  }
});

test("rows are sorted by any column, and equal ones by their names", () => {
  const order = (by) => filter.sort([...rows], by).map((r) => r.session + r.cwd.at(-1)).join(" ");
  assert.equal(order("health"), "a:b ce s-10e s-9e s-9o");
  assert.equal(order("name"), "a:b ce s-9e s-9o s-10e"); // 9 before 10
  assert.equal(order("-rss"), "s-10e s-9e a:b ce s-9o");
  assert.equal(order("-restarts"), "a:b ce s-9e s-9o s-10e");
  assert.equal(order("-age").split(" ")[0], "s-9e");
  assert.ok(filter.sorts("-cpu") && !filter.sorts("constructor2"));
});

test("ten thousand rows are looked at once for a filter, and no more than it takes for an order", () => {
  const n = 10_000;
  let looks = 0;
  const many = Array.from({ length: n }, (_, i) => ({ ...rows[i % 4], session: "s-" + (i * 7919 % n), get rss() { looks++; return i * 104_729 % n; } }));
  const { terms } = filter.parse("rss:>100 s-1");
  many.filter((r) => filter.matches(r, terms));
  assert.ok(looks <= n, `${looks} looks for a filter`);
  looks = 0;
  filter.sort(many, "-rss");
  assert.ok(looks <= 2 * n * Math.log2(n), `${looks} looks for an order`);
});

test("ids are those of the server", () => {
  for (const key of [{ session: "a b/c@%", cwd: "/w@x" }, { session: "x", cwd: "/w", workspace: "a%3A@/" }, { session: "x%3B", cwd: "/w", kernel: "i/r" }, { session: "x", cwd: "/w", workspace: "a", kernel: "ir" }, { session: "", cwd: "" }]) {
    assert.deepEqual(words.keyOf(words.idOf(key)), key);
  }
  assert.equal(words.idOf({ session: "a b/c@%", cwd: "/w" }), "a b%2Fc%40%25@/w");
  assert.equal(words.keyOf("call/1/a@/w"), null);
  assert.equal(words.keyOf("fork-server"), null);
  assert.equal(words.shortName("analysis~01a1fe6b-291e-7abe-aa8f-c907545576cc"), "analysis~01a1fe6b");
});

test("directories are told apart by as little as that takes", () => {
  const p = words.places(["/home/ada/one/data", "/home/ada/two/data", "/srv/x", "/"]);
  assert.deepEqual([...p.values()], ["one/data", "two/data", "x", "/"]);
  assert.equal(words.places(["/a", "/a"]).get("/a"), "a");
});

test("numbers and times in words", () => {
  assert.deepEqual([500, 1500, 59_990, 119_999, 3_700_000, 90_000_000].map(words.span), ["500 ms", "1.5 s", "1 min 0 s", "2 min 0 s", "1 h 1 min", "1 d 1 h"]);
  assert.deepEqual([0, 1048576, 2 ** 30, 20 * 2 ** 30].map(words.bytes), ["", "1.0 MiB", "1024 MiB", "20.0 GiB"]);
  assert.equal(words.many(1, "call"), "1 call");
  assert.equal(words.many(1200, "call"), "1,200 calls");
  assert.equal(words.happened({ type: "tree", tree: { type: "child_changed", key: "a@/w", from: "idle", to: "failed", exit: { kind: "failed", reason: "why\nmore" } } }), "a: idle → failed (failed: why)");
});

test("colours become classes, and other sequences nothing", () => {
  const flat = (text) => ansi.pieces(text, ansi.fresh()).list.map((p) => `${p.cls}|${p.text}`).join(" ");
  assert.equal(flat("a\x1b[31mred\x1b[0m\x1b[1;32mgood\x1b[m"), "|a fg1|red fg2 bold|good");
  assert.equal(flat("\x1b[38;5;196mx\x1b[38;2;0;0;255my\x1b[48;5;22mz"), "fg1|x fg4|y fg4 bg2|z");
  assert.equal(flat("\x1b]0;title\x07a\x1b[2Jb\x1b[?25lc\x1bMd\x1b"), "|a |b |c |d");
  assert.equal(ansi.clean("\x1b[31mx\x1b]8;;http://e\x1b\\y"), "xy");
  const first = ansi.pieces("\x1b[34ma", ansi.fresh());
  assert.equal(ansi.pieces("b", first.style).list[0].cls, "fg4", "a colour goes on in the next part");
});

test("a carriage return overwrites", () => {
  assert.equal(ansi.overwrite("10 %\r20 %\r30 %"), "30 %");
  assert.equal(ansi.overwrite("long line\rab"), "abng line");
  assert.equal(ansi.overwrite("done\r"), "done");
});

test("places have addresses", () => {
  const at = route.place(route.to("session", "a b/c@%?#", { cwd: "/w ü", q: "" }));
  assert.deepEqual([at.view, at.rest, at.params.get("cwd"), at.params.has("q")], ["session", "a b/c@%?#", "/w ü", false]);
  assert.equal(route.place("#token=abc").view, "overview");
  assert.equal(route.place("#/session/%E0%A4%A").rest, "");
});

test("tags lose their attributes but for spans", () => {
  assert.equal(markup.bare('<td colspan="2" onclick=\'x(">")\' rowspan=3 style="a">1 < 2</td><b>&lt;</b>'), "<td colspan=2 rowspan=3>1 < 2</td><b>&lt;</b>");
  assert.equal(markup.bare("a<script>x</script>b<style>p{}</style >c<!-- <i> -->d<p"), "abcd<p>");
  assert.equal(markup.bare("<SVG onload=x><g></svg>ok"), "ok");
});

// A text that is looked at again for each of its tags would take hours: twice the text takes
// twice the time, give or take what else the machine does.
test("tags take a time that grows with the text alone", () => {
  for (const part of ['<a"', "<", "<script>", "<td x='", "<!--", "</svg", "<svg>"]) {
    const time = (size) => Math.min(...Array.from({ length: 3 }, () => { const began = process.cpuUsage().user; markup.bare(part.repeat(size / part.length)); return process.cpuUsage().user - began; }));
    const small = time(100_000), large = time(400_000);
    assert.ok(large < 12 * small + 50_000, `${part}: ${small} and ${large} microseconds of processor`); // 16 times as much is the square
  }
});

// The parts that ask a server, which answers as a test says; nothing here waits for a page.
globalThis.document ??= { hidden: false };
globalThis.requestAnimationFrame ??= (f) => setTimeout(f, 0);
const api = await of("api.js"), st = await of("state.js");
const answer = (v, status = 200) => new Response(JSON.stringify(v), { status, headers: { "Content-Type": "application/json" } });
const quiet = { "/api/sessions": { sessions: [] }, "/api/overview": { samples: [], marks: [] }, "/api/health": { started: "now" }, "/api/executions": { executions: [] } };

/** server has fetch answer with what a path says: a value, or a function. */
function server(t, paths, asked = []) {
  const before = globalThis.fetch;
  t.after(() => { globalThis.fetch = before; });
  globalThis.fetch = async (path, o = {}) => {
    asked.push(path);
    const v = { ...quiet, ...paths }[path.split("?")[0]];
    return typeof v === "function" ? v(path, o) : answer(v);
  };
  st.forget();
  return asked;
}

/** clock has time pass when a test says so. */
function clock(t) {
  const real = [globalThis.setTimeout, globalThis.clearTimeout], due = new Map();
  let now = 0, last = 0;
  globalThis.setTimeout = (f, ms = 0) => { due.set(++last, { at: now + ms, f }); return last; };
  globalThis.clearTimeout = (id) => { due.delete(id); };
  t.mock.method(performance, "now", () => now); // how long a look took is no matter of the machine
  t.after(() => { [globalThis.setTimeout, globalThis.clearTimeout] = real; });
  return { tick(ms) { now += ms; for (const [id, one] of [...due]) if (one.at <= now && due.delete(id)) one.f(); } };
}

/** turns lets all that is due happen, without a time that passes. */
const turns = async () => { for (let i = 0; i < 50; i++) await new Promise((f) => setImmediate(f)); };

test("the oldest executions make room, not the newest", async (t) => {
  const at = (i) => new Date(2026, 0, 1, 0, 0, i).toISOString(), list = Array.from({ length: 600 }, (_, i) => ({ id: "x-" + i, state: "ended", outcome: "ok", started: at(i) })).reverse(), end = new AbortController();
  server(t, { "/api/executions": { executions: list }, "/api/changes": () => { end.abort(); return answer({}); } });
  await st.watch(end.signal, () => {});
  assert.deepEqual([st.state.executions.has("x-599"), st.state.executions.has("x-0")], [true, false]);
  for (let i = 600; i < 700; i++) st.takeExecution({ id: "x-" + i, state: "ended", outcome: "ok", started: at(i) });
  assert.equal(st.state.executions.size, 512);
  assert.deepEqual([...st.state.executions.keys()].at(0), "x-188");
  assert.deepEqual([...st.state.executions.keys()].at(-1), "x-699");
});

test("a look that was asked for while another one was made comes soon, and nothing stays behind", async (t) => {
  const time = clock(t);
  let hold = null, listeners = 0;
  const asked = server(t, { "/api/sessions": (path, o) => new Promise((f, fail) => { o.signal.addEventListener("abort", () => fail(o.signal.reason)); hold = () => f(answer({ sessions: [] })); }) });
  const end = new AbortController(), { signal } = end, add = signal.addEventListener.bind(signal), remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = (...a) => { listeners++; add(...a); };
  signal.removeEventListener = (...a) => { listeners--; remove(...a); };
  const over = st.look(signal), looks = () => asked.filter((p) => p.startsWith("/api/sessions")).length;
  for (let n = 1; n < 20; n++) {
    st.hurry();
    await turns();
    time.tick(400); // a look by its time alone comes after 2 s
    await turns();
    assert.equal(looks(), n);
    st.hurry(); // while the look is under way
    hold();
    await turns();
  }
  assert.ok(listeners <= 2, `${listeners} listeners`);
  end.abort(new Error("signed out"));
  await over;
  assert.equal(listeners <= 0, true, `${listeners} listeners are left`);
});

test("a look that fails, or is not answered, is told of", async (t) => {
  const time = clock(t);
  let how = () => answer({ error: { message: "the sessions could not be looked at" } }, 503);
  server(t, { "/api/overview": (path, o) => how(path, o) });
  const end = new AbortController(), over = st.look(end.signal), next = async (ms) => { await turns(); time.tick(ms); await turns(); };
  st.say("live");
  assert.deepEqual(st.connected(), { text: "live", well: true });
  await next(2000);
  assert.deepEqual(st.connected(), { text: "live, but what is shown is old: the sessions could not be looked at", well: false });
  how = () => answer(quiet["/api/overview"]);
  await next(2000);
  assert.deepEqual(st.connected(), { text: "live", well: true });
  how = (path, o) => new Promise((_, fail) => { o.signal.addEventListener("abort", () => fail(o.signal.reason)); });
  await next(2000);
  await next(api.patience.look);
  assert.match(st.connected().text, /said nothing for 20 s/);
  end.abort();
  await next(10_000);
  await over;
});

test("a stream on which nothing comes is given up, and one with signs of life is not", async (t) => {
  const time = clock(t);
  let body = null;
  server(t, { "/api/changes": (path, o) => {
    const stream = new ReadableStream({ start(c) { body = c; } });
    o.signal.addEventListener("abort", () => body.error(o.signal.reason));
    return new Response(stream);
  } });
  const end = new AbortController(), seen = [];
  let failed = null;
  const over = api.follow("/api/changes", null, end.signal, (e) => seen.push(e.seq)).catch((err) => { failed = err; });
  for (let i = 0; i < 5; i++) {
    await turns();
    body.enqueue(new TextEncoder().encode(i === 2 ? 'data: {"seq": 1}\n\n' : ": alive\n\n"));
    await turns();
    time.tick(api.patience.silence - 1);
  }
  assert.deepEqual([seen, failed], [[1], null]);
  await turns();
  time.tick(2);
  await over;
  assert.match(String(failed), /said nothing for 45 s/);
});

test("those on disk are read when somebody wants them, and are apart from those that live", async (t) => {
  const all = [{ session: "up", cwd: "/w", state: "idle", queue: 0, done: 0 }, { session: "down", cwd: "/w", state: "hibernated", queue: 0, done: 0, hibernated: { bytes: 5 } }];
  const asked = server(t, { "/api/sessions": (path) => answer({ sessions: path.includes("hibernated=true") ? all : all.slice(0, 1) }), "/api/overview": { samples: [], marks: [], hibernated: 1 } });
  await st.refresh();
  assert.equal(st.state.asleep.size, 0);
  st.state.wantAsleep = true;
  await st.refresh();
  assert.deepEqual([[...st.state.sessions.keys()], [...st.state.asleep.keys()]], [["up@/w"], ["down@/w"]]);
  assert.equal(st.sessionOf("down@/w").hibernated.bytes, 5);
  assert.equal(asked.filter((p) => p === "/api/sessions?hibernated=true").length, 1);
  const rows = [...st.state.sessions.values(), ...st.state.asleep.values()];
  assert.deepEqual(rows.filter((r) => filter.matches(r, filter.parse("state:hibernated").terms)).map((r) => r.session), ["down"]);
  st.state.wantAsleep = false;
});

test("a row that goes leaves no other in its place for the keys that act", () => {
  const list = ["a", "b", "c"].map((id) => ({ id }));
  let at = filter.hold(list, { id: null, at: 0, lost: false }, true);
  assert.deepEqual(at, { id: "a", at: 0, lost: false });
  at = filter.hold(list, { id: "b", at: 0, lost: false });
  assert.deepEqual(at, { id: "b", at: 1, lost: false });
  const fewer = [list[0], list[2]];
  at = filter.hold(fewer, at);
  assert.deepEqual(at, { id: null, at: 1, lost: true });
  at = filter.hold(fewer, at);
  assert.deepEqual(at, { id: null, at: 1, lost: true }, "it stays so with the next look");
  assert.deepEqual(["ArrowDown", "ArrowUp", "End", "i"].map((k) => filter.moved(k, at, 5, 2)), [1, 0, 1, null]);
  assert.deepEqual(["ArrowDown", "ArrowUp", "PageDown", "Home"].map((k) => filter.moved(k, { id: "c", at: 1 }, 5, 2)), [2, 0, 6, 0]);
  assert.deepEqual(filter.hold(fewer, at, true), { id: "a", at: 0, lost: false }, "a person asked for another list");
});

test("a node is a column by which rows are found and sorted", () => {
  const some = [{ ...rows[0], node: "node-b" }, { ...rows[1], node: "node-a" }];
  assert.deepEqual(some.filter((r) => filter.matches(r, filter.parse("node:node-a").terms)).map((r) => r.session), ["s-9"]);
  assert.deepEqual(filter.sort([...some], "node").map((r) => r.node), ["node-a", "node-b"]);
  assert.ok(filter.sorts("-node"));
});
