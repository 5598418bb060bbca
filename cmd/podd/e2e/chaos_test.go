//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
	"podd/server"
)

const (
	edits = 200
	// nameCount is the number of file names and of pod names that chaos uses.
	nameCount = 6
)

// chaos edits manifests at random and records the desired pods.
type chaos struct {
	d       *daemon
	random  *rand.Rand
	serial  int                // number of versions written; the label "serial" of each version
	files   map[string]string  // by file: the name of its pod, or ""
	desired map[string]*v1.Pod // by pod name: the last valid version
	broken  map[string]bool    // by file: whether its content is invalid
	// crashes counts the kills of podd.
	crashes int
	// noCrashes is true if randomEdit must not kill podd.
	noCrashes bool
	// diskFull is true while podd cannot write to its root directory.
	diskFull bool
}

// TestManyRandomEdits makes random edits and sometimes kills podd. At the end exactly the
// desired pods must run. podd must not leak files, memory or goroutines.
func TestManyRandomEdits(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("PODD_E2E_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("PODD_E2E_SEED=%d repeats these edits", seed)
	d := startDaemon(t)
	d.warmUp()
	first := d.measure()
	c := &chaos{
		d: d, random: rand.New(rand.NewPCG(seed, 0)),
		files: map[string]string{}, desired: map[string]*v1.Pod{}, broken: map[string]bool{},
	}
	for range edits {
		c.randomEdit()
	}
	c.untilDesired()
	for _, file := range slices.Collect(maps.Keys(c.files)) {
		d.remove(file)
	}
	d.wantNothingLeft()
	// The worker of a pod ends after everything of the pod is removed. The test counts goroutines below.
	d.until("podd shows no pods", func(v *server.View) error {
		if len(v.Pods) != 0 {
			return fmt.Errorf("got %d pods, want none", len(v.Pods))
		}
		return nil
	})
	// One more file is allowed. On cgroup v1, the first check of the node's memory after the cgroup of all
	// pods exists opens an eventfd (memorywatch). The first count may be earlier.
	d.eventually("podd has at most one more open file than before, and little more memory", func() error {
		if now := d.measure(); len(now.files) > len(first.files)+1 || now.memory > first.memory+16<<10 {
			return fmt.Errorf("got %d open files and %d KiB of memory, want at most %d files and %d KiB; files: got %q, want %q",
				len(now.files), now.memory, len(first.files)+1, first.memory+16<<10, now.files, first.files)
		}
		return nil
	})
	many := d.goroutines()
	d.start()
	d.warmUp()
	// Three more goroutines are allowed, because a CRI call may be in progress.
	if few := d.goroutines(); many > few+3 {
		t.Errorf("after %[2]d edits: got %[1]d goroutines, want at most 3 more than the %[3]d without edits", many, edits, few)
	}
	d.start()
}

// warmUp runs and removes one pod, so that podd opens the files that it keeps open. Tests compare later
// numbers of open files with the number at this time.
func (d *daemon) warmUp() {
	d.t.Helper()
	d.apply(d.pod("warm", shell("main", serve("warm"))))
	d.untilApplied("warm")
	d.remove("warm")
	d.untilGone("warm")
	d.wantNothingLeft()
}

type measures struct {
	files  []string // targets of the open file descriptors, sorted
	memory int      // anonymous resident memory in KiB
}

func (d *daemon) measure() measures {
	d.t.Helper()
	files, err := openFiles(d.proc.pid())
	memory, err2 := residentKB(d.proc.pid())
	if err := errors.Join(err, err2); err != nil {
		d.t.Fatal(err)
	}
	return measures{files, memory}
}

var goroutine = regexp.MustCompile(`(?m)^goroutine \d+ .*\[`)

// goroutines kills podd with SIGQUIT and counts the goroutines in the stack dump.
func (d *daemon) goroutines() int {
	d.t.Helper()
	before, err := os.ReadFile(d.logFile())
	if err != nil {
		d.t.Fatal(err)
	}
	d.proc.signal(syscall.SIGQUIT)
	after, err := os.ReadFile(d.logFile())
	if err != nil {
		d.t.Fatal(err)
	}
	n := len(goroutine.FindAll(after[len(before):], -1))
	if n == 0 {
		d.t.Errorf("got a stack dump without goroutines, want some: %s", after[len(before):])
	}
	if err := os.WriteFile(d.logFile(), before, 0o600); err != nil {
		d.t.Fatal(err)
	}
	return n
}

// randomEdit makes one random edit. It may kill podd before, and may wait for a random time
// afterwards.
func (c *chaos) randomEdit() {
	if !c.noCrashes && c.random.IntN(20) == 0 {
		c.d.crash()
		c.crashes++
	}
	file := "f" + strconv.Itoa(c.random.IntN(nameCount))
	_, exists := c.files[file]
	switch dice := c.random.IntN(20); {
	case exists && dice < 4:
		c.remove(file)
	case exists && dice < 6 && !c.broken[file]:
		c.rename(file)
	case exists && dice < 9:
		c.invalidate(file)
	default:
		c.writeVersion(file)
	}
	if c.random.IntN(2) == 0 {
		ctx, cancel := context.WithTimeout(c.d.t.Context(), time.Duration(c.random.IntN(300))*time.Millisecond)
		defer cancel()
		// Ignore the error, because the watch always ends with the timeout.
		_ = c.d.watch(ctx, func(*server.View) bool { return false })
	}
}

// writeVersion writes a new version of a file's pod.
func (c *chaos) writeVersion(file string) {
	name := c.files[file]
	if name == "" {
		if name = c.freeName(); name == "" {
			return
		}
	}
	c.serial++
	p := c.randomPod(name)
	c.files[file], c.desired[name] = name, p
	c.broken[file] = false
	if c.random.IntN(3) > 0 {
		c.d.write(file, manifestText(c.d, p))
		return
	}
	// Write in place, as a shell's redirection does.
	if err := os.WriteFile(c.d.manifestFile(file), []byte(manifestText(c.d, p)), 0o600); err != nil {
		c.d.t.Fatal(err)
	}
}

// freeName returns a pod name that no file uses, or "".
func (c *chaos) freeName() string {
	used := slices.Collect(maps.Values(c.files))
	for _, i := range c.random.Perm(nameCount) {
		if name := "p" + strconv.Itoa(i); !slices.Contains(used, name) {
			return name
		}
	}
	return ""
}

// randomPod returns a pod with a random spec.
func (c *chaos) randomPod(name string) *v1.Pod {
	p := c.d.pod(name)
	for i := range 1 + c.random.IntN(2) {
		script := "trap 'exit 0' TERM; sleep 3600 & wait"
		if c.random.IntN(6) == 0 {
			script = "trap : TERM; while :; do sleep 3600 & wait; done"
		}
		p.Spec.Containers = append(p.Spec.Containers, shell("c"+strconv.Itoa(i), script))
	}
	p.Labels = map[string]string{"serial": strconv.Itoa(c.serial)}
	p.Spec.TerminationGracePeriodSeconds = new(int64(c.random.IntN(2)))
	p.Spec.HostNetwork = c.random.IntN(2) == 0
	if c.random.IntN(4) == 0 {
		p.UID = types.UID("fixed-" + c.d.node + name)
	}
	if c.random.IntN(3) == 0 {
		p.Spec.InitContainers = []v1.Container{shell("init", "true"), sidecar("side", "trap 'exit 0' TERM; sleep 3600 & wait")}
	}
	if c.random.IntN(3) == 0 {
		withVolume(p, "memory", "/memory", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: v1.StorageMediumMemory}})
	}
	return p
}

