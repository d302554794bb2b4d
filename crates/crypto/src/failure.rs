//! Failures of layers, kept apart until they are shown.

use std::borrow::Cow;

use crate::TransformError;

/// Why a layer did not transform a value: one text, or those of all layers that were tried.
///
/// The texts stay apart so that lists in lists print as one flat list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure(Vec<Cow<'static, str>>);

impl Failure {
    /// A single reason.
    pub fn new(text: impl Into<Cow<'static, str>>) -> Self {
        Self(vec![text.into()])
    }

    /// What metrics call it: `unknown-non-grpc`, or the code of the call that failed, which upstream
    /// finds inside of whatever was put around it.
    pub fn code(&self) -> &str {
        const MARK: &str = "rpc error: code = ";
        let coded = self.0.iter().find_map(|text| Some(&text[text.find(MARK)? + MARK.len()..]));
        coded.and_then(|rest| rest.split(' ').next()).unwrap_or("unknown-non-grpc")
    }

    /// All reasons of several failures, in order; `None` when there is none.
    pub fn join(failures: Vec<Self>) -> Option<Self> {
        let texts: Vec<_> = failures.into_iter().flat_map(|failure| failure.0).collect();
        (!texts.is_empty()).then_some(Self(texts))
    }
}

impl From<Failure> for TransformError {
    /// One text as it is, several as `[a, b]`, equal ones once.
    fn from(failure: Failure) -> Self {
        let mut distinct: Vec<Cow<'static, str>> = Vec::with_capacity(failure.0.len());
        for text in failure.0 {
            if !distinct.contains(&text) {
                distinct.push(text);
            }
        }
        match distinct.as_slice() {
            [single] => Self(single.clone().into_owned()),
            several => Self(format!("[{}]", several.join(", "))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(texts: &[&'static str], expected: &str) {
        let failures = texts.iter().map(|text| Failure::new(*text)).collect();
        let joined = Failure::join(failures).expect("at least one failure");
        assert_eq!(TransformError::from(joined).0, expected);
    }

    #[test]
    fn several_texts_print_as_a_list_without_repetition() {
        check(&["a"], "a");
        check(&["a", "a"], "a");
        check(&["a", "b"], "[a, b]");
        check(&["a", "b", "a", "c"], "[a, b, c]");
        assert_eq!(Failure::join(Vec::new()), None);
    }

    #[test]
    fn the_code_of_a_failed_call_is_found() {
        let code = |text: &'static str| Failure::new(text).code().to_owned();
        assert_eq!(code("no matching prefix found"), "unknown-non-grpc");
        assert_eq!(code("failed to decrypt DEK, error: rpc error: code = NotFound desc = x"), "NotFound");
        assert_eq!(code("rpc error: code = "), "");
    }

    #[test]
    fn a_list_in_a_list_prints_flat() {
        let inner = Failure::join(vec![Failure::new("a"), Failure::new("b")]).expect("two failures");
        let outer = Failure::join(vec![inner, Failure::new("c")]).expect("two failures");
        assert_eq!(TransformError::from(outer).0, "[a, b, c]");
    }
}
