"""What the site needs of the repository around the pages.

A link that leaves docs leads to the file in the repository on GitHub; a picture from
outside comes along. A page that the navigation does not name is an error, so that a new
one is put somewhere.
"""

import os
import re

from mkdocs.structure.files import File

LINK = re.compile(r"(\]\()(\.\.?/[^)\s]+)(\))")
PICTURE = re.compile(r"""((?:src|srcset)=")([^":]+)(")""")


def outside(page, link, config):
    """The path within the repository of a link that leaves docs, else None."""
    docs = config["docs_dir"]
    path = os.path.normpath(os.path.join(docs, os.path.dirname(page), link))
    if os.path.commonpath([path, docs]) == docs:
        return None
    return os.path.relpath(path, os.path.dirname(docs))


def on_files(files, config):
    top = os.path.dirname(config["docs_dir"])
    pictures = {}
    for file in files.documentation_pages():
        for match in PICTURE.finditer(file.content_string):
            name = outside(file.src_uri, match[2], config)
            if name:
                pictures[name] = "pictures/" + os.path.basename(name)
    for name, at in sorted(pictures.items()):
        files.append(File.generated(config, at, abs_src_path=os.path.join(top, name)))
    return files


def on_page_markdown(markdown, page, config, files):
    top = os.path.dirname(config["docs_dir"])
    here = page.file.src_uri

    def link(match):
        target, _, anchor = match[2].partition("#")
        name = outside(here, target, config)
        if name is None:
            return match[0]
        if not os.path.exists(os.path.join(top, name)):
            raise SystemExit(f"{here} leads to {name}, which is not there")
        kind = "tree" if os.path.isdir(os.path.join(top, name)) else "blob"
        address = f"{config['repo_url']}/{kind}/main/{name}" + ("#" + anchor if anchor else "")
        return match[1] + address + match[3]

    def picture(match):
        name = outside(here, match[2], config)
        if name is None:
            return match[0]
        return match[1] + "../" * here.count("/") + "pictures/" + os.path.basename(name) + match[3]

    return PICTURE.sub(picture, LINK.sub(link, markdown))
