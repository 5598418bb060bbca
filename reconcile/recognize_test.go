package reconcile

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/decode"
	"podd/reconcile/state"
	"podd/runtime"
)

// TestRecordedUID checks the UID with which the sandboxes and journals record a pod of a file; "" if
// they record none.
func TestRecordedUID(t *testing.T) {
	p := &manifest.Pod{UID: "made", Hash: "v1:h", Origin: manifest.Origin{Kind: manifest.KindFile}}
	ours := func(uid types.UID, hash string, live bool) runtime.Incarnation {
		return runtime.Incarnation{Sandbox: runtime.Sandbox{ID: "s-" + string(uid), UID: uid, Ready: live, Annotations: map[string]string{runtime.AnnotationPodHash: hash}}}
	}
	kubelets := func(uid types.UID, source string, live bool) runtime.Incarnation {
		return runtime.Incarnation{Sandbox: runtime.Sandbox{
			ID: "f-" + string(uid), UID: uid, Ready: live, Foreign: true,
			Annotations: map[string]string{manifest.AnnotationConfigSource: source, manifest.AnnotationConfigHash: string(uid)},
		}}
	}
	podds := kubelets("k", "file", true)
	podds.Labels = map[string]string{runtime.LabelInstance: "other"}
	for name, c := range map[string]struct {
		seen  []runtime.Incarnation
		past  []state.Record
		adopt bool
		want  types.UID
	}{
		"no sandbox and no journal":                     {nil, nil, true, ""},
		"sandbox of a kubelet":                          {[]runtime.Incarnation{kubelets("k", "file", true)}, nil, true, "k"},
		"sandbox of a kubelet, without adopt":           {[]runtime.Incarnation{kubelets("k", "file", true)}, nil, false, ""},
		"stopped sandbox of a kubelet":                  {[]runtime.Incarnation{kubelets("k", "file", false)}, nil, true, ""},
		"sandbox of a kubelet for a pod of a cluster":   {[]runtime.Incarnation{kubelets("k", "api", true)}, nil, true, ""},
		"sandbox of another podd":                       {[]runtime.Incarnation{podds}, nil, true, ""},
		"sandbox that was taken over":                   {[]runtime.Incarnation{ours("k", "v1:h", true)}, nil, false, "k"},
		"sandbox of another version":                    {[]runtime.Incarnation{ours("k", "v1:other", true)}, nil, false, ""},
		"sandboxes of podd and of a kubelet":            {[]runtime.Incarnation{kubelets("k", "file", true), ours("made", "v1:h", true)}, nil, true, "made"},
		"stopped sandbox of podd, sandbox of a kubelet": {[]runtime.Incarnation{ours("made", "v1:h", false), kubelets("k", "file", true)}, nil, true, "k"},
		"journal":                      {nil, []state.Record{{UID: "x", Hash: "v1:other"}, {UID: "k", Hash: "v1:h"}}, false, "k"},
		"containers without a sandbox": {[]runtime.Incarnation{{Sandbox: runtime.Sandbox{UID: "k"}}}, nil, true, ""},
	} {
		if got := recordedUID(p, c.past, &runtime.Pod{Incarnations: c.seen}, c.adopt); got != c.want {
			t.Errorf("%s: got UID %q, want %q", name, got, c.want)
		}
	}
	if got := recordedUID(p, nil, nil, true); got != "" {
		t.Errorf("UID of a pod that was not observed: got %q, want none", got)
	}
}

// TestRecognize_Started checks that a pod that runs with its own UID keeps that UID, even if it has no
// sandbox for a moment and a journal contains another UID.
func TestRecognize_Started(t *testing.T) {
	f := decode.File([]byte("apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: main, image: i}]}"), decode.Options{Kind: manifest.KindFile})
	p := f.Pods[0]
	set := &manifest.Set{Pods: map[types.NamespacedName]*manifest.Pod{p.Key: p}}
	r := &Router{allWorkersReported: true}
	before := r.recognize(set, nil)
	r.pastRecords = map[types.NamespacedName][]state.Record{p.Key: {{UID: "k", Hash: p.Hash}}}
	if got := r.recognize(set, before).Set.Pods[p.Key]; got != p {
		t.Errorf("pod that runs with its own UID: got UID %s, want %s", got.UID, p.UID)
	}
	// For a source that is read for the first time, the UID in the journal is used.
	if got := r.recognize(set, nil).Set.Pods[p.Key]; got.UID != "k" {
		t.Errorf("pod whose journal has another UID: got UID %s, want k of the journal", got.UID)
	}
}
