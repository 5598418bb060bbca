package objects

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/clustertest"
	"podd/manifest"
)

// configMapVolume returns a volume of a ConfigMap.
func configMapVolume(name string) v1.VolumeSource {
	return v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: name}}}
}

// configMapValue returns the value of a published ConfigMap that newConfigMap created, or the reason
// why the ConfigMap is missing, or "" if no pod refers to the ConfigMap.
func (l *testResolver) configMapValue(name string) string {
	o, ref := l.objects(), manifest.ObjectRef{Kind: "ConfigMap", NamespacedName: types.NamespacedName{Namespace: "default", Name: name}}
	if c := o.ConfigMaps[ref.NamespacedName]; c != nil {
		return c.Data["a"]
	}
	return o.Cluster.Missing[ref].Message
}

// checkConfigMap checks the result of configMapValue.
func (l *testResolver) checkConfigMap(name, want string) {
	l.t.Helper()
	if got := l.configMapValue(name); got != want {
		l.t.Errorf("ConfigMap %s: got %q, want %q", name, got, want)
	}
}

// addPodWithConfigMaps adds n ConfigMaps, and a pod with a volume of each.
func (l *testResolver) addPodWithConfigMaps(n int) {
	l.Change(func() {
		var volumes []v1.VolumeSource
		for i := range n {
			name := fmt.Sprint("conf", i)
			volumes = append(volumes, configMapVolume(name))
			l.PutObject("configmaps", newConfigMap(name, "1"), "ADDED")
		}
		l.PutPod(clustertest.NewPodWithVolumes("a", volumes...), "ADDED")
	})
}

// TestLookup_Idle checks the requests while the objects do not change. podd must start one watch of each
// object per apiserver.ObjectWatchTimeout, and must send no other requests for the objects.
func TestLookup_Idle(t *testing.T) {
	const many = 20
	runResolver(t, nil, func(l *testResolver) {
		l.addPodWithConfigMaps(many)
		clustertest.Advance(time.Minute)
		l.CountRequests()
		clustertest.Advance(apiserver.ObjectWatchTimeout - 2*time.Minute)
		if n := l.CountRequests("GET configmaps", "WATCH configmaps"); n[0]+n[1] > 0 {
			t.Errorf("before the first watches end: got %d lists, %d watches; want none", n[0], n[1])
		}
		clustertest.Advance(apiserver.ObjectWatchTimeout + 2*time.Minute)
		if n := l.CountRequests("GET configmaps", "WATCH configmaps"); n[0] > 0 || n[1] < many || n[1] > 2*many {
			t.Errorf("in the next 32m: got %d lists, %d watches; want no lists, and %d to %d watches", n[0], n[1], many, 2*many)
		}
	})
}

// TestLookup_Outage checks that podd sends few requests for cached objects during an outage. Because
// all requests of the client share a rate limit, too many of these requests would delay the requests
// for pods after the outage.
func TestLookup_Outage(t *testing.T) {
	const many = 20
	runResolver(t, nil, func(l *testResolver) {
		l.addPodWithConfigMaps(many)
		l.Change(func() {
			l.Fault = func(*http.Request) (*http.Response, error) { return nil, fmt.Errorf("unreachable") }
			l.InterruptWatches()
		})
		l.CountRequests()
		clustertest.Advance(10 * time.Minute)
		if n := l.CountRequests("GET configmaps"); n[0] > many*45 {
			t.Errorf("in an outage of 10m: got %d GETs of %d ConfigMaps, want at most %d", n[0], many, many*45)
		}
		l.Change(func() { l.Fault = nil; l.PutPod(clustertest.NewBoundPod("b", "1"), "ADDED") })
		clustertest.Advance(apiserver.MaxUncachedWait)
		if now, _ := l.podStore.Get(); len(now.Items) != 2 {
			t.Errorf("%s after the outage: got pods %v, want the 2 pods a and b", apiserver.MaxUncachedWait, now.Items)
		}
	})
}

