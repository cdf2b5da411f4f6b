// Clients that live on while their server is started again: no code runs twice.
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import net from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { Client, ConnectionLost, ServerError } from "../dist/index.js";
import { find } from "../dist/node.js";
import { Sent } from "../dist/wire.js";
import { breaker, patience, scripted, serve, serveIn } from "./server.mjs";

const [executions, health] = ["POST /api/executions", "GET /api/health"];
const final = 'data: {"seq":1,"cell":0,"type":"final","outcome":"ok","state":"kept","cells":[]}\n\n';
const ok = [200, {}];

/** An answer that says no. */
const no = (status, code) => [status, { error: { code, message: "no" } }];

/** How a server is. */
const life = (uptime, headers = {}) => [200, { status: "ok", uptime_seconds: uptime }, { "Coppice-Server": "L1", ...headers }];

/** What nobody knows of. */
const lost = (says) => (e) => e instanceof ServerError && e.status === 410 && e.code === "lost" && says.test(e.message) && /look at what it was to do before you run it again$/.test(e.hint);

/** A folder that is gone with its test. */
async function folder(t) {
  const path = await mkdtemp(join(tmpdir(), "coppice-restart-"));
  t.after(() => rm(path, { recursive: true, force: true }));
  return path;
}

/** A server that ends with its test. */
async function server(t, answer, port) {
  const made = await scripted(answer, port);
  t.after(() => made.end());
  return made;
}

/** Runs code at a server that gives these answers in turn; says what came of it, and what was asked. */
async function runAt(t, begun, healths = [], { execution, events = [200, final] } = {}) {
  const [posts, asks] = [begun.values(), healths.values()];
  const at = await server(t, ({ what }) => {
    if (what === executions) return posts.next().value;
    if (what === health) return asks.next().value;
    return what.endsWith("/events") ? events : execution;
  });
  const client = new Client({ url: at.url, token: "t" });
  const result = client.session("s").run("1");
  await result.catch(() => undefined);
  const ids = new Set(at.asked.filter((a) => a.what === executions).map((a) => JSON.parse(a.body).id));
  assert.equal(ids.size, 1);
  const asked = at.asked.filter((a) => !a.what.endsWith("/cancel")).map((a) => [a.what.replace([...ids][0], "ID"), a.headers["coppice-server"]]);
  return { result, asked };
}

const [first, asked, toL1] = [[executions, "?"], [health, "?"], [executions, "L1"]];
const [looked, events] = [["GET /api/executions/ID", "?"], ["GET /api/executions/ID/events", undefined]];

test("what is sent once more", async (t) => {
  const before = [200, { status: "ok" }];
  const kept = { execution: ok };
  const none = { execution: no(404, "not_found") };
  for (const [name, begun, healths, more, wanted] of [
    ["the same life", [undefined, ok], [life(1000)], {}, [first, asked, toL1, events]],
    ["the same life breaks again", [undefined, undefined, ok], [life(1000), undefined, life(1000)], {}, [first, asked, toL1, asked, asked, toL1, events]],
    ["started again and kept", [undefined], [life(1e-6)], kept, [first, asked, looked, events]],
    ["started again in between, and kept", [undefined, no(410, "lost")], [life(1000)], kept, [first, asked, toL1, looked, events]],
    ["a fleet", [undefined, ok], [life(1e-6, { "Coppice-Node": "n" })], none, [first, asked, first, events]],
    ["a server of before", [undefined, ok], [before], none, [first, asked, first, events]],
    ["one that does not say since when", [undefined, ok], [[...before, { "Coppice-Server": "L1" }]], none, [first, asked, first, events]],
    ["one that does not say which", [undefined, ok], [[200, { uptime_seconds: 1e-6 }]], none, [first, asked, first, events]],
  ]) {
    const got = await runAt(t, begun, healths, more);
    assert.equal((await got.result).outcome, "ok", name);
    assert.deepEqual(got.asked, wanted, name);
  }
  for (const [name, begun, healths, wanted] of [
    ["started again", [undefined], [life(1e-6)], [first, asked, looked]],
    ["started again in between", [undefined, no(410, "lost")], [life(1000)], [first, asked, toL1, looked]],
  ]) {
    const got = await runAt(t, begun, healths, none);
    await assert.rejects(got.result, lost(/after the code was sent: whether it ran is not known; it is not sent a second time/), name);
    assert.deepEqual(got.asked, wanted, name);
  }
});

test("a server that says no", async (t) => {
  const draining = no(503, "draining");
  for (const [code, begun, healths, more] of [
    ["draining", [undefined], [draining], {}], ["draining", [undefined, draining], [life(1000)], {}], ["forbidden", [undefined], [life(1e-6)], { execution: no(403, "forbidden") }],
  ]) {
    const { result } = await runAt(t, begun, healths, more);
    await assert.rejects(result, (e) => e instanceof ServerError && e.code === code && e.repeated);
  }
});

