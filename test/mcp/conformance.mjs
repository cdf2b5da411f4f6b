// Holds coppice mcp --http against the conformance suite of the Model Context Protocol,
// in each version that the suite knows. A check that fails has to be in
// conformance-baseline.json with the reason why it does not apply, and one that is there
// has to fail.
//
//	node conformance.mjs COPPICE PYTHON
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import http from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const [coppice, python] = process.argv.slice(2);
const here = fileURLToPath(new URL(".", import.meta.url));
const home = await mkdtemp(join(tmpdir(), "coppice-conformance-"));
const versions = ["2025-06-18", "2025-11-25", "2026-07-28"];

// The suite cannot send a token, so it talks to this proxy, which adds it. What names the
// proxy's port names the server's behind it: Host and Origin are looked at there.
function proxy(target, token) {
  const to = new URL(target);
  const server = http.createServer((request, answer) => {
    const headers = { ...request.headers, authorization: "Bearer " + token };
    const port = server.address().port;
    for (const name of ["host", "origin"]) headers[name] &&= headers[name].replace(":" + port, ":" + to.port);
    const on = http.request({ host: to.hostname, port: to.port, path: request.url, method: request.method, headers }, (got) => {
      answer.writeHead(got.statusCode, got.headers);
      got.pipe(answer);
    });
    on.on("error", () => answer.destroy());
    answer.on("close", () => on.destroy());
    request.pipe(on);
  });
  return server;
}

// run runs the suite in one version, and returns the checks that did not go well.
async function run(url, version) {
  const out = join(home, version);
  const args = ["--import", join(here, "node20.mjs"), join(here, "node_modules/@modelcontextprotocol/conformance/dist/index.js"), "server",
    "--url", url, "--suite", "all", "--spec-version", version, "--timeout", "120000", "--output-dir", out];
  const told = await new Promise((done) => execFile(process.execPath, args, { timeout: 900_000, maxBuffer: 1 << 26 }, (error, stdout, stderr) => done(stdout + stderr)));
  const bad = new Map();
  let scenarios = 0, good = 0;
  for (const folder of await readdir(out).catch(() => { throw new Error(told); })) {
    const scenario = /^server-(.*)-\d{4}-\d\d-\d\dT/.exec(folder)[1];
    scenarios++;
    for (const check of JSON.parse(await readFile(join(out, folder, "checks.json"), "utf8"))) {
      if (check.status === "SUCCESS") good++;
      if (check.status === "FAILURE") bad.set(`${scenario}: ${check.id}`, check.errorMessage ?? "");
    }
  }
  assert.ok(scenarios > 20 && good > 20, `only ${scenarios} scenarios and ${good} checks were run\n${told}`);
  return { scenarios, good, bad };
}

let server, front;
try {
  const tokenFile = join(home, "token");
  server = spawn(coppice, ["mcp", "--backend", "runner", "--python", python, "--cwd", home, "--http", "127.0.0.1:0", "--token-file", tokenFile], {
    env: { ...process.env, COPPICE_HOME: home }, stdio: ["ignore", "ignore", "pipe"],
  });
  let url;
  for await (const line of createInterface({ input: server.stderr })) {
    url = /serving at (http:\S+\/mcp)/.exec(line)?.[1];
    if (url) break;
  }
  server.stderr.resume();
  front = proxy(url, (await readFile(tokenFile, "utf8")).trim()).listen(0, "127.0.0.1");
  await once(front, "listening");
  const baseline = JSON.parse(await readFile(join(here, "conformance-baseline.json"), "utf8"));
  let wrong = 0;
  for (const version of versions) {
    const { scenarios, good, bad } = await run(`http://127.0.0.1:${front.address().port}/mcp`, version);
    const excused = new Set();
    for (const { reason, checks } of baseline) {
      assert.ok(reason, "a reason is missing in the baseline");
      for (const [check, where] of Object.entries(checks)) if (where.includes(version)) excused.add(check);
    }
    for (const [check, why] of bad) {
      if (!excused.has(check)) { wrong++; console.error(`bad ${version} ${check}: ${why}`); }
    }
    for (const check of excused) {
      if (!bad.has(check)) { wrong++; console.error(`bad ${version} ${check}: it goes well now; take it out of conformance-baseline.json`); }
    }
    console.log(`ok  conformance, version ${version}: ${good} checks in ${scenarios} scenarios went well, ${excused.size} do not apply`);
  }
  assert.equal(wrong, 0, `${wrong} checks went otherwise than conformance-baseline.json says`);
} finally {
  front?.closeAllConnections();
  front?.close();
  server?.kill("SIGKILL");
  await rm(home, { recursive: true, force: true });
}
process.exit(0);
