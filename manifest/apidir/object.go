package apidir

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// An ObjectID identifies an object and its file in a Dir.
type ObjectID struct {
	Kind            string // Pod, ConfigMap, Secret, PersistentVolumeClaim or PersistentVolume
	Namespace, Name string // Namespace is empty for a PersistentVolume
}

var supportedKinds = []string{"Pod", "ConfigMap", "Secret", "PersistentVolumeClaim", "PersistentVolume"}

// maxFileName is the maximum length of a file name on Linux.
const maxFileName = 255

// check validates the names, which come from a client and become part of a path.
func (o ObjectID) check() error {
	switch {
	case !slices.Contains(supportedKinds, o.Kind):
		return fmt.Errorf("unsupported kind %.80q", o.Kind)
	case len(validation.IsDNS1123Subdomain(o.Name)) > 0:
		return fmt.Errorf("invalid name %.80q of a %s", o.Name, o.Kind)
	case (o.Kind == "PersistentVolume") != (o.Namespace == ""), o.Namespace != "" && len(validation.IsDNS1123Label(o.Namespace)) > 0:
		return fmt.Errorf("invalid namespace %.80q of a %s", o.Namespace, o.Kind)
	}
	return nil
}

// fileName returns the object's file name. Different objects have different file names, because
// namespaces and names contain no "_".
func (o ObjectID) fileName() string {
	parts := []string{strings.ToLower(o.Kind)}
	if o.Namespace != "" {
		parts = append(parts, o.Namespace)
	}
	const fileSuffix = ".json"
	name := strings.Join(append(parts, o.Name), "_")
	if len(name)+len(fileSuffix) <= maxFileName {
		return name + fileSuffix
	}
	sum := sha256.Sum256([]byte(name))
	rest := "_" + hex.EncodeToString(sum[:]) + fileSuffix
	return strings.TrimRight(name[:maxFileName-len(rest)], "._-") + rest
}
