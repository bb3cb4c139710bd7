//! Where a picture goes: a file, or the terminal.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use console::Term;
use everbloom_plot::Chart;

use crate::display;
use crate::failure::Failure;

/// The width of a picture in letters, where the terminal does not say how wide it is.
const WIDTH: usize = 96;
/// The widest picture. A wider one is no clearer.
const WIDEST: usize = 120;

/// Where a picture goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    Terminal,
    Svg(PathBuf),
}

/// Reads the argument of `--plot`.
pub(crate) fn destination(text: &str) -> Result<Destination, String> {
    let path = PathBuf::from(text);
    let ending = path.extension().map(|ending| ending.to_ascii_lowercase());
    match ending.as_ref().and_then(|ending| ending.to_str()) {
        _ if text == "-" => Ok(Destination::Terminal),
        Some("svg") => Ok(Destination::Svg(path)),
        Some("png") => Err(
            "only SVG is drawn: give a name that ends in .svg; any browser or rsvg-convert \
             makes a PNG of it"
                .into(),
        ),
        _ => Err("give a name that ends in .svg, or `-` for the terminal".into()),
    }
}

/// Draws a chart. A file that exists is replaced as a whole or stays as it is.
pub(crate) fn draw(chart: &Chart, destination: &Destination) -> Result<(), Failure> {
    let path = match destination {
        Destination::Svg(path) => path,
        Destination::Terminal => {
            let width = match Term::stdout().size_checked() {
                Some((_, columns)) => usize::from(columns).min(WIDEST),
                None => WIDTH,
            };
            let mut out = io::stdout();
            let text = chart.terminal(width, out.is_terminal() && !display::is_plain());
            return Ok(out.write_all(text.as_bytes())?);
        }
    };
    let mut name = path.clone().into_os_string();
    name.push(format!(".{}.tmp", std::process::id()));
    let written = fs::write(&name, chart.picture().svg()).and_then(|()| fs::rename(&name, path));
    written.map_err(|error| {
        // Ignore a second error: the first one says what is wrong.
        let _ = fs::remove_file(&name);
        let text = format!("cannot write {}: {error}", path.display());
        Failure::Io(io::Error::new(error.kind(), text))
    })
}
