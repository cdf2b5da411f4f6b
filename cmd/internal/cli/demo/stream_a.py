# One of three sessions that run at the same time.
import time

kept = "set by the first call"
a, b = 0, 1
for step in range(1, 7):
    for _ in range(5):
        a, b = b, a + b
    print(f"fibonacci {step * 5:>2}: {a}")
    time.sleep(0.15)
