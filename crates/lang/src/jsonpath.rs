//! JSONPath in Kubernetes' dialect, as printer columns and selectable fields use it.
//!
//! Thin: templates (`{range}`, text between braces) are kubectl's business and
//! are not here. A missing key is no error: it finds nothing.

use coffer_types::Value;

use crate::limits::{Budget, Exhausted, JSONPATH_DEPTH, JSONPATH_LENGTH, JSONPATH_STEPS};

/// A parsed expression.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonPath {
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq)]
enum Step {
    /// `.name`, `['name']`.
    Field(String),
    /// `[1]`, `[-1]`.
    Index(i64),
    /// `[start:end:step]`.
    Slice(Option<i64>, Option<i64>, i64),
    /// `.*`, `[*]`.
    Wildcard,
    /// `..`.
    Recursive,
    /// `['a','b']`, `[0,2]`.
    Union(Vec<Step>),
    /// `[?(@.a == "b")]`; without comparison, whether there is such a thing.
    Filter(Vec<Step>, Option<(Comparison, Operand)>),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Debug, Clone, PartialEq)]
enum Operand {
    Literal(Value),
    Path(Vec<Step>),
}

/// The text is no expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct JsonPathError(String);

impl JsonPath {
    /// Parses an expression, with or without braces around it.
    pub fn parse(text: &str) -> Result<Self, JsonPathError> {
        if text.len() > JSONPATH_LENGTH {
            return Err(JsonPathError(format!("the expression is longer than {JSONPATH_LENGTH} bytes")));
        }
        let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or(text);
        let mut parser = Parser { rest: inner.trim(), depth: 0 };
        let inside = parser.rest.strip_prefix(['$', '@']).unwrap_or(parser.rest);
        parser.rest = inside;
        let steps = parser.steps(true)?;
        match parser.rest {
            "" => Ok(Self { steps }),
            rest => Err(JsonPathError(format!("unrecognized character in action: {}", quoted_first(rest)))),
        }
    }

    /// The names that a path of plain fields goes through; `None` for any other path.
    pub fn plain_fields(&self) -> Option<Vec<&str>> {
        self.steps
            .iter()
            .map(|step| match step {
                Step::Field(name) => Some(name.as_str()),
                _ => None,
            })
            .collect()
    }

    /// Everything that the expression finds in `root`.
    pub fn find<'a>(&self, root: &'a Value) -> Result<Vec<&'a Value>, Exhausted> {
        evaluate(&self.steps, root, &mut Budget::new(JSONPATH_STEPS))
    }
}

fn evaluate<'a>(steps: &[Step], root: &'a Value, budget: &mut Budget) -> Result<Vec<&'a Value>, Exhausted> {
    let mut current = vec![root];
    for step in steps {
        let mut next = Vec::new();
        for value in current {
            apply(step, value, &mut next, budget)?;
        }
        current = next;
    }
    Ok(current)
}

fn apply<'a>(
    step: &Step,
    value: &'a Value,
    found: &mut Vec<&'a Value>,
    budget: &mut Budget,
) -> Result<(), Exhausted> {
    budget.step()?;
    match step {
        Step::Field(name) => found.extend(value.get(name)),
        Step::Index(index) => {
            let items = value.as_array().unwrap_or_default();
            found.extend(position(*index, items.len()).and_then(|index| items.get(index)));
        }
        Step::Slice(start, end, stride) => slice(value, (*start, *end, *stride), found, budget)?,
        Step::Wildcard => {
            for child in children(value) {
                budget.step()?;
                found.push(child);
            }
        }
        Step::Recursive => descend(value, found, budget)?,
        Step::Union(steps) => {
            for step in steps {
                apply(step, value, found, budget)?;
            }
        }
        Step::Filter(path, condition) => {
            for child in value.as_array().unwrap_or_default() {
                budget.step()?;
                if holds(child, path, condition.as_ref(), budget)? {
                    found.push(child);
                }
            }
        }
    }
    Ok(())
}

fn descend<'a>(value: &'a Value, found: &mut Vec<&'a Value>, budget: &mut Budget) -> Result<(), Exhausted> {
    // A list of what is still to be visited, not recursion: depth costs no stack.
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        budget.step()?;
        found.push(value);
        let start = open.len();
        open.extend(children(value));
        open[start..].reverse();
    }
    Ok(())
}

