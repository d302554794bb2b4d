//! How the parser reports wrong syntax and goes on.
//!
//! The strategy is that of the runtime of upstream's generated parser: one
//! unwanted token is skipped or one missing is made up; otherwise tokens are
//! skipped until one follows an open rule. Nothing more is reported until a
//! token fits again.

use super::issues::{Issue, Source};
use super::lexer::lex;
use super::token::{Lexeme, Set, Token};

/// An error was reported (or silenced) in this rule; the rule's end recovers.
pub(crate) struct Failed;

/// What a rule's part returns.
pub(crate) type Parsed<T> = Result<T, Failed>;

/// Most attempts to recover.
const RECOVERIES: usize = 30;
/// Most tokens that one recovery skips.
const SKIPPED: usize = 256;
/// Most syntax errors that are reported.
const REPORTED: usize = 100;
/// Deepest nesting of one rule.
const DEPTH: i32 = 250;

/// The rules of the grammar whose nesting is counted.
#[derive(Clone, Copy)]
pub(crate) enum Rule {
    Start,
    Expr,
    Or,
    And,
    Relation,
    Calc,
    Unary,
    Member,
    Primary,
    ExprList,
    ListInit,
    FieldInit,
    OptField,
    MapInit,
    EscapeIdent,
    OptExpr,
    Literal,
}

/// The tokens and the state of recovery.
pub(crate) struct Stream<'s> {
    pub(crate) source: &'s Source<'s>,
    pub(crate) lexemes: Vec<Lexeme>,
    pub(crate) position: usize,
    /// What follows each open rule.
    follows: Vec<Set>,
    depths: [i32; 17],
    recovering: bool,
    last_position: Option<usize>,
    last_states: Vec<u16>,
    recoveries: usize,
    pub(crate) issues: Vec<Issue>,
    /// What the lexer made no token of.
    skipped: Vec<(usize, usize)>,
    reported: usize,
    /// Parsing ends at once; what was reported stays.
    pub(crate) stopped: bool,
}

impl<'s> Stream<'s> {
    pub(crate) fn new(source: &'s Source<'s>) -> Self {
        let (lexemes, skipped, issues) = lex(source);
        let reported = issues.len();
        Self {
            source,
            lexemes,
            position: 0,
            follows: Vec::with_capacity(32),
            depths: [0; 17],
            recovering: false,
            last_position: None,
            last_states: Vec::new(),
            recoveries: 0,
            issues,
            skipped,
            reported,
            stopped: false,
        }
    }

    pub(crate) fn current(&self) -> Lexeme {
        self.lexemes[self.position]
    }

    pub(crate) fn token(&self) -> Token {
        self.lexemes[self.position].token
    }

    /// The token `ahead` tokens behind the current one.
    pub(crate) fn look(&self, ahead: usize) -> Token {
        self.lexemes.get(self.position + ahead).map_or(Token::End, |lexeme| lexeme.token)
    }

