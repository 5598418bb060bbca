// Package once runs pods to completion, as podd run --runonce does: the pods
// that go on (restartPolicy Always) first, the others once those are ready, and
// everything removed in the end.
//
//	reports ──▶ Judge ──▶ what to start, the Verdict
//	   │                         │
//	   └──▶ output ──▶ stdout    ▼
//	        (log files)    end, drain, Rows ──▶ summary, report ──▶ exit code
//
// Judge and the Rows are pure. Run drives: one goroutine in Drive decides, and
// one goroutine a container copies its output until all of it was written.
//
// The code is that of the container that failed, or
//
//	0    everything succeeded, or there was only to get ready
//	1    several containers failed
//	124  the time was up
//	125  no container is to blame: a bad manifest, no runtime, no image; a pod
//	     that the others need and that does not come up
//	130  a signal ended the run
//
// Output arrives byte for byte as far as the runtime logs it: containerd drops
// the carriage return before a newline.
package once

// Exit codes of a run, beside those of containers.
const (
	CodeSeveral     = 1   // more than one container failed
	CodeTimeout     = 124 // as timeout(1)
	CodeOwn         = 125 // podd's own failure, as podman run
	CodeInterrupted = 130 // as a shell says of SIGINT
)
