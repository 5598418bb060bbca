package main

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile"
	"podd/runtime"
	"podd/server"
)

// TestNodeTrouble: what keeps every pod from being cared for is shown for as
// long as it is so, beside the problems of the manifests.
func TestNodeTrouble(t *testing.T) {
	v := newViewer(server.View{Node: "n1", Version: "v1"})
	set := &manifest.Set{Problems: []manifest.Problem{{Severity: manifest.Warning, Path: "a.yaml", Message: "typo"}}}
	up := runtime.Node{Name: "containerd", Reachable: true, Ready: true, NetworkReady: true}
	down := runtime.Node{Name: "containerd", Message: "nobody answers", NetworkReady: true}
	noCNI := up
	noCNI.NetworkReady, noCNI.NetworkMessage = false, "no CNI configuration"
	for _, step := range []struct {
		name   string
		change reconcile.Change
		want   string
	}{
		{"nothing is known", reconcile.Change{}, ""},
		{"the runtime answers", reconcile.Change{Node: up}, ""},
		{"manifests", reconcile.Change{Node: up, Set: set, SetChanged: true}, "typo"},
		{"the runtime is gone", reconcile.Change{Node: down, Set: set}, "nobody answers, typo"},
		{"nothing new", reconcile.Change{Node: down, Set: set}, "nobody answers, typo"},
		{"no network", reconcile.Change{Node: noCNI, Set: set}, "no CNI configuration, typo"},
		{"all is well", reconcile.Change{Node: up, Set: set}, "typo"},
	} {
		v.publish(step.change)
		var got []string
		for _, p := range v.latest.View().Problems {
			got = append(got, p.Message)
		}
		if strings.Join(got, ", ") != step.want {
			t.Errorf("%s: got %q, want %q", step.name, got, step.want)
		}
	}
}

// TestLogNew: a problem is logged when it comes up, and again when it was away; of
// a file without errors any more it is told, once, but not that it is gone.
func TestLogNew(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(newLineHandler(&out, slog.LevelInfo))
	typo := manifest.Problem{Severity: manifest.Warning, Path: "a.yaml", Position: manifest.Position{Line: 4, Column: 2}, Field: "spec.imagee", Message: "unknown field"}
	broken := manifest.Problem{Severity: manifest.Error, Path: "b.yaml", Message: "not YAML"}
	var said []manifest.Problem
	moved := broken
	moved.Position.Line = 9
	files := []manifest.FileState{{Path: "a.yaml"}, {Path: "b.yaml"}}
	for _, now := range [][]manifest.Problem{{typo}, {typo}, {broken, typo}, {moved}, {}, {}, {broken}} {
		said = logNew(log, now, said, files)
	}
	logNew(log, nil, said, files[:1])
	var got []string
	for line := range strings.Lines(out.String()) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		got = append(got, rest)
	}
	want := `WARN manifest at=a.yaml:4:2 why="spec.imagee: unknown field"|ERROR manifest at=b.yaml why="not YAML"|ERROR manifest at=b.yaml:9 why="not YAML"|mended at=b.yaml|ERROR manifest at=b.yaml why="not YAML"`
	if strings.Join(got, "|") != want {
		t.Errorf("got %q", got)
	}
}

// TestEditedUnreported: who follows pods learns of the one that another took the
// place of before its worker spoke.
func TestEditedUnreported(t *testing.T) {
	v := newViewer(server.View{Node: "n1"})
	var told []types.UID
	v.changed = func(before, _ *server.PodView, _ time.Time) {
		if before != nil {
			told = append(told, before.Pod.UID)
		}
	}
	key := types.NamespacedName{Namespace: "default", Name: "web-n1"}
	for _, uid := range []types.UID{"first", "second"} {
		pod := &manifest.Pod{Key: key, UID: uid, Spec: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: uid}}}
		v.publish(reconcile.Change{SetChanged: true, Set: &manifest.Set{Pods: map[types.NamespacedName]*manifest.Pod{key: pod}}})
	}
	if !slices.Equal(told, []types.UID{"first"}) {
		t.Errorf("told of %q", told)
	}
}
