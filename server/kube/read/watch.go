package read

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
	"podd/server/kube/resource"
)

const (
	// sendTimeout is the time within which a client must receive the events that were
	// written to the response.
	sendTimeout = 30 * time.Second
	// bookmarkInterval is the interval of bookmarks.
	bookmarkInterval = time.Minute
)

// A watcher serves one watch. It is not safe for concurrent use.
type watcher struct {
	store        *store
	res          *resource.Definition
	secretFilter *secretFilter
	selection    selection
	encoder      resource.Encoder
	// areHeadersSent is set after the column definitions of a table were sent.
	areHeadersSent bool
	w              http.ResponseWriter
	err            error  // error of the last write; nothing is written after an error
	rev            uint64 // revision up to which changes were sent
}

// watchOptions are the parameters of a watch.
type watchOptions struct {
	rev             uint64
	sendInitial     bool // begin with the existing objects
	sendEndBookmark bool // send a bookmark after the existing objects
	sendBookmarks   bool
	timeout         time.Duration // 0 means no timeout
}

func (h *Handler) watch(w http.ResponseWriter, r *http.Request, res *resource.Definition, i request.Info) {
	q := r.URL.Query()
	o, err := readWatchOptions(q)
	watcher := &watcher{store: h.store, res: res, secretFilter: h.newSecretFilter(r, res, i), w: w, rev: o.rev}
	if err == nil {
		watcher.selection, err = parseSelection(res, i.Namespace, q)
	}
	if err == nil {
		watcher.encoder, err = resource.NewEncoder(r, h.now, request.AsTable, request.AsMetadata)
	}
	if err == nil && !o.sendInitial {
		err = h.store.checkRevision(res, o.rev)
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
	rev, isGiven, err := parseRevision(q)
	if err != nil {
		return o, err
	}
	o.rev, o.sendBookmarks = rev, request.BoolParameter(q, "allowWatchBookmarks")
	if s := q.Get("timeoutSeconds"); s != "" {
		n, err := strconv.ParseUint(s, 10, 31)
		if err != nil {
			return o, apierrors.NewBadRequest(fmt.Sprintf("timeoutSeconds: %.40q is not a number", s))
		}
		o.timeout = time.Duration(n) * time.Second
	}
	match := metav1.ResourceVersionMatch(q.Get("resourceVersionMatch"))
	if !q.Has("sendInitialEvents") {
		if match != "" {
			return o, apierrors.NewBadRequest("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
		}
		o.sendInitial = !isGiven // by default, the existing objects are sent first
		return o, nil
	}
	if match != metav1.ResourceVersionMatchNotOlderThan {
		return o, apierrors.NewBadRequest("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
	}
	o.sendInitial = request.BoolParameter(q, "sendInitialEvents")
	if o.sendInitial && !o.sendBookmarks {
		return o, apierrors.NewBadRequest("sendInitialEvents requires setting allowWatchBookmarks to true")
	}
	o.sendEndBookmark = o.sendInitial
	return o, nil
}

// checkRevision returns an error unless all changes since a revision are retained.
func (s *store) checkRevision(r *resource.Definition, rev uint64) error {
	_, currentRev, _, isRetained := s.changesAfter(r, rev)
	switch {
	case rev == 0: // the watch may begin at any revision
		return nil
	case rev > currentRev:
		return newTooNewError(rev, currentRev)
	case !isRetained:
		return newExpiredError(rev)
	}
	return nil
}

// run sends events until ctx is done or the client is disconnected or too slow.
func (w *watcher) run(ctx context.Context, o watchOptions) {
	defer w.finish()
	w.extendDeadline()
	if o.sendInitial {
		w.addInitial(o)
	} else if w.rev == 0 {
		_, w.rev = w.store.list(w.res)
	}
	bookmark := time.NewTicker(bookmarkInterval)
	defer bookmark.Stop()
	for {
		changes, currentRev, changed, isRetained := w.store.changesAfter(w.res, w.rev)
		if !isRetained {
			w.add(watch.Error, resource.Encode(server.KubeStatus(newExpiredError(w.rev))))
			return
		}
		for _, c := range changes {
			w.addChange(c)
		}
		w.rev = currentRev
		if w.flush() != nil {
			return
		}
		select {
		case <-ctx.Done():
			w.extendDeadline()
			if o.sendBookmarks {
				w.addBookmark(false)
			}
			return
		case <-changed:
			w.extendDeadline()
		case <-bookmark.C:
			w.extendDeadline()
			if o.sendBookmarks {
				w.addBookmark(false)
			}
		}
	}
}

// addInitial sends the existing objects.
func (w *watcher) addInitial(o watchOptions) {
	entries, rev := w.store.list(w.res)
	for _, e := range entries {
		if w.selection.matches(e.Object) {
			w.addObject(watch.Added, e)
		}
	}
	w.rev = rev
	if o.sendEndBookmark {
		w.addBookmark(true)
	}
}

// addChange sends a change. The type of the event depends on whether the selection matches
// the object before and after the change.
func (w *watcher) addChange(c change) {
	matchedBefore := c.oldEntry != nil && w.selection.matches(c.oldEntry.Object)
	matchesAfter := c.kind != watch.Deleted && w.selection.matches(c.newEntry.Object)
	switch {
	case matchesAfter && matchedBefore:
		w.addObject(watch.Modified, c.newEntry)
	case matchesAfter:
		w.addObject(watch.Added, c.newEntry)
	case matchedBefore && c.kind == watch.Deleted:
		w.addObject(watch.Deleted, c.newEntry)
	case matchedBefore:
		w.addObject(watch.Deleted, withRevision(w.res, c.oldEntry, c.newEntry.Rev))
	}
}

func (w *watcher) addObject(kind watch.EventType, e *resource.Entry) {
	w.add(kind, w.encoder.Encode(w.secretFilter.filterEntry(e), !w.areHeadersSent))
	w.areHeadersSent = true
}

func (w *watcher) add(kind watch.EventType, object []byte) {
	for _, part := range [][]byte{[]byte(`{"type":"` + string(kind) + `","object":`), object, []byte("}\n")} {
		if w.err == nil {
			_, w.err = w.w.Write(part)
		}
	}
}

// addBookmark sends the revision up to which all changes were sent. If isEndOfInitial is set, the
// bookmark also marks the end of the initial objects.
func (w *watcher) addBookmark(isEndOfInitial bool) {
	meta := metav1.ObjectMeta{ResourceVersion: strconv.FormatUint(w.rev, 10)}
	if isEndOfInitial {
		meta.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	body := metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{Kind: w.res.Kind, APIVersion: w.res.GroupVersionKind().GroupVersion().String()}, ObjectMeta: meta}
	switch w.encoder.Representation {
	case request.AsMetadata:
		body.TypeMeta = resource.MetadataType
	case request.AsTable:
		t := metav1.Table{TypeMeta: metav1.TypeMeta{Kind: "Table", APIVersion: metav1.SchemeGroupVersion.String()}, Rows: []metav1.TableRow{{}}}
		t.ResourceVersion = meta.ResourceVersion
		body.TypeMeta = resource.MetadataType
		t.Rows[0].Object.Raw = resource.Encode(body)
		w.add(watch.Bookmark, resource.Encode(t))
		return
	}
	w.add(watch.Bookmark, resource.Encode(body))
}

// extendDeadline sets the deadline for sending events to sendTimeout from now.
func (w *watcher) extendDeadline() {
	if w.err == nil {
		w.err = http.NewResponseController(w.w).SetWriteDeadline(time.Now().Add(sendTimeout))
	}
}

// flush sends the header and the events that were written. It returns an error if the
// client is disconnected or too slow.
func (w *watcher) flush() error {
	if w.err == nil {
		w.err = http.NewResponseController(w.w).Flush()
	}
	return w.err
}

// finish flushes the events and removes the write deadline, so that the client can use the connection
// for its next request. If sending has failed, finish closes the connection.
func (w *watcher) finish() {
	if w.flush() != nil {
		panic(http.ErrAbortHandler)
	}
	http.NewResponseController(w.w).SetWriteDeadline(time.Time{})
}
