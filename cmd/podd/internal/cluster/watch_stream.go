package cluster

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	restwatch "k8s.io/client-go/rest/watch"
)

// A watchStream reads the events of a watch in the calling goroutine. client-go's watches
// need another goroutine each, and a node has a watch for each ConfigMap and Secret.
type watchStream struct {
	from    io.ReadCloser
	streams runtime.ClientNegotiator
	decoder watch.Decoder // nil before the first read
	until   time.Time     // the requested end; earlier ends are unexpected
	over    *time.Timer   // closes an overdue watch
}

// errWatchOverdue is the cancellation cause of a watch that the server should have ended.
var errWatchOverdue = errors.New("the watch is over")

// errWatchInterrupted is the error of a watch that ended before the requested time. The
// API server that accepts the next watch may have lost its data, and does not report
// that: it accepts a resource version that it has not reached yet.
var errWatchInterrupted = errors.New("the watch was cut")

// watch starts a watch of changes after version. The request must succeed within
// requestTime. The watch ends after between last and twice last. cancel must be that of ctx;
// its cause is errWatchOverdue if the server or a proxy does not end the watch in time.
// As in client-go, watches are not rate-limited.
func (c *client) watch(ctx context.Context, cancel context.CancelCauseFunc, q *rest.Request, version string, last time.Duration) (*watchStream, error) {
	seconds := int64((last + rand.N(last)) / time.Second)
	q = q.Param("watch", "true").Param("resourceVersion", version).Param("allowWatchBookmarks", "true").
		Param("timeoutSeconds", strconv.FormatInt(seconds, 10)).Throttle(nil)
	until := time.Now().Add(time.Duration(seconds) * time.Second * 99 / 100) // clocks may differ
	late := time.AfterFunc(requestTime, func() { cancel(context.DeadlineExceeded) })
	from, err := q.Stream(ctx)
	late.Stop()
	if err == nil {
		over := time.AfterFunc(time.Duration(seconds)*time.Second+requestTime, func() { cancel(errWatchOverdue) })
		return &watchStream{from: from, streams: c.streams, until: until, over: over}, nil
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return nil, c.withHost(err)
}

// next returns the next event. It returns io.EOF at the requested end of the watch, and
// errWatchInterrupted at any other end.
func (c *watchStream) next() (kind watch.EventType, o runtime.Object, err error) {
	if c.decoder == nil {
		err = c.begin()
	}
	if err == nil {
		kind, o, err = c.decoder.Decode()
	}
	switch {
	case err == nil || err == io.EOF && !time.Now().Before(c.until):
	case errors.Is(err, io.ErrUnexpectedEOF) || utilnet.IsProbableEOF(err) || utilnet.IsTimeout(err):
		err = errWatchInterrupted
	}
	return kind, o, err
}

// begin detects the format of the response: JSON begins with a brace, and a protobuf
// frame with its length, which begins with a smaller byte.
func (c *watchStream) begin() error {
	r := bufio.NewReaderSize(c.from, 16) // the decoder continues after the buffer
	first, err := r.Peek(1)
	if err != nil {
		return err
	}
	form := runtime.ContentTypeProtobuf
	if first[0] == '{' {
		form = runtime.ContentTypeJSON
	}
	object, event, framer, err := c.streams.StreamDecoder(form, nil)
	if err != nil {
		return err
	}
	frames := framer.NewFrameReader(struct {
		io.Reader
		io.Closer
	}{r, c.from})
	c.decoder = restwatch.NewDecoder(streaming.NewDecoder(frames, event), object)
	return nil
}

func (c *watchStream) close() {
	c.over.Stop()
	_ = c.from.Close()
}
