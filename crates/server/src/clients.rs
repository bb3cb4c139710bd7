//! The open connections: what CLIENT LIST shows, and how other connections close one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tracing::warn;

use everbloom_store::clock::Now;

use crate::address::Address;

/// The public state of a connection. The connection itself updates it once per batch.
#[derive(Debug, Clone, Default)]
pub struct ClientState {
    /// The name given by CLIENT SETNAME or HELLO.
    pub name: Vec<u8>,
    /// The client library's name, from CLIENT SETINFO.
    pub lib_name: Vec<u8>,
    /// The client library's version, from CLIENT SETINFO.
    pub lib_ver: Vec<u8>,
    /// The selected database.
    pub db: usize,
    /// Commands queued by MULTI, if it is open.
    pub queued: Option<usize>,
    /// Watched keys.
    pub watched: usize,
    /// The protocol version: 2 or 3.
    pub resp: u8,
    /// The last command's name in lower case.
    pub last_command: &'static str,
    /// Commands processed.
    pub commands: u64,
    /// Bytes of a request that is not complete yet.
    pub query_buffer: usize,
    /// Bytes of replies that the client has not taken yet.
    pub output_buffer: usize,
}

impl ClientState {
    /// Bytes that the names take.
    pub fn name_bytes(&self) -> usize {
        self.name.capacity() + self.lib_name.capacity() + self.lib_ver.capacity()
    }
}

/// One connection, as other connections see it.
#[derive(Debug)]
pub struct Client {
    /// Unique as long as the server runs.
    pub id: u64,
    /// The peer's address.
    pub addr: Address,
    /// Our address.
    pub laddr: Address,
    /// When it connected, Unix time in milliseconds.
    pub created: u64,
    /// The state that changes.
    pub state: Mutex<ClientState>,
    /// Bytes that its buffers take.
    memory: AtomicUsize,
    /// Whether it is never closed because of its memory.
    no_evict: AtomicBool,
    active: AtomicU64,
    killed: AtomicBool,
    wake: Notify,
}

impl Client {
    /// A connection that is in no list: the source of commands that the server runs by itself.
    pub fn unlisted() -> Self {
        Self::new(0, Address::NOBODY, Address::NOBODY, Now::default())
    }

    fn new(id: u64, addr: Address, laddr: Address, now: Now) -> Self {
        let state = ClientState {
            resp: 2,
            last_command: "NULL",
            ..Default::default()
        };
        Client {
            id,
            addr,
            laddr,
            created: now.ms,
            state: Mutex::new(state),
            memory: AtomicUsize::new(0),
            no_evict: AtomicBool::new(false),
            active: AtomicU64::new(now.ms),
            killed: AtomicBool::new(false),
            wake: Notify::new(),
        }
    }

    /// When the connection last sent something, Unix time in milliseconds.
    pub fn active(&self) -> u64 {
        self.active.load(Ordering::Relaxed)
    }

    /// Records that it sent something.
    pub fn set_active(&self, now: Now) {
        self.active.store(now.ms, Ordering::Relaxed);
    }

    /// Records that the server works for it. Until it sends something again, it does not count as
    /// idle.
    pub fn set_busy(&self) {
        self.active.store(u64::MAX, Ordering::Relaxed);
    }

    /// Records how many bytes its buffers take.
    pub fn set_memory(&self, bytes: usize) {
        self.memory.store(bytes, Ordering::Relaxed);
    }

    /// Sets whether it is never closed because of its memory. Its memory does not count then.
    pub fn set_no_evict(&self, on: bool) {
        self.no_evict.store(on, Ordering::Relaxed);
    }

    /// Whether it is never closed because of its memory.
    pub fn is_no_evict(&self) -> bool {
        self.no_evict.load(Ordering::Relaxed)
    }

    /// Asks the connection to close after its current work. Whether nobody did before.
    pub fn kill(&self) -> bool {
        let is_first = !self.killed.swap(true, Ordering::AcqRel);
        self.wake.notify_one();
        is_first
    }

    /// Whether it was asked to close.
    pub fn is_killed(&self) -> bool {
        self.killed.load(Ordering::Acquire)
    }

    /// Returns once the connection was asked to close.
    pub async fn killed(&self) {
        while !self.is_killed() {
            self.wake.notified().await;
        }
    }
}

/// All open connections.
#[derive(Debug, Default)]
pub struct Clients {
    list: Mutex<ClientList>,
    last_id: AtomicU64,
}

#[derive(Debug, Default)]
struct ClientList {
    open: BTreeMap<u64, Arc<Client>>,
    /// Set once the server stops.
    closed: bool,
}

