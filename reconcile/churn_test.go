package reconcile_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"podd/manifest"
	"podd/runtime/runtimetest"
)

// TestChurn edits fifty pods at random, while the runtime fails and restarts, containers
// crash and podd is restarted. In the end exactly the desired pods run. The synctest bubble
// checks that no goroutine remains.
func TestChurn(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			run(t, func(t *testing.T, m *machine) { churn(t, m, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

const names = 50

func churn(t *testing.T, m *machine, random *rand.Rand) {
	failure := ""
	m.watchStarts(&failure, time.Millisecond)
	luck := rand.New(rand.NewPCG(random.Uint64(), 2)) // used only while the runtime holds its lock, so that no other lock is needed
	m.Inject(runtimetest.Fault{Match: func(q any) bool { return isChange(q) && luck.IntN(40) == 0 }})
	m.Inject(runtimetest.Fault{AfterEffect: true, Match: func(q any) bool { return isChange(q) && luck.IntN(40) == 0 }})
	versions := make([][]*manifest.Pod, names)
	for i := range versions {
		for _, spec := range []string{
			web, "terminationGracePeriodSeconds: 3\n" + web, "terminationGracePeriodSeconds: 0\n" + web,
			`volumes: [{name: v, emptyDir: {}}]
containers: [{name: app, image: "web:2", volumeMounts: [{name: v, mountPath: /v}]}, {name: too, image: "web:1"}]`,
			`containers: [{name: app, image: "web:1", startupProbe: {exec: {command: [sleep, "1"]}, timeoutSeconds: 2}, livenessProbe: {exec: {command: ["true"]}, periodSeconds: 1}}]`,
			fmt.Sprintf(`containers: [{name: app, image: "web:1", ports: [{containerPort: 80, hostPort: %d}]}]`, 8000+i/2),
		} {
			versions[i] = append(versions[i], pod(t, fmt.Sprintf("p%02d", i), spec))
		}
		versions[i] = append(versions[i], podOf(t, fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: p%02d, uid: fixed-%d}\nspec: {containers: [{name: app, image: \"web:2\"}]}", i, i)),
			podOf(t, fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: p%02d, uid: fixed-%d}\nspec: {containers: [{name: app, image: \"web:1\"}]}", i, i)))
	}
	m.start()
	wanted := make([]*manifest.Pod, names)
	want := func() {
		m.setPods(slices.DeleteFunc(slices.Clone(wanted), func(p *manifest.Pod) bool { return p == nil })...)
	}
	for range 60 {
		for range random.IntN(12) {
			i := random.IntN(names)
			wanted[i] = nil
			if random.IntN(4) > 0 {
				wanted[i] = versions[i][random.IntN(len(versions[i]))]
			}
		}
		want()
		m.advance(time.Duration(random.IntN(500)) * time.Millisecond)
		switch random.IntN(10) {
		case 0:
			m.Disconnect()
			m.advance(time.Duration(random.IntN(2000)) * time.Millisecond)
			m.Reconnect()
		case 1:
			m.kill()
			m.start()
		case 2, 3:
			m.ExitContainer(fmt.Sprintf("default/p%02d/app", random.IntN(names)), 1)
		}
	}
	// Two pods with the same host port cannot both run. In the end all desired pods must run, so no
	// two of them may have the same host port.
	for i := range wanted {
		if wanted[i] == versions[i][4] && i%2 == 1 {
			wanted[i] = versions[i][0]
		}
	}
	want()
	m.advance(15 * time.Minute)
	if failure != "" {
		t.Fatal(failure)
	}
	checkChurn(t, m, wanted)
	m.setPods()
	m.advance(5 * time.Minute)
	m.wantState()
	if len(m.dirs()) > 0 || len(m.leftovers.attempts) > 0 || len(m.reports) > 0 {
		t.Errorf("after all pods were removed: got directories %v, log directories %v and reports %v, want none", m.dirs(), m.leftovers.attempts, m.reports)
	}
	if logs, err := os.ReadDir(filepath.Join(m.root, "logs")); err == nil && len(logs) > 0 {
		t.Errorf("after all pods were removed: got logs %v, want none", logs)
	}
}

// checkChurn checks that each desired pod runs once, in its desired version, and that
// nothing else runs.
func checkChurn(t *testing.T, m *machine, wanted []*manifest.Pod) {
	t.Helper()
	var want, dirs []string
	for _, p := range wanted {
		if p == nil {
			continue
		}
		want = append(want, p.Key.Name+" ready")
		dirs = append(dirs, string(p.UID))
		for _, c := range p.Object.Spec.Containers {
			want = append(want, p.Key.Name+"/"+c.Name+" running")
		}
		if r := m.report(p.Key.Name); r == nil || r.Version != p || r.Pod.Status.Phase != "Running" {
			t.Errorf("report of pod %s: got %+v, want version %s in phase Running", p.Key, r, p.Hash)
		}
	}
	slices.Sort(want)
	slices.Sort(dirs)
	if got := m.alive(); !slices.Equal(got, want) {
		t.Fatalf("sandboxes and containers in the end: got\n%v\nwant\n%v\n%s", got, want, m.state())
	}
	if !slices.Equal(m.dirs(), dirs) {
		t.Errorf("pod directories: got\n%v\nwant\n%v", m.dirs(), dirs)
	}
}
