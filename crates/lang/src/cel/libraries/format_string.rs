//! `format()`: a text with clauses that are replaced by arguments, and its check at compile time.
//!
//! As in cel-go's library of version 2, `%f` and `%e` print as English text does: with groups of
//! three digits, superscripts and `∞`; what stands for the precision of `%e` is its width.

use coffer_types::validation::field::go_quote;

use crate::cel::error::Error;
use crate::cel::functions::{Context, Literal};
use crate::cel::types::Type;
use crate::cel::value::{List, Value};

/// Digits behind the point when nothing else is said.
const DEFAULT_PRECISION: usize = 6;
/// A double has no more digits behind the point than this.
const LONGEST_FRACTION: usize = 1_100;

/// What a clause makes of its argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Clause {
    String,
    Decimal,
    Fixed(usize),
    Scientific(usize),
    Binary,
    Hex { upper: bool },
    Octal,
}

/// A piece of the text.
enum Piece<'t> {
    Text(&'t str),
    Clause(Result<Clause, String>),
}

/// The text with its arguments.
pub(super) fn format(context: &mut Context<'_>, text: &str, arguments: &List<'_>) -> Result<String, Error> {
    let mut made = String::new();
    let mut used = 0;
    for piece in (Pieces { rest: text }) {
        match piece {
            Piece::Text(text) => {
                context.charge(text.len())?;
                made.push_str(text);
            }
            Piece::Clause(clause) => {
                if arguments.len() <= used {
                    return Err(Error::new(format!("index {used} out of range")));
                }
                let argument = arguments.get(used)?;
                used += 1;
                let clause = clause.map_err(Error::new)?;
                write(context, &mut made, clause, &argument)?;
            }
        }
    }
    Ok(made)
}

/// What is wrong with `text.format([…])`, if text and list are literals.
pub(super) fn check(arguments: &[Literal<'_>]) -> Option<(Vec<usize>, String)> {
    let [Literal::Value(Value::String(text)), Literal::List(arguments)] = arguments else { return None };
    let mut used = 0;
    for piece in (Pieces { rest: text }) {
        let Piece::Clause(clause) = piece else { continue };
        let clause = match clause {
            Ok(clause) => clause,
            Err(message) if message == END => return Some((vec![], message)),
            Err(message) if used < arguments.len() => return Some((vec![], message)),
            Err(_) => return Some((vec![], format!("index {used} out of range"))),
        };
        let Some(argument) = arguments.get(used) else {
            return Some((vec![], format!("index {used} out of range")));
        };
        if let Some((way, fault)) = misfit(clause, argument) {
            let way = [1, used].into_iter().chain(way).collect();
            return Some((way, format!("error during formatting: {fault}")));
        }
        used += 1;
    }
    (used < arguments.len()).then(|| {
        let counts = format!("(expected {used}, got {})", arguments.len());
        (vec![], format!("too many arguments supplied to string.format {counts}"))
    })
}

const END: &str = "unexpected end of string";

struct Pieces<'t> {
    rest: &'t str,
}

impl<'t> Iterator for Pieces<'t> {
    type Item = Piece<'t>;

    fn next(&mut self) -> Option<Piece<'t>> {
        if self.rest.is_empty() {
            return None;
        }
        let Some(after) = self.rest.strip_prefix('%') else {
            let (text, rest) = self.rest.split_at(self.rest.find('%').unwrap_or(self.rest.len()));
            self.rest = rest;
            return Some(Piece::Text(text));
        };
        if let Some(rest) = after.strip_prefix('%') {
            self.rest = rest;
            return Some(Piece::Text("%"));
        }
        let (clause, rest) = read(after);
        self.rest = rest;
        Some(Piece::Clause(clause))
    }
}

