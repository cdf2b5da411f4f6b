// The code editor of a session's page, made of CodeMirror. What it asks of a kernel, and
// what runs, is the page's to say.
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap, completionStatus } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentLess, indentMore, insertNewlineAndIndent } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { HighlightStyle, bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { EditorState, Prec, StateEffect, StateField } from "@codemirror/state";
import { EditorView, drawSelection, highlightActiveLine, hoverTooltip, keymap, lineNumbers, placeholder, showTooltip } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { StyleModule } from "style-mod";

// The page's policy allows no style element: the rules go into a sheet that is adopted.
const sheet = new CSSStyleSheet();
const mounted = new Set();
StyleModule.mount = (_root, modules) => {
  const size = mounted.size;
  for (const m of Array.isArray(modules) ? modules : [modules]) mounted.add(m);
  if (mounted.size !== size) sheet.replaceSync([...mounted].map((m) => m.getRules()).join("\n"));
  if (!document.adoptedStyleSheets.includes(sheet)) document.adoptedStyleSheets = [sheet, ...document.adoptedStyleSheets];
};

const theme = EditorView.theme({
  "&": { backgroundColor: "var(--panel)", color: "var(--text)", fontSize: "1em", minHeight: "5.6rem" },
  "&.cm-focused": { outline: "none" },
  ".cm-content": { fontFamily: "var(--mono)", caretColor: "var(--text)", padding: ".5rem 0", minHeight: "4.6rem" },
  ".cm-cursor": { borderLeftColor: "var(--text)", borderLeftWidth: "2px" },
  ".cm-gutters": { backgroundColor: "var(--code)", color: "var(--muted)", border: "none", fontFamily: "var(--mono)" },
  ".cm-activeLine": { backgroundColor: "transparent" },
  "&.cm-focused .cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--accent) 7%, transparent)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "color-mix(in srgb, var(--focus) 30%, transparent)" },
  ".cm-placeholder": { color: "var(--muted)" },
  ".cm-matchingBracket": { backgroundColor: "color-mix(in srgb, var(--focus) 25%, transparent) !important" },
  ".cm-tooltip": { backgroundColor: "var(--panel)", color: "var(--text)", border: "1px solid var(--muted)", borderRadius: "6px", boxShadow: "0 2px 10px rgb(0 0 0 / 25%)", maxWidth: "min(40rem, 92vw)" },
  ".cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", maxHeight: "14em" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--accent-text)" },
  ".cm-completionMatchedText": { textDecoration: "none", fontWeight: "700" },
  ".cm-inspected": { margin: 0, padding: ".5rem .7rem", maxHeight: "16rem", overflow: "auto", whiteSpace: "pre-wrap", fontFamily: "var(--mono)", fontSize: ".9em" },
});

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.controlKeyword], color: "var(--syn-key)", fontWeight: "600" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--well)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--asks)" },
  { tag: [tags.comment], color: "var(--muted)", fontStyle: "italic" },
  { tag: [tags.definition(tags.variableName), tags.function(tags.variableName), tags.definition(tags.className)], color: "var(--syn-name)" },
  { tag: [tags.invalid], color: "var(--bad)" },
]);

/** characters counts what is before a place as the kernel does: by code points. */
const characters = (text, at) => [...text.slice(0, at)].length;
/** units is the other way round. */
const units = (text, n) => [...text].slice(0, n).join("").length;

const inspected = StateEffect.define();
const shown = StateField.define({
  create: () => null,
  update(value, tr) {
    for (const e of tr.effects) if (e.is(inspected)) return e.value;
    return tr.docChanged || tr.selection ? null : value;
  },
  provide: (f) => showTooltip.from(f),
});

/** boxOf shows a text as it is: whatever it says is no markup. */
function boxOf(text) {
  const dom = document.createElement("pre");
  dom.className = "cm-inspected";
  dom.tabIndex = 0;
  dom.textContent = text;
  return { dom };
}

/**
 * makeEditor puts an editor into an element. o has label, hint, run(code, clear), recall(by, code)
 * which returns earlier code or null, complete(code, cursor) and inspect(code, cursor) which
 * answer with a promise, null when the kernel has nothing to say.
 */
