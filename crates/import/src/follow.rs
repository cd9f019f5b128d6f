//! Behind the copy: the target follows the source, is compared with it, and takes its place.

use crate::channel;
use crate::definitions;
use crate::error::ImportError;
use crate::facts::{self, Position};
use crate::options::Follow;
use crate::progress::{say, time};
use crate::run;
use crate::schema;
use crate::session::{Family, Session};
use crate::snapshot;
use crate::state::{self, Phase};
use crate::world::World;
use std::time::{Duration, Instant};

/// Between two lines about a channel.
const LINE: Duration = Duration::from_secs(5);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(200);
/// The time that a source must stand still to count as read-only.
const STILL: Duration = Duration::from_secs(1);

/// The longest absence of a server that is waited for.
const PATIENCE: Duration = Duration::from_secs(600);

/// Starts the target as a replica of the source, and tells how far it is. Servers may go away and come back.
pub(crate) fn follow(world: &World) -> Result<(), ImportError> {
    if !world.follows() {
        println!("copied, and not followed: --no-follow");
        return Ok(());
    }
    let deadline = Instant::now() + PATIENCE;
    while let Err(error) = start(world) {
        if !error.is_lost() || Instant::now() > deadline {
            return Err(error);
        }
        say(&format!("{error}; trying again"));
        std::thread::sleep(LINE);
    }
    println!(
        "next: omnibus import .. --check-only at any time; stop writing, then omnibus import .. --cut-over"
    );
    if world.options.follow == Follow::Forever {
        say("following until this command is ended (Ctrl-C); the target follows on without it");
        watch(world)?;
    }
    Ok(())
}

/// Starts the channel, if it does not run, and waits until it has what the source has now.
fn start(world: &World) -> Result<(), ImportError> {
    let mut target = world.target.session()?;
    let rules = world.selection.filters(world.options.details.accounts);
    if channel::status(&mut target)?.is_none() {
        return Err(ImportError::Refused(
            "the target has no channel omnibus_import: the copy was made with --no-follow, or was cut over"
                .into(),
        ));
    }
    let now = channel::status(&mut target)?.unwrap_or_default();
    if !now.applies {
        channel::filter(&mut target, &rules)?;
    }
    if !now.applies || !now.receives {
        channel::start(&mut target)?;
    }
    if !rules.is_empty() {
        println!(
            "note: the target's rules about what it follows last until it restarts. If it does while it follows: STOP REPLICA FOR \
             CHANNEL 'omnibus_import', and run this command again. The rules: {}",
            rules.join(", ")
        );
    }
    let goal = facts::position(&world.source, &mut world.source.session()?)?;
    channel::wait_applied(&mut target, &goal)?;
    println!("the target follows the source and has everything up to {goal}");
    Ok(())
}

/// Tells how far the target is, for ever; it may go away and come back.
fn watch(world: &World) -> Result<(), ImportError> {
    loop {
        std::thread::sleep(LINE);
        let looked = world.target.session().and_then(|mut target| {
            let end = facts::position(&world.source, &mut world.source.session()?)?;
            Ok((channel::status(&mut target)?, end))
        });
        match looked {
            Ok((Some(now), end)) => {
                if let Some(error) = channel::stopped(&now) {
                    return Err(error);
                }
                say(&format!("following: at {}, the source at {end}{}", now.applied, channel::lag(&now)));
            }
            Ok((None, _)) => {
                println!("the channel is gone: cut over");
                return Ok(());
            }
            Err(error) if error.is_lost() => say(&error.to_string()),
            Err(error) => return Err(error),
        }
    }
}

/// Compares source and target at one moment of both: the target applies up to the place of a snapshot of the source, and
/// waits there.
pub(crate) fn check(world: &World) -> Result<(), ImportError> {
    let mut target = world.target.session()?;
    let mut session = world.source.session()?;
    let all = definitions::read(&world.source, &mut session, &world.selection)?;
    let tables = world.tables(&mut session, &all.databases)?;
    let details = &world.options.details;
    let follows = channel::status(&mut target)?;
    if follows.is_none() {
        say("the target does not follow the source: what is written meanwhile differs");
    }
    // Halted first, so that it is not past the snapshot's place.
    if follows.is_some() {
        channel::stop(&mut target)?;
    }
    let differences = (|| {
        let mut snapshot =
            snapshot::take(&world.source, details.threads, &all.tables(), details.lock_wait_s)?;
        if follows.is_some() {
            channel::apply_until(&mut target, &snapshot.at)?;
            say(&format!("both at {}", snapshot.at));
        }
        run::compare(world, &tables, &all, &mut snapshot.sessions)
    })();
    if follows.is_some_and(|channel| channel.applies || channel.receives) {
        channel::start(&mut world.target.session()?)?;
    }
    run::report(&differences?)
}

