//! Settings that Redis has and this server has not.

/// What becomes of such a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Foreign {
    /// It tunes something that is not here: a warning in the log is enough.
    Ignored,
    /// Whoever sets it relies on it, as on a list of users: the server must not start without it.
    Refused {
        /// The value that asks for nothing.
        unless: &'static str,
    },
}

/// Looks a setting up by its name, in any case.
pub fn find(name: &str) -> Option<Foreign> {
    let name = name.to_ascii_lowercase();
    let refused = REFUSED.iter().find(|(known, _)| *known == name);
    if let Some((_, unless)) = refused {
        return Some(Foreign::Refused { unless });
    }
    let ignored = IGNORED.binary_search(&name.as_str()).is_ok();
    ignored.then_some(Foreign::Ignored)
}

const REFUSED: &[(&str, &str)] = &[
    ("aclfile", ""),
    ("cluster-enabled", "no"),
    ("rename-command", ""),
    ("replicaof", ""),
    ("slaveof", ""),
    ("tls-port", "0"),
    ("unixsocket", ""),
    ("user", ""),
];

/// In alphabetical order.
const IGNORED: &[&str] = &[
    "acl-pubsub-default",
    "acllog-max-len",
    "active-defrag-cycle-max",
    "active-defrag-cycle-min",
    "active-defrag-ignore-bytes",
    "active-defrag-max-scan-fields",
    "active-defrag-threshold-lower",
    "active-defrag-threshold-upper",
    "active-expire-effort",
    "activedefrag",
    "activerehashing",
    "always-show-logo",
    "aof-disable-auto-gc",
    "aof-rewrite-incremental-fsync",
    "aof-timestamp-enabled",
    "aof_rewrite_cpulist",
    "bgsave_cpulist",
    "bind-source-addr",
    "bio_cpulist",
    "busy-reply-threshold",
    "cf-bucket-size",
    "cf-expansion-factor",
    "cf-initial-size",
    "cf-max-expansions",
    "cf-max-iterations",
    "client-output-buffer-limit",
    "cluster-allow-pubsubshard-when-down",
    "cluster-allow-reads-when-down",
    "cluster-allow-replica-migration",
    "cluster-announce-bus-port",
    "cluster-announce-hostname",
    "cluster-announce-ip",
    "cluster-announce-port",
    "cluster-announce-tls-port",
    "cluster-config-file",
    "cluster-link-sendbuf-limit",
    "cluster-migration-barrier",
    "cluster-node-timeout",
    "cluster-port",
    "cluster-preferred-endpoint-type",
    "cluster-replica-no-failover",
    "cluster-replica-validity-factor",
    "cluster-require-full-coverage",
    "cluster-slave-no-failover",
    "cluster-slave-validity-factor",
    "crash-log-enabled",
    "crash-memcheck-enabled",
    "daemonize",
    "disable-thp",
    "dynamic-hz",
    "enable-module-command",
    "enable-protected-configs",
    "hash-max-listpack-entries",
    "hash-max-listpack-value",
    "hash-max-ziplist-entries",
    "hash-max-ziplist-value",
    "hll-sparse-max-bytes",
    "ignore-warnings",
    "io-threads-do-reads",
    "jemalloc-bg-thread",
    "latency-monitor-threshold",
    "latency-tracking",
    "latency-tracking-info-percentiles",
    "lazyfree-lazy-eviction",
    "lazyfree-lazy-expire",
    "lazyfree-lazy-server-del",
    "lazyfree-lazy-user-del",
    "lazyfree-lazy-user-flush",
    "lfu-decay-time",
    "lfu-log-factor",
    "list-compress-depth",
    "list-max-listpack-size",
    "list-max-ziplist-size",
    "locale-collate",
    "lua-time-limit",
    "masterauth",
    "masteruser",
    "maxmemory-clients",
    "maxmemory-eviction-tenacity",
    "maxmemory-samples",
    "min-replicas-max-lag",
    "min-replicas-to-write",
    "min-slaves-max-lag",
    "min-slaves-to-write",
    "no-appendfsync-on-rewrite",
    "notify-keyspace-events",
    "oom-score-adj",
    "oom-score-adj-values",
    "pidfile",
    "proc-title-template",
    "propagation-error-behavior",
    "rdb-del-sync-files",
    "rdb-save-incremental-fsync",
    "repl-backlog-size",
    "repl-backlog-ttl",
    "repl-disable-tcp-nodelay",
    "repl-diskless-load",
    "repl-diskless-sync",
    "repl-diskless-sync-delay",
    "repl-diskless-sync-max-replicas",
    "repl-diskless-sync-period",
    "repl-ping-replica-period",
    "repl-ping-slave-period",
    "repl-timeout",
    "replica-announce-ip",
    "replica-announce-port",
    "replica-announced",
    "replica-ignore-disk-write-errors",
    "replica-ignore-maxmemory",
    "replica-lazy-flush",
    "replica-priority",
    "replica-read-only",
    "replica-serve-stale-data",
    "sanitize-dump-payload",
    "server-cpulist",
    "server_cpulist",
    "set-max-intset-entries",
    "set-max-listpack-entries",
    "set-max-listpack-value",
    "set-proc-title",
    "shutdown-on-sigint",
    "shutdown-on-sigterm",
    "shutdown-timeout",
    "slave-announce-ip",
    "slave-announce-port",
    "slave-ignore-maxmemory",
    "slave-lazy-flush",
    "slave-priority",
    "slave-read-only",
    "slave-serve-stale-data",
    "socket-mark-id",
    "stream-node-max-bytes",
    "stream-node-max-entries",
    "supervised",
    "syslog-enabled",
    "syslog-facility",
    "syslog-ident",
    "tls-auth-clients",
    "tls-ca-cert-dir",
    "tls-ca-cert-file",
    "tls-cert-file",
    "tls-ciphers",
    "tls-ciphersuites",
    "tls-client-cert-file",
    "tls-client-key-file",
    "tls-client-key-file-pass",
    "tls-cluster",
    "tls-dh-params-file",
    "tls-key-file",
    "tls-key-file-pass",
    "tls-prefer-server-ciphers",
    "tls-protocols",
    "tls-replication",
    "tls-session-cache-size",
    "tls-session-cache-timeout",
    "tls-session-caching",
    "tracking-table-max-keys",
    "unixsocketperm",
    "zset-max-listpack-entries",
    "zset-max-listpack-value",
    "zset-max-ziplist-entries",
    "zset-max-ziplist-value",
];

#[cfg(test)]
mod tests {
    use super::super::parameter::Parameter;
    use super::*;

    #[test]
    fn names_are_in_order_and_are_nobody_elses() {
        assert!(IGNORED.is_sorted());
        let refused = REFUSED.iter().map(|(name, _)| name);
        for name in IGNORED.iter().chain(refused) {
            assert!(Parameter::find(name).is_none(), "{name}");
            assert!(find(&name.to_uppercase()).is_some(), "{name}");
        }
        assert_eq!(find("no-such-setting"), None);
    }
}
