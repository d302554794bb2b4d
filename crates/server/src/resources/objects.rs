//! Stored objects as the server's own parts reach them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use coffer_store::registry::{Event, EventType, ListRequest, Predicate, ReadAt, Stored, WatchOptions};
use coffer_types::meta::Meta as _;
use coffer_types::{Status, Value};
use futures::stream::BoxStream;
use futures::{StreamExt as _, stream};

use super::Resource;
use tokio::sync::SetOnce;

use crate::handlers::options::{DeleteOptions, WriteOptions};
use crate::handlers::update::Change as Write;
use crate::handlers::write::{Scope, decoded};
use crate::handlers::{bind, create, delete, update};
use crate::ports::{
    Attributes, Change, Deletion, GroupResource, Interest, Objects, Propagation, ServedResource, UserInfo,
};
use crate::state::Server;

/// Name under which the server's own writes are recorded in managedFields.
const MANAGER: &str = "kube-apiserver";

/// Pause before a broken watch starts over.
const RESTART_PAUSE: Duration = Duration::from_millis(200);

/// [`Objects`] over the served resources; usable once the server exists.
pub(crate) struct StoredObjects(Arc<SetOnce<Arc<Server>>>);

impl Predicate for Interest {
    fn is_everything(&self) -> bool {
        !matches!(self, Self::Field(..))
    }

    fn matches(&self, stored: &Stored) -> bool {
        match self {
            Self::Whole | Self::Metadata => true,
            Self::Field(name, wanted) => stored.field(name) == Some(*wanted),
        }
    }
}

impl StoredObjects {
    pub(crate) fn new() -> Self {
        Self(Arc::new(SetOnce::new()))
    }

    /// Gives access to the server, once.
    pub(crate) fn connect(&self, server: Arc<Server>) {
        if self.0.set(server).is_err() {
            tracing::error!("the server was connected twice");
        }
    }

    fn server(&self) -> Result<&Arc<Server>, Status> {
        self.0.get().ok_or_else(|| Status::new(503, "ServiceUnavailable", "the server is starting"))
    }

    fn resource(&self, name: &GroupResource) -> Result<Arc<Resource>, Status> {
        let found = self.server()?.resources.preferred(name);
        found.ok_or_else(|| Status::not_found(&name.group, &name.resource, ""))
    }

    async fn list_at(
        &self,
        resource: &GroupResource,
        namespace: &str,
        at: ReadAt,
    ) -> Result<Vec<Value>, Status> {
        let resource = self.resource(resource)?;
        let page = resource.registry()?.list(everything(namespace, at)).await?;
        page.items.iter().map(|stored| resource.wire.read(stored)).collect()
    }
}

fn scope<'a>(
    server: &'a Server,
    resource: &'a Resource,
    verb: &str,
    namespace: &str,
    name: &str,
    subresource: &str,
) -> Scope<'a> {
    let info = &resource.info;
    let attributes = Attributes {
        user: UserInfo {
            name: "system:apiserver".to_owned(),
            groups: vec!["system:masters".to_owned()],
            ..UserInfo::default()
        },
        verb: verb.to_owned(),
        group: info.group.clone(),
        version: info.version.clone(),
        resource: info.plural.clone(),
        subresource: subresource.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        selected_node: String::new(),
        resource_request: true,
        path: String::new(),
    };
    Scope {
        tracks_fields: true,
        server,
        resource,
        attributes,
        namespace: if info.namespaced { namespace.to_owned() } else { String::new() },
        name: name.to_owned(),
        subresource: subresource.to_owned(),
        options: WriteOptions::default(),
        manager: MANAGER.to_owned(),
        admission: false,
        deadline: None,
        deletion: None,
        of_collection: false,
        warnings: Vec::new(),
    }
}

#[async_trait]
impl Objects for StoredObjects {
    async fn get(
        &self,
        resource: &GroupResource,
        namespace: &str,
        name: &str,
        live: bool,
    ) -> Result<Option<Value>, Status> {
        let resource = self.resource(resource)?;
        let at = if live { ReadAt::Latest } else { ReadAt::Any };
        match resource.registry()?.get(namespace, name, at).await {
            Ok(stored) => resource.wire.read(&stored).map(Some),
            Err(status) if status.code == 404 => Ok(None),
            Err(status) => Err(status),
        }
    }

