//! YAML in the style of Go's library: block style, natural order of keys, lists not
//! indented under their key, lines folded after column 80, quotes only where needed.

use std::cmp::Ordering;

use super::scalar::{Scalar, float_as_text, is_base_60, is_timestamp, resolve};
use crate::codec::{DecodeError, json, text};
use crate::schema::Message;
use crate::{Map, Value};

/// Appends an object of a built-in kind.
pub fn encode(message: &'static Message, object: &Value, out: &mut Vec<u8>) {
    let mut compact = Vec::new();
    json::encode(message, object, &mut compact);
    // Our own JSON is always well formed.
    let _ = from_json(&compact, out);
}

/// Appends what a JSON answer is in YAML.
pub fn from_json(compact: &[u8], out: &mut Vec<u8>) -> Result<(), DecodeError> {
    encode_untyped(&json::decode_untyped(compact)?.object, out);
    Ok(())
}

/// Appends any tree.
pub fn encode_untyped(value: &Value, out: &mut Vec<u8>) {
    let start = out.len();
    let mut writer =
        Writer { out, start, indentation: 0, column: 0, indent: None, whitespace: true, indention: true };
    writer.node(value, Place::Root);
    writer.start_line();
}

/// How much of a document may be indentation, and how much more for each byte of the rest. A list of a
/// million items below five hundred levels would be a gigabyte of spaces; what no longer fits is written as
/// JSON is. Objects of Kubernetes' depth have less indentation than text.
const INDENTATION: usize = 1 << 20;
const INDENTATION_PER_BYTE: usize = 4;
/// The least text of a line: `- `, or a key, and its end.
const LINE: usize = 3;

/// Columns after which text is folded at the next space.
const WIDTH: usize = 80;

/// Keys longer than this are written in the long form.
const SIMPLE_KEY: usize = 128;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    Item,
    Key,
    LongKey,
    Value,
}

/// The state of the emitter: where the line is and what it ended with.
struct Writer<'o> {
    out: &'o mut Vec<u8>,
    /// Where the document begins.
    start: usize,
    /// How many bytes of it are indentation.
    indentation: usize,
    column: usize,
    indent: Option<usize>,
    /// The last character was white space.
    whitespace: bool,
    /// There is nothing but indentation and indicators on the line.
    indention: bool,
}

