// Workspaces of the client against a real server.
import assert from "node:assert/strict";
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { Client, ServerError } from "../dist/index.js";
import { find, upload } from "../dist/node.js";
import { breaker, serve } from "./server.mjs";

const python = process.env.PYTHON ?? "python3";
const large = new Uint8Array(3 << 20).map((_, i) => i & 255);

let server;
let client;

before(async () => {
  server = await serve();
  client = await find({ home: server.home });
});
after(() => server.end());

/** A workspace that ends with its test. */
async function workspace(t) {
  const w = await client.createWorkspace(t.name.replaceAll(/\W/g, "-"), { env: { COLOUR: "blue" }, labels: { of: t.name } });
  t.after(() => w.end());
  return w;
}

/** What a server refuses. */
const refused = (doing, code) => assert.rejects(doing, (e) => e instanceof ServerError && e.code === code);
const same = (a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)) === 0;

test("a life", async (t) => {
  const w = await workspace(t);
  assert.deepEqual([(await w.info()).name, (await w.info()).labels], [w.name, { of: t.name }]);
  assert.deepEqual((await client.workspaces({ labels: { of: t.name } })).map((i) => i.name), [w.name]);
  assert.deepEqual(await client.workspaces({ labels: { of: "" }, owner: "no one" }), []);
  await refused(client.createWorkspace(w.name, { quota: 1 }), "conflict");
  await w.end();
  await w.end();
  // In a fleet, a node that did not have it knows nothing of it.
  const over = "COPPICE_FLEET" in process.env ? /^(ended|not_found)$/ : /^ended$/;
  await assert.rejects(client.workspace(w.name).info(), (e) => over.test(e.code));
  await refused(client.workspace("never").info(), "not_found");
  await client.workspace("never").end();
  assert.throws(() => client.workspace(""), RangeError);
});

test("limits of everything together", async (t) => {
  const w = await client.createWorkspace("together", { total: { output_bytes: 100000 }, isolation: { private: true } });
  t.after(() => w.end());
  assert.deepEqual((await w.info()).total, { output_bytes: 100000 });
});

test("sessions in a workspace", async (t) => {
  const w = await workspace(t);
  await w.files.write("data.csv", "a,b");
  const s = w.session("s");
  assert.equal((await s.run("import os; print(open('data.csv').read(), os.environ['COLOUR'])")).cells[0].output, "a,b blue");
  assert.equal((await client.sessions()).find((i) => i.session === "s").workspace, w.name);
  const kept = await s.checkpoint();
  assert.equal(kept.workspace, w.name);
  await s.run("x = 1");
  await s.rewind(kept);
  assert.equal((await s.run("x")).cells[0].error.name, "NameError");
  const [copy] = await s.fork();
  assert.equal((await copy.run("os.environ['COLOUR']")).cells[0].output, "'blue'");
  assert.ok((await client.checkpoints()).some((c) => c.id === kept.id));
  await client.dropCheckpoint(kept);
  await refused(s.rewind(kept.id), "not_found");
  await s.close();
});

test("files", async (t) => {
  const { files } = await workspace(t);
  const made = await files.write("a/é b.txt", "grün", { mode: "600" });
  assert.deepEqual([made.path, made.kind, made.size, made.mode], ["a/é b.txt", "file", 5, "0600"]);
  assert.equal(await files.readText("a/é b.txt"), "grün");
  assert.deepEqual(await files.stat("a/é b.txt"), made);
  await refused(files.write("a/é b.txt", "", { new: true }), "exists");
  assert.equal((await files.write("a/é b.txt", "", { ifMatch: made.etag })).size, 0);
  assert.equal((await files.read("a/é b.txt")).length, 0);
  await refused(files.write("a/é b.txt", "x", { ifMatch: made.etag }), "changed");
  await files.make("d/e");
  assert.equal((await files.move("a/é b.txt", "d/f")).path, "d/f");
  assert.deepEqual((await files.list()).files.map((f) => f.path), ["a", "d"]);
  assert.deepEqual(await files.list(""), await files.list());
  assert.deepEqual((await files.list(".", { depth: -1 })).files.map((f) => f.path).sort(), ["a", "d", "d/e", "d/f"]);
  assert.equal((await files.list(".", { depth: -1, most: 1 })).more, true);
  await refused(files.remove("d"), "not_empty");
  await files.remove("d", { all: true });
  await refused(files.read("d/f"), "not_found");
  await refused(files.read("../x"), "outside");
});

