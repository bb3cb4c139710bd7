//! How many bytes a reply may have. A command is refused before it takes memory for more.

use everbloom_resp::Reply;

use crate::call::Call;
use crate::config::Settings;
use crate::server::Server;

/// The reply of a command whose own reply would be too large.
pub const REPLY_TOO_LARGE: &str = "ERR the reply would be larger than client-output-buffer-limit, \
    maxmemory-clients or the free memory allow; ask for less at a time";

/// Replies of so many bytes are sent whatever the limit of the output says: redis-server does not
/// count its first buffer, which has this size.
pub const UNLIMITED_REPLY_BYTES: usize = 16 << 10;

/// The most bytes of a reply that is one value.
pub fn of_value(settings: &Settings) -> u64 {
    let hard = match settings.client_output_buffer_limit.normal.hard {
        0 => u64::MAX,
        most => most.max(UNLIMITED_REPLY_BYTES) as u64,
    };
    let clients = settings.maxmemory_clients.max_bytes(settings.maxmemory);
    hard.min(clients.unwrap_or(u64::MAX))
}

/// The most bytes of a reply that is a list of any number of values: also a part of the free memory,
/// because a short request may name the same value a million times.
pub fn of_list(server: &Server, settings: &Settings) -> u64 {
    of_value(settings).min(part_of(server.free_memory(settings)))
}

fn part_of(free: u64) -> u64 {
    const MIN_BYTES: u64 = 64 << 20;
    // The replies are in memory twice while their buffer is doubled.
    (free / 4).max(MIN_BYTES)
}

impl Call<'_> {
    /// Refuses a command whose reply, a value, would have so many bytes.
    pub fn check_value_reply(&self, bytes: u64) -> Result<(), Reply> {
        check(bytes, of_value(self.settings))
    }

    /// Refuses a command whose reply, a list, would have so many bytes beside the earlier replies of
    /// its transaction.
    pub fn check_list_reply(&self, bytes: usize) -> Result<(), Reply> {
        let earlier = self.session.executing.unwrap_or(0);
        let bytes = bytes.saturating_add(earlier) as u64;
        check(bytes, of_list(self.server, self.settings))
    }
}

fn check(bytes: u64, most: u64) -> Result<(), Reply> {
    match bytes <= most {
        true => Ok(()),
        false => Err(Reply::error(REPLY_TOO_LARGE)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_reply_is_within_any_limit_of_the_output() {
        let mut settings = Settings::default();
        settings.client_output_buffer_limit.normal.hard = 1000;
        assert_eq!(of_value(&settings), 16 << 10);
        settings.client_output_buffer_limit.normal.hard = 20_000;
        assert_eq!(of_value(&settings), 20_000);
    }

    #[test]
    fn replies_may_take_a_quarter_of_the_free_memory_and_always_64_mib() {
        assert_eq!(part_of(0), 64 << 20);
        assert_eq!(part_of(256 << 20), 64 << 20);
        assert_eq!(part_of(8 << 30), 2 << 30);
    }
}
