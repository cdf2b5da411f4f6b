"""Follow every link of a site that was built, with its anchor: links.py SITE REPOSITORY.

Links to this repository on GitHub are looked up in the tree; other addresses are counted,
and nothing is asked over the network. The exit code is 1 when a link leads nowhere.
"""

import html.parser
import pathlib
import sys
import urllib.parse

OURS = "https://github.com/coppice-run/coppice/"
# Of a release, and of files that are there once it is published.
ELSEWHERE = ("releases", "issues", "security")


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.ids, self.links = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id" or name == "name" and tag == "a":
                self.ids.add(value)
            elif name in ("href", "src") and value is not None:
                self.links.append(value)
            elif name == "srcset":
                self.links += [part.split()[0] for part in value.split(",")]


def main():
    site, repository = (pathlib.Path(p).resolve() for p in sys.argv[1:])
    pages = {p: Page(p.read_text("utf-8")) for p in site.rglob("*.html")}
    followed = elsewhere = 0
    wrong = []
    for path, page in sorted(pages.items()):
        if path.name == "404.html":  # it is served at any address
            continue
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme in ("mailto", "data", "javascript"):
                continue
            if link.startswith(OURS):
                kind, _, rest = link[len(OURS):].partition("/main/")
                target = repository / urllib.parse.unquote(rest.partition("#")[0])
                followed += 1
                if kind in ("blob", "tree") and not target.exists():
                    wrong.append(f"{path.relative_to(site)}: {link}")
                elif kind not in ("blob", "tree") and not kind.startswith(ELSEWHERE):
                    wrong.append(f"{path.relative_to(site)}: {link}")
                continue
            if parts.scheme or parts.netloc:
                elsewhere += 1
                continue
            followed += 1
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            anchor = urllib.parse.unquote(parts.fragment)
            if not target.is_file():
                wrong.append(f"{path.relative_to(site)}: {link} is not there")
            elif anchor and target in pages and anchor not in pages[target].ids:
                wrong.append(f"{path.relative_to(site)}: {link} has no such anchor")
    for line in wrong:
        print(line, file=sys.stderr)
    print(f"{len(pages)} pages, {followed} links followed, {elsewhere} lead elsewhere, {len(wrong)} lead nowhere")
    return 1 if wrong or not followed else 0


sys.exit(main())
