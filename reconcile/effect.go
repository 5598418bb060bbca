package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/manifest"
	"podd/reconcile/device"
	"podd/reconcile/event"
	"podd/reconcile/plan"
	"podd/reconcile/probe"
	"podd/reconcile/render"
	"podd/runtime"
)

// Runtime is the part of a CRI runtime that effects use. Stopping and removing
// what is already gone succeeds.
type Runtime interface {
	RunPodSandbox(ctx context.Context, config *cri.PodSandboxConfig, handler string) (string, error)
	PodSandboxStatus(ctx context.Context, id string) (runtime.Sandbox, error)
	StopPodSandbox(ctx context.Context, id string) error
	RemovePodSandbox(ctx context.Context, id string) error
	CreateContainer(ctx context.Context, sandboxID string, config *cri.ContainerConfig, sandbox *cri.PodSandboxConfig) (string, error)
	StartContainer(ctx context.Context, id string) error
	StopContainer(ctx context.Context, id string, grace time.Duration) error
	RemoveContainer(ctx context.Context, id string) error
	ContainerStatus(ctx context.Context, id string) (runtime.Container, error)
	UpdateContainerResources(ctx context.Context, id string, linux *cri.LinuxContainerResources) error
	// ContainerResources is nil where the runtime does not tell.
	ContainerResources(ctx context.Context, id string) (*runtime.Resources, error)
	// ContainerMemory is its working set in bytes.
	ContainerMemory(ctx context.Context, id string) (int64, error)
	SandboxContainers(ctx context.Context, sandboxID string) ([]runtime.Container, error)
	ImageStatus(ctx context.Context, image string) (runtime.Image, bool, error)
	ExecSync(ctx context.Context, id string, command []string, timeout time.Duration, limit int) (runtime.ExecResult, error)
}

// Images makes images present, with secrets as further credentials of the
// registry. A failed pull is a *runtime.PullError, within a *Later that says when
// another try makes sense. Pulling is called once a registry is to be asked, or is
// already being asked for somebody else.
type Images interface {
	Ensure(ctx context.Context, image, policy string, secrets []*v1.Secret, pulling func()) (Image, error)
}

// Image is one that is present.
type Image struct {
	// Ref is what containers are created from, Warning what of it is not as the
	// policy asked, or "".
	Ref, Warning string
	// User is who Ref runs as; nil: nobody has looked.
	User *runtime.ImageUser
	// Pull is how it was fetched; nil: it was there.
	Pull *event.Pull
}

// Disk is what podd keeps of pods on disk.
type Disk interface {
	// Prepare makes the pod's volumes, brings those with files to what is said of
	// them, and returns their host paths by name.
	Prepare(ctx context.Context, pod *manifest.Pod, of render.Volumes) (map[string]string, error)
	// BindSubPaths opens what of the volumes, whose host paths are given, a
	// container mounts only a part of, and returns where that is mounted for it,
	// by the number of the volumeMount. Links in a volume lead nowhere else.
	BindSubPaths(ctx context.Context, pod *manifest.Pod, container string, volumes map[string]string, subs []render.SubPath) (map[int]string, error)
	// WriteFile puts a file into the pod's directory and returns its path.
	WriteFile(uid types.UID, name, text string) (path string, err error)
	// MakeMessage makes the empty file that a start of a container may leave a
	// termination message in, and returns its path; Message reads its end, and is
	// fs.ErrNotExist when there is none.
	MakeMessage(uid types.UID, container string, attempt uint32) (path string, err error)
	Message(uid types.UID, container string, attempt uint32) (string, error)
	// Check makes nothing and tells what would keep Prepare from succeeding once
	// the pods of ended, earlier versions of this one, have ended.
	Check(ctx context.Context, pod *manifest.Pod, of render.Volumes, ended []types.UID) error
	// Release removes the volumes and keeps the directory.
	Release(ctx context.Context, uid types.UID) error
	// Remove removes the directory with all that is in it.
	Remove(ctx context.Context, uid types.UID) error
}

// Leftovers are what a gone or restarted pod leaves outside its directory.
type Leftovers interface {
	// NextAttempts has, for each container with logs, one more than the
	// greatest attempt number among them.
	NextAttempts(pod *manifest.Pod) (map[string]uint32, error)
	// Started links the log of a started container where agents look for it
	// and forgets logs older than that of the attempt before.
	Started(pod *manifest.Pod, container, id string, attempt uint32) error
	// LastLines is the end of what a start of a container logged, "" for nothing.
	LastLines(ctx context.Context, key types.NamespacedName, uid types.UID, container string, attempt uint32) (string, error)
	// Remove removes logs, links and cgroups of a pod that is gone.
	Remove(ctx context.Context, key types.NamespacedName, uid types.UID) error
}

