//! Looks for whole commands within the bytes of an argument. They tell damage from a torn end.

/// Where in the bytes a whole command begins, behind the end of a line or behind a zero of those
/// that a loss of power leaves.
pub(super) fn whole_command(bytes: &[u8]) -> Option<usize> {
    // Bytes can be made to look like the beginnings of very many long commands.
    let mut patience = 1 << 20;
    let lines = bytes.windows(3).enumerate();
    let mut starts = lines.filter_map(|(at, window)| {
        let is_start = matches!(window, b"\r\n*" | [_, 0, b'*']);
        is_start.then_some(at + 2)
    });
    starts.find(|at| {
        let bytes = bytes.get(*at..).unwrap_or_default();
        is_whole_command(bytes, &mut patience)
    })
}

/// Whether a whole command begins here; looks at no more than so many arguments.
fn is_whole_command(mut bytes: &[u8], patience: &mut u32) -> bool {
    let count = number(b'*', &mut bytes).unwrap_or(0);
    for _ in 0..count {
        *patience = patience.saturating_sub(1);
        if *patience == 0 || skip_argument(&mut bytes).is_none() {
            return false;
        }
    }
    count > 0
}

/// A line of a mark and a number.
fn number(mark: u8, bytes: &mut &[u8]) -> Option<usize> {
    let rest = bytes.strip_prefix(&[mark])?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, rest) = rest.split_at_checked(digits)?;
    *bytes = rest.strip_prefix(b"\r\n")?;
    std::str::from_utf8(number).ok()?.parse().ok()
}

fn skip_argument(bytes: &mut &[u8]) -> Option<()> {
    let len = number(b'$', bytes)?;
    *bytes = bytes.get(len..)?.strip_prefix(b"\r\n")?;
    Some(())
}
