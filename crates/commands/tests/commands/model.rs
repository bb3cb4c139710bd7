//! Random commands, compared with the answers of a set of strings.

use crate::keyspace::Keyspace;
use everbloom::Layout;
use everbloom_resp::Reply;
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};

/// What is certain about one filter: the items it holds, and the number of items it counted.
#[derive(Default)]
struct Model {
    /// Items whose add was answered with 1 or 0. They must be found for ever.
    certain: HashSet<String>,
    added: i64,
}

impl Model {
    fn offered(&mut self, item: &str, reply: &Reply) -> Result<(), TestCaseError> {
        match reply {
            Reply::Boolean(new) => {
                prop_assert!(!new || !self.certain.contains(item), "{item} was new twice");
                self.added += i64::from(*new);
                self.certain.insert(item.to_owned());
            }
            Reply::Error(_) => prop_assert!(!self.certain.contains(item), "{item} was refused"),
            other => prop_assert!(false, "{other:?}"),
        }
        Ok(())
    }
}

#[derive(Clone, Debug)]
enum Step {
    Reserve(&'static str, &'static str),
    Add(&'static str, String),
    Madd(&'static str, Vec<String>),
    Insert(&'static str, Vec<String>),
    Ask(&'static str, Vec<String>),
    Merge(&'static str, Vec<&'static str>),
    Shrink(&'static str, u64),
    Clear(&'static str),
}

fn step() -> impl Strategy<Value = Step> {
    let key = || prop::sample::select(vec!["a", "b", "c"]);
    let item = || "[a-z]{1,2}";
    let items = || prop::collection::vec(item(), 1..60);
    let reserve = prop::sample::select(vec![
        "0.01 5",
        "0.25 3 EXPANSION 1",
        "0.01 50 NONSCALING",
        "1e-323 2",
        "0.001 1000",
        "0.01 5 LAYOUT BLOCKED",
        "0.25 3 EXPANSION 1 LAYOUT BLOCKED SEED 3",
        "0.01 50 NONSCALING LAYOUT BLOCKED",
    ]);
    prop_oneof![
        1 => (key(), reserve).prop_map(|(key, how)| Step::Reserve(key, how)),
        4 => (key(), item()).prop_map(|(key, item)| Step::Add(key, item)),
        2 => (key(), items()).prop_map(|(key, items)| Step::Madd(key, items)),
        2 => (key(), items()).prop_map(|(key, items)| Step::Insert(key, items)),
        4 => (key(), items()).prop_map(|(key, items)| Step::Ask(key, items)),
        1 => (key(), prop::collection::vec(key(), 1..4))
            .prop_map(|(key, sources)| Step::Merge(key, sources)),
        1 => (key(), 1..1200_u64).prop_map(|(key, capacity)| Step::Shrink(key, capacity)),
        1 => key().prop_map(Step::Clear),
    ]
}

fn call(keys: &mut Keyspace, start: &[&str], items: &[String]) -> Reply {
    let words = start
        .iter()
        .copied()
        .chain(items.iter().map(String::as_str));
    keys.call(&words.map(str::as_bytes).collect::<Vec<_>>())
}

fn elements(reply: Reply) -> Vec<Reply> {
    reply.into_elements().expect("an array")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn answers_are_those_of_a_set_but_for_false_positives(
        steps in prop::collection::vec(step(), 1..60),
        blocked: bool,
    ) {
        let mut keys = Keyspace::default();
        if blocked {
            keys.context.defaults.layout = Layout::Blocked;
        }
        let mut models: HashMap<&str, Model> = HashMap::new();
        for step in steps {
            let key = match step {
                Step::Reserve(key, how) => {
                    let reply = keys.say(&format!("BF.RESERVE {key} {how}"));
                    let there = models.contains_key(key);
                    // The blocked layout does not support such rates.
                    let impossible = blocked && how.starts_with("1e-323");
                    prop_assert_eq!(reply, match (there, impossible) {
                        (true, _) => "-ERR item exists",
                        (false, true) => "-ERR could not create filter",
                        (false, false) => "+OK",
                    });
                    if there || !impossible {
                        models.entry(key).or_default();
                    }
                    key
                }
                Step::Add(key, item) => {
                    let reply = call(&mut keys, &["BF.ADD", key], std::slice::from_ref(&item));
                    models.entry(key).or_default().offered(&item, &reply)?;
                    key
                }
                Step::Madd(key, items) => {
                    let replies = elements(call(&mut keys, &["BF.MADD", key], &items));
                    offered_all(models.entry(key).or_default(), &items, &replies)?;
                    key
                }
                Step::Insert(key, items) => {
                    let start = ["BF.INSERT", key, "CAPACITY", "20", "ITEMS"];
                    let replies = elements(call(&mut keys, &start, &items));
                    offered_all(models.entry(key).or_default(), &items, &replies)?;
                    key
                }
                Step::Ask(key, items) => {
                    let replies = elements(call(&mut keys, &["BF.MEXISTS", key], &items));
                    prop_assert_eq!(replies.len(), items.len());
                    for (item, reply) in items.iter().zip(&replies) {
                        let one = call(&mut keys, &["BF.EXISTS", key], std::slice::from_ref(item));
                        prop_assert_eq!(reply, &one);
                        let certain = models.get(key).is_some_and(|m| m.certain.contains(item));
                        prop_assert!(!certain || *reply == Reply::Boolean(true), "lost {}", item);
                        prop_assert!(models.contains_key(key) || *reply == Reply::Boolean(false));
                    }
                    key
                }
                Step::Merge(key, sources) => {
                    let before = keys.dumps();
                    let reply = keys.say(&format!("BF.MERGE {key} {}", sources.join(" ")));
                    if reply == "+OK" {
                        let items = sources.iter().flat_map(|source| &models[source].certain);
                        let items: Vec<String> = items.cloned().collect();
                        let model = models.entry(key).or_default();
                        model.certain.extend(items);
                        // Common items make it an estimate.
                        model.added = keys.filter(key).len() as i64;
                    } else {
                        prop_assert!(reply.starts_with("-ERR "), "{}", reply);
                        prop_assert_eq!(keys.dumps(), before);
                    }
                    key
                }
                Step::Shrink(key, capacity) => {
                    let before = keys.dumps();
                    let reply = keys.say(&format!("BF.SHRINK {key} {capacity}"));
                    prop_assert!(!reply.starts_with('-') || keys.dumps() == before);
                    key
                }
                Step::Clear(key) => {
                    let reply = keys.say(&format!("BF.CLEAR {key}"));
                    let there = models.contains_key(key);
                    prop_assert_eq!(reply, if there { "+OK" } else { "-ERR not found" });
                    if there {
                        models.insert(key, Model::default());
                    }
                    key
                }
            };
            let added = models.get(key).map_or(0, |model| model.added);
            prop_assert_eq!(keys.call(&[b"BF.CARD", key.as_bytes()]), Reply::Integer(added));
        }
        // At the end nothing that was certain is lost.
        for (key, model) in models {
            for item in model.certain {
                prop_assert_eq!(keys.say(&format!("BF.EXISTS {key} {item}")), ":1");
            }
        }
    }
}

/// The replies of one command of many items: one for each, unless a full filter ended it.
fn offered_all(
    model: &mut Model,
    items: &[String],
    replies: &[Reply],
) -> Result<(), TestCaseError> {
    let full = Reply::error("ERR non scaling filter is full");
    prop_assert!(replies.len() == items.len() || replies.last() == Some(&full));
    for (at, (item, reply)) in items.iter().zip(replies).enumerate() {
        prop_assert!(*reply != full || at + 1 == replies.len());
        model.offered(item, reply)?;
    }
    Ok(())
}
