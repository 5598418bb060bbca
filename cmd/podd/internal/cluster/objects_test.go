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

// newReader returns a pod with volumes.
func newReader(name string, volumes ...v1.VolumeSource) *v1.Pod {
	p := newBoundPod(name, "1")
	p.UID, p.Spec.ServiceAccountName = types.UID("uid-"+name), "robot"
	for i, source := range volumes {
		p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: fmt.Sprint("v", i), VolumeSource: source})
	}
	return p
}

// configMapVolume returns a volume of a ConfigMap.
func configMapVolume(name string) v1.VolumeSource {
	return v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: name}}}
}

// claimVolume returns a volume of a claim.
func claimVolume(name string) v1.VolumeSource {
	return v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: name}}
}

// tokenVolume returns a volume with a service account token.
func tokenVolume(audience string, seconds int64) v1.VolumeSource {
	return v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{
		{ServiceAccountToken: &v1.ServiceAccountTokenProjection{Audience: audience, ExpirationSeconds: &seconds, Path: "token"}}}}}
}

// objects returns the published objects.
func (l *testNode) objects() *manifest.Objects {
	o, _ := l.cluster.objects.get()
	return &o
}

// value returns the value in a published ConfigMap, or the reason why the ConfigMap is missing.
func (l *testNode) value(name string) string {
	o, ref := l.objects(), manifest.ObjectRef{Kind: "ConfigMap", NamespacedName: types.NamespacedName{Namespace: "default", Name: name}}
	if c := o.ConfigMaps[ref.NamespacedName]; c != nil {
		return c.Data["a"]
	}
	return o.Cluster.Missing[ref].Message
}

// checkConfigMap checks the result of value.
func (l *testNode) checkConfigMap(name, want string) {
	l.t.Helper()
	if got := l.value(name); got != want {
		l.t.Errorf("ConfigMap %s: got %q, want %q", name, got, want)
	}
}

// addReader adds n ConfigMaps, and a pod that refers to them.
func (l *testNode) addReader(n int) {
	l.change(func() {
		var volumes []v1.VolumeSource
		for i := range n {
			name := fmt.Sprint("conf", i)
			volumes = append(volumes, configMapVolume(name))
			l.putObject("configmaps", newConfigMap(name, "1"), "ADDED")
		}
		l.putPod(newReader("a", volumes...), "ADDED")
	})
}

// TestLookup_Idle checks that objects that do not change cause few requests.
func TestLookup_Idle(t *testing.T) {
	const many = 20
	runNode(t, nil, func(l *testNode) {
		l.addReader(many)
		l.advance(time.Minute)
		l.countRequests()
		l.advance(objectWatchTimeout - 2*time.Minute)
		if n := l.countRequests("GET configmaps", "WATCH configmaps"); n[0]+n[1] > 0 {
			t.Errorf("got %d lists, %d watches, want none", n[0], n[1])
		}
		l.advance(objectWatchTimeout + 2*time.Minute)
		if n := l.countRequests("GET configmaps", "WATCH configmaps"); n[0] > 0 || n[1] < many || n[1] > 2*many {
			t.Errorf("after an hour: got %d lists, %d watches; want no lists, and %d to %d watches", n[0], n[1], many, 2*many)
		}
	})
}

// TestLookup_Outage checks that cached objects cause few requests in an outage. Because all requests
// of the client share a rate limit, many such requests would delay the requests for pods after the
// outage.
func TestLookup_Outage(t *testing.T) {
	const many = 20
	runNode(t, nil, func(l *testNode) {
		l.addReader(many)
		l.change(func() {
			l.fault = func(*http.Request) (*http.Response, error) { return nil, fmt.Errorf("unreachable") }
			l.interruptWatches()
		})
		l.countRequests()
		l.advance(10 * time.Minute)
		if n := l.countRequests("GET configmaps"); n[0] > many*45 {
			t.Errorf("in 10m: got %d GET requests for %d ConfigMaps, want at most %d", n[0], many, many*45)
		}
		l.change(func() { l.fault = nil; l.putPod(newBoundPod("b", "1"), "ADDED") })
		l.advance(maxUncachedWait)
		if now, _ := l.cluster.pods.get(); len(now.items) != 2 {
			t.Errorf("%s after the outage: got pods %v, want 2", maxUncachedWait, now.items)
		}
	})
}

