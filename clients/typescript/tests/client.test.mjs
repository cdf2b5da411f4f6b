// The client against a real server.
import assert from "node:assert/strict";
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";

import { check, Client, ConnectionLost, ExecutionFailed, NoServer, ServerError } from "../dist/index.js";
import { find } from "../dist/node.js";
import { breaker, patience, serve } from "./server.mjs";

let server;
let client;

before(async () => {
  server = await serve();
  client = await find({ home: server.home });
});
after(() => server.end());

/** A session that ends with its test. */
function session(t) {
  const s = client.session(`typescript/${t.name}`);
  t.after(() => s.close());
  return s;
}

test("run", async (t) => {
  const s = session(t);
  assert.equal((await s.run("x = 40")).state, "fresh");
  const result = await s.run("print('hello'); x + 2", { timeout: 30 });
  assert.deepEqual([result.outcome, result.state, result.cells[0].output.split(/\s+/)], ["ok", "kept", ["hello", "42"]]);
  assert.equal(check(result), result);
  assert.equal("seq" in result, false);
});

test("cells", async (t) => {
  const result = await session(t).run(["a = 1", { code: "1/0", title: "divide" }, "a"]);
  assert.deepEqual(result.cells.map((c) => c.outcome), ["ok", "error", "not_started"]);
  assert.deepEqual([result.cells[1].title, result.cells[1].error.name], ["divide", "ZeroDivisionError"]);
  assert.throws(() => check(result), (e) => e instanceof ExecutionFailed && e.result === result && /ZeroDivisionError/.test(e.message));
});

test("timeout and env", async (t) => {
  const s = session(t);
  assert.equal((await s.run("import time; time.sleep(60)", { timeout: 0.3 })).outcome, "timeout");
  const colour = "import os; os.environ['COLOUR']";
  const result = await s.run(colour, { env: { COLOUR: "blue" }, timeout: Infinity });
  assert.equal((await s.run(colour, { callEnv: { COLOUR: "red" } })).cells[0].output, "'red'");
  assert.equal((await s.run(colour)).cells[0].output, "'blue'");
  assert.equal(result.cells[0].output, "'blue'");
  await assert.rejects(s.run("1", { timeout: 0 }), RangeError);
});

// In a fleet, artifacts stay on their node.
test("artifact", { skip: "COPPICE_FLEET" in process.env }, async (t) => {
  // What was too long for a result is read where the result says that it is.
  const result = await session(t).run("print(('é%d\\n' % 7) * 100_000)");
  assert.match(result.artifact, /^artifact:\/\/\d+$/);
  assert.ok(result.text.includes(result.artifact));
  const text = await client.artifact(result.artifact);
  assert.ok(text.includes("é7\n".repeat(100_000)));
  assert.equal(await client.artifact(Number(result.artifact.slice("artifact://".length))), text);
  const front = await breaker(server.url, 100_000);
  t.after(() => front.end());
  assert.equal(await new Client({ url: front.url, token: server.token }).artifact(result.artifact), text);
  assert.ok(front.broken > 0);
  await assert.rejects(client.artifact(1e6), (e) => e instanceof ServerError && e.code === "not_found");
});

test("stream", async (t) => {
  const events = [];
  for await (const e of session(t).stream("for i in range(3): print('é', i, flush=True)")) events.push(e);
  assert.deepEqual(events.map((e) => e.seq), events.map((_, i) => i + 1));
  assert.equal(events.filter((e) => e.type === "stdout").map((e) => e.text).join(""), "é 0\né 1\né 2\n");
  assert.deepEqual([events.at(-1).type, events.at(-1).outcome], ["final", "ok"]);
});

test("leaving cancels", async (t) => {
  const s = session(t);
  for await (const e of s.stream("import time\nprint('begun', flush=True)\ntime.sleep(600)")) if (e.type === "stdout") break;
  assert.equal((await s.run("6 * 7", { timeout: 60 })).cells[0].output, "42");
});

test("a signal cancels", async (t) => {
  const s = session(t);
  const stop = new AbortController();
  const running = s.run("import time\nprint('begun', flush=True)\ntime.sleep(600)", {
    signal: stop.signal, onEvent: (e) => e.type === "stdout" && stop.abort(new Error("enough")),
  });
  await assert.rejects(running, /enough/);
  assert.equal((await s.run("6 * 7", { timeout: 60 })).cells[0].output, "42");
  await assert.rejects(s.run("1", { signal: stop.signal }), /enough/);
});

test("input", async (t) => {
  const s = session(t);
  const asked = [];
  const result = await s.run("import getpass\nprint(input('name? '), getpass.getpass('word? '))", {
    answer: (q) => {
      asked.push([q.prompt, q.password ?? false]);
      return "Ada";
    },
  });
  assert.match(result.cells[0].output, /Ada Ada$/);
  assert.deepEqual(asked, [["name? ", false], ["word? ", true]]);
  assert.equal((await s.run("input()")).cells[0].outcome, "error");
});

