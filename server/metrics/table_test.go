package metrics

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"podd/runtime/runtimetest/golden"
)

// TestStableNames checks that the names, types and labels of all metrics are stable, because
// dashboards and alerts depend on them, and that every metric has a help text.
func TestStableNames(t *testing.T) {
	m := exercised()
	m.Handler(inputs())
	var got strings.Builder
	for _, endpoint := range []struct {
		path string
		*prometheus.Registry
	}{{"/metrics", m.mainRegistry}, {"/metrics/probes", m.probeRegistry}, {"/metrics/slis", m.sliRegistry}} {
		got.WriteString(endpoint.path + "\n")
		for _, line := range table(t, endpoint.Registry) {
			got.WriteString("\t" + line + "\n")
		}
	}
	golden.Compare(t, filepath.Join("testdata", "table.txt"), got.String())
}

// kubeletMetrics are the kubelet's metrics that common dashboards and alerts use, and those that are
// new in Kubernetes 1.35 to 1.37.
const kubeletMetrics = `node_name running_pods running_containers desired_pods active_pods mirror_pods working_pods
orphaned_runtime_pods_total restarted_pods_total pod_start_duration_seconds pod_start_sli_duration_seconds
pod_start_total_duration_seconds pod_worker_duration_seconds pod_worker_start_duration_seconds
pod_status_sync_duration_seconds pleg_relist_duration_seconds pleg_relist_interval_seconds pleg_last_seen_seconds
pleg_discard_events runtime_operations_total runtime_operations_errors_total runtime_operations_duration_seconds
cgroup_manager_duration_seconds evictions preemptions eviction_stats_age_seconds started_pods_total
started_pods_errors_total started_user_namespaced_pods_total started_user_namespaced_pods_errors_total
started_containers_total started_containers_errors_total run_podsandbox_duration_seconds
run_podsandbox_errors_total image_pull_duration_seconds image_garbage_collected_total admission_rejections_total
volume_stats_capacity_bytes volume_stats_available_bytes volume_stats_used_bytes volume_stats_inodes
volume_stats_inodes_free volume_stats_inodes_used http_requests_total http_requests_duration_seconds
http_inflight_requests server_expiration_renew_errors certificate_manager_client_expiration_renew_errors
certificate_manager_client_ttl_seconds certificate_manager_server_ttl_seconds container_log_filesystem_used_bytes
cgroup_version cri_losing_support node_startup_duration_seconds containers_per_pod_count volume_metric_collection_duration_seconds first_network_pod_start_sli_duration_seconds
node_startup_pre_kubelet_duration_seconds node_startup_pre_registration_duration_seconds
node_startup_registration_duration_seconds node_startup_post_registration_duration_seconds managed_ephemeral_containers
lifecycle_handler_http_fallbacks_total sleep_action_terminated_early_total orphan_pod_cleaned_volumes_errors graceful_shutdown_start_time_seconds graceful_shutdown_end_time_seconds
pod_resources_endpoint_requests_total pod_resources_endpoint_requests_list pod_resources_endpoint_requests_get
pod_resources_endpoint_requests_get_allocatable pod_resources_endpoint_errors_list pod_resources_endpoint_errors_get
pod_resources_endpoint_errors_get_allocatable device_plugin_registration_total device_plugin_alloc_duration_seconds orphan_pod_cleaned_volumes
storage_operation_duration_seconds volume_manager_total_volumes volume_manager_selinux_container_errors_total volume_manager_selinux_container_warnings_total
volume_manager_selinux_pod_context_mismatch_errors_total volume_manager_selinux_pod_context_mismatch_warnings_total
volume_manager_selinux_volume_context_mismatch_errors_total volume_manager_selinux_volume_context_mismatch_warnings_total
volume_manager_selinux_volumes_admitted_total rest_client_requests_total kubernetes_build_info
image_manager_ensure_image_requests_total image_volume_requested_total image_volume_mounted_succeed_total
image_volume_mounted_errors_total imagemanager_image_mustpull_checks_total imagemanager_ondisk_pulledrecords
imagemanager_ondisk_pullintents imagemanager_inmemory_pulledrecords_usage_percent
imagemanager_inmemory_pullintents_usage_percent memory_qos_node_memory_min_bytes memory_qos_node_memory_low_bytes
metrics_provider pleg_pod_relist_duration_seconds pod_level_resources_admission_total terminated_containers_total
pod_pending_resizes pod_in_progress_resizes pod_deferred_resize_duration_seconds pod_infeasible_resizes_total
pod_deferred_accepted_resizes_total pod_resize_duration_milliseconds container_requested_resizes_total
pod_watch_events_dropped_total pod_requests_total pod_requests_list_total pod_requests_get_total
pod_requests_watch_total podcertificate_states websocket_streaming_requests_total csi_node_storage_health_status
resource_manager_allocations_total resource_manager_allocation_errors_total
resource_manager_container_assignments_total credential_provider_plugin_errors_total credential_provider_plugin_duration
credential_provider_config_info dra_node_prepare_skips_total dra_node_unprepare_skips_total`

// TestKubeletMetrics checks that each metric in kubeletMetrics is either served or listed as missing
// in the package documentation.
func TestKubeletMetrics(t *testing.T) {
	text := scrape(exercised().Handler(inputs()), "/metrics")
	source, err := os.ReadFile("metrics.go")
	if err != nil {
		t.Fatal(err)
	}
	doc, _, _ := strings.Cut(string(source), "\npackage metrics")
	for name := range strings.FieldsSeq(kubeletMetrics) {
		served := strings.Contains(text, "# TYPE kubelet_"+name+" ") || strings.Contains(text, "# TYPE "+name+" ")
		if listed := mentions(doc, name); served == listed {
			t.Errorf("%s: got served %v and listed as missing %v, want exactly one", name, served, listed)
		}
	}
}

// mentions reports whether doc contains name. A word in doc may abbreviate the
// middle of a name as "…".
func mentions(doc, name string) bool {
	for word := range strings.FieldsFuncSeq(doc, func(r rune) bool { return r == ' ' || r == ',' || r == '\t' || r == '\n' }) {
		before, after, cut := strings.Cut(word, "…")
		if word == name || cut && before != "" && strings.HasPrefix(name, before) && strings.HasSuffix(name, after) {
			return true
		}
	}
	return false
}

// table returns a line "name type labels" for each metric, except those of the Go
// client library.
func table(t *testing.T, r *prometheus.Registry) []string {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, f := range families {
		name := f.GetName()
		if strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") {
			continue
		}
		if f.GetHelp() == "" {
			t.Errorf("%s has no help text", name)
		}
		line := ""
		for i, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName())
			}
			slices.Sort(labels)
			now := strings.TrimSpace(name + " " + strings.ToLower(f.GetType().String()) + " " + strings.Join(labels, ","))
			if i > 0 && now != line {
				t.Errorf("two series of one metric have different labels: %q and %q", line, now)
			}
			line = now
		}
		all = append(all, line)
	}
	return all
}