/// Why a connection is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// `maxclients` are open.
    Full,
    /// The server stops.
    Closed,
}

impl Clients {
    /// Adds a connection, unless `max` are open already or the list is closed.
    pub fn enter(
        &self,
        addr: Address,
        laddr: Address,
        max: usize,
        now: Now,
    ) -> Result<Arc<Client>, Refused> {
        let mut list = self.list.lock();
        if list.closed {
            return Err(Refused::Closed);
        }
        if list.open.len() >= max {
            return Err(Refused::Full);
        }
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let client = Arc::new(Client::new(id, addr, laddr, now));
        list.open.insert(id, Arc::clone(&client));
        Ok(client)
    }

    /// Asks all connections to close, and refuses any more. Both happen under one lock, so a
    /// connection accepted at this moment is either asked to close or refused.
    pub fn close(&self) {
        let mut list = self.list.lock();
        list.closed = true;
        for client in list.open.values() {
            client.kill();
        }
    }

    /// Asks the connections that hold most to close, until the others hold at most `most` bytes.
    /// Returns how many these are.
    pub fn evict(&self, most: u64) -> usize {
        let mut open: Vec<(u64, Arc<Client>)> = self
            .list()
            .into_iter()
            .filter(|client| !client.is_killed() && !client.is_no_evict())
            .map(|client| (client.memory.load(Ordering::Relaxed) as u64, client))
            .collect();
        let mut held: u64 = open.iter().map(|(bytes, _)| bytes).sum();
        if held <= most {
            return 0;
        }
        open.sort_unstable_by_key(|(bytes, _)| *bytes);
        let mut evicted = 0;
        while let Some((bytes, client)) = open.pop_if(|_| held > most) {
            held -= bytes;
            // Another thread may have closed it by now.
            if client.kill() {
                warn!(
                    "disconnected {}: it holds {bytes} bytes, and all clients {}, more than \
                     maxmemory-clients",
                    client.addr,
                    held + bytes
                );
                evicted += 1;
            }
        }
        evicted
    }

    /// Removes a connection.
    pub fn leave(&self, id: u64) {
        self.list.lock().open.remove(&id);
    }

    /// The open connections, oldest first.
    pub fn list(&self) -> Vec<Arc<Client>> {
        self.list.lock().open.values().cloned().collect()
    }

    /// The number of open connections.
    pub fn len(&self) -> usize {
        self.list.lock().open.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clients_that_hold_most_are_closed_once() {
        let clients = Clients::default();
        let enter = |bytes| {
            let client = clients.enter(Address::NOBODY, Address::NOBODY, 10, Now::default());
            let client = client.unwrap();
            client.set_memory(bytes);
            client
        };
        let [small, large, exempt] = [10, 100, 1000].map(enter);
        exempt.set_no_evict(true);
        assert_eq!((clients.evict(110), clients.evict(50)), (0, 1));
        assert_eq!(clients.evict(50), 0);
        let killed = [&small, &large, &exempt].map(|client| client.is_killed());
        assert_eq!(killed, [false, true, false]);
        assert!(small.kill() && !small.kill());
    }

    #[test]
    fn nobody_enters_a_list_that_is_full_or_closed() {
        let clients = Clients::default();
        let enter = || clients.enter(Address::NOBODY, Address::NOBODY, 2, Now::default());
        let first = enter().unwrap();
        enter().unwrap();
        assert_eq!(enter().unwrap_err(), Refused::Full);
        clients.leave(first.id);
        assert!(!enter().unwrap().is_killed());
        clients.close();
        assert!(clients.list().iter().all(|client| client.is_killed()));
        assert_eq!(enter().unwrap_err(), Refused::Closed);
        for client in clients.list() {
            clients.leave(client.id);
        }
        assert_eq!(enter().unwrap_err(), Refused::Closed);
        assert_eq!(clients.len(), 0);
    }

    /// A connection that enters while the list is closed is either asked to close or refused.
    /// Otherwise it would keep the server from stopping.
    #[test]
    fn whoever_enters_while_the_list_closes_is_asked_to_end() {
        for _ in 0..200 {
            let clients = Clients::default();
            let enter = || clients.enter(Address::NOBODY, Address::NOBODY, 1000, Now::default());
            std::thread::scope(|scope| {
                let entering = scope.spawn(|| while enter().is_ok() {});
                while clients.len() < 3 {
                    std::hint::spin_loop();
                }
                clients.close();
                entering.join().unwrap();
            });
            assert!(clients.list().iter().all(|client| client.is_killed()));
        }
    }
}
