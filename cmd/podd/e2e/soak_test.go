//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"podd/runtime/runtimetest/stack"
)

const (
	// editsPerRound is the number of edits of a round, half of them during a fault.
	editsPerRound = 20
	// roundsPerCount is the number of rounds between two counts of the resources of podd and
	// its pods. All pods are removed before a count.
	roundsPerCount = 10
	// maxGrowth is the maximum growth of podd's memory since the beginning of the test, in KiB. It does
	// not depend on the length of the test.
	maxGrowth = 16 << 10
	// maxTrend is the maximum growth of podd's memory from the second quarter of the rounds to the last
	// quarter, in KiB.
	maxTrend = 4 << 10
)

// soak edits manifests at random while faults occur on the host.
type soak struct {
	chaos
	proxy *proxy
	disk  *loopDisk
	first holdings
	last  stack.Leftovers // leftovers at the last count
	// perPod are the leftovers if a runtime loses track of one pod.
	perPod stack.Leftovers
	// lost is the number of pods that the runtime may have lost track of since the last count.
	lost   int
	memory []int          // memory of podd in KiB after each round without kills
	done   map[string]int // counts by kind of operation
}

// holdings are the resources that podd uses and that its pods have left on the host, counted while there
// is no pod. Memory is in KiB. Mounts is the number of mounts below podd's root directory. The field
// Runtime does not include these mounts, because the root directory is not below the directory of the
// stack.
type holdings struct {
	Goroutines, Files, Memory, Mounts int
	Runtime                           stack.Leftovers
}

