//! Filters and where each rule comes from: options at start (`--replicate-do-db=a --replicate-do-db=b`, or separated by
//! commas) and CHANGE REPLICATION FILTER.

use crate::clock::now_us;
use crate::sysvars::GlobalVars;
use omnibus_replication::replica::Filters;

/// Rules, and who set each when: CONFIGURED_BY and ACTIVE_SINCE.
#[derive(Clone)]
pub(super) struct Rules {
    pub(super) filters: Filters,
    origins: [(&'static str, i64); 7],
}

/// A rule as it is shown.
pub(super) struct Rule {
    pub(super) name: &'static str,
    pub(super) text: String,
    pub(super) matches: u64,
    pub(super) configured_by: &'static str,
    pub(super) since_us: i64,
}

impl Rules {
    /// The server's, as its options say.
    pub(super) fn from_options(globals: &GlobalVars) -> Rules {
        Rules { filters: from_options(globals), origins: [("STARTUP_OPTIONS", now_us()); 7] }
    }

    /// The same for a channel, which counts for itself.
    pub(super) fn for_channel(&self) -> Rules {
        Rules { filters: self.filters.for_channel(), origins: self.origins }
    }

    /// CHANGE REPLICATION FILTER; returns the channel named.
    pub(super) fn change(&mut self, text: &str, by: &'static str) -> Result<Option<String>, String> {
        let before = self.filters.rules();
        let named = self.filters.change(text)?;
        let now = self.filters.rules();
        for ((origin, before), now) in self.origins.iter_mut().zip(before).zip(now) {
            if before.1 != now.1 {
                *origin = (by, now_us());
            }
        }
        Ok(named)
    }

    /// Those that there are.
    pub(super) fn all(&self) -> Vec<Rule> {
        let rules = self.filters.rules().into_iter().zip(self.origins);
        let rules = rules.filter(|((_, text, _), _)| !text.is_empty());
        rules
            .map(|((name, text, matches), (configured_by, since_us))| Rule {
                name,
                text,
                matches,
                configured_by,
                since_us,
            })
            .collect()
    }
}

fn from_options(globals: &GlobalVars) -> Filters {
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
        ..Filters::default()
    }
}
