// Drives coppice mcp with clients that others have written: the MCP SDK for
// TypeScript in both its generations, over stdio and over streamable HTTP, and the
// command line of the MCP inspector. They list tools, run cells, follow output,
// cancel, answer input(), look at a picture, read an artifact, and hold structured
// results against the schemas that the server gave. Two clients see no variable of
// each other.
//
//	node mcp.mjs COPPICE PYTHON
//
// COPPICE is the command, PYTHON its interpreter.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import * as next from "@modelcontextprotocol/client";
import { StdioClientTransport as NextStdio } from "@modelcontextprotocol/client/stdio";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const [coppice, python] = process.argv.slice(2);
const patience = 60_000;
const home = await mkdtemp(join(tmpdir(), "coppice-mcp-"));
const env = { ...process.env, COPPICE_HOME: home };
const args = ["mcp", "--backend", "runner", "--python", python, "--cwd", home];
const picture = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const pause = () => new Promise((resolve) => setTimeout(resolve, 20));
let done = 0;

async function check(what, f) {
  let timer;
  const late = new Promise((_, no) => { timer = setTimeout(() => no(new Error("it took longer than " + patience + " ms")), patience); });
  try { await Promise.race([f(), late]); } catch (e) { console.error("bad " + what); throw e; } finally { clearTimeout(timer); }
  done++;
  console.log("ok  " + what);
}

// Each kind of client has the same few functions here.
const info = [{ name: "test", version: "1" }, { capabilities: { elicitation: {} } }];
const kinds = {
  "SDK 1.x": {
    version: "2025-11-25",
    client: () => new Client(...info),
    stdio: (o) => new StdioClientTransport(o),
    http: (...o) => new StreamableHTTPClientTransport(...o),
    call: (c, params, o) => c.callTool(params, undefined, o),
    asked: (c, f) => c.setRequestHandler(ElicitRequestSchema, f),
    spoken: (_, transport) => transport.protocolVersion ?? "2025-11-25",
  },
  "SDK 2.x": {
    version: "2026-07-28",
    client: () => new next.Client(info[0], { ...info[1], versionNegotiation: { mode: "auto" } }),
    stdio: (o) => new NextStdio(o),
    http: (...o) => new next.StreamableHTTPClientTransport(...o),
    call: (c, params, o) => c.callTool(params, o),
    asked: (c, f) => c.setRequestHandler("elicitation/create", f),
    spoken: (c) => c.getNegotiatedProtocolVersion(),
  },
};

const text = (r) => r.content.map((c) => c.text).join("\n");

// Clients whose requests stand alone are told which session to pass on.
const stateless = (kind, over) => kind.version >= "2026-07-28" && over === "HTTP";

// Of two clients neither sees what the other has set, whatever they name.
async function apart(name, kind, connect) {
  const clients = [kind.client(), kind.client()];
  for (const client of clients) await client.connect(connect());
  const run = (i, code, session) => kind.call(clients[i], { name: "python", arguments: { ...(session && { session }), cells: [{ code }] } });
  await check(`${name}: two clients share nothing, and each keeps its own`, async () => {
    const own = [];
    for (const i of [0, 1]) {
      const r = await run(i, `mine_${i} = ${i}`);
      own[i] = stateless(kind, "HTTP") ? /pass session: "([^"]+)"/.exec(text(r))[1] : undefined;
      if (own[i]) assert.equal(r.structuredContent.session, own[i]);
    }
    for (const i of [0, 1]) assert.equal(text(await run(i, "[n for n in globals() if n.startswith('mine_')]", own[i])), `['mine_${i}']`);
    await run(0, "theirs = 1", "analysis");
    assert.doesNotMatch(text(await run(1, "theirs", "analysis")), /^1/);
    const list = (await kind.call(clients[1], { name: "sessions_list", arguments: own[1] ? { session: own[1] } : {} })).structuredContent.sessions;
    assert.ok(!JSON.stringify(list).includes("mine_0") && list.length <= 2, JSON.stringify(list));
  });
  for (const client of clients) await client.close();
}

