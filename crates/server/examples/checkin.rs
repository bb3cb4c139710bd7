//! Check-in: a bit for each day that a user was there, with SETBIT, GETBIT and BITCOUNT.
//!
//! `cargo run --release --example checkin`; `-- --items 200` takes fewer users, `-- --port 6379` a
//! server that runs already.

mod support;

use std::time::Instant;

use redis::Connection;
use support::{Embedded, Outcome, argument, figure, mixed, used_memory};

const DAYS: u64 = 365;

fn main() -> Outcome {
    let users = argument("items", 10_000)?;
    let server = Embedded::start()?;
    let mut connection = server.connect()?;
    let (bytes, bits) = bytes_or_bits(&mut connection)?;

    let before = used_memory(&mut connection)?;
    let started = Instant::now();
    let mut expected = 0_u64;
    for user in 0..users {
        let days: Vec<u64> = (0..DAYS).filter(|day| was_there(user, *day)).collect();
        expected += days.len() as u64;
        let mut pipeline = redis::pipe();
        for day in days {
            pipeline
                .cmd("SETBIT")
                .arg(key(user))
                .arg(day)
                .arg(1)
                .ignore();
        }
        pipeline.exec(&mut connection)?;
    }
    println!("{users} users checked in on some days of a year: a key of 46 bytes each.");

    let (mut counted, mut wrong) = (0, 0);
    for user in 0..users {
        let day = mixed(user) % DAYS;
        let (count, there): (u64, bool) = redis::pipe()
            .cmd("BITCOUNT")
            .arg(key(user))
            .cmd("GETBIT")
            .arg(key(user))
            .arg(day)
            .query(&mut connection)?;
        counted += count;
        wrong += u64::from(there != was_there(user, day));
    }
    println!("BITCOUNT counted the days of each, and GETBIT asked for one of them.");
    let seconds = started.elapsed().as_secs_f64();
    let memory = used_memory(&mut connection)? - before;

    println!("\nFigures");
    figure("users", users);
    figure("check-ins", expected);
    figure("counted", counted);
    figure("missed", expected.abs_diff(counted) + wrong);
    figure("BITCOUNT 1 7", bytes);
    figure("BITCOUNT 1 7 BIT", bits);
    figure("memory, bytes a user", memory / users.max(1));
    figure("seconds", format!("{seconds:.2}"));
    Ok(())
}

/// The mistake of many articles: BITCOUNT takes a range of bytes, unless BIT says otherwise.
fn bytes_or_bits(connection: &mut Connection) -> Outcome<(u64, u64)> {
    let key = "checkin:example";
    let mut pipeline = redis::pipe();
    pipeline.cmd("DEL").arg(key).ignore();
    for day in [2, 3, 5] {
        pipeline.cmd("SETBIT").arg(key).arg(day).arg(1).ignore();
    }
    let mut count = |unit: &[&str]| {
        pipeline.cmd("BITCOUNT").arg(key).arg(1).arg(7).arg(unit);
    };
    count(&[]);
    count(&["BIT"]);
    let (bytes, bits): (u64, u64) = pipeline.query(connection)?;
    println!("A user checks in on the days 2, 3 and 5. How often on the days 1 to 7?");
    println!("BITCOUNT {key} 1 7      {bytes}: the bytes 1 to 7 are the days 8 to 63.");
    println!("BITCOUNT {key} 1 7 BIT  {bits}: these are the days.");
    Ok((bytes, bits))
}

fn key(user: u64) -> String {
    format!("checkin:{user}")
}

fn was_there(user: u64, day: u64) -> bool {
    mixed(mixed(user) ^ day).is_multiple_of(3)
}
