# SPDX-License-Identifier: Apache-2.0
# One Makefile, no recursion. `make help` lists the targets; config.mak (not tracked) overrides variables.
-include config.mak

MODE      ?= release
MODES     := debug release asan tsan cov
CC        := $(if $(filter default,$(origin CC)),gcc,$(CC))
CLANG     ?= clang
PREFIX    ?= /usr/local
DESTDIR   ?=
SECS      ?= 10
SHELL     := /bin/bash

# What the build, and what the tests beyond that, need from the distribution (Debian names).
DEPS_BUILD := gcc g++ make libc6-dev libcjson-dev libpcre2-dev libarchive-dev zlib1g-dev libssl-dev libzstd-dev libdnnl-dev libcurl4-openssl-dev \
              libjpeg62-turbo-dev libspng-dev libhdf5-dev zstd ca-certificates git
DEPS_TEST  := $(DEPS_BUILD) clang clang-tidy clang-format libclang-rt-14-dev zsh fish libomp-14-dev libcmocka-dev shellcheck mandoc \
              python3 python3-jsonschema python3-sarif-python-om python3-junitparser python3-prometheus-client python3-torch python3-numpy libxml2-utils chromium fonts-dejavu-core openssl curl \
              bash-completion util-linux procps strace nginx-light fcgiwrap docker-registry skopeo aria2 libarchive-tools docker.io podman apache2-utils time rhash

ifeq ($(filter $(MODE),$(MODES)),)
$(error MODE=$(MODE): expected one of $(MODES))
endif

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wformat=2 -Wvla -Wundef \
        -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wpointer-arith -Wcast-qual \
        -Wwrite-strings -Wswitch-enum -Wdouble-promotion -Wnull-dereference -Wdate-time
WERROR ?= -Werror
OPT.debug   := -O1 -g3
OPT.release := -O2 -g -D_FORTIFY_SOURCE=2 -fstack-protector-strong
OPT.asan    := -O1 -g3 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
OPT.tsan    := -O1 -g3 -fsanitize=thread
OPT.cov     := -O0 -g3 --coverage
HAVE_DNNL   := $(if $(wildcard /usr/include/dnnl.h /usr/include/oneapi/dnnl/dnnl.h),1)
BASE_CFLAGS := -std=gnu17 -D_GNU_SOURCE $(WARN) $(WERROR) -ffile-prefix-map="$(CURDIR)=." -Iorchestrator $(CFLAGS)
# The workloads' arithmetic keeps its order (no -ffast-math); gcc's OpenMP.
WL_CFLAGS   := -Iworkloads -fopenmp -O3 $(if $(HAVE_DNNL),-DREPERF_HAVE_DNNL=1)
ORCH_LIBS   := -Wl,--as-needed -lcurl -larchive -lz -lcrypto -lcjson -lpcre2-8 -lzstd -lm -lpthread
WL_LIBS     := -Wl,--as-needed -fopenmp $(if $(HAVE_DNNL),-ldnnl) -lm

# Data preparation (reperf-pack): JPEG, PNG and HDF5 are its own.
PREP_CFLAGS := -isystem /usr/include/hdf5/serial -Iworkloads
PREP_LIBS   := -Wl,--as-needed -L/usr/lib/$(shell $(CC) -print-multiarch)/hdf5/serial -lhdf5 -ljpeg -lspng

