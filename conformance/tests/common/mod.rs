//! The commands in process, with the smallest keyspace that the recorded cases need.

use everbloom_commands::run::Replies;
use everbloom_commands::{
    Action, Context, Family, Filter, Function, LazyContext, ReadSlot, Run, Slot, find,
};
use everbloom_conformance::Subject;
use everbloom_resp::{Protocol, Reply, encode};
use std::collections::HashMap;
use std::io;

enum Value {
    String,
    Filter(Filter),
}

/// A host without a socket, a clock or a log.
#[derive(Default)]
pub(crate) struct InProcess {
    keys: HashMap<(u32, Vec<u8>), Value>,
    db: u32,
    protocol: Protocol,
}

impl Subject for InProcess {
    fn connect(&mut self, resp: u8) -> io::Result<()> {
        self.db = 0;
        self.protocol = if resp == 3 {
            Protocol::Resp3
        } else {
            Protocol::Resp2
        };
        Ok(())
    }

    fn call(&mut self, args: &[Vec<u8>]) -> io::Result<Vec<u8>> {
        let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
        let mut out = Vec::new();
        encode(&self.reply(&args), self.protocol, &mut out);
        Ok(out)
    }
}

impl InProcess {
    fn reply(&mut self, args: &[&[u8]]) -> Reply {
        match find(args[0]) {
            Some(command) if command.accepts(args.len()) => match command.handler {
                Function::Bloom(action) => self.run(action, args),
                Function::Cuckoo(action) => self.run(action, args),
                Function::Scan(function) => {
                    let value = self.keys.get(&(self.db, args[1].to_vec()));
                    let (slot, filter) = match value {
                        None => (ReadSlot::Missing, None),
                        Some(Value::Filter(filter)) => (ReadSlot::Held(filter), Some(filter)),
                        Some(Value::String) => (ReadSlot::OtherType, None),
                    };
                    let piece = function(args, slot).map(|piece| piece.into_reply(filter));
                    piece.unwrap_or_else(Reply::from)
                }
                Function::Replace { .. } => panic!("RedisBloom has no such command"),
            },
            Some(command) => command.wrong_arity().into(),
            None => self.native(args),
        }
    }

    fn run<F: Family>(&mut self, action: Action<F>, args: &[&[u8]]) -> Reply {
        let context = LazyContext::from(Context {
            protocol: self.protocol,
            ..Context::default()
        });
        let key = (self.db, args[1].to_vec());
        let (run, mut replies) = (&mut Run::one(args), Replies::default());
        match action {
            Action::Read(function) => {
                let slot = match self.keys.get(&key) {
                    None => ReadSlot::Missing,
                    Some(Value::Filter(filter)) => filter.into(),
                    Some(Value::String) => ReadSlot::OtherType,
                };
                function(&context, run, slot, &mut replies);
            }
            Action::Write(function) => {
                let mut made = None;
                let mut slot = match self.keys.get_mut(&key) {
                    None => Slot::Vacant(&mut made),
                    Some(Value::Filter(filter)) => filter.into(),
                    Some(Value::String) => Slot::OtherType,
                };
                function(&context, run, &mut slot, &mut replies, &mut ());
                self.keys
                    .extend(made.map(|filter| (key, Value::Filter(filter.into()))));
            }
        }
        replies.into_last().unwrap()
    }

    fn native(&mut self, args: &[&[u8]]) -> Reply {
        let keys: Vec<_> = args[1..]
            .iter()
            .map(|key| (self.db, key.to_vec()))
            .collect();
        match args[0] {
            b"FLUSHALL" => self.keys.clear(),
            b"SELECT" => self.db = std::str::from_utf8(args[1]).unwrap().parse().unwrap(),
            b"SET" => drop(self.keys.insert((self.db, args[1].to_vec()), Value::String)),
            b"EXISTS" => return count(keys.iter().filter(|key| self.keys.contains_key(key))),
            b"DEL" => return count(keys.iter().filter(|key| self.keys.remove(key).is_some())),
            other => panic!("the recorded cases do not need {}", other.escape_ascii()),
        }
        Reply::OK
    }
}

fn count<T>(found: impl Iterator<Item = T>) -> Reply {
    Reply::Integer(i64::try_from(found.count()).unwrap())
}
