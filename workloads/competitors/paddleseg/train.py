# SPDX-License-Identifier: Apache-2.0
"""paddleseg's own trainer, started as the repository's tools/train.py starts it: the wheel has no such program."""
import argparse
import os
import tempfile

import cv2  # noqa: F401  before paddle, which brings an older zlib that cannot read every PNG
import paddle
from paddleseg.core import train
from paddleseg.cvlibs import Config, SegBuilder
from paddleseg.utils import utils


def options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", required=True)
    parser.add_argument("--device", default="cpu")
    for name, default in (("batch_size", 2), ("iters", 20), ("log_iters", 1), ("num_workers", 0), ("seed", 100)):
        parser.add_argument("--" + name, type=int, default=default)
    parser.add_argument("--do_eval", action="store_true", help="after the last step")
    return parser.parse_args()


def can_evaluate():
    """A sum is a tensor without dimensions since Paddle 2.5; paddleseg 2.8.0's metrics concatenate what had one."""
    of = paddle.concat
    paddle.concat = lambda x, axis=0, name=None: of(x, axis, name) if x[0].shape else paddle.stack(x, axis, name)


def main():
    opts = options()
    can_evaluate()
    config = Config(opts.config, iters=opts.iters, batch_size=opts.batch_size)
    root = config.dic["train_dataset"]["dataset_root"]
    if not os.path.isdir(os.path.join(root, "leftImg8bit", "train")):
        raise SystemExit(f"{root}: no Cityscapes is there")
    utils.show_env_info()
    utils.show_cfg_info(config)
    utils.set_seed(opts.seed)
    utils.set_device(opts.device)
    utils.set_cv2_num_threads(opts.num_workers)
    builder = SegBuilder(config)
    train(utils.convert_sync_batchnorm(builder.model, opts.device), builder.train_dataset,
          val_dataset=builder.val_dataset if opts.do_eval else None, optimizer=builder.optimizer, losses=builder.loss,
          save_dir=tempfile.mkdtemp(), iters=config.iters, batch_size=config.batch_size, save_interval=opts.iters + 1,
          log_iters=opts.log_iters, num_workers=opts.num_workers, keep_checkpoint_max=1)


main()
