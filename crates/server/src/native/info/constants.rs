//! The fields of Redis 7.4 that always have one value here. Dashboards, exporters and clients read
//! them.

/// The constant fields of a section.
pub fn of(title: &str) -> &'static [(&'static str, &'static str)] {
    let section = SECTIONS.iter().find(|(section, _)| *section == title);
    section.map_or(&[], |(_, fields)| fields)
}

/// Sections with their constant fields: names and values.
type Sections = &'static [(&'static str, &'static [(&'static str, &'static str)])];

const ARCH_BITS: &str = if usize::BITS == 64 { "64" } else { "32" };
const EVENTS: &str = if cfg!(target_os = "linux") {
    "epoll"
} else {
    "kqueue"
};

const SECTIONS: Sections = &[
    (
        "Server",
        &[
            ("redis_git_sha1", "00000000"),
            ("redis_git_dirty", "0"),
            ("redis_build_id", "0"),
            ("arch_bits", ARCH_BITS),
            ("monotonic_clock", "POSIX clock_gettime"),
            ("multiplexing_api", EVENTS),
            ("atomicvar_api", "c11-builtin"),
            // Redis has this value when it was compiled by another compiler.
            ("gcc_version", "0.0.0"),
            ("process_supervised", "no"),
        ],
    ),
    (
        "Clients",
        &[
            ("cluster_connections", "0"),
            ("blocked_clients", "0"),
            ("tracking_clients", "0"),
            ("pubsub_clients", "0"),
            ("clients_in_timeout_table", "0"),
            ("total_blocking_keys", "0"),
            ("total_blocking_keys_on_nokey", "0"),
        ],
    ),
    (
        "Memory",
        &[
            ("used_memory_startup", "0"),
            ("used_memory_lua", "0"),
            ("used_memory_lua_human", "0B"),
            ("used_memory_vm_eval", "0"),
            ("used_memory_vm_functions", "0"),
            ("used_memory_vm_total", "0"),
            ("used_memory_vm_total_human", "0B"),
            ("used_memory_scripts_eval", "0"),
            ("used_memory_functions", "0"),
            ("used_memory_scripts", "0"),
            ("used_memory_scripts_human", "0B"),
            ("number_of_cached_scripts", "0"),
            ("number_of_functions", "0"),
            ("number_of_libraries", "0"),
            ("maxmemory_policy", "noeviction"),
            ("mem_not_counted_for_evict", "0"),
            ("mem_replication_backlog", "0"),
            ("mem_total_replication_buffers", "0"),
            ("mem_clients_slaves", "0"),
            ("mem_cluster_links", "0"),
            ("mem_allocator", "libc"),
            ("active_defrag_running", "0"),
            ("lazyfree_pending_objects", "0"),
            ("lazyfreed_objects", "0"),
        ],
    ),
    // Snapshots need no fork, so nothing is copied on write.
    (
        "Persistence",
        &[
            ("async_loading", "0"),
            ("current_cow_peak", "0"),
            ("current_cow_size", "0"),
            ("current_cow_size_age", "0"),
            ("current_fork_perc", "0.00"),
            ("rdb_last_cow_size", "0"),
            ("aof_last_cow_size", "0"),
            ("module_fork_in_progress", "0"),
            ("module_fork_last_cow_size", "0"),
        ],
    ),
    (
        "Stats",
        &[
            ("total_net_repl_input_bytes", "0"),
            ("total_net_repl_output_bytes", "0"),
            ("instantaneous_input_repl_kbps", "0.00"),
            ("instantaneous_output_repl_kbps", "0.00"),
            ("sync_full", "0"),
            ("sync_partial_ok", "0"),
            ("sync_partial_err", "0"),
            ("expired_subkeys", "0"),
            ("expired_stale_perc", "0.00"),
            ("expired_time_cap_reached_count", "0"),
            ("evicted_keys", "0"),
            ("evicted_scripts", "0"),
            ("total_eviction_exceeded_time", "0"),
            ("current_eviction_exceeded_time", "0"),
            ("pubsub_channels", "0"),
            ("pubsub_patterns", "0"),
            ("pubsubshard_channels", "0"),
            ("latest_fork_usec", "0"),
            ("total_forks", "0"),
            ("migrate_cached_sockets", "0"),
            ("slave_expires_tracked_keys", "0"),
            ("active_defrag_hits", "0"),
            ("active_defrag_misses", "0"),
            ("active_defrag_key_hits", "0"),
            ("active_defrag_key_misses", "0"),
            ("total_active_defrag_time", "0"),
            ("current_active_defrag_time", "0"),
            ("tracking_total_keys", "0"),
            ("tracking_total_items", "0"),
            ("tracking_total_prefixes", "0"),
            ("unexpected_error_replies", "0"),
            ("dump_payload_sanitizations", "0"),
            ("io_threaded_reads_processed", "0"),
            ("io_threaded_writes_processed", "0"),
            ("reply_buffer_shrinks", "0"),
            ("reply_buffer_expands", "0"),
        ],
    ),
    (
        "Replication",
        &[
            ("connected_slaves", "0"),
            ("master_failover_state", "no-failover"),
            ("master_replid2", "0000000000000000000000000000000000000000"),
            ("master_repl_offset", "0"),
            ("second_repl_offset", "-1"),
            ("repl_backlog_active", "0"),
            ("repl_backlog_size", "0"),
            ("repl_backlog_first_byte_offset", "0"),
            ("repl_backlog_histlen", "0"),
        ],
    ),
    (
        "CPU",
        &[
            ("used_cpu_sys_children", "0.000000"),
            ("used_cpu_user_children", "0.000000"),
        ],
    ),
    ("Cluster", &[("cluster_enabled", "0")]),
];
