package server

import (
	"context"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Viewer provides the published state. Its methods are safe for concurrent use,
// fast, and never block.
type Viewer interface {
	// View returns the newest View. It is never nil.
	View() *View
	// Changed returns a channel that is closed as soon as the revision of the newest View differs
	// from afterRevision. The channel is already closed if the revisions differ now.
	Changed(afterRevision uint64) <-chan struct{}
}

// Commander executes commands of podd's command line. Errors are shown to users; an
// *Error specifies the HTTP status. The methods may be called concurrently.
type Commander interface {
	// Restart restarts a container of a pod. If container is "", it restarts all regular containers
	// and sidecars, each with its own grace period. Restart returns when the request is accepted or
	// rejected. It does not wait until containers restart.
	Restart(ctx context.Context, pod types.NamespacedName, container string) error
	// Down stops every pod of this instance, each with its own grace period, and
	// returns when all pods are removed. podd starts no pods until it is restarted. If
	// ctx is done, Down returns but pods continue to stop.
	Down(ctx context.Context) error
	// Shutdown stops every pod because the node shuts down. Pods stop in the order of priority and
	// within the grace period; zero means the configured grace period. Shutdown returns when all
	// pods have terminated. podd starts no pods until the node has booted. If ctx is done, Shutdown
	// returns but pods continue to stop.
	Shutdown(ctx context.Context, grace time.Duration) error
	// Resume cancels Shutdown.
	Resume(ctx context.Context) error
}

// LogReader reads container logs.
type LogReader interface {
	// Logs writes the requested log to w. If req.Follow is set, Logs returns when the container has
	// terminated, ctx is done, or w fails. Logs combines the available text into a few writes. The
	// pod and the container of req need not exist.
	Logs(ctx context.Context, req LogRequest, w io.Writer) error
}

// LogRequest selects the log of one container.
type LogRequest struct {
	Pod       types.NamespacedName
	Container string // never ""
	// Previous selects the log of the newest terminated instance of the container. If it is not
	// set, the log of the newest instance is selected.
	Previous bool
	Follow   bool
	// Tail is the number of lines before the end of the log at which the output starts. A negative
	// number means that it starts at the beginning of the log.
	Tail int64
	// Since is the time before which logged lines are omitted. The zero time omits none.
	Since time.Time
	// Timestamps adds the RFC 3339 time to the beginning of each line.
	Timestamps bool
	// Limit is the maximum number of bytes to write; 0 means no limit.
	Limit int64
	// Stream selects one stream; "" selects both.
	Stream LogStream `json:",omitempty"`
}

// LogStream is an output stream of a container.
type LogStream string

// The output streams.
const (
	Stdout LogStream = "stdout"
	Stderr LogStream = "stderr"
)
