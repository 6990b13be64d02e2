# SPDX-License-Identifier: Apache-2.0
"""im2rec.py [--list --recursive] [--pass-through --num-thread N] PREFIX FOLDER: of MXNet's tool in its image, what it leaves behind: lists, then records of
them, which hold nothing here."""
import argparse
import os

parser = argparse.ArgumentParser()
parser.add_argument("--list", action="store_true")
parser.add_argument("--recursive", action="store_true")
parser.add_argument("--pass-through", action="store_true")
parser.add_argument("--num-thread", type=int)
parser.add_argument("prefix")
parser.add_argument("root")
args = parser.parse_args()
if args.list:
    with open(args.prefix + ".lst", "w") as out:
        for label, name in enumerate(sorted(os.listdir(args.root))):
            for image in sorted(os.listdir(os.path.join(args.root, name))):
                out.write("%d\t%d\t%s/%s\n" % (label, label, name, image))
else:
    os.stat(args.prefix + ".lst")
    for kind in (".rec", ".idx"):
        open(args.prefix + kind, "w").close()
