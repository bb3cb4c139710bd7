//! Plays seeds: `--seed N`, `--seeds N` from `--from` on, or `--minutes M`. With `--go-on` it goes on after a failure,
//! and names each seed that fails without shortening its steps.
//!
//! The limits that a seed draws belong to the whole process, so each processor gets a process.

use std::process::{Child, Command, ExitCode};
use std::time::{Duration, Instant};

use everbloom_simulation::{Plan, play, report};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |name: &str| {
        let at = args.iter().position(|arg| arg == name)?;
        args.get(at + 1)?.parse::<u64>().ok()
    };
    if let Some(seed) = number("--seed") {
        print!("{}", report::trace(&Plan::of(seed)));
        return play_all(seed, 1, 1, None);
    }
    let first = number("--from").unwrap_or(0);
    let seconds = number("--minutes").map(|minutes| 60 * minutes);
    let count = match seconds {
        Some(_) => u64::MAX,
        None => number("--seeds").unwrap_or(1000),
    };
    match number("--every") {
        Some(every) => play_all(first, count, every, seconds),
        None => on_all_processors(&args, first, count),
    }
}

/// Plays seeds from `first` on, each `every`th, and stops at the first failure.
fn play_all(first: u64, count: u64, every: u64, seconds: Option<u64>) -> ExitCode {
    let begun = Instant::now();
    let goes_on = std::env::args().any(|arg| arg == "--go-on");
    let mut failed = 0;
    let is_over = || seconds.is_some_and(|most| begun.elapsed() > Duration::from_secs(most));
    let mut played = 0;
    let every = usize::try_from(every).unwrap_or(usize::MAX);
    for seed in (first..first.saturating_add(count)).step_by(every) {
        if is_over() {
            break;
        }
        if let Err(failure) = play(&Plan::of(seed)) {
            if goes_on {
                println!(
                    "seed {seed} fails at step {}: {}",
                    failure.step, failure.what
                );
                failed += 1;
                continue;
            }
            eprintln!("{}", report::failure(seed));
            let seconds = begun.elapsed().as_secs_f64();
            eprintln!("seed {seed} fails after {seconds:.1} s");
            return ExitCode::FAILURE;
        }
        played += 1;
    }
    let seconds = begun.elapsed().as_secs_f64();
    println!("{played} seeds pass in {seconds:.1} s, {failed} fail");
    match failed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// Each process plays its share of the seeds. The first that fails ends all.
fn on_all_processors(args: &[String], first: u64, count: u64) -> ExitCode {
    let processes = std::thread::available_parallelism().map_or(1, usize::from);
    let start = |index: u64| {
        let from = first + index;
        let own = [
            ("--every", processes as u64),
            ("--from", from),
            ("--seeds", count.saturating_sub(index)),
        ];
        let own = own.map(|(name, value)| [name.to_owned(), value.to_string()]);
        Command::new(std::env::current_exe()?)
            .args(own.as_flattened())
            .args(args)
            .spawn()
    };
    let children: std::io::Result<Vec<Child>> = (0..processes as u64).map(start).collect();
    let mut children = match children {
        Ok(children) => children,
        Err(error) => {
            eprintln!("no process can be started: {error}");
            return ExitCode::FAILURE;
        }
    };
    while !children.is_empty() {
        std::thread::sleep(Duration::from_millis(50));
        let mut failed = false;
        children.retain_mut(|child| match child.try_wait() {
            Ok(None) => true,
            Ok(Some(status)) => {
                failed |= !status.success();
                false
            }
            Err(_) => {
                failed = true;
                false
            }
        });
        if failed {
            for child in &mut children {
                // It may have ended meanwhile.
                let _ = child.kill();
                let _ = child.wait();
            }
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
