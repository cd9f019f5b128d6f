//! Joins: for each row of the first table the rows of the second, and so on.

use super::filter::meets;
use super::{Joined, hash_join, outer_join, scan};
use crate::error::ExecResult;
use crate::expr::Context;
use crate::expr::profile::{self, Step};
use crate::plan::physical::{Block, Node};
use crate::rows::Flow;

/// Joins the tables of a block, if it has any rows at all. No more than `limit` of them will be wanted.
pub(super) fn run(
    block: &Block,
    limit: Option<u64>,
    cx: &mut Context<'_>,
    joined: &mut Joined<'_>,
) -> ExecResult<Flow> {
    if !meets(&block.constants, cx)? {
        return Ok(Flow::Continue);
    }
    let limit = limit.and_then(|n| usize::try_from(n).ok()).filter(|_| block.nodes.len() == 1);
    profile::joined(block, Step::Joined, cx, joined, |cx, joined| nodes(&block.nodes, limit, cx, joined))
}

/// Runs the first of some loops with the others inside of it.
pub(super) fn nodes(
    nodes: &[Node],
    limit: Option<usize>,
    cx: &mut Context<'_>,
    joined: &mut Joined<'_>,
) -> ExecResult<Flow> {
    cx.check_stack()?;
    match nodes.split_first() {
        None => joined(cx),
        Some((node, rest)) => {
            let inner = &mut |cx: &mut Context<'_>| self::nodes(rest, None, cx, joined);
            profile::joined(node, Step::Whole, cx, inner, |cx, inner| match node {
                Node::Outer(outer) => outer_join::run(outer, cx, inner),
                Node::Scan(scan) => match &scan.keep {
                    Some(keep) => hash_join::run(scan, keep, cx, inner),
                    None => scan::run(scan, limit, cx, inner),
                },
            })
        }
    }
}
