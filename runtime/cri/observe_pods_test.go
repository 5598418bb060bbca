package cri

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"
	"pgregory.net/rapid"

	"podd/runtime"
)

func listed(id, name string, attempt uint32, ours bool) *api.PodSandbox {
	labels := map[string]string{runtime.LabelPodName: name, runtime.LabelPodNamespace: "default"}
	if ours {
		labels[runtime.LabelInstance] = "ours"
	}
	return &api.PodSandbox{
		Id: id, Metadata: &api.PodSandboxMetadata{Name: name, Namespace: "default", Uid: "u", Attempt: attempt},
		CreatedAt: int64(attempt) + 1, Labels: labels,
	}
}

func listedIn(id, sandbox, pod string, labels map[string]string) *api.Container {
	all := map[string]string{runtime.LabelPodName: pod, runtime.LabelPodNamespace: "default", runtime.LabelPodUID: "u"}
	for k, v := range labels {
		all[k] = v
	}
	return &api.Container{
		Id: id, PodSandboxId: sandbox, Metadata: &api.ContainerMetadata{Name: id},
		State: api.ContainerState_CONTAINER_CREATED, CreatedAt: 7, Labels: all,
	}
}

// decodedListing returns a listing as the client decodes it from a runtime.
func decodedListing(t *testing.T, sandboxes []*api.PodSandbox, containers []*api.Container) listing {
	t.Helper()
	var l listing
	for _, s := range sandboxes {
		i := wireItem{raw: encoded(t, s)}
		if err := i.readSandbox(); err != nil {
			t.Fatal(err)
		}
		l.sandboxes = append(l.sandboxes, i)
	}
	for _, c := range containers {
		i := wireItem{raw: encoded(t, c)}
		if err := i.readContainer(); err != nil {
			t.Fatal(err)
		}
		l.containers = append(l.containers, i)
	}
	return l
}

