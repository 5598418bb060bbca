package server

import (
	"context"
	"io"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Viewer gives the published state. Both methods are safe for concurrent use,
// quick, and never block.
type Viewer interface {
	// View is the newest View; never nil.
	View() *View
	// Changed is closed once the newest View has another revision than after.
	// It is closed already where that is so, a revision never given out
	// included.
	Changed(after uint64) <-chan struct{}
}

// Commander does what the verbs ask. Its errors are for users; an *Error among
// them chooses the HTTP status. Methods may be called concurrently.
type Commander interface {
	// Restart has the containers of a pod started again, each with its own
	// grace: the named one or, for "", all regular and restartable init ones.
	// It returns when that is decided, not when it is done.
	Restart(ctx context.Context, pod types.NamespacedName, container string) error
	// Down ends every pod of this instance with its own grace and returns when
	// nothing of them is left. They stay down until podd is started again. The
	// end of ctx ends the waiting, not the stopping.
	Down(ctx context.Context) error
	// Shutdown ends every pod because the machine goes down, in the order of their
	// priority and within grace, or as configured for 0, and returns when each has
	// ended. They stay so until the machine has booted. The end of ctx ends the
	// waiting, not the stopping.
	Shutdown(ctx context.Context, grace time.Duration) error
	// Resume is that the machine does not go down after all.
	Resume(ctx context.Context) error
}

// LogReader reads container logs.
type LogReader interface {
	// Logs writes what was asked for to w and returns; when following, once
	// the container has ended, ctx is done, or w fails. What there is comes in
	// few writes. No name in the request has been looked up yet.
	Logs(ctx context.Context, req LogRequest, w io.Writer) error
}

// LogRequest asks for the log of one container.
type LogRequest struct {
	Pod       types.NamespacedName
	Container string // never ""
	// Previous asks for the newest run that has ended, rather than the newest.
	Previous bool
	Follow   bool
	// Tail is how many of the last lines to begin with; negative for all.
	Tail int64
	// Since leaves out what was logged earlier; zero for nothing.
	Since time.Time
	// Timestamps puts the RFC 3339 time in front of each line.
	Timestamps bool
	// Limit is the most bytes to write; 0 for no limit.
	Limit int64
	// Stream is the one to read; "" for both.
	Stream LogStream `json:",omitempty"`
}

// LogStream is where a container wrote.
type LogStream string

// What a container writes to.
const (
	Stdout LogStream = "stdout"
	Stderr LogStream = "stderr"
)

// Latest holds the newest View. One goroutine publishes, any may read.
type Latest struct{ now atomic.Pointer[publication] }

type publication struct {
	view     *View
	outdated chan struct{} // closed when a newer one was stored
}

var _ Viewer = (*Latest)(nil)

// NewLatest returns a Latest that holds v, which must not be nil.
func NewLatest(v *View) *Latest {
	l := &Latest{}
	l.now.Store(&publication{v, make(chan struct{})})
	return l
}

// Publish makes v the newest View and wakes who waits for it. Its revision is
// greater than that of the one before. Only one goroutine may publish.
func (l *Latest) Publish(v *View) {
	old := l.now.Swap(&publication{v, make(chan struct{})})
	close(old.outdated)
}

// View implements Viewer.
func (l *Latest) View() *View { return l.now.Load().view }

// Changed implements Viewer.
func (l *Latest) Changed(after uint64) <-chan struct{} {
	p := l.now.Load()
	if p.view.Revision != after {
		return closed
	}
	return p.outdated
}

var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()
