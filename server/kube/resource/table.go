package resource

import (
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"podd/server"
	"podd/server/kube/table"
)

// newTable returns a table of objects, which must have the same kind. A table is built for each
// request, because it contains ages.
func newTable(entries []*Entry, now time.Time, rev uint64, include metav1.IncludeObjectPolicy) *metav1.Table {
	objects := make([]server.Object, 0, len(entries))
	for _, e := range entries {
		objects = append(objects, e.Object)
	}
	t := table.New(objects, now)
	t.ResourceVersion = strconv.FormatUint(rev, 10)
	for n, e := range entries {
		switch include {
		case metav1.IncludeObject:
			t.Rows[n].Object = runtime.RawExtension{Raw: e.JSON()}
		case metav1.IncludeMetadata:
			t.Rows[n].Object = runtime.RawExtension{Raw: Encode(metadataOf(e.Object))}
		}
	}
	return t
}
