// Drives the live view in a headless Chromium: signs in, starts a session, watches
// its output arrive, kills the kernel and sees the tree grow back, interrupts, pins,
// forks, answers input, pauses, finds one of five hundred sessions, works with the
// keyboard alone, and meets a server that was started anew; looks for console errors
// and for what axe-core finds; and takes the pictures that the README shows.
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
let server, ended;

// serve starts the server and returns what it says of itself.
async function serve(addr, token) {
  const env = { ...process.env, COPPICE_HOME: home, COPPICE_TOKEN: token };
  server = spawn(coppice, ["serve", "--addr", addr, "--backend", "runner", "--python", python, "--cwd", home, "--max-sessions", "600", "--json"], { env, stdio: ["ignore", "pipe", "inherit"] });
  const mine = server;
  ended = new Promise((resolve) => mine.on("exit", resolve));
  let text = "";
  for await (const part of server.stdout) { text += part; if (text.trim().endsWith("}")) break; }
  return JSON.parse(text);
}

async function endServer() {
  server.kill("SIGINT");
  const code = await ended;
  if (code !== 0 && code !== 130) problems.push(`the server ended with ${code}`);
}

const { url, token_file: tokenFile } = await serve("127.0.0.1:0", "first-token-of-the-browser");
const { token } = JSON.parse(await readFile(tokenFile, "utf8"));
const ask = (method, path, body) => fetch(url + path, { method, headers: { Authorization: "Bearer " + token, "Content-Type": "application/json" }, body: body && JSON.stringify(body) });

const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", headless: true,
  args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"],
});
const problems = [];
let step = "";
let away = false; // the server is not there on purpose
let done = 0;

async function check(what, f) {
  step = what;
  await f();
  done++;
  console.log("ok  " + what);
}

