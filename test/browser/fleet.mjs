// The page with two hundred sessions, one that asks and one that died among them.
//
//	node fleet.mjs LIVEVIEW PICTURES
//
// LIVEVIEW is the folder of the package liveview.
import { join } from "node:path";
import { fake, fleet } from "./fake.mjs";
import { signIn, start } from "./browser.mjs";

const [dir, pictures] = process.argv.slice(2);
const t = await start();
const picture = (page, name, more) => (pictures ? page.screenshot({ path: join(pictures, name + ".png"), ...more }) : null);
const ago = (s) => new Date(Date.now() - s * 1000).toISOString();

const frame = "<table border='1' class='dataframe'><thead><tr style='text-align:right'><th></th><th>quarter</th><th>revenue</th><th>margin</th></tr></thead><tbody>" + [["Q1", "1,204", "31 %"], ["Q2", "1,377", "33 %"], ["Q3", "1,290", "29 %"]].map((r, i) => `<tr><th>${i}</th>${r.map((c) => `<td>${c}</td>`).join("")}</tr>`).join("") + "</tbody></table>";
const chart = "<svg xmlns='http://www.w3.org/2000/svg' width='460' height='130'><rect width='460' height='130' fill='#f4f8f3'/><polyline points='10,110 80,70 150,88 220,40 290,52 360,24 440,30' fill='none' stroke='#1f5135' stroke-width='4'/></svg>";
const mine = { session: "analysis-000", cwd: "/home/ada/project" };
const executions = [
  { id: "x-1", kind: "call", ...mine, state: "ended", title: "import pandas as pd", started: ago(300), ended: ago(299), outcome: "ok", events: [{ type: "final", outcome: "ok", state: "kept" }] },
  { id: "x-2", kind: "call", ...mine, state: "ended", title: "df.groupby('quarter').sum()", started: ago(200), ended: ago(199), outcome: "ok", events: [
    { type: "stdout", text: "\x1b[1mreading\x1b[0m \x1b[32mok\x1b[0m  \x1b[33m2 warnings\x1b[0m  \x1b[31m0 errors\x1b[0m \x1b[38;5;33mdata/2026.csv\x1b[0m\n" }, { type: "stdout", text: " 10 %|█         |\r 55 %|█████▌    |\r" }, { type: "stdout", text: "100 %|██████████|\n" },
    { type: "result", data: { "text/html": frame, "text/plain": "  quarter ..." } }, { type: "display", data: { "text/markdown": "### What it shows\n\n| quarter | change |\n|---|---|\n| Q2 | **+14 %** |\n| Q3 | *-6 %* |\n\n- revenue in `kEUR`\n- margin before tax" } }, { type: "display", data: { "image/svg+xml": chart, "text/plain": "a rising line" } }, { type: "final", outcome: "ok", state: "kept" }] },
  { id: "x-3", kind: "call", ...mine, state: "ended", title: "load(2027)", started: ago(60), ended: ago(59), outcome: "error", events: [
    { type: "error", name: "KeyError", message: "2027", summary: "\x1b[31mKeyError\x1b[0m: 2027\n  <cell 3>, line 2\n    return frames[year]\n           ~~~~~~^^^^^^", user_traceback: "Traceback (most recent call last):\n  <cell 3>, line 2, in load\nKeyError: 2027", traceback: ["Traceback (most recent call last):", "  File ipykernel/x.py, line 1", "  <cell 3>, line 2, in load", "KeyError: 2027"], hint: "The years 2020 to 2026 are there." }, { type: "final", outcome: "error", state: "kept" }] },
];
const stories = {
  "analysis-000": [{ at: ago(4000), what: "started", why: "in 3ms", epoch: 1, pid: 7 }, { at: ago(1200), what: "forked", why: "to analysis-000~1" }, { at: ago(900), what: "evicted", why: "it was idle for 1h; a new session took its place" }, { at: ago(310), what: "started", why: "in 2ms", epoch: 1, pid: 9 }],
};