impl Writer<'_> {
    fn node(&mut self, value: &Value, place: Place) {
        match value {
            Value::Null => self.plain("null", place),
            Value::Bool(flag) => self.plain(if *flag { "true" } else { "false" }, place),
            Value::Int(int) => self.plain(&int.to_string(), place),
            Value::Float(float) => self.plain(&number(*float), place),
            Value::String(content) => self.string(content, place),
            Value::Bytes(bytes) => {
                self.string(&base64_simd::STANDARD.encode_to_string(bytes.expose()), place);
            }
            Value::Array(items) if items.is_empty() => self.indicator("[]", true, false, false),
            Value::Object(members) if members.is_empty() => self.indicator("{}", true, false, false),
            Value::Array(items) if self.is_too_wide(items.len()) => self.flow(value),
            Value::Object(members) if self.is_too_wide(members.len()) => self.flow(value),
            Value::Array(items) => self.sequence(items, place),
            Value::Object(members) => self.mapping(members),
        }
    }

    fn sequence(&mut self, items: &[Value], place: Place) {
        let outer = self.indent;
        let in_mapping = matches!(place, Place::Value | Place::LongKey);
        self.increase_indent(in_mapping && !self.indention);
        for item in items {
            self.start_line();
            self.indicator("-", true, false, true);
            self.node(item, Place::Item);
        }
        self.indent = outer;
    }

    fn mapping(&mut self, members: &Map) {
        let outer = self.indent;
        self.increase_indent(false);
        let mut sorted: Vec<_> = members.iter().collect();
        sorted.sort_by(|left, right| natural(left.0, right.0));
        for (key, value) in sorted {
            self.start_line();
            if key.len() <= SIMPLE_KEY && !key.contains(is_break) {
                self.string(key, Place::Key);
                self.indicator(":", false, false, false);
            } else {
                self.indicator("?", true, false, true);
                self.string(key, Place::LongKey);
                self.start_line();
                self.indicator(":", true, false, true);
            }
            self.node(value, Place::Value);
        }
        self.indent = outer;
    }

    /// Whether so many lines, one level deeper, would be mostly indentation.
    fn is_too_wide(&self, lines: usize) -> bool {
        let deeper = self.indent.map_or(0, |indent| indent + 2);
        let text = (self.out.len() - self.start).saturating_sub(self.indentation);
        let text = text.saturating_add(lines.saturating_mul(LINE));
        let most = INDENTATION.saturating_add(text.saturating_mul(INDENTATION_PER_BYTE));
        most < self.indentation.saturating_add(lines.saturating_mul(deeper))
    }

    /// Writes a value on the line, as JSON is written.
    fn flow(&mut self, value: &Value) {
        match value {
            Value::Array(items) if !items.is_empty() => {
                self.indicator("[", true, true, false);
                for (at, item) in items.iter().enumerate() {
                    if at != 0 {
                        self.indicator(",", false, false, false);
                    }
                    self.flow(item);
                }
                self.indicator("]", false, false, false);
            }
            Value::Object(members) if !members.is_empty() => {
                self.indicator("{", true, true, false);
                for (at, (key, value)) in members.iter().enumerate() {
                    if at != 0 {
                        self.indicator(",", false, false, false);
                    }
                    if SIMPLE_KEY < key.len() {
                        self.indicator("?", true, false, false);
                    }
                    self.double_quoted(key, Place::Key);
                    self.indicator(":", false, false, false);
                    self.flow(value);
                }
                self.indicator("}", false, false, false);
            }
            Value::String(content) => self.double_quoted(content, Place::Key),
            _ => self.node(value, Place::Key),
        }
    }

    fn increase_indent(&mut self, same: bool) {
        self.indent = Some(self.indent.map_or(0, |indent| if same { indent } else { indent + 2 }));
    }

    fn string(&mut self, content: &str, place: Place) {
        let analysis = Analysis::of(content);
        let resolves =
            !matches!(resolve(content), Scalar::Text) || is_base_60(content) || is_timestamp(content);
        if content.contains('\n') {
            if place != Place::Key && analysis.block {
                self.nested(|writer| writer.literal(content));
            } else {
                self.nested(|writer| writer.double_quoted(content, place));
            }
        } else if resolves {
            self.nested(|writer| writer.double_quoted(content, place));
        } else if analysis.plain {
            self.plain(content, place);
        } else if analysis.single_quoted {
            self.nested(|writer| writer.single_quoted(content, place));
        } else {
            self.nested(|writer| writer.double_quoted(content, place));
        }
    }

    /// Runs with the indentation of what a scalar continues with on the next line.
    fn nested(&mut self, write: impl FnOnce(&mut Self)) {
        let outer = self.indent;
        self.indent = Some(self.indent.map_or(2, |indent| indent + 2));
        write(self);
        self.indent = outer;
    }

    fn plain(&mut self, content: &str, place: Place) {
        if !self.whitespace {
            self.put(' ');
        }
        self.nested(|writer| writer.folded(content, place, |at| at + 1 < content.len(), None));
        self.whitespace = false;
        self.indention = false;
    }

    fn single_quoted(&mut self, content: &str, place: Place) {
        self.indicator("'", true, false, false);
        self.folded(content, place, |at| at > 0 && at + 1 < content.len(), Some('\''));
        self.indicator("'", false, false, false);
        self.whitespace = false;
        self.indention = false;
    }

    /// Writes text, breaking the line in place of a single space once it is long enough.
    fn folded(
        &mut self,
        content: &str,
        place: Place,
        may_break: impl Fn(usize) -> bool,
        doubled: Option<char>,
    ) {
        let mut spaces = false;
        for (at, char) in content.char_indices() {
            if char == ' ' {
                let next_is_space = content[at + 1..].starts_with(' ');
                if place != Place::Key && !spaces && self.column > WIDTH && may_break(at) && !next_is_space {
                    self.start_line();
                } else {
                    self.put(char);
                }
                spaces = true;
                continue;
            }
            if Some(char) == doubled {
                self.put(char);
            }
            self.put(char);
            self.indention = false;
            spaces = false;
        }
    }

    fn double_quoted(&mut self, content: &str, place: Place) {
        self.indicator("\"", true, false, false);
        let mut spaces = false;
        for (at, char) in content.char_indices() {
            if !is_printable(char) || is_break(char) || matches!(char, '\u{feff}' | '"' | '\\') {
                self.escape(char);
                spaces = false;
            } else if char == ' ' {
                let inside = at > 0 && at + 1 < content.len();
                if place != Place::Key && !spaces && self.column > WIDTH && inside {
                    self.start_line();
                    if content[at + 1..].starts_with(' ') {
                        self.put('\\');
                    }
                } else {
                    self.put(char);
                }
                spaces = true;
            } else {
                self.put(char);
                spaces = false;
            }
        }
        self.indicator("\"", false, false, false);
        self.whitespace = false;
        self.indention = false;
    }

    fn escape(&mut self, char: char) {
        let short = match char {
            '\0' => "0",
            '\x07' => "a",
            '\x08' => "b",
            '\t' => "t",
            '\n' => "n",
            '\x0b' => "v",
            '\x0c' => "f",
            '\r' => "r",
            '\x1b' => "e",
            '"' => "\"",
            '\\' => "\\",
            '\u{85}' => "N",
            '\u{a0}' => "_",
            '\u{2028}' => "L",
            '\u{2029}' => "P",
            _ => "",
        };
        let code = u32::from(char);
        let escaped = match code {
            _ if !short.is_empty() => format!("\\{short}"),
            0..=0xff => format!("\\x{code:02X}"),
            0x100..=0xffff => format!("\\u{code:04X}"),
            _ => format!("\\U{code:08X}"),
        };
        escaped.chars().for_each(|char| self.put(char));
    }

    fn literal(&mut self, content: &str) {
        self.indicator("|", true, false, false);
        if content.starts_with([' ', '\n']) || content.starts_with(is_break) {
            self.indicator("2", false, false, false);
        }
        let mut backwards = content.chars().rev();
        match (backwards.next(), backwards.next()) {
            (Some(last), _) if !is_break(last) => self.indicator("-", false, false, false),
            (Some(_), None) => self.indicator("+", false, false, false),
            (Some(_), Some(before)) if is_break(before) => self.indicator("+", false, false, false),
            _ => {}
        }
        self.line_break();
        self.indention = true;
        self.whitespace = true;
        let mut at_line_start = true;
        for char in content.chars() {
            if is_break(char) {
                if char == '\n' {
                    self.line_break();
                } else {
                    self.put(char);
                    self.column = 0;
                }
                self.indention = true;
                at_line_start = true;
            } else {
                if at_line_start {
                    self.start_line();
                }
                self.put(char);
                self.indention = false;
                at_line_start = false;
            }
        }
    }

    /// Begins a new line unless the current one is still empty, and indents it.
    fn start_line(&mut self) {
        let indent = self.indent.unwrap_or(0);
        if !self.indention || self.column > indent || (self.column == indent && !self.whitespace) {
            self.line_break();
        }
        let spaces = indent.saturating_sub(self.column);
        self.out.resize(self.out.len() + spaces, b' ');
        self.indentation += spaces;
        self.column += spaces;
        self.whitespace = true;
        self.indention = true;
    }

    fn indicator(&mut self, indicator: &str, needs_space: bool, is_space: bool, is_indention: bool) {
        if needs_space && !self.whitespace {
            self.put(' ');
        }
        indicator.chars().for_each(|char| self.put(char));
        self.whitespace = is_space;
        self.indention = self.indention && is_indention;
    }

    fn line_break(&mut self) {
        self.out.push(b'\n');
        self.column = 0;
    }

    fn put(&mut self, char: char) {
        self.out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
        self.column += 1;
    }
}

