//! The shape of the tables that describe every built-in kind, and how a kind is found.
//!
//! The tables themselves are data, generated from what k8s.io/api publishes
//! (`peers/go/schema`).

use std::fmt;

// One line per field reads better than what rustfmt makes of it.
#[rustfmt::skip]
mod generated;

/// The tables of a kind, or `None` for a kind that is not built in.
pub fn lookup(group: &str, version: &str, kind: &str) -> Option<&'static Kind> {
    let key = (group, version, kind);
    let kinds = generated::KINDS;
    let index = kinds.binary_search_by(|one| (one.group, one.version, one.kind).cmp(&key)).ok()?;
    Some(&kinds[index])
}

/// Every kind, ordered by group, version and kind.
pub fn kinds() -> &'static [Kind] {
    generated::KINDS
}

/// One kind that is spoken: its name, its message, and how it is stored.
#[derive(Debug)]
pub struct Kind {
    /// API group; "" is the core group.
    pub group: &'static str,
    /// Version, such as `v1`.
    pub version: &'static str,
    /// Kind, such as `Secret`.
    pub kind: &'static str,
    /// The message that the object's fields are in.
    pub message: &'static Message,
}

impl Kind {
    /// The message of the items, if this is a kind of list.
    pub fn item(&self) -> Option<&'static Message> {
        match self.message.field("items")?.shape {
            Shape::List(Type::Message(item)) => Some(item),
            _ => None,
        }
    }

    /// `v1` for the core group, else `group/version`.
    pub fn api_version(&self) -> String {
        crate::meta::api_version(self.group, self.version)
    }
}

/// One struct: its fields in Go's declaration order, which is JSON's order.
pub struct Message {
    /// Go's name, such as `k8s.io/api/core/v1.Secret`.
    pub name: &'static str,
    /// `structType=atomic` on the type: field management owns the whole wherever it is used.
    pub atomic: bool,
    /// The fields, in the order in which JSON prints them.
    pub fields: &'static [Field],
    /// Positions in `fields` in ascending order of field numbers: protobuf's order.
    pub wire: &'static [u8],
}

impl Message {
    /// The field of that name in JSON, those of inlined structs included.
    pub fn field(&self, json: &str) -> Option<&'static Field> {
        self.fields.iter().find_map(|field| match field.inlined() {
            Some(message) => message.field(json),
            None => (field.json == json).then_some(field),
        })
    }

    /// The position in `fields` of the field with that number.
    pub fn numbered(&self, number: u32) -> Option<usize> {
        let found = self.wire.binary_search_by_key(&number, |&index| self.fields[usize::from(index)].number);
        found.ok().map(|position| usize::from(self.wire[position]))
    }

    /// Go's name without the package: `Secret`.
    pub fn go_name(&self) -> &'static str {
        self.name.rsplit('.').next().unwrap_or(self.name)
    }
}

impl fmt::Debug for Message {
    // Messages contain themselves (JSONSchemaProps), so only the name is printed.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

/// One field of a struct.
#[derive(Debug)]
pub struct Field {
    /// Name in JSON; "" for an inlined struct.
    pub json: &'static str,
    /// Field number in protobuf; 0 for a field that only JSON has (`kind`, `apiVersion`).
    pub number: u32,
    /// What the field holds.
    pub shape: Shape,
    /// Go's type, pointers left out, as Go's JSON errors print it.
    pub go: &'static str,
    /// Whether absence and the zero value differ (a Go pointer).
    pub optional: bool,
    /// Whether JSON leaves the zero value out (`omitempty` where Go heeds it, or `omitzero`).
    pub omit_empty: bool,
    /// Whether OpenAPI documents call it required.
    pub required: bool,
    /// The values that it or its items can have, if those are named.
    pub values: &'static [&'static str],
    /// How patches and field management treat the field.
    pub patch: Patch,
}

impl Field {
    /// The struct whose fields JSON shows in place of this one, if it is inlined.
    pub fn inlined(&self) -> Option<&'static Message> {
        match self.shape {
            Shape::One(Type::Message(message)) if self.json.is_empty() => Some(message),
            _ => None,
        }
    }
}

