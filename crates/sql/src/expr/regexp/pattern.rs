//! Reads MySQL's syntax of regular expressions, which is ICU's, and writes the engines' own.
//!
//! Two forms come of it: one for the automaton, which has no back references, look-around or atomic groups, and one for
//! the backtracking engine. What both have in another way than ICU (`.`, `$`, `\h`, a possessive `+`) is spelled out. A
//! pattern that is none is refused here where MySQL says the place; what is left the engines refuse.

use super::fault::{self, Fault};
use super::posix;
use crate::error::SqlResult;

/// Where a line ends.
const LINE_ENDS: &str = r"\n\x0B\x0C\r\x{85}\x{2028}\x{2029}";
/// A count beyond this is error 4007.
const COUNT_MAX: u64 = i32::MAX as u64;

/// The letters of a match type that change how a pattern is read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Letters {
    /// `c` is false, `i` true.
    pub ignore_case: bool,
    /// `m`.
    pub multi_line: bool,
    /// `n`.
    pub dot_newline: bool,
    /// `u`: only a newline ends a line.
    pub unix_lines: bool,
}

/// A pattern that has been read.
#[derive(Debug, Default)]
pub struct Pattern {
    /// The form that the automaton runs, unless `backtracks`.
    pub linear: String,
    /// The form that the backtracking engine runs.
    pub full: String,
    /// Only the backtracking engine can run it.
    pub backtracks: bool,
    /// It asks where lines end, and the automaton knows a newline alone.
    pub asks_lines: bool,
    /// It asks for the end of the text, and a line end there is not part of it.
    pub asks_end: bool,
    /// The names of its groups, in order.
    pub groups: Vec<Option<String>>,
    /// How many branches a character may leave behind.
    pub branches: usize,
}

/// The state inside a group.
#[derive(Clone, Copy)]
struct Flags {
    multi_line: bool,
    dot_newline: bool,
    extended: bool,
    look_behind: bool,
    /// The group can't be repeated when it ends.
    looks: bool,
}

struct Reader {
    text: Vec<char>,
    at: usize,
    flags: Flags,
    outer: Vec<Flags>,
    line_ends: &'static str,
    /// There is something before that can be repeated.
    atom: bool,
    /// The greatest group that is referred to.
    referred: usize,
    out: Pattern,
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// 3688 and its neighbours.
    pub fn read(pattern: &str, letters: Letters) -> SqlResult<Pattern> {
        let flags = Flags {
            multi_line: letters.multi_line,
            dot_newline: letters.dot_newline,
            extended: false,
            look_behind: false,
            looks: false,
        };
        let mut reader = Reader {
            text: pattern.chars().collect(),
            at: 0,
            flags,
            outer: Vec::new(),
            line_ends: if letters.unix_lines { r"\n" } else { LINE_ENDS },
            atom: false,
            referred: 0,
            out: Pattern { branches: 1, ..Pattern::default() },
        };
        while let Some(c) = reader.next() {
            reader.token(c)?;
        }
        if !reader.outer.is_empty() {
            return Err(fault::of(Fault::Parenthesis));
        }
        if reader.referred > reader.out.groups.len() {
            return Err(fault::of(Fault::BackReference));
        }
        Ok(reader.out)
    }
}

