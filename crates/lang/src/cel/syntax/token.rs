//! Tokens, and sets of them as messages print them.

/// The kind of a token, numbered as in upstream's grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Token {
    End,
    Equals,
    NotEquals,
    In,
    Less,
    LessEquals,
    GreaterEquals,
    Greater,
    And,
    Or,
    LeftBracket,
    RightBracket,
    LeftBrace,
    RightBrace,
    LeftParenthesis,
    RightParenthesis,
    Dot,
    Comma,
    Minus,
    Not,
    Question,
    Colon,
    Plus,
    Star,
    Slash,
    Percent,
    True,
    False,
    Null,
    Float,
    Int,
    Uint,
    String,
    Bytes,
    Identifier,
    EscapedIdentifier,
}

const NAMES: [&str; 36] = [
    "<EOF>",
    "'=='",
    "'!='",
    "'in'",
    "'<'",
    "'<='",
    "'>='",
    "'>'",
    "'&&'",
    "'||'",
    "'['",
    "']'",
    "'{'",
    "'}'",
    "'('",
    "')'",
    "'.'",
    "','",
    "'-'",
    "'!'",
    "'?'",
    "':'",
    "'+'",
    "'*'",
    "'/'",
    "'%'",
    "'true'",
    "'false'",
    "'null'",
    "NUM_FLOAT",
    "NUM_INT",
    "NUM_UINT",
    "STRING",
    "BYTES",
    "IDENTIFIER",
    "ESC_IDENTIFIER",
];

/// A set of tokens, and whether the rule may also end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Set(u64);

const END_OF_RULE: u64 = 1 << 63;

impl Set {
    pub(crate) const NOTHING: Set = Set(0);
    /// The rule may end.
    pub(crate) const RULE_END: Set = Set(END_OF_RULE);

    pub(crate) const fn of(tokens: &[Token]) -> Self {
        let mut bits = 0;
        let mut index = 0;
        while index < tokens.len() {
            bits |= 1 << tokens[index] as u8;
            index += 1;
        }
        Set(bits)
    }

    pub(crate) const fn with(self, other: Set) -> Self {
        Set(self.0 | other.0)
    }

    pub(crate) const fn has(self, token: Token) -> bool {
        self.0 & (1 << token as u8) != 0
    }

    pub(crate) const fn may_end(self) -> bool {
        self.0 & END_OF_RULE != 0
    }

    pub(crate) const fn without_end(self) -> Self {
        Set(self.0 & !END_OF_RULE)
    }

    /// The names, in braces where there are several.
    pub(crate) fn names(self) -> String {
        let names: Vec<&str> = NAMES
            .iter()
            .enumerate()
            .filter(|(bit, _)| self.0 & (1 << bit) != 0)
            .map(|(_, name)| *name)
            .collect();
        match names.as_slice() {
            [one] => (*one).to_owned(),
            several => format!("{{{}}}", several.join(", ")),
        }
    }
}

/// A token in its place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lexeme {
    pub(crate) token: Token,
    /// The bytes of the source.
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// The offset in characters.
    pub(crate) offset: u32,
}
