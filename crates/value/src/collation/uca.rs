//! Weights of the Unicode Collation Algorithm: 9.0 for `utf8mb4_0900_ai_ci`, 5.2 for `unicode_520_ci`, 4.0 for `unicode_ci`, all
//! primary weights only; and 14.0 for MariaDB's `uca1400` collations, each level in a table of its own.
//!
//! `uca900.bin` is the Default Unicode Collation Element Table 9.0.0 (allkeys.txt, copyright 2016
//! Unicode, Inc., used under the Unicode terms of use), single code points, packed. Contractions of
//! the table (Thai, Lao and Indic vowel signs) are not applied. The weights of the others, from the
//! same source, were read out of running servers with WEIGHT_STRING.
//!
//! The packed form is a list of runs: varint gap from the previous run's end, varint
//! `count << 2 | kind`, then weights as zigzag varint differences from the last one written.
//! Kind 0 repeats one weight, kind 1 counts it up, kind 2 starts with a varint length and repeats a
//! sequence, which is empty for ignorable characters.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::LazyLock;

use super::Charset;

static TABLE_400: LazyLock<Table> =
    LazyLock::new(|| Table::unpack(Version::V400, include_bytes!("uca400.bin")));
static TABLE_520: LazyLock<Table> =
    LazyLock::new(|| Table::unpack(Version::V520, include_bytes!("uca520.bin")));
static TABLE_900: LazyLock<Table> =
    LazyLock::new(|| Table::unpack(Version::V900, include_bytes!("uca900.bin")));

static TABLE_1400: LazyLock<Table> =
    LazyLock::new(|| Table::unpack(Version::V1400, include_bytes!("uca1400.bin")));
static TABLE_1400_SECOND: LazyLock<Table> =
    LazyLock::new(|| Table::unpack(Version::Second, include_bytes!("uca1400_second.bin")));
static TABLE_1400_THIRD: LazyLock<Table> =
    LazyLock::new(|| Table::unpack(Version::Third, include_bytes!("uca1400_third.bin")));

/// The version of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    V400,
    V520,
    V900,
    V1400,
    /// The secondary weights of 14.0.
    Second,
    /// The tertiary ones.
    Third,
}

impl Version {
    pub(super) fn table(self) -> &'static Table {
        match self {
            Version::V400 => &TABLE_400,
            Version::V520 => &TABLE_520,
            Version::V900 => &TABLE_900,
            Version::V1400 => &TABLE_1400,
            Version::Second => &TABLE_1400_SECOND,
            Version::Third => &TABLE_1400_THIRD,
        }
    }

    /// The weight of a space, which PAD SPACE pads with.
    pub(super) const fn space(self) -> u16 {
        match self {
            Version::V520 => 0x20a,
            Version::V400 | Version::V900 | Version::V1400 => 0x209,
            Version::Second => SECOND,
            Version::Third => THIRD,
        }
    }
}

/// The secondary and tertiary weight of most characters, a space too; the tables have the others.
const SECOND: u16 = 0x20;
const THIRD: u16 = 2;

/// An entry that stands for a sequence in `pool`.
const SEQUENCE: u16 = 0x8000;
/// The entry of a character that is not in the table: Hangul, ideographs, unassigned.
const ABSENT: u16 = 0xffff;
/// The longest sequence of a single character, U+FDFA's.
const LONGEST: usize = 18;

/// The characters that follow the first one of a contraction, and the weights of the whole contraction.
type Contraction = (Vec<u32>, Vec<u16>);

pub(super) struct Table {
    version: Version,
    /// The entries by code point: 0 is ignorable, below `SEQUENCE` the weight.
    pages: Vec<Option<Box<[u16; 256]>>>,
    ascii: [u16; 128],
    pool: Vec<Vec<u16>>,
    /// Sequences of characters that weigh otherwise than one by one, by their first: what follows it, the longest first.
    contractions: HashMap<u32, Vec<Contraction>>,
    /// The first characters that are ASCII.
    begins: [bool; 128],
}

struct Unpacker {
    packed: &'static [u8],
    at: usize,
    last: i64,
    seen: HashMap<Vec<u16>, u16>,
}

impl Unpacker {
    fn varint(&mut self) -> Option<u32> {
        let mut n = 0;
        for shift in (0..32).step_by(7) {
            let byte = *self.packed.get(self.at)?;
            self.at += 1;
            n |= u32::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(n);
            }
        }
        None
    }
    fn weight(&mut self) -> Option<u16> {
        let n = i64::from(self.varint()?);
        self.last += if n & 1 == 0 { n / 2 } else { -(n / 2) - 1 };
        u16::try_from(self.last).ok()
    }
}

