# %%
from IPython.display import display, update_display, HTML, DisplayHandle
display("first", display_id="a")
display("second", display_id="b")
display("also first", display_id="a")
# %%
update_display("new first", display_id="a")
# %%
h = display(HTML("<b>0</b>"), display_id=True)
for i in range(1, 5):
    h.update(HTML(f"<b>{i}</b>"))
# %%
update_display("nobody has this id", display_id="c")
# %%
h.update(HTML("<i>from afar</i>"), metadata={"text/html": {"isolated": True}})
# %%
display("second, shown again", display_id="b")
# %%
kernel = get_ipython().kernel
value = {"data": {"text/plain": "9"}, "metadata": {}, "execution_count": kernel.shell.execution_count - 1, "transient": {"display_id": "value"}}
sent = kernel.session.send(kernel.iopub_socket, "execute_result", value, parent=kernel.get_parent())
# %%
update_display(10, display_id="value")
# %%
d = DisplayHandle("mine")
d.display("x")
d.update("y")
