//! Core v1 events about objects.
//!
//! A repeated event raises the count of the one before instead of making a new
//! one; an object that is loud is cut off, as client-go does. Recording never
//! waits and never fails the work that it tells about: when the API server is
//! slower than the events come, they are dropped.
//! Absent (thin): client-go's grouping of events that differ in the message only.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use coffer_types::time::{Clock, rfc3339};
use serde_json::{Value as Json, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::api::{Api, EVENTS, ObjectKey};

/// Events that may wait for the API server.
const BACKLOG: usize = 1024;
/// Remembered events; more are forgotten all at once, which only costs counts.
const REMEMBERED: usize = 4096;
/// How long an event is counted up instead of made anew (client-go's correlator).
const AGGREGATION: Duration = Duration::from_secs(600);
/// Events of one object that may come at once, and the time in which one more is earned (client-go's filter).
const SPAM_BURST: f64 = 25.0;
const SPAM_REFILL: Duration = Duration::from_secs(300);
/// The longest message that the API server takes.
const MESSAGE_LIMIT: usize = 1024;

/// What an event is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Reference {
    /// `v1` or `group/version`.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace, or "".
    pub namespace: String,
    /// Name.
    pub name: String,
    /// UID.
    pub uid: String,
    /// resourceVersion.
    pub resource_version: String,
}

/// How serious.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Severity {
    /// All is well.
    Normal,
    /// Somebody should look.
    Warning,
}

/// One event.
#[derive(Debug, Clone)]
struct Note {
    about: Reference,
    severity: Severity,
    reason: String,
    message: String,
    source: &'static str,
}

/// Takes events from anywhere; cheap to clone.
#[derive(Clone)]
pub struct Recorder {
    source: &'static str,
    notes: mpsc::Sender<Note>,
}

/// Writes what recorders take.
pub struct Writer {
    notes: mpsc::Receiver<Note>,
    api: Api,
    clock: Arc<dyn Clock>,
    memory: Memory,
}

/// A recorder whose events come from `source`, and what writes them.
pub fn channel(source: &'static str, api: Api, clock: Arc<dyn Clock>) -> (Recorder, Writer) {
    let (sender, notes) = mpsc::channel(BACKLOG);
    (Recorder { source, notes: sender }, Writer { notes, api, clock, memory: Memory::default() })
}

impl Recorder {
    /// The same, as another source.
    pub fn with_source(&self, source: &'static str) -> Self {
        Self { source, notes: self.notes.clone() }
    }

    /// Records an event. `message` must not hold secret bytes.
    pub fn record(&self, about: &Reference, severity: Severity, reason: &str, message: impl Into<String>) {
        let note = Note {
            about: about.clone(),
            severity,
            reason: reason.to_owned(),
            message: message.into(),
            source: self.source,
        };
        if self.notes.try_send(note).is_err() {
            tracing::debug!(reason, "an event was dropped: too many wait");
        }
    }
}

impl Writer {
    /// Writes until every recorder is gone or `stop`.
    pub async fn run(mut self, stop: CancellationToken) {
        loop {
            let note = tokio::select! {
                () = stop.cancelled() => return,
                note = self.notes.recv() => note,
            };
            let Some(note) = note else { return };
            let write = self.write(note);
            tokio::select! {
                () = stop.cancelled() => return,
                () = write => {}
            }
        }
    }

    async fn write(&mut self, note: Note) {
        let (now, wall) = (self.clock.monotonic(), self.clock.now());
        let time = rfc3339(wall);
        let result = match self.memory.decide(&note, now) {
            Decision::Drop => return,
            Decision::Count { name, count } => {
                let key = ObjectKey::new(namespace(&note.about), name);
                let body = json!({"count": count, "lastTimestamp": time});
                match self.api.merge_patch::<serde::de::IgnoredAny>(&EVENTS, &key, "", &body, "").await {
                    // The event has expired: it is made anew.
                    Err(error) if error.is_not_found() => {
                        self.create(&note, wall.as_nanosecond(), count, &time).await
                    }
                    result => result.map(|_| ()),
                }
            }
            Decision::Create => self.create(&note, wall.as_nanosecond(), 1, &time).await,
        };
        if let Err(error) = result {
            tracing::debug!(reason = note.reason, code = error.code, "an event could not be written");
        }
    }

    async fn create(
        &mut self,
        note: &Note,
        nanos: i128,
        count: u32,
        time: &str,
    ) -> Result<(), crate::api::ApiError> {
        let name = format!("{}.{nanos:x}", note.about.name);
        let key = ObjectKey::new(namespace(&note.about), &name);
        let body = event(note, &key, count, time);
        self.api.create::<serde::de::IgnoredAny>(&EVENTS, &key, "", &body, "").await?;
        self.memory.made(note, name, self.clock.monotonic());
        Ok(())
    }
}

fn namespace(about: &Reference) -> &str {
    if about.namespace.is_empty() { "default" } else { &about.namespace }
}

