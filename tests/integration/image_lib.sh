# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: Apache-2.0
# For the tests of images: images built by hand as OCI layouts, registries of this machine's own, started here and ended by their pid.
# shellcheck source=tests/integration/nginx_lib.sh
. "${BASH_SOURCE[0]%/*}/nginx_lib.sh"
LOCKS="$T/locks"
mkdir -p "$LOCKS"
PIDS=()
end_servers() {
    local pid
    for pid in "${PIDS[@]}"; do kill "$pid" 2>/dev/null; done
    for pid in "${PIDS[@]}"; do wait "$pid" 2>/dev/null; done
    PIDS=()
}
trap 'end_servers; rm -rf "$T"' EXIT

wait_port() { served "$2" "a server at port $1" port_answers "$1" "${ADDRESS:-127.0.0.1}"; } # PORT PID

sha() { sha256sum "$1" | cut -d' ' -f1; }
bytes() { stat -c %s "$1"; }
blob() { # LAYOUT FILE: moved among the blobs; prints its digest
    local hex
    hex=$(sha "$2")
    mkdir -p "$1/blobs/sha256"
    mv "$2" "$1/blobs/sha256/$hex"
    echo "$hex"
}

# make_layer NAME BYTES: $T/NAME.tar with a file of that many bytes, and a small program that says NAME
make_layer() {
    local dir="$T/layer.$1"
    mkdir -p "$dir/bin"
    [ -e "$T/hello" ] || {
        printf '#include <unistd.h>\nint main(void) { return write(1, "hello\\n", 6) == 6 ? 0 : 1; }\n' >"$T/hello.c"
        gcc -static -Os -s -o "$T/hello" "$T/hello.c"
    }
    cp "$T/hello" "$dir/bin/$1"
    openssl enc -aes-128-ctr -K 00000000000000000000000000000000 -iv "$(printf '%032x' "$(cksum <<<"$1" | cut -d' ' -f1)")" \
        -in /dev/zero 2>/dev/null | head -c "$2" >"$dir/data.$1"
    tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$dir" -cf "$T/$1.tar" .
}

# add_manifest LAYOUT ARCH TYPE PACKING LAYER...: prints "DIGEST SIZE" of the manifest. TYPE: oci or docker; PACKING: gzip, zstd, tar
add_manifest() {
    local layout=$1 arch=$2 type=$3 packing=$4 layers="" diffs="" layer hex size config
    local mt="application/vnd.oci.image.manifest.v1+json" ct="application/vnd.oci.image.config.v1+json" lt="application/vnd.oci.image.layer.v1.tar"
    shift 4
    [ "$packing" = tar ] || lt="$lt+$packing"
    if [ "$type" = docker ]; then
        mt="application/vnd.docker.distribution.manifest.v2+json" ct="application/vnd.docker.container.image.v1+json"
        lt="application/vnd.docker.image.rootfs.diff.tar.gzip"
    fi
    for layer; do
        diffs="$diffs,\"sha256:$(sha "$T/$layer.tar")\""
        case $packing in
        gzip) gzip -nc -1 "$T/$layer.tar" >"$T/packed" ;;
        zstd) zstd -qc "$T/$layer.tar" >"$T/packed" ;;
        tar) cp "$T/$layer.tar" "$T/packed" ;;
        esac
        size=$(bytes "$T/packed")
        hex=$(blob "$layout" "$T/packed")
        layers="$layers,{\"mediaType\":\"$lt\",\"digest\":\"sha256:$hex\",\"size\":$size}"
    done
    printf '{"architecture":"%s","os":"linux","created":"2020-01-01T00:00:00Z","config":{"Env":["A=1"],"Cmd":["/bin/%s"]},"rootfs":{"type":"layers","diff_ids":[%s]}}' \
        "$arch" "$1" "${diffs#,}" >"$T/config"
    size=$(bytes "$T/config")
    config=$(blob "$layout" "$T/config")
    printf '{"schemaVersion":2,"mediaType":"%s","config":{"mediaType":"%s","digest":"sha256:%s","size":%s},"layers":[%s]}' \
        "$mt" "$ct" "$config" "$size" "${layers#,}" >"$T/manifest"
    size=$(bytes "$T/manifest")
    echo "$(blob "$layout" "$T/manifest") $size $mt $config"
}
# write_index FILE ENTRY...: ENTRY is "DIGEST SIZE TYPE REST"; ARCHES names the platforms of a list
write_index() {
    local file=$1 entry hex size mt rest list="" n=0 extra
    shift
    for entry; do
        read -r hex size mt rest <<<"$entry"
        extra=""
        [ -z "${ARCHES[n]-}" ] || extra=",\"platform\":{\"architecture\":\"${ARCHES[n]}\",\"os\":\"linux\"}"
        [ -z "${REFS[n]-}" ] || extra="$extra,\"annotations\":{\"org.opencontainers.image.ref.name\":\"${REFS[n]}\"}"
        list="$list,{\"mediaType\":\"$mt\",\"digest\":\"sha256:$hex\",\"size\":$size$extra}"
        n=$((n + 1))
    done
    printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[%s]}' "${list#,}" >"$file"
}
one_image() { # $L: a layout with one image of one layer; $one is its manifest
    L="$T/layout" REFS=(one)
    make_layer one 30000
    one=$(add_manifest "$L" amd64 oci gzip one)
    write_index "$L/index.json" "$one"
    finish_layout "$L"
}
finish_layout() { printf '{"imageLayoutVersion":"1.0.0"}' >"$1/oci-layout"; }

# start_registry NAME [CONFIG-LINES]: docker-registry on a free port of ADDRESS (127.0.0.1); sets PORT, PID and $T/NAME/
start_registry() {
    local name=$1 more=${2-}
    mkdir -p "$T/$name/data"
    [ -n "${PORT_WANTED-}" ] && PORT=$PORT_WANTED || PORT=$(free_port)
    cat >"$T/$name/config.yml" <<EOF
version: 0.1
log: {level: error, accesslog: {disabled: true}}
storage:
  filesystem: {rootdirectory: $T/$name/data}
  delete: {enabled: true}
http:
  addr: ${ADDRESS:-127.0.0.1}:$PORT
  secret: test
$more
EOF
    docker-registry serve "$T/$name/config.yml" >"$T/$name/log" 2>&1 &
    PID=$!
    PIDS+=("$PID")
    wait_port "$PORT" "$PID"
}
serve_nginx() { # PORT: with what is on standard input as its http block
    nginx_conf
    "$(command -v nginx /usr/sbin/nginx | head -n 1)" -c "$T/nginx/nginx.conf" -e "$T/nginx/error.log" &
    PIDS+=("$!")
    wait_port "$1" "$!"
}
stop_server() { # PID
    local pid kept=()
    kill "$1" 2>/dev/null
    wait "$1" 2>/dev/null
    for pid in "${PIDS[@]}"; do [ "$pid" = "$1" ] || kept+=("$pid"); done
    PIDS=("${kept[@]}")
}
push() { # LAYOUT[:REF] IMAGE [SKOPEO-OPTION...]
    local from=$1 to=$2
    shift 2
    skopeo copy --quiet --all --preserve-digests --dest-tls-verify=false "$@" "oci:$from" "docker://$to"
}
img() { "$REPERF" "$1" --locks "$LOCKS" "image:$2" "${@:3}"; } # VERB NAME OPTION...
