package nodelog

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"
)

// newTestHandler returns a Handler with log files and with queries enabled. Its timeout of a query is
// long, because programs may start slowly on a busy machine.
func newTestHandler() *Handler {
	h := NewHandler(fstest.MapFS{
		"syslog":              {Data: []byte("syslog line\n")},
		"bare":                {Data: []byte("bare line\n")},
		"app.log":             {Data: []byte("app line\n")},
		"web/web.log":         {Data: []byte("web line\n")},
		"kubelet.log":         {Data: []byte("not from the journal\n")},
		"empty.dir/other.log": {},
	}, true)
	h.queryTimeout = time.Hour
	return h
}

// installJournalctl installs a journalctl that runs a shell script, as the only program in PATH. In the
// script, $dir is a directory for files. With --field, journalctl does not run the script, but prints
// the units kubelet.service and init.scope.
func installJournalctl(t *testing.T, script string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	text := "#!/bin/sh\ndir=" + dir + "\ncase \"$*\" in *--field=*) echo kubelet.service; echo init.scope; exit;; esac\n" + script + "\n"
	if err := os.WriteFile(filepath.Join(dir, "journalctl"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	return dir
}

func get(h http.Handler, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, nil))
	return w
}

func TestHandler(t *testing.T) {
	installJournalctl(t, `for arg; do echo "[$arg]"; done; echo warning >&2; exit 1`)
	const args = "[--utc]\n[--no-pager]\n[--output=short-precise]\n"
	for _, c := range []struct {
		target string
		status int
		want   string
	}{
		{"/syslog", 200, "syslog line\n"},
		{"/nothing", 404, "404 page not found\n"},
		{"/?query=/syslog", 200, "syslog line\n"},
		{"/?query=web/web.log", 200, "web line\n"},
		{"/?query=/web", 200, "<!doctype html>\n<meta name=\"viewport\" content=\"width=device-width\">\n<pre>\n<a href=\"web.log\">web.log</a>\n</pre>\n"},
		{"/?query=/nothing", 406, "query: opening log file nothing: file does not exist\n"},
		{"/syslog?query=kubelet", 406, "a query must be sent to /logs/, not to a path below it\n"},
		{"/?query=..", 406, "query: \"..\" is not the name of a service; must have at most 256 letters, digits and characters of -_.:@\n"},
		{"/?query=kubelet", 200, args + "[--unit=kubelet]\nwarning\n"},
		{"/?query=kubelet.service&query=init.scope", 200, args + "[--unit=kubelet.service]\n[--unit=init.scope]\nwarning\n"},
		{"/?query=kubelet&sinceTime=2026-01-02T15:04:05.5%2B01:00&untilTime=2026-01-02T16:00:00Z&tailLines=7&boot=-2&pattern=a%20--file=/etc/shadow", 200,
			args + "[--since=@1767362645.500000]\n[--until=@1767369600.000000]\n[--lines=7]\n[--unit=kubelet]\n[--grep=a --file=/etc/shadow]\n[--boot=-2]\nwarning\n"},
		{"/?query=kubelet&sinceTime=0001-01-01T00:00:00Z&boot=0", 200, args + "[--unit=kubelet]\n[--boot=0]\nwarning\n"},
		{"/?query=kubelet&sinceTime=1960-01-01T00:00:00Z", 200, args + "[--since=@0.000000]\n[--unit=kubelet]\nwarning\n"},
		{"/?query=app", 200, "app line\n"},
		{"/?query=bare&query=web", 200, "bare line\nweb line\n"},
		{"/?query=app&query=kubelet", 200, args + "[--unit=kubelet]\nwarning\napp line\n"},
		{"/?query=ubelet", 200, "\nerror: no log of service ubelet found in the journal or in a file\n"},
		{"/?query=empty.dir", 200, "\nerror: no log of service empty.dir found in the journal or in a file\n"},
		{"/?query=app&tailLines=5", 200, "\nerror: the log of service app is a file, and sinceTime, untilTime, tailLines, boot and pattern apply only to the journal; remove them\n"},
	} {
		w := get(newTestHandler(), c.target)
		if w.Code != c.status || w.Body.String() != c.want {
			t.Errorf("%s: got %d %q, want %d %q", c.target, w.Code, w.Body, c.status, c.want)
		}
	}
}

// TestHandler_Disabled checks that a query is not ignored if queries are disabled.
func TestHandler_Disabled(t *testing.T) {
	h := NewHandler(fstest.MapFS{"syslog": {Data: []byte("line\n")}}, false)
	for target, want := range map[string]string{
		"/syslog":             "200 line\n",
		"/syslog?tailLines=1": "200 line\n",
		"/?query=kubelet":     "400 log queries are disabled; set enableSystemLogQuery to true\n",
		"/?query=":            "400 log queries are disabled; set enableSystemLogQuery to true\n",
	} {
		w := get(h, target)
		if got := strconv.Itoa(w.Code) + " " + w.Body.String(); got != want {
			t.Errorf("%s: got %q, want %q", target, got, want)
		}
	}
}