test("an execution that is gone", async (t) => {
  await assert.rejects((await runAt(t, [ok], [], { events: no(404, "not_found") })).result, lost(/while the code ran: what became of it is not known/));
  await assert.rejects((await runAt(t, [ok], [], { events: no(404, "unknown") })).result, (e) => e.code === "unknown");
});

test("a server that is started a moment later just gets the code, without a question", async (t) => {
  const port = await free();
  const running = new Client({ url: `http://127.0.0.1:${port}`, token: "t" }).session("s").run("1");
  await sleep(100);
  const at = await server(t, ({ what }) => (what.endsWith("/events") ? [200, final] : ok), port);
  assert.equal((await running).outcome, "ok");
  assert.deepEqual(at.asked.map((a) => a.what.split("/").length), [3, 5]);
});

/** A port that was free a moment ago. */
async function free() {
  const s = net.createServer().listen(0, "127.0.0.1");
  await once(s, "listening");
  const { port } = s.address();
  await new Promise((done) => s.close(done));
  return port;
}

/** Writes the record of a server that runs: of this process. */
async function record(home, url, token, more = {}) {
  const path = join(home, ".coppice", "serve.json");
  await mkdir(dirname(path), { recursive: true });
  await writeFile(`${path}.new`, JSON.stringify({ url, token, pid: process.pid, ...more }), { mode: 0o600 });
  await rename(`${path}.new`, path);
  return path;
}

/** A server that has this token. */
const openedBy = (t, token) => server(t, ({ headers }) => (headers.authorization === `Bearer ${token}` ? [200, { sessions: [] }] : no(401, "unauthorized")));

test("another address, also for what is not repeated", async (t) => {
  for (const ask of [(c) => c.sessions(), (c) => c.session("s").interrupt()]) {
    const [home, old, now] = [await folder(t), await openedBy(t, "old"), await openedBy(t, "new")];
    await record(home, old.url, "old");
    const client = await find({ home });
    await ask(client);
    await old.end();
    await record(home, now.url, "new");
    await ask(client);
    assert.deepEqual([client.url, now.asked.map((a) => a.headers.authorization)], [now.url, ["Bearer new"]]);
  }
});

test("another token", async (t) => {
  const [home, at] = [await folder(t), await openedBy(t, "new")];
  await record(home, at.url, "old");
  const client = await find({ home });
  await assert.rejects(client.sessions(), (e) => e instanceof ServerError && e.status === 401);
  assert.equal(at.asked.length, 1);
  await record(home, at.url, "new");
  await client.session("s").interrupt();
  assert.deepEqual(at.asked.map((a) => a.headers.authorization), ["Bearer old", "Bearer old", "Bearer new"]);
});

test("what is read while it is sent is sent once", async (t) => {
  const [home, at] = [await folder(t), await openedBy(t, "new")];
  await record(home, at.url, "old");
  const client = await find({ home });
  await record(home, at.url, "new");
  await assert.rejects(client.workspace("w").files.write("a", new Blob(["x"]).stream()), (e) => e.status === 401);
  assert.equal(at.asked.length, 1);
  await client.workspace("w").files.write("a", new Blob(["x"]));
  assert.deepEqual(at.asked.map((a) => a.headers.authorization), ["Bearer old", "Bearer old", "Bearer new"]);
});

test("patience goes on while there is no record of a server that runs", async (t) => {
  const [home, at] = [await folder(t), await openedBy(t, "new")];
  const away = `http://127.0.0.1:${await free()}`;
  const path = await record(home, away, "old");
  const client = await find({ home });
  const asking = client.sessions();
  for (const step of [() => rm(path), () => writeFile(path, "{", { mode: 0o600 }), () => record(home, at.url, "new", { pid: 2 ** 22 + 1 }), () => record(home, "no address", "new")]) {
    await step();
    await sleep(50);
    assert.equal(client.url, away);
  }
  await record(home, at.url, "new");
  assert.deepEqual(await asking, []);
});

test("a client that was named its server stays there", async (t) => {
  const at = await openedBy(t, "new");
  await assert.rejects(new Client({ url: at.url, token: "old" }).sessions(), (e) => e.status === 401);
  await assert.rejects(new Client({ url: `http://127.0.0.1:${await free()}`, token: "new", patience: 0.1 }).sessions(), ConnectionLost);
});

