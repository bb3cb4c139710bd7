//! Recorded conversations: commands and the bytes of their replies.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer};
use std::io;
use std::path::Path;

/// One conversation on a fresh connection and an empty keyspace.
#[derive(Clone, Debug, Deserialize)]
pub struct Case {
    /// The name, which says what the case is about.
    #[serde(rename = "case")]
    pub name: String,
    /// The protocol version: 2 or 3.
    pub resp: u8,
    /// The quirk that it records, if there is one.
    pub note: Option<String>,
    /// The commands in order.
    pub steps: Vec<Step>,
}

/// One command and its reply.
#[derive(Clone, Debug, Deserialize)]
pub struct Step {
    /// The database that was selected.
    pub db: u32,
    /// The command with its arguments.
    #[serde(rename = "cmd")]
    pub command: Vec<Argument>,
    /// All bytes of the reply.
    #[serde(rename = "reply_hex", deserialize_with = "hex")]
    pub reply: Vec<u8>,
}

/// An argument: text, or base64 when the bytes are not printable.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Written")]
pub struct Argument(pub Vec<u8>);

#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    Base64 { b64: String },
}

impl TryFrom<Written> for Argument {
    type Error = base64::DecodeError;

    fn try_from(written: Written) -> Result<Self, Self::Error> {
        match written {
            Written::Text(text) => Ok(Self(text.into_bytes())),
            Written::Base64 { b64 } => STANDARD.decode(b64).map(Self),
        }
    }
}

impl Step {
    /// The arguments as bytes, the command name first.
    pub fn args(&self) -> Vec<Vec<u8>> {
        self.command
            .iter()
            .map(|argument| argument.0.clone())
            .collect()
    }

    /// The command name in upper case.
    pub fn name(&self) -> String {
        let name = self
            .command
            .first()
            .map(|argument| argument.0.as_slice())
            .unwrap_or_default();
        String::from_utf8_lossy(name).to_ascii_uppercase()
    }
}

/// Reads a file with one case a line.
pub fn read(path: &Path) -> io::Result<Vec<Case>> {
    let text = std::fs::read_to_string(path)?;
    text.lines()
        .map(|line| serde_json::from_str(line).map_err(io::Error::from))
        .collect()
}

pub(crate) fn decode_base64<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
    STANDARD
        .decode(String::deserialize(from)?)
        .map_err(serde::de::Error::custom)
}

fn hex<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(from)?;
    let digit = |byte: u8| {
        char::from(byte)
            .to_digit(16)
            .and_then(|digit| u8::try_from(digit).ok())
    };
    text.as_bytes()
        .chunks(2)
        .map(|pair| match *pair {
            [high, low] => Some(digit(high)? << 4 | digit(low)?),
            _ => None,
        })
        .collect::<Option<_>>()
        .ok_or_else(|| serde::de::Error::custom("not pairs of hexadecimal digits"))
}
