// Package nodelog serves the logs of the host at /logs/ of the kubelet API: the files below
// /var/log, and queries of the logs of services as in KEP-2258.
//
//	/logs/PATH             a file or directory
//	/logs/?query=/PATH     the same
//	/logs/?query=SERVICE   the log of a service, from the journal or else from the first of the
//	                       files SERVICE, SERVICE.log and SERVICE/SERVICE.log
//
// Containers can write below /var/log. A Handler therefore uses only the files that its fs.FS opens.
package nodelog

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"slices"
	"time"

	"podd/server"
)

// queryTimeout is the maximum time for the response to a query of services, as in the kubelet.
const queryTimeout = 30 * time.Second

// maxQueries limits the number of queries of services that are served concurrently, because each
// query needs a process that may search the whole journal.
const maxQueries = 8

// A Handler serves the logs of the host. Paths of requests are relative to /logs.
type Handler struct {
	files          fs.FS
	fileServer     http.Handler
	isQueryEnabled bool
	queries        chan struct{} // contains one element for each query in progress
	queryTimeout   time.Duration
}

// NewHandler returns a Handler for the files in logDir, the directory of logs. logDir must refuse to open
// anything except regular files and directories. If isQueryEnabled is false, queries are rejected.
func NewHandler(logDir fs.FS, isQueryEnabled bool) *Handler {
	return &Handler{
		files: logDir, fileServer: http.FileServerFS(logDir),
		isQueryEnabled: isQueryEnabled, queries: make(chan struct{}, maxQueries), queryTimeout: queryTimeout,
	}
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.isQueryEnabled {
		if r.URL.Query().Has("query") {
			http.Error(w, "log queries are disabled; set enableSystemLogQuery to true", http.StatusBadRequest)
			return
		}
		h.fileServer.ServeHTTP(w, r)
		return
	}
	q, err := parseQuery(r.URL.Query())
	switch {
	case err != nil:
		http.Error(w, err.Error(), server.HTTPStatus(err))
	case q == nil:
		h.fileServer.ServeHTTP(w, r)
	case r.URL.Path != "/":
		http.Error(w, "a query must be sent to /logs/, not to a path below it", http.StatusNotAcceptable)
	case q.File != "":
		h.serveFile(w, r, q.File)
	case r.Method != http.MethodGet:
		w.Header().Set("Allow", http.MethodGet)
		http.Error(w, "the logs of services can only be requested with GET", http.StatusMethodNotAllowed)
	default:
		h.serveServices(w, r, q)
	}
}

// serveFile responds with a file or directory.
func (h *Handler) serveFile(w http.ResponseWriter, r *http.Request, name string) {
	// As in the kubelet, the status is 406 for a file that does not exist.
	if _, err := fs.Stat(h.files, name); err != nil {
		http.Error(w, fmt.Sprintf("query: opening log file %s: %v", name, errorCause(err)), http.StatusNotAcceptable)
		return
	}
	http.ServeFileFS(w, r, h.files, name)
}

// serveServices responds with the logs of services. Errors are lines at the end of the response, as
// in the kubelet.
func (h *Handler) serveServices(w http.ResponseWriter, r *http.Request, q *query) {
	select {
	case h.queries <- struct{}{}:
		defer func() { <-h.queries }()
	default:
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many log queries; retry after a second", http.StatusTooManyRequests)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), h.queryTimeout)
	defer cancel()
	// A client that does not read the response must not occupy a place in h.queries. The client gets
	// a second more, in which it can read the line about the timeout.
	deadline := time.Now().Add(h.queryTimeout + time.Second)
	if err := http.NewResponseController(w).SetWriteDeadline(deadline); err != nil && !errors.Is(err, http.ErrNotSupported) {
		http.Error(w, "setting the write deadline: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	var out io.Writer = w
	if r.Header.Get("Accept-Encoding") == "gzip" {
		w.Header().Set("Content-Encoding", "gzip")
		gzipWriter, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // an error means an invalid level
		defer gzipWriter.Close()
		out = gzipWriter
	}
	h.copyServices(ctx, out, q)
}

// copyServices writes the logs of services to w, first those in the journal.
func (h *Handler) copyServices(ctx context.Context, w io.Writer, q *query) {
	units, journalErr := findUnits(ctx, q.Services)
	if len(units) > 0 {
		if err := copyUnits(ctx, w, units, q.Options); err != nil {
			fmt.Fprintf(w, "\nerror: %v\n", h.explain(ctx, err))
			return
		}
	}
	for _, name := range q.Services {
		if slices.Contains(units, name) {
			continue
		}
		if err := h.copyFile(ctx, w, name, q.Options); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				err = newNoLogError(name, journalErr)
			}
			fmt.Fprintf(w, "\nerror: %v\n", h.explain(ctx, err))
		}
	}
}

// newNoLogError returns the error for a service that has no log. journalErr is the reason why the
// journal was not searched, or nil.
func newNoLogError(service string, journalErr error) error {
	if journalErr != nil {
		return fmt.Errorf("no log file of service %s found, and the journal is not readable: %w", service, journalErr)
	}
	return fmt.Errorf("no log of service %s found in the journal or in a file", service)
}

// explain returns err, or an error that names the timeout if the timeout is the cause.
func (h *Handler) explain(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("the log is incomplete, because reading it takes more than %v; use tailLines, sinceTime or boot", h.queryTimeout)
	}
	return err
}

// copyFile writes the log file of a service to w. It returns fs.ErrNotExist if the service has no
// log file.
func (h *Handler) copyFile(ctx context.Context, w io.Writer, service string, o options) error {
	f, size, err := h.openLog(service)
	if err != nil {
		return err
	}
	defer f.Close()
	if o.isSet() {
		return fmt.Errorf("the log of service %s is a file, and sinceTime, untilTime, tailLines, boot and pattern apply only to the journal; remove them", service)
	}
	// size limits the response, because a program can write to the file faster than the client reads.
	_, err = io.Copy(w, io.LimitReader(contextReader{ctx, f}, size))
	return err
}

// openLog opens the log file of a service and returns the current size of the file.
func (h *Handler) openLog(service string) (fs.File, int64, error) {
	for _, name := range []string{service, service + ".log", service + "/" + service + ".log"} {
		f, err := h.files.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, 0, fmt.Errorf("opening log file %s: %w", name, errorCause(err))
		}
		info, err := f.Stat()
		if err == nil && info.Mode().IsRegular() {
			return f, info.Size(), nil
		}
		f.Close()
		if err != nil {
			return nil, 0, fmt.Errorf("opening log file %s: %w", name, errorCause(err))
		}
	}
	return nil, 0, fs.ErrNotExist
}

// errorCause returns the cause in a *fs.PathError, because messages name the path themselves.
func errorCause(err error) error {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		return p.Err
	}
	return err
}

// A contextReader is a Reader that returns an error when a context is done.
type contextReader struct {
	ctx context.Context
	io.Reader
}

// Read implements io.Reader.
func (r contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}
