//! Several lives on one disk, one after the other: crash, recover, crash while recovering, continue.

use crate::disk::{SimDisk, Trouble};
use crate::engines::Kept;
use crate::life::{Backup, DATA, Life, check_backups};
use crate::mutant::Mutant;
use crate::names::row_text;
use crate::oracle::Oracle;
use crate::plan::{Frame, Settings};
use crate::random::Random;
use crate::schedule::Schedule;
use std::path::Path;

/// Lives of one history.
const LIVES: u64 = 5;
/// The number of alternative crashes at each life's end that are recovered from, judged, and thrown away.
const IMAGES: u64 = 2;
/// One in so many moments of a life is examined as if it had been the last; the second number is for moments at which
/// something was promised.
const MOMENTS: (u64, u64) = (40, 6);

/// A number mixed into the seed for additional choices, so that its other decisions stay the same.
const TABLES: u64 = 0x7461_626c_6573;
const ENGINES: u64 = 0x656e_6769_6e65;
const ENCRYPTED: u64 = 0x006b_6579_7269_6e67;

/// Something that must not be.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The seed that shows it.
    pub seed: u64,
    /// The number of the life in its history.
    pub life: u64,
    /// The finding.
    pub what: String,
    /// The settings, and the contents of the disk.
    pub context: String,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "seed {} (life {}): {}\n{}", self.seed, self.life, self.what, self.context)
    }
}

/// A summary of what was done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Report {
    /// Power cuts and kills.
    pub crashes: u64,
    /// Requests of the disk.
    pub steps: u64,
    /// Rows at the end of each life.
    pub rows: u64,
}

/// The end of a life.
struct End {
    disk: SimDisk,
    power_cut: bool,
}

struct History {
    random: Random,
    frame: Frame,
    kept: Kept,
    oracle: Oracle,
    backups: Vec<Backup>,
    next_id: u64,
    report: Report,
    mutant: Option<Mutant>,
}

/// Runs the history of a seed.
///
/// # Errors
/// The finding.
pub fn run(seed: u64, mutant: Option<Mutant>) -> Result<Report, Finding> {
    let mut random = Random::new(seed);
    let half = |choice: u64| Random::new(seed ^ choice).one_in(2);
    let frame = Frame::of(&mut random, half(TABLES), half(ENGINES), half(ENCRYPTED));
    let mut of_lives = random.fork();
    let disk = SimDisk::new(random.number(), frame.rules, Schedule::new());
    disk.set_lie(mutant.and_then(Mutant::lie));
    let mut history = History {
        random,
        frame,
        kept: Kept::default(),
        oracle: Oracle::default(),
        backups: Vec::new(),
        next_id: 1,
        report: Report::default(),
        mutant,
    };
    let mut end = End { disk, power_cut: true };
    if frame.tables {
        let found = |what| Finding { seed, life: 0, what, context: format!("{frame:?}") };
        end.disk = history.found(&end.disk).map_err(found)?;
    }
    for life in 0..LIVES {
        let settings = Settings::of(&mut of_lives);
        let before = end.disk.clone();
        let lived = std::panic::AssertUnwindSafe(|| history.live(&settings, end));
        let lived = std::panic::catch_unwind(lived).unwrap_or_else(|_| Err("it panicked".to_owned()));
        match lived {
            Ok(next) => end = next,
            Err(what) => {
                before.keep_files();
                let context = format!("{:?}\n{settings:?}\n{:?}", history.frame, before.listing());
                return Err(Finding { seed, life, what, context });
            }
        }
    }
    Ok(history.report)
}

impl History {
    /// Makes the tables: a life before the others, in which nothing goes wrong.
    fn found(&mut self, disk: &SimDisk) -> Result<SimDisk, String> {
        let settings = Settings::founding();
        let open = |disk: &SimDisk, frame: &Frame| {
            let schedule = Schedule::new();
            let disk = disk.crash_or_kill(false, &schedule);
            Life::open(&disk, &schedule, frame, settings, &self.kept, None).map(|opened| (disk, opened))
        };
        let (disk, (mut life, _)) = open(disk, &Frame { tables: false, ..self.frame })?;
        life.found()?;
        disk.die();
        life.bury()?;
        let (disk, (life, shown)) = open(&disk, &self.frame)?;
        self.oracle.founded(&shown);
        disk.die();
        life.bury()?;
        Ok(disk)
    }

    /// Examines the disk that would be left if the process on `of` ended here: recovers, judges, and throws it away.
    /// Some of these starts are cut off in their turn.
    fn image(&mut self, settings: &Settings, of: &SimDisk) -> Result<(), String> {
        let mut power_cut = !self.random.one_in(3);
        let mut more = self.random.pick(&[0, 0, 0, 1, 2]);
        let kept = self.kept.copy();
        let mut oracle = None;
        let mut schedule = Schedule::new();
        let mut disk = of.image(power_cut, &schedule);
        power_cut |= of.has_lost();
        loop {
            if more > 0 && self.random.one_in(2) {
                disk.plan(self.random.below(80), Trouble::Die);
            }
            match Life::open(&disk, &schedule, &self.frame, *settings, &kept, self.mutant) {
                Ok((life, shown)) => {
                    if !disk.is_dead() {
                        let oracle = oracle.get_or_insert_with(|| self.oracle.clone());
                        oracle.judge(&shown, power_cut).map_err(|reason| format!("{reason} (an image)"))?;
                        if more > 0 && self.random.one_in(2) {
                            life.checkpoint(&mut self.random);
                        }
                    }
                    self.bury(life, &disk)?;
                }
                Err(_) if disk.is_dead() => {}
                Err(reason) => {
                    let files = disk.listing();
                    return Err(format!("it does not start (an image, {more} to come): {reason}\n{files:?}"));
                }
            }
            schedule.retire();
            self.report.crashes += 1;
            self.report.steps += disk.steps();
            if more == 0 {
                return Ok(());
            }
            (more, power_cut) = (more - 1, true);
            schedule = Schedule::new();
            disk = disk.crash_or_kill(true, &schedule);
        }
    }