fn slice<'a>(
    value: &'a Value,
    (start, end, stride): (Option<i64>, Option<i64>, i64),
    found: &mut Vec<&'a Value>,
    budget: &mut Budget,
) -> Result<(), Exhausted> {
    let items = value.as_array().unwrap_or_default();
    let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
    let bound = |bound: i64| (if bound < 0 { bound + length } else { bound }).clamp(0, length);
    let (mut index, end) = (bound(start.unwrap_or(0)), bound(end.unwrap_or(length)));
    while index < end {
        budget.step()?;
        found.extend(usize::try_from(index).ok().and_then(|index| items.get(index)));
        index += stride.max(1);
    }
    Ok(())
}

fn holds(
    value: &Value,
    path: &[Step],
    condition: Option<&(Comparison, Operand)>,
    budget: &mut Budget,
) -> Result<bool, Exhausted> {
    let left = evaluate(path, value, budget)?;
    let Some((comparison, operand)) = condition else {
        return Ok(!left.is_empty());
    };
    let right = match operand {
        Operand::Literal(literal) => Some(literal),
        Operand::Path(path) => evaluate(path, value, budget)?.first().copied(),
    };
    let (Some(left), Some(right)) = (left.first().copied(), right) else {
        return Ok(false);
    };
    let order = match (left, right) {
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
        (left, right) => match (as_float(left), as_float(right)) {
            (Some(left), Some(right)) => left.partial_cmp(&right),
            _ => None,
        },
    };
    Ok(order.is_some_and(|order| match comparison {
        Comparison::Equal => order.is_eq(),
        Comparison::NotEqual => order.is_ne(),
        Comparison::Less => order.is_lt(),
        Comparison::LessOrEqual => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterOrEqual => order.is_ge(),
    }))
}

fn as_float(value: &Value) -> Option<f64> {
    match value {
        // Whole numbers beyond 2^53 compare as their nearest floats, as in Go's evaluator.
        #[allow(clippy::cast_precision_loss, reason = "comparison only, as upstream")]
        Value::Int(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        _ => None,
    }
}

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(members) => members.values().collect(),
        _ => Vec::new(),
    }
}

fn position(index: i64, length: usize) -> Option<usize> {
    let from_start = if index < 0 { index + i64::try_from(length).ok()? } else { index };
    usize::try_from(from_start).ok()
}

struct Parser<'a> {
    rest: &'a str,
    depth: usize,
}

