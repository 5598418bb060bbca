package metrics

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/server"
)

// podCounts contains the metrics about sandboxes, containers, images and plan rules.
type podCounts struct {
	startedPods, podErrors             prometheus.Counter
	userNamespaces                     userNamespaceCounts
	sandboxDuration                    *prometheus.HistogramVec
	sandboxErrors                      *prometheus.CounterVec
	startedContainers, containerErrors *prometheus.CounterVec
	terminatedContainers               *prometheus.CounterVec
	pullDuration                       *prometheus.HistogramVec
	ensuredImages, verifiedImages      *prometheus.CounterVec
	collectedImages                    *prometheus.CounterVec
	imageVolumes                       imageVolumeCounts
	evictions, preemptions             *prometheus.CounterVec
	evictionStatsAge                   *prometheus.HistogramVec
	ruleChanges                        *prometheus.CounterVec
}

func newPodCounts() podCounts {
	return podCounts{
		startedPods:          newCounter("kubelet_started_pods_total", "Attempts to create a pod sandbox."),
		podErrors:            newCounter("kubelet_started_pods_errors_total", "Failed attempts to create a pod sandbox."),
		userNamespaces:       newUserNamespaceCounts(),
		sandboxDuration:      newHistogramVec("kubelet_run_podsandbox_duration_seconds", "Duration in seconds of the calls that create a pod sandbox, by runtime handler.", prometheus.DefBuckets, "runtime_handler"),
		sandboxErrors:        newCounterVec("kubelet_run_podsandbox_errors_total", "Failed calls that create a pod sandbox, by runtime handler.", "runtime_handler"),
		startedContainers:    newCounterVec("kubelet_started_containers_total", "Attempts to start a container.", "container_type"),
		containerErrors:      newCounterVec("kubelet_started_containers_errors_total", "Failed attempts to start a container.", "container_type", "code"),
		pullDuration:         newHistogramVec("kubelet_image_pull_duration_seconds", "Duration in seconds of image pulls.", pullBuckets, "image_size_in_bytes"),
		terminatedContainers: newCounterVec("kubelet_terminated_containers_total", "Terminated containers.", "container_type", "exit_code", "reason"),
		ensuredImages:        newCounterVec("kubelet_image_manager_ensure_image_requests_total", "Image presence checks before container starts, by pull policy and result.", "pull_policy", "present_locally", "pull_required"),
		collectedImages:      newCounterVec("kubelet_image_garbage_collected_total", "Unused images that were removed to free disk space or because of their age, by reason.", "reason"),
		verifiedImages:       newCounterVec("kubelet_imagemanager_image_mustpull_checks_total", "Checks whether a pod may use an image that is present, by the result.", "result"),
		imageVolumes:         newImageVolumeCounts(),
		evictions:            newCounterVec("kubelet_evictions", "Evicted pods, by the signal that caused the eviction.", "eviction_signal"),
		evictionStatsAge:     newHistogramVec("kubelet_eviction_stats_age_seconds", "Time in seconds from the observation of a resource until a pod is evicted because of it, by the signal.", prometheus.DefBuckets, "eviction_signal"),
		preemptions:          newCounterVec("kubelet_preemptions", "Preempted pods, by the first resource that was insufficient for the critical pod.", "preemption_signal"),
		ruleChanges:          newCounterVec("podd_rule_matches_total", "Number of changes of the plan rule that applies to a pod, by the ID of the new rule.", "rule"),
	}
}

func (c podCounts) collectors() []prometheus.Collector {
	return append(append(c.imageVolumes.collectors(), c.userNamespaces.collectors()...),
		c.startedPods, c.podErrors, c.sandboxDuration, c.sandboxErrors, c.startedContainers, c.containerErrors, c.terminatedContainers,
		c.pullDuration, c.ensuredImages, c.verifiedImages, c.collectedImages, c.evictions, c.evictionStatsAge, c.preemptions, c.ruleChanges,
	)
}

// A Sandbox is an attempt to create a sandbox.
type Sandbox struct {
	UID              types.UID // of the pod
	Handler          string    // "" for the runtime's default
	HasUserNamespace bool
	Err              error
	Canceled         bool  // whether Err is set because the pod was deleted in the meantime
	Call             *Call // the last call of RunPodSandbox; nil if there was none
}

// A Call is a call of the runtime.
type Call struct {
	Duration time.Duration
	Err      error
}

// RecordSandbox records an attempt to create a sandbox. As in the kubelet, an attempt that failed after the
// runtime created the sandbox, because a query of the sandbox failed, is no failed start of a pod.
func (c podCounts) RecordSandbox(s Sandbox) {
	c.startedPods.Inc()
	hasSandbox := s.Call != nil && s.Call.Err == nil
	if s.Err != nil && !s.Canceled && !hasSandbox {
		c.podErrors.Inc()
	}
	if s.HasUserNamespace {
		c.userNamespaces.recordSandbox(s)
	}
	if s.Call == nil {
		return
	}
	c.sandboxDuration.WithLabelValues(s.Handler).Observe(s.Call.Duration.Seconds())
	if s.Call.Err != nil {
		c.sandboxErrors.WithLabelValues(s.Handler).Inc()
	}
}

// RecordContainerStart records an attempt to start a container of the pod with this UID. kind is
// "container", "init_container" or "ephemeral_container". reason is "" if the container started.
// Otherwise it is the reason in the container's status, such as "RunContainerError".
func (c podCounts) RecordContainerStart(uid types.UID, kind, reason string) {
	c.userNamespaces.recordContainerStart(uid, reason != "")
	c.startedContainers.WithLabelValues(kind).Inc()
	if reason != "" {
		c.containerErrors.WithLabelValues(kind, reason).Inc()
	}
}

