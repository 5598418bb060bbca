package plan

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/runtime"
)

// A world is a node and the worker of one pod name, in memory. It carries out decisions and
// records the results, one step at a time.
type world struct {
	in Input
	// canceled contains the subjects of actions in progress that no decision contains any more.
	canceled map[string]bool
	// called contains the starts in progress that have called the runtime, by subject.
	called map[string]bool
	// used contains the UIDs of pods with canceled starts that have not returned.
	used []types.UID
	// began contains the start time of each action in progress.
	began map[string]time.Time
	// made contains the containers that were started since the last start of podd.
	made map[string]bool
	// version contains the version that each action in progress is for.
	version map[string]*manifest.Pod
	// alloc contains the same version as version, with its allocated sizes.
	alloc   map[string]*manifest.Pod
	sizes   map[string]string            // sizes of containers and sandboxes, by ID
	resized map[string]Size              // the sizes after resizes, as in the journal
	machine []runtime.Incarnation        // actual state, newest first
	images  map[string]error             // errors of image pulls; a pull without an entry succeeds
	volumes error                        // error of preparing volumes; nil means success
	failing map[string]string            // messages of failing probes, by subject; a probe without an entry passes
	probed  map[string]ContainerProbes   // results of probes, as in the journal
	hooks   map[string]PostStartState    // postStart hooks, as in the journal, by hash and container
	objects map[string]ReferencedObjects // objects that a version refers to, by hash of the version
	written map[types.UID]string         // the value of ReferencedObjects.FilesDigest for the files on disk, by pod UID
	past    map[types.UID]*PodEnd
	start   time.Time
	// skew is the error of the wall clock.
	skew time.Duration
	ids  int
	// termCode is the exit code of stopped containers.
	termCode int32
	starts   map[string]int       // number of starts, by container name
	since    map[string]time.Time // start time of each version, by hash
	messages string               // the path of containers' termination messages; "" for none
	added    added
	// unreported are exited containers, by ID, whose exit code the runtime does not
	// report.
	unreported map[string]bool
}

func newWorld() *world {
	w := &world{
		images: map[string]error{}, failing: map[string]string{}, hooks: map[string]PostStartState{}, past: map[types.UID]*PodEnd{}, canceled: map[string]bool{}, called: map[string]bool{}, began: map[string]time.Time{}, made: map[string]bool{}, version: map[string]*manifest.Pod{},
		start: time.Now(), termCode: 143, starts: map[string]int{}, since: map[string]time.Time{},
		alloc: map[string]*manifest.Pod{}, sizes: map[string]string{},
		objects: map[string]ReferencedObjects{}, written: map[types.UID]string{}, added: newAdded(), unreported: map[string]bool{},
	}
	w.in = Input{
		SourcesRead: true, Now: w.start, InFlight: map[string]Action{},
		Node: Node{RuntimeReachable: true, RuntimeReady: true, NetworkReady: true},
	}
	return w
}

// wall returns the time of the wall clock, without a monotonic reading.
func (w *world) wall() time.Time { return w.in.Now.Round(0).Add(w.skew) }

func (w *world) id(prefix string) string {
	w.ids++
	return prefix + strconv.Itoa(w.ids)
}

// order applies a new desired version, as a worker does; nil means that none is desired.
func (w *world) order(p *manifest.Pod) {
	switch {
	case p == nil:
		w.keepPrevious()
		w.in.Desired, w.in.Successor = nil, nil
	case w.in.Desired == nil:
		w.begin(p)
	case p.UID == w.in.Desired.UID && p.Hash == w.in.Desired.Hash:
		p = p.WithEphemeral(w.in.Desired.Object.Spec.EphemeralContainers)
		if p != w.in.Desired {
			w.retryResize(p)
		}
		w.in.Desired, w.in.Successor = p, nil
	default:
		w.in.Successor = p
	}
}