export function makeEditor(at, o) {
  const run = (clear) => () => { o.run(view.state.doc.toString(), clear); return true; };
  const put = (code) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: code }, selection: { anchor: code.length } });
  const recall = (by) => () => {
    const { doc, selection } = view.state, line = doc.lineAt(selection.main.head).number;
    if (completionStatus(view.state) || !selection.main.empty || line !== (by < 0 ? 1 : doc.lines)) return false;
    const code = o.recall(by, doc.toString());
    if (code === null) return false;
    put(code);
    return true;
  };
  const inspect = () => {
    const { head } = view.state.selection.main, code = view.state.doc.toString();
    o.inspect(code, characters(code, head)).then((text) => {
      if (text && view.state.doc.toString() === code) view.dispatch({ effects: inspected.of({ pos: head, above: true, create: () => boxOf(text) }) });
    });
    return true;
  };
  const unlook = () => { if (!view.state.field(shown)) return false; view.dispatch({ effects: inspected.of(null) }); return true; };
  const tab = () => {
    const { main } = view.state.selection, line = view.state.doc.lineAt(main.head);
    if (!main.empty || !line.text.slice(0, main.head - line.from).trim()) return line.length || view.state.doc.length ? indentMore(view) : false; // an empty editor lets the focus go on
    return false;
  };
  const source = async (context) => {
    const word = context.matchBefore(/[\p{L}\p{N}_.]+/u);
    if (!context.explicit && !word?.text.includes(".") && (word?.text.length ?? 0) < 2) return null;
    const code = context.state.doc.toString();
    const found = await o.complete(code, characters(code, context.pos));
    if (context.aborted || !found?.matches.length) return null;
    return { from: units(code, found.start), options: found.matches.map((label, i) => ({ label, boost: -i / 10 })), validFor: /^[\p{L}\p{N}_.]*$/u };
  };
  const view = new EditorView({
    parent: at,
    state: EditorState.create({
      extensions: [
        Prec.highest(keymap.of([
          { key: "Shift-Enter", run: run(true) }, { key: "Ctrl-Enter", run: run(false) }, { key: "Mod-Enter", run: run(false) },
          { key: "Alt-ArrowUp", run: recall(-1) }, { key: "Alt-ArrowDown", run: recall(1) }, { key: "ArrowUp", run: recall(-1) }, { key: "ArrowDown", run: recall(1) },
          { key: "Shift-Tab", run: (v) => (v.state.doc.lineAt(v.state.selection.main.head).text.startsWith(" ") ? indentLess(v) : false) }, { key: "Ctrl-i", mac: "Cmd-i", run: inspect }, { key: "Escape", run: unlook },
        ])),
        lineNumbers(), history(), drawSelection(), indentOnInput(), bracketMatching(), closeBrackets(), highlightActiveLine(), indentUnit.of("    "), EditorState.tabSize.of(4),
        python(), syntaxHighlighting(colours), theme, EditorView.lineWrapping, shown, placeholder(o.hint),
        autocompletion({ override: [source], icons: false, activateOnTypingDelay: 250 }),
        hoverTooltip(async (v, pos) => {
          const code = v.state.doc.toString(), word = v.state.wordAt(pos);
          const text = word ? await o.inspect(code, characters(code, word.to)) : null;
          return text ? { pos: word.from, end: word.to, above: true, create: () => boxOf(text) } : null;
        }, { hoverTime: 600 }),
        keymap.of([{ key: "Enter", run: insertNewlineAndIndent }, { key: "Tab", run: tab }, ...closeBracketsKeymap, ...completionKeymap, ...historyKeymap, ...defaultKeymap]),
        EditorView.contentAttributes.of({ "aria-label": o.label, "aria-describedby": o.describedBy, id: o.id, autocapitalize: "off", spellcheck: "false" }),
      ],
    }),
  });
  return { put, inspect, focus: () => view.focus(), text: () => view.state.doc.toString(), has: (e) => view.dom.contains(e) };
}
