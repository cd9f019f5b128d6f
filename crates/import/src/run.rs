//! The way of an import: look, then snapshot, copy and check until every table is there, then follow.
//!
//! A snapshot cannot outlive its sessions, so an import that goes on after a loss takes another one. Tables that are done are
//! brought to its place first, by the target's own replication with a filter for just these tables (IMPORT-1). Of tables that
//! were left in the middle each range of keys is compared with the source's, and copied if it differs. Replaying the log over half-copied tables would be wrong where unique keys move between rows, where an update
//! moves a row's key past the border, and for every change of a definition, so it is not done.

use crate::accounts;
use crate::channel;
use crate::check::{self, Difference};
use crate::copy;
use crate::definitions::{self, Definitions, Kind, without_counter};
use crate::error::ImportError;
use crate::facts::Position;
use crate::plan;
use crate::progress::{say, time};
use crate::schema;
use crate::selection;
use crate::session::Session;
use crate::shape;
use crate::snapshot::{self, Snapshot};
use crate::state::{self, Phase, Run};
use crate::table::Table;
use crate::trial;
use crate::world::World;
use std::collections::BTreeSet;
use std::time::Duration;

/// Attempts to take a snapshot between two changes of definitions.
const READINGS: u32 = 5;
/// Snapshots that are taken before a source that goes away again and again is given up.
const SNAPSHOTS: u32 = 10;
const REST: Duration = Duration::from_secs(3);

/// Looks, prints the plan, and says whether it can be done.
pub(crate) fn plan_only(world: &World) -> Result<(), ImportError> {
    let mut source = world.source.session()?;
    let all = definitions::read(&world.source, &mut source, &world.selection)?;
    let tables = world.tables(&mut source, &all.databases)?;
    let fresh = state::load(&mut world.target.session()?)?.is_none();
    let plan = plan::make(world, &all, &tables, fresh)?;
    plan.print();
    let refusals = plan.refused.len() + plan.impossible.len();
    if refusals > 0 {
        return Err(ImportError::Refused(format!("{refusals} things are in the way, see above")));
    }
    println!("nothing is in the way");
    Ok(())
}

/// Copies everything, however often the source has to be asked for another snapshot.
pub(crate) fn copy(world: &mut World) -> Result<(), ImportError> {
    let before = state::load(&mut world.target.session()?)?;
    if let Some(run) = &before {
        if run.source != world.facts.identity {
            return Err(ImportError::Refused(format!(
                "the target has an import from another source ({}): DROP DATABASE omnibus_import there to forget it",
                run.source
            )));
        }
        if run.phase == Phase::Follow {
            say("the copy was finished before");
            return Ok(());
        }
    }
    look(world, before.is_none())?;
    if before.as_ref().is_some_and(|run| run.selection != world.selection.shown()) {
        return Err(ImportError::Refused(
            "an import with another choice of databases and tables was begun: repeat that command, or DROP DATABASE omnibus_import \
             at the target and drop what it made"
                .into(),
        ));
    }
    for attempt in 1.. {
        match attempt_copy(world) {
            Err(error) if attempt < SNAPSHOTS && may_go_on(&error) => {
                say(&format!("{error}; going on with another snapshot"));
                std::thread::sleep(REST);
            }
            other => return other,
        }
    }
    Ok(())
}

/// Returns whether another snapshot may help: the source was lost, or a definition changed under the copy.
fn may_go_on(error: &ImportError) -> bool {
    error.is_lost() || matches!(error.code(), Some(1412 | 1054 | 1146 | 3024 | 1969))
}

fn look(world: &mut World, fresh: bool) -> Result<(), ImportError> {
    let mut source = world.source.session()?;
    let all = definitions::read(&world.source, &mut source, &world.selection)?;
    let tables = world.tables(&mut source, &all.databases)?;
    let plan = plan::make(world, &all, &tables, fresh)?;
    plan.print();
    if !plan.impossible.is_empty() {
        return Err(ImportError::Refused("that is not possible, see above; nothing was copied".into()));
    }
    if !plan.refused.is_empty() && !world.options.details.skip_refused {
        return Err(ImportError::Refused(
            "nothing was copied. Mend or --exclude what is not taken, or leave all of it out with --skip-refused; some of it is made \
             without the part that is missing where the target has SET GLOBAL ignore_unsupported_constraints = ON (docs/use/sql.md)"
                .into(),
        ));
    }
    world.selection.leave_out(&plan.refused_tables);
    Ok(())
}

/// A snapshot, and the definitions of its moment.
struct Moment {
    snapshot: Snapshot,
    all: Definitions,
    tables: Vec<Table>,
}

