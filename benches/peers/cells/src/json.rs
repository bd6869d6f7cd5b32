//! A message of JSON: it is parsed, and its values are dropped.

use crate::completion::Answer;
use crate::message::ITEMS;
use crate::numbers::{Numbers, count, median, spent};
use anyhow::{Context, Result, bail, ensure};
use minder_cells::RegionPool;
use sonic_rs::{JsonContainerTrait as _, JsonValueTrait as _};

pub(crate) fn measure(contestant: &str, message: &[u8], times: usize) -> Result<Numbers> {
    match contestant {
        "minder" => {
            let pool = RegionPool::new();
            let parse = || Ok(pool.parse_json(message)?);
            repeat(message.len(), times, parse, |region| {
                let items = region.view().get("result").and_then(|result| result.get("items"));
                Some(items?.elements().len())
            })
        }
        "minder-typed" => {
            let pool = RegionPool::new();
            check_typed(&pool, message)?;
            let parse = || Ok(minder_cells::from_view::<Answer>(pool.parse_json(message)?.view())?);
            repeat(message.len(), times, parse, |answer| Some(answer.result.items.len()))
        }
        "serde_json-typed" => {
            let parse = || Ok(serde_json::from_slice::<Answer>(message)?);
            repeat(message.len(), times, parse, |answer| Some(answer.result.items.len()))
        }
        "serde_json" => {
            let parse = || Ok(serde_json::from_slice::<serde_json::Value>(message)?);
            repeat(message.len(), times, parse, |value| Some(value["result"]["items"].as_array()?.len()))
        }
        "sonic-rs" => {
            let parse = || Ok(sonic_rs::from_slice::<sonic_rs::Value>(message)?);
            repeat(message.len(), times, parse, |value| {
                Some(value.get("result")?.get("items")?.as_array()?.len())
            })
        }
        other => bail!("unknown contestant `{other}` of json"),
    }
}

/// Compares the typed values of a region with those of `serde_json`, and with those of a region that was
/// made of them.
fn check_typed(pool: &RegionPool, message: &[u8]) -> Result<()> {
    let answer: Answer = minder_cells::from_view(pool.parse_json(message)?.view())?;
    ensure!(answer == serde_json::from_slice(message)?, "other typed values than those of serde_json");
    let text = serde_json::to_vec(&answer)?;
    let back = pool.deserialize(&mut serde_json::Deserializer::from_slice(&text))?;
    let back: Answer = minder_cells::from_view(back.view())?;
    ensure!(back == answer, "other typed values after a round trip");
    Ok(())
}

/// Parses the message some times. What was parsed is dropped before the next time.
fn repeat<T>(
    bytes: usize,
    times: usize,
    parse: impl Fn() -> Result<T>,
    items: impl Fn(&T) -> Option<usize>,
) -> Result<Numbers> {
    let mut parses = Vec::new();
    let mut drops = Vec::new();
    for _ in 0..times {
        let (parse, value) = spent(&parse);
        let value = value?;
        let found = items(&value).context("the message has no items")?;
        ensure!(found == ITEMS, "{found} items of {ITEMS}");
        let (drop, ()) = spent(|| drop(value));
        parses.push(parse.cpu);
        drops.push(drop.cpu);
    }
    let parse = median(parses);
    Ok(vec![
        ("parse_ms".into(), parse * 1e3),
        ("parse_mb_s".into(), count(bytes) / parse / 1e6),
        ("drop_us".into(), median(drops) * 1e6),
    ])
}
