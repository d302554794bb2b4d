//! `metav1.Time` and `metav1.MicroTime` as Go reads and writes them.
//!
//! Seconds since 1970 in, text out, and back; years beyond those of a calendar
//! library occur in stored objects and must come out as they went in.

/// Go's zero time, 0001-01-01T00:00:00Z.
pub const ZERO_SECONDS: i64 = -62_135_596_800;

/// Seconds and nanoseconds since 1970, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instant {
    /// Seconds, rounded down.
    pub seconds: i64,
    /// The rest.
    pub nanos: u32,
}

impl Instant {
    /// Whether this is Go's zero time.
    pub fn is_zero(self) -> bool {
        self.seconds == ZERO_SECONDS && self.nanos == 0
    }
}

/// Appends RFC 3339 in UTC with whole seconds.
pub fn put_seconds(out: &mut Vec<u8>, seconds: i64) {
    put_date_time(out, seconds);
    out.push(b'Z');
}

/// Appends RFC 3339 in UTC with six digits of fraction.
pub fn put_micros(out: &mut Vec<u8>, time: Instant) {
    put_date_time(out, time.seconds);
    out.push(b'.');
    put_padded(out, i64::from(time.nanos / 1_000), 6);
    out.push(b'Z');
}

/// RFC 3339 in UTC, with whole seconds or with six digits of fraction.
pub fn format(time: Instant, micros: bool) -> String {
    let mut out = Vec::with_capacity(27);
    if micros {
        put_micros(&mut out, time);
    } else {
        put_seconds(&mut out, time.seconds);
    }
    String::from_utf8(out).unwrap_or_default()
}

fn put_date_time(out: &mut Vec<u8>, seconds: i64) {
    let days = seconds.div_euclid(86_400);
    let second = seconds.rem_euclid(86_400);
    let (year, month, day) = civil(days);
    if year < 0 {
        out.push(b'-');
    }
    put_padded(out, year.saturating_abs(), 4);
    for (separator, number) in [
        (b'-', i64::from(month)),
        (b'-', i64::from(day)),
        (b'T', second / 3_600),
        (b':', second / 60 % 60),
        (b':', second % 60),
    ] {
        out.push(separator);
        put_padded(out, number, 2);
    }
}

/// Appends a number that is not negative, with leading zeros.
fn put_padded(out: &mut Vec<u8>, number: i64, width: usize) {
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(number);
    out.extend(std::iter::repeat_n(b'0', width.saturating_sub(digits.len())));
    out.extend_from_slice(digits.as_bytes());
}

/// Days since 1970 to year, month and day of the Gregorian calendar.
fn civil(days: i64) -> (i64, u32, u32) {
    let shifted = i128::from(days) + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = era * 400 + year_of_era + i128::from(month <= 2);
    (i64::try_from(year).unwrap_or(0), u32::try_from(month).unwrap_or(0), u32::try_from(day).unwrap_or(0))
}

fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let shifted_month = if month > 2 { month - 3 } else { month + 9 };
    let of_year = (153 * shifted_month + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year - 719_468
}

const SECONDS_LAYOUT: &str = "2006-01-02T15:04:05Z07:00";
const MICROS_LAYOUT: &str = "2006-01-02T15:04:05.000000Z07:00";

/// Reads RFC 3339; any fraction is allowed. The error is Go's text.
pub fn parse_seconds(text: &str) -> Result<Instant, String> {
    Parser { text, rest: text, layout: SECONDS_LAYOUT }.parse(false)
}

/// Reads RFC 3339 with exactly six digits of fraction. The error is Go's text.
pub fn parse_micros(text: &str) -> Result<Instant, String> {
    Parser { text, rest: text, layout: MICROS_LAYOUT }.parse(true)
}