// TestSoak repeats rounds of random and broken edits for $PODD_SOAK. Faults occur during the
// rounds: podd and the runtime are killed, disks are full, calls are slow, fail or hang, and the
// runtime is paused. After each round exactly the desired pods must run, and the resources of
// podd and its pods must not grow. In the second half of the test podd is not killed, because
// leaks appear only in a process that runs for long. $PODD_E2E_SEED repeats the same edits and
// faults.
func TestSoak(t *testing.T) {
	length, err := time.ParseDuration(os.Getenv("PODD_SOAK"))
	if err != nil {
		t.Fatalf("reading $PODD_SOAK: %v", err)
	}
	seed := uint64(time.Now().UnixNano())
	if set := os.Getenv("PODD_E2E_SEED"); set != "" {
		if seed, err = strconv.ParseUint(set, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("PODD_E2E_SEED=%d repeats these edits and faults", seed)
	// A killed runtime may leave network rules behind, which are removed together with the
	// stack.
	d, disk := onSmallDisk(t, stack.ForTest(t, stack.Options{}))
	s := &soak{
		chaos: chaos{d: d, random: rand.New(rand.NewPCG(seed, 0))},
		proxy: d.throughProxy(), disk: disk, done: map[string]int{},
	}
	d.start()
	d.warmUp()
	s.perPod = s.leftoversOfPod()
	s.first = s.currentHoldings()
	s.last = s.first.Runtime
	began := time.Now()
	for time.Since(began) < length {
		s.noCrashes = time.Since(began) >= length/2
		s.rounds()
		s.compareHoldings()
		t.Logf("%s: %v", time.Since(began).Round(time.Second), s.done)
	}
	s.compareMemory()
}

// leftoversOfPod returns what a runtime leaves on the host if it loses track of a pod.
func (s *soak) leftoversOfPod() stack.Leftovers {
	s.d.apply(s.d.pod("one", shell("main", serve("one"))))
	s.d.untilApplied("one")
	left, err := s.d.on.Leftovers(s.d.t.Context())
	s.must(err)
	s.d.remove("one")
	s.d.untilGone("one")
	s.d.wantNothingLeft()
	return left
}

// rounds makes roundsPerCount rounds and then removes all pods.
func (s *soak) rounds() {
	s.files, s.desired, s.broken = map[string]string{}, map[string]*v1.Pod{}, map[string]bool{}
	faults := []func(){s.killRuntime, s.pauseRuntime, s.delayCalls, s.failCalls, s.hangCalls, s.fillDisk}
	if !s.noCrashes {
		faults = append(faults, s.killBoth)
	}
	for range roundsPerCount {
		s.edit(editsPerRound / 2)
		faults[s.random.IntN(len(faults))]()
		s.untilDesired()
		s.done["rounds"]++
		if s.noCrashes {
			s.memory = append(s.memory, s.d.measure().memory)
		}
	}
	for _, file := range slices.Collect(maps.Keys(s.files)) {
		s.d.remove(file)
	}
	s.d.wantNothingLeft()
	s.done["kills of podd"] = s.crashes
}

// edit makes n random edits.
func (s *soak) edit(n int) {
	for range n {
		s.randomEdit()
		s.done["edits"]++
	}
}

// killRuntime kills the runtime, makes edits, and restarts it.
func (s *soak) killRuntime() {
	s.killAndCountLost()
	s.edit(editsPerRound / 2)
	s.must(s.d.on.Restart(s.d.t.Context()))
	s.done["kills of the runtime"]++
}

// killAndCountLost kills the runtime and counts the pods that the runtime was creating or stopping. After
// the kill, the runtime does not list the shims and networks of these pods, so podd cannot find them. The
// runtime is paused before the count, so that it begins no further call.
func (s *soak) killAndCountLost() {
	s.must(s.d.on.Pause())
	s.lost += s.proxy.callsInRuntime("RunPodSandbox", "StopPodSandbox", "RemovePodSandbox")
	s.must(s.d.on.Kill(s.d.t.Context()))
}

// killBoth kills podd and the runtime, restarts both, and makes edits.
func (s *soak) killBoth() {
	s.d.kill()
	s.killAndCountLost()
	s.must(s.d.on.Restart(s.d.t.Context()))
	s.d.start()
	s.edit(editsPerRound / 2)
	s.done["kills of both"]++
}

// pauseRuntime makes edits while the runtime is paused.
func (s *soak) pauseRuntime() {
	s.must(s.d.on.Pause())
	s.edit(editsPerRound / 2)
	s.must(s.d.on.Resume())
	s.done["pauses of the runtime"]++
}

// delayCalls makes edits while all calls are delayed by a random time.
func (s *soak) delayCalls() {
	delay := time.Duration(s.random.IntN(20_000)) * time.Millisecond
	s.proxy.onCall(func(at moment, _ call) bool {
		if at == before {
			late := time.NewTimer(delay)
			<-late.C
		}
		return false
	})
	s.edit(editsPerRound / 2)
	s.proxy.onCall(nil)
	s.done["slow calls"]++
}

// failCalls makes edits while some calls fail, before or after they reach the runtime.
func (s *soak) failCalls() {
	moments := []moment{before, after}
	at, every := moments[s.random.IntN(2)], 2+s.random.IntN(8)
	s.proxy.onCall(func(now moment, c call) bool { return now == at && c.Nth%every == 0 })
	s.edit(editsPerRound / 2)
	s.proxy.onCall(nil)
	s.done["failing calls"]++
}

// hangCalls makes some calls hang, before or after they reach the runtime, and then closes
// podd's connections.
func (s *soak) hangCalls() {
	moments := []moment{before, after}
	at, every := moments[s.random.IntN(2)], 2+s.random.IntN(8)
	closed := make(chan struct{})
	s.proxy.onCall(func(now moment, c call) bool {
		if now != at || c.Nth%every != 0 {
			return false
		}
		<-closed
		return true
	})
	s.edit(editsPerRound / 2)
	s.proxy.onCall(nil)
	s.proxy.disconnect()
	close(closed)
	s.done["hanging calls"]++
}

// fillDisk makes edits while the disk is full.
func (s *soak) fillDisk() {
	ballast := filepath.Join(s.disk.dir, "ballast")
	f, err := os.Create(ballast)
	s.must(err)
	for block := make([]byte, 64<<10); err == nil; {
		_, err = f.Write(block)
	}
	if !errors.Is(err, unix.ENOSPC) {
		s.must(err)
	}
	s.diskFull = true
	s.edit(editsPerRound / 2)
	s.must(errors.Join(f.Close(), os.Remove(ballast)))
	s.diskFull = false
	s.repairManifests()
	s.done["full disks"]++
}

// repairManifests replaces every invalid manifest with a valid one. It must be called after the disk was
// full. podd may then have applied content that it could not store, and after a restart it uses the last
// stored content. Therefore the test cannot know which version of a pod with an invalid manifest must
// run.
func (s *soak) repairManifests() {
	for _, file := range slices.Sorted(maps.Keys(s.broken)) {
		if s.broken[file] {
			s.writeVersion(file)
		}
	}
}

// must fails the test if err is not nil.
func (s *soak) must(err error) {
	s.d.t.Helper()
	if err != nil {
		s.d.t.Fatal(err)
	}
}

var goroutineMetric = regexp.MustCompile(`(?m)^go_goroutines (\d+)$`)

// currentHoldings counts the resources. The caller must have removed all pods.
func (s *soak) currentHoldings() holdings {
	d := s.d
	now := d.measure()
	left, err := d.on.Leftovers(d.t.Context())
	s.must(err)
	body, err := d.get(d.t.Context(), "/metrics")
	s.must(err)
	text, err := io.ReadAll(body)
	s.must(errors.Join(err, body.Close()))
	found := goroutineMetric.FindSubmatch(text)
	if found == nil {
		d.t.Fatalf("/metrics: got no go_goroutines, want one: %s", text)
	}
	goroutines, err := strconv.Atoi(string(found[1]))
	s.must(err)
	return holdings{goroutines, len(now.files), now.memory, s.rootMounts(), left}
}

// rootMounts returns the number of mounts below the root directory, without the disk itself.
func (s *soak) rootMounts() int {
	root, err := filepath.EvalSymlinks(s.d.root()) // the kernel's list contains no symbolic links
	s.must(err)
	mounts, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) {
		return !strings.HasPrefix(m.Mountpoint, root+"/"), false
	})
	s.must(err)
	return len(mounts)
}

