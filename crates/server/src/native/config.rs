//! CONFIG: the settings of the running server.

use everbloom_commands::flags::ADMIN;
use everbloom_resp::Reply;

use super::subcommand::subcommand;
use super::{Call, Command, error};
use crate::config::Settings;
use crate::config::parameter::{PARAMETERS, Parameter};
use crate::glob;
use crate::tls;
use everbloom_store::persistence::jobs;

/// The subcommands.
pub const SUBCOMMANDS: &[Command] = &[
    subcommand("config|get", -3, get)
        .flags(&[ADMIN])
        .docs(
            "2.0.0",
            "Return parameters matching the glob-like <pattern> and their values.",
        )
        .usage("<pattern>"),
    subcommand("config|set", -4, set)
        .flags(&[ADMIN])
        .docs("2.0.0", "Set the configuration <directive> to <value>.")
        .usage("<directive> <value>"),
    subcommand("config|resetstat", 2, reset_statistics)
        .flags(&[ADMIN])
        .docs("2.0.0", "Reset statistics reported by the INFO command."),
    subcommand("config|rewrite", 2, rewrite)
        .flags(&[ADMIN])
        .docs("2.8.0", "Rewrite the configuration file."),
];

/// The settings may have been changed by an earlier command of the same batch, so these commands
/// look at those in force, not at the batch's.
fn get(call: &mut Call<'_>) -> Result<Reply, Reply> {
    let settings = call.server.config.snapshot();
    let patterns = call.args().rest();
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
    Ok(Reply::Map(shown.collect()))
}

fn set(call: &mut Call<'_>) -> Result<Reply, Reply> {
    let pairs = call.args().next_pairs().map_err(|_| error::syntax())?;
    let mut changes: Vec<(&Parameter, &str, &[u8])> = Vec::new();
    for [name, value] in pairs {
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
    let apply = |settings: &mut Settings| -> Result<(), Reply> {
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
    let tls = match changes.iter().find(|(p, ..)| p.name.starts_with("tls-")) {
        Some((_, name, _)) => {
            let read = tls::read(&after.tls).map_err(|reason| failed(name, &reason.to_string()));
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
