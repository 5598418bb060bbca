package metrics

import (
	"cmp"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"

	"podd/server"
)

// stateOf tells what the published state shows now.
type stateOf struct {
	Options
	State server.Viewer
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	buildInfo = desc("kubernetes_build_info", "The Kubernetes version whose kubelet podd stands for, podd's own, and what built it.",
		"major", "minor", "git_version", "podd_version", "go_version", "compiler", "platform")
	nodeName       = desc("kubelet_node_name", "The node's name. The count is always 1.", "node")
	cgroups        = desc("kubelet_cgroup_version", "The version of the machine's control groups.")
	desiredPods    = desc("kubelet_desired_pods", "Pods that the sources want.", "static")
	activePods     = desc("kubelet_active_pods", "Pods that are wanted and not at their end.", "static")
	mirrorPods     = desc("kubelet_mirror_pods", "Pods that stand for one from a file or URL at an API server.")
	runningPods    = desc("kubelet_running_pods", "Pods that have a running sandbox.")
	running        = desc("kubelet_running_containers", "Containers, by their state.", "container_state")
	workingPods    = desc("kubelet_working_pods", "Pods that have a worker, by what they are at and whether they are wanted.", "lifecycle", "config", "static")
	ephemerals     = desc("kubelet_managed_ephemeral_containers", "Ephemeral containers of all pods.")
	volumes        = desc("volume_manager_total_volumes", "Volumes of pods, by their kind: wanted ones, and those that are there.", "plugin_name", "state")
	certificateTTL = desc("kubelet_certificate_manager_server_ttl_seconds", "How long the certificate of the kubelet's port is good for; +Inf where there is none.")
	problems       = desc("podd_problems", "What is to be mended: errors and warnings about manifests and the node, and pods that are held up.", "source", "reason")
	lastGood       = desc("podd_manifest_last_good_seconds", "When the content of a file or URL that is wanted came to be, in seconds since 1970.", "source")
	behind         = desc("podd_manifest_behind", "Whether what a file or URL has now is not what is wanted, because it is broken.", "source")
	podReady       = desc("podd_pod_ready", "Whether a pod does what its manifest asks for.", "namespace", "pod")
	descriptions   = []*prometheus.Desc{
		buildInfo, nodeName, cgroups, desiredPods, activePods, mirrorPods, runningPods, running,
		workingPods, ephemerals, volumes, certificateTTL, problems, lastGood, behind, podReady,
	}
)

// Describe implements prometheus.Collector.
func (s stateOf) Describe(to chan<- *prometheus.Desc) {
	for _, d := range descriptions {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (s stateOf) Collect(to chan<- prometheus.Metric) {
	tell := telling(to)
	v := s.State.View()
	major, minor := majorMinor(s.Kubernetes)
	tell(buildInfo, 1, major, minor, s.Kubernetes, v.Version, runtime.Version(), runtime.Compiler, runtime.GOOS+"/"+runtime.GOARCH)
	tell(nodeName, 1, v.Node)
	if s.CgroupVersion != 0 {
		tell(cgroups, float64(s.CgroupVersion))
	}
	mirrors := 0
	if s.Mirrors != nil {
		mirrors = s.Mirrors()
	}
	tell(mirrorPods, float64(mirrors))
	tell(certificateTTL, left(s.Certificate, time.Now()))
	tellPods(v, tell)
	tellWorking(v, tell)
	tellVolumes(v, tell)
	of := sourcesOf(v)
	of.tellProblems(v, tell)
	of.tellFiles(v, tell)
}

// majorMinor are the first two numbers of a version, "v1.34.4".
func majorMinor(version string) (major, minor string) {
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ = strings.Cut(rest, ".")
	return major, minor
}

type teller func(d *prometheus.Desc, n float64, labels ...string)

// telling is a teller of gauges.
func telling(to chan<- prometheus.Metric) teller {
	return func(d *prometheus.Desc, n float64, labels ...string) {
		m, err := prometheus.NewConstMetric(d, prometheus.GaugeValue, n, labels...)
		if err != nil {
			m = prometheus.NewInvalidMetric(d, err)
		}
		to <- m
	}
}

func tellPods(v *server.View, tell teller) {
	var desired, active, live, ephemeral int
	states := map[string]int{"created": 0, "running": 0, "exited": 0, "unknown": 0}
	for _, p := range v.Pods {
		if p.Pod.DeletionTimestamp == nil {
			desired++
			if phase := p.Pod.Status.Phase; phase != v1.PodSucceeded && phase != v1.PodFailed {
				active++
			}
		}
		if p.Sandbox != "" {
			live++
		}
		ephemeral += len(p.Pod.Spec.EphemeralContainers)
		for c := range server.Statuses(p.Pod) {
			if word := stateWord(c); word != "" {
				states[word]++
			}
		}
		tell(podReady, number(p.Ready), p.Pod.Namespace, p.Pod.Name)
	}
	tell(desiredPods, float64(desired), "true")
	tell(activePods, float64(active), "true")
	tell(runningPods, float64(live))
	tell(ephemerals, float64(ephemeral))
	for state, n := range states {
		tell(running, float64(n), state)
	}
}

// stateWord is the runtime's word for a container's state; "" for one that
// there is not.
func stateWord(c *v1.ContainerStatus) string {
	switch {
	case c.State.Running != nil:
		return "running"
	case c.State.Terminated != nil:
		return "exited"
	case c.LastTerminationState.Terminated != nil:
		return "exited" // and waits for its next run
	}
	return ""
}

// tellProblems: a file is the source of what is wrong in it and of the pods it
// wants, the node of the rest.
func (s sources) tellProblems(v *server.View, tell teller) {
	type key struct{ source, reason string }
	counts := map[key]int{}
	for _, f := range v.Files {
		counts[key{s.label(f.Path), "error"}] = 0 // so that a first one is seen to rise
	}
	for _, p := range v.Problems {
		counts[key{s.label(p.Path), p.Severity}]++
	}
	for _, p := range v.Pods {
		if p.Problem {
			counts[key{s.label(p.Path), p.Rule}]++
		}
		for _, step := range p.Steps {
			if step.Problem && !p.Problem {
				counts[key{s.label(p.Path), cmp.Or(step.Reason, step.Rule)}]++
			}
		}
	}
	for k, n := range counts {
		tell(problems, float64(n), k.source, k.reason)
	}
}

// tellFiles: files that are alike as labels are told of as one, by its worst.
func (s sources) tellFiles(v *server.View, tell teller) {
	versions, late := map[string]time.Time{}, map[string]bool{}
	for _, f := range v.Files {
		source := s.label(f.Path)
		late[source] = late[source] || f.Behind != ""
		if old := versions[source]; !f.Version.IsZero() && (old.IsZero() || f.Version.Before(old)) {
			versions[source] = f.Version
		}
	}
	for source, t := range versions {
		tell(lastGood, seconds(t), source)
	}
	for source, is := range late {
		tell(behind, number(is), source)
	}
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func seconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }
