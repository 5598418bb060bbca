package endpoint

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// FuzzSystemLogs checks that a client cannot read a file outside the directory of the logs, neither with
// a path that contains ".." nor through a link that a container has created.
func FuzzSystemLogs(f *testing.F) {
	for _, target := range []string{"/logs/", "/logs/syslog", "/logs/../secret", "/logs/out", "/logs/up/secret", "/logs/%2e%2e/secret", "/logs/pods/web.log", "/logs//secret", "/logs/fifo"} {
		f.Add(target)
	}
	top := f.TempDir()
	dir := filepath.Join(top, "log")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(dir, "pods"), 0o700),
		os.WriteFile(filepath.Join(top, "secret"), []byte("hunter2"), 0o600),
		os.WriteFile(filepath.Join(dir, "syslog"), []byte("line\n"), 0o600),
		os.WriteFile(filepath.Join(dir, "pods", "web.log"), []byte("line\n"), 0o600),
		os.Symlink("../secret", filepath.Join(dir, "out")),
		os.Symlink(filepath.Join(top, "secret"), filepath.Join(dir, "absolute")),
		os.Symlink("..", filepath.Join(dir, "up")),
		unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600),
	} {
		if err != nil {
			f.Fatal(err)
		}
	}
	h := http.StripPrefix("/logs", http.FileServerFS(systemLogs{dir}))
	f.Fuzz(func(t *testing.T, target string) {
		u, err := url.ParseRequestURI(target)
		if err != nil {
			return
		}
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.URL = u
		h.ServeHTTP(w, r)
		if w.Code < 200 || w.Code > 599 || strings.Contains(w.Body.String(), "hunter2") {
			t.Errorf("%q: got status %d, body %s; want a valid status and no content of the file secret", target, w.Code, w.Body)
		}
	})
}