/// Makes the target the server that is written to.
pub(crate) fn cut_over(world: &World) -> Result<(), ImportError> {
    let mut target = world.target.session()?;
    let mut source = world.source.session()?;
    let follows = channel::status(&mut target)?.is_some();
    let copied = state::load(&mut target)?.is_some_and(|run| run.phase == Phase::Follow);
    if !follows || !copied {
        return Err(ImportError::Refused(
            "the target does not follow this source: run the import without --cut-over first".into(),
        ));
    }
    quiesce(world, &mut source)?;
    let began = Instant::now();
    let end = still(world, &mut source)?;
    say(&format!("the source stands still at {end}"));
    let now = channel::status(&mut target)?.unwrap_or_default();
    if !now.applies {
        channel::filter(&mut target, &world.selection.filters(world.options.details.accounts))?;
        channel::start(&mut target)?;
    }
    channel::wait_applied(&mut target, &end)?;
    channel::stop(&mut target)?;
    say(&format!("everything is applied after {}", time(began.elapsed().as_secs_f64())));
    let all = definitions::read(&world.source, &mut source, &world.selection)?;
    let tables = world.tables(&mut source, &all.databases)?;
    let mut sessions =
        (0..world.options.details.threads).map(|_| world.source.session()).collect::<Result<Vec<_>, _>>()?;
    if !world.options.details.no_check {
        let differences = run::compare(world, &tables, &all, &mut sessions)?;
        if !differences.is_empty() {
            channel::start(&mut target)?;
            println!("not cut over: the target follows on. The source is still read-only");
            return run::report(&differences);
        }
    }
    if facts::position(&world.source, &mut source)? != end {
        channel::start(&mut target)?;
        return Err(ImportError::Refused(
            "not cut over: somebody wrote to the source after it was read-only (an account with SUPER?). The target follows on".into(),
        ));
    }
    take_over(world, &mut target, began)
}

/// Ends the channel, lets events run, and says what is next.
fn take_over(world: &World, target: &mut Session, began: Instant) -> Result<(), ImportError> {
    channel::remove(target)?;
    let events = schema::enable_events(target, &world.target)?;
    state::forget(target)?;
    let place = facts::position(&world.target, target)?;
    println!("cut over in {}: the target is the server to write to", time(began.elapsed().as_secs_f64()));
    if events > 0 {
        println!(
            "{events} events are enabled at the target; those of the source still run there unless its event_scheduler is OFF"
        );
    }
    println!("next: point the clients at {}", world.target.address.place());
    println!(
        "the way back (docs/use/migrate.md), as long as the log is kept: let the old source follow the target from {place}"
    );
    println!("  {}", way_back(world, &place));
    Ok(())
}

/// The statement with which the old source follows the target.
fn way_back(world: &World, place: &Position) -> String {
    let endpoint = &world.options.to.endpoint;
    let (word, verb) = match world.source.family {
        Family::Mysql if world.source.numbers() >= (8, 0) => ("SOURCE", "CHANGE REPLICATION SOURCE TO"),
        _ => ("MASTER", "CHANGE MASTER TO"),
    };
    let by_place = match world.source.family {
        Family::Mariadb => format!("{word}_USE_GTID=no"),
        Family::Mysql if word == "SOURCE" => "GET_SOURCE_PUBLIC_KEY=1".into(),
        Family::Mysql => format!("{word}_AUTO_POSITION=0"),
    };
    format!(
        "{verb} {word}_HOST='{}', {word}_PORT={}, {word}_USER='..', {word}_PASSWORD='..', {word}_LOG_FILE='{}', {word}_LOG_POS={}, {by_place}",
        endpoint.host, endpoint.port, place.file, place.offset
    )
}

/// Makes the source read-only, or sees that it is.
fn quiesce(world: &World, source: &mut Session) -> Result<(), ImportError> {
    if world.options.details.set_read_only {
        source.run("SET GLOBAL read_only = ON")?;
        if world.source.family == Family::Mysql {
            source.run("SET GLOBAL super_read_only = ON")?;
        }
        return Ok(());
    }
    let on = source.value("SELECT @@GLOBAL.read_only")?;
    if matches!(&*on, "0" | "OFF") {
        let name = if world.source.family == Family::Mysql { "super_read_only" } else { "read_only" };
        return Err(ImportError::Refused(format!(
            "the source is not read-only: stop the writers and SET GLOBAL {name} = ON there, or add --set-read-only"
        )));
    }
    Ok(())
}

/// Waits until nothing comes to the source's log any more. Returns its end.
fn still(world: &World, source: &mut Session) -> Result<Position, ImportError> {
    let mut end = facts::position(&world.source, source)?;
    let mut since = Instant::now();
    while since.elapsed() < STILL {
        std::thread::sleep(LOOK);
        let now = facts::position(&world.source, source)?;
        if now != end {
            (end, since) = (now, Instant::now());
        }
    }
    Ok(end)
}