// retryResize makes failed resizes due now if their size differs from the size of p.
func (w *world) retryResize(p *manifest.Pod) {
	w.in.History.ResizePodFailure, w.in.Eviction = Failure{}, nil
	if !w.in.History.Finished.AppliesTo(p) {
		w.in.History.Finished = nil
	}
	for name := range w.in.History.Containers {
		w.container(name, func(h *ContainerHistory) { h.ResizeFailure = Failure{} })
	}
}

// keepPrevious keeps the desired version as the previous version while one of its sandboxes or
// containers runs.
func (w *world) keepPrevious() {
	if w.lives(w.in.Desired) {
		w.in.Previous = w.in.Desired
	}
}

// lives reports whether a sandbox or container of a version runs.
func (w *world) lives(p *manifest.Pod) bool {
	return slices.ContainsFunc(w.in.Observed, func(i runtime.Incarnation) bool { return IsCreatedFrom(&i, p) && IsLive(&i) })
}

// begin makes a version the desired version, with a new history.
func (w *world) begin(p *manifest.Pod) {
	w.keepPrevious()
	old := w.in.History
	h := History{Stopping: old.Stopping, Terminations: old.Terminations, ReleasedSandboxes: old.ReleasedSandboxes, CleanupFailures: old.CleanupFailures, VolumeCheck: old.VolumeCheck, ProbeStates: old.ProbeStates, Containers: map[string]ContainerHistory{}, Sizes: w.resized}
	for name, img := range old.SuccessorImages {
		h.Containers[name] = ContainerHistory{Image: img}
	}
	if fin := w.past[p.UID]; fin.AppliesTo(p) && (w.in.Node.ShuttingDown || !fin.Resumes) {
		h.Finished = fin
	}
	for _, c := range containersOf(&p.Object.Spec) {
		if hook, ok := w.hooks[p.Hash+c.Name]; ok {
			ch := h.Containers[c.Name]
			ch.PostStart = PostStartState{Attempt: hook.Attempt, Due: hook.Due, Failed: hook.Failed, Message: hook.Message}
			h.Containers[c.Name] = ch
		}
	}
	if _, known := w.since[p.Hash]; !known {
		w.since[p.Hash] = w.in.Now
	}
	h.StartTime = w.since[p.Hash]
	if w.probed != nil {
		h.ProbeStates, w.probed = w.probed, nil
	}
	w.in.Desired, w.in.Successor, w.in.History = p.WithEphemeral(w.added.pending[p.UID]), nil, h
}

// poddRestarts discards everything that is not in the runtime or the journal.
func (w *world) poddRestarts() {
	stopping := w.in.History.Stopping
	if stopping != nil {
		kept := *stopping
		kept.Since = kept.Since.Round(0) // the journal has no monotonic time
		stopping = &kept
	}
	p := w.in.Desired
	if w.in.Successor != nil {
		p = w.in.Successor
	}
	w.in.InFlight, w.canceled, w.called = map[string]Action{}, map[string]bool{}, map[string]bool{}
	w.use(nil)
	w.probed, w.made = map[string]ContainerProbes{}, map[string]bool{}
	for id, probed := range w.in.History.ProbeStates {
		kept := ContainerProbes{}
		for _, kind := range probeKinds {
			t := probed.State(kind)
			kept = kept.With(kind, ProbeState{Health: t.Health, Message: t.Message})
		}
		w.probed[id] = kept
	}
	terminations := map[string]Termination{}
	for id, e := range w.in.History.Terminations {
		e.Since = e.Since.Round(0)
		terminations[id] = e
	}
	w.in.History = History{Stopping: stopping, Terminations: terminations}
	for _, d := range w.in.PodDirs {
		if stopping == nil && w.past[d.UID] == nil {
			d.KeepUntil = w.in.Now.Add(10 * time.Second)
			w.setDir(d)
		}
	}
	w.in.Desired, w.in.Successor, w.in.Previous = nil, nil, nil
	if p != nil {
		w.begin(p.WithEphemeral(nil))
	}
	w.in.FirstObservedAt = w.in.Now
	w.observe()
}

