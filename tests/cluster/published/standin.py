# SPDX-License-Identifier: Apache-2.0
"""What stands in for a framework in a rehearsal. A launcher starts its ranks with the variables and words that the one of its name gives them; a rank
says on one line how it was started and what it sees, meets all others where it was told to, and ends. Rank 0 also prints a log of the framework's form,
whose numbers mean nothing."""
import contextlib
import fcntl
import io
import json
import os
import re
import shlex
import socket
import struct
import subprocess
import sys
import time

from option_value import value

MEET_S = 240  # every node's container installs first
DATA = ("data/cityscapes", "test_tipc/data/cityscapes", "/data/train", "/data/tfrecords", "/data/imagenet/train-val-recordio-passthrough", "/imagenet/train", "/datasets/ImageNet/tfrecord",
        "data/tfrecord/lower_case_1_seq_len_128_max_pred_20_masked_lm_prob_0.15_random_seed_12345_dupe_factor_5_shard_1472_test_split_10/wikicorpus_en/training",
        "data/hdf5_lower_case_1_seq_len_128_max_pred_20_masked_lm_prob_0.15_random_seed_12345_dupe_factor_5/wikicorpus_en/training")


# ---- launchers ----

def split(argv):
    """A launcher's own words, and from the program on the rank's."""
    at = next(idx for idx, word in enumerate(argv) if word.endswith(".py"))
    return argv[:at], argv[at:]


def start(ranks):
    """Of (variables, words): ends with the first that fails, and the others with it."""
    children = [subprocess.Popen(words, env=dict(os.environ, **env)) for env, words in ranks]
    while children:
        for child in list(children):
            if child.poll() is None:
                continue
            children.remove(child)
            if child.returncode:
                for other in children:
                    other.kill()
                sys.exit(child.returncode)
        time.sleep(0.05)


def own_address(host):
    """As Paddle's launcher finds it: what --host says, or what the host's name resolves to."""
    return host or socket.gethostbyname(socket.gethostname())


def paddle_launch():
    own, words = split(sys.argv[1:])
    devices = (value(own, "--devices", "--gpus", "--selected_gpus") or os.environ.get("CUDA_VISIBLE_DEVICES", "0")).split(",")
    ips = (value(own, "--ips", "--cluster_node_ips") or "127.0.0.1").split(",")
    here, node, nodes, master = None, 0, len(ips), ips[0] + ":6170"
    if value(own, "--master"):
        master, nodes, node = value(own, "--master"), int(value(own, "--nnodes")), int(value(own, "--rank"))
    if nodes > 1:
        here = own_address(value(own, "--host", "--node_ip"))
    if nodes > 1 and not value(own, "--master"):
        if here not in ips:
            sys.exit("Can't find your local ip {%s} in node_ips: {%s}" % (here, ips))
        node = ips.index(here)
    elif nodes > 1 and (here.startswith("127.") and not master.startswith("127.") or node == 0 and here != master.rsplit(":", 1)[0]):
        sys.exit("master not ready: %s is not where %s takes this node to be" % (master, here))
    ranks = []
    for local, device in enumerate(devices):
        env = {"PADDLE_TRAINER_ID": str(node * len(devices) + local), "PADDLE_TRAINERS_NUM": str(nodes * len(devices)), "PADDLE_RANK_IN_NODE": str(local),
               "PADDLE_MASTER": master, "FLAGS_selected_gpus": device}
        ranks.append((env, [sys.executable] + words))
    start(ranks)


def torch_launch(says_local_rank=True):
    own, words = split(sys.argv[1:])
    per_node, nodes, node = (int(value(own, name) or default) for name, default in (("--nproc_per_node", 1), ("--nnodes", 1), ("--node_rank", 0)))
    ranks = []
    for local in range(per_node):
        env = {"RANK": str(node * per_node + local), "LOCAL_RANK": str(local), "WORLD_SIZE": str(nodes * per_node),
               "MASTER_ADDR": value(own, "--master_addr") or "127.0.0.1", "MASTER_PORT": value(own, "--master_port") or "29500"}
        ranks.append((env, [sys.executable, words[0]] + (["--local_rank=%d" % local] if says_local_rank else []) + words[1:]))
    start(ranks)


def mpi_daemon(first, n, world, master, folder, words):
    os.chdir(folder)
    start([({"OMPI_COMM_WORLD_RANK": str(first + local), "OMPI_COMM_WORLD_LOCAL_RANK": str(local), "OMPI_COMM_WORLD_SIZE": str(world), "STANDIN_MASTER": master}, words)
           for local in range(n)])


