package podwriter

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/clustertest"
	"podd/cmd/podd/internal/cluster/mirror"
	"podd/cmd/podd/internal/cluster/watchable"
	"podd/manifest"
	"podd/server"
)

// A testWriter runs a Writer for the Node n1 against an API server. A Reflector watches the pods.
type testWriter struct {
	*clustertest.API
	state     *server.LatestView
	deletions watchable.Value[map[types.UID]uint64]
	mu        sync.Mutex  // guards rejected
	rejected  []Rejection // the argument of the last call of OnRejected
}

// runWriter starts a Writer in a synctest bubble, lets 2 s pass and calls test. prepare may be nil.
func runWriter(t *testing.T, prepare func(*testWriter, *Options), test func(*testWriter)) {
	synctest.Test(t, func(t *testing.T) {
		l := &testWriter{API: &clustertest.API{Version: 1}, state: server.NewLatestView(&server.View{Revision: 1})}
		l.PutNode(clustertest.NewNodeWithUID("u1"), "ADDED")
		var pods apiserver.Store[*v1.Pod]
		var nodes apiserver.Store[*v1.Node]
		var watchCount watchable.Value[int]
		nodes.Set(apiserver.Snapshot[*v1.Node]{Items: map[types.NamespacedName]*v1.Node{{Name: "n1"}: l.Node}, ListCount: 1})
		o := Options{
			NodeName: "n1", Pods: &pods, WatchCount: &watchCount, Nodes: &nodes, Deletions: &l.deletions, Log: slog.New(slog.DiscardHandler),
			OnRejected: func(_ context.Context, all []Rejection) { l.mu.Lock(); l.rejected = all; l.mu.Unlock() },
		}
		if prepare != nil {
			prepare(l, &o)
		}
		o.Client, o.State = clustertest.NewClient(t, l.API, apiserver.Options{QPS: 50, Burst: 100}), l.state
		reflector := apiserver.Reflector[*v1.Pod]{
			Client: o.Client, Query: o.Client.PodsQuery("n1"), EmptyList: &v1.PodList{}, Publish: pods.Set, WatchCount: &watchCount, Report: func(context.Context, error) {},
		}
		w := New(o)
		ctx, cancel := context.WithCancel(t.Context())
		var parts sync.WaitGroup
		parts.Go(func() { reflector.Run(ctx) })
		parts.Go(func() { w.Run(ctx) })
		clustertest.Advance(2 * time.Second)
		test(l)
		cancel()
		parts.Wait()
	})
}

// publish publishes a View with pods and lets 1 s pass.
func (l *testWriter) publish(pods ...*server.PodView) {
	v := *l.state.View()
	v.Revision++
	v.Pods = pods
	l.state.Publish(&v)
	clustertest.Advance(time.Second)
}

// rejections returns the argument of the last call of OnRejected.
func (l *testWriter) rejections() []Rejection {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rejected
}

// podView returns the view of a pod with a status.
func podView(p *v1.Pod, s v1.PodStatus) *server.PodView {
	p = p.DeepCopy()
	p.Status = s
	return &server.PodView{Pod: p, Rule: "rule", Exists: true, Path: "/m/web.yaml", Line: 2}
}

// runningStatus returns the status of a ready pod. Its container "main" has been running since the
// time start.
func runningStatus(start time.Time) v1.PodStatus {
	ready := v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionTrue, LastTransitionTime: metav1.NewTime(start)}
	return v1.PodStatus{Phase: v1.PodRunning, StartTime: new(metav1.NewTime(start)), Conditions: []v1.PodCondition{ready}, ContainerStatuses: []v1.ContainerStatus{
		{Name: "main", Ready: true, State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.NewTime(start.Add(123 * time.Millisecond))}}},
	}}
}

