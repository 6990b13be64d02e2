# SPDX-License-Identifier: Apache-2.0
"""The programs of this folder one after the other in one process, which imports torch once. Speaks TAP, a plan for each.
Usage: check_torch_all.py REPERF_TRAIN SCRATCH_FOLDER. TIER=all: what takes longer, too."""
import os
import runpy
import sys
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
EVERYDAY = [
    ("check_torch.py",),
    ("check_torch_bert.py", "bert_tiny"),
    ("check_torch_steps.py", "bert_tiny:adamw:f32"),
]
LONG = [
    ("check_torch_seg.py", "hrnet_w18"),
    ("check_torch_seg.py", "deeplabv3p"),
    ("check_torch_inference.py",),
    ("check_torch_steps.py", "hrnet_w18:sgd"),
    ("check_torch_seg.py", "deeplabv3p_mmseg"),  # wider, and of other names, which test_wl_train.sh holds against a log
    ("check_torch_bert.py", "bert_base"),
    ("check_torch_steps.py", "resnet50:sgd:f32", "hrnet_w18:sgd:f32", "deeplabv3p:sgd"),
]


def passes(program, *args):
    sys.argv = [program, *TRAIN_AND_FOLDER, *args]
    print("# %s" % " ".join((program,) + args), flush=True)
    try:
        runpy.run_path(os.path.join(HERE, program), run_name="__main__")
    except SystemExit as end:
        return end.code in (None, 0)
    except Exception:
        traceback.print_exc()
    print("not ok - %s does not end as it should" % program)
    return False


if __name__ == "__main__":
    TRAIN_AND_FOLDER = sys.argv[1:3]
    sys.path.insert(0, HERE)
    jobs = EVERYDAY
    if os.environ.get("TIER") == "all":
        jobs = EVERYDAY + LONG
    else:
        for job in LONG:
            print("# test-all: against PyTorch: %s" % " ".join(job))
    sys.exit(0 if all([passes(*job) for job in jobs]) else 1)
