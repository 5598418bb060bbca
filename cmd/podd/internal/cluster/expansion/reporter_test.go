package expansion

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/clustertest"
	"podd/cmd/podd/internal/cluster/watchable"
	"podd/manifest"
	"podd/reconcile/volume/csi"
)

// newClaim returns the claim default/NAME with resource version 7 and a capacity of 1Gi. It requests 2Gi and
// is bound to newVolume(name).
func newClaim(name string) *v1.PersistentVolumeClaim {
	c := &v1.PersistentVolumeClaim{ObjectMeta: clustertest.Meta(name)}
	c.UID, c.ResourceVersion, c.Spec.VolumeName, c.Status.Phase = types.UID("uid-"+name), "7", "pv-"+name, v1.ClaimBound
	c.Spec.Resources.Requests = v1.ResourceList{v1.ResourceStorage: resource.MustParse("2Gi")}
	c.Status.Capacity = v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}
	return c
}

// newVolume returns the volume of newClaim(name), with a capacity of 2Gi.
func newVolume(name string) *v1.PersistentVolume {
	pv := &v1.PersistentVolume{}
	pv.Name, pv.Spec.ClaimRef = "pv-"+name, &v1.ObjectReference{Namespace: "default", Name: name, UID: types.UID("uid-" + name)}
	pv.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: "disk.example", VolumeHandle: "h-" + name}
	pv.Spec.Capacity = v1.ResourceList{v1.ResourceStorage: resource.MustParse("2Gi")}
	return pv
}

// newExpansion returns the successful expansion of newVolume(name) to 2Gi.
func newExpansion(name string) csi.Expansion {
	return csi.Expansion{VolumeID: csi.VolumeID{Driver: "disk.example", Handle: "h-" + name}, Volume: "pv-" + name, Capacity: 2 << 30}
}

// newObjects returns the claims and volumes with these names.
func newObjects(names ...string) manifest.Objects {
	o := manifest.Objects{Claims: map[types.NamespacedName]*v1.PersistentVolumeClaim{}, Volumes: map[types.NamespacedName]*v1.PersistentVolume{}}
	for _, name := range names {
		o.Claims[types.NamespacedName{Namespace: "default", Name: name}] = newClaim(name)
		o.Volumes[types.NamespacedName{Name: "pv-" + name}] = newVolume(name)
	}
	return o
}

// allocate makes the resize controller wait for an expansion to a size on the node.
func allocate(c *v1.PersistentVolumeClaim, size string, status v1.ClaimResourceStatus) {
	c.Status.AllocatedResources = v1.ResourceList{v1.ResourceStorage: resource.MustParse(size)}
	c.Status.AllocatedResourceStatuses = map[v1.ResourceName]v1.ClaimResourceStatus{v1.ResourceStorage: status}
}