// TestLookup checks that podd looks up an object once, however many pods refer to the object, and
// keeps the object during an outage. podd must not look up objects to which no running pod refers.
func TestLookup(t *testing.T) {
	runResolver(t, nil, func(l *testResolver) {
		l.checkConfigMap("conf", "")
		l.CountRequests()
		l.Change(func() {
			l.PutObject("configmaps", newConfigMap("conf", "1"), "ADDED")
			l.PutObject("configmaps", newConfigMap("other", "1"), "ADDED")
		})
		l.Change(func() {
			l.PutPod(clustertest.NewPodWithVolumes("a", configMapVolume("conf"), configMapVolume("none")), "ADDED")
			l.PutPod(clustertest.NewPodWithVolumes("b", configMapVolume("conf")), "ADDED")
		})
		l.checkConfigMap("conf", "1")
		l.checkConfigMap("none", `configmap "none" not found`)
		l.checkConfigMap("other", "")
		if n := l.CountRequests("GET configmaps", "WATCH configmaps"); n[0] != 2 || n[1] != 2 {
			t.Errorf("got %d lists, %d watches; want one list and one watch of the ConfigMap \"conf\", and one list and one watch of the missing ConfigMap \"none\"", n[0], n[1])
		}
		l.Change(func() {
			l.PutObject("configmaps", newConfigMap("conf", "2"), "MODIFIED")
			l.PutObject("configmaps", newConfigMap("none", "1"), "ADDED")
		})
		l.checkConfigMap("conf", "2")
		l.checkConfigMap("none", "1")
		l.Change(func() { l.PutObject("configmaps", newConfigMap("none", "1"), "DELETED") })
		l.checkConfigMap("none", `configmap "none" not found`)
		l.Change(func() {
			l.Fault = func(*http.Request) (*http.Response, error) { return nil, fmt.Errorf("unreachable") }
			l.InterruptWatches()
		})
		clustertest.Advance(time.Minute)
		l.checkConfigMap("conf", "2")
		l.Change(func() { l.Fault = nil; l.PutObject("configmaps", newConfigMap("conf", "3"), "MODIFIED") })
		clustertest.Advance(apiserver.MaxCachedWait)
		l.checkConfigMap("conf", "3")
		l.Change(func() { l.PutPod(clustertest.NewPodWithVolumes("a"), "DELETED") })
		l.checkConfigMap("conf", "3")
		l.checkConfigMap("none", "")
		ended := clustertest.NewPodWithVolumes("b", configMapVolume("conf"))
		ended.Status.Phase = v1.PodSucceeded
		l.Change(func() { l.PutPod(ended, "MODIFIED") })
		l.checkConfigMap("conf", "")
		l.CountRequests()
		clustertest.Advance(time.Hour)
		if n := l.CountRequests("GET configmaps", "WATCH configmaps"); n[0]+n[1] != 0 {
			t.Errorf("no running pod refers to an object: got %d lists and %d watches, want none", n[0], n[1])
		}
	})
}

// TestLookup_Forbidden checks a 403 response in the first second after a pod appeared. The authorizer
// may not have processed the binding of the pod yet. Therefore podd must soon send the request again,
// and must not report the response.
func TestLookup_Forbidden(t *testing.T) {
	runResolver(t, nil, func(l *testResolver) {
		forbid := func(q *http.Request) (*http.Response, error) {
			return clustertest.ErrorResponse(apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "conf", fmt.Errorf("no relationship found"))), nil
		}
		l.Change(func() {
			l.PutObject("configmaps", newConfigMap("conf", "1"), "ADDED")
			l.PutPod(clustertest.NewPodWithVolumes("a", configMapVolume("conf")), "ADDED")
			l.Fault = forbid
		})
		clustertest.Advance(100 * time.Millisecond)
		l.checkConfigMap("conf", "")
		l.Change(func() { l.Fault = nil })
		clustertest.Advance(200 * time.Millisecond)
		l.checkConfigMap("conf", "1")
		l.Change(func() {
			l.PutObject("configmaps", newConfigMap("c2", "1"), "ADDED")
			l.PutPod(clustertest.NewPodWithVolumes("b", configMapVolume("c2")), "ADDED")
			l.Fault = forbid
		})
		clustertest.Advance(5 * time.Second)
		l.checkConfigMap("conf", "1")
		l.checkConfigMap("c2", `requesting configmap "c2" from the API server: configmaps "conf" is forbidden: no relationship found`)
		l.Change(func() { l.Fault = nil })
		clustertest.Advance(apiserver.MaxUncachedWait)
		l.checkConfigMap("c2", "1")
	})
}

// TestLookup_Immutable checks that podd lists an immutable object once and does not watch it for long.
func TestLookup_Immutable(t *testing.T) {
	runResolver(t, nil, func(l *testResolver) {
		c := newConfigMap("conf", "1")
		c.Immutable = new(true)
		l.CountRequests()
		l.Change(func() {
			l.PutObject("configmaps", c, "ADDED")
			l.PutPod(clustertest.NewPodWithVolumes("a", configMapVolume("conf")), "ADDED")
		})
		clustertest.Advance(time.Hour)
		l.checkConfigMap("conf", "1")
		if n := l.CountRequests("GET configmaps", "WATCH configmaps"); n[0] != 1 || n[1] > 1 {
			t.Errorf("in an hour: got %d lists and %d watches, want one list and at most one watch", n[0], n[1])
		}
	})
}
