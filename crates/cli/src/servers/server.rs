//! A server that filters are read from or written to.

use std::collections::BTreeMap;
use std::time::Duration;

use everbloom_resp::Reply;

use super::family::Family;
use crate::client::{Client, Place, ServerArgs, Target, Url, unexpected};
use crate::failure::Failure;

/// Limits for one reply and one wait. A piece of 16 MiB and a page of long names fit. A server that
/// saves may be silent for a while.
const LONGEST: usize = 64 << 20;
const PATIENCE: Duration = Duration::from_secs(60);

/// How often a key is looked for at the node that the last one named.
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

/// The connections to a server. A server that is a node of a Cluster sends us to other nodes for
/// the keys that they have.
#[derive(Debug)]
pub(crate) struct Server {
    /// The node of the URL.
    home: Node,
    others: BTreeMap<(String, u16), Node>,
    /// The node that has the key in hand, when it is not the node of the URL.
    elsewhere: Option<(String, u16)>,
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

impl Server {
    /// Connects to the server of a URL. Fails when it has none of some commands on filters, of
    /// which the first is the usual one.
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
        server.must_know(commands)?;
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
            match moved(text) {
                Some(place) => self.turn_to(place)?,
                None => return Err(Failure::Filter(format!("{}: {text}", self.name()))),
            }
        }
        Err(Failure::filter(
            "the nodes of the Cluster send each other the key",
        ))
    }

    fn turn_to(&mut self, mut place: (String, u16)) -> Result<(), Failure> {
        // A node that does not know its own address names none.
        if let Place::Tcp { host, .. } = &self.target.place
            && place.0.is_empty()
        {
            place.0.clone_from(host);
        }
        if !self.others.contains_key(&place) {
            let target = self.target.elsewhere(&place.0, place.1);
            let name = Url::from(target.place.clone()).to_string();
            let node = Node::connect(name.clone(), &target);
            let lost = |error| Failure::Other(format!("{name}: {error}"));
            self.others.insert(place.clone(), node.map_err(lost)?);
        }
        self.elsewhere = Some(place);
        Ok(())
    }

    fn node(&mut self) -> &mut Node {
        let other = self
            .elsewhere
            .as_ref()
            .and_then(|place| self.others.get_mut(place));
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

/// Host and port of `MOVED 3999 10.0.0.1:6381`.
fn moved(text: &str) -> Option<(String, u16)> {
    let (_, place) = text.strip_prefix("MOVED ")?.split_once(' ')?;
    let (host, port) = place.rsplit_once(':')?;
    Some((host.to_owned(), port.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirections() {
        let place = |host: &str, port| Some((host.to_owned(), port));
        assert_eq!(moved("MOVED 3999 10.0.0.1:6381"), place("10.0.0.1", 6381));
        assert_eq!(moved("MOVED 3999 ::1:6381"), place("::1", 6381));
        assert_eq!(moved("MOVED 3999 :6381"), place("", 6381));
        for other in ["MOVED", "MOVED 3999", "MOVED 1 a:b", "ASK 1 a:1", "ERR no"] {
            assert_eq!(moved(other), None, "{other}");
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
