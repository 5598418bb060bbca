package effect

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile/plan"
	"podd/reconcile/result"
	"podd/runtime"
)

// noStop is a runtime that cannot stop containers.
type noStop struct{ Runtime }

func (noStop) StopContainer(context.Context, string, time.Duration) error {
	return context.DeadlineExceeded
}

func TestUnkillableProcessesInErrors(t *testing.T) {
	observed := []runtime.Incarnation{{
		Sandbox:    runtime.Sandbox{ID: "s", UID: "uid"},
		Containers: []runtime.Container{{ID: "c", Name: "main", State: runtime.Running}},
	}}
	stuck := map[types.UID][]string{"uid": {`7 "date"`, `9 "sync"`}}
	e := &Runner{Runtime: noStop{}, UnkillableProcesses: func(uid types.UID) []string { return stuck[uid] }}
	stops := map[string]func() error{
		"stop": func() error {
			_, err := e.stopContainer(t.Context(), observed, plan.StopContainer{Container: "main", ID: "c"})
			return err
		},
		"stop of the sandbox": func() error { return e.killContainers(t.Context(), observed, "s") },
		"removal":             func() error { return e.removeContainer(t.Context(), observed, "c") },
	}
	for name, stop := range stops {
		t.Run(name, func(t *testing.T) {
			const want = `wait in the kernel for a disk or a file server: 7 "date", 9 "sync";`
			if err := stop(); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), want) {
				t.Errorf("got error %v, want %v with %q in the message", err, context.DeadlineExceeded, want)
			}
		})
	}
	stuck["uid"] = nil
	for name, stop := range stops {
		if err := stop(); err == nil || strings.Contains(err.Error(), "kernel") {
			t.Errorf("%s without processes that wait in the kernel: got error %v, want an error that names no process", name, err)
		}
	}
}

// TestKillProcesses checks that an effect kills the containers of one incarnation, and that its error names
// processes that wait in the kernel.
func TestKillProcesses(t *testing.T) {
	observed := []runtime.Incarnation{
		{Sandbox: runtime.Sandbox{ID: "s", UID: "uid"}, Containers: []runtime.Container{{ID: "c"}, {ID: "d", State: runtime.Exited}}},
		{Sandbox: runtime.Sandbox{ID: "later", UID: "uid"}, Containers: []runtime.Container{{ID: "e"}}},
	}
	remaining := errors.New("1 processes remain")
	for name, test := range map[string]struct {
		err        error
		unkillable []string
		want       string // in the error
	}{
		"killed":            {},
		"a process remains": {err: remaining, want: "1 processes remain"},
		"a process waits":   {err: remaining, unkillable: []string{`7 "date"`}, want: `wait in the kernel for a disk or a file server: 7 "date"`},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			e := &Runner{
				UnkillableProcesses: func(types.UID) []string { return test.unkillable },
				KillContainers: func(ctx context.Context, uid types.UID, ids []string, wereFound bool) (bool, error) {
					if _, isLimited := ctx.Deadline(); !isLimited {
						t.Error("context of the kill: got no deadline, want one")
					}
					got = append(append(got, string(uid), strconv.FormatBool(wereFound)), ids...)
					return true, test.err
				},
			}
			r := e.Do(t.Context(), plan.KillProcesses{UID: "uid", SandboxID: "s", WereFound: true}, Input{Observed: observed})
			if want := []string{"uid", "true", "s", "c", "d"}; !slices.Equal(got, want) {
				t.Errorf("arguments of the kill: got %q, want %q", got, want)
			}
			if r.Value != (result.KilledProcesses{Found: true}) {
				t.Errorf("got value %+v, want that a container was found", r.Value)
			}
			if isKilled := r.Err == nil; isKilled != (test.want == "") || (r.Warning != "") != isKilled || !isKilled && !strings.Contains(r.Err.Error(), test.want) {
				t.Errorf("got warning %q and error %v, want an error with %q, or a warning if there is none", r.Warning, r.Err, test.want)
			}
		})
	}
	r := (&Runner{}).Do(t.Context(), plan.KillProcesses{UID: "uid", SandboxID: "s"}, Input{Observed: observed})
	if r.Err == nil || !strings.Contains(r.Err.Error(), "cgroupsPerQOS is false") {
		t.Errorf("without pod cgroups: got error %v, want one that names cgroupsPerQOS", r.Err)
	}
}