    /// Starts on a device that has lost a transaction: the start must be refused, unless the loss looks like a torn
    /// tail.
    fn damaged_image(&mut self, settings: &Settings, before: &End) -> Result<(), String> {
        let Some(victim) = self.oracle.pick_promised(&mut self.random) else { return Ok(()) };
        let schedule = Schedule::new();
        let disk = before.disk.crash_or_kill(true, &schedule);
        if !disk.damage(Path::new(DATA), &row_text(victim)) {
            return Ok(());
        }
        let kept = self.kept.copy();
        let opened = Life::open(&disk, &schedule, &self.frame, *settings, &kept, self.mutant);
        let judged = match opened {
            Ok((life, shown)) => {
                self.oracle.judge_damaged(&shown)?;
                self.bury(life, &disk)
            }
            // Also where an engine has more than what is left of the log.
            Err(reason) if reason.contains("restore ") => Ok(()),
            Err(reason) => Err(format!("it does not start (a damaged device): {reason}")),
        };
        disk.die();
        schedule.retire();
        judged
    }

    /// Runs one life on the disk that the last one left.
    fn live(&mut self, settings: &Settings, mut before: End) -> Result<End, String> {
        if before.power_cut {
            for _ in 0..IMAGES {
                self.image(settings, &before.disk)?;
            }
            self.damaged_image(settings, &before)?;
        }
        let mut schedule = Schedule::new();
        let mut disk = before.disk.crash_or_kill(before.power_cut, &schedule);
        check_backups(&disk, &mut self.backups)?;
        // What a sync that failed has taken for clean is gone for good.
        before.power_cut |= before.disk.has_lost();
        let (mut life, shown) = loop {
            let dies = self.random.one_in(3);
            if dies {
                disk.plan(self.random.below(80), Trouble::Die);
            }
            match Life::open(&disk, &schedule, &self.frame, *settings, &self.kept, self.mutant) {
                Ok(opened) if !disk.is_dead() => break opened,
                Ok((life, _)) => self.bury(life, &disk)?,
                Err(_) if disk.is_dead() => {}
                Err(reason) => return Err(format!("it does not start: {reason}")),
            }
            self.report.crashes += 1;
            self.report.steps += disk.steps();
            before.power_cut |= true;
            schedule = Schedule::new();
            disk = disk.crash_or_kill(true, &schedule);
        };
        self.oracle.judge(&shown, before.power_cut)?;
        disk.forget_plans();
        schedule.slow_down(settings.slow);
        if settings.is_storm() || self.random.one_in(2) {
            schedule.stop_at_locks(self.random.fork());
        }
        let trouble = self.plan_trouble(&disk);
        let budget = 20 + self.random.below(800);
        for _ in 0..budget {
            let before = self.oracle.promised();
            life.act(&mut self.random, &mut self.oracle, &mut self.next_id, &mut self.backups);
            life.tell(&mut self.oracle)?;
            let moments = if self.oracle.promised() > before { MOMENTS.1 } else { MOMENTS.0 };
            if self.random.one_in(moments) {
                self.image(settings, &disk)?;
            }
            if disk.is_dead() || life.has_failed() && self.random.one_in(10) {
                break;
            }
        }
        if trouble.is_none() && self.random.one_in(3) {
            life.come_to_rest(&mut self.random, &mut self.oracle)?;
        }
        self.report.rows += life.rows() as u64;
        self.report.steps += disk.steps();
        self.report.crashes += 1;
        check_backups(&disk, &mut self.backups)?;
        // After a failed sync nobody knows what a kill leaves in the cache; the next start has to find out.
        let power_cut = !self.random.one_in(if disk.has_lost() { 2 } else { 4 });
        let after = End { disk: disk.clone(), power_cut };
        disk.die();
        self.bury(life, &disk)?;
        Ok(after)
    }

    fn bury(&mut self, life: Life, disk: &SimDisk) -> Result<(), String> {
        disk.die();
        life.bury()
    }

    fn plan_trouble(&mut self, disk: &SimDisk) -> Option<Trouble> {
        let after = self.random.below(1000);
        let trouble = match self.random.below(20) {
            0..=6 => Trouble::Die,
            7..=10 => Trouble::FailSync,
            11 | 12 => Trouble::FailWrite,
            13 => Trouble::Fill,
            _ => return None,
        };
        disk.plan(after, trouble);
        Some(trouble)
    }
}