    async fn field(
        &self,
        resource: &GroupResource,
        namespace: &str,
        name: &str,
        field: &'static str,
        live: bool,
    ) -> Result<Option<String>, Status> {
        let resource = self.resource(resource)?;
        let at = if live { ReadAt::Latest } else { ReadAt::Any };
        match resource.registry()?.get(namespace, name, at).await {
            Ok(stored) => Ok(Some(stored.field(field).unwrap_or_default().to_owned())),
            Err(status) if status.code == 404 => Ok(None),
            Err(status) => Err(status),
        }
    }

    async fn list(&self, resource: &GroupResource, namespace: &str) -> Result<Vec<Value>, Status> {
        self.list_at(resource, namespace, ReadAt::Latest).await
    }

    async fn cached(&self, resource: &GroupResource, namespace: &str) -> Result<Vec<Value>, Status> {
        self.list_at(resource, namespace, ReadAt::Any).await
    }

    async fn create(&self, resource: &GroupResource, mut object: Value) -> Result<Value, Status> {
        let resource = self.resource(resource)?;
        let namespace = object.namespace().to_owned();
        let server = self.server()?;
        let mut scope = scope(server, &resource, "create", &namespace, "", "");
        object.set_type(&resource.info.api_version(), &resource.info.kind);
        resource.strategy.default(&mut object);
        let output = create::run(&mut scope, object).await?;
        decoded(&resource, output)
    }

    async fn update(
        &self,
        resource: &GroupResource,
        subresource: &str,
        mut object: Value,
    ) -> Result<Value, Status> {
        let resource = self.resource(resource)?;
        let (namespace, name) = (object.namespace().to_owned(), object.name().to_owned());
        let mut scope = scope(self.server()?, &resource, "update", &namespace, &name, subresource);
        if subresource == "binding" {
            bind::run(&mut scope, object.clone()).await?;
            return Ok(object);
        }
        object.set_type(&resource.info.api_version(), &resource.info.kind);
        resource.strategy.default(&mut object);
        let done = update::run(&mut scope, &Write::Replace(object), false).await?;
        decoded(&resource, done.output)
    }

    async fn delete(
        &self,
        resource: &GroupResource,
        namespace: &str,
        name: &str,
        deletion: &Deletion,
    ) -> Result<(), Status> {
        let resource = self.resource(resource)?;
        let mut scope = scope(self.server()?, &resource, "delete", namespace, name, "");
        let policy = deletion.propagation.map(|propagation| {
            match propagation {
                Propagation::Background => "Background",
                Propagation::Foreground => "Foreground",
                Propagation::Orphan => "Orphan",
            }
            .to_owned()
        });
        let options = DeleteOptions {
            uid: deletion.uid.clone(),
            resource_version: deletion.resource_version.clone(),
            propagation_policy: policy,
            ..DeleteOptions::default()
        };
        delete::run(&mut scope, &options).await.map(drop)
    }

    fn watch(&self, resource: &GroupResource, interest: Interest) -> BoxStream<'static, Change> {
        let state =
            Watching { server: Arc::clone(&self.0), resource: resource.clone(), interest, open: None };
        stream::unfold(state, |mut state| async move {
            match state.next().await {
                Some(change) => Some((change, state)),
                // A follower that took the end for a broken watch would ask again without a pause.
                None => std::future::pending().await,
            }
        })
        .boxed()
    }

    fn served(&self) -> Arc<[ServedResource]> {
        self.server().map(|server| server.resources.load().collected()).unwrap_or_default()
    }
}

fn everything(namespace: &str, at: ReadAt) -> ListRequest {
    ListRequest {
        namespace: namespace.to_owned(),
        name: None,
        at,
        limit: 0,
        continue_token: String::new(),
        predicate: Arc::new(Interest::Whole),
    }
}

