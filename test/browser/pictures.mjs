// Takes the pictures of the live view that the README and the documents show: a real server,
// a session with what people do in one, in the light and in the dark.
//
//	node pictures.mjs COPPICE PYTHON FOLDER
import { spawn } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { start } from "./browser.mjs";

const [coppice, python, folder] = process.argv.slice(2);
const home = await mkdtemp(join(tmpdir(), "coppice-")), cwd = join(home, "sales"), token = "token-of-the-pictures";
await mkdir(cwd);
const server = spawn(coppice, ["serve", "--addr", "127.0.0.1:0", "--backend", "runner", "--python", python, "--cwd", cwd, "--json"], { env: { ...process.env, COPPICE_HOME: home, COPPICE_TOKEN: token }, stdio: ["ignore", "pipe", "inherit"] });
const ended = new Promise((resolve) => server.on("exit", resolve));
let told = "";
for await (const part of server.stdout) { told += part; if (told.trim().endsWith("}")) break; }
const { url } = JSON.parse(told);
const ask = async (method, path, body) => {
  const res = await fetch(url + path, { method, headers: { Authorization: "Bearer " + token, "Content-Type": "application/json" }, body: body && JSON.stringify(body) });
  if (!res.ok) throw new Error(`${method} ${path}: ${res.status} ${await res.text()}`);
  return res.status === 204 ? null : res.json();
};
const t = await start();

// What the session ran. The table and the drawing are made by hand: the Python of the tests
// has no pandas.
const tools = `
class Frame:
    def __init__(self, rows): self.rows = rows
    def _repr_html_(self):
        head, *rest = self.rows
        return "<table><thead><tr><th></th>" + "".join(f"<th>{c}</th>" for c in head) + "</tr></thead><tbody>" + "".join(f"<tr><th>{i}</th>" + "".join(f"<td>{c}</td>" for c in r) + "</tr>" for i, r in enumerate(rest)) + "</tbody></table>"
    def __repr__(self): return "Frame"
class Plot:
    def __init__(self, values): self.values = values
    def _repr_mimebundle_(self, **k):
        x = [20 + 40 * i for i in range(len(self.values))]; y = [120 - v for v in self.values]
        line = " ".join(f"{a},{b}" for a, b in zip(x, y)); grid = "".join(f"<line x1='20' x2='500' y1='{v}' y2='{v}' stroke='#e3e8df'/>" for v in (30, 60, 90, 120))
        return {"image/svg+xml": f"<svg xmlns='http://www.w3.org/2000/svg' width='520' height='126'><rect width='520' height='126' fill='#ffffff'/>{grid}<polygon points='20,120 {line} {x[-1]},120' fill='#1f5135' opacity='.12'/><polyline points='{line}' fill='none' stroke='#1f5135' stroke-width='2.5'/></svg>", "text/plain": "revenue by month, rising"}
def load(*names):
    import sys
    for i, n in enumerate(names): sys.stdout.write(f"\\r\\033[32m{'━' * (12 * (i + 1) // len(names)):<12}\\033[0m {i + 1}/{len(names)} {n}")
    print()
    return Frame([["quarter", "revenue", "margin"], ["Q1", "1,204", "31 %"], ["Q2", "1,377", "33 %"], ["Q3", "1,290", "29 %"]])
def plot(frame): return Plot([18, 30, 24, 44, 40, 58, 52, 70, 66, 84, 80, 98, 92])
`;
const steps = ["frame = load('2024.csv', '2025.csv', '2026.csv')\nframe", "plot(frame)", "{2025: 0.14, 2026: -0.06}[2027]"];

try {
  const page = await t.page(url);
  await page.goto(url + "/#token=" + token, { waitUntil: "load" });
  await page.seeText("#connection", "live");
  const run = async (session, code) => {
    const x = await ask("POST", "/api/executions", { session, cells: [{ code }] });
    for (;;) { if ((await ask("GET", "/api/executions/" + x.id)).state === "ended") return; await new Promise((r) => setTimeout(r, 50)); }
  };
  await writeFile(join(cwd, "prelude.py"), tools);
  await run("forecast", "from prelude import *");
  for (const code of steps) await run("forecast", code);
  await ask("POST", "/api/sessions/forecast/fork?cwd=" + encodeURIComponent(cwd), { names: ["forecast~1"] });
  await page.at(`#/session/forecast?cwd=${encodeURIComponent(cwd)}`);
  await page.waitForSelector("#transcript .output img");
  await page.waitForSelector("#code", { visible: true });
  await page.see(() => document.querySelectorAll("#transcript .cell").length === 4 && document.querySelector("#transcript .traceback") && document.querySelectorAll("#story li").length >= 2 && !/measuring/.test(document.querySelector("#facts").textContent));
  await page.evaluate(() => document.querySelector("#transcript .cell .fold").click()); // how the tools came
  for (const scheme of ["light", "dark"]) {
    await page.scheme(scheme);
    await page.setViewport({ width: 1280, height: 860 });
    await page.evaluate(() => { document.activeElement?.blur(); scrollTo(0, 0); });
    await page.screenshot({ path: join(folder, `live-${scheme}.webp`), type: "webp", quality: 88 });
  }
  await page.close();
} catch (e) {
  t.problems.push(String(e.stack));
} finally {
  await t.browser.close();
  server.kill("SIGINT");
  await ended;
  await rm(home, { recursive: true, force: true });
}
process.exit(t.problems.length ? (console.error(t.problems.join("\n")), 1) : 0);
