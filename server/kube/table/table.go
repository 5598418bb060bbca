package table

import (
	"time"

	certificates "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

// New returns a table with a row for each object. All objects must have the same Go type.
// The rows do not include the objects; the server adds the objects or their metadata if
// the client requests them.
func New[T metav1.Object](objects []T, now time.Time) *metav1.Table {
	t := &metav1.Table{
		TypeMeta: metav1.TypeMeta{Kind: "Table", APIVersion: metav1.SchemeGroupVersion.String()},
		Rows:     make([]metav1.TableRow, 0, len(objects)),
	}
	kind := defaultKind
	for i, o := range objects {
		if i == 0 {
			kind = kindOf(o)
		}
		t.Rows = append(t.Rows, kind.row(o, now))
	}
	t.ColumnDefinitions = kind.columns()
	return t
}

// A kind contains the columns and the row function for a kind of object.
type kind struct {
	columns func() []metav1.TableColumnDefinition
	row     func(o metav1.Object, now time.Time) metav1.TableRow
}

// kindOf returns the columns and the row function for the Go type of o.
func kindOf(o metav1.Object) kind {
	switch o.(type) {
	case *v1.Pod:
		return kind{podColumns, adaptRow(podRow)}
	case *v1.Node:
		return kind{nodeColumns, adaptCells(nodeCells)}
	case *v1.Event:
		return kind{eventColumns, adaptCells(eventCells)}
	case *v1.Namespace:
		return kind{namespaceColumns, adaptCells(namespaceCells)}
	case *v1.ConfigMap:
		return kind{configMapColumns, adaptCells(configMapCells)}
	case *v1.Secret:
		return kind{secretColumns, adaptCells(secretCells)}
	case *v1.PersistentVolume:
		return kind{volumeColumns, adaptCells(volumeCells)}
	case *v1.PersistentVolumeClaim:
		return kind{claimColumns, adaptCells(claimCells)}
	case *certificates.ClusterTrustBundle:
		return kind{trustBundleColumns, adaptCells(trustBundleCells)}
	case *storage.CSIDriver:
		return kind{csiDriverColumns, adaptCells(csiDriverCells)}
	}
	return defaultKind
}

// adaptRow converts a row function for objects of type T to a row function for any object.
func adaptRow[T metav1.Object](row func(T, time.Time) metav1.TableRow) func(metav1.Object, time.Time) metav1.TableRow {
	return func(o metav1.Object, now time.Time) metav1.TableRow { return row(o.(T), now) }
}

// adaptCells returns a row function that calls f, which returns only the cells of a row.
func adaptCells[T metav1.Object](f func(T, time.Time) []any) func(metav1.Object, time.Time) metav1.TableRow {
	return adaptRow(func(o T, now time.Time) metav1.TableRow { return metav1.TableRow{Cells: f(o, now)} })
}

var defaultKind = kind{
	columns: func() []metav1.TableColumnDefinition {
		return []metav1.TableColumnDefinition{nameColumn(), ageColumn()}
	},
	row: func(o metav1.Object, now time.Time) metav1.TableRow {
		return metav1.TableRow{Cells: []any{o.GetName(), ageOf(o, now)}}
	},
}

// ageOf returns the age of an object as kubectl prints it.
func ageOf(o metav1.Object, now time.Time) string {
	return formatAge(o.GetCreationTimestamp().Time, now)
}

// formatAge formats the time between t and now with at most two units.
func formatAge(t, now time.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(t))
}

// valueOr returns s or, if s is empty, fallback.
func valueOr(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

const none, unset, unknown = "<none>", "<unset>", "<unknown>"
