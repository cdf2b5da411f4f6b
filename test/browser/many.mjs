// The page with five thousand sessions under two hundred events a second. What a machine
// decides (frames, milliseconds) is measured and told; what the page decides is judged: how
// many elements it has, how many of them it changes, how often it lays out for a frame, what
// it keeps in memory.
//
//	node many.mjs LIVEVIEW PICTURES [REPORT]
//
// LIVEVIEW is the folder of the package liveview. MANY_SECONDS is for how long frames are
// measured in each view, 2 unless it says otherwise, and MANY_EVENTS how many events the page
// takes while its memory is looked at, 3,000. REPORT is a file for the figures.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fake, fleet } from "./fake.mjs";
import { signIn, start, until } from "./browser.mjs";

const [dir, pictures, report] = process.argv.slice(2);
const t = await start(), seconds = Number(process.env.MANY_SECONDS ?? 2), figures = {};
const COUNT = 5000, RATE = 200, EVENTS = Number(process.env.MANY_EVENTS ?? 3000);

/** frames counts for how long the page does not draw, while it lives. */
const frames = (page, ms) => page.evaluate((time) => new Promise((resolve) => {
  const list = [], began = performance.now();
  let last = began;
  const next = (now) => { list.push(now - last); last = now; if (now - began < time || list.length < 5) requestAnimationFrame(next); else resolve(list.slice(1).sort((a, b) => a - b)); };
  requestAnimationFrame(next);
}), ms);