impl Table {
    fn unpack(version: Version, packed: &'static [u8]) -> Table {
        let mut table = Table {
            version,
            pages: vec![None; 0x1100],
            ascii: [0; 128],
            pool: Vec::with_capacity(3000),
            contractions: HashMap::new(),
            begins: [false; 128],
        };
        let mut input = Unpacker { packed, at: 0, last: 0, seen: HashMap::new() };
        let mut code = 0;
        while let Some(gap) = input.varint() {
            code += gap;
            // The data is part of the program: it ends where a run ends.
            let Some(next) = table.run(&mut input, code) else { break };
            code = next;
        }
        table.fill_ascii();
        table
    }

    fn fill_ascii(&mut self) {
        for code in 0..128 {
            // Those that a level's table leaves out weigh what a space weighs there.
            self.ascii[code as usize] = match self.entry(code) {
                ABSENT => self.version.space(),
                entry => entry,
            };
        }
    }

    /// A copy, to be changed for a language.
    pub(super) fn changed(&self) -> Table {
        Table {
            version: self.version,
            pages: self.pages.clone(),
            ascii: self.ascii,
            pool: self.pool.clone(),
            contractions: self.contractions.clone(),
            begins: self.begins,
        }
    }

    /// Gives a character, or a sequence of them, weights of its own.
    pub(super) fn put(&mut self, codes: &[u32], weights: Vec<u16>) {
        let Some((&first, rest)) = codes.split_first() else { return };
        if !rest.is_empty() {
            let list = self.contractions.entry(first).or_default();
            list.push((rest.to_vec(), weights));
            list.sort_by_key(|(rest, _)| std::cmp::Reverse(rest.len()));
            if let Some(begins) = self.begins.get_mut(first as usize) {
                *begins = true;
            }
            return;
        }
        let entry = match weights.as_slice() {
            [] => 0,
            [one] if *one < SEQUENCE => *one,
            _ => {
                let known = self.pool.iter().position(|own| *own == weights);
                let at = known.unwrap_or_else(|| {
                    self.pool.push(weights);
                    self.pool.len() - 1
                });
                SEQUENCE | at as u16
            }
        };
        self.set(first, entry);
        self.fill_ascii();
    }

    fn change_weights(&mut self, change: impl Fn(u16) -> u16) {
        for entry in self.pages.iter_mut().flatten().flat_map(|page| page.iter_mut()) {
            if *entry < SEQUENCE {
                *entry = change(*entry);
            }
        }
        self.pool.iter_mut().flatten().for_each(|weight| *weight = change(*weight));
        self.fill_ascii();
    }

    /// Weights from `b` to `c` come before those from `a` to `b`.
    pub(super) fn rotate(&mut self, a: u16, b: u16, c: u16) {
        self.change_weights(|weight| match weight {
            own if (a..b).contains(&own) => own + (c - b),
            own if (b..c).contains(&own) => own - (b - a),
            own => own,
        });
    }

    /// Changes the third level so that capital letters come first.
    pub(super) fn capitals_first(&mut self) {
        // 2 is a small letter or none, 8 to 12 are capitals.
        self.change_weights(|weight| match weight {
            8..=12 => weight - 7,
            1..=7 => weight + 5,
            other => other,
        });
    }

    pub(super) fn weights<'a>(&'static self, text: &'a [u8]) -> Weights<'a> {
        let pending = Pending { weights: [0; LONGEST], at: 0, len: 0 };
        Weights { table: self, text, pending }
    }

    /// Returns the weights of a contraction that begins with a character and continues in `rest`, and the number of
    /// bytes of `rest` that it takes.
    fn contraction(&self, code: u32, rest: &[u8]) -> Option<(&[u16], usize)> {
        let list = self.contractions.get(&code)?;
        list.iter().find_map(|(wanted, weights)| {
            let mut at = 0;
            for want in wanted {
                let (code, len) = Charset::Utf8mb4.decode(&rest[at..])?;
                if code != *want {
                    return None;
                }
                at += len;
            }
            Some((weights.as_slice(), at))
        })
    }

    fn run(&mut self, input: &mut Unpacker, first: u32) -> Option<u32> {
        let tag = input.varint()?;
        let end = first + (tag >> 2);
        if tag & 3 == 2 {
            let len = input.varint()?;
            let sequence: Option<Vec<u16>> = (0..len).map(|_| input.weight()).collect();
            let entry = self.intern(input, sequence?);
            (first..end).for_each(|code| self.set(code, entry));
            return Some(end);
        }
        let weight = input.weight()?;
        for code in first..end {
            let up = if tag & 3 == 1 { (code - first) as u16 } else { 0 };
            let entry = if weight < SEQUENCE { weight + up } else { self.intern(input, vec![weight + up]) };
            self.set(code, entry);
        }
        Some(end)
    }