// TestHandler_NoJournal checks the response on a host without journalctl.
func TestHandler_NoJournal(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if got, want := get(newTestHandler(), "/?query=kubelet").Body.String(), "not from the journal\n"; got != want {
		t.Errorf("service with a file: got %q, want %q", got, want)
	}
	got := get(newTestHandler(), "/?query=sshd").Body.String()
	if want := "\nerror: no log file of service sshd found, and the journal is not readable: running journalctl: exec: \"journalctl\": executable file not found in $PATH\n"; got != want {
		t.Errorf("service without a file: got %q, want %q", got, want)
	}
}

func TestHandler_Method(t *testing.T) {
	w := httptest.NewRecorder()
	newTestHandler().ServeHTTP(w, httptest.NewRequest(http.MethodHead, "/?query=kubelet", nil))
	if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET" {
		t.Errorf("HEAD: got %d, Allow %q, want 405 and GET", w.Code, w.Header().Get("Allow"))
	}
}

func TestHandler_Gzip(t *testing.T) {
	installJournalctl(t, "echo line")
	r := httptest.NewRequest(http.MethodGet, "/?query=kubelet", nil)
	r.Header.Set("Accept-Encoding", "gzip")
	w := httptest.NewRecorder()
	newTestHandler().ServeHTTP(w, r)
	text, err := gzip.NewReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(text)
	if err != nil || string(got) != "line\n" || w.Header().Get("Content-Encoding") != "gzip" {
		t.Errorf("got text %q, error %v, Content-Encoding %q; want \"line\\n\", no error, gzip", got, err, w.Header().Get("Content-Encoding"))
	}
}

// TestHandler_Timeout checks that the response ends at the timeout and names the cause, even if a
// child of journalctl has the output open, and that journalctl is killed.
func TestHandler_Timeout(t *testing.T) {
	dir := installJournalctl(t, "/bin/sleep 600 & echo $! >> $dir/children; echo $$ >> $dir/pids; echo line; wait")
	h := newTestHandler()
	h.queryTimeout = time.Second
	query := func() string {
		start := time.Now()
		got := get(h, "/?query=kubelet").Body.String()
		if took := time.Since(start); took > 5*time.Minute {
			t.Errorf("the response took %v, want about %v", took, h.queryTimeout)
		}
		return got
	}
	got := query()
	for h.queryTimeout < time.Minute && !strings.HasPrefix(got, "line\n") { // a busy machine may start journalctl slowly
		h.queryTimeout *= 2
		got = query()
	}
	if want := fmt.Sprintf("line\n\nerror: the log is incomplete, because reading it takes more than %v; use tailLines, sinceTime or boot\n", h.queryTimeout); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, pid := range readPIDs(t, dir, "pids") {
		if syscall.Kill(pid, 0) == nil {
			t.Errorf("journalctl with PID %d still runs, want it killed", pid)
		}
	}
	for _, pid := range readPIDs(t, dir, "children") {
		syscall.Kill(pid, syscall.SIGKILL)
	}
}

// readPIDs returns the PIDs that journalctl has written to a file.
func readPIDs(t *testing.T, dir, name string) (pids []int) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// TestHandler_ManyQueries checks that a query is rejected while maxQueries are in progress, and that
// clients that disconnect do not count as queries in progress, even if they have read nothing.
func TestHandler_ManyQueries(t *testing.T) {
	installJournalctl(t, "while :; do echo a line that fills the buffers of the connection; done")
	h := newTestHandler()
	ts := httptest.NewServer(h)
	defer ts.Close()
	ctx, disconnect := context.WithCancel(t.Context())
	defer disconnect()
	for i := range maxQueries {
		if i%2 == 0 {
			openQuery(t, ctx, ts.URL)
		} else {
			sendQuery(t, ctx, ts.Listener.Addr().String())
		}
	}
	waitFor(t, func() bool { return len(h.queries) == maxQueries })
	w := get(h, "/?query=kubelet")
	if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
		t.Errorf("got %d %s, want 429 and Retry-After", w.Code, w.Body)
	}
	if w := get(h, "/syslog"); w.Code != http.StatusOK {
		t.Errorf("file: got %d, want 200", w.Code)
	}
	disconnect()
	waitFor(t, func() bool { return len(h.queries) == 0 })
}

// TestHandler_ReadsNothing checks that a query ends at the timeout if the client reads nothing.
func TestHandler_ReadsNothing(t *testing.T) {
	dir := installJournalctl(t, ": > $dir/started; while :; do echo a line that fills the buffers of the connection; done")
	h := newTestHandler()
	ended := make(chan struct{}, 1)
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r)
		ended <- struct{}{}
	}))
	defer ts.Close()
	hasStarted := func() bool {
		_, err := os.Stat(filepath.Join(dir, "started"))
		return err == nil
	}
	// On a busy machine, journalctl may not start before the timeout.
	for h.queryTimeout = time.Second; !hasStarted(); h.queryTimeout *= 2 {
		sendQuery(t, t.Context(), ts.Listener.Addr().String())
		<-ended
	}
}

// openQuery sends a query for a log without end and does not read the body of the response.
func openQuery(t *testing.T, ctx context.Context, base string) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/?query=kubelet", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
}

// sendQuery sends the query of openQuery and reads nothing until ctx ends, when it disconnects.
func sendQuery(t *testing.T, ctx context.Context, addr string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	context.AfterFunc(ctx, func() { conn.Close() })
	fmt.Fprintf(conn, "GET /?query=kubelet HTTP/1.1\r\nHost: node\r\n\r\n")
}

func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("got a condition that is still false after 5m, want true")
		}
	}
}
