//! The versions that clients are told of.

/// The version of Redis whose behaviour clients may expect; they choose features by it.
pub const REDIS_VERSION: &str = "7.4.0";

/// The version of RedisBloom whose behaviour clients may expect: 2.8.10.
pub const BLOOM_VERSION: i64 = 20810;
