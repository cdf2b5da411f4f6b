"""What libraries that look for a notebook make of a kernel of coppice on the runner, which is not
IPython and does not say that it is."""

import pytest
from jupyter_client.manager import start_new_kernel

PATIENCE = 90
PLOTLY = "application/vnd.plotly.v1+json"
WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.fixture
def shown():
    """Runs code, and returns what it shows: each message's type with its content."""
    manager, client = start_new_kernel(kernel_name="python3")

    def run(code: str) -> "list[tuple[str, dict]]":
        said = []
        client.execute_interactive(code, allow_stdin=False, timeout=PATIENCE, output_hook=lambda m: said.append((m["msg_type"], m["content"])))
        return [(kind, content) for kind, content in said if kind in ("stream", "error", "display_data", "execute_result")]

    yield run
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def text(said, name="stdout"):
    assert [kind for kind, _ in said] and all(kind == "stream" for kind, _ in said), said
    return "".join(content["text"] for _, content in said if content["name"] == name)


def data(said):
    assert [kind for kind, _ in said] in (["display_data"], ["execute_result"]), said
    return said[0][1]["data"]


def test_nobody_is_told_that_it_is_ipython(shown):
    ((kind, content),) = shown("get_ipython()")
    assert (kind, content["ename"]) == ("error", "NameError")
    assert text(shown("import builtins, IPython; print(hasattr(builtins, 'get_ipython'), IPython.get_ipython())")) == "False None\n"


def test_rich_prints_text_and_shows_pages(shown):
    assert text(shown("import rich; rich.print('[bold]so[/bold]')")) == "so\n"
    assert "<pre" in data(shown("from rich.table import Table; table = Table('head'); table"))["text/html"]
    assert "<pre" in data(shown("from rich.console import Console; Console(force_jupyter=True).print(table)"))["text/html"]


def test_tqdm_has_its_bar_as_text_and_as_a_widget(shown):
    assert "2/2" in text(shown("from tqdm.auto import tqdm\nfor _ in tqdm(range(2)): pass"), "stderr")
    assert WIDGET in data(shown("from tqdm.notebook import tqdm\nfor _ in tqdm(range(2)): pass"))


def test_plotly_shows_its_figures_here(shown):
    assert shown("import webbrowser\ndef opened(*args, **more): raise AssertionError('a browser')\nwebbrowser.open = webbrowser.get = opened") == []
    assert shown("import plotly.io, plotly.graph_objects as go\nfigure = go.Figure(data=go.Bar(y=[1, 2]))") == []
    for code in ("figure.show()", "plotly.io.show(figure)", "figure", "display(figure)"):
        got = data(shown(code))
        assert got[PLOTLY]["data"][0]["type"] == "bar" and "<div" in got["text/html"], code
    assert data(shown("figure.show(config={'scrollZoom': True})"))[PLOTLY]["config"]["scrollZoom"] is True
    assert data(shown("figure.show('json')")).keys() == {"application/json"}
    assert data(shown("plotly.io.show(figure.to_dict())")).keys() == {PLOTLY}


def test_plotly_keeps_the_renderer_that_is_chosen(shown):
    assert shown("import os; os.environ['PLOTLY_RENDERER'] = 'json'\nimport plotly.io, plotly.graph_objects as go") == []
    assert data(shown("go.Figure().show()")).keys() == {"application/json"}
    assert text(shown("print(plotly.io.renderers.default)")) == "json\n"
