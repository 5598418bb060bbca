package metrics

import (
	"cmp"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"podd/server"
)

// stateCollector collects metrics about the current published state.
type stateCollector struct {
	Options
	Inputs
}

func newDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	buildInfoDesc = newDesc("kubernetes_build_info", "Versions of podd, of the kubelet that it is compatible with, and of the Go compiler. The value is always 1.",
		"major", "minor", "git_version", "podd_version", "go_version", "compiler", "platform")
	nodeNameDesc            = newDesc("kubelet_node_name", "Name of the node. The value is always 1.", "node")
	cgroupVersionDesc       = newDesc("kubelet_cgroup_version", "Version of the host's cgroup hierarchy.")
	desiredPodsDesc         = newDesc("kubelet_desired_pods", "Pods that the sources contain.", "static")
	activePodsDesc          = newDesc("kubelet_active_pods", "Desired pods that are admitted and have not terminated.", "static")
	mirrorPodsDesc          = newDesc("kubelet_mirror_pods", "Mirror pods in the API server.")
	runningPodsDesc         = newDesc("kubelet_running_pods", "Pods with a running sandbox.")
	runningContainersDesc   = newDesc("kubelet_running_containers", "Containers in the runtime, by state.", "container_state")
	workingPodsDesc         = newDesc("kubelet_working_pods", "Pods that have a worker, by lifecycle phase and by whether a source contains them.", "lifecycle", "config", "static")
	ephemeralContainersDesc = newDesc("kubelet_managed_ephemeral_containers", "Number of ephemeral containers.")
	pendingResizesDesc      = newDesc("kubelet_pod_pending_resizes", "Pods with a resize that the node does not admit, by the reason (deferred or infeasible) and the range of the pod's priority.", "reason", "priority_bucket")
	resizesInProgressDesc   = newDesc("kubelet_pod_in_progress_resizes", "Pods with a resize that is being carried out.")
	metricsProviderDesc     = newDesc("kubelet_metrics_provider", "Where the statistics of containers come from. The value is always 1.", "provider")
	volumeCountDesc         = newDesc("volume_manager_total_volumes", "Desired and existing volumes of pods, by plugin.", "plugin_name", "state")
	certificateTTLDesc      = newDesc("kubelet_certificate_manager_server_ttl_seconds", "Remaining validity in seconds of the serving certificate; +Inf if there is no serving certificate.")
	podCertificateDesc      = newDesc("kubelet_podcertificate_states", "Number of volume sources with a pod certificate by signer and state.", "signer_name", "state")
	problemsDesc            = newDesc("podd_problems", "Number of problems: errors and warnings about manifests and the node, and pods that cannot proceed.", "source", "reason")
	contentTimeDesc         = newDesc("podd_manifest_last_good_seconds", "Unix time in seconds at which the content in effect was written to its file or fetched from its URL.", "source")
	outdatedFileDesc        = newDesc("podd_manifest_behind", "1 if the current content of a file or URL is invalid and older content is in effect, else 0.", "source")
	podReadyDesc            = newDesc("podd_pod_ready", "1 if a pod is ready or has completed as its manifest requires, else 0.", "namespace", "pod")
	descriptions            = []*prometheus.Desc{
		buildInfoDesc, nodeNameDesc, cgroupVersionDesc, desiredPodsDesc, activePodsDesc, mirrorPodsDesc, runningPodsDesc, runningContainersDesc,
		workingPodsDesc, ephemeralContainersDesc, pendingResizesDesc, resizesInProgressDesc, metricsProviderDesc, volumeCountDesc, certificateTTLDesc, podCertificateDesc, problemsDesc, contentTimeDesc, outdatedFileDesc, podReadyDesc,
	}
)