# --- what there is ------------------------------------------------------------------------------
BASE_SRC  := $(sort $(wildcard orchestrator/base/*.c))
PREP_MAIN := orchestrator/prep/main.c
PREP_SRC  := $(sort $(filter-out $(PREP_MAIN),$(wildcard orchestrator/prep/*.c)))
ORCH_SRC  := $(sort $(filter-out $(BASE_SRC) $(PREP_SRC) $(PREP_MAIN),$(wildcard orchestrator/*/*.c)))
WL_SRC    := $(sort $(filter-out workloads/train/main.c,$(wildcard workloads/*/*.c)))
SERVER_SRC := $(sort $(wildcard tests/servers/*.c))
UNIT_SRC  := $(sort $(wildcard tests/unit/test_*.c))
FUZZ_SRC  := $(sort $(wildcard tests/fuzz/fuzz_*.c))
HDRS      := $(sort $(wildcard orchestrator/*/*.h workloads/*/*.h))
ALL_C     := $(BASE_SRC) $(ORCH_SRC) $(PREP_SRC) $(wildcard $(PREP_MAIN)) orchestrator/main.c $(WL_SRC) $(wildcard workloads/train/main.c) $(UNIT_SRC) \
             $(sort $(wildcard tests/*/*.c))
SCRIPTS   := $(sort $(wildcard tests/*/*.sh tests/*.sh) .ci/run)
B         := build/$(MODE)
PROGRAMS  := reperf reperf-train $(if $(wildcard $(PREP_MAIN)),reperf-pack)

.PHONY: all deps demo test unit replay integration e2e lint layers hdr-check format format-check tidy fuzz bench \
        install uninstall dist clean help doctor repro-check FORCE
.DELETE_ON_ERROR:
.SECONDARY:
MAKEFLAGS += --no-builtin-rules

all: $(addprefix $(B)/,$(PROGRAMS))     ## build MODE=release (debug, asan, tsan, cov) into build/MODE/

# --- set-up: `demo`, `test` and `bench` install what is missing before anything is compiled -------
# An included makefile that make remakes first and then starts over, so that what it installed is seen.
DEPS_WANTED := $(if $(filter test bench fuzz lint,$(MAKECMDGOALS)),$(DEPS_TEST),$(if $(filter demo deps,$(MAKECMDGOALS)),$(DEPS_BUILD)))
ifneq ($(DEPS_WANTED),)
DEPS_STAMP := build/deps-$(firstword $(shell echo '$(DEPS_WANTED)' | cksum)).mk
include $(DEPS_STAMP)
$(DEPS_STAMP):
	@mkdir -p build; tests/deps.sh $(DEPS_WANTED) && touch $@
endif
deps:                            ## install what is missing for the build, by the distribution's client
	@echo "build dependencies are installed"

# --- rules, once for each mode --------------------------------------------------------------------
# A change of flags rebuilds: the stamp's content is the flags.
define MODE_RULES
build/$(1)/flags: FORCE
	@mkdir -p $$(@D); f='$$(CC) $$(BASE_CFLAGS) $$(OPT.$(1)) | $$(WL_CFLAGS)'; \
	[ "$$$$f" = "$$$$(cat $$@ 2>/dev/null)" ] || echo "$$$$f" > $$@
build/$(1)/%.c.o: %.c build/$(1)/flags
	@mkdir -p $$(@D)
	@echo "CC $(1) $$<"; $$(CC) $$(BASE_CFLAGS) $$(OPT.$(1)) $$(EXTRA) -MMD -MP -c $$< -o $$@
build/$(1)/workloads/%.c.o: EXTRA := $$(WL_CFLAGS)
build/$(1)/orchestrator/prep/%.c.o: EXTRA := -O3 $$(PREP_CFLAGS)
build/$(1)/tests/%.c.o: EXTRA := -Iworkloads -I.
build/$(1)/base.a: $(patsubst %,build/$(1)/%.o,$(BASE_SRC))
	@rm -f $$@; ar rcsD $$@ $$^
build/$(1)/orch.a: $(patsubst %,build/$(1)/%.o,$(ORCH_SRC))
	@rm -f $$@; ar rcsD $$@ $$^
build/$(1)/prep.a: $(patsubst %,build/$(1)/%.o,$(PREP_SRC))
	@rm -f $$@; ar rcsD $$@ $$^
build/$(1)/wl.a: $(patsubst %,build/$(1)/%.o,$(WL_SRC))
	@rm -f $$@; ar rcsD $$@ $$^
build/$(1)/reperf: build/$(1)/orchestrator/main.c.o build/$(1)/orch.a build/$(1)/base.a
	$$(CC) $$(OPT.$(1)) $$(LDFLAGS) $$^ $$(ORCH_LIBS) -o $$@
build/$(1)/reperf-train: build/$(1)/workloads/train/main.c.o build/$(1)/wl.a build/$(1)/base.a
	$$(CC) $$(OPT.$(1)) $$(LDFLAGS) $$^ $$(WL_LIBS) -o $$@
build/$(1)/reperf-pack: build/$(1)/$(PREP_MAIN).o build/$(1)/prep.a build/$(1)/orch.a build/$(1)/base.a
	$$(CC) $$(OPT.$(1)) $$(LDFLAGS) $$^ $$(ORCH_LIBS) $$(PREP_LIBS) -o $$@
build/$(1)/servers/%: build/$(1)/tests/servers/%.c.o build/$(1)/orch.a build/$(1)/base.a
	@mkdir -p $$(@D)
	@$$(CC) $$(OPT.$(1)) $$(LDFLAGS) $$^ $$(ORCH_LIBS) -o $$@
build/$(1)/unit/test_prep_%: build/$(1)/tests/unit/test_prep_%.c.o build/$(1)/prep.a build/$(1)/orch.a build/$(1)/wl.a build/$(1)/base.a
	@mkdir -p $$(@D)
	@$$(CC) $$(OPT.$(1)) $$(LDFLAGS) $$^ $$(ORCH_LIBS) $$(PREP_LIBS) $$(WL_LIBS) -lcmocka -o $$@
build/$(1)/unit/test_wl_%: build/$(1)/tests/unit/test_wl_%.c.o build/$(1)/wl.a build/$(1)/base.a
	@mkdir -p $$(@D)
	@$$(CC) $$(OPT.$(1)) $$(LDFLAGS) $$^ $$(WL_LIBS) -lcmocka -o $$@
build/$(1)/unit/%: build/$(1)/tests/unit/%.c.o build/$(1)/orch.a build/$(1)/base.a
	@mkdir -p $$(@D)
	@$$(CC) $$(OPT.$(1)) $$(LDFLAGS) $$^ $$(ORCH_LIBS) -lcmocka -o $$@
build/$(1)/replay/%: build/$(1)/tests/fuzz/fuzz_%.c.o build/$(1)/tests/fuzz/replay.c.o build/$(1)/prep.a build/$(1)/orch.a build/$(1)/wl.a build/$(1)/base.a
	@mkdir -p $$(@D)
	@$$(CC) $$(OPT.$(1)) $$(LDFLAGS) $$^ $$(ORCH_LIBS) $$(PREP_LIBS) $$(WL_LIBS) -o $$@
-include $$(shell find build/$(1) -name '*.d' 2>/dev/null)
endef
$(foreach m,$(MODES),$(eval $(call MODE_RULES,$(m))))
FORCE:

# --- tests: every test program and script speaks TAP; tests/tap.sh runs them and counts ------------
UNIT     := $(patsubst tests/unit/%.c,$(B)/unit/%,$(UNIT_SRC))
SERVERS  := $(patsubst tests/servers/%.c,$(B)/servers/%,$(SERVER_SRC))
REPLAY   := $(patsubst tests/fuzz/fuzz_%.c,$(B)/replay/%,$(FUZZ_SRC))
INTEGRATION := $(sort $(wildcard tests/integration/test_*.sh))
E2E      := $(sort $(wildcard tests/e2e/test_*.sh))
LINT     := $(sort $(wildcard tests/lint/*.sh))
FUZZ_BIN := $(patsubst tests/fuzz/fuzz_%.c,build/fuzz/%,$(FUZZ_SRC))
in_mode   = $(patsubst $(B)/%,build/$(1)/%,$(2))
TAP      := B=$(B) tests/tap.sh

# The tests' own modes, whatever MODE is: debug for all, ASan + UBSan again for what parses and computes.
TEST_BIN := $(foreach m,debug asan,$(call in_mode,$(m),$(UNIT) $(REPLAY) $(SERVERS) $(addprefix $(B)/,$(PROGRAMS))))
test: $(TEST_BIN) $(addprefix build/release/,$(PROGRAMS)) ## all tests this machine can run; installs what they need
	@B=build/debug tests/tap.sh $(LINT) $(call in_mode,debug,$(UNIT) $(REPLAY)) $(call in_mode,asan,$(UNIT) $(REPLAY)) \
	  $(INTEGRATION) $(E2E)
unit: $(UNIT)                    ## unit tests of MODE
	@$(TAP) $^
replay: $(REPLAY)                ## saved fuzz inputs of MODE
	@$(TAP) $^
integration: all $(SERVERS)      ## scripts against the built programs of MODE
	@$(TAP) $(INTEGRATION)
e2e: all                         ## whole ways through the program, browser included
	@$(TAP) $(E2E)
lint:                            ## every check that runs nothing: layers, headers, format, clang-tidy, shellcheck, man page
	@$(TAP) $(LINT)
bench: $(addprefix build/release/,$(PROGRAMS)) $(call in_mode,release,$(SERVERS)) ## speed against the peers, as ratios, in one run
	@B=build/release tests/bench/run.sh
demo: all                        ## set up, build, audit the published reports, train, seal and verify
	@B=$(B) tests/e2e/demo.sh

hdr-check: $(patsubst %,build/debug/hdr/%.ok,$(HDRS))
build/debug/hdr/%.ok: % build/debug/flags
	@mkdir -p $(@D); printf '#include "base/base.h"\n#include "%s"\n' "$(patsubst workloads/%,%,$(patsubst orchestrator/%,%,$<))" | \
	$(CC) $(BASE_CFLAGS) $(WL_CFLAGS) $(PREP_CFLAGS) -fsyntax-only -xc - && touch $@
format:                          ## lay out all C by .clang-format
	@clang-format -i $(sort $(ALL_C) $(HDRS) $(wildcard tests/*/*.h))

fuzz: $(FUZZ_BIN)                ## libFuzzer, SECS seconds a target
	@for t in $^; do n=$${t##*/}; mkdir -p build/fuzz/new-$$n; \
	$$t -max_total_time=$(SECS) -rss_limit_mb=2048 -verbosity=0 -print_final_stats=1 build/fuzz/new-$$n tests/fuzz/corpus/$$n || exit 1; done
build/fuzz/%: tests/fuzz/fuzz_%.c $(BASE_SRC) $(ORCH_SRC) $(PREP_SRC) $(WL_SRC) $(HDRS)
	@mkdir -p $(@D)
	$(CLANG) -std=gnu17 -D_GNU_SOURCE -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -Iorchestrator -Iworkloads -I. $(PREP_CFLAGS) \
	$< $(BASE_SRC) $(ORCH_SRC) $(PREP_SRC) $(filter-out $(addprefix workloads/,backend_cpu/% graph/% models/% train/%),$(WL_SRC)) $(ORCH_LIBS) $(PREP_LIBS) -o $@

# --- the rest ---------------------------------------------------------------------------------------
doctor:                          ## say what is here and what would be built
	@for p in $(DEPS_TEST); do dpkg-query -W -f='ok      $${Package} $${Version}\n' $$p 2>/dev/null || echo "MISSING $$p"; done
	@echo "oneDNN  $(if $(HAVE_DNNL),built in,not built: libdnnl-dev is missing)"
repro-check:                     ## build twice in two folders and compare the programs byte for byte
	@tests/repro_check.sh
INSTALL_TO := $(DESTDIR)$(PREFIX)
install: all                     ## into $(DESTDIR)$(PREFIX): programs, man page, completion, manifests
	install -d "$(INSTALL_TO)/bin" "$(INSTALL_TO)/share/man/man1" "$(INSTALL_TO)/share/reperf/logs" \
	  "$(INSTALL_TO)/share/bash-completion/completions"
	install -m755 $(addprefix $(B)/,$(PROGRAMS)) "$(INSTALL_TO)/bin/"
	install -m644 orchestrator/man/reperf.1 orchestrator/man/reperf-pack.1 "$(INSTALL_TO)/share/man/man1/"
	$(B)/reperf completion bash > "$(INSTALL_TO)/share/bash-completion/completions/reperf"
	cp -R manifests images datasets "$(INSTALL_TO)/share/reperf/"
	cp -R logs/published "$(INSTALL_TO)/share/reperf/logs/"
uninstall:                       ## take away what install put there
	rm -f $(foreach program,$(PROGRAMS),"$(INSTALL_TO)/bin/$(program)") "$(INSTALL_TO)/share/man/man1/reperf.1" "$(INSTALL_TO)/share/man/man1/reperf-pack.1" \
	  "$(INSTALL_TO)/share/bash-completion/completions/reperf"
	rm -rf "$(INSTALL_TO)/share/reperf"
dist:                            ## source archive of HEAD into build/
	@mkdir -p build; git archive --format=tar --prefix=reperf/ HEAD | gzip -n > build/reperf.tar.gz && echo build/reperf.tar.gz
clean:                           ## remove build/
	rm -rf build
help:                            ## this list
	@sed -n 's/^\([a-z0-9-]*\):[^#]*## \(.*\)/\1\t\2/p' Makefile | expand -t 14
