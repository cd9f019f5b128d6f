//! Fuzz targets: one for each decoder of bytes that come from a peer, a client, a file or a flag.
//!
//! A target is a function of bytes that panics when something is not as it must be. It says more than that nothing panics
//! where it can: what was decoded and encoded again decodes to the same, text that was printed reads back, and memory stays
//! within a small multiple of the input (WIRE-1), which [`Target::run`] measures for all.
//!
//! Two callers: `make fuzz` runs a target under libFuzzer, which looks for inputs that reach new code (`src/bin/fuzz.rs`);
//! `tests/corpus.rs` runs every input that was kept in `testdata/fuzz/<target>` as an ordinary test. Nothing depends on
//! this crate.

mod memory;
mod sink;
mod targets;

pub use memory::peak_of;

/// The targets of one decoder, and their bounds.
#[derive(Clone, Copy)]
pub struct Target {
    /// Also the folder of its corpus.
    pub name: &'static str,
    /// The check of one input.
    check: fn(&[u8]),
    /// Bytes of memory that an input may take for each of its own, besides [`ALWAYS`].
    memory: usize,
}

/// Bytes that any input may take: tables made once, buffers of a usual size.
const ALWAYS: usize = 2 << 20;

impl Target {
    /// Runs one input.
    ///
    /// # Panics
    /// The input shows a mistake: that is what this is for.
    pub fn run(&self, input: &[u8]) {
        let peak = memory::peak_of(|| (self.check)(input));
        let limit = ALWAYS + self.memory * input.len();
        assert!(peak <= limit, "WIRE-1: {} bytes of input took {peak} bytes of memory", input.len());
    }
}

/// All of them.
pub const TARGETS: &[Target] = targets::ALL;

/// The target of this name.
#[must_use]
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
