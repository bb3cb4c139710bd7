//! Tests of the settings: every one, by every way in.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::load::load_text;
use super::parameter::{PARAMETERS, Parameter};
use super::settings::TlsSettings;
use super::*;

fn words(line: &str) -> Vec<OsString> {
    text::split_words(line)
        .unwrap()
        .into_iter()
        .map(OsString::from)
        .collect()
}

fn loaded(line: &str) -> Settings {
    load(&words(line)).unwrap().settings
}

fn refused(line: &str) -> String {
    load(&words(line)).unwrap_err().to_string()
}

fn from_text(text: &str) -> Result<Settings, String> {
    load_text(Settings::default(), text, Path::new("a.conf"))
}

/// A folder of its own for each test.
fn folder(test: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("everbloom-{test}-{}", std::process::id()));
    fs::create_dir_all(&path).unwrap();
    path
}

/// For every setting, a value that is not its default.
fn other_value(name: &str) -> Option<&'static str> {
    Some(match name {
        "bind" | "metrics-bind" => "* -::*",
        "port" => "7000",
        "loglevel" => "debug",
        "log-format" => "json",
        "protected-mode" => "no",
        "requirepass" | "logfile" => "a \"b\" # c",
        "maxmemory" | "bf-max-filter-bytes" => "123456",
        "maxmemory-clients" => "5%",
        "proto-max-bulk-len" | "client-query-buffer-limit" => "2097152",
        "client-output-buffer-limit" => "normal 1 2 3 slave 268435456 67108864 60 pubsub 4 5 6",
        "bf-error-rate" => "0.0010",
        // They have one value only.
        "maxmemory-policy" | "aof-use-rdb-preamble" => return None,
        "save" => "60 1 5 10",
        "dir" => "/tmp/x",
        "dbfilename" | "appenddirname" | "appendfilename" => "x.y",
        "appendfsync" => "always",
        "rdbcompression" | "rdbchecksum" | "stop-writes-on-bgsave-error" | "aof-load-truncated" => {
            "no"
        }
        "rdb-unknown-values" => "skip",
        "appendonly" => "yes",
        "enable-debug-command" | "enable-protected-configs" => "local",
        "bf-default-layout" => "blocked",
        "cf-initial-size" => "500",
        "tls-auth-clients" => "optional",
        "tls-protocols" => "TLSv1.3",
        _ => "7",
    })
}

#[test]
fn limits_of_replies_are_set_kind_by_kind() {
    let text =
        "client-output-buffer-limit normal 1kb 2 3\nclient-output-buffer-limit pubsub 4 5 6\n";
    let limits = from_text(text).unwrap().client_output_buffer_limit;
    assert_eq!(
        limits.show(),
        "normal 1024 2 3 slave 268435456 67108864 60 pubsub 4 5 6"
    );
}

#[test]
fn every_setting_reads_what_it_shows() {
    for parameter in PARAMETERS {
        let mut settings = Settings::default();
        let default = (parameter.get)(&settings);
        assert_eq!(
            (parameter.set)(&mut settings, &default),
            Ok(()),
            "{}",
            parameter.name
        );
        assert_eq!(settings, Settings::default(), "{}", parameter.name);

        let Some(value) = other_value(parameter.name) else {
            continue;
        };
        assert_eq!(
            (parameter.set)(&mut settings, value),
            Ok(()),
            "{}",
            parameter.name
        );
        assert_ne!(settings, Settings::default(), "{}", parameter.name);
        assert_eq!((parameter.get)(&settings), value, "{}", parameter.name);
        let mut again = Settings::default();
        assert_eq!((parameter.set)(&mut again, value), Ok(()));
        assert_eq!(again, settings);
    }
}

/// Settings of which each has another value than its default.
fn others() -> Settings {
    let mut settings = Settings::default();
    for parameter in PARAMETERS {
        if let Some(value) = other_value(parameter.name) {
            (parameter.set)(&mut settings, value).unwrap();
        }
    }
    settings
}

/// Asserts that each field differs from its default. The pattern names all fields: a new one
/// cannot be forgotten.
macro_rules! assert_all_differ {
    ($type:path, $changed:expr, $default:expr, $($field:ident),* $(; $($other:ident),*)?) => {
        let $type { $($field,)* $($($other: _),*)? } = $changed;
        $(assert_ne!($field, $default.$field);)*
    };
}

