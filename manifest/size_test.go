package manifest_test

import (
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"podd/manifest"
	"podd/manifest/decode"
	"podd/manifest/manifesttest"
)

// TestHash_QoSClass checks that resources which change the QoS class of a pod, and therefore
// its cgroup, change its hash.
func TestHash_QoSClass(t *testing.T) {
	const text = `{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c, image: "i:1", resources: {limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 1, memory: MEM}}}]}}`
	podWith := func(memory string) *manifest.Pod {
		return manifesttest.DecodeOne(t, strings.Replace(text, "MEM", memory, 1), decode.Options{NodeName: "n"})
	}
	guaranteed, burstable, smaller := podWith("1Gi"), podWith("512Mi"), podWith("256Mi")
	if guaranteed.Hash == burstable.Hash || guaranteed.UID == burstable.UID {
		t.Error("Guaranteed and Burstable: got equal hashes, want different hashes")
	}
	if burstable.Hash != smaller.Hash || burstable.UID != smaller.UID {
		t.Error("two Burstable sizes: got different hashes, want equal hashes")
	}
}

// TestHash_JobSize checks that a change of resources changes the hash of a pod that can complete.
// podd runs such a pod again if its hash changes, for example to give it more memory.
func TestHash_JobSize(t *testing.T) {
	for _, policy := range []string{"Never", "OnFailure"} {
		text := strings.Replace(webPod, "spec:\n", "spec:\n  restartPolicy: "+policy+"\n", 1)
		small, large := manifesttest.DecodeOne(t, text, decode.Options{}), manifesttest.DecodeOne(t, strings.Replace(text, "64Mi", "1Gi", 1), decode.Options{})
		if small.Hash == large.Hash || small.UID == large.UID {
			t.Errorf("restartPolicy %s: got equal hashes for two sizes, want different hashes", policy)
		}
	}
}

func TestPod_WithSizes(t *testing.T) {
	p := manifesttest.DecodeOne(t, webPod, decode.Options{NodeName: "n"})
	const size = "cpu=1/1 memory=32Mi/64Mi"
	if got := p.ContainerHashes["main"].Resources; got != size {
		t.Fatalf("size: got %q, want %q", got, size)
	}
	for name, invalid := range map[string]string{
		"the same size": size, "an empty size": "", "invalid amounts": "cpu=x/y", "a missing limit": "cpu=1/ memory=32Mi/64Mi",
		"negative amounts": "cpu=-1/-1 memory=32Mi/64Mi", "only cpu": "cpu=1/2",
	} {
		if p.WithSizes(map[string]string{"main": invalid}) != p {
			t.Errorf("%s: got a changed pod, want the same pod", name)
		}
	}
	const smaller = "cpu=500m/1 memory=16Mi/64Mi"
	q := p.WithSizes(map[string]string{"main": smaller, "absent": smaller})
	if got := q.ContainerHashes["main"].Resources; got != smaller || manifest.FormatSize(q.Object.Spec.Containers[0].Resources) != smaller {
		t.Errorf("size after WithSizes: got %q, want %q", got, smaller)
	}
	if p.ContainerHashes["main"].Resources != size || manifest.FormatSize(p.Object.Spec.Containers[0].Resources) != size {
		t.Error("WithSizes changed the original pod")
	}
	if q.Hash != p.Hash || q.UID != p.UID || q.ContainerHashes["side"] != p.ContainerHashes["side"] {
		t.Error("WithSizes: got another hash or UID of the pod, or another hash of container side; want no change")
	}
	if got := manifest.ResizedResources(size, smaller); !slices.Equal(got, []v1.ResourceName{"cpu", "memory"}) {
		t.Errorf("resized resources: got %v, want cpu and memory", got)
	}
}

// TestPod_WithSizes_Inherited checks the size of a container that inherits a pod-level limit.
func TestPod_WithSizes_Inherited(t *testing.T) {
	p := manifesttest.DecodeOne(t, `
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  resources: {limits: {cpu: 1, memory: 64Mi}}
  containers:
  - {name: main, image: "web:1", resources: {limits: {cpu: 1}, requests: {cpu: 100m}}}
`, decode.Options{NodeName: "n"})
	const size = "cpu=100m/1 memory=/ inherited-memory=64Mi"
	if got := p.ContainerHashes["main"].Resources; got != size {
		t.Fatalf("size: got %q, want %q", got, size)
	}
	const smaller, unknown = "cpu=100m/1 memory=/ inherited-memory=32Mi", "cpu=100m/1 memory=/"
	for _, same := range []string{size, unknown} {
		if p.WithSizes(map[string]string{"main": same}) != p {
			t.Errorf("with the size %q: got a changed pod, want the same pod", same)
		}
	}
	q := p.WithSizes(map[string]string{"main": smaller})
	if got := q.ContainerHashes["main"].Resources; got != smaller {
		t.Errorf("size after WithSizes: got %q, want %q", got, smaller)
	}
	if got, before := q.Object.Spec.Resources.Limits.Memory().String(), p.Object.Spec.Resources.Limits.Memory().String(); got != "32Mi" || before != "64Mi" {
		t.Errorf("pod-level memory limit after WithSizes: got %s in the copy and %s in the original pod, want 32Mi and 64Mi", got, before)
	}
	for before, want := range map[string][]v1.ResourceName{smaller: {"memory"}, unknown: {}, size: {}} {
		if got := manifest.ResizedResources(before, size); !slices.Equal(got, want) {
			t.Errorf("resized resources from %q: got %v, want %v", before, got, want)
		}
	}
}

// TestParseSize checks the requests and limits in sizes, and that other text is ignored.
func TestParseSize(t *testing.T) {
	r := manifest.ParseSize("cpu=100m/1 memory=32Mi/ gpu=x/1")
	if got := manifest.FormatSize(r); got != "cpu=100m/1 memory=32Mi/" || len(r.Requests) != 2 {
		t.Errorf("got size %s and requests %v, want only cpu and memory", got, r.Requests)
	}
	gpu := resource.MustParse("3")
	before := v1.ResourceRequirements{Requests: v1.ResourceList{"cpu": gpu, "example.com/gpu": gpu}, Limits: v1.ResourceList{"memory": gpu}}
	r = manifest.WithSize(before, "cpu=/1 memory=32Mi/")
	if got := manifest.FormatSize(r); got != "cpu=/1 memory=32Mi/" || r.Requests["example.com/gpu"] != gpu {
		t.Errorf("WithSize: got size %s and requests %v, want size \"cpu=/1 memory=32Mi/\" and the unchanged example.com/gpu", got, r.Requests)
	}
	if got := manifest.FormatSize(before); got != "cpu=3/ memory=/3" {
		t.Errorf("WithSize changed its argument: got %s", got)
	}
	for _, text := range []string{"", "/", "cpu=-1/", "cpu", "memory=x/x"} {
		if r := manifest.ParseSize(text); len(r.Requests)+len(r.Limits) > 0 {
			t.Errorf("requests in %q: got %v, want none", text, r.Requests)
		}
	}
}
