// Servers that are there and say nothing, or cannot be trusted; and those that only take their time.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import https from "node:https";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";

import { Client, ConnectionLost, NoServer, ServerError } from "../dist/index.js";
import { Reach } from "../dist/reach.js";
import { patience, scripted, serveIn } from "./server.mjs";

const [executions, health] = ["POST /api/executions", "GET /api/health"];
const final = 'data: {"seq":1,"cell":0,"type":"final","outcome":"ok","state":"kept","cells":[]}\n\n';
const ok = [200, {}];

async function server(t, answer) {
  const made = await scripted(answer);
  t.after(() => made.end());
  return made;
}

async function folder(t) {
  const path = await mkdtemp(join(tmpdir(), "coppice-reach-"));
  t.after(() => rm(path, { recursive: true, force: true }));
  return path;
}

/** A client that waits for an answer no longer than so many milliseconds. */
function quick(url, ms) {
  return Object.assign(new Client({ url, token: "t", patience: ms / 1000 }), { reach: new Reach(ms, ms, ms) });
}

test("all that is asked of a frozen server ends", async (t) => {
  const sockets = new Set();
  const silent = net.createServer((socket) => sockets.add(socket.on("error", () => undefined).pause()));
  silent.listen(0, "127.0.0.1");
  await once(silent, "listening");
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    silent.close();
  });
  const c = quick(`http://127.0.0.1:${silent.address().port}`, 100);
  const all = async (source) => {
    for await (const _ of source);
  };
  const place = c.workspace("w");
  for (const [name, ask] of Object.entries({
    health: () => c.health(),
    run: () => c.session("s").run("1", { timeout: 3 }),
    close: () => c.session("s").close(),
    create: () => c.createWorkspace("w"),
    start: () => place.start(["true"]),
    wait: () => place.process("p").wait(),
    events: () => all(place.process("p").events()),
    list: () => place.files.list(),
    read: () => place.files.read("f"),
    write: () => place.files.write("f", new Uint8Array(8 << 20)),
    "write what is read": () => place.files.write("f", new Blob([new Uint8Array(8 << 20)]).stream()),
    artifact: () => c.artifact(0),
  })) {
    await assert.rejects(ask(), ConnectionLost, name);
  }
});

test("a stream that falls silent is connected again", async (t) => {
  let streams = 0;
  const at = await server(t, ({ what }) => {
    if (!what.endsWith("/events")) return ok;
    streams++;
    // Less than it promises: the connection stays, and nothing follows.
    return streams > 1 ? [200, final] : [200, final.slice(0, 10), { "Content-Length": 1000, Connection: "keep-alive" }];
  });
  const client = Object.assign(new Client({ url: at.url, token: "t" }), { reach: Object.assign(new Reach(patience), { silence: 100 }) });
  assert.equal((await client.session("s").run("1")).outcome, "ok");
  assert.equal(streams, 2);
});

test("an answer that takes its time is waited for while the server answers others", async (t) => {
  let begin;
  const begun = new Promise((resolve) => (begin = resolve));
  let asked = 0;
  const at = await server(t, async ({ what }) => {
    if (what === health && ++asked === 2) begin();
    if (what === executions) await begun;
    return what.endsWith("/events") ? [200, final] : ok;
  });
  const client = Object.assign(new Client({ url: at.url, token: "t", patience: patience / 1000 }), { reach: Object.assign(new Reach(patience), { ask: [10, 10] }) });
  assert.equal((await client.session("s").run("1")).outcome, "ok");
  assert.equal(at.asked.filter((a) => a.what === executions).length, 1);
});

test("without patience an answer is waited for", () => {
  assert.deepEqual([0, -1, 100, 5000, 1e6, Infinity].map((p) => new Reach(p).answer), [30_000, 30_000, 1000, 5000, 120_000, 120_000]);
  assert.deepEqual([0, 5000, 30_000, 1e6].map((p) => new Reach(p).silence), [45_000, 20_000, 45_000, 45_000]);
});

