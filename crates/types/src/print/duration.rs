//! Durations as people read them.

/// A span of whole seconds, in at most two units: `5m`, `3d4h`, `2y30d`.
pub fn human_duration(seconds: i64) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365 * DAY;
    let two = |large: i64, small: i64, letters: [char; 2]| {
        let (whole, rest) = (seconds / large, seconds % large / small);
        match rest {
            0 => format!("{whole}{}", letters[0]),
            rest => format!("{whole}{}{rest}{}", letters[0], letters[1]),
        }
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => two(MINUTE, 1, ['m', 's']),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => two(HOUR, MINUTE, ['h', 'm']),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => two(DAY, HOUR, ['d', 'h']),
        691_200..63_072_000 => format!("{}d", seconds / DAY),
        63_072_000..252_288_000 => two(YEAR, DAY, ['y', 'd']),
        _ => format!("{}y", seconds / YEAR),
    }
}
