package reconcile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/manifest/decode"
	"podd/reconcile"
)

func adopts(o *reconcile.Options) {
	useCluster(o)
	o.AdoptKubeletPods = true
}

// makeClusterPodOfKubelet creates the sandbox and containers of a kubelet for a pod of the cluster.
func (m *machine) makeClusterPodOfKubelet(name string) {
	m.makeKubeletPod(name, "uid-"+name, map[string]string{manifest.AnnotationConfigSource: manifest.KindAPI})
}

func withRestartNever(p *v1.Pod) { p.Spec.RestartPolicy = v1.RestartPolicyNever }

// TestTakeOver checks a pod that a kubelet created and that may terminate by itself. podd takes it
// over without a restart, and does not create it again after it has ended.
func TestTakeOver(t *testing.T) {
	for name, test := range map[string]struct {
		run  func(m *machine)
		want v1.PodPhase
	}{
		"succeeds": {func(m *machine) { m.ExitContainer("default/job/app", 0) }, v1.PodSucceeded},
		"fails":    {func(m *machine) { m.ExitContainer("default/job/app", 3) }, v1.PodFailed},
		"ends while no podd runs": {func(m *machine) {
			m.kill()
			m.ExitContainer("default/job/app", 3)
			m.start()
		}, v1.PodFailed},
		"is deleted": {func(m *machine) { m.setClusterPods(true, clusterPod("job", allOf(withRestartNever, withDeletion(5)))) }, ""},
		"is deleted while no podd runs": {func(m *machine) {
			m.kill()
			m.setClusterPods(true, clusterPod("job", allOf(withRestartNever, withDeletion(5))))
			m.start()
		}, ""},
		"is no longer in the cluster":                         {func(m *machine) { m.setClusterPods(true) }, ""},
		"is removed from the cluster while no podd runs":      {func(m *machine) { m.kill(); m.setClusterPods(true); m.start() }, ""},
		"keeps running after a restart of podd":               {func(m *machine) { m.kill(); m.start() }, v1.PodRunning},
		"keeps running after a restart of podd without adopt": {func(m *machine) { m.kill(); m.options, m.adopt = useCluster, false; m.start() }, v1.PodRunning},
		"succeeds after a restart of podd without adopt": {func(m *machine) {
			m.kill()
			m.options, m.adopt = useCluster, false
			m.start()
			m.settle()
			m.ExitContainer("default/job/app", 0)
		}, v1.PodSucceeded},
		"is removed from the cluster before a restart of podd without adopt": {func(m *machine) { m.kill(); m.options, m.adopt = useCluster, false; m.setClusterPods(true); m.start() }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, m *machine) {
				m.options, m.adopt = adopts, true
				m.makeClusterPodOfKubelet("job")
				m.ForgetCalls()
				m.start()
				m.setClusterPods(true, clusterPod("job", withRestartNever))
				m.settle()
				if r := m.report("job"); r == nil || r.Pod.Status.Phase != v1.PodRunning {
					t.Fatalf("report of job: got %+v, want phase Running", r)
				}
				test.run(m)
				m.advance(2 * time.Minute)
				if r := m.report("job"); test.want == "" && r != nil || test.want != "" && (r == nil || r.Pod.Status.Phase != test.want) {
					t.Errorf("report of job: got %+v, want phase %q", r, test.want)
				}
				if made := append(m.Calls("RunPodSandbox"), m.Calls("CreateContainer")...); len(made) > 0 {
					t.Errorf("calls that create sandboxes or containers: got %v, want none", made)
				}
				if test.want == "" {
					m.wantState()
				}
			})
		})
	}
}

