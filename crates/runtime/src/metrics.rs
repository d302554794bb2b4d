//! Counters, gauges and histograms, and the Prometheus text format.
//!
//! Absent on purpose: global state. A registry is made in the binary and handed
//! to whoever counts.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};

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
    /// In the order of their label values. Found without making the values' copies: this is on the way
    /// of every request.
    series: Mutex<Vec<(Vec<String>, Shared)>>,
}

/// A series that [`One`] may change without looking for it.
type Shared = Arc<Mutex<Series>>;

#[derive(Debug, Clone, Default)]
struct Series {
    value: f64,
    count: u64,
    /// How many observations are above the bound before and not above this one.
    buckets: Vec<u64>,
}

impl Series {
    fn observe(&mut self, bounds: &[f64], value: f64) {
        self.count += 1;
        self.value += value;
        self.buckets.resize(bounds.len(), 0);
        if let Some(at) = bounds.iter().position(|bound| value <= *bound) {
            self.buckets[at] += 1;
        }
    }
}

/// One series of a family, for what counts very often: it is looked for at the first use only. It is not
/// shown before. Not for families of which series are removed or replaced: what this one counts then is
/// shown no more.
#[derive(Debug)]
pub struct One {
    family: Arc<Family>,
    labels: Vec<String>,
    series: OnceLock<Shared>,
}

impl One {
    /// Adds `amount`.
    pub fn add(&self, amount: f64) {
        self.series().lock().value += amount;
    }

    /// Adds an observation to a histogram.
    pub fn observe(&self, value: f64) {
        let Kind::Histogram(bounds) = self.family.kind else { return };
        self.series().lock().observe(bounds, value);
    }

    fn series(&self) -> &Shared {
        self.series.get_or_init(|| {
            let labels: Vec<&str> = self.labels.iter().map(String::as_str).collect();
            self.family.with(&labels, Arc::clone)
        })
    }
}

/// All series of a family as they are at a moment: numbers that are counted elsewhere.
#[derive(Debug, Default)]
pub struct Counted(Vec<(Vec<String>, Shared)>);

impl Counted {
    /// A counter or gauge.
    pub fn number(&mut self, labels: &[&str], value: f64) {
        self.add(labels, Series { value, ..Series::default() });
    }

    /// A histogram: how many observations there are up to each bound, and in all, and their sum.
    pub fn observed(&mut self, labels: &[&str], buckets: Vec<u64>, count: u64, sum: f64) {
        let mut before = 0;
        let each =
            buckets.into_iter().map(|up_to| up_to.saturating_sub(std::mem::replace(&mut before, up_to)));
        self.add(labels, Series { value: sum, count, buckets: each.collect() });
    }

