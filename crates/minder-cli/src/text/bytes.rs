//! Numbers of bytes, as people read them.

/// Returns a number of bytes with a binary unit: `812 B`, `1.2 KiB`, `34 MiB`.
pub(crate) fn format_bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    // 1023.5 KiB would be rounded to `1024 KiB`.
    while value >= 1023.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let decimals = usize::from(value < 9.95);
    format!("{value:.decimals$} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn format_bytes_prints_two_to_four_digits() {
        for (bytes, expected) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (10_240, "10 KiB"),
            (1_048_000, "1023 KiB"),
            (1 << 20, "1.0 MiB"),
            (2_147_483_648, "2.0 GiB"),
            (u64::MAX, "16384 PiB"),
        ] {
            assert_eq!(format_bytes(bytes), expected);
        }
    }
}
