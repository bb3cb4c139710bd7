//! A filter before a cache and a table, under a flood of keys that do not exist.
//!
//! `cargo run --release --example guard`; `-- --items 2000` makes the table smaller.
//! `-- --port 6379` takes a server that runs already.

mod support;

use std::cell::RefCell;
use std::collections::BTreeMap;

use everbloom_client::{FilterFailure, Guard, ServerFilter, Source};
use redis::{Connection, TypedCommands};
use support::{Embedded, Outcome, argument, figure, mixed, rate};

const FILTER: &str = "guard:filter";
const ERROR_RATE: f64 = 0.01;
/// Requests for each row of the table. One of twenty asks for a key that exists.
const REQUESTS: u64 = 5;
const ONE_OF: u64 = 20;
/// How long a value stays in the cache, in seconds.
const KEPT: u64 = 600;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// What a guard stands before.
struct Goods<'a> {
    /// The filter, if it is asked, and the cache.
    server: RefCell<Connection>,
    filter: Option<ServerFilter>,
    cache: &'static str,
    /// What a database would have, by id.
    table: &'a BTreeMap<String, String>,
}

impl Source for Goods<'_> {
    type Value = String;
    type Error = Error;

    fn may_exist(&self, id: &str) -> Outcome<bool> {
        match &self.filter {
            Some(filter) => Ok(filter.contains(&mut *self.server.borrow_mut(), id)?),
            None => Ok(true),
        }
    }

    fn cached(&self, id: &str) -> Outcome<Option<String>> {
        let key = format!("{}:{id}", self.cache);
        Ok(self.server.borrow_mut().get(key)?)
    }

    fn load(&self, id: &str) -> Outcome<Option<String>> {
        Ok(self.table.get(id).cloned())
    }

    fn keep(&self, id: &str, name: &String) -> Outcome {
        let key = format!("{}:{id}", self.cache);
        Ok(self.server.borrow_mut().set_ex(key, name, KEPT)?)
    }
}

fn main() -> Outcome {
    let rows = argument("items", 100_000)?;
    let table = (0..rows)
        .map(|row| (id(row), format!("name of {row}")))
        .collect();
    let embedded = Embedded::start()?;
    let mut server = embedded.connect()?;
    fill(&mut server, rows)?;
    println!("A table has {rows} rows. A filter on the server has their keys.");

    let requests = rows * REQUESTS;
    println!("{requests} requests come. One of {ONE_OF} asks for a row, the others for none.");
    let guards = [(); 2].map(|()| Guard::new(FilterFailure::AskOn));
    let goods = |filter, cache| -> Outcome<Goods> {
        Ok(Goods {
            server: RefCell::new(embedded.connect()?),
            filter,
            cache,
            table: &table,
        })
    };
    let filter = ServerFilter::new(FILTER);
    let goods = [
        goods(None, "cache:without")?,
        goods(Some(filter), "cache:with")?,
    ];
    let (mut absent, mut different) = (0, 0);
    for n in 0..requests {
        let id = asked_for(n, rows);
        let mut answers = [None, None];
        for ((guard, goods), answer) in guards.iter().zip(&goods).zip(&mut answers) {
            *answer = guard.get(goods, &id).map_err(|error| error.to_string())?;
        }
        let [without, with] = answers;
        absent += u64::from(without.is_none());
        different += u64::from(without != with);
    }
    println!("Each request was answered without the filter and with it, and a cache for each.");

    let [without, with] = guards.each_ref().map(Guard::counts);
    let memory: u64 = redis::cmd("MEMORY")
        .arg("USAGE")
        .arg(FILTER)
        .query(&mut server)?;
    let measured = rate(with.nothing, absent);
    let lost = answered_without_filter(&mut server, &guards, &goods, rows)?;
    let stopped = match embedded.is_own() {
        true => Some(answered_alone(&embedded, &guards, &goods, rows)),
        false => None,
    };
    println!("\nFigures");
    figure("items", rows);
    figure("requests", requests);
    figure("of absent keys", absent);
    figure("missed or different answers", different);
    figure("queries without the filter", without.loaded);
    figure("queries with the filter", with.loaded);
    figure("of these in vain", with.nothing);
    figure("error rate, expected", format!("{ERROR_RATE:.6}"));
    figure("error rate, measured", format!("{measured:.6}"));
    figure("memory of the filter, bytes", memory);
    figure("rows requested without the filter", lost.0);
    figure("rows answered without the filter", lost.1);
    if let Some((asked, answered)) = stopped {
        figure("requests after the server has stopped", asked);
        figure("of these answered", answered);
    }
    Ok(())
}

/// Deletes the filter and asks for rows.
fn answered_without_filter(
    server: &mut Connection,
    guards: &[Guard<String, Error>; 2],
    goods: &[Goods<'_>; 2],
    rows: u64,
) -> Outcome<(u64, u64)> {
    server.del(FILTER)?;
    println!("The filter is deleted. Cache and table answer without it.");
    Ok(answered(guards, goods, rows))
}

/// Stops the server and asks for rows.
fn answered_alone(
    server: &Embedded,
    guards: &[Guard<String, Error>; 2],
    goods: &[Goods<'_>; 2],
    rows: u64,
) -> (u64, u64) {
    server.stop();
    println!("The server with filter and cache is stopped. The table answers alone.");
    answered(guards, goods, rows)
}

/// How many requests for rows were made, and how many were answered.
fn answered(guards: &[Guard<String, Error>; 2], goods: &[Goods<'_>; 2], rows: u64) -> (u64, u64) {
    let ([_, guard], [_, goods]) = (guards, goods);
    let asked = rows.min(1000);
    let is_answered = |row: &u64| {
        let answer = guard.get(goods, &id(*row));
        answer.is_ok_and(|name| name.as_ref() == goods.table.get(&id(*row)))
    };
    (asked, (0..asked).filter(is_answered).count() as u64)
}

/// Adds all keys of the table, a thousand in a request.
fn fill(server: &mut Connection, rows: u64) -> Outcome {
    server.del(FILTER)?;
    server.bf_reserve(FILTER, ERROR_RATE, usize::try_from(rows.max(1))?)?;
    let ids: Vec<String> = (0..rows).map(id).collect();
    for some in ids.chunks(1000) {
        server.bf_madd(FILTER, some)?;
    }
    Ok(())
}

fn id(row: u64) -> String {
    format!("{:016x}", mixed(row))
}

/// The key that a request asks for: a row's, some more often than others, or one of no row.
fn asked_for(n: u64, rows: u64) -> String {
    let random = mixed(!n);
    if random.is_multiple_of(ONE_OF) {
        id((random >> 32) % rows.div_ceil(10).max(1))
    } else {
        id(rows + n)
    }
}
