// Drives the live view in a headless Chromium: signs in, starts a session, watches
// its output arrive, kills the kernel and sees the tree grow back, interrupts, pins,
// forks, answers input, pauses; looks for console errors and for what axe-core
// finds; and takes the pictures that the README shows.
//
//	node live-view.mjs COPPICE PYTHON PICTURES
//
// COPPICE is the command, PYTHON its interpreter, PICTURES a folder. CHROMIUM names
// the browser.
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import puppeteer from "puppeteer-core";

const [coppice, python, pictures] = process.argv.slice(2);
const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const patience = 60_000;

const home = await mkdtemp(join(tmpdir(), "coppice-live-"));
const server = spawn(coppice, ["serve", "--addr", "127.0.0.1:0", "--backend", "runner", "--python", python, "--cwd", home, "--json"], {
  env: { ...process.env, COPPICE_HOME: home }, stdio: ["ignore", "pipe", "inherit"],
});
const ended = new Promise((resolve) => server.on("exit", resolve));
let text = "";
for await (const part of server.stdout) { text += part; if (text.includes("\n}") || text.trim().endsWith("}")) break; }
const { url, token_file: tokenFile } = JSON.parse(text);
const { token } = JSON.parse(await readFile(tokenFile, "utf8"));

const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", headless: true,
  args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"],
});
const problems = [];
let step = "";
let done = 0;

async function check(what, f) {
  step = what;
  await f();
  done++;
  console.log("ok  " + what);
}

try {
  const page = await browser.newPage();
  await page.setViewport({ width: 1280, height: 900 });
  page.on("console", (m) => { if (["error", "warning"].includes(m.type()) && !/401 \(Unauthorized\)/.test(m.text())) problems.push(`${step}: ${m.text()}`); });
  page.on("pageerror", (e) => problems.push(`${step}: ${e}`));
  page.on("request", (r) => { if (!r.url().startsWith(url) && !r.url().startsWith("data:")) problems.push(`${step}: asked ${r.url()}`); });
  const see = (f, ...args) => page.waitForFunction(f, { timeout: patience, polling: 50 }, ...args);
  const seeText = (selector, want) => see((s, w) => document.querySelector(s)?.textContent.includes(w), selector, want);
  const kernel = (name) => `#tree [data-session^="${name}@"]`;
  const type = async (selector, value) => { await page.$eval(selector, (e) => { e.value = ""; }); await page.type(selector, value); };
  const runCode = async (code) => { await type("#code", ""); await page.$eval("#code", (e, c) => { e.value = c; }, code); await page.click("#run button"); };

  async function accessible(where) {
    const found = await page.evaluate(async (source) => {
      // eslint-disable-next-line no-new-func
      if (!window.axe) (0, eval)(source);
      const r = await window.axe.run(document, { resultTypes: ["violations"] });
      return r.violations.map((v) => `${v.id}: ${v.help}: ${v.nodes.map((n) => n.target).join(" ")}`);
    }, axe).catch((e) => [String(e)]);
    found.forEach((v) => problems.push(`${where}: ${v}`));
  }
  // axe is brought in by the browser itself: the page's policy allows no script but its own.
  await page.setBypassCSP(true);

  await check("the page asks for the token and holds nothing", async () => {
    await page.goto(url, { waitUntil: "load" });
    await page.waitForSelector("#signin", { visible: true });
    await accessible("signing in");
    await type("#token", "wrong");
    await page.click("#signin button");
    await seeText("#signin-error", "does not know this token");
  });
  await check("it signs in and shows the tree", async () => {
    await type("#token", token);
    await page.click("#signin button");
    await seeText("#connection", "live");
    await seeText("#tree", "fork-server");
  });
  await check("it starts a session", async () => {
    await type("#new-name", "analysis");
    await page.click("#new-session button");
    await page.waitForSelector(kernel("analysis"), { timeout: patience });
    await seeText("#session-title", "Session analysis");
  });
  await check("output arrives while the code runs", async () => {
    await runCode("import time\nfor i in range(12):\n    print('line', i, flush=True); time.sleep(0.15)\nprint('done')");
    await seeText("#output", "line 2");
    if ((await page.$eval("#output", (e) => e.textContent)).includes("done")) throw new Error("all came at once");
    await seeText(kernel("analysis") + " .state", "busy");
    await seeText("#output", "done");
    await seeText("#output-state", "ok");
  });
  await check("pictures are shown, HTML is not run", async () => {
    await runCode(`class P:
    def _repr_mimebundle_(self, **k):
        return {"image/svg+xml": "<svg xmlns='http://www.w3.org/2000/svg' width='420' height='110'><rect width='420' height='110' fill='#e8f3e6'/><polyline points='10,90 80,60 150,72 220,30 290,44 360,18 410,24' fill='none' stroke='#1f5135' stroke-width='4'/></svg>", "text/plain": "a rising line"}
class H:
    def _repr_html_(self): return "<script>window.owned = 1</script><b>bold</b>"
    def __repr__(self): return "H()"
display(H())
P()`);
    await page.waitForSelector("#output img", { timeout: patience });
    await see(() => document.querySelector("#output img").naturalWidth > 0);
    if (await page.evaluate(() => window.owned)) throw new Error("HTML of a kernel was run");
  });
  await check("input is asked for and answered", async () => {
    await runCode("name = input('Who are you? ')\nprint('hello', name)");
    await page.waitForSelector("#answer", { visible: true, timeout: patience });
    await seeText("#answer-label", "Who are you?");
    await page.type("#answer-text", "Ada");
    await page.keyboard.press("Enter");
    await seeText("#output", "hello Ada");
  });
  await check("an interrupt ends the code and keeps the session", async () => {
    await runCode("kept = 1\nimport time; print('begun', flush=True); time.sleep(600)");
    await seeText("#output", "begun");
    await page.click("[data-act=interrupt]");
    await seeText("#output-state", "cancelled");
    await runCode("print('kept', kept)");
    await seeText("#output", "kept 1");
  });
  await check("a killed kernel is told, and the tree grows back", async () => {
    await runCode("import os, signal; os.kill(os.getpid(), signal.SIGKILL)");
    await seeText("#output-state", "lost");
    await seeText("#events", "suspended → restarting");
    await seeText(kernel("analysis") + " .more", "1 restart");
    await seeText(kernel("analysis") + " .state", "idle");
  });
  await check("pin and unpin", async () => {
    await page.click("[data-act=pin]");
    await seeText(kernel("analysis") + " .more", "pinned");
    await page.click("[data-act=unpin]");
    await see((s) => !document.querySelector(s).textContent.includes("pinned"), kernel("analysis"));
  });
  await check("a fork is a session of its own, with the variables", async () => {
    await runCode("x = 42");
    await seeText("#output-state", "ok");
    await page.click("[data-act=fork]");
    await seeText("#action-result", "copied to ");
    const name = (await page.$eval("#action-result", (e) => e.textContent)).replace("copied to ", "");
    await see((n) => [...document.querySelectorAll("#tree [data-session] .name")].some((e) => e.textContent === n), name);
    await page.evaluate((n) => [...document.querySelectorAll("#tree [data-session] .name")].find((e) => e.textContent === n).click(), name);
    await seeText("#session-title", name);
    await runCode("print('copy has', x)");
    await seeText("#output", "copy has 42");
  });
  await check("the tree is walked with the keyboard", async () => {
    await page.focus("#tree [tabindex='0']");
    await page.keyboard.press("Home");
    for (let i = 0; i < 3; i++) await page.keyboard.press("ArrowDown");
    const at = await page.evaluate(() => document.activeElement.getAttribute("role"));
    if (at !== "treeitem") throw new Error("the focus left the tree: " + at);
    await page.evaluate(() => document.querySelector('#tree [data-session^="analysis@"]').focus());
    await page.keyboard.press("Enter");
    await seeText("#session-title", "Session analysis");
  });
  await check("a paused page waits", async () => {
    await page.click("#pause");
    const before = await page.$eval("#events", (e) => e.childElementCount);
    await runCode("1");
    await seeText("#events-state", "new");
    if (before !== await page.$eval("#events", (e) => e.childElementCount)) throw new Error("events came in");
    await page.click("#pause");
    await see((n) => document.querySelector("#events").childElementCount > n, before);
  });
  await check("the history shows earlier output again", async () => {
    await page.evaluate(() => [...document.querySelectorAll("#history button")].find((b) => b.textContent.startsWith("class P")).click());
    await page.waitForSelector("#output img", { timeout: patience });
  });
  await check("axe-core finds nothing, light and dark, wide and narrow", async () => {
    for (const scheme of ["light", "dark"]) {
      await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }, { name: "prefers-reduced-motion", value: "reduce" }]);
      await page.setViewport({ width: 1280, height: 900 });
      await accessible(scheme);
      if (pictures) await page.screenshot({ path: join(pictures, `live-${scheme}.png`) });
      await page.setViewport({ width: 390, height: 844 });
      await accessible(scheme + ", narrow");
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      if (wide > 0) problems.push(`${scheme}, narrow: the page is ${wide} pixels too wide`);
      if (pictures && scheme === "light") await page.screenshot({ path: join(pictures, "live-phone.png") });
    }
    await page.setViewport({ width: 1280, height: 900 });
  });
  await check("a session is stopped", async () => {
    await page.evaluate(() => document.querySelector('#tree [data-session^="analysis@"]').click());
    await page.click("[data-act=stop]");
    await see(() => !document.querySelector('#tree [data-session^="analysis@"]'));
  });
  await check("signing out forgets the token", async () => {
    await page.click("#signout");
    await page.waitForSelector("#signin", { visible: true });
    if (await page.evaluate(() => sessionStorage.length)) throw new Error("something is kept");
    await page.reload({ waitUntil: "load" });
    await page.waitForSelector("#signin", { visible: true });
  });
} catch (e) {
  problems.push(`${step}: ${e.stack}`);
  if (pictures) await (await browser.pages()).at(-1)?.screenshot({ path: join(pictures, "failed.png") }).catch(() => {});
} finally {
  await browser.close();
  server.kill("SIGINT");
  const code = await ended;
  if (code !== 0 && code !== 130) problems.push(`the server ended with ${code}`);
  await rm(home, { recursive: true, force: true });
}
problems.forEach((p) => console.error("not ok  " + p));
console.log(`${done} passed, ${problems.length} failed`);
process.exit(problems.length ? 1 : 0);
