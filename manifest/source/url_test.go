package source

import (
	"compress/gzip"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"podd/manifest"
)

// poll runs a source in a synctest bubble with a fake clock.
func poll(t *testing.T, u *URL) *running { return runWithin(t, u, time.Hour) }

const emptyPodList = `{"apiVersion":"v1","kind":"PodList","metadata":{},"items":[]}`

func TestURL_SendsValidators(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer(t, nil)
		f.handle(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", `"v1"`)
			w.Header().Set("Last-Modified", "Sat, 21 Nov 2026 02:40:00 GMT")
			if r.Header.Get("If-None-Match") == `"v1"` && r.Header.Get("If-Modified-Since") == "Sat, 21 Nov 2026 02:40:00 GMT" {
				w.WriteHeader(http.StatusNotModified)
				return
			}
			list("a", "b")(w, r)
		})
		r := poll(t, f.url("/x", urlOptions(t)))
		if b := r.untilPods("a", "b"); !b.IsComplete || len(b.Problems) != 0 || b.FileStates[0].ContentTime.IsZero() {
			t.Errorf("first response: got %s, want a complete batch with a version", show(b))
		}
		<-time.After(10 * time.Minute)
		requests := f.requests()
		if len(requests) < 25 || len(requests) > 38 {
			t.Errorf("got %d requests in 10 minutes, want 25 to 38 (one every 16 to 24 s)", len(requests))
		}
		for i, q := range requests[1:] {
			if d := q.at.Sub(requests[i].at); d < 16*time.Second || d > 24*time.Second {
				t.Errorf("time until the next request: got %v, want 20 s ± 20 %%", d)
			}
		}
		if all, _ := r.batches(); len(all) != 1 {
			t.Errorf("emitted %d batches of the same content, want one", len(all))
		}
	})
}

// TestURL_InvalidResponse checks that an invalid response causes a Problem and changes no pods. A
// response with status 200 and a valid list must then change the pods and remove the Problem.
func TestURL_InvalidResponse(t *testing.T) {
	manyBytes := yaml("a") + strings.Repeat("# fill\n", 11<<20/7)
	for name, c := range map[string]struct {
		response http.HandlerFunc
		want     string
	}{
		"500":                           {status(500), "the server responded with 500 Internal Server Error"},
		"404":                           {status(404), "the server responded with 404 Not Found"},
		"204":                           {status(204), "the server responded with 204 No Content"},
		"304 without validators":        {status(304), "the server responded with 304 Not Modified"},
		"206":                           {status(206), "the server responded with 206"},
		"empty":                         {body200(""), "contains no pods"},
		"blank":                         {body200("\n# nothing\n---\n"), "contains no pods"},
		"null":                          {body200("null"), "contains no pods"},
		"html":                          {body200("<html><body>Please log in</body></html>"), "error"},
		"an object":                     {body200(`{"error":"database is down"}`), "kind: required"},
		"a string":                      {body200("upstream connect error"), "must be an object"},
		"one pod broken":                {body200(yaml("a") + "---\n" + broken), "spec.containers: required"},
		"list, no items":                {body200("apiVersion: v1\nkind: PodList\n"), "items: must be a list"},
		"truncated":                     {raw("HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + yaml("evil")), "response truncated"},
		"truncated chunk":               {raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n" + yaml("evil")[:50]), "response truncated"},
		"no length":                     {raw("HTTP/1.0 200 OK\r\n\r\n" + yaml("evil")), "the response has no length"},
		"truncated JSON without length": {raw("HTTP/1.0 200 OK\r\n\r\n" + emptyPodList[:40]), "the response has no length"},
		"not HTTP":                      {raw("SSH-2.0-OpenSSH\r\n"), "malformed HTTP"},
		"closed connection":             {raw(""), "EOF"},
		"too large":                     {body200(manyBytes), "larger than 10 MiB"},
		"Content-Length too large":      {raw("HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n"), "larger than 10 MiB"},
		"invalid gzip":                  {raw("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nevil"), "fetching manifests"},
		"no response":                   {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "no complete response within 10s"},
		"slow response":                 {drip, "no complete response within 10s"},
		"redirect to another host": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.2/x?token=redirected", http.StatusFound)
		}, "redirect to http://127.0.0.2/x rejected, because the target has another host or port"},
		"redirect to another port": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:81/x", http.StatusFound)
		}, "the target has another host or port"},
		"redirect loop": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path, http.StatusFound)
		}, "too many redirects"},
		"redirect to a file": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "file:///etc/shadow")
			w.WriteHeader(http.StatusFound)
		}, "rejected"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFakeServer(t, list("a=1", "b"))
				r := poll(t, f.url("/x?token=hunter2", urlOptions(t)))
				r.untilPods("a=1", "b")
				f.handle(c.response)
				b := r.untilProblem(c.want, "a=1", "b")
				if text := show(b); !b.IsComplete || strings.Contains(text, "hunter2") || strings.Contains(text, "redirected") {
					t.Errorf("got %s, want a complete batch without the query of the URL", text)
				}
				if s := b.FileStates[0]; s.OutdatedReason == "" || s.OutdatedSince.IsZero() || s.ContentTime.After(s.OutdatedSince) {
					t.Errorf("state: got %+v, want a reason and a time since which the content is outdated", s)
				}
				f.handle(list("a=2"))
				if b := r.untilPods("a=2"); len(b.Problems) != 0 || b.FileStates[0].OutdatedReason != "" {
					t.Errorf("after a valid list: got %s, want no problem", show(b))
				}
				r.stop()
			})
		})
	}
}