// observe makes the actual state the observed state.
func (w *world) observe() {
	w.in.Observed = cloneAll(w.machine)
	for i := range w.in.Observed {
		for j := range w.in.Observed[i].Containers {
			if c := &w.in.Observed[i].Containers[j]; w.unreported[c.ID] && c.State == runtime.Exited {
				c.State, c.ExitCode, c.FinishedAt = runtime.ExitCodeUnknown, -1, time.Time{}
			}
		}
	}
	w.in.MayHaveUnobserved = false
	for _, d := range w.in.PodDirs {
		if slices.ContainsFunc(w.machine, func(i runtime.Incarnation) bool { return i.UID == d.UID }) {
			d.KeepUntil = time.Time{}
			w.setDir(d)
		}
	}
}

func cloneAll(all []runtime.Incarnation) []runtime.Incarnation {
	out := slices.Clone(all)
	for i := range out {
		out[i].Containers = slices.Clone(out[i].Containers)
	}
	return out
}

// decide returns the next decision and begins its actions.
func (w *world) decide() Decision {
	w.note()
	w.lookUp()
	d := Next(w.in)
	if d.UseSuccessor {
		w.begin(w.in.Successor)
		w.lookUp()
		d = Next(w.in)
	}
	if d.Resume {
		w.in.Eviction, w.in.History.Finished = nil, nil
		d = Next(w.in)
	}
	if d.CancelStarts && w.cancelStarts() {
		return w.decide()
	}
	if d.Stopping != nil {
		w.in.History.Stopping = d.Stopping
	}
	for id, e := range d.Terminations {
		w.in.History.Terminations = with(w.in.History.Terminations, id, e)
	}
	if d.Finished != nil {
		w.in.History.Finished = d.Finished
		w.past[d.Finished.UID] = d.Finished
	}
	w.in.InFlight = maps.Clone(w.in.InFlight)
	for subject, a := range w.in.InFlight {
		named := slices.ContainsFunc(d.Actions, func(b Action) bool { return IsSameOperation(a, b) })
		switch {
		case IsCancellable(a) && !named:
			w.canceled[subject] = true
		case IsHook(a):
			w.canceled[subject] = !named
		}
	}
	for _, a := range d.Actions {
		if _, busy := w.in.InFlight[a.Subject()]; busy {
			continue
		}
		if _, ok := a.(PrepareVolumes); ok {
			w.setDir(PodDir{UID: w.in.Desired.UID, Hash: w.in.Desired.Hash, MayHaveVolumes: true})
		}
		if a, ok := a.(StartContainer); ok && a.RunsPostStart {
			w.recordHook(a.Container, PostStartState{Attempt: a.Attempt, Due: true})
		}
		for id, size := range UncertainSizes(&w.in, a) {
			w.resized = with(w.resized, id, size)
			w.in.History.Sizes = w.resized
		}
		w.in.InFlight[a.Subject()], w.began[a.Subject()] = a, w.in.Now
		w.version[a.Subject()], w.alloc[a.Subject()] = w.in.Desired, WithAllocatedSizes(&w.in)
		if stop, ok := a.(StopContainer); ok && stop.WillRestart {
			w.container(stop.Container, func(h *ContainerHistory) { h.RestartRequestedID = stop.ID })
		}
		if a, ok := a.(RunProbe); ok {
			inc, _ := recordOf(w.in, a.ID)
			w.version[a.Subject()] = FindVersion(inc, w.in.Desired, w.in.Previous)
		}
		if pull, ok := a.(EnsureImage); ok && pull.ForSuccessor {
			w.version[a.Subject()] = w.in.Successor
		}
		if check, ok := a.(CheckVolumes); ok && w.in.Successor != nil && check.Hash == w.in.Successor.Hash {
			w.version[a.Subject()] = w.in.Successor
		}
	}
	return d
}

