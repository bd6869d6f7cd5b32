//! Random operations on a heap and on a plain graph, which have to agree after each collection.
//!
//! `MINDER_CELLS` is the number of operations, `MINDER_LONG=1` makes it larger, `MINDER_SEED` repeats a
//! choice.

mod graph;
mod operation;

use std::time::Duration;

use graph::{Graph, Item, Object, Reachable};
use minder_cells::{Error, Heap, HeapConfig, RegionPool, Result, Root, Step};
use operation::Operation;

use crate::random::{Random, variable};

/// A heap, and what it has to contain.
struct Model {
    heap: Heap,
    graph: Graph,
    roots: Vec<(Root, Item)>,
    /// Roots that were released.
    stale: Vec<Root>,
    pool: RegionPool,
    random: Random,
    /// More objects than this are not kept for long.
    objects_max: usize,
    /// The first roots, which are never released.
    kept: usize,
    /// The number of times that the heap was full.
    full: usize,
}

impl Model {
    fn new(config: HeapConfig, seed: u64, objects_max: usize) -> Self {
        let (random, seed) = Random::asked(seed);
        #[expect(clippy::print_stdout, reason = "shown if the test fails")]
        {
            println!("MINDER_SEED={seed}");
        }
        Self {
            heap: Heap::new(config.verify(true)).expect("reserve a heap"),
            graph: Graph::default(),
            roots: Vec::new(),
            stale: Vec::new(),
            pool: RegionPool::new(),
            random,
            objects_max,
            kept: 0,
            full: 0,
        }
    }