// TestWriter_Mirror checks that podd creates a mirror pod with the status of a static pod, and
// restores the mirror pod if another client deletes or changes it. podd must send no requests while
// nothing changes.
func TestWriter_Mirror(t *testing.T) {
	runWriter(t, nil, func(l *testWriter) {
		static := clustertest.NewStaticPod(t, clustertest.WebManifest)
		l.publish(podView(static, runningStatus(clustertest.Noon)))
		first := l.StoredPod("default", "web-n1")
		if first == nil || !mirror.IsMirror(first) || first.OwnerReferences[0].UID != l.Node.UID || !first.Status.ContainerStatuses[0].Ready {
			t.Fatalf("got mirror pod %+v, want a ready mirror pod that the Node owns", first)
		}
		l.CountRequests()
		clustertest.Advance(time.Hour)
		if n := l.CountRequests("PATCH pods", "POST pods", "DELETE pods", "GET pods"); n[0]+n[1]+n[2]+n[3] > 0 {
			t.Errorf("hour without changes: got %d PATCHes, %d POSTs, %d DELETEs, %d GETs of pods; want none", n[0], n[1], n[2], n[3])
		}
		for name, interfere := range map[string]func(*v1.Pod){
			"deleted":                          func(p *v1.Pod) { l.PutPod(p, "DELETED") },
			"being deleted":                    func(p *v1.Pod) { p.DeletionTimestamp = new(metav1.Now()); l.PutPod(p, "MODIFIED") },
			"of another node":                  func(p *v1.Pod) { p.OwnerReferences[0].UID = "x"; l.PutPod(p, "MODIFIED") },
			"status changed by another client": func(p *v1.Pod) { p.Status = v1.PodStatus{Phase: v1.PodUnknown}; l.PutPod(p, "MODIFIED") },
		} {
			before := l.StoredPod("default", "web-n1")
			l.Change(func() { interfere(before.DeepCopy()) })
			clustertest.Advance(time.Second)
			now := l.StoredPod("default", "web-n1")
			if now == nil || now.ResourceVersion == before.ResourceVersion || now.DeletionTimestamp != nil || now.OwnerReferences[0].UID != l.Node.UID || now.Status.Phase != v1.PodRunning {
				t.Errorf("%s: got mirror pod %+v, want a changed or new running mirror pod that the Node owns", name, now)
			}
		}
		edited := clustertest.NewStaticPod(t, clustertest.WebManifest+"  hostNetwork: true\n")
		l.publish(podView(edited, runningStatus(clustertest.Noon)))
		if m := l.StoredPod("default", "web-n1"); m == nil || m.Annotations[manifest.AnnotationConfigMirror] != string(edited.UID) || !m.Spec.HostNetwork {
			t.Errorf("static pod edited: got mirror pod %+v, want that of the new version", m)
		}
		l.publish()
		if m := l.StoredPod("default", "web-n1"); m != nil {
			t.Errorf("static pod removed: got mirror pod %+v, want none", m)
		}
		if rejections := l.rejections(); len(rejections) > 0 {
			t.Errorf("got rejections %v, want none", rejections)
		}
	})
}

// TestWriter_Loopback checks that podd writes a loopback address to the status of a pod only if the
// user has configured this address with --node-ip.
func TestWriter_Loopback(t *testing.T) {
	for provided, want := range map[string]string{"": "10.0.0.1 10.0.0.1", "127.0.0.1": "127.0.0.1 127.0.0.1"} {
		runWriter(t, func(_ *testWriter, o *Options) { o.IsAddressConfigured = provided != "" }, func(l *testWriter) {
			static := clustertest.NewStaticPod(t, clustertest.WebManifest+"  hostNetwork: true\n")
			for _, ip := range []string{"10.0.0.1", "127.0.0.1"} {
				s := runningStatus(clustertest.Noon)
				s.HostIP, s.HostIPs, s.PodIP, s.PodIPs = ip, []v1.HostIP{{IP: ip}}, ip, []v1.PodIP{{IP: ip}}
				l.publish(podView(static, s))
			}
			if s := l.StoredPod("default", "web-n1").Status; s.HostIP+" "+s.PodIP != want {
				t.Errorf("--node-ip %q: got hostIP and podIP \"%s %s\", want %q", provided, s.HostIP, s.PodIP, want)
			}
		})
	}
}

