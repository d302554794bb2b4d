//! Quantities to calculate with, as Go's `resource.Quantity` does.

use std::cmp::Ordering;
use std::fmt;

use super::{Amount, FAST_DIGITS, Format, QuantityError, interpret, is_kept, split};

/// A quantity.
#[derive(Debug, Clone)]
pub struct Quantity {
    number: Number,
    format: Format,
    /// The text that it was read from, where that is canonical.
    text: Option<String>,
}

/// Upstream calculates with 64 bits as long as that goes, and asks some questions of such numbers only.
#[derive(Debug, Clone)]
enum Number {
    /// `value` × 10^`exponent`.
    Fast { value: i64, exponent: i32 },
    /// A number of any length.
    Long(Decimal),
}

/// `digits` × 10^`exponent`; zero has no digits.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Decimal {
    negative: bool,
    digits: Vec<u8>,
    exponent: i64,
}

/// Most digits of a number that is calculated with.
const MAX_LENGTH: i64 = 4_096;
/// What numbers are rounded to when they are read.
const NANO: i64 = -9;

impl Quantity {
    /// Reads a quantity.
    ///
    /// # Errors
    /// When the text is none, or its number is longer than 4,096 digits.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        if text.is_empty() {
            return Err(QuantityError::Format);
        }
        if text == "0" {
            let number = Number::Fast { value: 0, exponent: 0 };
            return Ok(Self { number, format: Format::DecimalSi, text: Some(text.to_owned()) });
        }
        let parts = split(text)?;
        let (exponent, format) = interpret(parts.suffix).ok_or(QuantityError::Suffix)?;
        let (whole, fraction) = (parts.whole.len() as i64, parts.fraction.len() as i64);
        if MAX_LENGTH < whole + fraction + exponent.abs() {
            return Err(QuantityError::Number);
        }
        let (room, scale, factor) = match format {
            Format::BinarySi if fraction > 0 => (-1, 0, 1),
            // A binary exponent is about three tenths of it in decimal digits.
            Format::BinarySi => (15 - whole - exponent * 3 / 10 - 1, 0, 1_i64 << exponent),
            _ => (i64::from(FAST_DIGITS) - whole - fraction, exponent - fraction, 1),
        };
        let digits = format!("{}{}", parts.whole, parts.fraction);
        if room >= 0 && scale >= NANO {
            let value: i64 = digits.parse().map_err(|_| QuantityError::Number)?;
            if let Some(value) = value.checked_mul(factor) {
                let value = if parts.negative { -value } else { value };
                let text = is_kept(&parts, exponent, format).then(|| text.to_owned());
                let number = Number::Fast { value, exponent: scale as i32 };
                return Ok(Self { number, format, text });
            }
        }
        let amount = Amount::new(&parts, exponent, format);
        let mut number = Decimal { negative: amount.negative, digits: amount.digits, exponent: amount.scale };
        if !number.digits.is_empty() && number.exponent != 0 || amount.format != Format::BinarySi {
            number.extend_to(NANO);
        }
        Ok(Self { number: Number::Long(number), format: amount.format, text: None })
    }

    /// A whole number.
    pub fn from_integer(value: i64) -> Self {
        let number = Number::Fast { value, exponent: 0 };
        Self { number, format: Format::DecimalExponent, text: None }
    }

    /// The sum in this quantity's notation; none where the numbers are too far apart to be written out.
    pub fn add(&self, other: &Quantity) -> Option<Self> {
        let format = if self.sign() == 0 { other.format } else { self.format };
        if let (Number::Fast { .. }, Number::Fast { .. }) = (&self.number, &other.number)
            && let Some(number) = fast_sum(&self.number, &other.number)
        {
            return Some(Self { number, format, text: None });
        }
        let number = Number::Long(self.number.decimal().add(&other.number.decimal())?);
        Some(Self { number, format, text: None })
    }

    /// The difference, see [`Quantity::add`].
    pub fn sub(&self, other: &Quantity) -> Option<Self> {
        let number = match &other.number {
            Number::Fast { value, exponent } => {
                Number::Fast { value: value.wrapping_neg(), exponent: *exponent }
            }
            Number::Long(number) => Number::Long(Decimal { negative: !number.negative, ..number.clone() }),
        };
        self.add(&Self { number, format: other.format, text: None })
    }

    /// -1, 0 or 1.
    pub fn sign(&self) -> i64 {
        match &self.number {
            Number::Fast { value, .. } => value.signum(),
            Number::Long(number) if number.digits.is_empty() => 0,
            Number::Long(number) => {
                if number.negative {
                    -1
                } else {
                    1
                }
            }
        }
    }

    /// The whole number; none also for a whole number that upstream keeps in another form.
    pub fn as_integer(&self) -> Option<i64> {
        match &self.number {
            Number::Fast { value, exponent } if *exponent >= 0 => scaled(*value, *exponent),
            _ => None,
        }
    }

    /// The number, rounded.
    pub fn as_float(&self) -> f64 {
        let (base, exponent) = match &self.number {
            Number::Fast { value, exponent } => (*value as f64, i64::from(*exponent)),
            Number::Long(number) => {
                let base: f64 = number.text().parse().unwrap_or(0.0);
                (if number.negative { -base } else { base }, number.exponent)
            }
        };
        if exponent == 0 { base } else { base * power_of_ten(exponent) }
    }
}

