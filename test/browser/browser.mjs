// What both browser tests share: a headless Chromium that talks to this machine alone,
// checks with names, and what must never happen on the page.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import puppeteer from "puppeteer-core";

// What is waited for comes in a moment; on a machine that is busy with other things it may
// take minutes. COPPICE_BROWSER_PATIENCE names other milliseconds, for who writes a test.
export const patience = Number(process.env.COPPICE_BROWSER_PATIENCE ?? 600_000);

/** until waits for what the page cannot see: f answers with something, or with nothing yet. */
export async function until(what, f) {
  for (const began = performance.now(); performance.now() - began < patience;) {
    const got = await f();
    if (got) return got;
    await new Promise((r) => setTimeout(r, 50));
  }
  throw new Error("it never came: " + what);
}

/** signIn opens the page of a fake server. */
export async function signIn(page, url, hash = "") {
  await page.goto(url + "/#token=fake", { waitUntil: "load" });
  await page.seeText("#connection", "live");
  if (hash) await page.at(hash);
}

/** start opens a browser and returns what the checks use. */
export async function start() {
  const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
  const browser = await puppeteer.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", headless: true, timeout: patience, protocolTimeout: 2 * patience,
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"],
  });
  const t = { browser, problems: [], step: "", done: 0, away: false, refusals: false };

  /** check runs one step and counts it. */
  t.check = async (what, f) => {
    t.step = what;
    const began = performance.now();
    await f();
    t.done++;
    console.log(`ok  ${what} (${((performance.now() - began) / 1000).toFixed(1)} s)`);
  };

  /** page opens one; whatever it asks of another server, and every error, is a problem. */
  t.page = async (url) => {
    const page = await browser.newPage();
    page.setDefaultTimeout(patience);
    await page.setViewport({ width: 1440, height: 900 });
    page.on("console", (m) => { if (["error", "warning"].includes(m.type()) && !/401 \(Unauthorized\)/.test(m.text()) && !(t.refusals && /status of 4\d\d/.test(m.text())) && !(t.away && /ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE|ERR_SOCKET_NOT_CONNECTED/.test(m.text()))) t.problems.push(`${t.step}: ${m.text()}`); });
    page.on("dialog", (d) => { t.problems.push(`${t.step}: a dialog of the browser: ${d.message()}`); d.dismiss(); });
    page.on("pageerror", (e) => t.problems.push(`${t.step}: ${e.stack ?? e}`));
    page.on("request", (r) => { if (!r.url().startsWith(url) && !r.url().startsWith("data:")) t.problems.push(`${t.step}: asked ${r.url()}`); });
    // axe is brought in by the browser itself: the page's policy allows no script but its own.
    const see = (f, ...args) => page.waitForFunction(f, { timeout: patience, polling: 50 }, ...args);
    return Object.assign(page, {
      see,
      seeText: (selector, want) => see((s, w) => document.querySelector(s)?.textContent.includes(w), selector, want),
      at: (hash) => page.evaluate((h) => { location.hash = h; }, hash),
      put: async (selector, value) => { await page.$eval(selector, (e, v) => { e.value = v; e.dispatchEvent(new Event("input", { bubbles: true })); }, value); },
      text: (selector) => page.$eval(selector, (e) => e.textContent),
      accessible: async (where) => {
        const found = await page.evaluate(async (source) => {
          // eslint-disable-next-line no-new-func
          if (!window.axe) (0, eval)(source);
          const r = await window.axe.run(document, { resultTypes: ["violations"] });
          return r.violations.map((v) => `${v.id}: ${v.help}: ${v.nodes.slice(0, 4).map((n) => n.target + " " + (n.failureSummary ?? "").replace(/\s+/g, " ").slice(0, 160)).join(" | ")}`);
        }, axe).catch((e) => [String(e)]);
        found.forEach((v) => t.problems.push(`${where}: ${v}`));
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        if (wide > 0) t.problems.push(`${where}: the page is ${wide} pixels too wide`);
      },
      scheme: (value) => page.emulateMediaFeatures([{ name: "prefers-color-scheme", value }, { name: "prefers-reduced-motion", value: "reduce" }]),
      wide: () => page.setViewport({ width: 1440, height: 900 }),
      phone: () => page.setViewport({ width: 390, height: 844, isMobile: false, hasTouch: false }),
    });
  };

  /** over says how it went, and is the exit code. */
  t.over = () => {
    t.problems.forEach((p) => console.error("not ok  " + p));
    console.log(`${t.done} passed, ${t.problems.length} failed`);
    return t.problems.length ? 1 : 0;
  };
  return t;
}
