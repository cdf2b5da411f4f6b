// Asks coppice serve --jupyter what VS Code's extension Jupyter (2026.6) asks a remote server, with
// what it asks with: the same versions of JupyterLab's services, node-fetch and ws, set up as it
// does. Its windows are not here; what they send is. It ends with 1 at the first thing that is
// not as the extension needs it.
import assert from "node:assert/strict";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const services = require("vscode-services");
const nodeFetch = require("node-fetch");
const WebSocket = require("isomorphic-ws");

const token = process.env.JUPYTER_TOKEN_OF_SERVER;
const baseUrl = process.env.JUPYTER_URL;
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
  for (const over = Date.now() + 300_000; !(await holds()); await new Promise((r) => setTimeout(r, 50))) {
    assert.ok(Date.now() < over, `waited for ${holds}`);
  }
}

const asked = []; // every request: method, path without what it is about, status
const sockets = [];

// settings are those of a connection: a request has the token in its header, says that it is JSON
// even where it has no body, and asks for nothing from a cache, which puts the time into its
// query; a WebSocket has the token in its header and in its query.
function settings(secret = token, http = nodeFetch, send = nodeFetch.default) {
  const headers = () => ({ Authorization: `token ${secret}` });
  class Request extends http.Request {
    constructor(input, init) {
      super(input, init);
      for (const [name, value] of Object.entries(headers())) {
        this.headers.append(name, value);
      }
      this.headers.set("Content-Type", "application/json");
      const append = this.headers.append.bind(this.headers);
      this.headers.append = (name, value) => name.toLowerCase() === "authorization" || append(name, value);
    }
  }
  class Socket extends WebSocket {
    constructor(url, protocols) {
      super(url, protocols, { headers: headers() });
      sockets.push({ socket: this, url, protocols });
    }
  }
  const fetch = async (request, init) => {
    const answer = await send(request, init);
    assert.equal(request.headers.get("authorization"), `token ${secret}`);
    assert.equal(request.headers.get("content-type"), "application/json");
    const url = new URL(request.url);
    assert.match(url.search, /[?&]\d{13}$/, "the time is in the query");
    asked.push(`${request.method} ${url.pathname.replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, "{id}")} ${answer.status}`);
    return answer;
  };
  return services.ServerConnection.makeSettings({
    baseUrl, appUrl: "", wsUrl: baseUrl.replace("http", "ws"), token: secret, appendToken: true,
    init: { cache: "no-store", credentials: "same-origin" },
    fetch, Request, Headers: http.Headers, WebSocket: Socket,
  });
}

// connect has the managers that the extension makes for each thing it does.
function connect(serverSettings = settings()) {
  const kernelManager = new services.KernelManager({ serverSettings });
  return {
    serverSettings,
    specs: new services.KernelSpecManager({ serverSettings }),
    kernels: kernelManager,
    sessions: new services.SessionManager({ serverSettings, kernelManager }),
    end() {
      for (const each of [this.sessions, this.kernels, this.specs]) {
        each.dispose();
      }
    },
  };
}

// look is what it asks before it shows a server, and again whenever it shows its kernels.
async function look(lab) {
  const [running] = await Promise.all([
    services.KernelAPI.listRunning(lab.serverSettings),
    lab.sessions.ready.then(() => lab.specs.refreshSpecs()),
    lab.sessions.ready.then(() => lab.sessions.refreshRunning()),
  ]);
  return { running, specs: Object.values(lab.specs.specs.kernelspecs), sessions: [...lab.sessions.running()] };
}

// silently is how it runs code of its own.
async function silently(kernel, code) {
  const outputs = [];
  const request = kernel.requestExecute({ code, silent: false, stop_on_error: false, allow_stdin: true, store_history: false }, true);
  request.onIOPub = (m) => ["stream", "execute_result", "display_data", "error"].includes(m.header.msg_type) && outputs.push(m);
  await request.done;
  return outputs;
}

// cell runs one of a notebook.
async function cell(kernel, code, hear = () => {}) {
  const shown = [];
  const request = kernel.requestExecute({ code, silent: false, stop_on_error: false, allow_stdin: true, store_history: true }, false, { cellId: "vscode-notebook-cell:/a.ipynb#W0sZmlsZQ==", tags: [] });
  request.onIOPub = (m) => (shown.push(m), hear(m, request));
  request.onStdin = (m) => hear(m, request);
  const reply = await request.done;
  return { reply, shown, of: (kind) => shown.filter((m) => m.header.msg_type === kind).map((m) => m.content) };
}

async function idle(session) {
  await until(() => session.kernel.status === "idle");
}

