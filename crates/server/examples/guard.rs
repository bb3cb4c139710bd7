//! A filter before a cache and a SQLite table, under a flood of keys that do not exist.
//!
//! `cargo run --release --example guard`; `-- --items 2000` makes the table smaller.
//! `-- --port 6379` takes a server that runs already.

mod support;

use std::time::Instant;

use redis::{Connection, RedisResult};
use rusqlite::OptionalExtension;
use support::{Embedded, Outcome, argument, figure, mixed, rate};

const FILTER: &str = "guard:filter";
const ERROR_RATE: f64 = 0.01;
/// Requests for each row of the table. One of twenty asks for a key that exists.
const REQUESTS: u64 = 5;
const ONE_OF: u64 = 20;

/// The table, and how often it was asked.
struct Database {
    table: rusqlite::Connection,
    queries: u64,
}

impl Database {
    fn with_rows(rows: u64) -> rusqlite::Result<Database> {
        let mut table = rusqlite::Connection::open_in_memory()?;
        table.execute("CREATE TABLE goods (id TEXT PRIMARY KEY, name TEXT)", ())?;
        let transaction = table.transaction()?;
        for row in 0..rows {
            let insert = "INSERT INTO goods VALUES (?1, ?2)";
            transaction
                .prepare_cached(insert)?
                .execute((id(row), format!("name of {row}")))?;
        }
        transaction.commit()?;
        Ok(Database { table, queries: 0 })
    }

    fn load(&mut self, id: &str) -> rusqlite::Result<Option<String>> {
        self.queries += 1;
        let mut query = self
            .table
            .prepare_cached("SELECT name FROM goods WHERE id = ?1")?;
        query.query_row([id], |row| row.get(0)).optional()
    }
}

/// The cache, then the table. An absent key is in no cache, so each request for it is a query.
fn look_up(server: &mut Connection, database: &mut Database, id: &str) -> Outcome<Option<String>> {
    let key = format!("guard:cache:{id}");
    let cached: Option<String> = redis::cmd("GET").arg(&key).query(server)?;
    if cached.is_some() {
        return Ok(cached);
    }
    let loaded = database.load(id)?;
    if let Some(name) = &loaded {
        redis::cmd("SET")
            .arg(&key)
            .arg(name)
            .arg("EX")
            .arg(600)
            .exec(server)?;
    }
    Ok(loaded)
}

/// The filter first: what it never saw is not asked for anywhere else.
fn look_up_guarded(
    server: &mut Connection,
    database: &mut Database,
    id: &str,
) -> Outcome<Option<String>> {
    let maybe: bool = redis::cmd("BF.EXISTS").arg(FILTER).arg(id).query(server)?;
    if maybe {
        look_up(server, database, id)
    } else {
        Ok(None)
    }
}

fn main() -> Outcome {
    let rows = argument("items", 100_000)?;
    let mut database = Database::with_rows(rows)?;
    let embedded = Embedded::start()?;
    let mut server = embedded.connect()?;
    fill(&mut server, rows)?;
    println!("A SQLite table has {rows} rows. A filter on the server has their keys.");

    let requests = rows * REQUESTS;
    println!("{requests} requests come. One of {ONE_OF} asks for a row, the others for none.");
    let (mut absent, mut different) = (0, 0);
    let mut queries = [0, 0];
    let mut seconds = [0.0, 0.0];
    for n in 0..requests {
        let id = asked_for(n, rows);
        let mut answers = [None, None];
        let ways = [look_up, look_up_guarded];
        let figures = queries.iter_mut().zip(&mut seconds).zip(&mut answers);
        for (way, ((queries, seconds), answer)) in ways.into_iter().zip(figures) {
            let (before, started) = (database.queries, Instant::now());
            *answer = way(&mut server, &mut database, &id)?;
            *queries += database.queries - before;
            *seconds += started.elapsed().as_secs_f64();
        }
        let [plain, guarded] = answers;
        absent += u64::from(plain.is_none());
        different += u64::from(plain != guarded);
    }
    println!("Each request was answered without the filter and with it.");

    let [without, with] = queries;
    let [seconds_without, seconds_with] = seconds;
    let memory: u64 = redis::cmd("MEMORY")
        .arg("USAGE")
        .arg(FILTER)
        .query(&mut server)?;
    println!("\nFigures");
    figure("items", rows);
    figure("requests", requests);
    figure("of absent keys", absent);
    figure("missed or different answers", different);
    figure("queries without the filter", without);
    figure("queries with the filter", with);
    figure("error rate, expected", format!("{ERROR_RATE:.6}"));
    figure("error rate, measured", format!("{:.6}", rate(with, absent)));
    figure("memory of the filter, bytes", memory);
    figure(
        "seconds without the filter",
        format!("{seconds_without:.2}"),
    );
    figure("seconds with the filter", format!("{seconds_with:.2}"));
    Ok(())
}

/// Adds all keys of the table, a thousand in a request.
fn fill(server: &mut Connection, rows: u64) -> RedisResult<()> {
    redis::cmd("DEL").arg(FILTER).exec(server)?;
    let mut reserve = redis::cmd("BF.RESERVE");
    reserve
        .arg(FILTER)
        .arg(ERROR_RATE)
        .arg(rows.max(1))
        .exec(server)?;
    let ids: Vec<String> = (0..rows).map(id).collect();
    for some in ids.chunks(1000) {
        redis::cmd("BF.MADD").arg(FILTER).arg(some).exec(server)?;
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
