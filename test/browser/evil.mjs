// Every text that a cell, an agent or a program can set, on the page: none runs, none becomes
// an element of its own, and each is seen as the text that it is, so that no row of the table
// passes because the page never showed it.
//
//	node evil.mjs LIVEVIEW
//
// LIVEVIEW is the folder of the package liveview.
import { fake } from "./fake.mjs";
import { signIn, start } from "./browser.mjs";

const [dir] = process.argv.slice(2);
const t = await start();
const ago = (s) => new Date(Date.now() - s * 1000).toISOString();

/** rows is the table: what can be set, and the view that shows it, "" where none does. */
const rows = [];
let number = 0;

/** mark begins a row and is the end of its text, by which it is found. */
const mark = (what, view) => { const id = `z${String(++number).padStart(3, "0")}q`; rows.push({ what, view, id }); return id; };
const attack = (id) => `"'><img src=x onerror="window.ran='${id}'"><script>window.ran='${id}'</script><svg onload="window.ran='${id}'"><b id="out-${id}" class="out">javascript:window.ran='${id}'</b>`;
/** put is a text for one row: it tries what it can, and ends with its mark. */
const put = (what, view) => { const id = mark(what, view); return attack(id) + id; };

// What a display has, by its MIME kind: attack(id) in the syntax of each.
const kinds = {
  "text/plain": (id) => attack(id) + id,
  "text/html": (id) => `<table onclick="window.ran='${id}'" id="out-${id}" class="out" style="position:fixed;inset:0;background:url(//e.test/x)"><tr><td>a<img src=x onerror="window.ran='${id}'"><script>window.ran='${id}'</script><iframe srcdoc="<script>parent.ran='${id}'</script>"></iframe><a href="javascript:window.ran='${id}'">l</a><form action=//e.test><button>go</button><input autofocus onfocus="window.ran='${id}'"></form><svg><script>window.ran='${id}'</script><animate onbegin="window.ran='${id}'" attributeName=x dur=1s></svg><math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=window.ran='${id}'&gt;"></table></mtext></math><details open ontoggle="window.ran='${id}'"></details><video><source onerror="window.ran='${id}'"></video><object data="javascript:window.ran='${id}'"></object><embed src="javascript:window.ran='${id}'"><meta http-equiv=refresh content="0;url=javascript:window.ran='${id}'"><base href="//e.test/"><link rel=stylesheet href="//e.test/x"></td></tr></table><template><img src=x onerror="window.ran='${id}'"></template>${id}`,
  "text/markdown": (id) => `# ${attack(id)}\n\n[click](javascript:window.ran='${id}') ![x](x" onerror="window.ran='${id}') [y](https://e.test/"onmouseover="window.ran='${id}')\n\n| ${attack(id)} | b |\n|---|---|\n| <script>window.ran='${id}'</script> | [x](data:text/html,<script>window.ran='${id}'</script>) |\n\n\`\`\`${attack(id)}\n${attack(id)}\n\`\`\`\n- ${attack(id)}\n> ${attack(id)} ${id}`,
  "text/latex": (id) => `$\\href{javascript:window.ran='${id}'}{x}$ ${attack(id)}${id}`,
  "application/json": (id) => ({ [attack(id)]: attack(id) + id }),
  "application/javascript": (id) => `window.ran='${id}'`,
  "application/vnd.jupyter.widget-view+json": (id) => ({ model_id: attack(id) }),
  "application/pdf": (id) => attack(id),
};
const held = new Set(["application/javascript", "application/vnd.jupyter.widget-view+json", "application/pdf"]); // their kind is shown, not what they are
const displays = Object.entries(kinds).map(([mime, make]) => ({ type: "display", data: { [mime]: make(mark(`output of ${mime}`, held.has(mime) ? "" : "execution")) } }));
displays.push({ type: "display", data: { [put("the name of a MIME kind", "execution")]: "x" } });
for (const [mime, data] of [["image/png", (id) => `x" onerror="window.ran='${id}'`], ["image/jpeg", (id) => `AAAA"><script>window.ran='${id}'</script>`], ["image/svg+xml", (id) => `<svg xmlns="http://www.w3.org/2000/svg" onload="window.ran='${id}'"><script>parent.ran='${id}'</script><image href="http://e.test/x"/><foreignObject><iframe xmlns="http://www.w3.org/1999/xhtml" src="javascript:parent.ran='${id}'"/></foreignObject></svg>`]]) {
  const id = mark(`the words for a picture of ${mime}`, "execution");
  displays.push({ type: "display", data: { [mime]: data(id), "text/plain": attack(id) + id } });
}
displays.push({ type: "display", display_id: "d", data: { "text/plain": "first" } }, { type: "display", update: true, display_id: "d", data: { "text/html": kinds["text/html"](mark("an update of a display", "execution")) } });

