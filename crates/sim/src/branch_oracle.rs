//! The oracle of XA branches: derives from requests and replies what a recovered server must show.

use crate::branches::{Answer, Ask, Branch, ShownBranches};
use crate::random::Random;
use std::collections::{BTreeMap, BTreeSet};

/// The knowledge about a request's outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Known {
    /// The outcome is unknown.
    #[default]
    Nothing,
    /// It happened, and a power cut may undo it.
    Done,
    /// It happened and is durable.
    Lasts,
}

#[derive(Clone, Debug)]
struct Facts {
    branch: Branch,
    prepared: Known,
    /// The branch is no more; whether it was committed is in `end`.
    ended: Known,
    /// A statement of XA has shown it. Rows are visible a moment earlier, while the session that commits them has not
    /// finished.
    unlisted: bool,
    end: Option<bool>,
    /// The ends that were asked for: XA ROLLBACK, XA COMMIT.
    asked: [bool; 2],
    /// Whether the branch adds to its counter: known once its reply says so.
    adds: Option<bool>,
}

/// The state when a question was asked: branches that certainly existed, and those that were gone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Before {
    there: BTreeSet<u64>,
    gone: BTreeSet<u64>,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct BranchOracle {
    branches: BTreeMap<u64, Facts>,
}

impl BranchOracle {
    /// Records a request.
    pub(crate) fn asked(&mut self, ask: &Ask) -> Before {
        match ask {
            Ask::Prepare(branch) => {
                let facts = Facts {
                    branch: *branch,
                    prepared: Known::Nothing,
                    ended: Known::Nothing,
                    unlisted: false,
                    end: None,
                    asked: [false; 2],
                    adds: if branch.counter.is_none() { Some(false) } else { None },
                };
                self.branches.insert(branch.id, facts);
            }
            Ask::Finish { id, commit } => {
                if let Some(facts) = self.branches.get_mut(id) {
                    facts.asked[usize::from(*commit)] = true;
                }
            }
            Ask::List | Ask::Read => {}
        }
        let of = |wanted: fn(&Facts) -> bool| {
            self.branches.iter().filter(|(_, facts)| wanted(facts)).map(|(id, _)| *id).collect()
        };
        Before { there: of(|facts| facts.prepared != Known::Nothing), gone: of(|facts| facts.unlisted) }
    }

    /// Returns a branch that a session may end: prepared, and not known to be gone.
    pub(crate) fn pick(&self, random: &mut Random) -> Option<u64> {
        let open = |facts: &Facts| facts.prepared != Known::Nothing && facts.ended == Known::Nothing;
        let ids: Vec<u64> =
            self.branches.iter().filter(|(_, facts)| open(facts)).map(|(id, _)| *id).collect();
        if ids.is_empty() { None } else { Some(random.pick(&ids)) }
    }

