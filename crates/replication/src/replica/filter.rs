//! Filters of a replica: replicate_do_db and the like, and the renaming of databases.
//!
//! The order of rules is MySQL's. Row changes are filtered by their table's database, statements by the default
//! database; table rules come after database rules. Names are compared byte by byte.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The rules of a channel, or the server's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filters {
    /// Apply only these databases.
    pub do_db: Vec<String>,
    /// Do not apply these.
    pub ignore_db: Vec<String>,
    /// Apply only these tables, `database.table`.
    pub do_table: Vec<String>,
    /// Do not apply these.
    pub ignore_table: Vec<String>,
    /// Apply only tables that match; `%` and `_` as in LIKE.
    pub wild_do: Vec<String>,
    /// Do not apply tables that match.
    pub wild_ignore: Vec<String>,
    /// Pairs of database names: at the source, and here.
    pub rewrite: Vec<(String, String)>,
    /// The number of matches of each rule.
    pub matches: Matches,
}

/// The number of matches of each rule of a channel, in the order of [`Filters::rules`]. Clones share the counters; any
/// two compare equal.
#[derive(Clone, Debug, Default)]
pub struct Matches(Arc<[AtomicU64; 7]>);

impl PartialEq for Matches {
    fn eq(&self, _: &Matches) -> bool {
        true
    }
}

impl Eq for Matches {}

impl Matches {
    fn count(&self, rule: usize, matched: bool) -> bool {
        if matched {
            self.0[rule].fetch_add(1, Ordering::Relaxed);
        }
        matched
    }
}

/// Matches as LIKE does, with `\` as escape, over bytes.
#[must_use]
pub fn wild_match(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    // Where to go on from when what follows the last `%` does not fit here.
    let mut retry = None;
    loop {
        let next = pattern.get(p).copied();
        if next == Some(b'%') {
            retry = Some((p + 1, t));
            p += 1;
            continue;
        }
        let (wanted, width) = match next {
            Some(b'\\') if p + 1 < pattern.len() => (Some(pattern[p + 1]), 2),
            Some(b'_') => (text.get(t).copied(), 1),
            other => (other, 1),
        };
        match (wanted, text.get(t)) {
            (None, None) if p >= pattern.len() => return true,
            (Some(a), Some(&b)) if a == b => {
                p += width;
                t += 1;
            }
            _ => match retry {
                Some((at, from)) if from < text.len() => {
                    p = at;
                    t = from + 1;
                    retry = Some((at, t));
                }
                _ => return false,
            },
        }
    }
}

