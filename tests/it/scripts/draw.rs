//! Draws a script from its seed.

use minder::{Group, OutputMode, OverflowPolicy, Restart, Size, Stream};

use super::plan::{Act, End, Ending, Host, How, Input, LONG, Limits, Output, Plan, Restarts, Script, Step};
use crate::support::backends;

/// Pseudo-random numbers, by SplitMix64.
pub(super) struct Random(u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.bits() % bound as u64) as usize
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }
}

pub(super) fn script(seed: u64) -> Script {
    let mut random = Random(seed);
    let random = &mut random;
    let host = host(random);
    let count = match host {
        Host::Lone | Host::Capture { .. } => 1,
        Host::Pipeline { .. } => 2 + random.below(3),
        Host::Set { .. } | Host::Background { .. } => 1 + random.below(5),
    };
    let limits = limits(random);
    let mut children: Vec<Plan> = (0..count).map(|_| plan(random)).collect();
    match host {
        Host::Lone | Host::Capture { .. } => children.iter_mut().for_each(|plan| fit_one(plan, host)),
        Host::Pipeline { timeout_ms, .. } => fit_stages(&mut children, timeout_ms),
        Host::Set { .. } => {
            for plan in &mut children {
                plan.restarts = restarts(random);
                if plan.restarts.is_some() && plan.input != Input::Null && random.chance(30) {
                    plan.input = Input::File(1 + size(random));
                    plan.acts.insert(0, Act::Echo);
                }
            }
        }
        Host::Background { .. } => {
            // The model cannot know which run reads what is written to a child, and which has written a file.
            let is_known = |plan: &&mut Plan| {
                let has_file = [Some(plan.output), plan.error].contains(&Some(Output::File));
                plan.input != Input::Piped && !has_file
            };
            children.iter_mut().filter(is_known).for_each(|plan| plan.restarts = restarts(random));
        }
    }
    let steps = match host {
        Host::Set { .. } => set_steps(random, count),
        Host::Background { .. } => background_steps(random, count),
        Host::Lone => lone_steps(random),
        Host::Capture { .. } | Host::Pipeline { .. } => Vec::new(),
    };
    let ending = match random.below(10) {
        0 if !matches!(host, Host::Capture { .. } | Host::Pipeline { .. }) => Ending::Drop,
        1 | 2 => Ending::Kill(how(random)),
        _ => Ending::Finish,
    };
    let kept = random.pick(&[0, 0, 1, 3, 20]);
    Script { seed, host, limits, children, steps, kept, last_kill: how(random), ending }
}

fn host(random: &mut Random) -> Host {
    let backend = random.pick(&backends());
    match random.below(12) {
        0..5 => Host::Set { backend, by_descriptor: random.chance(25) },
        5..8 => Host::Background {
            backend,
            eager_exit: random.chance(30),
            taken_bytes: random.pick(&[1, 1000, 100_000, usize::MAX]),
        },
        8 => Host::Lone,
        10 | 11 => Host::Pipeline {
            timeout_ms: random.pick(&[None, Some(5), Some(30), Some(20_000)]),
            bytes_max: random.pick(&[100, 100_000, 1 << 30, 1 << 30]),
            by_reader: random.chance(50),
            missing: if random.chance(5) { Some(random.below(2)) } else { None },
        },
        _ => Host::Capture {
            timeout_ms: random.pick(&[None, Some(5), Some(30), Some(20_000)]),
            bytes_max: random.pick(&[100, 100_000, 1 << 30, 1 << 30]),
            by_reader: random.chance(50),
        },
    }
}

fn limits(random: &mut Random) -> Limits {
    let bytes = random.pick(&[1, 3000, 100_000, 16 << 20]);
    Limits {
        children: random.pick(&[1, 2, 100, 100, 100]),
        bytes,
        child_bytes: random.pick(&[1, 3000, 100_000, 1 << 20]),
        read_bytes: random.pick(&[1, 512, 4096, 65_536]),
        read_delay_ms: random.pick(&[0, 0, 1, 3]),
        leak_ms: random.pick(&[None, Some(5), Some(20), Some(60)]),
        stop_poll_ms: random.pick(&[None, Some(2)]),
        backlog: if random.chance(20) { Some(random.pick(&[1, 10_000, 200_000])) } else { None },
        room: if random.chance(10) { Some(random.below(8)) } else { None },
    }
}

