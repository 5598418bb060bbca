package manifest

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// IsSafeUID reports whether uid can be part of a path: uid has 1 to 63 ASCII letters, digits and
// dashes. Call IsSafeUID before a UID becomes part of a path, because UIDs come from users, from
// other node agents and from names of directories.
func IsSafeUID(uid types.UID) bool {
	for i := range len(uid) {
		c := uid[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-') {
			return false
		}
	}
	return uid != "" && len(uid) <= 63
}

// MaxVolumeHandle is the maximum length in bytes of the ID of a CSI volume (volumeHandle). It limits
// the size of the Node's status and of podd's files. The CSI specification allows only 128 bytes.
const MaxVolumeHandle = 4096

// IsSafeDriverName reports whether name is a valid name of a CSI driver, so that it can be part of
// a path. Upper case is valid, as in the API server.
func IsSafeDriverName(name string) bool {
	return len(name) <= 63 && len(validation.IsDNS1123Subdomain(strings.ToLower(name))) == 0
}