// TestLookup checks that an object has one lookup while pods refer to it, and that the object is
// kept in an outage.
func TestLookup(t *testing.T) {
	runNode(t, nil, func(l *testNode) {
		l.checkConfigMap("conf", "")
		l.countRequests()
		l.change(func() {
			l.putObject("configmaps", newConfigMap("conf", "1"), "ADDED")
			l.putObject("configmaps", newConfigMap("other", "1"), "ADDED")
		})
		l.change(func() {
			l.putPod(newReader("a", configMapVolume("conf"), configMapVolume("none")), "ADDED")
			l.putPod(newReader("b", configMapVolume("conf")), "ADDED")
		})
		l.checkConfigMap("conf", "1")
		l.checkConfigMap("none", `configmap "none" not found`)
		l.checkConfigMap("other", "")
		if n := l.countRequests("GET configmaps", "WATCH configmaps"); n[0] != 2 || n[1] != 2 {
			t.Errorf("got %v requests, want one list and one watch of each object", n)
		}
		l.change(func() {
			l.putObject("configmaps", newConfigMap("conf", "2"), "MODIFIED")
			l.putObject("configmaps", newConfigMap("none", "1"), "ADDED")
		})
		l.checkConfigMap("conf", "2")
		l.checkConfigMap("none", "1")
		l.change(func() { l.putObject("configmaps", newConfigMap("none", "1"), "DELETED") })
		l.checkConfigMap("none", `configmap "none" not found`)
		l.change(func() {
			l.fault = func(*http.Request) (*http.Response, error) { return nil, fmt.Errorf("unreachable") }
			l.interruptWatches()
		})
		l.advance(time.Minute)
		l.checkConfigMap("conf", "2")
		l.change(func() { l.fault = nil; l.putObject("configmaps", newConfigMap("conf", "3"), "MODIFIED") })
		l.advance(maxCachedWait)
		l.checkConfigMap("conf", "3")
		l.change(func() { l.putPod(newReader("a"), "DELETED") })
		l.checkConfigMap("conf", "3")
		l.checkConfigMap("none", "")
		ended := newReader("b", configMapVolume("conf"))
		ended.Status.Phase = v1.PodSucceeded
		l.change(func() { l.putPod(ended, "MODIFIED") })
		l.checkConfigMap("conf", "")
		l.countRequests()
		l.advance(time.Hour)
		if n := l.countRequests("GET configmaps", "WATCH configmaps"); n[0]+n[1] != 0 {
			t.Errorf("unused objects: got %v requests, want none", n)
		}
	})
}

// TestLookup_Forbidden checks that a 403 response shortly after the binding of a pod is not
// reported, and is retried soon.
func TestLookup_Forbidden(t *testing.T) {
	runNode(t, nil, func(l *testNode) {
		forbid := func(q *http.Request) (*http.Response, error) {
			return errorResponse(apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "conf", fmt.Errorf("no relationship found"))), nil
		}
		l.change(func() {
			l.putObject("configmaps", newConfigMap("conf", "1"), "ADDED")
			l.putPod(newReader("a", configMapVolume("conf")), "ADDED")
			l.fault = forbid
		})
		l.advance(100 * time.Millisecond)
		l.checkConfigMap("conf", "")
		l.change(func() { l.fault = nil })
		l.advance(200 * time.Millisecond)
		l.checkConfigMap("conf", "1")
		l.change(func() {
			l.putObject("configmaps", newConfigMap("c2", "1"), "ADDED")
			l.putPod(newReader("b", configMapVolume("c2")), "ADDED")
			l.fault = forbid
		})
		l.advance(5 * time.Second)
		l.checkConfigMap("conf", "1")
		l.checkConfigMap("c2", `requesting configmap "c2" from the API server: configmaps "conf" is forbidden: no relationship found`)
		l.change(func() { l.fault = nil })
		l.advance(maxUncachedWait)
		l.checkConfigMap("c2", "1")
	})
}

// TestLookup_Immutable checks that an immutable object is listed once.
func TestLookup_Immutable(t *testing.T) {
	runNode(t, nil, func(l *testNode) {
		c, is := newConfigMap("conf", "1"), true
		c.Immutable = &is
		l.countRequests()
		l.change(func() {
			l.putObject("configmaps", c, "ADDED")
			l.putPod(newReader("a", configMapVolume("conf")), "ADDED")
		})
		l.advance(time.Hour)
		l.checkConfigMap("conf", "1")
		if n := l.countRequests("GET configmaps", "WATCH configmaps"); n[0] != 1 || n[1] > 1 {
			t.Errorf("got %v requests, want one list and at most one watch", n)
		}
	})
}

