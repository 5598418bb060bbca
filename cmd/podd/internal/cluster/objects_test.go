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

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/clustertest"
	"podd/manifest"
	"podd/manifest/refs"
)

// newPodWithVolumes returns a pod of the service account robot with volumes. The UID is "uid-" and the
// name of the pod.
func newPodWithVolumes(name string, volumes ...v1.VolumeSource) *v1.Pod {
	p := clustertest.NewBoundPod(name, "1")
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
	o, _ := l.cluster.resolver.Objects()
	return &o
}

// configMapValue returns the value of a published ConfigMap that newConfigMap created, or the reason
// why the ConfigMap is missing, or "" if no pod refers to the ConfigMap.
func (l *testNode) configMapValue(name string) string {
	o, ref := l.objects(), manifest.ObjectRef{Kind: "ConfigMap", NamespacedName: types.NamespacedName{Namespace: "default", Name: name}}
	if c := o.ConfigMaps[ref.NamespacedName]; c != nil {
		return c.Data["a"]
	}
	return o.Cluster.Missing[ref].Message
}

// checkConfigMap checks the result of configMapValue.
func (l *testNode) checkConfigMap(name, want string) {
	l.t.Helper()
	if got := l.configMapValue(name); got != want {
		l.t.Errorf("ConfigMap %s: got %q, want %q", name, got, want)
	}
}

// addPodWithConfigMaps adds n ConfigMaps, and a pod with a volume of each.
func (l *testNode) addPodWithConfigMaps(n int) {
	l.change(func() {
		var volumes []v1.VolumeSource
		for i := range n {
			name := fmt.Sprint("conf", i)
			volumes = append(volumes, configMapVolume(name))
			l.putObject("configmaps", newConfigMap(name, "1"), "ADDED")
		}
		l.putPod(newPodWithVolumes("a", volumes...), "ADDED")
	})
}

// TestLookup_Idle checks the requests while the objects do not change. podd must start one watch of each
// object per apiserver.ObjectWatchTimeout, and must send no other requests for the objects.
func TestLookup_Idle(t *testing.T) {
	const many = 20
	runNode(t, nil, func(l *testNode) {
		l.addPodWithConfigMaps(many)
		l.advance(time.Minute)
		l.countRequests()
		l.advance(apiserver.ObjectWatchTimeout - 2*time.Minute)
		if n := l.countRequests("GET configmaps", "WATCH configmaps"); n[0]+n[1] > 0 {
			t.Errorf("before the first watches end: got %d lists, %d watches; want none", n[0], n[1])
		}
		l.advance(apiserver.ObjectWatchTimeout + 2*time.Minute)
		if n := l.countRequests("GET configmaps", "WATCH configmaps"); n[0] > 0 || n[1] < many || n[1] > 2*many {
			t.Errorf("in the next 32m: got %d lists, %d watches; want no lists, and %d to %d watches", n[0], n[1], many, 2*many)
		}
	})
}

// TestLookup_Outage checks that podd sends few requests for cached objects during an outage. Because
// all requests of the client share a rate limit, too many of these requests would delay the requests
// for pods after the outage.
func TestLookup_Outage(t *testing.T) {
	const many = 20
	runNode(t, nil, func(l *testNode) {
		l.addPodWithConfigMaps(many)
		l.change(func() {
			l.fault = func(*http.Request) (*http.Response, error) { return nil, fmt.Errorf("unreachable") }
			l.interruptWatches()
		})
		l.countRequests()
		l.advance(10 * time.Minute)
		if n := l.countRequests("GET configmaps"); n[0] > many*45 {
			t.Errorf("in an outage of 10m: got %d GETs of %d ConfigMaps, want at most %d", n[0], many, many*45)
		}
		l.change(func() { l.fault = nil; l.putPod(clustertest.NewBoundPod("b", "1"), "ADDED") })
		l.advance(apiserver.MaxUncachedWait)
		if now, _ := l.cluster.pods.Get(); len(now.Items) != 2 {
			t.Errorf("%s after the outage: got pods %v, want the 2 pods a and b", apiserver.MaxUncachedWait, now.Items)
		}
	})
}

