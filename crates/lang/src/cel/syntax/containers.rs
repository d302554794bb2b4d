//! Lists, maps and objects, the rules of the grammar that they are made of.

use std::sync::Arc;

use super::ast::{Entry, Expr, FieldSetting, Kind};
use super::parser::{ESCAPE_IDENT, EXPR, Node, OPT_EXPR, Parser, or_end, set};
use super::recovery::{Parsed, Rule};
use super::token::{Lexeme, Set, Token};

use Token::{
    Colon, Comma, Dot, EscapedIdentifier, Identifier, LeftBrace, LeftBracket, Question, RightBrace,
    RightBracket,
};

impl Parser<'_, '_> {
    pub(super) fn list(&mut self) -> Parsed<Node> {
        let ends = Set::of(&[Comma, RightBracket]);
        self.state = 148;
        let open = self.stream.expect(LeftBracket, OPT_EXPR.with(ends))?;
        let id = self.id(open);
        self.state = 150;
        self.stream.sync(OPT_EXPR.with(ends))?;
        let mut elements = Vec::new();
        let mut optional = Vec::new();
        let mut depth = 0;
        if OPT_EXPR.has(self.stream.token()) {
            self.state = 149;
            self.rule(
                Rule::ListInit,
                ends,
                |parser| {
                    loop {
                        parser.state = 194;
                        let (question, node) = parser.opt_expr(or_end(set(Comma)));
                        parser.alive()?;
                        if question {
                            optional.push(elements.len());
                        }
                        depth = depth.max(node.depth);
                        elements.push(node.expr);
                        if parser.stream.token() != Comma || !OPT_EXPR.has(parser.stream.look(1)) {
                            return Ok(());
                        }
                        parser.state = 195;
                        parser.stream.expect(Comma, OPT_EXPR)?;
                    }
                },
                |_| (),
            );
            self.alive()?;
        }
        self.state = 153;
        self.trailing_comma(ends, RightBracket)?;
        self.state = 155;
        self.stream.expect(RightBracket, Set::RULE_END)?;
        Ok(Node { expr: Expr { id, kind: Kind::List { elements, optional } }, depth })
    }

    fn trailing_comma(&mut self, ends: Set, close: Token) -> Parsed<()> {
        self.stream.sync(ends)?;
        if self.stream.token() == Comma {
            self.stream.expect(Comma, set(close))?;
        }
        Ok(())
    }

    pub(super) fn map(&mut self) -> Parsed<Node> {
        let ends = Set::of(&[Comma, RightBrace]);
        self.state = 156;
        let open = self.stream.expect(LeftBrace, OPT_EXPR.with(ends))?;
        let id = self.id(open);
        self.state = 158;
        self.stream.sync(OPT_EXPR.with(ends))?;
        let mut entries = Vec::new();
        let mut depth = 0;
        if OPT_EXPR.has(self.stream.token()) {
            self.state = 157;
            self.rule(
                Rule::MapInit,
                ends,
                |parser| {
                    loop {
                        parser.state = 220;
                        let (optional, key) = parser.opt_expr(set(Colon));
                        parser.alive()?;
                        parser.state = 221;
                        let colon = parser.stream.expect(Colon, EXPR)?;
                        let id = parser.id(colon);
                        parser.state = 222;
                        let value = parser.expr(or_end(set(Comma)));
                        parser.alive()?;
                        depth = depth.max(key.depth).max(value.depth);
                        entries.push(Entry { id, key: key.expr, value: value.expr, optional });
                        if parser.stream.token() != Comma || !OPT_EXPR.has(parser.stream.look(1)) {
                            return Ok(());
                        }
                        parser.state = 223;
                        parser.stream.expect(Comma, OPT_EXPR)?;
                    }
                },
                |_| (),
            );
            self.alive()?;
        }
        self.state = 161;
        self.trailing_comma(ends, RightBrace)?;
        self.state = 163;
        self.stream.expect(RightBrace, Set::RULE_END)?;
        Ok(Node { expr: Expr { id, kind: Kind::Map(entries) }, depth })
    }

