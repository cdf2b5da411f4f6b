# Says what functions modules offer, without running them. argv: the files.
import ast
import json
import sys


def public(tree):
    for node in tree.body:
        if isinstance(node, ast.Assign) and [getattr(t, "id", "") for t in node.targets] == ["__all__"]:
            try:
                return [str(n) for n in ast.literal_eval(node.value)]
            except (ValueError, TypeError):
                return None
    return None


def category(tree, stem):
    for node in tree.body:
        if isinstance(node, ast.Assign) and [getattr(t, "id", "") for t in node.targets] == ["__category__"]:
            try:
                return str(ast.literal_eval(node.value))
            except (ValueError, TypeError):
                pass
    return stem


def plain(args):
    for a in args.posonlyargs + args.args + args.kwonlyargs + [args.vararg, args.kwarg]:
        if a is not None:
            a.annotation = None
    return "(" + ast.unparse(args) + ")"


def describe(path):
    with open(path, encoding="utf-8-sig") as f:
        text = f.read()
    compile(text, path, "exec", dont_inherit=True)
    tree = ast.parse(text, path)
    listed, group = public(tree), category(tree, path.replace("\\", "/").rpartition("/")[2][:-3])
    found = {}
    for node in tree.body:
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if node.name in listed if listed is not None else not node.name.startswith("_"):
            said = (ast.get_docstring(node) or "").strip().partition("\n\n")[0]
            found[node.name] = {"name": node.name, "signature": plain(node.args), "docstring": " ".join(said.split()), "category": group}
    return [found[name] for name in sorted(found)]


for path in sys.argv[1:]:
    one = {"path": path, "problem": "", "functions": []}
    try:
        one["functions"] = describe(path)
    except SyntaxError as e:
        one["problem"] = "%s: %s (line %s)" % (type(e).__name__, e.msg, e.lineno)
    except Exception as e:
        one["problem"] = "%s: %s" % (type(e).__name__, e)
    print("coppice-module " + json.dumps(one))
