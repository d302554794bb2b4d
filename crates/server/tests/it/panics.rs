//! A part that panics while it holds a marked value, with the worst text that a careless author could write: all
//! that it holds, printed for debugging. Neither the panic's text nor the answer nor the log tells the value.

use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use coffer_runtime::clock::SystemClock;
use coffer_server::controllers::{Action, Controller, Event};
use coffer_server::ports::{Admission, Admit, GroupResource, ServedResource};
use coffer_sim::marks::Mark;
use coffer_types::{Status, Value};
use parking_lot::Mutex;

use crate::support::{Client, Log, server_of, wait};

const MARK: &str = "pAn1c+7Qz/x&Vw=9~Kp";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";

/// Every panic's text of this process.
static TEXTS: LazyLock<Arc<Mutex<String>>> = LazyLock::new(|| {
    let texts = Arc::new(Mutex::new(String::new()));
    let kept = Arc::clone(&texts);
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        kept.lock().push_str(&format!("{panic}\n"));
        before(panic);
    }));
    texts
});

struct Careless;

#[async_trait]
impl Admit for Careless {
    async fn validate(
        &self,
        request: &Admission<'_>,
        object: Option<&Value>,
        _warnings: &mut Vec<String>,
    ) -> Result<(), Status> {
        if request.attributes.user.name != "careless" {
            return Ok(());
        }
        panic!("careless admission: {object:?} {:?} {:?}", request.old, request.attributes)
    }
}

impl Controller for Careless {
    fn name(&self) -> &'static str {
        "careless"
    }

    fn watches(&self, _served: &[ServedResource]) -> Vec<GroupResource> {
        vec![GroupResource { group: String::new(), resource: "secrets".to_owned() }]
    }

    fn step(&mut self, event: Event) -> Vec<Action> {
        if matches!(event, Event::Changed(..)) {
            panic!("careless controller: {event:?} {event:#?}");
        }
        Vec::new()
    }
}

#[tokio::test]
async fn a_panic_with_a_marked_value_in_hand_does_not_tell_it() {
    let mark = Mark::new(MARK);
    let texts = Arc::clone(&TEXTS);
    let log = Log::start();
    let api = server_of(
        Arc::new(SystemClock::new()),
        vec![Arc::new(Careless)],
        vec![Box::new(Careless)],
        Vec::new(),
    )
    .await;
    let (client, careless) = (Client::new(&api), Client::named(&api, "careless"));
    let secret = |name: &str| {
        let encoded = STANDARD.encode(MARK);
        format!(
            r#"{{"metadata":{{"name":"{name}"}},"data":{{"v":"{encoded}"}},"stringData":{{"w":"{MARK}"}}}}"#
        )
    };
    let answer = careless.post(SECRETS, &secret("bad")).await;
    assert_eq!(answer.code, 500, "{}", answer.text);
    assert!(answer.text.contains("caused apiserver to panic"), "{}", answer.text);
    mark.assert_absent("the answer", &answer.bytes);
    assert!(texts.lock().contains("careless admission: "), "{}", texts.lock());
    // The plugin lets this one pass, and the controller hears of it.
    let kept = client.post(SECRETS, &secret("kept")).await;
    assert_eq!(kept.code, 201, "{}", kept.text);
    wait(|| texts.lock().contains("careless controller: ")).await;
    // It goes on with the next change.
    let next = client.post(SECRETS, &secret("next")).await;
    assert_eq!(next.code, 201, "{}", next.text);
    wait(|| texts.lock().matches("careless controller: ").count() > 1).await;
    let changed = careless.put(&format!("{SECRETS}/kept"), &secret("kept")).await;
    assert_eq!(changed.code, 500, "{}", changed.text);
    mark.assert_absent("the answer to a change", &changed.bytes);
    mark.assert_absent("the panics' texts", texts.lock().as_bytes());
    assert!(log.text().contains("a handler panicked"), "{}", log.text());
    mark.assert_absent("the log", log.text());
}
