//! One connection: read what has come, parse all of it, run it as one batch, write the replies.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use everbloom_resp::{Batch, Limits, ProtocolError, RequestParser, recycle};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tracing::debug;

use super::worker::{INPUT, Worker};
use crate::clients::Client;
use crate::config::Settings;
use crate::dispatch::execute::execute;
use crate::dispatch::turn::Turn;
use crate::session::Session;
use crate::watches;
use everbloom_store::Fsync;
use everbloom_store::clock::Now;

/// Serves a connection until either side ends it.
pub async fn serve(mut stream: TcpStream, worker: Rc<Worker>, client: Arc<Client>) {
    let settings = worker.settings();
    let mut connection = Connection {
        session: Session::new(Arc::clone(&client), settings.requirepass.is_empty()),
        parser: RequestParser::new(),
        pending: Vec::new(),
        counted: 0,
        worker,
    };
    let ended = tokio::select! {
        ended = connection.run(&mut stream) => ended,
        () = client.killed() => Ok(()),
    };
    if let Err(error) = ended {
        debug!(client = client.id, %error, "connection lost");
    }
    connection.close();
}

struct Connection {
    session: Session,
    parser: RequestParser,
    /// Bytes of a request that is not complete yet.
    pending: Vec<u8>,
    /// Bytes of its buffers as the server's figures have them.
    counted: usize,
    worker: Rc<Worker>,
}

impl Connection {
    async fn run(&mut self, stream: &mut TcpStream) -> io::Result<()> {
        while let Some(shared) = self.read(stream).await? {
            let replies = self.turn(shared);
            self.wait_for_disk().await;
            // Replies leave when every connection that has something to say was heard: a client's
            // thread is then woken once for all of its connections, and not for each anew.
            tokio::task::yield_now().await;
            self.write(stream, replies).await?;
            if self.session.closing || self.session.client.is_killed() {
                return stream.shutdown().await;
            }
        }
        Ok(())
    }

    /// Reads what has come. Few bytes of an incomplete request, as nearly always, move to the front
    /// of the worker's buffer, which all its connections share: this returns how many bytes are
    /// there then. More of them stay where they are, and what has come is put behind them. `None`
    /// is the end.
    async fn read(&mut self, stream: &mut TcpStream) -> io::Result<Option<usize>> {
        let kept = self.pending.len();
        let (read, shared) = if kept <= KEPT_MOST {
            let input = &self.worker.input;
            let pending = &mut self.pending;
            let read = poll_fn(|cx| {
                let mut input = input.borrow_mut();
                let (front, behind) = input.split_at_mut(kept);
                let mut buf = ReadBuf::new(behind);
                let poll = Pin::new(&mut *stream).poll_read(cx, &mut buf);
                if poll.is_ready() {
                    front.copy_from_slice(pending);
                }
                poll.map_ok(|()| buf.filled().len())
            })
            .await?;
            pending.clear();
            (read, kept + read)
        } else {
            // No more room than what has come already: a client may announce any length.
            let room = self.parser.bytes_wanted().clamp(KEPT_MOST, READ_MOST);
            self.pending.reserve(room.min(kept));
            self.count_buffers(self.pending.capacity());
            let read = stream.read_buf(&mut self.pending).await?;
            if self.pending.len() > self.worker.settings().client_query_buffer_limit {
                return Err(self.over_limit("query buffer over its limit"));
            }
            (read, 0)
        };
        self.worker
            .stats
            .net_input
            .add(u64::try_from(read).unwrap_or(0));
        Ok((read > 0).then_some(shared))
    }

    /// The end of a connection whose buffers are too long.
    fn over_limit(&self, what: &'static str) -> io::Error {
        let errors = &self.worker.server.stats.protocol_errors;
        errors.fetch_add(1, Ordering::Relaxed);
        io::Error::other(what)
    }

    /// Parses and runs what was read, and returns the replies, which the caller gives back to the
    /// worker when they are sent. `shared` bytes of it are in the worker's buffer.
    fn turn(&mut self, shared: usize) -> Vec<u8> {
        let worker = Rc::clone(&self.worker);
        let mut settings = worker.settings();
        let now = Now::read();
        let mut out = worker.take_output();
        let mut batch = worker.batch.take();
        if shared > 0 {
            let input = worker.input.borrow();
            let input = input.get(..shared).unwrap_or_default();
            let used = self.run_all(input, &mut settings, now, &mut batch, &mut out);
            self.pending
                .extend_from_slice(input.get(used..).unwrap_or_default());
        } else {
            let mut input = std::mem::take(&mut self.pending);
            let used = self.run_all(&input, &mut settings, now, &mut batch, &mut out);
            if used == input.len() && input.capacity() > READ_MOST {
                input = Vec::new();
            } else {
                input.drain(..used);
            }
            self.pending = input;
        }
        worker.batch.replace(batch);
        self.publish(now, 0);
        out
    }

