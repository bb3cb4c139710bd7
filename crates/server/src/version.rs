//! The versions reported to clients.

/// The version of Redis whose behaviour clients can expect; they choose features by it.
pub const REDIS_VERSION: &str = "7.4.0";

/// The version of RedisBloom whose behaviour clients can expect: 2.8.10.
pub const BLOOM_VERSION: i64 = 20810;