test("fork", async (t) => {
  const s = session(t);
  await s.run("x = [1]");
  const copies = await s.fork(2);
  t.after(() => Promise.all(copies.map((c) => c.close())));
  assert.equal((await copies[0].run("x.append(2); x")).cells[0].output, "[1, 2]");
  assert.equal((await copies[1].run("x")).cells[0].output, "[1]");
  assert.equal(new Set([s.name, ...copies.map((c) => c.name)]).size, 3);
});

test("interrupt and reset", async (t) => {
  const s = session(t);
  const result = await s.run("x = 1\nprint('begun', flush=True)\nimport time; time.sleep(600)", { onEvent: (e) => e.type === "stdout" && s.interrupt() });
  assert.equal(result.outcome, "cancelled");
  assert.equal((await s.run("x")).cells[0].output, "1");
  await s.reset();
  assert.equal((await s.run("x")).cells[0].error.name, "NameError");
});

test("sessions", async (t) => {
  const s = session(t);
  await s.run("1");
  const info = (await client.sessions()).find((i) => i.session === s.name);
  assert.deepEqual([info.state, info.done, info.pinned], ["idle", 1, false]);
  await s.close();
  await s.close();
  while ((await client.sessions()).some((i) => i.session === s.name)) await new Promise((r) => setTimeout(r, 10));
  assert.equal((await client.health()).status, "ok");
});

test("refusals", async () => {
  await assert.rejects(client.session("k", { kernel: "ir" }).run("1"), /"ir" is no kernel of this host/);
  await assert.rejects(client.session("..").run("1"), (e) => e instanceof ServerError && e.code === "bad_request");
  await assert.rejects(new Client({ url: server.url, token: "wrong" }).sessions(), (e) => e instanceof ServerError && e.status === 401);
  await assert.rejects(new Client({ url: "http://127.0.0.1:9", token: "t", patience: 0.2 }).health(), (e) => e instanceof ConnectionLost && /^GET api\/health: /.test(e.message));
  assert.throws(() => new Client({ url: "ftp://x", token: "" }), RangeError);
  assert.throws(() => client.session(""), RangeError);
});

test("broken connections", async (t) => {
  const proxy = await breaker(server.url, 4000);
  t.after(() => proxy.end());
  const s = new Client({ url: proxy.url, token: server.token }).session("typescript/broken");
  t.after(() => client.session(s.name).close());
  const events = [];
  for await (const e of s.stream("import time\nruns = globals().get('runs', 0) + 1\nfor i in range(200): print(i, 'x' * 40, flush=True); time.sleep(.002)")) events.push(e);
  assert.deepEqual(events.map((e) => e.seq), events.map((_, i) => i + 1));
  const lines = events.filter((e) => e.type === "stdout").map((e) => e.text).join("").trim().split("\n");
  assert.deepEqual(lines.map((l) => l.split(" ")[0]), Array.from({ length: 200 }, (_, i) => String(i)));
  assert.ok(proxy.broken > 2, `${proxy.broken} connections were broken`);
  assert.equal((await client.session(s.name).run("runs")).cells[0].output, "1");
});

test("fifty conversations", async () => {
  const results = await Promise.all(Array.from({ length: 50 }, async (_, i) => {
    const s = client.session(`conversation ${i}`);
    await s.run(`x = ${i}`);
    const result = await s.run("x * 2", { timeout: patience / 1000 });
    await s.close();
    return result.cells[0].output;
  }));
  assert.deepEqual(results, Array.from({ length: 50 }, (_, i) => String(2 * i)));
});

test("what tells of a server is not trusted blindly", async (t) => {
  const home = await mkdtemp(join(tmpdir(), "coppice-find-"));
  t.after(() => rm(home, { recursive: true }));
  const path = join(home, ".coppice", "serve.json");
  await assert.rejects(find({ home }), (e) => e instanceof NoServer && /no coppice serve runs/.test(e.message));
  await mkdir(dirname(path));
  const write = async (text, mode = 0o600) => {
    await writeFile(path, typeof text === "string" ? text : JSON.stringify(text));
    await chmod(path, mode);
  };
  const record = { url: server.url, token: server.token, pid: process.pid };
  await write(record, 0o644);
  if (process.platform !== "win32") await assert.rejects(find({ home }), /can be read by others/);
  for (const text of ["", "{", "[]", "null", "{}", " ".repeat((1 << 20) + 1)]) {
    await write(text);
    await assert.rejects(find({ home }), /is not the record of a server/);
  }
  await write({ ...record, start: "1@before" });
  if (process.platform === "linux") await assert.rejects(find({ home }), /has ended/);
  await write(record);
  assert.equal((await (await find({ home })).health()).status, "ok");
});
