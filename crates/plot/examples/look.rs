//! Draws one chart and one group of bars into the current folder, to look at the style.

use std::fs;

use everbloom_plot::{Axis, Bar, Bars, Chart, Group, Line, label};

fn main() -> std::io::Result<()> {
    let curve = |power: i32| {
        (0..=50)
            .map(|x| (f64::from(x) / 5.0, (f64::from(x) / 5.0).powi(power)))
            .collect()
    };
    let chart = Chart {
        title: "Powers".into(),
        subtitle: "Of numbers from 0 to 10".into(),
        x: Axis::linear("x", label::count),
        y: Axis::logarithmic("power of x", label::count).within(0.1, 1e5),
        lines: vec![
            Line::curve("linear", 0, curve(1)),
            Line::curve("square", 1, curve(2)).dashed(),
            Line::curve("cube", 2, curve(3)),
            Line::curve("fourth", 3, curve(4)),
            Line::curve("fifth", 4, curve(5)),
        ],
    };
    fs::write("chart.svg", chart.picture().svg())?;
    print!("{}", chart.terminal(80, true));
    let bars = Bars {
        title: "Amounts".into(),
        subtitle: "Of nothing in particular".into(),
        groups: (1..=3)
            .map(|group| Group {
                label: format!("group {group}"),
                bars: (0..4)
                    .map(|colour| Bar {
                        mark: colour == 3,
                        ..Bar::new("subject", colour, f64::from(group) * (colour as f64 + 1.0))
                    })
                    .collect(),
            })
            .collect(),
        format: label::short,
    };
    fs::write("bars.svg", bars.picture().svg())?;
    Ok(())
}
