package manifest

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// SafeUID reports whether a UID can be part of a path: it has 1 to 63 ASCII letters, digits
// and dashes. It must be called before a UID becomes a path, because a UID comes from a
// user, from another node agent, or from the name of a directory.
func SafeUID(uid types.UID) bool {
	for i := range len(uid) {
		c := uid[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-') {
			return false
		}
	}
	return uid != "" && len(uid) <= 63
}

// IsSafeDriver reports whether the name of a CSI driver is valid, so that it can be part of a
// path. Like the API server it allows upper case.
func IsSafeDriver(name string) bool {
	return len(name) <= 63 && len(validation.IsDNS1123Subdomain(strings.ToLower(name))) == 0
}
