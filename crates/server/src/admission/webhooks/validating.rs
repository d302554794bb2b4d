//! Validating webhooks: all at once, and each sees the same.

use std::sync::Arc;

use coffer_types::meta::GroupVersionKind;
use coffer_types::{Status, Value};
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;

use super::Webhooks;
use super::call::encode;
use super::hook::Hook;
use super::matching::Chooser;
use super::review::Encoded;
use crate::admission::rule::Invocation;
use crate::ports::Admission;

impl Webhooks {
    /// Asks whoever is to be asked. Of several that stand in the way the first that answered counts, as
    /// upstream; all are waited for.
    pub(super) async fn validate_with(
        &self,
        hooks: &[Arc<Hook>],
        request: &Admission<'_>,
        object: Option<&Value>,
        warnings: &mut Vec<String>,
    ) -> Result<(), Status> {
        let chooser = Chooser::new(self, request);
        let mut seen: Vec<(GroupVersionKind, [Encoded; 2])> = Vec::new();
        let mut chosen: Vec<(&Hook, Invocation, [Encoded; 2])> = Vec::new();
        for hook in hooks {
            let Some(invocation) = chooser.choose(hook, object).await? else { continue };
            let known = seen.iter().find(|(kind, _)| *kind == invocation.kind);
            let encoded = match known {
                Some((_, encoded)) => encoded.clone(),
                None => {
                    let encoded = [
                        see(request, object, &invocation).await?,
                        see(request, request.old, &invocation).await?,
                    ];
                    seen.push((invocation.kind.clone(), encoded.clone()));
                    encoded
                }
            };
            chosen.push((hook, invocation, encoded));
        }
        let mut asked: FuturesUnordered<_> = chosen
            .into_iter()
            .enumerate()
            .map(|(index, (hook, invocation, encoded))| async move {
                let started = self.clock.monotonic();
                let mut warnings = Vec::new();
                let answer = self.call(hook, &invocation, request, encoded, &mut warnings).await;
                let elapsed = self.clock.monotonic().saturating_sub(started);
                (index, self.judge(hook, request, answer.map(drop), elapsed), warnings)
            })
            .collect();
        let mut first = Ok(());
        let mut warned = Vec::new();
        while let Some((index, judged, warnings)) = asked.next().await {
            warned.push((index, warnings));
            if first.is_ok() {
                first = judged;
            }
        }
        // In the order of the configurations, whoever was quicker.
        warned.sort_by_key(|(index, _)| *index);
        warnings.extend(warned.into_iter().flat_map(|(_, warnings)| warnings));
        first
    }
}

/// An object in the version of a webhook, encoded.
async fn see(
    request: &Admission<'_>,
    object: Option<&Value>,
    invocation: &Invocation,
) -> Result<Encoded, Status> {
    let forms = request.context.forms;
    match object {
        Some(object) if invocation.kind != *forms.kind() => {
            let converted = forms.convert(object, &invocation.kind).await.map_err(Status::internal)?;
            encode(request, Some(&converted), invocation)
        }
        _ => encode(request, object, invocation),
    }
}