    /// Returns one entry for equal sequences, so that equal characters have equal entries.
    fn intern(&mut self, input: &mut Unpacker, sequence: Vec<u16>) -> u16 {
        if sequence.is_empty() {
            return 0;
        }
        let next = SEQUENCE | self.pool.len() as u16;
        let entry = *input.seen.entry(sequence.clone()).or_insert(next);
        if entry == next {
            self.pool.push(sequence);
        }
        entry
    }

    fn set(&mut self, code: u32, entry: u16) {
        if let Some(page) = self.pages.get_mut((code >> 8) as usize) {
            page.get_or_insert_with(|| Box::new([ABSENT; 256]))[(code & 255) as usize] = entry;
        }
    }

    fn entry(&self, code: u32) -> u16 {
        match self.pages.get((code >> 8) as usize) {
            Some(Some(page)) => page[(code & 255) as usize],
            _ => ABSENT,
        }
    }

    /// The sequences of characters that weigh otherwise than one by one.
    pub(super) fn sequences(&self) -> impl Iterator<Item = Vec<u32>> + '_ {
        let whole = |first: u32, rest: &[u32]| [&[first], rest].concat();
        self.contractions
            .iter()
            .flat_map(move |(first, list)| list.iter().map(move |(rest, _)| whole(*first, rest)))
    }

    /// A number below 2^21 that is equal for characters of equal weight, for LIKE.
    pub(super) fn identity(&self, code: u32) -> u32 {
        match self.entry(code) {
            ABSENT if self.version == Version::Second => u32::from(SECOND),
            ABSENT if self.version == Version::Third => u32::from(THIRD),
            ABSENT if self.version == Version::V400 && code > 0xffff => 0xfffd,
            ABSENT => 0x1_0000 + code,
            entry => u32::from(entry),
        }
    }

    fn expand(&self, code: u32, out: &mut Pending) {
        match self.entry(code) {
            ABSENT => self.derived(code, out),
            0 => {}
            entry if entry < SEQUENCE => out.push(entry),
            entry => self.pool[usize::from(entry & !SEQUENCE)].iter().for_each(|&w| out.push(w)),
        }
    }

    /// Characters that the table does not have.
    fn derived(&self, code: u32, out: &mut Pending) {
        let base = match (self.version, code) {
            (Version::Second, _) => return out.push(SECOND),
            (Version::Third, _) => return out.push(THIRD),
            (Version::V900, _) => return self.derived_900(code, out),
            (Version::V1400, _) => return derived_1400(code, out),
            (Version::V400, 0x1_0000..) => return out.push(0xfffd),
            (_, 0x3400..=0x4db5) => 0xfb80,
            (_, 0x4e00..=0x9fa5) => 0xfb40,
            _ => 0xfbc0,
        };
        out.push_implicit(base, code);
    }

    /// Hangul syllables are their jamo, everything else has the standard's implicit weights.
    fn derived_900(&self, code: u32, out: &mut Pending) {
        if (0xac00..=0xd7a3).contains(&code) {
            let n = code - 0xac00;
            let (lead, vowel, tail) = (n / 588, n / 28 % 21, n % 28);
            self.expand_jamo(0x1100 + lead, out);
            self.expand_jamo(0x1161 + vowel, out);
            if tail > 0 {
                self.expand_jamo(0x11a7 + tail, out);
            }
            return;
        }
        if let 0x17000..=0x18aff = code {
            out.push(0xfb00);
            return out.push((code - 0x17000) as u16 | 0x8000);
        }
        let base = match code {
            0x4e00..=0x9fd5 => 0xfb40,
            _ if is_unified_compatibility(code) => 0xfb40,
            0x3400..=0x4db5
            | 0x20000..=0x2a6d6
            | 0x2a700..=0x2b734
            | 0x2b740..=0x2b81d
            | 0x2b820..=0x2cea1 => 0xfb80,
            _ => 0xfbc0,
        };
        out.push_implicit(base, code);
    }

    fn expand_jamo(&self, code: u32, out: &mut Pending) {
        let entry = self.entry(code);
        if entry != ABSENT && entry < SEQUENCE {
            out.push(entry);
        }
    }
}

