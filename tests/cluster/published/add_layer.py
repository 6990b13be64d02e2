#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""add_layer.py LAYOUT FOLDER OUT: the image of an OCI layout with one more layer, of what lies in FOLDER, as the layout OUT. The other layers are links."""
import hashlib
import json
import os
import sys
import tarfile

layout, folder, out = sys.argv[1:]
blobs = os.path.join(out, "blobs/sha256")
os.makedirs(blobs)


def take(digest):
    return open(os.path.join(layout, "blobs", *digest.split(":")), "rb").read()


def put(data):
    name = hashlib.sha256(data).hexdigest()
    with open(os.path.join(blobs, name), "wb") as file:
        file.write(data)
    return {"digest": "sha256:" + name, "size": len(data)}


def plain(info):
    info.mtime, info.uid, info.gid, info.uname, info.gname = 0, 0, 0, "", ""
    return info


index = json.loads(open(os.path.join(layout, "index.json")).read())
manifest = json.loads(take(index["manifests"][0]["digest"]))
config = json.loads(take(manifest["config"]["digest"]))
for layer in manifest["layers"]:
    name = layer["digest"].split(":")[1]
    os.symlink(os.path.realpath(os.path.join(layout, "blobs/sha256", name)), os.path.join(blobs, name))
with tarfile.open(os.path.join(out, "layer"), "w", format=tarfile.GNU_FORMAT) as tar:
    for name in sorted(os.listdir(folder)):
        tar.add(os.path.join(folder, name), name, filter=plain)
with open(os.path.join(out, "layer"), "rb") as file:
    layer = put(file.read())
os.unlink(os.path.join(out, "layer"))
manifest["layers"].append(dict(layer, mediaType="application/vnd.oci.image.layer.v1.tar"))
config["rootfs"]["diff_ids"].append(layer["digest"])
config.get("history", []).append({"created_by": "tests/cluster/published/add_layer.py"})
manifest["config"].update(put(json.dumps(config).encode()))
index["manifests"][0].update(put(json.dumps(manifest).encode()))
with open(os.path.join(out, "index.json"), "w") as file:
    json.dump(index, file)
with open(os.path.join(out, "oci-layout"), "w") as file:
    file.write('{"imageLayoutVersion": "1.0.0"}')
