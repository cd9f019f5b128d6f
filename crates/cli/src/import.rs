//! `omnibus import`: a running MySQL or MariaDB into a running Omnibus.

use clap::Args;
use omnibus_import::{Action, Address, Details, Follow, ImportError, Options, Selection, SourceForTarget};
use omnibus_replication::client::without_secrets;
use std::process::ExitCode;

/// Move a running MySQL or MariaDB into a running Omnibus: copy, check, follow its log, cut over (docs/use/migrate.md).
///
/// Run it again after whatever interrupted it. Exit codes: 0 done, 1 failed, 2 wrong options, 3 something is in the way and was
/// named, 4 source and target differ.
#[derive(Args, Debug)]
pub struct ImportArgs {
    /// Source: mysql://user:password@host:port[/?ssl-mode=..&ssl-ca=..&socket=..]. Better than in a list of processes, the password
    /// is in OMNIBUS_FROM_PASSWORD.
    #[arg(long, value_name = "URL")]
    from: String,
    /// Target, an Omnibus server, in the same form; the password may be in OMNIBUS_TO_PASSWORD.
    #[arg(long, value_name = "URL", default_value = "mysql://root@127.0.0.1:3306")]
    to: String,
    #[command(flatten)]
    what: What,
    #[command(flatten)]
    stage: Stage,
    #[command(flatten)]
    how: How,
}

/// The choice of contents.
#[derive(Args, Debug)]
struct What {
    /// These databases only.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    databases: Vec<String>,
    /// These tables only, as database.table.
    #[arg(long, value_name = "TABLE", value_delimiter = ',', num_args = 1..)]
    tables: Vec<String>,
    /// Neither these databases nor these tables.
    #[arg(long, value_name = "NAME", value_delimiter = ',', num_args = 1..)]
    exclude: Vec<String>,
    /// Leave accounts, roles and rights where they are.
    #[arg(long)]
    no_accounts: bool,
    /// Leave out what the target refuses, instead of refusing everything.
    #[arg(long)]
    skip_refused: bool,
}

/// The choice of stages; without one: copy, check and follow until the command is ended.
#[derive(Args, Debug)]
#[group(multiple = false)]
struct Stage {
    /// Look only: what there is, what is in the way, and what to do about it.
    #[arg(long, alias = "dry-run")]
    plan: bool,
    /// Copy one moment, and do not follow.
    #[arg(long)]
    no_follow: bool,
    /// Copy, follow, and end as soon as the target has caught up; it follows on by itself.
    #[arg(long)]
    until_caught_up: bool,
    /// Compare source and target, also while the target follows.
    #[arg(long)]
    check_only: bool,
    /// Let the target take over: everything is applied and compared, then the replication ends. The source has to be read-only.
    #[arg(long)]
    cut_over: bool,
}

/// Details.
#[derive(Args, Debug)]
struct How {
    /// Sessions at each side.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    threads: u32,
    /// About how many KiB of a table a session works on at once: larger tables are shared by several.
    #[arg(long, value_name = "KIB", default_value_t = 32_768, value_parser = clap::value_parser!(u32).range(1..))]
    chunk: u32,
    /// The longest time, in seconds, that writers of the source may be held up by the lock for the moment of the copy.
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    lock_wait: u32,
    /// With --cut-over: make the source read-only.
    #[arg(long, requires = "cut_over")]
    set_read_only: bool,
    /// Compare numbers of rows instead of rows.
    #[arg(long)]
    quick: bool,
    /// Do not compare behind the copy, or at the cut-over.
    #[arg(long)]
    no_check: bool,
    /// Write the copied rows to the target's binary log too, for replicas that it has already.
    #[arg(long)]
    log: bool,
    /// The source as the target reaches it, where that is not the address of --from.
    #[arg(long, value_name = "HOST:PORT")]
    source_address: Option<String>,
    /// The account under which the target follows, with its password in OMNIBUS_SOURCE_PASSWORD; that of --from without.
    #[arg(long, value_name = "NAME")]
    source_user: Option<String>,
}

/// Runs the command.
#[must_use]
pub fn run(args: &ImportArgs) -> ExitCode {
    match options(args).and_then(omnibus_import::import) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("omnibus import: {}", without_secrets(&error.to_string()));
            ExitCode::from(error.exit_code())
        }
    }
}

fn options(args: &ImportArgs) -> Result<Options, ImportError> {
    let (what, stage, how) = (&args.what, &args.stage, &args.how);
    let secret = |name: &str| std::env::var(name).ok();
    let address = match &how.source_address {
        Some(text) => {
            let endpoint = Address::parse(&format!("mysql://{text}"), None)?.endpoint;
            Some((endpoint.host, endpoint.port))
        }
        None => None,
    };
    Ok(Options {
        from: Address::parse(&args.from, secret("OMNIBUS_FROM_PASSWORD"))?,
        to: Address::parse(&args.to, secret("OMNIBUS_TO_PASSWORD"))?,
        selection: Selection::new(&what.databases, &what.tables, &what.exclude)?,
        action: match stage {
            Stage { plan: true, .. } => Action::Plan,
            Stage { check_only: true, .. } => Action::Check,
            Stage { cut_over: true, .. } => Action::CutOver,
            _ => Action::Copy,
        },
        follow: match stage {
            Stage { no_follow: true, .. } => Follow::No,
            Stage { until_caught_up: true, .. } => Follow::UntilCaughtUp,
            _ => Follow::Forever,
        },
        source_for_target: SourceForTarget {
            address,
            account: how
                .source_user
                .clone()
                .map(|user| (user, secret("OMNIBUS_SOURCE_PASSWORD").unwrap_or_default())),
        },
        details: Details {
            threads: how.threads as usize,
            chunk: u64::from(how.chunk) << 10,
            lock_wait_s: how.lock_wait,
            accounts: !what.no_accounts,
            skip_refused: what.skip_refused,
            log: how.log,
            quick: how.quick,
            no_check: how.no_check,
            set_read_only: how.set_read_only,
        },
    })
}
