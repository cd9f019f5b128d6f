# The one door. `make run` serves, `make test` tests, `make check` is all that must be true, `make bench` measures.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
OMNIBUS := target/release/omnibus

SIMULATE := target/debug/simulate

.PHONY: crash-images simulate mutants run build test check static bench bench-log bench-replication fuzz tools

# Builds and serves on 127.0.0.1:3306; the data directory is .run/data in this folder.
run: build
	mkdir -p .run
	exec $(OMNIBUS) serve --datadir .run/data --socket .run/omnibus.sock --bind-address 127.0.0.1 --port $${PORT:-3306}

build: target
	cargo build --release --locked --bin omnibus --bin change-stream

# Build output is shared between clones, so that a second clone builds fast. `mkdir target` first to opt out.
target:
	@shared="$${CARGO_TARGET_DIR:-$${XDG_CACHE_HOME:-$$HOME/.cache}/omnibus-target}"; mkdir -p "$$shared"; ln -sfn "$$shared" target

# The Debian package, in target/.
.PHONY: deb
deb: build
	scripts/deb $(OMNIBUS) target

tools:
	scripts/install-test-tools

# Installs what the tests need (Debian packages) and runs them all.
test: tools build
	cargo test --workspace --locked
	tests/run

# Power cuts: thousands of images of what one may leave, from recorded runs, until one fails. ARGS="--seed 7 --images 200 --sync 0"
crash-images: tools build
	for turn in $$(seq $${CRASH_RUNS:-20}); do tests/crash/images.py --images 200 --seconds 6 $(ARGS); done

# Format, lints, documentation, structure.
static: target
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --quiet
	scripts/tidy
	scripts/windows-check

check: static test

# The comparison with Debian's MariaDB; about an hour. ARGS="--seconds 2 --rounds 1" for a quick look.
bench: tools build
	bench/compare.py $(ARGS)
	bench/queries.py
	bench/bulk.py
	bench/options.py
	bench/replication.py $(ARGS)

# Of it, what replication costs and carries. About ten minutes.
bench-replication: tools build
	bench/replication.py $(ARGS)

# What log files cost on this machine: syncs, preallocation, rotations, writes in flight. About ten minutes, 2 GB of disk.
bench-log: tools build
	mkdir -p .run/bench
	$(OMNIBUS) bench sync --dir .run/bench
	$(OMNIBUS) bench preallocation --dir .run/bench
	bench/rotation.py --dir .run/bench
	bench/pipelining.py --dir .run/bench

# Coverage-guided fuzzing of every decoder, for FUZZ_SECONDS each (default 60). ARGS="json_text rows" for some; see scripts/fuzz.
fuzz: target
	scripts/fuzz $(ARGS)

# Simulated crashes until told to stop; says how many seeds a second, and what they found. SEED=.. runs that one again, 20 times
# (TIMES=..); FIRST=.. begins there, SEEDS=.. ends after so many; SIM_KEEP=dir keeps the files of a finding.
simulate: target
	cargo build --locked --quiet --package omnibus-sim --features scheduled
	$(SIMULATE)

# Histories of transactions at every level of isolation, checked; about ten minutes. ARGS="--seed N" repeats one.
.PHONY: histories
histories: tools build
	tests/e2e/isolation_histories.py --seconds 30 $(ARGS)

# Programs' own suites of tests, whole, here and on Debian's MariaDB; over an hour. ARGS="--only Django"; docs/programs.md has what fails.
.PHONY: test-programs
test-programs: build
	scripts/install-test-tools programs
	tests/e2e/programs.py --whole $(ARGS)

# Vitess on two shards, its workflows under load; builds it the first time. ARGS="--only reshard", --list for the names; docs/vitess.md.
.PHONY: vitess
vitess: tools build
	tests/vitess/run.py $(ARGS)

# Every deliberate breakage must be found by the simulation; some minutes.
mutants: target
	cargo test --locked --package omnibus-sim --features mutants --test mutants -- --nocapture
