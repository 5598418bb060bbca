package cluster

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/server"
)

// shows publishes what podd shows of all its pods.
func (l *life) shows(pods ...*server.PodView) {
	v := *l.state.View()
	v.Revision++
	v.Pods = pods
	l.state.Publish(&v)
	l.after(time.Second)
}

// seen is a pod as the cluster has it; nil: it has none.
func (l *life) seen(namespace, name string) *v1.Pod {
	l.fakeAPI.mu.Lock()
	defer l.fakeAPI.mu.Unlock()
	return l.pods[types.NamespacedName{Namespace: namespace, Name: name}]
}

// told is what is refused of pods now.
func (l *life) told() []Rejection {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refused
}

func view(p *v1.Pod, s v1.PodStatus) *server.PodView {
	p = p.DeepCopy()
	p.Status = s
	return &server.PodView{Pod: p, Rule: "rule", Exists: true, Path: "/m/web.yaml", Line: 2}
}

// running has a container that was started at a time.
func running(at time.Time) v1.PodStatus {
	ready := v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionTrue, LastTransitionTime: metav1.NewTime(at)}
	return v1.PodStatus{Phase: v1.PodRunning, StartTime: new(metav1.NewTime(at)), Conditions: []v1.PodCondition{ready}, ContainerStatuses: []v1.ContainerStatus{
		{Name: "main", Ready: true, State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.NewTime(at.Add(123 * time.Millisecond))}}},
	}}
}

// TestMirrored: a static pod has a mirror with its status, whoever takes it away,
// and podd asks for nothing when nothing is new.
func TestMirrored(t *testing.T) {
	alone(t, nil, func(l *life) {
		static := staticPod(t, webManifest)
		l.shows(view(static, running(noon)))
		first := l.seen("default", "web-n1")
		if first == nil || !isMirror(first) || first.OwnerReferences[0].UID != l.node.UID || !first.Status.ContainerStatuses[0].Ready {
			t.Fatalf("got %+v", first)
		}
		if n := l.cluster.MirrorCount(); n != 1 {
			t.Errorf("%d mirrors are seen", n)
		}
		l.count()
		l.after(time.Hour)
		if n := l.count("PATCH pods", "POST pods", "DELETE pods", "GET pods"); n[0]+n[1]+n[2]+n[3] > 0 {
			t.Errorf("in an hour asked %v times", n)
		}
		for name, takeAway := range map[string]func(*v1.Pod){
			"deleted":                  func(p *v1.Pod) { l.putPod(p, "DELETED") },
			"deletion under way":       func(p *v1.Pod) { p.DeletionTimestamp = new(metav1.Now()); l.putPod(p, "MODIFIED") },
			"of another node":          func(p *v1.Pod) { p.OwnerReferences[0].UID = "x"; l.putPod(p, "MODIFIED") },
			"status changed by others": func(p *v1.Pod) { p.Status = v1.PodStatus{Phase: v1.PodUnknown}; l.putPod(p, "MODIFIED") },
		} {
			before := l.seen("default", "web-n1")
			l.with(func() { takeAway(before.DeepCopy()) })
			l.after(time.Second)
			now := l.seen("default", "web-n1")
			if now == nil || now.ResourceVersion == before.ResourceVersion || now.DeletionTimestamp != nil || now.OwnerReferences[0].UID != l.node.UID || now.Status.Phase != v1.PodRunning {
				t.Errorf("%s: got %+v", name, now)
			}
		}
		edited := staticPod(t, webManifest+"  hostNetwork: true\n")
		l.shows(view(edited, running(noon)))
		if m := l.seen("default", "web-n1"); m == nil || m.Annotations[manifest.AnnotationConfigMirror] != string(edited.UID) || !m.Spec.HostNetwork {
			t.Errorf("edited: got %+v", m)
		}
		l.shows()
		if m := l.seen("default", "web-n1"); m != nil {
			t.Errorf("removed: got %+v", m)
		}
		if n := l.cluster.MirrorCount(); n != 0 {
			t.Errorf("%d mirrors are seen", n)
		}
		if told := l.told(); len(told) > 0 {
			t.Errorf("told %v", told)
		}
	})
}

