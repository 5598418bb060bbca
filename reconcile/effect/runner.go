package effect

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile/plan"
	"podd/reconcile/probe"
	"podd/reconcile/render"
	"podd/reconcile/result"
)

// A Runner carries out the actions of plans. It is safe for concurrent use.
type Runner struct {
	Runtime        Runtime
	Images         Images
	Disk           Disk
	LogsAndCgroups LogsAndCgroups
	Gate           *Gate
	// KillShim kills the shim process of a stopped sandbox that the runtime cannot remove. found
	// reports whether a shim process existed. If KillShim is nil, no shim is killed.
	KillShim func(sandboxID string) (found bool, err error)
	// MakeCgroup creates a pod's cgroup and sets its limits. If MakeCgroup is nil, the runtime
	// creates the cgroup, without limits.
	MakeCgroup func(render.Cgroup) error
	// ReadCgroup returns the current CPU and memory limits of a pod's cgroup, as cgroup.ReadLimits does.
	// If ReadCgroup is nil, they are unknown.
	ReadCgroup func(render.Cgroup) (render.Cgroup, error)
	// MeasureCgroupMemory returns the memory usage and the memory limit of a pod's cgroup in bytes.
	// The limit is 0 if there is none. If MeasureCgroupMemory is nil, the sum of the memory of the
	// containers is used instead.
	MeasureCgroupMemory func(render.Cgroup) (used, limit int64, err error)
	// UnkillableProcesses returns the processes of a pod that SIGKILL cannot terminate now, because
	// they are in an uninterruptible wait in the kernel. If UnkillableProcesses is nil, the errors
	// of stops do not mention such processes.
	UnkillableProcesses func(types.UID) []string
	// KillContainers kills the processes of containers without the runtime. uid is the UID of their pod,
	// and ids contains the IDs of the containers and of the sandbox. It returns an error if a process
	// remains in the cgroup of the pod when the deadline of ctx has passed. found reports whether one of
	// the IDs has a cgroup there. If none has, and wereFound is false, it returns an error. wereFound
	// reports whether an earlier call has found one. If KillContainers is nil, pods have no cgroups, and
	// podd cannot kill processes.
	KillContainers func(ctx context.Context, uid types.UID, ids []string, wereFound bool) (found bool, err error)
	// Devices provides the devices of device plugins; nil means that there are none.
	Devices Devices
	// DNS returns the current DNS configuration of the node. If DNS is nil, the configuration in
	// render.Node is used.
	DNS func() (render.DNS, error)
	// IsLocal reports whether the host has the address ip now. If IsLocal is nil, podd assumes that
	// the host has all addresses of the node.
	IsLocal func(ip string) bool
	// KeepsEarlierLogs reports whether the logs of all exited containers that the runtime lists are
	// kept. Otherwise only the logs of the last exited container of each name are kept.
	KeepsEarlierLogs bool
	// OnDone receives the outcome of every effect, on the goroutine of that effect. It must
	// not block. It may be nil.
	OnDone func(Outcome)

	resizes podLocks
}

// Do carries out action a and returns when the action has ended. If ctx is canceled, Do returns
// soon, unless a file system of the host hangs.
func (e *Runner) Do(ctx context.Context, a plan.Action, s Input) result.Result {
	r := result.Result{Action: a, Version: s.Desired, Began: time.Now()}
	e.carryOut(ctx, a, s, &r)
	r.Canceled = errors.Is(r.Err, context.Canceled)
	r.Refs, r.Ended = s.refsFor(r.Version), time.Now()
	if e.OnDone != nil {
		e.OnDone(newOutcome(s.Key, &r))
	}
	return r
}

// carryOut carries out action a. It sets the value, the warning and the error of r, and r.Version if the
// action concerns another version than the desired one.
func (e *Runner) carryOut(ctx context.Context, a plan.Action, s Input, r *result.Result) {
	switch a := a.(type) {
	case plan.EnsureImage:
		if a.ForSuccessor {
			r.Version = s.Successor
		}
		var image result.EnsuredImage
		image, r.Err = e.ensureImage(ctx, s, r.Version, a)
		r.Value, r.Warning = image, image.Warning
	case plan.PrepareVolumes:
		volumes := result.WrittenVolumes{FilesDigest: s.filesDigest()}
		volumes.Attempts, r.Err = e.prepareVolumes(ctx, s)
		r.Value = volumes
	case plan.UpdateVolumes:
		r.Value = result.WrittenVolumes{FilesDigest: s.filesDigest()}
		_, r.Err = e.Disk.Prepare(ctx, s.Desired, s.volumes(s.Desired))
	case plan.CheckVolumes:
		r.Err = e.checkVolumes(ctx, s, s.checkedVersion(a))
	case plan.RunSandbox:
		var sandbox result.CreatedSandbox
		sandbox, r.Err = e.runSandbox(ctx, s, a)
		r.Value = sandbox
	case plan.StartContainer:
		var started result.StartedContainer
		started.Container, r.Warning, r.Err = e.startContainer(ctx, s, a)
		r.Value = started
	case plan.ResizeContainer:
		r.Err = e.resizeContainer(ctx, s, a)
	case plan.ResizePod:
		r.Err = e.resizePod(ctx, s, a)
	case plan.StopContainer:
		var stopped result.StoppedContainer
		stopped.Container, r.Err = e.stopContainer(ctx, s.Observed, a)
		r.Value = stopped
	case plan.RunProbe:
		r.Version = s.versionOf(a.ID)
		var attempt probe.Result
		attempt, r.Err = e.probe(ctx, s, r.Version, a)
		r.Value = result.ProbeAttempt(attempt)
	case plan.RunPostStart:
		r.Value, r.Err = e.postStart(ctx, s, a)
	case plan.RunPreStop:
		r.Value, r.Err = e.preStop(ctx, s, a)
	case plan.ReadMessage:
		r.Value = result.TerminationMessage{Text: e.readTerminationMessage(ctx, s, a)}
	case plan.RemoveContainer:
		r.Err = e.removeContainer(ctx, s.Observed, a.ID)
	case plan.StopSandbox:
		var stopped result.StoppedSandbox
		stopped.Containers, r.Err = e.stopSandbox(ctx, s, a.ID)
		r.Value = stopped
	case plan.StopForeign:
		r.Err = e.stopForeign(ctx, a.ID)
	case plan.RemoveSandbox:
		r.Err = e.removeSandbox(ctx, s.Observed, a.ID, a.Released)
	case plan.KillProcesses:
		r.Value, r.Warning, r.Err = e.killProcesses(ctx, s.Observed, a)
	case plan.ReleaseVolumes:
		r.Err = e.Disk.Release(ctx, a.UID)
	case plan.ReleaseResources:
		r.Err = errors.Join(e.Disk.Release(ctx, a.UID), e.LogsAndCgroups.RemoveCgroup(ctx, a.UID))
	case plan.RemoveDir:
		// The directory is removed last, because only the journal in it contains the name
		// of the pod to which the logs, links and cgroups belong.
		if r.Err = e.LogsAndCgroups.Remove(ctx, s.Key, a.UID); r.Err == nil {
			r.Err = e.Disk.Remove(ctx, a.UID)
		}
	}
}
