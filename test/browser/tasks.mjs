// What somebody comes to the live view for, from a page that was never open, with the mouse and
// no address typed: find the session that eats memory; find who waits for a person, and answer;
// find why a session has lost its state; stop all sessions of an owner; open an execution that
// has failed. Each says how many clicks it takes, how many keys, and how long.
//
//	node tasks.mjs COPPICE PYTHON PICTURES LIVEVIEW
//
// A real server keeps what has ended for an hour, so that what failed yesterday is opened on a
// fake one, too. LIVEVIEW is the folder of the package liveview, PICTURES one for pictures.
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { patience, start, until } from "./browser.mjs";
import { fake, fleet } from "./fake.mjs";

const [coppice, python, pictures, liveview] = process.argv.slice(2);
const home = await mkdtemp(join(tmpdir(), "coppice-tasks-")), token = "token-of-the-tasks";
const t = await start();
const server = spawn(coppice, ["serve", "--addr", "127.0.0.1:0", "--backend", "runner", "--python", python, "--cwd", home, "--json"], { env: { ...process.env, COPPICE_HOME: home, COPPICE_TOKEN: token }, stdio: ["ignore", "pipe", "inherit"] });
const ended = new Promise((resolve) => server.on("exit", resolve));
let said = "";
for await (const part of server.stdout) { said += part; if (said.trim().endsWith("}")) break; }
const { url } = JSON.parse(said);
const ask = async (method, path, body) => {
  const res = await fetch(url + path, { method, headers: { Authorization: "Bearer " + token, "Content-Type": "application/json" }, body: body && JSON.stringify(body) });
  if (!res.ok) throw new Error(`${method} ${path}: ${res.status} ${await res.text()}`);
  return res.status === 204 ? null : res.json();
};
const sessions = async () => (await ask("GET", "/api/sessions")).sessions;
const over = (id) => until("the end of " + id, async () => { const x = await ask("GET", "/api/executions/" + id); return x.state === "ended" && x; });
const run = async (session, code, more = {}) => (await ask("POST", "/api/executions", { session, cells: [{ code }], ...more })).id;

/** task times one: f gets a page, and what counts clicks and keys on it. */
async function task(what, at, secret, f) {
  const made = { clicks: 0, keys: 0, seconds: 0 };
  await t.check(what, () => once(what, at, secret, f, made));
  console.log(`    ${made.clicks} clicks, ${made.keys} keys, ${made.seconds.toFixed(1)} s from a cold page`);
}

async function once(what, at, secret, f, made) {
  const page = await t.page(at), began = performance.now();
  const hand = {
    click: async (selector) => { await page.waitForSelector(selector, { visible: true, timeout: patience }); await page.click(selector); made.clicks++; },
    choose: async (selector, value) => { await page.waitForSelector(selector, { visible: true, timeout: patience }); await page.select(selector, value); made.clicks += 2; }, // it opens, and one is taken
    type: async (text) => { await page.keyboard.type(text); made.keys += text.length; },
  };
  await page.goto(at + "/#token=" + secret, { waitUntil: "load" });
  await page.seeText("#connection", "live");
  await f(page, hand);
  made.seconds = (performance.now() - began) / 1000;
  if (pictures) await page.screenshot({ path: join(pictures, `task-${what.split(" ").slice(0, 4).join("-").replace(/[^\w-]/g, "")}.png`) });
  await page.close();
}

/** failed opens the execution that ended with an error, and sees which and why. */
const failed = (which, why) => async (page, hand) => {
  await hand.click('#nav a[href="#/executions"]');
  await hand.choose("#outcome", "error");
  await page.seeText("#executions-count", "1 execution found");
  await hand.click("#executions .code a");
  await page.seeText("#session-title", which);
  await page.seeText("#transcript .output", why);
};