// cancelStarts cancels starts as a worker does, and reports whether one had not called the runtime.
func (w *world) cancelStarts() (canceled bool) {
	w.in.InFlight = maps.Clone(w.in.InFlight)
	for _, subject := range w.flights() {
		if _, ok := w.in.InFlight[subject].(StartContainer); !ok {
			continue
		}
		if w.called[subject] {
			w.canceled[subject] = true
			continue
		}
		delete(w.in.InFlight, subject)
		w.use(append(w.used, w.version[subject].UID))
		canceled = true
	}
	return canceled
}

// use sets the UIDs of pods with canceled starts that have not returned.
func (w *world) use(all []types.UID) {
	w.used, w.in.DirsInUse = all, map[types.UID]bool{}
	for _, uid := range all {
		w.in.DirsInUse[uid] = true
	}
}

// lookUp sets the state of the referenced objects, as a router does.
func (w *world) lookUp() {
	of := func(p *manifest.Pod) ReferencedObjects {
		if p == nil {
			return ReferencedObjects{}
		}
		return w.objects[p.Hash]
	}
	w.in.Objects, w.in.SuccessorObjects = of(w.in.Desired), of(w.in.Successor)
}

// note updates the input from an observation, as a worker does before each decision.
func (w *world) note() {
	if !w.lives(w.in.Previous) {
		w.in.Previous = nil
	}
	h := &w.in.History
	if s := h.Stopping; s != nil && !slices.ContainsFunc(w.in.Observed, func(i runtime.Incarnation) bool { return i.ID == s.SandboxID }) {
		h.Stopping = nil
	}
	for _, inc := range w.in.Observed {
		if w.in.Desired == nil || !IsCreatedFrom(&inc, w.in.Desired) {
			continue
		}
		for _, c := range inc.Containers {
			w.noteRunning(&c)
			w.noteHook(&c)
			w.noteEphemeral(&c)
			if c.State != runtime.Created && c.Attempt+1 > h.Containers[c.Name].Attempt {
				w.container(c.Name, func(ch *ContainerHistory) { ch.Attempt = c.Attempt + 1 })
			}
			if c.State != runtime.Exited {
				continue
			}
			if _, seen := h.ExitSeenAt[c.ID]; !seen {
				h.ExitSeenAt = with(h.ExitSeenAt, c.ID, w.in.Now)
			}
			if last := h.Containers[c.Name].LastExit; last == nil || last.Attempt <= c.Attempt {
				w.container(c.Name, func(ch *ContainerHistory) { ch.LastExit = NewExit(&c) })
			}
		}
	}
}

func (w *world) container(name string, change func(*ContainerHistory)) {
	h := w.in.History.Containers[name]
	change(&h)
	w.in.History.Containers = with(w.in.History.Containers, name, h)
}

func with[K comparable, V any](m map[K]V, k K, v V) map[K]V {
	out := maps.Clone(m)
	if out == nil {
		out = map[K]V{}
	}
	out[k] = v
	return out
}

// flights returns the subjects of the actions in progress, sorted.
func (w *world) flights() []string { return slices.Sorted(maps.Keys(w.in.InFlight)) }

var (
	errLost     = errors.New("the response was lost")
	errReserved = errors.New("the name is reserved")
	// errUnseen stands for a start that succeeded and whose status query failed. For
	// other actions it is errLost.
	errUnseen = fmt.Errorf("%w after its success", errLost)
)

// complete ends an action. If err is nil, the action succeeds. If err is errLost, the action
// succeeds, but its result is lost. Otherwise the action has no effect. The result of a canceled
// action is ignored, and the action has an effect only if err is errLost.
func (w *world) complete(subject string, err error) {
	a, canceled, p, alloc := w.in.InFlight[subject], w.canceled[subject], w.version[subject], w.alloc[subject]
	began := w.began[subject]
	w.in.InFlight = maps.Clone(w.in.InFlight)
	delete(w.in.InFlight, subject)
	delete(w.canceled, subject)
	delete(w.called, subject)
	if canceled {
		if errors.Is(err, errLost) {
			_ = w.do(a, p, alloc) // the result of the action is lost
		}
		switch a.(type) {
		case RunSandbox, StartContainer:
			w.in.MayHaveUnobserved = true
		}
		return
	}
	if probe, ok := a.(RunProbe); ok {
		w.applyProbe(probe, p, began, err)
		return
	}
	if err == nil || errors.Is(err, errLost) {
		if failed := w.do(a, p, alloc); failed != nil {
			err = failed
		}
	}
	w.apply(a, p, alloc, err)
}

