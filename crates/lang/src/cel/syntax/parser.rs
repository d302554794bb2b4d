//! From tokens to a tree: one function a rule of upstream's grammar.

use std::sync::Arc;

use super::ast::{Expr, Id, Kind, operators};
use super::issues::{Issues, Source};
use super::literal::unquote;
use super::macros::{Macro, MacroContext};
use super::recovery::{Failed, Parsed, Rule, Stream};
use super::token::{Lexeme, Set, Token};
use crate::cel::limits;
use crate::cel::text::Blob;
use crate::cel::value::Value;

/// A tree and where its expressions stand.
pub(crate) struct Tree {
    pub(crate) root: Expr,
    /// The offset in characters of each id; ids start at 1.
    pub(crate) offsets: Vec<u32>,
}

/// Parses `source` with the macros of `macros`.
pub(crate) fn parse(source: &Source<'_>, macros: &[Macro]) -> Result<Tree, Issues> {
    let length = source.text.chars().count();
    if length > limits::SOURCE {
        let message =
            format!("expression code point size exceeds limit: size: {length}, limit {}", limits::SOURCE);
        return Err(source.issues(vec![source.issue(None, message)]));
    }
    let mut parser = Parser { stream: Stream::new(source), offsets: vec![0], macros, state: 0 };
    let root = parser.start();
    if parser.stream.issues.is_empty() {
        Ok(Tree { root: root.expr, offsets: parser.offsets })
    } else {
        Err(source.issues(parser.stream.issues))
    }
}

pub(super) struct Parser<'s, 'm> {
    pub(super) stream: Stream<'s>,
    offsets: Vec<u32>,
    macros: &'m [Macro],
    /// The place in the grammar, as upstream numbers it, where a rule last was.
    pub(super) state: u16,
}

/// An expression and how deep operators, selections and calls of members nest in it.
pub(super) struct Node {
    pub(super) expr: Expr,
    pub(super) depth: usize,
}

impl Node {
    /// The expression, which goes into a larger one.
    fn take(&mut self) -> Expr {
        std::mem::replace(&mut self.expr, Expr { id: 0, kind: Kind::Unspecified })
    }
}

use Token::{
    And, Bytes, Colon, Comma, Dot, End, EscapedIdentifier, False, Float, Identifier, Int, LeftBrace,
    LeftBracket, LeftParenthesis, Minus, Not, Null, Or, Percent, Plus, Question, RightBracket,
    RightParenthesis, Slash, Star, String, True, Uint,
};

pub(super) const PRIMARY: Set = Set::of(&[
    LeftBracket,
    LeftBrace,
    LeftParenthesis,
    Dot,
    Minus,
    True,
    False,
    Null,
    Float,
    Int,
    Uint,
    String,
    Bytes,
    Identifier,
]);
pub(super) const EXPR: Set = PRIMARY.with(Set::of(&[Not]));
pub(super) const OPT_EXPR: Set = EXPR.with(Set::of(&[Question]));
const LITERAL: Set = Set::of(&[Minus, True, False, Null, Float, Int, Uint, String, Bytes]);
const RELATIONS: Set = Set::of(&[
    Token::Equals,
    Token::NotEquals,
    Token::In,
    Token::Less,
    Token::LessEquals,
    Token::GreaterEquals,
    Token::Greater,
]);
const CALCS: Set = Set::of(&[Star, Slash, Percent, Plus, Minus]);
const MEMBERS: Set = Set::of(&[Dot, LeftBracket]);
pub(super) const ESCAPE_IDENT: Set = Set::of(&[Identifier, EscapedIdentifier]);

const RESERVED: [&str; 21] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "package",
    "namespace",
    "null",
    "return",
    "true",
    "var",
    "void",
    "while",
];

pub(super) const fn set(token: Token) -> Set {
    Set::of(&[token])
}

pub(super) const fn or_end(tokens: Set) -> Set {
    tokens.with(Set::RULE_END)
}

impl Parser<'_, '_> {
    pub(super) fn id(&mut self, lexeme: Lexeme) -> Id {
        self.id_at(lexeme.offset)
    }

    fn id_at(&mut self, offset: u32) -> Id {
        self.offsets.push(offset);
        (self.offsets.len() - 1) as Id
    }

    pub(super) fn unspecified(&mut self) -> Node {
        let id = self.id(self.stream.current());
        Node { expr: Expr { id, kind: Kind::Unspecified }, depth: 0 }
    }

    /// Reports what is no error of the grammar.
    fn report(&mut self, offset: u32, message: &str) -> Node {
        let issue = self.stream.source.issue(Some(offset), message);
        self.stream.issues.push(issue);
        let id = self.id_at(offset);
        Node { expr: Expr { id, kind: Kind::Unspecified }, depth: 0 }
    }

    fn node(&mut self, lexeme: Lexeme, kind: Kind, depth: usize) -> Node {
        let id = self.id(lexeme);
        Node { expr: Expr { id, kind }, depth }
    }

    /// One level deeper than `depth`, if that is not too deep.
    fn deeper(&mut self, depth: usize) -> usize {
        if depth >= limits::RECURSION {
            self.stream.stop(Some("max recursion depth exceeded".to_owned()));
        }
        depth + 1
    }

    /// Runs the body of a rule, and recovers at its end if it failed.
    pub(super) fn rule<T>(
        &mut self,
        rule: Rule,
        follow: Set,
        body: impl FnOnce(&mut Self) -> Parsed<T>,
        otherwise: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let state = self.state;
        let result = match self.stream.enter(rule, follow) {
            Ok(()) => body(self),
            Err(failed) => Err(failed),
        };
        let value = match result {
            Ok(value) => value,
            Err(Failed) => {
                self.stream.recover(self.state);
                otherwise(self)
            }
        };
        self.stream.leave(rule);
        self.state = state;
        value
    }

    /// A rule that gives an expression.
    fn expression(&mut self, rule: Rule, follow: Set, body: impl FnOnce(&mut Self) -> Parsed<Node>) -> Node {
        self.rule(rule, follow, body, Self::unspecified)
    }

    /// Ends a rule's body where all parsing ended.
    pub(super) fn alive(&self) -> Parsed<()> {
        if self.stream.stopped { Err(Failed) } else { Ok(()) }
    }

    fn start(&mut self) -> Node {
        self.rule(
            Rule::Start,
            Set::RULE_END,
            |parser| {
                parser.state = 34;
                let node = parser.expr(set(End));
                parser.alive()?;
                parser.state = 35;
                parser.stream.expect(End, Set::RULE_END)?;
                Ok(node)
            },
            Self::unspecified,
        )
    }

    pub(super) fn expr(&mut self, follow: Set) -> Node {
        self.expression(Rule::Expr, follow, |parser| {
            parser.state = 37;
            let condition = parser.conditional_or(or_end(set(Question)));
            parser.alive()?;
            parser.state = 43;
            if parser.stream.token() != Question {
                return Ok(condition);
            }
            let operator = parser.stream.expect(Question, EXPR)?;
            parser.state = 39;
            let yes = parser.conditional_or(set(Colon));
            parser.alive()?;
            parser.state = 40;
            parser.stream.expect(Colon, EXPR)?;
            parser.state = 41;
            let no = parser.expr(Set::RULE_END);
            parser.alive()?;
            let depth = parser.deeper(condition.depth.max(yes.depth).max(no.depth));
            Ok(parser.call(operator, operators::CONDITIONAL, vec![condition.expr, yes.expr, no.expr], depth))
        })
    }

    fn conditional_or(&mut self, follow: Set) -> Node {
        self.expression(Rule::Or, follow, |parser| {
            parser.logic(operators::OR, Or, 45, |parser| parser.conditional_and(or_end(set(Or))))
        })
    }

    fn conditional_and(&mut self, follow: Set) -> Node {
        self.expression(Rule::And, follow, |parser| {
            parser.logic(operators::AND, And, 53, |parser| parser.relation(0, or_end(set(And))))
        })
    }

    /// Terms with one logical operator between them, as a balanced tree.
    fn logic(
        &mut self,
        function: &'static str,
        token: Token,
        state: u16,
        mut term: impl FnMut(&mut Self) -> Node,
    ) -> Parsed<Node> {
        self.state = state;
        let first = term(self);
        self.alive()?;
        if self.stream.token() != token {
            return Ok(first);
        }
        let mut depth = first.depth;
        let mut terms = vec![Some(first.expr)];
        let mut operators = Vec::new();
        while self.stream.token() == token {
            self.state = state + 1;
            let lexeme = self.stream.expect(token, EXPR)?;
            self.state = state + 2;
            let next = term(self);
            self.alive()?;
            depth = depth.max(next.depth);
            operators.push(self.id(lexeme));
            terms.push(Some(next.expr));
        }
        Ok(Node { expr: balanced(&function.into(), &mut terms, &operators), depth })
    }

