package effect

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile/plan"
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
