# Octavo: `make help` lists what can be made. One file, no recursion into folders; variants lie side by side in build/.
#
#   V=release (default) | debug | asan (address + undefined) | tsan (thread) | fuzz (clang, libFuzzer)
#
# Sources are found, never listed: a new .c under server/, protocol/, storage/ or index/ is compiled into liboctavo.a; a new
# tests/unit/**/test_*.c is a unit test program of its own (its main is TEST_MAIN of tests/lib/test.h), a new
# tests/crash/crash_*.c, tests/sim/sim_*.c or tests/fuzz/fuzz_*.c likewise. What several of them share is in tests/lib.
# A crash or sim program reads ROUNDS and SEED from the environment and ends with a line "suite NAME: N passed, N failed";
# a fuzz target is an LLVMFuzzerTestOneInput in fuzz_NAME.c with seeds in tests/fuzz/corpus/NAME/.

V ?= release
B := build/$(V)
MAKEFLAGS += --no-builtin-rules
.SUFFIXES:
.DEFAULT_GOAL := build

CC = $(if $(filter fuzz,$(V)),clang,gcc)
PKGS := libuv libbson-1.0 libpcre2-8 snappy liblz4 libzstd zlib libxxhash yaml-0.1 libsystemd
PKG_CFLAGS := $(shell pkg-config --cflags $(PKGS))
# mbedtls 2.28 comes without pkg-config files; the Intel decimal library always does.
LIBS := $(shell pkg-config --libs $(PKGS)) $(shell pkg-config --libs mbedtls mbedx509 mbedcrypto 2>/dev/null || \
        echo -lmbedtls -lmbedx509 -lmbedcrypto) -l:libbidgcc000.a -lm -pthread
CHECK_LIBS := $(shell pkg-config --libs check)

SANITIZE := -fno-omit-frame-pointer -fno-sanitize-recover=all
CFLAGS_release := -O2
CFLAGS_debug := -O0 -DOV_DEBUG
CFLAGS_asan := -O1 -DOV_DEBUG -fsanitize=address,undefined $(SANITIZE)
CFLAGS_tsan := -O1 -DOV_DEBUG -fsanitize=thread -Wno-tsan $(SANITIZE)
CFLAGS_fuzz := -O1 -DOV_DEBUG -fsanitize=fuzzer-no-link,address,undefined $(SANITIZE)
ifeq ($(CFLAGS_$(V)),)
$(error V=$(V) is no variant: release, debug, asan, tsan or fuzz)
endif

WARN := -Werror -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wno-unused-parameter
ALL_CFLAGS = -std=gnu11 -D_GNU_SOURCE -g $(WARN) -fno-strict-aliasing -fstack-protector-strong -MMD -MP -I. \
             $(PKG_CFLAGS) $(CFLAGS_$(V)) $(CFLAGS)
ALL_LDFLAGS = $(filter -fsanitize=%,$(CFLAGS_$(V))) -Wl,-z,relro,-z,now $(LDFLAGS)