// TestWriter_Loopback checks that the loopback address of a node is written only if the
// user set it.
func TestWriter_Loopback(t *testing.T) {
	for given, want := range map[string]string{"": "10.0.0.1 10.0.0.1", "127.0.0.1": "127.0.0.1 127.0.0.1"} {
		alone(t, func(_ *life, o *Options) { o.ProvidedIP = given }, func(l *life) {
			static := staticPod(t, webManifest+"  hostNetwork: true\n")
			for _, ip := range []string{"10.0.0.1", "127.0.0.1"} {
				s := running(noon)
				s.HostIP, s.HostIPs, s.PodIP, s.PodIPs = ip, []v1.HostIP{{IP: ip}}, ip, []v1.PodIP{{IP: ip}}
				l.shows(view(static, s))
			}
			if s := l.seen("default", "web-n1").Status; s.HostIP+" "+s.PodIP != want {
				t.Errorf("--node-ip %q: got hostIP and podIP %s %s, want %s", given, s.HostIP, s.PodIP, want)
			}
		})
	}
}

// TestOrphanedMirror: of a pod that went while podd was not there, once podd knows
// that it is wanted nowhere.
func TestOrphanedMirror(t *testing.T) {
	prepare := func(l *life, _ *Options) {
		m := newMirror(staticPod(t, webManifest), theNode("u1"))
		m.UID, m.Spec.NodeName = "m", "n1"
		l.putPod(m, "ADDED")
		l.state = server.NewLatest(&server.View{Revision: 1, NodeObject: machine(), Starting: true, Unread: []string{"/m"}})
	}
	alone(t, prepare, func(l *life) {
		next := func(change func(*server.View)) {
			v := *l.state.View()
			v.Revision++
			change(&v)
			l.state.Publish(&v)
			l.after(10 * time.Second)
		}
		next(func(v *server.View) { v.Starting = false })
		if l.seen("default", "web-n1") == nil {
			t.Error("deleted before the manifests were read")
		}
		next(func(v *server.View) { v.Unread = nil })
		if m := l.seen("default", "web-n1"); m != nil {
			t.Errorf("got %+v", m)
		}
	})
}

// TestFinalDelete: a pod of the cluster that is deleted goes once nothing is left of
// it and podd knows, with its end told before.
func TestFinalDelete(t *testing.T) {
	alone(t, nil, func(l *life) {
		p := bound("app", "1")
		p.UID = "a"
		l.with(func() { l.putPod(p, "ADDED") })
		l.shows(view(p, running(noon)))
		p = l.seen("default", "app").DeepCopy()
		if p.Status.Phase != v1.PodRunning {
			t.Fatalf("got %+v", p.Status)
		}
		p.DeletionTimestamp = new(metav1.Now())
		var last *v1.Pod
		l.with(func() { l.putPod(p, "MODIFIED"); l.drops = func(p *v1.Pod) { last = p } })
		l.after(time.Minute)
		if last != nil || l.seen("default", "app") == nil {
			t.Fatal("it ended while it was here")
		}
		l.cluster.deletions.set(map[types.UID]uint64{p.UID: 7})
		l.shows()
		if last != nil {
			t.Fatal("it ended before podd knew")
		}
		v := *l.state.View()
		v.Revision++
		v.Taken = map[string]uint64{server.ClusterSource: 7}
		l.state.Publish(&v)
		l.after(time.Second)
		l.with(func() { l.drops = nil })
		if now := l.seen("default", "app"); now != nil || last == nil || last.Status.Phase != v1.PodFailed || last.Status.ContainerStatuses[0].State.Terminated == nil {
			t.Errorf("got %+v, last %+v", now, last)
		}
	})
}