// TestClaimExpansionPatch checks the patches of claims. "" means that the claim needs no patch. The
// conditions and the resource statuses are those that the kubelet writes.
func TestClaimExpansionPatch(t *testing.T) {
	const pending, inProgress = v1.PersistentVolumeClaimNodeResizePending, v1.PersistentVolumeClaimNodeResizeInProgress
	fail := func(f csi.ExpansionFailure) func(*v1.PersistentVolumeClaim, *v1.PersistentVolume, *csi.Expansion) {
		return func(c *v1.PersistentVolumeClaim, _ *v1.PersistentVolume, e *csi.Expansion) {
			allocate(c, "2Gi", inProgress)
			f.Message, e.Failure = "busy", &f
		}
	}
	const condition = `"conditions":[{"type":"NodeResizeError","status":"True","lastProbeTime":null,"lastTransitionTime":"2030-01-02T12:00:00Z","message":"busy"}]`
	for name, test := range map[string]struct {
		change func(*v1.PersistentVolumeClaim, *v1.PersistentVolume, *csi.Expansion)
		want   string // the field status of the patch, or ""
	}{
		"expanded": {func(*v1.PersistentVolumeClaim, *v1.PersistentVolume, *csi.Expansion) {}, `{"capacity":{"storage":"2Gi"}}`},
		"expanded, resize controller with recovery": {func(c *v1.PersistentVolumeClaim, _ *v1.PersistentVolume, _ *csi.Expansion) {
			allocate(c, "2Gi", pending)
		}, `{"allocatedResourceStatuses":{"storage":null},"capacity":{"storage":"2Gi"}}`},
		"expanded, with conditions": {func(c *v1.PersistentVolumeClaim, _ *v1.PersistentVolume, _ *csi.Expansion) {
			for _, kind := range []v1.PersistentVolumeClaimConditionType{"Resizing", "Other", "FileSystemResizePending", "ControllerResizeError", "NodeResizeError"} {
				c.Status.Conditions = append(c.Status.Conditions, v1.PersistentVolumeClaimCondition{Type: kind})
			}
		}, `{"capacity":{"storage":"2Gi"},"conditions":[{"$patch":"delete","type":"Resizing"},{"$patch":"delete","type":"FileSystemResizePending"},{"$patch":"delete","type":"ControllerResizeError"},{"$patch":"delete","type":"NodeResizeError"}]}`},
		"expanded to more than the claim requests": {func(_ *v1.PersistentVolumeClaim, _ *v1.PersistentVolume, e *csi.Expansion) { e.Capacity = 3 << 30 }, `{"capacity":{"storage":"2Gi"}}`},
		"expanded to less than the claim requests": {func(_ *v1.PersistentVolumeClaim, _ *v1.PersistentVolume, e *csi.Expansion) { e.Capacity = 3 << 29 }, ""},
		"status up to date": {func(c *v1.PersistentVolumeClaim, _ *v1.PersistentVolume, _ *csi.Expansion) {
			c.Status.Capacity[v1.ResourceStorage] = resource.MustParse("2Gi")
		}, ""},
		"infeasible before": {func(c *v1.PersistentVolumeClaim, _ *v1.PersistentVolume, _ *csi.Expansion) {
			allocate(c, "2Gi", v1.PersistentVolumeClaimNodeResizeInfeasible)
		}, ""},
		"unknown volume":             {func(_ *v1.PersistentVolumeClaim, _ *v1.PersistentVolume, e *csi.Expansion) { e.Volume = "pv-other" }, ""},
		"volume with another handle": {func(_ *v1.PersistentVolumeClaim, _ *v1.PersistentVolume, e *csi.Expansion) { e.Handle = "other" }, ""},
		"volume with another driver": {func(_ *v1.PersistentVolumeClaim, _ *v1.PersistentVolume, e *csi.Expansion) { e.Driver = "other" }, ""},
		"volume without CSI":         {func(_ *v1.PersistentVolumeClaim, pv *v1.PersistentVolume, _ *csi.Expansion) { pv.Spec.CSI = nil }, ""},
		"volume without a claim":     {func(_ *v1.PersistentVolumeClaim, pv *v1.PersistentVolume, _ *csi.Expansion) { pv.Spec.ClaimRef = nil }, ""},
		"unknown claim": {func(_ *v1.PersistentVolumeClaim, pv *v1.PersistentVolume, _ *csi.Expansion) {
			pv.Spec.ClaimRef.Name = "other"
		}, ""},
		"claim created again": {func(c *v1.PersistentVolumeClaim, _ *v1.PersistentVolume, _ *csi.Expansion) { c.UID = "other" }, ""},

		"first failure": {fail(csi.ExpansionFailure{}), `{` + condition + `}`},
		"first failure, resize controller without recovery": {func(_ *v1.PersistentVolumeClaim, _ *v1.PersistentVolume, e *csi.Expansion) {
			e.Failure = &csi.ExpansionFailure{Message: "busy", IsInfeasible: true, IsRepeated: true}
		}, ""},
		"repeated failure": {func(c *v1.PersistentVolumeClaim, pv *v1.PersistentVolume, e *csi.Expansion) {
			fail(csi.ExpansionFailure{IsRepeated: true})(c, pv, e)
			c.Status.Conditions = []v1.PersistentVolumeClaimCondition{{Type: v1.PersistentVolumeClaimNodeResizeError, Status: v1.ConditionTrue, Message: "earlier"}}
		}, ""},
		"failure after a solved one": {func(c *v1.PersistentVolumeClaim, pv *v1.PersistentVolume, e *csi.Expansion) {
			fail(csi.ExpansionFailure{IsRepeated: true})(c, pv, e)
			c.Status.Conditions = []v1.PersistentVolumeClaimCondition{{Type: v1.PersistentVolumeClaimNodeResizeError, Status: v1.ConditionFalse}}
		}, `{` + condition + `}`},
		"infeasible": {fail(csi.ExpansionFailure{IsInfeasible: true}), `{"allocatedResourceStatuses":{"storage":"NodeResizeInfeasible"},` + condition + `}`},
		"infeasible after a reported failure": {func(c *v1.PersistentVolumeClaim, pv *v1.PersistentVolume, e *csi.Expansion) {
			fail(csi.ExpansionFailure{IsRepeated: true, IsInfeasible: true})(c, pv, e)
			c.Status.Conditions = []v1.PersistentVolumeClaimCondition{{Type: v1.PersistentVolumeClaimNodeResizeError, Status: v1.ConditionTrue, Message: "earlier"}}
		}, `{"allocatedResourceStatuses":{"storage":"NodeResizeInfeasible"}}`},
		"first failure, claim requests another size": {func(c *v1.PersistentVolumeClaim, pv *v1.PersistentVolume, e *csi.Expansion) {
			fail(csi.ExpansionFailure{})(c, pv, e)
			c.Spec.Resources.Requests[v1.ResourceStorage] = resource.MustParse("1Gi")
		}, `{` + condition + `}`},
		"repeated failure, claim requests another size": {func(c *v1.PersistentVolumeClaim, pv *v1.PersistentVolume, e *csi.Expansion) {
			fail(csi.ExpansionFailure{IsRepeated: true})(c, pv, e)
			c.Spec.Resources.Requests[v1.ResourceStorage] = resource.MustParse("1Gi")
		}, `{"allocatedResourceStatuses":{"storage":"NodeResizeInfeasible"},` + condition + `}`},
		"failure of an earlier size": {func(c *v1.PersistentVolumeClaim, pv *v1.PersistentVolume, e *csi.Expansion) {
			fail(csi.ExpansionFailure{})(c, pv, e)
			e.Capacity = 3 << 29
		}, ""},
		"failure of a larger size": {func(c *v1.PersistentVolumeClaim, pv *v1.PersistentVolume, e *csi.Expansion) {
			fail(csi.ExpansionFailure{})(c, pv, e)
			e.Capacity = 3 << 30
		}, ""},
	} {
		o, e := newObjects("a"), newExpansion("a")
		test.change(o.Claims[types.NamespacedName{Namespace: "default", Name: "a"}], o.Volumes[types.NamespacedName{Name: "pv-a"}], &e)
		claim, patch := claimExpansionPatch(&o, &e, clustertest.Noon)
		want := ""
		if test.want != "" {
			want = `{"metadata":{"resourceVersion":"7"},"status":` + test.want + `}`
		}
		if string(patch) != want || patch != nil && claim.Name != "a" {
			t.Errorf("%s: got patch\n%s\nof claim %v, want patch\n%s", name, patch, claim, want)
		}
	}
}

