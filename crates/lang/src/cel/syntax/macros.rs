//! Macros: calls that the parser replaces by loops and tests.

use std::sync::Arc;

use super::ast::{Comprehension, Expr, Id, Kind, operators};
use crate::cel::value::Value;

/// A macro.
#[derive(Clone, Copy)]
pub struct Macro {
    /// The name of the call that it replaces.
    pub name: &'static str,
    /// Whether something stands before the dot.
    pub receiver: bool,
    /// How many arguments the call has.
    pub arguments: usize,
    /// What it makes of the call.
    pub expand: Expand,
}

/// Makes an expression of what stands before the dot and of the arguments.
pub type Expand = fn(&mut MacroContext<'_>, Option<Expr>, Vec<Expr>) -> Result<Expr, MacroError>;

/// The arguments do not fit the macro.
pub struct MacroError {
    /// The expression that does not.
    pub at: Id,
    /// Why.
    pub message: String,
}

impl MacroError {
    /// An error at `expr`.
    pub fn new(expr: &Expr, message: impl Into<String>) -> Self {
        Self { at: expr.id, message: message.into() }
    }
}

/// Makes expressions that stand where the macro's call stands.
pub struct MacroContext<'c> {
    pub(crate) offsets: &'c mut Vec<u32>,
    pub(crate) offset: u32,
}

impl MacroContext<'_> {
    /// An expression.
    pub fn expr(&mut self, kind: Kind) -> Expr {
        self.offsets.push(self.offset);
        Expr { id: (self.offsets.len() - 1) as Id, kind }
    }

    /// A literal.
    pub fn literal(&mut self, value: Value<'static>) -> Expr {
        self.expr(Kind::Literal(value))
    }

    /// A variable.
    pub fn ident(&mut self, name: &str) -> Expr {
        self.expr(Kind::Ident(name.into()))
    }

    /// The variable in which macros gather.
    pub fn accumulator(&mut self) -> Expr {
        self.ident(operators::ACCUMULATOR)
    }

    /// A list.
    pub fn list(&mut self, elements: Vec<Expr>) -> Expr {
        self.expr(Kind::List { elements, optional: Vec::new() })
    }

    /// A call.
    pub fn call(&mut self, function: &str, arguments: Vec<Expr>) -> Expr {
        self.expr(Kind::Call { function: function.into(), target: None, arguments })
    }

    /// A call with something before the dot.
    pub fn member_call(&mut self, function: &str, target: Expr, arguments: Vec<Expr>) -> Expr {
        self.expr(Kind::Call { function: function.into(), target: Some(Box::new(target)), arguments })
    }

    /// A loop.
    pub fn comprehension(&mut self, comprehension: Comprehension) -> Expr {
        self.expr(Kind::Comprehension(Box::new(comprehension)))
    }

    /// A binding of `name` to `value` inside `result`.
    pub fn bind(&mut self, name: Arc<str>, value: Expr, result: Expr) -> Expr {
        let range = self.list(Vec::new());
        let condition = self.literal(Value::Bool(false));
        let step = self.ident(&name);
        self.comprehension(Comprehension {
            range,
            variable: UNUSED.into(),
            second: None,
            accumulator: name,
            initial: value,
            condition,
            step,
            result,
        })
    }

    /// The same expression once more, with ids of its own.
    pub fn copy(&mut self, expr: &Expr) -> Expr {
        let mut copy = expr.clone();
        self.renumber(&mut copy);
        copy
    }

    fn renumber(&mut self, expr: &mut Expr) {
        expr.id = self.renumbered(expr.id);
        match &mut expr.kind {
            Kind::Unspecified | Kind::Literal(_) | Kind::Ident(_) => {}
            Kind::Select { operand, .. } => self.renumber(operand),
            Kind::Call { target, arguments, .. } => {
                if let Some(target) = target {
                    self.renumber(target);
                }
                arguments.iter_mut().for_each(|argument| self.renumber(argument));
            }
            Kind::List { elements, .. } => elements.iter_mut().for_each(|element| self.renumber(element)),
            Kind::Map(entries) => {
                for entry in entries {
                    entry.id = self.renumbered(entry.id);
                    self.renumber(&mut entry.key);
                    self.renumber(&mut entry.value);
                }
            }
            Kind::Struct { fields, .. } => {
                for field in fields {
                    field.id = self.renumbered(field.id);
                    self.renumber(&mut field.value);
                }
            }
            Kind::Comprehension(inner) => {
                for part in [
                    &mut inner.range,
                    &mut inner.initial,
                    &mut inner.condition,
                    &mut inner.step,
                    &mut inner.result,
                ] {
                    self.renumber(part);
                }
            }
        }
    }

    fn renumbered(&mut self, id: Id) -> Id {
        self.offsets.push(self.offsets[id as usize]);
        (self.offsets.len() - 1) as Id
    }
}