// RecordImageError records an attempt to start a container that failed because of its image. kind is as in
// RecordContainerStart, and reason is the reason in the container's status, such as "ErrImagePull".
func (c podCounts) RecordImageError(kind, reason string) {
	c.startedContainers.WithLabelValues(kind).Inc()
	c.containerErrors.WithLabelValues(kind, reason).Inc()
}

// RecordPostStartError records that the postStart hook of a container has failed. Like the kubelet, it counts
// the start of the container as failed.
func (c podCounts) RecordPostStartError(kind string) {
	c.containerErrors.WithLabelValues(kind, "PostStartHookError").Inc()
}

// RecordPull records a successful image pull. size is in bytes.
func (c podCounts) RecordPull(size uint64, duration time.Duration) {
	c.pullDuration.WithLabelValues(sizeBucket(size)).Observe(duration.Seconds())
}

// RecordEnsureImage records a check whether an image is present on the node. policy is the pull
// policy of the image. isPresent reports whether the image was present, and mustPull reports whether
// the image must be pulled. A nil pointer means that the value is unknown.
func (c podCounts) RecordEnsureImage(policy string, isPresent, mustPull *bool) {
	c.ensuredImages.WithLabelValues(strings.ToLower(policy), boolLabel(isPresent), boolLabel(mustPull)).Inc()
}

// RecordCollectedImage records that the image garbage collection has removed an image. reason is
// "space" or "age".
func (c podCounts) RecordCollectedImage(reason string) {
	c.collectedImages.WithLabelValues(reason).Inc()
}

// RecordEvictionStatsAge records that a pod is evicted because of a signal, such as
// "memory.available". age is the time since the amount of the signal was observed.
func (c podCounts) RecordEvictionStatsAge(signal string, age time.Duration) {
	c.evictionStatsAge.WithLabelValues(signal).Observe(age.Seconds())
}

// RecordVerifyImage records a check whether a pod may use an image that is present.
func (c podCounts) RecordVerifyImage(result string) { c.verifiedImages.WithLabelValues(result).Inc() }

// boolLabel returns the kubelet's label for a value that may be unknown.
func boolLabel(b *bool) string {
	if b == nil {
		return "unknown"
	}
	return strconv.FormatBool(*b)
}

// sizeBucket returns the kubelet's label for an image size.
func sizeBucket(size uint64) string {
	for _, b := range []struct {
		below uint64
		label string
	}{
		{10 << 20, "0-10MB"}, {100 << 20, "10MB-100MB"}, {500 << 20, "100MB-500MB"}, {1 << 30, "500MB-1GB"},
		{5 << 30, "1GB-5GB"}, {10 << 30, "5GB-10GB"}, {20 << 30, "10GB-20GB"}, {30 << 30, "20GB-30GB"},
		{40 << 30, "30GB-40GB"}, {60 << 30, "40GB-60GB"}, {100 << 30, "60GB-100GB"},
	} {
		if size < b.below {
			return b.label
		}
	}
	return "GT100GB"
}

// update counts terminated containers, evictions, preemptions and changes of a pod's rule; see
// Metrics.UpdatePod.
func (c podCounts) update(before, after *server.PodView) {
	if after.Rule != "" && (before == nil || before.Rule != after.Rule) {
		c.ruleChanges.WithLabelValues(after.Rule).Inc()
	}
	if before == nil || before.Pod.UID != after.Pod.UID {
		return
	}
	// A pod that is not admitted under node pressure has the same reason, but no signal.
	if before.Pod.Status.Reason != evicted && after.Pod.Status.Reason == evicted && after.EvictionSignal != "" {
		c.evictions.WithLabelValues(after.EvictionSignal).Inc()
	}
	if before.Pod.Status.Reason != preempted && after.Pod.Status.Reason == preempted {
		c.preemptions.WithLabelValues(after.PreemptionSignal).Inc()
	}
	oldStatus, newStatus := &before.Pod.Status, &after.Pod.Status
	c.countTerminations("init_container", oldStatus.InitContainerStatuses, newStatus.InitContainerStatuses)
	c.countTerminations("container", oldStatus.ContainerStatuses, newStatus.ContainerStatuses)
	c.countTerminations("ephemeral_container", oldStatus.EphemeralContainerStatuses, newStatus.EphemeralContainerStatuses)
}

// countTerminations counts the containers that terminated between two versions of a pod's container
// statuses. It ignores a container without an earlier status, because this container may have
// terminated before podd started.
func (c podCounts) countTerminations(kind string, before, after []v1.ContainerStatus) {
	for i := range after {
		oldIndex := slices.IndexFunc(before, func(s v1.ContainerStatus) bool { return s.Name == after[i].Name })
		t := lastTermination(&after[i])
		if oldIndex < 0 || t == nil {
			continue
		}
		if oldTermination := lastTermination(&before[oldIndex]); oldTermination != nil && oldTermination.ContainerID == t.ContainerID && oldTermination.FinishedAt.Equal(&t.FinishedAt) {
			continue
		}
		c.terminatedContainers.WithLabelValues(kind, strconv.Itoa(int(t.ExitCode)), t.Reason).Inc()
	}
}

// lastTermination returns the last termination of a container, or nil if the container has never
// terminated.
func lastTermination(s *v1.ContainerStatus) *v1.ContainerStateTerminated {
	if s.State.Terminated != nil {
		return s.State.Terminated
	}
	return s.LastTerminationState.Terminated
}

// Reasons of pods that the node has stopped. The names are those of the kubelet.
const (
	evicted   = "Evicted"
	preempted = "Preempting"
)
