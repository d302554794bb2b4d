//! How a library declares its functions.
//!
//! A library is one file in `libraries/` with one public function that returns
//! a [`Library`]. A function has overloads; the checker picks those whose
//! parameters fit, and where one is left the call goes straight to it. Where
//! several are left (an argument is `dyn`), the evaluator picks the first whose
//! parameters fit the values.
//!
//! ```
//! use coffer_lang::cel::error::Error;
//! use coffer_lang::cel::functions::{Context, Function, Library, Overload};
//! use coffer_lang::cel::types::Type;
//! use coffer_lang::cel::value::Value;
//!
//! pub fn library() -> Library {
//!     Library {
//!         name: "example.repeat",
//!         functions: vec![Function::new(
//!             "repeat",
//!             vec![
//!                 Overload::member("string_repeat_int", [Type::String, Type::Int], Type::String, repeat)
//!                     .cost(|_arguments, result| Some(result.cost_size())),
//!             ],
//!         )],
//!         types: vec![],
//!         ..Library::default()
//!     }
//! }
//!
//! fn repeat<'v>(context: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
//!     let (text, times) = (arguments[0].as_text()?, arguments[1].as_int()?);
//!     let times = usize::try_from(times).map_err(|_| Error::new("negative count"))?;
//!     // What a function allocates is charged before it is allocated.
//!     context.charge(text.len().saturating_mul(times))?;
//!     Ok(Value::string(text.repeat(times)))
//! }
//! ```
//!
//! Costs, at compile time ([`Overload::estimate`]) and at run time
//! ([`Overload::cost`]), are those that cel-go attaches to an overload. What
//! Kubernetes attaches to a function's name stands in one table instead
//! ([`CallCosts`]), which is asked second; a call that neither knows costs what
//! the standard library says of its overload, or 1.

use std::borrow::Cow;
use std::sync::Arc;

use regex::Regex;

use super::error::Error;
use super::estimate::{CallEstimate, CallSite};
use super::limits::Memory;
use super::types::Type;
use super::value::Value;

/// Functions and types that are added to an environment together.
#[derive(Clone, Default)]
pub struct Library {
    /// What upstream calls it.
    pub name: &'static str,
    /// Functions; those with the name of a function that is there already add their overloads to it.
    pub functions: Vec<Function>,
    /// Types that expressions can name, as in `type(x) == net.IP`.
    pub types: Vec<Type>,
    /// Macros.
    pub macros: Vec<super::syntax::macros::Macro>,
    /// Checks of calls whose arguments are literals.
    pub validators: Vec<CallValidator>,
}

/// A function.
#[derive(Clone)]
pub struct Function {
    /// Its name, with the namespace: `ip.isCanonical`.
    pub name: Cow<'static, str>,
    /// Its overloads in the order in which they are tried.
    pub overloads: Vec<Overload>,
}

/// One way to call a function.
#[derive(Clone)]
pub struct Overload {
    /// Upstream's id of it.
    pub id: Cow<'static, str>,
    /// Whether the first parameter stands before the dot.
    pub member: bool,
    /// The parameters, the one before the dot first.
    pub parameters: Vec<Type>,
    /// What it returns.
    pub result: Type,
    /// What it does.
    pub evaluate: Evaluate,
    /// The parameter that is a regular expression: a literal there is compiled with the program.
    pub regex: Option<usize>,
    /// What a call may cost, told at compile time.
    pub estimate: Option<Estimate>,
    /// What a call did cost.
    pub cost: Option<ActualCost>,
    /// Whether values are held against the parameters before the call; where they
    /// are not, the first overload of the function takes all calls.
    pub guarded: bool,
}

/// What a function does with its arguments, the one before the dot first.
pub type Evaluate = for<'v> fn(&mut Context<'_>, &[Value<'v>]) -> Result<Value<'v>, Error>;
/// What a call may cost; none if another is to tell.
pub type Estimate = fn(&CallSite<'_>) -> Option<CallEstimate>;
/// What a call did cost, told from arguments and result; none if another is to tell.
pub type ActualCost = for<'v> fn(&[Value<'v>], &Value<'v>) -> Option<u64>;
/// What a call did cost, told for all overloads of a name. The overload is known
/// only where the checker left one.
pub type NamedCost = for<'v> fn(Option<&str>, &[Value<'v>], &Value<'v>) -> Option<u64>;

