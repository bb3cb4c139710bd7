//! A feed that never shows an article twice: a small filter for each of 100 000 users.
//!
//! `cargo run --release --example feed`; `-- --items 2000` takes fewer users, `-- --port 6379` a
//! server that runs already.

mod support;

use std::ops::Range;
use std::time::Instant;

use redis::{Connection, RedisResult};
use support::{Embedded, Outcome, argument, figure, mixed, rate, used_memory};

const DAYS: u64 = 5;
const OFFERED: u64 = 20;
const ARTICLES: u64 = 1000;
const ERROR_RATE: f64 = 0.001;
/// Users whose requests go in one pipeline.
const BATCH: u64 = 200;

/// The articles that a user is offered on a day: some come again, the popular ones often.
fn offer(user: u64, day: u64) -> Vec<u64> {
    let pick = |place| {
        let random = mixed(mixed(user) ^ (day << 32) ^ place);
        let (a, b) = (random % ARTICLES, (random >> 32) % ARTICLES);
        a * b / ARTICLES
    };
    (0..OFFERED).map(pick).collect()
}

/// Asks for each user which articles are new, and remembers them, in one round trip for all users.
fn new_ones(server: &mut Connection, users: Range<u64>, day: u64) -> RedisResult<Vec<Vec<bool>>> {
    let mut pipeline = redis::pipe();
    for user in users {
        let request = pipeline.cmd("BF.INSERT").arg(format!("seen:{user}"));
        request.arg("CAPACITY").arg(60).arg("ERROR").arg(ERROR_RATE);
        request.arg("ITEMS").arg(offer(user, day));
    }
    pipeline.query(server)
}

/// Remembers exactly who saw what, to check the filters: a bit for each user and article.
struct Exact(Vec<u64>);

impl Exact {
    /// Whether a user saw an article for the first time.
    fn is_new(&mut self, user: u64, article: u64) -> bool {
        let bit = user * ARTICLES + article;
        let word = usize::try_from(bit / 64)
            .ok()
            .and_then(|at| self.0.get_mut(at));
        let mask = 1 << (bit % 64);
        word.is_some_and(|word| {
            let was_new = *word & mask == 0;
            *word |= mask;
            was_new
        })
    }
}

fn main() -> Outcome {
    let users = argument("items", 100_000)?;
    let server = Embedded::start()?;
    let mut connection = server.connect()?;
    let before = used_memory(&mut connection)?;
    println!("{users} users are offered {OFFERED} articles on each of {DAYS} days.");

    let words = usize::try_from(users * ARTICLES / 64 + 1)?;
    let mut exact = Exact(vec![0; words]);
    let (mut shown, mut again, mut withheld, mut fresh) = (0_u64, 0_u64, 0_u64, 0_u64);
    let mut seconds = 0.0;
    for day in 0..DAYS {
        for first in (0..users).step_by(usize::try_from(BATCH)?) {
            let some = first..users.min(first + BATCH);
            let started = Instant::now();
            let answers = new_ones(&mut connection, some.clone(), day)?;
            seconds += started.elapsed().as_secs_f64();
            for (user, answers) in some.zip(answers) {
                for (article, is_shown) in offer(user, day).into_iter().zip(answers) {
                    let is_new = exact.is_new(user, article);
                    fresh += u64::from(is_new);
                    shown += u64::from(is_shown);
                    again += u64::from(is_shown && !is_new);
                    withheld += u64::from(!is_shown && is_new);
                }
            }
        }
    }
    println!("Only what the filter of a user called new was shown.");

    let memory = used_memory(&mut connection)? - before;
    println!("\nFigures");
    figure("users", users);
    figure("items offered", users * DAYS * OFFERED);
    figure("items shown", shown);
    figure("repeats", again);
    figure("missed, that is new but not shown", withheld);
    figure("error rate, expected", format!("{ERROR_RATE:.6}"));
    figure(
        "error rate, measured",
        format!("{:.6}", rate(withheld, fresh)),
    );
    figure("memory, bytes", memory);
    figure(
        "memory, bytes a user",
        format!("{:.0}", rate(memory, users)),
    );
    figure("seconds", format!("{seconds:.2}"));
    Ok(())
}
