//! Replies that are much larger than their requests: the limit holds while they are made.

use everbloom_resp::Reply;

use super::bounds::limit_named;
use super::{Verdict, World};
use crate::model::Value;
use crate::op::{Asking, ReplyLimit, Words, words_of};
use crate::server::Connection;

/// The most words of a request.
const MAX_WORDS: u64 = 20_000;

/// A list of replies may always have so many bytes, unless a setting says less.
const MIN_LIST_BYTES: u64 = 64 << 20;

/// `client-output-buffer-limit` limits no reply that is shorter, as in Redis.
const UNLIMITED_BYTES: u64 = 16 << 10;

/// What a command may take beside its replies.
const SMALL_BYTES: u64 = 64 << 10;

/// What a list may take for each of its strings, beside that.
const ENTRY_BYTES: u64 = 256;

/// The server counts at most so many bytes around each string.
const FRAMING_BYTES: u64 = 32;

/// Requests for one string, again and again, and what they must come to.
struct Questions {
    /// The string.
    text: Vec<u8>,
    /// How often it is asked for.
    times: u64,
    /// The most bytes of a reply.
    most: u64,
    /// The commands that ask for the string; a transaction of several is in MULTI and EXEC.
    requests: Vec<Words>,
}

impl Questions {
    /// So many times the string, in so many commands.
    fn new(key: &str, text: Vec<u8>, how: Asking, most: u64, percent: u64) -> Self {
        let each = text.len() as u64 + FRAMING_BYTES;
        let wanted = (most / 100 * percent / each).clamp(1, MAX_WORDS);
        let (commands, times) = match how {
            Asking::Get => (1, 1),
            Asking::MGet => (1, wanted),
            Asking::Pipeline | Asking::ExecOfGets => (wanted.min(200), wanted.min(200)),
            Asking::ExecOfMGets => (4, wanted.next_multiple_of(4)),
        };
        let name = match how {
            Asking::MGet | Asking::ExecOfMGets => "MGET",
            _ => "GET",
        };
        let mut command = words_of(name);
        command.resize(1 + (times / commands) as usize, key.as_bytes().to_vec());
        let mut requests = vec![command; commands as usize];
        if matches!(how, Asking::ExecOfGets | Asking::ExecOfMGets) {
            requests.insert(0, words_of("MULTI"));
            requests.push(words_of("EXEC"));
        }
        Questions {
            text,
            times,
            most,
            requests,
        }
    }

    /// The fewest bytes that all strings take in replies, and as many as the server may count.
    fn bytes(&self) -> (u64, u64) {
        let len = self.text.len() as u64;
        (self.times * len, self.times * (len + FRAMING_BYTES) + 64)
    }

    /// The strings of a reply, if it has no others.
    fn count(&self, reply: &Reply) -> Result<u64, String> {
        match reply {
            Reply::Bulk(text) if *text == self.text => Ok(1),
            Reply::Array(replies) => replies.iter().map(|reply| self.count(reply)).sum(),
            Reply::Simple(_) => Ok(0),
            Reply::Error(why) => Err(why.to_string()),
            other => Err(format!("another reply: {:.100}", format!("{other:?}"))),
        }
    }
}

impl World {
    /// A client asks for a string many times, at a part of a limit, and gets all or an error.
    pub(super) fn read_many(
        &mut self,
        key: &str,
        how: Asking,
        limit: ReplyLimit,
        percent: u64,
    ) -> Verdict {
        let Some(Value::Text(text)) = self.model.get(key, self.now()).map(|it| it.value.clone())
        else {
            return Ok(());
        };
        let before = self.instance().server.config.snapshot().maxmemory;
        let (set, most, reset) = match limit {
            ReplyLimit::Output(most) => (
                format!("client-output-buffer-limit@normal {most} 0 0"),
                most.max(UNLIMITED_BYTES),
                "client-output-buffer-limit@normal 0 0 0".into(),
            ),
            ReplyLimit::Clients(most) => (
                format!("maxmemory-clients@{most}"),
                most,
                "maxmemory-clients@0".into(),
            ),
            ReplyLimit::Memory => (
                "maxmemory@1000000".into(),
                MIN_LIST_BYTES,
                format!("maxmemory@{before}"),
            ),
        };
        // Nobody builds a reply as large as that for a test.
        if limit == ReplyLimit::Memory && (text.len() as u64) < 2 * MIN_LIST_BYTES / MAX_WORDS {
            return Ok(());
        }
        let percent = if limit == ReplyLimit::Memory {
            120
        } else {
            percent
        };
        self.configure(&set)?;
        let questions = Questions::new(key, text, how, most, percent);
        let verdict = self.ask_many(&questions, how, limit);
        self.configure(&reset)?;
        verdict.map_err(|why| format!("{how:?} at {percent} % of {limit:?}: {why}"))?;
        self.check_key(key)
    }

