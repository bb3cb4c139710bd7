//! A crawler that never fetches a URL twice: four workers share a filter on a server, which is
//! stopped in the middle and started again on its files.
//!
//! `cargo run --release --example crawler`; `-- --items 20000` makes the web smaller.

mod support;

use std::path::Path;
use std::time::Instant;

use redis::{Connection, TypedCommands};
use support::crawl::{Crawl, ERROR_RATE, LINKS, Seen, WORKERS};
use support::{Embedded, Outcome, argument, figure, used_memory};

const FILTER: &str = "crawler:seen";
/// A page may be fetched again after thirty days.
const SECONDS: u32 = 30 * 86_400;

impl Seen for &Embedded {
    type Connection = Connection;

    fn connect(&self) -> Outcome<Connection> {
        Ok(Embedded::connect(self)?)
    }

    fn known(&self, connection: &mut Connection, urls: &[String]) -> Outcome<Vec<bool>> {
        Ok(connection.bf_mexists(FILTER, urls)?)
    }

    fn add(&self, connection: &mut Connection, urls: &[String]) -> Outcome<Vec<bool>> {
        Ok(connection.bf_madd(FILTER, urls)?)
    }
}

fn stop(server: &mut &Embedded, fetched: u64) -> Outcome {
    println!("After {fetched} of them the server is stopped.");
    server.stop();
    server.start_again()?;
    println!("It is started again on its files. The workers connect again and go on.");
    Ok(())
}

fn main() -> Outcome {
    let folder = std::env::temp_dir().join(format!("crawler-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let outcome = run(&folder);
    std::fs::remove_dir_all(&folder)?;
    outcome
}

fn run(folder: &Path) -> Outcome {
    let pages = argument("items", 1_000_000)?;
    let server = Embedded::on(folder)?;
    let capacity = usize::try_from(pages)?;
    let mut connection = server.connect()?;
    let mut reserve = redis::cmd("BF.RESERVE");
    reserve.arg(FILTER).arg(ERROR_RATE).arg(capacity);
    let reserve = reserve.arg("WINDOW").arg("SECONDS").arg(SECONDS);
    reserve.query::<()>(&mut connection)?;

    println!("{WORKERS} workers crawl {pages} pages with {LINKS} links each.");
    let started = Instant::now();
    let crawl = Crawl::new(pages, &server);
    crawl.run(&mut &server, &[stop])?;
    let seconds = started.elapsed().as_secs_f64();

    println!("\nFigures");
    crawl.figures();
    let memory = used_memory(&mut server.connect()?)?;
    figure("memory of the server, bytes", memory);
    figure("seconds", format!("{seconds:.2}"));
    Ok(())
}
