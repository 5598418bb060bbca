package daemon

import (
	"errors"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	crierrors "k8s.io/cri-api/pkg/errors"

	"podd/manifest"
	"podd/reconcile/cgroup"
	"podd/reconcile/clock"
	"podd/reconcile/effect"
	"podd/reconcile/plan"
	"podd/reconcile/render"
	"podd/reconcile/volume"
	"podd/reconcile/volume/selinux"
	"podd/runtime"
	"podd/server/metrics"
)

// newMetrics returns podd's own metrics. startTime is the time at which podd started, credentialHash is
// config.Images.CredentialProviderHash, and hasCluster reports whether the node belongs to a cluster.
func newMetrics(on render.Node, startTime time.Time, credentialHash string, hasCluster bool) *metrics.Metrics {
	version := 1
	if on.UsesCgroupV2 {
		version = 2
	}
	return metrics.New(metrics.Options{
		CgroupVersion: version, KubernetesVersion: manifest.KubernetesVersion, NotAdmittedRule: string(plan.RuleNotAdmitted),
		AdmittedPhases: []string{string(plan.PhasePrepare), string(plan.PhaseInit), string(plan.PhaseRun)},
		IsStatic:       isStatic, CredentialConfigHash: credentialHash, BootTime: clock.BootTime(), StartTime: startTime, HasCluster: hasCluster,
	})
}

// isStatic reports whether a pod comes from a file or URL.
func isStatic(p *v1.Pod) bool {
	return !manifest.KindTraits(p.Annotations[manifest.AnnotationConfigSource]).HasStateAtSource
}

// protectionRecorder returns a function that records in m how much memory the kernel protects for the
// requests of all pods. The function is nil if the kernel protects none.
func protectionRecorder(on render.Node, m *metrics.Metrics) func(render.QOSRequests) {
	if !on.UsesCgroupV2 || !on.MemoryQoS.ReservesRequests {
		return nil
	}
	return func(sum render.QOSRequests) { m.SetMemoryProtection(sum.GuaranteedMemory, sum.BurstableMemory) }
}

// labelRecorder returns a function that adds the result of mounting a volume with an SELinux label to m.
func labelRecorder(m *metrics.Metrics) func(volume.LabelResult) {
	results := map[selinux.ErrorKind]metrics.VolumeLabelResult{
		selinux.InvalidLabel: metrics.LabelInvalid, selinux.DifferentLabels: metrics.LabelsDiffer, selinux.Conflict: metrics.LabelConflicted,
	}
	return func(r volume.LabelResult) {
		l := metrics.VolumeLabel{Plugin: r.Plugin, AccessMode: r.AccessMode, Result: metrics.LabelMounted, IsErrorIgnored: r.IsErrorIgnored}
		if r.Err != nil {
			l.Result = results[r.Err.Kind]
		}
		m.RecordVolumeLabel(l)
	}
}

// outcomeCounter returns a function that adds the outcome of an effect to m. classes contains the handlers of
// RuntimeClasses by name.
func outcomeCounter(m *metrics.Metrics, classes map[string]string) func(effect.Outcome) {
	return func(o effect.Outcome) {
		now := time.Now()
		if operation := operationType(o.Action); operation != "" {
			m.RecordAction(operation, o.Took)
			if operation == metrics.OperationCreate && o.Pod != nil {
				m.RecordFirstAction(o.Pod.UID, now.Add(-o.Took))
			}
		}
		switch a := o.Action.(type) {
		case plan.EnsureImage:
			if o.Pod != nil && (o.Pull != nil || o.Err != nil) {
				m.RecordPullTime(o.Pod.UID, now.Add(-o.Took), now)
			}
			if o.Err == nil && o.Pull != nil {
				m.RecordPull(o.Pull.Size, o.Pull.Took)
			}
			if o.Reason != "" && !o.Canceled && !a.ForSuccessor {
				m.RecordImageError(containerType(o.Pod, a.Container), o.Reason)
			}
		case plan.RunSandbox:
			m.RecordSandbox(newSandbox(o, classes))
		case plan.StartContainer:
			m.RecordContainerStart(uidOf(o.Pod), containerType(o.Pod, a.Container), o.Reason)
			m.RecordImageVolumes(imageVolumes(o, a.Container))
		case plan.ResizeContainer, plan.ResizePod:
			m.RecordResize(o.Took, o.Err)
		case plan.RunPostStart:
			if o.HookPlainHost != "" {
				m.RecordPlainHook()
			}
			if o.Err != nil && !o.Canceled && !errors.Is(o.Err, runtime.ErrUnavailable) { // an unavailable hook is called again
				m.RecordPostStartError(containerType(o.Pod, a.Container))
			}
		case plan.RunPreStop:
			if o.HookPlainHost != "" {
				m.RecordPlainHook()
			}
		case plan.RunProbe:
			m.RecordProbe(metrics.Probe{
				Pod: o.Key, UID: uidOf(o.Pod), Container: a.Container, Kind: string(a.Kind), Passed: o.ProbePassed, Duration: o.Took, Err: o.Err,
			})
		}
	}
}