const session = { session: put("the name of a session", "session"), cwd: "/" + put("a directory", "session") };
const question = { execution: "e-1", id: put("the number of a question", ""), prompt: put("the prompt of input()", "session"), asked: ago(3) };
const events = [
  { type: "stdout", text: put("standard output", "execution") + "\n" }, { type: "stderr", text: put("standard error", "execution") + "\n" }, { type: "notice", text: put("a notice", "execution") },
  { type: "stdout", text: `\x1b]8;;javascript:window.ran='link'\x1b\\${put("a link of a terminal", "execution")}\x1b]8;;\x1b\\\x1b[31;"onclick=window.ran='sgr'm\n` },
  ...displays,
  { type: "error", name: put("the name of an error", ""), message: put("the message of an error", ""), summary: put("the summary of an error", "execution"), user_traceback: put("a traceback of own code", "execution"), traceback: [put("a traceback", "execution")], hint: put("the hint of an error", "execution") },
  { type: "error", name: put("the name of an error without more", "execution"), message: put("the message of an error without more", "execution") },
  { type: "input_request", id: "q", prompt: put("a prompt in the output", "execution") },
  { type: "final", outcome: "error", state: put("what became of the state", "execution"), reason: put("the reason of a result", "execution"), artifact: put("the name of an artifact", "execution"), notices: [put("a notice of a result", "execution")] },
];
const workspace = put("the name of a workspace", "workspace"), folder = put("the name of a folder", "workspace");
const label = put("the name of a label", "workspace");
const fixture = {
  health: { backend: put("the backend", "overview"), cwd: put("the directory of the server", "overview"), why: put("why the backend was chosen", "overview") },
  sessions: [
    { ...session, state: "busy", queue: 0, done: 1, pinned: false, restarts: 1, last_exit: { kind: put("the kind of an end", "session"), reason: put("the reason of an end", "session") }, owner: put("an owner", "sessions"), pid: 7, rss: 1e8, cpu_seconds: 1, since: ago(9), detail: put("the detail of a session", "session") },
    { session: "plain", cwd: "/w", workspace, state: "idle", queue: 0, done: 0, pinned: false, restarts: 0, since: ago(9), pid: 8, rss: 1e7 },
  ],
  marks: [{ key: session, level: "asks", why: put("why a session is looked at", "sessions"), since: ago(3), question, parent: put("the parent of a copy", "session") }],
  problems: [{ level: "asks", kind: put("the kind of a problem", ""), key: session, since: ago(3), what: put("a problem", "overview"), do: put("what to do about it", "overview") }, { level: put("the level of a problem", "overview"), kind: "limit", key: { session: "", cwd: "" }, what: "x", do: "y" }],
  tree: { name: put("the name of a node", "tree"), kind: "supervisor", state: put("the state of a node", "tree"), detail: put("the detail of a node", "tree"), last_exit: { kind: "failed", reason: put("the end of a node", "tree") }, children: [] },
  stories: { [session.session]: [{ at: ago(3), what: put("a moment of a story", "session"), why: put("the reason of a moment", "session") }] },
  executions: [
    { id: "e-1", kind: "call", ...session, owner: put("the owner of an execution", ""), state: "ended", title: put("the title of an execution", "executions"), code: `x = 1\n# ${put("the code of an execution", "execution")}`, started: ago(5), ended: ago(4), outcome: put("an outcome", "executions"), events },
    { id: "e-2", kind: "notebook", ...session, state: "ended", title: put("the title of a run of a notebook", "executions"), notebook: put("the path of a notebook", ""), started: ago(4), ended: ago(3), outcome: "ok", events: [
      { type: "display", data: { "text/plain": "[1]", "text/html": kinds["text/html"](mark("output of a notebook", "notebook")) }, metadata: { [attack("meta")]: attack("meta"), name: put("metadata of a notebook's cell", "") } }, { type: "final", outcome: "ok", state: "kept" }] },
  ],
  workspaces: [{
    info: { name: workspace, folder: "/" + put("the folder of a workspace", "workspace"), owner: put("the owner of a workspace", "workspace"), labels: { [label]: put("a label", "workspace") }, made: ago(9), used: ago(3), isolation: put("the isolation of a workspace", "workspace") },
    files: [
      { path: folder, kind: "directory", size: 0, modified: ago(9) }, { path: put("the name of a file", "workspace"), kind: "file", size: 7, modified: ago(9) },
      { path: put("the name of a link", "workspace"), kind: "symlink", target: put("the target of a link", "workspace"), size: 0, modified: ago(9) }, { path: "a\u202etxt.exe" + put("a name that turns around", "workspace"), kind: "file", size: 7, modified: ago(9) },
    ],
    processes: [
      { id: "p-1", pid: 11, args: ["sh", put("an argument of a program", "workspace")], terminal: true, input: true, started: ago(5), state: "running", prints: put("what a program prints", "terminal") },
      { id: "p-2", pid: 12, args: [put("the name of a program", "workspace")], started: ago(5), state: "ended", exit: { signal: put("the signal of an end", "workspace"), reason: put("why a program ended", "workspace") }, prints: "x" },
    ],
  }],
  look: { matches: ["math." + put("a completion", "completion")], start: 0, text: put("what a kernel says of a name", "inspection") },
  refuse: { code: "conflict", message: put("why a server refuses", "refusal"), hint: put("the hint of a refusal", "refusal") },
};
const changed = { path: put("the path of a node that decides", "events"), key: put("the key of what changed", "events"), from: put("the state before", "events"), to: put("the state after", "events"), reason: put("the reason of a change", "events"), title: put("the title of an execution that changed", "events"), outcome: put("the outcome of an execution that changed", "events") };

