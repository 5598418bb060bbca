package shape

import (
	"regexp"
	"slices"
	"strings"
)

// expected is a known difference between the responses of podd and of a kubelet, with the
// reason.
type expected struct {
	face, line *regexp.Regexp
	why        string
}

func differs(face, line, why string) expected {
	return expected{regexp.MustCompile("^" + face + "$"), regexp.MustCompile(line), why}
}

var table = []expected{
	differs(".*", `psi|\.io\.time|container_pressure_`, "a kubelet has zeros where the kernel tells no pressure, as under version 1 of cgroups; podd has nothing"),
	differs("/stats/.*", `systemContainers\[(kubelet|runtime|misc)\]`, "who is in a cgroup of its own depends on who started it"),
	differs("/stats/.*", `^-.*swapAvailableBytes`, "for processor and memory alone a kubelet shows what its runtime makes of no limit at all"),
	differs("/stats/.*", `\.network\.`, "the machine's interfaces, of which there may be none"),
	differs("/metrics/cadvisor", `^-container_(cpu_load_|tasks_state)`, "a kubelet's are always zero: it does not measure the load"),
	differs("/metrics/cadvisor", `^\+container_(cpu_cfs_burst|creation_time|health_state|memory_(events|file_dirty|file_writeback|pgscan|pgsteal|workingset_refault))`, "cAdvisor tells them since it was made for that kubelet"),
	differs("/metrics/cadvisor", `^\+machine_cpu_(books|drawers)`, "likewise"),
	differs("/metrics/cadvisor", `container_(blkio|fs)_`, "rows of the disks that somebody has read or written"),
	differs("/metrics/cadvisor", `container_hugetlb|machine_(nvm|swap|dimm|node|cpu_cache|thread|hugepages)`, "of what the machine is made of"),
	differs("/metrics", `^\+podd_`, "podd's own"),
	differs("/metrics", `^.kubernetes_build_info`, "podd has its own version in it, and no commit of Kubernetes"),
	differs("/metrics", `^\+kubelet_(certificate_manager_server_ttl_seconds|pod_start_sli_|pod_start_total_)`, "a kubelet has them with an API server"),
	differs("/metrics", `^-(apiserver|aggregator|authentication|authorization|cardinality|disabled|dra|field_validation|hidden|kubernetes_feature|plugin_manager|registered|rest_client|workqueue|kubelet_(volume_metric|evented|memory_manager|cpu_manager|topology))_`, "of libraries and managers that podd has not"),
	differs("/metrics", `.(go|process|promhttp|csi|get_token)_`, "of libraries that both have in different versions"),
	differs("/metrics", `(force_cleaned|reconstruct|storage_operation|volume_operation|node_startup|graceful_shutdown|lifecycle_handler|orphan_pod|pleg_discard|pod_status_sync|first_network|pod_in_progress|sleep_action|user_namespaced|containers_per_pod|container_aligned|host_process|image_volume|credential_provider)`, "see package server/metrics"),
	differs("/metrics", `^.kubelet_(http|runtime_operations|started_.*_errors|run_podsandbox_errors|image_pull|admission|restarted|pod_resources|device_plugin|cgroup_manager|volume_stats|evictions)`, "rows of what has happened so far"),
}

// Unexpected returns the differences of an endpoint that are not expected.
func Unexpected(face string, diff []string) []string {
	path, _, _ := strings.Cut(face, "?")
	return slices.DeleteFunc(slices.Clone(diff), func(line string) bool {
		return slices.ContainsFunc(table, func(e expected) bool { return e.face.MatchString(path) && e.line.MatchString(line) })
	})
}
