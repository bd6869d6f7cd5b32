//! Regions, and copies of values from one place to another.

use minder_cells::{Error, Heap, HeapConfig, Region, RegionPool};

fn heap() -> Heap {
    Heap::new(HeapConfig::new().verify(true)).expect("reserve a heap")
}

fn parse(pool: &RegionPool, text: &str) -> Region {
    pool.parse_json(text.as_bytes()).expect("it is JSON")
}

#[test]
fn regions_of_one_pool_do_not_disturb_each_other() {
    let pool = RegionPool::new();
    let text = |number: usize| format!("{{\"number\":{number},\"text\":\"{}\"}}", "x".repeat(number % 40));
    let mut regions: Vec<(usize, Region)> = Vec::new();
    for number in 0..if cfg!(miri) { 60 } else { 2_000 } {
        regions.push((number, parse(&pool, &text(number))));
        if number % 3 == 0 {
            let (old, region) = regions.remove(number / 7 % regions.len());
            assert_eq!(region.view().to_json(), text(old));
        }
        if regions.len() > 30 {
            regions.drain(..20);
        }
    }
    for (number, region) in &regions {
        assert_eq!(region.view().to_json(), text(*number));
    }
}

#[test]
fn memory_of_a_larger_message_shows_nothing_of_it_to_the_next_one() {
    let pool = RegionPool::new();
    for _ in 0..3 {
        let large = format!("[{}]", vec!["\"yyyyyyyyyyyyyyyyyyyyyyyy\""; 1_000].join(","));
        drop(parse(&pool, &large));
        for text in [
            "\"\"",
            "\"1234567\"",
            "\"12345678\"",
            "\"123456789\"",
            "[]",
            "[1]",
            "[1,2]",
            "{}",
            "{\"a\":1}",
            "{\"a\":1,\"a\":1}",
        ] {
            let region = parse(&pool, text);
            assert_eq!(region.view().to_json(), text);
            assert!(region.bytes() <= 80, "{} bytes for {text}", region.bytes());
        }
    }
}

#[test]
fn a_refused_message_leaves_the_pool_usable() {
    let pool = RegionPool::new();
    for _ in 0..3 {
        assert!(pool.parse_json(b"{\"key\": [1, \"text\", {\"key\": }]}").is_err());
        assert_eq!(parse(&pool, "{\"key\":[1,\"text\"]}").view().to_json(), "{\"key\":[1,\"text\"]}");
    }
}

#[test]
fn a_region_outlives_its_pool_and_moves_to_another_thread() {
    let region = parse(&RegionPool::new(), "[1,[2]]");
    let text = std::thread::spawn(move || region.view().to_json()).join().expect("the thread does not panic");
    assert_eq!(text, "[1,[2]]");
}

#[test]
fn threads_share_a_pool() {
    let pool = RegionPool::new();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let pool = &pool;
            scope.spawn(move || {
                for number in 0..if cfg!(miri) { 10 } else { 1_000 } {
                    let text = format!("{{\"thread\":{thread},\"number\":{number}}}");
                    assert_eq!(parse(pool, &text).view().to_json(), text);
                }
            });
        }
    });
}

#[test]
fn heaps_and_regions_are_sent_to_threads_and_shared() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<Heap>();
    is_shared::<Region>();
    is_shared::<RegionPool>();
}

#[test]
fn a_copy_has_each_shared_value_once() {
    let levels = 40;
    let mut from = heap();
    let root = from.mutate(|cells| {
        let mut value = cells.vector(&[]).expect("the heap has room");
        for level in 0..levels {
            value = match level % 3 {
                0 => cells.cons(value, value),
                1 => cells.vector(&[value, value]),
                _ => cells.symbol("key").and_then(|key| cells.map(&[(key, value), (key, value)])),
            }
            .expect("the heap has room");
        }
        cells.root(value).expect("memory for a root")
    });
    from.collect().expect("collect");
    let mut to = heap();
    // Without memory of what was copied there would be 2⁴⁰ values.
    to.mutate(|cells| {
        let copy = cells.copy(from.get(root).expect("it is a root")).expect("the heap has room");
        cells.root(copy).expect("memory for a root")
    });
    to.collect().expect("collect");
    assert_eq!(to.stats().allocated_cells, from.stats().allocated_cells);
    assert_eq!(to.stats().found_values, from.stats().found_values);
}

#[test]
fn a_cyclic_value_is_not_copied() {
    let mut from = heap();
    let roots = from.mutate(|cells| {
        let pair = cells.cons(cells.nil(), cells.nil()).expect("the heap has room");
        cells.set_second(pair, pair).expect("it is a pair");
        let one = cells.int(1).expect("it needs no cell");
        let vector = cells.vector(&[one, one]).expect("the heap has room");
        let inner = cells.vector(&[vector]).expect("the heap has room");
        let map = cells.map(&[(one, inner)]).expect("the heap has room");
        cells.set_element(vector, 1, map).expect("it has the element");
        [pair, vector].map(|value| cells.root(value).expect("memory for a root"))
    });
    from.collect().expect("collect");
    assert_eq!(from.stats().found_values, 4);
    let mut to = heap();
    for root in roots {
        let copied = to.mutate(|cells| cells.copy(from.get(root).expect("it is a root")).map(drop));
        assert!(matches!(copied, Err(Error::Invalid { .. })), "{copied:?}");
    }
    to.collect().expect("collect");
    assert_eq!(to.stats().allocated_cells, 0);
    for root in roots {
        assert!(from.release(root));
    }
    from.collect().expect("collect");
    assert_eq!(from.stats().allocated_cells, 0);
}

#[test]
fn numbers_of_values_lead_back_to_them_and_others_to_none() {
    let message = r#"{"a":[1,-2.5,"text",null,true,18446744073709551615],"b":{"c":[]}}"#;
    let region = RegionPool::new().parse_json(message.as_bytes()).expect("it is JSON");
    let mut views = vec![region.view()];
    while let Some(view) = views.pop() {
        let same = region.view_of_bits(view.to_bits()).expect("a value of the region");
        assert_eq!(same.to_json(), view.to_json());
        views.extend(view.elements());
        views.extend(view.entries().flat_map(|(key, value)| [key, value]));
    }
    let cells = (region.bytes() / 16) as u64;
    // An index behind the cells, for each kind that has one, and a constant that does not exist.
    for bits in (1..7).map(|tag| cells << 3 | tag).chain([4 << 3 | 7, u64::MAX]) {
        assert!(region.view_of_bits(bits).is_none(), "{bits:#x}");
    }
    let (key, value) = region.view().entries().nth(1).expect("a second entry");
    assert_eq!((key.as_str(), value.to_json().as_str()), (Some("b"), r#"{"c":[]}"#));
    assert!(region.view().entries().nth(2).is_none());
}
