package cluster

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	nodes "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/refs"
)

// reader is a pod that mounts what it names.
func reader(name string, volumes ...v1.VolumeSource) *v1.Pod {
	p := bound(name, "1")
	p.UID, p.Spec.ServiceAccountName = types.UID("uid-"+name), "robot"
	for i, source := range volumes {
		p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: fmt.Sprint("v", i), VolumeSource: source})
	}
	return p
}

func mapped(name string) v1.VolumeSource {
	return v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: name}}}
}

func claimed(name string) v1.VolumeSource {
	return v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: name}}
}

func tokened(audience string, seconds int64) v1.VolumeSource {
	return v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{
		{ServiceAccountToken: &v1.ServiceAccountTokenProjection{Audience: audience, ExpirationSeconds: &seconds, Path: "token"}}}}}
}

func (l *life) objects() *manifest.Objects {
	o, _ := l.cluster.objects.get()
	return &o
}

// value is that of a key of a ConfigMap that is known, or why it is not there.
func (l *life) value(name string) string {
	o, ref := l.objects(), manifest.ObjectRef{Kind: "ConfigMap", NamespacedName: types.NamespacedName{Namespace: "default", Name: name}}
	if c := o.ConfigMaps[ref.NamespacedName]; c != nil {
		return c.Data["a"]
	}
	return o.Cluster.Missing[ref].Why
}

func (l *life) sees(name, want string) {
	l.t.Helper()
	if got := l.value(name); got != want {
		l.t.Errorf("ConfigMap %s: got %q, want %q", name, got, want)
	}
}

// reads has a pod that reads so many ConfigMaps.
func (l *life) reads(many int) {
	l.with(func() {
		var volumes []v1.VolumeSource
		for i := range many {
			name := fmt.Sprint("conf", i)
			volumes = append(volumes, mapped(name))
			l.give("configmaps", config(name, "1"), "ADDED")
		}
		l.putPod(reader("a", volumes...), "ADDED")
	})
}

// While nothing happens, next to nothing is asked for what is known.
func TestLookupIdle(t *testing.T) {
	const many = 20
	alone(t, nil, func(l *life) {
		l.reads(many)
		l.after(time.Minute)
		l.count()
		l.after(objectWatchTime - 2*time.Minute)
		if n := l.count("GET configmaps", "WATCH configmaps"); n[0]+n[1] > 0 {
			t.Errorf("listed %d times, watched %d times", n[0], n[1])
		}
		l.after(objectWatchTime + 2*time.Minute)
		if n := l.count("GET configmaps", "WATCH configmaps"); n[0] > 0 || n[1] < many || n[1] > 2*many {
			t.Errorf("after an hour: listed %d times, watched %d times", n[0], n[1])
		}
	})
}

// In an outage little is asked for what is known, so that the pods are soon right
// after it.
func TestLookupAway(t *testing.T) {
	const many = 20
	alone(t, nil, func(l *life) {
		l.reads(many)
		l.with(func() {
			l.fault = func(*http.Request) (*http.Response, error) { return nil, fmt.Errorf("away") }
			l.cut()
		})
		l.count()
		l.after(10 * time.Minute)
		if n := l.count("GET configmaps"); n[0] > many*45 {
			t.Errorf("asked %d times for %d objects", n[0], many)
		}
		l.with(func() { l.fault = nil; l.putPod(bound("b", "1"), "ADDED") })
		l.after(maxUncachedWait)
		if now, _ := l.cluster.pods.get(); len(now.items) != 2 {
			t.Errorf("after it: got %v", now.items)
		}
	})
}

// What pods refer to is looked up when they come, once for all of them, followed
// while they are there, and kept in an outage.
func TestLookup(t *testing.T) {
	alone(t, nil, func(l *life) {
		l.sees("conf", "")
		l.count()
		l.with(func() {
			l.give("configmaps", config("conf", "1"), "ADDED")
			l.give("configmaps", config("other", "1"), "ADDED")
		})
		l.with(func() {
			l.putPod(reader("a", mapped("conf"), mapped("none")), "ADDED")
			l.putPod(reader("b", mapped("conf")), "ADDED")
		})
		l.sees("conf", "1")
		l.sees("none", `configmap "none" not found`)
		l.sees("other", "")
		if n := l.count("GET configmaps", "WATCH configmaps"); n[0] != 2 || n[1] != 2 {
			t.Errorf("asked %v, want one list and one watch of each", n)
		}
		l.with(func() {
			l.give("configmaps", config("conf", "2"), "MODIFIED")
			l.give("configmaps", config("none", "1"), "ADDED")
		})
		l.sees("conf", "2")
		l.sees("none", "1")
		l.with(func() { l.give("configmaps", config("none", "1"), "DELETED") })
		l.sees("none", `configmap "none" not found`)
		l.with(func() {
			l.fault = func(*http.Request) (*http.Response, error) { return nil, fmt.Errorf("away") }
			l.cut()
		})
		l.after(time.Minute)
		l.sees("conf", "2")
		l.with(func() { l.fault = nil; l.give("configmaps", config("conf", "3"), "MODIFIED") })
		l.after(maxCachedWait)
		l.sees("conf", "3")
		l.with(func() { l.putPod(reader("a"), "DELETED") })
		l.sees("conf", "3")
		l.sees("none", "")
		ended := reader("b", mapped("conf"))
		ended.Status.Phase = v1.PodSucceeded
		l.with(func() { l.putPod(ended, "MODIFIED") })
		l.sees("conf", "")
		l.count()
		l.after(time.Hour)
		if n := l.count("GET configmaps", "WATCH configmaps"); n[0]+n[1] != 0 {
			t.Errorf("asked %v for what nobody refers to", n)
		}
	})
}

