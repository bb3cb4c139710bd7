//! What others notice of an act that is long: pings at 1 kHz beside each, on `everbloom serve` and
//! on redis-server.
//!
//! A ping's time counts from when it was due, so that a pause counts for all pings that it delays.
//! Servers and load run on any core.

pub mod acts;
mod ping;

use std::fmt::Write;

use anyhow::{Context, Result};
use everbloom_dev::{Client, free_port, wait_for};
use serde::Serialize;

use crate::Options;
use crate::machine::Machine;
use crate::server::process::Server;
use crate::stats::median;
use acts::{Act, SCENES, Scale, Scene, Stage};
use ping::Figures;

/// A line of the table.
#[derive(Debug, Serialize)]
struct Line {
    act: &'static str,
    server: &'static str,
    rounds: Vec<Figures>,
}

pub fn run(options: &Options) -> Result<()> {
    let machine = Machine::this();
    let scale = if options.smoke {
        Scale::SMOKE
    } else {
        Scale::FULL
    };
    let mut lines = Vec::new();
    let mut servers = Vec::new();
    for _ in 0..scale.rounds {
        for scene in SCENES {
            if scene.acts.iter().any(|act| options.wants(act.name)) {
                for is_ours in [true, false] {
                    play(options, scene, is_ours, scale, &mut lines, &mut servers)?;
                }
            }
        }
        let text = table(&machine, &servers, &lines);
        machine.write(&options.results, "pauses", &text, &lines)?;
    }
    println!("{}", table(&machine, &servers, &lines));
    Ok(())
}

/// Plays one scene on a server of its own.
fn play(
    options: &Options,
    scene: &Scene,
    is_ours: bool,
    scale: Scale,
    lines: &mut Vec<Line>,
    servers: &mut Vec<String>,
) -> Result<()> {
    let metrics_port = free_port();
    let metrics = metrics_port.to_string();
    let log = if scene.log { "yes" } else { "no" };
    let mut words = vec!["--bind", "127.0.0.1", "--save", "", "--appendonly", log];
    words.extend([
        "--proto-max-bulk-len",
        "5gb",
        "--client-query-buffer-limit",
        "5gb",
    ]);
    // Only the act rewrites the log.
    words.extend(["--auto-aof-rewrite-percentage", "0"]);
    let server = if is_ours {
        words.splice(..0, ["serve", "--metrics-port", &metrics]);
        Server::unpinned(&options.everbloom, &words)?
    } else {
        Server::unpinned(&options.redis_server, &words)?
    };
    let described = format!("{}, `{}`", server.version, server.command);
    if !servers
        .iter()
        .any(|known| known.starts_with(&server.version))
    {
        servers.push(described);
    }
    let mut client = Client::try_connect(("127.0.0.1", server.port))?;
    wait_for("the server", || client.is_loaded() == Some(true));
    let mut stage = Stage {
        client,
        port: server.port,
        is_ours,
        metrics_port,
        scale,
        payload: Vec::new(),
    };
    (scene.prepare)(&mut stage)?;
    std::thread::sleep(scale.after / 2);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    for act in scene.acts {
        let server_name = if is_ours { "everbloom" } else { "redis-server" };
        if !is_ours && act.redis.is_empty() {
            continue;
        }
        let run = || (act.run)(&mut stage);
        let figures = ping::beside(server.port, threads, scale.after, run).context(act.name)?;
        eprintln!("{server_name}, {}: {:.1} ms", act.name, figures.max);
        note(lines, act, server_name, figures);
    }
    Ok(())
}

fn note(lines: &mut Vec<Line>, act: &Act, server: &'static str, figures: Figures) {
    let of_act = |line: &&mut Line| line.act == act.name && line.server == server;
    match lines.iter_mut().find(of_act) {
        Some(line) => line.rounds.push(figures),
        None => lines.push(Line {
            act: act.name,
            server,
            rounds: vec![figures],
        }),
    }
}

fn table(machine: &Machine, servers: &[String], lines: &[Line]) -> String {
    let mut text = format!("# What others notice\n\n{}\n", machine.markdown());
    for server in servers {
        let _ = writeln!(text, "- {server}");
    }
    let rounds = lines.iter().map(|line| line.rounds.len()).max();
    let _ = write!(
        text,
        "\nMilliseconds; medians of {} rounds, and the worst ping of all. Of the connections that \
         ping, one for each core, the worst counts.\n\n\
         | act | server | took | pings | p50 | p99 | p99.9 | max | worst max |\n\
         |---|---|--:|--:|--:|--:|--:|--:|--:|\n",
        rounds.unwrap_or(0)
    );
    let acts = SCENES.iter().flat_map(|scene| scene.acts);
    let lines = acts.flat_map(|act| {
        let of_act = lines.iter().filter(move |line| line.act == act.name);
        of_act.map(move |line| (act, line))
    });
    for (act, line) in lines {
        let middle =
            |of: fn(&Figures) -> f64| median(&line.rounds.iter().map(of).collect::<Vec<_>>());
        let worst = line.rounds.iter().map(|figures| figures.max);
        let name = match line.server {
            "everbloom" => act.name,
            _ => act.redis,
        };
        let _ = writeln!(
            text,
            "| {name} | {} | {:.0} | {:.0} | {:.2} | {:.2} | {:.1} | {:.1} | {:.1} |",
            line.server,
            middle(|f| f.took),
            middle(|f| f.pings as f64),
            middle(|f| f.p50),
            middle(|f| f.p99),
            middle(|f| f.p99_9),
            middle(|f| f.max),
            worst.fold(0.0, f64::max),
        );
    }
    text
}
