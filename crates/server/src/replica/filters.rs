//! Filters from options at start: `--replicate-do-db=a --replicate-do-db=b`, or separated by commas.

use crate::sysvars::GlobalVars;
use omnibus_replication::replica::Filters;

/// The server's rules.
pub(super) fn from_options(globals: &GlobalVars) -> Filters {
    let list = |name: &str| -> Vec<String> {
        let value = globals.named(name);
        value.as_str().split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
    };
    Filters {
        do_db: list("replicate_do_db"),
        ignore_db: list("replicate_ignore_db"),
        do_table: list("replicate_do_table"),
        ignore_table: list("replicate_ignore_table"),
        wild_do: list("replicate_wild_do_table"),
        wild_ignore: list("replicate_wild_ignore_table"),
        rewrite: list("replicate_rewrite_db")
            .iter()
            .filter_map(|pair| pair.split_once("->"))
            .map(|(from, to)| (from.trim().to_owned(), to.trim().to_owned()))
            .collect(),
    }
}
