//! Man pages. clap writes a page from the options; the text behind them gets sections here.

use std::fs;
use std::io;
use std::path::Path;

use clap_mangen::Man;

/// Writes a page for a command and for each subcommand.
pub(super) fn write_pages(command: &clap::Command, folder: &Path) -> io::Result<()> {
    for subcommand in command.get_subcommands().filter(|it| !it.is_hide_set()) {
        write_pages(subcommand, folder)?;
    }
    let usage = command.clone().render_usage().to_string();
    let help = command.get_after_help().map(ToString::to_string);
    let man = Man::new(command.clone())
        .source(concat!("everbloom ", env!("CARGO_PKG_VERSION")))
        .manual("everbloom");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    let usage = usage.trim_start_matches("Usage: ");
    page.extend_from_slice(format!(".SH SYNOPSIS\n{}", roff(usage)).as_bytes());
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    page.extend_from_slice(sections(&help.unwrap_or_default()).as_bytes());
    fs::write(folder.join(man.get_filename()), page)
}

/// The sections of a help text in roff: its details, the exit status and examples. Indented lines
/// stay as they are.
fn sections(help: &str) -> String {
    let [mut details, mut status, mut examples] = [const { String::new() }; 3];
    for paragraph in help.split("\n\n").filter(|it| !it.trim().is_empty()) {
        if let Some(lines) = paragraph.strip_prefix("Examples:\n") {
            examples += &roff(lines);
        } else if paragraph.starts_with("Exit code") {
            status += &roff(paragraph);
        } else {
            details += &roff(paragraph);
        }
    }
    let titles = ["DETAILS", "EXIT STATUS", "EXAMPLES"];
    let bodies = [details, status, examples];
    let sections = titles.iter().zip(bodies);
    let sections = sections.filter(|(_, body)| !body.is_empty());
    sections
        .map(|(title, body)| format!(".SH \"{title}\"\n{body}"))
        .collect()
}

/// A paragraph in roff.
fn roff(paragraph: &str) -> String {
    let mut text = ".PP\n".to_owned();
    let mut is_verbatim = false;
    for line in paragraph.lines() {
        if line.starts_with(' ') != is_verbatim {
            is_verbatim = !is_verbatim;
            text += if is_verbatim { ".nf\n" } else { ".fi\n" };
        }
        let line = line.replace('\\', "\\e").replace('-', "\\-");
        // A dot or a quotation mark at the beginning of a line would be a request.
        text += &format!("\\&{}\n", line.replace('\'', "\\(aq"));
    }
    if is_verbatim {
        text += ".fi\n";
    }
    text
}
