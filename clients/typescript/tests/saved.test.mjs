// Checkpoints on disk, of a real server.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { ServerError } from "../dist/index.js";
import { find } from "../dist/node.js";
import { serve } from "./server.mjs";

let server;
let client;

before(async () => {
  server = await serve("--hibernate", "lossless");
  client = await find({ home: server.home });
});
after(() => server.end());

const refused = (code, hint) => (e) => e instanceof ServerError && e.code === code && (hint === undefined || e.hint === hint);

test("save and restore", async (t) => {
  const [first, second] = ["a", "b"].map((name) => client.session(name));
  t.after(() => Promise.all([first.close(), second.close()]));
  await first.run("x = 40; sock = __import__('socket').socket()");
  await assert.rejects(first.save("one"), refused("hibernate_refused", "lossy"));
  const kept = await first.save("one", { lossy: true });
  assert.deepEqual([kept.kept, kept.lost[0].name], [["x"], "sock"]);
  await assert.rejects(first.save("one", { lossy: true }), refused("hibernate_refused", "exists"));
  await first.run("sock.close(); del sock; x = 41");
  await first.save("one", { replace: true });
  const [saved] = await client.savedCheckpoints();
  assert.deepEqual([saved.name, saved.session, saved.open, saved.kept], ["one", "a", true, ["x"]]);
  assert.equal(Date.parse(saved.expires) - Date.parse(saved.made), 90 * 24 * 3600 * 1000);
  for (const [session, checkpoint] of [[first, "one"], [second, saved]]) {
    assert.deepEqual((await session.restore(checkpoint)).kept, ["x"]);
    const result = await session.run("x += 1; x");
    assert.deepEqual([result.state, result.cells[0].output], ["restored", "42"]);
  }
  await client.dropSavedCheckpoint(saved);
  assert.deepEqual(await client.savedCheckpoints(), []);
  await assert.rejects(first.restore("one"), refused("not_found"));
  await assert.rejects(first.save(""), RangeError);
});

test("owners", async (t) => {
  const mine = client.session("mine", { owner: "me" });
  const yours = client.session("yours", { owner: "you" });
  t.after(() => Promise.all([mine.close(), yours.close()]));
  await mine.run("x = 1");
  await yours.run("x = 2");
  await mine.save("owned");
  await assert.rejects(yours.restore("owned"), refused("restore_refused", "owner"));
  await assert.rejects(client.dropSavedCheckpoint("owned", { owner: "you" }), refused("restore_refused", "owner"));
  await client.dropSavedCheckpoint("owned", { owner: "me" });
});
