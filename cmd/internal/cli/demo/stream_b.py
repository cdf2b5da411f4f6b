import random
import time

rng = random.Random(7)
hits = total = 0
for step in range(1, 7):
    for _ in range(20_000):
        hits += rng.random() ** 2 + rng.random() ** 2 <= 1
        total += 1
    print(f"pi after {total:>6} points: {4 * hits / total:.4f}")
    time.sleep(0.2)