try {
  const page = await browser.newPage();
  const dialogs = [];
  await page.setViewport({ width: 1280, height: 900 });
  page.on("console", (m) => { if (["error", "warning"].includes(m.type()) && !/401 \(Unauthorized\)/.test(m.text()) && !(away && /ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE/.test(m.text()))) problems.push(`${step}: ${m.text()}`); });
  page.on("dialog", (d) => { dialogs.push(d.message()); d.accept(); });
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
  await check("a busy machine is shown", async () => {
    await page.evaluate(() => {
      const real = window.fetch;
      window.fetch = async (url, ...rest) => {
        const res = await real(url, ...rest);
        if (!String(url).endsWith("/api/tree") || !res.ok) return res;
        return new Response(JSON.stringify({ ...await res.json(), busy: { pressure: .82, postponed: 3 } }), { status: 200 });
      };
      window.restoreFetch = () => { window.fetch = real; };
    });
    await seeText("#count", "machine busy 82 %, 3 ends put off");
    await page.evaluate(() => window.restoreFetch());
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
  await check("everything has a name for a screen reader", async () => {
    const snapshot = await page.accessibility.snapshot({ interestingOnly: true });
    const bad = [];
    const visit = (n) => {
      if (["button", "textbox", "searchbox", "treeitem", "tree", "link", "region", "log"].includes(n.role) && !n.name) bad.push(n.role);
      (n.children ?? []).forEach(visit);
    };
    visit(snapshot);
    if (bad.length) throw new Error("without a name: " + bad.join(", "));
    const label = await page.$eval(kernel("analysis"), (e) => e.getAttribute("aria-label"));
    if (label !== "analysis, idle, 1 restart") throw new Error("the session is called " + label);
  });
  await check("the keyboard alone finds a session and runs code in it", async () => {
    await page.reload({ waitUntil: "load" }); // it is still signed in
    await seeText("#connection", "live");
    await page.waitForSelector(kernel("analysis"), { timeout: patience });
    await page.keyboard.press("/");
    await page.keyboard.type("anal idle");
    await seeText("#count", "2 of 2 sessions");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await seeText("#session-title", "Session analysis");
    for (let i = 0; i < 20 && await page.evaluate(() => document.activeElement.id) !== "code"; i++) await page.keyboard.press("Tab");
    await page.keyboard.type("print('typed', 6 * 7)");
    await page.keyboard.down("Control");
    await page.keyboard.press("Enter");
    await page.keyboard.up("Control");
    await seeText("#output", "typed 42");
    await page.keyboard.press("Tab");
    await page.$eval("#find", (e) => { e.value = ""; e.dispatchEvent(new Event("input")); });
  });
  await check("a session is stopped, after a question", async () => {
    await page.evaluate(() => document.querySelector('#tree [data-session^="analysis@"]').click());
    await page.click("[data-act=stop]");
    await see(() => !document.querySelector('#tree [data-session^="analysis@"]'));
    if (!dialogs.some((d) => d.includes("Stop the session analysis?"))) throw new Error("it was not asked: " + dialogs);
    await see(() => document.querySelector("[data-act=interrupt]").disabled);
  });
  await check("five hundred sessions stay usable", async () => {
    const list = Array.from({ length: 500 }, (_, i) => `s-${String(i).padStart(3, "0")}`);
    await Promise.all(Array.from({ length: 8 }, async () => {
      for (let name; (name = list.pop());) {
        const res = await ask("POST", "/api/sessions", { session: name });
        if (!res.ok) throw new Error(`${name}: ${res.status} ${await res.text()}`);
      }
    }));
    await seeText("#count", "501 sessions");
    await seeText("#tree", "more");
    const count = () => page.$$eval("#tree [data-session]", (list) => list.length);
    if (await count() > 60) throw new Error(`${await count()} are shown at once`);
    await page.focus("#tree [tabindex='0']");
    await page.keyboard.press("Home");
    await page.evaluate(() => document.querySelector("#tree [data-rest]").scrollIntoView());
    await page.click("#tree [data-rest] .name");
    await see(() => document.querySelectorAll("#tree [data-session]").length >= 100);
    const draws = await page.evaluate(async () => { // how long the page is kept from answering
      const find = document.getElementById("find"), took = [];
      for (const text of ["s-4", "s-41", "s-417", "", "idle", "nobody", ""]) {
        const began = performance.now();
        find.value = text;
        find.dispatchEvent(new Event("input"));
        document.body.offsetHeight;
        took.push(performance.now() - began);
      }
      return took.sort((a, b) => a - b).map((n) => Math.round(n * 10) / 10);
    });
    console.log(`    501 sessions: a search draws in ${draws[draws.length >> 1]} ms, ${draws.at(-1)} ms at most`);
    await type("#find", "s-417");
    await seeText("#count", "1 of 501 sessions");
    await page.keyboard.press("Enter");
    await seeText("#session-title", "Session s-417");
    await runCode("print('found', 417)");
    await seeText("#output", "found 417");
    await accessible("five hundred sessions");
    if (pictures) {
      await type("#find", "s-41");
      await page.screenshot({ path: join(pictures, "live-many.png") });
      await page.setViewport({ width: 390, height: 844 });
      await page.screenshot({ path: join(pictures, "live-many-phone.png") });
      await page.setViewport({ width: 1280, height: 900 });
    }
    await page.$eval("#find", (e) => { e.value = ""; e.dispatchEvent(new Event("input")); });
  });
  await check("a server that was started anew is met again", async () => {
    away = true;
    await endServer();
    await seeText("#connection", "trying again");
    await serve(new URL(url).host, token);
    await seeText("#connection", "live");
    await seeText("#count", "0 sessions");
    await seeText("#events", "the server was started anew");
    await type("#new-name", "again");
    await page.click("#new-session button");
    await seeText("#session-title", "Session again");
    await runCode("print('here', 1)");
    await seeText("#output", "here 1");
  });
  await check("one with another token asks to sign in", async () => {
    await endServer();
    await serve(new URL(url).host, "another-token-of-the-browser");
    await page.waitForSelector("#signin", { visible: true, timeout: patience });
    await seeText("#signin-error", "has another");
    await accessible("signing in again");
    await type("#token", "another-token-of-the-browser");
    await page.keyboard.press("Enter");
    await seeText("#connection", "live");
    away = false;
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
  await endServer();
  await rm(home, { recursive: true, force: true });
}
problems.forEach((p) => console.error("not ok  " + p));
console.log(`${done} passed, ${problems.length} failed`);
process.exit(problems.length ? 1 : 0);