// TestLookup checks that podd looks up an object once, however many pods refer to the object, and
// keeps the object during an outage. podd must not look up objects to which no running pod refers.
func TestLookup(t *testing.T) {
	runNode(t, nil, func(l *testNode) {
		l.checkConfigMap("conf", "")
		l.countRequests()
		l.change(func() {
			l.putObject("configmaps", newConfigMap("conf", "1"), "ADDED")
			l.putObject("configmaps", newConfigMap("other", "1"), "ADDED")
		})
		l.change(func() {
			l.putPod(newPodWithVolumes("a", configMapVolume("conf"), configMapVolume("none")), "ADDED")
			l.putPod(newPodWithVolumes("b", configMapVolume("conf")), "ADDED")
		})
		l.checkConfigMap("conf", "1")
		l.checkConfigMap("none", `configmap "none" not found`)
		l.checkConfigMap("other", "")
		if n := l.countRequests("GET configmaps", "WATCH configmaps"); n[0] != 2 || n[1] != 2 {
			t.Errorf("got %d lists, %d watches; want one list and one watch of the ConfigMap \"conf\", and one list and one watch of the missing ConfigMap \"none\"", n[0], n[1])
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
		l.advance(apiserver.MaxCachedWait)
		l.checkConfigMap("conf", "3")
		l.change(func() { l.putPod(newPodWithVolumes("a"), "DELETED") })
		l.checkConfigMap("conf", "3")
		l.checkConfigMap("none", "")
		ended := newPodWithVolumes("b", configMapVolume("conf"))
		ended.Status.Phase = v1.PodSucceeded
		l.change(func() { l.putPod(ended, "MODIFIED") })
		l.checkConfigMap("conf", "")
		l.countRequests()
		l.advance(time.Hour)
		if n := l.countRequests("GET configmaps", "WATCH configmaps"); n[0]+n[1] != 0 {
			t.Errorf("no running pod refers to an object: got %d lists and %d watches, want none", n[0], n[1])
		}
	})
}

// TestLookup_Forbidden checks a 403 response in the first second after a pod appeared. The authorizer
// may not have processed the binding of the pod yet. Therefore podd must soon send the request again,
// and must not report the response.
func TestLookup_Forbidden(t *testing.T) {
	runNode(t, nil, func(l *testNode) {
		forbid := func(q *http.Request) (*http.Response, error) {
			return clustertest.ErrorResponse(apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "conf", fmt.Errorf("no relationship found"))), nil
		}
		l.change(func() {
			l.putObject("configmaps", newConfigMap("conf", "1"), "ADDED")
			l.putPod(newPodWithVolumes("a", configMapVolume("conf")), "ADDED")
			l.fault = forbid
		})
		l.advance(100 * time.Millisecond)
		l.checkConfigMap("conf", "")
		l.change(func() { l.fault = nil })
		l.advance(200 * time.Millisecond)
		l.checkConfigMap("conf", "1")
		l.change(func() {
			l.putObject("configmaps", newConfigMap("c2", "1"), "ADDED")
			l.putPod(newPodWithVolumes("b", configMapVolume("c2")), "ADDED")
			l.fault = forbid
		})
		l.advance(5 * time.Second)
		l.checkConfigMap("conf", "1")
		l.checkConfigMap("c2", `requesting configmap "c2" from the API server: configmaps "conf" is forbidden: no relationship found`)
		l.change(func() { l.fault = nil })
		l.advance(apiserver.MaxUncachedWait)
		l.checkConfigMap("c2", "1")
	})
}

// TestLookup_Immutable checks that podd lists an immutable object once and does not watch it for long.
func TestLookup_Immutable(t *testing.T) {
	runNode(t, nil, func(l *testNode) {
		c := newConfigMap("conf", "1")
		c.Immutable = new(true)
		l.countRequests()
		l.change(func() {
			l.putObject("configmaps", c, "ADDED")
			l.putPod(newPodWithVolumes("a", configMapVolume("conf")), "ADDED")
		})
		l.advance(time.Hour)
		l.checkConfigMap("conf", "1")
		if n := l.countRequests("GET configmaps", "WATCH configmaps"); n[0] != 1 || n[1] > 1 {
			t.Errorf("in an hour: got %d lists and %d watches, want one list and at most one watch", n[0], n[1])
		}
	})
}

