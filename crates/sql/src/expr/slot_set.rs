//! Sets of slots: which table instances an expression reads, a plan has yet to read, a subquery needs from outside.
//!
//! Grows with the statement; the first 64 slots, which are all that most statements have, cost no allocation.

/// Bits in a word.
const BITS: usize = 64;

/// A set of slots.
#[derive(Clone, Debug, Default)]
pub struct SlotSet {
    first: u64,
    rest: Vec<u64>,
}

impl SlotSet {
    /// The set of one slot.
    #[must_use]
    pub fn of(slot: u16) -> SlotSet {
        let mut set = SlotSet::default();
        set.insert(slot);
        set
    }

    /// Adds a slot.
    pub fn insert(&mut self, slot: u16) {
        let (word, bit) = (usize::from(slot) / BITS, 1 << (usize::from(slot) % BITS));
        match word.checked_sub(1) {
            None => self.first |= bit,
            Some(at) => {
                if self.rest.len() <= at {
                    self.rest.resize(at + 1, 0);
                }
                self.rest[at] |= bit;
            }
        }
    }

    /// Adds all slots of another set.
    pub fn extend(&mut self, other: &SlotSet) {
        self.first |= other.first;
        if self.rest.len() < other.rest.len() {
            self.rest.resize(other.rest.len(), 0);
        }
        self.rest.iter_mut().zip(&other.rest).for_each(|(word, more)| *word |= more);
    }

    /// Takes all slots of another set out.
    pub fn remove(&mut self, other: &SlotSet) {
        self.first &= !other.first;
        self.rest.iter_mut().zip(&other.rest).for_each(|(word, less)| *word &= !less);
    }

    /// Whether a slot is in it.
    #[must_use]
    pub fn contains(&self, slot: u16) -> bool {
        let (word, bit) = (usize::from(slot) / BITS, 1 << (usize::from(slot) % BITS));
        let word = word.checked_sub(1).map_or(self.first, |at| self.rest.get(at).copied().unwrap_or(0));
        word & bit != 0
    }

    /// Whether the two have a slot in common.
    #[must_use]
    pub fn meets(&self, other: &SlotSet) -> bool {
        self.first & other.first != 0 || self.rest.iter().zip(&other.rest).any(|(a, b)| a & b != 0)
    }

    /// Whether every slot of it is in another set.
    #[must_use]
    pub fn within(&self, other: &SlotSet) -> bool {
        let mut left = self.clone();
        left.remove(other);
        left.is_empty()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first == 0 && self.rest.iter().all(|word| *word == 0)
    }
}

impl FromIterator<u16> for SlotSet {
    fn from_iter<T: IntoIterator<Item = u16>>(slots: T) -> SlotSet {
        let mut set = SlotSet::default();
        slots.into_iter().for_each(|slot| set.insert(slot));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::SlotSet;

    #[test]
    fn far_slots_are_told_apart() {
        let mut set: SlotSet = [1, 63, 64, 500].into_iter().collect();
        assert!(set.contains(64) && set.contains(500) && !set.contains(65) && !set.contains(501));
        assert!(!SlotSet::of(65).meets(&set) && SlotSet::of(64).meets(&set));
        assert!(SlotSet::of(500).within(&set) && !SlotSet::of(499).within(&set));
        set.remove(&[500, 64, 63].into_iter().collect());
        assert!(!set.is_empty() && set.within(&SlotSet::of(1)));
        set.remove(&SlotSet::of(1));
        assert!(set.is_empty());
    }
}