impl Parser<'_> {
    /// Steps until the text ends or, inside a filter, something else begins.
    fn steps(&mut self, whole: bool) -> Result<Vec<Step>, JsonPathError> {
        let mut steps = Vec::new();
        loop {
            if self.eat("..") {
                steps.push(Step::Recursive);
                if !self.rest.is_empty() && !self.rest.starts_with('[') {
                    steps.push(self.field()?);
                }
            } else if self.eat(".") {
                // A dot before a bracket, or alone, is nothing.
                if !self.rest.is_empty() && !self.rest.starts_with('[') {
                    steps.push(self.field()?);
                }
            } else if self.eat("[") {
                steps.push(self.bracket()?);
            } else if whole && steps.is_empty() && !self.rest.is_empty() {
                steps.push(self.field()?);
            } else {
                return Ok(steps);
            }
        }
    }

    fn field(&mut self) -> Result<Step, JsonPathError> {
        let mut name = String::new();
        let mut characters = self.rest.char_indices();
        let mut end = self.rest.len();
        while let Some((position, character)) = characters.next() {
            match character {
                '\\' => name.extend(characters.next().map(|(_, escaped)| escaped)),
                '.' | '[' | ']' | ' ' | '=' | '!' | '<' | '>' | ')' | ',' | '|' | '&' | '{' | '}' => {
                    end = position;
                    break;
                }
                other => name.push(other),
            }
        }
        if end == 0 {
            return Err(JsonPathError(format!(
                "unrecognized character in action: {}",
                quoted_first(self.rest)
            )));
        }
        self.rest = &self.rest[end..];
        Ok(if name == "*" { Step::Wildcard } else { Step::Field(name) })
    }

    fn bracket(&mut self) -> Result<Step, JsonPathError> {
        self.skip_space();
        if self.eat("?(") {
            return self.filter();
        }
        let mut steps = vec![self.bracket_item()?];
        loop {
            self.skip_space();
            if self.eat("]") {
                break;
            }
            if !self.eat(",") {
                return Err(JsonPathError("unterminated array".to_owned()));
            }
            self.skip_space();
            steps.push(self.bracket_item()?);
        }
        Ok(match steps.pop() {
            Some(only) if steps.is_empty() => only,
            last => Step::Union(steps.into_iter().chain(last).collect()),
        })
    }

    fn bracket_item(&mut self) -> Result<Step, JsonPathError> {
        if self.eat("*") {
            return Ok(Step::Wildcard);
        }
        if let Some(quote) = self.rest.chars().next().filter(|first| matches!(first, '\'' | '"')) {
            return self.quoted(quote).map(Step::Field);
        }
        let end = self.rest.find([']', ',']).ok_or_else(|| JsonPathError("unterminated array".to_owned()))?;
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        let invalid = || JsonPathError(format!("invalid array index {text}"));
        let parts: Vec<_> = text.split(':').map(str::trim).collect();
        let number = |text: &str| match text {
            "" => Ok(None),
            text => text.parse::<i64>().map(Some).map_err(|_| invalid()),
        };
        match parts.as_slice() {
            [index] => number(index)?.map(Step::Index).ok_or_else(invalid),
            [start, end] => Ok(Step::Slice(number(start)?, number(end)?, 1)),
            [start, end, stride] => match number(stride)?.unwrap_or(1) {
                stride if stride > 0 => Ok(Step::Slice(number(start)?, number(end)?, stride)),
                _ => Err(JsonPathError("step must be > 0".to_owned())),
            },
            _ => Err(invalid()),
        }
    }

    fn filter(&mut self) -> Result<Step, JsonPathError> {
        self.depth += 1;
        if self.depth > JSONPATH_DEPTH {
            return Err(JsonPathError(format!("filters are nested deeper than {JSONPATH_DEPTH}")));
        }
        let path = self.relative_path()?;
        self.skip_space();
        let operators = [
            ("==", Comparison::Equal),
            ("!=", Comparison::NotEqual),
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
        ];
        let comparison =
            operators.iter().find_map(|(text, comparison)| self.eat(text).then_some(*comparison));
        let condition = match comparison {
            None => None,
            Some(comparison) => {
                self.skip_space();
                Some((comparison, self.operand()?))
            }
        };
        self.skip_space();
        if !self.eat(")") {
            return Err(JsonPathError("unterminated filter".to_owned()));
        }
        self.skip_space();
        if !self.eat("]") {
            return Err(JsonPathError("unclosed array expect ]".to_owned()));
        }
        self.depth -= 1;
        Ok(Step::Filter(path, condition))
    }

    fn relative_path(&mut self) -> Result<Vec<Step>, JsonPathError> {
        self.skip_space();
        if !self.eat("@") {
            return Err(JsonPathError("a filter must begin with @".to_owned()));
        }
        self.steps(false)
    }

    fn operand(&mut self) -> Result<Operand, JsonPathError> {
        match self.rest.chars().next() {
            Some('@') => self.relative_path().map(Operand::Path),
            Some(quote @ ('\'' | '"')) => self.quoted(quote).map(|text| Operand::Literal(text.into())),
            _ => {
                let end = self.rest.find([')', ' ', ']']).unwrap_or(self.rest.len());
                let (text, rest) = self.rest.split_at(end);
                self.rest = rest;
                let literal = match text {
                    "true" => Value::Bool(true),
                    "false" => Value::Bool(false),
                    number => match (number.parse::<i64>(), number.parse::<f64>()) {
                        (Ok(number), _) => Value::Int(number),
                        (_, Ok(number)) if number.is_finite() => Value::Float(number),
                        _ => {
                            let fault = format!("unrecognized value in filter: {}", quoted_first(number));
                            return Err(JsonPathError(fault));
                        }
                    },
                };
                Ok(Operand::Literal(literal))
            }
        }
    }

    fn quoted(&mut self, quote: char) -> Result<String, JsonPathError> {
        let mut text = String::new();
        let mut characters = self.rest.char_indices().skip(1);
        while let Some((position, character)) = characters.next() {
            match character {
                '\\' => text.extend(characters.next().map(|(_, escaped)| escaped)),
                end if end == quote => {
                    self.rest = &self.rest[position + end.len_utf8()..];
                    return Ok(text);
                }
                other => text.push(other),
            }
        }
        Err(JsonPathError("unterminated quoted string".to_owned()))
    }

    fn eat(&mut self, prefix: &str) -> bool {
        match self.rest.strip_prefix(prefix) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start();
    }
}