/// The clause behind a `%`, and what is behind it.
fn read(text: &str) -> (Result<Clause, String>, &str) {
    let failed = |why: String| (Err(format!("could not parse formatting clause: {why}")), "");
    let Some(first) = text.bytes().next() else { return (Err(END.to_owned()), "") };
    let mut precision = None;
    let mut rest = text;
    if first == b'.' {
        let digits = text[1..].bytes().take_while(u8::is_ascii_digit).count();
        let (number, after) = text[1..].split_at(digits);
        if after.is_empty() {
            return failed(
                "error while parsing precision: could not find end of precision specifier".to_owned(),
            );
        }
        match number.parse::<i64>() {
            Ok(number) => precision = usize::try_from(number).ok(),
            Err(_) => {
                let why = if number.is_empty() { "invalid syntax" } else { "value out of range" };
                return failed(format!(
                    "error while parsing precision: error while converting precision to integer: strconv.Atoi: parsing \"{number}\": {why}"
                ));
            }
        }
        rest = after;
    }
    let clause = match rest.as_bytes()[0] {
        b's' => Clause::String,
        b'd' => Clause::Decimal,
        b'f' => Clause::Fixed(precision.unwrap_or(DEFAULT_PRECISION)),
        b'e' => Clause::Scientific(precision.unwrap_or(DEFAULT_PRECISION)),
        b'b' => Clause::Binary,
        b'x' => Clause::Hex { upper: false },
        b'X' => Clause::Hex { upper: true },
        b'o' => Clause::Octal,
        // Upstream looks at the byte.
        other => return failed(format!("unrecognized formatting clause \"{}\"", char::from(other))),
    };
    (Ok(clause), &rest[1..])
}

fn write(
    context: &mut Context<'_>,
    made: &mut String,
    clause: Clause,
    argument: &Value<'_>,
) -> Result<(), Error> {
    let failed = |why: String| Error::new(format!("error during formatting: {why}"));
    if let Clause::Fixed(width) | Clause::Scientific(width) = clause {
        context.charge(width)?;
    }
    let text = match (clause, argument) {
        (Clause::String, _) => text_of(argument).map_err(failed)?,
        (Clause::Decimal, Value::Int(number)) => number.to_string(),
        (Clause::Decimal, Value::Uint(number)) => number.to_string(),
        (Clause::Fixed(precision), _) => match float(argument) {
            Some(number) => fixed(number, precision),
            None => return Err(failed(unfit(clause, &argument.type_of()))),
        },
        (Clause::Scientific(width), _) => match float(argument) {
            Some(number) => scientific(number, width),
            None => return Err(failed(unfit(clause, &argument.type_of()))),
        },
        (Clause::Binary, Value::Bool(flag)) => if *flag { "1" } else { "0" }.to_owned(),
        (Clause::Binary, Value::Int(number)) => signed(*number, format!("{:b}", number.unsigned_abs())),
        (Clause::Binary, Value::Uint(number)) => format!("{number:b}"),
        (Clause::Octal, Value::Int(number)) => signed(*number, format!("{:o}", number.unsigned_abs())),
        (Clause::Octal, Value::Uint(number)) => format!("{number:o}"),
        (Clause::Hex { upper }, Value::Int(number)) => {
            signed(*number, cased(format!("{:x}", number.unsigned_abs()), upper))
        }
        (Clause::Hex { upper }, Value::Uint(number)) => cased(format!("{number:x}"), upper),
        (Clause::Hex { upper }, Value::String(text)) => {
            context.charge(text.len())?;
            cased(hex(text.as_bytes()), upper)
        }
        (Clause::Hex { upper }, Value::Bytes(bytes)) => {
            context.charge(bytes.len())?;
            cased(hex(bytes), upper)
        }
        (Clause::Decimal | Clause::Binary | Clause::Octal | Clause::Hex { .. }, _) => {
            return Err(failed(unfit(clause, &argument.type_of())));
        }
    };
    context.charge(text.len())?;
    made.push_str(&text);
    Ok(())
}

fn signed(number: i64, digits: String) -> String {
    if number < 0 { format!("-{digits}") } else { digits }
}