/// As `Quantity.Cmp`: by the number alone.
impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.number.decimal().compare(&other.number.decimal())
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Quantity {}

/// As `Quantity.String`.
impl fmt::Display for Quantity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(text) = &self.text {
            return formatter.write_str(text);
        }
        let number = self.number.decimal();
        let mut amount = Amount {
            negative: number.negative,
            digits: number.digits,
            scale: number.exponent,
            format: self.format,
        };
        amount.trim();
        formatter.write_str(&amount.print())
    }
}

/// `value` × 10^`exponent`, if it fits.
fn scaled(value: i64, exponent: i32) -> Option<i64> {
    if value == 0 || exponent == 0 {
        return Some(value);
    }
    let factor = 10_i64.checked_pow(u32::try_from(exponent).ok()?)?;
    value.checked_mul(factor)
}

fn fast_sum(one: &Number, other: &Number) -> Option<Number> {
    let (Number::Fast { value: first, exponent: high }, Number::Fast { value: second, exponent: low }) =
        (one, other)
    else {
        return None;
    };
    if *second == 0 {
        return Some(one.clone());
    }
    if *first == 0 {
        return Some(other.clone());
    }
    let exponent = *high.min(low);
    let sum = scaled(*first, high - exponent)?.checked_add(scaled(*second, low - exponent)?)?;
    Some(Number::Fast { value: sum, exponent })
}

impl Number {
    fn decimal(&self) -> Decimal {
        match self {
            Self::Fast { value, exponent } => {
                let text = if *value == 0 { String::new() } else { value.unsigned_abs().to_string() };
                let digits = text.bytes().map(|digit| digit - b'0').collect();
                Decimal { negative: *value < 0, digits, exponent: i64::from(*exponent) }
            }
            Self::Long(number) => number.clone(),
        }
    }
}

impl Decimal {
    fn text(&self) -> String {
        self.digits.iter().map(|digit| char::from(b'0' + digit)).collect()
    }

    /// Writes zeros out until the exponent is as low as `exponent`.
    fn extend_to(&mut self, exponent: i64) {
        if !self.digits.is_empty() && exponent < self.exponent {
            let zeros = usize::try_from(self.exponent - exponent).unwrap_or(0);
            self.digits.resize(self.digits.len() + zeros, 0);
        }
        self.exponent = self.exponent.min(exponent);
    }

    fn add(mut self, other: &Decimal) -> Option<Decimal> {
        let mut other = other.clone();
        let exponent = self.exponent.min(other.exponent);
        let length = |number: &Decimal| number.digits.len() as i64 + number.exponent - exponent;
        if MAX_LENGTH < length(&self) || MAX_LENGTH < length(&other) {
            return None;
        }
        self.extend_to(exponent);
        other.extend_to(exponent);
        let width = self.digits.len().max(other.digits.len()) + 1;
        let (one, two) = (padded(&self.digits, width), padded(&other.digits, width));
        let (negative, digits) = if self.negative == other.negative {
            (self.negative, sum(&one, &two))
        } else if one < two {
            (other.negative, difference(&two, &one))
        } else {
            (self.negative, difference(&one, &two))
        };
        let zeros = digits.iter().take_while(|digit| **digit == 0).count();
        Some(Decimal { negative, digits: digits[zeros..].to_vec(), exponent })
    }

