package manifest_test

import (
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/manifest/decode"
	"podd/manifest/manifesttest"
)

// TestHash_QoSClass checks that resources which change the QoS class of a pod, and therefore
// its cgroup, change its hash.
func TestHash_QoSClass(t *testing.T) {
	const text = `{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c, image: "i:1", resources: {limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 1, memory: MEM}}}]}}`
	of := func(memory string) *manifest.Pod {
		return manifesttest.One(t, strings.Replace(text, "MEM", memory, 1), decode.Options{Node: "n"})
	}
	guaranteed, burstable, smaller := of("1Gi"), of("512Mi"), of("256Mi")
	if guaranteed.Hash == burstable.Hash || guaranteed.UID == burstable.UID {
		t.Error("Guaranteed and Burstable: got equal hashes")
	}
	if burstable.Hash != smaller.Hash || burstable.UID != smaller.UID {
		t.Error("two Burstable sizes: got different hashes")
	}
}

// TestHash_JobSize checks that other resources change the hash of a pod that can complete, so
// that it runs again, for example with more memory.
func TestHash_JobSize(t *testing.T) {
	for _, policy := range []string{"Never", "OnFailure"} {
		text := strings.Replace(hashed, "spec:\n", "spec:\n  restartPolicy: "+policy+"\n", 1)
		small, large := manifesttest.One(t, text, decode.Options{}), manifesttest.One(t, strings.Replace(text, "64Mi", "1Gi", 1), decode.Options{})
		if small.Hash == large.Hash || small.UID == large.UID {
			t.Errorf("restartPolicy %s: got equal hashes for two sizes", policy)
		}
	}
}

func TestWithSizes(t *testing.T) {
	p := manifesttest.One(t, hashed, decode.Options{Node: "n"})
	const size = "cpu=1/1 memory=32Mi/64Mi"
	if got := p.Containers["main"].Size; got != size {
		t.Fatalf("size: got %q, want %q", got, size)
	}
	for name, other := range map[string]string{
		"the same": size, "nothing": "", "nonsense": "cpu=x/y", "another limit": "cpu=1/ memory=32Mi/64Mi",
		"negative": "cpu=-1/-1 memory=32Mi/64Mi", "half": "cpu=1/2",
	} {
		if p.WithSizes(map[string]string{"main": other}) != p {
			t.Errorf("%s: got a different pod", name)
		}
	}
	const smaller = "cpu=500m/1 memory=16Mi/64Mi"
	q := p.WithSizes(map[string]string{"main": smaller, "absent": smaller})
	if got := q.Containers["main"].Size; got != smaller || manifest.FormatSize(q.Spec.Spec.Containers[0].Resources) != smaller {
		t.Errorf("size: got %q, want %q", got, smaller)
	}
	if p.Containers["main"].Size != size || manifest.FormatSize(p.Spec.Spec.Containers[0].Resources) != size {
		t.Error("the original was changed")
	}
	if q.Hash != p.Hash || q.UID != p.UID || q.Containers["side"] != p.Containers["side"] {
		t.Error("the hash changed")
	}
	if got := manifest.ResizedResources(size, smaller); !slices.Equal(got, []v1.ResourceName{"cpu", "memory"}) {
		t.Errorf("resized resources: got %v", got)
	}
}

func TestSizeRequests(t *testing.T) {
	r := manifest.SizeRequests("cpu=100m/1 memory=32Mi/ gpu=x/1")
	if got := manifest.FormatSize(r); got != "cpu=100m/ memory=32Mi/" || len(r.Requests) != 2 {
		t.Errorf("got %s, %v", got, r.Requests)
	}
	for _, text := range []string{"", "/", "cpu=-1/", "cpu", "memory=x/x"} {
		if r := manifest.SizeRequests(text); len(r.Requests) > 0 {
			t.Errorf("requests in %q: got %v", text, r.Requests)
		}
	}
}
