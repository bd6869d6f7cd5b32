//! Runs a script by one call of `Pipeline::output_with`.

use std::io::Cursor;
use std::time::{Duration, Instant};

use minder::{CaptureOptions, Command, ErrorKind, ExitStatus, Pipeline, PipelineOutput};

use super::lone::can_kill_all;
use super::model::{check_prefix, file_bytes, tally};
use super::plan::{Act, Files, Host, Input, LONG, Output, Plan, Script, input_bytes, signaled};
use super::processes::Tag;

/// The exit code of a stage whose reader is gone.
const NO_READER: ExitStatus = ExitStatus::Exited(141);

pub(super) fn run(script: &Script, missing: Option<usize>) {
    let Host::Pipeline { timeout_ms, bytes_max, by_reader, .. } = script.host else { return };
    let plans = &script.children;
    let input = match plans[0].input {
        Input::Piped => input_bytes(script.limits.bytes.min(300_000)),
        Input::Null | Input::File(_) => Vec::new(),
    };
    let (pipeline, files) = pipeline(script, missing);
    let may_end = |plan: &Plan| !plan.holds_pipe(true) || can_kill_all(plan);
    let is_short = timeout_ms.is_some_and(|ms| ms < 1000);
    let has_end = !plans.iter().any(|plan| plan.holds_pipe(true)) || (is_short && plans.iter().all(may_end));
    let leak_timeout = script.limits.leak_ms.map(Duration::from_millis);
    let mut options = CaptureOptions::new()
        .max_bytes(bytes_max)
        .leak_timeout(if has_end { leak_timeout } else { Some(Duration::from_millis(20)) })
        .kill(script.last_kill.termination());
    if let Some(ms) = timeout_ms {
        options = options.timeout(Duration::from_millis(ms));
    }
    if plans[0].input == Input::Piped {
        let bytes = input.clone();
        options = if by_reader { options.input_reader(Cursor::new(bytes)) } else { options.input(bytes) };
    }
    let begun = Instant::now();
    let result = pipeline.output_with(options);
    tally("pipelines", true);
    let output = match result {
        Ok(output) => output,
        Err(error) if missing.is_some() => return assert_eq!(error.kind(), ErrorKind::NotFound, "{error}"),
        Err(error) => {
            let most: usize = captured_at_most(plans, input);
            return assert!(error.kind() == ErrorKind::Limit && most > bytes_max, "{most} bytes: {error}");
        }
    };
    assert!(missing.is_none(), "a program that does not exist");
    let captured = output.stdout.len() + output.stages.iter().map(|stage| stage.stderr.len()).sum::<usize>();
    assert!(captured <= bytes_max, "{captured} bytes of {bytes_max}");
    let timeout = timeout_ms.map(Duration::from_millis);
    let timed_out = output.stages.iter().any(|stage| stage.timed_out);
    assert!(!timed_out || timeout.is_some_and(|timeout| begun.elapsed() >= timeout), "early: {output:?}");
    check(script, &output, &files, input, timeout.is_some());
}

/// Returns the pipeline, and the files that the outputs of its stages go to.
fn pipeline(script: &Script, missing: Option<usize>) -> (Pipeline, Vec<Files>) {
    let last = script.children.len() - 1;
    let mut files = Vec::new();
    let mut pipeline = None;
    for (number, plan) in script.children.iter().enumerate() {
        let tag = Tag::of_child(script.seed, number);
        let (mut command, its_files) = plan.stage(tag.word(), number > 0, number < last);
        if missing == Some(number) {
            command = Command::new("/no/such/program");
        }
        files.push(its_files);
        pipeline = Some(match pipeline {
            None => Pipeline::new(command),
            Some(pipeline) => Pipeline::pipe(pipeline, command),
        });
    }
    (pipeline.expect("a pipeline has stages"), files)
}

/// Returns which outputs of a stage the call captures.
fn captured(plan: &Plan, is_last: bool) -> [bool; 2] {
    let [stdout, stderr] = plan.piped();
    [is_last && stdout, stderr]
}

fn captured_at_most(plans: &[Plan], mut input: Vec<u8>) -> usize {
    let mut most = 0;
    for (number, plan) in plans.iter().enumerate() {
        let [stdout, stderr] = expected(plan, number, input);
        let [has_stdout, has_stderr] = captured(plan, number + 1 == plans.len());
        most += usize::from(has_stdout) * stdout.len() + usize::from(has_stderr) * stderr.len();
        input = stdout;
    }
    most
}

