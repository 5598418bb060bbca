// Package runonce implements podd run --runonce, which runs pods to completion. It first starts
// the long-running pods (restartPolicy Always). When they are ready, it starts the pods that run
// to completion. At the end it removes all pods and directories.
//
// Before the start it rejects pods that never fit on the node. The other pods are admitted as by the
// daemon: a pod that does not fit now waits until other pods have completed.
//
//	reports ──▶ judge ──▶ pods to start, verdict
//	   │                         │
//	   └──▶ output ──▶ stdout    ▼
//	        (log files)    stop, drain, rows ──▶ summary, report ──▶ exit code
//
// A Command reads the manifests and runs their pods in a root directory of its own. If podd is
// killed, a later podd finds this directory and removes the pods. judge and rowBuilder are pure.
// drive runs one goroutine that decides which pods to start and stop, and one goroutine for each
// container that copies its output until all of it is written.
//
// The exit code of podd is the exit code of the container that failed, or
//
//	0    everything succeeded, or all long-running pods became ready and there are no others
//	1    several containers failed
//	124  the timeout passed
//	125  no container is the cause: an invalid manifest, a pod that does not fit on the node,
//	     no runtime, no image, a long-running pod that does not become ready, or a pod that was
//	     evicted because it exceeded a storage limit
//	130  a signal stopped the run
//
// Output is copied byte for byte as the runtime logs it: containerd removes the carriage return
// before a newline. A log is rotated only while its newest file is being copied, so that no file is
// removed before it is copied.
package runonce

// exitCodeSeveralFailed is the exit code of a run in which several containers failed. The other
// codes are those of package exit.
const exitCodeSeveralFailed = 1