/// Reads what [`format`] has written: years of more than four digits and before the first too. Nobody may
/// send such times, but stored objects hold them, and an update must not lose them.
pub fn read_back(text: &str, micros: bool) -> Option<Instant> {
    let parse = if micros { parse_micros } else { parse_seconds };
    if let Ok(time) = parse(text) {
        return Some(time);
    }
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    let (year, rest) = digits.split_once('-')?;
    let year = sign * year.parse::<i64>().ok()?;
    // The same day of a year that has as many, moved.
    let like = if days_in(year, 2) == 29 { 2000 } else { 2001 };
    let time = parse(&format!("{like}-{rest}")).ok()?;
    let days = i128::from(days_from_civil(year, 1, 1)) - i128::from(days_from_civil(like, 1, 1));
    let seconds = i64::try_from(i128::from(time.seconds) + days * 86_400).ok()?;
    Some(Instant { seconds, ..time })
}

struct Parser<'a> {
    text: &'a str,
    rest: &'a str,
    layout: &'static str,
}

impl Parser<'_> {
    fn parse(mut self, micros: bool) -> Result<Instant, String> {
        let year = self.digits(4, 4, "2006")?;
        self.literal("-")?;
        let month = self.digits(2, 2, "01")?;
        if !(1..=12).contains(&month) {
            return Err(self.range("month"));
        }
        self.literal("-")?;
        let day = self.digits(2, 2, "02")?;
        self.literal("T")?;
        let hour = self.digits(1, 2, "15")?;
        if hour > 23 {
            return Err(self.range("hour"));
        }
        self.literal(":")?;
        let minute = self.digits(2, 2, "04")?;
        if minute > 59 {
            return Err(self.range("minute"));
        }
        self.literal(":")?;
        let second = self.digits(2, 2, "05")?;
        if second > 59 {
            return Err(self.range("second"));
        }
        let nanos = if micros { self.six_digits()? } else { self.any_fraction() };
        let offset = self.zone()?;
        if !self.rest.is_empty() {
            return Err(format!("parsing time {:?}: extra text: {:?}", self.text, self.rest));
        }
        if day < 1 || day > days_in(year, month) {
            return Err(self.range("day"));
        }
        let of_day = hour * 3_600 + minute * 60 + second;
        Ok(Instant { seconds: days_from_civil(year, month, day) * 86_400 + of_day - offset, nanos })
    }

    fn digits(&mut self, least: usize, most: usize, element: &str) -> Result<i64, String> {
        let count = self.rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
        if count < least {
            return Err(self.cannot(element));
        }
        let (number, rest) = self.rest.split_at(count);
        self.rest = rest;
        number.parse().map_err(|_| self.cannot(element))
    }

    fn literal(&mut self, literal: &str) -> Result<(), String> {
        self.rest = self.rest.strip_prefix(literal).ok_or_else(|| self.cannot(literal))?;
        Ok(())
    }

    fn six_digits(&mut self) -> Result<u32, String> {
        let digits = self.rest.as_bytes();
        let fits = digits.len() > 6
            && matches!(digits[0], b'.' | b',')
            && digits[1..7].iter().all(u8::is_ascii_digit);
        if !fits {
            return Err(self.cannot(".000000"));
        }
        let micros: u32 = self.rest[1..7].parse().map_err(|_| self.cannot(".000000"))?;
        self.rest = &self.rest[7..];
        Ok(micros * 1_000)
    }

    fn any_fraction(&mut self) -> u32 {
        let Some(rest) = self.rest.strip_prefix(['.', ',']) else { return 0 };
        let count = rest.bytes().take_while(u8::is_ascii_digit).count();
        if count == 0 {
            return 0;
        }
        let nine: String = rest[..count].chars().chain("000000000".chars()).take(9).collect();
        self.rest = &rest[count..];
        nine.parse().unwrap_or(0)
    }

    /// Seconds east of Greenwich.
    fn zone(&mut self) -> Result<i64, String> {
        if let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Ok(0);
        }
        let zone = self.rest.as_bytes();
        let fits = zone.len() >= 6
            && matches!(zone[0], b'+' | b'-')
            && zone[3] == b':'
            && [1, 2, 4, 5].iter().all(|&at| zone[at].is_ascii_digit());
        if !fits {
            return Err(self.cannot("Z07:00"));
        }
        let pair = |at: usize| i64::from(zone[at] - b'0') * 10 + i64::from(zone[at + 1] - b'0');
        let (hours, minutes) = (pair(1), pair(4));
        if hours > 24 {
            return Err(self.range("time zone offset hour"));
        }
        if minutes > 60 {
            return Err(self.range("time zone offset minute"));
        }
        let offset = hours * 3_600 + minutes * 60;
        let west = zone[0] == b'-';
        self.rest = &self.rest[6..];
        Ok(if west { -offset } else { offset })
    }

    fn cannot(&self, element: &str) -> String {
        format!(
            "parsing time {:?} as {:?}: cannot parse {:?} as {:?}",
            self.text, self.layout, self.rest, element
        )
    }

    fn range(&self, what: &str) -> String {
        format!("parsing time {:?}: {what} out of range", self.text)
    }
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_print_and_parse_as_in_go() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (1_700_000_000, "2023-11-14T22:13:20Z"),
            (ZERO_SECONDS, "0001-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (253_402_300_800, "10000-01-01T00:00:00Z"),
        ] {
            assert_eq!(format(Instant { seconds, nanos: 0 }, false), text);
            if seconds < 253_402_300_800 {
                assert_eq!(parse_seconds(text), Ok(Instant { seconds, nanos: 0 }), "{text}");
            }
        }
        let extremes = [i64::MIN, i64::MAX];
        for seconds in extremes {
            assert!(!format(Instant { seconds, nanos: 0 }, true).is_empty());
        }
    }

    #[test]
    fn every_stored_time_is_read_back() {
        let leap = 951_782_400 + 400 * 146_097 * 86_400 / 4;
        for seconds in
            [i64::MIN, -1 << 50, ZERO_SECONDS - 1, 0, leap, 253_402_300_800, 4_226_000_000_000, i64::MAX]
        {
            for (nanos, micros) in [(0, false), (123_456_000, true)] {
                let time = Instant { seconds, nanos };
                assert_eq!(read_back(&format(time, micros), micros), Some(time), "{seconds}");
            }
        }
        for malformed in
            ["", "-", "x-01-01T00:00:00Z", "12345-02-30T00:00:00Z", "99999999999999999999-01-01T00:00:00Z"]
        {
            assert_eq!(read_back(malformed, false), None, "{malformed}");
        }
    }

    #[test]
    fn zones_and_fractions_are_understood() {
        for (text, seconds, nanos) in [
            ("2023-11-14T23:13:20+01:00", 1_700_000_000, 0),
            ("2023-11-14T22:13:20.5Z", 1_700_000_000, 500_000_000),
            ("2023-11-14T22:13:20.1234567891Z", 1_700_000_000, 123_456_789),
        ] {
            assert_eq!(parse_seconds(text), Ok(Instant { seconds, nanos }), "{text}");
        }
        let time = parse_micros("2023-11-14T22:13:20.123456Z").expect("well formed");
        assert_eq!(format(time, true), "2023-11-14T22:13:20.123456Z");
    }

    #[test]
    fn errors_read_as_in_go() {
        for (text, error) in [
            ("", r#"parsing time "" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "2006""#),
            ("2023", r#"parsing time "2023" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "-""#),
            ("2023-13-01T00:00:00Z", r#"parsing time "2023-13-01T00:00:00Z": month out of range"#),
            ("2023-02-30T00:00:00Z", r#"parsing time "2023-02-30T00:00:00Z": day out of range"#),
            ("2023-02-03T00:00:00Zx", r#"parsing time "2023-02-03T00:00:00Zx": extra text: "x""#),
        ] {
            assert_eq!(parse_seconds(text), Err(error.to_owned()));
        }
        assert_eq!(
            parse_micros("2023-11-14T22:13:20Z"),
            Err(concat!(
                r#"parsing time "2023-11-14T22:13:20Z" as "2006-01-02T15:04:05.000000Z07:00": "#,
                r#"cannot parse "Z" as ".000000""#
            )
            .to_owned())
        );
    }
}
