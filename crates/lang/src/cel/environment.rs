//! What an expression can use: variables, functions and object types.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::declared::{DeclaredType, Field, Shape};
use super::functions::{CallCosts, CallValidator, Function, Library};
use super::syntax::macros::Macro;
use super::types::Type;

/// Variables, functions and object types. Made once, extended cheaply.
#[derive(Clone)]
pub struct Environment {
    pub(crate) functions: Arc<HashMap<String, Arc<Function>>>,
    pub(crate) validators: Arc<Vec<CallValidator>>,
    pub(crate) types: Arc<HashMap<String, Type>>,
    pub(crate) macros: Arc<Vec<Macro>>,
    pub(crate) variables: BTreeMap<String, Variable>,
    pub(crate) objects: HashMap<Arc<str>, ObjectType>,
    pub(crate) costs: CallCosts,
    /// Whether the types of mutations can be made.
    pub(crate) patches: bool,
}

/// A variable.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Its type.
    pub declared: Arc<DeclaredType>,
    /// Its place among the values of an evaluation.
    pub slot: usize,
}

/// An object type.
#[derive(Clone, Debug)]
pub struct ObjectType {
    /// What it is made of.
    pub declared: Arc<DeclaredType>,
    /// Whether expressions can make one: `Object{spec: …}`.
    pub constructible: bool,
}

impl Environment {
    /// An environment with the standard functions and those of `libraries`, without variables.
    pub fn new(libraries: Vec<Library>, costs: CallCosts) -> Self {
        let libraries = std::iter::once(super::standard::library()).chain(libraries);
        let mut functions: HashMap<String, Function> = HashMap::new();
        let mut types = HashMap::new();
        let mut validators = Vec::new();
        let mut macros = super::syntax::macros::STANDARD.to_vec();
        for library in libraries {
            for function in library.functions {
                match functions.get_mut(&*function.name) {
                    Some(known) => {
                        for overload in function.overloads {
                            if !known.overloads.iter().any(|candidate| candidate.id == overload.id) {
                                known.overloads.push(overload);
                            }
                        }
                    }
                    None => {
                        functions.insert(function.name.to_string(), function);
                    }
                }
            }
            for declared in library.types {
                types.insert(declared.name().to_owned(), declared);
            }
            validators.extend(library.validators);
            macros.extend(library.macros);
        }
        Self {
            functions: Arc::new(
                functions.into_iter().map(|(name, function)| (name, Arc::new(function))).collect(),
            ),
            validators: Arc::new(validators),
            types: Arc::new(types),
            macros: Arc::new(macros),
            variables: BTreeMap::new(),
            objects: HashMap::new(),
            costs,
            patches: false,
        }
    }

    /// This environment with a variable more; its object types are declared, too.
    /// Returns the place of its value among those of an evaluation.
    pub fn declare(&mut self, name: &str, declared: Arc<DeclaredType>) -> usize {
        let slot = self.variables.len();
        self.declare_objects(&declared);
        self.variables.insert(name.to_owned(), Variable { declared, slot });
        slot
    }

    /// This environment with a variable of a type without fields.
    pub fn declare_type(&mut self, name: &str, cel: Type) -> usize {
        self.declare(name, Arc::new(DeclaredType { cel, ..DeclaredType::DYN }))
    }

    /// Declares the object types inside `declared`.
    pub fn declare_objects(&mut self, declared: &Arc<DeclaredType>) {
        match &declared.shape {
            Shape::Object(fields) => {
                if let Type::Object(name) = &declared.cel {
                    let object = ObjectType { declared: declared.clone(), constructible: false };
                    if self.objects.insert(name.clone(), object).is_some() {
                        return;
                    }
                }
                for field in fields.iter() {
                    self.declare_objects(&field.declared);
                }
            }
            Shape::List { element, .. } | Shape::Map { element } => self.declare_objects(element),
            Shape::Dyn | Shape::Scalar(_) => {}
        }
    }

    /// The checks of calls with literals.
    pub fn validators(&self) -> &[CallValidator] {
        &self.validators
    }

    /// The type that expressions call `name`, if a library has it.
    pub fn named_type(&self, name: &str) -> Option<&Type> {
        self.types.get(name)
    }

    /// The type that expressions call `name`: of a library or of the language.
    pub fn type_named(&self, name: &str) -> Option<Type> {
        if let Some(declared) = self.types.get(name) {
            return Some(declared.clone());
        }
        Some(match name {
            "bool" => Type::Bool,
            "bytes" => Type::Bytes,
            "double" => Type::Double,
            "google.protobuf.Duration" => Type::Duration,
            "int" => Type::Int,
            "list" => Type::list(Type::Dyn),
            "map" => Type::map(Type::Dyn, Type::Dyn),
            "null_type" => Type::Null,
            "optional_type" => Type::optional(Type::Dyn),
            "string" => Type::String,
            "google.protobuf.Timestamp" => Type::Timestamp,
            "type" => Type::Type(None),
            "uint" => Type::Uint,
            _ => return None,
        })
    }

    /// Whether `name` is a type that mutations make, and may be made here.
    pub(crate) fn is_patch_type(&self, name: &str) -> bool {
        self.patches && super::patches::is_patch_type(name)
    }

    /// Whether expressions can make an object of the type called `name`.
    pub(crate) fn can_make(&self, name: &str) -> bool {
        self.is_patch_type(name) || self.objects.get(name).is_some_and(|object| object.constructible)
    }

    /// The field of an object type that expressions call `name`.
    pub fn field<'d>(&self, declared: &'d DeclaredType, name: &str) -> Option<&'d Field> {
        declared.field(name)
    }

    /// What calls cost by the function's name.
    pub fn costs(&self) -> CallCosts {
        self.costs
    }

    /// The function called `name`.
    pub fn function(&self, name: &str) -> Option<&Arc<Function>> {
        self.functions.get(name)
    }
}
