//! Quantities in billionths, all of one size: for sums of resources.

use std::cmp::Ordering;
use std::fmt;

use super::{Amount, Format, MAX_DIGITS, QuantityError, interpret, split};

/// A quantity to count with, in billionths: all that upstream keeps.
#[derive(Debug, Clone, Copy)]
pub struct Fixed {
    nanos: i128,
    format: Format,
}

/// Decimal digits of a billionth.
const NANO_DIGITS: i64 = 9;
/// Decimal digits that can be held.
const MOST_DIGITS: i64 = 38;
const NANOS: i128 = 1_000_000_000;

impl Fixed {
    /// Reads one. What is beyond 10^29 is the most that there is.
    ///
    /// # Errors
    /// When the text is no quantity.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        if text.is_empty() {
            return Err(QuantityError::Format);
        }
        let parts = split(text)?;
        let (exponent, format) = interpret(parts.suffix).ok_or(QuantityError::Suffix)?;
        if parts.whole.len() + parts.fraction.len() > MAX_DIGITS {
            return Err(QuantityError::Number);
        }
        let amount = Amount::new(&parts, exponent, format);
        let places = amount.scale + NANO_DIGITS;
        let nanos = if amount.digits.is_empty() {
            0
        } else if places < 0 || MOST_DIGITS < amount.digits.len() as i64 + places {
            i128::MAX / 2
        } else {
            let digits = amount.digits.iter().fold(0_i128, |value, digit| value * 10 + i128::from(*digit));
            digits * 10_i128.pow(u32::try_from(places).unwrap_or_default())
        };
        Ok(Self { nanos: if amount.negative { -nanos } else { nanos }, format })
    }

    /// So many of something.
    pub fn of(count: i64) -> Self {
        Self { nanos: i128::from(count) * NANOS, format: Format::DecimalSi }
    }

    /// Whether there is nothing of it.
    pub fn is_zero(self) -> bool {
        self.nanos == 0
    }

    /// Whether it is less than nothing.
    pub fn is_negative(self) -> bool {
        self.nanos < 0
    }

    /// The sum; it is printed as the first is, unless that is zero.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let format = if self.is_zero() { other.format } else { self.format };
        Self { nanos: self.nanos.saturating_add(other.nanos), format }
    }

    /// The difference; it is printed as the first is, unless that is zero.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        self.plus(Self { nanos: -other.nanos, ..other })
    }

    /// Rounded up to whole ones.
    #[must_use]
    pub fn rounded_up(self) -> Self {
        Self { nanos: self.whole().saturating_mul(NANOS), ..self }
    }

    /// The whole ones, rounded up.
    pub fn whole(self) -> i128 {
        rounded_up(self.nanos, NANOS)
    }

    /// The thousandths, rounded up.
    pub fn thousandths(self) -> i128 {
        rounded_up(self.nanos, NANOS / 1000)
    }
}

fn rounded_up(number: i128, unit: i128) -> i128 {
    number.div_euclid(unit) + i128::from(number.rem_euclid(unit) != 0)
}

impl PartialEq for Fixed {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Fixed {}

impl PartialOrd for Fixed {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Fixed {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl fmt::Display for Fixed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.nanos.unsigned_abs().to_string().bytes().map(|digit| digit - b'0').collect();
        let mut amount =
            Amount { negative: self.nanos < 0, digits, scale: -NANO_DIGITS, format: self.format };
        amount.trim();
        if self.format == Format::BinarySi {
            if self.nanos.abs() < 1024 * NANOS {
                amount.format = Format::DecimalSi;
            } else {
                amount.round_up(0);
            }
        }
        formatter.write_str(&amount.print())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // As resource.Quantity's Add, Sub, Cmp and String of k8s.io/apimachinery v0.37.2.
    #[test]
    fn quantities_are_counted_as_in_go() {
        for (one, other, sum, difference, order) in [
            ("1", "500m", "1500m", "500m", Ordering::Greater),
            ("100m", "1", "1100m", "-900m", Ordering::Less),
            ("0", "1Gi", "1Gi", "-1Gi", Ordering::Less),
            ("1Gi", "512Mi", "1536Mi", "512Mi", Ordering::Greater),
            ("1Gi", "1G", "2073741824", "73741824", Ordering::Greater),
            ("1e3", "1k", "2e3", "0", Ordering::Equal),
            ("512", "512", "1024", "0", Ordering::Equal),
            ("252Mi", "100M", "364241152", "164241152", Ordering::Greater),
        ] {
            let of = |text: &str| Fixed::parse(text).expect("a quantity");
            assert_eq!(of(one).plus(of(other)).to_string(), sum, "{one} + {other}");
            assert_eq!(of(one).minus(of(other)).to_string(), difference, "{one} - {other}");
            assert_eq!(of(one).cmp(&of(other)), order, "{one} {other}");
        }
        for (text, whole, thousandths) in
            [("1500m", 2, 1500), ("1n", 1, 1), ("-1500m", -1, -1500), ("2Ki", 2048, 2_048_000)]
        {
            let quantity = Fixed::parse(text).expect("a quantity");
            assert_eq!((quantity.whole(), quantity.thousandths()), (whole, thousandths), "{text}");
        }
        assert_eq!(Fixed::parse("1500m").expect("a quantity").rounded_up().to_string(), "2");
        assert_eq!(Fixed::of(3).to_string(), "3");
        assert!(Fixed::parse("1e999").expect("large") > Fixed::of(i64::MAX));
        assert!(Fixed::parse("x").is_err());
    }
}
