//! CONFIG: the settings of the running server.

use everbloom_commands::flags::{ADMIN, CHANGES_SETTINGS};
use everbloom_resp::Reply;

use super::subcommand::subcommand;
use super::{Call, Command, error};
use crate::config::Settings;
use crate::config::parameter::{PARAMETERS, Parameter};
use crate::glob;
use crate::session::Session;
use crate::tls;
use everbloom_store::persistence::jobs;

/// The subcommands.
pub const SUBCOMMANDS: &[Command] = rows! {
    /// Return parameters matching the glob-like <pattern> and their values.
    subcommand("config|get", -3, get).since("2.0.0").flags(&[ADMIN]).usage("<pattern>"),
    /// Set the configuration <directive> to <value>.
    subcommand("config|set", -4, set)
        .since("2.0.0").flags(&[ADMIN, CHANGES_SETTINGS]).usage("<directive> <value>"),
    /// Reset statistics reported by the INFO command.
    subcommand("config|resetstat", 2, reset_statistics).since("2.0.0").flags(&[ADMIN]),
    /// Rewrite the configuration file.
    subcommand("config|rewrite", 2, rewrite).since("2.8.0").flags(&[ADMIN]),
};

/// An earlier command of the same batch may have changed the settings, so these commands read the
/// current ones, not those of the batch.
fn get(call: &mut Call<'_>) -> Result<Reply, Reply> {
    let settings = call.server.config.snapshot();
    let patterns = call.args().rest();
    // A name is shown as the client wrote it, possibly in upper case.
    let asked = |name: &'static str| {
        let found = patterns
            .iter()
            .find(|pattern| glob::matches_any_case(pattern, name.as_bytes()))?;
        let is_name = found.eq_ignore_ascii_case(name.as_bytes());
        Some(Reply::bulk(if is_name { found } else { name.as_bytes() }))
    };
    let shown = PARAMETERS.iter().filter_map(|parameter| {
        let names = [Some(parameter.name), parameter.alias];
        let name = names.into_iter().flatten().find_map(asked)?;
        Some((name, Reply::bulk((parameter.get)(&settings))))
    });
    Ok(Reply::Map(shown.collect()))
}

fn set(call: &mut Call<'_>) -> Result<Reply, Reply> {
    let pairs = call.args().next_pairs().map_err(|_| error::syntax())?;
    let mut changes: Vec<(&Parameter, &str, &[u8])> = Vec::new();
    for [name, value] in pairs {
        let name = str::from_utf8(name).unwrap_or_default();
        let Some(parameter) = Parameter::find(name) else {
            if name.eq_ignore_ascii_case("notify-keyspace-events") {
                return Err(Reply::error(
                    "ERR this server has no keyspace events: for them, load the everbloom module \
                     in Valkey or Redis",
                ));
            }
            return Err(Reply::error(format!(
                "ERR Unknown option or number of arguments for CONFIG SET - '{name}'"
            )));
        };
        if parameter.protected && !is_let(call.session, &call.settings.enable_protected_configs) {
            return Err(failed(name, "can't set protected config"));
        }
        if parameter.fixed {
            return Err(failed(name, "can't set immutable config"));
        }
        if changes
            .iter()
            .any(|(other, ..)| std::ptr::eq(*other, parameter))
        {
            return Err(failed(name, "duplicate parameter"));
        }
        changes.push((parameter, name, value));
    }
    let apply = |settings: &mut Settings| -> Result<(), Reply> {
        for (parameter, name, value) in &changes {
            str::from_utf8(value)
                .map_err(|_| "argument must be UTF-8 text".to_owned())
                .and_then(|value| (parameter.set)(settings, value))
                .map_err(|reason| failed(name, &reason))?;
        }
        Ok(())
    };
    // Two clients must not turn the log at the same time. EXEC holds keys, and may not turn it.
    let turns = changes.iter().any(|it| it.0.name == "appendonly");
    let turning = &call.server.config.turning;
    let _turning = (turns && call.session.executing.is_none()).then(|| turning.lock());
    // Nothing is applied before all of it is known to be valid.
    let before = call.server.config.snapshot();
    let mut after = Settings::clone(&before);
    apply(&mut after)?;
    let tls = match changes.iter().find(|(p, ..)| p.name.starts_with("tls-")) {
        Some((_, name, _)) => {
            let read = tls::read(&after.tls).map_err(|reason| failed(name, &reason));
            Some(read?)
        }
        None => None,
    };
    if before.data.appendonly != after.data.appendonly {
        turn_log(call, after.data.appendonly).map_err(|reason| failed("appendonly", &reason))?;
    }
    call.server.update_settings(apply)?;
    if let Some(tls) = tls {
        call.server.set_tls(tls);
    }
    Ok(Reply::OK)
}

/// Whether a setting that is `no`, `yes` or `local` allows this client the guarded operation.
pub fn is_let(session: &Session, word: &str) -> bool {
    word == "yes" || word == "local" && session.client.addr.is_local()
}

fn turn_log(call: &Call<'_>, on: bool) -> Result<(), String> {
    if call.session.executing.is_some() {
        return Err("not allowed inside a transaction".into());
    }
    jobs::turn_log(&call.server.store, on).map_err(|problem| {
        let turned = if on { "on" } else { "off" };
        format!("Unable to turn {turned} AOF: {problem}")
    })
}

fn failed(name: &str, reason: &str) -> Reply {
    Reply::error(format!(
        "ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}"
    ))
}

fn rewrite(call: &mut Call<'_>) -> Result<Reply, Reply> {
    let settings = call.server.config.snapshot();
    if settings.config_file.is_none() {
        return Err(Reply::error(
            "ERR The server is running without a config file",
        ));
    }
    crate::config::rewrite(&settings).map_err(|reason| {
        tracing::warn!("the config file was not rewritten: {reason}");
        Reply::error(format!("ERR Rewriting config file: {reason}"))
    })?;
    Ok(Reply::OK)
}

fn reset_statistics(call: &mut Call<'_>) -> Result<Reply, Reply> {
    call.server.stats.reset();
    for worker in &call.server.workers {
        worker.reset();
    }
    Ok(Reply::OK)
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;
    use crate::address::Address;
    use everbloom_store::clock::Now;

    /// A client of a server with this `enable-protected-configs`.
    fn bench(word: &str) -> Bench {
        let bench = Bench::default();
        let changed = bench.server.update_settings(|settings| {
            settings.enable_protected_configs = word.into();
            Ok::<(), ()>(())
        });
        assert_eq!(changed, Ok(()));
        bench
    }

    fn failed_because(name: &str, reason: &str) -> Reply {
        Reply::error(format!(
            "ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}"
        ))
    }

    /// The texts are those of redis-server 7.0.15.
    #[test]
    fn what_is_protected_cannot_be_set() {
        let mut bench = bench("no");
        for (line, name) in [
            ("CONFIG SET dir /tmp", "dir"),
            ("CONFIG SET DIR /tmp", "DIR"),
            ("CONFIG SET dbfilename a.rdb", "dbfilename"),
            ("CONFIG SET hz 5 dir /tmp", "dir"),
            ("CONFIG SET dir /tmp nosuch 1", "dir"),
        ] {
            let refused = failed_because(name, "can't set protected config");
            assert_eq!(bench.run(line), refused, "{line}");
        }
        let settings = bench.server.config.snapshot();
        assert_eq!(settings.data.dbfilename, "dump.rdb");
        assert_eq!(settings.hz, 10);
        for name in ["enable-protected-configs", "enable-debug-command"] {
            assert_eq!(
                bench.run(&format!("CONFIG SET {name} yes")),
                failed_because(name, "can't set immutable config")
            );
        }
    }

    #[test]
    fn protected_settings_are_for_those_whom_the_setting_names() {
        let set = "CONFIG SET dbfilename a.rdb";
        let refused = failed_because("dbfilename", "can't set protected config");
        let ip = |text: &str| Address::Ip(text.parse().unwrap());
        for (word, addr, let_in) in [
            ("yes", ip("10.0.0.1:1"), true),
            ("local", ip("10.0.0.1:1"), false),
            ("local", ip("127.0.0.1:1"), true),
            ("local", ip("[::1]:1"), true),
            ("local", Address::Unix("/run/s".into()), true),
            ("no", ip("127.0.0.1:1"), false),
            ("no", Address::Unix("/run/s".into()), false),
        ] {
            let mut bench = bench(word);
            let enter = bench
                .server
                .clients
                .enter(addr.clone(), addr.clone(), 10, Now::read());
            bench.session = Session::new(enter.unwrap(), true);
            let expected = if let_in { Reply::OK } else { refused.clone() };
            assert_eq!(bench.run(set), expected, "{word} {addr}");
        }
    }

    #[test]
    fn no_name_leaves_the_directory() {
        let mut bench = bench("yes");
        let path = failed_because("dbfilename", "dbfilename can't be a path, just a filename");
        for name in ["a/b", "/a", "../a", "..", ".", "a\\b", "a\0b"] {
            let reply = bench.run_words(&[b"CONFIG", b"SET", b"dbfilename", name.as_bytes()]);
            assert_eq!(reply, path, "{name:?}");
        }
        let empty = failed_because("dbfilename", "dbfilename can't be empty");
        assert_eq!(bench.run("CONFIG SET dbfilename ''"), empty);
        // The directory is locked and holds the current log.
        let fixed = failed_because("dir", "can't set immutable config");
        assert_eq!(bench.run("CONFIG SET dir /tmp"), fixed);
    }
}
