//! The names of keys that belong together: in a cluster they must be in one slot.

/// Why a name is not valid for a filter.
///
/// ```
/// use everbloom_client::{BitmapFilter, Error, NameError};
/// let odd = BitmapFilter::python("a}b", 1000, 7);
/// assert!(odd.is_ok(), "a filter of one key may have any name");
/// # let Some(server) = everbloom_dev::Redis::start(&[]) else { return Ok(()) };
/// # let address = format!("redis://{}", server.addr);
/// # let mut connection = redis::Client::open(address)?.get_connection()?;
/// let odd = BitmapFilter::create(&mut connection, "a}b", 1000, 0.01);
/// assert!(matches!(odd, Err(Error::Name(NameError::Brace(_)))));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// The name is empty.
    #[error("the name of a filter is empty")]
    Empty,
    /// The name has a brace that closes no hash tag.
    #[error("the name {0:?} has a closing brace and no hash tag: no other key has its slot")]
    Brace(String),
    /// A spread filter's name has a hash tag, which would put all its keys into one slot.
    #[error(
        "the name {0:?} has a brace: the shards of a spread filter have hash tags of their own"
    )]
    Tagged(String),
}

/// Whether a key has a hash tag: what is between the first `{` and the first `}` after it, unless
/// that is nothing (Redis's cluster specification, "Hash tags").
fn has_tag(key: &str) -> bool {
    let behind = key.split_once('{').map(|(_, behind)| behind);
    let tag = behind.and_then(|behind| behind.split_once('}'));
    tag.is_some_and(|(tag, _)| !tag.is_empty())
}

/// The name of a key in the slot of another one: `{name}:suffix`, or `name:suffix` where the name
/// has a hash tag already.
pub(crate) fn beside(name: &str, suffix: &str) -> Result<String, NameError> {
    if name.is_empty() {
        return Err(NameError::Empty);
    }
    if has_tag(name) {
        return Ok(format!("{name}:{suffix}"));
    }
    if name.contains('}') {
        return Err(NameError::Brace(name.to_owned()));
    }
    Ok(format!("{{{name}}}:{suffix}"))
}

/// The key of a filter's parameters.
pub(crate) fn parameters_key(name: &str) -> Result<String, NameError> {
    beside(name, "parameters")
}

/// Whether keys of this name can have hash tags of their own.
pub(crate) fn check_untagged(name: &str) -> Result<(), NameError> {
    if name.is_empty() {
        return Err(NameError::Empty);
    }
    if name.contains(['{', '}']) {
        return Err(NameError::Tagged(name.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{NameError, beside};

    /// The part of a key that a cluster hashes.
    fn hashed(key: &str) -> &str {
        let Some(open) = key.find('{') else {
            return key;
        };
        match key[open + 1..].find('}') {
            Some(0) | None => key,
            Some(length) => &key[open + 1..open + 1 + length],
        }
    }

    #[test]
    fn a_key_beside_another_has_its_slot() {
        for name in [
            "seen",
            "a:b",
            "{user}:seen",
            "x{user}y",
            "a{b",
            "{",
            "x{a}{b}",
        ] {
            match beside(name, "parameters") {
                Ok(key) => assert_eq!(hashed(&key), hashed(name), "{name}"),
                Err(error) => panic!("{name}: {error}"),
            }
        }
        for name in ["a}b", "{}{a", "{}x", "}", "a}{b"] {
            assert_eq!(
                beside(name, "x"),
                Err(NameError::Brace(name.into())),
                "{name}"
            );
        }
        assert_eq!(beside("", "x"), Err(NameError::Empty));
    }
}