    fn relation(&mut self, precedence: u8, follow: Set) -> Node {
        self.left_recursive(
            Rule::Relation,
            follow,
            |parser| {
                parser.state = 62;
                parser.calc(0, or_end(RELATIONS))
            },
            |parser, left, depth| {
                if precedence > 1 || !RELATIONS.has(parser.stream.token()) {
                    return Ok(None);
                }
                depth.push(parser, Rule::Relation)?;
                let lexeme = parser.stream.current();
                let function = match lexeme.token {
                    Token::Equals => operators::EQUALS,
                    Token::NotEquals => operators::NOT_EQUALS,
                    Token::In => operators::IN,
                    Token::Less => operators::LESS,
                    Token::LessEquals => operators::LESS_EQUALS,
                    Token::GreaterEquals => operators::GREATER_EQUALS,
                    _ => operators::GREATER,
                };
                parser.stream.expect(lexeme.token, EXPR)?;
                parser.state = 66;
                let right = parser.relation(2, or_end(RELATIONS));
                parser.alive()?;
                let nesting = parser.deeper(left.depth.max(right.depth));
                Ok(Some(parser.call(lexeme, function, vec![left.take(), right.expr], nesting)))
            },
        )
    }

    fn calc(&mut self, precedence: u8, follow: Set) -> Node {
        self.left_recursive(
            Rule::Calc,
            follow,
            |parser| {
                parser.state = 73;
                parser.unary(or_end(CALCS))
            },
            |parser, left, depth| {
                let lexeme = parser.stream.current();
                let (function, binding) = match lexeme.token {
                    Star => (operators::MULTIPLY, 2),
                    Slash => (operators::DIVIDE, 2),
                    Percent => (operators::MODULO, 2),
                    Plus => (operators::ADD, 1),
                    Minus => (operators::SUBTRACT, 1),
                    _ => return Ok(None),
                };
                if binding < precedence {
                    return Ok(None);
                }
                depth.push(parser, Rule::Calc)?;
                parser.stream.expect(lexeme.token, EXPR)?;
                parser.state = if binding == 2 { 77 } else { 80 };
                let right = parser.calc(binding + 1, or_end(CALCS));
                parser.alive()?;
                let nesting = parser.deeper(left.depth.max(right.depth));
                Ok(Some(parser.call(lexeme, function, vec![left.take(), right.expr], nesting)))
            },
        )
    }

    /// A rule that begins with itself: a first part, then rounds that each take all before.
    fn left_recursive(
        &mut self,
        rule: Rule,
        follow: Set,
        first: impl FnOnce(&mut Self) -> Node,
        mut round: impl FnMut(&mut Self, &mut Node, &mut Chain) -> Parsed<Option<Node>>,
    ) -> Node {
        let mut chain = Chain { rounds: 0 };
        let mut node = None;
        self.rule(
            rule,
            follow,
            |parser| {
                let left = first(parser);
                parser.alive()?;
                let left = node.insert(left);
                while let Some(next) = round(parser, left, &mut chain)? {
                    *left = next;
                    parser.alive()?;
                }
                Ok(())
            },
            |_| (),
        );
        // Every round opened the rule anew and closed it before; at the end all are closed once more.
        self.stream.uncount(rule, chain.rounds);
        match node {
            Some(node) => node,
            None => self.unspecified(),
        }
    }

    fn unary(&mut self, follow: Set) -> Node {
        self.expression(Rule::Unary, follow, |parser| {
            parser.state = 99;
            parser.stream.sync(EXPR)?;
            match parser.stream.token() {
                Not => parser.repeated(Not, operators::NOT, 90, 92),
                Minus => match parser.stream.look(1) {
                    Int | Float => {
                        parser.state = 86;
                        Ok(parser.member(Set::RULE_END))
                    }
                    next if PRIMARY.has(next) => parser.repeated(Minus, operators::NEGATE, 96, 98),
                    _ => {
                        let start = parser.stream.position;
                        parser.stream.no_alternative(start, start + 1)
                    }
                },
                token if PRIMARY.has(token) => {
                    parser.state = 86;
                    Ok(parser.member(Set::RULE_END))
                }
                _ => {
                    let start = parser.stream.position;
                    parser.stream.no_alternative(start, start)
                }
            }
        })
    }