    /// Does one random operation. If the heap is full, it collects, and the operation is left out.
    fn change(&mut self) {
        let done = if self.random.one_in(16) { self.release_one() } else { self.mutate() };
        match done {
            Ok(()) => (),
            Err(Error::HeapFull { .. }) => {
                self.full += 1;
                self.collect();
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn mutate(&mut self) -> Result<()> {
        let Self { heap, graph, roots, pool, random, kept, .. } = self;
        heap.mutate(|cells| Operation { cells, graph, roots, pool, random, kept: *kept }.change())
    }

    fn release_one(&mut self) -> Result<()> {
        if self.roots.len() > self.kept {
            let place = self.kept + self.random.below(self.roots.len() - self.kept);
            let (root, _) = self.roots.swap_remove(place);
            self.release(root);
        }
        Ok(())
    }

    fn release(&mut self, root: Root) {
        assert!(self.heap.release(root), "the root was not released before");
        self.stale.push(root);
    }

    /// Collects at once. Then exactly what the graph reaches is in cells.
    fn collect(&mut self) {
        self.heap.collect().expect("collect");
        let expected = self.prune();
        let stats = self.heap.stats();
        let found = [stats.allocated_cells, stats.found_values].map(|count| count as usize);
        let found = Reachable { cells: found[0], objects: found[1], symbols: stats.symbols };
        assert_eq!((found, stats.roots), (expected, self.roots.len()));
        self.compare();
    }

    /// Does a part of a collection. At its end everything that the graph reaches is there; returns that.
    fn step(&mut self, budget: Duration) -> Option<Reachable> {
        if self.heap.step(budget).expect("a step of a collection") == Step::Unfinished {
            return None;
        }
        let expected = self.prune();
        let stats = self.heap.stats();
        assert!(stats.allocated_cells >= expected.cells as u64, "{stats:?}, {expected:?}");
        assert!(stats.symbols >= expected.symbols, "{stats:?}, {expected:?}");
        self.compare();
        Some(expected)
    }

    /// Forgets what is not reachable, and releases most roots if that leaves too much.
    fn prune(&mut self) -> Reachable {
        let reachable = self.graph.prune(self.roots.iter().map(|(_, item)| *item));
        if reachable.objects > self.objects_max {
            let most = self.roots.split_off((self.kept + 1).min(self.roots.len()));
            for (root, _) in most {
                self.release(root);
            }
            // What was reachable a moment ago is compared after the next collection.
            let items = self.roots.iter().map(|(_, item)| *item);
            let left = self.graph.prune(items);
            assert!(left.objects <= reachable.objects);
            self.heap.collect().expect("collect");
            return left;
        }
        reachable
    }

    fn compare(&mut self) {
        let views = self.roots.iter().map(|(root, item)| {
            let view = self.heap.get(*root).expect("the root was not released");
            (view, *item)
        });
        self.graph.compare(views);
        let from = self.stale.len().saturating_sub(64);
        self.stale.drain(..from);
        for root in &self.stale {
            assert!(self.heap.get(*root).is_none(), "{root:?} was released");
        }
    }

    /// Makes a vector of vectors, pairs and strings. It is not released, but operations change it.
    fn add_ballast(&mut self, width: usize) {
        let Self { heap, graph, roots, .. } = self;
        let (root, item) = heap
            .mutate(|cells| {
                let mut outer = Vec::new();
                let mut outer_items = Vec::new();
                for number in 0..width {
                    let mut inner = Vec::new();
                    let mut inner_items = Vec::new();
                    for _ in 0..width {
                        let text = format!("{number}");
                        let pair = cells.string(&text).and_then(|text| cells.cons(text, cells.nil()))?;
                        let text = graph.add(Object::Text(text.into()));
                        inner.push(pair);
                        inner_items.push(graph.add(Object::Pair([text, Item::Nil])));
                    }
                    outer.push(cells.vector(&inner)?);
                    outer_items.push(graph.add(Object::Vector(inner_items)));
                }
                let outer = cells.vector(&outer)?;
                Ok::<_, Error>((cells.root(outer)?, graph.add(Object::Vector(outer_items))))
            })
            .expect("the heap has room");
        if self.kept == 1 {
            let old = std::mem::replace(&mut roots[0], (root, item));
            self.release(old.0);
        } else {
            roots.insert(0, (root, item));
            self.kept = 1;
        }
    }
}

/// Returns the number of operations of a test that does a part of them.
fn operations(part: u64) -> u64 {
    let is_long = std::env::var("MINDER_LONG").is_ok_and(|value| value == "1");
    let default = match () {
        () if cfg!(miri) => 40,
        () if is_long => 60_000,
        () => 20_000,
    };
    variable("MINDER_CELLS").unwrap_or(default) / part
}

#[test]
fn heap_agrees_with_the_graph_when_it_collects_after_each_operation() {
    let mut model = Model::new(HeapConfig::new().limit_bytes(4 << 20), 1, 200);
    for _ in 0..operations(10) {
        model.change();
        model.collect();
    }
}

#[test]
fn heap_agrees_with_the_graph_when_it_collects_in_steps_between_operations() {
    let width = if cfg!(miri) { 4 } else { 100 };
    let mut model = Model::new(HeapConfig::new(), 2, 3 * width * width);
    model.add_ballast(width);
    model.collect();
    let mut unfinished = 0;
    for operation in 0..operations(2) {
        model.change();
        if operation % 8 == 0 {
            match model.step(Duration::ZERO) {
                None => unfinished += 1,
                Some(found) if found.objects < width * width => model.add_ballast(width),
                Some(_) => (),
            }
        }
    }
    if !cfg!(miri) {
        let collections = model.heap.stats().collections as usize;
        assert!(collections > 5 && unfinished > 5 * collections, "{collections}, {unfinished}");
    }
    model.collect();
}

#[test]
fn heap_agrees_with_the_graph_when_it_collects_and_maintains_at_random() {
    let mut model = Model::new(HeapConfig::new().limit_bytes(2 << 20), 3, 3_000);
    for _ in 0..operations(1) {
        model.change();
        match model.random.below(3_000) {
            0 => model.collect(),
            1..20 => {
                let budget = Duration::from_micros(model.random.next() % 200);
                model.step(budget);
            }
            20..30 => {
                let budget = [Duration::ZERO, Duration::MAX][model.random.below(2)];
                let has_more = model.heap.maintain(budget).expect("maintain");
                assert!(!has_more || budget.is_zero());
            }
            _ => (),
        }
    }
    assert!(model.full > 0 || cfg!(miri), "the heap was never full");
    model.collect();
}