#[test]
fn every_field_can_be_set() {
    let (changed, default) = (others(), Settings::default());
    #[rustfmt::skip]
    assert_all_differ!(
        Settings, changed, default,
        bf, cf, bind, port, unixsocket, unixsocketperm, tcp_backlog, tcp_keepalive, timeout,
        metrics_port, metrics_bind,
        io_threads, protected_mode, requirepass, maxclients, maxmemory, proto_max_bulk_len,
        client_query_buffer_limit, client_output_buffer_limit, maxmemory_clients,
        slowlog_log_slower_than,
        slowlog_max_len, hz, loglevel, logfile, log_format, bf_error_rate_text, bf_max_filter_bytes,
        enable_debug_command, enable_protected_configs; data, tls, config_file, max_maxclients
    );
    assert_ne!(bf.error_rate, default.bf.error_rate);
    assert_ne!(bf.initial_size, default.bf.initial_size);
    assert_ne!(bf.expansion, default.bf.expansion);
    assert_ne!(bf.layout, default.bf.layout);
    assert_ne!(cf.initial_size, default.cf.initial_size);
    assert_ne!(cf.bucket_size, default.cf.bucket_size);
    assert_ne!(cf.max_iterations, default.cf.max_iterations);
    assert_ne!(cf.expansion, default.cf.expansion);
    assert_ne!(cf.max_expansions, default.cf.max_expansions);
}

#[test]
fn every_field_of_tls_and_of_data_can_be_set() {
    let (changed, default) = (others(), Settings::default());
    #[rustfmt::skip]
    assert_all_differ!(
        TlsSettings, changed.tls, default.tls,
        port, cert_file, key_file, ca_cert_file, auth_clients, protocols
    );
    #[rustfmt::skip]
    assert_all_differ!(
        everbloom_store::Settings, changed.data, default.data,
        databases, dir, dbfilename, save, rdbcompression, rdbchecksum,
        stop_writes_on_bgsave_error, rdb_skip_unknown_values, appendonly, appenddirname,
        appendfilename, appendfsync, aof_load_truncated, auto_aof_rewrite_percentage,
        auto_aof_rewrite_min_size
    );
}

