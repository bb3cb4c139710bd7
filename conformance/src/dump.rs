//! Recorded filters, and checks that a subject reproduces them.

use crate::runner::Subject;
use crate::transcript::{Argument, decode_base64};
use serde::Deserialize;
use std::io;
use std::path::Path;

/// A filter of RedisBloom: how it was made, and RedisBloom's answers to all questions about it.
#[derive(Clone, Debug, Deserialize)]
pub struct Dump {
    /// The name, which says what the filter shows.
    pub name: String,
    /// The command that made the filter, or `None` when the first add made it. The key is `k`.
    pub command: Option<Vec<Argument>>,
    /// The items added, in order.
    pub added: Vec<Argument>,
    /// The answer of BF.ADD to each.
    pub add_replies: Vec<u8>,
    /// The lines of BF.DEBUG.
    pub debug: Vec<String>,
    /// The fields of BF.INFO.
    pub info: Info,
    /// The SCANDUMP stream, header first.
    pub chunks: Vec<Chunk>,
    /// Items, some of them never added.
    pub probes: Vec<Argument>,
    /// The answer of BF.EXISTS to each.
    pub probes_expected: Vec<u8>,
}

/// The fields of BF.INFO.
#[derive(Clone, Debug, Deserialize)]
pub struct Info {
    /// The capacity of all layers together, in items.
    #[serde(rename = "Capacity")]
    pub capacity: i64,
    /// The size in bytes, as RedisBloom counts it.
    #[serde(rename = "Size")]
    pub size: i64,
    /// The number of layers.
    #[serde(rename = "Number of filters")]
    pub filters: i64,
    /// The number of items added.
    #[serde(rename = "Number of items inserted")]
    pub items: i64,
    /// The expansion, or `None` for a non-scaling filter.
    #[serde(rename = "Expansion rate")]
    pub expansion: Option<i64>,
}

/// One piece of a SCANDUMP stream.
#[derive(Clone, Debug, Deserialize)]
pub struct Chunk {
    /// The iterator that came with it.
    #[serde(rename = "iter")]
    pub iterator: i64,
    /// The piece.
    #[serde(deserialize_with = "decode_base64")]
    pub data: Vec<u8>,
}

/// Reads all filters of a folder, in the order of the file names.
pub fn read_all(folder: &Path) -> io::Result<Vec<Dump>> {
    let entries: io::Result<Vec<_>> = std::fs::read_dir(folder)?.collect();
    let mut paths: Vec<_> = entries?.into_iter().map(|entry| entry.path()).collect();
    paths.sort();
    paths
        .iter()
        .map(|path| Ok(serde_json::from_slice(&std::fs::read(path)?)?))
        .collect()
}

/// The commands that add the items when a recorded filter is built again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// One BF.ADD for each item.
    Add,
    /// One BF.MADD for all items.
    Madd,
    /// BF.INSERTs with this many items each.
    Insert(usize),
}

/// Loads the dump into an empty subject and compares its answers with the recorded ones. Returns a
/// text for each difference.
pub fn check_load(dump: &Dump, subject: &mut impl Subject) -> io::Result<Vec<String>> {
    let mut check = Check::start(dump, subject)?;
    for chunk in &dump.chunks {
        let iterator = chunk.iterator.to_string().into_bytes();
        let call = [
            b"BF.LOADCHUNK".to_vec(),
            b"k".to_vec(),
            iterator,
            chunk.data.clone(),
        ];
        check.expect(&call, b"+OK\r\n")?;
    }
    check.same_filter()?;
    Ok(check.differences)
}