/// Takes a snapshot between two equal readings of all definitions, which are therefore those of its moment.
fn moment(world: &World) -> Result<Moment, ImportError> {
    let mut session = world.source.session()?;
    let mut before = definitions::read(&world.source, &mut session, &world.selection)?;
    for _ in 0..READINGS {
        let details = &world.options.details;
        let snapshot = snapshot::take(&world.source, details.threads, &before.tables(), details.lock_wait_s)?;
        let all = definitions::read(&world.source, &mut session, &world.selection)?;
        let changed = all.changed_since(&before);
        if changed.is_empty() {
            let tables = world.tables(&mut session, &all.databases)?;
            say(&format!(
                "snapshot at {}; writers waited {}",
                snapshot.at,
                time(snapshot.stopped.as_secs_f64())
            ));
            return Ok(Moment { snapshot, all, tables });
        }
        say(&format!("{} changed while the snapshot was taken; taking another one", changed.join(", ")));
        before = all;
    }
    Err(ImportError::Refused(
        "definitions at the source keep changing: stop what changes them, and run this again".into(),
    ))
}

fn attempt_copy(world: &World) -> Result<(), ImportError> {
    let mut target = world.target.session()?;
    let mut moment = moment(world)?;
    let keep = catch_up(world, &mut target, &moment)?;
    if !keep.is_empty() {
        say(&format!("{} tables are there already and were brought to {}", keep.len(), moment.snapshot.at));
    }
    let half = begin(world, &mut target, &moment, &keep)?;
    let mut fresh = moment.tables.clone();
    fresh.retain(|table| !keep.contains(&table.name.to_string()));
    for table in &mut fresh {
        table.resumed = half.contains(&table.name.to_string());
    }
    copy::rows(&fresh, &mut moment.snapshot.sessions, &world.target, world.options.details.chunk)?;
    // The target may have been restarted meanwhile.
    let mut target = world.target.session()?;
    schema::set_sequences(&mut world.source.session()?, &mut target, &moment.all)?;
    let refused = schema::create_triggers(&mut target, &moment.all)?;
    tell(&refused.0);
    copy_accounts(world, &mut target)?;
    let differences = if world.options.details.no_check {
        Vec::new()
    } else {
        compare(world, &moment.tables, &moment.all, &mut moment.snapshot.sessions)?
    };
    let run = Run { phase: Phase::Follow, ..run_of(world, &moment.snapshot.at) };
    state::save(&mut target, &run)?;
    report(&differences)
}

fn run_of(world: &World, at: &Position) -> Run {
    Run {
        source: world.facts.identity.clone(),
        phase: Phase::Copy,
        at: at.clone(),
        selection: world.selection.shown(),
    }
}

/// Brings the tables that are done to the snapshot's place. Returns which they are.
fn catch_up(world: &World, target: &mut Session, moment: &Moment) -> Result<BTreeSet<String>, ImportError> {
    if state::load(target)?.is_none() {
        return Ok(BTreeSet::new());
    }
    let mut keep = state::done(target)?;
    let there: BTreeSet<String> = moment.tables.iter().map(|table| table.name.to_string()).collect();
    keep.retain(|name| there.contains(name));
    world.close(&mut world.source.session()?, &mut keep)?;
    if channel::status(target)?.is_none() {
        // Without a channel there is no way to the new place.
        keep.clear();
    }
    for name in state::done(target)?.difference(&keep) {
        state::unfinish(target, name)?;
    }
    if keep.is_empty() {
        channel::remove(target)?;
        return Ok(keep);
    }
    let names: Vec<_> =
        moment.tables.iter().filter(|t| keep.contains(&t.name.to_string())).map(|t| t.name.clone()).collect();
    say(&format!("bringing {} tables to {}", names.len(), moment.snapshot.at));
    channel::filter(target, &[format!("REPLICATE_DO_TABLE = ({})", selection::list(&names))])?;
    channel::apply_until(target, &moment.snapshot.at)?;
    Ok(keep)
}

