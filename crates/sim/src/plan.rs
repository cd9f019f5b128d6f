//! The decisions of a seed before anything happens: the settings of device and server, and the failures.

use crate::disk::{NameRule, Rules};
use crate::mutant::Mutant;
use crate::random::Random;
use omnibus_commit::{CommitProtocol, CommitSettings};
use omnibus_format::{Checksum, Dialect};
use omnibus_log::{Disk, FlushMethod, LogConfig};
use std::sync::atomic::{AtomicBool, AtomicU64};

/// The server_id of every server of a history.
pub(crate) const SERVER_ID: u32 = 7;

/// The settings that stay the same through all lives of a history.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub(crate) rules: Rules,
    pub(crate) dialect: Dialect,
    /// There are tables, and sessions with XA branches.
    pub(crate) tables: bool,
    /// There are two engines, and transactions that span them.
    pub(crate) two: bool,
    /// The log is encrypted, in most of the lives.
    pub(crate) encrypted: bool,
}

impl Frame {
    pub(crate) fn of(random: &mut Random, tables: bool, two: bool, encrypted: bool) -> Frame {
        Frame {
            tables,
            two,
            encrypted,
            rules: Rules {
                unit: random.pick(&[512, 4096]),
                names: random.pick(&[NameRule::Strict, NameRule::Journal]),
                capacity: u64::MAX,
                short_writes: random.one_in(4),
            },
            dialect: random.pick(&[Dialect::Mysql, Dialect::Mysql, Dialect::Mariadb]),
        }
    }
}

/// The settings of one life.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) protocol: CommitProtocol,
    pub(crate) sync_binlog: u64,
    pub(crate) checksum: Checksum,
    /// `CommitSettings::fast_sync_us`, microseconds: one write at a time below it, several above.
    fast: u64,
    in_flight: u64,
    method: FlushMethod,
    max_size: u64,
    preallocate: bool,
    extend_chunk: u64,
    cut_step: u64,
    /// The number of turns of other threads by which a sync takes longer than other requests.
    pub(crate) slow: u64,
    order_commits: bool,
    /// One in so many steps begins something new while something is under way.
    pub(crate) eager: u64,
    /// The maximum number of threads of sessions and administrators while one of them can continue.
    pub(crate) threads: usize,
    /// `binlog_large_commit_threshold`.
    pub(crate) large: u64,
    /// The kinds of actions of sessions and administrators in this life, a bit for each. Rare ones are left out where
    /// few other actions are done.
    kinds: u64,
}

impl Settings {
    pub(crate) fn of(random: &mut Random) -> Settings {
        let protocol = match random.below(2) {
            0 => CommitProtocol::OneSync,
            _ => random.pick(&CommitProtocol::ALL),
        };
        let sync_binlog = if protocol == CommitProtocol::None { 0 } else { random.pick(&[1, 1, 1, 0, 2, 3]) };
        let settings = Settings {
            protocol,
            sync_binlog,
            checksum: random.pick(&[Checksum::Crc32, Checksum::Crc32, Checksum::None]),
            fast: random.pick(&[0, 0, 0, 1500, u64::MAX]),
            in_flight: 2 + random.below(3),
            method: random.pick(&[FlushMethod::Fdatasync, FlushMethod::ODsync, FlushMethod::ODirectDsync]),
            max_size: random.pick(&[4 << 10, 16 << 10, 64 << 10, 1 << 20]),
            preallocate: random.one_in(6),
            extend_chunk: random.pick(&[0, 4 << 10, 32 << 10]),
            // Each step is three requests.
            cut_step: random.pick(&[2 << 10, 64 << 10, 64 << 10]),
            slow: random.pick(&[0, 0, 4, 12]),
            order_commits: !random.one_in(5),
            eager: random.pick(&[1, 2, 2, 4]),
            threads: random.pick(&[3, 6, 12, 24]),
            large: random.pick(&[0, 0, 2000, 8000]),
            kinds: if random.one_in(2) { u64::MAX } else { random.number() & random.number() },
        };
        if random.one_in(4) { settings.storm() } else { settings }
    }

    /// The settings under which tables are made.
    pub(crate) fn founding() -> Settings {
        Settings {
            protocol: CommitProtocol::OneSync,
            sync_binlog: 1,
            checksum: Checksum::Crc32,
            large: 0,
            preallocate: false,
            max_size: 1 << 20,
            ..Settings::of(&mut Random::new(0))
        }
    }

    /// Restricts the life to commits on a device with slow syncs, so that groups meet in flight all the time.
    fn storm(self) -> Settings {
        Settings {
            protocol: CommitProtocol::OneSync,
            fast: 0,
            max_size: 1 << 20,
            large: 0,
            slow: 4,
            kinds: 0,
            ..self
        }
    }

    /// Returns whether only commits are done.
    pub(crate) fn is_storm(&self) -> bool {
        self.kinds == 0
    }

    /// Returns whether new files of an encrypted log are encrypted: not in all lives, so that a log has both.
    pub(crate) fn encrypts(&self) -> bool {
        self.max_size != 64 << 10
    }

    /// Returns whether this kind of action is done, beside commits.
    pub(crate) fn does(&self, kind: u64) -> bool {
        self.kinds >> kind & 1 == 1
    }

    /// Returns whether an acknowledgement survives a power cut.
    pub(crate) fn promises(&self) -> bool {
        self.sync_binlog == 1 && self.protocol != CommitProtocol::None
    }

    pub(crate) fn log(&self, disk: Disk, mutant: Option<Mutant>) -> LogConfig {
        let config = LogConfig {
            disk,
            max_size: self.max_size,
            flush_method: self.method,
            preallocate: self.preallocate,
            extend_chunk: self.extend_chunk,
            extend_ahead: 16 << 10,
            cut_later: 2 << 10,
            cut_step: self.cut_step,
            ..LogConfig::default()
        };
        if let Some(mutant) = mutant {
            mutant.plant(&config);
        }
        config
    }

    pub(crate) fn commit(&self) -> CommitSettings {
        CommitSettings {
            sync_binlog: AtomicU64::new(self.sync_binlog),
            protocol: self.protocol,
            order_commits: AtomicBool::new(self.order_commits),
            fast_sync_us: AtomicU64::new(self.fast),
            max_in_flight: AtomicU64::new(self.in_flight),
            log_threads: 0,
            ..CommitSettings::default()
        }
    }
}
