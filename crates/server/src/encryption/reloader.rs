//! Looks at the file, and does what the table of reloading says.

use std::sync::Arc;
use std::time::Duration;

use coffer_config::encryption::reload::{
    Action, Event, HEALTH_POLL, Phase, content_hash, health_limit, next_look, step,
};
use coffer_config::encryption::{Reload, Transformers};
use coffer_types::SecretBytes;
use futures::future::BoxFuture;
use tokio::task::JoinSet;

use super::{ConfigFile, Encryption, InUse, Loader, OnDisk};
use crate::kms::Plugins;

/// After a change is noticed, before the file is read: who writes it in several steps is let finish.
pub const SETTLE: Duration = Duration::from_millis(100);

/// Says why transformers must not be used although their plugins are well.
pub type Vet = Box<dyn Fn(Arc<Transformers>) -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// Keeps what is in use and the file the same, or says that they differ.
pub struct Reloader {
    /// Loads new content.
    pub loader: Loader,
    /// The file.
    pub file: Arc<dyn ConfigFile>,
    /// What is in use.
    pub encryption: Arc<Encryption>,
    /// Puts new transformers in the place of the old, for all resources.
    pub swap: Box<dyn Fn(Arc<Transformers>) + Send + Sync>,
    /// A last look at new transformers.
    pub vet: Option<Vet>,
}

/// What a look at the file has at hand.
#[derive(Default)]
struct AtHand {
    bytes: Option<SecretBytes>,
    new: Option<InUse>,
    /// What went wrong.
    why: String,
}

impl Reloader {
    /// Runs for ever. Old configurations that are still in their grace go with it.
    pub async fn run(self) {
        let mut failures = 0_u32;
        let mut closing = JoinSet::new();
        loop {
            let succeeded = self.look(&mut closing).await;
            failures = if succeeded { 0 } else { failures.saturating_add(1) };
            while closing.try_join_next().is_some() {}
            let clock = self.loader.clock();
            tokio::select! {
                () = clock.sleep(next_look(failures)) => {}
                () = self.file.changed() => clock.sleep(SETTLE).await,
            }
        }
    }

    /// One look at the file, to its end; false when it was to be loaded and could not.
    async fn look(&self, closing: &mut JoinSet<()>) -> bool {
        let (mut phase, mut at_hand, mut failed) = (Phase::Waiting, AtHand::default(), false);
        let mut event = self.read(&mut at_hand).await;
        loop {
            let (next, actions) = step(self.loader.reload(), phase, event);
            phase = next;
            let mut happened = None;
            for action in actions {
                failed |= *action == Action::CountFailure;
                happened = self.act(*action, &mut at_hand, closing).await.or(happened);
            }
            match happened {
                Some(next) => event = next,
                None => return !failed,
            }
        }
    }

    async fn read(&self, at_hand: &mut AtHand) -> Event {
        match self.file.read().await {
            Ok(bytes) => {
                let same = content_hash(bytes.expose()) == self.encryption.current().hash();
                at_hand.bytes = Some(bytes);
                if same { Event::SameFile } else { Event::OtherFile }
            }
            Err(error) => {
                let file = self.loader.file();
                at_hand.why =
                    format!("error reading encryption provider configuration file {file:?}: {error}");
                Event::Unread
            }
        }
    }

    /// Does it, and says what came of it.
    async fn act(&self, action: Action, at_hand: &mut AtHand, closing: &mut JoinSet<()>) -> Option<Event> {
        match action {
            Action::Build => return Some(self.build(at_hand).await),
            Action::Check => return Some(self.check(at_hand).await),
            Action::Swap => self.replace(at_hand.new.take()?, closing),
            Action::Close => drop(at_hand.new.take()),
            Action::CountSuccess => self.encryption.count(true),
            Action::CountFailure => self.encryption.count(false),
            Action::Agrees => {
                self.encryption.note_on_disk(OnDisk::InUse);
            }
            Action::Differs => self.tell_difference(std::mem::take(&mut at_hand.why)),
        }
        None
    }

    async fn build(&self, at_hand: &mut AtHand) -> Event {
        let bytes = at_hand.bytes.take().unwrap_or_default();
        match self.loader.load(bytes.expose()).await {
            Ok(new) => {
                at_hand.new = Some(new);
                Event::Built
            }
            Err(error) => {
                at_hand.why = error.to_string();
                Event::Refused
            }
        }
    }

    async fn check(&self, at_hand: &mut AtHand) -> Event {
        let Some(new) = &at_hand.new else { return Event::Unwell };
        let well = match self.plugins_well(new).await {
            Ok(()) => match &self.vet {
                Some(vet) => vet(new.transformers()).await,
                None => Ok(()),
            },
            unwell => unwell,
        };
        match well {
            Ok(()) => Event::Well,
            Err(error) => {
                at_hand.why = error;
                Event::Unwell
            }
        }
    }

    /// Asks until they are well or the time is over.
    async fn plugins_well(&self, new: &InUse) -> Result<(), String> {
        let (Some(check), Some(plugins)) = (new.plugins_check(), &new.plugins) else { return Ok(()) };
        let clock = self.loader.clock();
        let limit = health_limit(plugins.close_grace_period());
        let mut last = String::new();
        let asking = async {
            while let Err(error) = check.check().await {
                last = error;
                clock.sleep(HEALTH_POLL).await;
            }
        };
        tokio::select! {
            biased;
            () = asking => return Ok(()),
            () = clock.sleep(limit) => {}
        }
        Err(format!(
            "health check for new transformers failed, polling error context deadline exceeded: {last}"
        ))
    }

    fn replace(&self, new: InUse, closing: &mut JoinSet<()>) {
        let new = Arc::new(new);
        (self.swap)(new.transformers());
        tracing::info!(
            file = self.loader.file(),
            hash = new.hash(),
            "a new encryption configuration is in use"
        );
        let old = self.encryption.replace(new);
        let grace = old.plugins.as_ref().map(Plugins::close_grace_period).unwrap_or_default();
        let grace = self.loader.clock().sleep(grace);
        // Reads and writes that began before may still need its plugins.
        closing.spawn(async move {
            grace.await;
            drop(old);
        });
    }

    fn tell_difference(&self, why: String) {
        let file = self.loader.file();
        let reloaded = self.loader.reload() == Reload::Automatic;
        let why = if why.is_empty() { "the file was changed".to_owned() } else { why };
        let news = self.encryption.note_on_disk(OnDisk::Other { why: why.clone() });
        match (news, reloaded) {
            // The same failure once a minute, and more often before, is told once.
            (false, _) => tracing::debug!(file, error = why, "error processing encryption config file"),
            (true, true) => tracing::error!(file, error = why, "error processing encryption config file"),
            (true, false) => tracing::warn!(
                file,
                error = why,
                "the encryption configuration on disk is not the one that is in use, and is only read at the \
                 start: what is written now may be lost to a server that starts with the file"
            ),
        }
    }
}