// drip responds with one byte a second.
func drip(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Length", "1000")
	for {
		if _, err := w.Write([]byte("#")); err != nil {
			return
		}
		if err := http.NewResponseController(w).Flush(); err != nil {
			return
		}
		select {
		case <-time.After(time.Second):
		case <-r.Context().Done():
			return
		}
	}
}

func TestURL_ValidLists(t *testing.T) {
	for name, c := range map[string]struct {
		response http.HandlerFunc
		want     string
	}{
		"json empty":     {body200(emptyPodList), ""},
		"yaml empty":     {body200("apiVersion: v1\nkind: List\nitems: []\n"), ""},
		"no length json": {raw("HTTP/1.0 200 OK\r\n\r\n" + emptyPodList), ""},
		"one pod":        {list("z"), "z"},
		"several":        {list("z", "x"), "z x"},
		"gzip": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = z.Write([]byte(yaml("z")))
			_ = z.Close()
		}, "z"},
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/there" {
				http.Redirect(w, r, "/there", http.StatusTemporaryRedirect)
				return
			}
			list("z")(w, r)
		}, "z"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFakeServer(t, list("a"))
				r := poll(t, f.url("/x", urlOptions(t)))
				r.untilPods("a")
				f.handle(c.response)
				if b := r.untilPods(strings.Fields(c.want)...); len(b.Problems) != 0 || !b.IsComplete {
					t.Errorf("after %q: got %s, want a complete batch without problems", name, show(b))
				}
				r.stop()
			})
		})
	}
}

// TestURL_NotModified_Refused checks a response with status 304 after podd has refused the content of
// the server. The last valid content must remain outdated, because 304 refers to the refused content.
func TestURL_NotModified_Refused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer(t, list("a"))
		r := poll(t, f.url("/x", urlOptions(t)))
		r.untilPods("a")
		f.handle(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", `"bad"`)
			if r.Header.Get("If-None-Match") == `"bad"` {
				w.WriteHeader(http.StatusNotModified)
				return
			}
			body200(broken)(w, r)
		})
		r.untilProblem("spec.containers", "a")
		<-time.After(time.Hour)
		r.untilProblem("spec.containers", "a")
		f.handle(status(503))
		r.untilProblem("503", "a")
		f.handle(status(304))
		r.until("only the problem of the refused content", func(b manifest.Batch) bool {
			return !strings.Contains(problemsOf(b), "503") && b.FileStates[0].OutdatedReason == outdatedRefused
		})
	})
}

func TestURL_RetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "300")
			w.WriteHeader(http.StatusServiceUnavailable)
		})
		poll(t, f.url("/x", urlOptions(t)))
		<-time.After(299 * time.Second)
		if n := len(f.requests()); n != 1 {
			t.Errorf("got %d requests within Retry-After, want one", n)
		}
		<-time.After(2 * time.Second)
		if n := len(f.requests()); n != 2 {
			t.Errorf("got %d requests after Retry-After, want two", n)
		}
	})
}

