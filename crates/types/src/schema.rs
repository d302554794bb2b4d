//! The shape of the tables that describe every built-in kind.
//!
//! The tables themselves are data, generated from what k8s.io/api publishes.

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

/// One struct: its fields in Go's declaration order, which is JSON's order.
#[derive(Debug)]
pub struct Message {
    /// Go's name, such as `k8s.io/api/core/v1.Secret`.
    pub name: &'static str,
    /// The fields, in the order in which JSON prints them.
    pub fields: &'static [Field],
}

/// One field of a struct.
#[derive(Debug)]
pub struct Field {
    /// Name in JSON; "" for an inlined struct.
    pub json: &'static str,
    /// Field number in protobuf.
    pub number: u32,
    /// What the field holds.
    pub shape: Shape,
    /// Whether absence and the zero value differ (a Go pointer).
    pub optional: bool,
    /// Whether JSON leaves the zero value out (`omitempty` or `omitzero`).
    pub omit_empty: bool,
    /// How patches and field management treat the field.
    pub patch: Patch,
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
    /// `metav1.Duration`: nanoseconds in protobuf, `1h2m3s` in JSON.
    Duration,
    /// `intstr.IntOrString`.
    IntOrString,
    /// `resource.Quantity`: a message with one text in protobuf, text in JSON.
    Quantity,
    /// Raw JSON inside: `metav1.FieldsV1` and apiextensions' `JSON`.
    RawJson,
    /// `runtime.RawExtension`: an embedded object.
    RawExtension,
    /// A list of text inside a message (`ExtraValue` and the like): `items` is field 1.
    StringList,
    /// Another message.
    Message(fn() -> &'static Message),
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
    /// Keys of a list of type map.
    pub list_keys: &'static [&'static str],
    /// `mapType`/`structType` atomic: field management owns the whole.
    pub atomic: bool,
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
