//! `matchConditions`: expressions that decide whether a webhook is asked.
//!
//! This is the port of the expression language. There is none yet: a webhook that has conditions counts
//! as one whose conditions cannot be evaluated, so that its failure policy decides. It is never ignored.

use coffer_types::Value;

/// What conditions say of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The webhook is asked.
    Asked,
    /// It is passed over.
    PassedOver,
    /// The request is refused, with this text.
    Refused(String),
}

/// The conditions of one webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Conditions {
    count: usize,
}

impl Conditions {
    /// Reads the `matchConditions` of a webhook.
    pub(super) fn of(hook: &Value) -> Self {
        Self { count: hook.get("matchConditions").and_then(Value::as_array).map_or(0, <[Value]>::len) }
    }

    /// Evaluates them.
    pub(super) fn verdict(&self, fails_open: bool) -> Verdict {
        match (self.count, fails_open) {
            (0, _) => Verdict::Asked,
            (_, true) => Verdict::PassedOver,
            (_, false) => Verdict::Refused("matchConditions are not evaluated by this server".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_never_ignored() {
        let hook = |count: usize| {
            let conditions = vec![Value::from([("name", "a"), ("expression", "true")]); count];
            Value::from([("matchConditions", Value::from(conditions))])
        };
        assert_eq!(Conditions::of(&Value::object()).verdict(false), Verdict::Asked);
        assert_eq!(Conditions::of(&hook(0)).verdict(false), Verdict::Asked);
        assert_eq!(Conditions::of(&hook(1)).verdict(true), Verdict::PassedOver);
        let text = "matchConditions are not evaluated by this server";
        assert_eq!(Conditions::of(&hook(1)).verdict(false), Verdict::Refused(text.to_owned()));
    }
}
