# %%
import sys
for i in range(5):
    print(f"\r{i * 25}%", end="", flush=True)
print()
# %%
for i in range(3):
    sys.stderr.write("=" * i + "\b" * i)
    sys.stderr.flush()
# %%
print("abc\rX")
