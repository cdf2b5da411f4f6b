// What needs no server.
import assert from "node:assert/strict";
import { test } from "node:test";

import { ConnectionLost, CoppiceError } from "../dist/index.js";
import { Epochs, mostEpochs } from "../dist/epochs.js";
import { cellsOf, Following, Parser, Pause, problem, sessionPath } from "../dist/wire.js";

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
  for (const [name, seen, code, repeated, want] of [
    ["not used", 0, "epoch_needed", false, true],
    ["sent before", 0, "epoch_needed", true, false],
    ["gone", 1, "epoch_gone", false, false],
  ]) {
    const epochs = new Epochs();
    epochs.saw("s", seen);
    const e = problem(409, JSON.stringify({ error: { code, message: "no", epoch: 2 } }));
    e.repeated = repeated;
    assert.equal(epochs.goesOn("s", epochs.headers("s"), e), want, name);
    assert.deepEqual(epochs.headers("s"), { "Coppice-Epoch": "2" }, "it is told once");
    epochs.forget("s");
    assert.deepEqual(epochs.headers("s"), {}, "we know what is gone");
    for (const told of ["", "0", "-1", "x"]) epochs.heard("s", new Headers({ "Coppice-Epoch": told }));
    assert.deepEqual(epochs.headers("s"), {});
  }
});

test("epochs are bounded", () => {
  const epochs = new Epochs();
  for (let i = 0; i <= mostEpochs; i++) {
    epochs.saw(String(i), 1);
    epochs.saw("0", 1);
  }
  assert.deepEqual(["0", "1", "2"].map((s) => Object.keys(epochs.headers(s)).length), [1, 0, 1], "the one that was used longest ago is forgotten");
});
