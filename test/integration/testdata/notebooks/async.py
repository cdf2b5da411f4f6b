# %%
import asyncio
await asyncio.sleep(0.01)
print("awaited")
# %%
async def work(n):
    await asyncio.sleep(0.01 * n)
    print("worked", n)
    return n * n

await asyncio.gather(*(work(n) for n in range(4)))
# %%
async with asyncio.timeout(5):
    print([n async for n in (x async for x in aiter_of(3))] if False else "in a context")
# %%
async def numbers():
    for i in range(3):
        yield i
        await asyncio.sleep(0)

[n async for n in numbers()]
# %%
async def fails():
    raise LookupError("in a coroutine")

await fails()
# %%
task = asyncio.create_task(work(2))
# %%
await task
