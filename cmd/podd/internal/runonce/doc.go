// Package runonce runs pods to completion, as podd run --runonce does: the long-running pods
// (restartPolicy Always) first, the others when those are ready. It removes everything at
// the end.
//
//	reports ──▶ Judge ──▶ pods to start, Verdict
//	   │                         │
//	   └──▶ output ──▶ stdout    ▼
//	        (log files)    stop, drain, Rows ──▶ summary, report ──▶ exit code
//
// A Command reads the manifests and runs their pods in a root directory of its own, in
// which a later podd finds what a killed one left. Judge and the Rows are pure. In Drive one goroutine decides, and one goroutine for each
// container copies its output until all of it is written.
//
// The exit code is that of the container that failed, or
//
//	0    everything succeeded, or all long-running pods became ready and there are no others
//	1    several containers failed
//	124  the timeout passed
//	125  no container is the cause: an invalid manifest, no runtime, no image, a
//	     long-running pod that does not become ready, or a pod that was evicted because it
//	     exceeded a storage limit
//	130  a signal stopped the run
//
// Output is copied byte for byte as the runtime logs it: containerd removes the carriage
// return before a newline.
package runonce

// CodeSeveral is the exit code of a run in which several containers failed. The other codes
// are those of package exit.
const CodeSeveral = 1