// TestToken checks that podd requests one token for each combination of pod, audience and lifetime.
// podd must renew a token before it expires, and keep the token if the renewal fails.
func TestToken(t *testing.T) {
	runNode(t, nil, func(l *testNode) {
		token := func(name string) string {
			return string(l.objects().Cluster.Tokens[types.NamespacedName{Namespace: "default", Name: name}].Text)
		}
		l.change(func() {
			l.putPod(newPodWithVolumes("a", tokenVolume("", 3600), tokenVolume("", 3600), tokenVolume("vault", 600)), "ADDED")
		})
		if n := len(l.fakeAPI.objects.tokenRequests); n != 2 || token("uid-a/3600/") == "" || token("uid-a/600/vault") == "" {
			t.Fatalf("got %d token requests, tokens %v; want the 2 tokens uid-a/3600/ and uid-a/600/vault", n, l.objects().Cluster.Tokens)
		}
		for _, q := range l.fakeAPI.objects.tokenRequests {
			ref := q.Spec.BoundObjectRef
			if ref == nil || ref.UID != "uid-a" || ref.Name != "a" || ref.Kind != "Pod" || (*q.Spec.ExpirationSeconds == 600) != (len(q.Spec.Audiences) == 1) {
				t.Errorf("got token request %+v, want one that is bound to pod a, and that either requests 600 s for the audience vault, or another lifetime without an audience", q.Spec)
			}
		}
		first := token("uid-a/3600/")
		l.change(func() { l.fakeAPI.objects.rejectsTokens = true })
		l.advance(50 * time.Minute)
		if token("uid-a/3600/") != first {
			t.Error("50m after the issue of a token for 1h, with rejected renewals: got another token, want the first")
		}
		l.change(func() { l.fakeAPI.objects.rejectsTokens = false })
		l.advance(apiserver.MaxUncachedWait)
		if token("uid-a/3600/") == first {
			t.Error("after the API server issues tokens again: got the first token, want a new one")
		}
		l.change(func() { l.putPod(newPodWithVolumes("a"), "DELETED"); l.fakeAPI.objects.tokenRequests = nil })
		l.advance(2 * time.Hour)
		if n := len(l.fakeAPI.objects.tokenRequests); n > 0 || len(l.objects().Cluster.Tokens) > 0 {
			t.Errorf("in 2h after the deletion of the pod: got %d token requests, %d tokens; want no requests, no tokens", n, len(l.objects().Cluster.Tokens))
		}
	})
}

// TestToken_Clock checks that podd renews a token in time even if the clock of this host is wrong.
func TestToken_Clock(t *testing.T) {
	for _, ahead := range []time.Duration{time.Hour, -time.Hour} {
		runNode(t, nil, func(l *testNode) {
			l.change(func() {
				l.fakeAPI.objects.ahead = ahead
				l.putPod(newPodWithVolumes("a", tokenVolume("", 3600)), "ADDED")
			})
			l.advance(90 * time.Minute)
			if n := len(l.fakeAPI.objects.tokenRequests); n != 2 {
				t.Errorf("clock ahead by %s: got %d requests for a token of 1h in 90 minutes, want 2", ahead, n)
			}
		})
	}
}

// TestToken_Rejected checks that podd reports why a token is missing if the API server rejects the
// request, and that a later request succeeds.
func TestToken_Rejected(t *testing.T) {
	runNode(t, nil, func(l *testNode) {
		l.change(func() {
			l.fakeAPI.objects.rejectsTokens = true
			l.putPod(newPodWithVolumes("a", tokenVolume("", 3600)), "ADDED")
		})
		l.advance(3 * time.Second) // podd only reports errors one second after the start of the lookup, and may send the next request 1.3 s later
		ref := manifest.ObjectRef{Kind: "TokenRequest", NamespacedName: types.NamespacedName{Namespace: "default", Name: "uid-a/3600/"}}
		if got, want := l.objects().Cluster.Missing[ref].Message, `failed to fetch token: serviceaccounts "robot" not found`; got != want {
			t.Errorf("rejected request: got %q, want %q", got, want)
		}
		l.change(func() { l.fakeAPI.objects.rejectsTokens = false })
		l.advance(apiserver.MaxUncachedWait)
		if len(l.objects().Cluster.Tokens) != 1 || len(l.objects().Cluster.Missing) > 0 {
			t.Errorf("accepted request: got objects %+v, want one token and no missing object", l.objects().Cluster)
		}
	})
}

