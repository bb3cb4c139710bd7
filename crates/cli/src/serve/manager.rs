//! The service manager that started the server, if one did: systemd, with `Type=notify`.

use sd_notify::NotifyState;

/// Tells it that everything is loaded.
pub(super) fn ready() {
    tell(NotifyState::Ready);
}

/// Tells it that the server ends, which may take as long as saving takes.
pub(super) fn stopping() {
    tell(NotifyState::Stopping);
}

fn tell(state: NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(false, &[state]) {
        tracing::warn!("cannot tell the service manager: {error}");
    }
}
