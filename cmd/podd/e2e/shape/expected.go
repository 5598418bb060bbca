package shape

import (
	"regexp"
	"slices"
	"strings"
)

// expectedDifference is a known difference between the responses of podd and of a kubelet, with the
// reason.
type expectedDifference struct {
	endpoint, line *regexp.Regexp
	reason         string
}

func newExpectedDifference(endpoint, line, reason string) expectedDifference {
	return expectedDifference{regexp.MustCompile("^" + endpoint + "$"), regexp.MustCompile(line), reason}
}

var expectedDifferences = []expectedDifference{
	newExpectedDifference(".*", `psi|\.io\.time|container_pressure_`, "if the kernel reports no pressure, as with cgroup v1, a kubelet reports zeros and podd omits the metric"),
	newExpectedDifference("/stats/.*", `systemContainers\[(kubelet|runtime|misc)\]`, "a system process has statistics only if it was started in a separate cgroup"),
	newExpectedDifference("/stats/.*", `^-.*swapAvailableBytes`, "with only_cpu_and_memory, a kubelet returns the value that the runtime reports for a container without a limit"),
	newExpectedDifference("/stats/.*", `\.network\.`, "a host may have no network interface"),
	newExpectedDifference("/metrics/cadvisor", `container_(blkio|fs)_`, "there are series only for disks that have been read or written"),
	newExpectedDifference("/metrics/cadvisor", `container_hugetlb|machine_(nvm|swap|dimm|node|cpu_cache|thread|hugepages)`, "the metrics depend on the hardware"),
	newExpectedDifference("/metrics", `^\+podd_`, "metrics of podd"),
	newExpectedDifference("/metrics", `^.kubernetes_build_info`, "in podd, the metric has another version and no commit of Kubernetes"),
	newExpectedDifference("/metrics", `^\+kubelet_(certificate_manager_server_ttl_seconds|pod_start_sli_|pod_start_total_)`, "a kubelet has these metrics only with an API server"),
	newExpectedDifference("/metrics", `^-(aggregator|apiserver|cardinality|disabled|dra|force_cleaned_failed|hidden|reconstruct|registered|workqueue|kubelet_(cpu_manager|evented_pleg|imagemanager_inmemory|memory_manager|orphan_pod|pleg_discard|pod_watch_events_dropped|sleep_action|topology_manager))_`, "podd does not have these metrics; the comment of package server/metrics gives the reasons"),
	newExpectedDifference("/metrics", `.(go|process|promhttp|csi_operations|get_token)_`, "metrics of libraries of which podd and the kubelet use different versions"),
	newExpectedDifference("/metrics", `^.storage_operation`, "series depend on the volumes, and only a kubelet verifies that volumes are attached"),
	newExpectedDifference("/metrics", `^.kubelet_(http|runtime_operations|started_.*_errors|terminated_containers|pod_pending_resizes|pod_deferred_resize|run_podsandbox_errors|image_pull|imagemanager_image_mustpull|admission|restarted|pod_resources|device_plugin|cgroup_manager|volume_stats|evictions)`, "series that depend on what has happened so far"),
}

// Unexpected returns the lines of diff for which there is no expected difference.
func Unexpected(endpoint string, diff []string) []string {
	path, _, _ := strings.Cut(endpoint, "?")
	return slices.DeleteFunc(slices.Clone(diff), func(line string) bool {
		return slices.ContainsFunc(expectedDifferences, func(e expectedDifference) bool { return e.endpoint.MatchString(path) && e.line.MatchString(line) })
	})
}