    fn add(&mut self, labels: &[&str], series: Series) {
        self.0.push((owned(labels), Arc::new(Mutex::new(series))));
    }
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
        self.change(labels, |series| series.observe(bounds, value));
    }

    /// The series with these label values.
    pub fn one(self: &Arc<Self>, labels: &[&str]) -> One {
        One { family: Arc::clone(self), labels: owned(labels), series: OnceLock::new() }
    }

    /// The present number (a histogram's sum); 0 for label values that were never used.
    pub fn value(&self, labels: &[&str]) -> f64 {
        let series = self.series.lock();
        position(&series, labels).map_or(0.0, |index| series[index].1.lock().value)
    }

    /// Drops the series whose label values `gone` says yes to.
    pub fn remove(&self, gone: impl Fn(&[String]) -> bool) {
        self.series.lock().retain(|(labels, _)| !gone(labels));
    }

    /// Puts numbers that are counted elsewhere in the place of all that is there.
    pub fn replace(&self, Counted(mut series): Counted) {
        series.sort_by(|one, other| one.0.cmp(&other.0));
        *self.series.lock() = series;
    }

    fn change(&self, labels: &[&str], change: impl FnOnce(&mut Series)) {
        self.with(labels, |series| change(&mut series.lock()));
    }

    fn with<T>(&self, labels: &[&str], use_it: impl FnOnce(&Shared) -> T) -> T {
        debug_assert_eq!(labels.len(), self.labels.len(), "{}", self.name);
        let mut series = self.series.lock();
        let index = position(&series, labels).unwrap_or_else(|index| {
            series.insert(index, (owned(labels), Shared::default()));
            index
        });
        use_it(&series[index].1)
    }

    fn render(&self, out: &mut String) {
        let kind = match self.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram(_) => "histogram",
        };
        let name = self.name;
        let all = self.series.lock();
        let mut all: Vec<(Vec<String>, Series)> =
            all.iter().map(|(labels, series)| (labels.clone(), series.lock().clone())).collect();
        if all.is_empty() {
            // As the originals: a metric with labels is not shown before it has a series, one without is.
            if !self.labels.is_empty() {
                return;
            }
            let buckets = if let Kind::Histogram(bounds) = self.kind { bounds.len() } else { 0 };
            all.push((Vec::new(), Series { buckets: vec![0; buckets], ..Series::default() }));
        }
        // Writing to a string does not fail.
        let _ = writeln!(out, "# HELP {name} {}\n# TYPE {name} {kind}", self.help);
        for (labels, series) in &all {
            let Kind::Histogram(bounds) = self.kind else {
                let _ = writeln!(out, "{name}{} {}", self.label_text(labels, None), series.value);
                continue;
            };
            let mut up_to = 0;
            for (bound, bucket) in bounds.iter().zip(&series.buckets) {
                let bound = float_text(*bound);
                up_to += bucket;
                let _ = writeln!(out, "{name}_bucket{} {up_to}", self.label_text(labels, Some(&bound)));
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

/// A bound as the originals write it, since it is part of a series' name: as Go's `%g`.
fn float_text(value: f64) -> String {
    if value == 0.0 || (1e-4..1e21).contains(&value.abs()) {
        return value.to_string();
    }
    let scientific = format!("{value:e}");
    match scientific.split_once('e') {
        Some((mantissa, exponent)) => match exponent.strip_prefix('-') {
            Some(digits) => format!("{mantissa}e-{digits:0>2}"),
            None => format!("{mantissa}e+{exponent:0>2}"),
        },
        None => scientific,
    }
}

/// Where the series with these label values is, or belongs.
fn position(series: &[(Vec<String>, Shared)], labels: &[&str]) -> Result<usize, usize> {
    series.binary_search_by(|(known, _)| known.iter().map(String::as_str).cmp(labels.iter().copied()))
}

fn owned(labels: &[&str]) -> Vec<String> {
    labels.iter().map(|label| (*label).to_owned()).collect()
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
        let mut counted = Counted::default();
        counted.observed(&["put"], vec![1, 1], 2, 9.5);
        counted.observed(&["get"], vec![0, 1], 1, 0.75);
        histogram.replace(counted);
        let shown = registry.render();
        let places = ["took_seconds_sum{verb=\"get\"} 0.75", "took_seconds_count{verb=\"put\"} 2"]
            .map(|line| shown.find(line).expect("in order"));
        assert!(places.is_sorted(), "{shown}");
        counter.remove(|labels| labels[0] == "x");
        registry.counter("never_total", "Never.", &["name"]);
        registry.histogram("none_seconds", "None.", &[], &[1.0]);
        let shown = registry.render();
        assert!(
            !shown.contains("never_total") && shown.contains("none_seconds_bucket{le=\"1\"} 0\n"),
            "{shown}"
        );
        assert!(!registry.render().contains("calls_total{name=\"x\"}"));
    }

    /// Whoever counts, it is the same series; and it is shown once it has counted.
    #[test]
    fn one_series_is_counted_by_several() {
        let registry = Registry::default();
        let calls = registry.counter("calls_total", "Calls.", &["name"]);
        let took = registry.histogram("took_seconds", "Time.", &["verb"], &[0.5, 1.0]);
        let (one, again, other) = (calls.one(&["b"]), calls.one(&["b"]), calls.one(&["a"]));
        let get = took.one(&["get"]);
        assert_eq!(registry.render(), "");
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| (0..1000).for_each(|_| one.add(1.0)));
                scope.spawn(|| (0..1000).for_each(|_| again.add(1.0)));
                scope.spawn(|| (0..1000).for_each(|_| calls.increment(&["b"])));
                scope.spawn(|| (0..1000).for_each(|_| get.observe(0.75)));
                scope.spawn(|| (0..1000).for_each(|_| took.observe(&["get"], 0.25)));
            }
        });
        // One that comes to stand before it moves it, and it is counted on.
        other.add(1.0);
        one.add(1.0);
        get.observe(f64::NAN);
        assert_eq!((calls.value(&["b"]), calls.value(&["a"])), (6001.0, 1.0));
        let shown = registry.render();
        for line in [
            "calls_total{name=\"b\"} 6001",
            "took_seconds_bucket{verb=\"get\",le=\"0.5\"} 2000",
            "took_seconds_bucket{verb=\"get\",le=\"1\"} 4000",
            "took_seconds_count{verb=\"get\"} 4001",
        ] {
            assert!(shown.contains(line), "{line}: {shown}");
        }
    }

    // What Go prints for these with strconv's 'g', of the shortest digits.
    #[test]
    fn bounds_are_written_as_the_originals_write_them() {
        for (bound, expected) in [
            (5e-6, "5e-06"),
            (1.024e-2, "0.01024"),
            (8e-5, "8e-05"),
            (0.0001, "0.0001"),
            (1.0, "1"),
            (600.0, "600"),
            (2.5, "2.5"),
            (1e21, "1e+21"),
        ] {
            assert_eq!(float_text(bound), expected);
        }
    }
}