// compareHoldings waits until podd and its pods use no more resources than at the first count. It polls,
// because the runtime may still be removing something and podd may be completing a call. It compares the
// leftovers on the host with those of the last count, because leftovers of pods that the runtime has lost
// track of remain.
func (s *soak) compareHoldings() {
	var now holdings
	s.d.eventually("podd and its pods use no more resources than at the first count", func() error {
		now = s.currentHoldings()
		if now.Goroutines > s.first.Goroutines+5 || now.Files > s.first.Files+2 || now.Memory > s.first.Memory+maxGrowth || now.Mounts > s.first.Mounts || !s.isExplained(now.Runtime) {
			return fmt.Errorf("got holdings %+v, want at most those of the first count (%+v) plus the tolerances; the runtime has lost %d pods since the last count; leftovers at the last count: %+v", now, s.first, s.lost, s.last)
		}
		return nil
	})
	s.d.t.Logf("%d goroutines, %d open files, %d KiB of memory, %d mounts below the root directory; leftovers: %s; the runtime has lost %d pods since the last count",
		now.Goroutines, now.Files, now.Memory, now.Mounts, now.Runtime, s.lost)
	s.last, s.lost = now.Runtime, 0
}

// isExplained reports whether now exceeds the leftovers of the last count by no more than the leftovers
// of the pods that the runtime has lost since then.
func (s *soak) isExplained(now stack.Leftovers) bool {
	was, pod := s.last, s.perPod
	return now.Sandboxes == 0 && now.Containers == 0 && now.Mounts <= s.first.Runtime.Mounts && now.Cgroups <= s.first.Runtime.Cgroups &&
		now.Shims <= was.Shims+s.lost*pod.Shims && now.NetNS <= was.NetNS+s.lost*pod.NetNS &&
		now.Rules <= was.Rules+s.lost*pod.Rules && now.Addresses <= was.Addresses+s.lost*pod.Addresses
}

// compareMemory compares podd's memory in the second and the last quarter of the rounds without
// kills. In the first quarter the memory grows to its usual size.
func (s *soak) compareMemory() {
	n := len(s.memory) / 4
	if n == 0 {
		s.d.t.Fatalf("got %d rounds without a kill of podd, want 4 or more to see a growth of its memory", len(s.memory))
	}
	was, now := median(s.memory[n:2*n]), median(s.memory[len(s.memory)-n:])
	s.d.t.Logf("podd's memory: %d KiB in the second quarter and %d KiB in the last quarter of %d rounds: %v", was, now, len(s.memory), s.memory)
	if now > was+maxTrend {
		s.d.t.Errorf("podd's memory: got %d KiB in the last quarter of the rounds and %d KiB in the second quarter, want at most %d KiB more", now, was, maxTrend)
	}
}

func median(all []int) int { return slices.Sorted(slices.Values(all))[len(all)/2] }
