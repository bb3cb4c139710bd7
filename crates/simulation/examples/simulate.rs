//! Plays seeds: `--seed N`, `--seeds N` from 0 on, or `--minutes M`.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use everbloom_simulation::{Plan, play};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |name: &str| {
        let at = args.iter().position(|arg| arg == name)?;
        args.get(at + 1)?.parse::<u64>().ok()
    };
    let begun = Instant::now();
    let first = number("--from").unwrap_or(0);
    let mut played = 0u64;
    let seeds: Box<dyn Iterator<Item = u64>> = match (number("--seed"), number("--minutes")) {
        (Some(seed), _) => {
            print!("{}", everbloom_simulation::report::trace(&Plan::of(seed)));
            Box::new(std::iter::once(seed))
        }
        (None, Some(minutes)) => {
            let until = begun + Duration::from_secs(60 * minutes);
            Box::new((first..).take_while(move |_| Instant::now() < until))
        }
        (None, None) => Box::new(first..first + number("--seeds").unwrap_or(1000)),
    };
    for seed in seeds {
        played += 1;
        if play(&Plan::of(seed)).is_err() {
            eprintln!("{}", everbloom_simulation::report::failure(seed));
            eprintln!(
                "after {played} seeds in {:.1} s",
                begun.elapsed().as_secs_f64()
            );
            return ExitCode::FAILURE;
        }
    }
    println!("{played} seeds in {:.1} s", begun.elapsed().as_secs_f64());
    ExitCode::SUCCESS
}
