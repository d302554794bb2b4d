//! Create, update and delete: transactions on the key's revision, repeated until one wins.

use std::borrow::Cow;
use std::sync::Arc;

use coffer_types::meta::Meta;
use coffer_types::{SecretBytes, Status, Value};

use super::error::from_kv;
use super::objects::Opened;
use super::range::read_key;
use super::store::Store;
use super::{Current, DeleteCheck, Preconditions, Stored, Updater};
use crate::key::ObjectKey;
use crate::kv::{Compare, KeyValue, Op, OpResponse, RangeRequest, Revision, Txn, TxnResponse};
use crate::statistics::Operation;

/// What an operation believes to be stored.
struct State {
    /// `None` when nothing is.
    stored: Option<Arc<Stored>>,
    /// Whether a write would encrypt it differently; unknown, and so `false`, for a suggestion.
    stale: bool,
    /// Whether it was read from the store, rather than suggested by the cache.
    confirmed: bool,
}

impl State {
    fn revision(&self) -> Revision {
        self.stored.as_ref().map_or(0, |stored| stored.revision)
    }
}

/// How a transaction on one key went.
enum Outcome {
    /// It won, at this revision.
    Done(Revision),
    /// The key had another revision: this is there instead.
    Lost(Option<KeyValue>),
}

impl Store {
    pub(super) async fn create_object(
        &self,
        namespace: &str,
        name: &str,
        object: &Value,
        ttl_seconds: u64,
    ) -> Result<Arc<Stored>, Status> {
        if !matches!(object.resource_version(), "" | "0") {
            return Err(Status::plain("resourceVersion should not be set on objects to be created"));
        }
        let key = self.key(namespace, name)?;
        let plain = self.objects.encode(Cow::Borrowed(object))?;
        let lease = self.lease_for(ttl_seconds).await?;
        let txn = Txn {
            compare: vec![Compare::ModRevision(key.bytes(), 0)],
            success: vec![Op::Put { key: key.bytes(), value: self.objects.seal(&key, &plain)?, lease }],
            failure: Vec::new(),
        };
        let answer = self.request(Operation::Create, self.shared.kv.txn(txn));
        match answer.await.map_err(from_kv)? {
            TxnResponse { succeeded: true, revision, .. } => self.written(&key, plain, revision),
            _ => Err(self.already_exists(&key, name).await),
        }
    }

    pub(super) async fn update_object(
        &self,
        namespace: &str,
        name: &str,
        preconditions: &Preconditions,
        create_missing: bool,
        updater: &mut dyn Updater,
    ) -> Result<Arc<Stored>, Status> {
        let key = self.key(namespace, name)?;
        let mut state = match self.suggestion(&key) {
            Some(state) => state,
            None => self.read(&key).await?,
        };
        loop {
            if state.stored.is_none() && !create_missing {
                return Err(self.objects.resource.not_found(name));
            }
            let object = self.decode_state(&state)?;
            let object = match self.check(&key, name, preconditions, object.as_ref()) {
                Ok(()) => updater.update(Current { object, revision: state.revision() }).await,
                Err(error) => Err(error),
            };
            let object = match object {
                Ok(object) => object,
                Err(error) if state.confirmed => return Err(error),
                // The refusal may be due to an object that is not there any more.
                Err(error) => match self.confirm(&key, &state).await? {
                    None => return Err(error),
                    Some(fresh) => {
                        state = fresh;
                        continue;
                    }
                },
            };
            let plain = self.objects.encode(Cow::Owned(object))?;
            if !state.stale && is_same(&state, &plain) {
                if !state.confirmed {
                    state = self.read(&key).await?;
                    if !is_same(&state, &plain) {
                        continue;
                    }
                }
                // Nothing to write, unless the encryption is not what it should be.
                if let (false, Some(stored)) = (state.stale, &state.stored) {
                    return Ok(stored.clone());
                }
            }
            let put = Op::Put {
                key: key.bytes(),
                value: self.objects.seal(&key, &plain)?,
                lease: self.lease_for(0).await?,
            };
            match self.compare_and(&key, state.revision(), put).await? {
                Outcome::Done(revision) => return self.written(&key, plain, revision),
                Outcome::Lost(kv) => state = self.state_of(kv)?,
            }
        }
    }

    pub(super) async fn delete_object(
        &self,
        namespace: &str,
        name: &str,
        preconditions: &Preconditions,
        check: &mut dyn DeleteCheck,
    ) -> Result<Arc<Stored>, Status> {
        let key = self.key(namespace, name)?;
        let mut state = match self.suggestion(&key) {
            Some(state) => state,
            None => self.read(&key).await?,
        };
        loop {
            let Some(stored) = state.stored.clone() else {
                return Err(self.objects.resource.not_found(name));
            };
            let object = self.objects.decode(&stored).map_err(|error| error.on_write())?;
            let allowed = match self.check(&key, name, preconditions, Some(&object)) {
                Ok(()) => check.check(&object).await,
                Err(error) => Err(error),
            };
            if let Err(error) = allowed {
                if state.confirmed {
                    return Err(error);
                }
                match self.confirm(&key, &state).await? {
                    None => return Err(error),
                    Some(fresh) => {
                        state = fresh;
                        continue;
                    }
                }
            }
            match self.compare_and(&key, stored.revision, Op::Delete { key: key.bytes() }).await? {
                Outcome::Done(revision) => {
                    return Ok(stored.at_revision(revision));
                }
                Outcome::Lost(kv) => state = self.state_of(kv)?,
            }
        }
    }