    /// Records a reply; `lasts` if it holds whatever happens. The error is an impossible reply.
    pub(crate) fn answered(
        &mut self,
        ask: &Ask,
        before: &Before,
        answer: &Answer,
        lasts: bool,
    ) -> Result<(), String> {
        let known = if lasts { Known::Lasts } else { Known::Done };
        match (ask, answer) {
            (Ask::Prepare(branch), Answer::Done { counter }) => {
                if let Some(facts) = self.branches.get_mut(&branch.id) {
                    (facts.prepared, facts.adds) = (known, Some(counter.is_some()));
                }
            }
            (Ask::Finish { id, commit }, Answer::Done { .. }) => self.ended(*id, Some(*commit), known)?,
            (Ask::Finish { id, .. }, Answer::Unknown) if before.there.contains(id) => {
                self.ended(*id, None, known)?;
            }
            (Ask::List, Answer::Branches(names)) => self.listed(names, before, known)?,
            (Ask::Read, Answer::Rows(rows)) => {
                for (id, count) in rows {
                    let facts =
                        self.branches.get(id).ok_or(format!("a row of branch {id}, which nobody made"))?;
                    if *count != facts.branch.rows as u64 {
                        return Err(format!("SNAP-1: branch {id} is seen with {count} of its rows"));
                    }
                    self.seen(*id, Some(true), known)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn listed(&mut self, names: &BTreeSet<u64>, before: &Before, known: Known) -> Result<(), String> {
        if let Some(again) = names.intersection(&before.gone).next() {
            return Err(format!("XA RECOVER lists branch {again}, which was ended"));
        }
        for id in names {
            let facts = self.branches.get_mut(id).ok_or(format!("XA RECOVER lists branch {id}"))?;
            facts.prepared = facts.prepared.max(known);
        }
        before.there.difference(names).try_for_each(|id| self.ended(*id, None, known))
    }

    /// Records that a statement of XA showed a branch as gone.
    fn ended(&mut self, id: u64, commit: Option<bool>, known: Known) -> Result<(), String> {
        self.seen(id, commit, known)?;
        if let Some(facts) = self.branches.get_mut(&id) {
            facts.unlisted = true;
        }
        Ok(())
    }

    /// Records that a reply showed a branch as ended, at least by its rows.
    fn seen(&mut self, id: u64, commit: Option<bool>, known: Known) -> Result<(), String> {
        let facts = self.branches.get_mut(&id).ok_or(format!("branch {id} was never asked for"))?;
        facts.ended = facts.ended.max(known);
        if let Some(commit) = commit {
            if facts.end == Some(!commit) {
                return Err(format!("XA: branch {id} was ended both ways"));
            }
            if !facts.asked[usize::from(commit)] {
                return Err(format!("XA: nobody asked for the end (commit: {commit}) of branch {id}"));
            }
            facts.end = Some(commit);
        }
        match facts.asked {
            [false, false] => Err(format!("XA: branch {id} is told to be gone, and nobody ended it")),
            _ => Ok(()),
        }
    }

    /// Compares what a recovered server shows with what must be there. `order` is the transactions that are there.
    pub(crate) fn judge(
        &self,
        shown: &ShownBranches,
        order: &[(u64, u64)],
        power_cut: bool,
    ) -> Result<(), String> {
        let places: BTreeMap<u64, u64> = order.iter().map(|(no, id)| (*id, *no)).collect();
        let must = |known: Known| known == Known::Lasts || known == Known::Done && !power_cut;
        let mut counters: BTreeMap<u64, u64> = shown.counters.keys().map(|id| (*id, 0)).collect();
        let mut free: BTreeSet<u64> = counters.keys().copied().collect();
        for (id, facts) in &self.branches {
            let (prepared, ended) = (places.get(id), places.get(&(id + 1)));
            if must(facts.prepared) && prepared.is_none() {
                return Err(format!("COMMIT-3: branch {id} was prepared, and is lost"));
            }
            if must(facts.ended) && ended.is_none() {
                return Err(format!("COMMIT-3: the end of branch {id} was told, and is lost"));
            }
            if ended.is_some() && prepared >= ended {
                return Err(format!("XA: branch {id} is prepared at {prepared:?} and ended at {ended:?}"));
            }
            if shown.listed.contains(id) != (prepared.is_some() && ended.is_none()) {
                return Err(format!("XA RECOVER and the log disagree about branch {id}: {:?}", shown.listed));
            }
            let rows = shown.rows.get(id).copied().unwrap_or(0);
            let commits = rows > 0;
            if commits && (ended.is_none() || rows != facts.branch.rows as u64) {
                return Err(format!("COMMIT-3: branch {id} has {rows} rows, and is ended at {ended:?}"));
            }
            if ended.is_some() && facts.branch.rows > 0 {
                let could = facts.asked[usize::from(commits)];
                if !could || facts.end.is_some_and(|end| end != commits) {
                    return Err(format!(
                        "XA: branch {id} is committed: {commits}, and was told: {:?}",
                        facts.end
                    ));
                }
            }
            let Some(counter) = facts.branch.counter.filter(|_| facts.adds == Some(true)) else { continue };
            if commits && let Some(count) = counters.get_mut(&counter) {
                *count += 1;
            }
            if prepared.is_some() && ended.is_none() {
                free.remove(&counter);
            }
        }
        if let Some(more) = shown.rows.keys().chain(&shown.listed).find(|id| !self.branches.contains_key(id))
        {
            return Err(format!("branch {more} was never asked for"));
        }
        self.judge_counters(shown, &counters, &free)
    }

    /// A branch whose first phase got no answer may have added to its counter, or have found it locked.
    fn judge_counters(
        &self,
        shown: &ShownBranches,
        counters: &BTreeMap<u64, u64>,
        free: &BTreeSet<u64>,
    ) -> Result<(), String> {
        for (id, least) in counters {
            let of_this = |facts: &&Facts| facts.branch.counter == Some(*id) && facts.adds.is_none();
            let more: Vec<&Facts> = self.branches.values().filter(of_this).collect();
            let committed = more.iter().filter(|facts| shown.rows.contains_key(&facts.branch.id)).count();
            let count = shown.counters[id];
            if count < *least || count > least + committed as u64 {
                return Err(format!("RECOVER-2: counter {id} is {count}, and {least} branches added to it"));
            }
            let open = more.iter().any(|facts| shown.listed.contains(&facts.branch.id));
            let is_free = shown.free.contains(id);
            if is_free && !free.contains(id) || !is_free && free.contains(id) && !open {
                return Err(format!("XA: counter {id} is free: {is_free}, of {:?}", shown.listed));
            }
        }
        Ok(())
    }

    /// The next life begins with what is there.
    pub(crate) fn settle(&mut self, shown: &ShownBranches, order: &[(u64, u64)]) {
        let there: BTreeSet<u64> = order.iter().map(|(_, id)| *id).collect();
        self.branches.retain(|id, _| there.contains(id));
        for (id, facts) in &mut self.branches {
            facts.prepared = Known::Lasts;
            let commits = shown.rows.contains_key(id);
            if there.contains(&(id + 1)) {
                (facts.ended, facts.unlisted) = (Known::Lasts, true);
                facts.end = (facts.branch.rows > 0).then_some(commits).or(facts.end);
                if facts.branch.rows > 0 {
                    facts.asked[usize::from(commits)] = true;
                }
            } else {
                (facts.ended, facts.unlisted) = (Known::Nothing, false);
                (facts.end, facts.asked) = (None, [false; 2]);
            }
        }
    }
}
