//! `resource.Quantity`: the text that Go prints for a quantity that it has read, and calculating with it.

mod fixed;
mod number;

pub use fixed::Fixed;
pub use number::Quantity;

/// What Go says to text that is no quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuantityError {
    /// The shape is wrong.
    Format,
    /// The number is wrong.
    Number,
    /// The suffix is wrong.
    Suffix,
}

impl QuantityError {
    /// Go's words.
    pub fn text(self) -> &'static str {
        match self {
            Self::Format => {
                "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            }
            Self::Number => "unable to parse numeric part of quantity",
            Self::Suffix => "unable to parse quantity's suffix",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    DecimalExponent,
    DecimalSi,
    BinarySi,
}

/// Digits beyond this count carry no information (the smallest unit is a billionth, the
/// largest suffix 10^18) but would make a hostile number expensive.
const MAX_DIGITS: usize = 1_000;

/// Decimal digits that upstream's fast path bears.
const FAST_DIGITS: i32 = 18;

/// The text as Go prints it after reading it: `1000m` becomes `1`, `1024Ki` becomes `1Mi`.
pub fn canonical(text: &str) -> Result<String, QuantityError> {
    if text.is_empty() {
        return Err(QuantityError::Format);
    }
    let parts = split(text)?;
    let (exponent, format) = interpret(parts.suffix).ok_or(QuantityError::Suffix)?;
    if parts.whole.len() + parts.fraction.len() > MAX_DIGITS {
        return Err(QuantityError::Number);
    }
    if is_kept(&parts, exponent, format) {
        return Ok(text.to_owned());
    }
    let amount = Amount::new(&parts, exponent, format);
    Ok(amount.print())
}

struct Parts<'a> {
    negative: bool,
    /// Without leading zeros, but "0" for nothing.
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

fn split(text: &str) -> Result<Parts<'_>, QuantityError> {
    let (negative, unsigned) = match text.as_bytes()[0] {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let stripped = unsigned.trim_start_matches('0');
    let digits = stripped.bytes().take_while(u8::is_ascii_digit).count();
    let (mut whole, mut rest) = stripped.split_at(digits);
    if whole.is_empty() {
        whole = "0";
    }
    let mut fraction = "";
    if let Some(after) = rest.strip_prefix('.') {
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        (fraction, rest) = after.split_at(digits);
    }
    let suffix = rest;
    let tail = rest.trim_start_matches(|letter| "eEinumkKMGTP".contains(letter));
    let tail = tail.strip_prefix(['-', '+']).unwrap_or(tail);
    if !tail.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(QuantityError::Format);
    }
    Ok(Parts { negative, whole, fraction, suffix })
}

const DECIMAL: [(&str, i64); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY: [(&str, i64); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

fn interpret(suffix: &str) -> Option<(i64, Format)> {
    if let Some((_, exponent)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        return Some((*exponent, Format::DecimalSi));
    }
    if let Some((_, exponent)) = BINARY.iter().find(|(name, _)| *name == suffix) {
        return Some((*exponent, Format::BinarySi));
    }
    let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    Some((i64::from(exponent), Format::DecimalExponent))
}

/// Whether upstream's fast path takes the number and finds its text canonical already.
fn is_kept(parts: &Parts<'_>, exponent: i64, format: Format) -> bool {
    let (whole, fraction) = (parts.whole.len() as i64, parts.fraction.len() as i64);
    let shifted = || format!("{}{}", parts.whole, parts.fraction);
    let value = || shifted().parse::<i64>().ok();
    match format {
        Format::BinarySi => {
            // The multiple of a thousand that Go computes in floating point, rounded down.
            let room = 15 - whole - exponent * 3 / 10 - 1;
            fraction == 0
                && room >= 0
                && value().is_some_and(|value| value & 7 != 0 && value.checked_mul(1 << exponent).is_some())
        }
        Format::DecimalSi | Format::DecimalExponent => {
            let scale = exponent - fraction;
            i64::from(FAST_DIGITS) - whole - fraction >= 0
                && scale >= -9
                && scale % 3 == 0
                && value().is_some()
                && !shifted().ends_with("000")
                && !shifted().starts_with('0')
        }
    }
}

/// `digits` × 10^`scale`.
struct Amount {
    negative: bool,
    digits: Vec<u8>,
    scale: i64,
    format: Format,
}

/// The greatest amount in binary notation.
const BINARY_CAP: i64 = i64::MAX;

impl Amount {
    fn new(parts: &Parts<'_>, exponent: i64, format: Format) -> Self {
        let digits: Vec<u8> =
            parts.whole.bytes().chain(parts.fraction.bytes()).map(|digit| digit - b'0').collect();
        let mut amount =
            Self { negative: parts.negative, digits, scale: -(parts.fraction.len() as i64), format };
        if format == Format::BinarySi {
            for _ in 0..exponent {
                amount.double();
            }
        } else {
            amount.scale += exponent;
        }
        amount.trim();
        amount.round_up(-9);
        if format == Format::BinarySi {
            if amount.exceeds_cap() {
                amount.digits = BINARY_CAP.to_string().bytes().map(|digit| digit - b'0').collect();
                amount.scale = 0;
            }
            let whole = amount.digits.len() as i64 + amount.scale;
            if whole <= 0 {
                amount.format = Format::DecimalSi;
            }
        }
        amount
    }

    fn double(&mut self) {
        let mut carry = 0;
        for digit in self.digits.iter_mut().rev() {
            let doubled = *digit * 2 + carry;
            (*digit, carry) = (doubled % 10, doubled / 10);
        }
        if carry > 0 {
            self.digits.insert(0, carry);
        }
    }

    /// No zeros at either end; zero has no digits.
    fn trim(&mut self) {
        let leading = self.digits.iter().take_while(|digit| **digit == 0).count();
        self.digits.drain(..leading);
        while self.digits.last() == Some(&0) {
            self.digits.pop();
            self.scale += 1;
        }
        if self.digits.is_empty() {
            self.scale = 0;
        }
    }

    /// Rounds away from zero to multiples of 10^`scale`.
    fn round_up(&mut self, scale: i64) {
        if self.digits.is_empty() || self.scale >= scale {
            return;
        }
        let cut = usize::try_from(scale - self.scale).unwrap_or(usize::MAX);
        let keep = self.digits.len().saturating_sub(cut);
        // Trimmed digits end in one that is not zero, so something is always lost.
        self.digits.truncate(keep);
        self.scale = scale;
        let mut carry = true;
        for digit in self.digits.iter_mut().rev() {
            carry = *digit == 9;
            *digit = if carry { 0 } else { *digit + 1 };
            if !carry {
                break;
            }
        }
        if carry {
            self.digits.insert(0, 1);
        }
        self.trim();
    }

    fn exceeds_cap(&self) -> bool {
        self.digits.len() as i64 + self.scale > 19
            || self.as_integer().is_some_and(|value| value > i128::from(BINARY_CAP))
    }

    /// The value, if it is whole and not too large.
    fn as_integer(&self) -> Option<i128> {
        if self.scale < 0 || self.digits.len() as i64 + self.scale > 30 {
            return None;
        }
        let digits = self.digits.iter().fold(0_i128, |value, digit| value * 10 + i128::from(*digit));
        Some(digits * 10_i128.pow(u32::try_from(self.scale).ok()?))
    }

    fn print(&self) -> String {
        if self.digits.is_empty() {
            return "0".to_owned();
        }
        let sign = if self.negative { "-" } else { "" };
        if self.format == Format::BinarySi
            && let Some(mut value) = self.as_integer().filter(|value| *value >= 1024)
        {
            let mut power = 0;
            while value % 1024 == 0 {
                value /= 1024;
                power += 1;
            }
            let suffix = if power == 0 { "" } else { BINARY.get(power - 1).map_or("", |(name, _)| name) };
            return format!("{sign}{value}{suffix}");
        }
        let padding = self.scale.rem_euclid(3);
        let exponent = self.scale - padding;
        let digits: String = self.digits.iter().map(|digit| char::from(b'0' + digit)).collect();
        let zeros = "0".repeat(usize::try_from(padding).unwrap_or(0));
        let suffix = match self.format {
            Format::DecimalExponent if exponent == 0 => String::new(),
            Format::DecimalExponent => format!("e{exponent}"),
            // Beyond the last suffix upstream prints none at all.
            _ => DECIMAL.iter().find(|(_, power)| *power == exponent).map_or("", |(name, _)| name).to_owned(),
        };
        format!("{sign}{digits}{zeros}{suffix}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Printed by resource.ParseQuantity(text).String() of k8s.io/apimachinery v0.37.2.
    #[test]
    fn quantities_print_as_in_go() {
        for line in include_str!("../../tests/golden/quantities.txt").lines() {
            let Some((text, expected)) = line.split_once('\t') else { continue };
            let printed = canonical(text).unwrap_or_else(|error| error.text().to_owned());
            assert_eq!(printed, expected, "{text}");
        }
    }
}