// Devices gives pods those of device plugins, as a *device.Ledger does.
type Devices interface {
	Use(ctx context.Context, pod *manifest.Pod, container string) (grants []device.Grant, done func(), err error)
	PreStart(ctx context.Context, container string, grants []device.Grant) error
}

// Later is a failure with the moment of the next try.
type Later struct {
	Until time.Time
	Err   error
}

func (e *Later) Error() string { return e.Err.Error() }

// Unwrap returns the failure itself.
func (e *Later) Unwrap() error { return e.Err }

// Effects do what plans say, each call one action. Safe for concurrent use.
type Effects struct {
	Runtime   Runtime
	Images    Images
	Disk      Disk
	Leftovers Leftovers
	Gate      *Gate
	// EndShim ends the runtime's own process beside a stopped sandbox that it
	// cannot remove, and tells whether there was one; nil: nobody can.
	EndShim func(sandboxID string) (bool, error)
	// MakeCgroup makes and limits a pod's cgroup; nil: the runtime makes it, without
	// limits.
	MakeCgroup func(render.Cgroup) error
	// Devices are those of device plugins; nil: none are served.
	Devices Devices
	// DNS is the node's now; nil: that of render.Node.
	DNS func() (render.DNS, error)
	// Done is told of every effect that ended, by its own goroutine, and must not
	// block; nil: nobody is.
	Done func(Outcome)
}

// scene is what an effect may look at: immutable values of its worker.
type scene struct {
	key        types.NamespacedName
	desired    *manifest.Pod // as plan.Allocated
	actual     *manifest.Pod // as plan.Actual
	unsized    bool          // as plan.Unsized
	successor  *manifest.Pod
	leaving    *manifest.Pod    // as plan.Input
	supply     *manifest.Supply // of desired
	nextSupply *manifest.Supply
	observed   []runtime.Incarnation
	node       *render.Node
	userIDs    uint32 // for a sandbox to be made, see render.SandboxInput
	// pulling tells amid an action that its image begins to be fetched.
	pulling func(context.Context, plan.EnsureImage, event.Event)
}

// version is the one of the scene whose volumes are asked about.
func (s scene) version(a plan.CheckVolumes) *manifest.Pod {
	if p := s.successor; p != nil && p.UID == a.UID && p.Hash == a.Hash {
		return p
	}
	return s.desired
}

// before are the pods of earlier versions, which end before p starts.
func (s scene) before(p *manifest.Pod) []types.UID {
	var ended []types.UID
	for _, earlier := range []*manifest.Pod{s.desired, s.leaving} {
		if earlier != nil && earlier != p {
			ended = append(ended, earlier.UID)
		}
	}
	for i := range s.observed {
		ended = append(ended, s.observed[i].UID)
	}
	return ended
}

// versionOf is what a container was made from; nil when that is not known.
func (s scene) versionOf(container string) *manifest.Pod {
	inc, _ := findRecord(s.observed, container)
	if inc == nil {
		return nil
	}
	return plan.VersionOf(inc, s.desired, s.leaving)
}

// fact is what came of an action.
type fact struct {
	action plan.Action
	err    error
	began  time.Time
	ended  time.Time

	version    *manifest.Pod       // the version the action was for, as allocated, or nil
	supply     *manifest.Supply    // of version, as the action had it
	sandbox    *runtime.Sandbox    // as made
	container  *runtime.Container  // as started or stopped
	containers []runtime.Container // as their sandbox's end left them
	ref        string              // of the image
	user       *runtime.ImageUser  // likewise; nil: nobody has looked
	pull       *event.Pull         // of it; nil: it was there
	tried      bool                // a registry was to be asked for it
	warning    string              // what is not quite as it should be
	attempts   map[string]uint32   // lowest free attempt numbers
	probe      probe.Result
	said       string // the termination message
	written    string // the plan.Objects.Files of volumes as written
}

// of tells whether the action was for a version; p may be nil.
func (f fact) of(p *manifest.Pod) bool {
	return p != nil && f.version != nil && sameVersion(f.version, p)
}

