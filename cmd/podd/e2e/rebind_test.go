//go:build e2e

package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"

	v1 "k8s.io/api/core/v1"
)

// TestForwardedSocket checks podd's socket when it is forwarded to a TCP port. A browser must get the
// page at localhost, must be rejected under other host names, and must never get a credential.
func TestForwardedSocket(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, shared)
	d.api = freePort(t)
	d.start()
	addr := d.forwardSocket()
	_, port, _ := strings.Cut(addr, ":")
	chrome := http.Header{"User-Agent": {"Mozilla/5.0 (X11; Linux x86_64)"}, "Accept-Language": {"en"}}
	from := func(origin string) http.Header {
		return http.Header{"Origin": {origin}, "Sec-Fetch-Site": {"same-origin"}, "User-Agent": chrome["User-Agent"]}
	}
	for _, c := range []struct {
		method, path, host string
		header             http.Header
		want               int
	}{
		{"GET", "/", "localhost:" + port, chrome, 200},
		{"GET", "/page/usage", "127.0.0.1:" + port, from("http://127.0.0.1:" + port), 200},
		{"GET", "/", "wpad:" + port, chrome, 421},
		{"GET", "/api/v1/secrets", "wpad:" + port, chrome, 421},
		{"POST", "/v1/credential", "wpad:" + port, from("http://wpad:" + port), 421},
		{"POST", "/v1/credential", "podd:" + port, from("http://podd:" + port), 421},
		{"POST", "/v1/credential", "localhost:" + port, from("http://localhost:" + port), 403},
		{"POST", "/v1/credential", "x", http.Header{"User-Agent": {"curl/8.5.0"}}, 200},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, "http://"+addr+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host, r.Header = c.host, c.header
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != c.want {
			t.Errorf("%s %s with the header Host: %s: got status %s, error %v; want status %d", c.method, c.path, c.host, resp.Status, err, c.want)
		}
		if c.want != 200 && strings.Contains(string(body), "KEY") {
			t.Errorf("%s %s with the header Host: %s: got a response with a key, want none", c.method, c.path, c.host)
		}
	}
}

// TestForwardedSocket_Rebinding checks that a page in a real browser cannot read anything if the
// host name of the page resolves to the forwarded socket after the page was loaded.
func TestForwardedSocket_Rebinding(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	d.write("pass", manifestText(d, newSecret("pass", v1.SecretTypeOpaque, map[string]string{"word": "hidden"})))
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		io.WriteString(w, "<p>evil")
	}))
	t.Cleanup(evil.Close)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	var rebound atomic.Bool
	go func() {
		for {
			near, err := ln.Accept()
			if err != nil {
				return
			}
			network, address := "tcp", evil.Listener.Addr().String()
			if rebound.Load() {
				network, address = "unix", filepath.Join(d.runDir(), "podd.sock")
			}
			far, err := net.Dial(network, address)
			if err != nil {
				near.Close()
				continue
			}
			go func() { io.Copy(far, near); far.Close() }()
			go func() { io.Copy(near, far); near.Close() }()
		}
	}()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	b := browse(t, "http://wpad:"+port+"/", chromedp.Flag("host-resolver-rules", "MAP wpad 127.0.0.1"))
	b.until("the page is loaded", `document.body.innerText.includes("evil")`)
	rebound.Store(true)
	for n, c := range []struct{ request, headers string }{
		{"/api/v1/secrets", "{}"},
		{"/api/v1/secrets", `{"Accept-Language": "", "User-Agent": "x"}`},
		{"/v1/state", "{}"},
	} {
		b.do("fetching "+c.request, script(fmt.Sprintf(
			`fetch(%q, {headers: %s}).then(async r => { window.got%d = r.status + " " + await r.text() }, e => { window.got%d = "error " + e })`, c.request, c.headers, n, n)))
		b.until("the page has received a response to "+c.request, fmt.Sprintf("window.got%d !== undefined", n))
		got, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](fmt.Sprintf("window.got%d", n)))
		if err != nil || !strings.HasPrefix(got, "421 ") {
			t.Errorf("GET %s with the headers %s after rebinding: got response %.200s, error %v; want status 421", c.request, c.headers, got, err)
		}
	}
}