def mpiexec():
    """Without a list of hosts on this node; with one, by its remote shell, one daemon a host."""
    argv = sys.argv[1:]
    at = next(idx for idx, word in enumerate(argv) if word.startswith("python"))
    world = int(value(argv[:at], "-np", "-n"))
    hosts = os.environ.get("OMPI_MCA_orte_default_hostfile")
    if not hosts:
        return mpi_daemon(0, world, world, "127.0.0.1:7170", os.getcwd(), argv[at:])
    rows = [line.split() for line in open(hosts)]
    agent = shlex.split(os.environ["OMPI_MCA_plm_rsh_agent"])
    master, first, children = rows[0][0] + ":7170", 0, []
    for idx, (host, slots) in enumerate(rows):
        n = int(slots.split("=")[1])
        ask = ["python3", "-c", "import standin; standin.mpi_daemon(%r, %r, %r, %r, %r, %r)" % (first, n, world, master, os.getcwd(), argv[at:])]
        children.append(subprocess.Popen(ask if idx == 0 else agent + [host, " ".join(map(shlex.quote, ask))]))
        first += n
    sys.exit(max(child.wait() for child in children))


# ---- ranks ----

def identity(words):
    """(rank, world, rank on its node, where rank 0 is) by the variables of whoever started it."""
    env = os.environ
    if "PADDLE_TRAINER_ID" in env:
        return int(env["PADDLE_TRAINER_ID"]), int(env["PADDLE_TRAINERS_NUM"]), int(env["PADDLE_RANK_IN_NODE"]), env["PADDLE_MASTER"]
    if "OMPI_COMM_WORLD_RANK" in env:
        return int(env["OMPI_COMM_WORLD_RANK"]), int(env["OMPI_COMM_WORLD_SIZE"]), int(env["OMPI_COMM_WORLD_LOCAL_RANK"]), env["STANDIN_MASTER"]
    if "RANK" in env:
        return int(env["RANK"]), int(env["WORLD_SIZE"]), int(env["LOCAL_RANK"]), env["MASTER_ADDR"] + ":" + env["MASTER_PORT"]
    config = value(words, "--config_file")
    hosts = re.search(r"worker_hosts: '(.*)'", open(config).read()) if config and os.path.exists(config) else None
    task = re.search(r"task_index=(\d+)", " ".join(words))
    if hosts and task:
        hosts = hosts.group(1).split(",")
        return int(task.group(1)), len(hosts), 0, hosts[0]
    return 0, 1, 0, None


def devices(words, local, is_one_of_many):
    """That the process computes on."""
    if is_one_of_many:
        return [int(os.environ.get("FLAGS_selected_gpus", local))]
    over = re.search(r"num_gpus=(\d+)", value(words, "--params_override") or "")
    counts = value(words, "-n")
    n = int(over.group(1)) if over else max(map(int, counts.split(","))) if counts else 1
    return list(range(n))


def receive(sock, size):
    data = b""
    while len(data) < size:
        part = sock.recv(size - len(data))
        if not part:
            sys.exit("a rank has left")
        data += part
    return data


def meet(rank, world, master):
    """The numbers of all ranks that have come to rank 0, each once; nobody goes on before all are there."""
    if world == 1:
        return [0]
    host, port = master.rsplit(":", 1)
    until = time.monotonic() + MEET_S
    if rank == 0:
        listener = socket.create_server((host, int(port)), backlog=world)
        listener.settimeout(MEET_S)
        socks = []
        while len(socks) < world - 1:
            sock = listener.accept()[0]
            socks.append((struct.unpack("!I", receive(sock, 4))[0], sock))
        numbers = sorted([0] + [number for number, _ in socks])
        for _, sock in socks:
            sock.sendall(struct.pack("!%dI" % world, *numbers))
        return numbers
    while True:
        try:
            sock = socket.create_connection((host, int(port)), timeout=10)
            break
        except OSError as why:
            if time.monotonic() > until:
                sys.exit("rank 0 at %s: %s" % (master, why))
            time.sleep(0.2)
    sock.settimeout(MEET_S)
    sock.sendall(struct.pack("!I", rank))
    return list(struct.unpack("!%dI" % world, receive(sock, 4 * world)))