try {
  const owners = ["ada", "grace", "linus"], quiet = Array.from({ length: 21 }, (_, i) => ({ session: `work-${String(i).padStart(2, "0")}`, owner: owners[i % 3] }));
  for (const one of [...quiet, ...["greedy", "asker", "forgetful", "clumsy"].map((session) => ({ session, owner: "ada" }))]) await ask("POST", "/api/sessions", one);
  await over(await run("greedy", "rows = b'x' * (120 << 20)"));
  await over(await run("forgetful", "kept = 1"));
  await over(await run("clumsy", "figures = {}\nfigures['last quarter']"));
  const question = await run("asker", "quarter = input('Which quarter shall I load? ')\nprint('loaded', quarter)", { allow_stdin: true });
  const { pid } = (await sessions()).find((s) => s.session === "forgetful");
  process.kill(pid, "SIGKILL");
  await until("another kernel", async () => { const s = (await sessions()).find((one) => one.session === "forgetful"); return s?.pid && s.pid !== pid && s.state === "idle"; });

  await task("find the session that eats memory", url, token, async (page, hand) => {
    await hand.click('#nav a[href="#/sessions"]');
    await page.seeText("#count", "25 sessions");
    await hand.click("#head [data-by=rss] button");
    await page.seeText("#rows tr:first-child .c-name", "greedy");
    await hand.click("#rows tr:first-child .c-name a");
    await page.seeText("#session-title", "greedy");
    await page.see(() => Number.parseFloat([...document.querySelectorAll("#facts dt")].find((d) => d.textContent === "memory")?.nextElementSibling.textContent ?? "") > 120);
  });
  await task("find who waits for an answer, and answer", url, token, async (page, hand) => {
    await hand.click("#problems .l-asks a.whose");
    await page.seeText("#answer-label", "Which quarter shall I load?");
    await hand.click("#answer-text");
    await hand.type("Q3");
    await hand.click("#answer button");
    await page.seeText("#transcript .cell:last-child .output", "loaded Q3");
    if ((await over(question)).outcome !== "ok") throw new Error("the execution that asked did not end well");
  });
  await task("find why a session has lost its state", url, token, async (page, hand) => {
    await page.seeText("#problems", "forgetful"); // what needs a person is there before a click
    await hand.click("#problems .l-shaky a.whose");
    await page.seeText("#session-title", "forgetful");
    await page.seeText("#session-why", "its variables are lost");
    await page.seeText("#session-why", "signal 9");
    await page.seeText("#story", "died");
  });
  await task("stop all sessions of an owner", url, token, async (page, hand) => {
    await hand.click('#nav a[href="#/sessions"]');
    await hand.click("#find");
    await hand.type("owner:grace");
    await page.seeText("#count", "7 of 25 sessions");
    await hand.click("#choose-all");
    await page.seeText("#bulk-count", "7 sessions chosen");
    await hand.click("#bulk [data-act=stop]");
    await page.seeText("dialog", "The variables of 7 sessions are lost for good");
    await hand.click("dialog .danger");
    await page.seeText("#count", "0 of 18 sessions");
    const left = await sessions();
    if (left.length !== 18 || left.some((s) => s.owner === "grace")) throw new Error("left are " + left.map((s) => `${s.session} of ${s.owner}`).join(", "));
  });
  await task("open the execution that has failed", url, token, failed("clumsy", "KeyError: 'last quarter'"));

  const yesterday = (hours) => new Date(Date.now() - hours * 3600_000).toISOString(), many = fleet(400);
  const past = (i, more) => ({ id: "x-" + i, kind: "call", session: many.sessions[i].session, cwd: many.sessions[i].cwd, title: "load(" + i + ")", cells: 1, state: "ended", outcome: "ok", started: yesterday(20 + i / 60), ended: yesterday(20 + i / 60), events: [], ...more });
  const one = past(250, { outcome: "error", title: "report(figures)", events: [
    { type: "error", name: "KeyError", message: "'last quarter'", summary: "KeyError: 'last quarter'\n  <cell 1>, line 1", user_traceback: "", traceback: ["KeyError: 'last quarter'"] }, { type: "final", outcome: "error", state: "kept" }] });
  const site = await fake(liveview, { ...many, executions: [...Array.from({ length: 250 }, (_, i) => past(i)), one] });
  try {
    await task("open yesterday's failed execution, of 251", site.url, "fake", failed(one.session, "KeyError"));
  } finally {
    await site.close();
  }
} catch (e) {
  t.problems.push(`${t.step}: ${e.stack}`);
  if (pictures) await (await t.browser.pages()).at(-1)?.screenshot({ path: join(pictures, "failed.png") }).catch(() => {});
} finally {
  await t.browser.close();
  server.kill("SIGINT");
  const code = await ended;
  if (code !== 0 && code !== 130) t.problems.push(`the server ended with ${code}`);
  await rm(home, { recursive: true, force: true });
}
process.exit(t.over());
