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

// world is a machine and the worker of one pod name, in memory: it does what
// decisions say and remembers what came of it, one step at a time.
type world struct {
	in Input
	// given says of an action under way that no decision names it any more.
	given map[string]bool
	// called has the starts under way that have called the runtime, by subject.
	called map[string]bool
	// used are the UIDs of pods whose starts were given up and have not returned.
	used []types.UID
	// began is when an action under way did.
	began map[string]time.Time
	// made are the containers that this life of podd started.
	made map[string]bool
	// scene is the version that an action under way is for.
	scene map[string]*manifest.Pod
	// alloc is what was allocated of it then.
	alloc   map[string]*manifest.Pod
	sizes   map[string]string     // that containers and sandboxes have, by ID
	resized map[string]Size       // the same of those resized, as a journal knows
	machine []runtime.Incarnation // what really is, newest first
	images  map[string]error      // why an image cannot be had; missing: it can
	volumes error                 // why they cannot be had; nil: they can
	ails    map[string]string     // what a probe's attempts fail with, by subject; missing: they pass
	told    map[string]Probed     // verdicts of probes, as a journal has them
	hooks   map[string]Hook       // postStart hooks likewise, by hash and container
	objects map[string]Objects    // of versions, by hash
	written map[types.UID]string  // the Objects.Files on disk
	past    map[types.UID]*Finished
	start   time.Time
	// skew is what the machine's wall clock is off by.
	skew time.Duration
	ids  int
	// termCode is what containers end with when they are told to stop.
	termCode int32
	starts   map[string]int       // of each container name, ever
	since    map[string]time.Time // when a version was first acted upon, by hash
	messages string               // the path of containers' termination messages; "" for none
	added    added
	// unreported are exited containers, by ID, whose exit code the runtime does not
	// report.
	unreported map[string]bool
}

func newWorld() *world {
	w := &world{
		images: map[string]error{}, ails: map[string]string{}, hooks: map[string]Hook{}, past: map[types.UID]*Finished{}, given: map[string]bool{}, called: map[string]bool{}, began: map[string]time.Time{}, made: map[string]bool{}, scene: map[string]*manifest.Pod{},
		start: time.Now(), termCode: 143, starts: map[string]int{}, since: map[string]time.Time{},
		alloc: map[string]*manifest.Pod{}, sizes: map[string]string{},
		objects: map[string]Objects{}, written: map[types.UID]string{}, added: newAdded(), unreported: map[string]bool{},
	}
	w.in = Input{
		Certain: true, Now: w.start, InFlight: map[string]Action{},
		Node: Node{Reachable: true, Ready: true, NetworkReady: true},
	}
	return w
}

// wall is what the machine's wall clock shows; it has no monotonic reading.
func (w *world) wall() time.Time { return w.in.Now.Round(0).Add(w.skew) }

func (w *world) id(prefix string) string {
	w.ids++
	return prefix + strconv.Itoa(w.ids)
}

// want is what a worker does with a new order.
func (w *world) want(p *manifest.Pod) {
	switch {
	case p == nil:
		w.leave()
		w.in.Desired, w.in.Successor = nil, nil
	case w.in.Desired == nil:
		w.begin(p)
	case p.UID == w.in.Desired.UID && p.Hash == w.in.Desired.Hash:
		p = p.WithEphemeral(w.in.Desired.Spec.Spec.EphemeralContainers)
		if p != w.in.Desired {
			w.tryAnew(p)
		}
		w.in.Desired, w.in.Successor = p, nil
	default:
		w.in.Successor = p
	}
}

// tryAnew has no resize wait that failed for another size than that of p.
func (w *world) tryAnew(p *manifest.Pod) {
	w.in.History.ResizePod, w.in.Evict = Failure{}, nil
	if !w.in.History.Finished.Of(p) {
		w.in.History.Finished = nil
	}
	for name := range w.in.History.Containers {
		w.container(name, func(h *ContainerHistory) { h.Resize = Failure{} })
	}
}

// leave keeps the version in force while something of it runs.
func (w *world) leave() {
	if w.lives(w.in.Desired) {
		w.in.Leaving = w.in.Desired
	}
}

func (w *world) lives(p *manifest.Pod) bool {
	return slices.ContainsFunc(w.in.Observed, func(i runtime.Incarnation) bool { return Runs(p, &i) && Live(&i) })
}

