# SPDX-License-Identifier: Apache-2.0
"""The sitecustomize of an image in which a framework is, in a rehearsal that trains; each Python of it begins with this. A rank says how it was started and
meets all others, as standin.py has it. Then a few ranks, evenly over the nodes, become a job of their own and go on as the smoke recipe's command
(/reperf/trains.json); the others have done what they are for."""
import os
import sys

SPEC = "/reperf/trains.json"
STARTED = "REPERF_TRAINEE"
RECORD_PORT, BEGIN_PORT, TRAIN_PORT = 7171, 7172, 7173


def words_of_program():
    """From the program's name on; nothing of what was started otherwise (-m, -c)."""
    for at, word in enumerate(sys.orig_argv[1:], 1):
        if not word.startswith("-"):
            return sys.orig_argv[at:]
        if word in ("-m", "-c", "-"):
            return []
    return []


def launcher_of_torch():
    """PyTorch 1.13 loses the value 0 of its flags under Python 3.11, and then starts nothing."""
    from torch.distributed.elastic.multiprocessing import api
    of_text = api.Std.from_str
    api.Std.from_str = classmethod(lambda cls, text: of_text(text) or api.Std.NONE)


def join(env, number, every, n):
    """What a rank knows of its job, as one of n."""
    if "PADDLE_TRAINER_ID" in env:
        ends = env["PADDLE_TRAINER_ENDPOINTS"].split(",")[::every]
        env.update(PADDLE_TRAINER_ID=str(number // every), PADDLE_TRAINERS_NUM=str(n), PADDLE_TRAINER_ENDPOINTS=",".join(ends), PADDLE_CURRENT_ENDPOINT=ends[number // every])
    else:
        env.pop("TORCHELASTIC_USE_AGENT_STORE", None)
        env.update(RANK=str(number // every), WORLD_SIZE=str(n), MASTER_PORT=str(TRAIN_PORT))


def once(script):
    """The recipe's own first lines, in one of a container's ranks."""
    import fcntl
    import subprocess
    with open("/tmp/.trainee", "a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if lock.seek(0, os.SEEK_END) == 0:  # where the end was when it was opened says nothing of what another wrote since
            subprocess.run(["/bin/sh", "-ec", script], check=True)
            lock.write("done")


def go_on(words):
    import json
    import socket
    import standin
    spec = json.load(open(SPEC))
    number, world, local, master = standin.identity(words)
    host = (master or "127.0.0.1").rsplit(":", 1)[0]
    n = min(spec["ranks"], world)
    every = world // n
    seen = [place for place in standin.DATA + (os.environ.get("DATA_DIR", "data/none"),) if os.path.exists(place)]
    numbers = standin.meet(number, world, "%s:%d" % (host, RECORD_PORT))
    # A launcher may keep what its ranks print: this goes to the container's own output.
    standin.note("rank", os.open("/proc/1/fd/1", os.O_WRONLY | os.O_APPEND), rank=number, world=world, local=local, master=host + ":0", met=numbers, node=os.environ.get("NODE_RANK"),
                 host=socket.gethostname(), argv=words, cwd=os.getcwd(), env=dict(os.environ), devices=standin.devices(words, local, world > 1), data=seen, trains=number % every == 0)
    standin.meet(number, world, "%s:%d" % (host, BEGIN_PORT))
    if number % every:
        os._exit(0)
    if spec["before"]:
        once(spec["before"])
    env = dict(os.environ, **spec["env"])
    env[STARTED] = "1"
    if world > 1:
        join(env, number, every, n)
    os.execve("/bin/sh", ["sh", "-c", "exec " + spec["command"]], env)


WORDS = words_of_program()
if "torch.distributed.launch" in sys.orig_argv:
    launcher_of_torch()
if "paddle.distributed.launch" in sys.orig_argv:  # which counts a machine's GPUs; here are none to count
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "0,1,2,3,4,5,6,7")
if WORDS and STARTED not in os.environ and os.path.basename(WORDS[0]) in ("train.py", "main.py", "run_pretraining.py"):
    go_on(WORDS)
