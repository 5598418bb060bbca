package manifest

import "k8s.io/apimachinery/pkg/types"

// SafeUID guards every path that is made of a UID: a UID is a user's text, or
// another node agent's, or the name of any directory. It has 1 to 63 letters,
// digits and dashes, all of them ASCII.
func SafeUID(uid types.UID) bool {
	for i := range len(uid) {
		c := uid[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-') {
			return false
		}
	}
	return uid != "" && len(uid) <= 63
}
