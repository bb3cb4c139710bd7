//! Short texts in rows and columns, some of them marked.

use everbloom_plot::style::{self, Ink, LEADING, MARGIN, TEXT, WIDTH};
use everbloom_plot::{Anchor, Form, Picture, Shape};

/// Short texts in rows and columns, some of them marked with a colour.
#[derive(Clone, Debug)]
pub struct Grid {
    /// What the picture shows.
    pub title: String,
    /// The conditions, in smaller letters; may have several lines.
    pub subtitle: String,
    /// The first row names the columns.
    pub rows: Vec<Row>,
}

/// A row of a grid.
#[derive(Clone, Debug)]
pub struct Row {
    /// The text at its left.
    pub name: String,
    /// The text of each cell and, if it is marked, its colour.
    pub cells: Vec<(String, Option<usize>)>,
    /// The text at its right.
    pub note: String,
}

/// Height of a row.
const STEP: f64 = 24.0;

impl Grid {
    /// Draws it.
    #[must_use]
    pub fn picture(&self) -> Picture {
        let mut picture = Picture::new(&self.title, &self.subtitle);
        let widest = |texts: &mut dyn Iterator<Item = &str>| {
            texts
                .map(|text| style::width(text, TEXT))
                .fold(0.0, f64::max)
        };
        let left = MARGIN + widest(&mut self.rows.iter().map(|row| row.name.as_str())) + 8.0;
        let notes = widest(&mut self.rows.iter().map(|row| row.note.as_str())) + 8.0;
        let texts = self.rows.iter().flat_map(|row| &row.cells);
        let text = widest(&mut texts.map(|(text, _)| text.as_str()));
        let wide = (WIDTH - MARGIN - notes - left) / self.columns() as f64;
        let size = TEXT.min(TEXT * (wide - 6.0) / text);
        let mut y = picture.bottom() + LEADING;
        for row in &self.rows {
            let base = y + STEP / 2.0 + TEXT * 0.36;
            let mut write = |x, text: &str, size, anchor, ink| {
                picture.add(Shape::text((x, base), text, size, anchor, ink));
            };
            write(MARGIN, &row.name, TEXT, Anchor::Start, Ink::Text);
            write(
                WIDTH - MARGIN - notes + 8.0,
                &row.note,
                TEXT,
                Anchor::Start,
                Ink::Text,
            );
            for (number, (text, mark)) in row.cells.iter().enumerate() {
                let x = left + wide * number as f64;
                let ink = mark.map_or(Ink::Muted, |_| Ink::Background);
                if let Some(colour) = mark {
                    let (corner, size) = ((x + 1.0, y + 1.0), (wide - 2.0, STEP - 2.0));
                    let (form, ink) = (Form::Rectangle { corner, size }, Ink::Series(*colour));
                    picture.add(Shape { form, ink });
                }
                let at = (x + wide / 2.0, base);
                picture.add(Shape::text(at, text, size, Anchor::Middle, ink));
            }
            y += STEP;
        }
        picture.end_at(y + MARGIN);
        picture
    }

    fn columns(&self) -> usize {
        self.rows
            .iter()
            .map(|row| row.cells.len())
            .max()
            .unwrap_or(1)
    }
}
