// Questions of input(), while their server is started again or their code ends.
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { Client, ServerError } from "../dist/index.js";
import { patience, scripted, serveIn } from "./server.mjs";

const question = (seq, id = "q", prompt = "?") => `data: {"seq":${seq},"cell":0,"type":"input_request","id":"${id}","prompt":"${prompt}"}\n\n`;
const final = (seq) => `data: {"seq":${seq},"cell":0,"type":"final","outcome":"ok","state":"kept","text":"done","cells":[]}\n\n`;
const unknown = [404, { error: { code: "not_found", message: "no" } }];
const lost = (e) => e instanceof ServerError && e.status === 410 && e.code === "lost" && /while the code ran/.test(e.message);
const never = () => new Promise(() => undefined);

/** A session of a server whose connections bring these events in turn, the last ones again and again, and that says this to an answer. */
async function at(t, connections, told = [200, { status: "accepted" }]) {
  const server = await scripted(async ({ what }) => {
    if (what.endsWith("/input")) return Array.isArray(told[0]) || told[0] === undefined ? told.shift() : told;
    if (!what.endsWith("/events")) return [200, {}];
    const events = connections.length > 1 ? connections.shift() : connections[0];
    return [200, typeof events === "function" ? await events(server) : events];
  });
  t.after(() => server.end());
  return { session: new Client({ url: server.url, token: "t" }).session("s"), asked: (end) => server.asked.filter((a) => a.what.endsWith(end)) };
}

test("a server that does not know the code any more", async (t) => {
  await assert.rejects((await at(t, [question(1)], unknown)).session.run("1", { answer: () => "x" }), lost);
  const { session } = await at(t, [question(1)], unknown);
  await assert.rejects(async () => {
    for await (const event of session.stream("1", { allowStdin: true })) await session.input(event, "x");
  }, lost);
  await assert.rejects(session.input({ type: "input_request", execution: "another", id: "q" }, "x"), (e) => e.code === "not_found");
});

test("a question that was answered is not asked again", async (t) => {
  const more = async (server) => {
    while (!server.asked.some((a) => a.what.endsWith("/input"))) await sleep(10);
    return question(2) + question(3, "other") + final(4);
  };
  const connections = () => [question(1), more];
  const ids = [];
  const run = await at(t, connections());
  assert.equal((await run.session.run("1", { answer: ({ id }) => String(ids.push(id)) })).text, "done");
  assert.deepEqual(ids, ["q", "other"]);
  assert.equal(run.asked("/input").filter((a) => JSON.parse(a.body).id === "q").length, 1);
  const seen = [];
  const { session } = await at(t, connections());
  for await (const event of session.stream("1", { allowStdin: true })) {
    seen.push(event.seq);
    if (event.type === "input_request") await session.input(event, "x");
  }
  assert.deepEqual(seen, [1, 3, 4]);
});

test("a later question that has its id: a server that takes over counts its questions anew", async (t) => {
  for (const more of [question(2, "q", "Name?") + final(3), 'data: {"seq":2,"cell":0,"type":"stdout","text":"x"}\n\n' + question(3) + final(4)]) {
    const { session, asked } = await at(t, [question(1), more]);
    for await (const event of session.stream("1", { allowStdin: true })) {
      if (event.type === "input_request") await session.input(event, "x");
    }
    assert.equal(asked("/input").length, 2);
  }
});

test("an answer whose receipt is lost is sent again", async (t) => {
  const { session, asked } = await at(t, [question(1), final(2)], [undefined, [200, { status: "already answered" }]]);
  for await (const event of session.stream("1", { allowStdin: true })) {
    if (event.type === "input_request") assert.equal(await session.input(event, "x"), "already answered");
  }
  assert.equal(asked("/input").length, 2);
});

test("a result that comes before the answer", async (t) => {
  const { session, asked } = await at(t, [question(1), question(2) + final(3)]);
  let asks = 0;
  assert.equal((await session.run("1", { answer: () => (asks++, never()) })).text, "done");
  assert.deepEqual([asks, asked("/input").length, asked("/cancel").length], [1, 0, 0]);
});

test("an abort while a question is asked", { timeout: patience }, async (t) => {
  const { session, asked } = await at(t, [question(1), ""]);
  const aborting = new AbortController();
  const running = session.run("1", { signal: aborting.signal, answer: () => (setImmediate(() => aborting.abort(new Error("enough"))), never()) });
  await assert.rejects(running, /enough/);
  assert.equal(asked("/cancel").length, 1);
});

test("an answer that throws", { timeout: patience }, async (t) => {
  for (const answer of [() => Promise.reject(new Error("no one is there")), () => { throw new Error("no one is there"); }]) {
    const { session, asked } = await at(t, [question(1), ""]);
    await assert.rejects(session.run("1", { answer }), /no one is there/);
    assert.equal(asked("/cancel").length, 1);
  }
});

test("killed while an answer is thought of", { skip: "COPPICE_FLEET" in process.env, timeout: 2 * patience }, async (t) => {
  const home = await mkdtemp(join(tmpdir(), "coppice-answers-"));
  t.after(() => rm(home, { recursive: true, force: true }));
  const token = "0123456789abcdef".repeat(2);
  const old = await serveIn(home, { token });
  const session = new Client({ url: old.url, token, patience: patience / 1000 }).session("s");
  const answer = async () => {
    await old.kill();
    const now = await serveIn(home, { token, addr: new URL(old.url).host });
    t.after(() => now.end());
    return "x";
  };
  await assert.rejects(session.run("input('?')", { answer }), lost);
});
