package kube

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"podd/server"
	"podd/server/kube/request"
)

const (
	// slowest is how long a watcher may take to receive what happened meanwhile.
	slowest = 30 * time.Second
	// bookmarkEvery is how often who wants it is told which revision it has seen.
	bookmarkEvery = time.Minute
)

// watcher is one client that is told of changes. For one goroutine.
type watcher struct {
	api     *API
	res     *resource
	want    selection
	form    form
	include metav1.IncludeObjectPolicy
	// told says that the client has the headers of the table.
	told bool
	w    http.ResponseWriter
	err  error  // why nothing more can be written
	rev  uint64 // up to which the client was told
}

// watchOptions are those of a query.
type watchOptions struct {
	rev       uint64
	initial   bool // begin with all there is
	tellEnd   bool // and say when that was all
	bookmarks bool
	timeout   time.Duration // 0 for none
}

func (a *API) watch(w http.ResponseWriter, r *http.Request, res *resource, i request.Info) {
	q := r.URL.Query()
	o, err := readWatchOptions(q)
	watcher := &watcher{api: a, res: res, w: w, rev: o.rev, include: request.Include(r)}
	if err == nil {
		watcher.want, err = selector(res, i.Namespace, q)
	}
	if err == nil {
		watcher.form, err = a.form(r, asTable, asMetadata)
	}
	if err == nil && !o.initial {
		err = a.store.knows(res, o.rev)
	}
	if err != nil {
		server.ReplyStatus(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusOK)
	ctx := r.Context()
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.timeout)
		defer cancel()
	}
	watcher.run(ctx, o)
}

func readWatchOptions(q url.Values) (o watchOptions, err error) {
	rev, given, err := revision(q)
	if err != nil {
		return o, err
	}
	o.rev, o.bookmarks = rev, request.Boolean(q, "allowWatchBookmarks")
	if s := q.Get("timeoutSeconds"); s != "" {
		n, err := strconv.ParseUint(s, 10, 31)
		if err != nil {
			return o, apierrors.NewBadRequest(fmt.Sprintf("timeoutSeconds: %.40q is no number", s))
		}
		o.timeout = time.Duration(n) * time.Second
	}
	match := metav1.ResourceVersionMatch(q.Get("resourceVersionMatch"))
	if !q.Has("sendInitialEvents") {
		if match != "" {
			return o, apierrors.NewBadRequest("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
		}
		o.initial = !given // as ever: all there is comes first
		return o, nil
	}
	if match != metav1.ResourceVersionMatchNotOlderThan {
		return o, apierrors.NewBadRequest("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
	}
	o.initial = request.Boolean(q, "sendInitialEvents")
	if o.initial && !o.bookmarks {
		return o, apierrors.NewBadRequest("sendInitialEvents requires setting allowWatchBookmarks to true")
	}
	o.tellEnd = o.initial
	return o, nil
}

// knows says whether what happened since a revision can be told.
func (s *store) knows(r *resource, rev uint64) error {
	_, now, _, known := s.after(r, rev)
	switch {
	case rev == 0: // whatever comes next
		return nil
	case rev > now:
		return tooNew(rev, now)
	case !known:
		return expired(rev)
	}
	return nil
}

// run tells the client until ctx is done, it is gone, or too slow.
func (w *watcher) run(ctx context.Context, o watchOptions) {
	defer w.end()
	w.hurry()
	if o.initial {
		w.begin(o)
	} else if w.rev == 0 {
		_, w.rev = w.api.store.list(w.res)
	}
	bookmark := time.NewTicker(bookmarkEvery)
	defer bookmark.Stop()
	for {
		changes, now, more, known := w.api.store.after(w.res, w.rev)
		if !known {
			w.add(watch.Error, encode(server.KubeStatus(expired(w.rev))))
			return
		}
		for _, c := range changes {
			w.tell(c)
		}
		w.rev = now
		if w.send() != nil {
			return
		}
		select {
		case <-ctx.Done():
			w.hurry()
			if o.bookmarks {
				w.bookmark(false)
			}
			return
		case <-more:
			w.hurry()
		case <-bookmark.C:
			w.hurry()
			if o.bookmarks {
				w.bookmark(false)
			}
		}
	}
}

// begin tells of all there is.
func (w *watcher) begin(o watchOptions) {
	entries, rev := w.api.store.list(w.res)
	for _, e := range entries {
		if w.want.takes(e.object) {
			w.object(watch.Added, e)
		}
	}
	w.rev = rev
	if o.tellEnd {
		w.bookmark(true)
	}
}

// tell makes of a change what it is among the objects that the client wants.
func (w *watcher) tell(c change) {
	was := c.before != nil && w.want.takes(c.before.object)
	is := c.kind != watch.Deleted && w.want.takes(c.now.object)
	switch {
	case is && was:
		w.object(watch.Modified, c.now)
	case is:
		w.object(watch.Added, c.now)
	case was && c.kind == watch.Deleted:
		w.object(watch.Deleted, c.now)
	case was:
		w.object(watch.Deleted, c.before.at(w.res, c.now.rev))
	}
}

func (w *watcher) object(kind watch.EventType, e *entry) {
	w.add(kind, one(w.form, e, w.include, !w.told))
	w.told = true
}

func (w *watcher) add(kind watch.EventType, object []byte) {
	for _, part := range [][]byte{[]byte(`{"type":"` + string(kind) + `","object":`), object, []byte("}\n")} {
		if w.err == nil {
			_, w.err = w.w.Write(part)
		}
	}
}

// bookmark tells up to which revision all is told; end, that all there was at
// the beginning is.
func (w *watcher) bookmark(end bool) {
	meta := metav1.ObjectMeta{ResourceVersion: strconv.FormatUint(w.rev, 10)}
	if end {
		meta.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	body := metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{Kind: w.res.kind, APIVersion: w.res.gvk().GroupVersion().String()}, ObjectMeta: meta}
	switch w.form.as {
	case asMetadata:
		body.TypeMeta = metadata(w.res.blank()).TypeMeta
	case asTable:
		t := metav1.Table{TypeMeta: metav1.TypeMeta{Kind: "Table", APIVersion: metav1.SchemeGroupVersion.String()}, Rows: []metav1.TableRow{{}}}
		t.ResourceVersion = meta.ResourceVersion
		body.TypeMeta = metadata(w.res.blank()).TypeMeta
		t.Rows[0].Object.Raw = encode(body)
		w.add(watch.Bookmark, encode(t))
		return
	}
	w.add(watch.Bookmark, encode(body))
}

// hurry has the client receive what is written from now on in time.
func (w *watcher) hurry() {
	if w.err == nil {
		w.err = http.NewResponseController(w.w).SetWriteDeadline(time.Now().Add(slowest))
	}
}

// send sends what was written, the header at least. It fails for a client that
// is gone or took too long.
func (w *watcher) send() error {
	if w.err == nil {
		w.err = http.NewResponseController(w.w).Flush()
	}
	return w.err
}

// end leaves the connection to the next request, or breaks it with the client
// that did not receive.
func (w *watcher) end() {
	if w.send() != nil {
		panic(http.ErrAbortHandler)
	}
	http.NewResponseController(w.w).SetWriteDeadline(time.Time{})
}