const UNUSED: &str = "#unused";
const OVERWRITES: &str = "iteration variable overwrites accumulator variable";

/// The macros of the language, of optional values and of loops with two variables.
pub const STANDARD: &[Macro] = &[
    Macro { name: "has", receiver: false, arguments: 1, expand: has },
    Macro { name: "all", receiver: true, arguments: 2, expand: all },
    Macro { name: "exists", receiver: true, arguments: 2, expand: exists },
    Macro { name: "exists_one", receiver: true, arguments: 2, expand: exists_one },
    Macro { name: "map", receiver: true, arguments: 2, expand: map },
    Macro { name: "map", receiver: true, arguments: 3, expand: map },
    Macro { name: "filter", receiver: true, arguments: 2, expand: filter },
    Macro { name: "optMap", receiver: true, arguments: 2, expand: optional_map },
    Macro { name: "optFlatMap", receiver: true, arguments: 2, expand: optional_flat_map },
    Macro { name: "all", receiver: true, arguments: 3, expand: all },
    Macro { name: "exists", receiver: true, arguments: 3, expand: exists },
    Macro { name: "exists_one", receiver: true, arguments: 3, expand: exists_one },
    Macro { name: "existsOne", receiver: true, arguments: 3, expand: exists_one },
    Macro { name: "transformList", receiver: true, arguments: 3, expand: transform_list },
    Macro { name: "transformList", receiver: true, arguments: 4, expand: transform_list },
    Macro { name: "transformMap", receiver: true, arguments: 3, expand: transform_map },
    Macro { name: "transformMap", receiver: true, arguments: 4, expand: transform_map },
    Macro { name: "transformMapEntry", receiver: true, arguments: 3, expand: transform_map_entry },
    Macro { name: "transformMapEntry", receiver: true, arguments: 4, expand: transform_map_entry },
];

/// The macro `map` of `target`, for macros that are built on it.
///
/// # Errors
/// When the first argument is no name that can be a variable.
pub fn map(
    context: &mut MacroContext<'_>,
    target: Option<Expr>,
    mut arguments: Vec<Expr>,
) -> Result<Expr, MacroError> {
    let variable = variable(&arguments[0], "argument is not an identifier")?;
    let transform = arguments.pop().unwrap_or_else(|| context.literal(Value::Null));
    let filter = (arguments.len() == 2).then(|| arguments.pop()).flatten();
    Ok(gather_list(context, target, variable, None, filter, transform))
}

/// What a quantifier starts with, and its variables and predicate.
struct Quantifier {
    range: Expr,
    variable: Arc<str>,
    second: Option<Arc<str>>,
    predicate: Expr,
}

fn quantifier(
    context: &mut MacroContext<'_>,
    target: Option<Expr>,
    mut arguments: Vec<Expr>,
) -> Result<Quantifier, MacroError> {
    let (variable, second) = if arguments.len() == 2 {
        (variable(&arguments[0], "argument must be a simple name")?, None)
    } else {
        two_variables(&arguments)?
    };
    let predicate = arguments.pop().unwrap_or_else(|| context.literal(Value::Null));
    Ok(Quantifier { range: range(context, target), variable, second, predicate })
}

fn range(context: &mut MacroContext<'_>, target: Option<Expr>) -> Expr {
    target.unwrap_or_else(|| context.list(Vec::new()))
}

fn variable(argument: &Expr, message: &str) -> Result<Arc<str>, MacroError> {
    let Kind::Ident(name) = &argument.kind else { return Err(MacroError::new(argument, message)) };
    if is_accumulator(name) {
        return Err(MacroError::new(argument, OVERWRITES));
    }
    Ok(name.clone())
}

fn is_accumulator(name: &str) -> bool {
    name == operators::ACCUMULATOR || name == "__result__"
}

