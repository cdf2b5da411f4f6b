// The files of a workspace: one folder at a time, to read, to take and to bring.
import { $, button, element, hide, link, on, put, set } from "./dom.js";
import { Refused, call, download, send } from "./api.js";
import { sure, tell } from "./dialog.js";
import { to } from "./route.js";
import { bytes, lastOf, many, plain } from "./words.js";

const MOST = 1000;

let name = "", dir = ".", asked = 0;

const pathOf = (/** @type {string} */ rest, /** @type {Record<string, string>} */ query = {}) => `/api/workspaces/${encodeURIComponent(name)}/files${rest}?${new URLSearchParams(query)}`;
const below = (/** @type {string} */ file) => (dir === "." ? file : `${dir}/${file}`);
const size = (/** @type {number} */ n) => (n < 1024 ? many(n, "byte") : n < 1048576 ? (n / 1024).toFixed(1) + " KiB" : bytes(n));

/** showFiles shows a folder of a workspace. @param {string} workspace @param {string} folder */
export function showFiles(workspace, folder) {
  const other = workspace !== name || folder !== dir;
  [name, dir] = [workspace, folder || "."];
  if (other) $("files").replaceChildren();
  crumbs();
  list();
}

/** leaveFiles ends that. */
export function leaveFiles() { name = ""; asked++; $("files").replaceChildren(); }

function crumbs() {
  const parts = dir === "." ? [] : dir.split("/"), all = [link(to("workspace", name), "folder of the workspace")];
  parts.forEach((p, i) => all.push(link(to("workspace", name, { dir: parts.slice(0, i + 1).join("/") }), plain(p))));
  $("files-at").replaceChildren(...all.flatMap((a, i) => (i ? [document.createTextNode(" / "), a] : [a])));
}

async function list() {
  const mine = ++asked;
  try {
    const got = await call("GET", pathOf("/list", { path: dir, most: String(MOST) }));
    if (mine !== asked) return;
    const files = (got.files ?? []).sort((/** @type {any} */ a, /** @type {any} */ b) => Number(b.kind === "directory") - Number(a.kind === "directory") || (a.path < b.path ? -1 : 1));
    set($("files-problem"), got.more ? `Only the first ${MOST} are shown.` : "");
    hide($("no-files"), files.length > 0);
    put($("files"), files.map(row));
  } catch (err) {
    if (mine !== asked) return;
    set($("files-problem"), "The folder cannot be read: " + /** @type {Error} */ (err).message);
    put($("files"), []);
  }
}

/** @param {any} f */
function row(f) {
  const tr = element("tr"), cell = element("td", "file"), what = element("td", "acts"), label = plain(lastOf(f.path)) || "(no name)";
  if (f.kind === "directory") cell.append(link(to("workspace", name, { dir: f.path }), label + "/"));
  else cell.append(element("span", "", f.kind === "symlink" ? `${label} → ${plain(f.target ?? "")}` : label));
  cell.title = f.path;
  if (f.kind === "file") {
    const take = button("Download", "small");
    take.setAttribute("aria-label", "Download " + label);
    take.addEventListener("click", async () => {
      tell(`reading ${label} …`);
      try { await download(pathOf("", { path: f.path }), lastOf(f.path)); tell("saved " + label); } catch (err) { tell("not saved: " + /** @type {Error} */ (err).message, true); }
    });
    what.append(take);
  }
  const remove = button("Remove", "small danger");
  remove.setAttribute("aria-label", "Remove " + label);
  remove.addEventListener("click", async () => {
    if (!await sure({ title: `Remove ${label}?`, lost: [f.kind === "directory" ? "The folder and all that is in it are gone for good." : `${f.kind === "file" ? size(f.size) : "The link"} is gone for good.`], names: [f.path], yes: "Remove" })) return;
    try { await send("DELETE", pathOf("", { path: f.path, ...(f.kind === "directory" ? { all: "true" } : {}) })); tell("removed " + label); } catch (err) { tell("not removed: " + /** @type {Error} */ (err).message, true); }
    list();
  });
  what.append(remove);
  const when = element("td", "when", new Date(f.modified).toLocaleString());
  tr.append(cell, element("td", "num", f.kind === "file" ? size(f.size) : ""), when, what);
  return tr;
}

/** bring sends files into the folder that is shown. @param {File[]} files */
async function bring(files) {
  const [workspace, folder] = [name, dir];
  let done = 0;
  for (const f of files) {
    if (name !== workspace || dir !== folder) return;
    tell(`sending ${plain(f.name)} (${size(f.size)}) …`);
    const to = pathOf("", { path: below(f.name) });
    try {
      try {
        await send("PUT", to, f, "application/octet-stream", undefined, { "If-None-Match": "*" });
      } catch (err) {
        if (!(err instanceof Refused && err.status === 412)) throw err; // something has this name
        if (!await sure({ title: `Write over ${plain(f.name)}?`, lost: ["What it holds now is gone for good."], names: [below(f.name)], yes: "Write over" })) continue;
        await send("PUT", to, f, "application/octet-stream");
      }
      done++;
    } catch (err) {
      tell(`${plain(f.name)} was not sent: ${/** @type {Error} */ (err).message}`, true);
      list();
      return;
    }
  }
  tell(done ? `sent ${many(done, "file")}` : "");
  list();
}

/** startFiles connects them, once. */
export function startFiles() {
  on("upload", "change", () => { bring([...$("upload").files]).then(() => { $("upload").value = ""; }); });
  on("files-again", "click", list);
  const box = $("files-section");
  box.addEventListener("dragover", (/** @type {DragEvent} */ e) => { if (e.dataTransfer?.types.includes("Files")) { e.preventDefault(); box.classList.add("drop"); } });
  box.addEventListener("dragleave", () => box.classList.remove("drop"));
  box.addEventListener("drop", (/** @type {DragEvent} */ e) => { e.preventDefault(); box.classList.remove("drop"); bring([...e.dataTransfer?.files ?? []]); });
}