/// Makes everything but rows and triggers, and the channel at the snapshot's place.
fn begin(
    world: &World,
    target: &mut Session,
    moment: &Moment,
    keep: &BTreeSet<String>,
) -> Result<BTreeSet<String>, ImportError> {
    let all = &moment.all;
    state::save(target, &run_of(world, &moment.snapshot.at))?;
    let half = half_copied(target, moment, keep)?;
    let stay: BTreeSet<String> = keep.union(&half).cloned().collect();
    for made in state::made(target)? {
        if !stay.contains(&made.name) {
            target.run(&format!("DROP TABLE IF EXISTS {}", made.quoted))?;
        }
    }
    for object in all.of(Kind::Table).filter(|object| !stay.contains(&object.name.to_string())) {
        state::make(target, &object.name, &without_counter(&object.create))?;
    }
    schema::create_databases(target, all)?;
    schema::drop_others(target, all, &stay)?;
    schema::create_tables(target, all, &stay)?;
    set_counters(target, all, &half)?;
    let refused = schema::create_programs(target, all)?;
    tell(&refused.0);
    if !refused.0.is_empty() && !world.options.details.skip_refused {
        return Err(ImportError::Refused(
            "the target does not take these; no row was copied. Mend them at the source or --exclude their database, or leave them out \
             with --skip-refused"
                .into(),
        ));
    }
    if world.follows() {
        if keep.is_empty() {
            channel::place(
                target,
                &world.target,
                &world.source,
                &world.facts,
                &world.reach()?,
                &moment.snapshot.at,
            )?;
        }
        channel::try_receiver(target)?;
    }
    Ok(half)
}

/// Brings counters of AUTO_INCREMENT to where the source's are.
fn set_counters(target: &mut Session, all: &Definitions, half: &BTreeSet<String>) -> Result<(), ImportError> {
    for object in all.of(Kind::Table).filter(|object| half.contains(&object.name.to_string())) {
        if let Some(next) = definitions::counter(&object.create) {
            target.run(&format!("ALTER TABLE {} AUTO_INCREMENT = {next}", object.name.quoted()))?;
        }
    }
    if !half.is_empty() {
        say(&format!("{} tables are there in part: ranges that are equal are not copied again", half.len()));
    }
    Ok(())
}

/// Returns the tables that an earlier attempt left in the middle and that are still the same table: ranges of them that are
/// equal to the source's are not copied again.
fn half_copied(
    target: &mut Session,
    moment: &Moment,
    keep: &BTreeSet<String>,
) -> Result<BTreeSet<String>, ImportError> {
    let mut half = BTreeSet::new();
    for made in state::made(target)? {
        let same = |table: &&Table| table.name.to_string() == made.name && table.is_ordered_alike();
        let Some(table) = moment.tables.iter().find(same) else { continue };
        let create =
            moment.all.of(Kind::Table).find(|o| o.name == table.name).map(|o| without_counter(&o.create));
        if keep.contains(&made.name) || create.as_deref() != Some(&*made.definition) {
            continue;
        }
        if target.known(&format!("SELECT 1 FROM {} LIMIT 1", made.quoted))?.is_some() {
            half.insert(made.name);
        }
    }
    Ok(half)
}

fn tell(refused: &[String]) {
    for line in refused {
        println!("not taken: {line}");
    }
}

fn copy_accounts(world: &World, target: &mut Session) -> Result<(), ImportError> {
    if !world.options.details.accounts {
        return Ok(());
    }
    let all = accounts::read(&world.source, &mut world.source.session()?)?;
    let made = accounts::create(target, &all)?;
    say(&format!("{} accounts and roles created", made.created));
    if !made.kept.is_empty() {
        println!("note: accounts that the target had already stay as they are: {}", made.kept.join(", "));
    }
    tell(&made.refused);
    Ok(())
}

/// Compares definitions and rows.
pub(crate) fn compare(
    world: &World,
    tables: &[Table],
    all: &Definitions,
    sources: &mut [Session],
) -> Result<Vec<Difference>, ImportError> {
    let mut differences = Vec::new();
    let (mut source, mut target) = (world.source.session()?, world.target.session()?);
    for (database, _) in &all.databases {
        let ours = shape::describe(&mut source, database, &world.selection)?;
        let theirs = shape::describe(&mut target, database, &world.selection)?;
        differences.extend(shape::differences(&ours, &theirs).into_iter().map(|text| {
            let (table, text) = text.split_once(": ").unwrap_or(("", &text));
            Difference { table: table.to_owned(), text: text.to_owned() }
        }));
    }
    // What the form that all servers share shows already is not told again.
    let known: Vec<String> = differences.iter().map(|difference| difference.table.clone()).collect();
    let otherwise = trial::made_otherwise(&mut target, all)?;
    differences.extend(otherwise.into_iter().filter(|difference| !known.contains(&difference.table)));
    differences.extend(check::tables(tables, sources, &world.target, &world.options.details)?);
    let views = all.of(Kind::View).count();
    println!(
        "checked: {} tables, {views} views and the definitions of {} databases; {} differences",
        tables.len(),
        all.databases.len(),
        differences.len()
    );
    Ok(differences)
}

/// Prints differences; an error if there are any.
pub(crate) fn report(differences: &[Difference]) -> Result<(), ImportError> {
    for difference in differences {
        println!("differs: {}: {}", difference.table, difference.text);
    }
    if differences.is_empty() { Ok(()) } else { Err(ImportError::Differs(differences.len())) }
}
