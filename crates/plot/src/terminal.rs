//! Charts in the letters of a terminal.

use crate::axis::Fitted;
use crate::chart::{Chart, Line};
use crate::style;

/// Lines of letters in the field of a chart.
const ROWS: usize = 18;

impl Chart {
    /// The chart in braille dots, `width` letters wide, with or without colours. Each line has its
    /// label at its right end.
    #[must_use]
    pub fn terminal(&self, width: usize, colours: bool) -> String {
        let (x, y) = self.axes();
        let ticks = y.ticks(6);
        let left = ticks.iter().map(|tick| y.label(*tick).chars().count());
        let left = left.max().unwrap_or(0);
        let right = self.lines.iter().map(|line| line.label.chars().count());
        let right = right.max().unwrap_or(0);
        let columns = width.saturating_sub(left + right + 4).max(20);
        let mut field = Field::new(columns, x, y);
        for line in &self.lines {
            field.draw(line);
        }
        let labels = self.labels(&field);
        let mut text = format!("{}\n", self.title);
        for line in self.subtitle.lines().chain(["", &self.y.title]) {
            text.push_str(line);
            text.push('\n');
        }
        for row in 0..ROWS {
            let tick = ticks.iter().find(|tick| field.row(**tick) == row);
            let tick = tick.map(|tick| field.y.label(*tick)).unwrap_or_default();
            text.push_str(&format!("{tick:>left$} │"));
            field.write_row(row, colours, &mut text);
            if let Some((_, line)) = labels.iter().find(|(place, _)| *place == row) {
                text.push(' ');
                write_coloured(&mut text, &line.label, line.colour, colours);
            }
            while text.ends_with(' ') {
                text.pop();
            }
            text.push('\n');
        }
        text.push_str(&format!("{:left$} └{}\n", "", "─".repeat(columns)));
        text.push_str(&format!("{:left$}  {}\n", "", across(&field.x, columns)));
        let end = left + 2 + columns;
        text.push_str(&format!("{:>end$}\n", self.x.title));
        text
    }

    /// The row of each label: that of its line's end, or the next free one. The labels are in the
    /// order of the ends, so that those of two lines that end side by side are not confused.
    fn labels(&self, field: &Field) -> Vec<(usize, &Line)> {
        let labelled = self.lines.iter().filter(|line| !line.label.is_empty());
        let mut ends: Vec<(f64, &Line)> = labelled
            .filter_map(|line| {
                let inside =
                    |(x, y): &&(f64, f64)| field.x.part(*x).is_some() && field.y.part(*y).is_some();
                let (_, end) = line.points.iter().rfind(inside)?;
                Some((*end, line))
            })
            .collect();
        ends.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        let mut free = 0;
        let mut placed: Vec<(usize, &Line)> = Vec::new();
        for (end, line) in ends {
            let row = field.row(end).max(free);
            placed.push((row, line));
            free = row + 1;
        }
        // Labels below the last row push those above them up.
        let mut free = ROWS;
        for (row, _) in placed.iter_mut().rev() {
            *row = (*row).min(free.saturating_sub(1));
            free = *row;
        }
        placed
    }
}

fn write_coloured(text: &mut String, part: &str, colour: usize, colours: bool) {
    if colours {
        let number = style::series(colour).terminal;
        text.push_str(&format!("\x1b[38;5;{number}m{part}\x1b[0m"));
    } else {
        text.push_str(part);
    }
}

/// The field between the axes: eight dots a letter, two across and four down.
struct Field {
    x: Fitted,
    y: Fitted,
    columns: usize,
    /// The dots of each letter as braille counts them, and the colour of the last line there.
    cells: Vec<(u8, usize)>,
}

impl Field {
    fn new(columns: usize, x: Fitted, y: Fitted) -> Field {
        Field {
            x,
            y,
            columns,
            cells: vec![(0, 0); columns * ROWS],
        }
    }

    /// The row of letters in which a value lies.
    fn row(&self, value: f64) -> usize {
        self.down(value) / 4
    }

    /// The row of dots in which a value lies.
    fn down(&self, value: f64) -> usize {
        whole((1.0 - self.y.nearest(value)) * (ROWS * 4 - 1) as f64 + 0.5)
    }