// TestWriter_OrphanedMirror checks a static pod that was removed while podd did not run. podd must
// delete its mirror pod, but not before podd has read all sources.
func TestWriter_OrphanedMirror(t *testing.T) {
	prepare := func(l *testWriter, _ *Options) {
		m := mirror.New(clustertest.NewStaticPod(t, clustertest.WebManifest), clustertest.NewNodeWithUID("u1"))
		m.UID, m.Spec.NodeName = "m", "n1"
		l.PutPod(m, "ADDED")
		l.state = server.NewLatestView(&server.View{Revision: 1, NodeObject: clustertest.NewLocalNode(), Starting: true, UnreadSources: []string{"/m"}})
	}
	runWriter(t, prepare, func(l *testWriter) {
		publishChange := func(change func(*server.View)) {
			v := *l.state.View()
			v.Revision++
			change(&v)
			l.state.Publish(&v)
			clustertest.Advance(10 * time.Second)
		}
		publishChange(func(v *server.View) { v.Starting = false })
		if l.StoredPod("default", "web-n1") == nil {
			t.Error("before the source /m was read: got no mirror pod, want one")
		}
		publishChange(func(v *server.View) { v.UnreadSources = nil })
		if m := l.StoredPod("default", "web-n1"); m != nil {
			t.Errorf("after all sources were read: got mirror pod %+v, want none", m)
		}
	})
}

// TestWriter_FinalDelete checks a bound pod that another client has deleted. podd must write the final
// status and remove the pod from the API server, but not before podd has applied the deletion and
// removed the pod from the node. The final status must contain the exit code of the container, even if
// View.Pods never contained it.
func TestWriter_FinalDelete(t *testing.T) {
	t.Run("unknown exit code", func(t *testing.T) { testFinalDelete(t, nil, 137) })
	exited := runningStatus(clustertest.Noon)
	exited.Phase = v1.PodFailed
	exited.ContainerStatuses[0].State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: 3}}
	t.Run("known exit code", func(t *testing.T) { testFinalDelete(t, &exited, 3) })
}

// testFinalDelete is TestWriter_FinalDelete with the status in View.RemovedPods, or nil. The parameter
// wantCode is the exit code in the final status.
func testFinalDelete(t *testing.T, removed *v1.PodStatus, wantCode int32) {
	runWriter(t, nil, func(l *testWriter) {
		p := clustertest.NewBoundPod("app", "1")
		p.UID = "a"
		l.Change(func() { l.PutPod(p, "ADDED") })
		l.publish(podView(p, runningStatus(clustertest.Noon)))
		p = l.StoredPod("default", "app").DeepCopy()
		if p.Status.Phase != v1.PodRunning {
			t.Fatalf("before the deletion: got status %+v, want phase Running", p.Status)
		}
		p.DeletionTimestamp = new(metav1.Now())
		var last *v1.Pod
		l.Change(func() { l.PutPod(p, "MODIFIED"); l.DropPodFields = func(p *v1.Pod) { last = p } })
		clustertest.Advance(time.Minute)
		if last != nil || l.StoredPod("default", "app") == nil {
			t.Fatalf("pod still on the node: got written pod %+v, pod %+v in the API server; want no written status and no deletion", last, l.StoredPod("default", "app"))
		}
		// Batch 7 of the source contains the deletion.
		l.deletions.Set(map[types.UID]uint64{p.UID: 7})
		l.publish()
		if last != nil {
			t.Fatalf("pod removed from the node, but batch 7 not applied: got written pod %+v, want no written status", last)
		}
		v := *l.state.View()
		v.Revision++
		v.AppliedBatches = map[string]uint64{server.ClusterSource: 7}
		if removed != nil {
			v.RemovedPods = map[types.NamespacedName]*v1.Pod{{Namespace: "default", Name: "app"}: podView(p, *removed).Pod}
		}
		l.state.Publish(&v)
		clustertest.Advance(time.Second)
		l.Change(func() { l.DropPodFields = nil })
		if now := l.StoredPod("default", "app"); now != nil || last == nil || last.Status.Phase != v1.PodFailed || last.Status.ContainerStatuses[0].State.Terminated == nil || last.Status.ContainerStatuses[0].State.Terminated.ExitCode != wantCode {
			t.Errorf("batch 7 applied: got pod %+v, last written pod %+v; want no pod, and a last status Failed with exit code %d", now, last, wantCode)
		}
	})
}