// do applies the effect of an action to the actual state.
func (w *world) do(a Action, p, alloc *manifest.Pod) error {
	switch a := a.(type) {
	case EnsureImage:
		return w.images[a.Image]
	case PrepareVolumes:
		if w.volumes == nil {
			w.written[a.UID] = w.objects[p.Hash].FilesDigest
		}
		return w.volumes
	case UpdateVolumes:
		if w.volumes == nil {
			w.written[a.UID] = a.FilesDigest
		}
		return w.volumes
	case CheckVolumes:
		return w.volumes
	case RunSandbox:
		return w.runSandbox(a, alloc)
	case StartContainer:
		return w.startContainer(a, alloc)
	case ResizeContainer:
		w.sizes[a.ID] = alloc.ContainerHashes[a.Container].Resources
	case ResizePod:
		w.sizes[a.SandboxID] = alloc.PodSize()
	case StopContainer:
		w.each(a.ID, func(c *runtime.Container) { w.end(c, w.termCode, "") })
	case ReadMessage, RunPostStart, RunPreStop:
	case RemoveContainer:
		w.remove(a.ID)
	case StopSandbox:
		w.stopSandbox(a.ID)
	case KillProcesses:
		w.stopSandbox(a.SandboxID)
	case StopForeign:
		w.machine = slices.DeleteFunc(w.machine, func(i runtime.Incarnation) bool { return i.ID == a.ID })
	case RemoveSandbox:
		w.stopSandbox(a.ID)
		w.machine = slices.DeleteFunc(w.machine, func(i runtime.Incarnation) bool { return i.ID == a.ID })
	}
	return nil
}

func (w *world) runSandbox(a RunSandbox, p *manifest.Pod) error {
	for _, inc := range w.machine {
		if inc.UID == p.UID && inc.Attempt == a.Attempt {
			return errReserved
		}
	}
	inc := runtime.Incarnation{Sandbox: runtime.Sandbox{
		ID: w.id("s"), UID: p.UID, Attempt: a.Attempt, Ready: true, CreatedAt: w.wall(),
		Annotations: map[string]string{runtime.AnnotationPodHash: p.Hash, runtime.AnnotationSize: p.PodSize()},
	}}
	if g := p.Object.Spec.TerminationGracePeriodSeconds; g != nil {
		inc.Annotations[runtime.AnnotationGracePeriod] = strconv.FormatInt(*g, 10)
	}
	w.sizes[inc.ID] = p.PodSize()
	w.machine = append([]runtime.Incarnation{inc}, w.machine...)
	return nil
}