// TestToken checks that each combination of pod, audience and lifetime has one token, that a
// token is renewed before it expires, and that a token is kept if its renewal fails.
func TestToken(t *testing.T) {
	runNode(t, nil, func(l *testNode) {
		token := func(name string) string {
			return string(l.objects().Cluster.Tokens[types.NamespacedName{Namespace: "default", Name: name}].Text)
		}
		l.change(func() {
			l.putPod(newReader("a", tokenVolume("", 3600), tokenVolume("", 3600), tokenVolume("vault", 600)), "ADDED")
		})
		if n := len(l.fakeAPI.objects.requests); n != 2 || token("uid-a/3600/") == "" || token("uid-a/600/vault") == "" {
			t.Fatalf("got %d requests, tokens %v; want 2", n, l.objects().Cluster.Tokens)
		}
		for _, q := range l.fakeAPI.objects.requests {
			ref := q.Spec.BoundObjectRef
			if ref == nil || ref.UID != "uid-a" || ref.Name != "a" || ref.Kind != "Pod" || (*q.Spec.ExpirationSeconds == 600) != (len(q.Spec.Audiences) == 1) {
				t.Errorf("got request %+v, want a token of pod a with 600 s for the audience, or the default lifetime", q.Spec)
			}
		}
		first := token("uid-a/3600/")
		l.change(func() { l.fakeAPI.objects.noTokens = true })
		l.advance(50 * time.Minute)
		if token("uid-a/3600/") != first {
			t.Error("50m after the issue of a token for 1h: got another token, want the first")
		}
		l.change(func() { l.fakeAPI.objects.noTokens = false })
		l.advance(maxUncachedWait)
		if token("uid-a/3600/") == first {
			t.Error("after the API server issues tokens again: got the first token, want a new one")
		}
		l.change(func() { l.putPod(newReader("a"), "DELETED"); l.fakeAPI.objects.requests = nil })
		l.advance(2 * time.Hour)
		if n := len(l.fakeAPI.objects.requests); n > 0 || len(l.objects().Cluster.Tokens) > 0 {
			t.Errorf("deleted pod: got %d requests, %d tokens; want none", n, len(l.objects().Cluster.Tokens))
		}
	})
}

// TestToken_Clock checks that the renewal does not depend on the clock of this host.
func TestToken_Clock(t *testing.T) {
	for _, ahead := range []time.Duration{time.Hour, -time.Hour} {
		runNode(t, nil, func(l *testNode) {
			l.change(func() { l.fakeAPI.objects.ahead = ahead; l.putPod(newReader("a", tokenVolume("", 3600)), "ADDED") })
			l.advance(90 * time.Minute)
			if n := len(l.fakeAPI.objects.requests); n != 2 {
				t.Errorf("clock ahead by %s: got %d requests in 90 minutes, want 2", ahead, n)
			}
		})
	}
}

// TestToken_Rejected checks that the error of the API server is reported.
func TestToken_Rejected(t *testing.T) {
	runNode(t, nil, func(l *testNode) {
		l.change(func() { l.fakeAPI.objects.noTokens = true; l.putPod(newReader("a", tokenVolume("", 3600)), "ADDED") })
		l.advance(3 * bindingLag) // the first request after bindingLag may come 1.3 s later
		ref := manifest.ObjectRef{Kind: "TokenRequest", NamespacedName: types.NamespacedName{Namespace: "default", Name: "uid-a/3600/"}}
		if got, want := l.objects().Cluster.Missing[ref].Message, `failed to fetch token: serviceaccounts "robot" not found`; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		l.change(func() { l.fakeAPI.objects.noTokens = false })
		l.advance(maxUncachedWait)
		if len(l.objects().Cluster.Tokens) != 1 || len(l.objects().Cluster.Missing) > 0 {
			t.Errorf("got %+v, want one token and no missing object", l.objects().Cluster)
		}
	})
}

func TestRenewAfter(t *testing.T) {
	for lifetime, want := range map[time.Duration]time.Duration{
		10 * time.Minute: 8 * time.Minute, time.Hour: 48 * time.Minute, 365 * 24 * time.Hour: 24 * time.Hour, -time.Hour: 20 * time.Second,
	} {
		if got := renewAfter(lifetime); got != want {
			t.Errorf("%s: got %s, want %s", lifetime, got, want)
		}
	}
}

