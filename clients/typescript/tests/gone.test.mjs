// Servers that are not there yet, and those that were started again without what they had.
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { Client, ConnectionLost } from "../dist/index.js";
import { patience, scripted, serveIn } from "./server.mjs";

/** A port that was free a moment ago. */
async function free() {
  const s = net.createServer().listen(0, "127.0.0.1");
  await once(s, "listening");
  const { port } = s.address();
  await new Promise((done) => s.close(done));
  return port;
}

/** What is sent once, and not again when it is not known what became of it. */
const onces = {
  close: (c) => c.session("s").close(),
  interrupt: (c) => c.session("s").interrupt(),
  reset: (c) => c.session("s").reset(),
  fork: (c) => c.session("s").fork(),
  checkpoint: (c) => c.session("s").checkpoint(),
  start: (c) => c.workspace("w").start(["true"]),
  input: (c) => c.workspace("w").process("p").write("x"),
  "write what is read": (c) => c.workspace("w").files.write("f", new Blob(["what is read"]).stream()),
  move: (c) => c.workspace("w").files.move("f", "g"),
  remove: (c) => c.workspace("w").files.remove("f"),
};

test("a server that comes later", async (t) => {
  for (const [name, ask] of Object.entries({ ...onces, answer: (c) => c.session("s").input({ type: "input_request", execution: "e", id: "q" }, "x"), list: (c) => c.sessions() })) {
    const port = await free();
    const asking = ask(new Client({ url: `http://127.0.0.1:${port}`, token: "t" }));
    await sleep(50);
    const at = await scripted(() => [200, { id: "p", sessions: [], taken: 1, status: "accepted" }], port);
    t.after(() => at.end());
    await asking;
    assert.equal(at.asked.length, 1, name);
    if (name.startsWith("write")) assert.equal(at.asked[0].body, "what is read");
  }
});

test("what may have arrived is not sent again", async (t) => {
  for (const [name, ask] of Object.entries(onces)) {
    const at = await scripted(() => undefined);
    t.after(() => at.end());
    await assert.rejects(ask(new Client({ url: at.url, token: "t" })), ConnectionLost, name);
    assert.equal(at.asked.length, 1, name);
  }
});

test("what helps where no server runs", async () => {
  const url = `http://127.0.0.1:${await free()}`;
  const client = new Client({ url, token: "t", patience: 0.1 });
  for (const ask of [() => client.session("s").run("1"), () => client.session("s").interrupt(), () => client.health()]) {
    await assert.rejects(ask(), (e) => e instanceof ConnectionLost && e.message.endsWith(`: no server runs at ${url}; start one with coppice serve`));
  }
});

test("who leaves code while no server runs does not wait for one", { timeout: patience }, async () => {
  const at = await scripted(({ what }) => (what.endsWith("/events") ? [200, 'data: {"seq":1,"cell":0,"type":"stdout","text":"x"}\n\n'] : [200, {}]));
  for await (const _ of new Client({ url: at.url, token: "t", patience: 1e6 }).session("s").stream("1")) {
    await at.end();
    break;
  }
});

const again = "the server was started again, and does not have what the session had";
const note = `[This call got a new kernel: ${again}. The variables of earlier calls are gone.]`;

/**
 * The reason and the text of the last result at servers that answer so in turn: with a life, a state, and what else
 * the result has. A function is done in between.
 */
async function told(t, turns, session = (c) => c.session("s")) {
  let turn;
  const at = await scripted(({ what }) => {
    if (what === "POST /api/executions") return [200, {}, typeof turn[0] === "string" ? { "Coppice-Server": turn[0] } : turn[0]];
    if (!what.endsWith("/events")) return [204, ""];
    return [200, `data: ${JSON.stringify({ seq: 1, cell: 0, type: "final", outcome: "ok", text: "hi", cells: [], state: turn[1], ...turn[2] })}\n\n`];
  });
  t.after(() => at.end());
  const client = new Client({ url: at.url, token: "t" });
  let result;
  for (turn of turns) {
    if (typeof turn === "function") await turn(client);
    else result = await session(client).run("1");
  }
  return [result.reason, result.text];
}

test("variables that are gone with their server", async (t) => {
  const said = [again, `${note}\n\nhi`];
  for (const turns of [
    [["L1", "fresh"], ["L2", "fresh"]], [["L1", "fresh"], ["L1", "kept"], ["L2", "fresh"]], [["L1", "fresh"], ["L2", "kept"], ["L3", "fresh"]],
    [["L1", "fresh"], ["L2", "", { outcome: "not_started" }], ["L2", "fresh"]],
  ]) {
    assert.deepEqual(await told(t, turns), said, JSON.stringify(turns));
  }
  assert.deepEqual(await told(t, [["L1", "fresh"], ["L2", "fresh", { text: "" }]]), [again, note]);
});

test("variables that are as expected", async (t) => {
  for (const turns of [
    [["L1", "fresh"]], [["L1", "fresh"], ["L1", "fresh"]], [["L1", "fresh"], ["L2", "kept"]], [["L1", "fresh"], ["L2", "restored"]], [["L1", "fresh"], ["L2", "fresh"], ["L2", "kept"]],
    [["L1", "fresh"], ["L1", "lost"], ["L2", "fresh"]], [["L1", ""], ["L2", "fresh"]], [["L1", "fresh"], (c) => c.session("s").close(), ["L2", "fresh"]],
    [["L1", "fresh"], (c) => c.session("s").reset(), ["L2", "fresh"]], [[{}, "fresh"], ["L2", "fresh"]], [["L1", "fresh"], [{}, "fresh"]],
    [["L1", "fresh"], [{ "Coppice-Server": "L2", "Coppice-Node": "n" }, "fresh"]],
  ]) {
    assert.deepEqual(await told(t, turns), [undefined, "hi"], JSON.stringify(turns));
  }
  assert.deepEqual(await told(t, [["L1", "fresh"], ["L2", "fresh", { reason: "it was idle" }]]), ["it was idle", "hi"]);
  const inside = (c) => c.workspace("w").session("s");
  assert.equal((await told(t, [["L1", "fresh"], ["L2", "fresh"]], inside))[0], again);
  assert.deepEqual(await told(t, [["L1", "fresh"], (c) => c.workspace("w").end(), ["L2", "fresh"]], inside), [undefined, "hi"]);
});

test("a session of a server that was started again", { skip: "COPPICE_FLEET" in process.env }, async (t) => {
  const home = await mkdtemp(join(tmpdir(), "coppice-gone-"));
  t.after(() => rm(home, { recursive: true, force: true }));
  const token = "0123456789abcdef".repeat(2);
  const old = await serveIn(home, { token });
  const client = new Client({ url: old.url, token, patience: patience / 1000 });
  await client.session("s").run("x = 1");
  await old.end();
  const now = await serveIn(home, { token, addr: new URL(old.url).host });
  t.after(() => now.end());
  const { state, reason, text } = await client.session("s").run("'x' in dir()");
  assert.deepEqual([state, reason, text], ["fresh", again, `${note}\n\nFalse`]);
  for (const name of ["s", "new"]) assert.equal((await client.session(name).run("1")).reason, undefined);
  assert.deepEqual((await client.sessions()).map((s) => [s.name, s.session]).sort(), [["new", "new"], ["s", "s"]]);
});
