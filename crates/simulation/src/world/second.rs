//! A second thread that runs commands: it pauses before each command locks its keys, and others run meanwhile.
//!
//! A command takes effect when the thread goes on, all at once. So the order of the replies is that of the effects.

use super::{Request, Verdict, World};
use crate::op::{Op, Words};

impl World {
    /// The second thread begins to run commands, once it has run those before. Settings are the first thread's.
    pub(super) fn run_on_second(
        &mut self,
        client: usize,
        ops: &[Op],
        is_transaction: bool,
    ) -> Verdict {
        self.finish_second()?;
        if self.clients[client].is_waiting() {
            return Ok(());
        }
        let fits = |op: &&Op| {
            let is_other = matches!(op, Op::Other(_) | Op::Config(..) | Op::Remove(..));
            !is_other && !op.is_conversation()
        };
        let ops: Vec<Op> = ops.iter().filter(fits).cloned().collect();
        let requests = match is_transaction {
            true => Request::transaction(ops),
            false => ops.into_iter().map(Request::One).collect(),
        };
        let words: Vec<Words> = requests.iter().map(Request::words).collect();
        self.unanswered[client] = requests;
        let instance = self.instance.as_ref().expect("the server runs");
        let progress = self.clients[client].send_to_second(instance, &words);
        self.take(client, &progress)
    }

    /// The second thread runs its commands to their end.
    pub(super) fn finish_second(&mut self) -> Verdict {
        for client in 0..self.clients.len() {
            while self.clients[client].is_on_second() {
                self.instance().finish("second");
                self.go_on(client)?;
            }
        }
        Ok(())
    }
}