test("large files", async (t) => {
  const { files } = await workspace(t);
  await files.write("bytes", large);
  await files.write("blob", new Blob([large]));
  await files.write("stream", new Blob([large]).stream());
  for (const path of ["bytes", "blob", "stream"]) assert.ok(same(await files.read(path), large), path);
  const broken = new ReadableStream({ pull: () => Promise.reject(new Error("the disk is gone")) });
  await assert.rejects(files.write("broken", broken), /the disk is gone/);
  await refused(files.stat("broken"), "not_found");
});

test("upload", async (t) => {
  const w = await workspace(t);
  const folder = await mkdtemp(join(tmpdir(), "coppice-upload-"));
  t.after(() => rm(folder, { recursive: true }));
  await mkdir(join(folder, "bin", "empty"), { recursive: true });
  await writeFile(join(folder, "bin", "run"), "#!/bin/sh\necho run\n");
  await chmod(join(folder, "bin", "run"), 0o755);
  await writeFile(join(folder, "bytes"), large);
  await symlink("bytes", join(folder, "link"));
  assert.deepEqual((await upload(folder, w.files, "to")).map((f) => f.path), ["to/bin", "to/bin/empty", "to/bin/run", "to/bytes"]);
  assert.equal((await w.exec(["to/bin/run"])).text, "run\n");
  assert.ok(same(await w.files.read("to/bytes"), large));
});

test("exec", async (t) => {
  const w = await workspace(t);
  const result = await w.exec([python, "-c", "import os, sys; print(os.environ['COLOUR'], os.environ['WORD']); print('é', file=sys.stderr); sys.exit(3)"], { env: { WORD: "it", PYTHONIOENCODING: "utf-8" } });
  assert.deepEqual([result.code, result.signal, result.text, new TextDecoder().decode(result.stderr)], [3, "", "blue it\n", "é\n"]);
  await refused(w.exec(["no such program"]), "not_started");
  await assert.rejects(w.exec("ls -l"), TypeError);
  const late = await w.exec(["sleep", "600"], { timeout: 0.2 });
  assert.ok(late.code === -1 && late.signal && late.reason, JSON.stringify(late));
  assert.ok(same((await w.exec(["cat"], { input: large })).stdout, large));
  assert.equal((await w.exec(["wc", "-c"], { input: "é" })).text.trim(), "2");
  assert.equal((await w.exec(["head", "-c", "1"], { input: large })).stdout.length, 1);
});

test("a signal ends the program", async (t) => {
  const w = await workspace(t);
  const stop = new AbortController();
  const running = w.exec(["sleep", "600"], { signal: stop.signal });
  while ((await w.processes()).length === 0) await new Promise((r) => setTimeout(r, 10));
  stop.abort(new Error("enough"));
  await assert.rejects(running, /enough/);
  const [p] = await w.processes();
  assert.equal((await w.process(p.id).wait()).signal, "killed");
});

test("a process", async (t) => {
  const w = await workspace(t);
  const p = await w.start([python, "-uc", "for line in iter(input, 'end'): print('got', line)"], { input: true });
  assert.equal((await p.info()).state, "running");
  await p.write("one\n");
  let said = "";
  let last;
  for await (const event of p.events()) {
    last = event;
    if (event.type !== "stdout") continue;
    said += new TextDecoder().decode(event.data);
    if (said === "got one\n") await p.write("end\n");
  }
  assert.deepEqual([said, last.type, last.exit.code, (await p.wait()).code], ["got one\n", "end", 0, 0]);
  for await (const event of p.events({ after: last.seq })) assert.fail(event.type);
  await refused(p.write("more"), "ended");
  const shell = await w.start(["cat"], { terminal: { columns: 80, rows: 25 } });
  await shell.resize(100, 30);
  await shell.closeInput();
  assert.equal((await shell.wait()).code, 0);
  const sleeper = await w.start(["sleep", "600"]);
  await sleeper.signal("TERM");
  assert.equal((await sleeper.end()).signal, "terminated");
});

test("broken connections to a workspace", async (t) => {
  const w = await workspace(t);
  await w.files.write("large", large);
  const proxy = await breaker(server.url, 200_000);
  t.after(() => proxy.end());
  const through = new Client({ url: proxy.url, token: server.token }).workspace(w.name);
  assert.ok(same(await through.files.read("large"), large));
  assert.ok(proxy.broken > 2, `${proxy.broken} connections were broken`);
});