/** views say how each is come to. */
const at = (hash) => (p) => p.at(hash);
const toSession = `#/session/${encodeURIComponent(session.session)}?cwd=${encodeURIComponent(session.cwd)}`;
const plain = `#/session/plain?cwd=%2Fw&workspace=${encodeURIComponent(workspace)}`;
const write = async (p, text) => { await p.waitForSelector("#code", { visible: true }); await p.seeText("#session-state", "idle"); await p.click("#code"); await p.keyboard.type(text); };
const views = {
  overview: at("#/overview"), sessions: at("#/sessions"), tree: at("#/tree"), executions: at("#/executions"), session: at(toSession), execution: at("#/execution/e-1"), notebook: at("#/execution/e-2"), workspaces: at("#/workspaces"), workspace: at(`#/workspace/${encodeURIComponent(workspace)}`),
  events: async (p, s) => {
    await p.at("#/events");
    s.change({ type: "tree", tree: { type: "child_changed", path: changed.path, key: changed.key, kind: "kernel", from: changed.from, to: changed.to, exit: { kind: "failed", reason: changed.reason } } });
    s.change({ type: "tree", tree: { type: "decided", path: changed.path, directive: "x" } });
    s.change({ type: "execution", execution: { id: "e-9", ...session, state: "ended", title: changed.title, outcome: changed.outcome, started: ago(1) } });
  },
  terminal: at(`#/workspace/${encodeURIComponent(workspace)}?process=p-1`),
  completion: async (p) => { await p.at(plain); await write(p, "math."); },
  inspection: async (p) => { await p.at(plain); await p.keyboard.press("Escape"); await p.click("#inspect"); },
  refusal: async (p) => { await p.at("#/sessions"); await p.put("#new-name", "x"); await p.click("#new-session button"); },
  question: async (p) => { await p.at(`#/workspace/${encodeURIComponent(workspace)}`); await p.waitForSelector("#files .danger"); await p.click("#files .danger"); await p.waitForSelector("dialog"); },
  address: at(`#/sessions?q=${encodeURIComponent(put("a filter in an address", "address"))}&sort=${encodeURIComponent(attack("sort"))}`),
  nowhere: at("#/" + attack("view")),
};