    /// `!!a` and `--a`: an even number of them is none.
    fn repeated(&mut self, token: Token, function: &'static str, state: u16, then: u16) -> Parsed<Node> {
        let first = self.stream.current();
        let mut count = 0;
        loop {
            self.state = state - 2;
            self.stream.expect(token, PRIMARY.with(set(token)))?;
            count += 1;
            self.state = state;
            self.stream.sync_loop(PRIMARY.with(set(token)))?;
            if self.stream.token() != token {
                break;
            }
            if token == Minus && count > 0 {
                let start = self.stream.position;
                let next = self.stream.look(1);
                if !PRIMARY.has(next) {
                    return self.stream.no_alternative(start, start + 1);
                }
            }
        }
        self.state = then;
        let operand = self.member(Set::RULE_END);
        self.alive()?;
        if count % 2 == 0 {
            return Ok(operand);
        }
        let Node { expr, depth } = operand;
        Ok(self.call(first, function, vec![expr], depth))
    }

    fn member(&mut self, follow: Set) -> Node {
        self.left_recursive(
            Rule::Member,
            follow,
            |parser| {
                parser.state = 102;
                parser.primary(or_end(MEMBERS))
            },
            |parser, left, depth| match parser.stream.token() {
                Dot => {
                    let called =
                        parser.stream.look(1) == Identifier && parser.stream.look(2) == LeftParenthesis;
                    parser.state = 126;
                    match parser.stream.look(1) {
                        Identifier | EscapedIdentifier | Question => {}
                        _ => {
                            let start = parser.stream.position;
                            return parser.stream.no_alternative(start, start + 1);
                        }
                    }
                    depth.push(parser, Rule::Member)?;
                    if called { parser.member_call(left).map(Some) } else { parser.select(left).map(Some) }
                }
                LeftBracket => {
                    depth.push(parser, Rule::Member)?;
                    parser.index(left).map(Some)
                }
                _ => Ok(None),
            },
        )
    }

    fn select(&mut self, left: &mut Node) -> Parsed<Node> {
        self.state = 105;
        let dot = self.stream.expect(Dot, ESCAPE_IDENT.with(set(Question)))?;
        self.state = 107;
        self.stream.sync(ESCAPE_IDENT.with(set(Question)))?;
        let optional = self.stream.token() == Question;
        if optional {
            self.state = 106;
            self.stream.expect(Question, ESCAPE_IDENT)?;
        }
        self.state = 109;
        let start = self.stream.current();
        let name = self.escape_ident(or_end(MEMBERS));
        self.alive()?;
        let Some((lexeme, name)) = name else {
            return Ok(self.report(start.offset, "unsupported ident kind"));
        };
        let operand = left.take();
        let depth = left.depth;
        let depth = self.deeper(depth);
        if optional {
            let id = self.id(lexeme);
            let field = Expr { id, kind: Kind::Literal(Value::string(name)) };
            let kind = Kind::Call {
                function: operators::OPTIONAL_SELECT.into(),
                target: None,
                arguments: vec![operand, field],
            };
            return Ok(self.node(dot, kind, depth));
        }
        Ok(self.node(dot, Kind::Select { operand: Box::new(operand), field: name, test: false }, depth))
    }

    fn member_call(&mut self, left: &mut Node) -> Parsed<Node> {
        self.state = 111;
        self.stream.expect(Dot, set(Identifier))?;
        let name = self.stream.expect(Identifier, set(LeftParenthesis))?;
        let open = self.stream.expect(LeftParenthesis, EXPR.with(set(RightParenthesis)))?;
        self.state = 115;
        let (arguments, depth) = self.arguments()?;
        self.state = 117;
        self.stream.expect(RightParenthesis, or_end(MEMBERS))?;
        let function: Arc<str> = self.stream.text(name).into();
        let target = left.take();
        let depth = self.deeper(left.depth.max(depth));
        let id = self.id(open);
        Ok(Node { expr: self.expand(id, open.offset, function, Some(target), arguments), depth })
    }

    fn index(&mut self, left: &mut Node) -> Parsed<Node> {
        self.state = 119;
        let open = self.stream.expect(LeftBracket, OPT_EXPR)?;
        self.state = 121;
        self.stream.sync(OPT_EXPR)?;
        let optional = self.stream.token() == Question;
        if optional {
            self.state = 120;
            self.stream.expect(Question, EXPR)?;
        }
        self.state = 123;
        let index = self.expr(set(RightBracket));
        self.alive()?;
        self.state = 124;
        self.stream.expect(RightBracket, or_end(MEMBERS))?;
        let function = if optional { operators::OPTIONAL_INDEX } else { operators::INDEX };
        let operand = left.take();
        let depth = self.deeper(left.depth.max(index.depth));
        Ok(self.call(open, function, vec![operand, index.expr], depth))
    }

