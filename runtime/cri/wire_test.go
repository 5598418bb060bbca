package cri

import (
	"testing"
	"time"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"
	"pgregory.net/rapid"

	"podd/runtime"
)

// TestWireNumbers checks that the field numbers in wire.go are those of cri-api.
func TestWireNumbers(t *testing.T) {
	for _, test := range []struct {
		message proto.Message
		field   protoreflect.Name
		want    protowire.Number
	}{
		{&api.ListPodSandboxResponse{}, "items", listItemsField},
		{&api.ListContainersResponse{}, "containers", listItemsField},
		{&api.PodSandbox{}, "id", itemIDField},
		{&api.PodSandbox{}, "state", sandboxStateField},
		{&api.Container{}, "id", itemIDField},
		{&api.Container{}, "pod_sandbox_id", containerSandboxField},
		{&api.Container{}, "state", containerStateField},
		{&api.ContainerEventResponse{}, "container_event_type", eventKindField},
		{&api.ContainerEventResponse{}, "pod_sandbox_status", eventSandboxField},
		{&api.PodSandboxStatus{}, "metadata", statusMetadataField},
		{&api.PodSandboxStatus{}, "labels", statusLabelsField},
		{&api.PodSandboxMetadata{}, "name", metadataNameField},
		{&api.PodSandboxMetadata{}, "namespace", metadataNamespaceField},
	} {
		m := test.message.ProtoReflect().Descriptor()
		if got := m.Fields().ByName(test.field).Number(); got != test.want {
			t.Errorf("field number of %s.%s: got %d, want %d", m.Name(), test.field, got, test.want)
		}
	}
}

func drawLabels(t *rapid.T) map[string]string {
	return rapid.MapOf(rapid.SampledFrom([]string{runtime.LabelInstance, "app", ""}), rapid.String()).Draw(t, "labels")
}

// TestWire_SameAsProtobuf checks that the codec decodes the same field values as protobuf.
func TestWire_SameAsProtobuf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := &api.ListContainersResponse{}
		for range rapid.IntRange(0, 5).Draw(t, "containers") {
			list.Containers = append(list.Containers, &api.Container{
				Id: rapid.String().Draw(t, "id"), PodSandboxId: rapid.String().Draw(t, "sandbox"), Labels: drawLabels(t),
				State: api.ContainerState(rapid.IntRange(0, 3).Draw(t, "state")), CreatedAt: rapid.Int64().Draw(t, "created"),
			})
		}
		var l wireList
		decode(t, list, &l)
		if len(l.items) != len(list.Containers) {
			t.Fatalf("got %d items, want %d", len(l.items), len(list.Containers))
		}
		for i, want := range list.Containers {
			if err := l.items[i].readContainer(); err != nil {
				t.Fatal(err)
			}
			if got := l.items[i]; string(got.id) != want.Id || string(got.sandbox) != want.PodSandboxId || got.state != uint64(want.State) {
				t.Errorf("got %+v, want %+v", got, want)
			}
		}
		event := &api.ContainerEventResponse{
			ContainerEventType: api.ContainerEventType(rapid.IntRange(0, 3).Draw(t, "kind")),
			ContainersStatuses: []*api.ContainerStatus{{Id: "x"}},
		}
		if rapid.Bool().Draw(t, "with a sandbox") {
			event.PodSandboxStatus = &api.PodSandboxStatus{
				Metadata: &api.PodSandboxMetadata{Name: rapid.String().Draw(t, "name"), Namespace: rapid.String().Draw(t, "namespace"), Uid: "u"},
				Labels:   drawLabels(t),
			}
		}
		var e wireEvent
		decode(t, event, &e)
		s := event.GetPodSandboxStatus()
		if e.kind != uint64(event.ContainerEventType) || e.name != s.GetMetadata().GetName() ||
			e.namespace != s.GetMetadata().GetNamespace() || e.instance != s.GetLabels()[runtime.LabelInstance] {
			t.Errorf("got %+v, want %v", e, event)
		}
	})
}

// decode encodes a message and decodes it with the codec.
func decode(t *rapid.T, from proto.Message, to any) {
	b, err := codec{}.Marshal(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := (codec{}).Unmarshal(b, to); err != nil {
		t.Fatal(err)
	}
}

// FuzzWire checks that no bytes from a runtime cause a panic.
func FuzzWire(f *testing.F) {
	b, err := proto.Marshal(&api.ListContainersResponse{Containers: []*api.Container{{Id: "a", State: 2}, {PodSandboxId: "b"}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		var e wireEvent
		_ = codec{}.Unmarshal(mem.BufferSlice{mem.SliceBuffer(b)}, &e)
		var l wireList
		if err := (codec{}).Unmarshal(mem.BufferSlice{mem.SliceBuffer(b)}, &l); err != nil {
			return
		}
		for i := range l.items {
			if l.items[i].readContainer() != nil || l.items[i].readSandbox() != nil {
				return
			}
		}
		_ = newDraft(&ObserverOptions{Instance: "ours"}, nil, nil, time.Time{}).add(listing{sandboxes: l.items, containers: l.items})
	})
}