fn two_variables(arguments: &[Expr]) -> Result<(Arc<str>, Option<Arc<str>>), MacroError> {
    let name = |argument: &Expr| match &argument.kind {
        Kind::Ident(name) => Ok(name.clone()),
        _ => Err(MacroError::new(argument, "argument must be a simple name")),
    };
    let first = name(&arguments[0])?;
    let second = name(&arguments[1])?;
    if first == second {
        return Err(MacroError::new(&arguments[1], format!("duplicate variable name: {first}")));
    }
    for argument in &arguments[..2] {
        variable(argument, "")?;
    }
    Ok((first, Some(second)))
}

fn has(
    context: &mut MacroContext<'_>,
    _: Option<Expr>,
    mut arguments: Vec<Expr>,
) -> Result<Expr, MacroError> {
    match arguments.pop() {
        Some(Expr { kind: Kind::Select { operand, field, .. }, .. }) => {
            Ok(context.expr(Kind::Select { operand, field, test: true }))
        }
        Some(other) => Err(MacroError::new(&other, "invalid argument to has() macro")),
        None => Err(MacroError { at: 0, message: "invalid argument to has() macro".to_owned() }),
    }
}

fn all(
    context: &mut MacroContext<'_>,
    target: Option<Expr>,
    arguments: Vec<Expr>,
) -> Result<Expr, MacroError> {
    let Quantifier { range, variable, second, predicate } = quantifier(context, target, arguments)?;
    let initial = context.literal(Value::Bool(true));
    let accumulator = context.accumulator();
    let condition = context.call(operators::NOT_STRICTLY_FALSE, vec![accumulator]);
    let accumulator = context.accumulator();
    let step = context.call(operators::AND, vec![accumulator, predicate]);
    let result = context.accumulator();
    let accumulator = operators::ACCUMULATOR.into();
    Ok(context.comprehension(Comprehension {
        range,
        variable,
        second,
        accumulator,
        initial,
        condition,
        step,
        result,
    }))
}

fn exists(
    context: &mut MacroContext<'_>,
    target: Option<Expr>,
    arguments: Vec<Expr>,
) -> Result<Expr, MacroError> {
    let Quantifier { range, variable, second, predicate } = quantifier(context, target, arguments)?;
    let initial = context.literal(Value::Bool(false));
    let accumulator = context.accumulator();
    let not = context.call(operators::NOT, vec![accumulator]);
    let condition = context.call(operators::NOT_STRICTLY_FALSE, vec![not]);
    let accumulator = context.accumulator();
    let step = context.call(operators::OR, vec![accumulator, predicate]);
    let result = context.accumulator();
    let accumulator = operators::ACCUMULATOR.into();
    Ok(context.comprehension(Comprehension {
        range,
        variable,
        second,
        accumulator,
        initial,
        condition,
        step,
        result,
    }))
}

fn exists_one(
    context: &mut MacroContext<'_>,
    target: Option<Expr>,
    arguments: Vec<Expr>,
) -> Result<Expr, MacroError> {
    let Quantifier { range, variable, second, predicate } = quantifier(context, target, arguments)?;
    let initial = context.literal(Value::Int(0));
    let condition = context.literal(Value::Bool(true));
    let (accumulator, one) = (context.accumulator(), context.literal(Value::Int(1)));
    let sum = context.call(operators::ADD, vec![accumulator, one]);
    let accumulator = context.accumulator();
    let step = context.call(operators::CONDITIONAL, vec![predicate, sum, accumulator]);
    let (accumulator, one) = (context.accumulator(), context.literal(Value::Int(1)));
    let result = context.call(operators::EQUALS, vec![accumulator, one]);
    let accumulator = operators::ACCUMULATOR.into();
    Ok(context.comprehension(Comprehension {
        range,
        variable,
        second,
        accumulator,
        initial,
        condition,
        step,
        result,
    }))
}

fn filter(
    context: &mut MacroContext<'_>,
    target: Option<Expr>,
    mut arguments: Vec<Expr>,
) -> Result<Expr, MacroError> {
    let variable = variable(&arguments[0], "argument is not an identifier")?;
    let predicate = arguments.pop();
    let element = arguments.pop().unwrap_or_else(|| context.ident(&variable));
    Ok(gather_list(context, target, variable, None, predicate, element))
}

fn transform_list(
    context: &mut MacroContext<'_>,
    target: Option<Expr>,
    mut arguments: Vec<Expr>,
) -> Result<Expr, MacroError> {
    let (variable, second) = two_variables(&arguments)?;
    let transform = arguments.pop().unwrap_or_else(|| context.literal(Value::Null));
    let filter = (arguments.len() == 3).then(|| arguments.pop()).flatten();
    Ok(gather_list(context, target, variable, second, filter, transform))
}