await step("an address is typed in", async () => {
  // It looks for what a server redirects to that has a password, without the token. This one
  // has none, and says so: the token in the address is what counts.
  for (const [path, redirect] of [["", "manual"], ["/", "follow"], ["/tree?", "manual"]]) {
    const answer = await nodeFetch.default(baseUrl + path, { method: "get", redirect, headers: { Connection: "keep-alive" } });
    assert.doesNotMatch(`${answer.headers.get("location")} ${answer.url}`, /login\?/);
    assert.ok(answer.status === 403 || path === "", `${path}: ${answer.status}`);
  }
});
const picker = connect();
await step("the server is looked at", async () => {
  const { running, specs, sessions } = await look(picker);
  assert.deepEqual([running, sessions], [[], []]);
  assert.deepEqual(specs.map((s) => [s.name, s.display_name, s.language]), [["coppice", "Coppice (Python 3)", "python"], ["python3", "Python 3 (Coppice)", "python"]]);
  await assert.rejects(services.KernelAPI.listRunning(settings("wrong")), (err) => err.response?.status === 403);
});
const lab = connect();
const comms = [];
let session;
await step("a notebook gets a kernel", async () => {
  await look(lab);
  const id = crypto.randomUUID();
  session = await lab.sessions.startNew(
    { path: `a-jvsc-${id}${crypto.randomUUID()}.ipynb`, kernel: { name: "python3" }, name: `a-${id}.ipynb`, type: "notebook" },
    { kernelConnectionOptions: { handleComms: true } },
  );
  await idle(session);
  const { socket, url, protocols } = sockets.at(-1);
  assert.deepEqual(protocols, ["v1.kernel.websocket.jupyter.org"]);
  assert.equal(socket.protocol, "v1.kernel.websocket.jupyter.org");
  const query = new URL(url).searchParams;
  assert.deepEqual([query.get("session_id"), query.get("token")], [session.kernel.clientId, token]);
  await new Promise((pong) => { // it asks every 30 seconds
    socket.on("pong", pong);
    socket.ping();
  });
});
await step("the kernel is set up", async () => {
  session.kernel.registerCommTarget("jupyter.widget", (comm) => comms.push(comm));
  const told = await silently(session.kernel, 'try:\n    import ipywidgets as _VSCODE_ipywidgets\n    print("e976ee50-99ed-4aba-9b6b-9dcd5634d07d:IPyWidgets:" + _VSCODE_ipywidgets.__version__)\n    del _VSCODE_ipywidgets\nexcept:\n    pass\n');
  assert.match(told[0].content.text, /IPyWidgets:8\./);
  assert.deepEqual(await silently(session.kernel, '__vsc_ipynb_file__ = "/a.ipynb"\ntry:\n    import matplotlib\n    %matplotlib inline\n    _VSCode_defaultMatplotlib_Params = dict(matplotlib.rcParams)\nexcept:\n    pass\n'), []);
  const info = (await session.kernel.requestKernelInfo()).content;
  assert.equal(info.language_info.name, "python");
  await idle(session);
});
await step("cells", async () => {
  const first = await cell(session.kernel, "import os\nprint(__vsc_ipynb_file__)\nx = 40\nx + 2");
  assert.equal(first.reply.content.execution_count, 1, "its own code is not counted");
  assert.deepEqual(first.of("execute_input").map((c) => c.execution_count), [1]);
  assert.deepEqual(first.of("stream")[0].text, "/a.ipynb\n");
  assert.deepEqual(first.of("execute_result")[0].data, { "text/plain": "42" });
  assert.equal((await cell(session.kernel, "1/0")).of("error")[0].ename, "ZeroDivisionError");
  const said = await cell(session.kernel, "input('who? ')", (m) => m.header.msg_type === "input_request" && session.kernel.sendInputReply({ value: "Ada", status: "ok" }, m.header));
  assert.deepEqual(said.of("execute_result")[0].data, { "text/plain": "'Ada'" });
  const shown = await cell(session.kernel, "from IPython.display import display\nh = display('a', display_id=True)\nh.update('b')");
  const [made, changed] = [shown.of("display_data")[0], shown.of("update_display_data")[0]];
  assert.equal(changed.transient.display_id, made.transient.display_id);
});
await step("completion, tooltips, widgets", async () => {
  assert.ok((await session.kernel.requestComplete({ code: "os.getc", cursor_pos: 7 })).content.matches.some((m) => m.endsWith("getcwd")));
  assert.ok((await session.kernel.requestInspect({ code: "os.getcwd", cursor_pos: 9, detail_level: 0 })).content.found);
  const made = await cell(session.kernel, "import ipywidgets\nw = ipywidgets.IntSlider(value=3)\nw");
  assert.equal(made.of("comm_open").length, 3, "the slider, its layout and its style");
  const slider = comms.at(-1);
  assert.ok(slider.commId in (await session.kernel.requestCommInfo({ target_name: "jupyter.widget" })).content.comms);
  await slider.send({ method: "update", state: { value: 7 }, buffer_paths: [] }).done;
  assert.deepEqual((await cell(session.kernel, "w.value")).of("execute_result")[0].data, { "text/plain": "7" });
});
await step("its background thread", async () => {
  // So it asks for the variables and for completions: what comes later changes what was shown.
  // It does not wait for the thread as this does; what that shows after the end of the code does
  // not reach it on the runner.
  const changes = [];
  const hear = (_, { msg, direction }) => direction === "recv" && msg.header.msg_type === "update_display_data" && changes.push(msg.content);
  session.kernel.anyMessage.connect(hear);
  const code = 'def __jupyter_exec_background__():\n    from IPython.display import display\n    from threading import Thread\n    output = display({"application/vnd.vscode.bg.execution.1": ""}, raw=True, display_id=True)\n    def bg_main():\n        output.update({"application/vnd.vscode.bg.execution.1.result": {"x": x}}, raw=True)\n    thread = Thread(target=bg_main, daemon=True)\n    thread.start()\n    thread.join()\n\n__jupyter_exec_background__()\ndel __jupyter_exec_background__';
  const [made] = await silently(session.kernel, code);
  await until(() => changes.length > 0);
  session.kernel.anyMessage.disconnect(hear);
  assert.equal(changes[0].transient.display_id, made.content.transient.display_id);
  assert.deepEqual(changes[0].data["application/vnd.vscode.bg.execution.1.result"], { x: 40 });
});
await step("interrupt and restart", async () => {
  const endless = await cell(session.kernel, "import time\nprint('go', flush=True)\nwhile True: time.sleep(.01)", (m) => m.header.msg_type === "stream" && session.kernel.interrupt());
  assert.equal(endless.of("error")[0].ename, "KeyboardInterrupt");
  const states = [];
  session.statusChanged.connect((_, state) => states.push(state));
  await session.kernel.restart();
  await idle(session);
  assert.ok(states.includes("restarting") && !states.includes("autorestarting"), `${states}`);
  const after = await cell(session.kernel, "x");
  assert.deepEqual([after.reply.content.execution_count, after.of("error")[0].ename], [1, "NameError"]);
  await cell(session.kernel, "import os; os._exit(3)");
  await until(() => states.includes("autorestarting"));
  assert.equal((await cell(session.kernel, "y = 1")).reply.content.status, "ok");
});
await step("another window finds the kernel", async () => {
  const { running, sessions } = await look(picker);
  assert.deepEqual([running.map((k) => k.id), sessions.map((s) => s.id)], [[session.kernel.id], [session.id]]);
  assert.ok(Date.parse(running[0].last_activity) && running[0].connections === 1);
  const other = picker.sessions.connectTo({ ...sessions[0], model: sessions[0] });
  await until(() => other.kernel.connectionStatus === "connected");
  assert.deepEqual((await cell(other.kernel, "y")).of("execute_result")[0].data, { "text/plain": "1" });
  other.dispose(); // which leaves the kernel
});
await step("the list is asked for again and again", async () => {
  const before = asked.length;
  for (let i = 0; i < 5; i++) {
    await look(picker);
  }
  const again = asked.slice(before);
  for (const path of ["kernels", "kernelspecs", "sessions"]) {
    assert.ok(again.filter((a) => a === `GET /jupyter/api/${path} 200`).length >= 5, `${path}: ${again}`);
  }
});
await step("a notebook is kept on the server to be exported", async () => {
  // Only the extension for the web does so, with what browsers have. What a browser adds, the
  // origin of its page, is left out here: another origin is refused.
  const contents = new services.ContentsManager({ serverSettings: settings(token, globalThis, globalThis.fetch) });
  const made = await contents.newUntitled({ type: "notebook" });
  const file = await contents.rename(made.path, `a-jvsc-${crypto.randomUUID()}.ipynb`);
  await contents.save(file.path, { content: { cells: [], metadata: {}, nbformat: 4, nbformat_minor: 5 }, type: "notebook" });
  const to = await contents.newUntitled({ type: "file", ext: ".html" });
  const { of } = await cell(session.kernel, `open(${JSON.stringify(to.path)}, "w").write("<p>ä</p>")`);
  assert.equal(of("error").length, 0);
  assert.equal((await contents.get(to.path, { type: "file", format: "text", content: true })).content, "<p>ä</p>");
  assert.equal((await contents.get(to.path, { type: "file", format: "base64", content: true })).content.trim(), Buffer.from("<p>ä</p>").toString("base64"));
  await contents.delete(to.path);
  await contents.delete(file.path);
  contents.dispose();
});
await step("a server without the subprotocol's name is spoken to in JSON", async () => {
  const plain = new WebSocket(`${baseUrl.replace("http", "ws")}/api/kernels/${session.kernel.id}/channels?session_id=x`, [], { headers: { Authorization: `token ${token}` } });
  const first = await new Promise((heard, failed) => {
    plain.on("message", heard);
    plain.on("error", failed);
  });
  assert.equal(plain.protocol, "");
  assert.equal(JSON.parse(first).msg_type, "status");
  plain.close();
});
await step("the end", async () => {
  const { id } = session.kernel;
  await session.shutdown();
  await until(async () => !(await look(picker)).running.some((k) => k.id === id));
  const wrong = asked.filter((a) => !/ 20\d$/.test(a) && a !== "GET /jupyter/api/kernels 403");
  assert.deepEqual(wrong, []);
  lab.end();
  picker.end();
});
console.log(`works ${works} of ${works}, with ${new Set(asked).size} kinds of requests`);
process.exit(0);
