# SPDX-License-Identifier: Apache-2.0
# One Makefile, no recursion. `make help` lists the targets; config.mak (not tracked) overrides variables.
-include config.mak

MODE      ?= release
MODES     := debug release asan tsan cov
CC        := $(if $(filter default,$(origin CC)),gcc,$(CC))
CXX       := $(if $(filter default,$(origin CXX)),g++,$(CXX))
CLANG     ?= clang
# A compiler's cache where there is one (CCACHE= turns it off): what was compiled before, in whatever clone, is not compiled again.
CCACHE    := $(if $(filter undefined,$(origin CCACHE)),$(shell command -v ccache),$(CCACHE))
# What a file depends on follows from compiling it and not from a run of the preprocessor before: a sixth less for what is not in the cache.
export CCACHE_DEPEND ?= 1
PREFIX    ?= /usr/local
DESTDIR   ?=
SECS      ?= 10
SHELL     := /bin/bash

# What the build, and what the tests beyond that, need from the distribution (Debian names).
DEPS_BUILD := gcc g++ make libc6-dev libcjson-dev libpcre2-dev libarchive-dev zlib1g-dev libssl-dev libzstd-dev libdnnl-dev libcurl4-openssl-dev libssh2-1-dev \
              libjpeg62-turbo-dev libspng-dev libhdf5-dev zstd ca-certificates git
DEPS_TEST  := $(DEPS_BUILD) ccache clang clang-22 clang-tidy clang-format libclang-rt-14-dev zsh fish csh libomp-14-dev libcmocka-dev shellcheck mandoc \
              python3 python3-jsonschema python3-yaml python3-sarif-python-om python3-junitparser python3-torch python3-numpy libxml2-utils chromium fonts-dejavu-core openssl curl \
              bash-completion util-linux procps strace nginx-light fcgiwrap docker-registry skopeo aria2 libarchive-tools docker.io podman apache2-utils time rhash \
              openssh-server openssh-client iptables iproute2 busybox-static jq gojq slurm-wlm munge pdsh iperf3 fio likwid openmpi-bin libopenmpi-dev \
              debootstrap python3-pip python3-setuptools python3-wheel

ifeq ($(filter $(MODE),$(MODES)),)
$(error MODE=$(MODE): expected one of $(MODES))
endif

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wformat=2 -Wvla -Wundef \
        -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wpointer-arith -Wcast-qual \
        -Wwrite-strings -Wswitch-enum -Wdouble-promotion -Wnull-dereference -Wdate-time