// do carries out one action. It returns when the action has ended one way or
// the other, at the latest soon after ctx is done.
func (e *Effects) do(ctx context.Context, a plan.Action, s scene) fact {
	f := fact{action: a, version: s.desired, began: time.Now()}
	switch a := a.(type) {
	case plan.EnsureImage:
		if a.Successor {
			f.version = s.successor
		}
		e.ensure(ctx, s, a, &f)
	case plan.PrepareVolumes:
		f.written = s.written()
		f.attempts, f.err = e.prepare(ctx, s)
	case plan.UpdateVolumes:
		f.written = s.written()
		_, f.err = e.Disk.Prepare(ctx, s.desired, s.volumes(s.desired))
	case plan.CheckVolumes:
		p := s.version(a)
		f.err = e.checkVolumes(ctx, s, p)
	case plan.RunSandbox:
		f.sandbox, f.err = e.runSandbox(ctx, s, a)
	case plan.StartContainer:
		f.container, f.warning, f.err = e.start(ctx, s, a)
	case plan.ResizeContainer:
		f.err = e.resizeContainer(ctx, s, a)
	case plan.ResizePod:
		f.err = e.limitPod(render.PodCgroup(s.desired, *s.node))
	case plan.StopContainer:
		f.container, f.err = e.stop(ctx, a)
	case plan.Probe:
		f.version = s.versionOf(a.ID)
		f.probe, f.err = e.probe(ctx, s, f.version, a)
	case plan.PostStart:
		f.err = e.postStart(ctx, s, a)
	case plan.PreStop:
		f.err = e.preStop(ctx, s, a)
	case plan.ReadMessage:
		f.said = e.message(ctx, s, a)
	case plan.RemoveContainer:
		f.err = e.Runtime.RemoveContainer(ctx, a.ID)
	case plan.StopSandbox:
		f.containers, f.err = e.stopSandbox(ctx, s, a.ID)
	case plan.EndForeign:
		f.err = e.endForeign(ctx, a.ID)
	case plan.RemoveSandbox:
		f.err = e.removeSandbox(ctx, a.ID, a.Released)
	case plan.ReleaseVolumes:
		f.err = e.Disk.Release(ctx, a.UID)
	case plan.RemoveDir:
		// The directory goes last: its journal says whose the rest is.
		if f.err = e.Leftovers.Remove(ctx, s.key, a.UID); f.err == nil {
			f.err = e.Disk.Remove(ctx, a.UID)
		}
	}
	f.supply, f.ended = s.supplyFor(f.version), time.Now()
	if e.Done != nil {
		e.Done(f.outcome(s.key))
	}
	return f
}

// ensure gets an image with the credentials of the version that f is of.
func (e *Effects) ensure(ctx context.Context, s scene, a plan.EnsureImage, f *fact) {
	secrets, without := s.pullSecrets(f.version)
	image, err := e.Images.Ensure(ctx, a.Image, a.Policy, secrets, func() {
		f.tried = true
		s.pulling(ctx, a, event.Pulling(event.On(f.version, time.Now()), a))
	})
	if err != nil && without != "" {
		err = fmt.Errorf("%w%s", err, without)
	}
	f.ref, f.user, f.warning, f.pull, f.err = image.Ref, image.User, image.Warning, image.Pull, err
}

func (e *Effects) prepare(ctx context.Context, s scene) (map[string]uint32, error) {
	if err := render.CheckMounts(s.desired, *s.node); err != nil {
		return nil, err
	}
	if _, err := e.volumeImages(ctx, s, s.desired, false); err != nil {
		return nil, err
	}
	if _, err := e.Disk.Prepare(ctx, s.desired, s.volumes(s.desired)); err != nil {
		return nil, err
	}
	return e.Leftovers.NextAttempts(s.desired)
}

// stopSandbox ends a sandbox. How the containers of a wanted version ended is
// looked up, since a pod that runs to completion may depend on it.
func (e *Effects) stopSandbox(ctx context.Context, s scene, id string) ([]runtime.Container, error) {
	if err := e.Runtime.StopPodSandbox(ctx, id); err != nil {
		return nil, err
	}
	if s.desired == nil {
		return nil, nil
	}
	var ended []runtime.Container
	for i := range s.observed {
		inc := &s.observed[i]
		if inc.ID != id || inc.UID != s.desired.UID {
			continue
		}
		for _, c := range inc.Containers {
			if c.State == runtime.Exited {
				continue
			}
			now, err := e.Runtime.ContainerStatus(ctx, c.ID)
			switch {
			case err == nil:
				ended = append(ended, now)
			case !errors.Is(err, runtime.ErrNotFound):
				return nil, fmt.Errorf("looking how %s ended: %w", c.Name, err)
			}
		}
	}
	return ended, nil
}

// removeSandbox stops it first unless that was done: removing frees no address
// of a sandbox that died by itself.
func (e *Effects) removeSandbox(ctx context.Context, id string, released bool) error {
	if !released {
		if err := e.Runtime.StopPodSandbox(ctx, id); err != nil {
			return err
		}
	}
	err := e.Runtime.RemovePodSandbox(ctx, id)
	if errors.Is(err, runtime.ErrTaskLost) && e.EndShim != nil {
		// What the runtime then tidies up is removed the next time.
		_, lost := e.EndShim(id)
		err = errors.Join(err, lost)
	}
	return err
}
