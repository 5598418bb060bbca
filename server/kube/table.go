package kube

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"podd/server"
	"podd/server/kube/table"
)

// tableOf is what is printed of objects of one kind at a time: it tells ages, so
// it is made for each who asks.
func tableOf(entries []*entry, now time.Time, version string, include metav1.IncludeObjectPolicy) *metav1.Table {
	all := make([]server.Object, 0, len(entries))
	for _, e := range entries {
		all = append(all, e.object)
	}
	t := table.Of(all, now)
	t.TypeMeta = metav1.TypeMeta{Kind: "Table", APIVersion: metav1.SchemeGroupVersion.String()}
	t.ResourceVersion = version
	if t.Rows == nil {
		t.Rows = []metav1.TableRow{}
	}
	for n, e := range entries {
		switch include {
		case metav1.IncludeObject:
			t.Rows[n].Object = runtime.RawExtension{Raw: e.encoded()}
		case metav1.IncludeMetadata:
			t.Rows[n].Object = runtime.RawExtension{Raw: encode(metadata(e.object))}
		}
	}
	return t
}
