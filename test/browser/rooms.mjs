// Drives what the live view has for one session and one workspace of a real server: the
// editor with what the kernel knows, the transcript as a notebook, executions and events by
// pages, the files and the processes of a workspace with a terminal; tries to have code run
// by names and texts of all of them; looks at each on a wide screen, a narrow one, a phone
// and in the dark.
//
//	node rooms.mjs COPPICE PYTHON PICTURES
import { spawn } from "node:child_process";
import { mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { patience, start, until } from "./browser.mjs";

const [coppice, python, pictures] = process.argv.slice(2);
const home = await mkdtemp(join(tmpdir(), "coppice-rooms-")), saved = await mkdtemp(join(tmpdir(), "coppice-saved-"));
const t = await start();
const token = "token-of-the-rooms";
const server = spawn(coppice, ["serve", "--addr", "127.0.0.1:0", "--backend", "runner", "--python", python, "--cwd", home, "--json"], { env: { ...process.env, COPPICE_HOME: home, COPPICE_TOKEN: token }, stdio: ["ignore", "pipe", "inherit"] });
const ended = new Promise((resolve) => server.on("exit", resolve));
let told = "";
for await (const part of server.stdout) { told += part; if (told.trim().endsWith("}")) break; }
const { url } = JSON.parse(told);
const ask = async (method, path, body) => {
  const res = await fetch(url + path, { method, headers: { Authorization: "Bearer " + token, "Content-Type": "application/json" }, body: body && JSON.stringify(body) });
  if (!res.ok) throw new Error(`${method} ${path}: ${res.status} ${await res.text()}`);
  return res.status === 204 ? null : res.headers.get("content-type").includes("json") ? res.json() : res.text();
};
const evil = `<img src=x onerror="window.owned=1"><script>window.owned=1</script>`;
const { check } = t;

try {
  const page = await t.page(url);
  const { see, seeText, at, accessible } = page;
  await (await page.createCDPSession()).send("Browser.setDownloadBehavior", { behavior: "allow", downloadPath: saved });
  const session = (name, more = "") => `#/session/${encodeURIComponent(name)}?cwd=${encodeURIComponent(home)}${more}`;
  const chord = async (key, ...with_) => { for (const k of with_) await page.keyboard.down(k); await page.keyboard.press(key); for (const k of with_) await page.keyboard.up(k); };
  const code = () => page.evaluate(() => [...document.querySelectorAll("#code .cm-line")].map((l) => (l.querySelector(".cm-placeholder") ? "" : l.textContent)).join("\n"));
  const newest = "#transcript .cell:last-child";
  const picture = async (name) => { if (pictures) await page.screenshot({ path: join(pictures, `room-${name}.png`) }); };
  const sizes = async (name) => {
    for (const [how, width, height, scheme] of [["wide", 1440, 900, "light"], ["1024", 1024, 768, "light"], ["phone", 390, 844, "light"], ["dark", 1440, 900, "dark"], ["phone-dark", 390, 844, "dark"]]) {
      await page.scheme(scheme);
      await page.setViewport({ width, height });
      await accessible(`${name}, ${how}`);
      await whole(`${name}, ${how}`);
      if (how !== "phone-dark") await picture(`${name}-${how}`);
    }
    await page.scheme("light");
    await page.wide();
  };
  // whole says what is cut, and what scrolls inside of what scrolls.
  const whole = async (where) => {
    const found = await page.evaluate(() => {
      const bad = [], inside = (e) => { for (let p = e.parentElement; p && p !== document.body; p = p.parentElement) if (/auto|scroll/.test(getComputedStyle(p).overflowY) && p.scrollHeight > p.clientHeight + 1) return true; return false; };
      for (const e of document.querySelectorAll("#live *")) {
        if (!e.offsetParent || e.closest(".xterm")) continue;
        const r = e.getBoundingClientRect(), s = getComputedStyle(e);
        const short = e.closest("td, .fold"); // what is shortened says so with dots, and has a title
        if (r.width && r.right > innerWidth + 1 && !inside(e) && !(short && short !== e && getComputedStyle(short).overflowX !== "visible")) bad.push(`${e.tagName}#${e.id}.${e.className} ends at ${Math.round(r.right)}`);
        if (/auto|scroll/.test(s.overflowY) && e.scrollHeight > e.clientHeight + 1 && inside(e)) bad.push(`${e.tagName}#${e.id}.${e.className} scrolls in what scrolls`);
        if (!e.matches(".unseen") && /^(BUTTON|H2|H3|DT|DD|LABEL)$/.test(e.tagName) && s.overflowX === "hidden" && e.scrollWidth > e.clientWidth + 1) bad.push(`${e.tagName}#${e.id} "${e.textContent.slice(0, 30)}" is cut`);
      }
      return bad.slice(0, 5);
    });
    found.forEach((f) => t.problems.push(`${where}: ${f}`));
  };

  await page.goto(url + "/#token=" + token, { waitUntil: "load" });
  await seeText("#connection", "live");
  await ask("POST", "/api/sessions", { session: "analysis" });
  await check("the editor is there, and can be written in", async () => {
    await at(session("analysis"));
    await page.waitForSelector("#code", { visible: true, timeout: patience });
    await seeText("#session-state", "idle");
    await page.click("#code");
    await page.keyboard.type("import math\nradius = 2\nmath.pi * radius ** 2");
    await see(() => document.querySelectorAll("#code .cm-line span[class]").length > 2); // colours
    await chord("Enter", "Shift");
    await seeText(newest + " .output", "12.56");
    await seeText(newest + " .source", "radius = 2");
    if (await code() !== "") throw new Error("the editor still has " + await code());
  });
  await check("the arrow keys bring earlier code back, also what others ran", async () => {
    await ask("POST", "/api/executions", { session: "analysis", cells: [{ code: "seen_by = 'another client'" }] });
    await seeText("#transcript", "seen_by");
    await page.click("#code");
    await page.keyboard.type("draft");
    for (const want of ["seen_by = 'another client'", "import math\nradius = 2\nmath.pi * radius ** 2"]) {
      await see((w) => { // the code of earlier executions is read when the editor is used first
        const now = [...document.querySelectorAll("#code .cm-line")].map((l) => l.textContent).join("\n"), down = now !== w && now.startsWith("import");
        if (now === w) return true;
        document.querySelector("#code").dispatchEvent(new KeyboardEvent("keydown", { key: down ? "ArrowDown" : "ArrowUp", code: down ? "ArrowDown" : "ArrowUp", keyCode: down ? 40 : 38, altKey: true, bubbles: true, cancelable: true }));
        return false;
      }, want);
      await chord("Home", "Control");
    }
    for (let i = 0; i < 2; i++) { await chord("End", "Control"); await page.keyboard.press("ArrowDown"); }
    if (await code() !== "draft") throw new Error("the draft is gone: " + await code());
    await chord("a", "Control");
    await page.keyboard.press("Backspace");
  });
  await check("the kernel completes and inspects, and is not asked while it is busy", async () => {
    await page.keyboard.type("math.sq");
    await see(() => [...document.querySelectorAll(".cm-tooltip-autocomplete li")].some((l) => l.textContent.includes("sqrt")));
    await accessible("completion");
    await picture("completion");
    await new Promise((r) => setTimeout(r, 100)); // the list takes a key only when it could be read
    await page.keyboard.press("Enter");
    await see(() => /sqrt/.test(document.querySelector("#code").textContent));
    await chord("i", "Control");
    await seeText(".cm-inspected", "square root");
    await picture("inspection");
    await page.keyboard.press("Escape");
    await page.waitForSelector(".cm-inspected", { hidden: true });
    const x = await ask("POST", "/api/executions", { session: "analysis", cells: [{ code: "import time; time.sleep(600)" }] });
    await seeText("#session-state", "busy");
    await chord("i", "Control");
    await seeText("#run-note", "busy");
    await ask("POST", `/api/executions/${x.id}/cancel`);
    await seeText("#session-state", "idle");
    await chord("a", "Control");
    await page.keyboard.press("Backspace");
  });
  await check("help and completions of a kernel are text", async () => {
    await ask("POST", "/api/executions", { session: "analysis", cells: [{ code: `def trap():\n    ${JSON.stringify(evil)}\ntrap()`, title: evil }] });
    await seeText("#session-state", "idle");
    await page.keyboard.type("trap");
    await page.keyboard.press("Escape");
    await chord("i", "Control");
    await seeText(".cm-inspected", "onerror");
    await page.keyboard.press("Escape");
    await chord("a", "Control");
    await page.keyboard.press("Backspace");
  });
  await check("the keyboard leaves the empty editor", async () => {
    await page.keyboard.press("Tab");
    await see(() => document.activeElement.textContent === "Run");
  });
  await sizes("session");
  await check("the transcript is saved as a notebook", async () => {
    await page.click("#export");
    await until("the notebook", async () => (await readdir(saved)).includes("analysis.ipynb"));
    const book = JSON.parse(await readFile(join(saved, "analysis.ipynb"), "utf8"));
    if (book.nbformat !== 4 || book.nbformat_minor !== 5 || !JSON.stringify(book).includes("12.56")) throw new Error(JSON.stringify(book).slice(0, 500));
  });
  await check("executions are found by code that no list shows, and have an address", async () => {
    await at("#/executions?filter=radius");
    await seeText("#executions-count", "1 execution found");
    await page.click("#executions .code a");
    await see(() => location.hash.startsWith("#/execution/"));
    await seeText("#transcript", "radius = 2");
    await at("#/executions");
    await page.select("#outcome", "cancelled");
    await seeText("#executions-count", "1 execution found");
    await page.select("#outcome", "");
    await see(() => document.querySelectorAll("#executions tr").length > 3);
  });
  await sizes("executions");
  await check("events come by pages, by words and by time, after a reload too", async () => {
    for (let i = 0; i < 120; i++) await ask("POST", "/api/executions", { session: "analysis", cells: [{ code: `n = ${i}` }] });
    await at("#/events");
    await seeText("#events-state", "and older ones");
    const before = await page.$$eval("#events li", (l) => l.length);
    await page.click("#more-events");
    await see((n) => document.querySelectorAll("#events li").length > n, before);
    await at("#/events?filter=execution+analysis+radius");
    await page.reload({ waitUntil: "load" });
    await seeText("#connection", "live");
    await see(() => document.querySelectorAll("#events li").length === 0 || document.querySelector("#find-events").value.includes("radius"));
    await page.put("#find-events", "import math");
    await see(() => document.querySelectorAll("#events li").length >= 1 && document.querySelector("#events").textContent.includes("import math"));
    await page.put("#events-until", "2001-01-01T00:00:00");
    await page.waitForSelector("#no-events", { visible: true, timeout: patience });
    await page.put("#events-until", "");
    await page.put("#find-events", "");
    await see(() => document.querySelectorAll("#events li").length > 50);
    await ask("POST", "/api/sessions", { session: "newcomer" });
    await seeText("#events", "newcomer");
  });
  await sizes("events");

  await check("a workspace is made, and a session in it", async () => {
    await at("#/workspaces");
    await page.waitForSelector("#no-workspaces", { visible: true, timeout: patience });
    await page.type("#workspace-name", "lab");
    await page.click("#new-workspace button");
    await seeText("#workspace-title", "lab");
    await page.type("#workspace-session-name", "worker");
    await page.click("#workspace-session button");
    await seeText("#session-title", "worker");
    await page.click("#session-where a");
    await seeText("#workspace-sessions", "worker");
  });
  await check("files are brought, listed, read, and removed", async () => {
    const mine = join(saved, "data.csv");
    await writeFile(mine, "a,b\n1,2\n");
    await (await page.$("#upload")).uploadFile(mine);
    await seeText("#files", "data.csv");
    await ask("POST", "/api/executions", { session: "worker", workspace: "lab", cells: [{ code: `import os\nos.makedirs('deep/down')\nopen('deep/down/x.txt', 'w').write('found')\nopen(${JSON.stringify("<img src=x onerror=window.owned=1>.txt")}, 'w').write('1')\nopen('rtl\\u202etxt.exe', 'w').write('1')` }] });
    await see(() => { document.querySelector("#files-again").click(); return document.querySelector("#files").textContent.includes("deep/"); });
    await rm(mine);
    await page.$eval('[aria-label="Download data.csv"]', (e) => e.click()); // a list that was asked for before may take its place meanwhile
    await until("the file", async () => (await readdir(saved)).includes("data.csv"));
    if (await readFile(mine, "utf8") !== "a,b\n1,2\n") throw new Error("another file was saved");
    if (/\u202e/.test(await page.text("#files"))) throw new Error("a name turns the text around");
    await at("#/workspace/lab?dir=deep%2Fdown");
    await seeText("#files", "x.txt");
    await page.$eval('[aria-label="Remove x.txt"]', (e) => e.click());
    await seeText("dialog", "gone for good");
    await page.click("dialog .danger");
    await page.waitForSelector("#no-files", { visible: true, timeout: patience });
    t.refusals = true;
    await at("#/workspace/lab?dir=..%2F..");
    await seeText("#files-problem", "cannot be read");
    t.refusals = false;
    await at("#/workspace/lab");
  });
  await check("a terminal takes what is typed, shows colours, and says when it ends", async () => {
    await page.type("#program", "sh");
    await page.click("#new-process button");
    await page.waitForSelector("#terminal .xterm-rows", { visible: true, timeout: patience });
    await seeText("#terminal-state", "connected");
    await page.focus("#terminal textarea");
    await page.keyboard.type("printf '\\033[31mred\\033[0m \\033[38;2;10;120;200mtrue\\033[0m\\n'; echo $((6*7))-$(stty size)\n");
    await see(() => /42-\d+ \d+/.test(document.querySelector("#terminal .xterm-rows").textContent.replace(/\u00a0/g, " ")));
    await page.keyboard.type(`printf '%s\\n' '<img src=x onerror=window.owned=1>'\n`);
    await seeText("#terminal .xterm-rows", "onerror");
    const plain = await page.evaluate(() => ["red", "true"].filter((w) => ![...document.querySelectorAll("#terminal .xterm-rows span")].some((s) => s.textContent === w && getComputedStyle(s).color !== getComputedStyle(s.parentElement).color)));
    if (plain.length) throw new Error("without its colour: " + plain);
    await chord("Escape", "Control", "Shift");
    await see(() => document.activeElement.id === "terminal-close");
    const shown = await page.evaluate(() => location.hash);
    if (!shown.includes("process=")) throw new Error("the terminal has no address: " + shown);
  });
  await sizes("workspace");
  await check("a process is found again after a reload, and ended", async () => {
    await page.reload({ waitUntil: "load" });
    await seeText("#terminal .xterm-rows", "onerror");
    await page.focus("#terminal textarea");
    t.refusals = true; // its size may be told to a process that has just ended
    await page.keyboard.type("exit 3\n");
    await seeText("#terminal-state", "has ended");
    await seeText("#processes", "ended with 3");
    t.refusals = false;
    await ask("POST", "/api/workspaces/lab/processes", { args: ["sh", "-c", 'echo "$0"; exec sleep 600', evil] });
    await seeText("#processes", "sleep 600");
    await page.click('#processes [aria-label^="Output of"]');
    await see(() => document.querySelector("#terminal-title").textContent.includes("sleep 600"));
    await seeText("#terminal .xterm-rows", "onerror");
    await page.click("#processes .danger:not([hidden])");
    await seeText("dialog", "End this process");
    await page.click("dialog .danger");
    await seeText("#processes", "ended by");
  });
  await check("nothing that was given ran", async () => {
    await ask("POST", "/api/sessions", { session: evil, workspace: "lab", owner: evil });
    t.refusals = true;
    for (const hash of ["#/overview", "#/sessions", "#/tree", "#/executions", "#/events", "#/workspaces", "#/workspace/lab", `#/workspace/${encodeURIComponent(evil)}`, session("analysis"), session(evil), `#/events?filter=${encodeURIComponent(evil)}`, `#/executions?filter=${encodeURIComponent(evil)}`]) {
      await at(hash);
      await new Promise((r) => setTimeout(r, 300)); // what would run, runs with the next task
      if (await page.evaluate(() => window.owned)) throw new Error("it ran at " + hash);
    }
  });
} catch (e) {
  t.problems.push(`${t.step}: ${e.stack}`);
  if (pictures) await (await t.browser.pages()).at(-1)?.screenshot({ path: join(pictures, "failed.png") }).catch(() => {});
} finally {
  await t.browser.close();
  server.kill("SIGINT");
  await ended;
  for (const dir of [home, saved]) await rm(dir, { recursive: true, force: true });
}
process.exit(t.over());
