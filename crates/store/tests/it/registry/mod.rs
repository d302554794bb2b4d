//! The registry store and its watch cache: one suite for every engine.
//!
//! Whoever includes this calls [`suite!`] with the way to make an engine. The
//! names are those of upstream's shared storage tests where there is one.

pub(crate) mod corrupt;
pub(crate) mod counting;
pub(crate) mod delegation;
pub(crate) mod list;
pub(crate) mod list_table;
pub(crate) mod model;
pub(crate) mod probe;
pub(crate) mod revisions;
pub(crate) mod scopes;
pub(crate) mod shared;
pub(crate) mod watch;
pub(crate) mod world;
pub(crate) mod write;

/// Makes a test of each function, each on a fresh, empty engine.
macro_rules! suite {
    ($make:path) => {
        $crate::registry::suite!($make => world:
            write: create, create_with_resource_version, create_with_ttl, create_with_key_exist, get,
                unconditional_delete, conditional_delete, delete_with_suggestion_and_conflict,
                delete_with_conflict, delete_with_suggestion_of_deleted_object,
                validate_deletion_with_suggestion, validate_deletion_with_only_suggestion_valid,
                preconditional_delete_with_suggestion, preconditional_delete_with_only_suggestion_pass,
                guaranteed_update, guaranteed_update_checks_stored_data, guaranteed_update_with_conflict,
                guaranteed_update_with_suggestion_and_conflict, writes_that_cannot_be_encrypted_are_refused,
                s3_hostile_names_never_reach_the_store, invalid_keys, object_versioner, leases_are_shared,
                a_lease_serves_a_limited_number_of_objects;
            counting: list_metrics, each_request_to_the_engine_is_counted,
                objects_waits_and_failures_are_counted, changes_are_timed_until_a_watch_takes_them;
            delegation: should_delegate_list, gets_are_answered_by_the_cache_when_they_may_be_older,
                watches_are_always_answered_by_the_cache;
            list_table: list_cases, list_cases_uncached;
            list: consistent_list, consistent_read_fallback, conditional_progress_requester,
                get_list_non_recursive, s1_no_list_or_watch_reaches_a_sibling, list_paging,
                list_pagination_rare_object, list_continuation_with_filter, list_inconsistent_continuation,
                consistent_reads_share_round_trips, get_cache_bypass,
                a_cache_is_filled_in_pages_of_bounded_size;
            revisions: linearized_read_revision_invariant, get_current_resource_version, compact_revision,
                list_resource_version_match, validate_list_options;
            scopes: cluster_scoped_watch, namespace_scoped_watch_and_list;
            watch: watch_selects_and_follows, watch_from_zero, watch_from_non_zero,
                watch_delete_event_object_have_latest_rv, delayed_watch_delivery,
                a_slow_watcher_is_ended_and_slows_nobody, watch_semantics,
                watch_semantic_initial_events_extended, watch_list_match_single,
                too_large_resource_version_for_watch_list, watcher_not_going_back_in_time,
                bookmarks_come_each_minute_and_before_the_end, bookmarks_are_never_ahead_of_events,
                watchers_share_events, a_broken_watch_of_the_engine_loses_nothing,
                closing_a_resource_ends_its_watches;
            corrupt: k21_k23_transformation_failure, delete_expected_transform_or_decode_error,
                a_hundred_unreadable_objects_are_named,
                a_value_whose_key_is_gone_is_answered_while_it_is_cached,
                an_unreadable_change_ends_only_the_watches_that_would_see_it, watch_with_unsafe_delete,
                unreadable_objects_are_served_once_their_key_is_there;
            shared: compaction_follows_one_interval_behind, compactors_of_two_servers_take_turns,
                compaction_runs_by_the_clock_until_stopped, health_is_asked_for_at_most_twice_in_its_timeout,
                a_check_waits_as_long_as_it_may,
                an_engine_that_panics_leaves_nobody_waiting;
            model: concurrent_clients_agree_with_the_log;
        );
        mod unready {
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn an_unready_cache_answers_429() {
                $crate::registry::list::an_unready_cache_answers_429($make().await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn an_unfilled_cache_delegates_bounded_lists() {
                $crate::registry::delegation::an_unfilled_cache_delegates_bounded_lists($make().await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn guaranteed_update_with_ttl() {
                $crate::registry::write::guaranteed_update_with_ttl($make().await).await;
            }
        }
    };
    ($make:path => world: $($module:ident: $($test:ident),* $(,)?;)*) => {$(
        mod $module {$(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                let world = $crate::registry::world::World::new($make().await).await;
                $crate::registry::$module::$test(world).await;
            }
        )*}
    )*};
}
pub(crate) use suite;