// The API server may hear later than podd that a pod is bound: that is no trouble,
// and takes no time to speak of.
func TestLookupForbidden(t *testing.T) {
	alone(t, nil, func(l *life) {
		forbid := func(q *http.Request) (*http.Response, error) {
			return refusal(apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "conf", fmt.Errorf("no relationship found"))), nil
		}
		l.with(func() {
			l.give("configmaps", config("conf", "1"), "ADDED")
			l.putPod(reader("a", mapped("conf")), "ADDED")
			l.fault = forbid
		})
		l.after(100 * time.Millisecond)
		l.sees("conf", "")
		l.with(func() { l.fault = nil })
		l.after(200 * time.Millisecond)
		l.sees("conf", "1")
		l.with(func() {
			l.give("configmaps", config("c2", "1"), "ADDED")
			l.putPod(reader("b", mapped("c2")), "ADDED")
			l.fault = forbid
		})
		l.after(5 * time.Second)
		l.sees("conf", "1")
		l.sees("c2", `looking up configmap "c2": configmaps "conf" is forbidden: no relationship found`)
		l.with(func() { l.fault = nil })
		l.after(maxUncachedWait)
		l.sees("c2", "1")
	})
}

func TestLookupImmutable(t *testing.T) {
	alone(t, nil, func(l *life) {
		c, is := config("conf", "1"), true
		c.Immutable = &is
		l.count()
		l.with(func() { l.give("configmaps", c, "ADDED"); l.putPod(reader("a", mapped("conf")), "ADDED") })
		l.after(time.Hour)
		l.sees("conf", "1")
		if n := l.count("GET configmaps", "WATCH configmaps"); n[0] != 1 || n[1] > 1 {
			t.Errorf("asked %v", n)
		}
	})
}

// A token is asked for once for a pod, an audience and a lifetime, and again before
// it ends; one that cannot be had anew stays.
func TestToken(t *testing.T) {
	alone(t, nil, func(l *life) {
		of := func(name string) string {
			return string(l.objects().Cluster.Tokens[types.NamespacedName{Namespace: "default", Name: name}].Text)
		}
		l.with(func() { l.putPod(reader("a", tokened("", 3600), tokened("", 3600), tokened("vault", 600)), "ADDED") })
		if n := len(l.fakeAPI.objects.requests); n != 2 || of("uid-a/3600/") == "" || of("uid-a/600/vault") == "" {
			t.Fatalf("%d requests, got %v", n, l.objects().Cluster.Tokens)
		}
		for _, q := range l.fakeAPI.objects.requests {
			ref := q.Spec.BoundObjectRef
			if ref == nil || ref.UID != "uid-a" || ref.Name != "a" || ref.Kind != "Pod" || (*q.Spec.ExpirationSeconds == 600) != (len(q.Spec.Audiences) == 1) {
				t.Errorf("asked with %+v", q.Spec)
			}
		}
		first := of("uid-a/3600/")
		l.with(func() { l.fakeAPI.objects.noTokens = true })
		l.after(50 * time.Minute)
		if of("uid-a/3600/") != first {
			t.Error("a token that still counts was dropped")
		}
		l.with(func() { l.fakeAPI.objects.noTokens = false })
		l.after(maxUncachedWait)
		if of("uid-a/3600/") == first {
			t.Error("was not asked for anew")
		}
		l.with(func() { l.putPod(reader("a"), "DELETED"); l.fakeAPI.objects.requests = nil })
		l.after(2 * time.Hour)
		if n := len(l.fakeAPI.objects.requests); n > 0 || len(l.objects().Cluster.Tokens) > 0 {
			t.Errorf("of a pod that is gone: %d requests, %d tokens", n, len(l.objects().Cluster.Tokens))
		}
	})
}

// TestTokenClock: how long a token is good for is no matter of this machine's clock.
func TestTokenClock(t *testing.T) {
	for _, ahead := range []time.Duration{time.Hour, -time.Hour} {
		alone(t, nil, func(l *life) {
			l.with(func() { l.fakeAPI.objects.ahead = ahead; l.putPod(reader("a", tokened("", 3600)), "ADDED") })
			l.after(90 * time.Minute)
			if n := len(l.fakeAPI.objects.requests); n != 2 {
				t.Errorf("%s ahead: %d requests in 90 minutes", ahead, n)
			}
		})
	}
}