fn gather_list(
    context: &mut MacroContext<'_>,
    target: Option<Expr>,
    variable: Arc<str>,
    second: Option<Arc<str>>,
    filter: Option<Expr>,
    element: Expr,
) -> Expr {
    let initial = context.list(Vec::new());
    let condition = context.literal(Value::Bool(true));
    let (accumulator, list) = (context.accumulator(), context.list(vec![element]));
    let step = context.call(operators::ADD, vec![accumulator, list]);
    gather(context, target, variable, second, filter, (initial, condition, step))
}

fn transform_map(
    context: &mut MacroContext<'_>,
    target: Option<Expr>,
    mut arguments: Vec<Expr>,
) -> Result<Expr, MacroError> {
    let (variable, second) = two_variables(&arguments)?;
    let transform = arguments.pop().unwrap_or_else(|| context.literal(Value::Null));
    let filter = (arguments.len() == 3).then(|| arguments.pop()).flatten();
    let key = context.ident(&variable);
    Ok(gather_map(context, target, variable, second, filter, vec![key, transform]))
}

fn transform_map_entry(
    context: &mut MacroContext<'_>,
    target: Option<Expr>,
    mut arguments: Vec<Expr>,
) -> Result<Expr, MacroError> {
    let (variable, second) = two_variables(&arguments)?;
    let transform = arguments.pop().unwrap_or_else(|| context.literal(Value::Null));
    let filter = (arguments.len() == 3).then(|| arguments.pop()).flatten();
    Ok(gather_map(context, target, variable, second, filter, vec![transform]))
}

fn gather_map(
    context: &mut MacroContext<'_>,
    target: Option<Expr>,
    variable: Arc<str>,
    second: Option<Arc<str>>,
    filter: Option<Expr>,
    inserted: Vec<Expr>,
) -> Expr {
    let initial = context.expr(Kind::Map(Vec::new()));
    let condition = context.literal(Value::Bool(true));
    let mut arguments = vec![context.accumulator()];
    arguments.extend(inserted);
    let step = context.call(operators::MAP_INSERT, arguments);
    gather(context, target, variable, second, filter, (initial, condition, step))
}

fn gather(
    context: &mut MacroContext<'_>,
    target: Option<Expr>,
    variable: Arc<str>,
    second: Option<Arc<str>>,
    filter: Option<Expr>,
    (initial, condition, mut step): (Expr, Expr, Expr),
) -> Expr {
    if let Some(filter) = filter {
        let accumulator = context.accumulator();
        step = context.call(operators::CONDITIONAL, vec![filter, step, accumulator]);
    }
    let result = context.accumulator();
    let range = range(context, target);
    let accumulator = operators::ACCUMULATOR.into();
    context.comprehension(Comprehension {
        range,
        variable,
        second,
        accumulator,
        initial,
        condition,
        step,
        result,
    })
}

fn optional_map(
    context: &mut MacroContext<'_>,
    target: Option<Expr>,
    arguments: Vec<Expr>,
) -> Result<Expr, MacroError> {
    on_value(context, target, arguments, "optMap", |context, bound| context.call("optional.of", vec![bound]))
}

fn optional_flat_map(
    context: &mut MacroContext<'_>,
    target: Option<Expr>,
    arguments: Vec<Expr>,
) -> Result<Expr, MacroError> {
    on_value(context, target, arguments, "optFlatMap", |_, bound| bound)
}

fn on_value(
    context: &mut MacroContext<'_>,
    target: Option<Expr>,
    mut arguments: Vec<Expr>,
    name: &str,
    wrap: impl FnOnce(&mut MacroContext<'_>, Expr) -> Expr,
) -> Result<Expr, MacroError> {
    let Kind::Ident(variable) = &arguments[0].kind else {
        return Err(MacroError::new(
            &arguments[0],
            format!("{name}() variable name must be a simple identifier"),
        ));
    };
    let variable = variable.clone();
    let target = range(context, target);
    let mapped = arguments.pop().unwrap_or_else(|| context.literal(Value::Null));
    let copy = context.copy(&target);
    let has_value = context.member_call("hasValue", target, Vec::new());
    let value = context.member_call("value", copy, Vec::new());
    let bound = context.bind(variable, value, mapped);
    let some = wrap(context, bound);
    let none = context.call("optional.none", Vec::new());
    Ok(context.call(operators::CONDITIONAL, vec![has_value, some, none]))
}