// TestLookup_Claim checks that podd polls a claim until the claim is bound, and then publishes its
// volume. podd must not poll the bound claim, because its volume is not a CSI volume.
func TestLookup_Claim(t *testing.T) {
	runNode(t, nil, func(l *testNode) {
		claim := &v1.PersistentVolumeClaim{ObjectMeta: metaOf("data")}
		claim.UID, claim.Status.Phase = "c1", v1.ClaimPending
		volume := &v1.PersistentVolume{}
		volume.Name, volume.Spec.ClaimRef = "pv1", &v1.ObjectReference{UID: "c1"}
		l.change(func() { l.putPod(newPodWithVolumes("a", claimVolume("data")), "ADDED") })
		key := types.NamespacedName{Namespace: "default", Name: "data"}
		ref := manifest.ObjectRef{Kind: "PersistentVolumeClaim", NamespacedName: key}
		if got := l.objects().Cluster.Missing[ref]; got.Message != `persistentvolumeclaim "data" not found` {
			t.Errorf("before the creation of the claim: got missing object %+v, want \"not found\"", got)
		}
		l.change(func() { l.putObject("persistentvolumeclaims", claim, "ADDED") })
		l.advance(apiserver.MaxUncachedWait)
		if got := l.objects().Claims[key]; got == nil || got.Status.Phase != v1.ClaimPending {
			t.Errorf("after the creation of the claim: got %+v, want a pending claim", got)
		}
		claim.Spec.VolumeName, claim.Status.Phase = "pv1", v1.ClaimBound
		l.change(func() {
			l.putObject("persistentvolumes", volume, "ADDED")
			l.putObject("persistentvolumeclaims", claim, "MODIFIED")
		})
		l.advance(apiserver.MaxUncachedWait)
		if o := l.objects(); o.Claims[key] == nil || refs.UnboundReason(o.Claims[key], o.Volumes[types.NamespacedName{Name: "pv1"}]) != "" {
			t.Errorf("after the binding: got objects %+v, want a bound claim and its volume", o)
		}
		l.countRequests()
		l.advance(time.Hour)
		if n := l.countRequests("GET persistentvolumeclaims"); n[0] != 0 {
			t.Errorf("in the hour after the binding: got %d GETs of claims, want none", n[0])
		}
	})
}

// TestLookup_InTreeVolume checks that podd translates the in-tree source of a volume to a CSI source,
// and keeps the in-tree source if the translation fails.
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
				l.putPod(newPodWithVolumes("a", claimVolume("data")), "ADDED")
			})
			l.advance(apiserver.MaxUncachedWait)
			got := l.objects().Volumes[types.NamespacedName{Name: "pv1"}]
			switch {
			case got == nil, want == "" && got.Spec.AzureDisk == nil:
				t.Errorf("%s: got volume %+v, want one with the source azureDisk", kind, got)
			case want != "" && (got.Spec.CSI == nil || got.Spec.CSI.Driver != want || got.Spec.AzureDisk != nil):
				t.Errorf("%s: got source %+v, want only a CSI source of the driver %s", kind, got.Spec.PersistentVolumeSource, want)
			}
		})
	}
}

// TestLookup_RuntimeClassesAndServices checks that podd publishes the handler of a RuntimeClass and
// the Services with a cluster IP, and reuses the Services of unchanged namespaces.
func TestLookup_RuntimeClassesAndServices(t *testing.T) {
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
		p := newPodWithVolumes("a")
		p.Spec.RuntimeClassName = &class.Name
		l.change(func() { l.putObject("runtimeclasses", class, "ADDED"); l.putPod(p, "ADDED") })
		c := l.objects().Cluster
		if c.RuntimeHandlers["gvisor"] != "runsc" || len(c.Services["default"].ByName) != 1 {
			t.Errorf("got objects %+v, want the handler runsc, and only the Service kubernetes in default", c)
		}
		own := c.Services["default"]
		l.change(func() { l.putObject("services", service("shop", "web", "10.0.0.2"), "ADDED") })
		c = l.objects().Cluster
		if c.Services["default"] != own || c.Services["shop"].ByName["web"].IP != "10.0.0.2" {
			t.Errorf("Service shop/web added: got %+v, want the same Services of default, and the Service shop/web", c.Services)
		}
		l.change(func() { l.putObject("services", service("shop", "web", "10.0.0.2"), "DELETED") })
		if c = l.objects().Cluster; c.Services["shop"] != nil {
			t.Errorf("Service shop/web deleted: got %+v, want no Services of shop", c.Services)
		}
	})
}