// TestWriter_Outage checks that podd writes the changes of an outage within 5 s after the outage, and
// sends few requests during the outage.
func TestWriter_Outage(t *testing.T) {
	for name, fault := range map[string]func(*http.Request) (*http.Response, error){
		"unreachable": func(*http.Request) (*http.Response, error) { return nil, syscall.ECONNREFUSED },
		"server error": func(*http.Request) (*http.Response, error) {
			return clustertest.ErrorResponse(apierrors.NewInternalError(syscall.EIO)), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			runWriter(t, nil, func(l *testWriter) {
				var views []*server.PodView
				for i := range 20 {
					views = append(views, podView(clustertest.NewStaticPod(t, strings.Replace(clustertest.WebManifest, "name: web", "name: web"+string(rune('a'+i)), 1)), runningStatus(clustertest.Noon)))
				}
				l.publish(views...)
				l.Change(func() { l.Fault = fault; l.InterruptWatches() })
				for i := range views {
					views[i] = podView(views[i].Pod, runningStatus(clustertest.Noon.Add(time.Minute)))
				}
				l.CountRequests()
				l.publish(views...)
				clustertest.Advance(3 * time.Minute)
				if n := l.CountRequests("PATCH pods"); n[0] == 0 || n[0] > 180*20/3 {
					t.Errorf("in an outage of three minutes: got %d patches of 20 pods, want 1 to 1200", n[0])
				}
				l.Change(func() { l.Fault = nil })
				clustertest.Advance(5 * time.Second)
				for _, v := range views {
					if m := l.StoredPod("default", v.Pod.Name); m == nil || m.Status.ContainerStatuses[0].State.Running.StartedAt.Unix() != clustertest.Noon.Add(time.Minute).Unix() {
						t.Errorf("%s, 5s after the outage: got pod %+v, want the new start time", v.Pod.Name, m)
					}
				}
			})
		})
	}
}

// TestWriter_StatusSynced checks the duration that podd passes to OnStatusSynced. It begins with the
// first change of the pod that was not written yet. podd must not measure a pod without a change.
func TestWriter_StatusSynced(t *testing.T) {
	var took []time.Duration
	prepare := func(_ *testWriter, o *Options) { o.OnStatusSynced = func(d time.Duration) { took = append(took, d) } }
	runWriter(t, prepare, func(l *testWriter) {
		static := clustertest.NewStaticPod(t, clustertest.WebManifest)
		publish := func(at time.Duration) { l.publish(podView(static, runningStatus(clustertest.Noon.Add(at)))) }
		check := func(step string, atLeast, atMost time.Duration) {
			t.Helper()
			if len(took) != 1 || took[0] < atLeast || took[0] > atMost {
				t.Errorf("%s: got durations %v, want one from %s to %s", step, took, atLeast, atMost)
			}
			took = nil
		}
		publish(0)
		check("new pod", 0, 0)
		publish(0)
		if len(took) > 0 {
			t.Errorf("same status: got durations %v, want none", took)
		}
		l.Change(func() {
			l.Fault = func(*http.Request) (*http.Response, error) {
				return clustertest.ErrorResponse(apierrors.NewInternalError(syscall.EIO)), nil
			}
		})
		publish(time.Minute)
		clustertest.Advance(20 * time.Second)
		publish(2 * time.Minute)
		if len(took) > 0 {
			t.Errorf("failed updates: got durations %v, want none", took)
		}
		l.Change(func() { l.Fault = nil })
		clustertest.Advance(10 * time.Second)
		check("after failures", 21*time.Second, 33*time.Second)
		publish(3 * time.Minute)
		check("next change", 0, 0)
	})
}

