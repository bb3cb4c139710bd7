//! CONFIG: the settings of the running server.

use everbloom_resp::Reply;

use super::subcommand::{self, SUBCOMMAND, Subcommand};
use super::{Call, error};
use crate::config::Settings;
use crate::config::parameter::{PARAMETERS, Parameter};
use crate::glob;
use everbloom_store::persistence::jobs;

const ADMIN: &[&str] = &["admin", "noscript", "loading", "stale"];

/// The subcommands.
pub const SUBCOMMANDS: &[Subcommand] = &[
    Subcommand {
        name: "GET",
        arity: -3,
        flags: ADMIN,
        summary: "Return parameters matching the glob-like <pattern> and their values.",
        usage: "GET <pattern>",
        run: get,
        ..SUBCOMMAND
    },
    Subcommand {
        name: "SET",
        arity: -4,
        flags: ADMIN,
        summary: "Set the configuration <directive> to <value>.",
        usage: "SET <directive> <value>",
        run: set,
        ..SUBCOMMAND
    },
    Subcommand {
        name: "RESETSTAT",
        flags: ADMIN,
        summary: "Reset statistics reported by the INFO command.",
        usage: "RESETSTAT",
        run: reset_statistics,
        ..SUBCOMMAND
    },
    Subcommand {
        name: "REWRITE",
        flags: ADMIN,
        since: "2.8.0",
        summary: "Rewrite the configuration file.",
        usage: "REWRITE",
        run: rewrite,
        ..SUBCOMMAND
    },
];

/// CONFIG.
pub fn config(call: &mut Call<'_>) -> Reply {
    subcommand::run(call, SUBCOMMANDS)
}

/// The settings may have been changed by an earlier command of the same batch, so these commands
/// look at those in force, not at the batch's.
fn get(call: &mut Call<'_>) -> Reply {
    let settings = call.server.config.snapshot();
    let patterns = call.args.get(2..).unwrap_or_default();
    // A name is shown as it was asked for, which may be in upper case.
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
    Reply::Map(shown.collect())
}

fn set(call: &mut Call<'_>) -> Reply {
    let pairs = call.args.get(2..).unwrap_or_default();
    if pairs.len() % 2 != 0 {
        return error::syntax();
    }
    match try_set(call, pairs) {
        Ok(()) => Reply::OK,
        Err(refused) => refused,
    }
}

fn try_set(call: &Call<'_>, pairs: &[&[u8]]) -> Result<(), Reply> {
    let mut changes: Vec<(&Parameter, &str, &[u8])> = Vec::new();
    for pair in pairs.chunks(2) {
        let [name, value] = pair else { continue };
        let name = str::from_utf8(name).unwrap_or_default();
        let Some(parameter) = Parameter::find(name) else {
            return Err(Reply::error(format!(
                "ERR Unknown option or number of arguments for CONFIG SET - '{name}'"
            )));
        };
        if let Some(reason) = parameter.fixed {
            return Err(failed(name, reason));
        }
        if changes
            .iter()
            .any(|(other, ..)| std::ptr::eq(*other, parameter))
        {
            return Err(failed(name, "duplicate parameter"));
        }
        changes.push((parameter, name, value));
    }
    let apply = |settings: &mut Settings| {
        for (parameter, name, value) in &changes {
            str::from_utf8(value)
                .map_err(|_| "argument must be UTF-8 text".to_owned())
                .and_then(|value| parameter.set(settings, value))
                .map_err(|reason| failed(name, &reason))?;
        }
        Ok(())
    };
    // Nothing is begun before all of it is known to be right.
    let before = call.server.config.snapshot();
    let mut after = Settings::clone(&before);
    apply(&mut after)?;
    if before.data.appendonly != after.data.appendonly {
        turn_log(call, after.data.appendonly).map_err(|reason| failed("appendonly", &reason))?;
    }
    call.server.update_settings(apply)
}

fn turn_log(call: &Call<'_>, on: bool) -> Result<(), String> {
    if call.session.executing {
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

fn rewrite(call: &mut Call<'_>) -> Reply {
    let settings = call.server.config.snapshot();
    if settings.config_file.is_none() {
        return Reply::error("ERR The server is running without a config file");
    }
    match crate::config::rewrite(&settings) {
        Ok(()) => Reply::OK,
        Err(reason) => {
            tracing::warn!(%reason, "the config file was not rewritten");
            Reply::error(format!("ERR Rewriting config file: {reason}"))
        }
    }
}

fn reset_statistics(call: &mut Call<'_>) -> Reply {
    call.server.stats.reset();
    for worker in &call.server.workers {
        worker.reset();
    }
    Reply::OK
}