impl Filters {
    /// Returns whether there is no rule, so that everything passes unchanged.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Filters::default()
    }

    /// Returns a database's name here.
    #[must_use]
    pub fn rewritten<'a>(&'a self, database: &'a [u8]) -> &'a [u8] {
        let found = self.rewrite.iter().find(|(from, _)| from.as_bytes() == database);
        self.matches.count(6, found.is_some());
        found.map_or(database, |(_, to)| to.as_bytes())
    }

    /// Returns whether database rules let changes in a database (its name here) pass. An empty name passes.
    #[must_use]
    pub fn database_passes(&self, database: &[u8]) -> bool {
        let listed = |list: &[String]| list.iter().any(|name| name.as_bytes() == database);
        if database.is_empty() {
            return true;
        }
        if !self.do_db.is_empty() {
            return self.matches.count(0, listed(&self.do_db));
        }
        !self.matches.count(1, listed(&self.ignore_db))
    }

    /// Returns whether there are rules for tables.
    #[must_use]
    pub fn has_table_rules(&self) -> bool {
        !(self.do_table.is_empty()
            && self.ignore_table.is_empty()
            && self.wild_do.is_empty()
            && self.wild_ignore.is_empty())
    }

    /// Returns whether table rules let changes of a table pass.
    #[must_use]
    pub fn table_passes(&self, database: &[u8], table: &[u8]) -> bool {
        self.verdict(database, table).unwrap_or(self.do_table.is_empty() && self.wild_do.is_empty())
    }

    /// Returns whether table rules let a statement pass that changes these tables: the first table that a rule names
    /// decides for all.
    #[must_use]
    pub fn tables_pass(&self, tables: &[(Vec<u8>, Vec<u8>)]) -> bool {
        let named = tables.iter().find_map(|(database, table)| self.verdict(database, table));
        named.unwrap_or(tables.is_empty() || self.do_table.is_empty() && self.wild_do.is_empty())
    }

    /// Returns whether CREATE, ALTER or DROP of a database passes; table patterns for all of its tables count.
    #[must_use]
    pub fn definition_passes(&self, database: &[u8]) -> bool {
        let name = [database, b"."].concat();
        let matched = |list: &[String]| list.iter().any(|rule| wild_match(rule.as_bytes(), &name));
        self.database_passes(database)
            && (self.matches.count(4, matched(&self.wild_do))
                || !self.matches.count(5, matched(&self.wild_ignore)) && self.wild_do.is_empty())
    }

    /// Returns the verdict of the first rule that names a table.
    fn verdict(&self, database: &[u8], table: &[u8]) -> Option<bool> {
        let name = [database, b".", table].concat();
        let listed = |list: &[String]| list.iter().any(|rule| rule.as_bytes() == name);
        let matched = |list: &[String]| list.iter().any(|rule| wild_match(rule.as_bytes(), &name));
        if self.matches.count(2, listed(&self.do_table)) {
            return Some(true);
        }
        if self.matches.count(3, listed(&self.ignore_table)) {
            return Some(false);
        }
        if self.matches.count(4, matched(&self.wild_do)) {
            return Some(true);
        }
        self.matches.count(5, matched(&self.wild_ignore)).then_some(false)
    }

    /// Changes rules by CHANGE REPLICATION FILTER; `text` follows these words. Returns the channel named.
    ///
    /// # Errors
    /// The part of the text that is not understood.
    pub fn change(&mut self, text: &str) -> Result<Option<String>, String> {
        let mut tokens = Tokens { rest: text.trim_end_matches([';', ' ', '\n', '\t']) };
        loop {
            let rule = tokens.word()?.to_ascii_uppercase();
            tokens.expect('=')?;
            let list = tokens.list()?;
            match rule.as_str() {
                "REPLICATE_DO_DB" => self.do_db = names(list)?,
                "REPLICATE_IGNORE_DB" => self.ignore_db = names(list)?,
                "REPLICATE_DO_TABLE" => self.do_table = names(list)?,
                "REPLICATE_IGNORE_TABLE" => self.ignore_table = names(list)?,
                "REPLICATE_WILD_DO_TABLE" => self.wild_do = names(list)?,
                "REPLICATE_WILD_IGNORE_TABLE" => self.wild_ignore = names(list)?,
                "REPLICATE_REWRITE_DB" => self.rewrite = pairs(list)?,
                other => return Err(format!("'{other}' is not a replication filter")),
            }
            if tokens.eat(',') {
                continue;
            }
            if tokens.is_empty() {
                return Ok(None);
            }
            for word in ["FOR", "CHANNEL"] {
                if !tokens.word()?.eq_ignore_ascii_case(word) {
                    return Err(format!("near '{}'", tokens.rest));
                }
            }
            let channel = tokens.name()?;
            return if tokens.is_empty() {
                Ok(Some(channel))
            } else {
                Err(format!("near '{}'", tokens.rest))
            };
        }
    }

    /// Returns rules as a comma-separated list, as in SHOW REPLICA STATUS.
    #[must_use]
    pub fn shown(list: &[String]) -> String {
        list.join(",")
    }

    /// Name, text, and number of matches of each rule.
    #[must_use]
    pub fn rules(&self) -> [(&'static str, String, u64); 7] {
        let count = |rule: usize| self.matches.0[rule].load(Ordering::Relaxed);
        [
            ("REPLICATE_DO_DB", Filters::shown(&self.do_db), count(0)),
            ("REPLICATE_IGNORE_DB", Filters::shown(&self.ignore_db), count(1)),
            ("REPLICATE_DO_TABLE", Filters::shown(&self.do_table), count(2)),
            ("REPLICATE_IGNORE_TABLE", Filters::shown(&self.ignore_table), count(3)),
            ("REPLICATE_WILD_DO_TABLE", Filters::shown(&self.wild_do), count(4)),
            ("REPLICATE_WILD_IGNORE_TABLE", Filters::shown(&self.wild_ignore), count(5)),
            ("REPLICATE_REWRITE_DB", self.rewrite_shown(), count(6)),
        ]
    }

    /// Returns the same rules for another channel, with counters of its own.
    #[must_use]
    pub fn for_channel(&self) -> Filters {
        Filters { matches: Matches::default(), ..self.clone() }
    }

    /// Replicate_Rewrite_DB.
    #[must_use]
    pub fn rewrite_shown(&self) -> String {
        let mut out = String::new();
        for (from, to) in &self.rewrite {
            let _ = write!(out, "{}({from},{to})", if out.is_empty() { "" } else { "," });
        }
        out
    }
}