// expansions implements Volumes.
type expansions struct {
	watchable.Value[[]csi.Expansion]
}

func (e *expansions) Expansions() ([]csi.Expansion, <-chan struct{}) { return e.Get() }

// A patchServer is an API server that accepts patches of claims. It implements http.RoundTripper.
type patchServer struct {
	mu       sync.Mutex
	fails    map[string]error // errors by the name of the claim; an *apierrors.StatusError is an error response
	requests map[string]int   // number of patches by the name of the claim
}

func (s *patchServer) RoundTrip(q *http.Request) (*http.Response, error) {
	name, isStatus := strings.CutSuffix(strings.TrimPrefix(q.URL.Path, "/api/v1/namespaces/default/persistentvolumeclaims/"), "/status")
	body, err := io.ReadAll(q.Body)
	if err != nil || q.Method != http.MethodPatch || !isStatus || !strings.Contains(string(body), `"resourceVersion":"7"`) {
		return clustertest.ErrorResponse(apierrors.NewBadRequest("want a patch of the status of a claim with its resource version")), nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests[name]++
	if status, ok := errors.AsType[*apierrors.StatusError](s.fails[name]); ok {
		return clustertest.ErrorResponse(status), nil
	}
	if s.fails[name] != nil {
		return nil, s.fails[name]
	}
	c := newClaim(name)
	c.Kind, c.APIVersion = "PersistentVolumeClaim", "v1"
	return clustertest.Response(200, c), nil
}

// take returns the number of patches of a claim since the last call.
func (s *patchServer) take(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.requests[name]
	s.requests[name] = 0
	return n
}

// setError sets the error for patches of a claim; nil means that they succeed.
func (s *patchServer) setError(name string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails[name] = err
}

// TestReporter checks that a failed patch of one claim is repeated and does not affect the patch of another
// claim. ClaimUpdates must count successes and conflicts, because a reader of the claim must then read it
// again.
func TestReporter(t *testing.T) {
	conflict := apierrors.NewConflict(v1.Resource("persistentvolumeclaims"), "a", errors.New("changed"))
	for name, test := range map[string]struct {
		err         error
		wantUpdates bool // ClaimUpdates counts the attempt
	}{
		"success":      {nil, true},
		"conflict":     {conflict, true},
		"server error": {apierrors.NewInternalError(errors.New("broken")), false},
		"unreachable":  {errors.New("unreachable"), false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := &patchServer{fails: map[string]error{"a": test.err}, requests: map[string]int{}}
				var volumes expansions
				var objects watchable.Value[manifest.Objects]
				var updates watchable.Value[map[types.NamespacedName]int]
				objects.Set(newObjects("a", "b"))
				r := &Reporter{Client: clustertest.NewClient(t, api, apiserver.Options{QPS: 5000, Burst: 5000}), Volumes: &volumes, Objects: objects.Get, ClaimUpdates: &updates}
				ctx, cancel := context.WithCancel(t.Context())
				var part sync.WaitGroup
				part.Go(func() { r.Run(ctx) })
				defer part.Wait()
				defer cancel()
				clustertest.Advance(time.Hour)
				if a, b := api.take("a"), api.take("b"); a+b > 0 {
					t.Errorf("without expansions: got %d and %d patches, want none", a, b)
				}
				volumes.Set([]csi.Expansion{newExpansion("a"), newExpansion("b")})
				synctest.Wait()
				counts, _ := updates.Get()
				key := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "default", Name: name} }
				if got := counts[key("a")] > 0; got != test.wantUpdates || counts[key("b")] != 1 {
					t.Errorf("after the expansions: got updates %v, want one of b, and of a %t", counts, test.wantUpdates)
				}
				if a, b := api.take("a"), api.take("b"); a != 1 || b != 1 {
					t.Errorf("after the expansions: got %d and %d patches, want one of each claim", a, b)
				}
				clustertest.Advance(10 * time.Minute)
				// The Objects still contain the old claims. Only a failure causes further patches.
				wantRetries := !test.wantUpdates
				if a := api.take("a"); a > 0 != wantRetries || a > 60 {
					t.Errorf("in ten minutes: got %d further patches of a, want at most 60, and some %t", a, wantRetries)
				}
				api.setError("a", nil)
				api.take("a")
				api.take("b")
				done := newObjects("a", "b")
				done.Claims[key("b")].Status.Capacity[v1.ResourceStorage] = resource.MustParse("2Gi")
				objects.Set(done)
				clustertest.Advance(apiserver.MaxCachedWait)
				if a, b := api.take("a"), api.take("b"); a != 1 || b != 0 {
					t.Errorf("after the claim b shows the new size: got %d patches of a, %d of b; want one of a", a, b)
				}
			})
		})
	}
}
