//! The HTTP server under load: connections that stay open, idle connections, a connection for each request.

use super::Ruby;
use super::contestant::Contestant;
use super::server::{self, Load};
use crate::bench::{Answer, Bench};
use crate::goals::{Aim, Goal};
use crate::samples::Samples;
use crate::table::{markdown, show};
use anyhow::Result;
use minder_lab::chart::{Bar, BarChart, BarGroup};

/// The samples have no further size.
const SIZE: usize = 0;

/// The servers of other projects, and those that do not use our gem.
const PEERS: [&str; 4] = ["async:epoll", "async:io_uring", "evt:epoll", "evt:select"];

/// How a question differs from the others.
struct Shape<'a> {
    load: Load,
    /// The contestants in addition to ours and those of [`PEERS`].
    others: &'a [&'a str],
    goals: fn(&Samples, &Contestant) -> Vec<Goal>,
    remark: &'a str,
}

pub(super) fn keep_alive(bench: &Bench, ruby: &Ruby) -> Result<Answer> {
    let load = Load { connections: 64, idle: 0, requests: bench.scaled(100_000), is_closing: false };
    let remark = "The blocking server serves one connection; the others wait until it is closed. So a ratio \
                  to it shows that the server has concurrency, and hardly how well its scheduler waits.";
    let others = &["c", "blocking", "threads", "reference"];
    answer(bench, ruby, &Shape { load, others, goals: goals_of_keep_alive, remark })
}

pub(super) fn idle(bench: &Bench, ruby: &Ruby) -> Result<Answer> {
    let load = Load { connections: 16, idle: 1_000, requests: bench.scaled(50_000), is_closing: false };
    let remark = "The idle connections are accepted before the measurement, and send nothing. select(2) and \
                  poll(2) check each of them in every wait.";
    let others = &["c", "threads", "reference"];
    answer(bench, ruby, &Shape { load, others, goals: goals_of_idle, remark })
}

pub(super) fn close(bench: &Bench, ruby: &Ruby) -> Result<Answer> {
    let load = Load { connections: 64, idle: 0, requests: bench.scaled(30_000), is_closing: true };
    let remark = "A request is there when its connection is accepted, so the blocking server never waits. \
                  The ratios to it that were published for evt (select 3.33, epoll 4.21) are not to be \
                  expected from this load. The rate is limited by the client, too: compare the processor \
                  time.";
    let others = &["c", "blocking", "threads", "reference"];
    answer(bench, ruby, &Shape { load, others, goals: goals_of_close, remark })
}

fn answer(bench: &Bench, ruby: &Ruby, shape: &Shape<'_>) -> Result<Answer> {
    let named = |names: &[&str]| names.iter().map(|name| Contestant::new(*name)).collect::<Vec<_>>();
    let all = [named(shape.others), ruby.ours(), named(&PEERS)].concat();
    let samples = ruby.rounds(bench, &all, &[SIZE], |(who, _)| {
        let is_slow = who.mode() == "blocking";
        let requests = if is_slow { shape.load.requests / 5 } else { shape.load.requests };
        server::sample(ruby, who, Load { requests, ..shape.load })
    })?;
    let mut remarks = Vec::new();
    let Load { connections, idle, requests, .. } = shape.load;
    remarks.push(format!(
        "{requests} requests on {connections} connections{} after {} that were not measured; the blocking \
         server has a fifth of them. The client, benches/peers/ruby/http_load.c, has one thread and checks \
         every byte. The servers in Ruby are one program, bindings/ruby/samples/http_server.rb. Each sample \
         has a new process. reference: the scheduler of Ruby's own tests.",
        if idle > 0 { format!(", {idle} idle ones,") } else { String::new() },
        requests / 10,
    ));
    remarks.push(
        "CPU: the process clock of the server, all its threads, from the first measured request to the \
         last response. A send on the loopback device includes the work of the receiver's half of TCP. \
         HWM: of the server."
            .into(),
    );
    remarks.push(shape.remark.into());
    let goals = (shape.goals)(&samples, &ruby.best());
    let costs = format!("CPU: of the server, for each request.\n\n{}", costs(&samples, &all));
    Ok(Answer::with_goals(&samples, &goals, &costs, remarks))
}

/// Returns goals for the ratio of a number of ours to that of others.
fn ratios(
    samples: &Samples,
    ours: &Contestant,
    name: &str,
    title: &str,
    others: &[(&str, Aim)],
) -> Vec<Goal> {
    let goal = |(other, aim): &(&str, Aim)| {
        let other = Contestant::new(*other);
        let what = format!("{title}: {} over {}", ours.title(), other.title());
        Goal::ratio(what, samples.ratio((ours, SIZE), (&other, SIZE), name), *aim)
    };
    others.iter().map(goal).collect()
}