    pub(super) async fn delete_unreadable_object(
        &self,
        namespace: &str,
        name: &str,
        dry_run: bool,
    ) -> Result<(), Status> {
        let key = self.key(namespace, name)?;
        let (mut kv, _) = read_key(&self.shared, &self.objects, key.bytes(), 0).await.map_err(from_kv)?;
        loop {
            let present = kv.ok_or_else(|| self.objects.resource.not_found(name))?;
            let readable =
                self.objects.open(&present).is_ok_and(|opened| self.objects.decode(&opened.stored).is_ok());
            if readable {
                return Err(self.objects.resource.invalid_object(
                    name,
                    &key,
                    "unsafe deletion is not allowed because the object is decodable from storage".to_owned(),
                ));
            }
            if dry_run {
                return Ok(());
            }
            let delete = Op::Delete { key: key.bytes() };
            match self.compare_and(&key, present.mod_revision, delete).await? {
                Outcome::Done(_) => return Ok(()),
                Outcome::Lost(now) => kv = now,
            }
        }
    }

    /// What the cache has: saves the read when it is right, and is found out when it is not.
    fn suggestion(&self, key: &ObjectKey) -> Option<State> {
        let stored = self.cache.peek(key.tail())?;
        Some(State { stored: Some(stored), stale: false, confirmed: false })
    }

    async fn read(&self, key: &ObjectKey) -> Result<State, Status> {
        let (kv, _) = read_key(&self.shared, &self.objects, key.bytes(), 0).await.map_err(from_kv)?;
        self.state_of(kv)
    }

    /// Reads what a suggestion stands for; `None` when it was right.
    async fn confirm(&self, key: &ObjectKey, suggested: &State) -> Result<Option<State>, Status> {
        let fresh = self.read(key).await?;
        Ok((fresh.revision() != suggested.revision()).then_some(fresh))
    }

    fn state_of(&self, kv: Option<KeyValue>) -> Result<State, Status> {
        let Some(kv) = kv else { return Ok(State { stored: None, stale: false, confirmed: true }) };
        let Opened { stored, stale } = self.objects.open(&kv).map_err(|error| error.on_write())?;
        Ok(State { stored: Some(stored), stale, confirmed: true })
    }

    fn decode_state(&self, state: &State) -> Result<Option<Value>, Status> {
        let decode = |stored: &Arc<Stored>| self.objects.decode(stored).map_err(|error| error.on_write());
        state.stored.as_ref().map(decode).transpose()
    }

    fn check(
        &self,
        key: &ObjectKey,
        name: &str,
        preconditions: &Preconditions,
        object: Option<&Value>,
    ) -> Result<(), Status> {
        // An object that does not exist yet has neither.
        let (uid, revision) = object.map_or(("", ""), |object| (object.uid(), object.resource_version()));
        let fields = [
            ("UID", &preconditions.uid, uid),
            ("ResourceVersion", &preconditions.resource_version, revision),
        ];
        for (field, wanted, present) in fields {
            if let Some(wanted) = wanted
                && wanted != present
            {
                let message = format!(
                    "Precondition failed: {field} in precondition: {wanted}, {field} in object meta: {present}"
                );
                return Err(self.objects.resource.invalid_object(name, key, message));
            }
        }
        Ok(())
    }

    /// Does `op` if the key's last change was at `revision`; reads the key otherwise.
    async fn compare_and(&self, key: &ObjectKey, revision: Revision, op: Op) -> Result<Outcome, Status> {
        let operation = if matches!(op, Op::Delete { .. }) { Operation::Delete } else { Operation::Update };
        let txn = Txn {
            compare: vec![Compare::ModRevision(key.bytes(), revision)],
            success: vec![op],
            failure: vec![Op::Range(RangeRequest {
                start: key.bytes(),
                limit: 1,
                ..RangeRequest::default()
            })],
        };
        let answer = self.request(operation, self.shared.kv.txn(txn));
        let response = answer.await.map_err(from_kv)?;
        if response.succeeded {
            return Ok(Outcome::Done(response.revision));
        }
        match response.responses.into_iter().next() {
            Some(OpResponse::Range(range)) => Ok(Outcome::Lost(range.items.into_iter().next())),
            _ => Err(Status::internal("the store answered a read with something else")),
        }
    }

    fn written(
        &self,
        key: &ObjectKey,
        plain: SecretBytes,
        revision: Revision,
    ) -> Result<Arc<Stored>, Status> {
        self.objects.stored(key.context(), plain, revision).map_err(|error| error.on_write())
    }

    async fn already_exists(&self, key: &ObjectKey, name: &str) -> Status {
        let mut status = self.objects.resource.already_exists(name);
        let terminating = match self.read(key).await.and_then(|state| self.decode_state(&state)) {
            Ok(object) => object.is_some_and(|object| object.deletion_timestamp().is_some()),
            // It exists, whatever it is.
            Err(_) => false,
        };
        if terminating {
            status.message = format!("object is being deleted: {}", status.message);
        }
        status
    }
}

fn is_same(state: &State, plain: &SecretBytes) -> bool {
    state.stored.as_ref().is_some_and(|stored| stored.bytes == plain.expose())
}
