//! Short texts in rows and columns, some of them marked.

use crate::picture::Picture;
use crate::shape::{Anchor, Form, Shape};
use crate::style::{self, Ink, LEADING, MARGIN, TEXT, WIDTH};
use crate::terminal::write_coloured;

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

    /// The grid as text, with or without colours. Marked cells are in brackets.
    #[must_use]
    pub fn terminal(&self, colours: bool) -> String {
        let length = |text: &str| text.chars().count();
        let names = self.rows.iter().map(|row| length(&row.name)).max();
        let texts = self.rows.iter().flat_map(|row| &row.cells);
        let (names, wide) = (
            names.unwrap_or(0),
            texts.map(|(text, _)| length(text)).max().unwrap_or(0),
        );
        let mut lines = format!("{}\n{}\n\n", self.title, self.subtitle);
        for row in &self.rows {
            let mut line = format!("{:<names$} ", row.name);
            for (text, mark) in &row.cells {
                let Some(colour) = mark else {
                    line.push_str(&format!(" {text:>wide$} "));
                    continue;
                };
                let marked = format!("{:>1$}", format!("[{text}"), wide + 1) + "]";
                write_coloured(&mut line, &marked, *colour, colours);
            }
            line.push_str(&format!(" {}", row.note));
            lines.push_str(line.trim_end());
            lines.push('\n');
        }
        lines
    }

    fn columns(&self) -> usize {
        self.rows
            .iter()
            .map(|row| row.cells.len())
            .max()
            .unwrap_or(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marked_cells_are_in_brackets_and_in_colour() {
        let row = |name: &str, cells: [(&str, Option<usize>); 2]| Row {
            name: name.into(),
            cells: cells.map(|(text, mark)| (text.to_owned(), mark)).to_vec(),
            note: "note".into(),
        };
        let grid = Grid {
            title: "Title".into(),
            subtitle: "below".into(),
            rows: vec![
                row("k", [("8", None), ("10", None)]),
                row("1", [("1", Some(0)), ("22", Some(1))]),
            ],
        };
        let text = grid.terminal(false);
        assert_eq!(text, "Title\nbelow\n\nk   8  10  note\n1  [1][22] note\n");
        assert!(grid.terminal(true).contains("\x1b[38;5;166m[22]\x1b[0m"));
        let svg = grid.picture().svg();
        assert!(
            svg.contains("class=\"c1\"") && svg.contains(">22</text>"),
            "{svg}"
        );
    }
}