impl Reader {
    fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += 1;
        Some(c)
    }

    fn takes(&mut self, text: &str) -> bool {
        let found = self.text[self.at..].iter().copied().take(text.chars().count()).eq(text.chars());
        if found {
            self.at += text.chars().count();
        }
        found
    }

    /// The error at the character that was read last.
    fn syntax(&self) -> crate::error::SqlError {
        fault::syntax(&self.text, self.at)
    }

    fn both(&mut self, text: &str) {
        self.out.linear.push_str(text);
        self.out.full.push_str(text);
    }

    fn atom(&mut self, text: &str) {
        self.both(text);
        self.atom = true;
    }

    fn token(&mut self, c: char) -> SqlResult<()> {
        match c {
            '\\' => return self.escape(),
            '[' => return self.class(),
            '(' => return self.group(),
            ')' => {
                self.atom = !self.flags.looks;
                self.flags = self.outer.pop().ok_or_else(|| fault::of(Fault::Parenthesis))?;
                self.both(")");
            }
            '|' => {
                self.both("|");
                self.out.branches += 1;
                self.atom = false;
            }
            '*' | '+' | '?' | '{' => return self.repeat(c),
            '}' => return Err(self.syntax()),
            '.' if self.flags.dot_newline => self.atom("."),
            '.' => self.atom(&format!("[^{}]", self.line_ends)),
            '^' => self.line_start(),
            '$' if self.flags.multi_line => {
                self.out.asks_lines = true;
                self.out.linear.push('$');
                let full = match self.line_ends {
                    LINE_ENDS => format!(r"(?:(?=[{LINE_ENDS}]|\z)(?:(?<!\r)|(?!\n)))"),
                    _ => String::from(r"(?=\n|\z)"),
                };
                self.out.full.push_str(&full);
                self.atom = true;
            }
            '$' => self.text_end(),
            '#' if self.flags.extended => while self.next().is_some_and(|c| c != '\n') {},
            c if self.flags.extended && c.is_whitespace() => {}
            c => self.literal(c),
        }
        Ok(())
    }

    fn literal(&mut self, c: char) {
        if c.is_ascii() && !c.is_ascii_alphanumeric() {
            self.atom(&format!(r"\x{{{:x}}}", c as u32));
        } else {
            self.atom(c.encode_utf8(&mut [0; 4]));
        }
    }

    fn line_start(&mut self) {
        self.out.linear.push('^');
        if self.flags.multi_line {
            self.out.asks_lines = true;
            let full = match self.line_ends {
                LINE_ENDS => format!(r"(?:\A|(?<=[{LINE_ENDS}])(?!\z)(?:(?<!\r)|(?!\n)))"),
                _ => String::from(r"(?:\A|(?<=\n)(?!\z))"),
            };
            self.out.full.push_str(&full);
        } else {
            self.out.full.push_str(r"\A");
        }
        self.atom = true;
    }

    /// The end of the text, or of its last line.
    fn text_end(&mut self) {
        self.out.asks_end = true;
        self.out.linear.push_str(r"\z");
        let full = match self.line_ends {
            LINE_ENDS => format!(r"(?:(?=(?:\r\n|[{LINE_ENDS}])?\z)(?:(?<!\r)|(?!\n)))"),
            _ => String::from(r"(?=\n?\z)"),
        };
        self.out.full.push_str(&full);
        self.atom = true;
    }

    /// A count of repetitions behind an atom.
    fn repeat(&mut self, c: char) -> SqlResult<()> {
        if !self.atom {
            return Err(self.syntax());
        }
        let mut text = String::from(c);
        let mut open = c != '?';
        if c == '{' {
            (text, open) = self.interval()?;
        }
        if open && self.flags.look_behind {
            return Err(fault::of(Fault::LookBehind));
        }
        match self.peek() {
            Some('?') => {
                self.at += 1;
                text.push('?');
            }
            Some('+') => {
                self.at += 1;
                self.out.backtracks = true;
                text.push('+');
            }
            _ => {}
        }
        self.out.branches += 1;
        self.both(&text);
        self.atom = false;
        Ok(())
    }

    /// `{min}`, `{min,}` or `{min,max}`, and whether it has no end.
    fn interval(&mut self) -> SqlResult<(String, bool)> {
        let min = self.count()?.ok_or_else(|| fault::of(Fault::Interval))?;
        let mut max = Some(min);
        if self.takes(",") {
            max = self.count()?;
        }
        if !self.takes("}") {
            return Err(fault::of(Fault::Interval));
        }
        match max {
            Some(max) if max < min => Err(fault::of(Fault::IntervalOrder)),
            // What the library takes for a possessive count is read as one that is not followed by a plus.
            Some(max) => Ok((format!("{{{min},{max}}}"), false)),
            None => Ok((format!("{{{min},}}"), true)),
        }
    }

    fn count(&mut self) -> SqlResult<Option<u64>> {
        let mut count = None;
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(10)) {
            self.at += 1;
            let more = count.unwrap_or(0) * 10 + u64::from(digit);
            if more > COUNT_MAX {
                return Err(fault::of(Fault::Number));
            }
            count = Some(more);
        }
        Ok(count)
    }

    fn group(&mut self) -> SqlResult<()> {
        let mut inner = Flags { looks: false, ..self.flags };
        let mut open = "(";
        if !self.takes("?") {
            self.out.groups.push(None);
        } else if self.takes("#") {
            while self.next().ok_or_else(|| fault::of(Fault::Parenthesis))? != ')' {}
            return Ok(());
        } else if let Some(form) = ["=", "!", "<=", "<!", ">"].into_iter().find(|form| self.takes(form)) {
            self.out.backtracks = true;
            inner.looks = form != ">";
            inner.look_behind |= form.starts_with('<');
            open = match form {
                "=" => "(?=",
                "!" => "(?!",
                "<=" => "(?<=",
                "<!" => "(?<!",
                _ => "(?>",
            };
        } else if self.takes("<") || self.takes("P<") {
            let name = self.name()?;
            if self.out.groups.iter().flatten().any(|known| *known == name) {
                return Err(fault::of(Fault::GroupName));
            }
            self.out.groups.push(Some(name));
        } else if matches!(self.peek(), Some('(' | '{')) {
            return Err(fault::of(Fault::NotImplemented));
        } else {
            return self.flag_group();
        }
        self.both(open);
        self.outer.push(std::mem::replace(&mut self.flags, inner));
        self.atom = false;
        Ok(())
    }

    /// The name of a group, up to its `>`.
    fn name(&mut self) -> SqlResult<String> {
        let mut name = String::new();
        loop {
            match self.next().ok_or_else(|| fault::of(Fault::GroupName))? {
                '>' if !name.is_empty() => return Ok(name),
                c if c.is_ascii_alphabetic() || c.is_ascii_digit() && !name.is_empty() => name.push(c),
                _ if name.is_empty() => return Err(self.syntax()),
                _ => return Err(fault::of(Fault::GroupName)),
            }
        }
    }

    /// `(?im-s)`, `(?im-s:..)` or `(?:..)`.
    fn flag_group(&mut self) -> SqlResult<()> {
        let mut inner = Flags { looks: false, ..self.flags };
        let (mut on, mut off, mut denied) = (String::new(), String::new(), false);
        let end = loop {
            let c = self.next().ok_or_else(|| fault::of(Fault::Parenthesis))?;
            match c {
                ':' | ')' => break c,
                '-' if !denied => denied = true,
                'i' | 'm' | 's' | 'x' => {
                    match c {
                        'm' => inner.multi_line = !denied,
                        's' => inner.dot_newline = !denied,
                        'x' => inner.extended = !denied,
                        _ => {}
                    }
                    let set = if denied { &mut off } else { &mut on };
                    if !set.contains(c) {
                        set.push(c);
                    }
                }
                'd' | 'w' => {}
                _ => return Err(self.syntax()),
            }
        };
        let dash = if off.is_empty() { "" } else { "-" };
        if end == ')' {
            self.flags = inner;
            if on.len() + off.len() > 0 {
                self.both(&format!("(?{on}{dash}{off})"));
            }
        } else {
            self.both(&format!("(?{on}{dash}{off}:"));
            self.outer.push(std::mem::replace(&mut self.flags, inner));
        }
        self.atom = false;
        Ok(())
    }

    /// A set of characters: the engines have ICU's syntax of them, but for names and escapes.
    fn class(&mut self) -> SqlResult<()> {
        let mut class = String::from("[");
        let mut depth = 1;
        if self.takes("^") {
            class.push('^');
        }
        if self.takes("]") {
            class.push_str(r"\]");
        }
        while depth > 0 {
            match self.next().ok_or_else(|| fault::of(Fault::Bracket))? {
                '\\' => {
                    let escaped = self.escaped_in_class()?;
                    class.push_str(&escaped);
                }
                '[' if self.takes(":") => class.push_str(&self.posix_name()?),
                '[' => {
                    class.push('[');
                    depth += 1;
                }
                ']' => {
                    class.push(']');
                    depth -= 1;
                }
                c @ ('~' | ' ' | '#') => class.push_str(&format!(r"\x{{{:x}}}", c as u32)),
                c => class.push(c),
            }
        }
        self.atom(&class);
        Ok(())
    }

    fn posix_name(&mut self) -> SqlResult<String> {
        let mut name = String::new();
        while !self.takes(":]") {
            let c = self.next().ok_or_else(|| fault::of(Fault::Bracket))?;
            name.extend(c.to_lowercase());
        }
        Ok(posix::class(&name))
    }

    fn escaped_in_class(&mut self) -> SqlResult<String> {
        let c = self.next().ok_or_else(|| fault::of(Fault::Escape))?;
        Ok(match c {
            'b' => r"\x08".into(),
            'd' | 'D' | 's' | 'S' | 'w' | 'W' => format!("\\{c}"),
            c => self.escaped(c)?,
        })
    }

    fn escape(&mut self) -> SqlResult<()> {
        let c = self.next().ok_or_else(|| fault::of(Fault::Escape))?;
        match c {
            '1'..='9' => return self.back_reference(c),
            'k' => {
                let known =
                    if self.takes("<") { self.name()? } else { return Err(fault::of(Fault::GroupName)) };
                let place = self.out.groups.iter().position(|name| name.as_deref() == Some(known.as_str()));
                let number = place.ok_or_else(|| fault::of(Fault::GroupName))? + 1;
                self.refer(number);
            }
            'Q' => {
                while !self.takes("\\E") {
                    let Some(c) = self.next() else { break };
                    self.literal(c);
                }
            }
            'A' | 'b' | 'B' | 'd' | 'D' | 's' | 'S' | 'w' | 'W' | 'z' => self.atom(&format!("\\{c}")),
            'Z' => self.text_end(),
            'G' => {
                self.out.backtracks = true;
                self.atom(r"\G");
            }
            'R' => self.atom(&format!(r"(?:\r\n|[{LINE_ENDS}])")),
            'X' => self.atom(r"(?:\r\n|\P{M}\p{M}*|\p{M}+)"),
            'N' => return Err(fault::of(Fault::NotImplemented)),
            c => {
                let text = self.escaped(c)?;
                self.atom(&text);
            }
        }
        Ok(())
    }

    fn back_reference(&mut self, first: char) -> SqlResult<()> {
        let mut number = first as usize - '0' as usize;
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(10)) {
            let more = number * 10 + digit as usize;
            if more > self.out.groups.len() {
                break;
            }
            number = more;
            self.at += 1;
        }
        self.refer(number);
        Ok(())
    }

    fn refer(&mut self, group: usize) {
        self.referred = self.referred.max(group);
        self.out.backtracks = true;
        self.atom(&format!(r"(?:\{group})"));
    }

    /// The meaning of an escaped character, in a set or outside.
    fn escaped(&mut self, c: char) -> SqlResult<String> {
        let code = match c {
            'h' => return Ok(r"[\t\p{Zs}]".into()),
            'H' => return Ok(r"[^\t\p{Zs}]".into()),
            'v' => return Ok(format!("[{LINE_ENDS}]")),
            'V' => return Ok(format!("[^{LINE_ENDS}]")),
            'p' | 'P' => return self.property(c),
            'x' if self.takes("{") => {
                let code = self.digits(16, 1, 8)?;
                if !self.takes("}") {
                    return Err(fault::of(Fault::Escape));
                }
                code
            }
            'x' => self.digits(16, 1, 2)?,
            'u' => self.digits(16, 4, 4)?,
            'U' => self.digits(16, 8, 8)?,
            '0' => self.digits(8, 1, 3)?,
            'c' => self.next().map(|c| c as u32 & 0x1F).ok_or_else(|| fault::of(Fault::Escape))?,
            'a' => 7,
            'e' => 0x1B,
            'f' => 0x0C,
            'n' => 0x0A,
            'r' => 0x0D,
            't' => 9,
            c => c as u32,
        };
        match char::from_u32(code) {
            Some(_) => Ok(format!(r"\x{{{code:x}}}")),
            None => Err(fault::of(Fault::Escape)),
        }
    }

    fn digits(&mut self, radix: u32, least: usize, most: usize) -> SqlResult<u32> {
        let (mut code, mut count) = (0u32, 0);
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(radix)) {
            if count == most {
                break;
            }
            code = code.saturating_mul(radix).saturating_add(digit);
            (self.at, count) = (self.at + 1, count + 1);
        }
        if count < least { Err(fault::of(Fault::Escape)) } else { Ok(code) }
    }

    fn property(&mut self, c: char) -> SqlResult<String> {
        let mut text = format!("\\{c}");
        let first = self.next().ok_or_else(|| fault::of(Fault::Escape))?;
        text.push(first);
        while first == '{' && !text.ends_with('}') {
            text.push(self.next().ok_or_else(|| fault::of(Fault::Escape))?);
        }
        Ok(text)
    }
}
