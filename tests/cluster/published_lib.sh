# shellcheck shell=bash disable=SC2016,SC2034,SC2153
# SPDX-License-Identifier: Apache-2.0
# The published names on the cluster: registries, repositories and package indexes that the reports' commands name are stood in for by the head's own
# servers, under those names and with certificates that nodes and containers trust, in this test's namespaces alone. Source it after lib.sh.
#   published_up         makes certificates, serves, teaches the nodes the names; ends with the test
#   published_down       the nodes forget them
#   published COMMAND... on the head, where the names are known
# The index and the files of Python's packages, as pip itself has them.
read -r INDEX INDEX_FILES < <(/usr/bin/python3 -c 'from pip._internal.models.index import PyPI; print(PyPI.netloc, PyPI.file_storage_domain)')
PUBLISHED="registry-1.docker.io auth.docker.io nvcr.io hub.baidubce.com github.com $INDEX $INDEX_FILES www.paddlepaddle.org.cn registry.example"
P=$T/published
certificates() { # P/ca.crt, and one certificate for all names
    local name names=
    for name in $PUBLISHED; do names+="${names:+,}DNS:$name"; done
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=rehearsal" -keyout "$P/ca.key" -out "$P/ca.crt" 2>/dev/null &&
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=published names" -keyout "$P/tls.key" -out "$P/tls.csr" 2>/dev/null &&
        openssl x509 -req -in "$P/tls.csr" -CA "$P/ca.crt" -CAkey "$P/ca.key" -CAcreateserial -days 2 -extfile <(echo "subjectAltName=$names") -out "$P/tls.crt" 2>/dev/null
}
# Each registry's own repositories lie in the one that the cluster has; git over HTTPS as GitHub has it; an index of packages as PyPI has it.
published_serve() {
    mkdir -p "$P/nginx"
    cat >"$P/nginx.conf" <<NGINX
user root;
daemon off;
master_process off;
pid $P/nginx/pid;
error_log $P/nginx/error.log;
events { worker_connections 512; }
http {
    access_log $P/access.log;
    log_format named '\$host \$request_method \$uri \$status';
    access_log $P/asked.log named;
    client_body_temp_path $P/nginx/body; proxy_temp_path $P/nginx/proxy; fastcgi_temp_path $P/nginx/fastcgi; uwsgi_temp_path $P/nginx/uwsgi; scgi_temp_path $P/nginx/scgi;
    client_max_body_size 0;
    ssl_certificate $P/tls.crt;
    ssl_certificate_key $P/tls.key;
    server {
        listen $HEAD_IP:443 ssl;
        server_name registry-1.docker.io nvcr.io hub.baidubce.com registry.example;
        location / { proxy_pass http://$HEAD_IP:$REGISTRY_PORT; proxy_set_header Host \$http_host; proxy_set_header X-Forwarded-Proto https; proxy_request_buffering off; }
    }
    server {
        listen $HEAD_IP:443 ssl;
        server_name github.com;
        location / {
            $(git_by_nginx "$S/run/fcgi.sock" "$P/github" '$uri')
        }
    }
    server {
        listen $HEAD_IP:443 ssl;
        server_name $INDEX $INDEX_FILES www.paddlepaddle.org.cn;
        root $P/index/\$host;
        index index.html;
        types { text/html html; }
    }
}
NGINX
    nginx -c "$P/nginx.conf" -p "$P/nginx" >"$P/nginx/log" 2>&1 &
    PUBLISHED_PIDS=$!
    # shellcheck disable=SC2086 # one word each
    /usr/bin/python3 "$CLUSTER_DIR/published/dns.py" "$HEAD_IP" $PUBLISHED >"$P/dns.log" 2>&1 &
    PUBLISHED_PIDS+=" $!"
    # shellcheck disable=SC2317 # called by wait_for
    answers_tls() { (exec 3<>"/dev/tcp/$HEAD_IP/443") 2>/dev/null; }
    # shellcheck disable=SC2317
    answers_dns() { grep -qE '^ *[0-9]+: [0-9A-F]+:0035 ' /proc/net/udp; }
    wait_for 120 answers_dns && wait_for 120 answers_tls
}
published() {
    unshare --mount sh -c 'mount --bind "$1/hosts" /etc/hosts && mount --bind "$1/bundle" /etc/ssl/certs/ca-certificates.crt && shift && exec "$@"' published "$P" "$@"
}
# A node has eight GPUs and an adapter as far as its engine and a container's /dev can tell: what NVIDIA's hook would bring, as empty files. The engine looks
# for the hook when it starts.
node_stands_in() { # NUMBER
    node_do "$1" /bin/bash -c 'echo "nameserver $1" >/etc/resolv.conf
        mkdir -p /dev/infiniband && : >>/dev/infiniband/uverbs0 && mount --bind /dev/null /dev/infiniband/uverbs0' bash "$HEAD_IP" &&
        node_do "$1" /bin/bash -c 'cat >/usr/bin/nvidia-container-runtime-hook && chmod +x /usr/bin/nvidia-container-runtime-hook' <<'HOOK'
#!/bin/bash
state=$(cat)
pid=$(jq .pid <<<"$state") root=$(jq -r .root.path "$(jq -r .bundle <<<"$state")/config.json")
nsenter --mount --target "$pid" bash -c 'for i in 0 1 2 3 4 5 6 7; do : >"$1/dev/nvidia$i"; done' hook "$root"
HOOK
    node_docker_stop "$1"
    node_docker_start "$1"
}
node_is_itself() { # NUMBER
    node_do "$1" /bin/bash -c 'rm -f /usr/bin/nvidia-container-runtime-hook; : >/etc/resolv.conf; umount /dev/infiniband/uverbs0; rm -r /dev/infiniband'
}
published_up() {
    local i name waits=()
    mkdir -p "$P"/{github,index}
    certificates || return 1
    { cat /etc/hosts && for name in $PUBLISHED; do echo "$HEAD_IP $name"; done; } >"$P/hosts"
    cat /etc/ssl/certs/ca-certificates.crt "$P/ca.crt" >"$P/bundle"
    published_serve || return 1
    for i in $CLUSTER_NODES; do node_stands_in "$i" & waits+=($!); done
    for i in "${waits[@]}"; do wait "$i" || return 1; done
}
published_down() {
    local i
    [ -n "${PUBLISHED_PIDS:-}" ] || return 0
    # shellcheck disable=SC2086 # one word each
    kill $PUBLISHED_PIDS 2>/dev/null # a test may have ended them
    PUBLISHED_PIDS=
    for i in $CLUSTER_NODES; do node_is_itself "$i"; done
}

# --- packages -----------------------------------------------------------------------------------------
package() { # NAME VERSION HOST/PAGE [FOLDER]: a wheel, and the page that lists it; of what lies in FOLDER, else of nothing but its name
    local name=$1 version=$2 index=$3 folder=${4:-}
    /usr/bin/python3 - "$name" "$version" "$folder" "$P/index/$index" <<'PY'
import os, sys, zipfile
name, version, folder, index = sys.argv[1:]
os.makedirs(index, exist_ok=True)
info = "%s-%s.dist-info/" % (name.replace("-", "_"), version)
files = {info + "METADATA": "Metadata-Version: 2.1\nName: %s\nVersion: %s\n" % (name, version), info + "WHEEL": "Wheel-Version: 1.0\nGenerator: standin\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
for top, _, names in os.walk(folder) if folder else ():
    for one in names:
        path = os.path.join(top, one)
        files[os.path.relpath(path, folder)] = open(path).read()
files[info + "RECORD"] = "".join("%s,,\n" % path for path in list(files) + [info + "RECORD"])
wheel = "%s-%s-py3-none-any.whl" % (name.replace("-", "_"), version)
with zipfile.ZipFile(os.path.join(index, wheel), "w") as out:
    for path, text in files.items():
        out.writestr(path, text)
with open(os.path.join(index, "index.html"), "a") as page:
    page.write('<a href="%s">%s</a><br>\n' % (wheel.replace("+", "%2B"), wheel))
PY
}
packages_up() {
    local name
    for name in boto3 h5py requests scipy tqdm; do package "$name" 1.0 "$INDEX/simple/$name"; done
    package tensorflow-datasets 3.0.0 "$INDEX/simple/tensorflow-datasets"
    package paddlepaddle-gpu 2.5.0.post112 www.paddlepaddle.org.cn/whl/linux/mkl/avx "$P/paddle"
    package paddlepaddle-gpu 2.0.0.post101 www.paddlepaddle.org.cn/whl/linux/mkl/avx "$P/paddle"
    mv "$P/index/www.paddlepaddle.org.cn/whl/linux/mkl/avx/index.html" "$P/index/www.paddlepaddle.org.cn/whl/linux/mkl/avx/stable.html"
}

# --- frameworks ---------------------------------------------------------------------------------------
program() { # FILE LINE...: a program of Python's
    mkdir -p "${1%/*}"
    printf '%s\n' "${@:2}" >"$1"
}
paddle() { # FOLDER VERSION
    program "$1/paddle/__init__.py" 'from paddle import version'
    program "$1/paddle/version.py" "full_version = '$2'" "commit = '613c46bc0745c8069c55686aef4adc775f9e27d1'"
    program "$1/paddle/distributed/__init__.py" ''
    program "$1/paddle/distributed/launch/__init__.py" ''
    program "$1/paddle/distributed/launch/__main__.py" 'import standin' 'standin.paddle_launch()'
}
frameworks() { # FOLDER: what an image of theirs has installed
    cp "$CLUSTER_DIR/published/standin.py" "$CLUSTER_DIR/published/option_value.py" "$1/"
    paddle "$1" 0.0.0
    program "$1/torch/__init__.py" ''
    program "$1/torch/distributed/__init__.py" ''
    program "$1/torch/distributed/launch.py" 'import standin' 'standin.torch_launch()'
    paddle "$P/paddle" 2.5.0.post112
}
trains() { # FOLDER FORM FILE...
    local file
    for file in "${@:3}"; do program "$1/$file" 'import standin' "standin.rank('$2')"; done
}
# Every repository that a recipe names, with and without .git, each with the same content and one commit, $CODE.
code_up() {
    local code=$P/code url name
    # shellcheck source=tests/integration/made_up_code.sh
    . "$ROOT/tests/integration/made_up_code.sh"
    made_up_code "$code"
    program "$code/setup.py" 'from setuptools import setup' 'setup(name="standin-code", version="0", packages=[])'
    trains "$code" paddleseg tools/train.py train.py
    trains "$code" paddleclas tools/static/train.py
    trains "$code" paddlenlp PaddleNLP/benchmark/bert/run_pretrain.py PaddleNLP/benchmark/bert/run_pretrain_single.py
    trains "$code" dllogger-tf TensorFlow/Classification/ConvNets/main.py
    trains "$code" dllogger-pytorch PyTorch/Classification/ConvNets/main.py
    program "$code/PyTorch/Classification/ConvNets/multiproc.py" 'import standin' 'standin.torch_launch(False)'
    trains "$code" mxnet MxNet/Classification/RN50v1.5/benchmark.py
    trains "$code" ngc-tf-bert TensorFlow/LanguageModeling/BERT/run_pretraining.py
    trains "$code" ngc-pytorch-bert PyTorch/LanguageModeling/BERT/run_pretraining.py
    trains "$code" tf2 official/vision/image_classification/classifier_trainer.py
    trains "$code" mmseg result_v0.1/software/train/pytorch_samples/linux/deeplabv3plus/code/mmsegmentation/tools/train.py
    git init -q "$code" && git -C "$code" add -A && git -C "$code" commit -q -m standin
    CODE=$(git -C "$code" rev-parse HEAD)
    while read -r url; do
        name=${url#https://github.com/}
        mkdir -p "$P/github/${name%/*}"
        git clone -q --bare "$code" "$P/github/$name"
        git -C "$P/github/$name" branch -q -f r2.3.0 HEAD
        git -C "$P/github/$name" config uploadpack.allowAnySHA1InWant true
        [ "$name" != "${name%.git}" ] || ln -s "${name##*/}" "$P/github/$name.git"
    done < <({ jq -r '.stacks[] | .full[]? | .mounts[]? | select(.kind == "source") | .name' manifests/reports/*.json && echo https://github.com/NVIDIA/dllogger.git; } | sort -u)
    "$REPERF" data gc >"$T/out" 2>&1
    while read -r name; do made_up_original "$name" "$P/original/$name"; done < <(jq -r '.stacks[] | .full[]? | .mounts[]? | select(.original) | .name' manifests/reports/*.json | sort -u)
}

# --- images -------------------------------------------------------------------------------------------
libraries() { # ROOT FILE...: what these need of this machine's
    ldd "${@:2}" 2>/dev/null | awk '$2 == "=>" { print $3 }' | sort -u | while IFS= read -r file; do
        [ ! -f "$file" ] || [ -e "$1$file" ] || install -D "$(readlink -f "$file")" "$1$file"
    done
}
# What a Python's image lacks of pip, git and names, for the recipes' installs: laid over its root.
tools_root() { # FOLDER
    local root=$1 lib=/usr/lib/python3/dist-packages name
    mkdir -p "$root"/{usr/bin,"$lib",etc/ssl/certs}
    for name in pip setuptools pkg_resources _distutils_hack wheel distutils-precedence.pth; do cp -a "$lib/$name" "$root$lib/"; done
    for name in "$lib"/{pip,setuptools,wheel}-*; do cp -a "$name" "$root$lib/"; done
    for name in python python3.7; do ln -s python3.11 "$root/usr/bin/$name"; done
    for name in pip pip3 pip3.7; do printf '#!/bin/sh\nexec python3 -m pip "$@"\n' >"$root/usr/bin/$name"; done
    printf '#!/bin/sh\nexec python3 -m paddle.distributed.launch "$@"\n' >"$root/usr/bin/fleetrun"
    install -m 755 /usr/lib/git-core/git-remote-http "$root/usr/bin/git-remote-https"
    libraries "$root" /usr/lib/git-core/git-remote-http
    cp "$P/ca.crt" "$root/etc/ssl/certs/ca-certificates.crt"
    echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
    chmod +x "$root"/usr/bin/{pip,pip3,pip3.7,fleetrun}
}
# A shell, Python with pip, git and the stand-ins, under this machine's versions: the root of every published image.
image_root() { # FOLDER
    local root=$1 lib=/usr/lib/python3/dist-packages
    mkdir -p "$root"/{usr/{bin,lib},"$lib",var/tmp,usr/local/lib/python3.11/dist-packages}
    (cd /usr/lib && tar --exclude=test --exclude=idlelib --exclude=tkinter --exclude=ensurepip --exclude='config-*' --exclude=EXTERNALLY-MANAGED --exclude=sitecustomize.py -cf - python3.11) | tar -xf - -C "$root/usr/lib"
    tools_root "$root"
    ln -s python3.11 "$root/usr/bin/python3"
    # What is compiled holds for files of the time that image.sh gives them all.
    /usr/bin/python3 -c 'import pathlib, sys
for path in pathlib.Path(sys.argv[1]).rglob("*.pyc"):
    with open(path, "r+b") as file:
        file.seek(8)
        file.write(bytes(4))' "$root"
    libraries "$root" /usr/lib/python3.11/lib-dynload/*.so
    frameworks "$root$lib"
    printf '#!/usr/bin/python3\nimport standin\nstandin.mpiexec()\n' >"$root/usr/bin/mpiexec"
    chmod +x "$root/usr/bin/mpiexec"
    install -D /lib/x86_64-linux-gnu/libgcc_s.so.1 "$root/lib/x86_64-linux-gnu/libgcc_s.so.1" # that threads end by
    mkdir -p "$root"/workspace/mmsegmentation/configs/_base_/models
    touch "$root"/workspace/mmsegmentation/configs/_base_/models/{fcn_hr18,deeplabv3plus_r50-d8}.py
    trains "$root" mmseg workspace/mmsegmentation/tools/train.py
}
web() { curl -sSf --noproxy '*' --max-time 60 "$@"; }
tag() { # NAME TAG FROM: the image of FROM under another name, in the one registry that is behind all
    local url="http://$HEAD_IP:$REGISTRY_PORT/v2" type=application/vnd.oci.image.manifest.v1+json blob
    web -H "Accept: $type" "$url/$3/manifests/latest" >"$P/manifest"
    for blob in $(jq -r '.config.digest, .layers[].digest' "$P/manifest"); do web -o /dev/null -X POST "$url/$1/blobs/uploads/?mount=$blob&from=$3"; done
    web -o /dev/null -X PUT -H "Content-Type: $type" --data-binary "@$P/manifest" "$url/$1/manifests/$2"
}
tag_as_published() { # ID DIGEST: what stands in for that image, under the name it was published by; in $GIVEN, what --image takes for one that is built and not pulled
    local name
    name=$(jq -r '.name' "images/$1/image.json")
    if [ "$(jq -r .tag "images/$1/image.json")" = null ]; then
        tag "$1" latest standin/framework
        GIVEN+=("$1=registry.example/$1@$2")
    else
        tag "${name#*/}" "$(jq -r .tag "images/$1/image.json")" standin/framework
    fi
}
images_up() { # sets $GIVEN: what --image takes for those that are built and not pulled
    local id
    image_root "$P/root"
    STANDIN=$(EXTRA=$P/root cluster_image standin/framework /usr/bin/python3.11 /usr/bin/git /bin/bash) || return 1
    rm -rf "$P/root"
    GIVEN=()
    for id in $(jq -r '.stacks[] | select(.framework != "reperf") | .image, .full[]?.image | values' manifests/reports/*.json | sort -u); do
        tag_as_published "$id" "${STANDIN#*@}"
    done
}
