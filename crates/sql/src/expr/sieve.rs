//! Conditions asked of rows where storage shows them, before they are taken.
//!
//! A scan takes rows in batches, and of most tables its conditions refuse most rows: to share such a row, to put it into the frame and to give it
//! back costs more than to compare a column. So the leading conditions that read what lies in the row, and constants, are asked first; a row
//! that one of them refuses is never taken. What they cannot say of a row is asked as ever once it is in the frame.
//!
//! Only leading ones, and they are asked in their order: a condition behind one that is evaluated may not keep it from warning.

use super::context::Slot;
use super::direct::Direct;
use super::eval::both;
use super::functions::string::FixedPart;
use super::in_place::{self, Lying, Rows, Text};
use super::in_place_number;
use super::node::{CompareOp, Expr, Kind};
use crate::catalog::Table;
use crate::catalog::codec::Stored;
use crate::error::ExecResult;

/// Texts longer than this are matched with patterns where KILL is looked for.
const LONG_TEXT: usize = 4096;

/// The answer of a sieve about a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It does not meet the conditions.
    Refused,
    /// It meets all of them.
    Met,
    /// Some must be evaluated.
    Open,
}

/// The leading conditions of a scan.
#[derive(Debug)]
pub(crate) struct Sieve<'p> {
    conditions: Vec<Condition<'p>>,
    /// They are all of the scan's.
    whole: bool,
    slot: u16,
}

/// A condition, or several on one column.
#[derive(Debug)]
enum Condition<'p> {
    Direct(Direct),
    Plain(&'p Expr),
}

/// A row that storage shows.
struct Shown<'r> {
    slot: u16,
    table: &'r Table,
    image: &'r [u8],
    /// The rows of other tables.
    frame: &'r [Slot],
    pads: bool,
}

impl Rows for Shown<'_> {
    #[inline]
    fn row(&self, slot: u16) -> Lying<'_> {
        match slot == self.slot {
            true => Lying::Image(self.table, self.image),
            false => self.frame.get(usize::from(slot)).map_or(Lying::Elsewhere, Slot::lying),
        }
    }

    #[inline]
    fn pads(&self) -> bool {
        self.pads
    }

    /// Counts nothing: who reads the batch counts its rows.
    fn tick(&self) -> ExecResult<()> {
        Ok(())
    }
}

impl<'p> Sieve<'p> {
    /// Of the conditions on the table in `slot`; `None` if the first of them must be evaluated.
    pub(crate) fn of(conditions: &'p [Expr], slot: u16, table: &Table) -> Option<Sieve<'p>> {
        let mut asked: Vec<Condition<'p>> = Vec::new();
        let leading = conditions.iter().take_while(|condition| is_plain(condition));
        let mut whole = 0;
        for condition in leading {
            whole += 1;
            let Some(direct) = Direct::of(condition, slot, table) else {
                asked.push(Condition::Plain(condition));
                continue;
            };
            let alone = match asked.last_mut() {
                Some(Condition::Direct(before)) => before.join(direct),
                _ => Some(direct),
            };
            asked.extend(alone.map(Condition::Direct));
        }
        let whole = whole == conditions.len();
        (!asked.is_empty()).then_some(Sieve { conditions: asked, whole, slot })
    }

    /// Asks the conditions of a stored row of the table. `pads`: CHAR columns are shown with their padding.
    pub(crate) fn ask(&self, table: &Table, image: &[u8], frame: &[Slot], pads: bool) -> Verdict {
        let shown = Shown { slot: self.slot, table, image, frame, pads };
        for condition in &self.conditions {
            let met = match condition {
                Condition::Direct(direct) => match table.rows.field(image, direct.column) {
                    Ok(Stored::Field(_, bytes)) => direct.accepts(bytes),
                    Ok(Stored::Null) => false,
                    Ok(Stored::Elsewhere) | Err(_) => return Verdict::Open,
                },
                Condition::Plain(condition) => match truth(condition, &shown) {
                    Ok(Some(truth)) => truth == Some(true),
                    // What is wrong with a row is said where it is evaluated.
                    Ok(None) | Err(_) => return Verdict::Open,
                },
            };
            if !met {
                return Verdict::Refused;
            }
        }
        if self.whole { Verdict::Met } else { Verdict::Open }
    }
}

/// Whether a condition reads nothing but what may lie somewhere.
fn is_plain(condition: &Expr) -> bool {
    match &condition.kind {
        Kind::Compare(op, _, pair) => *op != CompareOp::NullSafeEq && pair.iter().all(lies),
        Kind::Between { args, .. } => args.iter().all(lies),
        Kind::In { args, .. } => {
            lies(&args[0]) && args[1..].iter().all(|member| matches!(member.kind, Kind::Const(_)))
        }
        Kind::Like(like) => like.matcher.is_some() && lies(&like.text),
        Kind::And(list) | Kind::Or(list) => list.iter().all(is_plain),
        Kind::Not(e) => is_plain(e),
        _ => false,
    }
}

fn lies(e: &Expr) -> bool {
    match &e.kind {
        Kind::Const(_) | Kind::Column { .. } => true,
        Kind::Call(def, args) => FixedPart::of(def, args).is_some() && lies(&args[0]),
        _ => false,
    }
}

/// The truth of a plain condition; `None` if it must be evaluated.
fn truth(condition: &Expr, shown: &Shown<'_>) -> ExecResult<Option<Option<bool>>> {
    let unless =
        |negated: bool, found: Option<Option<bool>>| found.map(|truth| truth.map(|truth| truth != negated));
    Ok(match &condition.kind {
        Kind::Compare(op, collation, pair) => match in_place::compare(*op, *collation, pair, shown)? {
            None => {
                let order = in_place_number::order(&pair[0], &pair[1], shown)?;
                order.map(|order| order.map(|order| op.accepts(order)))
            }
            truth => truth,
        },
        Kind::Between { args, negated, .. } => unless(*negated, in_place_number::is_between(args, shown)?),
        Kind::In { args, collation, negated } => {
            let found = match in_place::is_in(&args[0], &args[1..], *collation, shown)? {
                None => in_place_number::is_in(&args[0], &args[1..], shown)?,
                found => found,
            };
            unless(*negated, found)
        }
        Kind::Like(like) => match (&like.matcher, in_place::text(&like.text, shown)?) {
            (Some(matcher), Text::Bytes(text)) if text.len() <= LONG_TEXT => {
                Some(Some(matcher.matches_short(text) != like.negated))
            }
            (Some(_), Text::Null) => Some(None),
            _ => None,
        },
        Kind::And(list) => {
            let mut truth = Some(true);
            for e in list {
                match self::truth(e, shown)? {
                    None => return Ok(None),
                    Some(Some(false)) => return Ok(Some(Some(false))),
                    Some(next) => truth = both(truth, next),
                }
            }
            Some(truth)
        }
        Kind::Or(list) => {
            let mut truth = Some(false);
            for e in list {
                match self::truth(e, shown)? {
                    None => return Ok(None),
                    Some(Some(true)) => return Ok(Some(Some(true))),
                    Some(None) => truth = None,
                    Some(Some(false)) => {}
                }
            }
            Some(truth)
        }
        Kind::Not(e) => unless(true, self::truth(e, shown)?),
        _ => None,
    })
}