WERROR ?= -Werror
OPT.debug   := -O1 -g3
OPT.release := -O2 -g1 -D_FORTIFY_SOURCE=2 -fstack-protector-strong
OPT.asan    := -Og -g1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
OPT.tsan    := -O1 -g3 -fsanitize=thread
OPT.cov     := -O0 -g3 --coverage
HAVE_DNNL   := $(if $(wildcard /usr/include/dnnl.h /usr/include/oneapi/dnnl/dnnl.h),1)
BASE_CFLAGS := -std=gnu17 -D_GNU_SOURCE $(WARN) $(WERROR) -ffile-prefix-map="$(CURDIR)=." -Iorchestrator $(CFLAGS)
# CUDA: found or named (CUDA_HOME=...); without it the backend is not built, and --device cuda is refused.
CUDA_HOME   ?= /usr/local/cuda
# Headers of cuDNN, cuBLASLt and NCCL: next to the toolkit's, the distribution's, those of the python3 on PATH's wheels, or named (CUDNN_INC=...,
# CUBLAS_INC=..., NCCL_INC=...). The libraries are opened at run time. Without nccl.h several ranks on CUDA devices are refused.
PYTHON_HOME := $(patsubst %/bin/,%,$(dir $(shell command -v python3)))
SYSTEM_INC  := /usr/include /usr/include/x86_64-linux-gnu /usr/local/include
folder_of    = $(patsubst %/,%,$(dir $(firstword $(wildcard $(addsuffix /$(1),$(CUDA_HOME)/include $(SYSTEM_INC) $(PYTHON_HOME)/lib/python3*/site-packages/nvidia/*/include)))))
CUDNN_INC   ?= $(call folder_of,cudnn_graph.h)
CUBLAS_INC  ?= $(call folder_of,cublasLt.h)
NCCL_INC    ?= $(call folder_of,nccl.h)
CUDA_NEEDS  := $(CUDA_HOME)/include/cuda_runtime_api.h $(CUDA_HOME)/bin/nvcc $(CUDNN_INC)/cudnn_graph.h $(CUBLAS_INC)/cublasLt.h
CUDA_LACKS  := $(filter-out $(wildcard $(CUDA_NEEDS)),$(CUDA_NEEDS))
HAVE_CUDA   := $(if $(CUDA_LACKS),,1)
HAVE_NCCL   := $(if $(HAVE_CUDA),$(if $(wildcard $(NCCL_INC)/nccl.h),1))
CUDA_CFLAGS  = $(if $(HAVE_NCCL),-DREPERF_HAVE_NCCL=1) $(if $(HAVE_CUDA),-DREPERF_HAVE_CUDA=1 -DREPERF_CUDA_ARCHS=$(subst $(EMPTY) ,_,$(strip $(CUDA_ARCHS))) \
               $(addprefix -isystem ,$(CUDA_HOME)/include $(sort $(filter-out $(CUDA_HOME)/include $(SYSTEM_INC),$(CUDNN_INC) $(CUBLAS_INC) $(NCCL_INC)))))
NVCC        := $(CUDA_HOME)/bin/nvcc
# What this nvcc can make: Volta until CUDA 12, Turing to Hopper since 11.8.
CUDA_ARCHS  := $(if $(filter undefined,$(origin CUDA_ARCHS)),$(if $(HAVE_CUDA),$(filter $(shell $(NVCC) --list-gpu-arch | sed 's/compute_//'),70 75 80 90)),$(CUDA_ARCHS))
NVCCFLAGS   := -std=c++17 -O3 -lineinfo $(foreach a,$(CUDA_ARCHS),-gencode arch=compute_$(a),code=sm_$(a)) -Iworkloads -Iorchestrator -Xcompiler -Wall,-Wextra -Werror all-warnings
EMU_CFLAGS  := -Itests/cuda_emu -Itests/nccl_fake -DREPERF_HAVE_NCCL=1 -Iworkloads -Iorchestrator -I. -DREPERF_HAVE_CUDA=1 -DREPERF_CUDA_ARCHS=70_75_80_90
EMU_OPT      = $(if $(filter release,$(1)),-O2,-O1)
EMU_CXXFLAGS := -std=c++17 -Wall -Wextra -Wno-unknown-pragmas $(WERROR) -ffile-prefix-map="$(CURDIR)=."
CUDA_LIBS   := $(if $(HAVE_CUDA),$(addprefix -L,$(wildcard $(addprefix $(CUDA_HOME)/,lib64 lib targets/x86_64-linux/lib))) -lcudart_static -lstdc++ -ldl -lrt -lpthread)
EMPTY :=
LT_SONAME   := libcublasLt.so.$(if $(HAVE_CUDA),$(shell sed -n 's/^.define CUDART_VERSION *\([0-9]*\)[0-9][0-9][0-9]$$/\1/p' $(CUDA_HOME)/include/cuda_runtime_api.h),none)
# The workloads' arithmetic keeps its order (no -ffast-math); gcc's OpenMP. Nobody reads the flags of floating point: without that, a loop with a choice in
# it, as all with an exponential have, is not computed by vectors. With the sanitizers -O3 costs three times as long to compile as the mode's own level.
WL_OPT      := -O3
fast         = $(if $(filter asan,$(1)),,$(WL_OPT))
WL_CFLAGS   := -Iworkloads -fopenmp -fno-trapping-math $(if $(HAVE_DNNL),-DREPERF_HAVE_DNNL=1) $(CUDA_CFLAGS)
# libcurl and libarchive are opened when they are needed (base/library.h).
ORCH_LIBS   := -Wl,--as-needed -lssh2 -lz -lcrypto -lcjson -lpcre2-8 -lzstd -ldl -lm -lpthread
WL_LIBS     := -Wl,--as-needed -fopenmp $(if $(HAVE_DNNL),-ldnnl) $(CUDA_LIBS) -lm

# Data preparation (reperf-pack): JPEG, PNG and HDF5 are its own.
PREP_CFLAGS := -isystem /usr/include/hdf5/serial -Iworkloads
PREP_LIBS    = -Wl,--as-needed -L/usr/lib/$(shell $(CC) -print-multiarch)/hdf5/serial -lhdf5 -ljpeg -lspng

# --- sources ------------------------------------------------------------------------------
# The rooms of reperf in the order of their includes (tests/lint/layers.sh reads it here), each an archive. BELOW_judge: judge and all before it, as the
# linker wants them.
ROOMS     := base codec sys report log judge load net store fleet evidence run view lint draft cmd
$(foreach r,$(ROOMS),$(eval BELOW_$(r) := $(r) $(lower))$(eval lower := $(BELOW_$(r))))
archives   = $(patsubst %,build/$(1)/%.a,$(BELOW_$(2)))
BASE_SRC  := $(sort $(wildcard orchestrator/base/*.c))
PREP_MAIN := orchestrator/prep/pack_main.c
PREP_SRC  := $(sort $(filter-out $(PREP_MAIN),$(wildcard orchestrator/prep/*.c)))
NODE_MAIN := orchestrator/node/node_main.c
NODE_SRC  := $(sort $(filter-out $(NODE_MAIN),$(wildcard orchestrator/node/*.c)))
# The part of codec in reperf-node: no third-party library, since it is linked statically.
NODE_USES := $(addprefix orchestrator/,$(addprefix codec/,node_wire.c relay.c digest_read.c md5_many.c md5_lanes.c) \
             $(addprefix sys/,tree_run.c digest_cache.c pool.c loop.c relay_net.c))
ORCH_SRC  := $(sort $(filter-out $(BASE_SRC) $(PREP_SRC) $(PREP_MAIN) $(NODE_SRC) $(NODE_MAIN),$(wildcard orchestrator/*/*.c)))
# The parts of the CUDA backend that are built without CUDA: they need no header of it.
CUDA_PURE := layout device_fit
NO_CUDA   := $(if $(HAVE_CUDA),,$(filter-out $(foreach p,$(CUDA_PURE),workloads/backend_cuda/$(p).h workloads/backend_cuda/$(p).c),$(wildcard workloads/backend_cuda/*)))
NO_NCCL   := $(if $(HAVE_NCCL),,workloads/dist/nccl.c workloads/dist/nccl_api.c workloads/dist/nccl_api.h)
WL_SRC    := $(sort $(filter-out workloads/train/train_main.c workloads/bench/bench_main.c $(NO_CUDA) $(NO_NCCL),$(wildcard workloads/*/*.c)))
# What reads and writes data, and no network: all of the workloads that reperf-pack's tests and the fuzzers need.
WL_DATA   := $(filter-out $(addprefix workloads/,backend_cpu/% backend_cuda/% bench/% dist/nccl% graph/% models/% train/%),$(WL_SRC))
CU_SRC    := $(if $(HAVE_CUDA),$(sort $(wildcard workloads/backend_cuda/*.cu)))
CU_OBJ    := $(patsubst %,build/cuda/%.o,$(CU_SRC))
# Compiled once more for processors with AVX2, under names of their own (backend_cpu/cpu.h).
AVX2_SRC  := $(if $(findstring x86_64,$(shell $(CC) -dumpmachine 2>/dev/null)),$(addprefix workloads/backend_cpu/,cpu_f32.c optim_cpu.c))
# The CUDA backend once more, for the CPU: the same sources against tests/cuda_emu's headers, which replace the toolkit's; what calls cuDNN and cuBLASLt is
# compiled with the real headers, and opens tests/cuda_fake's libraries.
EMU_REAL  := $(sort $(wildcard workloads/backend_cuda/dnn*.c workloads/backend_cuda/lt*.c))
EMU_C     := $(sort $(wildcard tests/cuda_emu/*.c) $(filter-out $(EMU_REAL),$(wildcard workloads/backend_cuda/*.c)))
# Sources that depend on whether this build has CUDA: the programs on the emulated device have.
EMU_TRAIN := $(addprefix workloads/train/,device.c device_cuda.c options.c)
# Sources that depend on whether this build has NCCL: the emulated device's programs have
# tests/nccl_fake.
EMU_DIST  := $(addprefix workloads/dist/,job.c nccl.c nccl_api.c)
EMU_CU    := $(sort $(wildcard workloads/backend_cuda/*.cu))
HELD_SRC  := $(sort $(filter-out $(wildcard tests/cuda/test_*.c),$(wildcard tests/cuda/*.c)))
# The machine for PTX, and its parts of the emulator: streams, memory, graphs.
PTX_SRC   := $(sort $(wildcard tests/ptx/*.c))
PTX_EMU   := block fibre graph launch memory queue runtime stream
EMU_PROBE := $(sort $(wildcard tests/cuda_emu/*.cu))
SERVER_SRC := $(sort $(wildcard tests/servers/*.c))
UNIT_SRC  := $(sort $(wildcard tests/unit/test_*.c))
# Each of them belongs to the highest room that it includes: ROOM:TEST. Those of reperf-pack and of the workloads have rules of their own.
OWN_UNITS_prep := test_prep_%
OWN_UNITS_workloads := test_wl_% test_emu_%
UNIT_ROOM := $(if $(UNIT_SRC),$(shell tests/unit/rooms.sh $(ROOMS)))
$(foreach r,$(ROOMS),$(eval UNITS_$(r) := $(patsubst $(r):%,%,$(filter $(r):%,$(UNIT_ROOM)))))
FUZZ_SRC  := $(sort $(wildcard tests/fuzz/fuzz_*.c))
HDRS      := $(sort $(filter-out $(NO_CUDA) $(NO_NCCL),$(wildcard orchestrator/*/*.h workloads/*/*.h)))
ALL_C     := $(BASE_SRC) $(ORCH_SRC) $(PREP_SRC) $(wildcard $(PREP_MAIN)) $(NODE_SRC) $(NODE_MAIN) orchestrator/main.c orchestrator/guests.c orchestrator/write_schemas.c $(WL_SRC) $(wildcard workloads/train/train_main.c workloads/bench/bench_main.c) $(UNIT_SRC) \
             $(sort $(wildcard tests/*/*.c))
SCRIPTS   := $(sort $(wildcard tests/*/*.sh tests/*.sh) .ci/run)
B         := build/$(MODE)
PROGRAMS  := reperf reperf-node reperf-train reperf-bench $(if $(wildcard $(PREP_MAIN)),reperf-pack)

.PHONY: all deps demo reperf-core check golden golden-write schemas test test-all test-dress test-frameworks test-programs engine-good unit replay integration e2e cluster cluster-up cluster-down cuda-sm70 ptx-70 ptx-80 ptx-90 gpu-programs first-gpu test-gpu bench-gpu lint lint-baseline layers hdr-check format format-check tidy fuzz bench \
        install uninstall deb dist clean help doctor repro-check FORCE
.DELETE_ON_ERROR:
.SECONDARY:
MAKEFLAGS += --no-builtin-rules
# As many jobs as processors, except with -jN, and with several targets, which are made in their order.
ifeq ($(filter -j% --jobserver%,$(MAKEFLAGS))$(word 2,$(MAKECMDGOALS)),)
MAKEFLAGS += -j$(shell nproc)
endif

all: $(addprefix $(B)/,$(PROGRAMS))     ## build MODE=release (debug, asan, tsan, cov) into build/MODE/

reperf-core: $(B)/reperf-core            ## reperf without lint, new and proposals for unknown logs (orchestrator/guests.c)

# --- set-up: `demo`, `test` and `bench` install what is missing before anything is compiled -------
# An included makefile that make remakes first and then starts over, so that what it installed is seen.
DEPS_WANTED := $(if $(filter deps test test-all engine-good test-frameworks bench fuzz lint cluster cluster-up,$(MAKECMDGOALS)),$(DEPS_TEST),$(if $(filter demo,$(MAKECMDGOALS)),$(DEPS_BUILD)))
ifneq ($(DEPS_WANTED),)
DEPS_STAMP := build/deps-$(firstword $(shell echo '$(DEPS_WANTED)' | cksum)).mk
include $(DEPS_STAMP)
$(DEPS_STAMP):
	@mkdir -p build; tests/deps.sh $(DEPS_WANTED) && touch $@
endif
deps:                            ## install all that building and testing need, by the distribution's client; demo: what the build needs
	@echo "all that building and testing need is installed"

EMBEDDED  := %.css %.txt %.json %.bash %.fish %.sh

# --- rules, once for each mode --------------------------------------------------------------------
# A change of flags rebuilds: the stamp's content is the flags, without the folder, so that a copy of the checkout is as built as this one.
define MODE_RULES
build/$(1)/flags: FORCE
	@mkdir -p $$(@D); f='$$(subst $$(CURDIR),.,$$(CC) $$(BASE_CFLAGS) $$(OPT.$(1)) | $(call fast,$(1)) $$(WL_CFLAGS))'; \
	[ "$$$$f" = "$$$$(cat $$@ 2>/dev/null)" ] || echo "$$$$f" > $$@
build/$(1)/%.c.o: %.c build/$(1)/flags
	@mkdir -p $$(@D)
	@echo "CC $(1) $$<"; $$(if $$(filter $(EMBEDDED),$$^),,$$(CCACHE)) $$(CC) $$(BASE_CFLAGS) $$(OPT.$(1)) $$(EXTRA) -MMD -MP -c $$< -o $$@
build/$(1)/workloads/%.c.o: EXTRA := $(call fast,$(1)) $$(WL_CFLAGS)
build/$(1)/orchestrator/prep/%.c.o: EXTRA := $(call fast,$(1)) $$(PREP_CFLAGS)
# The bytes of a file that EMBED names are in the object; the cache, which goes by what the compiler lists, does not see that it changed.
build/$(1)/orchestrator/report/vocabulary.c.o: manifests/vocabulary.json
build/$(1)/orchestrator/judge/finding_rules.c.o: orchestrator/judge/finding_rules.txt
build/$(1)/orchestrator/view/page.c.o: orchestrator/view/page.css
build/$(1)/orchestrator/view/card.c.o: orchestrator/view/card.css
build/$(1)/orchestrator/cmd/explain_names.c.o: orchestrator/cmd/explain.txt
build/$(1)/orchestrator/cmd/cmd_completion.c.o: orchestrator/cmd/completion.bash orchestrator/cmd/completion.fish
build/$(1)/orchestrator/fleet/runtime.c.o: orchestrator/fleet/inside.sh
build/$(1)/orchestrator/fleet/node_image.c.o: orchestrator/fleet/provide_image.sh
build/$(1)/orchestrator/fleet/remote_ssh.c.o: $(addprefix orchestrator/fleet/remote_,prelude.sh launch.sh put.sh)
build/$(1)/tests/%.c.o: EXTRA := -Iworkloads -I.
build/$(1)/tests/unit/test_wl_cuda_%.c.o: EXTRA := -Iworkloads -I. $$(CUDA_CFLAGS)
build/$(1)/tests/unit/test_emu_%.c.o: EXTRA := -Itests/cuda_emu -Iworkloads -I.
build/$(1)/prep.a: $(patsubst %,build/$(1)/%.o,$(PREP_SRC))
	@rm -f $$@; ar rcsD $$@ $$^
build/$(1)/%.c.avx2.o: %.c build/$(1)/flags
	@mkdir -p $$(@D)
	@echo "CC $(1) avx2 $$<"; $$(CCACHE) $$(CC) $$(BASE_CFLAGS) $$(OPT.$(1)) $(call fast,$(1)) $$(WL_CFLAGS) -DREPERF_AVX2=1 -mavx2 -mfma -MMD -MP -c $$< -o $$@
build/$(1)/wl.a: $(patsubst %,build/$(1)/%.o,$(WL_SRC)) $(patsubst %,build/$(1)/%.avx2.o,$(AVX2_SRC)) $(CU_OBJ)
	@rm -f $$@; ar rcsD $$@ $$^
build/$(1)/wl_data.a: $(patsubst %,build/$(1)/%.o,$(WL_DATA))
	@rm -f $$@; ar rcsD $$@ $$^
build/$(1)/cuda_emu/%.c.o: %.c build/$(1)/flags
	@mkdir -p $$(@D)
	@echo "CC $(1) emulated $$<"; $$(CCACHE) $$(CC) $$(BASE_CFLAGS) $$(OPT.$(1)) $$(EMU_CFLAGS) $(EMU_OPT) -MMD -MP -c $$< -o $$@
build/$(1)/cuda_emu/%.cu.o: %.cu tests/cuda_emu/emu.ld build/$(1)/flags
	@mkdir -p $$(@D)
	@echo "CXX $(1) emulated $$<"; $$(CCACHE) $(CXX) -x c++ $$(EMU_CXXFLAGS) $$(filter-out -O0,$$(OPT.$(1))) $$(EMU_CFLAGS) $(EMU_OPT) $$(if $$(filter asan,$(1)),-fsanitize-sections=emu_shared_memory) \
	  -MMD -MP -MT $$@ -c $$< -o $$@.tmp && ld -r --force-group-allocation -T tests/cuda_emu/emu.ld $$@.tmp -o $$@ && rm $$@.tmp
build/$(1)/held.a: $(patsubst %,build/$(1)/%.o,$(HELD_SRC))
	@rm -f $$@; ar rcsD $$@ $$^
build/$(1)/emu_probe.a: $(patsubst %,build/$(1)/cuda_emu/%.o,$(EMU_PROBE))
	@rm -f $$@; ar rcsD $$@ $$^
build/$(1)/wl_emu.a: $(patsubst %,build/$(1)/cuda_emu/%.o,$(EMU_C) $(EMU_CU) $(EMU_TRAIN) $(EMU_DIST)) $(patsubst %,build/$(1)/%.o,$(EMU_REAL) $(filter-out workloads/backend_cuda/% $(EMU_TRAIN) $(EMU_DIST),$(WL_SRC))) $(patsubst %,build/$(1)/%.avx2.o,$(AVX2_SRC))
	@rm -f $$@; ar rcsD $$@ $$^
build/$(1)/reperf: build/$(1)/orchestrator/main.c.o build/$(1)/orchestrator/guests.c.o $(call archives,$(1),cmd)
	$$(CC) $$(OPT.$(1)) $$(LDFLAGS) $$^ $$(ORCH_LIBS) -o $$@
build/$(1)/write_schemas: build/$(1)/orchestrator/write_schemas.c.o $(call archives,$(1),cmd)
	$$(CC) $$(OPT.$(1)) $$(LDFLAGS) $$^ $$(ORCH_LIBS) -o $$@
# The program without its guests: nothing of lint and draft is linked.
build/$(1)/reperf-core: build/$(1)/orchestrator/main.c.o $(filter-out %/lint.a %/draft.a,$(call archives,$(1),cmd))
	$$(CC) $$(OPT.$(1)) $$(LDFLAGS) $$^ $$(ORCH_LIBS) -o $$@
# Sanitizers' runtimes cannot be linked in statically. -s: it is sent to nodes.
build/$(1)/reperf-node: $(patsubst %,build/$(1)/%.o,$(NODE_MAIN) $(NODE_SRC) $(NODE_USES)) build/$(1)/base.a
	$$(CC) $$(OPT.$(1)) $$(LDFLAGS) $$(if $$(filter asan tsan,$(1)),,-static -s) $$^ -lm -o $$@
build/$(1)/reperf-train: build/$(1)/workloads/train/train_main.c.o build/$(1)/wl.a build/$(1)/base.a
	$$(CC) $$(OPT.$(1)) $$(LDFLAGS) $$^ $$(WL_LIBS) -o $$@
build/$(1)/reperf-bench: build/$(1)/workloads/bench/bench_main.c.o build/$(1)/wl.a build/$(1)/base.a
	$$(CC) $$(OPT.$(1)) $$(LDFLAGS) $$^ $$(WL_LIBS) -o $$@
build/$(1)/reperf-pack: build/$(1)/$(PREP_MAIN).o build/$(1)/prep.a $(call archives,$(1),report)
	$$(CC) $$(OPT.$(1)) $$(LDFLAGS) $$^ $$(ORCH_LIBS) $$(PREP_LIBS) -o $$@
build/$(1)/servers/%: build/$(1)/tests/servers/%.c.o $(call archives,$(1),cmd)
	@mkdir -p $$(@D)
	@$$(CC) $$(OPT.$(1)) $$(LDFLAGS) $$^ $$(ORCH_LIBS) -o $$@
build/$(1)/servers/faulty_node: build/$(1)/tests/servers/faulty_node.c.o $(patsubst %,build/$(1)/%.o,$(NODE_MAIN) $(NODE_SRC) $(NODE_USES)) build/$(1)/base.a
	@mkdir -p $$(@D)
	@$$(CC) $$(OPT.$(1)) $$(LDFLAGS) $$(if $$(filter asan tsan,$(1)),,-static -s) -Wl,--wrap=clock_gettime,--wrap=time,--wrap=remove $$^ -lm -o $$@
# Loaded before the C library: without sanitizers in every mode.
build/$(1)/faults/%.so: tests/faults/%.c
	@mkdir -p $$(@D)
	@$$(CC) -std=gnu17 -O1 -Wall -Wextra $$(WERROR) -shared -fPIC $$< -o $$@ -ldl
build/$(1)/unit/test_prep_%: build/$(1)/tests/unit/test_prep_%.c.o build/$(1)/prep.a build/$(1)/wl_data.a $(call archives,$(1),view)
	@mkdir -p $$(@D)
	@$$(CC) $$(OPT.$(1)) $$(LDFLAGS) $$^ $$(ORCH_LIBS) $$(PREP_LIBS) $$(WL_LIBS) -lcmocka -o $$@
EMU_WITH.$(1) := build/$(1)/tests/cuda_fake/fake_host.c.o build/$(1)/held.a build/$(1)/emu_probe.a build/$(1)/wl_emu.a build/$(1)/base.a | \
  build/$(1)/fake/libcudnn.so.9 build/$(1)/fake/$(LT_SONAME) build/$(1)/fake/libnccl.so.2
build/$(1)/unit/test_emu_%: build/$(1)/tests/unit/test_emu_%.c.o $$(EMU_WITH.$(1))
	@mkdir -p $$(@D)
	@$$(CC) $$(OPT.$(1)) $$(LDFLAGS) -rdynamic $$^ $$(filter-out $$(CUDA_LIBS),$$(WL_LIBS)) -lstdc++ -lcmocka -ldl -lm -o $$@
build/$(1)/emu/reperf-train: build/$(1)/workloads/train/train_main.c.o
build/$(1)/emu/reperf-bench: build/$(1)/workloads/bench/bench_main.c.o
build/$(1)/emu/reperf-train build/$(1)/emu/reperf-bench: $$(EMU_WITH.$(1))
	@mkdir -p $$(@D)
	@$$(CC) $$(OPT.$(1)) $$(LDFLAGS) -rdynamic $$(filter %.o,$$^) $$(filter %.a,$$^) $$(filter-out $$(CUDA_LIBS),$$(WL_LIBS)) -lstdc++ -ldl -lm -o $$@
build/$(1)/emu/%: build/$(1)/cuda_emu/tests/cuda/%.c.o $$(EMU_WITH.$(1))
	@mkdir -p $$(@D)
	@$$(CC) $$(OPT.$(1)) $$(LDFLAGS) -rdynamic $$^ $$(filter-out $$(CUDA_LIBS),$$(WL_LIBS)) -lstdc++ -ldl -lm -o $$@
# Stand-ins for the libraries: fake_host.c is in the programs that open them.
build/$(1)/tests/cuda_fake/%.c.o: EXTRA := $(call fast,$(1)) -fno-trapping-math -I. -Iworkloads $$(CUDA_CFLAGS) -fPIC
build/$(1)/tests/cuda_fake/fake_host.c.o: EXTRA := -I. -Iworkloads -Itests/cuda_emu
build/$(1)/fake/libcudnn.so.9: $(patsubst %,build/$(1)/tests/cuda_fake/%.c.o,fake_cudnn fake_cudnn_ops)
build/$(1)/fake/$(LT_SONAME): build/$(1)/tests/cuda_fake/fake_cublaslt.c.o
# Processes with an emulated device each, and a fake NCCL between them.
build/$(1)/tests/nccl_fake/%.c.o: EXTRA := -Itests/cuda_emu -Itests/nccl_fake -I. -Iworkloads -fPIC
build/$(1)/fake/libnccl.so.2: build/$(1)/tests/nccl_fake/fake_nccl.c.o
build/$(1)/fake/libcudnn.so.9 build/$(1)/fake/$(LT_SONAME) build/$(1)/fake/libnccl.so.2:
	@mkdir -p $$(@D)
	@$$(CC) $$(OPT.$(1)) -shared -Wl,-soname,$$(@F) $$^ -o $$@
# The objects that a GPU would run, with a machine for their PTX (tests/ptx) instead of the runtime library.
build/$(1)/tests/ptx/%.c.o: EXTRA := -O3 -fno-math-errno -Iworkloads -I. $$(CUDA_CFLAGS)
# PTX of sm_70 is there, whatever nvcc can make.
build/$(1)/ptx/cuda.o: workloads/backend_cuda/cuda.c build/$(1)/flags
	@mkdir -p $$(@D)
	@$$(CCACHE) $$(CC) $$(BASE_CFLAGS) $$(OPT.$(1)) $(call fast,$(1)) $$(filter-out -DREPERF_CUDA_ARCHS=%,$$(WL_CFLAGS)) -DREPERF_CUDA_ARCHS=70_75_80_90 -MMD -MP -c $$< -o $$@
build/$(1)/ptx.a: $(patsubst %,build/$(1)/%.o,$(PTX_SRC)) build/$(1)/tests/cuda_fake/fake_host.c.o build/$(1)/ptx/cuda.o $(patsubst %,build/$(1)/cuda_emu/tests/cuda_emu/emu_%.c.o,$(PTX_EMU))
	@rm -f $$@; ar rcsD $$@ $$^
PTX_WITH.$(1) := -Wl,--whole-archive build/$(1)/ptx.a -Wl,--no-whole-archive build/$(1)/held.a build/$(1)/wl.a build/$(1)/base.a
build/$(1)/ptx/test_emu_%: build/$(1)/tests/unit/test_emu_%.c.o build/$(1)/ptx.a build/$(1)/held.a build/$(1)/wl.a build/$(1)/base.a | build/$(1)/fake/libcudnn.so.9 build/$(1)/fake/$(LT_SONAME)
	@mkdir -p $$(@D)
	@$$(CC) $$(OPT.$(1)) $$(LDFLAGS) -rdynamic $$< $$(PTX_WITH.$(1)) $$(filter-out $$(CUDA_LIBS),$$(WL_LIBS)) -lcmocka -lstdc++ -ldl -lm -o $$@
build/$(1)/ptx/%: build/$(1)/tests/cuda/%.c.o build/$(1)/ptx.a build/$(1)/held.a build/$(1)/wl.a build/$(1)/base.a | build/$(1)/fake/libcudnn.so.9 build/$(1)/fake/$(LT_SONAME)
	@mkdir -p $$(@D)
	@$$(CC) $$(OPT.$(1)) $$(LDFLAGS) -rdynamic $$< $$(PTX_WITH.$(1)) $$(filter-out $$(CUDA_LIBS),$$(WL_LIBS)) -lstdc++ -ldl -lm -o $$@
# The same on a GPU (tests/cuda/gpu.sh).
build/$(1)/tests/cuda/%.c.o: EXTRA := -Iworkloads -I. $$(CUDA_CFLAGS)
build/$(1)/gpu/%: build/$(1)/tests/cuda/%.c.o build/$(1)/held.a build/$(1)/wl.a build/$(1)/base.a
	@mkdir -p $$(@D)
	@$$(CC) $$(OPT.$(1)) $$(LDFLAGS) $$^ $$(WL_LIBS) -o $$@
build/$(1)/gpu/plant: build/cuda/tests/cuda/plant.cu.o
	@mkdir -p $$(@D)
	@$$(CC) $$(LDFLAGS) $$^ $$(CUDA_LIBS) -o $$@
build/$(1)/unit/test_wl_%: build/$(1)/tests/unit/test_wl_%.c.o build/$(1)/held.a build/$(1)/wl.a build/$(1)/base.a
	@mkdir -p $$(@D)
	@$$(CC) $$(OPT.$(1)) $$(LDFLAGS) $$^ $$(WL_LIBS) -lcmocka -o $$@
$(patsubst %,build/$(1)/unit/%,$(UNITS_fleet) $(UNITS_evidence) $(UNITS_run)): | build/$(1)/reperf-node
build/$(1)/replay/%: build/$(1)/tests/fuzz/fuzz_%.c.o build/$(1)/tests/fuzz/replay.c.o build/$(1)/prep.a build/$(1)/wl_data.a $(call archives,$(1),draft)
	@mkdir -p $$(@D)
	@$$(CC) $$(OPT.$(1)) $$(LDFLAGS) $$^ $$(ORCH_LIBS) $$(PREP_LIBS) $$(WL_LIBS) -o $$@
-include $$(shell find build/$(1) -name '*.d' 2>/dev/null)
endef
$(foreach m,$(MODES),$(eval $(call MODE_RULES,$(m))))
# A room's archive, and its unit tests, which are linked with that room and those before it.
define ROOM_RULES
build/$(1)/$(2).a: $(patsubst %,build/$(1)/%.o,$(sort $(wildcard orchestrator/$(2)/*.c)))
	@rm -f $$@; ar rcsD $$@ $$^
$(patsubst %,build/$(1)/unit/%,$(UNITS_$(2))): build/$(1)/unit/%: build/$(1)/tests/unit/%.c.o $(call archives,$(1),$(2))
	@mkdir -p $$(@D)
	@$$(CC) $$(OPT.$(1)) $$(LDFLAGS) $$^ $$(ORCH_LIBS) -larchive -lcmocka -o $$@
endef
$(foreach m,$(MODES),$(foreach r,$(ROOMS),$(eval $(call ROOM_RULES,$(m),$(r)))))
# Some two hundred programs, which gold links in a third of the time.
build/asan/unit/% build/asan/replay/%: LDFLAGS += $(if $(shell command -v ld.gold),-fuse-ld=gold)
FORCE:

# --- kernels: one object each for all modes ---------------------------------------------------------
build/cuda/flags: FORCE
	@mkdir -p $(@D); [ '$(NVCCFLAGS)' = "$$(cat $@ 2>/dev/null)" ] || echo '$(NVCCFLAGS)' > $@
build/cuda/%.cu.o: %.cu build/cuda/flags
	@mkdir -p $(@D)
	@echo "NVCC $<"; $(CCACHE) $(NVCC) $(NVCCFLAGS) -Xptxas -v -MMD -MP -c $< -o $@ >$@.log 2>&1 || { cat $@.log; exit 1; }
-include $(shell find build/cuda -name '*.d' 2>/dev/null)

# The V100's code, which this nvcc may no longer support: clang compiles it to PTX, as a check (tests/integration/test_cuda_compile.sh).
CLANG_SM70 ?= clang-22
SM70_FLAGS := -x cuda --cuda-path=$(CUDA_HOME) --cuda-gpu-arch=sm_70 --cuda-device-only -S -std=c++17 -O3 -Iworkloads -Iorchestrator -Wall -Wextra -Werror -Wno-unknown-cuda-version -Wno-pass-failed
cuda-sm70: $(patsubst %,build/cuda/sm_70/%.ptx,$(CU_SRC)) ## kernels for compute capability 7.0 by clang, to PTX
build/cuda/sm_70/%.cu.ptx: %.cu
	@mkdir -p $(@D)
	@echo "CLANG sm_70 $<"; $(CCACHE) $(CLANG_SM70) $(SM70_FLAGS) -MMD -MP -MF $@.d $< -o $@

# What tests/ptx runs.
PTX_FLAGS := -ptx -std=c++17 -O3 -Iworkloads -Iorchestrator
ptx_files  = $(patsubst %,build/cuda/sm_$(1)/%.ptx,$(CU_SRC))
define PTX_RULE
build/cuda/sm_$(1)/%.cu.ptx: %.cu
	@mkdir -p $$(@D)
	@echo "PTX sm_$(1) $$<"; $$(CCACHE) $$(NVCC) $$(PTX_FLAGS) -arch=sm_$(1) -MD -MF $$@.d $$< -o $$@
endef
$(foreach a,80 90,$(eval $(call PTX_RULE,$(a))))
ptx-70: cuda-sm70
ptx-80: $(call ptx_files,80)
ptx-90: $(call ptx_files,90)

# --- tests: every test program and script prints TAP; tests/tap.sh runs them and counts ------------
UNIT     := $(patsubst tests/unit/%.c,$(B)/unit/%,$(if $(HAVE_CUDA),$(UNIT_SRC),$(filter-out tests/unit/test_emu_%,$(UNIT_SRC))))
# Tests of the CUDA backend that also run where a GPU is; here on the emulator.
EMU_TEST := $(if $(HAVE_CUDA),$(patsubst tests/cuda/%.c,$(B)/emu/%,$(sort $(wildcard tests/cuda/test_*.c))))
SERVERS  := $(patsubst tests/servers/%.c,$(B)/servers/%,$(SERVER_SRC)) $(patsubst tests/faults/%.c,$(B)/faults/%.so,$(wildcard tests/faults/*.c))
REPLAY   := $(patsubst tests/fuzz/fuzz_%.c,$(B)/replay/%,$(FUZZ_SRC))
INTEGRATION := $(sort $(wildcard tests/integration/test_*.sh))
E2E      := $(sort $(wildcard tests/e2e/test_*.sh))
# The engine's own tests. ENGINE_AS_AT=COMMIT leaves them out: the engine is as it was when they passed there (tests/engine.sh).
ENGINE   := $(patsubst tests/unit/%.c,$(B)/unit/%,$(filter tests/unit/test_wl_% tests/unit/test_emu_%,$(UNIT_SRC))) \
            $(patsubst tests/cuda/%.c,$(B)/emu/%,$(sort $(wildcard tests/cuda/test_*.c))) \
            $(patsubst %,tests/integration/test_%.sh,agree_originals cuda_11 cuda_compile cuda_libraries first_call gpu_targets wl_bench wl_cuda wl_data wl_dist wl_nccl wl_ptx wl_torch wl_train wl_turns)
DRESS    := $(sort $(wildcard tests/dress/test_*.sh))
CLUSTER  := $(sort $(wildcard tests/cluster/test_*.sh))
LINT     := $(sort $(wildcard tests/lint/*.sh))
FUZZ_BIN := $(patsubst tests/fuzz/%.c,build/fuzz/%,$(FUZZ_SRC))
in_mode   = $(patsubst $(B)/%,build/$(1)/%,$(2))
TAP      := B=$(B) tests/tap.sh

# The tests' own modes, whatever MODE is, and no third: scripts run the programs that `make` builds and `make install` installs, unit tests are built
# with ASan + UBSan, which see all that a plain build would; except for whole networks, the emulated device and each byte of an archive changed, which the
# sanitizers make several times slower: the networks' parts are tested with them one by one, and the kernels' bounds by the machine for their PTX.
EMU_RUN  := $(if $(HAVE_CUDA),$(addprefix $(B)/emu/,reperf-train reperf-bench test_device test_forms))
PTX_RUN  := $(if $(HAVE_CUDA),$(B)/ptx/test_device)
PTX_LONG := $(if $(HAVE_CUDA),$(addprefix $(B)/ptx/test_,models steps $(addprefix emu_,augment calls images optim)))
# With the sanitizers in test-all, too.
WHOLE_TOO := $(filter $(B)/unit/test_emu_%,$(UNIT)) $(filter-out %/test_models %/test_steps,$(EMU_TEST)) $(addprefix $(B)/unit/test_wl_,checkpoint feed fuse held plans streams train) \
             $(addprefix $(B)/unit/test_,seal tarball)
WHOLE    := $(filter %/test_models %/test_steps,$(EMU_TEST)) $(addprefix $(B)/unit/test_wl_,deeplab eval hrnet net ranks) $(WHOLE_TOO)
# In test-all alone: what computes or waits long, where others show the same on less (test_wl_plans, test_wl_data.sh, test_wl_train.sh, test_wl_dist.sh, HRNet,
# test_bundle.sh, test_each_node.sh), what tests the tests' cluster and lint, and the package.
LONG_SCRIPTS := $(addprefix tests/,$(patsubst %,cluster/test_%.sh,cluster cluster_end derived frameworks node_health) lint/planted.sh lint/planted_tap.sh integration/test_deb.sh $(patsubst %,integration/test_wl_ptx_%.sh,70 80 90))
LONG     := $(addprefix $(B)/unit/test_wl_,deeplab eval feed ranks streams)
TEST_OWN := $(call in_mode,asan,$(filter-out $(WHOLE),$(UNIT) $(EMU_TEST)) $(REPLAY)) $(call in_mode,release,$(filter-out $(LONG),$(WHOLE)))
OMITTED  := $(if $(ENGINE_AS_AT),$(call in_mode,asan,$(ENGINE)) $(call in_mode,release,$(ENGINE)))
TEST_RUN := $(filter-out $(LONG_SCRIPTS) $(OMITTED),$(LINT) $(TEST_OWN) tests/golden/golden.sh $(INTEGRATION) $(E2E) $(DRESS) $(CLUSTER))
test-programs: $(filter-out $(OMITTED),$(TEST_OWN)) $(call in_mode,release,$(EMU_RUN) $(PTX_RUN) $(SERVERS) $(addprefix $(B)/,$(PROGRAMS) reperf-core write_schemas)) ## what test runs
test: test-programs ## all tests this machine can run, but for what test-all names; installs what they need
	@TAP_LATER="$(call in_mode,release,$(LONG)) $(LONG_SCRIPTS)" TAP_OMITTED="$(if $(OMITTED),$(filter-out $(LONG) $(LONG_SCRIPTS),$(ENGINE)))" B=build/release tests/tap.sh $(TEST_RUN)
engine-good: test-programs       ## the engine's tests; where all pass, tests/engine_good names this commit, and .ci/run leaves them out until something changes
	@B=build/release tests/tap.sh $(filter-out $(LONG_SCRIPTS),$(filter $(call in_mode,asan,$(ENGINE)) $(call in_mode,release,$(ENGINE)),$(TEST_OWN) $(INTEGRATION))) && tests/engine.sh --write
# Evidence, faults, time and boundaries: with the sanitizers, too.
SANITIZED := $(patsubst %,tests/integration/test_%.sh@asan,bad_input crash evidence faults fetch forgery measure new override repair run_names source terminal unpack)
test-all: $(call in_mode,asan,$(SERVERS) $(addprefix $(B)/,$(PROGRAMS)))
LATER    := $(call in_mode,release,$(LONG)) $(call in_mode,asan,$(WHOLE_TOO))
test-all: test-programs $(FUZZ_BIN) $(LATER) $(call in_mode,release,$(PTX_LONG)) ## test, and what is long: whole networks, lint of every file, fuzzing; before an issue is closed
	@TIER=all B=build/release tests/tap.sh $(TEST_RUN) $(LATER) $(LONG_SCRIPTS) $(SANITIZED) tests/fuzz/run.sh
test-frameworks: $(addprefix build/release/,$(PROGRAMS)) $(call in_mode,release,$(SERVERS)) ## every framework's column that runs on a CPU, one image at a time, in 45 minutes; SOURCES=DIR: a mirror of their code; ONLY=ERE: some
	@SOURCES="$(SOURCES)" ONLY="$(ONLY)" TEST_LIMIT_S=2700 B=build/release tests/tap.sh tests/cluster/columns.sh
test-dress: $(addprefix build/release/,$(PROGRAMS)) $(call in_mode,release,$(SERVERS)) ## the published frameworks' own scripts up to their first call of a device; SOURCES=DIR: a mirror of their code; ONLY=ERE: some
	@TIER=all SOURCES="$(SOURCES)" ONLY="$(ONLY)" TEST_LIMIT_S=3600 B=build/release tests/tap.sh $(DRESS)
# One room (ROOM=judge): its unit tests, and the scripts that name it in their third line; ROOM=prep and ROOM=workloads, too. Without ROOM the unit tests of
# all, but for whole networks and the emulator, and the golden.
CHECKED  := $(filter-out $(if $(ROOM),,$(WHOLE)),$(if $(ROOM),$(filter $(addprefix $(B)/unit/,$(UNITS_$(ROOM)) $(OWN_UNITS_$(ROOM))),$(UNIT)),$(UNIT)))
SCRIPTS_OF_ROOM := $(if $(ROOM),$(shell grep -lx '# Room: $(ROOM)' tests/integration/test_*.sh tests/e2e/test_*.sh tests/cluster/test_*.sh))
ifneq ($(and $(ROOM),$(filter check,$(MAKECMDGOALS))),)
$(if $(CHECKED)$(SCRIPTS_OF_ROOM),,$(error ROOM=$(ROOM): expected one of $(ROOMS) node prep workloads))
endif
check: $(CHECKED) $(if $(ROOM),$(if $(SCRIPTS_OF_ROOM),all $(SERVERS) $(B)/write_schemas),$(B)/reperf $(B)/reperf-core $(SERVERS)) ## unit tests of all rooms and the golden, in two minutes; ROOM=judge: that room's tests, in seconds
	@$(TAP) $(CHECKED) $(if $(ROOM),$(SCRIPTS_OF_ROOM),tests/golden/golden.sh)
schemas: $(B)/write_schemas ## writes the schemas of manifests/schema from the documents' tables (orchestrator/codec/json_table.h)
	@$< manifests/schema
golden: $(B)/reperf $(B)/reperf-core ## what reperf prints of all reports, logs and archives here, compared with what is kept (tests/golden)
	@B=$(B) tests/golden/golden.sh
golden-write: $(B)/reperf $(B)/reperf-core ## keeps today's words, and the facts that FACTS="NAME..." names (FACTS=all); the diff is to be read
	@B=$(B) FACTS="$(FACTS)" tests/golden/golden.sh --write
unit: $(UNIT) $(EMU_TEST)        ## unit tests of MODE
	@$(TAP) $^
replay: $(REPLAY)                ## saved fuzz inputs of MODE
	@$(TAP) $^
integration: all $(SERVERS) $(EMU_RUN) $(PTX_RUN) $(PTX_LONG)      ## scripts against the built programs of MODE
	@$(TAP) $(INTEGRATION)
e2e: all                         ## whole ways through the program, browser included
	@$(TAP) $(E2E)
cluster: all                     ## scripts on a real cluster of four nodes made here (needs root)
	@$(TAP) $(CLUSTER)
cluster-up:                      ## four nodes with sshd and docker, registry, data and git server at 10.11.0.1 to 10.11.0.5; stays up
	@tests/cluster/up.sh
cluster-down:                    ## take them down, and what dead clusters left
	@tests/cluster/down.sh
GPU_TEST := $(patsubst tests/cuda/%.c,$(B)/gpu/%,$(sort $(wildcard tests/cuda/test_*.c)))
gpu-programs: $(B)/reperf-train $(GPU_TEST) $(B)/gpu/plant ## what test-gpu runs: workloads/ and tests/cuda, by cc and nvcc alone
first-gpu:                       ## on a GPU for the first time: whether it builds, computes the right thing, how fast; ten minutes, one tar; RESULTS=FOLDER
	@tests/cuda/first_call.sh
test-gpu:                        ## all of the CUDA backend on this machine's GPU, in nine minutes; RESULTS=FOLDER
	@tests/cuda/gpu.sh
bench-gpu:                       ## our steps, PyTorch's and JAX's in turns on this GPU; MODEL=, PRECISION=, BATCH=, RESULTS=FOLDER
	@tests/bench/gpu.sh
lint:                            ## every static check: layers, headers, format, clang-tidy, shellcheck, man page
	@$(TAP) $(LINT)
lint-baseline:                   ## what lint does not look at again because it has not changed since that was good: once whole, and then written down (tests/lint/baseline)
	@rm -f tests/lint/baseline; tests/lint/c_checks.sh --write && CUDA_HOME=/nowhere tests/lint/c_checks.sh --write
bench: $(addprefix build/release/,$(PROGRAMS)) $(call in_mode,release,$(SERVERS)) ## speed against the peers, as ratios, in one run
	@B=build/release tests/bench/run.sh
demo: all                        ## set up, build, audit the published reports, train, seal and verify
	@B=$(B) tests/e2e/demo.sh

# A header compiles alone: where base/base.h and then this header are what its own source includes first, the build shows it; each other is compiled in a
# file of its own.
HDRS_FIRST = $(shell awk 'FNR == 1 { n = 0 } n >= 2 { nextfile } /^.include / { if ($$2 != "\"base/base.h\"") { n = 2; split(FILENAME, at, "/"); \
               own = substr(FILENAME, length(at[1]) + 2); sub(/c$$/, "h", own); if ($$2 == "\"" own "\"") print at[1] "/" own } }' $(filter %.c,$(BASE_SRC) $(ORCH_SRC) $(PREP_SRC) $(NODE_SRC) $(WL_SRC)) /dev/null)
hdr-check: $(if $(filter hdr-check,$(MAKECMDGOALS)),$(patsubst %,build/hdr/%.o,$(filter-out $(HDRS_FIRST),$(HDRS))))
build/hdr/%.o: % build/release/flags
	@mkdir -p $(@D); printf '#include "base/base.h"\n#include "%s"\n' "$(patsubst workloads/%,%,$(patsubst orchestrator/%,%,$<))" >$@.c
	@$(CCACHE) $(CC) $(BASE_CFLAGS) $(WL_CFLAGS) $(PREP_CFLAGS) -O0 -MMD -MP -MT $@ -c $@.c -o $@
-include $(shell find build/hdr -name '*.d' 2>/dev/null)
format:                          ## lay out all C by .clang-format
	@clang-format -i $(sort $(ALL_C) $(HDRS) $(wildcard tests/*/*.h workloads/*/*.cu workloads/*/*.cuh tests/*/*.cpp))

fuzz: $(FUZZ_BIN)                ## libFuzzer, SECS seconds a target
	@SECS=$(SECS) tests/fuzz/run.sh
FUZZ_CFLAGS := -std=gnu17 -D_GNU_SOURCE -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -ffile-prefix-map="$(CURDIR)=." -Iorchestrator -Iworkloads -I. $(PREP_CFLAGS)
FUZZ_LIB    := $(BASE_SRC) $(ORCH_SRC) $(PREP_SRC) \
               $(WL_DATA)
build/fuzz/obj/%.c.o: %.c
	@mkdir -p $(@D)
	@echo "CC fuzz $<"; $(CCACHE) $(CLANG) $(FUZZ_CFLAGS) -fsanitize=fuzzer-no-link -MMD -MP -c $< -o $@
build/fuzz/lib.a: $(patsubst %,build/fuzz/obj/%.o,$(FUZZ_LIB))
	@rm -f $@; ar rcsD $@ $^
build/fuzz/fuzz_%: build/fuzz/obj/tests/fuzz/fuzz_%.c.o build/fuzz/lib.a
	@$(CLANG) -fsanitize=fuzzer,address,undefined $^ $(ORCH_LIBS) $(PREP_LIBS) -o $@
-include $(shell find build/fuzz -name '*.d' 2>/dev/null)

# --- the rest ---------------------------------------------------------------------------------------
doctor:                          ## show what is installed and what would be built
	@for p in $(DEPS_TEST); do dpkg-query -W -f='ok      $${Package} $${Version}\n' $$p 2>/dev/null || echo "MISSING $$p"; done
	@echo "CUDA    $(if $(HAVE_CUDA),built in: $(CUDA_HOME) for sm $(CUDA_ARCHS); headers of cuDNN in $(CUDNN_INC); of cuBLASLt in $(CUBLAS_INC); $(if $(HAVE_NCCL),NCCL's in $(NCCL_INC),no nccl.h: one GPU only),not built: $(if $(wildcard $(CUDA_HOME)/bin/nvcc),there is no $(notdir $(CUDA_LACKS)): name the folder with CUDNN_INC=... or CUBLAS_INC=...,no toolkit at CUDA_HOME=$(CUDA_HOME)))"
	@echo "oneDNN  $(if $(HAVE_DNNL),built in,not built: libdnnl-dev is missing)"
repro-check:                     ## build twice in two folders and compare the programs byte for byte
	@tests/repro_check.sh
INSTALL_TO := $(DESTDIR)$(PREFIX)
install: all                     ## into $(DESTDIR)$(PREFIX): programs, man page, completion, manifests
	install -d "$(INSTALL_TO)/bin" "$(INSTALL_TO)/share/man/man1" "$(INSTALL_TO)/share/reperf/logs" "$(INSTALL_TO)/share/reperf/workloads" \
	  "$(INSTALL_TO)/share/bash-completion/completions"
	install -m755 $(addprefix $(B)/,$(PROGRAMS)) "$(INSTALL_TO)/bin/"
	install -m644 orchestrator/man/reperf.1 orchestrator/man/reperf-pack.1 "$(INSTALL_TO)/share/man/man1/"
	$(B)/reperf completion bash > "$(INSTALL_TO)/share/bash-completion/completions/reperf"
	cp -R manifests images datasets "$(INSTALL_TO)/share/reperf/"
	cp -R logs/published "$(INSTALL_TO)/share/reperf/logs/"
	cp -R workloads/competitors "$(INSTALL_TO)/share/reperf/workloads/"
uninstall:                       ## remove what install installed
	rm -f $(foreach program,$(PROGRAMS),"$(INSTALL_TO)/bin/$(program)") "$(INSTALL_TO)/share/man/man1/reperf.1" "$(INSTALL_TO)/share/man/man1/reperf-pack.1" \
	  "$(INSTALL_TO)/share/bash-completion/completions/reperf"
	rm -rf "$(INSTALL_TO)/share/reperf"
# Debian's package of the installed tree, byte for byte the same for the same commit. Its dependencies are read from the programs.
VERSION   := $(shell sed -n 's/^.define REPERF_VERSION *"\(.*\)"/\1/p' orchestrator/base/base.h)
DEB_ARCH   = $(shell dpkg --print-architecture)
DEB_DIR   ?= build
DEB_LEVEL ?= 6
DEB_EPOCH  = $(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct 2>/dev/null),0)
deb: all                         ## Debian package into $(DEB_DIR): apt install ./reperf_*.deb, then reperf
	@rm -rf "$(DEB_DIR)/deb" && mkdir -p "$(DEB_DIR)/deb/DEBIAN" "$(DEB_DIR)/deb/usr/share/doc/reperf"
	@$(MAKE) -s --no-print-directory MODE=$(MODE) install DESTDIR="$(abspath $(DEB_DIR))/deb" PREFIX=/usr >/dev/null
	@cd "$(DEB_DIR)/deb" && strip --strip-unneeded $(addprefix usr/bin/,$(PROGRAMS)) && gzip -9n usr/share/man/man1/*.1
	@cp LICENSE "$(DEB_DIR)/deb/usr/share/doc/reperf/copyright"
	@tests/deb_control.sh "$(DEB_DIR)/deb" $(VERSION) $(DEB_ARCH) >"$(DEB_DIR)/deb/DEBIAN/control.new" && mv "$(DEB_DIR)/deb/DEBIAN/control.new" "$(DEB_DIR)/deb/DEBIAN/control"
	@chmod -R u=rwX,go=rX "$(DEB_DIR)/deb" && find "$(DEB_DIR)/deb" -exec touch -hd @$(DEB_EPOCH) {} +
	@SOURCE_DATE_EPOCH=$(DEB_EPOCH) dpkg-deb --root-owner-group -Zxz -z$(DEB_LEVEL) --build "$(DEB_DIR)/deb" "$(DEB_DIR)/reperf_$(VERSION)_$(DEB_ARCH).deb" >/dev/null
	@rm -rf "$(DEB_DIR)/deb" && echo "$(DEB_DIR)/reperf_$(VERSION)_$(DEB_ARCH).deb"
dist:                            ## source archive of HEAD into build/
	@mkdir -p build; git archive --format=tar --prefix=reperf/ HEAD | gzip -n > build/reperf.tar.gz && echo build/reperf.tar.gz
clean:                           ## remove build/
	rm -rf build
help:                            ## this list
	@sed -n 's/^\([a-z0-9-]*\):[^#]*## \(.*\)/\1\t\2/p' Makefile | expand -t 14
