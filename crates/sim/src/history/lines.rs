//! A history as lines of text: one before each call and one after, so that what a process did is
//! known when it was killed.

use std::collections::BTreeMap;
use std::io::Write;

use bytes::Bytes;
use coffer_store::kv::{
    Compare, KeyValue, Op, OpResponse, RangeRequest, RangeResponse, SharedValue, Txn, TxnResponse,
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::record::{Call, Listener, Outcome, Request};

/// Writes lines. Keys and values must be text.
pub struct Lines<W>(Mutex<W>);

impl<W: Write + Send> Lines<W> {
    /// Each line is written at once.
    pub fn new(out: W) -> Self {
        Self(Mutex::new(out))
    }

    fn line(&self, line: &Value) {
        // Whole, so that the last one is torn at most.
        self.0.lock().write_all(format!("{line}\n").as_bytes()).expect("somebody listens");
    }
}

impl<W: Write + Send> Listener for Lines<W> {
    fn begins(&self, id: u64, client: usize, request: &Request) {
        self.line(&json!([id, client, request_to(request)]));
    }

    fn ended(&self, id: u64, outcome: &Outcome) {
        self.line(&json!([id, outcome_to(outcome)]));
    }
}

/// The calls of `lines`, at times from `from` on; `client` tells those of several processes apart.
/// A call without an end is one whose outcome is unknown; the store was in the process that ended,
/// so that it cannot happen later than the last line. Gives the time after it.
///
/// # Panics
/// When a line that is not the last is no line of a history.
pub fn read_lines(lines: &[String], from: u64, calls: &mut Vec<Call>) -> u64 {
    let mut begun: BTreeMap<u64, Call> = BTreeMap::new();
    let mut time = from;
    for line in lines {
        let Ok(line) = serde_json::from_str::<Value>(line) else {
            assert_eq!(Some(line), lines.last(), "only the last line may be torn");
            break;
        };
        let id = line[0].as_u64().expect("a number");
        if line.get(2).is_some() {
            let client = line[1].as_u64().expect("a number") as usize;
            let request = request_from(&line[2]);
            let call = Call { client, invoked: time, returned: u64::MAX, request, outcome: Outcome::Unknown };
            begun.insert(id, call);
        } else {
            let mut call = begun.remove(&id).expect("it has begun");
            call.returned = time;
            call.outcome = outcome_from(&line[1]);
            calls.push(call);
        }
        time += 1;
    }
    calls.extend(begun.into_values().map(|call| Call { returned: time, ..call }));
    time
}

fn text(bytes: &Bytes) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

fn bytes(value: &Value) -> Bytes {
    Bytes::copy_from_slice(value.as_str().expect("text").as_bytes())
}

fn int(value: &Value) -> i64 {
    value.as_i64().expect("a number")
}

fn flag(value: &Value) -> bool {
    value.as_bool().expect("true or false")
}

fn list<T>(value: &Value, item: impl Fn(&Value) -> T) -> Vec<T> {
    value.as_array().expect("a list").iter().map(item).collect()
}

fn request_to(request: &Request) -> Value {
    match request {
        Request::Peek(key) => json!({"peek": text(key)}),
        Request::Range(range) => json!({"range": range_to(range)}),
        Request::Txn(txn) => {
            let compare: Vec<_> = txn
                .compare
                .iter()
                .map(|compare| match compare {
                    Compare::ModRevision(key, revision) => json!(["revision", text(key), revision]),
                    Compare::Version(key, version) => json!(["version", text(key), version]),
                })
                .collect();
            let ops = |ops: &[Op]| ops.iter().map(op_to).collect::<Vec<_>>();
            json!({"compare": compare, "success": ops(&txn.success), "failure": ops(&txn.failure)})
        }
    }
}

fn request_from(value: &Value) -> Request {
    if let Some(key) = value.get("peek") {
        return Request::Peek(bytes(key));
    }
    if let Some(range) = value.get("range") {
        return Request::Range(range_from(range));
    }
    let compare = |value: &Value| match &value[0] {
        Value::String(kind) if kind == "revision" => Compare::ModRevision(bytes(&value[1]), int(&value[2])),
        _ => Compare::Version(bytes(&value[1]), int(&value[2])),
    };
    Request::Txn(Txn {
        compare: list(&value["compare"], compare),
        success: list(&value["success"], op_from),
        failure: list(&value["failure"], op_from),
    })
}

fn op_to(op: &Op) -> Value {
    match op {
        Op::Put { key, value, lease } => json!(["put", text(key), text(&value.0), lease]),
        Op::Delete { key } => json!(["delete", text(key)]),
        Op::DeleteRange { start, end } => json!(["delete", text(start), text(end)]),
        Op::Range(range) => json!(["range", range_to(range)]),
    }
}

fn op_from(value: &Value) -> Op {
    match value[0].as_str() {
        Some("put") => {
            Op::Put { key: bytes(&value[1]), value: SharedValue(bytes(&value[2])), lease: int(&value[3]) }
        }
        Some("delete") => match value.get(2) {
            None => Op::Delete { key: bytes(&value[1]) },
            Some(end) => Op::DeleteRange { start: bytes(&value[1]), end: bytes(end) },
        },
        _ => Op::Range(range_from(&value[1])),
    }
}

fn range_to(range: &RangeRequest) -> Value {
    let flags = [range.count_only, range.keys_only, range.serializable];
    json!([text(&range.start), text(&range.end), range.revision, range.limit, flags])
}

fn range_from(value: &Value) -> RangeRequest {
    RangeRequest {
        start: bytes(&value[0]),
        end: bytes(&value[1]),
        revision: int(&value[2]),
        limit: int(&value[3]),
        count_only: flag(&value[4][0]),
        keys_only: flag(&value[4][1]),
        serializable: flag(&value[4][2]),
    }
}

fn outcome_to(outcome: &Outcome) -> Value {
    match outcome {
        Outcome::Unknown => json!({"unknown": true}),
        Outcome::Refused => json!({"refused": true}),
        Outcome::Committed(revision) => json!({"committed": revision}),
        Outcome::Exists(exists) => json!({"exists": exists}),
        Outcome::Listed(revision, items) => {
            let items: Vec<_> = items
                .iter()
                .map(|(key, revision, value)| json!([text(key), revision, text(value)]))
                .collect();
            json!({"listed": [revision, items]})
        }
        Outcome::Peek(found) => {
            json!({"peek": found.as_ref().map(|(revision, value)| (revision, text(value)))})
        }
        Outcome::Range(found) => json!({"range": found_to(found)}),
        Outcome::Txn(answer) => {
            let responses: Vec<_> = answer
                .responses
                .iter()
                .map(|response| match response {
                    OpResponse::Put => Value::Null,
                    OpResponse::Deleted(count) => json!(count),
                    OpResponse::Range(found) => found_to(found),
                })
                .collect();
            json!({"txn": [answer.revision, answer.succeeded, responses]})
        }
    }
}

fn outcome_from(value: &Value) -> Outcome {
    let Some((kind, value)) = value.as_object().and_then(|members| members.iter().next()) else {
        return Outcome::Unknown;
    };
    match kind.as_str() {
        "refused" => Outcome::Refused,
        "committed" => Outcome::Committed(int(value)),
        "exists" => Outcome::Exists(flag(value)),
        "listed" => {
            let item = |item: &Value| (bytes(&item[0]), int(&item[1]), bytes(&item[2]));
            Outcome::Listed(int(&value[0]), list(&value[1], item))
        }
        "peek" if value.is_null() => Outcome::Peek(None),
        "peek" => Outcome::Peek(Some((int(&value[0]), bytes(&value[1])))),
        "range" => Outcome::Range(found_from(value)),
        "txn" => {
            let responses = list(&value[2], |response| match response {
                Value::Null => OpResponse::Put,
                Value::Number(_) => OpResponse::Deleted(int(response)),
                found => OpResponse::Range(found_from(found)),
            });
            Outcome::Txn(TxnResponse { revision: int(&value[0]), succeeded: flag(&value[1]), responses })
        }
        _ => Outcome::Unknown,
    }
}

fn found_to(found: &RangeResponse) -> Value {
    let items: Vec<_> = found
        .items
        .iter()
        .map(|kv| {
            let numbers = [kv.create_revision, kv.mod_revision, kv.version, kv.lease];
            json!([text(&kv.key), text(&kv.value), numbers])
        })
        .collect();
    json!([found.revision, found.count, found.more, items])
}

fn found_from(value: &Value) -> RangeResponse {
    RangeResponse {
        revision: int(&value[0]),
        count: int(&value[1]),
        more: flag(&value[2]),
        items: list(&value[3], |item| KeyValue {
            key: bytes(&item[0]),
            value: bytes(&item[1]),
            create_revision: int(&item[2][0]),
            mod_revision: int(&item[2][1]),
            version: int(&item[2][2]),
            lease: int(&item[2][3]),
        }),
    }
}
