// Drives coppice serve --jupyter with what JupyterLab itself asks a server with: contents with
// their checkpoints, kernels and sessions. It ends with 1 at the first thing that is not as
// JupyterLab needs it.
import assert from "node:assert/strict";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const { ContentsManager, Drive, KernelManager, KernelSpecManager, ServerConnection, SessionManager } = require("@jupyterlab/services");

const token = process.env.JUPYTER_TOKEN_OF_SERVER;
const baseUrl = `${process.env.JUPYTER_URL}/`;
const serverSettings = ServerConnection.makeSettings({ baseUrl, wsUrl: baseUrl.replace(/^http/, "ws"), token, appendToken: true });
let works = 0;

async function step(what, run) {
  try {
    await run();
    works++;
  } catch (err) {
    console.error(`FAILS ${what}:`, err);
    process.exit(1);
  }
}

async function until(holds) {
  for (const over = Date.now() + 300_000; !holds(); await new Promise((r) => setTimeout(r, 50))) {
    assert.ok(Date.now() < over, `waited for ${holds}`);
  }
}

const refused = (status, promise) => assert.rejects(promise, (err) => err.response?.status === status);

const contents = new ContentsManager({ defaultDrive: new Drive({ serverSettings }) });
await step("a new notebook", async () => {
  const made = await contents.newUntitled({ path: "", type: "notebook" });
  assert.equal(made.path, "Untitled.ipynb");
  const opened = await contents.get(made.path, { type: "notebook", content: true });
  assert.deepEqual(opened.content.cells, []);
  opened.content.cells.push({ id: "a", cell_type: "code", metadata: {}, execution_count: null, outputs: [], source: "x = 1\nx < 2" });
  const saved = await contents.save(made.path, { type: "notebook", format: "json", content: opened.content });
  assert.equal(saved.type, "notebook");
  const again = await contents.get(made.path, { hash: true, content: true });
  assert.equal(again.content.cells[0].source, "x = 1\nx < 2");
  assert.match(again.hash, /^[0-9a-f]{64}$/);
  assert.ok(new Date(again.last_modified).getTime() > Date.now() - 3600e3);
});
await step("checkpoints", async () => {
  const at = "Untitled.ipynb";
  const before = await contents.get(at);
  const point = await contents.createCheckpoint(at);
  assert.deepEqual((await contents.listCheckpoints(at)).map((c) => c.id), [point.id]);
  await contents.save(at, { type: "notebook", format: "json", content: { ...before.content, cells: [] } });
  await contents.restoreCheckpoint(at, point.id);
  assert.deepEqual((await contents.get(at)).content, before.content);
  await contents.deleteCheckpoint(at, point.id);
  assert.deepEqual(await contents.listCheckpoints(at), []);
});
await step("folders and files", async () => {
  const folder = await contents.newUntitled({ path: "", type: "directory" });
  await contents.rename(folder.path, "ä folder");
  const file = await contents.newUntitled({ path: "ä folder", type: "file", ext: ".txt" });
  await contents.save(file.path, { type: "file", format: "text", content: "hé\n" });
  await contents.copy(file.path, "ä folder");
  const listed = await contents.get("ä folder");
  assert.deepEqual(listed.content.map((c) => c.name), ["untitled-Copy1.txt", "untitled.txt"]);
  assert.equal((await contents.get(file.path, { format: "base64", content: true, type: "file" })).content, "aMOpCg==");
  const url = await contents.getDownloadUrl(file.path);
  const answer = await fetch(url, { headers: { Authorization: `token ${token}` } });
  assert.equal(await answer.text(), "hé\n");
  await refused(409, contents.rename(file.path, "ä folder/untitled-Copy1.txt"));
  await refused(400, contents.delete("ä folder"));
  for (const one of listed.content) {
    await contents.delete(one.path);
  }
  await contents.delete("ä folder");
  await refused(404, contents.get("ä folder"));
});
await step("a large file in pieces", async () => {
  const bytes = Buffer.alloc(5 << 20, "0123456789abcdef\0");
  const piece = 1 << 20;
  for (let n = 1, at = 0; at < bytes.length; n++, at += piece) {
    const last = at + piece >= bytes.length;
    await contents.save("large.bin", { type: "file", format: "base64", content: bytes.subarray(at, at + piece).toString("base64"), chunk: last ? -1 : n });
  }
  const got = await contents.get("large.bin", { format: "base64", content: true });
  assert.ok(Buffer.from(got.content, "base64").equals(bytes));
  await contents.save("large.bin", { type: "file", format: "base64", content: bytes.toString("base64") });
  await contents.delete("large.bin");
});
const specs = new KernelSpecManager({ serverSettings });
await step("kernelspecs", async () => {
  await specs.ready;
  assert.equal(specs.specs.default, "python3");
});
const kernelManager = new KernelManager({ serverSettings });
const sessions = new SessionManager({ serverSettings, kernelManager });
await step("a session for a notebook", async () => {
  await sessions.ready;
  const session = await sessions.startNew({ path: "Untitled.ipynb", name: "Untitled.ipynb", type: "notebook", kernel: { name: "python3" } });
  const kernel = session.kernel;
  const info = await kernel.info;
  assert.equal(info.language_info.name, "python");
  const future = kernel.requestExecute({ code: "import os\nprint('hi')\nx = 40\nx + 2" });
  const shown = [];
  future.onIOPub = (m) => shown.push(m);
  const reply = await future.done;
  assert.equal(reply.content.execution_count, 1);
  assert.deepEqual(shown.find((m) => m.header.msg_type === "execute_result").content.data, { "text/plain": "42" });
  assert.deepEqual((await kernel.requestComplete({ code: "zi", cursor_pos: 2 })).content.matches, ["zip"]);
  assert.ok((await kernel.requestInspect({ code: "zip", cursor_pos: 3, detail_level: 0 })).content.found);
  assert.equal((await kernel.requestIsComplete({ code: "for i in x:" })).content.status, "incomplete");
  assert.equal((await kernel.requestHistory({ output: false, raw: true, hist_access_type: "tail", n: 5 })).content.history.length, 1);
  assert.deepEqual((await kernel.requestCommInfo({})).content.comms, {});
  const asked = kernel.requestExecute({ code: "input('who? ')", allow_stdin: true });
  asked.onStdin = (m) => kernel.sendInputReply({ value: "Ada", status: "ok" }, m.header);
  assert.equal((await asked.done).content.status, "ok");
  const endless = kernel.requestExecute({ code: "import time\nprint('go', flush=True)\nwhile True: time.sleep(.01)" });
  await new Promise((go) => { endless.onIOPub = (m) => m.header.msg_type === "stream" && go(); });
  await kernel.interrupt();
  assert.equal((await endless.done).content.ename, "KeyboardInterrupt");
  const states = [];
  kernel.statusChanged.connect((_, state) => states.push(state));
  await kernel.restart();
  assert.equal((await kernel.requestExecute({ code: "x" }).done).content.ename, "NameError");
  assert.ok(!states.includes("autorestarting"), `a restart that was asked for is no death: ${states}`);
  await kernel.requestExecute({ code: "import os; os._exit(3)" }).done;
  await until(() => states.includes("autorestarting"));
  assert.equal((await kernel.requestExecute({ code: "1" }).done).content.status, "ok");
  await session.setPath("Renamed.ipynb");
  await session.shutdown();
});
await step("renaming and deleting", async () => {
  await contents.rename("Untitled.ipynb", "Renamed.ipynb");
  await contents.delete("Renamed.ipynb");
  assert.deepEqual((await contents.get("")).content, []);
});
console.log(`works ${works} of ${works}`);
process.exit(0);