// TestWriter_MirrorRejectedPrivate checks a rejection in which the API server quotes a private value
// of the pod. podd must redact the value, because every user can see the reported problem.
func TestWriter_MirrorRejectedPrivate(t *testing.T) {
	runWriter(t, nil, func(l *testWriter) {
		l.Change(func() {
			l.Fault = func(q *http.Request) (*http.Response, error) {
				if q.Method == http.MethodPost && strings.HasSuffix(q.URL.Path, "/pods") {
					return clustertest.ErrorResponse(apierrors.NewBadRequest(`metadata.annotations: Invalid value: "hunter2-and-more"`)), nil
				}
				return nil, nil
			}
		})
		web := clustertest.NewStaticPod(t, clustertest.WebManifest)
		web.Annotations["example.com/token"] = "hunter2-and-more"
		l.publish(podView(web, runningStatus(clustertest.Noon)))
		clustertest.Advance(time.Minute)
		if rejections := l.rejections(); len(rejections) != 1 || !strings.Contains(rejections[0].Reason, `Invalid value: "<redacted>"`) {
			t.Errorf("got rejections %v, want one that contains \"<redacted>\" instead of the value", rejections)
		}
	})
}

// TestWriter_StatusRejectedPrivate checks rejections in which the API server quotes parts of the
// status, such as the end of a log. podd must redact these parts in the reported problem, even if the
// status of the pod has changed since the rejected request.
func TestWriter_StatusRejectedPrivate(t *testing.T) {
	const last, short = "login with hunter2\nconnected as grandmother\n", "tiger"
	for _, quoted := range []string{
		fmt.Sprintf("status.containerStatuses[0].lastState.terminated.message: Invalid value: %q: no", last),
		"a webhook denied it: " + last,
		"a webhook denied it: connected as grandmother",
		fmt.Sprintf("status.message: Invalid value: %q: no", short),
		"a webhook denied it: message=" + short,
		strings.Repeat("x ", apiserver.MaxMessageBytes/2-10) + "connected as grandmother",
	} {
		runWriter(t, nil, func(l *testWriter) {
			l.Change(func() {
				l.Fault = func(q *http.Request) (*http.Response, error) {
					if q.Method == http.MethodPatch {
						return clustertest.ErrorResponse(apierrors.NewBadRequest(quoted)), nil
					}
					return nil, nil
				}
			})
			p := clustertest.NewBoundPod("app", "1")
			p.UID = "a"
			l.Change(func() { l.PutPod(p, "ADDED") })
			status := runningStatus(clustertest.Noon)
			status.Message = short
			status.ContainerStatuses[0].LastTerminationState.Terminated = &v1.ContainerStateTerminated{Message: last}
			l.publish(podView(p, status))
			clustertest.Advance(time.Minute)
			l.publish(podView(p, runningStatus(clustertest.Noon)))
			rejections := l.rejections()
			if len(rejections) != 1 || !strings.Contains(rejections[0].Reason, "updating the status in the cluster failed: ") {
				t.Fatalf("%.99s: got rejections %v, want one rejection of the status", quoted, rejections)
			}
			for _, private := range []string{"login", "hunter2", "connected", "grandm", short} {
				if strings.Contains(rejections[0].Reason, private) {
					t.Errorf("%.99s: got reason %q, want it without %q", quoted, rejections[0].Reason, private)
				}
			}
		})
	}
}

