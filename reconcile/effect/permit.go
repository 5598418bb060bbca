package effect

// A Permit is shared by the start of a container and the worker of its pod. The start takes the
// permit before it calls the runtime. The worker takes the permit to abandon the start. Only one of
// them can take it. After the worker has taken the permit, the start creates no container. So the
// worker can stop the pod at once, even if the start returns late or never, for example because the
// server of a volume does not respond.
type Permit chan struct{}

// NewPermit returns a permit that can be taken.
func NewPermit() Permit {
	p := make(Permit, 1)
	p.putBack()
	return p
}

// Take takes the permit and does not block. ok is false if the permit was already taken.
func (p Permit) Take() (ok bool) {
	select {
	case <-p:
		return true
	default:
		return false
	}
}

// putBack puts back a permit that was taken.
func (p Permit) putBack() { p <- struct{}{} }