/** shown says whether the marks of a view are seen, as text or in what names an element. */
const shown = (ids) => {
  const all = [document.body.textContent];
  for (const e of document.querySelectorAll("[title], [aria-label], [alt], input")) all.push(e.title, e.getAttribute("aria-label"), e.getAttribute("alt"), e.value);
  const text = all.join("\n").replace(/\u00a0/g, " ");
  for (const s of document.querySelectorAll("details:not([open]) > summary")) s.click();
  window.unseen = ids.filter((id) => !text.includes(id));
  return window.unseen.length === 0;
};

/** broken is what ran, or came out of its element. */
const broken = () => {
  const found = [];
  if (window.ran) found.push("it ran: " + window.ran);
  const own = new Set(["signin", "new-session", "new-workspace", "workspace-session", "new-process", "answer", "run"]);
  for (const e of document.querySelectorAll("*")) {
    const why = [...e.attributes].some((a) => /^on/i.test(a.name)) ? "listens" : [...e.attributes].some((a) => /^(href|src|action|formaction|xlink:href)$/i.test(a.name) && /^\s*(javascript|data:text|vbscript):?/i.test(a.value)) ? "leads to code"
      : /^(IFRAME|OBJECT|EMBED|STYLE|BASE|FRAME|APPLET)$/i.test(e.tagName) ? "is of a kind that the page does not have" : e.tagName === "SCRIPT" && !/\/live\/[\w-]+\.js$/.test(e.src) ? "is a script" : e.tagName === "FORM" && !own.has(e.id) ? "is a form"
        : (e.id || "").startsWith("out-") || e.classList.contains("out") ? "came out of its element" : e.closest(".markup") && e.hasAttribute("style") ? "has a style" : "";
    if (why) found.push(`${why}: ${e.outerHTML.slice(0, 160)}`);
  }
  return found;
};

try {
  for (const policy of [true, false]) { // the policy would stop most of it; so does the page without it
    const s = await fake(dir, fixture), p = await t.page(s.url);
    await p.setBypassCSP(!policy);
    t.refusals = true; // the server that refuses is one of the rows
    await signIn(p, s.url);
    for (const [name, go] of Object.entries(views)) {
      await t.check(`nothing runs or comes out in the view of ${name}, ${policy ? "under" : "without"} the policy`, async () => {
        await go(p, s);
        const mine = rows.filter((r) => r.view === name);
        try { await p.see(shown, mine.map((r) => r.id)); } catch {
          const left = await p.evaluate(() => window.unseen ?? []);
          throw new Error("never shown: " + mine.filter((r) => left.includes(r.id)).map((r) => r.what).join("; "));
        }
        await p.evaluate(() => new Promise((resolve) => { requestAnimationFrame(() => setTimeout(resolve, 0)); })); // what was put in and runs, runs by now
        (await p.evaluate(broken)).forEach((b) => t.problems.push(`${t.step}: ${b}`));
        if (/\u202e/.test(await p.evaluate(() => document.querySelector("#files")?.textContent ?? ""))) t.problems.push(`${t.step}: a name turns the text around`);
        if (name === "question") await p.keyboard.press("Escape");
        if (name === "overview" && await p.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth)) t.problems.push(`${t.step}: a text makes the page wider`);
      });
    }
    await p.close();
    await s.close();
  }
  console.log(`    ${rows.length} fields, ${rows.filter((r) => r.view).length} of them seen, in ${Object.keys(views).length} views`);
} catch (e) {
  t.problems.push(`${t.step}: ${e.stack}`);
} finally {
  await t.browser.close();
}
process.exit(t.over());