// TestWriter_MirrorRejected checks that podd reports that the API server rejects a mirror pod, and
// rarely tries again.
func TestWriter_MirrorRejected(t *testing.T) {
	runWriter(t, nil, func(l *testWriter) {
		l.Change(func() {
			l.Fault = func(q *http.Request) (*http.Response, error) {
				if q.Method == http.MethodPost && strings.HasSuffix(q.URL.Path, "/pods") {
					return clustertest.ErrorResponse(apierrors.NewNotFound(v1.Resource("pods"), "namespaces \"lab\"")), nil
				}
				return nil, nil
			}
		})
		l.CountRequests()
		l.publish(podView(clustertest.NewStaticPod(t, clustertest.WebManifest), runningStatus(clustertest.Noon)))
		if rejections := l.rejections(); len(rejections) > 0 {
			t.Errorf("before rejectionDelay has passed: got rejections %v, want none", rejections)
		}
		clustertest.Advance(10 * time.Minute)
		if rejections := l.rejections(); len(rejections) != 1 || rejections[0].Path != "/m/web.yaml" || !strings.Contains(rejections[0].Reason, "creating the mirror pod failed") || !strings.Contains(rejections[0].Reason, "lab") {
			t.Errorf("got rejections %v, want one rejection of the mirror pod in /m/web.yaml, with the missing namespace lab", rejections)
		}
		if n := l.CountRequests("POST pods"); n[0] > 40 {
			t.Errorf("got %d POSTs of pods in ten minutes, want at most 40", n[0])
		}
		l.Change(func() { l.Fault = nil })
		clustertest.Advance(time.Minute)
		if rejections := l.rejections(); l.StoredPod("default", "web-n1") == nil || len(rejections) > 0 {
			t.Errorf("after the API server accepts the mirror pod: got rejections %v, mirror pod %v; want no rejections and a mirror pod", rejections, l.StoredPod("default", "web-n1"))
		}
	})
}

// TestWriter_SlowWebhook checks that podd creates a mirror pod despite a slow admission webhook. A
// webhook that hangs for some mirror pods must not delay the updates of a pod that already exists.
func TestWriter_SlowWebhook(t *testing.T) {
	runWriter(t, nil, func(l *testWriter) {
		webhook := 11 * time.Second
		l.Change(func() {
			l.Fault = func(q *http.Request) (*http.Response, error) {
				if q.Method == http.MethodPost && strings.HasSuffix(q.URL.Path, "/pods") {
					select {
					case <-q.Context().Done():
						return nil, q.Context().Err()
					case <-time.After(webhook):
					}
				}
				return nil, nil
			}
		})
		static := podView(clustertest.NewStaticPod(t, clustertest.WebManifest), runningStatus(clustertest.Noon))
		l.publish(static)
		clustertest.Advance(15 * time.Second)
		if l.StoredPod("default", "web-n1") == nil {
			t.Fatal("15s after a creation with a webhook that takes 11s: got no mirror pod, want one")
		}
		l.Change(func() { webhook = time.Hour })
		var slow []*server.PodView
		for n := range MaxWrites {
			slow = append(slow, podView(clustertest.NewStaticPod(t, strings.Replace(clustertest.WebManifest, "name: web", fmt.Sprint("name: slow", n), 1)), runningStatus(clustertest.Noon)))
		}
		l.publish(append(slow, static)...)
		l.CountRequests()
		for n := range 120 {
			static = podView(static.Pod, runningStatus(clustertest.Noon.Add(time.Duration(n+1)*time.Minute)))
			l.publish(append(slow, static)...)
			if got := l.StoredPod("default", "web-n1").Status.ContainerStatuses[0].State.Running.StartedAt; got.Unix() != clustertest.Noon.Add(time.Duration(n+1)*time.Minute).Unix() {
				t.Fatalf("update %d of pod web: got status %+v after 1s, want the new start time", n, l.StoredPod("default", "web-n1").Status)
			}
		}
		if n := l.CountRequests("POST pods"); n[0] == 0 || n[0] > MaxWrites*120/10 {
			t.Errorf("got %d POSTs of pods in two minutes, want 1 to %d", n[0], MaxWrites*120/10)
		}
		if rejections := l.rejections(); len(rejections) != MaxWrites || rejections[0].Pod.Name != "slow0-n1" || !strings.Contains(rejections[0].Reason, "no response within "+apiserver.WriteTimeout.String()) {
			t.Errorf("got rejections %v, want %d timeouts, one for each slow mirror pod", rejections, MaxWrites)
		}
	})
}