func TestURL_Backoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer(t, status(500))
		r := poll(t, f.url("/x", urlOptions(t)))
		if b := r.untilProblem("there is no earlier valid content"); b.IsComplete {
			t.Errorf("got %s, want an incomplete batch because there was no valid list", show(b))
		}
		<-time.After(24 * time.Hour)
		requests := f.requests()
		for i, q := range requests[1:] {
			want := min(20*time.Second<<min(i, 20), maxRequestInterval)
			if d := q.at.Sub(requests[i].at); d < want*8/10 || d > min(want*12/10, maxRequestInterval) {
				t.Errorf("wait %d: got %v, want %v ± 20 %%", i, d, want)
			}
		}
		if all, _ := r.batches(); len(all) != 1 {
			t.Errorf("emitted %d batches for the same problem, want one", len(all))
		}
	})
}

// TestURL_Cache checks that the cached content runs after a boot without network.
func TestURL_Cache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := urlOptions(t)
		f := newFakeServer(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", `"v1"`)
			list("a", "b")(w, r)
		})
		r := poll(t, f.url("/x", o))
		version := r.untilPods("a", "b").FileStates[0].ContentTime
		r.stop()

		unplugged := newFakeServer(t, nil)
		if err := unplugged.wire.Close(); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Hour)
		r = poll(t, unplugged.url("/x", o))
		b := r.untilProblem("network is unreachable; using the last valid content from the cache", "a", "b")
		if !b.IsComplete || !b.FileStates[0].ContentTime.Equal(version) || b.FileStates[0].OutdatedReason != outdatedFetch {
			t.Errorf("without network: got %s, state %+v; want the cached version", show(b), b.FileStates[0])
		}
		r.stop()

		// The server responds only after firstResponseWait.
		f.handle(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		began := time.Now()
		r = poll(t, f.url("/x", o))
		b = r.untilProblem("no response yet", "a", "b")
		if waited := time.Since(began); waited != firstResponseWait || b.IsComplete {
			t.Errorf("slow server: after %v, got %s; want an incomplete batch after %v", waited, show(b), firstResponseWait)
		}
		f.handle(func(w http.ResponseWriter, r *http.Request) {
			if got := r.Header.Get("If-None-Match"); got != `"v1"` {
				t.Errorf("If-None-Match: got %q, want the cached value", got)
			}
			w.WriteHeader(http.StatusNotModified)
		})
		b = r.until("the response 304", func(b manifest.Batch) bool { return len(b.Problems) == 0 })
		if podsOf(b) != "a b" || !b.IsComplete || b.FileStates[0].OutdatedReason != "" {
			t.Errorf("after the response 304: got %s, want the cached pods in use", show(b))
		}
		r.stop()

		// Pods that the server has removed in the meantime are not started.
		f.handle(body200(emptyPodList))
		r = poll(t, f.url("/x", o))
		r.untilPods()
		if all, _ := r.batches(); len(all) != 1 {
			t.Errorf("emitted %d batches, want 1 with the response of the server", len(all))
		}
		r.stop()
		r = poll(t, unplugged.url("/x", o))
		if b := r.untilProblem("from the cache"); !b.IsComplete {
			t.Errorf("an empty list from the cache: got %s, want a complete batch", show(b))
		}
	})
}

