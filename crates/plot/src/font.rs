//! The font: how wide a text is, and the outlines of its letters.

use std::sync::LazyLock;

use ab_glyph::{Font, FontRef, Glyph, OutlinedGlyph, PxScale, ScaleFont, point};

/// Checked by a test; without it, texts have a guessed width and pictures no letters.
static FONT: LazyLock<Option<FontRef<'static>>> =
    LazyLock::new(|| FontRef::try_from_slice(include_bytes!("../font/DejaVuSans-subset.ttf")).ok());

/// Width in pixels of a text whose em is `size` pixels.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    let Some(font) = &*FONT else {
        return text.chars().count() as f64 * size * 0.6;
    };
    let scaled = font.as_scaled(scale(font, size));
    let advance = |letter| f64::from(scaled.h_advance(scaled.glyph_id(letter)));
    text.chars().map(advance).sum()
}

/// The outlines of a text that begins at `x` on the baseline `y`.
pub(crate) fn outlines(text: &str, size: f64, x: f64, y: f64) -> Vec<OutlinedGlyph> {
    let Some(font) = &*FONT else {
        return Vec::new();
    };
    let scale = scale(font, size);
    let scaled = font.as_scaled(scale);
    let mut across = narrow(x);
    let mut outlines = Vec::new();
    for letter in text.chars() {
        let id = scaled.glyph_id(letter);
        let position = point(across, narrow(y));
        across += scaled.h_advance(id);
        outlines.extend(font.outline_glyph(Glyph {
            id,
            scale,
            position,
        }));
    }
    outlines
}

/// ab_glyph counts from the highest to the lowest point of the font instead of the em.
fn scale(font: &FontRef, size: f64) -> PxScale {
    let em = font.units_per_em().unwrap_or(2048.0);
    PxScale::from(narrow(size) * font.height_unscaled() / em)
}

/// Pixels need no more digits.
#[expect(clippy::cast_possible_truncation, reason = "a float that loses digits")]
pub(crate) fn narrow(value: f64) -> f32 {
    value as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_font_is_there_and_has_the_letters() {
        let font = FONT.as_ref().unwrap();
        for letter in (' '..='~').chain("·×±−–…≤≥≈µ⁰¹²³⁴⁵⁶⁷⁸⁹⁻".chars())
        {
            assert_ne!(font.glyph_id(letter).0, 0, "{letter}");
        }
        let em = width("mmmmmmmmmm", 10.0);
        assert!((95.0..100.0).contains(&em), "{em}");
        assert_eq!(outlines("a b", 10.0, 0.0, 0.0).len(), 2);
    }
}
