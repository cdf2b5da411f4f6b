"""Tests of what code imports and this package changes: IPython's display, getpass."""

import os
import tempfile
import textwrap
import unittest

from driver import Driver

# What matters of IPython: display is looked up in its module by update_display
# and by handles, and other modules have it by its name.
FUNCTIONS = '''
def display(*objs, **kwargs): print(*objs)
def clear_output(wait=False): print("no shell")
def publish_display_data(data, metadata=None, **kwargs): raise RuntimeError("no shell")
def update_display(obj, *, display_id, **kwargs):
    kwargs["update"] = True
    display(obj, display_id=display_id, **kwargs)
class DisplayHandle:
    def __init__(self, display_id): self.display_id = display_id
    def update(self, obj, **kwargs): update_display(obj, display_id=self.display_id, **kwargs)
'''

# As much of plotly as is changed, on a machine with a browser; the real one is in test/dialects.
RENDERERS = '''
import os
from types import SimpleNamespace
renderers = SimpleNamespace(default=os.environ.get("PLOTLY_RENDERER") or "browser")
def show(fig, renderer=None, validate=True, **kwargs): print(renderer or renderers.default, validate, kwargs)
class Figure:
    def _repr_mimebundle_(self, include=None, exclude=None, validate=True, **kwargs): return {"a/plot": f"{validate} {kwargs}"}
    def __repr__(self): return "Figure"
'''


class ImportedTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for name, text in {
            "IPython/__init__.py": "from IPython.core.display_functions import display",
            "IPython/display.py": "from IPython.core.display_functions import *",
            "IPython/core/__init__.py": "",
            "IPython/core/display_functions.py": FUNCTIONS,
            "PIL/__init__.py": "",
            "PIL/ImageShow.py": "def show(image, title=None, **options): print('a window')",
            "plotly/__init__.py": "",
            "plotly/io/__init__.py": "from plotly.io._renderers import *",
            "plotly/io/_renderers.py": RENDERERS,
        }.items():
            path = os.path.join(folder.name, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as f:
                f.write(text)
        self.session = Driver()
        self.addCleanup(self.session.close)
        self.session.execute(
            textwrap.dedent(f"""
            import sys
            sys.path.insert(0, {folder.name!r})
            class Page:
                def _repr_html_(self): return "<b>page</b>"
                def __repr__(self): return "Page"
            """)
        )

    def shown(self, code):
        frames = self.session.execute(code)
        self.assertEqual([], [f for f in frames if f["type"] == "error"])
        kinds = ("display", "clear", "stdout", "result")
        return [{k: v for k, v in f.items() if k not in ("id", "seq")} for f in frames if f["type"] in kinds]

    def test_display(self):
        page = {"type": "display", "data": {"text/html": "<b>page</b>", "text/plain": "Page"}}
        self.assertEqual([page, page], self.shown("from IPython.display import display\ndisplay(Page(), Page())"))
        self.assertEqual([page], self.shown("import IPython\nIPython.display.display(Page())"))
        self.assertEqual([page], self.shown("IPython.core.display_functions.display(Page())"))
        self.assertEqual([{"type": "clear", "wait": True}, page], self.shown("display(Page(), clear=True)"))
        self.assertEqual([{"type": "clear", "wait": False}], self.shown("IPython.display.clear_output()"))
        self.assertEqual([{"type": "display", "data": {"text/plain": "Page"}}], self.shown("display(Page(), exclude=['text/html'])"))
        self.assertEqual([{"type": "display", "data": {"text/html": "<b>page</b>"}, "metadata": {"a": 1}}], self.shown("display(Page(), include=['text/html'], metadata={'a': 1})"))
        self.assertEqual([{"type": "display", "data": {"a/b": "x"}}], self.shown("display({'a/b': 'x'}, raw=True)"))
        self.assertEqual([{"type": "display", "data": {"a/b": "x"}, "metadata": {"m": 2}}], self.shown("IPython.display.publish_display_data({'a/b': 'x'}, {'m': 2})"))

    def test_updates(self):
        named = {"type": "display", "display_id": "d", "update": False}
        self.assertEqual([{**named, "data": {"text/plain": "1"}}], self.shown("from IPython.display import *\nh = display(1, display_id='d')"))
        self.assertEqual([{**named, "data": {"text/plain": "2"}, "update": True}], self.shown("h.update(2)"))
        self.assertEqual([{**named, "data": {"text/plain": "3"}, "update": True}], self.shown("update_display(3, display_id='d')"))
        self.assertEqual([{**named, "data": {}}], self.shown("h = display(display_id='d')"))
        self.assertEqual("32", self.session.value("len(display(display_id=True).display_id)"))
        self.assertEqual("TypeError", [f for f in self.session.execute("display(1, update=True)") if f["type"] == "error"][0]["name"])

    def test_a_module_that_was_there_before(self):
        self.shown("sys.meta_path.pop(0)\nimport IPython.display")
        self.assertEqual(["display"], [f["type"] for f in self.shown("IPython.display.display(Page())")])
        self.assertEqual(["display"], [f["type"] for f in self.shown("from IPython.core.display_functions import update_display\nupdate_display(Page(), display_id='x')")])

    def test_a_copy_shows_its_own(self):
        self.shown("from IPython.display import display")
        copy = self.session.copies(1)[0]
        self.addCleanup(copy.close)
        frames = copy.execute("display(Page())")
        self.assertEqual(["display"], [f["type"] for f in frames if f["type"] in ("display", "stdout")])

    def test_getpass(self):
        """It asks the host in the very cell that imports it, too."""
        for way in ("import getpass\ngetpass.getpass('w? ')", "from getpass import getpass\ngetpass('w? ')"):
            self.session.execute("import sys\nsys.modules.pop('getpass', None)")
            self.session.cells += 1
            self.session.request({"type": "execute", "id": self.session.cells, "code": way, "allow_stdin": True})
            asked = self.session.frame()
            while asked["type"] != "input_request":
                self.assertNotIn(asked["type"], ("done", "error"), asked)
                asked = self.session.frame()
            self.assertEqual(("w? ", True), (asked["prompt"], asked["password"]))
            self.session.request({"type": "input", "request": asked["request"], "value": "hush"}, self.session.control)
            self.assertEqual(["'hush'"], [f["data"]["text/plain"] for f in self.session.cell() if f["type"] == "result"])

    def test_figures_of_plotly_are_shown(self):
        self.session.execute("from plotly import io\nfigure = io.Figure()")
        whole = {"type": "display", "data": {"a/plot": "True {}", "text/plain": "Figure"}}
        self.assertEqual([whole], self.shown("io.show(figure)"))
        self.assertEqual([{"type": "display", "data": {"a/plot": "False {'width': 9}"}}], self.shown("io.show(figure, validate=False, width=9)"))
        self.assertEqual([{"type": "stdout", "text": "png True {}\n"}], self.shown("io.show(figure, 'png')"))
        self.assertEqual([{"type": "stdout", "text": "plotly_mimetype True {}\n"}], self.shown("io.show({})"))
        self.assertEqual([{"type": "stdout", "text": "svg True {}\n"}], self.shown("io.renderers.default = 'svg'\nio.show(figure)"))

    def test_the_renderer_of_plotly_that_is_chosen_stays(self):
        self.session.execute("import os\nos.environ['PLOTLY_RENDERER'] = 'browser'\nfrom plotly import io")
        self.assertEqual([{"type": "stdout", "text": "browser True {}\n"}], self.shown("io.show(io.Figure())"))

    def test_pictures_are_shown(self):
        self.session.execute("from PIL import ImageShow\nclass Image:\n    def _repr_png_(self): return b'png'\n    def __repr__(self): return 'Image'")
        self.assertEqual([{"type": "display", "data": {"image/png": "cG5n", "text/plain": "Image"}}], self.shown("shown = ImageShow.show(Image())"))
        self.assertEqual("True", self.session.value("shown"))
        self.assertEqual([{"type": "stdout", "text": "a window\n"}], self.shown("_ = ImageShow.show(1, 'title')"))

    def test_it_is_not_there(self):
        frames = self.session.execute("sys.path.pop(0)\nsys.path_importer_cache.clear()\nimport no_such_module_at_all")
        self.assertEqual("ModuleNotFoundError", [f for f in frames if f["type"] == "error"][0]["name"])


if __name__ == "__main__":
    unittest.main()
