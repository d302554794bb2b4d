//! Go's `%q` and aggregated errors, which upstream's refusals are written with.

pub(crate) use coffer_types::validation::field::go_quote as quote;

/// A list as Go's `%q` prints `[]string`: `["a" "b"]`.
pub(crate) fn quote_list<S: AsRef<str>>(items: &[S]) -> String {
    let quoted: Vec<String> = items.iter().map(|item| quote(item.as_ref())).collect();
    format!("[{}]", quoted.join(" "))
}

/// Several errors as upstream aggregates them: one alone bare, more in brackets, each text once.
pub(crate) fn aggregate(errors: &[String]) -> String {
    let mut distinct: Vec<&str> = Vec::new();
    for error in errors {
        if !distinct.contains(&error.as_str()) {
            distinct.push(error);
        }
    }
    match distinct.as_slice() {
        [one] => (*one).to_owned(),
        many => format!("[{}]", many.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_as_go_does() {
        assert_eq!(quote_list(&["a", "b"]), r#"["a" "b"]"#);
        assert_eq!(quote_list::<&str>(&[]), "[]");
    }

    #[test]
    fn aggregates_as_apimachinery_does() {
        let texts = |items: &[&str]| items.iter().map(|item| (*item).to_owned()).collect::<Vec<_>>();
        assert_eq!(aggregate(&texts(&["a"])), "a");
        assert_eq!(aggregate(&texts(&["a", "a"])), "a");
        assert_eq!(aggregate(&texts(&["a", "b", "a"])), "[a, b]");
    }
}