    pub(super) fn object(&mut self, dotted: bool) -> Parsed<Node> {
        let mut name = if dotted { ".".to_owned() } else { std::string::String::new() };
        self.state = 167;
        let first = self.stream.expect(Identifier, Set::of(&[Dot, LeftBrace]))?;
        name.push_str(self.stream.text(first));
        while self.stream.token() == Dot {
            self.stream.expect(Dot, set(Identifier))?;
            let next = self.stream.expect(Identifier, Set::of(&[Dot, LeftBrace]))?;
            name.push('.');
            name.push_str(self.stream.text(next));
        }
        let ends = Set::of(&[Comma, RightBrace]);
        let first_field = ESCAPE_IDENT.with(set(Question));
        self.state = 175;
        let open = self.stream.expect(LeftBrace, first_field.with(ends))?;
        let id = self.id(open);
        self.state = 177;
        self.stream.sync(first_field.with(ends))?;
        let mut fields = Vec::new();
        let mut depth = 0;
        if first_field.has(self.stream.token()) {
            self.state = 176;
            self.rule(
                Rule::FieldInit,
                ends,
                |parser| {
                    loop {
                        parser.state = 202;
                        let (optional, name) = parser.opt_field();
                        parser.alive()?;
                        parser.state = 203;
                        let colon = parser.stream.expect(Colon, EXPR)?;
                        let id = parser.id(colon);
                        parser.state = 204;
                        let value = parser.expr(or_end(set(Comma)));
                        parser.alive()?;
                        depth = depth.max(value.depth);
                        if let Some((_, name)) = name {
                            fields.push(FieldSetting { id, name, value: value.expr, optional });
                        }
                        if parser.stream.token() != Comma || !first_field.has(parser.stream.look(1)) {
                            return Ok(());
                        }
                        parser.state = 205;
                        parser.stream.expect(Comma, first_field)?;
                    }
                },
                |_| (),
            );
            self.alive()?;
        }
        self.state = 180;
        self.trailing_comma(ends, RightBrace)?;
        self.state = 182;
        self.stream.expect(RightBrace, Set::RULE_END)?;
        Ok(Node { expr: Expr { id, kind: Kind::Struct { type_name: name.into(), fields } }, depth })
    }

    fn opt_field(&mut self) -> (bool, Option<(Lexeme, Arc<str>)>) {
        self.rule(
            Rule::OptField,
            set(Colon),
            |parser| {
                parser.state = 216;
                parser.stream.sync(ESCAPE_IDENT.with(set(Question)))?;
                let optional = parser.stream.token() == Question;
                if optional {
                    parser.state = 215;
                    parser.stream.expect(Question, ESCAPE_IDENT)?;
                }
                parser.state = 218;
                Ok((optional, parser.escape_ident(Set::RULE_END)))
            },
            |_| (false, None),
        )
    }

    fn opt_expr(&mut self, follow: Set) -> (bool, Node) {
        self.rule(
            Rule::OptExpr,
            follow,
            |parser| {
                parser.state = 238;
                parser.stream.sync(OPT_EXPR)?;
                let optional = parser.stream.token() == Question;
                if optional {
                    parser.state = 237;
                    parser.stream.expect(Question, EXPR)?;
                }
                parser.state = 240;
                Ok((optional, parser.expr(Set::RULE_END)))
            },
            |parser| (false, parser.unspecified()),
        )
    }

    pub(super) fn escape_ident(&mut self, follow: Set) -> Option<(Lexeme, Arc<str>)> {
        self.rule(
            Rule::EscapeIdent,
            follow,
            |parser| {
                parser.state = 235;
                parser.stream.sync(ESCAPE_IDENT)?;
                let lexeme = parser.stream.current();
                match lexeme.token {
                    Identifier => {
                        parser.stream.expect(Identifier, Set::RULE_END)?;
                        Ok(Some((lexeme, parser.stream.text(lexeme).into())))
                    }
                    EscapedIdentifier => {
                        parser.stream.expect(EscapedIdentifier, Set::RULE_END)?;
                        let text = parser.stream.text(lexeme);
                        Ok(Some((lexeme, text[1..text.len() - 1].into())))
                    }
                    _ => {
                        let start = parser.stream.position;
                        parser.stream.no_alternative(start, start)
                    }
                }
            },
            |_| None,
        )
    }
}
