use super::*;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn queue(per_lane: usize, total: usize) -> Queue<&'static str, &'static str> {
    Queue::new(QueueConfig { per_lane, total, ..QueueConfig::default() })
}

/// Runs `script` (`add KEY LANE URGENCY`, `after KEY LANE SECONDS`, `at SECONDS`, `take`, `done KEY NEXT`,
/// `forget KEY`) and returns what `take` handed out, "-" for nothing.
fn run(per_lane: usize, total: usize, script: &'static str) -> String {
    let mut queue = queue(per_lane, total);
    let mut now = Duration::ZERO;
    let mut taken = Vec::new();
    for line in script.split(';').map(str::trim).filter(|line| !line.is_empty()) {
        match *line.split_whitespace().collect::<Vec<_>>().as_slice() {
            ["add", key, lane, urgency] => queue.add(key, lane, parse(urgency), now),
            ["after", key, lane, delay] => {
                queue.add_after(key, lane, seconds(delay.parse().unwrap()), now);
            }
            ["at", at] => now = seconds(at.parse().unwrap()),
            ["take"] => taken.push(queue.take(now).map_or("-", |taken| taken.key)),
            ["done", key, "forget"] => assert_eq!(queue.done(&key, Next::Forget, now), None),
            ["done", key, "retry"] => assert!(queue.done(&key, Next::Retry, now).is_some()),
            ["done", key, delay] => {
                queue.done(&key, Next::After(seconds(delay.parse().unwrap())), now);
            }
            ["forget", key] => queue.forget(&key),
            _ => panic!("bad line {line}"),
        }
    }
    taken.join(" ")
}

fn parse(urgency: &str) -> Urgency {
    match urgency {
        "periodic" => Urgency::Periodic,
        "fresh" => Urgency::Fresh,
        "deletion" => Urgency::Deletion,
        _ => panic!("bad urgency {urgency}"),
    }
}

#[test]
fn order_of_keys() {
    let cases: &[(&str, usize, usize, &str, &str)] = &[
        ("first in, first out", 9, 9, "add a s fresh; add b s fresh; take; take; take", "a b -"),
        ("a key is queued once", 9, 9, "add a s fresh; add a s fresh; take; take", "a -"),
        ("a key does not run twice at once", 9, 9, "add a s fresh; take; add a s fresh; take", "a -"),
        (
            "what was asked for while it ran is done after",
            9,
            9,
            "add a s fresh; take; add a s fresh; take; done a forget; take",
            "a - a",
        ),
        ("fresh before periodic (O1)", 1, 9, "add p s periodic; at 1; add f s fresh; take", "f"),
        ("deletion before fresh (O29)", 1, 9, "add f s fresh; at 1; add d s deletion; take; take", "d f"),
        (
            "a deletion waits for no full lane (O29)",
            1,
            1,
            "add f s fresh; take; add g s fresh; add d s deletion; take; take",
            "f d -",
        ),
        (
            "deletions have a limit too",
            1,
            1,
            "add a s deletion; add b s deletion; add c s deletion; take; take; take",
            "a b -",
        ),
        (
            "a full lane holds up no other (O7)",
            1,
            9,
            "add a slow fresh; add b slow fresh; add c fast fresh; take; take; take",
            "a c -",
        ),
        ("the total is kept", 9, 2, "add a r fresh; add b s fresh; add c s fresh; take; take; take", "a b -"),
        (
            "a lane's first waits for no other lane (O7)",
            9,
            2,
            "add a r fresh; add b s fresh; add c t fresh; take; take; take",
            "a b c",
        ),
        (
            "a deletion waits for no lanes that hang (O29)",
            9,
            1,
            "add a r fresh; add b s fresh; add c t fresh; take; take; take; add d t deletion; take",
            "a b c d",
        ),
        (
            "a higher urgency moves a key up",
            1,
            9,
            "add a s periodic; add b s periodic; add b s fresh; take",
            "b",
        ),
        (
            "a lower urgency does not move it down",
            1,
            9,
            "add a s fresh; add b s fresh; add a s periodic; take",
            "a",
        ),
        (
            "an old periodic key is not starved",
            1,
            9,
            "add p s periodic; at 29; add f s fresh; take; done f forget; at 30; add g s fresh; take",
            "f p",
        ),
        (
            "an aged key stands behind fresh ones that are older",
            1,
            9,
            "add f s fresh; at 1; add p s periodic; at 40; take; take",
            "f -",
        ),
        ("a scheduled key waits", 9, 9, "after a s 5; at 4; take; at 5; take", "- a"),
        (
            "the earlier of two times wins",
            9,
            9,
            "after a s 5; after a s 3; after a s 9; at 3; take; done a forget; at 9; take",
            "a -",
        ),
        (
            "asking at once drops the schedule (O3)",
            9,
            9,
            "after a s 5; add a s fresh; take; done a forget; at 5; take",
            "a -",
        ),
        ("a run's end schedules", 9, 9, "add a s fresh; take; done a 7; at 6; take; at 7; take", "a - a"),
        (
            "asked again while it ran: no second run at the interval (O3)",
            9,
            9,
            "add a s fresh; take; add a s fresh; done a 7; take; done a 9; at 7; take; at 9; take",
            "a a - a",
        ),
        (
            "a delay asked for while it ran",
            9,
            9,
            "add a s fresh; take; after a s 3; done a 7; at 3; take",
            "a a",
        ),
        ("forgotten while scheduled", 9, 9, "after a s 5; forget a; at 5; take", "-"),
        ("forgotten while ready", 9, 9, "add a s fresh; forget a; take", "-"),
        (
            "forgotten while running",
            9,
            9,
            "add a s fresh; take; add a s fresh; forget a; done a forget; take",
            "a -",
        ),
        (
            "the back-off doubles",
            9,
            9,
            "add a s fresh; take; done a retry; at 1; take; done a retry; at 2; take; at 3; take",
            "a a - a",
        ),
        (
            "success ends the back-off",
            9,
            9,
            "add a s fresh; take; done a retry; at 1; take; done a 0; take; done a retry; at 2; take",
            "a a a a",
        ),
        (
            "a lane frees when its key ends",
            1,
            9,
            "add a s fresh; add b s fresh; take; take; done a forget; take",
            "a - b",
        ),
        ("ending what does not run does nothing", 9, 9, "done a forget; take", "-"),
    ];
    for (name, per_lane, total, script, expected) in cases {
        assert_eq!(run(*per_lane, *total, script), *expected, "{name}");
    }
}

