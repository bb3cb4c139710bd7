//! A server that filters are read from or written to.

use std::collections::BTreeMap;
use std::time::Duration;

use everbloom_resp::{Reply, encode_request};

use super::family::Family;
use crate::client::{Client, Place, ServerArgs, Target, Url, unexpected};
use crate::failure::Failure;

/// Limits for one reply and one wait. A piece of 16 MiB and a page of long names fit. A server that
/// saves may be silent for a while.
const LONGEST: usize = 64 << 20;
const PATIENCE: Duration = Duration::from_secs(60);

/// How often a request is sent to the node that the last one named.
const REDIRECTIONS: usize = 5;

/// The errors that speak of the server and not of one key: the next key would get the same.
const OF_THE_SERVER: &[&str] = &[
    "OOM",
    "READONLY",
    "MISCONF",
    "NOAUTH",
    "NOREPLICAS",
    "LOADING",
    "MASTERDOWN",
    "CLUSTERDOWN",
];

/// What a key holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Nothing,
    Filter(Family),
    /// Redis's name of the type.
    Other(String),
}

impl Content {
    /// From the answer to TYPE.
    pub(crate) fn of(reply: &Reply) -> Option<Self> {
        let name = reply.as_bytes()?;
        if name == b"none" {
            return Some(Self::Nothing);
        }
        let other = || Self::Other(String::from_utf8_lossy(name).into_owned());
        Some(Family::of_type(name).map_or_else(other, Self::Filter))
    }

    /// What is there, for people; `None` when nothing is.
    pub(crate) fn describe(&self) -> Option<String> {
        match self {
            Self::Nothing => None,
            Self::Filter(family) => Some(family.filter().to_owned()),
            Self::Other(name) => Some(format!("a value of type {name}")),
        }
    }
}

/// Host and port of a node.
type Address = (String, u16);

/// The connections to a server. A server that is a node of a Cluster sends us to other nodes for
/// the keys that they have.
///
/// There are two ways to ask for a key. `find` looks for its node, and the requests after it go
/// there and nowhere else: those of a transaction, and of a value that is watched, must share one
/// connection. `execute` sends requests that stand alone, and follows each of them.
#[derive(Debug)]
pub(crate) struct Server {
    /// The node of the URL.
    home: Node,
    others: BTreeMap<Address, Node>,
    /// The node that has the key in hand, when it is not the node of the URL.
    elsewhere: Option<Address>,
    /// The first server, and how to log in.
    target: Target,
}

#[derive(Debug)]
struct Node {
    /// The address without the password.
    name: String,
    client: Client,
    /// Requests without a reply.
    pending: usize,
}

/// Requests that are sent together. They are kept, because a node may send us to another one.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    bytes: Vec<u8>,
    /// Where each request ends.
    ends: Vec<usize>,
}