// operationType returns the kubelet's operation type for an action, or "" if the action
// only reads.
func operationType(a plan.Action) string {
	switch a.(type) {
	case plan.EnsureImage, plan.PrepareVolumes, plan.RunSandbox, plan.StartContainer:
		return metrics.OperationCreate
	case plan.ResizeContainer, plan.ResizePod:
		return metrics.OperationUpdate
	case plan.UpdateVolumes, plan.CheckVolumes, plan.RunPostStart:
		return metrics.OperationSync
	case plan.RunPreStop, plan.StopContainer, plan.StopSandbox, plan.StopForeign,
		plan.RemoveContainer, plan.RemoveSandbox, plan.KillProcesses, plan.ReleaseVolumes, plan.ReleaseResources, plan.RemoveDir:
		return metrics.OperationKill
	}
	return ""
}

// cgroupMaker returns a function that calls cgroup.Create and adds the duration of the call to m.
func cgroupMaker(m *metrics.Metrics) func(render.Cgroup) error {
	return func(c render.Cgroup) error {
		startTime := time.Now()
		err := cgroup.Create(c)
		m.RecordCgroup("create", time.Since(startTime))
		return err
	}
}

// pullNotifier returns a function that calls next with each outcome. After a pull, the returned
// function also sends a value to the channel pulled, so that podd lists the images of the runtime.
func pullNotifier(pulled chan<- struct{}, next func(effect.Outcome)) func(effect.Outcome) {
	return func(o effect.Outcome) {
		next(o)
		if o.Pull == nil {
			return
		}
		select {
		case pulled <- struct{}{}:
		default: // a notification is already pending
		}
	}
}

// uidOf returns the UID of a pod, or "".
func uidOf(p *manifest.Pod) types.UID {
	if p == nil {
		return ""
	}
	return p.UID
}

// newSandbox returns the attempt to create a sandbox whose outcome is o.
func newSandbox(o effect.Outcome, classes map[string]string) metrics.Sandbox {
	s := metrics.Sandbox{UID: uidOf(o.Pod), Err: o.Err, Canceled: o.Canceled}
	if o.Pod != nil {
		s.Handler, s.HasUserNamespace = o.Pod.RuntimeHandler(classes), manifest.HasUserNamespace(&o.Pod.Object.Spec)
	}
	if c := o.SandboxCall; c != nil {
		s.Call = &metrics.Call{Duration: c.Took, Err: c.Err}
	}
	return s
}

// containerType returns the kubelet's name for the type of a container.
func containerType(p *manifest.Pod, container string) string {
	if p == nil {
		return "container"
	}
	spec := &p.Object.Spec
	switch {
	case slices.ContainsFunc(spec.InitContainers, func(c v1.Container) bool { return c.Name == container }):
		return "init_container"
	case slices.ContainsFunc(spec.EphemeralContainers, func(c v1.EphemeralContainer) bool { return c.Name == container }):
		return "ephemeral_container"
	}
	return "container"
}

// imageVolumes returns the image volumes of a container whose start has the outcome o.
func imageVolumes(o effect.Outcome, container string) metrics.ImageVolumes {
	if o.Pod == nil {
		return metrics.ImageVolumes{}
	}
	spec := &o.Pod.Object.Spec
	c, _, _ := plan.FindContainer(o.Pod.Object, container)
	if c == nil {
		return metrics.ImageVolumes{}
	}
	v := metrics.ImageVolumes{
		HasStarted:     o.Err == nil,
		HasMountFailed: o.Err != nil && strings.Contains(o.Err.Error(), crierrors.ErrImageVolumeMountFailed.Error()),
	}
	mountedVolumes := map[string]bool{}
	for _, m := range c.VolumeMounts {
		isImage := func(v v1.Volume) bool { return v.Name == m.Name && v.Image != nil }
		if slices.ContainsFunc(spec.Volumes, isImage) {
			v.Mounts++
			mountedVolumes[m.Name] = true
		}
	}
	v.Volumes = len(mountedVolumes)
	return v
}
