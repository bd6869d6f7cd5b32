//! `minder advise`: how to run the jobs of a run again.

mod command_line;
mod text;

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};
use minder_os::host_stats;
use minder_record::event::JournalEvent;
use minder_record::reader::{Corruption, read_journal};
use minder_record::store;

use self::command_line::{CommandLine, Request, command_line};
use crate::advise::{Advice, Doubt, Limit, Prediction, RunFacts, advise};
use crate::commands::log::{LAST, damage_text, find, last_here, run_id};
use crate::flags::AdviseFlags;
use crate::ui::{message, os_error_text};
use serde_json::json;

/// Prints the advice for the selected run.
pub(crate) fn run(out: &mut dyn Write, flags: &AdviseFlags) -> Result<()> {
    let root = store::state_root()?;
    let dir = match &flags.run {
        Some(name) => find(&root, name)?,
        None => match last_here(&root)? {
            Some(run) => run.dir,
            None => find(&root, LAST)?,
        },
    };
    let id = run_id(&dir);
    if store::is_alive(&dir) {
        bail!("run {id} is still running: `minder advise` needs a run that has ended");
    }
    let request = match Request::read(&dir) {
        Ok(request) => Some(request),
        Err(error) => {
            message(&format!("run {id} is damaged: {error:#}"));
            None
        }
    };
    let mut facts = read_facts(&dir)?;
    if let Some(request) = &request {
        facts.set_request(request.total(), request.delay());
    }
    let advice =
        advise(&facts, host_stats::processors()).map_err(|why| anyhow::anyhow!("run {id}: {why}"))?;
    let command = match &request {
        Some(request) => command_line(request, advice.advised),
        None => CommandLine::without_request(advice.advised),
    };
    if flags.json {
        writeln!(out, "{:#}", document(&id, &advice, &command))?;
        return Ok(());
    }
    text::print(out, &advice, &command)
}

/// Reads what the journals tell, in memory for the times of the jobs only. Prints a message for
/// each damaged journal.
fn read_facts(dir: &Path) -> Result<RunFacts> {
    let id = run_id(dir);
    let mut facts = RunFacts::default();
    for number in store::attempts(dir).with_context(|| format!("cannot read the record of run {id}"))? {
        facts.begin_attempt();
        let result = read_journal(&dir.join(store::attempt_name(number)), |event| match event {
            JournalEvent::Host(host) => facts.set_host(host),
            JournalEvent::JobFinished(ended) => facts.add_job(&ended),
            JournalEvent::AttemptFinished(finished) => facts.add_end(finished),
            _ => (),
        });
        let damage = match result {
            Ok(damage) => damage_text(number, &damage, None, false),
            Err(error) => damage_text(number, &Corruption::default(), Some(&os_error_text(&error)), false),
        };
        if let Some(why) = damage {
            message(&format!("run {id} is damaged: {why}"));
        }
    }
    facts.complete();
    Ok(facts)
}

fn document(id: &str, advice: &Advice, command: &CommandLine) -> serde_json::Value {
    let (least, most) = advice.cpu_part;
    json!({
        "run": id,
        "jobs": advice.jobs,
        "total": advice.total,
        "recorded": advice.recorded,
        "not_run": advice.not_run,
        "cpu_part": (least == most).then_some(least),
        "cpu_part_bounds": [least, most],
        "own": advice.own,
        "processors": advice.cores,
        "busy": advice.busy,
        "others": advice.others,
        "slots": advice.slots,
        "measured": advice.measured,
        "delay": advice.delay,
        "one_by_one": prediction(&advice.serial),
        "as_run": prediction(&advice.as_run),
        "advised": prediction(&advice.advised),
        "other_order": advice.other.as_ref().map(prediction),
        "limit": match advice.limit {
            Limit::Jobs => "jobs",
            Limit::Processors => "processors",
            Limit::Busy => "busy",
            Limit::BusyByOthers => "others",
            Limit::Memory => "memory",
            Limit::Delay => "delay",
        },
        "memory": advice.memory.map(|(needed, available)| json!({"needed": needed, "available": available})),
        "error": advice.error,
        "doubts": advice.doubts.iter().map(doubt_name).collect::<Vec<_>>(),
        "attempts": advice.attempts,
        "retried": advice.retried,
        "not_started": advice.not_started,
        "ended_early": advice.ended_early,
        "left_out": advice.too_many,
        "killed": advice.killed,
        "flags": command.flags,
    })
}

fn prediction(prediction: &Prediction) -> serde_json::Value {
    json!({
        "slots": prediction.slots,
        "order": prediction.order.name(),
        "elapsed": prediction.elapsed,
        "mean": prediction.mean,
        "p95": prediction.p95,
    })
}

fn doubt_name(doubt: &Doubt) -> &'static str {
    match doubt {
        Doubt::Queue => "queue",
        Doubt::Machine => "machine",
        Doubt::Slots => "slots",
        Doubt::Processors => "processors",
        Doubt::EndedEarly => "ended_early",
        Doubt::NotRun => "not_run",
        Doubt::OtherPrograms(_) => "other_programs",
        Doubt::MoreWaiting => "more_waiting",
        Doubt::Model(_) => "model",
    }
}
