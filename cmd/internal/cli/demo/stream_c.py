import time

for word in "a tree that is cut down grows back".split():
    print(f"{word:<6} {len(word)}")
    time.sleep(0.12)