async function drive(name, kind, transport, over, pid) {
  const client = kind.client();
  let answer;
  kind.asked(client, async (request) => answer(request.params.message));
  await client.connect(transport);
  let session = name.replaceAll(" ", "-");
  if (stateless(kind, over)) {
    await check(`${name}: the tools say how to go on, and a result names the session`, async () => {
      const { tools } = await client.listTools();
      assert.match(tools.find((t) => t.name === "python").description, /Pass that name as session/);
      const refused = await kind.call(client, { name: "python", arguments: { session, cells: [{ code: "1" }] } });
      assert.ok(refused.isError);
      assert.match(refused.content[0].text, /is no session that this server has given you/);
      const r = await kind.call(client, { name: "python", arguments: { cells: [{ code: "pass" }] } });
      session = r.structuredContent.session;
      assert.match(text(r), new RegExp(`pass session: "${session}"`));
    });
  }
  const run = (code, o) => kind.call(client, { name: "python", arguments: { session, cells: [].concat(code).map((code) => ({ code })) } }, o);

  await check(`${name}: lists the tools, with their schemas, in version ${kind.version}`, async () => {
    assert.equal(kind.spoken(client, transport), kind.version);
    const { tools } = await client.listTools();
    const names = tools.map((t) => t.name);
    for (const want of ["python", "bash", "notebook_run", "sessions_list", "artifact_read"]) assert.ok(names.includes(want), want + " in " + names);
    const tool = tools.find((t) => t.name === "python");
    assert.equal(tool.inputSchema.properties.cells.type, "array");
    assert.equal(tool.outputSchema.type, "object"); // the client holds every result against it
  });
  await check(`${name}: runs cells, whose variables stay`, async () => {
    const first = await run(["x = 40", "x + 2"]);
    assert.match(first.content[0].text, /42$/);
    const second = await run("x");
    const { structuredContent: s } = second;
    assert.equal(s.outcome, "ok");
    assert.equal(s.state, "kept");
    assert.equal(second.content[0].text, "40");
    assert.equal(s.text + s.cells[0].output, "", "the output is in the content, once");
  });
  await check(`${name}: what raises is an error of the tool`, async () => {
    const r = await run("1/0");
    assert.ok(r.isError);
    assert.match(r.content[0].text, /ZeroDivisionError/);
    assert.equal(r.structuredContent.cells[0].error.name ?? r.structuredContent.cells[0].error.type, "ZeroDivisionError");
    const wrong = await kind.call(client, { name: "python", arguments: { cells: [{ title: "no code" }] } });
    assert.ok(wrong.isError);
    assert.match(wrong.content[0].text, /^python: cells\[0\]\.code: is missing/);
  });
  await check(`${name}: output streams as progress`, async () => {
    const seen = [];
    let during = false, over = false;
    const r = await run("import time\nfor i in range(4):\n    print('step', i, flush=True)\n    time.sleep(.3)", {
      onprogress: (p) => { seen.push(p); during ||= !over; },
    });
    over = true;
    assert.match(r.content[0].text, /step 3/);
    assert.ok(during && seen.length > 1, `${seen.length} notifications`);
    assert.match(seen.map((p) => p.message).join(""), /step 0[^]*step 2/);
    seen.reduce((last, p) => { assert.ok(p.progress > last, "progress only goes up"); return p.progress; }, 0);
  });
  await check(`${name}: a cancelled call is interrupted, and its session kept`, async () => {
    const stop = new AbortController();
    const call = run("print('begun', flush=True)\nimport time; time.sleep(300)", { signal: stop.signal, onprogress: () => stop.abort() });
    await assert.rejects(call);
    assert.equal(text(await run("x")), "40");
  });
  await check(`${name}: input() asks the user`, async () => {
    const asked = [];
    answer = (message) => { asked.push(message); return { action: "accept", content: { value: "Ann" } }; };
    assert.match((await run("input('Who? ').upper()")).content[0].text, /'ANN'$/);
    assert.deepEqual(asked, ["Who? "]);
    answer = () => ({ action: "decline" });
    const r = await run("input()");
    assert.ok(r.isError);
    assert.match(r.content[0].text, /EOFError/);
    answer = () => assert.fail("a secret was asked for");
    const secret = await run("import getpass; getpass.getpass()");
    assert.ok(secret.isError);
    assert.match(secret.content.at(-1).text, /getpass was not passed on/);
  });
  await check(`${name}: a picture is image content`, async () => {
    const r = await run(`display({'image/png': '${picture}'}, raw=True)`);
    const image = r.content.find((c) => c.type === "image");
    assert.equal(image.mimeType, "image/png");
    assert.equal(Buffer.from(image.data, "base64").subarray(1, 4).toString(), "PNG");
  });
  await check(`${name}: what was cut is read as an artifact`, async () => {
    const r = await run("print('\\n'.join(f'line {i}' for i in range(50_000)))");
    const uri = r.structuredContent.artifact;
    assert.match(uri, /^artifact:\/\//);
    assert.ok(r.content[0].text.length < 60_000);
    const part = await kind.call(client, { name: "artifact_read", arguments: { artifact: uri, first: 25_001, last: 25_002 } });
    assert.equal(part.structuredContent.text, "line 25000\nline 25001\n");
    const { contents } = await client.readResource({ uri });
    assert.ok(contents[0].text.startsWith("line 0\nline 1\n"));
    const { resourceTemplates } = await client.listResourceTemplates();
    assert.ok(resourceTemplates.some((t) => t.uriTemplate === "artifact://{id}"));
    await assert.rejects(client.readResource({ uri: "artifact://..%2Fsecret" }));
  });
  await check(`${name}: sessions are listed and closed`, async () => {
    const list = async () => (await kind.call(client, { name: "sessions_list", arguments: stateless(kind, over) ? { session } : {} })).structuredContent.sessions.map((s) => s.session);
    assert.ok((await list()).includes(session));
    await kind.call(client, { name: "sessions_close", arguments: { session } });
    while ((await list()).includes(session)) await pause(); // it is stopping
  });
  const child = pid?.();
  await client.close();
  if (child) await check(`${name}: the server ends with its client`, async () => {
    for (;;) { try { process.kill(child, 0); } catch { return; } await pause(); }
  });
}

// inspect runs the inspector's command line.
async function inspect(...more) {
  const cli = createRequire(import.meta.url).resolve("@modelcontextprotocol/inspector-cli");
  const { stdout } = await promisify(execFile)(process.execPath, [join(cli, "..", "index.js"), ...more], { env, timeout: patience, maxBuffer: 1 << 24 });
  return JSON.parse(stdout);
}

async function inspector(name, ...target) {
  await check(`${name}: lists the tools`, async () => {
    const { tools } = await inspect(...target, "--method", "tools/list");
    assert.ok(tools.some((t) => t.name === "python"));
  });
  await check(`${name}: calls one`, async () => {
    const r = await inspect(...target, "--method", "tools/call", "--tool-name", "python", "--tool-arg", 'cells=[{"code":"6 * 7"}]');
    assert.equal(r.content[0].text, "42");
    assert.equal(r.structuredContent.outcome, "ok");
  });
}

let server;
try {
  const tokenFile = join(home, "token");
  server = spawn(coppice, [...args, "--http", "127.0.0.1:0", "--token-file", tokenFile], { env, stdio: ["ignore", "ignore", "pipe"] });
  let url;
  const lines = createInterface({ input: server.stderr });
  lines.on("line", (line) => { if (url) console.error(line); });
  for await (const [line] of (async function* () { for (;;) yield once(lines, "line"); })()) {
    url = /serving at (http:\S+\/mcp)/.exec(line)?.[1];
    if (url) break;
  }
  const header = { Authorization: "Bearer " + (await readFile(tokenFile, "utf8")).trim() };
  for (const [name, kind] of Object.entries(kinds)) {
    const stdio = kind.stdio({ command: coppice, args, env, stderr: "ignore" });
    await drive(name + " over stdio", kind, stdio, "stdio", () => stdio.pid);
    await drive(name + " over HTTP", kind, kind.http(new URL(url), { requestInit: { headers: header } }), "HTTP");
    await apart(name + " over HTTP", kind, () => kind.http(new URL(url), { requestInit: { headers: header } }));
    await check(`${name}: without the token it is refused`, async () => {
      await assert.rejects(kind.client().connect(kind.http(new URL(url))), /401|token|Unauthorized/i);
    });
  }
  await inspector("inspector over stdio", coppice, ...args);
  await inspector("inspector over HTTP", url, "--transport", "http", "--header", "Authorization: " + header.Authorization);
  await check("the server ends at its signal", async () => {
    const ended = once(server, "exit");
    server.kill("SIGTERM");
    const [code, signal] = await ended;
    assert.ok(code === 0 || code === 143 || code === 130 || signal === "SIGTERM", `exit ${code} ${signal}`);
    server = undefined;
  });
  console.log(`${done} checks passed`);
} finally {
  server?.kill("SIGKILL");
  await rm(home, { recursive: true, force: true });
}
process.exit(0);