enum Listed {
    Name(String),
    Pair(String, String),
}

fn names(list: Vec<Listed>) -> Result<Vec<String>, String> {
    list.into_iter()
        .map(|item| match item {
            Listed::Name(name) => Ok(name),
            Listed::Pair(from, _) => Err(format!("near '({from}'")),
        })
        .collect()
}

fn pairs(list: Vec<Listed>) -> Result<Vec<(String, String)>, String> {
    list.into_iter()
        .map(|item| match item {
            Listed::Pair(from, to) => Ok((from, to)),
            Listed::Name(name) => Err(format!("near '{name}': a pair (from, to) is needed")),
        })
        .collect()
}

struct Tokens<'a> {
    rest: &'a str,
}

impl Tokens<'_> {
    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn is_empty(&mut self) -> bool {
        self.skip();
        self.rest.is_empty()
    }

    fn eat(&mut self, c: char) -> bool {
        self.skip();
        match self.rest.strip_prefix(c) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, c: char) -> Result<(), String> {
        if self.eat(c) { Ok(()) } else { Err(format!("near '{}'", self.rest)) }
    }

    fn word(&mut self) -> Result<String, String> {
        self.skip();
        let len = self
            .rest
            .find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$'))
            .unwrap_or(self.rest.len());
        if len == 0 {
            return Err(format!("near '{}'", self.rest));
        }
        let (word, rest) = self.rest.split_at(len);
        self.rest = rest;
        Ok(word.to_owned())
    }

    /// Parses a name, quoted or not.
    fn name(&mut self) -> Result<String, String> {
        self.skip();
        let Some(quote) = self.rest.chars().next().filter(|c| matches!(c, '\'' | '"' | '`')) else {
            return self.word();
        };
        let body = &self.rest[1..];
        let end = body.find(quote).ok_or_else(|| format!("near '{}'", self.rest))?;
        let name = body[..end].to_owned();
        self.rest = &body[end + 1..];
        Ok(name)
    }

    fn list(&mut self) -> Result<Vec<Listed>, String> {
        self.expect('(')?;
        let mut list = Vec::new();
        while !self.eat(')') {
            if !list.is_empty() {
                self.expect(',')?;
            }
            if self.eat('(') {
                let from = self.name()?;
                self.expect(',')?;
                let to = self.name()?;
                self.expect(')')?;
                list.push(Listed::Pair(from, to));
                continue;
            }
            let mut name = self.name()?;
            if self.eat('.') {
                name = format!("{name}.{}", self.name()?);
            }
            list.push(Listed::Name(name));
        }
        Ok(list)
    }
}
