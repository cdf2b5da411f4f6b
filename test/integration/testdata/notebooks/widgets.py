# %%
# What ipywidgets does, in short: it need not be installed.
from comm import create_comm
from IPython.display import clear_output, display
kernel = get_ipython().kernel

class Out:
    def __init__(self, name):
        state = {"_model_module": "@jupyter-widgets/output", "_model_module_version": "1.0.0", "_model_name": "OutputModel", "msg_id": "", "outputs": []}
        self.comm = create_comm(target_name="jupyter.widget", comm_id=name, data={"state": state, "buffer_paths": []}, metadata={"version": "2.1.0"})
    def send(self, **state):
        self.comm.send({"method": "update", "state": state, "buffer_paths": []})
    def __enter__(self):
        self.send(msg_id=kernel.get_parent()["header"]["msg_id"])
    def __exit__(self, kind, value, trace):
        if kind:
            get_ipython().showtraceback((kind, value, trace), tb_offset=0)
        self.send(msg_id="")
        return True

out, inner = Out("out"), Out("inner")
# %%
print("in the cell")
with out:
    print("captured")
    display("shown", display_id="d")
    with inner:
        print("within")
    print("again")
print("in the cell again")
# %%
with out:
    clear_output(wait=True)
    print("anew")
    clear_output(wait=True)
display("updated", display_id="d", update=True)
# %%
with inner:
    clear_output()
    1 / 0
print("goes on")
# %%
out.__enter__()
print("captured to the end of the cell")
# %%
print("not captured")
out.send(msg_id="")
# %%
slider = create_comm(target_name="jupyter.widget", comm_id="slider", data={"state": {"_model_module": "@jupyter-widgets/controls", "_model_module_version": "2.0.0", "_model_name": "IntSliderModel", "value": 1}, "buffer_paths": []})
slider.send({"method": "update", "state": {"value": 2, "name": "<b>"}, "buffer_paths": [["image"], ["a", 0]]}, buffers=[b"png", b"more"])
slider.send({"method": "custom", "content": {"state": 5}})
display({"application/vnd.jupyter.widget-view+json": {"model_id": "slider", "version_major": 2, "version_minor": 0}, "text/plain": "IntSlider(value=2)"}, raw=True)
# %%
gone = create_comm(target_name="other", comm_id="gone", data={"x": 1})
gone.close()
slider.close()
