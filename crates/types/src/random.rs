//! Randomness as a port: the operating system's in production, a seed's in tests.

/// A source of random bytes.
pub trait Random: Send + Sync {
    /// Fills `buffer`. An error means that nothing may be made from it.
    fn fill(&self, buffer: &mut [u8]) -> Result<(), RandomError>;
}

/// The source of randomness failed.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("unable to read sufficient random bytes")]
pub struct RandomError;

/// A random (version 4) UUID in lower case, as `metadata.uid` holds it.
pub fn uuid(random: &dyn Random) -> Result<String, RandomError> {
    let mut bytes = [0_u8; 16];
    random.fill(&mut bytes)?;
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let mut text = String::with_capacity(36);
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        for nibble in [byte >> 4, byte & 0x0f] {
            text.push(char::from_digit(u32::from(nibble), 16).unwrap_or('0'));
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed(u8);

    impl Random for Fixed {
        fn fill(&self, buffer: &mut [u8]) -> Result<(), RandomError> {
            buffer.fill(self.0);
            Ok(())
        }
    }

    #[test]
    fn a_uuid_carries_its_version_and_variant() {
        assert_eq!(uuid(&Fixed(0xff)).expect("fixed bytes"), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(uuid(&Fixed(0)).expect("fixed bytes"), "00000000-0000-4000-8000-000000000000");
    }
}
