//! How many bytes of replies a client may leave unread: `client-output-buffer-limit`.

use super::text::{memory, number};

/// The limit of one kind of clients. 0 means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputLimit {
    /// With more bytes than this a client is disconnected at once.
    pub hard: usize,
    /// With more bytes than this it is disconnected after `seconds`.
    pub soft: usize,
    /// How many seconds it may be over the soft limit.
    pub seconds: u64,
}

/// The limits of all kinds that Redis knows. In this server all clients are normal ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputLimits {
    /// Clients that send commands.
    pub normal: OutputLimit,
    replica: OutputLimit,
    pubsub: OutputLimit,
}

impl Default for OutputLimits {
    fn default() -> Self {
        let limit = |hard, soft, seconds| OutputLimit {
            hard,
            soft,
            seconds,
        };
        OutputLimits {
            normal: limit(0, 0, 0),
            replica: limit(256 << 20, 64 << 20, 60),
            pubsub: limit(32 << 20, 8 << 20, 60),
        }
    }
}

impl OutputLimits {
    /// Changes the kinds that a text names: `KIND HARD SOFT SECONDS`, any number of times.
    pub fn set(&mut self, text: &str) -> Result<(), String> {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let mut changed = self.clone();
        for words in words.chunks(4) {
            let [kind, hard, soft, seconds] = *words else {
                return Err(wrong("Wrong number of arguments"));
            };
            let limit = match kind.to_ascii_lowercase().as_str() {
                "normal" => &mut changed.normal,
                "slave" | "replica" => &mut changed.replica,
                "pubsub" => &mut changed.pubsub,
                _ => return Err(wrong("Invalid client class specified")),
            };
            let read = || {
                Ok::<_, String>(OutputLimit {
                    hard: memory(hard, 0, i64::MAX)?,
                    soft: memory(soft, 0, i64::MAX)?,
                    seconds: number(seconds, 0, i64::MAX)?,
                })
            };
            *limit = read().map_err(|_| wrong("Error in hard, soft or soft_seconds setting"))?;
        }
        *self = changed;
        Ok(())
    }

    /// The text of all kinds.
    pub fn show(&self) -> String {
        let show = |of: &OutputLimit| format!("{} {} {}", of.hard, of.soft, of.seconds);
        let [normal, replica, pubsub] = [&self.normal, &self.replica, &self.pubsub].map(show);
        format!("normal {normal} slave {replica} pubsub {pubsub}")
    }
}

fn wrong(what: &str) -> String {
    format!("{what} in buffer limit configuration.")
}