/// As Go's YAML prints what it reads from Go's JSON.
fn number(float: f64) -> String {
    let mut json = Vec::new();
    text::float(&mut json, float);
    let json = String::from_utf8(json).unwrap_or_default();
    if json.parse::<i64>().is_ok() || json.parse::<u64>().is_ok() { json } else { float_as_text(float) }
}

/// Which styles text can be written in.
struct Analysis {
    plain: bool,
    single_quoted: bool,
    block: bool,
}

impl Analysis {
    fn of(content: &str) -> Self {
        if content.is_empty() {
            return Self { plain: true, single_quoted: true, block: false };
        }
        let mut indicators = content.starts_with("---") || content.starts_with("...");
        let (mut special, mut break_space, mut space_break, mut breaks) = (false, false, false, false);
        let mut previous = '\0';
        let mut chars = content.char_indices().peekable();
        while let Some((at, char)) = chars.next() {
            let before_blank = chars.peek().is_none_or(|(_, next)| is_blank(*next));
            let after_blank = at == 0 || is_blank(previous) || is_break(previous);
            indicators |= match char {
                '#' if at > 0 => after_blank,
                '?' if at > 0 => false,
                '-' if at > 0 => false,
                ':' | '?' | '-' => before_blank,
                '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@'
                | '`' => at == 0,
                _ => false,
            };
            special |= !is_printable(char);
            break_space |= char == ' ' && is_break(previous);
            space_break |= is_break(char) && previous == ' ';
            breaks |= is_break(char);
            previous = char;
        }
        let edge = |char: Option<char>| char.is_some_and(|char| char == ' ' || is_break(char));
        let edges = edge(content.chars().next()) || edge(content.chars().last());
        let unfit = space_break || special;
        Self {
            plain: !(indicators || edges || break_space || breaks || unfit),
            single_quoted: !(break_space || unfit),
            block: !(content.ends_with(' ') || unfit),
        }
    }
}

