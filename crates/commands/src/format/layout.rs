//! The names of layouts in options, settings and replies.

use everbloom::Layout;

/// The layout with this name, in any case.
///
/// ```
/// # use everbloom_commands::format::layout;
/// assert_eq!(layout::parse(b"Blocked"), Some(everbloom::Layout::Blocked));
/// assert_eq!(layout::name(everbloom::Layout::Blocked), "blocked");
/// assert_eq!(layout::parse(b"block"), None);
/// ```
pub fn parse(word: &[u8]) -> Option<Layout> {
    [Layout::Classic, Layout::Blocked]
        .into_iter()
        .find(|layout| name(*layout).as_bytes().eq_ignore_ascii_case(word))
}

/// The name of a layout.
pub fn name(layout: Layout) -> &'static str {
    match layout {
        Layout::Classic => "classic",
        Layout::Blocked => "blocked",
    }
}