func (w *world) startContainer(a StartContainer, p *manifest.Pod) error {
	for i := range w.machine {
		inc := &w.machine[i]
		if inc.ID != a.SandboxID {
			continue
		}
		if !inc.Ready {
			return errors.New("the sandbox is not ready")
		}
		for _, c := range inc.Containers {
			if c.Name == a.Container && c.Attempt == a.Attempt && c.ID != a.CreatedID {
				return errReserved
			}
		}
		w.starts[a.Container]++
		if a.CreatedID != "" {
			w.made[a.CreatedID] = true
			w.each(a.CreatedID, func(c *runtime.Container) { c.State, c.StartedAt = runtime.Running, w.wall() })
			return nil
		}
		kind, index := kindOf(p, a.Container)
		id := w.id("c")
		w.made[id], w.sizes[id] = true, p.ContainerHashes[a.Container].Resources
		inc.Containers = append(slices.Clone(inc.Containers), runtime.Container{
			ID: id, SandboxID: inc.ID, Name: a.Container, Attempt: a.Attempt,
			State: runtime.Running, CreatedAt: w.wall(), StartedAt: w.wall(),
			Annotations: map[string]string{
				runtime.AnnotationBackoffStep:   strconv.Itoa(a.Crashes),
				runtime.AnnotationSize:          w.sizes[id],
				runtime.AnnotationContainerKind: fmt.Sprintf("%s:%d", kind, index),

				runtime.AnnotationEphemeralContainer:     w.createEphemeral(p, a.Container, id),
				runtime.AnnotationPodRestarts:            strconv.Itoa(int(a.PodRestarts)),
				runtime.AnnotationStartHash:              p.ContainerHashes[a.Container].StartHashPrefix(),
				runtime.AnnotationPreStopHandler:         preStopText(p, a.Container),
				runtime.AnnotationTerminationMessagePath: w.messages,
			},
		})
		return nil
	}
	return errors.New("no such sandbox")
}

func kindOf(p *manifest.Pod, name string) (Kind, int) {
	for i := range p.Object.Spec.InitContainers {
		if c := &p.Object.Spec.InitContainers[i]; c.Name == name {
			return ContainerKind(c, true), i
		}
	}
	if i := slices.IndexFunc(p.Object.Spec.EphemeralContainers, isNamed(name)); i >= 0 {
		return KindEphemeral, i
	}
	return KindRegular, slices.IndexFunc(containersOf(&p.Object.Spec), func(c *v1.Container) bool { return c.Name == name }) - len(p.Object.Spec.InitContainers)
}

// each calls change for every record of the container with this ID.
func (w *world) each(id string, change func(*runtime.Container)) {
	for i := range w.machine {
		w.machine[i].Containers = slices.Clone(w.machine[i].Containers)
		for j := range w.machine[i].Containers {
			if c := &w.machine[i].Containers[j]; c.ID == id {
				change(c)
			}
		}
	}
}

// end makes a container exit.
func (w *world) end(c *runtime.Container, code int32, reason string) {
	if c.State == runtime.Exited {
		return
	}
	c.State, c.ExitCode, c.Reason, c.FinishedAt = runtime.Exited, code, reason, w.wall()
}

// remove removes the record of a container.
func (w *world) remove(id string) {
	for i := range w.machine {
		w.machine[i].Containers = slices.DeleteFunc(slices.Clone(w.machine[i].Containers), func(c runtime.Container) bool { return c.ID == id })
	}
	w.machine = slices.DeleteFunc(w.machine, func(i runtime.Incarnation) bool { return i.ID == "" && len(i.Containers) == 0 })
}

// stopSandbox stops a sandbox with its containers.
func (w *world) stopSandbox(id string) {
	for i := range w.machine {
		inc := &w.machine[i]
		if inc.ID != id {
			continue
		}
		inc.Ready = false
		inc.Containers = slices.Clone(inc.Containers)
		for j := range inc.Containers {
			if c := &inc.Containers[j]; c.State != runtime.Created {
				w.end(c, 137, "")
			}
		}
	}
}

// exit makes the newest running container of a name exit by itself, and reports whether there was
// one.
func (w *world) exit(name string, code int32, reason string) bool {
	for i := range w.machine {
		inc := &w.machine[i]
		for _, c := range slices.Backward(inc.Containers) {
			if !inc.Foreign && c.Name == name && c.State == runtime.Running {
				w.each(c.ID, func(c *runtime.Container) { w.end(c, code, reason) })
				return true
			}
		}
	}
	return false
}

func (w *world) setDir(d PodDir) {
	w.in.PodDirs = append(slices.DeleteFunc(slices.Clone(w.in.PodDirs), func(have PodDir) bool { return have.UID == d.UID }), d)
	slices.SortFunc(w.in.PodDirs, func(a, b PodDir) int { return cmp.Compare(a.UID, b.UID) })
}
