# %%
for i in range(20000):
    print("line", i)
# %%
"x" * 200000
# %%
list(range(2000))
# %%
for i in range(300):
    display(i)