/// What a field holds.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// One value.
    One(Type),
    /// A list.
    List(Type),
    /// A map from text.
    Map(Type),
}

/// The type of one value.
#[derive(Debug, Clone, Copy)]
pub enum Type {
    /// Text.
    String,
    /// Binary data, base64 in JSON.
    Bytes,
    /// 32-bit whole number.
    Int32,
    /// 64-bit whole number.
    Int64,
    /// Floating point number.
    Double,
    /// Boolean.
    Bool,
    /// `metav1.Time`: seconds and nanos in protobuf, RFC 3339 in JSON.
    Time,
    /// `metav1.MicroTime`.
    MicroTime,
    /// `intstr.IntOrString`.
    IntOrString,
    /// `resource.Quantity`: a message with one text in protobuf, text in JSON.
    Quantity,
    /// `metav1.FieldsV1`: JSON inside, whose keys are ordered as field management orders them.
    FieldsV1,
    /// apiextensions' `JSON`: any JSON inside.
    RawJson,
    /// `runtime.RawExtension`: an embedded object.
    RawExtension,
    /// A list of text inside a message (`ExtraValue` and the like): `items` is field 1.
    StringList,
    /// Any JSON, in fields that protobuf does not have.
    Any,
    /// A message or something simpler (apiextensions' `JSONSchemaPropsOr…`).
    Either(Union, &'static Message),
    /// Another message.
    Message(&'static Message),
}

/// What may stand in place of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Union {
    /// A boolean.
    Bool,
    /// A list of the messages.
    List,
    /// A list of text.
    Strings,
}

/// How patches and field management treat a field.
#[derive(Debug, Clone, Copy, Default)]
pub struct Patch {
    /// Strategic merge patch merges the list or map instead of replacing it.
    pub merge: bool,
    /// Strategic merge patch keeps only the keys named by `$retainKeys`.
    pub retain_keys: bool,
    /// The key by which strategic merge patch pairs the items; "" for primitives.
    pub merge_key: &'static str,
    /// `listType`, as field management sees it.
    pub list: ListType,
    /// Whether a `listType` is marked; lists without a mark are atomic, too.
    pub listed: bool,
    /// Keys of a list of type map.
    pub list_keys: &'static [&'static str],
    /// `mapType`/`structType` atomic: field management owns the whole.
    pub atomic: bool,
    /// The default of the field's marker as JSON, or "": what a key field is when it is absent.
    pub default: &'static str,
}

impl Patch {
    /// No mark at all.
    pub const NONE: Self = Self {
        merge: false,
        retain_keys: false,
        merge_key: "",
        list: ListType::Atomic,
        listed: false,
        list_keys: &[],
        atomic: false,
        default: "",
    };
}

/// `x-kubernetes-list-type`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ListType {
    /// Owned as a whole; also what an unmarked list is.
    #[default]
    Atomic,
    /// A set of scalars.
    Set,
    /// A map keyed by `list_keys`.
    Map,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_found_and_ordered() {
        assert!(kinds().is_sorted_by_key(|kind| (kind.group, kind.version, kind.kind)));
        let secret = lookup("", "v1", "Secret").expect("built in");
        assert_eq!(secret.message.go_name(), "Secret");
        assert_eq!(secret.message.field("data").map(|field| field.number), Some(2));
        assert!(lookup("", "v2", "Secret").is_none());
        let list = lookup("", "v1", "SecretList").and_then(Kind::item).expect("a list");
        assert!(std::ptr::eq(list, secret.message));
    }

    #[test]
    fn inlined_fields_are_found() {
        let volume = lookup("", "v1", "Pod")
            .and_then(|pod| match pod.message.field("spec")?.shape {
                Shape::One(Type::Message(spec)) => spec.field("volumes"),
                _ => None,
            })
            .expect("pods have volumes");
        assert_eq!(volume.patch.merge_key, "name");
        assert!(volume.patch.retain_keys);
        let Shape::List(Type::Message(volume)) = volume.shape else { panic!("a list of messages") };
        assert_eq!(volume.field("secret").map(|field| field.number), Some(6));
    }
}
