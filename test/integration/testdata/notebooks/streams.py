# %%
import sys
print("one")
print("two", end="")
sys.stdout.flush()
print(" three")
# %%
for i in range(5):
    print("out", i, flush=True)
    print("err", i, file=sys.stderr, flush=True)
# %%
sys.stdout.write("no newline at the end")
# %%
print("")
# %%
print("a\tb\\ \"q\" 'r' {x}\r\nend")
