package runtime

import "math"

// DefaultIDsPerPod is the default number of user and group IDs of a pod with a user namespace. The
// number of IDs of a pod is always a multiple of DefaultIDsPerPod, because programs expect the IDs
// up to 65535.
const DefaultIDsPerPod = 65536

// An IDRange contains the user and group IDs of the host that a user namespace maps. First is the ID of
// root in the namespace. The zero value means that there is no user namespace.
type IDRange struct {
	First, Length uint32
}

// IsValid reports whether a user namespace can map r: First and Length are positive multiples of
// DefaultIDsPerPod, and no ID exceeds the kernel's maximum. First must be positive because the IDs
// below DefaultIDsPerPod belong to the users of the host.
func (r IDRange) IsValid() bool {
	return r.First > 0 && r.Length > 0 && r.First%DefaultIDsPerPod == 0 && r.Length%DefaultIDsPerPod == 0 && r.End() <= math.MaxUint32
}

// End returns the first ID after r.
func (r IDRange) End() uint64 { return uint64(r.First) + uint64(r.Length) }