try {
  const b = await fake(dir, { ...fleet(COUNT), executions: [], rate: RATE }), p = await t.page(b.url), cdp = await p.createCDPSession();
  await p.setBypassCSP(true);
  const bound = (what, have, most) => { if (have > most) t.problems.push(`${t.step}: ${have} ${what}, ${most} at most`); };
  /** heap is what the page keeps, in bytes, after what it does not need has gone. */
  const heap = async () => { for (let i = 0; i < 2; i++) await cdp.send("HeapProfiler.collectGarbage"); return (await p.metrics()).JSHeapUsedSize; };
  /** events waits until the server has sent so many more, some at a time. */
  const events = async (n) => {
    for (let left = n; left > 0; left -= 1000) {
      const want = b.state.seq + Math.min(left, 1000);
      await until(`${n} events`, () => b.state.seq >= want);
    }
  };

  /** view measures one while events come in. during is what a person does meanwhile. */
  const view = async (name, most, during) => {
    await p.evaluate(() => {
      window.touched = { records: 0, draws: 0 };
      window.watching?.disconnect();
      window.watching = new MutationObserver((list) => { window.touched.records += list.length; window.touched.draws++; });
      window.watching.observe(document.querySelector("#live"), { subtree: true, childList: true, characterData: true, attributes: true });
    });
    const before = await p.metrics(), doing = during?.(), list = await frames(p, seconds * 1000), after = await p.metrics();
    await doing;
    const { records, draws } = await p.evaluate(() => window.touched);
    const at = (q) => Number(list[Math.min(list.length - 1, Math.floor(q * list.length))].toFixed(1)), of = (k) => after[k] - before[k];
    const own = Number((1000 * ["ScriptDuration", "LayoutDuration", "RecalcStyleDuration"].reduce((sum, k) => sum + of(k), 0) / list.length).toFixed(2));
    figures[name] = { frames: list.length, p50_ms: at(.5), p95_ms: at(.95), p99_ms: at(.99), longest_ms: at(1), own_ms: own, layouts: of("LayoutCount"), styles: of("RecalcStyleCount"), nodes: after.Nodes, changes: records, draws };
    console.log(`    ${name}: ${list.length} frames, half within ${at(.5)} ms, 99 of 100 within ${at(.99)}; the page's own work is ${own} ms for each; ${records} changes in ${draws} draws, ${of("LayoutCount")} layouts, ${after.Nodes} nodes`);
    bound("elements in the view of " + name, await p.$$eval("#live *", (l) => l.length), most.elements);
    bound("changes for a draw of " + name, Math.ceil(records / Math.max(1, draws)), most.changes);
    bound("layouts for a frame of " + name, Math.ceil(of("LayoutCount") / list.length), 2); // more: it asks for sizes while it changes them
  };

  await t.check("five thousand sessions are in the table as a screenful", async () => {
    await signIn(p, b.url, "#/sessions");
    await p.seeText("#count", "5,000 sessions");
    bound("rows", await p.$$eval("#rows tr", (l) => l.length), 80);
    if (pictures) await p.screenshot({ path: join(pictures, "sessions-5000.png") });
    await p.accessible("five thousand sessions");
  });
  await t.check("the table changes what is in sight", async () => {
    await view("the table", { elements: 1600, changes: 900 });
    await view("the table, scrolled", { elements: 1600, changes: 2500 }, () => p.evaluate((time) => new Promise((resolve) => {
      const box = document.querySelector("#rows-box"), began = performance.now();
      const f = () => { box.scrollTop += 90; if (performance.now() - began < time) requestAnimationFrame(f); else resolve(); };
      f();
    }), seconds * 1000));
  });
  await t.check("a search draws a screenful", async () => {
    const draws = await p.evaluate(() => ["a", "an", "ana", "state:busy", "rss:>100M -pinned:yes", "", "nothing", ""].map((text) => {
      const find = document.querySelector("#find"), began = performance.now();
      find.value = text;
      find.dispatchEvent(new Event("input"));
      document.body.offsetHeight;
      return performance.now() - began;
    }).sort((x, y) => x - y));
    figures.search = { p50_ms: draws[draws.length >> 1], longest_ms: draws.at(-1) };
    console.log(`    a search draws in ${draws[draws.length >> 1].toFixed(1)} ms, ${draws.at(-1).toFixed(1)} at most`);
    bound("rows", await p.$$eval("#rows tr", (l) => l.length), 80);
  });
  await t.check("the last of them is reached with a key", async () => {
    await p.focus("#grid");
    await p.keyboard.press("End");
    await p.see(() => document.querySelector("#rows tr.active")?.getAttribute("aria-rowindex") === "5001");
  });
  await t.check("the overview, the tree and the events stay small", async () => {
    await p.at("#/overview");
    await p.see(() => document.querySelector("#totals")?.textContent.includes("5,000"));
    await view("the overview", { elements: 1600, changes: 400 });
    await p.at("#/tree");
    await p.see(() => document.querySelectorAll("#tree [data-session]").length === 50);
    await view("the tree", { elements: 1600, changes: 900 });
    await p.at("#/events");
    await p.see(() => document.querySelectorAll("#events li").length > 50);
    await view("the events", { elements: 4000, changes: 2000 });
  });
  await t.check("memory does not grow with what happened", async () => {
    await p.at("#/sessions");
    await p.seeText("#count", "5,000 sessions");
    await events(2500); // the events that the page keeps are full
    const before = await heap(), nodes = (await p.metrics()).Nodes, listeners = (await p.metrics()).JSEventListeners;
    await events(EVENTS);
    const grown = await heap() - before, after = await p.metrics();
    figures.memory = { heap_bytes: before + grown, grown_bytes: grown, nodes: after.Nodes, listeners: after.JSEventListeners };
    console.log(`    ${((before + grown) / 2 ** 20).toFixed(1)} MiB, ${(grown / 2 ** 20).toFixed(1)} more after ${EVENTS} events; ${after.Nodes} nodes, ${after.JSEventListeners} listeners`);
    bound("MiB of objects", Math.ceil((before + grown) / 2 ** 20), 120);
    bound(`MiB more after ${EVENTS} events`, Math.ceil(grown / 2 ** 20), 8);
    bound(`nodes more after ${EVENTS} events`, after.Nodes - nodes, 3000);
    bound(`listeners more after ${EVENTS} events`, after.JSEventListeners - listeners, 50);
  });
  await p.close();
  await b.close();
} catch (e) {
  t.problems.push(`${t.step}: ${e.stack}`);
  if (pictures) await (await t.browser.pages()).at(-1)?.screenshot({ path: join(pictures, "failed.png") }).catch(() => {});
} finally {
  await t.browser.close();
}
if (report) await writeFile(report, JSON.stringify({ sessions: COUNT, events_per_second: RATE, seconds, ...figures }, null, 2) + "\n");
process.exit(t.over());