fn quoted_first(text: &str) -> String {
    text.chars()
        .next()
        .map_or_else(|| "end of expression".to_owned(), |first| format!("U+{:04X}", u32::from(first)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Value {
        let condition = |kind: &str, status: &str| Value::from([("type", kind), ("status", status)]);
        let mut value = Value::from([("kind", "X")]);
        value.set(&["status", "conditions"], vec![condition("Ready", "True"), condition("Stalled", "False")]);
        value.set(&["status", "numbers"], vec![Value::from(1), 2.into(), 3.into()]);
        value.set(&["metadata", "labels", "a.b/c"], "v");
        value
    }

    fn texts(path: &str) -> Vec<String> {
        let root = sample();
        let parsed = JsonPath::parse(path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let found = parsed.find(&root).expect("within the budget");
        found
            .iter()
            .map(|value| match value {
                Value::String(text) => text.clone(),
                Value::Int(number) => number.to_string(),
                other => other.json_kind().to_owned(),
            })
            .collect()
    }

    #[test]
    fn paths_find_values() {
        for (path, expected) in [
            (".kind", &["X"][..]),
            ("{.kind}", &["X"]),
            ("$.kind", &["X"]),
            ("kind", &["X"]),
            (".missing.deeper", &[]),
            (".status.conditions[0].type", &["Ready"]),
            (".status.conditions[-1].type", &["Stalled"]),
            (".status.conditions[7].type", &[]),
            (".status.conditions[*].type", &["Ready", "Stalled"]),
            (".status.conditions[?(@.type==\"Ready\")].status", &["True"]),
            (".status.conditions[?(@.type=='Ready')].status", &["True"]),
            (".status.conditions[?(@.type != 'Ready')].status", &["False"]),
            (".status.conditions[?(@.status)].type", &["Ready", "Stalled"]),
            (".status.conditions[?(@.missing)].type", &[]),
            (".status.conditions[?(@.type==@.type)].type", &["Ready", "Stalled"]),
            (".status.numbers[0:2]", &["1", "2"]),
            (".status.numbers[1:]", &["2", "3"]),
            (".status.numbers[-1:]", &["3"]),
            (".status.numbers[::2]", &["1", "3"]),
            (".status.numbers[0,2]", &["1", "3"]),
            (".status.numbers[?(@ > 1)]", &["2", "3"]),
            (".status.numbers[?(@ >= 2.5)]", &["3"]),
            (".status.numbers[?(@ <= 1)]", &["1"]),
            (".status.numbers[?(@ < 1)]", &[]),
            (".metadata.labels['a.b/c']", &["v"]),
            (".metadata.labels.a\\.b/c", &["v"]),
            ("['kind']", &["X"]),
            (".metadata.*.*", &["v"]),
            ("..type", &["Ready", "Stalled"]),
            (".", &["object"]),
        ] {
            assert_eq!(texts(path), expected, "{path}");
        }
    }

    #[test]
    fn faults() {
        for (path, expected) in [
            (".a[", "unterminated array"),
            (".a[0", "unterminated array"),
            (".a[x]", "invalid array index x"),
            (".a[0:1:0]", "step must be > 0"),
            (".a['b]", "unterminated quoted string"),
            (".a[?(x)]", "a filter must begin with @"),
            (".a[?(@.b==]", "unrecognized value in filter: end of expression"),
            (".a[?(@.b)", "unclosed array expect ]"),
            (".a b", "unrecognized character in action: U+0020"),
        ] {
            let error = JsonPath::parse(path).expect_err("a fault").to_string();
            assert_eq!(error, expected, "{path}");
        }
        assert!(JsonPath::parse(&"a".repeat(JSONPATH_LENGTH)).is_ok());
        assert!(JsonPath::parse(&"a".repeat(JSONPATH_LENGTH + 1)).is_err());
        let nested = |depth: usize| format!("a{}{}", "[?(@.a".repeat(depth), ")]".repeat(depth));
        assert!(JsonPath::parse(&nested(JSONPATH_DEPTH)).is_ok());
        assert!(JsonPath::parse(&nested(JSONPATH_DEPTH + 1)).is_err());
    }

    #[test]
    fn evaluation_ends() {
        let wide = Value::Array(vec![Value::Null; JSONPATH_STEPS - 1]);
        let count =
            |path: &str| JsonPath::parse(path).expect("well-formed").find(&wide).map(|found| found.len());
        assert_eq!(count("[*]"), Ok(JSONPATH_STEPS - 1));
        assert_eq!(count("[*]..x"), Err(Exhausted));
        assert_eq!(count("..[*]..[*]"), Err(Exhausted));
    }

    #[test]
    fn plain_paths_are_told_from_others() {
        let fields = |path: &str| {
            let parsed = JsonPath::parse(path).expect("well-formed");
            parsed.plain_fields().map(|fields| fields.join("/"))
        };
        assert_eq!(fields(".spec.color").as_deref(), Some("spec/color"));
        assert_eq!(fields(".spec.colors[0]"), None);
    }
}