// TestLookup_Claim checks that a claim is polled until it is bound.
func TestLookup_Claim(t *testing.T) {
	runNode(t, nil, func(l *testNode) {
		claim := &v1.PersistentVolumeClaim{ObjectMeta: metaOf("data")}
		claim.UID, claim.Status.Phase = "c1", v1.ClaimPending
		volume := &v1.PersistentVolume{}
		volume.Name, volume.Spec.ClaimRef = "pv1", &v1.ObjectReference{UID: "c1"}
		l.change(func() { l.putPod(newReader("a", claimVolume("data")), "ADDED") })
		key := types.NamespacedName{Namespace: "default", Name: "data"}
		ref := manifest.ObjectRef{Kind: "PersistentVolumeClaim", NamespacedName: key}
		if got := l.objects().Cluster.Missing[ref]; got.Message != `persistentvolumeclaim "data" not found` {
			t.Errorf("got %+v, want the claim to be missing", got)
		}
		l.change(func() { l.putObject("persistentvolumeclaims", claim, "ADDED") })
		l.advance(maxUncachedWait)
		if got := l.objects().Claims[key]; got == nil || got.Status.Phase != v1.ClaimPending {
			t.Errorf("got %+v, want a pending claim", got)
		}
		claim.Spec.VolumeName, claim.Status.Phase = "pv1", v1.ClaimBound
		l.change(func() {
			l.putObject("persistentvolumes", volume, "ADDED")
			l.putObject("persistentvolumeclaims", claim, "MODIFIED")
		})
		l.advance(maxUncachedWait)
		if o := l.objects(); o.Claims[key] == nil || refs.UnboundReason(o.Claims[key], o.Volumes[types.NamespacedName{Name: "pv1"}]) != "" {
			t.Errorf("got %+v, want a bound claim and its volume", o)
		}
		l.countRequests()
		l.advance(time.Hour)
		if n := l.countRequests("GET persistentvolumeclaims"); n[0] != 0 {
			t.Errorf("bound claim: got %d requests, want none", n[0])
		}
	})
}

// TestLookup_InTreeVolume checks that the volume of a claim has the source csi if the in-tree source can
// be translated, and otherwise the in-tree source.
func TestLookup_InTreeVolume(t *testing.T) {
	for kind, want := range map[v1.AzureDataDiskKind]string{v1.AzureManagedDisk: "disk.csi.azure.com", v1.AzureSharedBlobDisk: ""} {
		runNode(t, nil, func(l *testNode) {
			claim, volume := &v1.PersistentVolumeClaim{ObjectMeta: metaOf("data")}, &v1.PersistentVolume{}
			claim.UID, claim.Spec.VolumeName, claim.Status.Phase = "c1", "pv1", v1.ClaimBound
			volume.Name, volume.Spec.ClaimRef = "pv1", &v1.ObjectReference{UID: "c1"}
			volume.Spec.AzureDisk = &v1.AzureDiskVolumeSource{DataDiskURI: "/subscriptions/s", Kind: &kind}
			l.change(func() {
				l.putObject("persistentvolumes", volume, "ADDED")
				l.putObject("persistentvolumeclaims", claim, "ADDED")
				l.putPod(newReader("a", claimVolume("data")), "ADDED")
			})
			l.advance(maxUncachedWait)
			got := l.objects().Volumes[types.NamespacedName{Name: "pv1"}]
			switch {
			case got == nil, want == "" && got.Spec.AzureDisk == nil:
				t.Errorf("%s: got %+v, want the volume with its source", kind, got)
			case want != "" && (got.Spec.CSI == nil || got.Spec.CSI.Driver != want || got.Spec.AzureDisk != nil):
				t.Errorf("%s: got source %+v, want one of the driver %s", kind, got.Spec.PersistentVolumeSource, want)
			}
		})
	}
}

// TestLookup_Others checks RuntimeClasses and Services.
func TestLookup_Others(t *testing.T) {
	service := func(namespace, name, ip string) *v1.Service {
		s := &v1.Service{Spec: v1.ServiceSpec{ClusterIP: ip, Ports: []v1.ServicePort{{Port: 80}}}}
		s.Namespace, s.Name = namespace, name
		return s
	}
	prepare := func(l *testNode, _ *Options) {
		l.putObject("services", service("default", "kubernetes", "10.0.0.1"), "ADDED")
		l.putObject("services", service("default", "headless", "None"), "ADDED")
	}
	runNode(t, prepare, func(l *testNode) {
		class := &nodes.RuntimeClass{Handler: "runsc"}
		class.Name = "gvisor"
		p := newReader("a")
		p.Spec.RuntimeClassName = &class.Name
		l.change(func() { l.putObject("runtimeclasses", class, "ADDED"); l.putPod(p, "ADDED") })
		c := l.objects().Cluster
		if c.RuntimeHandlers["gvisor"] != "runsc" || len(c.Services["default"].ByName) != 1 {
			t.Errorf("got %+v, want the handler runsc and one Service in default", c)
		}
		own := c.Services["default"]
		l.change(func() { l.putObject("services", service("shop", "web", "10.0.0.2"), "ADDED") })
		c = l.objects().Cluster
		if c.Services["default"] != own || c.Services["shop"].ByName["web"].IP != "10.0.0.2" {
			t.Errorf("got %+v, want the unchanged Services of default and the Service shop/web", c.Services)
		}
		l.change(func() { l.putObject("services", service("shop", "web", "10.0.0.2"), "DELETED") })
		if c = l.objects().Cluster; c.Services["shop"] != nil {
			t.Errorf("got %+v, want no Services of shop", c.Services)
		}
	})
}
