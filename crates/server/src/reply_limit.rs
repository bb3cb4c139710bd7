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

/// The most bytes of one reply, encoded.
pub fn of_one(settings: &Settings) -> u64 {
    of_output(settings).min(of_clients(settings))
}

fn of_output(settings: &Settings) -> u64 {
    match settings.client_output_buffer_limit.normal.hard {
        0 => u64::MAX,
        most => most.max(UNLIMITED_REPLY_BYTES) as u64,
    }
}

fn of_clients(settings: &Settings) -> u64 {
    let most = settings.maxmemory_clients.max_bytes(settings.maxmemory);
    most.unwrap_or(u64::MAX)
}

/// The most bytes of a reply that is a list of any number of values: also a part of the free memory,
/// because a short request may name the same value a million times.
pub fn of_list(server: &Server, settings: &Settings) -> u64 {
    of_one(settings).min(part_of(server.free_memory(settings)))
}

/// The most bytes of an array in one reply of SCANDUMP, and always one: LOADCHUNK must be able to
/// take them. Beside the reply a client has other buffers, and there are other clients: with a quarter
/// of what all may hold, none is closed for its piece.
pub fn of_piece(settings: &Settings) -> u64 {
    const FRAMING: u64 = 64;
    let reply = of_output(settings).saturating_sub(FRAMING);
    let reply = reply.min(of_clients(settings) / 4);
    reply.min(settings.proto_max_bulk_len as u64).max(1)
}

/// The most bytes of a string whose reply has at most this many bytes.
pub fn string_within(reply_bytes: u64) -> u64 {
    let shorter = reply_bytes.saturating_sub(string_framing(reply_bytes));
    // The length of the string may have one digit less than that of the reply.
    let longer = shorter.saturating_add(1);
    let fits = longer
        .checked_add(string_framing(longer))
        .is_some_and(|encoded| encoded <= reply_bytes);
    if fits { longer } else { shorter }
}

/// The bytes around a string of this length in a reply.
fn string_framing(bytes: u64) -> u64 {
    let digits = bytes.checked_ilog10().unwrap_or(0) + 1;
    u64::from(digits) + "$\r\n\r\n".len() as u64
}

fn part_of(free: u64) -> u64 {
    const MIN_BYTES: u64 = 64 << 20;
    // The replies are in memory twice while their buffer is doubled.
    (free / 4).max(MIN_BYTES)
}

impl Call<'_> {
    /// Refuses a command whose reply, a string of this length, would be too large.
    pub fn check_string_reply(&self, bytes: u64) -> Result<(), Reply> {
        let encoded = bytes.saturating_add(string_framing(bytes));
        check(encoded, of_one(self.settings))
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
    use everbloom_resp::encode::encode_bulk_len;

    use super::*;

    #[test]
    fn a_small_reply_is_within_any_limit_of_the_output() {
        let mut settings = Settings::default();
        settings.client_output_buffer_limit.normal.hard = 1000;
        assert_eq!(of_one(&settings), 16 << 10);
        settings.client_output_buffer_limit.normal.hard = 20_000;
        assert_eq!(of_one(&settings), 20_000);
    }

    #[test]
    fn the_framing_of_a_string_counts() {
        for bytes in [0, 9, 10, 16_374, 16_375, 99_999, 100_000] {
            let mut encoded = Vec::new();
            encode_bulk_len(bytes, &mut encoded);
            let expected = encoded.len() as u64 + 2;
            assert_eq!(string_framing(bytes as u64), expected, "{bytes}");
        }
        for (reply_bytes, string) in [(0, 0), (5, 0), (6, 0), (7, 1), (16 << 10, 16_374)] {
            assert_eq!(string_within(reply_bytes), string, "{reply_bytes}");
        }
        assert_eq!(string_within(u64::MAX), u64::MAX - 25);
        // The longest that fits, also where one more byte has one more digit.
        let near_powers = (1..19).flat_map(|digits| {
            let power = 10_u64.pow(digits);
            power.saturating_sub(30)..power + 30
        });
        for reply_bytes in near_powers.filter(|bytes| *bytes >= 6) {
            let longest = string_within(reply_bytes);
            let encoded = |bytes| bytes + string_framing(bytes);
            assert!(encoded(longest) <= reply_bytes, "{reply_bytes}");
            assert!(encoded(longest + 1) > reply_bytes, "{reply_bytes}");
        }
    }

    #[test]
    fn replies_may_take_a_quarter_of_the_free_memory_and_always_64_mib() {
        assert_eq!(part_of(0), 64 << 20);
        assert_eq!(part_of(256 << 20), 64 << 20);
        assert_eq!(part_of(8 << 30), 2 << 30);
    }
}