fn plan(random: &mut Random) -> Plan {
    let group = match random.below(10) {
        0..6 => Group::New,
        6 => Group::Session,
        7 | 8 => Group::Inherit,
        _ => Group::Terminal(Size::default()),
    };
    let is_terminal = matches!(group, Group::Terminal(_));
    let acts = (0..random.below(6)).map(|_| act(random, group)).collect();
    let stdio = [Output::Piped, Output::Piped, Output::Piped, Output::Null, Output::File];
    let input = match random.below(6) {
        _ if is_terminal => Input::Null,
        0 | 1 => Input::Null,
        2 => Input::File(size(random)),
        _ => Input::Piped,
    };
    let overflow = random.pick(&[OverflowPolicy::Block, OverflowPolicy::Spill, OverflowPolicy::DropOldest]);
    let is_held = overflow != OverflowPolicy::Block && random.chance(40);
    Plan {
        acts,
        end: end(random),
        input,
        output: random.pick(&stdio),
        error: if random.chance(20) { None } else { Some(random.pick(&stdio)) },
        group,
        overflow,
        mode: if is_held { OutputMode::AtExit } else { OutputMode::Stream },
        spill_as_file: random.chance(30),
        rank: random.below(3) as u64,
        deadline: if random.chance(10) { Some(deadline(random)) } else { None },
        restarts: None,
    }
}

fn restarts(random: &mut Random) -> Option<Restarts> {
    random.chance(25).then(|| Restarts {
        when: random.pick(&[Restart::OnFailure, Restart::Always]),
        delay_ms: random.pick(&[0, 1, 5, 30]),
        max_delay_ms: random.pick(&[1, 10, 40]),
        max: random.pick(&[None, Some(0), Some(1), Some(2), Some(3)]),
        is_stable: random.chance(20),
        leftovers_ms: random.pick(&[None, Some(0), Some(20)]),
    })
}

fn deadline(random: &mut Random) -> (u64, How) {
    (random.pick(&[0, 5, 30, 20_000]), how(random))
}

fn end(random: &mut Random) -> End {
    match random.below(10) {
        0..6 => End::Exit(random.below(256) as u8),
        6 => End::Raise(random.pick(&[libc::SIGTERM, libc::SIGKILL, libc::SIGUSR1, libc::SIGINT])),
        _ => End::Sleep,
    }
}

fn size(random: &mut Random) -> usize {
    match random.below(10) {
        0 => 0,
        1..5 => 1 + random.below(100),
        5..7 => 4000 + random.below(200),
        7..9 => 60_000 + random.below(12_000),
        _ => 100_000 + random.below(100_000),
    }
}

fn act(random: &mut Random, group: Group) -> Act {
    // Nothing could end what a child in our group leaves behind.
    let life = |random: &mut Random| {
        if group == Group::Inherit { 30 } else { random.pick(&[5, 30, LONG, LONG]) }
    };
    let mut bytes = size(random);
    if matches!(group, Group::Terminal(_)) {
        bytes %= 2000;
    }
    let block = (bytes / random.pick(&[1, 2, 7, 40])).max(1);
    match random.below(24) {
        0..4 => Act::Out { bytes, block },
        4..6 => Act::Err { bytes, block },
        6..8 => Act::Both { bytes, block },
        8..10 => Act::Drain,
        10..13 => Act::Echo,
        13 => Act::CloseIn,
        14 => Act::CloseOut,
        15 => Act::CloseErr,
        16 => Act::IgnoreTerm,
        17..19 => Act::Pause(random.below(15) as u64),
        19 => Act::Stop,
        20 | 21 => Act::Hold(life(random)),
        22 => Act::Leave(life(random)),
        _ => Act::Stray(life(random)),
    }
}

fn how(random: &mut Random) -> How {
    match random.below(4) {
        0 | 1 => How::Now,
        2 => How::Graceful(random.pick(&[0, 5, 30])),
        _ => {
            let signals = [libc::SIGHUP, libc::SIGINT, libc::SIGTERM, libc::SIGUSR1];
            let count = random.below(4);
            How::Signals((0..count).map(|_| (random.pick(&signals), random.below(15) as u64)).collect())
        }
    }
}