// TestWritesAfterOutage: what changed while the cluster was away is right within 5 s
// of its return; nothing is asked without end meanwhile.
func TestWritesAfterOutage(t *testing.T) {
	for name, fault := range map[string]func(*http.Request) (*http.Response, error){
		"away": func(*http.Request) (*http.Response, error) { return nil, syscall.ECONNREFUSED },
		"ill": func(*http.Request) (*http.Response, error) {
			return refusal(apierrors.NewInternalError(syscall.EIO)), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			alone(t, nil, func(l *life) {
				var views []*server.PodView
				for i := range 20 {
					views = append(views, view(staticPod(t, strings.Replace(webManifest, "name: web", "name: web"+string(rune('a'+i)), 1)), running(noon)))
				}
				l.shows(views...)
				l.with(func() { l.fault = fault; l.cut() })
				for i := range views {
					views[i] = view(views[i].Pod, running(noon.Add(time.Minute)))
				}
				l.count()
				l.shows(views...)
				l.after(10 * time.Minute)
				if n := l.count("PATCH pods"); n[0] == 0 || n[0] > 600*20/3 {
					t.Errorf("asked %v times in ten minutes", n)
				}
				l.with(func() { l.fault = nil })
				l.after(5 * time.Second)
				for _, v := range views {
					if m := l.seen("default", v.Pod.Name); m == nil || m.Status.ContainerStatuses[0].State.Running.StartedAt.Unix() != noon.Add(time.Minute).Unix() {
						t.Errorf("%s: got %+v", v.Pod.Name, m)
					}
				}
			})
		})
	}
}

// TestMirrorRefused_QuotesNothingPrivate checks that an API server that quotes a
// private value of a pod does not bring it into a problem, which everybody sees.
func TestMirrorRefused_QuotesNothingPrivate(t *testing.T) {
	alone(t, nil, func(l *life) {
		l.with(func() {
			l.fault = func(q *http.Request) (*http.Response, error) {
				if q.Method == http.MethodPost && strings.HasSuffix(q.URL.Path, "/pods") {
					return refusal(apierrors.NewBadRequest(`metadata.annotations: Invalid value: "hunter2-and-more"`)), nil
				}
				return nil, nil
			}
		})
		web := staticPod(t, webManifest)
		web.Annotations["example.com/token"] = "hunter2-and-more"
		l.shows(view(web, running(noon)))
		l.after(time.Minute)
		if told := l.told(); len(told) != 1 || !strings.Contains(told[0].Why, `Invalid value: "<redacted>"`) {
			t.Errorf("told %v", told)
		}
	})
}

// TestStatusRefused_QuotesNothingPrivate checks that an API server that quotes the status
// that it was sent, such as the end of a log, does not bring it into a problem or the log,
// even if the pod has another status when the problem is reported.
func TestStatusRefused_QuotesNothingPrivate(t *testing.T) {
	const last, short = "login with hunter2\nconnected as grandmother\n", "tiger"
	for _, quoted := range []string{
		fmt.Sprintf("status.containerStatuses[0].lastState.terminated.message: Invalid value: %q: no", last),
		"a webhook denied it: " + last,
		"a webhook denied it: connected as grandmother",
		fmt.Sprintf("status.message: Invalid value: %q: no", short),
		"a webhook denied it: message=" + short,
		strings.Repeat("x ", maxMessage/2-10) + "connected as grandmother",
	} {
		alone(t, nil, func(l *life) {
			l.with(func() {
				l.fault = func(q *http.Request) (*http.Response, error) {
					if q.Method == http.MethodPatch {
						return refusal(apierrors.NewBadRequest(quoted)), nil
					}
					return nil, nil
				}
			})
			p := bound("app", "1")
			p.UID = "a"
			l.with(func() { l.putPod(p, "ADDED") })
			status := running(noon)
			status.Message = short
			status.ContainerStatuses[0].LastTerminationState.Terminated = &v1.ContainerStateTerminated{Message: last}
			l.shows(view(p, status))
			l.after(time.Minute)
			l.shows(view(p, running(noon)))
			told := l.told()
			if len(told) != 1 || !strings.Contains(told[0].Why, "does not take its status: ") {
				t.Fatalf("%.99s: told %v", quoted, told)
			}
			for _, private := range []string{"login", "hunter2", "connected", "grandm", short} {
				if strings.Contains(told[0].Why, private) {
					t.Errorf("%s is shown: %s", private, told[0].Why)
				}
			}
		})
	}
}