test("code is not sent to another server, however long that one has run", async (t) => {
  const home = await folder(t);
  const now = await server(t, ({ what }) => (what === health ? life(1000) : no(404, "not_found")));
  const old = await scripted(async () => {
    await record(home, now.url, "new");
    setImmediate(() => old.end());
  });
  await record(home, old.url, "old");
  const client = await find({ home });
  await assert.rejects(client.session("s").run("1"), lost(/whether it ran is not known/));
  assert.ok(now.asked.length >= 2 && now.asked.every((a) => a.what.startsWith("GET")), JSON.stringify(now.asked));
});

test("a machine that has slept", () => {
  // The steady clock does not count while it sleeps, the other one may be set back.
  const now = { steady: 0, wall: 1e6 };
  const sent = new Sent(() => now.steady, () => now.wall);
  const at = { url: "http://x", token: "t" };
  const failed = (code, syscall) => new TypeError("fetch failed", { cause: Object.assign(new Error(code), { code, syscall }) });
  sent.begin(at);
  for (const code of ["ECONNREFUSED", "ENOENT", "ENOTFOUND", "EHOSTUNREACH", "EAI_AGAIN", "UND_ERR_CONNECT_TIMEOUT"]) sent.fail(failed(code, "connect"));
  assert.equal(sent.arrived, false);
  sent.fail(failed("EHOSTUNREACH", "read")); // of a connection that was made
  assert.equal(sent.arrived, true);
  sent.ask({ ...at });
  const headers = new Headers({ "Coppice-Server": "L1" });
  for (const [steady, wall, uptime, want] of [[5e3, 1005e3, 5, true], [5e3, 1005e3, 4.9, false], [5e3, 4600e3, 1800, false], [5e3, 4600e3, 3600, true], [5e3, 0, 5, true], [5e3, 0, 4.9, false]]) {
    Object.assign(now, { steady, wall });
    assert.deepEqual(sent.again({ uptime_seconds: uptime }, headers), want ? { "Coppice-Server": "L1" } : undefined, `${steady} ${wall} ${uptime}`);
  }
  sent.ask({ ...at, token: "u" });
  assert.equal(sent.again({ uptime_seconds: 1e6 }, headers), undefined);
});

// A fleet is started again by other means.
const alone = (name, f) => test(name, { skip: "COPPICE_FLEET" in process.env }, f);

alone("a client follows its server", async (t) => {
  const [home, flags] = [await folder(t), ["--hibernate", "lossy"]];
  const old = await serveIn(home, {}, ...flags);
  const client = await find({ home });
  const session = client.session("s");
  await session.run("x = 41");
  await old.end();
  const now = await serveIn(home, {}, ...flags);
  t.after(() => now.end());
  const result = await session.run("x + 1");
  assert.deepEqual([result.outcome, result.state, result.cells[0].output, client.url], ["ok", "restored", "42", now.url]);
  assert.notEqual(old.token, now.token);
  await session.close();
});

/**
 * Runs code at a server that is killed when the code has left its trace, and then started again at
 * the same address; the code has run once.
 */
async function runAndKill(t, says, front = async (url) => ({ url })) {
  const home = await folder(t);
  const token = "0123456789abcdef".repeat(2);
  const trace = join(home, "trace");
  const old = await serveIn(home, { token });
  const at = await front(old.url);
  const killing = (async () => {
    while ((await readFile(trace, "utf8").catch(() => "")) === "") await sleep(10);
    await old.kill();
    const now = await serveIn(home, { token, addr: new URL(old.url).host });
    t.after(() => now.end());
    at.most = 1 << 20;
  })();
  const code = `with open(${JSON.stringify(trace)}, 'a') as f: f.write('x')\nimport time; time.sleep(600)`;
  const session = new Client({ url: at.url, token, patience: patience / 1000 }).session("s");
  await assert.rejects(session.run(code, { timeout: 120 }), lost(says));
  await killing;
  await sleep(500); // in which it would run again
  assert.equal(await readFile(trace, "utf8"), "x");
}

alone("killed while code runs", (t) => runAndKill(t, /while the code ran/));

alone("killed before the answer", (t) =>
  runAndKill(t, /whether it ran is not known/, async (url) => {
    const at = await breaker(url, 1); // of each answer one byte comes through
    t.after(() => at.end());
    return at;
  }));

test("an answer that is lost", async (t) => {
  // A server that was not started again gets the code again, and runs it once.
  const at = await serve();
  t.after(() => at.end());
  for (let i = 0; i < 4; i++) { // in a fleet, at each of its nodes
    const session = new Client(at).session(`s${i}`);
    await session.run("x = 1");
    const front = await breaker(at.url, 1);
    t.after(() => front.end());
    const running = new Client({ url: front.url, token: at.token }).session(session.name).run("x += 1; x");
    while (front.broken < 2) await sleep(10);
    front.most = 1 << 20;
    assert.equal((await running).cells[0].output, "2");
    await session.close();
  }
});