/// Removes what a lone child or a captured run cannot have.
fn fit_one(plan: &mut Plan, host: Host) {
    plan.overflow = OverflowPolicy::Block;
    plan.mode = OutputMode::Stream;
    plan.deadline = None;
    if let Host::Capture { timeout_ms, .. } = host {
        // Only a timeout ends these.
        if timeout_ms.is_none_or(|ms| ms > 1000) {
            plan.acts.retain(|act| *act != Act::Stop);
            if plan.natural_exit().is_none() {
                plan.end = End::Exit(0);
            }
        }
    }
}

/// Removes what the stages of a pipeline cannot have, and what would keep it from its end.
fn fit_stages(plans: &mut [Plan], timeout_ms: Option<u64>) {
    let last = plans.len() - 1;
    for (number, plan) in plans.iter_mut().enumerate() {
        if matches!(plan.group, Group::Terminal(_)) {
            plan.group = Group::New;
        }
        fit_one(plan, Host::Capture { timeout_ms, bytes_max: 0, by_reader: false });
        if number > 0 {
            plan.input = Input::Piped;
        }
        if number < last {
            plan.output = Output::Piped;
            for act in &mut plan.acts {
                // The next stage would wait for the end of its input.
                if let Act::Hold(ms) = act
                    && timeout_ms.is_none_or(|ms| ms > 1000)
                {
                    *ms = (*ms).min(30);
                }
            }
        }
    }
}

fn set_steps(random: &mut Random, count: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    for child in 0..count {
        steps.push(Step::Spawn(child));
        for _ in 0..random.below(8) {
            let child = random.below(child + 1);
            let stream = random.pick(&[Stream::Stdout, Stream::Stderr]);
            steps.push(match random.below(34) {
                0..5 => Step::Write(child, size(random)),
                5..7 => Step::CloseStdin(child),
                7..9 => Step::Kill(child, how(random)),
                9 => Step::KillAll(how(random)),
                10 => Step::Suspend(child),
                11 => Step::Resume(child),
                12 => Step::SuspendAll,
                13 => Step::ResumeAll,
                14 => Step::Stop(child),
                15 => Step::Continue(child),
                16 => Step::Deadline(child, if random.chance(30) { None } else { Some(deadline(random)) }),
                17 => Step::Stream(child),
                18 => Step::Forward(child, stream),
                19 => Step::Release,
                20 => Step::Wake,
                21 => random.pick(&[Step::SpawnMissing, Step::SpawnContradiction]),
                22 => Step::Restart(child, how(random)),
                _ => Step::Take(1 + random.below(10), random.pick(&[0, 1, 5, 20])),
            });
        }
    }
    steps
}

fn background_steps(random: &mut Random, count: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    for child in 0..count {
        steps.push(Step::Spawn(child));
        for _ in 0..random.below(6) {
            let child = random.below(child + 1);
            steps.push(match random.below(16) {
                0..4 => Step::Write(child, size(random)),
                4 | 5 => Step::CloseStdin(child),
                6 | 7 => Step::Kill(child, how(random)),
                8 => Step::Release,
                9 => random.pick(&[Step::SpawnMissing, Step::SpawnContradiction]),
                10 => random.pick(&[Step::Stop(child), Step::Continue(child)]),
                _ => Step::Take(1 + random.below(3), random.pick(&[0, 1, 5, 20])),
            });
        }
    }
    steps
}

fn lone_steps(random: &mut Random) -> Vec<Step> {
    let mut steps = vec![Step::Spawn(0)];
    for _ in 0..random.below(8) {
        steps.push(match random.below(10) {
            0..2 => Step::Write(0, size(random)),
            2 => Step::CloseStdin(0),
            3 => Step::Kill(0, how(random)),
            4 => random.pick(&[Step::Stop(0), Step::Continue(0)]),
            5 | 6 => Step::TryWait,
            _ => Step::Wait(random.pick(&[0, 1, 5, 20])),
        });
    }
    steps
}