func (c *chaos) remove(file string) {
	c.d.remove(file)
	delete(c.desired, c.files[file])
	delete(c.files, file)
	delete(c.broken, file)
}

// rename moves a file to another path. The desired pod stays the same, so podd must not restart it.
func (c *chaos) rename(file string) {
	to := "g" + file
	if _, taken := c.files[to]; taken {
		return
	}
	if err := os.Rename(c.d.manifestFile(file), c.d.manifestFile(to)); err != nil {
		c.d.t.Fatal(err)
	}
	c.files[to] = c.files[file]
	delete(c.files, file)
}

// invalidate replaces a valid file with an invalid one. It first waits until podd has applied
// the valid content and, unless the disk is full, has stored it.
func (c *chaos) invalidate(file string) {
	if !c.broken[file] {
		c.d.until("podd uses the content of "+file, c.d.usesFile(file))
		if !c.diskFull {
			c.d.untilStored(file)
		}
	}
	c.broken[file] = true
	bad := []string{"", "{", "kind: Pod\n", broken, "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containers: 3}\n"}
	c.d.write(file, bad[c.random.IntN(len(bad))])
}

// untilDesired waits until exactly the desired pods run and podd shows exactly these pods.
func (c *chaos) untilDesired() {
	c.d.t.Helper()
	c.d.eventually("exactly the desired pods run", func() error {
		now, err := c.d.inventory(c.d.t.Context())
		if err != nil {
			return err
		}
		return c.compare(now)
	})
	c.d.until("podd shows the desired pods", func(v *server.View) error {
		for name := range c.desired {
			if p := c.d.find(v, name); p == nil || !p.Ready || !p.IsCurrent {
				return fmt.Errorf("pod %s: got %+v, want a ready pod in the current version", name, p)
			}
		}
		if len(v.Pods) != len(c.desired) {
			return fmt.Errorf("got %d pods, want %d", len(v.Pods), len(c.desired))
		}
		return nil
	})
}

// compare returns an error if the pods in the runtime differ from the desired pods.
func (c *chaos) compare(now inventory) error {
	var got, want []string
	for _, s := range now.sandboxes {
		got = append(got, s.GetMetadata().GetName()+" "+s.GetLabels()["serial"]+" "+s.GetState().String())
	}
	for _, k := range now.containers {
		if k.GetState() == cri.ContainerState_CONTAINER_RUNNING {
			got = append(got, k.GetLabels()[runtime.LabelPodName]+"/"+k.GetMetadata().GetName())
		}
	}
	for name, p := range c.desired {
		full := c.d.podName(name)
		want = append(want, full+" "+p.Labels["serial"]+" "+cri.PodSandboxState_SANDBOX_READY.String())
		for _, k := range p.Spec.Containers {
			want = append(want, full+"/"+k.Name)
		}
		if len(p.Spec.InitContainers) > 0 {
			want = append(want, full+"/side")
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		return fmt.Errorf("running sandboxes and containers: got %q, want %q", got, want)
	}
	return nil
}