func encoded(t *testing.T, m proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// addListing adds sandboxes and containers to a draft.
func (d *draft) addListing(t *testing.T, sandboxes []*api.PodSandbox, containers []*api.Container) {
	t.Helper()
	if err := d.add(decodedListing(t, sandboxes, containers)); err != nil {
		t.Fatal(err)
	}
}

var web = types.NamespacedName{Namespace: "default", Name: "web"}

// TestDraft_Orphans checks that containers of this podd without a sandbox are in an incarnation
// without an ID, and that this incarnation is the last one.
func TestDraft_Orphans(t *testing.T) {
	d := newDraft(&ObserverOptions{Instance: "ours"}, nil, nil, time.Time{})
	d.addListing(t, []*api.PodSandbox{listed("s2", "web", 2, true), listed("x", "web", 9, false)}, []*api.Container{
		listedIn("labelled", "s1", "web", map[string]string{runtime.LabelInstance: "ours"}),
		listedIn("not-known", "s1", "web", nil),
		listedIn("home", "s2", "web", nil),
		listedIn("theirs", "x", "web", nil),
	})
	pods := d.buildPods()
	all := pods[web].Incarnations
	if len(all) != 3 || all[0].ID != "x" || !all[0].Foreign || len(all[0].Containers) != 0 ||
		all[1].ID != "s2" || len(all[1].Containers) != 1 || all[1].Containers[0].ID != "home" ||
		all[2].ID != "" || all[2].UID != "u" || len(all[2].Containers) != 1 || all[2].Containers[0].ID != "labelled" {
		t.Fatalf("got incarnations %+v, want the sandboxes x and s2, and then one without an ID that contains container labelled", all)
	}
	// The runtime no longer lists the sandboxes. The container home is still observed, because it was
	// observed in a sandbox of this podd before.
	d = newDraft(&ObserverOptions{Instance: "ours"}, pods, nil, time.Time{})
	d.addListing(t, nil, []*api.Container{listedIn("home", "s2", "web", nil)})
	all = d.buildPods()[web].Incarnations
	if len(all) != 1 || all[0].ID != "" || len(all[0].Containers) != 1 || all[0].Containers[0].ID != "home" {
		t.Errorf("without sandboxes: got incarnations %+v, want one without an ID that contains container home", all)
	}
}

// TestDraft_Unlabelled checks a sandbox without the label of a podd. If IncludeUnlabelled is set,
// the sandbox is observed with its containers, but stays foreign. If the sandbox is no longer
// listed, its containers are dropped.
func TestDraft_Unlabelled(t *testing.T) {
	bare, others := listed("bare", "web", 1, true), listed("others", "web", 0, true)
	bare.Labels, others.Labels = nil, map[string]string{runtime.LabelInstance: "another"}
	containers := []*api.Container{listedIn("seen", "bare", "web", nil), listedIn("theirs", "others", "web", nil)}
	d := newDraft(&ObserverOptions{Instance: "ours", IncludeUnlabelled: true}, nil, nil, time.Time{})
	d.addListing(t, []*api.PodSandbox{bare, others}, containers)
	pods := d.buildPods()
	all := pods[web].Incarnations
	if len(all) != 2 || !all[0].Foreign || len(all[0].Containers) != 1 || !all[1].Foreign || len(all[1].Containers) != 0 {
		t.Fatalf("got incarnations %+v, want two foreign sandboxes, of which only the first has a container", all)
	}
	d = newDraft(&ObserverOptions{Instance: "ours", IncludeUnlabelled: true}, pods, nil, time.Time{})
	d.addListing(t, nil, containers)
	if got := d.buildPods()[web]; got != nil {
		t.Errorf("without sandboxes: got pod %+v, want none", got)
	}
}

// TestDraft_Adopted checks that objects with the label of an adopted instance are not foreign,
// including a container without a sandbox.
func TestDraft_Adopted(t *testing.T) {
	theirs := map[string]string{runtime.LabelInstance: "lost"}
	sandbox := listed("s1", "web", 0, true)
	sandbox.Labels = theirs
	d := newDraft(&ObserverOptions{Instance: "ours", AdoptedInstances: []string{"lost"}}, nil, nil, time.Time{})
	d.addListing(t, []*api.PodSandbox{sandbox}, []*api.Container{listedIn("c1", "s1", "web", nil), listedIn("c2", "gone", "web", theirs)})
	all := d.buildPods()[web].Incarnations
	if len(all) != 2 || all[0].Foreign || len(all[0].Containers) != 1 || all[1].Foreign || len(all[1].Containers) != 1 {
		t.Errorf("got incarnations %+v, want two that are not foreign, with one container each", all)
	}
}

func TestDraft_ContainerOrder(t *testing.T) {
	d := newDraft(&ObserverOptions{Instance: "ours"}, nil, nil, time.Time{})
	late, early := listedIn("a", "s", "web", nil), listedIn("b", "s", "web", nil)
	late.CreatedAt, early.CreatedAt = 9, 3
	d.addListing(t, []*api.PodSandbox{listed("s", "web", 0, true)}, []*api.Container{late, early})
	got := d.buildPods()[web].Incarnations[0].Containers
	if len(got) != 2 || got[0].ID != "b" || got[1].ID != "a" {
		t.Errorf("got containers %+v, want b before a, because b was created first", got)
	}
}

// TestDraft_StatusNotFound checks that a container is omitted if its status is not found.
func TestDraft_StatusNotFound(t *testing.T) {
	d := newDraft(&ObserverOptions{Instance: "ours"}, nil, nil, time.Time{})
	running := listedIn("c", "s", "web", nil)
	running.State = api.ContainerState_CONTAINER_RUNNING
	d.addListing(t, []*api.PodSandbox{listed("s", "web", 0, true)}, []*api.Container{running})
	d.containersToQuery[0].result = queryNotFound
	if got := d.buildPods()[web].Incarnations[0].Containers; len(got) != 0 {
		t.Errorf("got containers %+v, want none", got)
	}
}

func TestNewestFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) runtime.Incarnation {
			return runtime.Incarnation{Sandbox: runtime.Sandbox{
				ID:        rapid.SampledFrom([]string{"", "a", "b", "c", "d"}).Draw(t, "id"),
				UID:       types.UID(rapid.SampledFrom([]string{"u", "v"}).Draw(t, "uid")),
				Attempt:   rapid.Uint32Range(0, 5).Draw(t, "attempt"),
				CreatedAt: time.Unix(rapid.Int64Range(0, 5).Draw(t, "created"), 0),
			}}
		}), 0, 8).Draw(t, "incarnations")
		shuffled := slices.Clone(all)
		slices.Reverse(shuffled)
		sortNewestFirst(all)
		sortNewestFirst(shuffled)
		for i := range all {
			if all[i].ID != shuffled[i].ID || all[i].UID != shuffled[i].UID || all[i].Attempt != shuffled[i].Attempt {
				t.Fatalf("sorting the same incarnations in another order: got %v and %v; want the same result", all, shuffled)
			}
			for j := range all[:i] {
				a, b := all[j], all[i]
				if a.ID == "" && b.ID != "" {
					t.Fatalf("got an incarnation without an ID before a sandbox, want it last: %v", all)
				}
				if a.ID != "" && b.ID != "" && a.UID == b.UID && a.Attempt < b.Attempt {
					t.Fatalf("got attempt %d before attempt %d of the same UID; want the newest first: %v", a.Attempt, b.Attempt, all)
				}
			}
		}
	})
}