// TestMirrorRefused: users are told once why a pod has no mirror, and podd does not
// ask without end.
func TestMirrorRefused(t *testing.T) {
	alone(t, nil, func(l *life) {
		l.with(func() {
			l.fault = func(q *http.Request) (*http.Response, error) {
				if q.Method == http.MethodPost && strings.HasSuffix(q.URL.Path, "/pods") {
					return refusal(apierrors.NewNotFound(podsResource, "namespaces \"lab\"")), nil
				}
				return nil, nil
			}
		})
		l.count()
		l.shows(view(staticPod(t, webManifest), running(noon)))
		if told := l.told(); len(told) > 0 {
			t.Errorf("told at once: %v", told)
		}
		l.after(10 * time.Minute)
		if told := l.told(); len(told) != 1 || told[0].Path != "/m/web.yaml" || !strings.Contains(told[0].Why, "takes no mirror of it") || !strings.Contains(told[0].Why, "lab") {
			t.Errorf("told %v", told)
		}
		if n := l.count("POST pods"); n[0] > 40 {
			t.Errorf("asked %v times", n)
		}
		l.with(func() { l.fault = nil })
		l.after(time.Minute)
		if told := l.told(); l.seen("default", "web-n1") == nil || len(told) > 0 {
			t.Errorf("after all: told %v", told)
		}
	})
}