    /// The order by value, without writing zeros out.
    fn compare(&self, other: &Decimal) -> Ordering {
        let sign = |number: &Decimal| match (number.digits.is_empty(), number.negative) {
            (true, _) => 0,
            (false, negative) => 1 - 2 * i32::from(negative),
        };
        let order = sign(self).cmp(&sign(other));
        if order != Ordering::Equal || self.digits.is_empty() {
            return order;
        }
        let size = |number: &Decimal| number.digits.len() as i64 + number.exponent;
        let order = size(self).cmp(&size(other)).then_with(|| {
            let width = self.digits.len().max(other.digits.len());
            let digit = |number: &Decimal, index: usize| number.digits.get(index).copied().unwrap_or(0);
            (0..width).map(|index| digit(self, index)).cmp((0..width).map(|index| digit(other, index)))
        });
        if self.negative { order.reverse() } else { order }
    }
}

fn padded(digits: &[u8], width: usize) -> Vec<u8> {
    let mut padded = vec![0; width - digits.len()];
    padded.extend(digits);
    padded
}

fn sum(one: &[u8], two: &[u8]) -> Vec<u8> {
    let mut total = vec![0; one.len()];
    let mut carry = 0;
    for index in (0..one.len()).rev() {
        let digit = one[index] + two[index] + carry;
        (total[index], carry) = (digit % 10, digit / 10);
    }
    total
}

fn difference(larger: &[u8], smaller: &[u8]) -> Vec<u8> {
    let mut rest = vec![0; larger.len()];
    let mut borrowed = 0;
    for index in (0..larger.len()).rev() {
        let digit = 10 + larger[index] - smaller[index] - borrowed;
        (rest[index], borrowed) = (digit % 10, u8::from(digit < 10));
    }
    rest
}

/// `math.Pow10`: products of two rounded powers.
fn power_of_ten(exponent: i64) -> f64 {
    let rounded = |exponent: i64| format!("1e{exponent}").parse::<f64>().unwrap_or(0.0);
    match exponent {
        0..=308 => rounded(exponent / 32 * 32) * rounded(exponent % 32),
        -323..=-1 => rounded(-(-exponent / 32 * 32)) / rounded(-exponent % 32),
        _ if exponent > 0 => f64::INFINITY,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quantity(text: &str) -> Quantity {
        Quantity::parse(text).unwrap_or_else(|error| panic!("{text}: {}", error.text()))
    }

    #[test]
    fn what_is_read_prints_as_its_canonical_text() {
        for line in include_str!("../../../tests/golden/quantities.txt").lines() {
            let Some((text, expected)) = line.split_once('\t') else { continue };
            match Quantity::parse(text) {
                Ok(read) => assert_eq!(read.to_string(), expected, "{text}"),
                // Numbers that would have to be written out with thousands of digits are refused.
                Err(error) => {
                    let long = text.contains(['e', 'E']) && error == QuantityError::Number;
                    assert!(long || error.text() == expected, "{text}: {}", error.text());
                }
            }
        }
    }

    #[test]
    fn sums_keep_the_notation_of_the_first() {
        let cases = [
            ("50k", "20k", "70k"),
            ("1Gi", "1", "1073741825"),
            ("1", "1Gi", "1073741825"),
            ("1500m", "500m", "2"),
            ("0", "1Ki", "1Ki"),
            ("9223372036854775807", "1", "9223372036854775808"),
            ("1n", "1G", "1000000000000000001n"),
            ("-5", "5", "0"),
        ];
        for (one, two, expected) in cases {
            let sum = quantity(one).add(&quantity(two)).expect("fits");
            assert_eq!(sum.to_string(), expected, "{one} + {two}");
            assert_eq!(sum.sub(&quantity(two)).expect("fits"), quantity(one), "{one} + {two} - {two}");
        }
    }

    #[test]
    fn order_is_by_number() {
        for (one, two, expected) in [
            ("200M", "0.2G", Ordering::Equal),
            ("1Ki", "1024", Ordering::Equal),
            ("-1", "1n", Ordering::Less),
            ("12345678901234567890123", "1e30", Ordering::Less),
            ("1e2000", "1", Ordering::Greater),
            ("-1e2000", "-1", Ordering::Less),
        ] {
            assert_eq!(quantity(one).cmp(&quantity(two)), expected, "{one} {two}");
            assert_eq!(quantity(two).cmp(&quantity(one)), expected.reverse(), "{two} {one}");
        }
    }

    #[test]
    fn numbers_that_are_too_far_apart_are_not_written_out() {
        assert!(quantity("1e4000").add(&quantity("12345678901234567890.5")).is_some());
        assert_eq!(Quantity::parse("1e2147483647").map(|_| ()), Err(QuantityError::Number));
    }
}
