// Drives the live view of a real server in a headless Chromium: signs in, starts a
// session, watches its output arrive, kills the kernel and sees what the page says of
// it, interrupts, pins, forks, answers input, pauses, finds one of five hundred
// sessions, works with the keyboard alone, and meets a server that was started again;
// looks for console errors and for what axe-core finds.
//
//	node live-view.mjs COPPICE PYTHON PICTURES
//
// COPPICE is the command, PYTHON its interpreter, PICTURES a folder. CHROMIUM names
// the browser.
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { patience, start } from "./browser.mjs";

const [coppice, python, pictures] = process.argv.slice(2);
const home = await mkdtemp(join(tmpdir(), "coppice-live-"));
const t = await start();
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
  if (code !== 0 && code !== 130) t.problems.push(`the server ended with ${code}`);
}

const { url, token_file: tokenFile } = await serve("127.0.0.1:0", "first-token-of-the-browser");
const { token } = JSON.parse(await readFile(tokenFile, "utf8"));
const ask = (method, path, body) => fetch(url + path, { method, headers: { Authorization: "Bearer " + token, "Content-Type": "application/json" }, body: body && JSON.stringify(body) });

try {
  const page = await t.page(url);
  await page.setBypassCSP(true);
  const { see, seeText, at, check } = { ...page, ...t };
  const type = page.put;
  const session = (name) => `#/session/${encodeURIComponent(name)}?cwd=${encodeURIComponent(home)}`;
  const newest = "#transcript .cell:last-child";
  // runCode runs code and waits until its cell is there.
  const runCode = async (code) => {
    const before = await page.$$eval("#transcript .cell", (l) => l.length);
    await page.waitForSelector("#code", { visible: true, timeout: patience });
    await page.evaluate((text) => { // as a person pastes: what is typed is indented by the editor
      const e = document.querySelector("#code"), data = new DataTransfer();
      data.setData("text/plain", text);
      e.focus();
      e.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
    }, code);
    await page.click("#run button");
    await see((n) => document.querySelectorAll("#transcript .cell").length > n, before);
  };
  const ends = (outcome) => seeText(newest + " .outcome", outcome);
  const says = (text) => seeText(newest + " .output", text);
  const act = (name) => page.click(`#actions [data-act=${name}]`);
  const yes = async (text) => { await seeText("dialog", text); await page.click("dialog .danger"); };

  await check("the page asks for the token and holds nothing", async () => {
    await page.goto(url, { waitUntil: "load" });
    await page.waitForSelector("#signin", { visible: true });
    await page.accessible("signing in");
    if (pictures) await page.screenshot({ path: join(pictures, "signin.png") });
    await type("#token", "wrong");
    await page.click("#signin button");
    await seeText("#signin-error", "does not know this token");
  });
  await check("it signs in and shows the overview", async () => {
    await type("#token", token);
    await page.click("#signin button");
    await seeText("#connection", "live");
    await see(() => document.querySelectorAll("#charts .chart").length === 9);
    if (await page.evaluate(() => location.href.includes("token"))) throw new Error("the token is in the address");
  });
  await check("a busy machine is a problem, and no problem is said", async () => {
    await page.evaluate(() => {
      window.problems = [];
      const real = window.fetch;
      window.fetch = async (to, ...rest) => {
        const res = await real(to, ...rest);
        if (!String(to).startsWith("/api/overview") || !res.ok) return res;
        return new Response(JSON.stringify({ ...await res.json(), problems: window.problems }), { status: 200 });
      };
      window.restoreFetch = () => { window.fetch = real; };
    });
    await page.waitForSelector("#no-problems", { visible: true });
    await page.evaluate(() => { window.problems = [{ level: "shaky", kind: "machine", key: { session: "", cwd: "" }, what: "The machine is busy.", do: "Sort." }]; });
    await seeText("#problems", "The machine is busy.");
    await page.evaluate(() => window.restoreFetch());
  });
  await check("it starts a session", async () => {
    await at("#/sessions");
    await seeText("#no-sessions", "No session has a kernel");
    await page.type("#new-name", "analysis");
    await page.click("#new-session button");
    await seeText("#session-title", "analysis");
    await seeText("#session-state", "idle");
    await seeText("#story", "started");
  });
  await check("output arrives while the code runs", async () => {
    const seen = join(home, "seen"); // it ends when its output was seen, not before
    await runCode(`import os, time\nfor i in range(3): print('line', i, flush=True)\nwhile not os.path.exists(${JSON.stringify(seen)}): time.sleep(0.05)\nprint('done')`);
    await says("line 2");
    await seeText("#session-state", "busy");
    await writeFile(seen, "");
    await says("done");
    await ends("ok");
  });
  await check("pictures, tables and progress are shown, HTML is not run", async () => {
    await runCode(`import sys
class P:
    def _repr_mimebundle_(self, **k):
        return {"image/svg+xml": "<svg xmlns='http://www.w3.org/2000/svg' width='420' height='110'><rect width='420' height='110' fill='#e8f3e6'/><polyline points='10,90 80,60 150,72 220,30 290,44 360,18 410,24' fill='none' stroke='#1f5135' stroke-width='4'/></svg>", "text/plain": "a rising line"}
class H:
    def _repr_html_(self): return "<script>window.owned = 1</script><table onclick='x()'><tr><th>a</th><td>42</td></tr></table>"
    def __repr__(self): return "H()"
for i in range(3): sys.stdout.write(f"\\r{i*50} %")
print("\\n\\033[32mgreen\\033[0m")
display(H())
P()`);
    await page.waitForSelector(newest + " .output img", { timeout: patience });
    await see((s) => document.querySelector(s + " .output img").naturalWidth > 0 && document.querySelector(s + " .markup td") && document.querySelector(s + " .fg2"), newest);
    const text = await page.text(newest + " .output");
    if (await page.evaluate(() => window.owned) || text.includes("50 %\r") || !text.includes("100 %")) throw new Error("HTML was run, or progress is not in place: " + text);
  });
  await check("input is asked for and answered", async () => {
    await runCode("name = input('Who are you? ')\nprint('hello', name)");
    await page.waitForSelector("#answer", { visible: true, timeout: patience });
    await seeText("#answer-label", "Who are you?");
    await page.waitForSelector("#nav-problems", { visible: true });
    await page.focus("#answer-text");
    await page.keyboard.type("Ada");
    await page.keyboard.press("Enter");
    await says("hello Ada");
    await page.waitForSelector("#answer", { hidden: true });
  });
  await check("an interrupt ends the code and keeps the session", async () => {
    await runCode("kept = 1\nimport time; print('begun', flush=True); time.sleep(600)");
    await says("begun");
    await page.waitForSelector("#actions [data-act=interrupt]", { visible: true });
    await act("interrupt");
    await ends("cancelled");
    await runCode("print('kept', kept)");
    await says("kept 1");
    await page.waitForSelector("#actions [data-act=interrupt]", { hidden: true }); // nothing runs
    await seeText("#not-now", "Interrupt (nothing runs)");
  });
  await check("a traceback is folded", async () => {
    await runCode("def f(): return 1 / 0\nf()");
    await says("ZeroDivisionError");
    if (await page.$(newest + " details[open]")) throw new Error("it is open");
  });
  await check("a killed kernel is a problem until a call goes well", async () => {
    await runCode("import os, signal; os.kill(os.getpid(), signal.SIGKILL)");
    await ends("lost");
    await page.waitForSelector("#session-why", { visible: true, timeout: patience });
    await seeText("#story", "died");
    await seeText("#story", "restarted");
    await seeText("#session-state", "idle");
    await at("#/events");
    await seeText("#events", "suspended → restarting");
    await at("#/overview");
    await seeText("#problems", "analysis");
    await at(session("analysis"));
    await seeText("#session-title", "analysis");
    await runCode("1");
    await ends("ok");
    await page.waitForSelector("#session-why", { hidden: true, timeout: patience });
  });
  await check("pin and unpin", async () => {
    await act("pin");
    await page.waitForSelector("#actions [data-act=unpin]", { timeout: patience });
    await act("unpin");
    await page.waitForSelector("#actions [data-act=pin]", { timeout: patience });
  });
  await check("a fork is a session of its own under a readable name, with the variables", async () => {
    await runCode("x = 42");
    await ends("ok");
    await page.waitForSelector("#actions [data-act=fork]", { timeout: patience });
    await act("fork");
    await seeText("#told", "copied to analysis~1");
    await seeText("#story", "forked");
    await at(session("analysis~1"));
    await seeText("#session-title", "analysis~1");
    await seeText("#facts", "copy of");
    await runCode("print('copy has', x)");
    await says("copy has 42");
  });
  await check("the tree is walked with the keyboard", async () => {
    await at("#/tree");
    await seeText("#tree", "analysis~1");
    await page.focus("#tree [tabindex='0']");
    await page.keyboard.press("Home");
    for (let i = 0; i < 3; i++) await page.keyboard.press("ArrowDown");
    const role = await page.evaluate(() => document.activeElement.getAttribute("role"));
    if (role !== "treeitem") throw new Error("the focus left the tree: " + role);
    await page.evaluate(() => document.querySelector('#tree [data-session^="analysis@"]').focus());
    await page.keyboard.press("Enter");
    await seeText("#session-title", "analysis");
  });
  await check("a paused page waits", async () => {
    await at("#/events");
    await see(() => document.querySelector("#events").childElementCount > 3);
    await page.click("#pause");
    const before = await page.$eval("#events", (e) => e.childElementCount);
    await ask("POST", "/api/sessions", { session: "meanwhile" });
    await seeText("#events-state", "new");
    if (before !== await page.$eval("#events", (e) => e.childElementCount)) throw new Error("events came in");
    await page.click("#pause");
    await see((n) => document.querySelector("#events").childElementCount > n, before);
    await ask("DELETE", "/api/sessions/meanwhile");
  });
  await check("events and output are there again after a reload", async () => {
    await page.reload({ waitUntil: "load" }); // it is still signed in
    await seeText("#connection", "live");
    await seeText("#events", "suspended → restarting");
    await at("#/executions");
    await page.put("#find-executions", "import sys _repr_html_");
    await seeText("#executions-count", "1 execution found");
    await page.click("#executions .code a");
    await see(() => location.hash.startsWith("#/execution/"));
    await page.waitForSelector("#transcript .output img", { timeout: patience });
  });
  await check("axe-core finds nothing, light and dark, wide and narrow", async () => {
    for (const scheme of ["light", "dark"]) {
      await page.scheme(scheme);
      await page.setViewport({ width: 1280, height: 900 });
      await page.accessible(scheme);
      if (pictures) await page.screenshot({ path: join(pictures, `live-${scheme}.png`) });
      await page.phone();
      await page.accessible(scheme + ", narrow");
      if (pictures && scheme === "light") await page.screenshot({ path: join(pictures, "live-phone.png") });
    }
    await page.wide();
  });
  await check("everything has a name for a screen reader", async () => {
    for (const hash of [session("analysis"), "#/sessions", "#/tree", "#/overview"]) {
      await at(hash);
      const bad = [], visit = (n) => {
        if (["button", "textbox", "searchbox", "treeitem", "tree", "link", "region", "log", "grid", "img"].includes(n.role) && !n.name) bad.push(n.role);
        (n.children ?? []).forEach(visit);
      };
      visit(await page.accessibility.snapshot({ interestingOnly: true }));
      if (bad.length) throw new Error("without a name: " + bad.join(", "));
    }
  });
  await check("the keyboard alone finds a session and runs code in it", async () => {
    await at("#/overview");
    await page.keyboard.press("/");
    await see(() => document.activeElement.id === "find");
    await page.keyboard.type("anal idle");
    await seeText("#count", "2 of 2 sessions");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await seeText("#session-title", "analysis");
    for (let i = 0; i < 200 && await page.evaluate(() => document.activeElement.id) !== "code"; i++) await page.keyboard.press("Tab");
    await page.keyboard.type("print('typed', 6 * 7)");
    await page.keyboard.down("Control");
    await page.keyboard.press("Enter");
    await page.keyboard.up("Control");
    await says("typed 42");
  });
  await check("a session is stopped, after a question that says what is lost", async () => {
    await at(session("analysis"));
    await seeText("#session-title", "analysis");
    await page.waitForSelector("#actions [data-act=stop]");
    await act("stop");
    await yes("The variables of 1 session are lost for good");
    await seeText("#session-state", "no kernel");
    await seeText("#story", "closed");
    await see(() => !document.querySelector("#actions button"));
  });
  await check("five hundred sessions stay usable", async () => {
    const list = Array.from({ length: 500 }, (_, i) => `s-${String(i).padStart(3, "0")}`);
    await Promise.all(Array.from({ length: 8 }, async () => {
      for (let name; (name = list.pop());) {
        const res = await ask("POST", "/api/sessions", { session: name });
        if (!res.ok) throw new Error(`${name}: ${res.status} ${await res.text()}`);
      }
    }));
    await at("#/sessions");
    await seeText("#count", "501 sessions");
    const count = await page.$$eval("#rows tr", (l) => l.length);
    if (count > 60) throw new Error(`${count} rows are in the page`);
    await page.focus("#find");
    await type("#find", "s-417");
    await seeText("#count", "1 of 501 sessions");
    await page.keyboard.press("Enter");
    await seeText("#session-title", "s-417");
    await runCode("print('found', 417)");
    await says("found 417");
    await page.accessible("five hundred sessions");
  });
  await check("a server that was started anew is met again", async () => {
    t.away = true;
    await endServer();
    await seeText("#connection", "trying again");
    await serve(new URL(url).host, token);
    await seeText("#connection", "live");
    await at("#/sessions");
    await type("#find", "");
    await seeText("#count", "0 sessions");
    await at("#/events");
    await seeText("#events", "the server was started again");
    await at("#/sessions");
    await page.type("#new-name", "again");
    await page.click("#new-session button");
    await seeText("#session-title", "again");
    await runCode("print('here', 1)");
    await says("here 1");
  });
  await check("one with another token asks to sign in", async () => {
    await endServer();
    await serve(new URL(url).host, "another-token-of-the-browser");
    await page.waitForSelector("#signin", { visible: true, timeout: patience });
    await seeText("#signin-error", "has another");
    await page.accessible("signing in again");
    await type("#token", "another-token-of-the-browser");
    await page.click("#signin button");
    await seeText("#connection", "live");
    t.away = false;
  });
  await check("signing out forgets the token", async () => {
    await page.click("#signout");
    await page.waitForSelector("#signin", { visible: true });
    if (await page.evaluate(() => sessionStorage.length)) throw new Error("something is kept");
    await page.reload({ waitUntil: "load" });
    await page.waitForSelector("#signin", { visible: true });
  });
} catch (e) {
  t.problems.push(`${t.step}: ${e.stack}`);
  if (pictures) await (await t.browser.pages()).at(-1)?.screenshot({ path: join(pictures, "failed.png") }).catch(() => {});
} finally {
  await t.browser.close();
  await endServer();
  await rm(home, { recursive: true, force: true });
}
process.exit(t.over());