fn is_blank(char: char) -> bool {
    matches!(char, ' ' | '\t')
}

fn is_break(char: char) -> bool {
    matches!(char, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_printable(char: char) -> bool {
    matches!(char, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}')
}

/// The order of keys: letters by code, numbers by value, other characters before letters.
fn natural(left: &str, right: &str) -> Ordering {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let Some(at) = left.iter().zip(&right).position(|(left, right)| left != right) else {
        return left.len().cmp(&right.len());
    };
    let (one, other) = (left[at], right[at]);
    match (one.is_alphabetic(), other.is_alphabetic()) {
        (true, true) => return one.cmp(&other),
        (false, true) => return Ordering::Less,
        (true, false) => return Ordering::Greater,
        (false, false) => {}
    }
    // A zero inside a number counts as a digit, one that leads does not.
    let in_number = (one == '0' || other == '0')
        && left[..at].iter().rev().take_while(|char| char.is_ascii_digit()).any(|char| *char != '0');
    let run = |chars: &[char]| {
        let digits = chars[at..].iter().take_while(|char| char.is_ascii_digit());
        digits.fold((i64::from(in_number), 0_usize), |(number, count), digit| {
            let digit = i64::from(digit.to_digit(10).unwrap_or(0));
            (number.wrapping_mul(10).wrapping_add(digit), count + 1)
        })
    };
    run(&left).cmp(&run(&right)).then(one.cmp(&other))
}
