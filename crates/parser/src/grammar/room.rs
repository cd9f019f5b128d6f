//! Asking for memory while a tree grows (MEMORY-1).

/// How many words are asked for at once.
const WORDS: usize = 256;

/// Somebody who is asked for the memory of what words make.
#[derive(Default)]
pub(super) struct Room<'a> {
    /// Words that were taken and not asked for.
    words: usize,
    has_room: Option<&'a mut dyn FnMut(usize) -> bool>,
    refused: bool,
}

impl<'a> Room<'a> {
    pub(super) fn of(has_room: &'a mut dyn FnMut(usize) -> bool) -> Self {
        Self { has_room: Some(has_room), ..Self::default() }
    }

    /// Counts a word, and says whether it is time to ask.
    #[inline]
    pub(super) fn is_due(&mut self) -> bool {
        self.words += 1;
        self.words == WORDS
    }

    /// Asks for the words that were counted since it last asked. A refusal stands, and nobody is asked after it.
    pub(super) fn ask(&mut self) -> bool {
        let words = std::mem::take(&mut self.words);
        self.refused = self.refused || self.has_room.as_mut().is_some_and(|has_room| !has_room(words));
        !self.refused
    }
}
