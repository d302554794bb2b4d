//! Rules in CEL: definitions that hold them, right and wrong, and objects that are held to them.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::{APPLY, DEFINITIONS, JSON, MERGE, Request, ask, both, client, compare, in_order, served};
use crate::requests::masks;

const DRY_RUN: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All";

/// Where a rule stands, and the entry of `x-kubernetes-validations`.
const DEFINED: &[(&str, &str)] = &[
    // Right.
    ("", r#"{"rule":"self.n <= self.top"}"#),
    ("", r#"{"rule":"has(self.s) && self.s.startsWith('a')","message":"it begins with a"}"#),
    ("", r#"{"rule":"self.few.all(x, x > 0)","messageExpression":"'few: ' + string(self.few.size())"}"#),
    ("", r#"{"rule":"self.n == oldSelf.n","reason":"FieldValueForbidden","fieldPath":".n"}"#),
    ("", r#"{"rule":"!oldSelf.hasValue() || self.n >= oldSelf.value().n","optionalOldSelf":true}"#),
    ("", r#"{"rule":"self.when > timestamp('2020-01-01T00:00:00Z') && self.span < duration('1h')"}"#),
    ("", r#"{"rule":"type(self.any) == int ? self.any < 10 : self.any == '10%'"}"#),
    ("", r#"{"rule":"self.pairs.all(k, k != 'x' && self.pairs[k].size() > 1)"}"#),
    ("", r#"{"rule":"self.keyed.exists_one(e, e.name == 'a')","fieldPath":".keyed"}"#),
    ("", r#"{"rule":"self.__if__ == 1 && self.a__dash__b == 2 && self.c__dot__d == 3"}"#),
    ("", r#"{"rule":"isURL(self.b) || isIP(self.b) || cidr('10.0.0.0/8').containsIP(self.b)"}"#),
    ("", r#"{"rule":"quantity(self.b).isGreaterThan(quantity('1Ki'))"}"#),
    ("", r#"{"rule":"self.b.matches('^[a-z]+$') && self.b.find('[0-9]') == ''"}"#),
    ("", r#"{"rule":"semver(self.b).major() > 1"}"#),
    ("", r#"{"rule":"self.few.isSorted() && self.few.sum() < 10 && self.few.indexOf(3) != 0"}"#),
    ("", r#"{"rule":"sets.contains([1, 2, 3], self.few)"}"#),
    ("", r#"{"rule":"self.?s.orValue('x') == 'x'"}"#),
    ("", r#"{"rule":"self.few.all(i, v, i < 5 && v > 0)"}"#),
    ("", r#"{"rule":"self.metadataless == null || true"}"#),
    ("few/items", r#"{"rule":"self > 0","reason":"FieldValueInvalid"}"#),
    ("keyed/items", r#"{"rule":"self.value >= oldSelf.value"}"#),
    ("pairs/additionalProperties", r#"{"rule":"self != 'no'"}"#),
    ("s", r#"{"rule":"self != oldSelf","message":"it changes"}"#),
    // Of the wrong type, of what is not there, or no expressions.
    ("", r#"{"rule":"self.n"}"#),
    ("", r#"{"rule":"self.n + 'a' == 'a'"}"#),
    ("", r#"{"rule":"self.n == self.s"}"#),
    ("", r#"{"rule":"self.absent == 1"}"#),
    ("", r#"{"rule":"other == 1"}"#),
    ("", r#"{"rule":"self.n > "}"#),
    ("", r#"{"rule":"self.n > 1)"}"#),
    ("", r#"{"rule":"self.n ! 1"}"#),
    ("", r#"{"rule":"self.n > 1 'x'"}"#),
    ("", r#"{"rule":"nothing(self.n)"}"#),
    ("", r#"{"rule":"self.n.nothing()"}"#),
    ("", r#"{"rule":"self.few.all(x, y > 0)"}"#),
    ("", r#"{"rule":"self.few.all(1, true)"}"#),
    ("", r#"{"rule":"has(self)"}"#),
    ("", r#"{"rule":"self.b.matches('(')"}"#),
    ("", r#"{"rule":"duration('one') == self.span"}"#),
    ("", r#"{"rule":"timestamp('now') == self.when"}"#),
    ("", r#"{"rule":"[1, 'a'].size() == 2"}"#),
    ("", r#"{"rule":"self.if == 1"}"#),
    ("", r#"{"rule":"math.greatest(1, 2) == 2"}"#),
    ("", r#"{"rule":"base64.encode(b'a') == 'YQ=='"}"#),
    ("", r#"{"rule":"cel.bind(x, 1, x == 1)"}"#),
    ("", r#"{"rule":"authorizer.path('/').check('get').allowed()"}"#),
    ("", r#"{"rule":""}"#),
    ("", r#"{"rule":"   "}"#),
    ("", r#"{"message":"no rule"}"#),
    ("", r#"{"rule":"true","message":" "}"#),
    ("", r#"{"rule":"true","message":"two\nlines"}"#),
    ("", r#"{"rule":"two ==\n lines"}"#),
    ("", r#"{"rule":"true","messageExpression":"1"}"#),
    ("", r#"{"rule":"true","messageExpression":"self.absent"}"#),
    ("", r#"{"rule":"true","messageExpression":" "}"#),
    ("", r#"{"rule":"true","reason":"Because"}"#),
    ("", r#"{"rule":"true","fieldPath":"n"}"#),
    ("", r#"{"rule":"true","fieldPath":".absent"}"#),
    ("", r#"{"rule":"true","fieldPath":".few[0]"}"#),
    ("", r#"{"rule":"true","fieldPath":".pairs['a']"}"#),
    ("", r#"{"rule":"true","fieldPath":"['a-b']"}"#),
    ("", r#"{"rule":"true","optionalOldSelf":true}"#),
    ("", r#"{"rule":"oldSelf.n == 1","optionalOldSelf":true}"#),
    // Too dear.
    ("", r#"{"rule":"self.list.all(x, self.list.all(y, x == y))"}"#),
    ("", r#"{"rule":"self.list.all(x, self.list.all(y, self.list.all(z, x + y == z)))"}"#),
    ("", r#"{"rule":"self.s.contains(self.s)"}"#),
    ("", r#"{"rule":"self.strings.all(x, x.matches('^(a|b)+$'))"}"#),
    ("", r#"{"rule":"true","messageExpression":"'text' + string(self.n)"}"#),
    ("", r#"{"rule":"true","messageExpression":"self.strings.join(', ')"}"#),
    ("strings/items", r#"{"rule":"self.contains('needle')"}"#),
    ("strings/items", r#"{"rule":"self.matches('^(needle|pin)+$')"}"#),
    ("list/items", r#"{"rule":"self > 0"}"#),
    // Old values that cannot be told apart.
    ("few/items", r#"{"rule":"self >= oldSelf"}"#),
    ("set/items", r#"{"rule":"self == oldSelf"}"#),
    ("whole/items", r#"{"rule":"oldSelf.size() > 0"}"#),
];

/// The fields of a definition's `spec`.
fn fields() -> Value {
    let text = json!({"type": "string"});
    let number = json!({"type": "integer"});
    json!({
        "n": number, "top": number, "s": text, "if": number, "a-b": number, "c.d": number,
        "b": {"type": "string", "maxLength": 20},
        "when": {"type": "string", "format": "date-time"},
        "span": {"type": "string", "format": "duration"},
        "any": {"x-kubernetes-int-or-string": true},
        "metadataless": {"type": "string", "nullable": true},
        "few": {"type": "array", "maxItems": 5, "items": number},
        "list": {"type": "array", "items": number},
        "strings": {"type": "array", "items": text},
        "set": {
            "type": "array", "maxItems": 5, "x-kubernetes-list-type": "set",
            "items": {"type": "string", "maxLength": 10},
        },
        "whole": {
            "type": "array", "maxItems": 5, "x-kubernetes-list-type": "atomic",
            "items": {"type": "string", "maxLength": 10},
        },
        "pairs": {
            "type": "object", "maxProperties": 5,
            "additionalProperties": {"type": "string", "maxLength": 10},
        },
        "keyed": {
            "type": "array", "maxItems": 5,
            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object", "required": ["name"],
                "properties": {"name": {"type": "string", "maxLength": 10}, "value": number},
            },
        },
    })
}

fn definition(plural: &str, kind: &str, schema: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.rules.example.com")},
        "spec": {
            "group": "rules.example.com", "scope": "Cluster",
            "names": {"plural": plural, "kind": kind},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    })
}

fn kept(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

fn defined(index: usize, place: &str, rule: &str) -> Request {
    let mut spec = json!({"type": "object", "properties": fields()});
    let at = match place {
        "" => &mut spec,
        place => spec["properties"].pointer_mut(&format!("/{place}")).expect("a field"),
    };
    let rule: Value = serde_json::from_str(rule).expect("JSON");
    at["x-kubernetes-validations"] = json!([rule]);
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    let body = definition(&format!("rule{index}s"), &format!("Rule{index}"), &schema);
    ("POST", DRY_RUN, JSON, kept(body.to_string()))
}

/// The rules that the objects are held to, by the place in `spec`.
const HELD: &[(&str, &str)] = &[
    ("", r#"{"rule":"!has(self.n) || !has(self.top) || self.n <= self.top","message":"n is above top"}"#),
    ("", r#"{"rule":"!has(self.n) || self.n != 13","reason":"FieldValueForbidden","fieldPath":".n"}"#),
    (
        "",
        r#"{"rule":"!has(self.n) || self.n != 14","messageExpression":"'not ' + (self.n > 0 ? 'this' : 'that')"}"#,
    ),
    (
        "",
        r#"{"rule":"!has(self.n) || self.n != 15","messageExpression":"string(1 / (self.n - 15))","message":"fifteen"}"#,
    ),
    ("", r#"{"rule":"!has(self.n) || self.n != 16","messageExpression":"''"}"#),
    ("", r#"{"rule":"!has(self.n) || self.n != 17","messageExpression":"'two\\nlines'"}"#),
    ("", r#"{"rule":"!has(self.n) || 100 / (self.n - 18) != 0 || true"}"#),
    ("", r#"{"rule":"self.few[1] > 0 || !has(self.few)"}"#),
    ("", r#"{"rule":"has(self.b) == has(oldSelf.b)","reason":"FieldValueRequired","fieldPath":".b"}"#),
    (
        "",
        r#"{"rule":"!oldSelf.hasValue() || !has(self.top) || self.top >= oldSelf.value().?top.orValue(0)","optionalOldSelf":true}"#,
    ),
    ("", r#"{"rule":"!has(self.when) || self.when.getFullYear() > 2000"}"#),
    ("", r#"{"rule":"!has(self.span) || self.span <= duration('1h')","message":"at most an hour"}"#),
    ("", r#"{"rule":"!has(self.any) || (type(self.any) == int ? self.any < 10 : self.any == '10%')"}"#),
    ("", r#"{"rule":"!has(self.__if__) || self.__if__ == 1","fieldPath":".if"}"#),
    ("", r#"{"rule":"!has(self.a__dash__b) || self.a__dash__b == 2","fieldPath":"['a-b']"}"#),
    ("s", r#"{"rule":"self == oldSelf","message":"s is for ever"}"#),
    ("few/items", r#"{"rule":"self != 3","reason":"FieldValueDuplicate"}"#),
    ("set", r#"{"rule":"self.all(x, x.size() < 5)"}"#),
    ("set", r#"{"rule":"oldSelf.all(x, x in self)","message":"nothing leaves the set"}"#),
    ("pairs", r#"{"rule":"self.all(k, k != 'x')"}"#),
    ("pairs/additionalProperties", r#"{"rule":"self != 'no'"}"#),
    ("keyed/items", r#"{"rule":"!has(self.value) || !has(oldSelf.value) || self.value >= oldSelf.value"}"#),
    ("keyed/items", r#"{"rule":"self.name != 'bad'","fieldPath":".name"}"#),
    ("strings", r#"{"rule":"self.all(x, self.all(y, x.size() == y.size()))"}"#),
];

fn held() -> Value {
    let mut fields = fields();
    fields["strings"]["maxItems"] = 1000.into();
    fields["strings"]["items"]["maxLength"] = 2.into();
    let mut spec = json!({"type": "object", "properties": fields});
    for (place, rule) in HELD {
        let at = match *place {
            "" => &mut spec,
            place => spec["properties"].pointer_mut(&format!("/{place}")).expect("a field"),
        };
        if at.get("x-kubernetes-validations").is_none() {
            at["x-kubernetes-validations"] = json!([]);
        }
        let rule: Value = serde_json::from_str(rule).expect("JSON");
        at["x-kubernetes-validations"].as_array_mut().expect("rules").push(rule);
    }
    let status = json!({
        "type": "object", "properties": {"phase": {"type": "string"}, "n": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "!has(self.n) || self.n > 0", "message": "n is positive"}],
    });
    definition(
        "checks",
        "Check",
        &json!({
            "type": "object", "properties": {"spec": spec, "status": status},
            "x-kubernetes-validations": [
                {"rule": "self.metadata.name != 'refused'", "message": "not this name"},
                {"rule": "!has(self.status) || !has(self.spec.n) || self.status.?n.orValue(1) != self.spec.n"},
            ],
        }),
    )
}

const CHECKS: &str = "/apis/rules.example.com/v1/checks";

/// Specs that are sent as new objects; what is taken stays.
const NEW: &[&str] = &[
    "{}",
    r#"{"n":1,"top":2}"#,
    r#"{"n":3,"top":2}"#,
    r#"{"n":13}"#,
    r#"{"n":14}"#,
    r#"{"n":15}"#,
    r#"{"n":16}"#,
    r#"{"n":17}"#,
    r#"{"n":18}"#,
    r#"{"n":13,"top":2}"#,
    r#"{"n":"text","top":2}"#,
    r#"{"few":[]}"#,
    r#"{"few":[1]}"#,
    r#"{"few":[1,0]}"#,
    r#"{"few":[1,2]}"#,
    r#"{"few":[3,2,3]}"#,
    r#"{"few":[3,"x"]}"#,
    r#"{"few":[1,2,3,4,5,6]}"#,
    r#"{"b":"x"}"#,
    r#"{"when":"1999-12-31T23:59:59Z"}"#,
    r#"{"when":"2030-12-31T23:59:59+02:00"}"#,
    r#"{"when":"yesterday"}"#,
    r#"{"span":"30m"}"#,
    r#"{"span":"2h"}"#,
    r#"{"span":"long"}"#,
    r#"{"any":9}"#,
    r#"{"any":11}"#,
    r#"{"any":"10%"}"#,
    r#"{"any":"11%"}"#,
    r#"{"if":1,"a-b":2}"#,
    r#"{"if":2,"a-b":3}"#,
    r#"{"set":["a","b"]}"#,
    r#"{"set":["a","long text"]}"#,
    r#"{"set":["a","a"]}"#,
    r#"{"pairs":{"a":"yes"}}"#,
    r#"{"pairs":{"a":"no","x":"no"}}"#,
    r#"{"keyed":[{"name":"a","value":1},{"name":"b"}]}"#,
    r#"{"keyed":[{"name":"bad"}]}"#,
    r#"{"keyed":[{"name":"a"},{"name":"a"}]}"#,
    r#"{"metadataless":null,"s":"x"}"#,
    r#"{"s":null}"#,
    r#"{"unknown":1}"#,
    r#"{"strings":["a","b"]}"#,
    r#"{"strings":["a","bb"]}"#,
];

/// Parts of specs: each two of them are a new object too.
const PARTS: &[&str] = &[
    r#""n":13"#,
    r#""n":9,"top":8"#,
    r#""few":[3,1]"#,
    r#""few":[0,0]"#,
    r#""when":"1970-01-01T00:00:00.5Z""#,
    r#""span":"1h0m1s""#,
    r#""span":"-1h""#,
    r#""any":"9""#,
    r#""any":-1"#,
    r#""if":0"#,
    r#""a-b":0"#,
    r#""set":["a","aaaaa"]"#,
    r#""pairs":{"x":"yes","y":"no"}"#,
    r#""keyed":[{"name":"bad","value":0},{"name":"good"}]"#,
    r#""strings":["","a"]"#,
    r#""strings":["é","a"]"#,
    r#""c.d":1"#,
    r#""b":"😀""#,
];

fn pairs() -> impl Iterator<Item = String> {
    let with_later = |(index, one): (usize, &'static &str)| {
        PARTS[index + 1..].iter().map(move |other| format!("{{{one},{other}}}"))
    };
    PARTS.iter().enumerate().flat_map(with_later)
}

/// Changes of an object, one after the other: method, subresource, media type, body.
const CHANGES: &[(&str, &str, &str)] = &[
    ("", MERGE, r#"{"spec":{"s":"one"}}"#),
    ("", MERGE, r#"{"spec":{"s":"two"}}"#),
    ("", MERGE, r#"{"spec":{"s":null}}"#),
    ("", MERGE, r#"{"spec":{"s":"three"}}"#),
    ("", MERGE, r#"{"spec":{"b":"x"}}"#),
    ("", MERGE, r#"{"spec":{"top":5}}"#),
    ("", MERGE, r#"{"spec":{"top":4}}"#),
    ("", MERGE, r#"{"spec":{"set":["a","b"]}}"#),
    ("", MERGE, r#"{"spec":{"set":["b","c"]}}"#),
    ("", MERGE, r#"{"spec":{"set":["b","a","c"]}}"#),
    ("", MERGE, r#"{"spec":{"keyed":[{"name":"a","value":5},{"name":"b","value":1}]}}"#),
    ("", MERGE, r#"{"spec":{"keyed":[{"name":"b","value":1},{"name":"a","value":4}]}}"#),
    ("", MERGE, r#"{"spec":{"keyed":[{"name":"b","value":2},{"name":"c","value":0}]}}"#),
    ("", MERGE, r#"{"spec":{"few":[3,1]}}"#),
    ("", MERGE, r#"{"metadata":{"labels":{"a":"b"}}}"#),
    ("", MERGE, r#"{"status":{"n":-1}}"#),
    ("/status", MERGE, r#"{"status":{"n":-1}}"#),
    ("/status", MERGE, r#"{"status":{"n":7,"phase":"x"}}"#),
    ("", MERGE, r#"{"spec":{"n":7,"top":9}}"#),
    ("", MERGE, r#"{"spec":{"n":8,"top":9}}"#),
    ("/status", MERGE, r#"{"status":{"n":8}}"#),
    ("/status", MERGE, r#"{"status":{"n":"x"}}"#),
    (
        "?fieldManager=me",
        APPLY,
        r#"{"apiVersion":"rules.example.com/v1","kind":"Check","metadata":{"name":"changed"},"spec":{"any":11}}"#,
    ),
    (
        "?fieldManager=me",
        APPLY,
        r#"{"apiVersion":"rules.example.com/v1","kind":"Check","metadata":{"name":"changed"},"spec":{"any":1}}"#,
    ),
    (
        "?fieldManager=me&dryRun=All",
        APPLY,
        r#"{"apiVersion":"rules.example.com/v1","kind":"Check","metadata":{"name":"changed"},"spec":{"n":13}}"#,
    ),
];

fn object(name: &str, spec: &str) -> Request {
    let body = format!(
        r#"{{"apiVersion":"rules.example.com/v1","kind":"Check","metadata":{{"name":"{name}"}},"spec":{spec}}}"#
    );
    ("POST", CHECKS, JSON, kept(body))
}

static REQUESTS: LazyLock<Vec<Request>> = LazyLock::new(|| {
    let mut requests: Vec<Request> =
        DEFINED.iter().enumerate().map(|(index, (place, rule))| defined(index, place, rule)).collect();
    requests.extend(NEW.iter().enumerate().map(|(index, spec)| object(&format!("new-{index}"), spec)));
    requests.extend(pairs().enumerate().map(|(index, spec)| object(&format!("pair-{index}"), &spec)));
    requests.push(object("refused", "{}"));
    requests.push(object("refused", r#"{"n":13,"few":[3]}"#));
    let many = vec![r#""a""#; 1000].join(",");
    requests.push(object("dear", &format!(r#"{{"strings":[{many}]}}"#)));
    requests.push(object("changed", r#"{"n":1}"#));
    requests.extend(CHANGES.iter().map(|(below, media, body)| -> Request {
        ("PATCH", kept(format!("{CHECKS}/changed{below}")), media, body)
    }));
    // A definition may keep what it has, and is told what is new.
    requests.push((
        "PATCH",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/checks.rules.example.com",
        MERGE,
        r#"{"metadata":{"labels":{"a":"b"}}}"#,
    ));
    requests
});

const DIFFERENCES: &[(&str, &str)] = &[];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_of_custom_resources_get_the_answers_of_kube_apiserver() {
    let (coffer, stock, etcd) = both().await;
    let ask_all = async |kubeconfig: &std::path::Path| {
        let client = client(kubeconfig).await;
        let masks = masks();
        let held = kept(held().to_string());
        let made = ask(&client, &("POST", DEFINITIONS, JSON, held), &masks).await;
        assert_eq!(made["code"], 201, "{made}");
        served(&client, CHECKS).await;
        let mut answers = Vec::new();
        for request in REQUESTS.iter() {
            answers.push(in_order(ask(&client, request, &masks).await));
        }
        answers
    };
    let (from_stock, from_coffer) = tokio::join!(ask_all(stock.kubeconfig()), ask_all(coffer.kubeconfig()));
    compare("rules.json", &REQUESTS, DIFFERENCES, &from_stock, &from_coffer);
    drop((stock, etcd));
}