#[test]
fn the_wait_after_a_failure_is_upstreams() {
    let cases = [(0, 1), (1, 2), (2, 4), (8, 256), (9, 420), (31, 420), (32, 420), (u32::MAX, 420)];
    for (failures, expected) in cases {
        assert_eq!(backoff(seconds(1), seconds(420), failures), seconds(expected), "{failures} failures");
    }
}

#[test]
fn all_keys_share_the_rate_of_retries() {
    let mut queue = Queue::new(QueueConfig { per_lane: 1000, total: 1000, ..QueueConfig::default() });
    let mut waits = Vec::new();
    for key in 0..120_u32 {
        queue.add(key, (), Urgency::Fresh, Duration::ZERO);
        queue.take(Duration::ZERO).unwrap();
        waits.push(queue.done(&key, Next::Retry, Duration::ZERO).unwrap());
    }
    assert_eq!(waits[99], seconds(1));
    assert_eq!(waits[119], seconds(2), "20 over the burst at 10 a second");
}

#[test]
fn nothing_is_left_of_a_key_that_has_ended() {
    let mut queue = queue(1, 1);
    for _ in 0..3 {
        queue.add("a", "s", Urgency::Fresh, Duration::ZERO);
        queue.take(Duration::ZERO).unwrap();
        queue.done(&"a", Next::Retry, Duration::ZERO).unwrap();
        queue.forget(&"a");
    }
    assert!(queue.is_empty());
    assert_eq!((queue.depth(), queue.running(), queue.lanes.len(), queue.next_wake()), (0, 0, 0, None));
}

/// O1: 300 periodic keys are due at once on one worker; a new one runs next.
#[test]
fn o1_a_new_key_overtakes_300_periodic_ones() {
    let mut queue = Queue::new(QueueConfig { per_lane: 1, total: 1, ..QueueConfig::default() });
    for key in 0..300_u32 {
        queue.add(key, "store", Urgency::Periodic, Duration::ZERO);
    }
    let first = queue.take(Duration::ZERO).unwrap();
    queue.add(300, "store", Urgency::Fresh, seconds(1));
    queue.done(&first.key, Next::After(seconds(1)), seconds(1));
    assert_eq!(queue.take(seconds(1)).unwrap().key, 300);
}

/// Random scripts against the promises: a key never runs twice at once, a lane and the total keep their limit,
/// counters agree with the state, and everything that was asked for runs in the end.
#[test]
fn random_scripts_keep_the_promises() {
    for seed in 0..200_u64 {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut random = move |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        let mut queue: Queue<u64, u64> =
            Queue::new(QueueConfig { per_lane: 2, total: 4, ..QueueConfig::default() });
        let mut running: Vec<(u64, Urgency)> = Vec::new();
        let mut asked = std::collections::BTreeSet::new();
        let mut now = Duration::ZERO;
        for _ in 0..400 {
            let key = random(12);
            match random(6) {
                0 | 1 => {
                    let urgency = [Urgency::Periodic, Urgency::Fresh, Urgency::Deletion][random(3) as usize];
                    queue.add(key, key % 3, urgency, now);
                    asked.insert(key);
                }
                2 => queue.add_after(key, key % 3, Duration::from_millis(random(3000)), now),
                3 => {
                    if let Some(taken) = queue.take(now) {
                        assert!(
                            running.iter().all(|(key, _)| *key != taken.key),
                            "seed {seed}: twice at once"
                        );
                        running.push((taken.key, taken.urgency));
                        asked.remove(&taken.key);
                    }
                }
                4 if !running.is_empty() => {
                    let (key, _) = running.swap_remove(random(running.len() as u64) as usize);
                    let next = [Next::Forget, Next::Retry, Next::After(Duration::from_millis(random(2000)))];
                    queue.done(&key, next[random(3) as usize], now);
                }
                _ => now += Duration::from_millis(random(1000)),
            }
            assert_eq!(queue.running(), running.len(), "seed {seed}");
            let deletions = running.iter().filter(|(_, urgency)| *urgency == Urgency::Deletion).count();
            // The total, and the first of each lane beyond it.
            assert!(deletions <= 8 && running.len() - deletions <= 4 + 2, "seed {seed}");
            for lane in 0..3 {
                let counted = running
                    .iter()
                    .filter(|(key, urgency)| key % 3 == lane && *urgency != Urgency::Deletion)
                    .count();
                assert!(counted <= 2, "seed {seed}: lane over its limit");
            }
        }
        for (key, _) in running.drain(..) {
            queue.done(&key, Next::Forget, now);
        }
        now += seconds(3600);
        while let Some(taken) = queue.take(now) {
            asked.remove(&taken.key);
            queue.done(&taken.key, Next::Forget, now);
        }
        assert!(asked.is_empty(), "seed {seed}: {asked:?} never ran");
        assert_eq!(queue.depth(), 0, "seed {seed}");
    }
}
