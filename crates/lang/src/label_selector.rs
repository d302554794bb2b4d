//! Label selectors: upstream's grammar, texts and meaning.

use std::collections::BTreeSet;
use std::fmt;

use coffer_types::names::{is_label_value, is_qualified_name};
use coffer_types::validation::field::{FieldError, Path, aggregate};
use coffer_types::{Map, Value};

/// Requirements that must all hold. None at all selects everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
    /// What a selector object of unknown form selects: nothing.
    nothing: bool,
}

/// One condition on one label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// The label.
    pub key: String,
    /// The condition.
    pub operator: Operator,
    /// What the condition compares with.
    pub values: BTreeSet<String>,
}

/// How a label is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// One of the values.
    In,
    /// None of the values; an absent label too.
    NotIn,
    /// The one value, `=`.
    Equals,
    /// The one value, `==`.
    DoubleEquals,
    /// Not the one value; an absent label too.
    NotEquals,
    /// There is such a label.
    Exists,
    /// There is no such label.
    DoesNotExist,
    /// A whole number above the one value.
    GreaterThan,
    /// A whole number below the one value.
    LessThan,
}

/// The text is no selector. Upstream's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LabelSelectorError(String);

impl LabelSelector {
    /// Parses the text of a `labelSelector` query parameter.
    pub fn parse(text: &str) -> Result<Self, LabelSelectorError> {
        let mut parser = Parser { tokens: lex(text), position: 0 };
        let mut requirements = parser.requirements().map_err(LabelSelectorError)?;
        requirements.sort_by(|left, right| left.key.cmp(&right.key));
        Ok(Self { requirements, nothing: false })
    }

    /// From a `metav1.LabelSelector` object; `None` (absent) selects nothing, an empty one everything.
    pub fn from_object(selector: Option<&Value>) -> Result<Self, LabelSelectorError> {
        let Some(selector) = selector.filter(|selector| !selector.is_null()) else {
            return Ok(Self { requirements: Vec::new(), nothing: true });
        };
        let mut requirements = Vec::new();
        for (key, value) in selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
            let values = [value.as_str().unwrap_or_default().to_owned()].into();
            requirements.push(Requirement::checked(key.clone(), Operator::Equals, values)?);
        }
        let expressions = selector.get("matchExpressions").and_then(Value::as_array).unwrap_or_default();
        for expression in expressions {
            let operator = match expression.str_at(&["operator"]) {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                other => {
                    let quoted = coffer_types::validation::field::go_quote(other);
                    return Err(LabelSelectorError(format!(
                        "{quoted} is not a valid label selector operator"
                    )));
                }
            };
            let values = expression.get("values").and_then(Value::as_array).unwrap_or_default();
            let values = values.iter().filter_map(Value::as_str).map(str::to_owned).collect();
            let key = expression.str_at(&["key"]).to_owned();
            requirements.push(Requirement::checked(key, operator, values)?);
        }
        requirements.sort_by(|left, right| left.key.cmp(&right.key));
        Ok(Self { requirements, nothing: false })
    }

    /// Whether everything is selected.
    pub fn is_everything(&self) -> bool {
        !self.nothing && self.requirements.is_empty()
    }

    /// The requirements, ordered by key.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Whether an object with these labels is selected.
    pub fn matches(&self, labels: &Map) -> bool {
        !self.nothing && self.requirements.iter().all(|requirement| requirement.matches(labels))
    }

    /// As [`LabelSelector::matches`], for labels that are kept in another form.
    pub fn matches_with<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        !self.nothing
            && self.requirements.iter().all(|requirement| requirement.matches_value(label(&requirement.key)))
    }
}

