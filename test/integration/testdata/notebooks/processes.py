# %%
import os, subprocess, sys
subprocess.run([sys.executable, "-c", "print('captured')"], capture_output=True, text=True).stdout
# %%
import threading
def say():
    print("from a thread")
t = threading.Thread(target=say)
t.start()
t.join()
# %%
import multiprocessing
ctx = multiprocessing.get_context("fork")
q = ctx.Queue()
p = ctx.Process(target=lambda: q.put("from a child"))
p.start()
print(q.get())
p.join()
p.exitcode
# %%
os.getcwd() == os.path.abspath("."), __name__
