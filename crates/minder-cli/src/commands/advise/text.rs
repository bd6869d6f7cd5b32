//! The advice for people: a table, and sentences that give the reasons.

use std::io::Write;
use std::time::Duration;

use anyhow::Result;

use super::command_line::CommandLine;
use crate::advise::{Advice, Doubt, Limit, Order, Prediction};
use crate::ui::{count, format_bytes, time};
use minder_ui::format::fill_text;
use minder_ui::symbols::Symbols;
use minder_ui::table::{Column, Table, terminal_width};

/// Prints the advice. `command` is the command line to type.
pub(super) fn print(out: &mut dyn Write, advice: &Advice, command: &CommandLine) -> Result<()> {
    let width = terminal_width();
    writeln!(out, "{}\n", fill_text(&work(advice), width))?;
    let right = ["elapsed", "mean turnaround"].map(Column::right);
    let columns = [Column::left("")].into_iter().chain(right).chain([Column::right("p95").optional()]);
    let mut table = Table::new(out, columns.collect());
    let elapsed = advice.measured_whole().unwrap_or(advice.as_run.elapsed);
    let as_run = Prediction { elapsed, ..advice.as_run };
    table.row(&row("one by one", &advice.serial))?;
    table.row(&row(&format!("as it ran (-j{})", advice.slots), &as_run))?;
    if let Some(other) = &advice.other {
        table.row(&row(&format!("-j{}, {}", other.slots, order(other.order)), other))?;
    }
    let advised = &advice.advised;
    let name = match advised.order {
        Order::Given => format!("advised (-j{})", advised.slots),
        other => format!("advised (-j{}, {})", advised.slots, order(other)),
    };
    table.row(&row(&name, advised))?;
    table.finish()?;
    writeln!(out, "\n{}", fill_text(&degree(advice), width))?;
    writeln!(out, "{}", fill_text(&order_reason(advice), width))?;
    if let Some(why) = command.keeps_order {
        let sentence = format!("This run cannot have another order: {why}.");
        writeln!(out, "{}", fill_text(&sentence, width))?;
    }
    // Not broken, so that it can be copied.
    writeln!(out, "\n  {}\n", Symbols::of_locale().convert(&command.line))?;
    writeln!(out, "Prediction error on this run: {:.0} %.", advice.error * 100.0)?;
    let doubts = advice.doubts.iter().filter_map(|doubt| doubt_text(doubt, advice));
    for sentence in missing(advice).into_iter().chain(doubts).chain(left_out(advice)) {
        writeln!(out, "{}", fill_text(&sentence, width))?;
    }
    Ok(())
}

/// Describes the jobs: `This work was 94 % CPU, 6 % waiting; …`.
fn work(advice: &Advice) -> String {
    let (least, most) = advice.cpu_part;
    let kind = match (percent(least.min(1.0)), percent(most.min(1.0))) {
        _ if least > 1.05 => format!("CPU, with {least:.1} threads at once in each job"),
        (part, most) if part == most => format!("{part} % CPU, {} % waiting", 100 - part),
        (part, most) => format!("{part} to {most} % CPU"),
    };
    let [shortest, median, longest] = advice.own.map(|own| time(seconds(own)));
    let busy = match advice.busy {
        Some(busy) => format!(", {} % busy", percent(busy)),
        None => String::new(),
    };
    format!(
        "This work was {kind}; {} of {shortest} to {longest} (median {median}); {}{busy}.",
        count(advice.jobs, "job"),
        count(advice.cores, "processor")
    )
}

fn row(name: &str, prediction: &Prediction) -> [String; 4] {
    let times = |value: f64| {
        let digits = if value < 9.95 { 1 } else { 0 };
        Symbols::of_locale().convert(&format!("{value:.digits$} ×")).into_owned()
    };
    [format!("  {name}"), time(seconds(prediction.elapsed)), times(prediction.mean), times(prediction.p95)]
}

fn order(order: Order) -> &'static str {
    match order {
        Order::Given => "as given",
        Order::Shortest => "shortest first",
        Order::Longest => "longest first",
    }
}