func (w *world) begin(p *manifest.Pod) {
	w.leave()
	old := w.in.History
	h := History{Stopping: old.Stopping, Endings: old.Endings, Released: old.Released, Cleanup: old.Cleanup, Checked: old.Checked, Probed: old.Probed, Containers: map[string]ContainerHistory{}, Sizes: w.resized}
	for name, img := range old.Next {
		h.Containers[name] = ContainerHistory{Image: img}
	}
	if fin := w.past[p.UID]; fin.Of(p) && (w.in.Node.ShuttingDown || !fin.Resumes) {
		h.Finished = fin
	}
	for _, c := range containersOf(&p.Spec.Spec) {
		if hook, ok := w.hooks[p.Hash+c.Name]; ok {
			ch := h.Containers[c.Name]
			ch.PostStart = Hook{Attempt: hook.Attempt, Owed: hook.Owed, Failed: hook.Failed, Message: hook.Message}
			h.Containers[c.Name] = ch
		}
	}
	if _, known := w.since[p.Hash]; !known {
		w.since[p.Hash] = w.in.Now
	}
	h.StartTime = w.since[p.Hash]
	if w.told != nil {
		h.Probed, w.told = w.told, nil
	}
	w.in.Desired, w.in.Successor, w.in.History = p.WithEphemeral(w.added.pending[p.UID]), nil, h
}

// poddRestarts forgets what only a running podd knows.
func (w *world) poddRestarts() {
	stopping := w.in.History.Stopping
	if stopping != nil {
		kept := *stopping
		kept.Since = kept.Since.Round(0) // a journal has no monotonic time
		stopping = &kept
	}
	p := w.in.Desired
	if w.in.Successor != nil {
		p = w.in.Successor
	}
	w.in.InFlight, w.given, w.called = map[string]Action{}, map[string]bool{}, map[string]bool{}
	w.use(nil)
	w.told, w.made = map[string]Probed{}, map[string]bool{}
	for id, probed := range w.in.History.Probed {
		kept := Probed{}
		for _, kind := range probeKinds {
			t := probed.Of(kind)
			kept = kept.With(kind, Trial{Health: t.Health, Message: t.Message})
		}
		w.told[id] = kept
	}
	endings := map[string]Ending{}
	for id, e := range w.in.History.Endings {
		e.Since = e.Since.Round(0)
		endings[id] = e
	}
	w.in.History = History{Stopping: stopping, Endings: endings}
	for _, d := range w.in.Dirs {
		if stopping == nil && w.past[d.UID] == nil {
			d.Keep = w.in.Now.Add(10 * time.Second)
			w.setDir(d)
		}
	}
	w.in.Desired, w.in.Successor, w.in.Leaving = nil, nil, nil
	if p != nil {
		w.begin(p.WithEphemeral(nil))
	}
	w.observe()
}

