//! Commands of one family on a key of the other.

use everbloom_resp::Reply;

use super::{Key, Run};

const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

impl Run {
    pub(crate) fn bloom_on_cuckoo(&mut self, key: Key) {
        for (command, args) in [
            ("BF.RESERVE", &["0.01", "100"][..]),
            ("BF.ADD", &["x"]),
            ("BF.MADD", &["x", "y"]),
            ("BF.INSERT", &["ITEMS", "x"]),
            ("BF.LOADCHUNK", &["1", "x"]),
            ("BF.LOADCHUNK", &["5", "x"]),
            ("BF.SCANDUMP", &["0"]),
            ("BF.INFO", &[]),
            ("BF.CARD", &[]),
            ("BF.DEBUG", &[]),
            ("BF.STATS", &[]),
        ] {
            self.is_refused(key, command, args, WRONG_TYPE);
        }
        self.holds_nothing(key, "BF.EXISTS", "BF.MEXISTS");
    }

    pub(crate) fn cuckoo_on_bloom(&mut self, key: Key) {
        for (command, args) in [
            ("CF.RESERVE", &["1000"][..]),
            ("CF.ADD", &["x"]),
            ("CF.ADDNX", &["x"]),
            ("CF.INSERT", &["ITEMS", "x"]),
            ("CF.INSERT", &["NOCREATE", "ITEMS", "x"]),
            ("CF.INSERTNX", &["ITEMS", "x"]),
            ("CF.LOADCHUNK", &["1", "x"]),
            ("CF.LOADCHUNK", &["5", "x"]),
            ("CF.SCANDUMP", &["0"]),
            ("CF.INFO", &[]),
            ("CF.DEBUG", &[]),
            ("CF.STATS", &[]),
        ] {
            self.is_refused(key, command, args, WRONG_TYPE);
        }
        self.is_refused(key, "CF.DEL", &["x"], "Not found");
        self.is_refused(key, "CF.COMPACT", &[], "Cuckoo filter was not found");
        self.holds_nothing(key, "CF.EXISTS", "CF.MEXISTS");
        let count = self.call(&["CF.COUNT", key.name(), "x"], &[]);
        assert_eq!(count, Reply::Integer(0));
    }

    fn is_refused(&mut self, key: Key, command: &str, args: &[&str], why: &'static str) {
        let words = [&[command, key.name()], args].concat();
        assert_eq!(self.call(&words, &[]), Reply::error(why), "{command}");
    }

    /// Both find no item where there is a filter of another family.
    fn holds_nothing(&mut self, key: Key, one: &str, many: &str) {
        let no = Reply::Boolean(false);
        assert_eq!(self.call(&[one, key.name(), "x"], &[]), no);
        let replies = self.call(&[many, key.name(), "x", "y"], &[]);
        assert_eq!(replies.into_elements(), Some(vec![no.clone(), no]));
    }
}