func TestURL_PlaceholdersAndHeaders(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	machine := write("machine-id", "0123456789abcdef0123456789abcdef\n")
	headers := write("headers", "# secret\nAuthorization: Bearer one\n\nHost: other.example\r\n")
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer(t, list("a"))
		o := urlOptions(t)
		o.NodeName, o.machineIDFile, o.HeaderFile = "no de/?", machine, headers
		o.Header = http.Header{"X-Site": {"42"}, "Authorization": {"Basic zero"}}
		u := f.url("/{node}/{machineID}/x?n={node}&t=hunter2#part", o)
		if want := "http://127.0.0.1/no%20de%2F%3F/{machineID}/x"; u.Name() != want {
			t.Errorf("name: got %s, want %s", u.Name(), want)
		}
		r := poll(t, u)
		r.until("pods", func(b manifest.Batch) bool { return len(b.Pods) == 1 })
		q := f.requests()[0]
		if want := "/no%20de%2F%3F/0123456789abcdef0123456789abcdef/x?n=no+de%2F%3F&t=hunter2"; q.uri != want || q.host != "other.example" {
			t.Errorf("got request for %s to host %s, want %s to host other.example", q.uri, q.host, want)
		}
		if got := fmt.Sprint(q.header["Authorization"], q.header["X-Site"], q.header["User-Agent"]); got != "[Bearer one] [42] [podd]" {
			t.Errorf("values of Authorization, X-Site and User-Agent: got %s, want [Bearer one] [42] [podd]", got)
		}
		write("headers", "Authorization: Bearer two\n")
		f.handle(list("b"))
		r.until("the second response", func(b manifest.Batch) bool { return strings.HasPrefix(podsOf(b), "b") })
		if got := f.requests()[1].header.Get("Authorization"); got != "Bearer two" {
			t.Errorf("Authorization after a change of the file: got %q, want Bearer two", got)
		}
		write("headers", "Authorization Bearer three\n")
		b := r.until("a problem", func(b manifest.Batch) bool { return len(b.Problems) > 0 })
		if text := problemsOf(b); !strings.Contains(text, `line 1 is not "Name: value"`) || strings.Contains(text, "three") {
			t.Errorf("invalid header file: got %s, want the line number and no value", text)
		}
		if err := os.Chmod(write("headers", "Authorization: Bearer four\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		r.until("a warning", func(b manifest.Batch) bool {
			return strings.Contains(problemsOf(b), "all users can read the header file") && !strings.Contains(problemsOf(b), "four")
		})
		write("machine-id", "../../../etc\n")
		r.until("a problem", func(b manifest.Batch) bool {
			return strings.Contains(problemsOf(b), "the file contains no machine ID; create one with systemd-machine-id-setup")
		})
		r.stop()
	})
}

func TestNewURL(t *testing.T) {
	for raw, want := range map[string]string{
		"https://user:secret@h:8443/a/b?token=secret#secret": "https://h:8443/a/b",
		"http://h":                          "http://h",
		"https://{node}.example/x":          "https://node.example/x",
		"https://[::1]:1/%2e%2E/x":          "https://[::1]:1/%2e%2E/x",
		"https://h/{machineID}?{machineID}": "https://h/{machineID}",
		"":                                  "!must begin with https://",
		"/etc/secret":                       "!must begin with https://",
		"file:///etc/secret":                "!must begin with https://",
		"https:///secret":                   "!no host",
		"https://h:secret/":                 "!malformed",
		"https://secret@h/%zz":              "!malformed",
		"https://se\x00cret/":               "!control character",
		"http://user:sec ret@h/":            "!userinfo",
	} {
		u, err := NewURL(raw, URLOptions{Options: Options{NodeName: "node"}})
		if failure, bad := strings.CutPrefix(want, "!"); bad {
			if err == nil || !strings.Contains(err.Error(), failure) || strings.Contains(err.Error(), "secret") {
				t.Errorf("NewURL(%q): got error %v, want one that contains %q and no secret", raw, err, failure)
			}
			continue
		}
		if err != nil || u.Name() != want {
			t.Errorf("NewURL(%q): got %v, error %v; want name %s", raw, u, err, want)
		}
	}
	for name, o := range map[string]URLOptions{
		"certificate alone": {CertFile: "/x"},
		"key alone":         {KeyFile: "/x"},
		"header name":       {Header: http.Header{"a b": {"secret"}}},
		"header value":      {Header: http.Header{"A": {"secret\nB: c"}}},
	} {
		if u, err := NewURL("https://h/", o); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, error %v; want an error without the secret value", name, u, err)
		}
	}
	if u, err := NewURL("https://h/x?group=a", URLOptions{Label: "2"}); err != nil || u.Name() != "https://h/x#2" {
		t.Errorf("NewURL with a label: got name %v, error %v; want a name that ends in #2", u.Name(), err)
	}
}
