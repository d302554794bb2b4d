//! Protobuf without any schema: what is sent is put together by hand, and what comes is told apart by its
//! wire format alone, so that a fault in Coffer's own tables cannot hide itself.

/// One field of a message that is sent.
pub(super) enum Field<'a> {
    Text(u32, &'a str),
    Number(u32, u64),
    Message(u32, Vec<u8>),
}

/// The bytes of a message.
pub(super) fn message(fields: &[Field<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for field in fields {
        match field {
            Field::Text(number, text) => block(&mut bytes, *number, text.as_bytes()),
            Field::Message(number, content) => block(&mut bytes, *number, content),
            Field::Number(number, value) => {
                varint(&mut bytes, u64::from(*number) << 3);
                varint(&mut bytes, *value);
            }
        }
    }
    bytes
}

/// An object as Kubernetes wraps it.
pub(super) fn envelope(api_version: &str, kind: &str, object: Vec<u8>) -> Vec<u8> {
    let kind = message(&[Field::Text(1, api_version), Field::Text(2, kind)]);
    let mut bytes = b"k8s\0".to_vec();
    bytes.extend(message(&[Field::Message(1, kind), Field::Message(2, object)]));
    bytes
}

/// An object that has a name, and more fields.
pub(super) fn named(api_version: &str, kind: &str, name: &str, more: &[Field<'_>]) -> Vec<u8> {
    // ObjectMeta.name is 1.
    let mut object = message(&[Field::Message(1, message(&[Field::Text(1, name)]))]);
    object.extend(message(more));
    envelope(api_version, kind, object)
}

fn block(bytes: &mut Vec<u8>, number: u32, content: &[u8]) {
    varint(bytes, u64::from(number) << 3 | 2);
    varint(bytes, content.len() as u64);
    bytes.extend(content);
}

fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// The content of one object as lines, or `None` when it is not one.
pub(super) fn dump(bytes: &[u8]) -> Option<String> {
    let mut text = "k8s\n".to_owned();
    lines(bytes.strip_prefix(b"k8s\0")?, 1, &mut text)?;
    Some(text)
}

/// The content of the frames of a watch.
pub(super) fn dump_frames(mut bytes: &[u8]) -> Option<Vec<String>> {
    let mut frames = Vec::new();
    while !bytes.is_empty() {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let (frame, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        let mut text = String::new();
        lines(frame, 0, &mut text)?;
        frames.push(text);
        bytes = rest;
    }
    Some(frames)
}

fn lines(mut bytes: &[u8], depth: usize, text: &mut String) -> Option<()> {
    while !bytes.is_empty() {
        let tag = read_varint(&mut bytes)?;
        let number = tag >> 3;
        let start = format!("{}{number}", "  ".repeat(depth));
        match tag & 7 {
            0 => {
                let value = read_varint(&mut bytes)?;
                // The seconds of a time of today.
                let today = (1_767_225_600..4_102_444_800).contains(&value);
                let shown = if today { "SECONDS".to_owned() } else { value.to_string() };
                *text += &format!("{start}: {shown}\n");
            }
            2 => {
                let length = usize::try_from(read_varint(&mut bytes)?).ok()?;
                let (content, rest) = bytes.split_at_checked(length)?;
                bytes = rest;
                content_lines(content, depth, &start, text);
            }
            _ => return None,
        }
        if number == 0 {
            return None;
        }
    }
    Some(())
}

fn content_lines(content: &[u8], depth: usize, start: &str, text: &mut String) {
    let printable = std::str::from_utf8(content).ok().filter(|text| !text.chars().any(char::is_control));
    if let Some(printable) = printable {
        *text += &format!("{start}: {printable:?}\n");
        return;
    }
    let mut inner = String::new();
    let object = content.strip_prefix(b"k8s\0");
    if lines(object.unwrap_or(content), depth + 1, &mut inner).is_some() {
        let mark = if object.is_some() { " k8s" } else { "" };
        *text += &format!("{start}{mark} {{\n{inner}");
    } else {
        *text += &format!("{start}: {}\n", String::from_utf8_lossy(content).escape_debug());
    }
}

fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if *first < 0x80 {
            return Some(value);
        }
    }
    None
}
