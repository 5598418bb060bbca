package check

import "time"

func checkClock(f *Facts, r *Result) {
	c := f.Clock
	r.Detail = c.Now.UTC().Format(time.RFC3339)
	const remedy = "start a time service, such as chrony or systemd-timesyncd"
	if c.Now.Before(c.BuildTime) {
		r.warn(remedy, "the clock shows %s, which is before podd was built (%s); TLS connections to registries and API servers fail", r.Detail, c.BuildTime.UTC().Format(time.RFC3339))
	}
	switch {
	case c.Err != nil:
		r.warn("allow the system call adjtimex", "checking whether the clock is synchronized: adjtimex: %v", c.Err)
	case c.IsSynchronized:
		r.Detail += ", synchronized"
	default:
		r.warn(remedy, "the clock is not synchronized, so the times in logs and events may be wrong, and valid certificates may be rejected")
	}
}