/** session is the session of a place in the fleet. */
const named = (f, i) => f.sessions[i];

try {
  const f = fleet(200), asks = named(f, 20), died = named(f, 33);
  stories[died.session] = [{ at: ago(2000), what: "started", why: "in 4ms", epoch: 1, pid: 12 }, { at: ago(124), what: "died", why: died.last_exit.reason, epoch: 1 }, { at: ago(123), what: "lost", why: "a call was lost: the kernel died while it ran" }, { at: ago(122), what: "restarted", why: "in 9ms; with no variables", epoch: 2, pid: 19 }];
  executions.push({ id: "x-asks", kind: "call", session: asks.session, cwd: asks.cwd, state: "running", title: "quarter = input('Which quarter shall I load? ')", started: ago(71), events: [{ type: "stdout", text: "4 files found\n" }, { type: "input_request", id: "q1", prompt: "Which quarter shall I load? " }] },
    { id: "x-died", kind: "call", session: died.session, cwd: died.cwd, state: "ended", title: "big = load_everything()", started: ago(130), ended: ago(123), outcome: "lost", events: [{ type: "stdout", text: "reading 41 files\n" }, { type: "final", outcome: "lost", state: "lost", reason: "the kernel died while the call ran: the process was killed (signal 9)" }] });
  const s = await fake(dir, { ...f, executions, stories });
  const page = await t.page(s.url);
  await page.setBypassCSP(true);

  await t.check("the overview says first what needs a person", async () => {
    await signIn(page, s.url);
    await page.seeText("#problems-title", "5 problems");
    await page.see(() => document.querySelectorAll("#problems .problem").length === 5 && document.querySelectorAll("#charts svg path.line").length > 9);
    if (!(await page.text("#problems")).includes("Reset it for an empty kernel")) throw new Error("nothing to do is said");
    await page.accessible("overview");
    await picture(page, "overview");
    await page.scheme("dark");
    await page.accessible("overview, dark");
    await picture(page, "overview-dark");
    await page.phone();
    await page.accessible("overview, phone");
    await picture(page, "overview-phone");
    await page.wide();
    await page.scheme("light");
  });
  await t.check("a problem leads to its session, and a question is answered there", async () => {
    await page.evaluate(() => [...document.querySelectorAll("#problems a")].find((a) => a.textContent.includes("ingest") || a.closest("li").className.includes("l-asks")).click());
    await page.at(`#/session/${asks.session}?cwd=${encodeURIComponent(asks.cwd)}`);
    await page.waitForSelector("#answer", { visible: true });
    await page.seeText("#answer-left", "left");
    await page.accessible("a question");
    await picture(page, "asks");
    await page.focus("#answer-text");
    await page.keyboard.type("Q3");
    await page.keyboard.press("Enter");
    await page.seeText("#told", "answered");
    if (JSON.stringify(s.state.answered) !== '[{"id":"q1","value":"Q3"}]') throw new Error(JSON.stringify(s.state.answered));
  });
  await t.check("a session shows tables, colours, pictures and folded tracebacks", async () => {
    await page.at(`#/session/${mine.session}?cwd=${encodeURIComponent(mine.cwd)}`);
    await page.waitForSelector(".markup table td");
    await page.see(() => document.querySelector(".output img")?.naturalWidth > 0 && document.querySelectorAll(".markup table").length === 2);
    if (await page.$(".markup [style], .markup [class~=dataframe]")) throw new Error("an attribute of a cell came through");
    if (!(await page.$(".output .fg2")) || (await page.text("#transcript")).includes("55 %")) throw new Error("colours or carriage returns are not drawn");
    await page.seeText("#story", "evicted");
    const folds = await page.$$eval(".traceback details", (l) => l.map((d) => d.open));
    if (folds.join() !== "false,false") throw new Error("tracebacks are not folded: " + folds);
    await page.evaluate(() => document.querySelector(".traceback summary").click());
    await page.seeText(".traceback details[open]", "in load");
    await page.accessible("a session");
    await picture(page, "session", { fullPage: true });
    await page.scheme("dark");
    await page.accessible("a session, dark");
    await picture(page, "session-dark");
    await page.phone();
    await page.accessible("a session, phone");
    await picture(page, "session-phone");
    await page.wide();
    await page.scheme("light");
  });
  await t.check("a dead one says what became of its state", async () => {
    await page.at(`#/session/${died.session}?cwd=${encodeURIComponent(died.cwd)}`);
    await page.seeText("#session-why", "was killed");
    await page.seeText("#story", "restarted");
    await page.seeText("#transcript", "variables are lost");
    await page.accessible("a dead session");
    await picture(page, "died");
  });
  await t.check("the table is filtered, sorted and kept in the address", async () => {
    await page.at("#/sessions");
    await page.see(() => document.querySelectorAll("#rows tr").length > 15);
    await page.accessible("200 sessions");
    await picture(page, "sessions-200");
    const first = await page.text("#rows tr");
    if (!first.startsWith("down")) throw new Error("the worst is not first: " + first);
    await page.put("#find", "state:busy rss:>100M");
    await page.see(() => location.hash.includes("q=state%3Abusy+rss%3A%3E100M"));
    await page.click('th[data-by="rss"] button');
    await page.see(() => location.hash.includes("sort=-rss") && document.querySelector('th[data-by="rss"]').getAttribute("aria-sort") === "descending");
    const sizes = await page.$$eval("#rows .c-rss", (l) => l.map((e) => parseFloat(e.textContent)));
    if (sizes.length < 3 || sizes.some((n, i) => n > sizes[i - 1])) throw new Error("not sorted: " + sizes);
    await page.reload({ waitUntil: "load" });
    await page.see(() => document.querySelector("#find").value === "state:busy rss:>100M" && document.querySelectorAll("#rows tr").length > 2);
    await page.put("#find", "analysis-000 colour:red");
    await page.seeText("#find-problem", "colour: is not known");
    await page.put("#find", "");
    await page.phone();
    await page.accessible("200 sessions, phone");
    await picture(page, "sessions-phone");
    await page.wide();
    await page.scheme("dark");
    await page.accessible("200 sessions, dark");
    await picture(page, "sessions-dark");
    await page.scheme("light");
    await page.click("#density");
    await page.accessible("200 sessions, dense");
    await picture(page, "sessions-dense");
    await page.click("#density");
  });
  await t.check("nodes and workspaces are groups, and columns are chosen", async () => {
    const many = fleet(120);
    many.sessions.forEach((one, i) => { one.node = ["one-b9b5109136ef4914", "two-0c1f5a7711aa2b3c", "three-77d21f00e5c9a8b4"][i % 3]; if (i % 5 === 0) one.workspace = i % 10 ? "lab" : "lab-2"; });
    const other = await fake(dir, { ...many, executions: [], stories: {} }), p = await t.page(other.url);
    await p.setBypassCSP(true);
    await signIn(p, other.url, "#/sessions");
    await p.seeText("#count", "120 sessions");
    const names = await p.$$eval("#groups a", (l) => l.map((e) => e.textContent));
    if (names.length !== 5 || !names.includes("one 40") || names.filter((n) => n.endsWith(" 40")).length !== 3) throw new Error("the groups are " + names);
    await p.accessible("groups");
    await picture(p, "sessions-nodes");
    await p.evaluate(() => [...document.querySelectorAll("#groups a")].find((e) => e.textContent === "lab 12").click());
    await p.seeText("#count", "12 of 120 sessions");
    await p.see(() => document.querySelector("#groups a[aria-current=true]")?.textContent === "lab 12");
    await p.click("#columns summary");
    await p.click('#columns-list input[value="dir"]');
    await p.see(() => location.hash.includes("hide=dir") && document.querySelector('th[data-by="dir"]').offsetWidth === 0 && document.querySelector('th[data-by="node"]').offsetWidth > 0);
    await p.accessible("columns");
    await picture(p, "sessions-columns");
    await p.reload({ waitUntil: "load" });
    await p.see(() => document.querySelectorAll("#rows tr").length === 12 && document.querySelector('th[data-by="dir"]').offsetWidth === 0);
    await p.phone();
    await p.accessible("groups, phone");
    await picture(p, "sessions-nodes-phone");
    await p.close();
    await other.close();
  });
  await t.check("several are stopped with the keyboard alone, after a question that says what is lost", async () => {
    await page.keyboard.press("Escape");
    await page.keyboard.press("/");
    await page.see(() => document.activeElement.id === "find");
    await page.keyboard.type("train state:busy");
    await page.keyboard.press("ArrowDown");
    await page.see(() => document.activeElement.id === "grid");
    await page.keyboard.press("Space");
    await page.keyboard.down("Shift");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.up("Shift");
    await page.seeText("#bulk-count", "3 sessions chosen");
    await page.accessible("three are chosen");
    await page.keyboard.press("x");
    await page.seeText("dialog", "The variables of 3 sessions are lost for good");
    await page.seeText("dialog", "3 calls that run are ended");
    await page.accessible("the question");
    await picture(page, "stop");
    await page.keyboard.press("Escape");
    await page.see(() => !document.querySelector("dialog") && document.activeElement.id === "grid");
    if (s.state.posts.some((p) => p.method === "DELETE")) throw new Error("it was done without a yes");
    await page.keyboard.press("x");
    await page.waitForSelector("dialog .danger");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.seeText("#told", "stopped: 3 sessions");
    if (s.state.posts.filter((p) => p.method === "DELETE").length !== 3) throw new Error(JSON.stringify(s.state.posts));
    await page.keyboard.press("Enter");
    await page.see(() => location.hash.startsWith("#/session/train"));
  });
  await t.check("the tree rolls health up", async () => {
    await page.at("#/tree");
    await page.see(() => document.querySelector("#tree > li > .node .dot")?.className === "dot l-bad" && document.querySelectorAll("#tree [data-session]").length === 50);
    const first = await page.$eval("#tree [data-session]", (e) => e.getAttribute("aria-label"));
    if (!first.includes("down")) throw new Error("the worst is not first: " + first);
    await page.accessible("the tree");
    await picture(page, "tree");
    await page.focus("#tree [tabindex='0']");
    await page.keyboard.press("End");
    await page.keyboard.press("Enter"); // shows more
    await page.see(() => document.querySelectorAll("#tree [data-session]").length === 100);
  });
  await t.check("executions and events have pages", async () => {
    await page.at("#/executions");
    await page.see(() => document.querySelectorAll("#executions tr").length === 5);
    await page.put("#find-executions", "error");
    await page.see(() => document.querySelectorAll("#executions tr").length === 1);
    await page.accessible("executions");
    await page.click("#executions a");
    await page.seeText("#session-title", "analysis-000");
    await page.see(() => location.hash === "#/execution/x-3");
    s.change({ type: "tree", tree: { type: "child_changed", path: "p", key: "analysis-000@/home/ada/project", kind: "kernel", epoch: 1, from: "idle", to: "suspended", exit: { kind: "failed", reason: "it was killed" } } });
    await page.at("#/events");
    await page.seeText("#events", "it was killed");
    await page.accessible("events");
    await page.put("#find-events", "nothing like it");
    await page.see(() => document.querySelectorAll("#events li").length === 0);
  });
  await page.close();
  await s.close();
} catch (e) {
  t.problems.push(`${t.step}: ${e.stack}`);
  if (pictures) await (await t.browser.pages()).at(-1)?.screenshot({ path: join(pictures, "failed.png") }).catch(() => {});
} finally {
  await t.browser.close();
}
process.exit(t.over());
