//! The members of a nest in the order in which they are read, and the tree of joins that they become.

use crate::plan::physical::{FrameOperator, HashJoin, Keep, NestedLoop, OuterJoin, Scan};

/// A member of a nest that is planned.
pub(super) enum Node {
    /// A table, and the hash table in which it is looked up.
    Read(Box<Scan>, Option<Keep>),
    /// An outer join, which what is before it is not put into yet.
    Outer(Box<OuterJoin>),
}

/// Joins each member with those before it.
pub(super) fn joined(nodes: Vec<Node>) -> FrameOperator {
    let mut left = None;
    for node in nodes {
        left = Some(match (node, left) {
            (Node::Read(scan, None), None) => FrameOperator::Scan(scan),
            (Node::Read(scan, None), Some(left)) => {
                let right = FrameOperator::Scan(scan);
                FrameOperator::NestedLoop(Box::new(NestedLoop { left, right }))
            }
            (Node::Read(scan, Some(keep)), left) => {
                FrameOperator::HashJoin(Box::new(HashJoin { left, scan: *scan, keep }))
            }
            (Node::Outer(join), left) => FrameOperator::OuterJoin(Box::new(OuterJoin { left, ..*join })),
        });
    }
    left.unwrap_or(FrameOperator::OneRow)
}