impl Requirement {
    fn checked(
        key: String,
        operator: Operator,
        values: BTreeSet<String>,
    ) -> Result<Self, LabelSelectorError> {
        let mut errors = Vec::new();
        let faults = is_qualified_name(&key);
        if !faults.is_empty() {
            errors.push(FieldError::invalid(&Path::new("key"), &key, faults.join("; ")));
        }
        let path = Path::new("values");
        let shown = Value::Array(values.iter().map(|value| value.as_str().into()).collect());
        let count = values.len();
        let fault = match operator {
            Operator::In | Operator::NotIn if count == 0 => {
                Some("for 'in', 'notin' operators, values set can't be empty")
            }
            Operator::Equals | Operator::DoubleEquals | Operator::NotEquals if count != 1 => {
                Some("exact-match compatibility requires one single value")
            }
            Operator::Exists | Operator::DoesNotExist if count != 0 => {
                Some("values set must be empty for exists and does not exist")
            }
            Operator::GreaterThan | Operator::LessThan if count != 1 => {
                Some("for 'Gt', 'Lt' operators, exactly one value is required")
            }
            _ => None,
        };
        errors.extend(fault.map(|fault| FieldError::invalid(&path, &shown, fault)));
        for (index, value) in values.iter().enumerate() {
            let path = path.index(index);
            if matches!(operator, Operator::GreaterThan | Operator::LessThan) && number(value).is_none() {
                let fault = "for 'Gt', 'Lt' operators, the value must be an integer";
                errors.push(FieldError::invalid(&path, value, fault));
            }
        }
        for (index, value) in values.iter().enumerate() {
            let faults = is_label_value(value);
            if !faults.is_empty() {
                let path = path.index(index).key(&key);
                errors.push(FieldError::invalid(&path, value, faults.join("; ")));
            }
        }
        if errors.is_empty() {
            Ok(Self { key, operator, values })
        } else {
            Err(LabelSelectorError(aggregate(&errors)))
        }
    }

    /// Whether these labels satisfy the requirement.
    pub fn matches(&self, labels: &Map) -> bool {
        self.matches_value(labels.get(&self.key).map(|value| value.as_str().unwrap_or_default()))
    }

    /// Whether a label with this value, or its absence, satisfies the requirement.
    fn matches_value(&self, value: Option<&str>) -> bool {
        match (self.operator, value) {
            (Operator::In | Operator::Equals | Operator::DoubleEquals, Some(value)) => {
                self.values.contains(value)
            }
            (Operator::NotIn | Operator::NotEquals, Some(value)) => !self.values.contains(value),
            (Operator::NotIn | Operator::NotEquals | Operator::DoesNotExist, None) => true,
            (Operator::Exists, value) => value.is_some(),
            (Operator::GreaterThan, Some(value)) => {
                self.compare(value).is_some_and(|(label, wanted)| label > wanted)
            }
            (Operator::LessThan, Some(value)) => {
                self.compare(value).is_some_and(|(label, wanted)| label < wanted)
            }
            (Operator::DoesNotExist, Some(_)) | (_, None) => false,
        }
    }

    fn compare(&self, label: &str) -> Option<(i64, i64)> {
        let wanted = self.values.first()?;
        Some((number(label)?, number(wanted)?))
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements.iter().enumerate() {
            if index > 0 {
                formatter.write_str(",")?;
            }
            requirement.fmt(formatter)?;
        }
        Ok(())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values: Vec<_> = self.values.iter().map(String::as_str).collect();
        let (key, values) = (&self.key, values.join(","));
        match self.operator {
            Operator::In => write!(formatter, "{key} in ({values})"),
            Operator::NotIn => write!(formatter, "{key} notin ({values})"),
            Operator::Equals => write!(formatter, "{key}={values}"),
            Operator::DoubleEquals => write!(formatter, "{key}=={values}"),
            Operator::NotEquals => write!(formatter, "{key}!={values}"),
            Operator::Exists => formatter.write_str(key),
            Operator::DoesNotExist => write!(formatter, "!{key}"),
            Operator::GreaterThan => write!(formatter, "{key}>{values}"),
            Operator::LessThan => write!(formatter, "{key}<{values}"),
        }
    }
}

/// Go's `ParseInt`: a sign and digits.
fn number(text: &str) -> Option<i64> {
    text.parse().ok()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    End,
    Identifier,
    Symbol,
    /// `in` and `notin`, which are identifiers where a value may stand.
    Keyword,
}

type Token = (Kind, String);