    /// The arguments of a call, behind the opening parenthesis.
    fn arguments(&mut self) -> Parsed<(Vec<Expr>, usize)> {
        self.stream.sync(EXPR.with(set(RightParenthesis)))?;
        if !EXPR.has(self.stream.token()) {
            return Ok((Vec::new(), 0));
        }
        let arguments = self.rule(
            Rule::ExprList,
            set(RightParenthesis),
            |parser| {
                parser.state = 186;
                let first = parser.expr(or_end(set(Comma)));
                let mut depth = first.depth;
                let mut arguments = vec![first.expr];
                parser.alive()?;
                while parser.stream.token() == Comma {
                    parser.state = 187;
                    parser.stream.expect(Comma, EXPR)?;
                    parser.state = 188;
                    let next = parser.expr(or_end(set(Comma)));
                    depth = depth.max(next.depth);
                    arguments.push(next.expr);
                    parser.alive()?;
                }
                Ok((arguments, depth))
            },
            |_| (Vec::new(), 0),
        );
        self.alive()?;
        Ok(arguments)
    }

    fn primary(&mut self, follow: Set) -> Node {
        self.expression(Rule::Primary, follow, |parser| {
            parser.state = 184;
            parser.stream.sync(PRIMARY)?;
            let start = parser.stream.position;
            match parser.stream.token() {
                Identifier => parser.named(start),
                Dot if parser.stream.look(1) == Identifier => parser.named(start + 1),
                Dot => parser.stream.no_alternative(start, start + 1),
                LeftParenthesis => parser.nested(),
                LeftBracket => parser.list(),
                LeftBrace => parser.map(),
                token if LITERAL.has(token) => {
                    parser.state = 183;
                    Ok(parser.literal())
                }
                _ => parser.stream.no_alternative(start, start),
            }
        })
    }

    /// An identifier, a call, or an object, whose first name is the token at `first`.
    fn named(&mut self, first: usize) -> Parsed<Node> {
        let dotted = first > self.stream.position;
        if dotted {
            self.stream.expect(Dot, set(Identifier))?;
        }
        let mut end = 1;
        while self.stream.look(end) == Dot && self.stream.look(end + 1) == Identifier {
            end += 2;
        }
        if self.stream.look(end) == LeftBrace {
            return self.object(dotted);
        }
        self.state = 134;
        let name = self.stream.expect(Identifier, or_end(set(LeftParenthesis)))?;
        let text = self.stream.text(name);
        let offset = if dotted { self.stream.lexemes[first - 1].offset } else { name.offset };
        let full: Arc<str> = if dotted { format!(".{text}").into() } else { text.into() };
        let reserved = RESERVED.contains(&text);
        if self.stream.token() == LeftParenthesis {
            let open = self.stream.expect(LeftParenthesis, EXPR.with(set(RightParenthesis)))?;
            self.state = 141;
            let (arguments, depth) = self.arguments()?;
            self.state = 143;
            self.stream.expect(RightParenthesis, Set::RULE_END)?;
            if reserved {
                return Ok(self.report(offset, &format!("reserved identifier: {text}")));
            }
            let id = self.id(open);
            return Ok(Node { expr: self.expand(id, open.offset, full, None, arguments), depth });
        }
        if reserved {
            return Ok(self.report(offset, &format!("reserved identifier: {text}")));
        }
        Ok(self.node(name, Kind::Ident(full), 0))
    }

    fn nested(&mut self) -> Parsed<Node> {
        self.state = 144;
        self.stream.expect(LeftParenthesis, EXPR)?;
        self.state = 145;
        let node = self.expr(set(RightParenthesis));
        self.alive()?;
        self.state = 146;
        self.stream.expect(RightParenthesis, Set::RULE_END)?;
        Ok(node)
    }