const CPU: (&str, &str) = ("cpu_us", "CPU");
const RATE: (&str, &str) = ("rate", "requests per second");

fn goals_of_keep_alive(samples: &Samples, ours: &Contestant) -> Vec<Goal> {
    let cpu = [
        ("c", Aim::AtMost(1.5)),
        ("async:epoll", Aim::AtMost(0.95)),
        ("evt:epoll", Aim::AtMost(0.65)),
        ("threads", Aim::None),
        ("reference", Aim::None),
        ("minder:io_uring", Aim::None),
    ];
    let rate = [("blocking", Aim::AtLeast(10.0)), ("threads", Aim::None)];
    let mut goals = ratios(samples, ours, CPU.0, CPU.1, &cpu);
    goals.extend(ratios(samples, ours, RATE.0, RATE.1, &rate));
    goals
}

fn goals_of_idle(samples: &Samples, ours: &Contestant) -> Vec<Goal> {
    let cpu = [
        ("c", Aim::AtMost(2.2)),
        ("async:epoll", Aim::AtMost(0.95)),
        ("evt:epoll", Aim::AtMost(0.65)),
        ("evt:select", Aim::None),
        ("reference", Aim::None),
        ("minder:io_uring", Aim::None),
    ];
    ratios(samples, ours, CPU.0, CPU.1, &cpu)
}

fn goals_of_close(samples: &Samples, ours: &Contestant) -> Vec<Goal> {
    let cpu = ["c", "blocking", "threads", "reference", "async:epoll", "evt:epoll"].map(|n| (n, Aim::None));
    let mut goals = ratios(samples, ours, CPU.0, CPU.1, &cpu);
    goals.extend(ratios(samples, ours, RATE.0, RATE.1, &[("blocking", Aim::None)]));
    goals
}

/// Returns a table with a line for each server.
fn costs(samples: &Samples, all: &[Contestant]) -> String {
    let head = [
        "server",
        "CPU us/request",
        "x C",
        "requests/s",
        "x blocking",
        "p50 us",
        "p99 us",
        "server busy",
        "HWM MiB",
    ];
    let ratio =
        |who: &Contestant, other: &str, name: &str| show(samples.ratio((who, SIZE), (other, SIZE), name), 2);
    let line = |who: &Contestant| {
        let cell = |name, factor, decimals| samples.cell((who, SIZE), (name, factor, decimals));
        vec![
            who.title(),
            cell("cpu_us", 1.0, 1),
            ratio(who, "c", "cpu_us"),
            cell("rate", 1.0, 0),
            ratio(who, "blocking", "rate"),
            cell("p50_us", 1.0, 0),
            cell("p99_us", 1.0, 0),
            cell("busy", 1.0, 2),
            cell("peak_kib", 1.0 / 1024.0, 1),
        ]
    };
    markdown(&head, &all.iter().map(line).collect::<Vec<_>>())
}

/// Returns a chart of the processor time of a request, with a group for each question.
pub(crate) fn chart(questions: &[(&str, Samples)], machine: &str) -> BarChart {
    let bar = |samples: &Samples, name: &str| {
        let who = Contestant::new(name);
        let value = samples.spread((&who, SIZE), CPU.0)?;
        Some(Bar { label: who.title(), value, is_ours: who.mode() == "minder" })
    };
    let group = |(title, samples): &(&str, Samples)| BarGroup {
        title: (*title).into(),
        bars: samples.names().into_iter().filter_map(|name| bar(samples, name)).collect(),
    };
    BarChart {
        title: "HTTP server in Ruby: processor time of a request".into(),
        subtitle: format!("{machine}\nmicroseconds of the server, medians with extremes"),
        groups: questions.iter().map(group).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goals::assert_measured;

    #[test]
    fn goals_take_numbers_that_the_rows_have() {
        let ours = Contestant::new("minder:epoll");
        assert_measured("ruby-keep-alive", |samples| goals_of_keep_alive(samples, &ours));
        assert_measured("ruby-idle", |samples| goals_of_idle(samples, &ours));
        assert_measured("ruby-close", |samples| goals_of_close(samples, &ours));
    }

    #[test]
    fn chart_has_a_bar_for_each_server() {
        let mut samples = Samples::default();
        for (round, name, cpu) in [(1, "c", 4.0), (1, "minder:epoll", 6.0), (2, "c", 5.0)] {
            samples.add(round, (name, SIZE), vec![("cpu_us".into(), cpu)]);
        }
        let chart = chart(&[("a question", samples)], "a machine");
        let bars: Vec<_> =
            chart.groups[0].bars.iter().map(|bar| (&*bar.label, bar.value.median, bar.is_ours)).collect();
        assert_eq!(bars, [("server in C (epoll)", 4.5, false), ("minder (epoll)", 6.0, true)]);
    }
}