/// A watch that starts over whenever it breaks.
struct Watching {
    server: Arc<SetOnce<Arc<Server>>>,
    resource: GroupResource,
    interest: Interest,
    open: Option<(Arc<Resource>, coffer_store::registry::EventStream)>,
}

impl Watching {
    async fn next(&mut self) -> Option<Change> {
        loop {
            // Before the server exists there is nothing to watch.
            let server = self.server.wait().await.clone();
            if server.stop.is_cancelled() {
                return None;
            }
            let Some((resource, events)) = &mut self.open else {
                if let Some(reset) = self.start(&server).await {
                    return Some(reset);
                }
                tokio::select! {
                    () = server.clock.sleep(RESTART_PAUSE) => {}
                    () = server.stop.cancelled() => return None,
                }
                continue;
            };
            let event = tokio::select! {
                event = events.next() => event,
                () = server.stop.cancelled() => return None,
            };
            match event {
                Some(Ok(event)) => {
                    if let Some(change) = change(resource, self.interest, &event) {
                        return Some(change);
                    }
                }
                Some(Err(_)) | None => self.open = None,
            }
        }
    }

    /// Lists and watches from there.
    async fn start(&mut self, server: &Server) -> Option<Change> {
        let resource = server.resources.preferred(&self.resource)?;
        let registry = resource.registry().ok()?;
        let predicate: Arc<dyn Predicate> = Arc::new(self.interest);
        let wanted = ListRequest { predicate: Arc::clone(&predicate), ..everything("", ReadAt::Any) };
        let page = registry.list(wanted).await.ok()?;
        let events = registry
            .watch(WatchOptions {
                namespace: String::new(),
                name: None,
                from: Some(page.revision),
                send_initial_events: None,
                bookmarks: false,
                timeout: None,
                predicate,
            })
            .await
            .ok()?;
        let objects =
            page.items.iter().filter_map(|stored| read(&resource, self.interest, stored).ok()).collect();
        self.open = Some((resource, events));
        Some(Change::Reset(objects))
    }
}

fn read(resource: &Resource, interest: Interest, stored: &Stored) -> Result<Value, Status> {
    match interest {
        Interest::Metadata => resource.wire.metadata(stored),
        Interest::Whole | Interest::Field(..) => resource.wire.read(stored),
    }
}

fn change(resource: &Resource, interest: Interest, event: &Event) -> Option<Change> {
    let stored = event.object.as_ref()?;
    let object = match read(resource, interest, stored) {
        Ok(object) => Box::new(object),
        Err(status) => {
            tracing::warn!(resource = resource.info.plural, name = stored.name, error = %status, "unreadable object");
            return None;
        }
    };
    match event.event_type {
        EventType::Added | EventType::Modified => Some(Change::Applied(object)),
        EventType::Deleted => Some(Change::Deleted(object)),
        EventType::Bookmark => None,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use coffer_store::registry::{Attributes as Selected, Findings};

    use super::*;

    /// Of Secrets, those of another type are not even decoded for who wants token Secrets.
    #[test]
    fn a_follower_is_told_of_what_it_is_interested_in() {
        let of_type = |kind: &str| Stored {
            namespace: "ns".to_owned(),
            name: "a".to_owned(),
            revision: 1,
            bytes: Bytes::new(),
            attributes: Selected { fields: vec![("type", kind.to_owned())], ..Selected::default() },
            findings: Findings::default(),
        };
        for (interest, kind, wanted) in [
            (Interest::Whole, "Opaque", true),
            (Interest::Metadata, "Opaque", true),
            (Interest::Field("type", "token"), "token", true),
            (Interest::Field("type", "token"), "Opaque", false),
            (Interest::Field("metadata.name", "a"), "Opaque", true),
            (Interest::Field("no.such", "a"), "Opaque", false),
        ] {
            assert_eq!(interest.matches(&of_type(kind)), wanted, "{interest:?} {kind}");
            assert!(!interest.is_everything() || wanted, "{interest:?}");
        }
    }
}