// Describe implements prometheus.Collector.
func (s stateCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range descriptions {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (s stateCollector) Collect(to chan<- prometheus.Metric) {
	emit := newEmitter(to)
	v := s.State.View()
	major, minor := majorMinor(s.KubernetesVersion)
	emit(buildInfoDesc, 1, major, minor, s.KubernetesVersion, v.Version, runtime.Version(), runtime.Compiler, runtime.GOOS+"/"+runtime.GOARCH)
	emit(nodeNameDesc, 1, v.Node)
	emit(metricsProviderDesc, 1, "cadvisor") // podd reads the cgroups with cAdvisor's library
	if s.CgroupVersion != 0 {
		emit(cgroupVersionDesc, float64(s.CgroupVersion))
	}
	mirrors := 0
	if s.MirrorPodCount != nil {
		mirrors = s.MirrorPodCount()
	}
	emit(mirrorPodsDesc, float64(mirrors))
	emit(certificateTTLDesc, remainingSeconds(s.CertificateExpiry, time.Now()))
	if s.CountPodCertificates != nil {
		for c, n := range s.CountPodCertificates() {
			emit(podCertificateDesc, float64(n), c.Signer, c.State)
		}
	}
	s.collectPods(v, emit)
	s.collectWorkers(v, emit)
	s.collectVolumes(v, emit)
	collectResizes(v, emit)
	sources := newSources(v)
	sources.collectProblems(v, emit)
	sources.collectFiles(v, emit)
}

// majorMinor returns the first two numbers of a version such as "v1.37.2".
func majorMinor(version string) (major, minor string) {
	major, minorAndPatch, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ = strings.Cut(minorAndPatch, ".")
	return major, minor
}

// An emitter emits a gauge with the value n.
type emitter func(d *prometheus.Desc, n float64, labels ...string)

// newEmitter returns an emitter that sends gauges to a channel.
func newEmitter(to chan<- prometheus.Metric) emitter {
	return func(d *prometheus.Desc, n float64, labels ...string) {
		m, err := prometheus.NewConstMetric(d, prometheus.GaugeValue, n, labels...)
		if err != nil {
			m = prometheus.NewInvalidMetric(d, err)
		}
		to <- m
	}
}

func (s stateCollector) collectPods(v *server.View, emit emitter) {
	var runningSandboxes, ephemeralContainers int
	desired, active := map[string]int{}, map[string]int{} // by the label static
	var containers server.ContainerCounts
	for _, p := range v.Pods {
		if p.Pod.DeletionTimestamp == nil || p.IsInSource { // a pod that is being deleted in the API server is still in its source
			desired[s.staticLabel(p.Pod)]++
			if s.isActive(p) {
				active[s.staticLabel(p.Pod)]++
			}
		}
		if p.SandboxID != "" {
			runningSandboxes++
		}
		ephemeralContainers += len(p.Pod.Spec.EphemeralContainers)
		containers.Created += p.RuntimeContainers.Created
		containers.Running += p.RuntimeContainers.Running
		containers.Exited += p.RuntimeContainers.Exited
		containers.Unknown += p.RuntimeContainers.Unknown
		emit(podReadyDesc, boolValue(p.Ready), p.Pod.Namespace, p.Pod.Name)
	}
	for _, static := range []string{"", "true"} {
		emit(desiredPodsDesc, float64(desired[static]), static)
		emit(activePodsDesc, float64(active[static]), static)
	}
	emit(runningPodsDesc, float64(runningSandboxes))
	emit(ephemeralContainersDesc, float64(ephemeralContainers))
	for state, n := range map[string]int{"created": containers.Created, "running": containers.Running, "exited": containers.Exited, "unknown": containers.Unknown} {
		emit(runningContainersDesc, float64(n), state)
	}
}

// collectProblems emits the number of problems. A decision that needs action by a user is also
// counted as a problem. The source of a problem is the path of the file that contains the problem
// or the pod. If there is no file, the source is the node.
func (s sources) collectProblems(v *server.View, emit emitter) {
	type key struct{ source, reason string }
	counts := map[key]int{}
	for _, f := range v.Files {
		counts[key{s.label(f.Path), "error"}] = 0 // with this 0, the PromQL function increase() counts the first error
	}
	for _, p := range v.Problems {
		counts[key{s.label(p.Path), p.Severity}]++
	}
	for _, p := range v.Pods {
		if p.NeedsUser {
			counts[key{s.label(p.Path), cmp.Or(p.WhyRule, p.Rule)}]++
		}
		for _, step := range p.Decisions {
			if step.NeedsUser && !p.NeedsUser {
				counts[key{s.label(p.Path), cmp.Or(step.Reason, step.Rule)}]++
			}
		}
	}
	for k, n := range counts {
		emit(problemsDesc, float64(n), k.source, k.reason)
	}
}

// collectFiles emits the state of each file. For files with the same label it emits the oldest
// content time, and whether any of the files is outdated.
func (s sources) collectFiles(v *server.View, emit emitter) {
	contentTimes, isOutdated := map[string]time.Time{}, map[string]bool{}
	for _, f := range v.Files {
		source := s.label(f.Path)
		isOutdated[source] = isOutdated[source] || f.OutdatedReason != ""
		if oldestTime := contentTimes[source]; !f.ContentTime.IsZero() && (oldestTime.IsZero() || f.ContentTime.Before(oldestTime)) {
			contentTimes[source] = f.ContentTime
		}
	}
	for source, t := range contentTimes {
		emit(contentTimeDesc, unixSeconds(t), source)
	}
	for source, outdated := range isOutdated {
		emit(outdatedFileDesc, boolValue(outdated), source)
	}
}

// boolValue returns 1 for true and 0 for false.
func boolValue(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func unixSeconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }
