package podcert

import "time"

// overdueAfter is the time after Certificate.RefreshAt at which a refresh is overdue.
const overdueAfter = 10 * time.Minute

// A State is the state of the certificate of one volume source.
type State struct {
	Signer      string
	Certificate *Certificate  // the last certificate; nil if none was issued
	Refused     *RefusedError // nil unless the last request was refused
}

// Name returns the name of the state in the metric of the kubelet.
func (s *State) Name(now time.Time) string {
	switch {
	case s.Refused != nil && s.Refused.Condition == "Denied":
		return "denied"
	case s.Refused != nil:
		return "failed"
	case s.Certificate == nil:
		return "not_yet_issued"
	case s.Certificate.IsExpired(now):
		return "expired"
	case s.Certificate.IsOverdue(now):
		return "overdue_for_refresh"
	}
	return "fresh"
}

// IsOverdue reports whether the certificate should have been replaced.
func (c *Certificate) IsOverdue(now time.Time) bool { return now.After(c.RefreshAt.Add(overdueAfter)) }

// IsExpired reports whether the certificate is no longer valid.
func (c *Certificate) IsExpired(now time.Time) bool { return now.After(c.NotAfter) }
