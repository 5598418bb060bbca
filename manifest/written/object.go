package written

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Object names what a file holds.
type Object struct {
	Kind            string // Pod, ConfigMap, Secret, PersistentVolumeClaim or PersistentVolume
	Namespace, Name string // no namespace: PersistentVolume
}

var kinds = []string{"Pod", "ConfigMap", "Secret", "PersistentVolumeClaim", "PersistentVolume"}

// maxFile is how long a name of a file may be on Linux.
const maxFile = 255

// check guards every path that is made of an object's names: these are a client's
// text.
func (o Object) check() error {
	switch {
	case !slices.Contains(kinds, o.Kind):
		return fmt.Errorf("%.80q is no kind that is written", o.Kind)
	case len(validation.IsDNS1123Subdomain(o.Name)) > 0:
		return fmt.Errorf("%.80q is no name of a %s", o.Name, o.Kind)
	case (o.Kind == "PersistentVolume") != (o.Namespace == ""), o.Namespace != "" && len(validation.IsDNS1123Label(o.Namespace)) > 0:
		return fmt.Errorf("%.80q is no namespace of a %s", o.Namespace, o.Kind)
	}
	return nil
}

// file is the name of its file. Neither namespaces nor names have a "_", so no two
// objects have one.
func (o Object) file() string {
	parts := []string{strings.ToLower(o.Kind)}
	if o.Namespace != "" {
		parts = append(parts, o.Namespace)
	}
	const suffix = ".json"
	name := strings.Join(append(parts, o.Name), "_")
	if len(name)+len(suffix) <= maxFile {
		return name + suffix
	}
	sum := sha256.Sum256([]byte(name))
	rest := "_" + hex.EncodeToString(sum[:]) + suffix
	return strings.TrimRight(name[:maxFile-len(rest)], "._-") + rest
}
