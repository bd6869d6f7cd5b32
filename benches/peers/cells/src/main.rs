//! Chains of cells and messages of JSON: `minder_cells`, compared with `serde_json` and `sonic_rs`.
//!
//!     cells chain CONTESTANT CELLS
//!     cells json CONTESTANT FILE TIMES
//!     cells message FILE
//!     cells phase HEAP BLOCK-KIB CELLS PHASE until|through
//!
//! One process measures one contestant. The caller starts the processes in turn. `message` writes the
//! message for `json`. `phase` runs the phases of `minder bench sweep` until one begins, or through it, so
//! that a caller can count instructions of that phase.
//!
//! Prints rows `name,value`.

mod chain;
mod completion;
mod json;
mod message;
mod numbers;
mod phase;

use anyhow::{Result, bail};

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let numbers = match words[..] {
        ["chain", contestant, cells] => chain::measure(contestant, cells.parse()?)?,
        ["json", contestant, file, times] => {
            json::measure(contestant, &std::fs::read(file)?, times.parse()?)?
        }
        ["message", file] => {
            std::fs::write(file, message::completions())?;
            Vec::new()
        }
        ["phase", heap, block, cells, phase, end] => {
            phase::run(heap, block.parse()?, cells.parse()?, phase, end == "through")?;
            Vec::new()
        }
        _ => bail!("unknown arguments; hint: cells chain minder 1000000"),
    };
    for (name, value) in numbers {
        println!("{name},{value}");
    }
    Ok(())
}