test("a certificate does not mend itself", async (t) => {
  const home = await folder(t);
  const [cert, key] = [join(home, "cert.pem"), join(home, "key.pem")];
  try {
    await promisify(execFile)("openssl", ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=localhost"]);
  } catch (e) {
    if (e.code === "ENOENT") return t.skip("openssl makes the certificate");
    throw e;
  }
  const secret = https.createServer({ cert: await readFile(cert), key: await readFile(key) }, (_, response) => response.end("{}"));
  secret.listen(0, "127.0.0.1");
  await once(secret, "listening");
  t.after(() => secret.close());
  const plain = await server(t, () => ok);
  for (const [url, says] of [[`https://localhost:${secret.address().port}`, /is not trusted: .*NODE_EXTRA_CA_CERTS/], [plain.url.replace("http:", "https:"), /is it http in place of https/]]) {
    let tries = 0;
    const client = new Client({ url, token: "t", patience: patience / 1000, fetch: (...args) => (tries++, fetch(...args)) });
    await assert.rejects(client.health(), (e) => e instanceof NoServer && says.test(e.message));
    await assert.rejects(client.session("s").run("1"), NoServer);
    assert.equal(tries, 2, "it is tried again");
  }
});

test("a process is lost with its server", { skip: "COPPICE_FLEET" in process.env }, async (t) => {
  const home = await folder(t);
  const token = "0123456789abcdef".repeat(2);
  const old = await serveIn(home, { token });
  const client = new Client({ url: old.url, token, patience: patience / 1000 });
  const place = await client.createWorkspace("wk");
  const one = await place.start(["sleep", "100"]);
  const lost = (e) => e instanceof ServerError && e.status === 410 && e.code === "lost" && /while the process ran/.test(e.message);
  const never = (e) => e instanceof ServerError && e.code === "not_found";
  await assert.rejects(place.process("never").info(), never);
  await old.kill();
  const now = await serveIn(home, { token, addr: new URL(old.url).host });
  t.after(() => now.end());
  for (const ask of [() => one.wait(), () => one.info(), () => one.end(), () => one.events().next(), () => one.write("x"), () => place.process(one.id).wait()]) await assert.rejects(ask(), lost);
  await client.createWorkspace("wk");
  await assert.rejects(one.wait(), lost);
  await assert.rejects(place.process("never").info(), never);
});

/** A node of a fleet that answers so in turn: with an epoch, or that says no. */
async function fleet(t, ...answers) {
  const at = await server(t, ({ what }) => {
    if (what.startsWith("DELETE")) return [204, ""];
    if (what !== executions) return [200, final];
    const told = answers.shift();
    return typeof told === "number" ? [200, {}, { "Coppice-Epoch": told, "Coppice-Node": "n" }] : [409, { error: { message: "no", ...told } }];
  });
  return { client: new Client({ url: at.url, token: "t" }), sent: () => at.asked.filter((a) => a.what === executions).map((a) => a.headers["coppice-epoch"]) };
}

test("what a client knows of sessions it knows by their names", async (t) => {
  const { client, sent } = await fleet(t, 3, 3, 1, 1);
  for (const [name, options] of [["s"], ["s"], ["t"], ["s", { kernel: "k" }]]) await client.session(name, options).run("1");
  assert.deepEqual(sent(), [undefined, "3", undefined, undefined]);
});

test("a node that is gone is told of once", async (t) => {
  const { client, sent } = await fleet(t, 1, { code: "epoch_gone", epoch: 2 }, 2);
  await client.session("s").run("1");
  await assert.rejects(client.session("s").run("1"), (e) => e.code === "epoch_gone");
  assert.equal((await client.session("s").run("1")).outcome, "ok");
  assert.deepEqual(sent(), [undefined, "1", "2"]);
});

test("who has not used a session, or has ended it, goes on", async (t) => {
  const { client, sent } = await fleet(t, { code: "epoch_needed", epoch: 2 }, 2, { code: "epoch_needed", epoch: 3 }, 3);
  await client.session("s").run("1");
  await client.session("s").close();
  await client.session("s").run("1");
  assert.deepEqual(sent(), [undefined, "2", undefined, "3"]);
});

test("what is refused before it is sent", async (t) => {
  const at = await server(t, () => ok);
  const client = new Client({ url: at.url, token: "t" });
  const [session, place] = [client.session("s"), client.workspace("w")];
  const question = { type: "input_request", execution: "e", id: "q" };
  for (const ask of [
    () => session.run("print('\ud800')"), () => session.run([{ code: "1", title: "\udfff" }]), () => session.run("1", { env: { A: "\ud800" } }),
    () => session.input(question, "\ud800"), () => place.process("p").write("\ud800"), () => place.files.write("f", "\ud800"), () => place.start(["\ud800"]),
  ]) {
    await assert.rejects(ask(), (e) => e instanceof TypeError && /is not valid Unicode text: \\ud[8f][0f][0f] at index \d+/.test(e.message));
  }
  for (const code of [5, undefined, null, [undefined], ["1", 5], {}]) {
    await assert.rejects(session.run(code), (e) => e instanceof TypeError && /^code is text, a cell such as { code: "1" }, or an array of those, not /.test(e.message), String(code));
  }
  await assert.rejects(session.run({ code: 5 }), (e) => e instanceof TypeError && e.message === "code is text, not 5");
  for (const content of [5, undefined, null, {}, ["x"]]) {
    await assert.rejects(place.files.write("t", content), (e) => e instanceof TypeError && /^what is written is text, bytes \(a Uint8Array\), a Blob or a ReadableStream, not /.test(e.message), String(content));
  }
  for (const ask of [() => place.process("p").write(5), () => place.exec(["cat"], { input: 5 })]) {
    await assert.rejects(ask(), (e) => e instanceof TypeError && e.message === "what is written is text or bytes (a Uint8Array), not 5");
  }
  for (const ask of [
    () => client.session("\ud800"), () => client.workspace("\ud800"), () => place.process("\ud800"), () => place.files.write("\ud800", "x"), () => place.files.read("\ud800"),
    () => place.files.stat("\ud800"), () => place.files.list("\ud800"), () => place.files.remove("\ud800"), () => place.files.move("a", "\ud800"), () => place.files.make("\ud800"),
    () => client.session("s", { cwd: "\ud800" }).run("1"), () => client.session("s", { cwd: "\ud800" }).interrupt(), () => session.save("\ud800"), () => client.dropCheckpoint("\ud800"),
  ]) {
    await assert.rejects(async () => ask(), (e) => e instanceof TypeError && /is not valid Unicode text: \\ud800 at index \d+ stands for no character/.test(e.message), String(ask));
  }
  for (const run of [(timeout) => session.run("1", { timeout }), (timeout) => place.start(["true"], { timeout })]) {
    await assert.rejects(run("5"), (e) => e instanceof TypeError && /a timeout is a number of seconds, not "5"/.test(e.message));
    await assert.rejects(run(NaN), RangeError);
  }
  for (const name of ["", "artifact://", "x", "-1", "artifact://../x"]) await assert.rejects(client.artifact(name), /names no artifact: one is like artifact:\/\/0/);
  assert.deepEqual(at.asked, []);
});

test("a token that is missing", async (t) => {
  const at = await server(t, () => [200, { sessions: [] }]);
  const { COPPICE_TOKEN: before } = process.env;
  t.after(() => (before === undefined ? delete process.env.COPPICE_TOKEN : (process.env.COPPICE_TOKEN = before)));
  delete process.env.COPPICE_TOKEN;
  assert.throws(() => new Client({ url: at.url }), (e) => e instanceof TypeError && e.message.startsWith(`the server at ${at.url} wants a token: give token, or set COPPICE_TOKEN`));
  await new Client({ url: at.url, token: "" }).sessions();
  process.env.COPPICE_TOKEN = "of the environment";
  for (const token of [undefined, "given"]) await new Client({ url: at.url, token }).sessions();
  assert.deepEqual(at.asked.map((a) => a.headers.authorization), ["Bearer", "Bearer of the environment", "Bearer given"]);
});

test("a word for programs is no next step", () => {
  for (const hint of ["busy", "off", "lossy", "exists", "threads", ""]) {
    const e = new ServerError(409, "fork_refused", "it cannot be copied", hint);
    assert.deepEqual([e.message, e.hint], ["it cannot be copied", hint]);
  }
  assert.equal(new ServerError(413, "no_space", "it is full", "make room").message, "it is full; make room");
});

test("an input that is closed", async (t) => {
  const told = { error: { code: "no_input", message: "the process takes no input", hint: 'start it with "input": true, or with a terminal' } };
  for (const [info, says] of [[{ input: true }, /^the input of the process is closed$/], [{ terminal: true }, /^the input of the process is closed$/], [{}, /start it with "input"/]]) {
    const at = await server(t, ({ what }) => (what.startsWith("GET") ? [200, info] : [409, told]));
    const process = new Client({ url: at.url, token: "t" }).workspace("w").process("p");
    for (const ask of [() => process.write("x"), () => process.closeInput()]) {
      await assert.rejects(ask(), (e) => e instanceof ServerError && e.status === 409 && e.code === "no_input" && says.test(e.message));
    }
  }
});
