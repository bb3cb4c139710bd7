//! A crawler that never fetches a URL twice: four workers share a filter on a server, which is
//! stopped in the middle and started again on its files.
//!
//! `cargo run --release --example crawler`; `-- --items 20000` makes the web smaller.

mod support;

use std::path::Path;
use std::time::Instant;

use redis::{Connection, RedisResult};
use support::crawl::{Crawl, ERROR_RATE, Filter, LINKS, WORKERS};
use support::{Embedded, Outcome, argument, figure, used_memory};

const FILTER: &str = "crawler:seen";

impl Filter for &Embedded {
    type Connection = Connection;

    fn connect(&self) -> RedisResult<Connection> {
        Embedded::connect(self)
    }

    fn ask(
        &self,
        connection: &mut Connection,
        command: &str,
        urls: &[String],
    ) -> RedisResult<Vec<bool>> {
        redis::cmd(command).arg(FILTER).arg(urls).query(connection)
    }
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
    let mut reserve = redis::cmd("BF.RESERVE");
    reserve.arg(FILTER).arg(ERROR_RATE).arg(pages);
    reserve.exec(&mut server.connect()?)?;

    println!("{WORKERS} workers crawl {pages} pages with {LINKS} links each.");
    let started = Instant::now();
    let crawl = Crawl::new(pages, &server);
    crawl.run(|fetched| {
        println!("After {fetched} of them the server is stopped.");
        server.stop();
        server.start_again()?;
        println!("It is started again on its files. The workers connect again and go on.");
        Ok(())
    })?;
    let seconds = started.elapsed().as_secs_f64();

    println!("\nFigures");
    crawl.figures();
    let memory = used_memory(&mut server.connect()?)?;
    figure("memory of the server, bytes", memory);
    figure("seconds", format!("{seconds:.2}"));
    Ok(())
}
