// Drives JupyterLab in a headless Chromium, with its kernels in a coppice serve --jupyter: opens
// a notebook, runs all of it, moves a plot with a slider, interrupts, restarts, answers input(), completes and explains,
// kills the kernel while it runs, and looks at what the page tells of that. On the runner, another
// server takes the place of the first one meanwhile.
//
//	node lab.mjs URL FOLDER PICTURES BACKEND
//
// URL is that of JupyterLab, with its token, FOLDER the one with its files, PICTURES one for
// screenshots, "" for none. CHROMIUM names the browser.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { chromium } from "playwright-core";

const [url, folder, pictures, backend] = process.argv.slice(2);
const patience = 300_000;

const code = (source) => ({ cell_type: "code", id: "c" + Math.random().toString(36).slice(2, 10), metadata: {}, execution_count: null, outputs: [], source });
const sources = [
  "import os, time\nx = 40\nprint('pid', os.getpid())",
  "x + 2",
  "from IPython.display import HTML\nHTML('<b id=\"bold\">rich</b>')",
];
const book = (...cells) => JSON.stringify({
  cells: cells.map(code), nbformat: 4, nbformat_minor: 5,
  metadata: { kernelspec: { name: "python3", display_name: "Python 3 (Coppice)", language: "python" }, language_info: { name: "python" } },
});
await writeFile(join(folder, "book.ipynb"), book(...sources, ""));

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
const page = await browser.newPage({ viewport: { width: 1200, height: 900 } });
page.setDefaultTimeout(patience);
const errors = [];
page.on("pageerror", (err) => errors.push(String(err)));
let works = 0;

async function step(what, run) {
  try {
    await run();
    if (pictures) await page.screenshot({ path: join(pictures, `lab-${backend}-${what.replaceAll(/\W+/g, "-")}.png`) });
    works++;
  } catch (err) {
    if (pictures) await page.screenshot({ path: join(pictures, `lab-${backend}-FAILS.png`) });
    console.error(`FAILS ${what}:`, err);
    console.error(await page.locator("body").innerText().catch(() => ""));
    await browser.close();
    process.exit(1);
  }
}

const cells = page.locator(".jp-Notebook .jp-CodeCell");
const output = (n) => cells.nth(n).locator(".jp-OutputArea-output");
const dialog = page.locator(".jp-Dialog");
const state = (s) => page.locator(`.jp-Notebook-ExecutionIndicator[data-status="${s}"]`).waitFor({ state: "attached" });
const shows = (n, text) => output(n).filter({ hasText: text }).first().waitFor();
const menu = async (name, item) => {
  await page.locator(".lm-MenuBar-itemLabel", { hasText: new RegExp(`^${name}$`) }).click();
  await page.locator(".lm-Menu-itemLabel", { hasText: item }).first().click();
};
// run puts code in the last cell and runs it.
async function run(source) {
  const last = cells.last();
  await last.locator(".cm-content").click();
  await page.keyboard.press("Control+a");
  await page.keyboard.insertText(source);
  await page.keyboard.press("Control+Enter");
}
const last = sources.length;

