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

// changes are what a watch tells, read by the goroutine that takes them: a node has a
// watch for each ConfigMap and Secret, and client-go's have each a goroutine more.
type changes struct {
	from    io.ReadCloser
	streams runtime.ClientNegotiator
	decoder watch.Decoder // nil: nothing was read
	until   time.Time     // no earlier it ends as it was asked to
	over    *time.Timer   // ends it
}

// errOver is the cause of the end of a watch that the server was to end before.
var errOver = errors.New("the watch is over")

// errCut is that a watch ended otherwise than at the time it was asked to. Whoever
// answers the next may have lost what it had, and no API server says so: it takes a
// version that is yet to come.
var errCut = errors.New("the watch was cut")

// watch opens a watch for what changes after a version, within requestTime, that is to
// last for so long, and up to twice that; cancel is that of ctx, with which it ends, and
// which has errOver for its cause once the server, or a proxy, kept it longer. No limit
// of requests holds it up, as in client-go.
func (c *client) watch(ctx context.Context, cancel context.CancelCauseFunc, q *rest.Request, version string, last time.Duration) (*changes, error) {
	seconds := int64((last + rand.N(last)) / time.Second)
	q = q.Param("watch", "true").Param("resourceVersion", version).Param("allowWatchBookmarks", "true").
		Param("timeoutSeconds", strconv.FormatInt(seconds, 10)).Throttle(nil)
	until := time.Now().Add(time.Duration(seconds) * time.Second * 99 / 100) // clocks differ
	late := time.AfterFunc(requestTime, func() { cancel(context.DeadlineExceeded) })
	from, err := q.Stream(ctx)
	late.Stop()
	if err == nil {
		over := time.AfterFunc(time.Duration(seconds)*time.Second+requestTime, func() { cancel(errOver) })
		return &changes{from: from, streams: c.streams, until: until, over: over}, nil
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return nil, c.at(err)
}

// next waits for the next change; io.EOF: there are no more, as was asked for, errCut:
// nor can there be.
func (c *changes) next() (kind watch.EventType, o runtime.Object, err error) {
	if c.decoder == nil {
		err = c.begin()
	}
	if err == nil {
		kind, o, err = c.decoder.Decode()
	}
	switch {
	case err == nil || err == io.EOF && !time.Now().Before(c.until):
	case errors.Is(err, io.ErrUnexpectedEOF) || utilnet.IsProbableEOF(err) || utilnet.IsTimeout(err):
		err = errCut
	}
	return kind, o, err
}

// begin finds out in which of the forms that were asked for the server answers: JSON
// begins with a brace, a frame of protobuf with its length, which is less.
func (c *changes) begin() error {
	r := bufio.NewReaderSize(c.from, 16) // more is read past it
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

func (c *changes) close() {
	c.over.Stop()
	_ = c.from.Close()
}