/// Explains the number of jobs at once.
fn degree(advice: &Advice) -> String {
    let slots = advice.advised.slots;
    let compared = match slots.cmp(&advice.slots) {
        std::cmp::Ordering::Less => "fewer than before",
        std::cmp::Ordering::Equal => "as before",
        std::cmp::Ordering::Greater => "more than before",
    };
    match advice.limit {
        Limit::Jobs if advice.not_run.is_none() => format!(
            "With -j{slots}, {compared}, all jobs of the record can run at once: they do not need more \
             processors."
        ),
        Limit::Jobs => {
            format!("All {slots} jobs can run at once, {compared}: they do not need more processors.")
        }
        Limit::Processors => {
            format!("With -j{slots}, {compared}, the processors are used fully: more gains little.")
        }
        Limit::Busy => {
            format!("The jobs used the processors fully, so no more than -j{slots} is advised.")
        }
        Limit::BusyByOthers => format!(
            "Other programs kept the processors {} % busy, so it is not known whether more than -j{slots} \
             would help: run the jobs again on an idle machine.",
            percent(advice.busy.unwrap_or(1.0))
        ),
        Limit::Delay => {
            format!("The time between two starts (--delay) keeps more than -j{slots} from running at once.")
        }
        Limit::Memory => {
            let (_, available) = advice.memory.unwrap_or_default();
            format!(
                "More than -j{slots} may not fit into memory: {} were available.",
                format_bytes(available)
            )
        }
    }
}

fn order_reason(advice: &Advice) -> String {
    let advised = &advice.advised;
    match (advised.order, &advice.other) {
        (Order::Shortest, Some(other)) => format!(
            "Shortest first has the best mean turnaround; longest first would end {}.",
            difference(other.elapsed, advised.elapsed)
        ),
        (Order::Longest, Some(other)) => format!(
            "Longest first ends {}; shortest first has the best mean turnaround.",
            difference(advised.elapsed, other.elapsed)
        ),
        _ if advised.slots as u64 >= advice.simulated => {
            "No job waits for another, so the order does not matter.".to_owned()
        }
        _ => "All jobs take about the same time, so the order does not matter.".to_owned(),
    }
}

/// Compares an elapsed time with another one: `4 % sooner`.
fn difference(elapsed: f64, other: f64) -> String {
    let part = 1.0 - elapsed / other.max(f64::MIN_POSITIVE);
    match percent(part.abs()) {
        0 => "at the same time".to_owned(),
        part_percent if part > 0.0 => format!("{part_percent} % sooner"),
        part_percent => format!("{part_percent} % later"),
    }
}

/// Describes a doubt that a reader can judge. That of the queue is in the sentence about the limit.
fn doubt_text(doubt: &Doubt, advice: &Advice) -> Option<String> {
    Some(match doubt {
        Doubt::Queue => return None,
        Doubt::Machine => "How busy the processors were is not recorded.".to_owned(),
        Doubt::Slots => format!("How many jobs ran at once is not recorded: -j{} is counted.", advice.slots),
        Doubt::Processors => {
            format!("The number of processors is not recorded: this machine has {} now.", advice.cores)
        }
        Doubt::EndedEarly => {
            "Jobs that were ended early count with the time that they ran: they may need longer.".to_owned()
        }
        Doubt::NotRun => {
            let ended = match advice.measured {
                Some(measured) => format!("The run ended after {}. ", time(seconds(measured))),
                None => String::new(),
            };
            let about = match advice.not_run {
                Some(_) => "all jobs: those that are not in the record count as like the others.",
                None => "the jobs in the record only.",
            };
            format!("{ended}The predictions are about {about}")
        }
        Doubt::OtherPrograms(part) => {
            format!("Other programs used {part} % of the processors. The predictions assume the same again.")
        }
        Doubt::MoreWaiting => {
            "More jobs wait at once than before: they take longer if they wait for the same disk or server."
                .to_owned()
        }
        Doubt::Model(part) => format!(
            "By the same model, this run would have taken {}: {part} % from what was measured.",
            time(seconds(advice.as_run.elapsed))
        ),
    })
}

/// Tells how many jobs are in the record, unless all have ended by themselves.
fn missing(advice: &Advice) -> Option<String> {
    let Advice { recorded, ended_early, .. } = advice;
    let ended = format!("{ended_early} {} ended early", if *ended_early == 1 { "was" } else { "were" });
    match (advice.not_run, advice.total) {
        (Some(0), _) if *ended_early == 0 => None,
        (Some(not_run), Some(total)) => {
            let also = if advice.killed { ", or were running at its end" } else { "" };
            Some(format!(
                "{recorded} of {} are in the record: {ended}, {not_run} did not run{also}.",
                count(total, "job")
            ))
        }
        _ => Some(format!(
            "{} are in the record: {ended}; how many did not run is not known.",
            count(*recorded, "job")
        )),
    }
}