// TestSlowWebhook: the mirror that a webhook has an API server wait with is made after
// all, and holds up no other pod, also when it never is.
func TestSlowWebhook(t *testing.T) {
	alone(t, nil, func(l *life) {
		webhook := 11 * time.Second
		l.with(func() {
			l.fault = func(q *http.Request) (*http.Response, error) {
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
		static := view(staticPod(t, webManifest), running(noon))
		l.shows(static)
		l.after(15 * time.Second)
		if l.seen("default", "web-n1") == nil {
			t.Fatal("no mirror")
		}
		l.with(func() { webhook = time.Hour })
		var slow []*server.PodView
		for n := range maxWrites {
			slow = append(slow, view(staticPod(t, strings.Replace(webManifest, "name: web", fmt.Sprint("name: slow", n), 1)), running(noon)))
		}
		l.shows(append(slow, static)...)
		l.count()
		for n := range 300 {
			static = view(static.Pod, running(noon.Add(time.Duration(n+1)*time.Minute)))
			l.shows(append(slow, static)...)
			if got := l.seen("default", "web-n1").Status.ContainerStatuses[0].State.Running.StartedAt; got.Unix() != noon.Add(time.Duration(n+1)*time.Minute).Unix() {
				t.Fatalf("after %ds the status of another pod is not told within 1s: %+v", n, l.seen("default", "web-n1").Status)
			}
		}
		if n := l.count("POST pods"); n[0] == 0 || n[0] > maxWrites*300/10 {
			t.Errorf("asked %v times in five minutes", n)
		}
		if told := l.told(); len(told) != maxWrites || told[0].Pod.Name != "slow0-n1" || !strings.Contains(told[0].Why, "did not answer within "+writeTime.String()) {
			t.Errorf("told %v", told)
		}
	})
}

// TestSuccessor: what the cluster refused of one pod is no reason to wait with another
// of its name.
func TestSuccessor(t *testing.T) {
	alone(t, nil, func(l *life) {
		l.with(func() {
			l.fault = func(q *http.Request) (*http.Response, error) {
				if q.Method == http.MethodPatch && strings.Contains(q.URL.Path, "/pods/app/") {
					return refusal(apierrors.NewBadRequest("no")), nil
				}
				return nil, nil
			}
		})
		p := bound("app", "1")
		p.UID = "a"
		l.with(func() { l.putPod(p, "ADDED") })
		l.shows(view(p, running(noon)))
		l.after(10 * time.Minute)
		next := bound("app", "1")
		next.UID = "b"
		l.with(func() { l.fault = nil; l.putPod(p, "DELETED") })
		l.with(func() { l.putPod(next, "ADDED") })
		l.shows(view(next, running(noon)))
		if now := l.seen("default", "app"); now.UID != "b" || now.Status.Phase != v1.PodRunning {
			t.Errorf("got %s: %+v", now.UID, now.Status)
		}
	})
}

// TestFutile: an API server that does not know a field is not told of it for ever.
func TestFutile(t *testing.T) {
	prepare := func(l *life, _ *Options) {
		l.drops = func(p *v1.Pod) {
			for i := range p.Status.ContainerStatuses {
				p.Status.ContainerStatuses[i].StopSignal = nil
			}
		}
	}
	alone(t, prepare, func(l *life) {
		s := running(noon)
		s.ContainerStatuses[0].StopSignal = new(v1.SIGTERM)
		static := staticPod(t, webManifest)
		l.shows(view(static, s))
		l.after(time.Minute)
		if n := l.count("PATCH pods"); n[0] > 2 {
			t.Errorf("%d patches", n[0])
		}
		for range 30 {
			l.with(l.cut)
			l.after(10 * time.Second)
		}
		if n := l.count("PATCH pods"); n[0] > 2 {
			t.Errorf("%d patches in 5 minutes of short watches", n[0])
		}
		// The next one may know it, and lists nothing anew.
		l.with(func() { l.drops = nil; l.cut() })
		l.after(2 * watchTime)
		if m := l.seen("default", "web-n1"); m.Status.ContainerStatuses[0].StopSignal == nil {
			t.Error("the API server that came next was not told")
		}
		s.Phase = v1.PodPending
		l.shows(view(static, s))
		if m := l.seen("default", "web-n1"); m.Status.Phase != v1.PodPending {
			t.Errorf("got %+v", m.Status)
		}
	})
}

// TestHeldMirror: one that somebody's finalizer holds is in nobody's way.
func TestHeldMirror(t *testing.T) {
	alone(t, nil, func(l *life) {
		static := staticPod(t, webManifest)
		l.shows(view(static, running(noon)))
		held := l.seen("default", "web-n1").DeepCopy()
		held.Finalizers = []string{"example.com/slow"}
		l.with(func() { l.putPod(held, "MODIFIED") })
		edited := static.DeepCopy()
		edited.Annotations[manifest.AnnotationConfigHash] = "other"
		l.count()
		for range 20 {
			l.shows(view(edited, running(noon)))
			if told := l.told(); len(told) > 0 {
				t.Fatalf("told %v", told)
			}
		}
		if n := l.count("DELETE pods", "POST pods"); n[0] != 1 || n[1] != 0 {
			t.Errorf("asked %v", n)
		}
		l.with(func() { l.putPod(held, "DELETED") })
		l.after(time.Second)
		if now := l.seen("default", "web-n1"); now == nil || now.UID == held.UID {
			t.Errorf("got %v", now)
		}
	})
}

// TestComesBackEmpty: a cluster that has forgotten its pods, though not podd.
func TestComesBackEmpty(t *testing.T) {
	alone(t, nil, func(l *life) {
		l.shows(view(staticPod(t, webManifest), running(noon)))
		before := l.seen("default", "web-n1")
		l.with(func() {
			l.pods = maps.Clone(l.pods)
			clear(l.pods)
			l.changed["pods"] = l.version + 1
			l.version++
			l.cut()
		})
		l.after(6 * time.Second)
		if now := l.seen("default", "web-n1"); now == nil || now.UID == before.UID || now.Status.Phase != v1.PodRunning {
			t.Errorf("got %+v", now)
		}
	})
}
