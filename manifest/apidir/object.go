package apidir

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"podd/manifest"
)

// An ObjectID identifies an object and its file in a Dir.
type ObjectID struct {
	Kind            string // one of supportedKinds
	Namespace, Name string // Namespace is empty if the kind is cluster-scoped
}

var supportedKinds = []string{"Pod", manifest.ConfigMapKind, manifest.SecretKind, manifest.ClaimKind, manifest.VolumeKind, manifest.TrustBundleKind, manifest.CSIDriverKind}

// maxFileName is the maximum length of a file name on Linux.
const maxFileName = 255

// check validates the names, which come from a client and become part of a path.
func (o ObjectID) check() error {
	switch {
	case !slices.Contains(supportedKinds, o.Kind):
		return fmt.Errorf("unsupported kind %.80q", o.Kind)
	case !o.hasValidName():
		return fmt.Errorf("invalid name %.80q of a %s", o.Name, o.Kind)
	case manifest.IsClusterScoped(o.Kind) != (o.Namespace == ""), o.Namespace != "" && len(validation.IsDNS1123Label(o.Namespace)) > 0:
		return fmt.Errorf("invalid namespace %.80q of a %s", o.Namespace, o.Kind)
	}
	return nil
}

// hasValidName reports whether the name is a subdomain or, for a ClusterTrustBundle, consists of
// subdomains with colons between them.
func (o ObjectID) hasValidName() bool {
	parts := []string{o.Name}
	if o.Kind == manifest.TrustBundleKind {
		parts = strings.Split(o.Name, ":")
	}
	return !slices.ContainsFunc(parts, func(part string) bool { return len(validation.IsDNS1123Subdomain(part)) > 0 })
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
	suffix := "_" + hex.EncodeToString(sum[:]) + fileSuffix
	return strings.TrimRight(name[:maxFileName-len(suffix)], "._-") + suffix
}