/// Returns what a stage writes that gets this input.
fn expected(plan: &Plan, number: usize, input: Vec<u8>) -> [Vec<u8>; 2] {
    let input = match plan.input {
        Input::File(bytes) if number == 0 => input_bytes(bytes),
        _ => input,
    };
    plan.expected_of(input).bytes
}

/// Checks every stage: its status, and what it wrote as far as that is known.
fn check(script: &Script, output: &PipelineOutput, files: &[Files], input: Vec<u8>, has_timeout: bool) {
    let plans = &script.children;
    assert_eq!(output.stages.len(), plans.len());
    let mut killed: Vec<_> = script.last_kill.signals().into_iter().map(signaled).collect();
    killed.push(signaled(libc::SIGKILL));
    // The input of the next stage, if all of it is known.
    let mut known = Some(input);
    for (number, (plan, stage)) in plans.iter().zip(&output.stages).enumerate() {
        let what = format!("stage {number}: {:?}, timed_out {}", stage.status, stage.timed_out);
        let next = plans.get(number + 1);
        let next_is_broken = output.stages.get(number + 1).is_some_and(|next| next.status == NO_READER);
        let may_break =
            next.is_some_and(|next| writes(plan) && (has_timeout || next_is_broken || !next.reads_all()));
        let is_broken = may_break && stage.status == NO_READER;
        let is_natural = plan.natural_exit() == Some(stage.status);
        let is_killed = stage.timed_out && killed.contains(&stage.status);
        assert!(is_natural || is_broken || is_killed, "{what}");
        assert!(stage.usage.is_some(), "{what}");
        let is_whole = is_natural && !is_broken && matches!(stage.status, ExitStatus::Exited(_));
        tally("stages", true);
        tally("stages without a reader", is_broken);
        tally("whole stages", is_whole);
        tally("stages that timed out", stage.timed_out);
        let [stdout, stderr] = captured(plan, next.is_none());
        if is_whole && !has_timeout && !plan.holds_pipe(false) {
            let holds = holds(plan, [stdout, stderr]);
            assert_eq!(stage.leaked, holds, "leaked: {what}");
            tally("stages that leaked", holds);
        }
        // What an `echo` writes depends on what the stage before has written.
        let reads_unknown = known.is_none() && echoes(plan);
        let bytes = expected(plan, number, known.take().unwrap_or_default());
        let outputs = [stdout.then_some(&output.stdout), stderr.then_some(&stage.stderr)];
        for (stream, captured) in outputs.into_iter().enumerate() {
            let arrived = match (&files[number][stream], captured) {
                (Some(file), _) => file_bytes(file),
                (None, Some(captured)) => captured.clone(),
                (None, None) => continue,
            };
            if !reads_unknown {
                check_prefix(&arrived, &bytes[stream], is_whole, &format!("stream {stream}, {what}"));
            }
        }
        let [stdout, _] = bytes;
        known = (is_whole && !reads_unknown).then_some(stdout);
    }
}

/// Returns whether the stage writes to its standard output before it closes that.
fn writes(plan: &Plan) -> bool {
    plan.acts.iter().any(|act| match act {
        Act::Out { .. } | Act::Both { .. } | Act::Echo => true,
        Act::Err { .. } => plan.error.is_none(),
        _ => false,
    })
}

/// Returns whether the stage writes what it reads.
fn echoes(plan: &Plan) -> bool {
    let reads = plan.acts.iter().find(|act| matches!(act, Act::Drain | Act::CloseIn | Act::Echo));
    reads == Some(&Act::Echo)
}

/// Returns whether a process that outlives the stage for long keeps an output open that is captured.
fn holds(plan: &Plan, captured: [bool; 2]) -> bool {
    let mut open = [captured[0], captured[1] || (plan.error.is_none() && captured[0])];
    debug_assert!(!captured[1] || plan.error == Some(Output::Piped));
    plan.acts.iter().any(|act| {
        match act {
            Act::CloseOut => open[0] = false,
            Act::CloseErr => open[1] = false,
            _ => (),
        }
        matches!(act, Act::Hold(ms) if *ms >= LONG) && open.contains(&true)
    })
}