await step("a notebook is opened", async () => {
  await page.goto(url.replace("/lab?", "/lab/tree/book.ipynb?"));
  await cells.nth(last).waitFor();
  await state("idle");
});
await step("all of it runs", async () => {
  await menu("Run", /^Run All Cells$/);
  await shows(0, /pid \d+/);
  await shows(1, "42");
  await cells.nth(2).locator("#bold").waitFor();
});
await step("input is asked for", async () => {
  await run("'hello ' + input('who? ')");
  const field = page.locator("input.jp-Stdin-input");
  await field.fill("Ada");
  await field.press("Enter");
  await shows(last, "'hello Ada'");
});
await step("it completes", async () => {
  const editor = cells.nth(last).locator(".cm-content");
  await editor.click();
  await page.keyboard.press("Control+a");
  await page.keyboard.insertText("os.getpi");
  const offered = page.locator(".jp-Completer-item", { hasText: "getpid" }).first();
  await eventually(async () => { // JupyterLab gives a kernel a second to answer, and then asks no more
    if (/os\.getpid/.test(await editor.innerText())) return true;
    if (await offered.isVisible()) await page.keyboard.press("Enter");
    else await page.keyboard.press("Tab");
    await page.waitForTimeout(2000);
    return false;
  });
});
await step("it explains", async () => {
  await cells.nth(last).locator(".cm-content").click();
  await page.keyboard.press("Control+a");
  await page.keyboard.insertText("len");
  await page.keyboard.press("Shift+Tab");
  await page.locator(".jp-Tooltip", { hasText: "Return the number of items" }).waitFor();
  await page.keyboard.press("Escape");
});
await step("a slider moves a plot", async () => {
  await run("import matplotlib.pyplot as plt\nfrom ipywidgets import interact, IntSlider\n" +
    "def draw(n=3):\n    plt.figure(figsize=(3, 2)); plt.plot(range(n)); plt.title(f'n is {n}'); plt.show()\n    print('drawn', n)\ninteract(draw, n=IntSlider(value=3, min=1, max=9));");
  await shows(last, "drawn 3");
  const plot = cells.nth(last).locator(".jp-OutputArea img").first();
  const before = await plot.getAttribute("src");
  const handle = cells.nth(last).locator(".widget-slider .noUi-handle, .jupyter-widgets .noUi-handle").first();
  await handle.focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  await shows(last, "drawn 5");
  await eventually(async () => (await plot.getAttribute("src").catch(() => before)) !== before || void await page.waitForTimeout(50));
  assert.equal(await cells.nth(last).locator(".jp-OutputArea img").count(), 1, "the plot takes the place of the one before");
});
await step("it is interrupted", async () => {
  await run("print('goes on', flush=True)\nwhile True: time.sleep(.01)");
  await shows(last, "goes on");
  await menu("Kernel", /^Interrupt Kernel$/);
  await shows(last, "KeyboardInterrupt");
  await state("idle");
  await run("x");
  await shows(last, "40");
});
// Sessions of the runner outlive their server.
if (backend === "runner") {
  await step("its server is another one", async () => {
    await run("x = 43");
    await state("idle");
    await writeFile(join(folder, "restart"), "");
    await eventually(async () => !existsSync(join(folder, "restart")) || void await page.waitForTimeout(50));
    await eventually(async () => { // what is asked while nothing is connected is lost
      await run("('still', x)");
      return output(last).filter({ hasText: "('still', 43)" }).first().waitFor({ timeout: 5000 }).then(() => true, () => false);
    });
    assert.equal(await dialog.count(), 0, "no kernel has died");
  });
}
await step("it is restarted", async () => {
  await menu("Kernel", /^Restart Kernel…$/);
  await dialog.locator(".jp-mod-accept").click();
  await dialog.waitFor({ state: "detached" });
  await state("idle");
  await run("x");
  await shows(last, "NameError");
  assert.equal(await dialog.count(), 0, "a restart that was asked for is no death");
});
await step("its death is told", async () => {
  await run("import os, time\nprint('pid', os.getpid(), flush=True)\nwhile True: time.sleep(.01)");
  await shows(last, /pid \d+/);
  const pid = Number((await output(last).first().innerText()).match(/pid (\d+)/)[1]);
  process.kill(pid, "SIGKILL");
  await shows(last, /KernelDied/);
  await dialog.filter({ hasText: "appears to have died" }).waitFor();
});
await step("it goes on after that", async () => {
  await dialog.locator(".jp-mod-accept").click();
  await dialog.waitFor({ state: "detached" });
  await state("idle");
  await run("6 * 7");
  await shows(last, "42");
});
await step("it is saved", async () => {
  await page.keyboard.press("Escape");
  await menu("File", /^Save Notebook$/);
  await page.waitForFunction(() => !document.title.startsWith("*"));
});

async function eventually(holds) {
  for (const over = Date.now() + patience; !(await holds());) assert.ok(Date.now() < over, `waited for ${holds}`);
}

await browser.close();
assert.deepEqual(errors, []);
console.log(`works ${works} of ${works}`);
