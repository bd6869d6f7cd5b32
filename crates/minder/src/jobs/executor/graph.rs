//! Dependencies between the items of one run: checked, and put into an order, before anything starts.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;

/// An edge of a graph that cannot be run.
///
/// ```
/// use minder::jobs::{Executor, GraphError};
/// use std::ops::ControlFlow;
///
/// let run = |edges: &[(usize, usize)]| {
///     let edges = edges.iter().copied();
///     let finisher = |_, _| ControlFlow::Continue(());
///     let processor = |_: &mut &str| Ok::<_, ()>(());
///     Executor::new(2).run_graph(["a", "b", "c"], edges, processor, finisher).map(|run| run.counts)
/// };
/// assert!(run(&[(0, 1), (1, 2)]).is_ok_and(|counts| counts.succeeded == 3));
///
/// let error: GraphError = run(&[(0, 1), (1, 3)]).unwrap_err();
/// assert_eq!(error.to_string(), "cannot run item 3 after item 1: there are 3 items, from 0");
/// assert_eq!((error.edge(), error.cycle()), ((1, 3), None));
///
/// let error = run(&[(0, 1), (1, 2), (2, 1)]).unwrap_err();
/// assert_eq!(error.to_string(), "cannot run item 1 after item 2: each waits for the other: 1, 2, 1");
/// assert_eq!(error.cycle(), Some(&[1, 2][..]));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphError {
    edge: (usize, usize),
    len: usize,
    /// The items of the cycle, from the end of the edge to its start. Empty if an end is unknown.
    cycle: Vec<usize>,
}

/// The most items of a cycle that a message names.
const NAMED_MAX: usize = 8;

impl GraphError {
    /// Returns the edge: the index of an item, and that of the item that starts after it.
    pub fn edge(&self) -> (usize, usize) {
        self.edge
    }

    /// Returns the items of a cycle: each starts after the one before it, and the first after the last.
    /// `None` if the edge names an item that does not exist.
    pub fn cycle(&self) -> Option<&[usize]> {
        (!self.cycle.is_empty()).then_some(&self.cycle)
    }
}

impl fmt::Display for GraphError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, after) = self.edge;
        write!(f, "cannot run item {after} after item {before}: ")?;
        match self.cycle.as_slice() {
            [] => write!(f, "there are {} items, from 0", self.len),
            [_] => f.write_str("they are the same"),
            cycle => {
                f.write_str("each waits for the other: ")?;
                for item in cycle.iter().take(NAMED_MAX) {
                    write!(f, "{item}, ")?;
                }
                if cycle.len() > NAMED_MAX {
                    f.write_str("…, ")?;
                }
                write!(f, "{after}")
            }
        }
    }
}

impl std::error::Error for GraphError {}

/// The items in an order in which each comes after those that it depends on.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) order: Vec<usize>,
    /// For each item, the items that it depends on.
    pub(super) before: Vec<Vec<usize>>,
}

impl Graph {
    /// Checks the edges of `len` items. Of the items that may start, the one with the lowest index comes
    /// first.
    pub(super) fn new(
        len: usize,
        edges: impl IntoIterator<Item = (usize, usize)>,
    ) -> Result<Self, GraphError> {
        let mut before = vec![Vec::new(); len];
        let mut dependents = vec![Vec::new(); len];
        for edge @ (first, second) in edges {
            if first >= len || second >= len {
                return Err(GraphError { edge, len, cycle: Vec::new() });
            }
            before[second].push(first);
            dependents[first].push(second);
        }
        let mut missing: Vec<usize> = before.iter().map(Vec::len).collect();
        let mut ready: BinaryHeap<_> = (0..len).filter(|&item| missing[item] == 0).map(Reverse).collect();
        let mut order = Vec::with_capacity(len);
        while let Some(Reverse(item)) = ready.pop() {
            order.push(item);
            for &dependent in &dependents[item] {
                missing[dependent] -= 1;
                if missing[dependent] == 0 {
                    ready.push(Reverse(dependent));
                }
            }
        }
        if order.len() < len {
            return Err(find_cycle(&before, &missing));
        }
        Ok(Self { order, before })
    }
}

/// Returns a cycle among the items that miss a dependency. Each of them depends on another of them, so a
/// walk from dependent to dependency comes back to an item that it has visited.
fn find_cycle(before: &[Vec<usize>], missing: &[usize]) -> GraphError {
    let is_left = |item: &usize| missing[*item] > 0;
    let mut walk = Vec::new();
    let mut position = vec![None; before.len()];
    let mut next = (0..before.len()).find(is_left);
    while let Some(item) = next {
        if let Some(start) = position[item] {
            let mut cycle = walk.split_off(start);
            cycle.reverse();
            // From the lowest item, so that the message does not depend on where the walk began.
            let lowest = cycle.iter().enumerate().min_by_key(|(_, item)| **item).map_or(0, |(at, _)| at);
            cycle.rotate_left(lowest);
            let edge = (cycle[cycle.len() - 1], cycle[0]);
            return GraphError { edge, len: before.len(), cycle };
        }
        position[item] = Some(walk.len());
        walk.push(item);
        next = before[item].iter().copied().find(is_left);
    }
    unreachable!("each item that is left depends on another one")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_item_that_depends_on_itself_is_a_cycle_of_one() {
        let error = Graph::new(2, [(1, 1)]).expect_err("a cycle");
        assert_eq!(error.to_string(), "cannot run item 1 after item 1: they are the same");
        assert_eq!(error.cycle(), Some(&[1][..]));
    }

    #[test]
    fn long_cycle_is_named_in_part_and_found_without_recursion() {
        const LEN: usize = 1_000_000;
        let edges = (0..LEN).map(|item| (item, (item + 1) % LEN));
        let error = Graph::new(LEN, edges).expect_err("a cycle");
        assert_eq!(error.cycle().map(<[usize]>::len), Some(LEN));
        let expected =
            "cannot run item 0 after item 999999: each waits for the other: 0, 1, 2, 3, 4, 5, 6, 7, …, 0";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn an_edge_may_be_named_twice() {
        let graph = Graph::new(3, [(2, 0), (2, 0), (0, 1)]).expect("no cycle");
        assert_eq!(graph.order, [2, 0, 1]);
    }

    proptest! {
        #[test]
        fn order_respects_every_edge_or_the_cycle_is_one(
            edges in proptest::collection::vec((0..12_usize, 0..12_usize), 0..24)
        ) {
            match Graph::new(12, edges.iter().copied()) {
                Ok(graph) => {
                    let mut sorted = graph.order.clone();
                    sorted.sort_unstable();
                    prop_assert_eq!(sorted, (0..12).collect::<Vec<_>>());
                    let place = |item| graph.order.iter().position(|&other| other == item);
                    prop_assert!(edges.iter().all(|&(first, second)| place(first) < place(second)));
                }
                Err(error) => {
                    let cycle = error.cycle().expect("all items exist");
                    let next = cycle.iter().cycle().skip(1);
                    let mut steps = cycle.iter().zip(next);
                    prop_assert!(steps.all(|(&first, &second)| edges.contains(&(first, second))));
                    prop_assert!(edges.contains(&error.edge()));
                }
            }
        }
    }
}