func (w *world) observe() {
	w.in.Observed = cloneAll(w.machine)
	for i := range w.in.Observed {
		for j := range w.in.Observed[i].Containers {
			if c := &w.in.Observed[i].Containers[j]; w.unreported[c.ID] && c.State == runtime.Exited {
				c.State, c.ExitCode, c.FinishedAt = runtime.ExitUnknown, -1, time.Time{}
			}
		}
	}
	w.in.Unseen = false
	for _, d := range w.in.Dirs {
		if slices.ContainsFunc(w.machine, func(i runtime.Incarnation) bool { return i.UID == d.UID }) {
			d.Keep = time.Time{}
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

// decide plans and begins what the plan names.
func (w *world) decide() Decision {
	w.note()
	w.lookUp()
	d := Next(w.in)
	if d.Succeed {
		w.begin(w.in.Successor)
		w.lookUp()
		d = Next(w.in)
	}
	if d.Resume {
		w.in.Evict, w.in.History.Finished = nil, nil
		d = Next(w.in)
	}
	if d.CancelStarts && w.cancelStarts() {
		return w.decide()
	}
	if d.Stopping != nil {
		w.in.History.Stopping = d.Stopping
	}
	for id, e := range d.Endings {
		w.in.History.Endings = with(w.in.History.Endings, id, e)
	}
	if d.Finished != nil {
		w.in.History.Finished = d.Finished
		w.past[d.Finished.UID] = d.Finished
	}
	w.in.InFlight = maps.Clone(w.in.InFlight)
	for subject, a := range w.in.InFlight {
		named := slices.ContainsFunc(d.Actions, func(b Action) bool { return SameUndertaking(a, b) })
		switch {
		case Cancellable(a) && !named:
			w.given[subject] = true
		case IsHook(a):
			w.given[subject] = !named
		}
	}
	for _, a := range d.Actions {
		if _, busy := w.in.InFlight[a.Subject()]; busy {
			continue
		}
		if _, ok := a.(PrepareVolumes); ok {
			w.setDir(Dir{UID: w.in.Desired.UID, Hash: w.in.Desired.Hash, Volumes: true})
		}
		if a, ok := a.(StartContainer); ok && a.PostStart {
			w.owe(a.Container, Hook{Attempt: a.Attempt, Owed: true})
		}
		for id, size := range Doubts(&w.in, a) {
			w.resized = with(w.resized, id, size)
			w.in.History.Sizes = w.resized
		}
		w.in.InFlight[a.Subject()], w.began[a.Subject()] = a, w.in.Now
		w.scene[a.Subject()], w.alloc[a.Subject()] = w.in.Desired, Allocated(&w.in)
		if stop, ok := a.(StopContainer); ok && stop.Again {
			w.container(stop.Container, func(h *ContainerHistory) { h.RestartID = stop.ID })
		}
		if a, ok := a.(Probe); ok {
			inc, _ := recordOf(w.in, a.ID)
			w.scene[a.Subject()] = VersionOf(inc, w.in.Desired, w.in.Leaving)
		}
		if pull, ok := a.(EnsureImage); ok && pull.Successor {
			w.scene[a.Subject()] = w.in.Successor
		}
		if check, ok := a.(CheckVolumes); ok && w.in.Successor != nil && check.Hash == w.in.Successor.Hash {
			w.scene[a.Subject()] = w.in.Successor
		}
	}
	return d
}

// cancelStarts is what a worker does.
func (w *world) cancelStarts() (givenUp bool) {
	w.in.InFlight = maps.Clone(w.in.InFlight)
	for _, subject := range w.flights() {
		if _, ok := w.in.InFlight[subject].(StartContainer); !ok {
			continue
		}
		if w.called[subject] {
			w.given[subject] = true
			continue
		}
		delete(w.in.InFlight, subject)
		w.use(append(w.used, w.scene[subject].UID))
		givenUp = true
	}
	return givenUp
}

func (w *world) use(all []types.UID) {
	w.used, w.in.Used = all, map[types.UID]bool{}
	for _, uid := range all {
		w.in.Used[uid] = true
	}
}

// lookUp has the objects of what is wanted, as a router does.
func (w *world) lookUp() {
	of := func(p *manifest.Pod) Objects {
		if p == nil {
			return Objects{}
		}
		return w.objects[p.Hash]
	}
	w.in.Objects, w.in.NextObjects = of(w.in.Desired), of(w.in.Successor)
}

// note is what a worker takes from an observation before it plans.
func (w *world) note() {
	if !w.lives(w.in.Leaving) {
		w.in.Leaving = nil
	}
	h := &w.in.History
	if s := h.Stopping; s != nil && !slices.ContainsFunc(w.in.Observed, func(i runtime.Incarnation) bool { return i.ID == s.SandboxID }) {
		h.Stopping = nil
	}
	for _, inc := range w.in.Observed {
		if w.in.Desired == nil || !Runs(w.in.Desired, &inc) {
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
			if _, seen := h.SeenExit[c.ID]; !seen {
				h.SeenExit = with(h.SeenExit, c.ID, w.in.Now)
			}
			if last := h.Containers[c.Name].LastExit; last == nil || last.Attempt <= c.Attempt {
				w.container(c.Name, func(ch *ContainerHistory) { ch.LastExit = exitOf(&c) })
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

// flights are the subjects under way, in an order that does not change.
func (w *world) flights() []string { return slices.Sorted(maps.Keys(w.in.InFlight)) }

var (
	errLost     = errors.New("the answer was lost")
	errReserved = errors.New("the name is reserved")
	// errUnseen stands for a start that succeeded and whose status query failed. For
	// other actions it is errLost.
	errUnseen = fmt.Errorf("%w after its success", errLost)
)

// land ends an action: with err nil it works, with errLost it works and nobody
// hears of it, else it has no effect. One that was given up has none either,
// or an unheard one.
func (w *world) land(subject string, err error) {
	a, given, p, alloc := w.in.InFlight[subject], w.given[subject], w.scene[subject], w.alloc[subject]
	began := w.began[subject]
	w.in.InFlight = maps.Clone(w.in.InFlight)
	delete(w.in.InFlight, subject)
	delete(w.given, subject)
	delete(w.called, subject)
	if given {
		if errors.Is(err, errLost) {
			_ = w.do(a, p, alloc) // nobody hears of an error either
		}
		switch a.(type) {
		case RunSandbox, StartContainer:
			w.in.Unseen = true
		}
		return
	}
	if probe, ok := a.(Probe); ok {
		w.learnProbe(probe, p, began, err)
		return
	}
	if err == nil || errors.Is(err, errLost) {
		if failed := w.do(a, p, alloc); failed != nil {
			err = failed
		}
	}
	w.learn(a, p, alloc, err)
}

// do has the effect of a on the machine, for a version as it was allocated.
func (w *world) do(a Action, p, alloc *manifest.Pod) error {
	switch a := a.(type) {
	case EnsureImage:
		return w.images[a.Image]
	case PrepareVolumes:
		if w.volumes == nil {
			w.written[a.UID] = w.objects[p.Hash].Files
		}
		return w.volumes
	case UpdateVolumes:
		if w.volumes == nil {
			w.written[a.UID] = a.Files
		}
		return w.volumes
	case CheckVolumes:
		return w.volumes
	case RunSandbox:
		return w.runSandbox(a, alloc)
	case StartContainer:
		return w.startContainer(a, alloc)
	case ResizeContainer:
		w.sizes[a.ID] = alloc.Containers[a.Container].Size
	case ResizePod:
		w.sizes[a.SandboxID] = alloc.PodSize()
	case StopContainer:
		w.each(a.ID, func(c *runtime.Container) { w.end(c, w.termCode, "") })
	case ReadMessage, PostStart, PreStop:
	case RemoveContainer:
		w.remove(a.ID)
	case StopSandbox:
		w.stopSandbox(a.ID)
	case EndForeign:
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
		Annotations: map[string]string{runtime.AnnotationHash: p.Hash, runtime.AnnotationSize: p.PodSize()},
	}}
	if g := p.Spec.Spec.TerminationGracePeriodSeconds; g != nil {
		inc.Annotations[runtime.AnnotationGrace] = strconv.FormatInt(*g, 10)
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
		w.made[id], w.sizes[id] = true, p.Containers[a.Container].Size
		inc.Containers = append(slices.Clone(inc.Containers), runtime.Container{
			ID: id, SandboxID: inc.ID, Name: a.Container, Attempt: a.Attempt,
			State: runtime.Running, CreatedAt: w.wall(), StartedAt: w.wall(),
			Annotations: map[string]string{
				runtime.AnnotationBackoff: strconv.Itoa(a.Backoff),
				runtime.AnnotationSize:    w.sizes[id],
				runtime.AnnotationKind:    fmt.Sprintf("%s:%d", kind, index),

				runtime.AnnotationEphemeral:              w.createEphemeral(p, a.Container, id),
				runtime.AnnotationStart:                  p.Containers[a.Container].Digits(),
				runtime.AnnotationPreStopHandler:         preStopText(p, a.Container),
				runtime.AnnotationTerminationMessagePath: w.messages,
			},
		})
		return nil
	}
	return errors.New("there is no such sandbox")
}

func kindOf(p *manifest.Pod, name string) (Kind, int) {
	for i := range p.Spec.Spec.InitContainers {
		if c := &p.Spec.Spec.InitContainers[i]; c.Name == name {
			return KindOf(c, true), i
		}
	}
	if i := slices.IndexFunc(p.Spec.Spec.EphemeralContainers, isNamed(name)); i >= 0 {
		return Ephemeral, i
	}
	return Regular, slices.IndexFunc(containersOf(&p.Spec.Spec), func(c *v1.Container) bool { return c.Name == name }) - len(p.Spec.Spec.InitContainers)
}

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

func (w *world) end(c *runtime.Container, code int32, reason string) {
	if c.State == runtime.Exited {
		return
	}
	c.State, c.ExitCode, c.Reason, c.FinishedAt = runtime.Exited, code, reason, w.wall()
}

func (w *world) remove(id string) {
	for i := range w.machine {
		w.machine[i].Containers = slices.DeleteFunc(slices.Clone(w.machine[i].Containers), func(c runtime.Container) bool { return c.ID == id })
	}
	w.machine = slices.DeleteFunc(w.machine, func(i runtime.Incarnation) bool { return i.ID == "" && len(i.Containers) == 0 })
}

// stopSandbox ends a sandbox, as the runtime or a power cut does.
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

// exit ends the newest running container of a name by itself.
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

func (w *world) setDir(d Dir) {
	w.in.Dirs = append(slices.DeleteFunc(slices.Clone(w.in.Dirs), func(have Dir) bool { return have.UID == d.UID }), d)
	slices.SortFunc(w.in.Dirs, func(a, b Dir) int { return cmp.Compare(a.UID, b.UID) })
}