fn lex(text: &str) -> Vec<Token> {
    // A NUL byte ends the text, as upstream reads it.
    let text = text.split('\0').next().unwrap_or_default();
    let mut tokens = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    while let Some(first) = rest.chars().next() {
        let (token, length) = if is_symbol(first) { symbol(rest) } else { word(rest) };
        tokens.push(token);
        rest = rest[length..].trim_start_matches(is_space);
    }
    tokens.push((Kind::End, String::new()));
    tokens
}

fn word(rest: &str) -> (Token, usize) {
    let end = rest.find(|character| is_symbol(character) || is_space(character)).unwrap_or(rest.len());
    let word = &rest[..end];
    let kind = if matches!(word, "in" | "notin") { Kind::Keyword } else { Kind::Identifier };
    ((kind, word.to_owned()), end)
}

/// The longest symbol at the start: `==` and `!=` are the only ones of two characters.
fn symbol(rest: &str) -> (Token, usize) {
    let end = if rest.starts_with("==") || rest.starts_with("!=") { 2 } else { 1 };
    ((Kind::Symbol, rest[..end].to_owned()), end)
}

fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n')
}

fn is_symbol(character: char) -> bool {
    matches!(character, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}

struct Parser {
    tokens: Vec<Token>,
    position: usize,
}

impl Parser {
    fn requirements(&mut self) -> Result<Vec<Requirement>, String> {
        let mut requirements = Vec::new();
        loop {
            let (kind, text) = self.peek();
            match (kind, text.as_str()) {
                (Kind::Identifier, _) | (Kind::Symbol, "!") => {
                    let requirement = self
                        .requirement()
                        .map_err(|fault| format!("unable to parse requirement: {fault}"))?;
                    requirements.push(requirement);
                    match self.next() {
                        (Kind::End, _) => return Ok(requirements),
                        (Kind::Symbol, text) if text == "," => {
                            let (kind, text) = self.peek();
                            if kind != Kind::Identifier && text != "!" {
                                return Err(format!("found '{text}', expected: identifier after ','"));
                            }
                        }
                        (_, text) => return Err(format!("found '{text}', expected: ',' or 'end of string'")),
                    }
                }
                (Kind::End, _) => return Ok(requirements),
                (_, text) => {
                    return Err(format!("found '{text}', expected: !, identifier, or 'end of string'"));
                }
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let (mut kind, mut key) = self.next();
        let negated = kind == Kind::Symbol && key == "!";
        if negated {
            (kind, key) = self.next();
        }
        if kind != Kind::Identifier {
            return Err(format!("found '{key}', expected: identifier"));
        }
        let faults = is_qualified_name(&key);
        if !faults.is_empty() {
            // Upstream has no path here and prints its absence.
            return Err(FieldError::invalid(&Path::new("<nil>"), &key, faults.join("; ")).to_string());
        }
        let (kind, text) = self.peek();
        let checked =
            |key, operator, values| Requirement::checked(key, operator, values).map_err(|error| error.0);
        if negated {
            return checked(key, Operator::DoesNotExist, BTreeSet::new());
        }
        if kind == Kind::End || text == "," {
            return checked(key, Operator::Exists, BTreeSet::new());
        }
        let (_, text) = self.next_raw();
        let operator = match text.as_str() {
            "in" => Operator::In,
            "notin" => Operator::NotIn,
            "=" => Operator::Equals,
            "==" => Operator::DoubleEquals,
            "!=" => Operator::NotEquals,
            ">" => Operator::GreaterThan,
            "<" => Operator::LessThan,
            other => return Err(format!("found '{other}', expected: in, notin, =, ==, !=, gt, lt")),
        };
        let values = match operator {
            Operator::In | Operator::NotIn => self.values()?,
            _ => [self.exact_value()?].into(),
        };
        checked(key, operator, values)
    }

    fn values(&mut self) -> Result<BTreeSet<String>, String> {
        let (_, text) = self.next();
        if text != "(" {
            return Err(format!("found '{text}' expected: '('"));
        }
        let (kind, text) = self.peek();
        match (kind, text.as_str()) {
            (Kind::Identifier, _) | (Kind::Symbol, ",") => {
                let first = text.clone();
                let values = self.list()?;
                let (_, text) = self.next();
                if text != ")" {
                    return Err(format!("found '{first}', expected: ')'"));
                }
                Ok(values)
            }
            (Kind::Symbol, ")") => {
                self.next();
                Ok([String::new()].into())
            }
            (_, text) => Err(format!("found '{text}', expected: ',', ')' or identifier")),
        }
    }

    fn list(&mut self) -> Result<BTreeSet<String>, String> {
        let mut values = BTreeSet::new();
        loop {
            let (kind, text) = self.next();
            match (kind, text.as_str()) {
                (Kind::Identifier, _) => {
                    values.insert(text);
                    let (_, text) = self.peek();
                    match text.as_str() {
                        "," => {}
                        ")" => return Ok(values),
                        other => return Err(format!("found '{other}', expected: ',' or ')'")),
                    }
                }
                (Kind::Symbol, ",") => {
                    if values.is_empty() {
                        values.insert(String::new());
                    }
                    let (_, text) = self.peek();
                    match text.as_str() {
                        ")" => {
                            values.insert(String::new());
                            return Ok(values);
                        }
                        "," => {
                            values.insert(String::new());
                        }
                        _ => {}
                    }
                }
                (_, text) => return Err(format!("found '{text}', expected: ',', or identifier")),
            }
        }
    }

    fn exact_value(&mut self) -> Result<String, String> {
        let (kind, text) = self.peek();
        if kind == Kind::End || (kind == Kind::Symbol && text == ",") {
            return Ok(String::new());
        }
        match self.next() {
            (Kind::Identifier, text) => Ok(text),
            (_, text) => Err(format!("found '{text}', expected: identifier")),
        }
    }

    /// The next token, where `in` and `notin` are identifiers like any other.
    fn peek(&self) -> Token {
        let (kind, text) = self.tokens.get(self.position).cloned().unwrap_or((Kind::End, String::new()));
        (if kind == Kind::Keyword { Kind::Identifier } else { kind }, text)
    }

    fn next(&mut self) -> Token {
        let token = self.peek();
        self.position += 1;
        token
    }

    fn next_raw(&mut self) -> Token {
        let token = self.tokens.get(self.position).cloned().unwrap_or((Kind::End, String::new()));
        self.position += 1;
        token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Map {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), Value::from(*value))).collect()
    }

    #[test]
    fn selectors_select() {
        let check = |selector: &str, pairs: &[(&str, &str)], expected: bool| {
            let parsed = LabelSelector::parse(selector).unwrap_or_else(|error| panic!("{selector}: {error}"));
            assert_eq!(parsed.matches(&labels(pairs)), expected, "{selector} on {pairs:?}");
        };
        let x1 = &[("x", "1")][..];
        for (selector, on_x1, on_nothing) in [
            ("", true, true),
            ("x", true, false),
            ("!x", false, true),
            ("x=1", true, false),
            ("x==1", true, false),
            ("x = 1", true, false),
            ("x!=1", false, true),
            ("x!=2", true, true),
            ("x in (1,2)", true, false),
            ("x in (2)", false, false),
            ("x notin (1)", false, true),
            ("x notin (2)", true, true),
            ("x>0", true, false),
            ("x>1", false, false),
            ("x<2", true, false),
            ("x<1", false, false),
            ("x,x=1", true, false),
            ("x,!y", true, false),
            ("x,y", false, false),
            ("x=", false, false),
            ("x in ()", false, false),
            ("x in (,1)", true, false),
            ("x in (1,)", true, false),
            ("x in (2,,3)", false, false),
            ("in in (in)", false, false),
            ("\tx\n", true, false),
        ] {
            check(selector, x1, on_x1);
            check(selector, &[], on_nothing);
        }
        check("x=", &[("x", "")], true);
        check("x>0", &[("x", "a")], false);
        check("notin=in", &[("notin", "in")], true);
    }

    #[test]
    fn faults_are_worded_as_upstream() {
        let check = |selector: &str, expected: &str| {
            let error = LabelSelector::parse(selector).err().map(|error| error.to_string());
            assert_eq!(error.as_deref(), Some(expected), "{selector}");
        };
        let form = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                    alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
        check(
            "x=a||y",
            "unable to parse requirement: values[0][x]: Invalid value: \"a||y\": a valid label must be an empty string or \
             consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character \
             (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is \
             '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
        );
        check("-x", &format!("unable to parse requirement: <nil>: Invalid value: \"-x\": name part {form}"));
        check(",", "found ',', expected: !, identifier, or 'end of string'");
        check("x,", "found '', expected: identifier after ','");
        check("x y", "unable to parse requirement: found 'y', expected: in, notin, =, ==, !=, gt, lt");
        check("x=a b", "found 'b', expected: ',' or 'end of string'");
        check("!", "unable to parse requirement: found '', expected: identifier");
        check("!x=1", "found '=', expected: ',' or 'end of string'");
        check("x in 1", "unable to parse requirement: found '1' expected: '('");
        check("x in (1", "unable to parse requirement: found '', expected: ',' or ')'");
        check("x in (1 2)", "unable to parse requirement: found '2', expected: ',' or ')'");
        check("x in (=)", "unable to parse requirement: found '=', expected: ',', ')' or identifier");
        check("x in (1,=)", "unable to parse requirement: found '=', expected: ',', or identifier");
        check("x==!", "unable to parse requirement: found '!', expected: identifier");
        check(
            "x>a",
            "unable to parse requirement: values[0]: Invalid value: \"a\": for 'Gt', 'Lt' operators, the value must be an \
             integer",
        );
    }

    #[test]
    fn selectors_print_as_they_are_written() {
        for text in ["x", "!x", "x=1", "x==1", "x!=1", "x in (1,2)", "x notin (1)", "x>1", "x<1", "a=1,b=2"] {
            assert_eq!(LabelSelector::parse(text).map(|selector| selector.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn selector_objects() {
        let expression = Value::from([
            ("key", Value::from("a")),
            ("operator", "In".into()),
            ("values", Value::Array(vec!["1".into()])),
        ]);
        let selector = Value::from([
            ("matchLabels", Value::from([("b", "2")])),
            ("matchExpressions", Value::Array(vec![expression])),
        ]);
        let parsed = LabelSelector::from_object(Some(&selector)).expect("well-formed");
        assert_eq!(parsed.to_string(), "a in (1),b=2");
        assert!(LabelSelector::from_object(Some(&Value::object())).expect("empty").is_everything());
        let nothing = LabelSelector::from_object(None).expect("absent");
        assert!(!nothing.is_everything() && !nothing.matches(&Map::new()));
        let bad = Value::from([(
            "matchExpressions",
            Value::Array(vec![Value::from([("key", "a"), ("operator", "X")])]),
        )]);
        let error = LabelSelector::from_object(Some(&bad)).expect_err("bad operator").to_string();
        assert_eq!(error, "\"X\" is not a valid label selector operator");
    }

    /// Also checks field selectors; both come from one golden file.
    #[test]
    fn texts_are_those_of_the_original() {
        let golden = include_str!("../../types/tests/golden/rules/selectors.json");
        let golden: serde_json::Value = serde_json::from_str(golden).expect("golden files are JSON");
        let cases = golden["cases"].as_array().expect("a list");
        assert!(cases.len() > 50);
        for case in cases {
            let text = case["text"].as_str().expect("every case has a text");
            let (error, print) = if case["kind"] == "label" {
                match LabelSelector::parse(text) {
                    Ok(selector) => (String::new(), selector.to_string()),
                    Err(error) => (error.to_string(), String::new()),
                }
            } else {
                let error = crate::field_selector::FieldSelector::parse(text).err();
                (error.map(|error| error.to_string()).unwrap_or_default(), String::new())
            };
            assert_eq!(error, case["error"].as_str().unwrap_or_default(), "{text:?}");
            assert_eq!(print, case["print"].as_str().unwrap_or_default(), "{text:?}");
        }
    }
}
