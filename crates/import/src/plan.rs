//! Looks at both servers before anything is copied, and names what cannot be taken and what to do about it.

use crate::definitions::{Definitions, Kind};
use crate::error::ImportError;
use crate::progress::size;
use crate::selection::TableName;
use crate::session::{Family, Session};
use crate::state;
use crate::table::Table;
use crate::trial;
use crate::world::World;

/// A log that is kept for less than this may be gone before a large copy is through.
const SHORT_LOG_S: u64 = 86_400;
/// The number of names that a line lists.
const NAMED: usize = 8;

/// The result of looking.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    /// Properties of both sides.
    pub facts: Vec<String>,
    /// Things to know, or better to change.
    pub advice: Vec<String>,
    /// Things that the target does not take.
    pub refused: Vec<String>,
    /// The tables among that.
    pub refused_tables: Vec<TableName>,
    /// Reasons why the whole import is impossible.
    pub impossible: Vec<String>,
}

impl Plan {
    /// Prints everything.
    pub(crate) fn print(&self) {
        for line in &self.facts {
            println!("{line}");
        }
        for (head, lines) in
            [("note", &self.advice), ("not taken", &self.refused), ("impossible", &self.impossible)]
        {
            for line in lines {
                println!("{head}: {line}");
            }
        }
    }
}

/// Looks at everything; `fresh` if no import has been begun.
pub(crate) fn make(
    world: &World,
    all: &Definitions,
    tables: &[Table],
    fresh: bool,
) -> Result<Plan, ImportError> {
    let mut plan = Plan::default();
    let mut target = world.target.session()?;
    plan.servers(world);
    plan.log(world);
    if world.follows() {
        plan.server_ids(&mut world.source.session()?, &mut target)?;
    }
    plan.contents(world, all, tables);
    plan.engines(world, &mut world.source.session()?)?;
    if fresh {
        plan.names(&mut target, all)?;
        plan.channel(&mut target)?;
    }
    let refused = trial::try_tables(&mut target, all)?;
    for object in all.of(Kind::Table) {
        if refused.0.iter().any(|line| line.starts_with(&format!("{object}: "))) {
            plan.refused_tables.push(object.name.clone());
        }
    }
    plan.refused.extend(refused.0);
    Ok(plan)
}

impl Plan {
    fn servers(&mut self, world: &World) {
        let (source, target) = (&world.source, &world.target);
        self.facts.push(format!("source: {} at {}", source.version, source.address.place()));
        self.facts.push(format!("target: {} at {}", target.version, target.address.place()));
        let (major, minor) = source.numbers();
        let old = match source.family {
            Family::Mysql => (major, minor) < (5, 7),
            Family::Mariadb => (major, minor) < (10, 3),
        };
        if old {
            self.advice.push(
                "a source of this age is not tested: MySQL 5.7 to 9.7 and MariaDB 10.6 to 11.8 are".into(),
            );
        }
        if source.family != target.family {
            self.advice.push(format!(
                "the source is {}, the target was made with --dialect={}: GTIDs are given anew, and types and functions of the \
                 source's own may be refused. A data directory that is made with --dialect={} keeps them",
                if source.family == Family::Mysql { "MySQL" } else { "MariaDB" },
                if target.family == Family::Mysql { "mysql" } else { "mariadb" },
                if source.family == Family::Mysql { "mysql" } else { "mariadb" },
            ));
        }
        if world.facts.lower_case_names != "0" {
            self.advice.push(format!(
                "the source has lower_case_table_names={}, here names of tables are case-sensitive: statements must write them as \
                 SHOW TABLES does",
                world.facts.lower_case_names
            ));
        }
        if !world.facts.sees_all {
            self.advice.push(format!(
                "the source's account has no SELECT ON *.*: what it may not see is not copied ({})",
                world.facts.grants.first().map_or("", |grant| grant)
            ));
        }
    }

    fn log(&mut self, world: &World) {
        let facts = &world.facts;
        self.facts.push(format!(
            "source's log: {}, binlog_format {}, binlog_row_image {}, GTIDs {}",
            if facts.log_bin { "on" } else { "off" },
            facts.format,
            facts.row_image,
            if facts.gtids { "on" } else { "off" }
        ));
        if !world.follows() {
            return;
        }
        if !facts.log_bin {
            self.impossible.push(
                "the source has no binary log, so nothing can be followed: start it with log_bin and a server_id, or say --no-follow \
                 and stop writing for the time of the copy"
                    .into(),
            );
        }
        if facts.hides_applied {
            self.impossible.push(
                "the source is a replica, and its log does not have what it applies: start it with log_replica_updates                  (log_slave_updates), or copy from its source"
                    .into(),
            );
        }
        if facts.format != "ROW" {
            self.advice.push(format!(
                "binlog_format is {}: statements whose result depends on the server may change rows otherwise here. Better: \
                 SET GLOBAL binlog_format = ROW at the source, and new connections of its clients",
                facts.format
            ));
        }
        if facts.keeps_log_s != 0 && facts.keeps_log_s < SHORT_LOG_S {
            self.advice.push(format!(
                "the source keeps its log for {} seconds only: make that longer than the copy takes \
                 (binlog_expire_logs_seconds)",
                facts.keeps_log_s
            ));
        }
        if let Err(error) = world.reach() {
            self.impossible.push(error.to_string());
        }
    }

