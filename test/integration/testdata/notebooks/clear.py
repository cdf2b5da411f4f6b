# %%
from IPython.display import clear_output, display
print("gone")
clear_output()
print("stays")
# %%
for i in range(5):
    clear_output(wait=True)
    print("step", i, flush=True)
# %%
print("kept, since nothing follows", flush=True)
clear_output(wait=True)
# %%
display("gone", display_id="x")
clear_output()
display("here")
# %%
print("a", flush=True)
clear_output(wait=True)
display("instead", display_id="y")
