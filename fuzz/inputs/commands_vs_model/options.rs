//! Options of BF.RESERVE and BF.INSERT.

use arbitrary::Arbitrary;

#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) enum Rate {
    Capped,
    Quarter,
    Hundredth,
    Millionth,
    /// Three halves and it is 0.
    Subnormal,
    /// Half of it is 0.
    Smallest,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) enum Expansion {
    Small(u8),
    Most,
}

#[derive(Arbitrary, Debug)]
pub(crate) struct Growth {
    pub(crate) expansion: Option<Expansion>,
    pub(crate) non_scaling: bool,
    pub(crate) layout: Option<Blocked>,
}

/// A layout, and its seed when it is blocked and has one.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) enum Blocked {
    No,
    Yes(Option<u64>),
}

impl Rate {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Rate::Capped => "0.9",
            Rate::Quarter => "0.25",
            Rate::Hundredth => "0.01",
            Rate::Millionth => "1e-6",
            Rate::Subnormal => "2e-323",
            Rate::Smallest => "5e-324",
        }
    }

    pub(crate) fn get(self) -> f64 {
        self.text().parse().unwrap()
    }
}

impl Expansion {
    pub(crate) fn get(self) -> u32 {
        match self {
            Expansion::Small(number) => (number % 5).into(),
            Expansion::Most => 32768,
        }
    }
}

impl Growth {
    pub(crate) fn append_to(&self, words: &mut Vec<String>) {
        words.extend(self.non_scaling.then(|| "NONSCALING".to_owned()));
        if let Some(expansion) = self.expansion {
            words.extend(["EXPANSION".to_owned(), expansion.get().to_string()]);
        }
        match self.layout {
            None => {}
            Some(Blocked::No) => words.extend(["LAYOUT", "CLASSIC"].map(str::to_owned)),
            Some(Blocked::Yes(None)) => words.extend(["LAYOUT", "BLOCKED"].map(str::to_owned)),
            Some(Blocked::Yes(Some(seed))) => {
                let seed = seed.to_string();
                words.extend(["SEED", &seed, "LAYOUT", "BLOCKED"].map(str::to_owned));
            }
        }
    }
}
