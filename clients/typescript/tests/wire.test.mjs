// What needs no server.
import assert from "node:assert/strict";
import { test } from "node:test";

import { ConnectionLost, CoppiceError } from "../dist/index.js";
import { Session } from "../dist/session.js";
import { cellsOf, Epochs, Following, Parser, Pause, problem, sessionPath } from "../dist/wire.js";

test("however a stream is cut, the same events come of it", () => {
  const stream = ': alive\n\nid: 1\ndata: {"a"\r\ndata:  1}\r\n\r\ndata:x\rdata:y\r\revent: e\n\ndata: last\n\n';
  for (let size = 1; size <= stream.length; size++) {
    const parser = new Parser();
    const got = [];
    for (let i = 0; i < stream.length; i += size) got.push(...parser.feed(stream.slice(i, i + size)));
    assert.deepEqual(got, ['{"a"\n 1}', "x\ny", "last"], `pieces of ${size}`);
  }
  assert.deepEqual(new Parser().feed("data: not ended\n"), []);
});

test("each event once and in order", () => {
  const seen = new Following("x1");
  const event = (seq, type = "stdout") => JSON.stringify({ seq, cell: 0, type, text: String(seq) });
  assert.equal(seen.take(event(1)).text, "1");
  assert.equal(seen.take(event(1)), undefined);
  assert.throws(() => seen.take(event(3)), /event 3 follows event 1/);
  assert.equal(seen.done, false);
  assert.equal(seen.take(event(2, "final")).execution, "x1");
  assert.equal(seen.done, true);
  for (const bad of ["{", "[]", "null", '{"seq":"1","type":"stdout"}']) assert.throws(() => new Following("x").take(bad), CoppiceError, bad);
});

test("patience ends", () => {
  let now = 0;
  const pause = new Pause(30_000, () => now);
  const waits = [];
  assert.throws(() => {
    for (;;) {
      waits.push(pause.after(new TypeError("fetch failed", { cause: new Error("gone") }), "GET x"));
      now += waits.at(-1);
    }
  }, (e) => e instanceof ConnectionLost && e.message === "GET x: gone");
  assert.deepEqual([waits.slice(0, 3), Math.max(...waits), now >= 30_000], [[10, 20, 40], 1000, true]);
});

test("a server that is silent is in reach", () => {
  let now = 0;
  const pause = new Pause(30_000, () => now);
  pause.after(new Error(), "");
  pause.begin();
  now = 31_000;
  pause.alive();
  pause.after(new Error(), ""); // throws nothing
});

test("requests", () => {
  assert.deepEqual(cellsOf("a"), [{ code: "a" }]);
  assert.deepEqual(cellsOf({ code: "a" }), [{ code: "a" }]);
  assert.deepEqual(cellsOf(["a", { code: "b", title: "t" }]), [{ code: "a" }, { code: "b", title: "t" }]);
  assert.equal(sessionPath("a/b ?é", "/fork"), "api/sessions/a%2Fb%20%3F%C3%A9/fork");
});

test("problems", () => {
  const e = problem(404, '{"error":{"code":"not_found","message":"there is no session","hint":"open it"}}');
  assert.deepEqual([e.status, e.code, e.message, e.hint], [404, "not_found", "there is no session; open it", "open it"]);
  for (const text of ["", "<html>", "[]", '{"error":"x"}']) assert.equal(problem(502, text).message, "the server answered with status 502");
});

test("epochs", () => {
  for (const [name, ran, code, repeated, want] of [
    ["not used", false, "epoch_needed", false, true],
    ["used", true, "epoch_needed", false, false],
    ["sent before", false, "epoch_needed", true, false],
    ["gone", true, "epoch_gone", false, false],
  ]) {
    const epochs = new Epochs();
    assert.deepEqual(epochs.headers, {});
    epochs.ran = ran;
    const e = problem(409, JSON.stringify({ error: { code, message: "no", epoch: 2 } }));
    e.repeated = repeated;
    assert.equal(epochs.goesOn(e), want, name);
    assert.deepEqual(epochs.headers, { "Coppice-Epoch": "2" }, "it is told once");
  }
});

test("a session that was closed is as new", async () => {
  const needed = () => problem(409, JSON.stringify({ error: { code: "epoch_needed", message: "no", epoch: 2 } }));
  const asked = [];
  const client = {
    async ask(method) {
      asked.push([method, {}]);
    },
    async begin(_, { headers }) {
      asked.push(["POST", headers]);
      if (asked.length > 1 && !headers["Coppice-Epoch"]) throw needed();
    },
    async *events() {
      yield { type: "final" };
    },
  };
  const session = new Session(client, "s");
  await session.run("1");
  await session.close();
  await session.run("1");
  assert.deepEqual(asked, [["POST", {}], ["DELETE", {}], ["POST", {}], ["POST", { "Coppice-Epoch": "2" }]]);
});