/// The twelve ideographs among those for compatibility that are unified ones.
fn is_unified_compatibility(code: u32) -> bool {
    matches!(
        code,
        0xfa0e | 0xfa0f | 0xfa11 | 0xfa13 | 0xfa14 | 0xfa1f | 0xfa21 | 0xfa23 | 0xfa24 | 0xfa27..=0xfa29
    )
}

/// Implicit weights as MariaDB gives them, Hangul syllables among them.
fn derived_1400(code: u32, out: &mut Pending) {
    let sibling = match code {
        0x17000..=0x18aff | 0x18d00..=0x18d08 => Some((0xfb00, 0x17000)),
        0x1b170..=0x1b2fb => Some((0xfb01, 0x1b170)),
        0x18b00..=0x18cd5 => Some((0xfb02, 0x18b00)),
        _ => None,
    };
    if let Some((base, first)) = sibling {
        out.push(base);
        return out.push((code - first) as u16 | 0x8000);
    }
    let base = match code {
        0x4e00..=0x9fff => 0xfb40,
        _ if is_unified_compatibility(code) => 0xfb40,
        0x3400..=0x4dbf
        | 0x20000..=0x2a6df
        | 0x2a700..=0x2b738
        | 0x2b740..=0x2b81d
        | 0x2b820..=0x2cea1
        | 0x2ceb0..=0x2ebe0
        | 0x30000..=0x3134a => 0xfb80,
        _ => 0xfbc0,
    };
    out.push_implicit(base, code);
}

/// Weights of the character being read.
#[derive(Clone)]
struct Pending {
    weights: [u16; LONGEST],
    at: u8,
    len: u8,
}

impl Pending {
    fn push_implicit(&mut self, base: u16, code: u32) {
        self.push(base + (code >> 15) as u16);
        self.push((code & 0x7fff) as u16 | 0x8000);
    }
    fn push(&mut self, weight: u16) {
        if let Some(slot) = self.weights.get_mut(usize::from(self.len)) {
            *slot = weight;
            self.len += 1;
        }
    }
}

impl Table {
    /// The order of two texts, if that shows where they first differ and only ASCII is met there: weights
    /// come character by character, so equal bytes in front have equal weights.
    #[inline]
    pub(super) fn compare_ascii(&self, a: &[u8], b: &[u8]) -> Option<Ordering> {
        if !self.contractions.is_empty() {
            return None;
        }
        for (&a, &b) in a.iter().zip(b) {
            if (a | b) >= 0x80 {
                return None;
            }
            if a != b {
                let (a, b) = (self.ascii[usize::from(a)], self.ascii[usize::from(b)]);
                if a == 0 || b == 0 || a >= SEQUENCE || b >= SEQUENCE {
                    // One of them is ignored, or several weights: the texts are out of step.
                    return None;
                }
                if a != b {
                    return Some(a.cmp(&b));
                }
            }
        }
        None
    }

    /// The weight of an ASCII character, if it has one only whatever follows; 0 if it is ignored.
    #[inline]
    pub(super) fn ascii(&self, byte: u8) -> Option<u16> {
        let weight = self.ascii.get(usize::from(byte)).copied()?;
        (weight < SEQUENCE && !self.begins[usize::from(byte)]).then_some(weight)
    }
}

/// The weights of a text. A byte that is no character weighs more than all that are.
#[derive(Clone)]
pub(super) struct Weights<'a> {
    table: &'static Table,
    text: &'a [u8],
    pending: Pending,
}

impl Iterator for Weights<'_> {
    type Item = u16;
    #[inline]
    fn next(&mut self) -> Option<u16> {
        loop {
            if self.pending.at < self.pending.len {
                self.pending.at += 1;
                return Some(self.pending.weights[usize::from(self.pending.at) - 1]);
            }
            let &first = self.text.first()?;
            if let Some(weight) = self.table.ascii(first) {
                self.text = &self.text[1..];
                match weight {
                    0 => continue,
                    weight => return Some(weight),
                }
            }
            let Some((code, len)) = Charset::Utf8mb4.decode(self.text) else {
                self.text = &self.text[1..];
                return Some(0xfe00 | u16::from(first));
            };
            self.text = &self.text[len..];
            (self.pending.at, self.pending.len) = (0, 0);
            if !self.table.contractions.is_empty()
                && let Some((weights, len)) = self.table.contraction(code, self.text)
            {
                self.text = &self.text[len..];
                weights.iter().for_each(|&weight| self.pending.push(weight));
                continue;
            }
            self.table.expand(code, &mut self.pending);
        }
    }
}