// TestWriter_NewPodSameName checks a new pod that has the same name as a deleted pod. The API server has
// rejected requests for the deleted pod. These rejections must not delay the requests for the new pod.
func TestWriter_NewPodSameName(t *testing.T) {
	runWriter(t, nil, func(l *testWriter) {
		l.Change(func() {
			l.Fault = func(q *http.Request) (*http.Response, error) {
				if q.Method == http.MethodPatch && strings.Contains(q.URL.Path, "/pods/app/") {
					return clustertest.ErrorResponse(apierrors.NewBadRequest("no")), nil
				}
				return nil, nil
			}
		})
		p := clustertest.NewBoundPod("app", "1")
		p.UID = "a"
		l.Change(func() { l.PutPod(p, "ADDED") })
		l.publish(podView(p, runningStatus(clustertest.Noon)))
		clustertest.Advance(10 * time.Minute)
		next := clustertest.NewBoundPod("app", "1")
		next.UID = "b"
		l.Change(func() { l.Fault = nil; l.PutPod(p, "DELETED") })
		l.Change(func() { l.PutPod(next, "ADDED") })
		l.publish(podView(next, runningStatus(clustertest.Noon)))
		if now := l.StoredPod("default", "app"); now.UID != "b" || now.Status.Phase != v1.PodRunning {
			t.Errorf("1s after the start of the new pod: got UID %s, status %+v; want UID b and phase Running", now.UID, now.Status)
		}
	})
}

// TestWriter_UnsupportedField checks an API server that accepts a patch but drops a field. podd must
// not repeat the patch, although the field is missing. It must send the field after an upgrade of the
// API server.
func TestWriter_UnsupportedField(t *testing.T) {
	prepare := func(l *testWriter, _ *Options) {
		l.DropPodFields = func(p *v1.Pod) {
			for i := range p.Status.ContainerStatuses {
				p.Status.ContainerStatuses[i].StopSignal = nil
			}
		}
	}
	runWriter(t, prepare, func(l *testWriter) {
		s := runningStatus(clustertest.Noon)
		s.ContainerStatuses[0].StopSignal = new(v1.SIGTERM)
		static := clustertest.NewStaticPod(t, clustertest.WebManifest)
		l.publish(podView(static, s))
		clustertest.Advance(time.Minute)
		if n := l.CountRequests("PATCH pods"); n[0] > 2 {
			t.Errorf("in one minute: got %d patches, want at most 2", n[0])
		}
		for range 30 {
			l.Change(l.InterruptWatches)
			clustertest.Advance(10 * time.Second)
		}
		if n := l.CountRequests("PATCH pods"); n[0] > 2 {
			t.Errorf("5 minutes with an interrupted watch every 10s: got %d patches, want at most 2", n[0])
		}
		// After its upgrade the API server supports the field. podd then continues the watch without a
		// list.
		l.Change(func() { l.DropPodFields = nil; l.InterruptWatches() })
		clustertest.Advance(2 * apiserver.WatchTimeout)
		if m := l.StoredPod("default", "web-n1"); m.Status.ContainerStatuses[0].StopSignal == nil {
			t.Errorf("after the upgrade: got container status %+v, want one with stopSignal", m.Status.ContainerStatuses[0])
		}
		s.Phase = v1.PodPending
		l.publish(podView(static, s))
		if m := l.StoredPod("default", "web-n1"); m.Status.Phase != v1.PodPending {
			t.Errorf("after the phase has changed: got status %+v, want phase Pending", m.Status)
		}
	})
}

