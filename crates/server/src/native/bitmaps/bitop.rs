//! BITOP.

use std::collections::TryReserveError;

use everbloom_files::{Text, Value};
use everbloom_resp::Reply;
use everbloom_store::keyspace::KeyRef;

use super::super::strings::text_of;
use super::super::{Call, count, error, gather};
use super::bits::{self, Junction};
use crate::locked::Locked;

fn parse(word: &[u8]) -> Result<Junction, Reply> {
    match word.to_ascii_uppercase().as_slice() {
        b"AND" => Ok(Junction::And),
        b"OR" => Ok(Junction::Or),
        b"XOR" => Ok(Junction::Xor),
        b"NOT" => Ok(Junction::Not),
        _ => Err(error::syntax()),
    }
}

/// The result, as long as the longest string.
fn combined(how: Junction, texts: &[&[u8]]) -> Result<Vec<u8>, TryReserveError> {
    let len = texts.iter().map(|text| text.len()).max().unwrap_or(0);
    let mut result = Vec::new();
    result.try_reserve_exact(len)?;
    let Some((first, others)) = texts.split_first() else {
        return Ok(result);
    };
    result.extend_from_slice(first);
    result.resize(len, 0);
    // NOT has only one string.
    let others = if how == Junction::Not { texts } else { others };
    for other in others {
        bits::join(&mut result, other, how);
    }
    Ok(result)
}

/// `BITOP <AND | OR | XOR | NOT> destination key [key ...]`
pub fn bitop(call: &Call<'_>, view: &mut Locked<'_>) -> Result<Reply, Reply> {
    let mut args = call.args();
    let how = parse(args.next_bytes()?)?;
    let (destination, names) = (call.key(args.next_bytes()?), args.next_rest()?);
    let keys: Vec<KeyRef<'_>> = gather(names.iter().map(|name| Ok(call.key(name))))?;
    if how == Junction::Not && keys.len() > 1 {
        let text = "ERR BITOP NOT must be called with a single source key.";
        return Err(Reply::error(text));
    }
    let texts = keys
        .iter()
        .map(|key| text_of(call.look_up(view.read(), *key)));
    let texts: Vec<Option<&[u8]>> = gather(texts)?;
    let absent = keys.iter().zip(&texts).filter(|(_, text)| text.is_none());
    let absent: Vec<KeyRef<'_>> = gather(absent.map(|(key, _)| Ok(*key)))?;
    let texts: Vec<&[u8]> = gather(texts.into_iter().map(|text| Ok(text.unwrap_or_default())))?;
    let result = combined(how, &texts).map_err(|_| error::out_of_memory())?;
    // The log must say that a key had expired: during a replay it may not have.
    for key in absent {
        view.entry(key).delete();
    }
    let len = count(result.len());
    if !result.is_empty() {
        let text = Text::from(result).edited();
        view.entry(destination).insert(Value::Text(text), None);
    } else if !view.entry(destination).delete() {
        return Ok(len);
    }
    view.log(destination.db, call.args);
    Ok(len)
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{Bench, bulk, err, int};
    use super::*;

    #[test]
    fn strings_are_joined_as_long_as_the_longest() {
        let mut bench = Bench::default();
        bench.run("MSET a abcd b 12 empty ''");
        for (line, result) in [
            ("AND d a b", "!\"\0\0"),
            ("or d b a empty", "qrcd"),
            ("XOR d a b a", "12\0\0"),
            ("XOR d a none", "abcd"),
            ("AND d a none", "\0\0\0\0"),
            ("AND a a a", "abcd"),
            ("OR d none a", "abcd"),
        ] {
            assert_eq!(bench.run(&format!("BITOP {line}")), int(4), "{line}");
            let destination = line.split(' ').nth(1).unwrap();
            assert_eq!(
                bench.run(&format!("GET {destination}")),
                bulk(result),
                "{line}"
            );
        }
        assert_eq!(bench.run("BITOP NOT b b"), int(2));
        assert_eq!(bench.run("GET b"), Reply::bulk([0xce, 0xcd]));
    }

    #[test]
    fn the_destination_is_replaced_or_deleted() {
        let mut bench = Bench::default();
        bench.run("SET a x");
        bench.run("SET empty ''");
        bench.run("SET d old EX 100");
        assert_eq!(bench.logged("BITOP OR d a").unwrap(), "BITOP OR d a");
        assert_eq!(bench.run("TTL d"), int(-1));
        assert_eq!(
            bench.logged("BITOP OR d none empty").unwrap(),
            "BITOP OR d none empty"
        );
        assert_eq!(bench.run("EXISTS d"), int(0));
        assert_eq!(bench.logged("BITOP NOT d none"), None);
        bench.run("BF.ADD f x");
        assert_eq!(bench.run("BITOP AND d a f"), error::wrong_type());
        assert_eq!(bench.run("BITOP AND f a"), int(1));
        assert_eq!(bench.run("TYPE f"), Reply::simple("string"));
        assert_eq!(bench.run("BITOP NOPE d f"), error::syntax());
        let one = err("ERR BITOP NOT must be called with a single source key.");
        assert_eq!(bench.run("BITOP NOT d a a"), one);
        let arity = err("ERR wrong number of arguments for 'bitop' command");
        assert_eq!(bench.run("BITOP NOT d"), arity);
    }

    #[test]
    fn a_key_that_had_expired_is_gone_for_good() {
        let mut bench = Bench::default();
        bench.run("SET a x");
        bench.run("SET gone y PX 10");
        bench.wait(20);
        assert_eq!(bench.run("DBSIZE"), int(2));
        assert_eq!(bench.run("BITOP OR d a gone"), int(1));
        assert_eq!(bench.run("DBSIZE"), int(2), "a and d");
        assert_eq!(bench.run("GET d"), bulk("x"));
    }
}