    fn draw(&mut self, line: &Line) {
        let inside = line.points.iter().filter_map(|(x, y)| {
            self.y.part(*y)?;
            let across = self.x.part(*x)? * (self.columns * 2 - 1) as f64;
            Some((whole(across + 0.5), self.down(*y)))
        });
        let points: Vec<(usize, usize)> = inside.collect();
        for point in &points {
            self.set(*point, line.colour);
        }
        if line.loose {
            // A dot alone is hard to see.
            for (across, down) in points {
                for point in [
                    (across + 1, down),
                    (across, down + 1),
                    (across + 1, down + 1),
                ] {
                    self.set(point, line.colour);
                }
            }
            return;
        }
        for pair in points.windows(2) {
            let [from, to] = *pair else { continue };
            let steps = from.0.abs_diff(to.0).max(from.1.abs_diff(to.1));
            for step in 0..steps {
                let part = step as f64 / steps as f64;
                let between = |from: usize, to: usize| {
                    whole(from as f64 * (1.0 - part) + to as f64 * part + 0.5)
                };
                let point = (between(from.0, to.0), between(from.1, to.1));
                // A gap after every three dots.
                if !line.dashed || (point.0 + point.1) % 4 != 3 {
                    self.set(point, line.colour);
                }
            }
        }
    }

    fn set(&mut self, (across, down): (usize, usize), colour: usize) {
        // Braille counts the first three rows of each column first, then the fourth ones.
        let bit = match (across % 2, down % 4) {
            (0, 3) => 6,
            (_, 3) => 7,
            (0, row) => row,
            (_, row) => row + 3,
        };
        let cell = down / 4 * self.columns + across / 2;
        if let Some(cell) = self
            .cells
            .get_mut(cell)
            .filter(|_| across < 2 * self.columns)
        {
            *cell = (cell.0 | 1 << bit, colour);
        }
    }

    fn write_row(&self, row: usize, colours: bool, text: &mut String) {
        let cells = self.cells.iter().skip(row * self.columns);
        for (dots, colour) in cells.take(self.columns) {
            match char::from_u32(0x2800 + u32::from(*dots)) {
                Some(letter) if *dots != 0 => {
                    write_coloured(text, letter.encode_utf8(&mut [0; 4]), *colour, colours);
                }
                _ => text.push(' '),
            }
        }
    }
}

/// The labels of the axis across, each in the middle below its value.
fn across(x: &Fitted, columns: usize) -> String {
    let mut text = String::new();
    for tick in x.ticks(columns / 10) {
        let label = x.label(tick);
        let length = label.chars().count();
        let middle = whole(x.nearest(tick) * (columns - 1) as f64);
        let start = middle
            .saturating_sub(length / 2)
            .min(columns.saturating_sub(length));
        let written = text.chars().count();
        if start >= written + usize::from(written > 0) {
            text.push_str(&" ".repeat(start - written));
            text.push_str(&label);
        }
    }
    text
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rounds down; saturates outside"
)]
fn whole(value: f64) -> usize {
    value as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::Axis;
    use crate::label;

    #[test]
    fn a_line_rises_to_its_label() {
        let points = vec![(0.0, 0.0), (10.0, 10.0)];
        let chart = Chart {
            title: "Rise".into(),
            subtitle: "of a line".into(),
            x: Axis::linear("x", label::count).within(0.0, 10.0),
            y: Axis::linear("y", label::count).within(0.0, 10.0),
            lines: vec![Line::curve("up", 0, points)],
        };
        let text = chart.terminal(60, false);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..2], ["Rise", "of a line"]);
        assert!(
            lines[4].starts_with("10 │") && lines[4].ends_with("⠊ up"),
            "{text}"
        );
        assert!(lines[3 + ROWS].starts_with(" 0 │⡠"), "{text}");
        assert!(
            lines.iter().all(|line| line.chars().count() <= 60),
            "{text}"
        );
        assert!(chart.terminal(60, true).contains("\x1b[38;5;63mup\x1b[0m"));
    }

    #[test]
    fn labels_stand_in_the_order_of_the_ends() {
        let chart = |ends: [(&str, f64); 4]| Chart {
            title: String::new(),
            subtitle: String::new(),
            x: Axis::linear("x", label::count).within(0.0, 10.0),
            y: Axis::linear("y", label::count).within(0.0, 10.0),
            lines: ends
                .map(|(label, end)| Line::curve(label, 0, vec![(0.0, 5.0), (10.0, end)]))
                .to_vec(),
        };
        for ends in [
            [("b", 9.9), ("a", 9.95), ("d", 9.8), ("c", 9.85)],
            [("d", 0.05), ("b", 0.15), ("a", 0.2), ("c", 0.1)],
            [("c", 5.01), ("b", 5.02), ("a", 10.0), ("d", 0.0)],
        ] {
            let text = chart(ends).terminal(60, false);
            let labels = text.lines().skip(3).take(ROWS).filter_map(|line| {
                let (_, label) = line.rsplit_once(' ')?;
                ["a", "b", "c", "d"].contains(&label).then_some(label)
            });
            assert_eq!(labels.collect::<String>(), "abcd", "{text}");
        }
    }
}
