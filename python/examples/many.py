"""Many conversations at the same time, first in threads and then in asyncio, many of them cancelled at a random moment.

    python many.py model.gguf [CONVERSATIONS] [ROUNDS]

Every conversation must end in time and answer one more question; the memory of the process must stay as it was after the second
round: in the first one, fewer may have been alive at the same time. The exit code is 1 if not.
"""

import asyncio
import gc
import os
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator

import akunu

QUESTION = "Count from one to a hundred."
#: Seconds after which a conversation counts as stuck, for each that runs at the same time.
PATIENCE = 10.0
#: Megabytes by which memory may differ between rounds: what an allocator keeps for itself.
SLACK = 32.0


def check(chat: akunu.Chat) -> bool:
    """Whether the conversation goes on: it has each question with its answer, and answers another one."""
    reply = chat.ask("Hello")
    text = reply.read().strip()
    roles = [message["role"] for message in chat.messages]
    is_whole = roles == ["user", "assistant"] * (len(roles) // 2)
    return is_whole and chat.messages[-1]["content"] == text and chat.messages[-2]["content"] == "Hello"


def in_threads(model: akunu.Model, seeds: list[int]) -> Counter[str]:
    """A thread for each conversation."""
    ends: Counter[str] = Counter()

    def converse(seed: int) -> None:
        dice = random.Random(seed)
        chat = model.chat(max_tokens=24, context=256, seed=seed)
        reply = chat.ask(QUESTION)
        n_pieces = dice.randrange(36)
        how = dice.choice(["left", "cancelled", "cancelled by another thread"])
        if how == "cancelled by another thread":
            threading.Timer(dice.random() * len(seeds) / 20, reply.cancel).start()
        for _ in reply:
            n_pieces -= 1
            if how == "left" and n_pieces < 0:
                break
            if how == "cancelled" and n_pieces < 0:
                reply.cancel()
        end = "read" if reply.stop not in (None, "cancelled") else how
        # A reply that is kept could still be read: only dropping it ends it.
        del reply
        ends[end if check(chat) else "lost"] += 1

    threads = [threading.Thread(target=converse, args=(seed,), daemon=True) for seed in seeds]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + PATIENCE * len(seeds)
    for thread in threads:
        thread.join(max(deadline - time.monotonic(), 0.0))
    ends["stuck"] += sum(thread.is_alive() for thread in threads)
    # A thread that has ended without an end of its conversation has raised an error.
    ends["lost"] += len(seeds) - sum(ends.values())
    return ends


async def in_tasks(model: akunu.Model, seeds: list[int]) -> Counter[str]:
    """A task for each conversation."""

    async def converse(seed: int) -> str:
        dice = random.Random(seed)
        chat = model.chat(max_tokens=24, context=256, seed=seed)
        reply = chat.ask(QUESTION)
        n_pieces = dice.randrange(36)

        async def listen(n_pieces: int) -> None:
            async for _ in reply:
                n_pieces -= 1
                if n_pieces < 0:
                    break

        try:
            await asyncio.wait_for(listen(n_pieces), dice.random() * len(seeds) / 5)
            end = "read" if reply.stop not in (None, "cancelled") else "left"
        except asyncio.TimeoutError:
            end = "timed out"
        del reply
        is_there = await asyncio.get_running_loop().run_in_executor(None, check, chat)
        return end if is_there else "lost"

    tasks = [asyncio.create_task(converse(seed)) for seed in seeds]
    done, stuck = await asyncio.wait(tasks, timeout=PATIENCE * len(seeds))
    ends = Counter("lost" if task.exception() else task.result() for task in done)
    ends["stuck"] += len(stuck)
    return ends


def memory() -> float:
    """Megabytes of the process."""
    gc.collect()
    with open("/proc/self/statm") as numbers:
        return int(numbers.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def rounds(model: akunu.Model, n_chats: int, n_rounds: int) -> Iterator[tuple[Counter[str], Counter[str], float]]:
    """What became of the conversations of each round, and the memory after it."""
    for at in range(n_rounds):
        seeds = list(range(at * n_chats, (at + 1) * n_chats))
        yield in_threads(model, seeds), asyncio.run(in_tasks(model, seeds)), memory()


def main() -> int:
    path, n_chats, n_rounds = (sys.argv[1:] + ["100", "3"][len(sys.argv) - 2 :])[:3]
    model = akunu.Model(path)
    is_well, numbers = True, list[float]()
    for threads, tasks, megabytes in rounds(model, int(n_chats), int(n_rounds)):
        numbers.append(megabytes)
        is_well &= all(ends["stuck"] == ends["lost"] == 0 for ends in (threads, tasks))
        is_well &= megabytes < max(numbers[:2]) + SLACK
        print(f"threads {dict(threads)}, tasks {dict(tasks)}, memory {megabytes:.0f} MB", flush=True)
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main())
