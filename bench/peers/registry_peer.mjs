// Measures other ways to have Python run code, from the npm registry.
//
// node registry_peer.mjs MODE CREATES CALLS prints the seconds that each new
// session took to its first result, and each 1+1, as one JSON object. A mode that
// needs a Kernel Gateway finds it in PEER_URL and PEER_TOKEN. PEER_MODULES is the
// node_modules folder.
import { createRequire } from "node:module";
import { join } from "node:path";

const require = createRequire(join(process.env.PEER_MODULES, "x.js"));
const code = "1+1";

async function pyodide() {
  const { loadPyodide } = require("pyodide");
  const python = await loadPyodide();
  return { call: async () => String(python.runPython(code)), end: async () => {} };
}

async function jupyterlab() {
  // What a browser has and the packages expect.
  globalThis.WebSocket ??= require("ws");
  globalThis.requestAnimationFrame ??= setImmediate;
  const { KernelManager, ServerConnection } = require("@jupyterlab/services");
  const serverSettings = ServerConnection.makeSettings({
    baseUrl: process.env.PEER_URL,
    wsUrl: process.env.PEER_URL.replace("http", "ws"),
    token: process.env.PEER_TOKEN,
    appendToken: true,
    WebSocket: globalThis.WebSocket,
  });
  const manager = new KernelManager({ serverSettings });
  const kernel = await manager.startNew({ name: "python3" });
  return {
    call: async () => {
      let value = "";
      const future = kernel.requestExecute({ code });
      future.onIOPub = (message) => {
        if (message.header.msg_type === "execute_result") value = message.content.data["text/plain"];
      };
      await future.done;
      return value;
    },
    end: async () => {
      await kernel.shutdown();
      manager.dispose();
    },
  };
}

const modes = { pyodide, "jupyterlab-services": jupyterlab };
// Behind -e the arguments begin elsewhere than behind a file.
const [mode, ...counts] = process.argv.slice(-3);
const [creates, calls] = counts.map(Number);
const created = [];
const executed = [];
const check = (value) => {
  if (value !== "2") throw new Error(`the value is ${value}`);
};
for (let n = 0; n < creates; n++) {
  const begin = performance.now();
  const session = await modes[mode]();
  check(await session.call());
  created.push((performance.now() - begin) / 1000);
  for (let i = 0; n === 0 && i < calls; i++) {
    const begin = performance.now();
    const value = await session.call();
    executed.push((performance.now() - begin) / 1000);
    check(value);
  }
  await session.end();
}
console.log("\n" + JSON.stringify({ create: created, exec: executed }));
process.exit(0);