/// Builds the filter again with its command and its items, and compares the answers. Returns a text
/// for each difference.
pub fn check_rebuild(
    dump: &Dump,
    offer: Offer,
    subject: &mut impl Subject,
) -> io::Result<Vec<String>> {
    let mut check = Check::start(dump, subject)?;
    if let Some(command) = &dump.command {
        check.expect(&bytes(command), b"+OK\r\n")?;
    }
    let (start, most): (&[&str], _) = match offer {
        Offer::Add => (&["BF.ADD", "k"], 1),
        Offer::Madd => (&["BF.MADD", "k"], dump.added.len().max(1)),
        Offer::Insert(most) => (&["BF.INSERT", "k", "ITEMS"], most),
    };
    for (items, replies) in dump.added.chunks(most).zip(dump.add_replies.chunks(most)) {
        let mut call: Vec<Vec<u8>> = start.iter().map(|word| word.as_bytes().to_vec()).collect();
        call.extend(bytes(items));
        let want = match offer {
            Offer::Add => replies
                .iter()
                .map(|reply| format!(":{reply}\r\n"))
                .collect(),
            Offer::Madd | Offer::Insert(_) => integers(replies),
        };
        check.expect(&call, want.as_bytes())?;
    }
    check.same_filter()?;
    Ok(check.differences)
}

struct Check<'a, S> {
    dump: &'a Dump,
    subject: &'a mut S,
    differences: Vec<String>,
}

impl<'a, S: Subject> Check<'a, S> {
    fn start(dump: &'a Dump, subject: &'a mut S) -> io::Result<Self> {
        subject.connect(2)?;
        subject.call(&[b"FLUSHALL".to_vec()])?;
        Ok(Self {
            dump,
            subject,
            differences: Vec::new(),
        })
    }

    fn expect(&mut self, call: &[Vec<u8>], want: &[u8]) -> io::Result<()> {
        let got = self.subject.call(call)?;
        if got != want {
            let command: Vec<_> = call
                .iter()
                .map(|arg| arg.escape_ascii().to_string())
                .collect();
            self.differences.push(format!(
                "{}: {:.80}\n    want {}\n    got  {}",
                self.dump.name,
                command.join(" "),
                want.escape_ascii(),
                got.escape_ascii(),
            ));
        }
        Ok(())
    }

    /// Checks that key `k` holds the recorded filter: its fields, its bits and its answers.
    fn same_filter(&mut self) -> io::Result<()> {
        let dump = self.dump;
        let call = |name: &str| vec![name.as_bytes().to_vec(), b"k".to_vec()];
        let lines: String = dump
            .debug
            .iter()
            .map(|line| format!("${}\r\n{line}\r\n", line.len()))
            .collect();
        let debug = format!("*{}\r\n{lines}", dump.debug.len());
        self.expect(&call("BF.DEBUG"), debug.as_bytes())?;
        self.expect(&call("BF.INFO"), dump.info.reply().as_bytes())?;

        let mut probe = call("BF.MEXISTS");
        probe.extend(bytes(&dump.probes));
        self.expect(&probe, integers(&dump.probes_expected).as_bytes())?;

        let mut iterator = 0;
        let end = Chunk {
            iterator: 0,
            data: Vec::new(),
        };
        for chunk in dump.chunks.iter().chain([&end]) {
            let mut scan = call("BF.SCANDUMP");
            scan.push(iterator.to_string().into_bytes());
            let head = format!("*2\r\n:{}\r\n${}\r\n", chunk.iterator, chunk.data.len());
            let want = [head.as_bytes(), &chunk.data, b"\r\n"].concat();
            self.expect(&scan, &want)?;
            iterator = chunk.iterator;
        }
        Ok(())
    }
}

impl Info {
    fn reply(&self) -> String {
        let expansion = self
            .expansion
            .map_or("$-1".to_owned(), |number| format!(":{number}"));
        format!(
            "*10\r\n+Capacity\r\n:{}\r\n+Size\r\n:{}\r\n+Number of filters\r\n:{}\r\n\
             +Number of items inserted\r\n:{}\r\n+Expansion rate\r\n{expansion}\r\n",
            self.capacity, self.size, self.filters, self.items,
        )
    }
}

fn bytes(args: &[Argument]) -> Vec<Vec<u8>> {
    args.iter().map(|argument| argument.0.clone()).collect()
}

fn integers(numbers: &[u8]) -> String {
    let elements: String = numbers
        .iter()
        .map(|number| format!(":{number}\r\n"))
        .collect();
    format!("*{}\r\n{elements}", numbers.len())
}
