# The one door. `make run` serves, `make test` is the gate, `make check` is all that must be true, `make hunt` looks for more, `make bench` measures.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
OMNIBUS := target/release/omnibus

SIMULATE := target/debug/simulate
EVERYTHING := omnibus-cli/archive,omnibus-cli/stream

.PHONY: simulate mutants run build all test unit-tests test-all hunt check static bench bench-log bench-replication bench-scale fuzz tools

# Builds and serves on 127.0.0.1:3306; the data directory is .run/data in this folder.
run: build
	mkdir -p .run
	exec $(OMNIBUS) serve --datadir .run/data --socket .run/omnibus.sock --bind-address 127.0.0.1 --port $${PORT:-3306}

build: target
	cargo build --release --locked --bin omnibus --bin change-stream

# With `omnibus archive` and `omnibus stream`, whose libraries a server does not need; what packages have.
all: target
	cargo build --release --locked --bin omnibus --bin change-stream --features $(EVERYTHING)

# Build output is shared between clones, so that a second clone builds fast. `mkdir target` first to opt out.
target:
	@shared="$${CARGO_TARGET_DIR:-$${XDG_CACHE_HOME:-$$HOME/.cache}/omnibus-target}"; mkdir -p "$$shared"; ln -sfn "$$shared" target

# What packages have: link-time optimisation, and guided by a short run of sysbench where llvm-profdata fits the compiler. Line tables are beside it.
.PHONY: dist symbols
dist: target
	scripts/dist target/dist

# Takes the line tables out of PROGRAM, which becomes a third as large; PROGRAM.debug has them.
symbols:
	scripts/symbols $${PROGRAM:-$(OMNIBUS)}

# The Debian package, in target/: of what `make dist` makes, or of another PROGRAM.
.PHONY: deb
deb: $(if $(PROGRAM),,dist)
	scripts/deb $${PROGRAM:-target/dist/omnibus} target

tools:
	scripts/install-test-tools

# The gate: what a change most likely breaks, with fixed seeds; ten minutes when built. Installs what it needs (Debian packages).
test: tools build unit-tests
	tests/run

unit-tests: target
	PROPTEST_RNG_SEED=$$(sed -n 's/^proptest *//p' tests/seeds.txt) cargo test --workspace --locked

# The gate and everything else: every peer, client, program, broker and browser, long kills, large data. Half an hour.
test-all: all
	scripts/install-test-tools all
	SIM_SEEDS=70 $(MAKE) unit-tests
	tests/run all

# What the tests that draw lots find with fresh seeds, in MINUTES (default 60): a folder for each finding in .run/hunt, with the command that
# repeats it. ARGS="images kill9" for some of them, --list for all.
hunt: tools build
	tests/hunt --minutes $${MINUTES:-60} $(ARGS)

# Format, lints, documentation, structure, licences.
static: target
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked --features $(EVERYTHING) -- -D warnings
	cargo clippy --package omnibus-cli --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --quiet
	scripts/tidy
	scripts/dependencies
	scripts/windows-check

check: static test-all

# The comparison with Debian's MariaDB; about an hour. ARGS="--seconds 2 --rounds 1" for a quick look.
bench: tools build
	bench/compare.py $(ARGS)
	bench/queries.py
	bench/bulk.py
	bench/options.py
	bench/replication.py $(ARGS)

# Commits as rows, sizes, tables, indexes and connections grow, and over an hour of writing: a page of plots in docs/use. Some two hours and a half.
bench-scale: tools build
	bench/scale.py $(ARGS)

# Of it, what replication costs and carries. About ten minutes.
bench-replication: tools build
	bench/replication.py $(ARGS)
	bench/dump_speed.py

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
	tests/e2e/commit/isolation_histories.py --seconds 30 $(ARGS)

# Programs' own suites of tests, whole, here and on Debian's MariaDB; over an hour. ARGS="--only Django"; docs/use/programs.md has what fails.
.PHONY: test-programs
test-programs: build
	scripts/install-test-tools programs
	tests/e2e/programs/programs.py --whole $(ARGS)

# Vitess on two shards, its workflows under load; builds it the first time. ARGS="--only reshard", --list for the names; docs/use/vitess.md.
.PHONY: vitess
vitess: tools build
	tests/vitess/run.py $(ARGS)

# The tests of the log and the disk as Windows programs, under Wine; docs/internals/building.md. Installs what it needs. ARGS="links" for some tests.
.PHONY: windows
windows: target
	scripts/windows-test $(ARGS)

# Every deliberate breakage must be found by the simulation; some minutes.
mutants: target
	cargo test --locked --package omnibus-sim --features mutants --test mutants -- --nocapture