/// Names what is not in the numbers.
fn left_out(advice: &Advice) -> Vec<String> {
    let mut parts = Vec::new();
    let mut add = |number: u64, what: &str| {
        if number > 0 {
            parts.push(format!("{} {what}", count(number, "job")));
        }
    };
    add(advice.not_started, "not started");
    add(advice.too_many, "beyond the first 4,000,000");
    let mut sentences = Vec::new();
    if !parts.is_empty() {
        sentences.push(format!("Left out: {}.", parts.join("; ")));
    }
    if advice.delay > 0.0 {
        let delay = time(seconds(advice.delay));
        sentences.push(format!("Two starts are at least {delay} apart (--delay), also in the predictions."));
    }
    if advice.retried > 0 {
        sentences.push(format!("{} counted with the last attempt only.", retried(advice.retried)));
    }
    if advice.killed {
        sentences.push("The run was killed, so its elapsed time is that of the model.".to_owned());
    }
    if advice.attempts > 1 {
        sentences.push(format!(
            "The run was resumed: its {} are taken as one.",
            count(advice.attempts.into(), "attempt")
        ));
    }
    sentences
}

fn retried(number: u64) -> String {
    if number == 1 { "1 retried job is".to_owned() } else { format!("{number} retried jobs are") }
}

fn percent(part: f64) -> u32 {
    (part * 100.0).round() as u32
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prediction(slots: usize, order: Order, elapsed: f64, mean: f64) -> Prediction {
        Prediction { slots, order, elapsed, mean, p95: mean * 2.0 }
    }

    fn advice() -> Advice {
        Advice {
            jobs: 812,
            simulated: 812,
            cpu_part: (0.94, 0.94),
            own: [0.05, 0.18, 9.8],
            cores: 2,
            busy: Some(0.97),
            others: 0.0,
            slots: 4,
            measured: Some(84.0),
            delay: 0.0,
            serial: prediction(1, Order::Given, 158.0, 412.0),
            as_run: prediction(4, Order::Given, 80.0, 198.0),
            advised: prediction(2, Order::Shortest, 82.0, 9.94),
            other: Some(prediction(2, Order::Longest, 80.0, 300.0)),
            limit: Limit::Processors,
            memory: None,
            error: 0.04,
            doubts: Vec::new(),
            attempts: 1,
            retried: 0,
            total: Some(812),
            recorded: 812,
            not_started: 0,
            ended_early: 0,
            not_run: Some(0),
            too_many: 0,
            killed: false,
        }
    }

    fn text(advice: &Advice, command: &CommandLine) -> String {
        let mut out = Vec::new();
        print(&mut out, advice, command).expect("write to memory");
        String::from_utf8(out).expect("text is UTF-8")
    }

    /// Returns the text of the advice above with a change.
    fn with(change: &dyn Fn(&mut Advice)) -> String {
        let mut advice = advice();
        change(&mut advice);
        text(&advice, &CommandLine::without_request(advice.advised))
    }

    #[test]
    fn advice_has_a_table_and_reasons() {
        let command = CommandLine {
            flags: "-j2 --order shortest".into(),
            line: "minder run -j2 --order shortest 'wc -c {}' ::: …".into(),
            keeps_order: None,
        };
        let expected = "\
This work was 94 % CPU, 6 % waiting; 812 jobs of 50 ms to 9.80 s (median 180 ms); 2 processors, 97 % busy.
                                      elapsed  mean turnaround    p95
  one by one                      2 min 38 s            412 x  824 x
  as it ran (-j4)                     84.0 s            198 x  396 x
  -j2, longest first                  80.0 s            300 x  600 x
  advised (-j2, shortest first)       82.0 s            9.9 x   20 x
With -j2, fewer than before, the processors are used fully: more gains little.
Shortest first has the best mean turnaround; longest first would end 2 % sooner.
  minder run -j2 --order shortest 'wc -c {}' ::: …
Prediction error on this run: 4 %.
";
        let shown = text(&advice(), &command);
        let words =
            |text: &str| text.replace('×', "x").split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&shown), words(expected), "{shown}");
        let columns: Vec<usize> = shown.lines().skip(2).take(5).map(|line| line.chars().count()).collect();
        assert!(columns.iter().all(|width| *width == columns[0]), "{shown}");
    }

    #[test]
    fn advice_names_missing_jobs() {
        let missing = |change: &dyn Fn(&mut Advice)| {
            let text = with(change);
            let line = text.lines().find(|line| line.contains(" in the record: ")).map(str::to_owned);
            line.unwrap_or(text)
        };
        let timed_out = missing(&|advice| advice.ended_early = 79);
        assert_eq!(timed_out, "812 of 812 jobs are in the record: 79 were ended early, 0 did not run.");
        let terminated = |advice: &mut Advice| {
            (advice.recorded, advice.jobs, advice.ended_early, advice.not_run) = (40, 40, 1, Some(771));
            advice.doubts = vec![Doubt::EndedEarly, Doubt::NotRun];
        };
        assert_eq!(
            missing(&terminated),
            "40 of 812 jobs are in the record: 1 was ended early, 771 did not run."
        );
        let text = with(&terminated);
        // The measured time is not that of all jobs.
        assert!(
            text.lines().any(|line| line.contains("as it ran (-j4) ") && line.contains(" 80.0 s ")),
            "{text}"
        );
        assert!(text.contains("The run ended after 84.0 s. The predictions are about all jobs"), "{text}");
        assert!(text.contains("Jobs that were ended early count with the time that they ran"), "{text}");
        let unknown = |advice: &mut Advice| {
            (advice.total, advice.not_run, advice.measured) = (None, None, None);
            advice.doubts = vec![Doubt::NotRun];
        };
        let text = with(&unknown);
        assert!(text.ends_with("The predictions are about the jobs in the record only.\n"), "{text}");
        let unknown = missing(&unknown);
        assert_eq!(
            unknown,
            "812 jobs are in the record: 0 were ended early; how many did not run is not known."
        );
        let killed = missing(&|advice| {
            (advice.not_run, advice.recorded, advice.jobs, advice.killed) = (Some(2), 810, 810, true)
        });
        assert!(killed.ends_with(" 2 did not run, or were running at its end."), "{killed}");
        let delayed = with(&|advice| (advice.delay, advice.limit) = (0.2, Limit::Delay));
        assert!(delayed.contains("(--delay) keeps more than -j2 from running at once."), "{delayed}");
        assert!(delayed.contains("Two starts are at least 200 ms apart (--delay)"), "{delayed}");
    }

    #[test]
    fn advice_names_its_limit_and_doubts() {
        let all = with(&|advice| {
            advice.limit = Limit::Jobs;
            advice.cpu_part = (0.001, 0.001);
            advice.advised = prediction(812, Order::Given, 9.8, 1.0);
            advice.other = None;
        });
        assert!(all.contains("All 812 jobs can run at once, more than before: they do not need"), "{all}");
        assert!(all.contains("0 % CPU, 100 % waiting") && all.contains("No job waits for another"), "{all}");
        let memory = with(&|advice| {
            advice.limit = Limit::Memory;
            advice.memory = Some((2 << 30, 3 << 30));
            advice.advised.order = Order::Given;
            advice.other = None;
        });
        assert!(
            memory.contains("More than -j2 may not fit into memory: 3.0 GiB were available."),
            "{memory}"
        );
        assert!(memory.contains("All jobs take about the same time"), "{memory}");
        let busy = with(&|advice| {
            advice.limit = Limit::Busy;
            advice.cpu_part = (1.8, 1.8);
            advice.advised.order = Order::Longest;
        });
        assert!(busy.contains("The jobs used the processors fully, so no more than -j2 is adv"), "{busy}");
        assert!(busy.contains("CPU, with 1.8 threads at once in each job"), "{busy}");
        assert!(busy.contains("Longest first ends 2 % later; shortest first has"), "{busy}");
        let others = with(&|advice| advice.limit = Limit::BusyByOthers);
        assert!(
            others.contains("Other programs kept the processors 97 % busy, so it is not known"),
            "{others}"
        );
        let range = with(&|advice| advice.cpu_part = (0.13, 1.0));
        assert!(range.starts_with("This work was 13 to 100 % CPU; 812 jobs of "), "{range}");
        let doubtful = with(&|advice| {
            advice.doubts = vec![
                Doubt::Queue,
                Doubt::Machine,
                Doubt::Slots,
                Doubt::Processors,
                Doubt::OtherPrograms(30),
                Doubt::MoreWaiting,
                Doubt::Model(6),
            ];
            (advice.not_started, advice.too_many) = (1, 3);
            (advice.retried, advice.killed, advice.attempts) = (1, true, 2);
        });
        let expected = "\
How busy the processors were is not recorded.
How many jobs ran at once is not recorded: -j4 is counted.
The number of processors is not recorded: this machine has 2 now.
Other programs used 30 % of the processors. The predictions assume the same again.
More jobs wait at once than before: they take longer if they wait for the same disk or server.
By the same model, this run would have taken 80.0 s: 6 % from what was measured.
Left out: 1 job not started; 3 jobs beyond the first 4,000,000.
1 retried job is counted with the last attempt only.
The run was killed, so its elapsed time is that of the model.
The run was resumed: its 2 attempts are taken as one.
";
        assert!(doubtful.ends_with(expected), "{doubtful}");
    }
}
