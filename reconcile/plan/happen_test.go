package plan

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"podd/manifest"
	"podd/manifest/refs"
	"podd/runtime"
)

// happenings are the events in a world, by name.
var happenings = map[string]func(*world, op, []*manifest.Pod){
	"complete": func(w *world, o op, _ []*manifest.Pod) { w.completeNth(o.n, nil) },
	"fail":     func(w *world, o op, _ []*manifest.Pod) { w.completeNth(o.n, errors.New("failed")) },
	"lose":     func(w *world, o op, _ []*manifest.Pod) { w.completeNth(o.n, errLost) },
	"hide":     func(w *world, o op, _ []*manifest.Pod) { w.completeNth(o.n, errUnseen) },
	"call":     (*world).call,
	"return": func(w *world, o op, _ []*manifest.Pod) {
		if len(w.used) > 0 {
			w.use(slices.Delete(slices.Clone(w.used), o.n%len(w.used), o.n%len(w.used)+1))
		}
	},
	"observe": func(w *world, _ op, _ []*manifest.Pod) { w.observe() },
	"order": func(w *world, o op, pods []*manifest.Pod) {
		w.in.SourcesRead = true
		w.order(pods[o.n%len(pods)])
	},
	"remove": func(w *world, _ op, _ []*manifest.Pod) { w.in.SourcesRead = true; w.order(nil) },
	"vanish": func(w *world, _ op, _ []*manifest.Pod) { w.in.SourcesRead = false; w.order(nil) },
	"exit": func(w *world, o op, _ []*manifest.Pod) {
		if c := w.nth(o.n, func(c *runtime.Container) bool { return c.State == runtime.Running }); c != nil {
			w.end(c, int32(o.m), "")
		}
	},
	"unknown": func(w *world, o op, _ []*manifest.Pod) {
		if c := w.nth(o.n, func(c *runtime.Container) bool { return c.State == runtime.Running }); c != nil {
			c.State = runtime.Unknown
		}
	},
	"unreport": func(w *world, o op, _ []*manifest.Pod) {
		if c := w.nth(o.n, func(c *runtime.Container) bool { return c.State == runtime.Exited }); c != nil {
			w.unreported[c.ID] = true
		}
	},
	"report": func(w *world, _ op, _ []*manifest.Pod) { clear(w.unreported) },
	"created": func(w *world, o op, _ []*manifest.Pod) {
		if c := w.nth(o.n, func(c *runtime.Container) bool { return c.State == runtime.Running }); c != nil {
			c.State = runtime.Created
		}
	},
	"drop": func(w *world, o op, _ []*manifest.Pod) {
		if c := w.nth(o.n, func(c *runtime.Container) bool { return c.State != runtime.Running }); c != nil {
			w.remove(c.ID)
		}
	},
	"die": func(w *world, o op, _ []*manifest.Pod) {
		if len(w.machine) > 0 {
			w.stopSandbox(w.machine[o.n%len(w.machine)].ID)
		}
	},
	"add":    func(w *world, o op, _ []*manifest.Pod) { w.add([]string{"e0", "e1"}[o.n%2], []string{"", "c0"}[o.m%2]) },
	"orphan": (*world).orphan,
	"double": (*world).double,
	"foreign": func(w *world, o op, _ []*manifest.Pod) {
		w.machine = append(slices.Clone(w.machine), runtime.Incarnation{
			Sandbox:    runtime.Sandbox{ID: w.id("f"), UID: "theirs", Ready: true, Foreign: true},
			Containers: []runtime.Container{{ID: w.id("fc"), Name: "c0", State: runtime.Running}},
		})
	},
	"unforeign": func(w *world, _ op, _ []*manifest.Pod) {
		w.machine = slices.DeleteFunc(slices.Clone(w.machine), func(i runtime.Incarnation) bool { return i.Foreign })
	},
	"image": func(w *world, o op, _ []*manifest.Pod) {
		name := imageNames[o.n%len(imageNames)]
		if delete(w.images, name); o.m == 0 {
			w.images[name] = errors.New("not found")
		}
	},
	"volumes": func(w *world, o op, _ []*manifest.Pod) {
		if w.volumes = nil; o.m == 0 {
			w.volumes = errors.New("no such path")
		}
	},
	"objects": func(w *world, o op, pods []*manifest.Pod) {
		missing := ""
		if o.m == 0 {
			missing = `ConfigMap "c" not found`
		}
		w.objects[pods[o.n%len(pods)].Hash] = ReferencedObjects{Blocker: refs.Blocker{MissingMessage: missing}, FilesDigest: []string{"", "one", "two", "three"}[o.m]}
	},
	"node": func(w *world, o op, _ []*manifest.Pod) {
		w.in.Node.RuntimeReachable, w.in.Node.RuntimeReady, w.in.Node.NetworkReady = o.n != 0, o.n != 1, o.n != 2
	},
	"evict": func(w *world, o op, _ []*manifest.Pod) {
		if p := w.in.Desired; p != nil {
			w.in.Eviction = &Eviction{UID: p.UID, Hash: p.Hash, Grace: time.Duration(o.m) * time.Second, Restarts: true}
		}
	},
	"adopt": func(w *world, o op, _ []*manifest.Pod) { w.in.Node.AdoptKubeletPods = o.m == 0 },
	"verdict": func(w *world, o op, _ []*manifest.Pod) {
		w.in.Verdict = Verdict{Answer: Answer(o.m % 3), Message: "because"}
	},
	"hurry": func(w *world, o op, _ []*manifest.Pod) { w.in.ForceStop = o.m == 0 },
	"restart": func(w *world, o op, _ []*manifest.Pod) {
		if c := w.nth(o.n, func(c *runtime.Container) bool { return c.State == runtime.Running }); c != nil {
			w.container(c.Name, func(h *ContainerHistory) { h.RestartRequestedID = c.ID })
		}
	},
	"pass":     func(w *world, o op, _ []*manifest.Pod) { w.in.Now = w.in.Now.Add(o.d) },
	"jump":     func(w *world, o op, _ []*manifest.Pod) { w.skew = []time.Duration{0, years, -years, 3 * years}[o.m] },
	"restarts": func(w *world, _ op, _ []*manifest.Pod) { w.poddRestarts() },
}