/// What calls cost by the function's name: Kubernetes' table.
#[derive(Clone, Copy)]
pub struct CallCosts {
    /// Looks a function up for compile time.
    pub estimate: fn(function: &str) -> Option<Estimate>,
    /// Looks a function up for run time.
    pub cost: fn(function: &str) -> Option<NamedCost>,
}

impl CallCosts {
    /// No function has a cost of its own.
    pub const NONE: CallCosts = CallCosts { estimate: |_| None, cost: |_| None };
}

/// A check of calls whose arguments are literals, made when a program is compiled.
#[derive(Clone, Copy)]
pub struct CallValidator {
    /// The function's name.
    pub function: &'static str,
    /// Returns what is wrong with a call: the way to the part that is wrong, and the message.
    /// The way begins with the index of the argument (the one before the dot is 0), then come
    /// indexes within literals: of elements of a list, twice the index of an entry of a map for its
    /// key and one more for its value. An empty way is the call itself.
    pub check: CheckCall,
}

/// What is wrong with a call: the way to the part that is, and the message.
pub type CheckCall = fn(&[Literal<'_>]) -> Option<(Vec<usize>, String)>;

/// An argument as a validator sees it.
#[derive(Clone)]
pub enum Literal<'a> {
    /// A literal.
    Value(&'a Value<'static>),
    /// A list literal.
    List(Vec<Literal<'a>>),
    /// A map literal.
    Map(Vec<(Literal<'a>, Literal<'a>)>),
    /// Anything else, with its type.
    Other(&'a Type),
}

/// What a function can use while it runs.
pub struct Context<'c> {
    pub(crate) memory: &'c mut Memory,
    pub(crate) prepared: Option<&'c (Arc<str>, Arc<Regex>)>,
    pub(crate) regexes: &'c mut Vec<(Arc<str>, Arc<Regex>)>,
}

impl Context<'_> {
    /// Takes `bytes` that are about to be allocated.
    ///
    /// # Errors
    /// When the evaluation would hold more memory than it may.
    pub fn charge(&mut self, bytes: usize) -> Result<(), Error> {
        self.memory.charge(bytes)
    }

    /// The compiled form of `pattern`: made with the program if it is a literal,
    /// else once for each evaluation.
    ///
    /// # Errors
    /// When the pattern is none or compiles to too much, alone or with those before.
    pub fn regex(&mut self, pattern: &str) -> Result<Arc<Regex>, Error> {
        if let Some((known, prepared)) = self.prepared
            && **known == *pattern
        {
            return Ok(prepared.clone());
        }
        if let Some((_, found)) = self.regexes.iter().find(|(known, _)| **known == *pattern) {
            return Ok(found.clone());
        }
        let regex = self.memory.compile(pattern)?;
        if self.regexes.len() < MAXIMUM_REGEXES {
            self.regexes.push((pattern.into(), regex.clone()));
        }
        Ok(regex)
    }
}

/// Most patterns that one evaluation keeps.
const MAXIMUM_REGEXES: usize = 16;

impl Function {
    /// A function.
    pub fn new(name: impl Into<Cow<'static, str>>, overloads: Vec<Overload>) -> Self {
        Self { name: name.into(), overloads }
    }
}

impl Overload {
    /// A function called as `f(a, b)`.
    pub fn global(
        id: impl Into<Cow<'static, str>>,
        parameters: impl Into<Vec<Type>>,
        result: Type,
        evaluate: Evaluate,
    ) -> Self {
        Self {
            id: id.into(),
            member: false,
            parameters: parameters.into(),
            result,
            evaluate,
            regex: None,
            estimate: None,
            cost: None,
            guarded: true,
        }
    }

    /// A function called as `a.f(b)`.
    pub fn member(
        id: impl Into<Cow<'static, str>>,
        parameters: impl Into<Vec<Type>>,
        result: Type,
        evaluate: Evaluate,
    ) -> Self {
        Self { member: true, ..Self::global(id, parameters, result, evaluate) }
    }

    /// Says which parameter is a regular expression.
    pub fn regex(mut self, parameter: usize) -> Self {
        self.regex = Some(parameter);
        self
    }

    /// Leaves the look at the values' types to the function itself.
    pub fn unguarded(mut self) -> Self {
        self.guarded = false;
        self
    }

    /// Says what a call may cost.
    pub fn estimate(mut self, estimate: Estimate) -> Self {
        self.estimate = Some(estimate);
        self
    }

    /// Says what a call did cost.
    pub fn cost(mut self, cost: ActualCost) -> Self {
        self.cost = Some(cost);
        self
    }
}