impl Requests {
    /// Adds a request.
    pub(crate) fn push<T: AsRef<[u8]>>(&mut self, words: &[T]) {
        encode_request(words, &mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    /// Only this request.
    pub(crate) fn of<T: AsRef<[u8]>>(words: &[T]) -> Self {
        let mut requests = Self::default();
        requests.push(words);
        requests
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let ranges = starts.zip(&self.ends);
        ranges.map(|(start, end)| self.bytes.get(start..*end).unwrap_or_default())
    }
}

impl Server {
    /// Connects to the server of a URL. Fails when it has none of these commands on filters, if
    /// there are any; the first is the usual one.
    pub(crate) fn connect(
        url: &Url,
        args: &ServerArgs,
        commands: &[&str],
    ) -> Result<Self, Failure> {
        let mut target = Target::new(url, args)?;
        (target.longest, target.patience) = (LONGEST, Some(PATIENCE));
        // A connection that fails names the place by itself.
        let home = Node::connect(url.to_string(), &target).map_err(|error| match error {
            error @ Failure::Connect(_) => error,
            error => Failure::Other(format!("{url}: {error}")),
        })?;
        let mut server = Self {
            home,
            others: BTreeMap::new(),
            elsewhere: None,
            target,
        };
        if !commands.is_empty() {
            server.must_know(commands)?;
        }
        Ok(server)
    }

    /// The address without the password.
    pub(crate) fn name(&self) -> &str {
        &self.home.name
    }

    fn must_know(&mut self, commands: &[&str]) -> Result<(), Failure> {
        let mut request = vec!["COMMAND".as_bytes(), b"INFO"];
        request.extend(commands.iter().map(|command| command.as_bytes()));
        let reply = self.call(&request);
        let reply = reply?;
        // An error is no answer: a user may be allowed BF.* and not COMMAND.
        let found = reply.into_elements().unwrap_or_default();
        match commands.first() {
            Some(command) if found.len() == commands.len() && found.iter().all(Reply::is_null) => {
                Err(Failure::Other(format!(
                    "{} has no {command}: load the module there, or RedisBloom",
                    self.name()
                )))
            }
            _ => Ok(()),
        }
    }

    /// The other databases that have keys, as INFO tells; none when it tells nothing.
    pub(crate) fn other_databases(&mut self) -> Vec<u32> {
        let reply = self
            .settle()
            .and_then(|()| self.call(&[b"INFO", b"keyspace"]));
        let reply = reply.unwrap_or(Reply::Null);
        let text = String::from_utf8_lossy(reply.as_bytes().unwrap_or_default());
        let number = |line: &str| line.strip_prefix("db")?.split(':').next()?.parse().ok();
        let mut found: Vec<u32> = text.lines().filter_map(number).collect();
        found.retain(|number| *number != self.target.database);
        found
    }

    /// Prepares for the next key: forgets what was asked for the last one, and goes back to the
    /// node of the URL.
    pub(crate) fn settle(&mut self) -> Result<(), Failure> {
        self.drain()?;
        self.elsewhere = None;
        Ok(())
    }

    /// Reads the replies that nobody has read.
    pub(crate) fn drain(&mut self) -> Result<(), Failure> {
        self.flush()?;
        let node = self.node();
        while node.pending > 0 {
            node.reply()?;
        }
        Ok(())
    }

    /// What a key holds. What is sent from now on goes to the node that has the key.
    pub(crate) fn find(&mut self, key: &[u8]) -> Result<Content, Failure> {
        self.settle()?;
        for _ in 0..REDIRECTIONS {
            let reply = self.call(&[b"TYPE", key])?;
            if let Some(kind) = Content::of(&reply) {
                return Ok(kind);
            }
            let text = reply.as_error().unwrap_or("an answer that is no type");
            match Redirection::of(&reply) {
                Some(Redirection::Moved(address)) => self.turn_to(address)?,
                Some(Redirection::Ask(_)) => {
                    return Err(Failure::Filter(format!(
                        "{}: its slot moves to another node ({text}); run this again when it has \
                         moved",
                        self.name()
                    )));
                }
                None => return Err(Failure::Filter(format!("{}: {text}", self.name()))),
            }
        }
        Err(endless())
    }

    /// Sends requests that do not depend on each other's connection, and calls `take` with the
    /// reply to each, in order. In a Cluster each goes to the node that has its key. A node that
    /// names another one has not executed the request, so each is executed once.
    pub(crate) fn execute(
        &mut self,
        requests: &Requests,
        mut take: impl FnMut(&mut Self, Reply) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let node = self.node();
        node.send(&requests.bytes)?;
        // All are read first: a request may come back to this node.
        let mut replies = Vec::new();
        let mut failure = None;
        while replies.len() < requests.ends.len() && failure.is_none() {
            match node.reply() {
                Ok(reply) => replies.push(reply),
                Err(source) => failure = Some(source),
            }
        }
        for (request, reply) in requests.iter().zip(replies) {
            let reply = match Redirection::of(&reply) {
                // Replies to other requests may still come, and would be taken for this one's.
                Some(_) if failure.is_some() => break,
                Some(_) => self.follow(request)?,
                None => reply,
            };
            take(self, reply)?;
        }
        failure.map_or(Ok(()), Err)
    }

    /// Sends a request to the node that has its key. It asks anew for that node: what was said to
    /// one of many requests is out of date when those before it were followed. A slot that has come
    /// back meanwhile, and leaves again, would get the key twice.
    fn follow(&mut self, request: &[u8]) -> Result<Reply, Failure> {
        let mut reply = self.node().exchange(request)?;
        for _ in 0..REDIRECTIONS {
            reply = match Redirection::of(&reply) {
                None => return Ok(reply),
                Some(Redirection::Moved(address)) => {
                    self.turn_to(address)?;
                    self.node().exchange(request)?
                }
                // The key, or its absence, is there already. Later requests are still for the node
                // that named this one.
                Some(Redirection::Ask(address)) => {
                    let address = self.connect_to(address)?;
                    self.node_at(Some(&address)).exchange_asking(request)?
                }
            };
        }
        match Redirection::of(&reply) {
            None => Ok(reply),
            Some(_) => Err(endless()),
        }
    }

    fn turn_to(&mut self, address: Address) -> Result<(), Failure> {
        self.elsewhere = Some(self.connect_to(address)?);
        Ok(())
    }

    /// The whole address of a node, to which there is a connection then.
    fn connect_to(&mut self, mut address: Address) -> Result<Address, Failure> {
        // A node that does not know its own address names none.
        if let Place::Tcp { host, .. } = &self.target.place
            && address.0.is_empty()
        {
            address.0.clone_from(host);
        }
        if !self.others.contains_key(&address) {
            let target = self.target.elsewhere(&address.0, address.1);
            let name = Url::from(target.place.clone()).to_string();
            let node = Node::connect(name.clone(), &target);
            let lost = |error| Failure::Other(format!("{name}: {error}"));
            self.others.insert(address.clone(), node.map_err(lost)?);
        }
        Ok(address)
    }

    fn node(&mut self) -> &mut Node {
        let address = self.elsewhere.clone();
        self.node_at(address.as_ref())
    }

    /// A node to which there is a connection; that of the URL without an address.
    fn node_at(&mut self, address: Option<&Address>) -> &mut Node {
        let other = address.and_then(|address| self.others.get_mut(address));
        other.unwrap_or(&mut self.home)
    }

    /// Adds a request to those that the next `flush` sends.
    pub(crate) fn prepare(&mut self, request: &[&[u8]]) {
        let node = self.node();
        node.client.prepare(request);
        node.pending += 1;
    }

    /// Sends what was prepared.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        let node = self.node();
        let sent = node.client.flush();
        sent.map_err(|source| node.lost(source))
    }

    /// The reply to the oldest request without one, which may be an error.
    pub(crate) fn reply(&mut self) -> Result<Reply, Failure> {
        self.node().reply()
    }

    /// Like `reply`, but an error reply becomes the filter's failure. `what` names the request.
    pub(crate) fn demand(&mut self, what: &str) -> Result<Reply, Failure> {
        let reply = self.reply()?;
        self.accepted(reply, what)
    }

    /// Like `demand`, for a reply of at most `longest` bytes.
    pub(crate) fn demand_long(&mut self, what: &str, longest: usize) -> Result<Reply, Failure> {
        self.node().client.accept(longest);
        let reply = self.demand(what);
        self.node().client.accept(LONGEST);
        reply
    }

    /// The reply, unless it is an error.
    pub(crate) fn accepted(&mut self, reply: Reply, what: &str) -> Result<Reply, Failure> {
        match reply {
            Reply::Error(text) => {
                let name = &self.node().name;
                Err(Failure::Filter(format!("{name} refused {what}: {text}")))
            }
            reply => Ok(reply),
        }
    }

    /// Sends one request and waits for its reply, which may be an error.
    pub(crate) fn call(&mut self, request: &[&[u8]]) -> Result<Reply, Failure> {
        self.prepare(request);
        self.flush()?;
        self.reply()
    }

    /// The answers in the reply to a command on `count` items: whether each is 1. There are fewer
    /// of them when the server refused an item; then the failure says why.
    pub(crate) fn answers(
        &mut self,
        reply: Reply,
        (command, count): (&'static str, usize),
        mut emit: impl FnMut(bool),
    ) -> Result<(), Failure> {
        let replies = self.accepted(reply, command)?.into_elements();
        let replies = replies.filter(|replies| replies.len() <= count);
        let replies = replies.ok_or_else(|| self.odd(command))?;
        let is_short = replies.len() < count;
        for reply in replies {
            emit(match self.accepted(reply, command)? {
                Reply::Integer(number) => number == 1,
                Reply::Boolean(flag) => flag,
                _ => return Err(self.odd(command)),
            });
        }
        if is_short {
            return Err(self.odd(command));
        }
        Ok(())
    }

    /// The failure when a server answers something that is not an answer.
    pub(crate) fn odd(&mut self, command: &'static str) -> Failure {
        self.node().lost(unexpected(command))
    }
}

impl Node {
    fn connect(name: String, target: &Target) -> Result<Self, Failure> {
        let client = Client::connect(target)?;
        Ok(Self {
            name,
            client,
            pending: 0,
        })
    }

    fn send(&mut self, requests: &[u8]) -> Result<(), Failure> {
        let sent = self.client.send(requests);
        sent.map_err(|source| self.lost(source))
    }

    /// Sends one request, and waits for its reply. No other one may be on its way.
    fn exchange(&mut self, request: &[u8]) -> Result<Reply, Failure> {
        self.send(request)?;
        self.reply()
    }

    /// Like `exchange`, for a key whose slot moves to this node.
    fn exchange_asking(&mut self, request: &[u8]) -> Result<Reply, Failure> {
        let mut both = Requests::of(&["ASKING"]).bytes;
        both.extend_from_slice(request);
        self.send(&both)?;
        let asking = self.reply()?;
        let reply = self.reply()?;
        Ok(if asking.is_error() { asking } else { reply })
    }

    fn reply(&mut self) -> Result<Reply, Failure> {
        let reply = self.client.answer().map_err(|source| self.lost(source))?;
        self.pending = self.pending.saturating_sub(1);
        match reply {
            Reply::Error(text) if is_of_the_server(&text) => {
                Err(Failure::Other(format!("{} refuses: {text}", self.name)))
            }
            reply => Ok(reply),
        }
    }

    fn lost(&self, error: Failure) -> Failure {
        Failure::Other(format!("{}: {error}", self.name))
    }
}

fn is_of_the_server(text: &str) -> bool {
    let code = text.split(' ').next().unwrap_or_default();
    OF_THE_SERVER.contains(&code)
}

/// Where a node of a Cluster sends a request.
#[derive(Debug, PartialEq, Eq)]
enum Redirection {
    /// The node that has the key's slot.
    Moved(Address),
    /// The node to which the slot moves. It takes this one request, behind ASKING.
    Ask(Address),
}

impl Redirection {
    /// From an error such as `MOVED 3999 10.0.0.1:6381`.
    fn of(reply: &Reply) -> Option<Self> {
        let (code, rest) = reply.as_error()?.split_once(' ')?;
        let redirection = match code {
            "MOVED" => Self::Moved,
            "ASK" => Self::Ask,
            _ => return None,
        };
        let (host, port) = rest.split_once(' ')?.1.rsplit_once(':')?;
        Some(redirection((host.to_owned(), port.parse().ok()?)))
    }
}

fn endless() -> Failure {
    Failure::filter("the nodes of the Cluster send each other the key")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirections() {
        let address = |host: &str, port| (host.to_owned(), port);
        let moved = |host, port| Some(Redirection::Moved(address(host, port)));
        for (text, redirection) in [
            ("MOVED 3999 10.0.0.1:6381", moved("10.0.0.1", 6381)),
            ("MOVED 3999 ::1:6381", moved("::1", 6381)),
            ("MOVED 3999 :6381", moved("", 6381)),
            ("ASK 1 a:1", Some(Redirection::Ask(address("a", 1)))),
        ] {
            let reply = Reply::Error(text.into());
            assert_eq!(Redirection::of(&reply), redirection, "{text}");
        }
        for other in [
            "MOVED",
            "MOVED 3999",
            "MOVED 1 a:b",
            "ASKED 1 a:1",
            "ERR no",
        ] {
            assert_eq!(
                Redirection::of(&Reply::Error(other.into())),
                None,
                "{other}"
            );
        }
    }

    #[test]
    fn errors_of_the_server() {
        assert!(is_of_the_server("OOM command not allowed"));
        assert!(is_of_the_server("READONLY You can't write"));
        assert!(!is_of_the_server("OOMPH"));
        assert!(!is_of_the_server("ERR received bad data"));
    }
}
