//! A bar on standard error while something takes long; nothing where nobody looks.

use indicatif::{ProgressBar, ProgressStyle};

/// The bar. It disappears when it is dropped.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Of bytes.
    pub(crate) fn bytes(what: &'static str) -> Self {
        Self::new(what, "{msg} {wide_bar} {binary_bytes} of {binary_total_bytes}, {eta} left")
    }

    /// Of things that are counted.
    pub(crate) fn items(what: &'static str) -> Self {
        Self::new(what, "{msg} {wide_bar} {human_pos} of {human_len}, {eta} left")
    }

    fn new(what: &'static str, template: &str) -> Self {
        // Hidden by itself when standard error is no terminal.
        let bar = ProgressBar::new(0).with_message(what);
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self(bar)
    }

    /// How far it is.
    pub(crate) fn show(&mut self, done: u64, total: u64) {
        self.0.set_length(total);
        self.0.set_position(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
