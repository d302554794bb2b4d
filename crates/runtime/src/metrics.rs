//! Counters, gauges and histograms, and the Prometheus text format.
//!
//! Absent on purpose: global state. A registry is made in the binary and handed
//! to whoever counts.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

/// The content type of [`Registry::render`].
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The default bounds of a histogram of seconds, Prometheus' own.
pub const SECONDS: &[f64] = &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// All metric families of a process.
#[derive(Debug, Default)]
pub struct Registry {
    families: RwLock<BTreeMap<&'static str, Arc<Family>>>,
}

/// What a family's numbers mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// Goes up only.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Observations by upper bound.
    Histogram(&'static [f64]),
}

/// One metric with all its label values.
#[derive(Debug)]
pub struct Family {
    name: &'static str,
    help: &'static str,
    kind: Kind,
    labels: &'static [&'static str],
    series: Mutex<BTreeMap<Vec<String>, Series>>,
}

#[derive(Debug, Clone, Default)]
struct Series {
    value: f64,
    count: u64,
    buckets: Vec<u64>,
}

impl Registry {
    /// A counter; the same family when it was asked for before.
    pub fn counter(
        &self,
        name: &'static str,
        help: &'static str,
        labels: &'static [&'static str],
    ) -> Arc<Family> {
        self.family(name, help, labels, Kind::Counter)
    }

    /// A gauge; the same family when it was asked for before.
    pub fn gauge(
        &self,
        name: &'static str,
        help: &'static str,
        labels: &'static [&'static str],
    ) -> Arc<Family> {
        self.family(name, help, labels, Kind::Gauge)
    }

    /// A histogram; the same family when it was asked for before.
    pub fn histogram(
        &self,
        name: &'static str,
        help: &'static str,
        labels: &'static [&'static str],
        bounds: &'static [f64],
    ) -> Arc<Family> {
        self.family(name, help, labels, Kind::Histogram(bounds))
    }

    /// Everything in the Prometheus text format.
    pub fn render(&self) -> String {
        let mut out = String::new();
        for family in self.families.read().values() {
            family.render(&mut out);
        }
        out
    }

    fn family(
        &self,
        name: &'static str,
        help: &'static str,
        labels: &'static [&'static str],
        kind: Kind,
    ) -> Arc<Family> {
        let mut families = self.families.write();
        let new = || Arc::new(Family { name, help, kind, labels, series: Mutex::default() });
        families.entry(name).or_insert_with(new).clone()
    }
}

impl Family {
    /// Adds one.
    pub fn increment(&self, labels: &[&str]) {
        self.add(labels, 1.0);
    }

    /// Adds `amount`.
    pub fn add(&self, labels: &[&str], amount: f64) {
        self.change(labels, |series| series.value += amount);
    }

    /// Sets a gauge.
    pub fn set(&self, labels: &[&str], value: f64) {
        self.change(labels, |series| series.value = value);
    }

    /// Adds an observation to a histogram.
    pub fn observe(&self, labels: &[&str], value: f64) {
        let Kind::Histogram(bounds) = self.kind else { return };
        self.change(labels, |series| {
            series.buckets.resize(bounds.len(), 0);
            series.count += 1;
            series.value += value;
            for (bound, bucket) in bounds.iter().zip(&mut series.buckets) {
                if value <= *bound {
                    *bucket += 1;
                }
            }
        });
    }

    /// The present number (a histogram's sum); 0 for label values that were never used.
    pub fn value(&self, labels: &[&str]) -> f64 {
        let series = self.series.lock();
        let same = |key: &&Vec<String>| key.iter().map(String::as_str).eq(labels.iter().copied());
        series.keys().find(same).map_or(0.0, |key| series[key].value)
    }

    /// Drops the series whose label values `gone` says yes to.
    pub fn remove(&self, gone: impl Fn(&[String]) -> bool) {
        self.series.lock().retain(|labels, _| !gone(labels));
    }

    fn change(&self, labels: &[&str], change: impl FnOnce(&mut Series)) {
        debug_assert_eq!(labels.len(), self.labels.len(), "{}", self.name);
        let key: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
        change(self.series.lock().entry(key).or_default());
    }

    fn render(&self, out: &mut String) {
        let kind = match self.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram(_) => "histogram",
        };
        let name = self.name;
        // Writing to a string does not fail.
        let _ = writeln!(out, "# HELP {name} {}\n# TYPE {name} {kind}", self.help);
        for (labels, series) in self.series.lock().iter() {
            let Kind::Histogram(bounds) = self.kind else {
                let _ = writeln!(out, "{name}{} {}", self.label_text(labels, None), series.value);
                continue;
            };
            for (bound, bucket) in bounds.iter().zip(&series.buckets) {
                let bound = bound.to_string();
                let _ = writeln!(out, "{name}_bucket{} {bucket}", self.label_text(labels, Some(&bound)));
            }
            let count = series.count;
            let _ = writeln!(out, "{name}_bucket{} {count}", self.label_text(labels, Some("+Inf")));
            let labels = self.label_text(labels, None);
            let _ = writeln!(out, "{name}_sum{labels} {}\n{name}_count{labels} {count}", series.value);
        }
    }

    fn label_text(&self, values: &[String], bound: Option<&str>) -> String {
        let pairs = self.labels.iter().copied().zip(values.iter().map(String::as_str));
        let pairs: Vec<String> = pairs
            .chain(bound.map(|bound| ("le", bound)))
            .map(|(name, value)| {
                let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
                format!("{name}=\"{value}\"")
            })
            .collect();
        if pairs.is_empty() { String::new() } else { format!("{{{}}}", pairs.join(",")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_format() {
        let registry = Registry::default();
        let counter = registry.counter("calls_total", "Calls.", &["name"]);
        counter.increment(&["a\"b\\c\nd"]);
        registry.counter("calls_total", "Calls.", &["name"]).add(&["x"], 2.5);
        registry.gauge("depth", "Depth.", &[]).set(&[], 7.0);
        let histogram = registry.histogram("took_seconds", "Time.", &["verb"], &[0.5, 1.0]);
        histogram.observe(&["get"], 0.75);
        histogram.observe(&["get"], 3.0);
        let expected = r#"# HELP calls_total Calls.
# TYPE calls_total counter
calls_total{name="a\"b\\c\nd"} 1
calls_total{name="x"} 2.5
# HELP depth Depth.
# TYPE depth gauge
depth 7
# HELP took_seconds Time.
# TYPE took_seconds histogram
took_seconds_bucket{verb="get",le="0.5"} 0
took_seconds_bucket{verb="get",le="1"} 1
took_seconds_bucket{verb="get",le="+Inf"} 2
took_seconds_sum{verb="get"} 3.75
took_seconds_count{verb="get"} 2
"#;
        assert_eq!(registry.render(), expected);
        assert_eq!((counter.value(&["x"]), counter.value(&["unused"])), (2.5, 0.0));
        counter.remove(|labels| labels[0] == "x");
        assert!(!registry.render().contains("calls_total{name=\"x\"}"));
    }
}
