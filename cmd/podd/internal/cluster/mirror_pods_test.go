package cluster

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/cluster/clustertest"
	"podd/server"
)

// TestRun_MirrorPods checks that podd writes the pods of the View to the API server, and that MirrorCount and
// MirrorUID return the mirror pods but not other pods. podd must report a static pod whose name another pod in
// the API server has.
func TestRun_MirrorPods(t *testing.T) {
	prepare := func(l *testNode, _ *Options) { l.PutPod(clustertest.NewPodWithUID("bound-n1"), "ADDED") }
	runNode(t, prepare, func(l *testNode) {
		key := types.NamespacedName{Namespace: "default", Name: "web-n1"}
		check := func(when string, wantCount int, wantUID types.UID) {
			t.Helper()
			if n, uid := l.cluster.MirrorCount(), l.cluster.MirrorUID(key); n != wantCount || uid != wantUID {
				t.Errorf("%s: got %d mirror pods, UID %q of web-n1; want %d, UID %q", when, n, uid, wantCount, wantUID)
			}
			if uid := l.cluster.MirrorUID(types.NamespacedName{Namespace: "default", Name: "bound-n1"}); uid != "" {
				t.Errorf("%s: got UID %q for a pod that is not a mirror pod, want \"\"", when, uid)
			}
		}
		publish := func(pods ...*server.PodView) {
			v := *l.state.View()
			v.Revision++
			v.Pods = pods
			l.state.Publish(&v)
			clustertest.Advance(time.Second)
		}
		check("without a static pod", 0, "")
		static := clustertest.NewStaticPod(t, clustertest.WebManifest)
		static.Status.Phase = v1.PodRunning
		publish(&server.PodView{Pod: static, Rule: "rule", Exists: true})
		m := l.StoredPod("default", "web-n1")
		if m == nil || m.Status.Phase != v1.PodRunning || m.OwnerReferences[0].UID != l.StoredNode().UID {
			t.Fatalf("got mirror pod %+v, want a running one that the Node owns", m)
		}
		check("static pod", 1, m.UID)
		conflicting := clustertest.NewStaticPod(t, strings.Replace(clustertest.WebManifest, "name: web", "name: bound", 1))
		publish(&server.PodView{Pod: static, Rule: "rule", Exists: true}, &server.PodView{Pod: conflicting, Rule: "rule", Exists: true})
		l.mu.Lock()
		rejected := l.rejected
		l.mu.Unlock()
		if len(rejected) != 1 || rejected[0].Pod.Name != "bound-n1" {
			t.Errorf("static pod with the name of a bound pod: got rejections %v, want one of bound-n1", rejected)
		}
		check("static pod with the name of a bound pod", 1, m.UID)
		publish()
		check("static pod removed", 0, "")
	})
}

// TestRun_LoopbackIP checks that a mirror pod gets a loopback address as its hostIP if --node-ip is this
// address.
func TestRun_LoopbackIP(t *testing.T) {
	runNode(t, func(_ *testNode, o *Options) { o.Node.ProvidedIP = "127.0.0.1" }, func(l *testNode) {
		for _, ip := range []string{"10.0.0.1", "127.0.0.1"} {
			static := clustertest.NewStaticPod(t, clustertest.WebManifest+"  hostNetwork: true\n")
			static.Status.Phase, static.Status.HostIP, static.Status.HostIPs = v1.PodRunning, ip, []v1.HostIP{{IP: ip}}
			v := *l.state.View()
			v.Revision++
			v.Pods = []*server.PodView{{Pod: static, Rule: "rule", Exists: true}}
			l.state.Publish(&v)
			clustertest.Advance(time.Second)
			if m := l.StoredPod("default", "web-n1"); m == nil || m.Status.HostIP != ip {
				t.Errorf("got mirror pod %+v, want one with the hostIP %s", m, ip)
			}
		}
	})
}