    fn configure(&mut self, setting: &str) -> Verdict {
        let words = [b"CONFIG".to_vec(), b"SET".to_vec()].into_iter();
        let setting = setting.split('@').map(|word| word.as_bytes().to_vec());
        match self.ask(words.chain(setting).collect()) {
            Reply::Simple(_) => Ok(()),
            other => Err(format!("CONFIG SET: {other:?}")),
        }
    }

    fn ask_many(&self, questions: &Questions, how: Asking, limit: ReplyLimit) -> Verdict {
        let instance = self.instance();
        let mut client = Connection::new();
        let mut progress = client.send(instance, &questions.requests);
        let (mut replies, mut taken) = (progress.replies, progress.taken);
        while client.is_waiting() {
            instance.finish("work");
            progress = client.go_on(instance).ok_or("the work has not ended")?;
            replies.extend(progress.replies);
            taken = taken.max(progress.taken);
        }
        let counted: Result<u64, String> = replies.iter().map(|it| questions.count(it)).sum();
        let is_answered = counted == Ok(questions.times);
        let is_refused = match how {
            Asking::ExecOfGets | Asking::ExecOfMGets => client.is_closing(),
            _ => matches!(&counted, Err(why) if why.starts_with("ERR the reply would be larger")),
        };
        if is_answered == is_refused {
            return Err(format!(
                "answered: {is_answered}, refused: {is_refused}: {counted:?}"
            ));
        }
        let (least, counted) = match how {
            Asking::Get | Asking::Pipeline => {
                let len = questions.text.len() as u64;
                (len, len + FRAMING_BYTES)
            }
            _ => questions.bytes(),
        };
        let is_list = !matches!(how, Asking::Get | Asking::Pipeline);
        let of_list_only = limit == ReplyLimit::Memory && !is_list;
        let most = if of_list_only {
            u64::MAX
        } else {
            questions.most
        };
        if is_answered && least > most {
            return Err(format!("a reply of {least} bytes is more than {most}"));
        }
        if is_refused && counted <= most {
            return Err(format!(
                "a reply of {counted} bytes is refused, and {most} may be"
            ));
        }
        let bound = questions.bound(how, is_answered);
        match taken as u64 > bound {
            true => Err(format!(
                "{taken} bytes are taken, and {bound} are the bound"
            )),
            false => Ok(()),
        }
    }
}

impl Questions {
    /// The most bytes that the commands may take at one time.
    fn bound(&self, how: Asking, is_answered: bool) -> u64 {
        let (len, built) = (self.text.len() as u64, self.bytes().1);
        let words: usize = self.requests.iter().map(Vec::len).sum();
        let replies = match how {
            Asking::Get | Asking::MGet if is_answered => built,
            Asking::Get | Asking::MGet => 0,
            // Further requests wait while so much is not sent; some are executed together.
            Asking::Pipeline => (limit_named("waiting replies").get() as u64 + 64 * len).min(built),
            Asking::ExecOfGets | Asking::ExecOfMGets => built.min(2 * self.most + len),
        };
        // A buffer that grows is there twice for a moment, and a list before it is encoded.
        SMALL_BYTES + ENTRY_BYTES * words as u64 + 4 * replies
    }
}
