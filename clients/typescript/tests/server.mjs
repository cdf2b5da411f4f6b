// A real coppice serve for the tests, a proxy that breaks connections to it, and a server that
// answers as it is told.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import http from "node:http";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import readline from "node:readline";

/** Bounds every wait, in milliseconds. */
export const patience = 60_000;

/** Starts a server with a home of its own. */
export async function serve(...flags) {
  const home = await mkdtemp(join(tmpdir(), "coppice-client-"));
  const server = await serveIn(home, {}, ...flags);
  const end = async () => {
    try {
      await server.end();
    } finally {
      await rm(home, { recursive: true, force: true });
    }
  };
  return { ...server, end };
}

/** Starts a server with a home that is another's too, and stays. */
export async function serveIn(home, { addr = "127.0.0.1:0", token: fixed } = {}, ...flags) {
  const { COPPICE_TOKEN: _, ...env } = process.env;
  if (fixed) env.COPPICE_TOKEN = fixed;
  const python = env.PYTHON ?? "python3";
  const child = spawn(env.COPPICE ?? "coppice", ["serve", "--addr", addr, "--json", "--backend", "runner", "--max-sessions", "64", "--python", python, ...flags], {
    cwd: home, env: { ...env, COPPICE_HOME: home }, stdio: ["ignore", "pipe", "pipe"],
  });
  let said = "";
  child.stderr.on("data", (d) => (said += d));
  const exit = once(child, "exit");
  const line = await Promise.race([once(readline.createInterface(child.stdout), "line"), exit.then(() => undefined)]);
  if (!line) throw new Error(`coppice serve did not start: ${said}`);
  const told = JSON.parse(line[0]);
  const { token } = JSON.parse(await readFile(told.token_file, "utf8"));
  return {
    home, url: told.url, token, record: told.token_file,
    async end() {
      child.kill("SIGTERM");
      const [code, signal] = await exit;
      if (code !== 0 && code !== 143) throw new Error(`coppice serve ended with ${code ?? signal}: ${said}`);
    },
    async kill() {
      child.kill("SIGKILL");
      await exit;
    },
  };
}

/**
 * A server that answers as it is told: answer gets a request as it stands in asked, and returns the
 * status, the body and headers of the answer; undefined: the connection ends without one.
 */
export async function scripted(answer, port = 0) {
  const asked = [];
  const server = http.createServer(async (request, response) => {
    const pieces = [];
    for await (const piece of request) pieces.push(piece);
    const one = { what: `${request.method} ${request.url}`, headers: request.headers, body: Buffer.concat(pieces).toString() };
    asked.push(one);
    const told = await answer(one);
    if (!told) return request.socket.destroy();
    const [status, said, headers] = told;
    response.writeHead(status, { Connection: "close", ...headers }).end(typeof said === "string" ? said : JSON.stringify(said));
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  return {
    asked, url: `http://127.0.0.1:${server.address().port}`,
    async end() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}

/**
 * A proxy in front of a server, whose connections end after so many bytes of answers, each
 * after half as many again as the one before: so that any event comes through.
 */
export async function breaker(url, most) {
  const to = new URL(url);
  const sockets = new Set();
  const counted = { broken: 0, most };
  const listener = net.createServer((client) => {
    const server = net.connect(Number(to.port), to.hostname);
    let left = counted.most;
    counted.most += counted.most >> 1;
    for (const s of [client, server]) {
      sockets.add(s);
      s.on("close", () => sockets.delete(s));
      s.on("error", () => undefined);
    }
    client.pipe(server);
    server.on("data", (piece) => {
      client.write(piece.subarray(0, left));
      left -= piece.length;
      if (left > 0) return;
      counted.broken++;
      server.destroy();
      client.end();
    });
    server.on("end", () => client.end());
    server.on("error", () => client.destroy());
    client.on("close", () => server.destroy());
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  return Object.assign(counted, {
    url: `http://127.0.0.1:${listener.address().port}`,
    async end() {
      listener.close();
      for (const s of sockets) s.destroy();
      await once(listener, "close");
    },
  });
}
