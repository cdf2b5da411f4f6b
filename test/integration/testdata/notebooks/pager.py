# %%
len?
# %%
%load_ext nothing_there
# %%
get_ipython().set_next_input("x = 1")
# %%
"end"