fn event(note: &Note, key: &ObjectKey, count: u32, time: &str) -> Json {
    let about = &note.about;
    let mut message = note.message.as_str();
    if MESSAGE_LIMIT < message.len() {
        let mut end = MESSAGE_LIMIT;
        while !message.is_char_boundary(end) {
            end -= 1;
        }
        message = &message[..end];
    }
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": key.name, "namespace": key.namespace},
        "involvedObject": {
            "apiVersion": about.api_version,
            "kind": about.kind,
            "namespace": about.namespace,
            "name": about.name,
            "uid": about.uid,
            "resourceVersion": about.resource_version,
        },
        "reason": note.reason,
        "message": message,
        "type": match note.severity { Severity::Normal => "Normal", Severity::Warning => "Warning" },
        "source": {"component": note.source},
        "reportingComponent": note.source,
        "reportingInstance": "",
        "firstTimestamp": time,
        "lastTimestamp": time,
        "count": count,
    })
}

#[derive(Debug, PartialEq, Eq)]
enum Decision {
    Create,
    Count { name: String, count: u32 },
    Drop,
}

/// What was written before, by content; and how loud each object was.
#[derive(Debug, Default)]
struct Memory {
    events: HashMap<(String, String, String, Severity), Made>,
    objects: HashMap<(String, &'static str), (f64, Duration)>,
}

#[derive(Debug)]
struct Made {
    name: String,
    count: u32,
    at: Duration,
}

impl Memory {
    fn decide(&mut self, note: &Note, now: Duration) -> Decision {
        if REMEMBERED < self.objects.len() {
            self.objects.clear();
        }
        let (tokens, at) =
            self.objects.entry((identity(&note.about), note.source)).or_insert((SPAM_BURST, now));
        let earned = now.saturating_sub(*at).as_secs_f64() / SPAM_REFILL.as_secs_f64();
        *tokens = (*tokens + earned).min(SPAM_BURST);
        *at = now;
        if *tokens < 1.0 {
            return Decision::Drop;
        }
        *tokens -= 1.0;
        match self.events.get_mut(&content(note)) {
            Some(made) if now.saturating_sub(made.at) < AGGREGATION => {
                made.count += 1;
                made.at = now;
                Decision::Count { name: made.name.clone(), count: made.count }
            }
            _ => Decision::Create,
        }
    }

    fn made(&mut self, note: &Note, name: String, now: Duration) {
        if REMEMBERED < self.events.len() {
            self.events.clear();
        }
        self.events.insert(content(note), Made { name, count: 1, at: now });
    }
}

fn identity(about: &Reference) -> String {
    format!("{}/{}/{}/{}", about.kind, about.namespace, about.name, about.uid)
}

fn content(note: &Note) -> (String, String, String, Severity) {
    (identity(&note.about), note.reason.clone(), note.message.clone(), note.severity)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(name: &str, message: &str) -> Note {
        let about = Reference { name: name.to_owned(), ..Reference::default() };
        let (severity, reason) = (Severity::Normal, "Updated".to_owned());
        Note { about, severity, reason, message: message.to_owned(), source: "test" }
    }

    #[test]
    fn a_repeated_event_is_counted() {
        let mut memory = Memory::default();
        let at = Duration::from_secs;
        assert_eq!(memory.decide(&note("a", "x"), at(0)), Decision::Create);
        memory.made(&note("a", "x"), "a.1".to_owned(), at(0));
        let counted = |count| Decision::Count { name: "a.1".to_owned(), count };
        assert_eq!(memory.decide(&note("a", "x"), at(10)), counted(2));
        assert_eq!(memory.decide(&note("a", "x"), at(599)), counted(3));
        assert_eq!(memory.decide(&note("a", "y"), at(600)), Decision::Create, "another message");
        assert_eq!(memory.decide(&note("b", "x"), at(600)), Decision::Create, "another object");
        assert_eq!(memory.decide(&note("a", "x"), at(1199)), Decision::Create, "too long ago");
    }

    #[test]
    fn a_loud_object_is_cut_off() {
        let mut memory = Memory::default();
        let decide = |memory: &mut Memory, seconds: u64| {
            memory.decide(&note("a", &seconds.to_string()), Duration::from_secs(seconds)) != Decision::Drop
        };
        let passed = (0..30).filter(|second| decide(&mut memory, *second)).count();
        assert_eq!(passed, 25);
        assert!(decide(&mut memory, 400), "one more is earned in five minutes");
        assert!(!decide(&mut memory, 401));
        assert_ne!(
            memory.decide(&note("b", "x"), Duration::from_secs(401)),
            Decision::Drop,
            "another object"
        );
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let long = "ä".repeat(600);
        let event = event(&note("a", &long), &ObjectKey::new("ns", "a.1"), 1, "now");
        assert_eq!(event["message"].as_str().unwrap().len(), 1024);
        let cut = super::event(&note("a", &format!("x{long}")), &ObjectKey::new("ns", "a.1"), 1, "now");
        assert_eq!(cut["message"].as_str().unwrap().len(), 1023);
    }
}