    /// Every server has 1 until it is told otherwise, and no replica follows a server with its own number.
    fn server_ids(&mut self, source: &mut Session, target: &mut Session) -> Result<(), ImportError> {
        const ASK: &str = "SELECT @@GLOBAL.server_id";
        let (from, to) = (source.value(ASK)?, target.value(ASK)?);
        if from == to {
            self.impossible.push(format!(
                "source and target have the same server_id, {from}: start the target with another one (--server-id), or SET GLOBAL \
                 server_id there"
            ));
        }
        Ok(())
    }

    fn contents(&mut self, world: &World, all: &Definitions, tables: &[Table]) {
        let bytes: u64 = tables.iter().map(|table| table.bytes).sum();
        let rows: u64 = tables.iter().map(|table| table.rows).sum();
        let count = |kind| all.of(kind).count();
        self.facts.push(format!(
            "{} databases, {} tables with about {rows} rows and {}, {} views, {} routines, {} triggers, {} events, {} sequences",
            all.databases.len(),
            tables.len(),
            size(bytes),
            count(Kind::View),
            count(Kind::Function) + count(Kind::Procedure),
            count(Kind::Trigger),
            count(Kind::Event),
            count(Kind::Sequence)
        ));
        let names: Vec<String> = all.databases.iter().map(|(name, _)| name.clone()).collect();
        let missing = world.selection.missing(&names, &all.tables());
        if !missing.is_empty() {
            self.impossible
                .push(format!("the source has no {} that its account may see", missing.join(", ")));
        }
        let keyless: Vec<String> =
            tables.iter().filter(|table| !table.has_key).map(|table| table.name.to_string()).collect();
        if !keyless.is_empty() {
            self.advice.push(format!(
                "{} tables have no primary key: they are copied in one piece, and while the log is followed each change of them \
                 may read the whole table: {}",
                keyless.len(),
                few(&keyless)
            ));
        }
    }

    /// Tables whose engine has no snapshots are not of the snapshot's moment.
    fn engines(&mut self, world: &World, session: &mut Session) -> Result<(), ImportError> {
        let list = session.texts(
            "SELECT TABLE_SCHEMA, TABLE_NAME, ENGINE FROM information_schema.TABLES WHERE TABLE_TYPE = 'BASE TABLE' \
             AND ENGINE IS NOT NULL AND ENGINE NOT IN ('InnoDB', 'RocksDB', 'TokuDB', 'LSM', 'BTREE') ORDER BY 1, 2",
        )?;
        for [database, table, engine] in list.into_iter().map(crate::table::take) {
            let name = TableName { database, table };
            if world.selection.has(&name) {
                self.refused.push(format!(
                    "table {name}: ENGINE={engine} has no snapshots, so that rows that change during the copy would be wrong. At \
                     the source: ALTER TABLE {} ENGINE=InnoDB; or --exclude {name}",
                    name.quoted()
                ));
                self.refused_tables.push(name);
            }
        }
        Ok(())
    }

    /// Looks for objects of the same names at the target, which would be overwritten.
    fn names(&mut self, target: &mut Session, all: &Definitions) -> Result<(), ImportError> {
        let mut there = Vec::new();
        for (database, _) in &all.databases {
            let list = target.texts(&format!(
                "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = {}",
                crate::quote::text(database)
            ))?;
            let names: Vec<String> = list.into_iter().flatten().collect();
            let taken = |object: &&crate::definitions::Object| {
                object.name.database == *database
                    && names.contains(&object.name.table)
                    && object.kind != Kind::Trigger
            };
            there.extend(all.objects.iter().filter(taken).map(|object| object.name.to_string()));
        }
        if !there.is_empty() {
            self.impossible
                .push(format!("the target has {} already: drop them there, or --exclude them", few(&there)));
        }
        Ok(())
    }

    fn channel(&mut self, target: &mut Session) -> Result<(), ImportError> {
        if crate::channel::status(target)?.is_some() {
            self.impossible.push(
                "the target has a channel omnibus_import of another import: STOP REPLICA FOR CHANNEL 'omnibus_import'; \
                 RESET REPLICA ALL FOR CHANNEL 'omnibus_import'"
                    .into(),
            );
        }
        if state::load(target)?.is_some() {
            self.impossible
                .push("the target remembers another import: DROP DATABASE omnibus_import there".into());
        }
        Ok(())
    }
}

fn few(names: &[String]) -> String {
    let more = if names.len() > NAMED { format!(" and {} more", names.len() - NAMED) } else { String::new() };
    format!("{}{more}", names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", "))
}
