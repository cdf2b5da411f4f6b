# %%
1 / 0
# %%
def outer():
    return inner()

def inner():
    raise KeyError("missing")

outer()
# %%
try:
    {}["k"]
except KeyError as e:
    raise ValueError("chained") from e
# %%
class Strange(Exception):
    def __str__(self):
        return "a message\nof two lines"

raise Strange
# %%
print("before"
# %%
print("printed first")
undefined_name
# %%
raise SystemExit("leave")
# %%
raise KeyboardInterrupt
# %%
"still here"