fn cased(text: String, upper: bool) -> String {
    if upper { text.to_ascii_uppercase() } else { text }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The number of `%f` and `%e`: a double, or its name.
fn float(argument: &Value<'_>) -> Option<f64> {
    match argument {
        Value::Double(number) => Some(*number),
        Value::String(text) => match &**text {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

fn not_finite(number: f64) -> Option<&'static str> {
    match number {
        _ if number.is_nan() => Some("NaN"),
        f64::INFINITY => Some("∞"),
        f64::NEG_INFINITY => Some("-∞"),
        _ => None,
    }
}

fn fixed(number: f64, precision: usize) -> String {
    if let Some(name) = not_finite(number) {
        return name.to_owned();
    }
    let shown = precision.min(LONGEST_FRACTION);
    let digits = format!("{:.shown$}", number.abs());
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    let mut text = String::new();
    if number < 0.0 {
        text.push('-');
    }
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if precision > 0 {
        text.push('.');
        text.push_str(fraction);
        text.extend(std::iter::repeat_n('0', precision - shown));
    }
    text
}

fn scientific(number: f64, width: usize) -> String {
    let text = match not_finite(number) {
        Some(name) => name.to_owned(),
        None => {
            let text = format!("{:.DEFAULT_PRECISION$e}", number.abs());
            let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
            let (sign, exponent) = exponent.strip_prefix('-').map_or(("", exponent), |rest| ("⁻", rest));
            let raised: String = format!("{exponent:0>2}").chars().map(superscript).collect();
            format!("{}{mantissa}×10{sign}{raised}", if number < 0.0 { "-" } else { "" })
        }
    };
    let missing = width.saturating_sub(text.chars().count());
    format!("{}{text}", " ".repeat(missing))
}

fn superscript(digit: char) -> char {
    match digit {
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4' => '⁴',
        '5' => '⁵',
        '6' => '⁶',
        '7' => '⁷',
        '8' => '⁸',
        '9' => '⁹',
        _ => '⁰',
    }
}

/// What `%s` makes of a value.
fn text_of(value: &Value<'_>) -> Result<String, String> {
    Ok(match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Uint(number) => number.to_string(),
        Value::Double(number) => shortest(*number),
        Value::String(text) => text.to_string(),
        Value::Bytes(bytes) => String::from_utf8(bytes.to_vec()).map_err(|_| {
            "could not convert argument \"invalid UTF-8 in bytes, cannot convert to string\" to string"
                .to_owned()
        })?,
        Value::Timestamp(instant) => instant.rfc3339(),
        Value::Duration(nanoseconds) => format!("{}s", *nanoseconds as f64 / 1e9),
        Value::Type(named) => named.name().to_owned(),
        Value::List(list) => {
            let items: Result<Vec<String>, String> =
                list.iter().map(|item| item.map_err(plain).and_then(|item| as_literal(&item))).collect();
            format!("[{}]", items?.join(", "))
        }
        Value::Map(map) => {
            let mut entries = Vec::new();
            for (key, value) in map.entries().map_err(plain)? {
                if !matches!(key, Value::String(_) | Value::Bool(_) | Value::Int(_) | Value::Uint(_)) {
                    let name = key.type_of();
                    return Err(format!("no formatting function for map key of type {}", name.name()));
                }
                entries.push((as_literal(&key)?, as_literal(&value)?));
            }
            entries.sort_by(|one, other| one.0.cmp(&other.0));
            let entries: Vec<String> = entries.iter().map(|(key, value)| format!("{key}:{value}")).collect();
            format!("{{{}}}", entries.join(", "))
        }
        Value::Object(_) | Value::Optional(_) | Value::Opaque(_) => {
            return Err(unfit(Clause::String, &value.type_of()));
        }
    })
}

fn plain(error: Error) -> String {
    error.message().to_owned()
}

/// A value within a list or a map.
fn as_literal(value: &Value<'_>) -> Result<String, String> {
    Ok(match value {
        Value::String(text) => go_quote(text),
        Value::Bytes(_) => format!("b{}", go_quote(&text_of(value)?)),
        Value::Double(number) if number.is_nan() => "\"NaN\"".to_owned(),
        Value::Double(number) if number.is_infinite() => {
            if *number > 0.0 { "\"+Inf\"" } else { "\"-Inf\"" }.to_owned()
        }
        Value::Double(number) => format!("{number:.DEFAULT_PRECISION$}"),
        Value::Timestamp(_) => format!("timestamp({})", go_quote(&text_of(value)?)),
        Value::Duration(_) => format!("duration({})", go_quote(&text_of(value)?)),
        Value::Object(_) | Value::Optional(_) | Value::Opaque(_) => {
            return Err(format!("no formatting function for {}", value.type_of().name()));
        }
        _ => text_of(value)?,
    })
}

/// A double as Go's `strconv` prints it with format `g` and the shortest digits.
fn shortest(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{number:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let power: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&power) {
        return format!("{number}");
    }
    let sign = if power < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", power.abs())
}

/// Where and why an argument does not fit its clause.
fn misfit(clause: Clause, argument: &Literal<'_>) -> Option<(Vec<usize>, String)> {
    if clause == Clause::String {
        return not_text(argument);
    }
    let found = type_of(argument);
    let fits = match clause {
        Clause::Decimal | Clause::Octal => matches!(found, Type::Int | Type::Uint),
        Clause::Binary => matches!(found, Type::Int | Type::Uint | Type::Bool),
        Clause::Fixed(_) | Clause::Scientific(_) => matches!(found, Type::Double | Type::String),
        _ => matches!(found, Type::Int | Type::Uint | Type::String | Type::Bytes),
    };
    (!fits && !found.is_dyn()).then(|| (vec![], unfit(clause, &found)))
}

fn not_text(argument: &Literal<'_>) -> Option<(Vec<usize>, String)> {
    let within = |index: usize, part: &Literal<'_>| {
        not_text(part).map(|(way, why)| ([index].into_iter().chain(way).collect(), why))
    };
    match argument {
        Literal::List(items) => items.iter().enumerate().find_map(|(index, item)| within(index, item)),
        Literal::Map(entries) => entries.iter().enumerate().find_map(|(index, (key, value))| {
            within(2 * index, key).or_else(|| within(2 * index + 1, value))
        }),
        _ => {
            let found = type_of(argument);
            let fits = matches!(
                found,
                Type::Dyn
                    | Type::List(_)
                    | Type::Map(_)
                    | Type::Int
                    | Type::Uint
                    | Type::Double
                    | Type::Bool
                    | Type::String
                    | Type::Timestamp
                    | Type::Bytes
                    | Type::Duration
                    | Type::Type(_)
                    | Type::Null
            );
            (!fits).then(|| (vec![], unfit(Clause::String, &found)))
        }
    }
}

fn type_of(argument: &Literal<'_>) -> Type {
    match argument {
        Literal::Value(value) => value.type_of(),
        Literal::List(_) => Type::list(Type::Dyn),
        Literal::Map(_) => Type::map(Type::Dyn, Type::Dyn),
        Literal::Other(found) => (*found).clone(),
    }
}

fn unfit(clause: Clause, found: &Type) -> String {
    let rule = match clause {
        Clause::String => {
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps"
        }
        Clause::Decimal => "decimal clause can only be used on integers",
        Clause::Fixed(_) => "fixed-point clause can only be used on doubles",
        Clause::Scientific(_) => "scientific clause can only be used on doubles",
        Clause::Binary => "only integers and bools can be formatted as binary",
        Clause::Hex { .. } => "only integers, byte buffers, and strings can be formatted as hex",
        Clause::Octal => "octal clause can only be used on integers",
    };
    format!("{rule}, was given {}", found.name())
}