func TestTokenRefused(t *testing.T) {
	alone(t, nil, func(l *life) {
		l.with(func() { l.fakeAPI.objects.noTokens = true; l.putPod(reader("a", tokened("", 3600)), "ADDED") })
		l.after(3 * bindingLag) // the first request after bindingLag may come 1.3 s later
		ref := manifest.ObjectRef{Kind: "TokenRequest", NamespacedName: types.NamespacedName{Namespace: "default", Name: "uid-a/3600/"}}
		if got, want := l.objects().Cluster.Missing[ref].Why, `failed to fetch token: serviceaccounts "robot" not found`; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		l.with(func() { l.fakeAPI.objects.noTokens = false })
		l.after(maxUncachedWait)
		if len(l.objects().Cluster.Tokens) != 1 || len(l.objects().Cluster.Missing) > 0 {
			t.Errorf("got %+v", l.objects().Cluster)
		}
	})
}

func TestRenewal(t *testing.T) {
	for life, want := range map[time.Duration]time.Duration{
		10 * time.Minute: 8 * time.Minute, time.Hour: 48 * time.Minute, 365 * 24 * time.Hour: 24 * time.Hour, -time.Hour: 20 * time.Second,
	} {
		if got := renewAfter(life); got != want {
			t.Errorf("%s: got %s, want %s", life, got, want)
		}
	}
}

// A claim is asked for until the cluster has bound it, and no more.
func TestLookupClaim(t *testing.T) {
	alone(t, nil, func(l *life) {
		claim := &v1.PersistentVolumeClaim{ObjectMeta: named("data")}
		claim.UID, claim.Status.Phase = "c1", v1.ClaimPending
		volume := &v1.PersistentVolume{}
		volume.Name, volume.Spec.ClaimRef = "pv1", &v1.ObjectReference{UID: "c1"}
		l.with(func() { l.putPod(reader("a", claimed("data")), "ADDED") })
		key := types.NamespacedName{Namespace: "default", Name: "data"}
		ref := manifest.ObjectRef{Kind: "PersistentVolumeClaim", NamespacedName: key}
		if got := l.objects().Cluster.Missing[ref]; got.Why != `persistentvolumeclaim "data" not found` {
			t.Errorf("got %+v", got)
		}
		l.with(func() { l.give("persistentvolumeclaims", claim, "ADDED") })
		l.after(maxUncachedWait)
		if got := l.objects().Claims[key]; got == nil || got.Status.Phase != v1.ClaimPending {
			t.Errorf("got %+v", got)
		}
		claim.Spec.VolumeName, claim.Status.Phase = "pv1", v1.ClaimBound
		l.with(func() {
			l.give("persistentvolumes", volume, "ADDED")
			l.give("persistentvolumeclaims", claim, "MODIFIED")
		})
		l.after(maxUncachedWait)
		if o := l.objects(); o.Claims[key] == nil || refs.UnboundReason(o.Claims[key], o.Volumes[types.NamespacedName{Name: "pv1"}]) != "" {
			t.Errorf("got %+v", o)
		}
		l.count()
		l.after(time.Hour)
		if n := l.count("GET persistentvolumeclaims"); n[0] != 0 {
			t.Errorf("asked %d times more", n[0])
		}
	})
}

func TestLookupOthers(t *testing.T) {
	service := func(namespace, name, ip string) *v1.Service {
		s := &v1.Service{Spec: v1.ServiceSpec{ClusterIP: ip, Ports: []v1.ServicePort{{Port: 80}}}}
		s.Namespace, s.Name = namespace, name
		return s
	}
	prepare := func(l *life, _ *Options) {
		l.give("services", service("default", "kubernetes", "10.0.0.1"), "ADDED")
		l.give("services", service("default", "headless", "None"), "ADDED")
	}
	alone(t, prepare, func(l *life) {
		class := &nodes.RuntimeClass{Handler: "runsc"}
		class.Name = "gvisor"
		p := reader("a")
		p.Spec.RuntimeClassName = &class.Name
		l.with(func() { l.give("runtimeclasses", class, "ADDED"); l.putPod(p, "ADDED") })
		c := l.objects().Cluster
		if c.Handlers["gvisor"] != "runsc" || len(c.Services["default"].ByName) != 1 {
			t.Errorf("got %+v", c)
		}
		own := c.Services["default"]
		l.with(func() { l.give("services", service("shop", "web", "10.0.0.2"), "ADDED") })
		c = l.objects().Cluster
		if c.Services["default"] != own || c.Services["shop"].ByName["web"].IP != "10.0.0.2" {
			t.Errorf("got %+v", c.Services)
		}
		l.with(func() { l.give("services", service("shop", "web", "10.0.0.2"), "DELETED") })
		if c = l.objects().Cluster; c.Services["shop"] != nil {
			t.Errorf("got %+v", c.Services)
		}
	})
}
