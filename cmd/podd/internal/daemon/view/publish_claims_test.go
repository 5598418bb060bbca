package view

import (
	"testing"

	"podd/manifest"
	"podd/manifest/decode"
	"podd/manifest/merge"
	"podd/reconcile"
	"podd/server"
)

// TestPublish_Claims checks the views of the claims in a set. A source must remain in UnreadSources
// until a set contains all of its files.
func TestPublish_Claims(t *testing.T) {
	text := "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 2Gi}}}\n"
	f := decode.File([]byte(text), decode.Options{Source: "/a", Path: "/a/x.yaml", NodeName: "n"})
	b := merge.Files("/a", manifest.KindFile, f)
	v := NewPublisher(Options{Base: server.View{Sources: []string{"/a"}}})
	for _, complete := range []bool{false, true} {
		if unread := v.Latest.View().UnreadSources; len(unread) != 1 {
			t.Errorf("before a complete set: got unread sources %v, want one", unread)
		}
		b.IsComplete = complete
		v.Publish(reconcile.Change{Set: merge.Batches([]manifest.Batch{b}), SetChanged: true})
	}
	if unread := v.Latest.View().UnreadSources; len(unread) > 0 {
		t.Errorf("after a complete set: got unread sources %v, want none", unread)
	}
	got := v.Latest.View().Claims
	if len(got) != 1 || got[0].Claim.String() != "default/data" || got[0].Requested != "2Gi" || got[0].Path != "/a/x.yaml" || got[0].Line != 1 {
		t.Errorf("got claims %+v, want default/data with 2Gi at line 1 of /a/x.yaml", got)
	}
}