// TestTakeOver_NotRecorded checks that a sandbox that was not taken over does not belong to podd,
// even if there is a journal of its pod.
func TestTakeOver_NotRecorded(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.options = useCluster
		m.makeClusterPodOfKubelet("job")
		m.ForgetCalls()
		m.start()
		m.setClusterPods(true, clusterPod("job", withRestartNever))
		m.advance(time.Minute)
		m.kill()
		m.start()
		m.advance(time.Minute)
		if ended := m.Calls("StopContainer"); len(ended) > 0 {
			t.Errorf("calls that stop something: got %v, want none", ended)
		}
		if r := m.report("job"); r == nil || r.Pod.Status.Phase != v1.PodPending {
			t.Errorf("report of job: got %+v, want phase Pending", r)
		}
	})
}

// TestTakeOver_Replaced checks that a kubelet's pod that does not terminate by itself is stopped
// and then replaced.
func TestTakeOver_Replaced(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.options, m.adopt = adopts, true
		m.makeClusterPodOfKubelet("web")
		m.ForgetCalls()
		m.start()
		m.setClusterPods(true, clusterPod("web", nil))
		m.advance(time.Minute)
		if made, ended := m.Calls("StartContainer"), m.Calls("StopContainer"); len(made) != 1 || len(ended) != 1 || made[0].At.Before(ended[0].At) {
			t.Errorf("got stops %v and starts %v, want one stop, and one start after it", ended, made)
		}
	})
}

// TestTakeOver_Static checks that a kubelet's pod of a file is replaced once, with the same UID.
// Later podds keep that UID, independent of the journal.
func TestTakeOver_Static(t *testing.T) {
	ofFile := func() *manifest.Pod {
		text := "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {" + web + "}\n"
		return decode.File([]byte(text), decode.Options{Kind: manifest.KindFile, Source: source, Path: source + "/a.yaml"}).Pods[0]
	}
	for name, next := range map[string]func(m *machine){
		"podd restarts":               func(*machine) {},
		"podd restarts without adopt": func(m *machine) { m.options, m.adopt = nil, false },
		"podd restarts after the loss of its journals": func(m *machine) {
			if err := os.RemoveAll(filepath.Join(m.root, "pods")); err != nil {
				m.t.Fatal(err)
			}
		},
		"podd restarts, and a journal has the UID of the manifest": func(m *machine) {
			p := ofFile()
			if err := os.Mkdir(filepath.Dir(m.journal(p)), 0o700); err != nil {
				m.t.Fatal(err)
			}
			text := fmt.Sprintf(`{"key": {"Namespace": "default", "Name": "web"}, "uid": %q, "hash": %q, "containers": {"app": {"lastExit": {"ID": "x", "Code": 1}}}}`, p.UID, p.Hash)
			if err := os.WriteFile(m.journal(p), []byte(text), 0o600); err != nil {
				m.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, m *machine) {
				m.options, m.adopt = adopts, true
				m.makeKubeletPod("web", "theirs", map[string]string{manifest.AnnotationConfigSource: manifest.KindFile, manifest.AnnotationConfigHash: "theirs"})
				m.ForgetCalls()
				m.setPods(ofFile())
				m.start()
				m.advance(time.Minute)
				if made, ended := m.Calls("RunPodSandbox"), m.Calls("StopContainer"); len(made) != 1 || len(ended) != 1 || m.report("web").Pod.UID != "theirs" {
					t.Fatalf("got stops %v and new sandboxes %v, want one of each and UID theirs", ended, made)
				}
				m.ExitContainer("default/web/app", 1)
				m.advance(time.Minute)
				m.kill()
				next(m)
				m.ForgetCalls()
				m.start()
				m.advance(time.Minute)
				m.setPods(ofFile())
				m.advance(time.Minute)
				if made, ended := m.Calls("RunPodSandbox"), m.Calls("StopContainer"); len(made)+len(ended) > 0 || m.report("web").Pod.UID != "theirs" {
					t.Errorf("got stops %v, new sandboxes %v and UID %s, want none and UID theirs", ended, made, m.report("web").Pod.UID)
				}
			})
		})
	}
}