def say(fd, text):
    """Whole lines, among those of others."""
    with open("/tmp/.standin", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        data = text.encode()
        while data:
            data = data[os.write(fd, data):]


def note(kind, fd, **what):
    say(fd, "STAND-IN %s %s\n" % (kind, json.dumps(what, sort_keys=True)))


def log(form, words):
    """Lines that the report's rule for this log finds its window in."""
    day, at_time = "2026-11-25", lambda at: "10:%02d:%02d" % (at // 60 % 60, at % 60)
    if form == "paddleseg":
        total, every = int(value(words, "--iters")), int(value(words, "--log_iters"))
        for at in range(every, total + 1, every):
            print(day, at_time(at), "[INFO]\t[TRAIN] epoch: 1, iter: %d/%d, loss: 2.5, lr: 0.01, batch_cost: 1.0, reader_cost: 0.1, ips: 1.0 samples/sec | ETA 00:00:00" % (at, total))
    elif form == "mmseg":
        total, every = int(value(words, "--max_iters") or 400), int(value(words, "--log_iters") or 50)
        for at in range(every, total + 1, every):
            print(day, at_time(at) + ",000 - mmseg - INFO - Iter [%d/%d]\tlr: 1.000e-02, eta: 0:00:01, time: 1.000, data_time: 0.100, memory: 1000, loss: 2.5000" % (at, total))
    elif form == "paddleclas":
        for at in range(0, 1001, 10):
            print(day, at_time(at), "INFO: epoch:0   train step:%-4d loss:  7.0000 top1: 0.0010 top5: 0.0050 lr: 0.100000 elapse: 1.000 s reader: 0.001 s ips: 1.0 images/sec" % at)
        print(day, at_time(1001), "INFO: END epoch:0   train loss:  7.0000 top1: 0.0010 top5: 0.0050 batch_cost: 1.0 s, ips: 1.0 images/sec")
    elif form == "paddlenlp":
        for at in range(20, 501, 20):
            print("[%s %s,000] [    INFO] - global step %d, epoch: 0, batch: %d, loss: 9.0, speed: 1.00 step/s, ips: 1.0 sequences/s" % (day, at_time(at), at, at))
    elif form == "dllogger-pytorch":
        for at in range(1, 101):
            print("DLL", day, at_time(at) + ".5 - Epoch: 0 Iteration: %d  train.loss : 7.0 None train.compute_ips : 1.0 images/s train.total_ips : 1.0 images/s train.lr : 0.1 " % at)
        print("DLL", day, at_time(101) + ".5 - Summary: train.loss : 7.0 None train.compute_ips : 1.0 images/s train.total_ips : 1.0 images/s train.lr : 0.1 ")
    elif form == "dllogger-tf":
        for at in range(200, 500):
            print("DLL", day, at_time(at) + ".5 - (0, %d) total_ips : 1.0 " % at)
        print("DLL", day, at_time(500) + ".5 - () train_throughput : 1.0 ")
    elif form == "mxnet":
        counts = list(map(int, value(words, "-n").split(",")))
        for _ in counts:
            print(day, at_time(0) + ",000:INFO: Start with arguments Namespace()")
        print("train.total_ips\n" + "".join("  %d | 1.0 |\n" % n for n in counts))
    elif form == "tf2":
        for at in range(100, 701, 100):
            print("I1125 %s.000000 140 keras_utils.py:145] TimeHistory: 100.00 seconds, 1.00 examples/second between steps %d and %d" % (at_time(at), at - 100, at))
        print("I1125 %s.000000 140 classifier_trainer.py:400] Run stats:" % at_time(701))
    elif form == "ngc-tf-bert":
        for at in range(1, 201):
            print("DLL", day, at_time(at) + ".5 - Iteration: %d  throughput_train : 1.0 sequences/s mlm_loss : 10.0  nsp_loss : 0.6  total_loss : 10.6  avg_loss_step : 10.6  learning_rate : 7.5e-07  loss_scaler : 1 " % at)
        print("DLL", day, at_time(201) + ".5 -  throughput_train : 1.0 sequences/s")
    elif form == "ngc-pytorch-bert":
        for at in range(1, 4):
            print("DLL", day, at_time(at) + ".5 - Training Epoch: 0 Training Iteration: %d  average_loss : 11.1  step_loss : 11.1  learning_rate : 0.006 " % at)
        print("DLL", day, at_time(4) + ".5 -  e2e_train_time : 3.0 s training_sequences_per_second : 1.0 sequences/s final_loss : 8.5 None raw_train_time : 3.0 s ")
    else:
        sys.exit("standin: no such log: " + form)


def rank(form):
    words = sys.argv
    number, world, local, master = identity(words)
    seen = [place for place in DATA + (os.environ.get("DATA_DIR", "data/none"),) if os.path.exists(place)]
    numbers = meet(number, world, master)
    note("rank", 1, rank=number, world=world, local=local, master=master, met=numbers, node=os.environ.get("NODE_RANK"), host=socket.gethostname(),
         argv=words, cwd=os.getcwd(), env=dict(os.environ), devices=devices(words, local, world > 1 and "task_index" not in " ".join(words)), data=seen)
    if number == 0:
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            log(form, words)
        say(1, text.getvalue())
