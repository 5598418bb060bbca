package table

import (
	"strconv"
	"strings"
	"time"

	certificates "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func namespaceColumns() []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{
		nameColumn(), newColumn("Status", fieldDescription(v1.NamespaceStatus{}, "phase")), ageColumn(),
	}
}

func namespaceCells(n *v1.Namespace, now time.Time) []any {
	return []any{n.Name, string(n.Status.Phase), ageOf(n, now)}
}

func configMapColumns() []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{
		nameColumn(), newColumn("Data", fieldDescription(v1.ConfigMap{}, "data")), ageColumn(),
	}
}

func configMapCells(c *v1.ConfigMap, now time.Time) []any {
	return []any{c.Name, int64(len(c.Data) + len(c.BinaryData)), ageOf(c, now)}
}

func secretColumns() []metav1.TableColumnDefinition {
	s := v1.Secret{}
	return []metav1.TableColumnDefinition{
		nameColumn(), newColumn("Type", fieldDescription(s, "type")), newColumn("Data", fieldDescription(s, "data")), ageColumn(),
	}
}

// secretCells returns the cells of a Secret. They contain the number of its values, but no value.
func secretCells(s *v1.Secret, now time.Time) []any {
	return []any{s.Name, string(s.Type), int64(len(s.Data)), ageOf(s, now)}
}

// trustBundleColumns has no column for the age, as in an API server.
func trustBundleColumns() []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{
		nameColumn(), newColumn("SignerName", fieldDescription(certificates.ClusterTrustBundleSpec{}, "signerName")),
	}
}

func trustBundleCells(b *certificates.ClusterTrustBundle, _ time.Time) []any {
	return []any{b.Name, valueOr(b.Spec.SignerName, none)}
}

func csiDriverColumns() []metav1.TableColumnDefinition {
	column := func(name, field string) metav1.TableColumnDefinition {
		return newColumn(name, fieldDescription(storage.CSIDriverSpec{}, field))
	}
	return []metav1.TableColumnDefinition{
		nameColumn(), column("AttachRequired", "attachRequired"), column("PodInfoOnMount", "podInfoOnMount"),
		column("StorageCapacity", "storageCapacity"), column("TokenRequests", "tokenRequests"),
		column("RequiresRepublish", "requiresRepublish"), column("Modes", "volumeLifecycleModes"), ageColumn(),
	}
}

// csiDriverCells returns the cells of a CSIDriver. The cell for token requests is always <unset>,
// because podd accepts no CSIDriver with token requests.
func csiDriverCells(c *storage.CSIDriver, now time.Time) []any {
	s := &c.Spec
	var modes []string
	for _, mode := range s.VolumeLifecycleModes {
		modes = append(modes, string(mode))
	}
	formatFlag := func(flag *bool, defaultValue bool) string { return strconv.FormatBool(ptr.Deref(flag, defaultValue)) }
	return []any{
		c.Name, formatFlag(s.AttachRequired, true), formatFlag(s.PodInfoOnMount, false), formatFlag(s.StorageCapacity, false),
		"<unset>", formatFlag(s.RequiresRepublish, false), valueOr(strings.Join(modes, ","), none), ageOf(c, now),
	}
}