SRC := $(shell find $(wildcard server protocol storage index) -name '*.c' ! -path server/main.c)
TESTLIB_SRC := $(wildcard tests/lib/*.c)
UNIT_SRC := $(shell find $(wildcard tests/unit) -name 'test_*.c')
CRASH_SRC := $(wildcard tests/crash/crash_*.c)
SIM_SRC := $(wildcard tests/sim/sim_*.c)
FUZZ_SRC := $(wildcard tests/fuzz/fuzz_*.c)
BENCH_SRC := $(wildcard tests/bench/*.c)

LIB := $(B)/liboctavo.a
TESTLIB := $(B)/libtest.a
OCTAVOD := $(if $(wildcard server/main.c),$(B)/octavod)
UNIT := $(UNIT_SRC:%.c=$(B)/%)
CRASH := $(CRASH_SRC:%.c=$(B)/%)
SIM := $(SIM_SRC:%.c=$(B)/%)
FUZZ := $(FUZZ_SRC:%.c=$(B)/%)
BENCH := $(BENCH_SRC:%.c=$(B)/%)
obj = $(patsubst %.c,$(B)/%.o,$(1))
ALL_SRC := $(SRC) $(wildcard server/main.c) $(TESTLIB_SRC) $(UNIT_SRC) $(CRASH_SRC) $(SIM_SRC) $(FUZZ_SRC) $(BENCH_SRC) tests/fuzz/replay.c

FORMAT_SRC = $(shell find $(wildcard server protocol storage index tests) -name '*.[ch]')
LINT_SRC = $(SRC) $(wildcard server/main.c)
ROUNDS ?= 5
KILLS ?= 200
SEED ?=
MINUTES ?= 1
ONLY ?=
PYTEST ?=
PREFIX ?= /usr/local
SYSCONFDIR ?= $(if $(filter /usr,$(PREFIX)),/etc,$(PREFIX)/etc)

# Seconds for one test program, seconds for one test in it: sanitizers are slow.
UNIT_LIMIT = $(if $(filter asan tsan,$(V)),300,120)
TEST_LIMIT = $(if $(filter asan tsan,$(V)),120,30)
export ASAN_OPTIONS ?= detect_stack_use_after_return=1
export UBSAN_OPTIONS ?= print_stacktrace=1
export TSAN_OPTIONS ?= second_deadlock_stack=1

.PHONY: help build bench tests unit integration asan tsan crash sim drivers conformance scoreboard fuzz fuzz-programs fuzz-replay layers lint format format-check \
        install uninstall run check setup clean

help: ## this list
	@sed -n 's/^\([a-z -]*\):.*## \(.*\)/\1|\2/p' Makefile | awk -F'|' '{printf "  %-14s %s\n", $$1, $$2}'

build: $(LIB) $(OCTAVOD) ## the daemon, build/$(V)/octavod

tests: build $(UNIT) $(CRASH) $(SIM) ## all test programs, without running them

unit: build $(UNIT) ## unit tests
	@CK_DEFAULT_TIMEOUT=$(TEST_LIMIT) scripts/run-suites unit $(UNIT_LIMIT) $(B)/ $(UNIT)

integration: build ## the live daemon over the wire (pytest)
	@OCTAVOD=$(CURDIR)/$(B)/octavod scripts/suites/30-integration $(PYTEST)

asan tsan: ## unit and integration tests under address + undefined, or thread sanitizer
	@$(MAKE) V=$@ unit integration

crash: build $(CRASH) ## power cuts at every write, SIGKILL under load; SEED=n repeats one run, ROUNDS=n and KILLS=n bound it
	@scripts/setup-tests
	@OCTAVOD=$(CURDIR)/$(B)/octavod ROUNDS=$(ROUNDS) KILLS=$(KILLS) SEED=$(SEED) scripts/run-suites crash 3600 $(B)/ $(CRASH) tests/crash/kill_daemon

sim: build $(SIM) ## random operations against an in-memory model; SEED=n, ROUNDS=n
	@ROUNDS=$(ROUNDS) SEED=$(SEED) scripts/run-suites sim 1800 $(B)/ $(SIM)

bench: build $(BENCH) ## micro benchmarks of the storage engine, compiled only: run build/release/tests/bench/NAME

drivers: build ## real drivers and the shell against the live daemon
	@OCTAVOD=$(CURDIR)/$(B)/octavod scripts/suites/60-drivers $(PYTEST)

conformance: build ## the drivers' own test cases, minutes: tests/conformance.md; AREA="crud gridfs" for some
	@scripts/conformance $(CURDIR)/$(B)/octavod $(AREA)

scoreboard: build ## documentdb/functional-tests, long: tests/conformance.md; SUITE=checkout, AREA="core/indexes …" for some folders
	@scripts/scoreboard $(CURDIR)/$(B)/octavod "$(SUITE)" $(AREA)

fuzz: ## libFuzzer on every parser, MINUTES=1 each; ONLY=name for one
	@$(MAKE) -s V=fuzz fuzz-programs
	@scripts/fuzz build/fuzz $(MINUTES) $(ONLY)

fuzz-programs: $(FUZZ)

fuzz-replay: $(FUZZ) ## every fuzz target over its corpus, without libFuzzer
	@scripts/run-suites fuzz-replay 120 $(B)/ $(FUZZ)

layers: ## who includes whom, against scripts/layers.txt
	@scripts/check-layers scripts/layers.txt $$(find $(wildcard server protocol storage index) -name '*.[ch]')

lint: ## clang-tidy and cppcheck
	@scripts/lint "$(LINT_SRC)" -std=gnu11 -D_GNU_SOURCE -I. $(PKG_CFLAGS)

format: ## lays out all C files by .clang-format
	@clang-format -i $(FORMAT_SRC)

format-check: ## names the C files that `make format` would change
	@clang-format --dry-run -Werror $(FORMAT_SRC)

run: ## installs what is missing, builds, starts octavod in the foreground with its data in ./data
	@scripts/setup
	@$(MAKE) -s build
	@mkdir -p data
	exec $(B)/octavod --dbpath data $(ARGS)

check: ## everything that must hold before a change goes in
	@scripts/check

setup: ## the packages that building needs
	@scripts/setup

install: build ## to $(DESTDIR)$(PREFIX); PREFIX=/usr/local
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(SYSCONFDIR) $(DESTDIR)$(PREFIX)/lib/systemd/system
	install -m 755 $(B)/octavod $(DESTDIR)$(PREFIX)/bin/octavod
	for f in $(wildcard conf/octavod.conf); do [ -e $(DESTDIR)$(SYSCONFDIR)/octavod.conf ] || \
	    install -m 644 $$f $(DESTDIR)$(SYSCONFDIR)/octavod.conf; done
	for f in $(wildcard conf/octavod.service); do sed 's|/usr/bin/octavod|$(PREFIX)/bin/octavod|g' $$f > \
	    $(DESTDIR)$(PREFIX)/lib/systemd/system/octavod.service; done

uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/octavod $(DESTDIR)$(PREFIX)/lib/systemd/system/octavod.service

# --- compiling and linking

# Changes only when the flags do, and then everything is compiled anew.
$(B)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) $(LIBS)' | cmp -s - $@ || echo '$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) $(LIBS)' > $@
FORCE:
.PHONY: FORCE

$(B)/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -c -o $@ $<

# Made anew each time, so that a deleted source leaves no object behind; the list of members is a dependency for the same reason.
$(B)/members: FORCE
	@mkdir -p $(@D)
	@echo '$(SRC) / $(TESTLIB_SRC)' | cmp -s - $@ || echo '$(SRC) / $(TESTLIB_SRC)' > $@
$(LIB): $(call obj,$(SRC)) $(B)/members
	@rm -f $@
	ar rcsD $@ $(call obj,$(SRC))
$(TESTLIB): $(call obj,$(TESTLIB_SRC)) $(B)/members
	@rm -f $@
	ar rcsD $@ $(call obj,$(TESTLIB_SRC))

$(B)/octavod: $(B)/server/main.o $(LIB)
	$(CC) $(ALL_LDFLAGS) -o $@ $< $(LIB) $(LIBS)

$(UNIT) $(CRASH) $(SIM) $(BENCH): $(B)/%: $(B)/%.o $(TESTLIB) $(LIB)
	$(CC) $(ALL_LDFLAGS) -o $@ $< $(TESTLIB) $(LIB) $(CHECK_LIBS) $(LIBS)

# With V=fuzz the fuzzer's own main; otherwise one that runs the files it is given.
$(FUZZ): $(B)/%: $(B)/%.o $(if $(filter fuzz,$(V)),,$(B)/tests/fuzz/replay.o) $(TESTLIB) $(LIB)
	$(CC) $(ALL_LDFLAGS) $(if $(filter fuzz,$(V)),-fsanitize=fuzzer) -o $@ $(filter %.o,$^) $(TESTLIB) $(LIB) $(LIBS)

.SECONDARY:
-include $(patsubst %.c,$(B)/%.d,$(ALL_SRC))

clean: ## removes build/
	rm -rf build
