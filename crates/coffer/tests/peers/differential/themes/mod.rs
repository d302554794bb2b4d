//! The requests, a file for each theme.

mod access;
mod apply;
mod collections;
mod create;
mod definitions;
mod delete;
mod discovery;
mod kinds;
mod lifecycle;
mod patch;
mod reads;
mod secrets;
mod subresources;
mod transport;
mod update;
mod watch;

use super::request::Theme;

/// Every theme. They run beside each other, so none may see what another makes.
pub(super) fn all() -> Vec<Theme> {
    let mut themes = lifecycle::themes();
    themes.extend(create::themes());
    themes.extend([
        secrets::theme(),
        reads::theme(),
        collections::theme(),
        update::theme(),
        patch::theme(),
        delete::theme(),
        subresources::theme(),
        definitions::theme(),
        transport::theme(),
        discovery::theme(),
        access::theme(),
    ]);
    themes.extend(watch::themes());
    themes.extend(apply::themes());
    themes
}
