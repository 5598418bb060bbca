package apiserver

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

// A WatchStream reads the events of a watch in the goroutine that calls Next. podd does not use the
// watches of client-go, because each of them needs an additional goroutine, and a node has a watch
// for each ConfigMap and Secret.
type WatchStream struct {
	body         io.ReadCloser
	negotiator   runtime.ClientNegotiator
	decoder      watch.Decoder // nil until Next is called
	requestedEnd time.Time     // the requested end of the watch
	overdueTimer *time.Timer   // cancels the watch with errWatchOverdue
}

// errWatchOverdue is the cancellation cause of a watch that the server did not end after the
// timeout.
var errWatchOverdue = errors.New("the API server did not end the watch after the requested timeout")

// errWatchInterrupted is the error of a watch that ended before the requested time. A list must
// follow, because the API server may have lost its data. The next watch would not report the
// loss, because an API server accepts resource versions that it has not reached yet.
var errWatchInterrupted = errors.New("the watch ended before the requested timeout")

// Watch starts a watch of the changes after a resource version. It fails if the response does not
// begin within RequestTimeout. The timeout of the watch is random, between timeout and twice
// timeout. cancel must be the cancel function of ctx. It is called with errWatchOverdue if neither
// the server nor a proxy has ended the watch within RequestTimeout after the timeout of the watch.
// As in client-go, watches are not rate-limited.
func (c *Client) Watch(ctx context.Context, cancel context.CancelCauseFunc, q *rest.Request, version string, timeout time.Duration) (*WatchStream, error) {
	seconds := int64((timeout + rand.N(timeout)) / time.Second)
	q = q.Param("watch", "true").Param("resourceVersion", version).Param("allowWatchBookmarks", "true").
		Param("timeoutSeconds", strconv.FormatInt(seconds, 10)).Throttle(nil)
	requestedEnd := time.Now().Add(time.Duration(seconds) * time.Second * 99 / 100) // 1 % less, because the server's clock may run faster
	responseTimer := time.AfterFunc(RequestTimeout, func() { cancel(context.DeadlineExceeded) })
	body, err := q.Stream(ctx)
	responseTimer.Stop()
	if err == nil {
		overdueTimer := time.AfterFunc(time.Duration(seconds)*time.Second+RequestTimeout, func() { cancel(errWatchOverdue) })
		return &WatchStream{body: body, negotiator: c.watchNegotiator, requestedEnd: requestedEnd, overdueTimer: overdueTimer}, nil
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return nil, c.WithHost(err)
}

// Next blocks until the next event and returns it. It returns io.EOF if the watch ended at the
// requested time, and errWatchInterrupted if the watch ended earlier.
func (s *WatchStream) Next() (kind watch.EventType, o runtime.Object, err error) {
	if s.decoder == nil {
		err = s.newDecoder()
	}
	if err == nil {
		kind, o, err = s.decoder.Decode()
	}
	switch {
	case err == nil || err == io.EOF && !time.Now().Before(s.requestedEnd):
	case errors.Is(err, io.ErrUnexpectedEOF) || utilnet.IsProbableEOF(err) || utilnet.IsTimeout(err):
		err = errWatchInterrupted
	}
	return kind, o, err
}

// newDecoder sets decoder. It detects the format of the response by the first byte. JSON begins
// with a brace. A protobuf frame begins with the length of the frame, and the first byte of the
// length is less than a brace.
func (s *WatchStream) newDecoder() error {
	r := bufio.NewReaderSize(s.body, 16) // the decoder also reads the bytes in this buffer
	first, err := r.Peek(1)
	if err != nil {
		return err
	}
	contentType := runtime.ContentTypeProtobuf
	if first[0] == '{' {
		contentType = runtime.ContentTypeJSON
	}
	object, event, framer, err := s.negotiator.StreamDecoder(contentType, nil)
	if err != nil {
		return err
	}
	frames := framer.NewFrameReader(struct {
		io.Reader
		io.Closer
	}{r, s.body})
	s.decoder = restwatch.NewDecoder(streaming.NewDecoder(frames, event), object)
	return nil
}

// Close closes the connection of the watch.
func (s *WatchStream) Close() {
	s.overdueTimer.Stop()
	_ = s.body.Close()
}