    fn literal(&mut self) -> Node {
        self.expression(Rule::Literal, Set::RULE_END, |parser| {
            parser.state = 256;
            parser.stream.sync(LITERAL)?;
            let start = parser.stream.current();
            let negative = start.token == Minus;
            if negative {
                if !matches!(parser.stream.look(1), Int | Float) {
                    let position = parser.stream.position;
                    return parser.stream.no_alternative(position, position + 1);
                }
                parser.stream.expect(Minus, Set::of(&[Int, Float]))?;
            }
            let lexeme = parser.stream.current();
            parser.stream.expect(lexeme.token, Set::RULE_END)?;
            let text = parser.stream.text(lexeme);
            let value = match lexeme.token {
                Int => int(text, negative).map(Value::Int).ok_or("invalid int literal"),
                Uint => uint(text).map(Value::Uint).ok_or("invalid uint literal"),
                Float => {
                    let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
                    number
                        .map(|number| Value::Double(if negative { -number } else { number }))
                        .ok_or("invalid double literal")
                }
                String => unquote(text, false).and_then(|bytes| {
                    std::string::String::from_utf8(bytes)
                        .map(Value::string)
                        .map_err(|_| "unable to unescape string")
                }),
                Bytes => unquote(&text[1..], true).map(|bytes| Value::Bytes(Blob::Shared(bytes.into()))),
                True => Ok(Value::Bool(true)),
                False => Ok(Value::Bool(false)),
                _ => Ok(Value::Null),
            };
            Ok(match value {
                Ok(value) => parser.node(start, Kind::Literal(value), 0),
                Err(message) => parser.report(start.offset, message),
            })
        })
    }

    /// A call of an operator.
    fn call(&mut self, operator: Lexeme, function: &'static str, arguments: Vec<Expr>, depth: usize) -> Node {
        self.node(operator, Kind::Call { function: function.into(), target: None, arguments }, depth)
    }

    /// A call, or what the macro of its name makes of it.
    fn expand(
        &mut self,
        id: Id,
        offset: u32,
        function: Arc<str>,
        target: Option<Expr>,
        arguments: Vec<Expr>,
    ) -> Expr {
        let found = self.macros.iter().find(|candidate| {
            candidate.receiver == target.is_some()
                && candidate.arguments == arguments.len()
                && *candidate.name == *function
        });
        let Some(found) = found else {
            return Expr { id, kind: Kind::Call { function, target: target.map(Box::new), arguments } };
        };
        if limits::PARTS < self.offsets.len() {
            let message = format!("expression has too many parts: more than {}", limits::PARTS);
            return self.report(offset, &message).expr;
        }
        let mut context = MacroContext { offsets: &mut self.offsets, offset };
        match (found.expand)(&mut context, target, arguments) {
            Ok(expr) => expr,
            Err(error) => {
                let offset = self.offsets[error.at as usize];
                self.report(offset, &error.message).expr
            }
        }
    }
}

/// How often a left-recursive rule went round.
struct Chain {
    rounds: i32,
}

impl Chain {
    /// Begins a round: the rule is closed and opened anew around all before.
    fn push(&mut self, parser: &mut Parser<'_, '_>, rule: Rule) -> Parsed<()> {
        parser.stream.uncount(rule, 1);
        self.rounds += 1;
        parser.stream.count(rule)
    }
}

/// The balanced tree over `terms`, with `operators` between them.
fn balanced(function: &Arc<str>, terms: &mut [Option<Expr>], operators: &[Id]) -> Expr {
    let middle = operators.len() / 2;
    let (left_terms, right_terms) = terms.split_at_mut(middle + 1);
    let side = |terms: &mut [Option<Expr>], operators: &[Id]| {
        if operators.is_empty() {
            terms[0].take().unwrap_or(Expr { id: 0, kind: Kind::Unspecified })
        } else {
            balanced(function, terms, operators)
        }
    };
    let left = side(left_terms, &operators[..middle]);
    let right = side(right_terms, &operators[middle + 1..]);
    let kind = Kind::Call { function: function.clone(), target: None, arguments: vec![left, right] };
    Expr { id: operators[middle], kind }
}

fn int(text: &str, negative: bool) -> Option<i64> {
    let (digits, radix) = text.strip_prefix("0x").map_or((text, 10), |digits| (digits, 16));
    let number = i128::from(u64::from_str_radix(digits, radix).ok()?);
    i64::try_from(if negative { -number } else { number }).ok()
}

fn uint(text: &str) -> Option<u64> {
    let text = &text[..text.len() - 1];
    let (digits, radix) = text.strip_prefix("0x").map_or((text, 10), |digits| (digits, 16));
    u64::from_str_radix(digits, radix).ok()
}
