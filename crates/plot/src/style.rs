//! Colours and sizes.

/// What a shape is drawn with. The colour follows the theme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// The colour of the paper.
    Background,
    /// Titles.
    Text,
    /// What is less important.
    Muted,
    /// Lines behind all others.
    Grid,
    /// The colour of a line or bar. Numbers beyond the last one start again.
    Series(usize),
}

/// A colour in each theme: red, green, blue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Colour {
    pub(crate) light: [u8; 3],
    pub(crate) dark: [u8; 3],
    /// One of the 256 colours of a terminal, readable on black and on white.
    pub(crate) terminal: u8,
}

/// The colours of lines and bars. Any two of them differ for all eyes, which a test below computes.
pub(crate) const SERIES: [Colour; 5] = [
    colour([0x5a, 0x3f, 0xcb], [0x43, 0x88, 0xf3], 63),
    colour([0xcd, 0x54, 0x00], [0xdd, 0x70, 0x4f], 166),
    colour([0x00, 0x8e, 0x65], [0x32, 0xfc, 0xa4], 36),
    colour([0x9d, 0x4c, 0x9b], [0xd7, 0x82, 0xc7], 133),
    colour([0x70, 0x20, 0x04], [0xf0, 0xd7, 0x22], 136),
];

const fn colour(light: [u8; 3], dark: [u8; 3], terminal: u8) -> Colour {
    Colour {
        light,
        dark,
        terminal,
    }
}

impl Ink {
    /// All inks and the names of their classes in a SVG.
    pub(crate) fn all() -> impl Iterator<Item = Ink> {
        let series = (0..SERIES.len()).map(Ink::Series);
        [Ink::Background, Ink::Text, Ink::Muted, Ink::Grid]
            .into_iter()
            .chain(series)
    }

    pub(crate) fn name(self) -> String {
        match self {
            Ink::Background => "back".into(),
            Ink::Text => "text".into(),
            Ink::Muted => "muted".into(),
            Ink::Grid => "grid".into(),
            Ink::Series(number) => format!("c{}", number % SERIES.len()),
        }
    }

    pub(crate) fn colour(self) -> Colour {
        match self {
            Ink::Background => colour([0xff; 3], [0x0d, 0x11, 0x17], 0),
            Ink::Text => colour([0x1f, 0x23, 0x28], [0xe6, 0xed, 0xf3], 0),
            Ink::Muted => colour([0x57, 0x60, 0x6a], [0x9d, 0xa5, 0xae], 0),
            Ink::Grid => colour([0xdd, 0xe2, 0xe7], [0x2b, 0x31, 0x38], 0),
            Ink::Series(number) => series(number),
        }
    }
}

/// The colour of a line.
pub(crate) fn series(number: usize) -> Colour {
    let [first, ..] = SERIES;
    *SERIES.get(number % SERIES.len()).unwrap_or(&first)
}

/// The em of a text, in pixels.
pub const TEXT: f64 = 13.0;
/// The em of a title.
pub const TITLE: f64 = 17.0;
/// From one line of text to the next.
pub const LEADING: f64 = 17.0;
/// The width of all pictures.
pub const WIDTH: f64 = 800.0;
/// The empty border.
pub const MARGIN: f64 = 16.0;

/// Width in pixels of a text whose em is `size` pixels, in DejaVu Sans.
#[must_use]
pub fn width(text: &str, size: f64) -> f64 {
    let letter_width = |letter| {
        let ascii = u32::from(letter).checked_sub(u32::from(' '));
        let known = ascii.and_then(|number| LETTER_WIDTHS.get(number as usize));
        f64::from(*known.unwrap_or(&OTHER_LETTER_WIDTH))
    };
    text.chars().map(letter_width).sum::<f64>() * size / EM
}

/// The widths below are in parts of an em.
const EM: f64 = 2048.0;
const OTHER_LETTER_WIDTH: u16 = 1229;
/// The widths of the letters from the space to `~`.
const LETTER_WIDTHS: [u16; 95] = [
    651, 821, 942, 1716, 1303, 1946, 1597, 563, 799, 799, 1024, 1716, 651, 739, 651, 690, 1303,
    1303, 1303, 1303, 1303, 1303, 1303, 1303, 1303, 1303, 690, 690, 1716, 1716, 1716, 1087, 2048,
    1401, 1405, 1430, 1577, 1294, 1178, 1587, 1540, 604, 604, 1343, 1141, 1767, 1532, 1612, 1235,
    1612, 1423, 1300, 1251, 1499, 1401, 2025, 1403, 1251, 1403, 799, 690, 799, 1716, 1024, 1024,
    1255, 1300, 1126, 1300, 1260, 721, 1300, 1298, 569, 569, 1186, 569, 1995, 1298, 1253, 1300,
    1300, 842, 1067, 803, 1298, 1212, 1675, 1212, 1212, 1075, 1303, 690, 1303, 1716,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn linear(byte: u8) -> f64 {
        let part = f64::from(byte) / 255.0;
        if part <= 0.04045 {
            part / 12.92
        } else {
            ((part + 0.055) / 1.055).powf(2.4)
        }
    }

    fn luminance(colour: [u8; 3]) -> f64 {
        let [red, green, blue] = colour.map(linear);
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }

    fn contrast(one: [u8; 3], other: [u8; 3]) -> f64 {
        let (one, other) = (luminance(one) + 0.05, luminance(other) + 0.05);
        one.max(other) / one.min(other)
    }

    /// What people see who lack red, green or blue cones (Machado, Oliveira and Fernandes, "A
    /// physiologically-based model for simulation of color vision deficiency", 2009, severity 1),
    /// and what all others see.
    const EYES: [[[f64; 3]; 3]; 4] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ],
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ],
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ],
    ];

    /// In CIELAB, where a distance of 2 can just be seen.
    fn lab(colour: [u8; 3], eye: &[[f64; 3]; 3]) -> [f64; 3] {
        let seen = colour.map(linear);
        let [r, g, b] = eye.map(|row| {
            let sum: f64 = row.iter().zip(seen).map(|(part, light)| part * light).sum();
            sum.clamp(0.0, 1.0)
        });
        let f = |t: f64| {
            if t > 0.008856 {
                t.cbrt()
            } else {
                7.787 * t + 16.0 / 116.0
            }
        };
        let x = f((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505);
        let y = f(0.2126 * r + 0.7152 * g + 0.0722 * b);
        let z = f((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089);
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    #[test]
    fn any_two_lines_differ_for_all_eyes() {
        for eye in &EYES {
            for (number, one) in SERIES.iter().enumerate() {
                for other in SERIES.iter().skip(number + 1) {
                    for (one, other) in [(one.light, other.light), (one.dark, other.dark)] {
                        let (a, b) = (lab(one, eye), lab(other, eye));
                        let squares = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b));
                        let distance = squares.sum::<f64>().sqrt();
                        assert!(distance >= 25.0, "{one:x?} {other:x?}: {distance}");
                    }
                }
            }
        }
    }

    #[test]
    fn text_can_be_read_in_both_themes() {
        let back = Ink::Background.colour();
        for ink in Ink::all() {
            let (colour, least) = (ink.colour(), if ink == Ink::Text { 7.0 } else { 4.0 });
            if !matches!(ink, Ink::Background | Ink::Grid) {
                let light = contrast(colour.light, back.light);
                let dark = contrast(colour.dark, back.dark);
                assert!(light >= least && dark >= least, "{ink:?} {light} {dark}");
            }
        }
    }
}