#[test]
fn names_are_unique_and_lower_case() {
    let mut names: Vec<&str> = PARAMETERS
        .iter()
        .flat_map(|p| [Some(p.name), p.alias])
        .flatten()
        .collect();
    let count = names.len();
    for name in &names {
        assert_eq!(*name, name.to_ascii_lowercase());
        assert!(Parameter::find(&name.to_ascii_uppercase()).is_some());
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn words_of_the_command_line() {
    assert_eq!(loaded(""), Settings::serving());
    let settings = loaded("--port 7000 --bind a -::1 --hz=20 '--timeout 5' --MAXMEMORY 1gb");
    assert_eq!(settings.port, 7000);
    assert_eq!(settings.bind, ["a", "-::1"]);
    assert_eq!(
        (settings.hz, settings.timeout, settings.maxmemory),
        (20, 5, 1 << 30)
    );
    // A value may look like a name.
    assert_eq!(loaded("--requirepass --secret").requirepass, "--secret");
    assert!(loaded("--save '' --port 7000").data.save.is_empty());
    assert!(loaded("--save").data.save.is_empty());
    assert_eq!(loaded("--port 1 --port 2").port, 2);
    assert_eq!(
        loaded("--save 60 1 --save 5 10").data.save,
        [(60, 1), (5, 10)]
    );
}

#[test]
fn errors_of_the_command_line_name_the_setting() {
    for (line, message) in [
        (
            "--port abc",
            "'--port abc': argument couldn't be parsed into an integer",
        ),
        (
            "--port 65536",
            "'--port 65536': argument must be between 0 and 65535 inclusive",
        ),
        (
            "--maxmemory 4xb",
            "'--maxmemory 4xb': argument must be a memory value, such as 512mb or 4gb",
        ),
        ("--port", "'--port': wrong number of arguments"),
        ("--port 1 2", "'--port 1 2': wrong number of arguments"),
        ("--nosuch 1", "'--nosuch 1': unknown setting 'nosuch'"),
        ("-- 1", "'--': a setting without a name"),
        ("--save 60", "'--save 60': Invalid save parameters"),
        (
            "--aof-use-rdb-preamble no",
            "'--aof-use-rdb-preamble no': a rewritten log always begins with an RDB file, so this \
             must be yes",
        ),
        (
            "--user default",
            "'--user default': not supported, and not safe to ignore",
        ),
    ] {
        assert_eq!(refused(line), message);
    }
    let missing = refused("/no/such/file.conf --port 1");
    assert!(
        missing.starts_with("/no/such/file.conf: cannot be read: "),
        "{missing}"
    );
}

#[test]
fn a_file_has_comments_quotes_and_repeated_lines() {
    let settings = from_text(
        "# a comment\n\n  port 7000\r\nPORT 7001\nrequirepass \"a b\\x21\"\nlogfile ''\n\
         bind 127.0.0.1 -::1\nsave 60 1\nsave 5 10\nappendfsync ALWAYS\nbf.bf-initial-size 500\n",
    )
    .unwrap();
    assert_eq!(settings.port, 7001);
    assert_eq!(settings.requirepass, "a b!");
    assert_eq!(settings.bf.initial_size, 500);
    assert_eq!(settings.data.save, [(60, 1), (5, 10)]);
    assert_eq!(settings.data.appendfsync, everbloom_store::Fsync::Always);
}

/// As in redis-server 7.0.15.
#[test]
fn save_without_points_ends_the_default_ones() {
    for (text, points) in [
        ("save\n", &[][..]),
        ("save 60 1\nsave\nsave 5 10\n", &[(60, 1), (5, 10)]),
        ("save 60 1\nsave ''\nsave 5 10\n", &[(5, 10)]),
    ] {
        assert_eq!(from_text(text).unwrap().data.save, points, "{text}");
    }
}

#[test]
fn errors_of_a_file_name_the_line() {
    for (text, message) in [
        (
            "\nport x",
            "a.conf, line 2: 'port x': argument couldn't be parsed into an integer",
        ),
        (
            "dbfilename a/b",
            "a.conf, line 1: 'dbfilename a/b': dbfilename can't be a path, just a filename",
        ),
        (
            "dbfilename ..",
            "a.conf, line 1: 'dbfilename ..': dbfilename can't be a path, just a filename",
        ),
        (
            "appendfilename ..",
            "a.conf, line 1: 'appendfilename ..': appendfilename can't be a path, just a filename",
        ),
        (
            "appenddirname ..",
            "a.conf, line 1: 'appenddirname ..': appenddirname can't be a path, just a dirname",
        ),
        (
            "port \"1",
            "a.conf, line 1: 'port \"1': Unbalanced quotes in configuration line",
        ),
        (
            "bogus 1",
            "a.conf, line 1: 'bogus 1': unknown setting 'bogus'",
        ),
        (
            "cluster-enabled yes",
            "a.conf, line 1: 'cluster-enabled yes': not supported, and not safe to ignore",
        ),
        (
            "loadmodule /x/redisearch.so",
            "a.conf, line 1: 'loadmodule /x/redisearch.so': modules cannot be loaded",
        ),
    ] {
        assert_eq!(from_text(text).unwrap_err().to_string(), message);
    }
    assert!(from_text("cluster-enabled no\nreplicaof \"\"\ndaemonize yes").is_ok());
}

#[test]
fn the_module_is_built_in_and_its_arguments_count() {
    let settings = from_text(
        "loadmodule /opt/redisbloom.so ERROR_RATE 0.3 initial_size 7 CF_MAX_EXPANSIONS 3",
    );
    let settings = settings.unwrap();
    assert_eq!(
        (settings.bf.error_rate, settings.bf.initial_size),
        (0.25, 7)
    );
    assert_eq!(settings.bf_error_rate_text, "0.3");
    assert_eq!(settings.cf.max_expansions, 3);
    let theirs = "loadmodule /opt/libvalkey_bloom.so bloom-capacity 8 bloom-expansion 3";
    let settings = from_text(theirs).unwrap();
    assert_eq!((settings.bf.initial_size, settings.bf.expansion), (8, 3));
}

#[test]
fn files_include_others_and_words_override_them() {
    let folder = folder("include");
    let main = folder.join("main.conf");
    fs::write(
        &main,
        format!(
            "port 1\ninclude {}/part-*.conf\nhz 30\nlfu-log-factor 1\n",
            folder.display()
        ),
    )
    .unwrap();
    fs::write(folder.join("part-a.conf"), "port 2\nhz 20\n").unwrap();
    fs::write(folder.join("part-b.conf"), "timeout 3\n").unwrap();
    let line = format!("{} --timeout 4", main.display());
    let found = load(&words(&line)).unwrap();
    let settings = found.settings;
    assert_eq!((settings.port, settings.hz, settings.timeout), (2, 30, 4));
    assert_eq!(
        settings.config_file.as_deref(),
        Some(main.canonicalize().unwrap().as_path())
    );
    assert_eq!(
        found.warnings,
        [format!(
            "{}, line 4: the setting 'lfu-log-factor' has no effect here",
            main.display()
        )]
    );

    // An editor's hidden copy is not included, unless the pattern says so.
    fs::write(folder.join(".part-c.conf"), "maxclients 5\n").unwrap();
    for (pattern, clients) in [
        ("*part-*.conf", 10_000),
        (".part*.conf", 5),
        ("none/*.conf", 10_000),
    ] {
        fs::write(&main, format!("include {}/{pattern}\n", folder.display())).unwrap();
        let settings = loaded(&main.display().to_string());
        assert_eq!(settings.maxclients, clients, "{pattern}");
    }

    // A file that includes itself ends in an error, not in a full stack.
    fs::write(&main, format!("include {}\n", main.display())).unwrap();
    assert!(refused(&line).ends_with("files include each other too deep"));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn rewriting_replaces_the_file_and_what_it_includes_is_overridden() {
    let folder = folder("rewrite");
    let main = folder.join("main.conf");
    fs::write(folder.join("late.conf"), "timeout 3\n").unwrap();
    let text = format!("timeout 1\n# why\ninclude {}/late.conf\n", folder.display());
    fs::write(&main, &text).unwrap();
    let mut settings = loaded(main.to_str().unwrap());
    rewrite(&settings).unwrap();
    assert_eq!(fs::read_to_string(&main).unwrap(), text);
    settings.timeout = 9;
    settings.bf_error_rate_text = "0.3".into();
    settings.bf.error_rate = 0.25;
    rewrite(&settings).unwrap();
    assert_eq!(loaded(main.to_str().unwrap()), settings);
    assert!(fs::read_to_string(&main).unwrap().contains("\n# why\n"));
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn settings_of_filters_have_redisblooms_error_texts() {
    let text = |name: &str, value: &str| {
        let parameter = Parameter::find(name).unwrap();
        (parameter.set)(&mut Settings::default(), value)
    };
    for (name, value, message) in [
        ("bf-error-rate", "x", "Invalid value for `bf-error-rate`"),
        (
            "bf-error-rate",
            "1",
            "Value for `bf-error-rate` must be in the range (0.000000, 1.000000)",
        ),
        (
            "bf-initial-size",
            "0",
            "Value for `bf-initial-size` must be in the range [1, 1073741824]",
        ),
        (
            "bf-initial-size",
            "x",
            "Invalid value for `bf-initial-size`",
        ),
        (
            "cf-bucket-size",
            "256",
            "Value for `cf-bucket-size` must be in the range [1, 255]",
        ),
        (
            "cf-initial-size",
            "3",
            "Value for `cf-initial-size` must be in the range [4, 1073741824]",
        ),
        (
            "bf.cf-max-expansions",
            "0",
            "Value for `cf-max-expansions` must be in the range [1, 65536]",
        ),
        (
            "bf.bf-expansion-factor",
            "32769",
            "Value for `bf-expansion-factor` must be in the range [0, 32768]",
        ),
    ] {
        assert_eq!(text(name, value), Err(message.into()));
    }
}

#[test]
fn an_update_that_fails_changes_nothing() {
    let config = Config::new(Settings::default());
    let version = config.version();
    let result = config.update(|settings| {
        settings.hz = 99;
        Err("no")
    });
    assert_eq!(result, Err("no"));
    assert_eq!(config.version(), version);
    assert_eq!(*config.snapshot(), Settings::default());
}
