//! Whether one type can be used as another, and what types that are still to be
//! found become by it.

use crate::cel::types::Type;

/// What the types that were to be found are, so far.
#[derive(Default)]
pub(crate) struct Mapping {
    found: Vec<Option<Type>>,
    /// What was changed since the last decision, to take it back.
    changed: Vec<(u32, Option<Type>)>,
}

impl Mapping {
    /// A type that is still to be found.
    pub(crate) fn fresh(&mut self) -> Type {
        self.found.push(None);
        Type::Variable((self.found.len() - 1) as u32)
    }

    fn find(&self, declared: &Type) -> Option<&Type> {
        match declared {
            Type::Variable(number) => self.found[*number as usize].as_ref(),
            _ => None,
        }
    }

    fn set(&mut self, variable: &Type, declared: Type) {
        if let Type::Variable(number) = variable {
            let old = self.found[*number as usize].replace(declared);
            self.changed.push((*number, old));
        }
    }

    /// Whether `one` can be used as `other`; what was found by a failed try is forgotten.
    pub(crate) fn assignable(&mut self, one: &Type, other: &Type) -> bool {
        self.tried(|mapping| mapping.fits(one, other))
    }

    /// The same for lists of types.
    pub(crate) fn all_assignable(&mut self, ones: &[Type], others: &[Type]) -> bool {
        self.tried(|mapping| {
            ones.len() == others.len() && ones.iter().zip(others).all(|(one, other)| mapping.fits(one, other))
        })
    }

    fn tried(&mut self, decide: impl FnOnce(&mut Self) -> bool) -> bool {
        self.changed.clear();
        let fits = decide(self);
        if !fits {
            for (number, old) in self.changed.drain(..).rev() {
                self.found[number as usize] = old;
            }
        }
        fits
    }

    fn fits(&mut self, one: &Type, other: &Type) -> bool {
        if matches!(other, Type::Variable(_)) {
            let (valid, known) = self.substitutes(one, other);
            if valid || known {
                return valid;
            }
        }
        if matches!(one, Type::Variable(_)) {
            return self.substitutes(other, one).0;
        }
        if one.is_dyn_or_error() || other.is_dyn_or_error() {
            return true;
        }
        match (one, other) {
            (Type::Null, _) => nullable(other),
            (_, Type::Null) => nullable(one),
            (Type::Wrapper(inner), _) => other == one || **inner == *other,
            (_, Type::Wrapper(inner)) => **inner == *one,
            (Type::Type(_), Type::Type(_)) => true,
            (Type::List(one), Type::List(other)) => self.fits(one, other),
            (Type::Map(one), Type::Map(other)) => self.fits(&one.0, &other.0) && self.fits(&one.1, &other.1),
            (Type::Opaque(one, inner), Type::Opaque(other, others)) => {
                one == other
                    && inner.len() == others.len()
                    && inner.iter().zip(others.iter()).all(|(one, other)| self.fits(one, other))
            }
            _ => one == other,
        }
    }

    /// Whether `variable` can be `declared`, and whether it was found before.
    fn substitutes(&mut self, declared: &Type, variable: &Type) -> (bool, bool) {
        if declared == variable {
            return (true, true);
        }
        if let Some(found) = self.find(variable).cloned() {
            if *declared == found {
                return (true, true);
            }
            if self.fits(declared, &found) {
                let general = most_general(declared, &found);
                if self.free_of(variable, &general) {
                    self.set(variable, general);
                }
                return (true, true);
            }
            return (false, true);
        }
        if self.free_of(variable, declared) {
            self.set(variable, declared.clone());
            return (true, false);
        }
        (false, false)
    }

    /// Whether `variable` does not occur within `declared`.
    fn free_of(&self, variable: &Type, declared: &Type) -> bool {
        if variable == declared {
            return false;
        }
        match declared {
            Type::Variable(_) => self.find(declared).is_none_or(|found| self.free_of(variable, found)),
            _ => declared.parameters().into_iter().all(|inner| self.free_of(variable, inner)),
        }
    }

    /// `declared` with what was found put in; the rest becomes `dyn` if `to_dyn`.
    pub(crate) fn substitute(&self, declared: &Type, to_dyn: bool) -> Type {
        if let Some(found) = self.find(declared) {
            return self.substitute(found, to_dyn);
        }
        match declared {
            Type::Variable(_) if to_dyn => Type::Dyn,
            Type::List(element) => Type::list(self.substitute(element, to_dyn)),
            Type::Map(entry) => {
                Type::map(self.substitute(&entry.0, to_dyn), self.substitute(&entry.1, to_dyn))
            }
            Type::Opaque(name, inner) if !inner.is_empty() => {
                Type::Opaque(name.clone(), inner.iter().map(|inner| self.substitute(inner, to_dyn)).collect())
            }
            Type::Type(Some(inner)) => Type::type_of(self.substitute(inner, to_dyn)),
            _ => declared.clone(),
        }
    }
}

fn nullable(declared: &Type) -> bool {
    matches!(
        declared,
        Type::Null
            | Type::Wrapper(_)
            | Type::Opaque(..)
            | Type::Object(_)
            | Type::Timestamp
            | Type::Duration
            | Type::Dyn
            | Type::Error
    )
}

/// The more general one of two types that fit.
pub(crate) fn most_general(one: &Type, other: &Type) -> Type {
    if less_specific(one, other) { one.clone() } else { other.clone() }
}

/// Whether `one` is as specific as `other` or less.
fn less_specific(one: &Type, other: &Type) -> bool {
    if matches!(one, Type::Dyn | Type::Variable(_) | Type::Param(_)) {
        return true;
    }
    if matches!(other, Type::Dyn | Type::Variable(_) | Type::Param(_)) {
        return false;
    }
    match (one, other) {
        (Type::List(one), Type::List(other)) => less_specific(one, other),
        (Type::Map(one), Type::Map(other)) => {
            less_specific(&one.0, &other.0) && less_specific(&one.1, &other.1)
        }
        (Type::Type(_), Type::Type(_)) => true,
        (Type::Opaque(one, inner), Type::Opaque(other, others)) => {
            one == other
                && inner.len() == others.len()
                && inner.iter().zip(others.iter()).all(|(one, other)| less_specific(one, other))
        }
        _ => one == other,
    }
}

/// `declared` with the parameters `names` replaced by `replacements`.
pub(crate) fn instantiate(declared: &Type, names: &[&str], replacements: &[Type]) -> Type {
    match declared {
        Type::Param(name) => names
            .iter()
            .position(|candidate| **candidate == **name)
            .map_or_else(|| declared.clone(), |position| replacements[position].clone()),
        Type::List(element) => Type::list(instantiate(element, names, replacements)),
        Type::Map(entry) => {
            Type::map(instantiate(&entry.0, names, replacements), instantiate(&entry.1, names, replacements))
        }
        Type::Opaque(name, inner) if !inner.is_empty() => Type::Opaque(
            name.clone(),
            inner.iter().map(|inner| instantiate(inner, names, replacements)).collect(),
        ),
        Type::Type(Some(inner)) => Type::type_of(instantiate(inner, names, replacements)),
        _ => declared.clone(),
    }
}

/// The names of the parameters in `declared`, each once.
pub(crate) fn parameters<'t>(declared: &'t Type, names: &mut Vec<&'t str>) {
    match declared {
        Type::Param(name) => {
            if !names.contains(&&**name) {
                names.push(name);
            }
        }
        _ => declared.parameters().into_iter().for_each(|inner| parameters(inner, names)),
    }
}
