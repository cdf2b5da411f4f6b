// A real coppice serve for the tests, and a proxy that breaks connections to it.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import readline from "node:readline";

/** Bounds every wait, in milliseconds. */
export const patience = 60_000;

/** Starts a server with a home of its own. */
export async function serve(...flags) {
  const home = await mkdtemp(join(tmpdir(), "coppice-client-"));
  const { COPPICE_TOKEN: _, ...env } = process.env;
  const python = env.PYTHON ?? "python3";
  const child = spawn(env.COPPICE ?? "coppice", ["serve", "--addr", "127.0.0.1:0", "--json", "--backend", "runner", "--max-sessions", "64", "--python", python, ...flags], {
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
      await rm(home, { recursive: true, force: true });
      if (code !== 0 && code !== 143) throw new Error(`coppice serve ended with ${code ?? signal}: ${said}`);
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
  const counted = { broken: 0 };
  const listener = net.createServer((client) => {
    const server = net.connect(Number(to.port), to.hostname);
    let left = most;
    most += most >> 1;
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
