//! A number as its fields, for files that only the running process reads.

use super::Decimal;

/// Bytes of the form.
pub const RAW_BYTES: usize = 31;

impl Decimal {
    /// Every field as it is, also how many digits are shown.
    #[must_use]
    pub fn to_raw(&self) -> [u8; RAW_BYTES] {
        let mut raw = [0; RAW_BYTES];
        for (place, part) in raw.chunks_exact_mut(8).zip(self.low) {
            place.copy_from_slice(&part.to_le_bytes());
        }
        raw[24..28].copy_from_slice(&self.top.to_le_bytes());
        raw[28..].copy_from_slice(&[self.scale, self.shown, u8::from(self.negative)]);
        raw
    }

    /// Parses the form of [`Decimal::to_raw`].
    #[must_use]
    pub fn from_raw(raw: &[u8; RAW_BYTES]) -> Decimal {
        let mut low = [0; 3];
        for (place, part) in raw.chunks_exact(8).zip(&mut low) {
            *part = u64::from_le_bytes(place.try_into().unwrap_or_default());
        }
        let top = u32::from_le_bytes([raw[24], raw[25], raw[26], raw[27]]);
        Decimal { low, top, scale: raw[28], shown: raw[29], negative: raw[30] != 0 }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back() {
        for text in
            ["0", "-0.50", "99999999999999999999999999999999999.999999999999999999999999999999", "7.1"]
        {
            let number = Decimal::parse(text.as_bytes()).value;
            let third = number.div(&Decimal::from_i128(3, 0), 4).unwrap().unwrap();
            for number in [number, third] {
                let back = Decimal::from_raw(&number.to_raw());
                assert_eq!(
                    (back, back.scale(), back.shown_scale()),
                    (number, number.scale(), number.shown_scale())
                );
            }
        }
    }
}