func (w *world) completeNth(n int, err error) {
	if flights := w.flights(); len(flights) > 0 {
		w.complete(flights[n%len(flights)], err)
	}
}

// call makes one of the container starts in progress call the runtime.
func (w *world) call(o op, _ []*manifest.Pod) {
	var starts []string
	for _, subject := range w.flights() {
		if _, ok := w.in.InFlight[subject].(StartContainer); ok {
			starts = append(starts, subject)
		}
	}
	if len(starts) > 0 {
		w.called[starts[o.n%len(starts)]] = true
	}
}

// nth returns one of the containers that podd created and that the given function selects; nil if
// there is none. It orders the containers of a sandbox by name and attempt, because two worlds with
// the same history may have started them in a different order. The caller may change the container.
func (w *world) nth(n int, is func(*runtime.Container) bool) *runtime.Container {
	var found []*runtime.Container
	for i := range w.machine {
		if w.machine[i].Foreign {
			continue
		}
		w.machine[i].Containers = slices.Clone(w.machine[i].Containers)
		first := len(found)
		for j := range w.machine[i].Containers {
			if c := &w.machine[i].Containers[j]; is(c) {
				found = append(found, c)
			}
		}
		slices.SortFunc(found[first:], func(a, b *runtime.Container) int { return compareContainers(*a, *b) })
	}
	if len(found) == 0 {
		return nil
	}
	return found[n%len(found)]
}

// compareContainers orders containers by name and attempt.
func compareContainers(a, b runtime.Container) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Attempt, b.Attempt))
}

// orphan makes a stopped sandbox disappear without a request of podd. The containers of the sandbox
// remain listed.
func (w *world) orphan(o op, _ []*manifest.Pod) {
	if len(w.machine) == 0 {
		return
	}
	i := o.n % len(w.machine)
	inc := w.machine[i]
	if inc.Foreign || IsLive(&inc) || slices.ContainsFunc(w.machine, func(i runtime.Incarnation) bool { return i.ID == "" }) {
		return
	}
	inc.ID, inc.Attempt, inc.Annotations = "", 0, nil
	w.machine = slices.Delete(slices.Clone(w.machine), i, i+1)
	if len(inc.Containers) > 0 {
		w.machine = slices.Insert(w.machine, o.m%(len(w.machine)+1), inc)
	}
}

// double creates a second sandbox like the newest one.
func (w *world) double(_ op, _ []*manifest.Pod) {
	if len(w.machine) == 0 || w.machine[0].ID == "" || w.machine[0].Foreign {
		return
	}
	twin := runtime.Incarnation{Sandbox: w.machine[0].Sandbox}
	twin.ID, twin.Attempt, twin.Ready = w.id("s"), twin.Attempt+1, true
	w.machine = append([]runtime.Incarnation{twin}, w.machine...)
}
