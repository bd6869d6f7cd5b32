//! The counts that a change may not exceed.

use std::io::Write as _;

use toml::de::{DeTable, DeValue};

const BUDGET: &str = include_str!("budget.toml");

/// The fraction by which a count may exceed its value without its own `tolerance`.
const TOLERANCE: f64 = 0.02;

/// The fraction below its value from which a count is reported.
const SLACK: f64 = 0.05;

/// One entry of the file.
#[derive(Debug)]
struct Entry {
    value: f64,
    tolerance: f64,
}

/// Compares counts with the budget. Fails if one is above it, and prints those that are far below.
///
/// With `MINDER_COST_OUT=FILE` it compares nothing and appends the counts to the file.
pub(super) fn check(counts: &[(&str, f64)]) {
    if let Some(path) = std::env::var_os("MINDER_COST_OUT") {
        let lines: String =
            counts.iter().map(|(name, count)| format!("{name} = {}\n", shown(*count))).collect();
        let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
        // A single write keeps the lines of several tests apart.
        return file.and_then(|mut file| file.write_all(lines.as_bytes())).expect("append counts");
    }
    let Compared { above, below } = compare(&entries(BUDGET), counts);
    for line in below {
        crate::support::tell(&format!("cost: {line}; lower its value in tests/it/cost/budget.toml"));
    }
    assert!(
        above.is_empty(),
        "above the budget of tests/it/cost/budget.toml:\n{}\nhint: remove the cost, or raise the value \
         with a reason (`cargo xtask cost --print` prints the file with the present counts)",
        above.join("\n")
    );
}

/// The counts that differ too much, a line each.
#[derive(Debug, PartialEq, Eq)]
struct Compared {
    above: Vec<String>,
    below: Vec<String>,
}

fn compare(budget: &[(String, Entry)], counts: &[(&str, f64)]) -> Compared {
    let mut compared = Compared { above: Vec::new(), below: Vec::new() };
    for (name, count) in counts {
        let Some((_, Entry { value, tolerance })) = budget.iter().find(|(entry, _)| entry == name) else {
            compared.above.push(format!("{name}: {}: no entry", shown(*count)));
            continue;
        };
        let percent = (count / value - 1.0) * 100.0;
        let line = format!("{name}: {}, {percent:+.1} % of {}", shown(*count), shown(*value));
        if *count > value * (1.0 + tolerance) {
            compared.above.push(format!("{line}; allowed: {:+.1} %", tolerance * 100.0));
        } else if *count < value * (1.0 - SLACK.max(*tolerance)) {
            compared.below.push(line);
        }
    }
    compared
}

/// Returns a count with the decimals that it is compared with.
fn shown(count: f64) -> String {
    if count < 1000.0 { format!("{count:.2}") } else { format!("{count:.0}") }
}

/// Returns the middle one of an odd number of counts.
pub(super) fn median(counts: impl Iterator<Item = f64>) -> f64 {
    let mut counts: Vec<f64> = counts.collect();
    counts.sort_by(f64::total_cmp);
    counts[counts.len() / 2]
}

/// Reads the file. Each entry has a value and a reason, and no other key except a tolerance.
fn entries(text: &str) -> Vec<(String, Entry)> {
    let document = DeTable::parse(text).expect("parse budget.toml");
    let entry = |(name, value): (&_, &toml::Spanned<DeValue<'_>>)| {
        let DeValue::Table(table) = value.get_ref() else { panic!("`{name:?}` is not a table") };
        let mut found = Entry { value: f64::NAN, tolerance: TOLERANCE };
        let mut has_reason = false;
        for (key, value) in table {
            match (key.get_ref().as_ref(), number(value.get_ref())) {
                ("value", Some(value)) => found.value = value,
                ("tolerance", Some(tolerance)) => found.tolerance = tolerance,
                ("reason", None) => {
                    has_reason = value.get_ref().as_str().is_some_and(|text| !text.is_empty())
                }
                (key, _) => panic!("`{key}` of {name:?} is not expected, or is not a number"),
            }
        }
        assert!(found.value > 0.0 && has_reason, "{name:?} needs a value and a reason");
        found
    };
    let name = |name: &toml::Spanned<toml::de::DeString<'_>>| name.get_ref().to_string();
    document.get_ref().iter().map(|(key, value)| (name(key), entry((&name(key), value)))).collect()
}

fn number(value: &DeValue<'_>) -> Option<f64> {
    let text = match value {
        DeValue::Integer(number) => number.as_str(),
        DeValue::Float(number) => number.as_str(),
        _ => return None,
    };
    text.replace('_', "").parse().ok()
}

#[test]
fn every_entry_of_the_budget_has_a_value_and_a_reason() {
    let source = include_str!("../cost.rs");
    for (name, _) in entries(BUDGET) {
        assert!(source.contains(&format!("\"{name}\"")), "no test counts {name}");
    }
}

#[test]
fn a_count_three_percent_above_fails_and_one_percent_above_passes() {
    let budget = entries("[a]\nvalue = 100\nreason = 'x'\n[b]\nvalue = 1_000\ntolerance = 0.1\nreason = 'x'");
    let above = |name, count| compare(&budget, &[(name, count)]).above;
    assert_eq!(above("a", 101.0), [""; 0]);
    assert_eq!(above("a", 103.0), ["a: 103.00, +3.0 % of 100.00; allowed: +2.0 %"]);
    assert_eq!(above("b", 1090.0), [""; 0]);
    assert_eq!(above("b", 1110.0), ["b: 1110, +11.0 % of 1000; allowed: +10.0 %"]);
    assert_eq!(above("c", 5.0), ["c: 5.00: no entry"]);
    let below = |name, count| compare(&budget, &[(name, count)]).below;
    assert_eq!(below("a", 96.0), [""; 0]);
    assert_eq!(below("a", 90.0), ["a: 90.00, -10.0 % of 100.00"]);
    assert_eq!(below("b", 920.0), [""; 0]);
}
