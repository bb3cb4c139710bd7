//! The Rust of docs/guide/cluster.md. The page has these lines, with addresses of its own.

use std::error::Error;
use std::time::Duration;

use everbloom_client::{SpreadFilter, cluster_client};
use everbloom_dev::Cluster;

const PAGE: &str = include_str!("../../../../docs/guide/cluster.md");
const SOURCE: &str = include_str!("guide.rs");

fn session(nodes: Vec<String>) -> Result<(), Box<dyn Error>> {
    let mut connection = cluster_client(nodes).build()?.get_connection()?;
    let seen = SpreadFilter::create(&mut connection, "seen", 1_000_000, 0.001, 16)?;
    // An add counts when a replica has it.
    let seen = seen.with_replicas(1, Duration::from_secs(1));
    let urls = ["https://a.example/", "https://b.example/"];
    let new = seen.add_all(&mut connection, &urls)?;
    assert_eq!(new, [true, true]);

    let delete = redis::Cmd::del("{seen:3}");
    assert_eq!(delete.query::<u32>(&mut connection)?, 1);
    let error = SpreadFilter::open(&mut connection, "seen").unwrap_err();
    assert!(PAGE.contains(&format!("```text\n{error}\n```")), "{error}");
    let (seen, lost) = SpreadFilter::restore(&mut connection, "seen", 1_000_000, 0.001, 16)?;
    assert_eq!(lost, ["{seen:3}"]);

    while let Err(batch) = seen.add_all(&mut connection, &urls) {
        if !batch.error.is_temporary() {
            return Err(batch.into());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(seen.contains_all(&mut connection, &urls)?, [true, true]);
    Ok(())
}

#[test]
fn the_page_on_clusters() {
    let (mut is_rust, mut found) = (false, 0);
    let mut source = SOURCE.lines().map(str::trim);
    for line in PAGE.lines().map(str::trim) {
        match line {
            "```rust" => is_rust = true,
            "```" => is_rust = false,
            _ if !is_rust || line.is_empty() || line.starts_with("let nodes = ") => {}
            _ => {
                assert!(source.any(|it| it == line), "not in this order: {line}");
                found += 1;
            }
        }
    }
    assert!(found > 10, "{found}");
    if let Some(cluster) = Cluster::with_replicas() {
        session(cluster.addresses()).unwrap();
    }
}