    pub(crate) fn text(&self, lexeme: Lexeme) -> &'s str {
        &self.source.text[lexeme.start..lexeme.end]
    }

    fn consume(&mut self) {
        if self.position + 1 < self.lexemes.len() {
            self.position += 1;
        }
    }

    /// Opens a rule behind which comes `follow`.
    pub(crate) fn enter(&mut self, rule: Rule, follow: Set) -> Parsed<()> {
        self.follows.push(follow);
        self.count(rule)
    }

    /// Counts one level more of `rule`.
    pub(crate) fn count(&mut self, rule: Rule) -> Parsed<()> {
        let depth = &mut self.depths[rule as usize];
        *depth += 1;
        if *depth > DEPTH {
            self.stop(Some(format!("expression recursion limit exceeded: {DEPTH}")));
            return Err(Failed);
        }
        Ok(())
    }

    /// Counts `levels` levels less of `rule`, but never below none.
    pub(crate) fn uncount(&mut self, rule: Rule, levels: i32) {
        let depth = &mut self.depths[rule as usize];
        *depth = (*depth - levels).max(0);
    }

    /// Closes the rule that was opened last.
    pub(crate) fn leave(&mut self, rule: Rule) {
        self.follows.pop();
        self.uncount(rule, 1);
    }

    /// Ends all parsing.
    pub(crate) fn stop(&mut self, message: Option<String>) {
        if !self.stopped {
            self.stopped = true;
            if let Some(message) = message {
                self.issues.push(self.source.issue(None, message));
            }
        }
    }

    fn notify(&mut self, lexeme: Lexeme, message: &str) {
        if self.reported == REPORTED {
            let message = format!("Syntax error: More than {REPORTED} syntax errors");
            self.issues.push(self.source.issue(Some(lexeme.offset), message));
            self.stop(None);
            return;
        }
        self.reported += 1;
        self.issues.push(self.source.issue(Some(lexeme.offset), format!("Syntax error: {message}")));
    }

    /// The tokens that may come, those behind open rules included.
    fn expected(&self, set: Set) -> Set {
        let mut all = set;
        let mut open = self.follows.iter().rev();
        while all.may_end() {
            all = all.without_end();
            match open.next() {
                Some(follow) => all = all.with(*follow),
                None => return all.with(Set::of(&[Token::End])),
            }
        }
        all
    }

    fn display(&self, lexeme: Lexeme) -> String {
        let text = if lexeme.token == Token::End { "<EOF>" } else { self.text(lexeme) };
        quoted(text)
    }

    /// Takes `token`; where another is, skips it, makes the missing one up, or fails.
    /// `next` is what may come behind the token in this rule.
    pub(crate) fn expect(&mut self, token: Token, next: Set) -> Parsed<Lexeme> {
        let lexeme = self.current();
        if lexeme.token == token {
            self.recovering = false;
            self.last_states.clear();
            self.last_position = None;
            self.consume();
            return Ok(lexeme);
        }
        self.attempt()?;
        let wanted = Set::of(&[token]);
        if let Some(lexeme) = self.delete(wanted)? {
            self.consume();
            return Ok(lexeme);
        }
        if self.expected(next).has(lexeme.token) {
            if !self.recovering {
                self.recovering = true;
                let message = format!("missing {} at {}", wanted.names(), self.display(lexeme));
                self.notify(lexeme, &message);
            }
            return if self.stopped { Err(Failed) } else { Ok(Lexeme { end: lexeme.start, ..lexeme }) };
        }
        self.mismatch(wanted)
    }

    /// Looks, before a choice of `set`, whether the current token is one of it.
    pub(crate) fn sync(&mut self, set: Set) -> Parsed<()> {
        if self.recovering || set.may_end() || set.has(self.token()) {
            return Ok(());
        }
        if self.delete(set)?.is_some() {
            return Ok(());
        }
        self.mismatch(set)
    }

    /// The same behind one round of a loop that has at least one.
    pub(crate) fn sync_loop(&mut self, set: Set) -> Parsed<()> {
        if self.recovering || set.has(self.token()) {
            return Ok(());
        }
        let lexeme = self.current();
        self.recovering = true;
        let message = format!("extraneous input {} expecting {}", self.display(lexeme), set.names());
        self.notify(lexeme, &message);
        let wanted = self.recovery_set().with(set);
        self.skip_until(wanted)
    }

    /// Skips the current token if the one behind it is in `set`.
    fn delete(&mut self, set: Set) -> Parsed<Option<Lexeme>> {
        let wanted = self.expected(set);
        if self.token() == Token::End || !wanted.has(self.look(1)) {
            return Ok(None);
        }
        let lexeme = self.current();
        if !self.recovering {
            let message = format!("extraneous input {} expecting {}", self.display(lexeme), wanted.names());
            self.notify(lexeme, &message);
        }
        self.consume();
        self.recovering = false;
        self.last_states.clear();
        self.last_position = None;
        if self.stopped { Err(Failed) } else { Ok(Some(self.current())) }
    }

    fn mismatch<T>(&mut self, set: Set) -> Parsed<T> {
        if !self.recovering {
            self.recovering = true;
            let lexeme = self.current();
            let message =
                format!("mismatched input {} expecting {}", self.display(lexeme), self.expected(set).names());
            self.notify(lexeme, &message);
        }
        Err(Failed)
    }

    /// No choice fits what begins at `start` and ends with the token at `offending`.
    pub(crate) fn no_alternative<T>(&mut self, start: usize, offending: usize) -> Parsed<T> {
        if !self.recovering {
            self.recovering = true;
            let offending = self.lexemes[offending.min(self.lexemes.len() - 1)];
            let start = self.lexemes[start];
            let text = if start.token == Token::End {
                "<EOF>".to_owned()
            } else {
                self.text_without_skipped(start.start, offending.end)
            };
            let reserved = match offending.token {
                Token::True | Token::False | Token::Null if text.starts_with('.') => {
                    let word = self.text(offending);
                    (text.len() == word.len() + 1).then_some(word)
                }
                _ => None,
            };
            let message = match reserved {
                Some(word) => format!("mismatched input '{word}' expecting IDENTIFIER"),
                None => format!("no viable alternative at input {}", quoted(&text)),
            };
            self.notify(offending, &message);
        }
        Err(Failed)
    }

    /// The text between two places, without characters of which the lexer made no token.
    fn text_without_skipped(&self, start: usize, end: usize) -> String {
        let mut text = String::new();
        let mut position = start;
        for (from, to) in &self.skipped {
            if (start..end).contains(from) {
                text.push_str(&self.source.text[position..*from]);
                position = *to;
            }
        }
        text + &self.source.text[position.min(end)..end]
    }

    fn attempt(&mut self) -> Parsed<()> {
        if self.recoveries == RECOVERIES {
            self.recoveries += 1;
            let lexeme = self.current();
            self.notify(lexeme, &format!("error recovery attempt limit exceeded: {RECOVERIES}"));
            self.stop(None);
        }
        if self.stopped {
            return Err(Failed);
        }
        self.recoveries += 1;
        Ok(())
    }

    /// Recovers at the end of a rule that failed in `state`.
    pub(crate) fn recover(&mut self, state: u16) {
        if self.stopped || self.attempt().is_err() {
            return;
        }
        if self.last_position == Some(self.position) && self.last_states.contains(&state) {
            self.consume();
        }
        if self.last_position != Some(self.position) {
            self.last_position = Some(self.position);
        }
        self.last_states.push(state);
        let wanted = self.recovery_set();
        // A limit that was hit ends everything anyway.
        drop(self.skip_until(wanted));
    }

    fn recovery_set(&self) -> Set {
        self.follows.iter().fold(Set::NOTHING, |all, follow| all.with(*follow)).without_end()
    }

    fn skip_until(&mut self, wanted: Set) -> Parsed<()> {
        let mut skipped = 0;
        while self.token() != Token::End && !wanted.has(self.token()) {
            if skipped == SKIPPED {
                self.stop(Some(format!("error recovery token lookahead limit exceeded: {SKIPPED}")));
                return Err(Failed);
            }
            skipped += 1;
            self.consume();
        }
        if self.stopped { Err(Failed) } else { Ok(()) }
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r"))
}
