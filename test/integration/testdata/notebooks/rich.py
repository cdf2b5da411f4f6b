# %%
from IPython.display import HTML, JSON, Latex, Markdown, Math, Javascript, display
HTML("<table><tr><td>1</td></tr></table>")
# %%
Markdown("# Title\n\n- item\n- *item*\n")
# %%
Latex(r"$\frac{a}{b}$")
# %%
Math(r"x^2")
# %%
JSON({"a": [1, 2.5, None, True], "b": {"c": "text"}}, expanded=True)
# %%
display({"text/plain": "plain", "application/vnd.custom+json": {"deep": [1, {"x": "y"}]}, "text/x-own": "a\nb"}, raw=True)
# %%
Javascript("console.log(1)")
# %%
class Bundle:
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/plain": "bundle", "text/html": "<p>bundle</p>"}, {"text/html": {"isolated": True}}

Bundle()