    /// Runs every complete request of `input`; returns how many bytes they took.
    fn run_all(
        &mut self,
        input: &[u8],
        settings: &mut Arc<Settings>,
        now: Now,
        batch: &mut Batch,
        out: &mut Vec<u8>,
    ) -> usize {
        let mut used = 0;
        loop {
            let limits = Limits {
                max_args: MOST_ARGS,
                max_bulk: settings.proto_max_bulk_len,
                authenticated: self.session.authenticated,
                ..Limits::default()
            };
            let rest = input.get(used..).unwrap_or_default();
            let parsed = self.parser.parse(rest, &limits, batch);
            self.run_batch(rest, settings, now, batch, out);
            used += self.parser.consume();
            if let Err(error) = parsed {
                self.refuse(&error, out);
            }
            if self.session.closing {
                return input.len();
            }
            if !self.parser.has_more() {
                return used;
            }
        }
    }

    fn run_batch(
        &mut self,
        input: &[u8],
        settings: &mut Arc<Settings>,
        now: Now,
        batch: &Batch,
        out: &mut Vec<u8>,
    ) {
        if batch.is_empty() {
            return;
        }
        let mut args = recycle(self.worker.args.take());
        batch.resolve(input, &mut args);
        let mut turn = Turn {
            server: &self.worker.server,
            stats: &self.worker.stats,
            settings,
            session: &mut self.session,
            now,
            mark: Instant::now(),
            last: None,
            out,
        };
        execute(&mut turn, batch, &args);
        let last = turn.last;
        let mut state = self.session.client.state.lock();
        state.commands += u64::try_from(batch.len()).unwrap_or(0);
        if let Some(command) = last {
            state.last_command = command.name;
        }
        drop(state);
        self.worker.args.replace(recycle(args));
    }

    fn refuse(&mut self, error: &ProtocolError, out: &mut Vec<u8>) {
        debug!(client = self.session.client.id, %error, "malformed request");
        self.worker
            .server
            .stats
            .protocol_errors
            .fetch_add(1, Ordering::Relaxed);
        if !self.session.closing {
            error.encode(out);
            self.session.closing = true;
        }
    }

    /// With `appendfsync always`, replies leave only when the changes they speak of are on the disk.
    async fn wait_for_disk(&mut self) {
        let written = std::mem::take(&mut self.session.written);
        if written > 0 && self.worker.settings().data.appendfsync == Fsync::Always {
            self.worker.durable(written).await;
        }
    }

    /// Sends replies: at once if the socket takes them, as it nearly always does.
    async fn write(&mut self, stream: &mut TcpStream, replies: Vec<u8>) -> io::Result<()> {
        let sent = if replies.is_empty() {
            0
        } else {
            match stream.try_write(&replies) {
                Ok(sent) => sent,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
                Err(error) => return Err(error),
            }
        };
        let rest = replies.get(sent..).unwrap_or_default();
        if !rest.is_empty() {
            self.publish(Now::read(), rest.len());
            stream.write_all(rest).await?;
            self.publish(Now::read(), 0);
        }
        self.worker
            .stats
            .net_output
            .add(u64::try_from(replies.len()).unwrap_or(0));
        self.worker.give_output(replies);
        Ok(())
    }

    /// Shows the others what they may know of this connection.
    fn publish(&mut self, now: Now, unsent: usize) {
        self.count_buffers(self.pending.capacity() + unsent);
        let session = &self.session;
        session.client.set_active(now);
        let mut state = session.client.state.lock();
        state.db = session.db;
        state.queued = session.transaction.as_ref().map(|t| t.queued.len());
        state.watched = session.watches.len();
        state.query_buffer = self.pending.len();
        state.output_buffer = unsent;
    }

    /// Mostly nothing has changed, and no shared counter is written.
    fn count_buffers(&mut self, bytes: usize) {
        if bytes == self.counted {
            return;
        }
        let grown = bytes.cast_signed() - self.counted.cast_signed();
        self.counted = bytes;
        // Wrapping addition of a negative number in two's complement is subtraction.
        let grown = i64::try_from(grown).unwrap_or(0).cast_unsigned();
        self.worker
            .server
            .stats
            .buffers
            .fetch_add(grown, Ordering::Relaxed);
    }

    fn close(mut self) {
        self.count_buffers(0);
        let keyspace = &self.worker.server.store.keyspace;
        watches::forget(&mut self.session, keyspace, Now::read());
        self.worker.server.clients.leave(self.session.client.id);
    }
}

/// Redis 7's limit on the arguments of a request.
const MOST_ARGS: usize = 0x7fff_ffff;
/// The most bytes that are made room for at once, whatever length a client has announced.
const READ_MOST: usize = 1 << 20;
/// The most bytes of an incomplete request that are moved to the worker's buffer: half of it.
const KEPT_MOST: usize = INPUT / 2;
