package effect

// A Permit allows either a start of a container to call the runtime, or its worker to
// continue without the start, whichever takes it first. If the worker has the permit, it
// can stop the pod at once: the start creates nothing, even if it never returns because a
// volume hangs.
type Permit chan struct{}

// NewPermit returns a permit that is free.
func NewPermit() Permit {
	p := make(Permit, 1)
	p.putBack()
	return p
}

// Take takes the permit and reports whether it was free.
func (p Permit) Take() bool {
	select {
	case <-p:
		return true
	default:
		return false
	}
}

// putBack returns a permit that was taken.
func (p Permit) putBack() { p <- struct{}{} }