// TestWriter_MirrorWithFinalizer checks an outdated mirror pod with a finalizer. podd must send one
// DELETE, report no rejection, and create the new mirror pod after the finalizer was removed.
func TestWriter_MirrorWithFinalizer(t *testing.T) {
	runWriter(t, nil, func(l *testWriter) {
		static := clustertest.NewStaticPod(t, clustertest.WebManifest)
		l.publish(podView(static, runningStatus(clustertest.Noon)))
		held := l.StoredPod("default", "web-n1").DeepCopy()
		held.Finalizers = []string{"example.com/slow"}
		l.Change(func() { l.PutPod(held, "MODIFIED") })
		edited := static.DeepCopy()
		edited.Annotations[manifest.AnnotationConfigHash] = "other"
		l.CountRequests()
		for range 20 {
			l.publish(podView(edited, runningStatus(clustertest.Noon)))
			if rejections := l.rejections(); len(rejections) > 0 {
				t.Fatalf("waiting for the finalizer: got rejections %v, want none", rejections)
			}
		}
		if n := l.CountRequests("DELETE pods", "POST pods"); n[0] != 1 || n[1] != 0 {
			t.Errorf("waiting for the finalizer: got %d DELETEs, %d POSTs of pods; want 1 and 0", n[0], n[1])
		}
		l.Change(func() { l.PutPod(held, "DELETED") })
		clustertest.Advance(time.Second)
		if now := l.StoredPod("default", "web-n1"); now == nil || now.UID == held.UID {
			t.Errorf("after the finalizer was removed: got mirror pod %v, want a new one", now)
		}
	})
}

// TestWriter_PodsLost checks that podd creates the mirror pods again if the API server has lost its
// pods.
func TestWriter_PodsLost(t *testing.T) {
	runWriter(t, nil, func(l *testWriter) {
		l.publish(podView(clustertest.NewStaticPod(t, clustertest.WebManifest), runningStatus(clustertest.Noon)))
		before := l.StoredPod("default", "web-n1")
		l.Change(func() {
			l.Pods = maps.Clone(l.Pods)
			clear(l.Pods)
			l.ForgetChanges()
			l.Version++
			l.InterruptWatches()
		})
		clustertest.Advance(6 * time.Second)
		if now := l.StoredPod("default", "web-n1"); now == nil || now.UID == before.UID || now.Status.Phase != v1.PodRunning {
			t.Errorf("6s after the loss: got mirror pod %+v, want a new one with phase Running", now)
		}
	})
}

// TestWriter_RetryAfterList checks that podd retries a rejected request at once after a list, because the API
// server may have been restarted.
func TestWriter_RetryAfterList(t *testing.T) {
	runWriter(t, nil, func(l *testWriter) {
		l.Change(func() {
			l.Fault = func(q *http.Request) (*http.Response, error) {
				if q.Method == http.MethodPost {
					return clustertest.ErrorResponse(apierrors.NewBadRequest("no")), nil
				}
				return nil, nil
			}
		})
		l.publish(podView(clustertest.NewStaticPod(t, clustertest.WebManifest), runningStatus(clustertest.Noon)))
		clustertest.Advance(10 * time.Minute)
		l.CountRequests()
		clustertest.Advance(maxRejectedWait)
		if n := l.CountRequests("POST pods")[0]; n != 1 {
			t.Fatalf("while the API server rejects the mirror pod: got %d POSTs in %s, want 1", n, maxRejectedWait)
		}
		l.Change(func() { l.Fault = nil; l.InterruptWatches() })
		clustertest.Advance(time.Second)
		if m := l.StoredPod("default", "web-n1"); m == nil {
			t.Error("1s after the watch was interrupted: got no mirror pod, want one")
		}
	})
}
